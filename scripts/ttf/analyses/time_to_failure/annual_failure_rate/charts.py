"""The annual failure rate of each model."""

from functools import partial

import altair as alt
import polars as pl

from ttf.display.charts.axes import log_axis, log_domain, log_scale
from ttf.display.charts.encodings import picked, side_notes, tips
from ttf.display.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.display.charts.intervals import by_what, draw_bounds, draw_intervals, shown
from ttf.display.charts.text import labels
from ttf.display.charts.theme import ACCENT, FAINT
from ttf.engine.words import capital, in_words, plural
from ttf.records.inputs import Inputs

MOST_ROWS = 20


def afr(given: Inputs, study: Study) -> Figure:
    """The models with the most drive-days: points with intervals, and bounds of those without a failure."""
    table = given["afr"]
    models = table.filter(pl.col("stratum_by") != "all")
    by = in_words(models["stratum_by"].first() or "")
    what = f"Annual failure rate by {by}"
    if not models.height:
        return nothing_to_draw(what, f"no {study.unit} has a known {by}")
    drawn = models.sort("drive_days", descending=True, maintain_order=True).head(MOST_ROWS)
    drawn = shown(drawn).sort("afr", "ci_high", descending=True, maintain_order=True)
    names = labels(drawn["stratum"].to_list())
    rows = [_row(row, names[row["stratum"]]) for row in drawn.iter_rows(named=True)]
    whole = table.filter(pl.col("afr") > 0, stratum_by="all")["afr"].to_list()
    caption = (
        f"n = {plural(int(drawn['drives'].sum()), study.unit)}, {plural(int(drawn['failures'].sum()), 'failure')}."
    )
    if drawn["failures"].sum():
        caption += f" {by_what(drawn.filter(pl.col('failures') > 0))}"
    if (drawn["failures"] == 0).any():
        caption += " Triangle: no failure, so a 95% upper bound only."
    if models.height > drawn.height:
        caption += f" The {MOST_ROWS} with the most {study.unit}-days; {models.height - drawn.height:,} left out."
    return figure(
        _chart(rows, whole, by),
        {"models": rows} | ({"whole": [{"afr": whole[0]}]} if whole else {}),
        study,
        title=what,
        subtitle=f"Failures per 100 {study.units} and year, 95% CI" + ("; dashed: all" if whole else ""),
        caption=caption,
        alt_text=f"{what}: points with intervals on a logarithmic axis in percent, {plural(drawn.height, 'model')}.",
    )


def _row(row: dict, name: str) -> dict:
    found = {"model": name, "note": plural(row["failures"], "failure")} | picked(row, "drive_days", "failures")
    if not row["failures"]:
        return found | {"bound": row["ci_high"]}
    return found | picked(row, "afr", "low", "high", "independent")


def _chart(rows: list[dict], whole: list[float], by: str) -> alt.LayerChart:
    domain = log_domain([*whole, *(row[name] for row in rows for name in ("low", "high", "bound") if name in row)])
    axis = log_axis(domain, "Annual failure rate (%, logarithmic)")
    at = partial(alt.X, scale=log_scale(domain), axis=axis)
    tooltip = [
        *tips("model"),
        *tips(form=",", failures="failures", drive_days="drive-days"),
        *tips(form=",.3~g", afr="% a year", low="95% from", high="95% to", bound="less than (95%)"),
    ]
    order = [row["model"] for row in rows]
    base = chart_of("models").encode(y=alt.Y("model:N", sort=order, title=capital(by)), tooltip=tooltip)
    known, bounds = base.transform_filter("isValid(datum.afr)"), base.transform_filter("isValid(datum.bound)")
    layers = [
        draw_intervals(known, at("low:Q"), strokeWidth=1.5, color=ACCENT),
        known.mark_point(filled=True, size=60, color=ACCENT, opacity=1).encode(x=at("afr:Q")),
        draw_bounds(bounds, "left", x=at("bound:Q")),
    ]
    if whole:
        layers.insert(0, chart_of("whole").mark_rule(strokeDash=[4, 3], color=FAINT).encode(x=at("afr:Q")))
    return alt.layer(*layers, side_notes(base, 448, 10.5)).properties(width=440, height=alt.Step(20))


CHARTS = {"afr": afr}
