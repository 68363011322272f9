"""Several traces side by side, a row each, from the tables of rule compare_traces."""

from collections.abc import Mapping, Sequence

import altair as alt
import polars as pl

from ttf.analyses.compare_traces.labels import worth_comparing
from ttf.analyses.compare_traces.trace_rows import (
    Layers,
    Traces,
    figure_of,
    notes,
    one_colour,
    panels_of,
    quantiles,
    ranges,
    span,
    trace_axis,
)
from ttf.charts.axes import log_axis, log_domain, log_scale, percent_axis
from ttf.charts.encodings import coloured, picked, tips
from ttf.charts.figure import Figure, Study, chart_of, nothing_to_draw
from ttf.charts.text import HOUR_S, duration, hours, labels, listed, percent
from ttf.charts.theme import ACCENT, FAINT, ON_COLOUR, OUTCOME_COLOURS
from ttf.inputs import Inputs
from ttf.jobs import GPU_BUCKETS
from ttf.numbers.metrics import FEWEST_ENDED, FEWEST_FAILURES

# A share of this size or more has room for its number inside the bar.
_ROOM_FOR_TEXT = 0.12
_GPU_JOBS = "GPU jobs"
_PANELS = {"all": "All GPU jobs"} | {
    gpus: "1 GPU" if gpus == "1" else f"More than {low - 1} GPUs" if high is None else f"{low} to {high} GPUs"
    for gpus, (low, high) in GPU_BUCKETS.items()
}
_COMPONENTS = "Components"
_ENDED = {"success": "Successful", "failure": "Failed", "cancelled": "Cancelled"}


def outcomes(given: Inputs, study: Study) -> Figure:
    """Share of GPU jobs and of their GPU time by outcome, a bar a trace, from outcomes.csv."""
    what = "Outcomes of several traces"
    table = given["compared_outcomes"]
    drawn = Traces(table, table.filter(pl.col("jobs_share").is_not_null()))
    if not drawn.shown:
        return nothing_to_draw(what, drawn.nothing(_GPU_JOBS))
    measures = {"jobs_share": "share of GPU jobs", "gpu_hours_share": "share of their GPU time"}
    known = table.filter(pl.col("jobs").is_not_null())
    n = dict(known.group_by("trace", maintain_order=True).agg(pl.col("jobs").sum()).iter_rows())
    lines = {trace: f"{drawn.names[trace]}\nn = {n[trace]:,}" for trace in drawn.shown}
    rows = []
    for column, measure in measures.items():
        for row in drawn.rows(table):
            if row[column] is not None:
                text = percent(row[column]) if row[column] >= _ROOM_FOR_TEXT else ""
                rows.append(
                    {
                        "measure": measure,
                        "trace": lines[row["trace"]],
                        "order": list(OUTCOME_COLOURS).index(row["outcome"]),
                        "share": row[column],
                        "text": text,
                    }
                    | picked(row, "outcome", "jobs", timed="n")
                )
    # The middle of each part, for its number: bars and texts of one stack can not share Vega-Lite's own stacking.
    below: dict[tuple, float] = {}
    for row in rows:
        key = (row["measure"], row["trace"])
        row["from"] = below.get(key, 0.0)
        below[key] = row["to"] = row["from"] + row["share"]
        row["middle"] = (row["from"] + row["to"]) / 2
    present = [name for name in OUTCOME_COLOURS if any(row["outcome"] == name and row["share"] for row in rows)]
    scale = alt.Scale(domain=present, range=[OUTCOME_COLOURS[name] for name in present])
    base = chart_of("shares").encode(
        y=alt.Y("trace:N", title=None, sort=list(lines.values()), axis=trace_axis(lines=True))
    )
    shares = alt.Scale(domain=[0, 1])
    bars = base.mark_bar(height=24).encode(
        x=alt.X("from:Q", scale=shares, axis=percent_axis(values=[0, 0.25, 0.5, 0.75, 1])),
        x2="to:Q",
        color=alt.Color("outcome:N", scale=scale, legend=alt.Legend(title="outcome", orient="bottom")),
        order="order:Q",
        tooltip=[
            *tips("trace", "outcome"),
            *tips("share", form=".1%"),
            *tips(form=",", jobs="GPU jobs", timed="with known GPU time"),
        ],
    )
    texts = base.mark_text(fontSize=10.5, color=ON_COLOUR).encode(x="middle:Q", text="text:N")
    chart = (
        (bars + texts)
        .properties(width=225, height=alt.Step(38))
        .facet(column=alt.Column("measure:N", sort=list(measures.values()), title=None), spacing=24)
    )
    caption = (
        "Jobs that asked for a GPU, by outcome; n: such jobs. GPU time is GPUs asked for times the time a job was "
        "seen to run; jobs without a known run time add none."
    )
    return figure_of(
        study,
        chart,
        {"shares": rows},
        drawn,
        title=_outcomes_title(drawn, table),
        subtitle="A bar is a trace; its parts are the outcomes of its jobs that asked for a GPU.",
        caption=caption,
        alt_text="Stacked bars, one a trace, of the share of GPU jobs and of GPU time by outcome",
    )


def _outcomes_title(drawn: Traces, table: pl.DataFrame) -> str:
    failed = [row for row in drawn.rows(table) if row["outcome"] == "failure" and row["jobs_share"] is not None]
    said = worth_comparing(failed)
    if not said:
        return "No trace can tell failures of GPU jobs"
    if not any(row["jobs"] for row in said):
        return (
            "No GPU job of any trace failed"
            if len(said) > 1
            else f"No GPU job of {drawn.names[said[0]['trace']]} failed"
        )
    title = f"{span(drawn, said, 'jobs_share', percent, ' of GPU jobs')} ended in failure"
    timed = [row for row in said if row["gpu_hours_share"] is not None]
    if timed:
        title += f"; they took {span(drawn, timed, 'gpu_hours_share', percent, ' of the GPU time')}"
    return title


def run_times(given: Inputs, study: Study) -> Figure:
    """Quantiles of the run time of GPU jobs by outcome and trace, from run_times.csv."""
    table = given["compared_run_times"]
    drawn = Traces(table, table.filter(pl.col("n") > 0))
    if not drawn.shown:
        return nothing_to_draw(
            "Run times of several traces", drawn.nothing("GPU jobs that ended after a known run time")
        )
    rows = [
        quantiles(row, "runtime", drawn.names[row["trace"]], _ENDED[row["outcome"]]) | {"outcome": row["outcome"]}
        for row in drawn.rows(table)
        if row["n"] or row["jobs"]
    ]
    present = [name for name in _ENDED if any(row["outcome"] == name and "q50" in row for row in rows)]
    rows = [row for row in rows if row["outcome"] in present]
    colours = coloured("outcome", {name: OUTCOME_COLOURS[name] for name in present})
    chart, datasets = ranges(
        rows, [_ENDED[name] for name in present], drawn, colours, "Run time (logarithmic)", "run time"
    )
    medians = {(row["trace"], row["outcome"]): row["runtime_median_s"] for row in drawn.rows(table) if row["n"]}
    return figure_of(
        study,
        chart,
        datasets,
        drawn,
        title=_run_times_title(drawn, medians, table),
        subtitle="Run time of GPU jobs by outcome; dot: median, thick: middle half, thin: middle nine tenths.",
        caption="Jobs that asked for a GPU and ended after a known run time (n beside each row). Quantiles by nearest "
        "rank. Times of 0 s stand at 1 s.",
        alt_text="Ranges of run time on a logarithmic axis, a row for each trace, a panel for each outcome",
    )


def _run_times_title(drawn: Traces, medians: Mapping[tuple, float], table: pl.DataFrame) -> str:
    flags = dict(table.select("trace", "synthetic").iter_rows())
    both = [
        {"trace": trace, "synthetic": flags[trace], "median": medians[trace, "failure"]}
        for trace in drawn.shown
        if all((trace, outcome) in medians for outcome in ("success", "failure"))
    ]
    if not both:
        return "No trace has both failed and successful GPU jobs with a known run time"
    said = worth_comparing(both)
    if len(said) == 1:
        name = said[0]["trace"]
        return (
            f"In {drawn.names[name]}, half of the failed GPU jobs ended within {duration(medians[name, 'failure'])}, "
            f"half of the successful ones within {duration(medians[name, 'success'])}"
        )
    sooner = sum(medians[row["trace"], "failure"] < medians[row["trace"], "success"] for row in said)
    where, within = _in_how_many(sooner, len(said)), span(drawn, said, "median", duration)
    return f"Failed GPU jobs end sooner than successful ones {where}; half of them within {within}"


def _in_how_many(some: int, of: int) -> str:
    if some == of:
        return "in both traces" if of == 2 else f"in all {of} traces"
    return f"in {some or 'none'} of {of} traces"


def queueing(given: Inputs, study: Study) -> Figure:
    """Quantiles of the queueing delay of GPU jobs by number of GPUs and trace, from queueing.csv."""
    table = given["compared_queueing"]
    drawn = Traces(table, table.filter(pl.col("n") > 0))
    if not drawn.shown:
        return nothing_to_draw("Queueing of several traces", drawn.nothing("GPU jobs with a queueing delay"))
    rows = [
        quantiles(row, "queue", drawn.names[row["trace"]], _PANELS[row["gpus"]])
        for row in drawn.rows(table)
        if row["jobs"]
    ]
    chart, datasets = ranges(
        rows, _present(rows), drawn, one_colour(ACCENT), "Queueing delay (logarithmic)", "queueing delay"
    )
    said = worth_comparing([row for row in drawn.rows(table) if row["gpus"] == "all" and row["n"]])
    return figure_of(
        study,
        chart,
        datasets,
        drawn,
        title=f"Half of the GPU jobs waited at most {span(drawn, said, 'queue_median_s', duration)}",
        subtitle="Time from submission to start; dot: median, thick: middle half, thin: middle nine tenths.",
        caption="Jobs that asked for a GPU and whose submission and start are both known (n beside each row). GPUs: "
        "whole ones, rounded up. Quantiles by nearest rank. Delays of 0 s stand at 1 s.",
        alt_text="Ranges of the queueing delay on a logarithmic axis, a row for each trace, a panel for each number of "
        "GPUs",
    )


def failure_share(given: Inputs, study: Study) -> Figure:
    """Failure share of the ended GPU jobs by number of GPUs and trace, from failure_share.csv."""
    table = given["compared_failure_share"]
    drawn = Traces(table, table.filter(pl.col("failure_share").is_not_null()))
    if not drawn.shown:
        return nothing_to_draw("Failure shares of several traces", drawn.nothing("GPU jobs that ended"))
    rows = []
    for row in drawn.rows(table):
        if not row["jobs"]:
            continue
        one = {"panel": _PANELS[row["gpus"]], "trace": drawn.names[row["trace"]], "synthetic": row["synthetic"]}
        one |= {"ended": row["ended"], "failures": row["failures"], "note": f"{row['failures']:,} of {row['ended']:,}"}
        if row["failure_share"] is None:
            one["note"] = "none ended"
        else:
            one |= {"share": row["failure_share"], "low": row["ci_low"], "high": row["ci_high"]}
        rows.append(one)
    highest = max(row["high"] for row in rows if "high" in row)
    scale = alt.Scale(domain=[0, min(1, 1.05 * highest)], nice=False)
    tooltip = [
        *tips("trace", panel="jobs"),
        *tips(form=".1%", share="failure share", low="95 % from", high="95 % to"),
        *tips("failures", form=",", ended="ended"),
    ]

    def layers(base: alt.Chart, last: bool) -> alt.LayerChart:
        axis = percent_axis("Failures among ended GPU jobs" if last else None, labels=last, ticks=last)
        known = base.transform_filter("isValid(datum.share)").encode(
            color=one_colour(OUTCOME_COLOURS["failure"]), tooltip=tooltip
        )
        rules = known.mark_rule(strokeWidth=1.8).encode(x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q")
        dots = known.mark_point(filled=True, size=55, opacity=1).encode(x=alt.X("share:Q", scale=scale, axis=axis))
        return rules + dots + notes(base)

    chart, datasets = panels_of(rows, _present(rows), drawn.labels(), layers)
    return figure_of(
        study,
        chart,
        datasets,
        drawn,
        title=_failure_share_title(drawn, table),
        subtitle="Failures among the GPU jobs that ended in success or failure, with 95 % intervals.",
        caption="Jobs that asked for a GPU; Wilson intervals; failures and ended jobs beside each row. GPUs: whole "
        "ones, rounded up.",
        alt_text="Points with intervals of the failure share, a row for each trace, a panel for each number of GPUs",
    )


def _failure_share_title(drawn: Traces, table: pl.DataFrame) -> str:
    known = [row for row in drawn.rows(table) if row["failure_share"] is not None]
    said = worth_comparing([row for row in known if row["gpus"] == "all"])
    title = f"{span(drawn, said, 'failure_share', percent, ' of the ended GPU jobs')} failed"
    rises, falls, compared = 0, 0, 0
    for trace in (row["trace"] for row in said):
        sizes = [
            row for row in known if row["trace"] == trace and row["gpus"] != "all" and row["ended"] >= FEWEST_ENDED
        ]
        if len(sizes) > 1:
            compared += 1
            rises += sizes[-1]["ci_low"] > sizes[0]["ci_high"]
            falls += sizes[-1]["ci_high"] < sizes[0]["ci_low"]
    if not compared:
        return title
    if compared == 1:
        how = "rises" if rises else "falls" if falls else "stays within its intervals"
        return f"{title}; from the smallest to the largest jobs of the one trace with several sizes the share {how}"
    level = compared - rises - falls
    counts = {"rises": rises, "falls": falls, "stays within its intervals": level}
    counted = [f"{word} in {number}" for word, number in counts.items() if number]
    return f"{title}; from the smallest to the largest jobs the share {listed(counted)} of {compared} traces"


def mttf(given: Inputs, study: Study) -> Figure:
    """Mean time to failure of GPU jobs by number of GPUs, and of components, by trace, from mttf.csv."""
    table = given["compared_mttf"]
    drawn = Traces(table, table.filter(pl.col("ci_low_s") > 0))
    if not drawn.shown:
        return nothing_to_draw("Mean times to failure of several traces", drawn.nothing("lives of a known duration"))
    components = {row["trace"]: row["unit"] for row in drawn.rows(table) if row["gives"] == "lives"}
    units = {trace: labels([unit])[unit] for trace, unit in components.items()}
    merged: dict[tuple, dict] = {}
    for row in drawn.rows(table):
        of_jobs = row["gives"] == "jobs"
        if not row["n"]:
            continue
        name = drawn.names[row["trace"]]
        one = merged.setdefault(
            (row["trace"], row["gpus"]),
            {
                "panel": _PANELS[row["gpus"]] if of_jobs else _COMPONENTS,
                "trace": name if of_jobs else f"{name}: {units[row['trace']]}",
                "note": f"{row['events']:,} in {row['n']:,}",
            }
            | picked(row, "synthetic", "n", failures="events"),
        )
        level = round(100 * row["confidence"])
        if row["ci_low_s"]:
            one[f"low{level}"] = row["ci_low_s"] / HOUR_S
        if row["mttf_s"]:
            one |= {"mttf": row["mttf_s"] / HOUR_S, f"high{level}": row["ci_high_s"] / HOUR_S}
    rows = list(merged.values())
    panels = [panel for panel in (*_PANELS.values(), _COMPONENTS) if any(row["panel"] == panel for row in rows)]
    order = [*drawn.labels(), *dict.fromkeys(row["trace"] for row in rows if row["panel"] == _COMPONENTS)]
    chart, datasets = panels_of(rows, panels, order, _mttf_layers(rows))
    return figure_of(
        study,
        chart,
        datasets,
        drawn,
        title=_mttf_title(drawn, table, units),
        subtitle="Time at risk per failure; thick: 90 %, thin: 95 % interval; at the right: failures in lives. "
        "Components: the time of one unit, not of a job.",
        caption="Exposure over failures with right-censoring, exact Poisson (Garwood) intervals; failures and lives "
        "beside each row. GPUs: whole ones of the job, rounded up."
        + (
            " Triangle: no failure, one-sided lower bound only (drawn: 95 %)."
            if any("mttf" not in row for row in rows)
            else ""
        ),
        alt_text="Points with intervals of the mean time to failure on a logarithmic axis in hours, a row for each "
        "trace, a panel for each number of GPUs",
    )


def _mttf_layers(rows: list[dict]) -> Layers:
    """The marks of one panel, on the axis of all."""
    ends = [row[name] for row in rows for name in ("low95", "high95") if name in row]
    domain = log_domain(ends, 1.5, 1.5)
    scale = log_scale(domain)
    tooltip = [
        *tips("trace", panel="of"),
        *tips(form=",", n="lives"),
        *tips("failures", form=","),
        *tips(form=",.1f", mttf="mean time to failure (h)", low95="95 % from (h)", high95="95 % to (h)"),
    ]

    def layers(base: alt.Chart, last: bool) -> alt.LayerChart:
        title = "Mean time to failure (hours, logarithmic)" if last else None
        axis = log_axis(domain, title, labels=last, ticks=last)
        base = base.encode(tooltip=tooltip)
        seen = base.transform_filter("isValid(datum.mttf)").encode(color=one_colour(ACCENT))
        bound = base.transform_filter("!isValid(datum.mttf) && isValid(datum.low95)")

        def at(field: str) -> alt.X:
            return alt.X(f"{field}:Q", scale=scale, axis=axis)

        return alt.layer(
            seen.mark_rule(strokeWidth=1.5).encode(x=at("low95"), x2="high95:Q"),
            seen.mark_rule(strokeWidth=4.5, opacity=0.55).encode(x=at("low90"), x2="high90:Q"),
            seen.mark_point(filled=True, size=55, opacity=1).encode(x=at("mttf")),
            bound.mark_rule(strokeDash=[2, 3], color=FAINT).encode(x=at("low95"), x2=alt.X2Value("width")),
            bound.mark_point(shape="triangle-right", size=75, filled=False, strokeWidth=1.5, color=FAINT).encode(
                x=at("low95")
            ),
            notes(base),
        )

    return layers


def _mttf_title(drawn: Traces, table: pl.DataFrame, units: Mapping[str, str]) -> str:
    overall = [row for row in drawn.rows(table) if row["gpus"] == "all" and row["confidence"] == 0.95]
    known = [row for row in overall if row["mttf_s"] is not None]
    if not known:
        least = max((row for row in overall if row["ci_low_s"]), key=lambda row: row["ci_low_s"], default=None)
        if least is None:
            return "No trace has lives of a known duration"
        unit = units.get(least["trace"], "GPU job")
        name = drawn.names[least["trace"]]
        return f"No failure in any trace: a {unit} of {name} lasts {hours(least['ci_low_s'])} or more per failure"
    parts = []
    of_jobs = [row for row in known if row["gives"] == "jobs"]
    if of_jobs:
        enough = [row for row in of_jobs if row["events"] >= FEWEST_FAILURES]
        parts.append(f"of GPU jobs is {span(drawn, worth_comparing(enough or of_jobs), 'mttf_s', hours)}")
    for row in known:
        if row["gives"] == "lives":
            is_ = "" if parts else " is"
            parts.append(f"of a {units[row['trace']]}{is_} {hours(row['mttf_s'])} in {drawn.names[row['trace']]}")
    return f"The mean time to failure {', '.join(parts)}"


def _present(rows: Sequence[Mapping]) -> list[str]:
    return [panel for panel in _PANELS.values() if any(row["panel"] == panel for row in rows)]


CHARTS = {
    "outcomes": outcomes,
    "run_times": run_times,
    "queueing": queueing,
    "failure_share": failure_share,
    "mttf": mttf,
}
