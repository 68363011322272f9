"""Cumulative incidence by age. The forest plot of factors is in forest.py."""

from collections.abc import Mapping

import altair as alt
import polars as pl

from ttf.analyses.factors.estimate_hazards.forest import factors_of_failure
from ttf.display.charts.axes import TIME_TICKS_S, log_time_channel, percent_axis
from ttf.display.charts.encodings import colour_by
from ttf.display.charts.figure import Figure, Study, empty_figure, make_chart, make_figure
from ttf.display.charts.steps import choose_bands, step_curves, step_rows
from ttf.display.charts.theme import CATEGORY_COLOURS, OUTCOME_COLOURS
from ttf.engine.words import capitalise, join_list, plural
from ttf.stats.durations.survival import thin_curves

MOST_ENDS = len(CATEGORY_COLOURS)
MOST_STEPS = 120  # of one curve
TOOLTIPS = 60  # of one curve
# The time axis begins about where the incidence of the most frequent end reaches this share of its final value.
FIRST_SHARE = 0.01


def cumulative_incidence(inputs: Mapping[str, pl.DataFrame], study: Study) -> Figure:
    """Draw the cumulative incidence of each end, by age."""
    incidence, title = inputs["cumulative_incidence"], f"{capitalise(study.durations)} by how they ended, by age"
    curves = incidence.filter((pl.col("stratum_by") == "all") & pl.col("incidence").is_not_null())
    if not curves.height:
        return empty_figure(
            title, next(iter(incidence["reason"].drop_nulls()), f"no {study.subject} has a known duration")
        )
    # The table may be thinned, so only the running count covers all durations.
    all_ends = curves.group_by("event", maintain_order=True).agg(pl.col("events_so_far", "without_time").last())
    totals = all_ends.filter(pl.col("events_so_far") > 0).drop("without_time")
    if not totals.height:
        return empty_figure(title, f"no {study.subject} ended at a known time")
    ranked = totals.sort("events_so_far", descending=True, maintain_order=True)
    shown_ends = totals.filter(pl.col("event").is_in(ranked["event"].head(MOST_ENDS).implode()))
    shown_curves = curves.filter(pl.col("event").is_in(shown_ends["event"].to_list()))
    names = {end: f"{end} ({events:,})" for end, events in shown_ends.iter_rows()}
    axis_start = _choose_axis_start_s(shown_curves)
    limits, bands_note = choose_bands(shown_curves, study.durations)
    thinned = thin_curves(shown_curves.filter(_is_shown_step(axis_start)), MOST_STEPS)
    rows = [
        row
        for (end,), curve in thinned.group_by("event", maintain_order=True)
        for row in step_rows(curve, names[end], "incidence", axis_start, TOOLTIPS, limits)
    ]
    caption = f"n = {curves.select(pl.col('at_risk').max()).item():,} at risk: "
    caption += ", ".join(f"{end} {events:,}" for end, events in shown_ends.iter_rows())
    caption += f". Ends before the axis begins are drawn at its start. {bands_note}"
    if unknown_durations := [f"{end} {durations:,}" for end, _, durations in all_ends.iter_rows() if durations]:
        caption += f" Excluded because of unknown duration: {join_list(unknown_durations)}."
    if (rare_ends := ranked.slice(MOST_ENDS)).height:
        caption += f" {plural(rare_ends.height, 'rarer end')} left out, of {rare_ends['events_so_far'].sum():,}."
    return make_figure(
        _draw_incidence(rows, names, study),
        {"incidence": rows},
        study,
        title=title,
        subtitle="Aalen–Johansen estimate of each competing risk, with 95% CI",
        caption=caption,
        alt_text=f"Rising step curves of the share of {study.durations} by how they ended, on a logarithmic time axis.",
    )


def _choose_axis_start_s(curves: pl.DataFrame) -> int:
    is_visible = pl.col("incidence") >= FIRST_SHARE * pl.col("incidence").max()
    first_age = curves.select(pl.col("time_s").filter(is_visible).min()).item()
    return max(tick for tick in TIME_TICKS_S if tick == 1 or tick <= first_age)


def _is_shown_step(axis_start: int) -> pl.Expr:
    """Select the steps from axis_start on, and for each end the last step before it, which holds there."""
    is_on_axis = pl.col("time_s") >= axis_start
    return is_on_axis | (pl.col("time_s") == pl.col("time_s").filter(~is_on_axis).max().over("event")).fill_null(False)


def _draw_incidence(rows: list[dict], names: dict[str, str], study: Study) -> alt.LayerChart:
    is_outcome = all(end in OUTCOME_COLOURS for end in names)
    colours = OUTCOME_COLOURS if is_outcome else dict(zip(names, CATEGORY_COLOURS, strict=False))
    legend = alt.Legend(title="Ended by", orient="bottom", columns=3, symbolType="stroke", symbolOpacity=1)
    colour = colour_by("s", {name: colours[end] for end, name in names.items()}, legend, ordered=True)
    x = log_time_channel([row["x"] for row in rows], "Time since the start (logarithmic)")
    highest = max(row["h"] or row["v"] for row in rows)
    share = alt.Scale(domain=[0, 1 if highest > 0.5 else round(1.1 * highest + 0.005, 2)])
    axis = percent_axis("Share that has ended so")
    base = make_chart("incidence").encode(x=x, color=colour)
    return step_curves(base, share, axis, "ended by", "share", study.durations)


CHARTS = {"cumulative_incidence": cumulative_incidence, "factors_of_failure": factors_of_failure}
