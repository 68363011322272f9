"""Several traces side by side, a row each, from the tables of rule compare_traces."""

from collections.abc import Mapping, Sequence
from functools import partial

import altair as alt
import polars as pl

from ttf.analyses.comparison.compare_traces.trace_labels import COMPONENTS, GPUS
from ttf.analyses.comparison.compare_traces.trace_rows import (
    Layers,
    Traces,
    notes,
    one_colour,
    panels_of,
    quantiles,
    ranges,
)
from ttf.display.charts.axes import log_axis, log_domain, log_scale, percent_axis
from ttf.display.charts.encodings import coloured, picked, tips
from ttf.display.charts.figure import Figure, Study
from ttf.display.charts.intervals import by_what, draw_estimates, draw_intervals, draw_lower_bounds, shown
from ttf.display.charts.text import HOUR_S, labels
from ttf.display.charts.theme import ACCENT, OUTCOME_COLOURS
from ttf.records.inputs import Inputs

_ENDED = {"success": "Successful", "failure": "Failed", "cancelled": "Cancelled"}


def run_times(given: Inputs, study: Study) -> Figure:
    """Quantiles of the run time of GPU jobs by outcome and trace, from run_times.csv."""
    drawn = Traces(given["compared_run_times"], study, pl.col("n") > 0)
    if not drawn.shown:
        return drawn.nothing("Run time of GPU jobs by outcome", "GPU jobs that ended after a known run time")
    present = {name: said for name, said in _ENDED.items() if any(r["n"] and r["outcome"] == name for r in drawn.rows)}
    rows = [
        quantiles(row, "runtime", drawn.names[row["trace"]], present[row["outcome"]]) | picked(row, "outcome")
        for row in drawn.rows
        if row["outcome"] in present and (row["n"] or row["jobs"])
    ]
    colours = coloured("outcome", {name: OUTCOME_COLOURS[name] for name in present})
    return drawn.figure(
        *ranges(rows, list(present.values()), drawn, colours, "run time"),
        title="Run time of GPU jobs by outcome",
        subtitle="Dot: median; thick: middle half; thin: middle nine tenths",
        caption="Jobs that requested a GPU and ended after a known run time. Times of 0 s stand at 1 s.",
        alt_text="Ranges of run time on a logarithmic axis, a row for each trace, a panel for each outcome.",
    )


def failure_share(given: Inputs, study: Study) -> Figure:
    """Failure share of the ended GPU jobs by number of GPUs and trace, from failure_share.csv."""
    table = shown(given["compared_failure_share"])
    drawn = Traces(table, study, pl.col("failure_share").is_not_null())
    if not drawn.shown:
        return drawn.nothing("Failure share of ended GPU jobs by number of GPUs", "GPU jobs that ended")
    rows = []
    for row in (row for row in drawn.rows if row["jobs"]):
        known = row["failure_share"] is not None
        note = f"{row['failures']:,} of {row['ended']:,}" if known else "none ended"
        one = {"panel": GPUS[row["gpus"]], "trace": drawn.names[row["trace"]], "note": note}
        interval = picked(row, "low", "high", "independent", share="failure_share") if known else {}
        rows.append(one | picked(row, "synthetic", "ended", "failures") | interval)
    highest = max(row["high"] for row in rows if "high" in row)
    scale = alt.Scale(domain=[0, min(1, 1.05 * highest)], nice=False)
    tooltip = [
        *tips("trace", panel="jobs"),
        *tips(form=".1%", share="failure share", low="95% from", high="95% to"),
        *tips("failures", form=",", ended="ended"),
    ]

    def layers(base: alt.Chart, last: bool) -> alt.LayerChart:
        axis = percent_axis("Failures among ended GPU jobs" if last else None, labels=last, ticks=last)
        known = base.transform_filter("isValid(datum.share)").encode(
            color=one_colour(OUTCOME_COLOURS["failure"]), tooltip=tooltip
        )
        low = alt.X("low:Q", scale=scale, axis=axis)
        rules = draw_intervals(known, low, strokeWidth=1.8)
        dots = known.mark_point(filled=True, size=55, opacity=1).encode(x=alt.X("share:Q", scale=scale, axis=axis))
        return rules + dots + notes(base)

    return drawn.figure(
        *panels_of(rows, _present(rows), drawn.labels(), layers),
        title="Failure share of ended GPU jobs by number of GPUs",
        subtitle="Failures over jobs that ended in success or failure, 95% CI",
        caption=f"Jobs that requested a GPU; at the right failures of ended jobs. {by_what(table)}",
        alt_text="Points with intervals of the failure share, a row for each trace, a panel for each number of GPUs.",
    )


def mttf(given: Inputs, study: Study) -> Figure:
    """Mean time to failure of GPU jobs by number of GPUs, and of components, by trace, from mttf.csv."""
    table = shown(given["compared_mttf"], "_s")
    drawn = Traces(table, study, pl.col("low") > 0)
    if not drawn.shown:
        return drawn.nothing("Mean time to failure by number of GPUs", "jobs or components of a known duration")
    units = {row["trace"]: labels([row["unit"]])[row["unit"]] for row in drawn.rows if row["gives"] != "jobs"}
    merged: dict[tuple, dict] = {}
    for row in (row for row in drawn.rows if row["n"]):
        of_jobs, name = row["gives"] == "jobs", drawn.names[row["trace"]]
        one = merged.setdefault(
            (row["trace"], row["gpus"]),
            {
                "panel": GPUS[row["gpus"]] if of_jobs else COMPONENTS,
                "trace": name if of_jobs else f"{name}: {units[row['trace']]}",
                "note": f"{row['events']:,} of {row['n']:,}",
            }
            | picked(row, "synthetic", "n", failures="events"),
        )
        level = round(100 * row["confidence"])
        if row["low"]:
            one[f"low{level}"] = row["low"] / HOUR_S
        if row["mttf_s"]:
            one |= {"mttf": row["mttf_s"] / HOUR_S, f"high{level}": row["high"] / HOUR_S}
            one |= picked(row, "independent")
    rows = list(merged.values())
    order = dict.fromkeys([*drawn.labels(), *(row["trace"] for row in rows if row["panel"] == COMPONENTS)])
    caption = (
        "GPU jobs, and components: of these the time of one; at the right failures of those at risk. "
        f"{by_what(table.filter(pl.col('events') > 0))}"
    )
    if any("mttf" not in row for row in rows):
        caption += " Triangle: no failure, one-sided lower bound only (drawn: 95%)."
    return drawn.figure(
        *panels_of(rows, _present(rows), list(order), _mttf_layers(rows)),
        title="Mean time to failure by number of GPUs",
        subtitle="Time at risk per failure; thick: 90% CI, thin: 95% CI",
        caption=caption,
        alt_text="Points with intervals of the mean time to failure on a logarithmic axis in hours, a row for each "
        "trace, a panel for each number of GPUs.",
    )


def _mttf_layers(rows: list[dict]) -> Layers:
    """The marks of one panel, on the axis of all."""
    ends = [row[name] for row in rows for name in ("low95", "high95") if name in row]
    domain = log_domain(ends, 1.5, 1.5)
    tooltip = [
        *tips("trace", panel="of"),
        *tips(form=",", n="at risk"),
        *tips("failures", form=","),
        *tips(form=",.1f", mttf="mean time to failure (h)", low95="95% from (h)", high95="95% to (h)"),
    ]

    def layers(base: alt.Chart, last: bool) -> alt.LayerChart:
        title = "Mean time to failure (hours, logarithmic)" if last else None
        axis = log_axis(domain, title, labels=last, ticks=last)
        base = base.encode(tooltip=tooltip)
        seen = base.transform_filter("isValid(datum.mttf)").encode(color=one_colour(ACCENT))
        bound = base.transform_filter("!isValid(datum.mttf) && isValid(datum.low95)")
        at = partial(alt.X, scale=log_scale(domain), axis=axis)
        estimates = draw_estimates(seen, at, size=55)
        return alt.layer(*estimates, *draw_lower_bounds(bound, at("low95:Q"), size=75), notes(base))

    return layers


def _present(rows: Sequence[Mapping]) -> list[str]:
    return [panel for panel in (*GPUS.values(), COMPONENTS) if any(row["panel"] == panel for row in rows)]


CHARTS = {chart.__name__: chart for chart in (run_times, failure_share, mttf)}
