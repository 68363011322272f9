"""Charts that compare traces, a row per trace, from the tables of rule compare_traces."""

from collections.abc import Mapping, Sequence
from functools import partial

import altair as alt
import polars as pl

from ttf.analyses.comparison.compare_traces.trace_labels import COMPONENTS, label_size, sort_by_size
from ttf.analyses.comparison.compare_traces.trace_rows import (
    Layers,
    Traces,
    draw_notes,
    draw_panels,
    draw_ranges,
    quantile_row,
    trace_colour,
)
from ttf.display.charts.axes import log_axis, log_domain, log_scale, percent_axis
from ttf.display.charts.encodings import colour_by, pick_columns, tooltips
from ttf.display.charts.figure import Figure, Study
from ttf.display.charts.intervals import add_bounds, clustering_note, draw_estimates, draw_intervals, draw_lower_bounds
from ttf.display.charts.text import HOUR_S, make_labels
from ttf.display.charts.theme import ACCENT, OUTCOME_COLOURS
from ttf.records.inputs import Inputs

_OUTCOME_LABELS = {"success": "Successful", "failure": "Failed", "cancelled": "Cancelled"}


def run_times(inputs: Inputs, study: Study) -> Figure:
    """Draw quantiles of the run time of jobs by outcome and trace, from run_times.csv."""
    traces = Traces(inputs["compared_run_times"], study, pl.col("n") > 0)
    if not traces.shown:
        return traces.empty_figure("Run time by outcome", "jobs that ended after a known run time")
    outcomes = {row["outcome"] for row in traces.rows if row["n"]}
    shown_labels = {name: label for name, label in _OUTCOME_LABELS.items() if name in outcomes}
    rows = [
        quantile_row(row, traces.names[row["trace"]], shown_labels[row["outcome"]]) | pick_columns(row, "outcome")
        for row in traces.rows
        if row["outcome"] in shown_labels and row["n"]
    ]
    colours = colour_by("outcome", {name: OUTCOME_COLOURS[name] for name in shown_labels})
    return traces.figure(
        *draw_ranges(rows, list(shown_labels.values()), traces, colours, "run time"),
        title="Run time by outcome",
        subtitle="Dot: median; thick: middle half; thin: up to the 95th percentile",
        caption="Jobs that ended after a known run time. Times of 0 s are drawn at 1 s.",
        alt_text="Ranges of run time on a logarithmic axis, a row for each trace, a panel for each outcome.",
    )


def failure_share(inputs: Inputs, study: Study) -> Figure:
    """Draw the failure share of ended jobs by number of GPUs and trace, from failure_share.csv."""
    table = sort_by_size(add_bounds(inputs["compared_failure_share"]))
    traces = Traces(table, study, pl.col("failure_share").is_not_null())
    if not traces.shown:
        return traces.empty_figure("Failure share of ended jobs by number of GPUs", "jobs that ended")
    rows = []
    for row in (row for row in traces.rows if row["ended"]):
        note = f"{row['failures']:,} of {row['ended']:,}"
        chart_row = {"panel": label_size(row), "trace": traces.names[row["trace"]], "note": note}
        columns = ("synthetic", "ended", "failures", "low", "high", "independent")
        rows.append(chart_row | pick_columns(row, *columns, share="failure_share"))
    highest = max(row["high"] for row in rows)
    scale = alt.Scale(domain=[0, min(1, 1.05 * highest)], nice=False)
    tooltip = [
        *tooltips("trace", panel="jobs"),
        *tooltips(form=".1%", share="failure share", low="95% from", high="95% to"),
        *tooltips("failures", form=",", ended="ended"),
    ]

    def draw_panel(base: alt.Chart, is_last: bool) -> alt.LayerChart:
        axis = percent_axis("Failures among ended jobs" if is_last else None, labels=is_last, ticks=is_last)
        shares = base.encode(color=trace_colour(OUTCOME_COLOURS["failure"]), tooltip=tooltip)
        intervals = draw_intervals(shares, alt.X("low:Q", scale=scale, axis=axis), strokeWidth=1.8)
        points = shares.mark_point(filled=True, size=55, opacity=1).encode(x=alt.X("share:Q", scale=scale, axis=axis))
        return intervals + points + draw_notes(base)

    return traces.figure(
        *draw_panels(rows, _nonempty_panels(rows), traces.labels(), draw_panel),
        title="Failure share of ended jobs by number of GPUs",
        subtitle="Failures over jobs that ended in success or failure, 95% CI",
        caption=f"Right: failures of ended jobs. {clustering_note(table)}",
        alt_text="Points with intervals of the failure share, a row for each trace, a panel for each number of GPUs.",
    )


def mttf(inputs: Inputs, study: Study) -> Figure:
    """Draw the mean time to failure of jobs by number of GPUs, and of components, by trace, from mttf.csv."""
    table = sort_by_size(add_bounds(inputs["compared_mttf"], "_s"))
    traces = Traces(table, study, pl.col("low") > 0)
    if not traces.shown:
        return traces.empty_figure("Mean time to failure by number of GPUs", "jobs or components of a known duration")
    unit_by_trace = {
        row["trace"]: make_labels([row["unit"]])[row["unit"]] for row in traces.rows if row["gives"] != "jobs"
    }
    chart_rows: dict[tuple, dict] = {}
    for row in (row for row in traces.rows if row["n"]):
        is_job, name = row["gives"] == "jobs", traces.names[row["trace"]]
        chart_row = chart_rows.setdefault(
            (row["trace"], row["gpus_high"]),
            {
                "panel": label_size(row),
                "trace": name if is_job else f"{name}: {unit_by_trace[row['trace']]}",
                "note": f"{row['events']:,} of {row['n']:,}",
            }
            | pick_columns(row, "synthetic", "n", failures="events"),
        )
        level = round(100 * row["confidence"])
        if row["low"]:
            chart_row[f"low{level}"] = row["low"] / HOUR_S
        if row["mttf_s"]:
            chart_row |= {"mttf": row["mttf_s"] / HOUR_S, f"high{level}": row["high"] / HOUR_S}
            chart_row |= pick_columns(row, "independent")
    rows = list(chart_rows.values())
    order = dict.fromkeys([*traces.labels(), *(row["trace"] for row in rows if row["panel"] == COMPONENTS)])
    caption = (
        "Jobs, or one component; right: failures of jobs or components at risk. "
        f"{clustering_note(table.filter(pl.col('events') > 0))}"
    )
    if any("mttf" not in row for row in rows):
        caption += " Triangle: no failure, one-sided lower bound only (drawn: 95%)."
    return traces.figure(
        *draw_panels(rows, _nonempty_panels(rows), list(order), _build_mttf_layers(rows)),
        title="Mean time to failure by number of GPUs",
        subtitle="Time at risk per failure; thick: 90% CI, thin: 95% CI",
        caption=caption,
        alt_text="Points with intervals of the mean time to failure on a logarithmic axis in hours, a row for each "
        "trace, a panel for each number of GPUs.",
    )


def _build_mttf_layers(rows: list[dict]) -> Layers:
    bounds = [row[name] for row in rows for name in ("low95", "high95") if name in row]
    domain = log_domain(bounds, 1.5, 1.5)
    tooltip = [
        *tooltips("trace", panel="of"),
        *tooltips(form=",", n="at risk"),
        *tooltips("failures", form=","),
        *tooltips(form=",.1f", mttf="mean time to failure (h)", low95="95% from (h)", high95="95% to (h)"),
    ]

    def draw_panel(base: alt.Chart, is_last: bool) -> alt.LayerChart | alt.FacetChart:
        title = "Mean time to failure (hours, logarithmic)" if is_last else None
        axis = log_axis(domain, title, labels=is_last, ticks=is_last)
        base = base.encode(tooltip=tooltip)
        estimated = base.transform_filter("isValid(datum.mttf)").encode(color=trace_colour(ACCENT))
        bound_only = base.transform_filter("!isValid(datum.mttf) && isValid(datum.low95)")
        x_axis = partial(alt.X, scale=log_scale(domain), axis=axis)
        estimates = draw_estimates(estimated, x_axis, size=55)
        return alt.layer(*estimates, *draw_lower_bounds(bound_only, x_axis("low95:Q"), size=75), draw_notes(base))

    return draw_panel


def _nonempty_panels(rows: Sequence[Mapping]) -> list[str]:
    """Return the panels of rows in the order of `sort_by_size`."""
    return list(dict.fromkeys(row["panel"] for row in rows))


CHARTS = {chart.__name__: chart for chart in (run_times, failure_share, mttf)}
