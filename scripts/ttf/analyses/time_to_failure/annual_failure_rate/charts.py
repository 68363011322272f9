"""Chart of the annual failure rate of each model."""

from functools import partial

import altair as alt
import polars as pl

from ttf.display.charts.axes import log_axis, log_domain, log_scale
from ttf.display.charts.encodings import pick_columns, side_notes, tooltips
from ttf.display.charts.figure import Figure, Study, empty_figure, make_chart, make_figure
from ttf.display.charts.intervals import add_bounds, clustering_note, draw_bounds, draw_intervals
from ttf.display.charts.text import make_labels
from ttf.display.charts.theme import ACCENT, FAINT
from ttf.engine.words import capitalise, plural, stratification_name
from ttf.records.inputs import Inputs

MOST_ROWS = 20


def afr(inputs: Inputs, study: Study) -> Figure:
    """Draw the models with the most drive-days: points with intervals, upper bounds for models without a failure."""
    table = inputs["afr"]
    models = table.filter(pl.col("stratum_by") != "all")
    model_label = stratification_name(next(iter(models["stratum_by"]), ""))
    title = f"Annual failure rate by {model_label}"
    if not models.height:
        return empty_figure(title, f"no {study.unit} has a known {model_label}")
    largest = models.sort("drive_days", descending=True, maintain_order=True).head(MOST_ROWS)
    largest = add_bounds(largest).sort("afr", "ci_high", descending=True, maintain_order=True)
    names = make_labels(largest["stratum"].to_list())
    rows = [_model_chart_row(row, names[row["stratum"]]) for row in largest.iter_rows(named=True)]
    overall = table.filter(pl.col("afr") > 0, stratum_by="all")["afr"].to_list()
    caption = f"n = {plural(largest['drives'].sum(), study.unit)}, {plural(largest['failures'].sum(), 'failure')}."
    if largest["failures"].sum():
        caption += f" {clustering_note(largest.filter(pl.col('failures') > 0))}"
    if (largest["failures"] == 0).any():
        caption += " Triangle: no failure, so a 95% upper bound only."
    if models.height > largest.height:
        caption += f" The {MOST_ROWS} with the most {study.unit}-days; {models.height - largest.height:,} left out."
    return make_figure(
        _draw_rates(rows, overall, model_label),
        {"models": rows} | ({"whole": [{"afr": overall[0]}]} if overall else {}),
        study,
        title=title,
        subtitle=f"Failures per 100 {study.units} and year, 95% CI" + ("; dashed: all" if overall else ""),
        caption=caption,
        alt_text=f"{title}: points with intervals on a logarithmic axis in percent, {plural(largest.height, 'model')}.",
    )


def _model_chart_row(row: dict, label: str) -> dict:
    chart_row = {"model": label, "note": plural(row["failures"], "failure")}
    chart_row |= pick_columns(row, "drive_days", "failures")
    if not row["failures"]:
        return chart_row | {"bound": row["ci_high"]}
    return chart_row | pick_columns(row, "afr", "low", "high", "independent")


def _draw_rates(rows: list[dict], overall: list[float], model_label: str) -> alt.TopLevelMixin:
    domain = log_domain([*overall, *(row[name] for row in rows for name in ("low", "high", "bound") if name in row)])
    x_axis = partial(alt.X, scale=log_scale(domain), axis=log_axis(domain, "Annual failure rate (%, logarithmic)"))
    tooltip = [
        *tooltips("model"),
        *tooltips(form=",", failures="failures", drive_days="drive-days"),
        *tooltips(form=",.3~g", afr="% a year", low="95% from", high="95% to", bound="less than (95%)"),
    ]
    order = [row["model"] for row in rows]
    base = make_chart("models").encode(y=alt.Y("model:N", sort=order, title=capitalise(model_label)), tooltip=tooltip)
    estimates, bounds = base.transform_filter("isValid(datum.afr)"), base.transform_filter("isValid(datum.bound)")
    layers = [
        draw_intervals(estimates, x_axis("low:Q"), strokeWidth=1.5, color=ACCENT),
        estimates.mark_point(filled=True, size=60, color=ACCENT, opacity=1).encode(x=x_axis("afr:Q")),
        draw_bounds(bounds, "left", x_axis("bound:Q")),
    ]
    if overall:
        layers.insert(0, make_chart("whole").mark_rule(strokeDash=[4, 3], color=FAINT).encode(x=x_axis("afr:Q")))
    return alt.layer(*layers, side_notes(base, 448, 10.5)).properties(width=440, height=alt.Step(20))


CHARTS = {"afr": afr}
