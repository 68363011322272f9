"""Several traces side by side, a row each, from the tables of rule compare_traces."""

from collections.abc import Mapping, Sequence

import altair as alt
import polars as pl

from ttf.analyses.compare_traces.labels import COMPONENTS, GPUS, worth_comparing
from ttf.analyses.compare_traces.trace_rows import (
    Layers,
    Traces,
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
from ttf.charts.figure import Figure, Study, chart_of
from ttf.charts.intervals import DASHED, by_what, shown
from ttf.charts.text import HOUR_S, duration, hours, labels, listed, percent
from ttf.charts.theme import ACCENT, FAINT, ON_LIGHT, OUTCOME_COLOURS
from ttf.inputs import Inputs
from ttf.numbers.metrics import FEWEST_ENDED, FEWEST_FAILURES

# A share of this size or more has room for its number inside the bar.
_ROOM_FOR_TEXT = 0.12
_ENDED = {"success": "Successful", "failure": "Failed", "cancelled": "Cancelled"}


def outcomes(given: Inputs, study: Study) -> Figure:
    """Share of GPU jobs and of their GPU time by outcome, a bar a trace, from outcomes.csv."""
    drawn = Traces(given["compared_outcomes"], study, pl.col("jobs_share").is_not_null())
    if not drawn.shown:
        return drawn.nothing("Outcomes of several traces", "GPU jobs")
    measures = {"jobs_share": "share of GPU jobs", "gpu_hours_share": "share of their GPU time"}
    mine = drawn.table.filter(pl.col("trace").is_in(drawn.shown))
    n = dict(mine.group_by("trace").agg(pl.col("jobs").sum()).iter_rows())
    lines = {trace: f"{drawn.names[trace]}\nn = {n[trace]:,}" for trace in drawn.shown}
    shares = pl.concat(
        mine.select("trace", "outcome", "jobs", timed="n", share=column, measure=pl.lit(measure))
        for column, measure in measures.items()
    ).drop_nulls("share")
    # The middle of each part, for its number: bars and texts of one stack can not share Vega-Lite's own stacking.
    reached = pl.col("share").cum_sum()
    ends = {"from": reached.shift(1, fill_value=0), "to": reached}
    shares = shares.with_columns(end.over("measure", "trace").alias(name) for name, end in ends.items())
    rows = shares.with_columns(
        pl.col("trace").replace(lines),
        middle=(pl.col("from") + pl.col("to")) / 2,
        order=pl.col("outcome").replace_strict({name: place for place, name in enumerate(OUTCOME_COLOURS)}),
    ).to_dicts()
    rows = [row | {"text": percent(row["share"]) if row["share"] >= _ROOM_FOR_TEXT else ""} for row in rows]
    present = {name: of for name, of in OUTCOME_COLOURS.items() if shares.filter(outcome=name)["share"].sum()}
    axis = trace_axis(lines=True)
    base = chart_of("shares").encode(y=alt.Y("trace:N", title=None, sort=list(lines.values()), axis=axis))
    x_axis = percent_axis(values=[0, 0.25, 0.5, 0.75, 1])
    bars = base.mark_bar(height=24).encode(
        x=alt.X("from:Q", scale=alt.Scale(domain=[0, 1]), axis=x_axis),
        x2="to:Q",
        color=coloured("outcome", present, title="outcome", orient="bottom"),
        order="order:Q",
        tooltip=[
            *tips("trace", "outcome"),
            *tips("share", form=".1%"),
            *tips(form=",", jobs="GPU jobs", timed="with known GPU time"),
        ],
    )
    texts = base.mark_text(fontSize=10.5, color=ON_LIGHT).encode(x="middle:Q", text="text:N")
    panels = alt.Column("measure:N", sort=list(measures.values()), title=None)
    return drawn.figure(
        (bars + texts).properties(width=225, height=alt.Step(38)).facet(column=panels, spacing=24),
        {"shares": rows},
        title=_outcomes_title(drawn),
        subtitle="A bar is a trace; its parts are the outcomes of its jobs that asked for a GPU.",
        caption="Jobs that asked for a GPU, by outcome; n: such jobs. GPU time is GPUs asked for times the time a job "
        "was seen to run; jobs without a known run time add none.",
        alt_text="Stacked bars, one a trace, of the share of GPU jobs and of GPU time by outcome",
    )


def _outcomes_title(drawn: Traces) -> str:
    failed = [row for row in drawn.rows if row["outcome"] == "failure" and row["jobs_share"] is not None]
    said = worth_comparing(failed)
    if not said:
        return "No trace can tell failures of GPU jobs"
    if not any(row["jobs"] for row in said):
        return f"No GPU job of {'any trace' if len(said) > 1 else drawn.names[said[0]['trace']]} failed"
    title = f"{span(drawn, said, 'jobs_share', percent, ' of GPU jobs')} ended in failure"
    timed = [row for row in said if row["gpu_hours_share"] is not None]
    if timed:
        title += f"; they took {span(drawn, timed, 'gpu_hours_share', percent, ' of the GPU time')}"
    return title


def run_times(given: Inputs, study: Study) -> Figure:
    """Quantiles of the run time of GPU jobs by outcome and trace, from run_times.csv."""
    drawn = Traces(given["compared_run_times"], study, pl.col("n") > 0)
    if not drawn.shown:
        return drawn.nothing("Run times of several traces", "GPU jobs that ended after a known run time")
    present = {name: said for name, said in _ENDED.items() if any(r["n"] and r["outcome"] == name for r in drawn.rows)}
    rows = [
        quantiles(row, "runtime", drawn.names[row["trace"]], present[row["outcome"]]) | picked(row, "outcome")
        for row in drawn.rows
        if row["outcome"] in present and (row["n"] or row["jobs"])
    ]
    colours = coloured("outcome", {name: OUTCOME_COLOURS[name] for name in present})
    return drawn.figure(
        *ranges(rows, list(present.values()), drawn, colours, "run time"),
        title=_run_times_title(drawn),
        subtitle="Run time of GPU jobs by outcome; dot: median, thick: middle half, thin: middle nine tenths.",
        caption="Jobs that asked for a GPU and ended after a known run time (n beside each row). Quantiles by nearest "
        "rank. Times of 0 s stand at 1 s.",
        alt_text="Ranges of run time on a logarithmic axis, a row for each trace, a panel for each outcome",
    )


def _run_times_title(drawn: Traces) -> str:
    medians = {(row["trace"], row["outcome"]): row["runtime_median_s"] for row in drawn.rows if row["n"]}
    both = [
        {"trace": trace, "synthetic": drawn.synthetic[trace]}
        | {outcome: medians[trace, outcome] for outcome in ("success", "failure")}
        for trace in drawn.shown
        if {(trace, "success"), (trace, "failure")} <= medians.keys()
    ]
    if not both:
        return "No trace has both failed and successful GPU jobs with a known run time"
    said = worth_comparing(both)
    if len(said) == 1:
        return (
            f"In {drawn.names[said[0]['trace']]}, half of the failed GPU jobs ended within "
            f"{duration(said[0]['failure'])}, half of the successful ones within {duration(said[0]['success'])}"
        )
    sooner = sum(row["failure"] < row["success"] for row in said)
    where, within = _in_how_many(sooner, len(said)), span(drawn, said, "failure", duration)
    return f"Failed GPU jobs end sooner than successful ones {where}; half of them within {within}"


def _in_how_many(some: int, of: int) -> str:
    if some == of:
        return "in both traces" if of == 2 else f"in all {of} traces"
    return f"in {some or 'none'} of {of} traces"


def queueing(given: Inputs, study: Study) -> Figure:
    """Quantiles of the queueing delay of GPU jobs by number of GPUs and trace, from queueing.csv."""
    drawn = Traces(given["compared_queueing"], study, pl.col("n") > 0)
    if not drawn.shown:
        return drawn.nothing("Queueing of several traces", "GPU jobs with a queueing delay")
    rows = [quantiles(row, "queue", drawn.names[row["trace"]], GPUS[row["gpus"]]) for row in drawn.rows if row["jobs"]]
    said = worth_comparing([row for row in drawn.rows if row["gpus"] == "all" and row["n"]])
    return drawn.figure(
        *ranges(rows, _present(rows), drawn, one_colour(ACCENT), "queueing delay"),
        title=f"Half of the GPU jobs waited at most {span(drawn, said, 'queue_median_s', duration)}",
        subtitle="Time from submission to start; dot: median, thick: middle half, thin: middle nine tenths.",
        caption="Jobs that asked for a GPU and whose submission and start are both known (n beside each row). GPUs: "
        "whole ones, rounded up. Quantiles by nearest rank. Delays of 0 s stand at 1 s.",
        alt_text="Ranges of the queueing delay on a logarithmic axis, a row for each trace, a panel for each number of "
        "GPUs",
    )


def failure_share(given: Inputs, study: Study) -> Figure:
    """Failure share of the ended GPU jobs by number of GPUs and trace, from failure_share.csv."""
    table = shown(given["compared_failure_share"])
    drawn = Traces(table, study, pl.col("failure_share").is_not_null())
    if not drawn.shown:
        return drawn.nothing("Failure shares of several traces", "GPU jobs that ended")
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
        *tips(form=".1%", share="failure share", low="95 % from", high="95 % to"),
        *tips("failures", form=",", ended="ended"),
    ]

    def layers(base: alt.Chart, last: bool) -> alt.LayerChart:
        axis = percent_axis("Failures among ended GPU jobs" if last else None, labels=last, ticks=last)
        known = base.transform_filter("isValid(datum.share)").encode(
            color=one_colour(OUTCOME_COLOURS["failure"]), tooltip=tooltip
        )
        low = alt.X("low:Q", scale=scale, axis=axis)
        rules = known.mark_rule(strokeWidth=1.8).encode(x=low, x2="high:Q", strokeDash=DASHED)
        dots = known.mark_point(filled=True, size=55, opacity=1).encode(x=alt.X("share:Q", scale=scale, axis=axis))
        return rules + dots + notes(base)

    return drawn.figure(
        *panels_of(rows, _present(rows), drawn.labels(), layers),
        title=_failure_share_title(drawn),
        subtitle="Failures among the GPU jobs that ended in success or failure, with 95 % intervals.",
        caption=f"Jobs that asked for a GPU; failures and ended jobs beside each row. {by_what(table)} GPUs: whole "
        "ones, rounded up.",
        alt_text="Points with intervals of the failure share, a row for each trace, a panel for each number of GPUs",
    )


WITHIN, UNTOLD = "stays within its intervals", "goes a way that cannot be told"


def _failure_share_title(drawn: Traces) -> str:
    known = [row for row in drawn.rows if row["failure_share"] is not None]
    said = worth_comparing([row for row in known if row["gpus"] == "all"])
    title = f"{span(drawn, said, 'failure_share', percent, ' of the ended GPU jobs')} failed"
    courses = []
    for trace in (row["trace"] for row in said):
        sizes = [row for row in known if row["trace"] == trace and row["gpus"] != "all"]
        sizes = [row for row in sizes if row["ended"] >= FEWEST_ENDED]
        if len(sizes) > 1:
            first, last = sizes[0], sizes[-1]
            rises, falls = last["low"] > first["high"], last["high"] < first["low"]
            told = "rises" if rises else "falls" if falls else WITHIN
            courses.append(UNTOLD if first["independent"] or last["independent"] else told)
    if not courses:
        return title
    title += "; from the smallest to the largest jobs"
    if set(courses) == {UNTOLD}:
        return f"{title} whether the share rises cannot be told"
    if len(courses) == 1:
        return f"{title} of the one trace with several sizes the share {courses[0]}"
    counts = {word: courses.count(word) for word in ("rises", "falls", WITHIN, UNTOLD)}
    counted = [f"{word} in {number}" for word, number in counts.items() if number]
    return f"{title} the share {listed(counted)} of {len(courses)} traces"


def mttf(given: Inputs, study: Study) -> Figure:
    """Mean time to failure of GPU jobs by number of GPUs, and of components, by trace, from mttf.csv."""
    table = shown(given["compared_mttf"], "_s")
    drawn = Traces(table, study, pl.col("low") > 0)
    if not drawn.shown:
        return drawn.nothing("Mean times to failure of several traces", "lives of a known duration")
    units = {row["trace"]: labels([row["unit"]])[row["unit"]] for row in drawn.rows if row["gives"] == "lives"}
    merged: dict[tuple, dict] = {}
    for row in (row for row in drawn.rows if row["n"]):
        of_jobs, name = row["gives"] == "jobs", drawn.names[row["trace"]]
        one = merged.setdefault(
            (row["trace"], row["gpus"]),
            {
                "panel": GPUS[row["gpus"]] if of_jobs else COMPONENTS,
                "trace": name if of_jobs else f"{name}: {units[row['trace']]}",
                "note": f"{row['events']:,} in {row['n']:,}",
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
        "Exposure over failures with right-censoring; failures and lives beside each row. "
        f"{by_what(table.filter(pl.col('events') > 0))} GPUs: whole ones of the job, rounded up."
    )
    if any("mttf" not in row for row in rows):
        caption += " Triangle: no failure, one-sided lower bound only (drawn: 95 %)."
    return drawn.figure(
        *panels_of(rows, _present(rows), list(order), _mttf_layers(rows)),
        title=_mttf_title(drawn, units),
        subtitle="Time at risk per failure; thick: 90 %, thin: 95 % interval; at the right: failures in lives. "
        "Components: the time of one unit, not of a job.",
        caption=caption,
        alt_text="Points with intervals of the mean time to failure on a logarithmic axis in hours, a row for each "
        "trace, a panel for each number of GPUs",
    )


def _mttf_layers(rows: list[dict]) -> Layers:
    """The marks of one panel, on the axis of all."""
    ends = [row[name] for row in rows for name in ("low95", "high95") if name in row]
    domain = log_domain(ends, 1.5, 1.5)
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
        clustered = seen.transform_filter("!datum.independent")
        bound = base.transform_filter("!isValid(datum.mttf) && isValid(datum.low95)")
        triangle = {"shape": "triangle-right", "size": 75, "filled": False, "strokeWidth": 1.5, "color": FAINT}

        def at(field: str) -> alt.X:
            return alt.X(f"{field}:Q", scale=log_scale(domain), axis=axis)

        return alt.layer(
            seen.mark_rule(strokeWidth=1.5).encode(x=at("low95"), x2="high95:Q", strokeDash=DASHED),
            clustered.mark_rule(strokeWidth=4.5, opacity=0.55).encode(x=at("low90"), x2="high90:Q"),
            seen.mark_point(filled=True, size=55, opacity=1).encode(x=at("mttf")),
            bound.mark_rule(strokeDash=[2, 3], color=FAINT).encode(x=at("low95"), x2=alt.X2Value("width")),
            bound.mark_point(**triangle).encode(x=at("low95")),
            notes(base),
        )

    return layers


def _mttf_title(drawn: Traces, units: Mapping[str, str]) -> str:
    overall = [row for row in drawn.rows if row["gpus"] == "all" and row["confidence"] == 0.95]
    known = [row for row in overall if row["mttf_s"] is not None]
    if not known:
        least = max((row for row in overall if row["ci_low_s"]), key=lambda row: row["ci_low_s"], default=None)
        if least is None:
            return "No trace has lives of a known duration"
        unit, name = units.get(least["trace"], "GPU job"), drawn.names[least["trace"]]
        return f"No failure in any trace: a {unit} of {name} lasts {hours(least['ci_low_s'])} or more per failure"
    parts = []
    of_jobs = [row for row in known if row["gives"] == "jobs"]
    if of_jobs:
        enough = [row for row in of_jobs if row["events"] >= FEWEST_FAILURES]
        parts.append(f"of GPU jobs is {span(drawn, worth_comparing(enough or of_jobs), 'mttf_s', hours)}")
    for row in (row for row in known if row["gives"] == "lives"):
        is_ = "" if parts else " is"
        parts.append(f"of a {units[row['trace']]}{is_} {hours(row['mttf_s'])} in {drawn.names[row['trace']]}")
    return f"The mean time to failure {', '.join(parts)}"


def _present(rows: Sequence[Mapping]) -> list[str]:
    return [panel for panel in (*GPUS.values(), COMPONENTS) if any(row["panel"] == panel for row in rows)]


CHARTS = {chart.__name__: chart for chart in (outcomes, run_times, queueing, failure_share, mttf)}
