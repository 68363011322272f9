"""Which end comes when; what is associated with failure is drawn in forest.py."""

from collections.abc import Mapping

import altair as alt
import polars as pl

from ttf.analyses.factors.estimate_hazards.forest import factors_of_failure
from ttf.display.charts.axes import TIME_TICKS_S, log_time, percent_axis
from ttf.display.charts.encodings import coloured
from ttf.display.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.display.charts.steps import bands, step_curves, step_rows
from ttf.display.charts.theme import CATEGORY_COLOURS, OUTCOME_COLOURS
from ttf.engine.words import capital, listed, plural
from ttf.stats.durations.survival import thin

MOST_ENDS = len(CATEGORY_COLOURS)
MOST_STEPS = 120  # of one curve
TOOLTIPS = 60  # of one curve
# The time axis begins about where the commonest end has come to this share of what it comes to at last.
FIRST_SHARE = 0.01


def cumulative_incidence(given: Mapping[str, pl.DataFrame], study: Study) -> Figure:
    """The share of lives that each end has come to, by age."""
    incidence, what = given["cumulative_incidence"], f"{capital(study.lives)} by how they ended, by age"
    curves = incidence.filter((pl.col("stratum_by") == "all") & pl.col("incidence").is_not_null())
    if not curves.height:
        return nothing_to_draw(what, f"no {study.life} has a known duration")
    # The table may be thinned: only the running count of its rows is that of all lives.
    every = curves.group_by("event", maintain_order=True).agg(pl.col("events_so_far", "without_time").last())
    totals = every.filter(pl.col("events_so_far") > 0).drop("without_time")
    if not totals.height:
        return nothing_to_draw(what, f"no {study.life} ended at a known time")
    ranked = totals.sort("events_so_far", descending=True, maintain_order=True)
    drawn = totals.filter(pl.col("event").is_in(ranked["event"].head(MOST_ENDS).implode()))
    ends = drawn["event"].to_list()
    chosen = curves.filter(pl.col("event").is_in(ends))
    names = {end: f"{end} ({events:,})" for end, events in drawn.iter_rows()}
    begin = _first_tick(chosen)
    limits, about_bands = bands(chosen, study.lives)
    rows = [
        row
        for (end,), curve in thin(chosen.filter(_since(begin)), MOST_STEPS).group_by("event", maintain_order=True)
        for row in step_rows(curve, names[end], "incidence", begin, TOOLTIPS, limits)
    ]
    caption = f"n = {int(curves['at_risk'].max()):,} at risk: "
    caption += ", ".join(f"{end} {events:,}" for end, events in drawn.iter_rows())
    caption += f". What ended before the axis begins stands at its start. {about_bands}"
    if unseen := [f"{end} {lives:,}" for end, _, lives in every.iter_rows() if lives]:
        caption += f" Of unknown duration, left out: {listed(unseen)}."
    if (rare := ranked.slice(MOST_ENDS)).height:
        caption += f" {plural(rare.height, 'rarer end')} left out, of {rare['events_so_far'].sum():,}."
    return figure(
        _incidence_lines(rows, names, study),
        {"incidence": rows},
        study,
        title=what,
        subtitle="Aalen–Johansen estimate of each competing risk, with 95% CI",
        caption=caption,
        alt_text=f"Rising step curves of the share of {study.lives} by how they ended, on a logarithmic time axis.",
    )


def _first_tick(curves: pl.DataFrame) -> int:
    """The tick of the time axis before which next to nothing has ended."""
    highest = curves["incidence"].max()
    soonest = curves.filter(pl.col("incidence") >= FIRST_SHARE * highest)["time_s"].min()
    return max(tick for tick in TIME_TICKS_S if tick == 1 or tick <= soonest)


def _since(begin: int) -> pl.Expr:
    """The steps from the beginning on, and of each end the last one before, which holds there."""
    late = pl.col("time_s") >= begin
    return late | (pl.col("time_s") == pl.col("time_s").filter(~late).max().over("event")).fill_null(False)


def _incidence_lines(rows: list[dict], names: dict[str, str], study: Study) -> alt.LayerChart:
    is_outcome = all(end in OUTCOME_COLOURS for end in names)
    colours = OUTCOME_COLOURS if is_outcome else dict(zip(names, CATEGORY_COLOURS, strict=False))
    legend = {"title": "Ended by", "orient": "bottom", "columns": 3, "symbolType": "stroke", "symbolOpacity": 1}
    colour = coloured("s", {name: colours[end] for end, name in names.items()}, ordered=True, **legend)
    x = log_time([row["x"] for row in rows], "Time since the start (logarithmic)")
    highest = max(row["h"] or row["v"] for row in rows)
    share = alt.Scale(domain=[0, 1 if highest > 0.5 else round(1.1 * highest + 0.005, 2)])
    axis = percent_axis("Share that has ended so")
    base = chart_of("incidence").encode(x=x, color=colour)
    return step_curves(base, share, axis, "ended by", "share", study.lives)


CHARTS = {"cumulative_incidence": cumulative_incidence, "factors_of_failure": factors_of_failure}
