"""The charts of what goes with run time and failure."""

from functools import partial

import altair as alt
import polars as pl

from ttf.analyses.correlate.run_time_charts import (
    COLOURS,
    FEW,
    SETS,
    few_in_a_mean,
    runtime_by_measured_use,
    runtime_by_request,
)
from ttf.charts.axes import log_time, on_log_time, percent_axis
from ttf.charts.encodings import picked, tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.intervals import DASHED, by_what, shown
from ttf.charts.text import (
    FEATURE_NAMES,
    FEATURE_UNITS,
    count,
    duration,
    feature_title,
    labels,
    listed,
    percent,
    significant,
)
from ttf.charts.theme import FAINT, OUTCOME_COLOURS
from ttf.inputs import Inputs
from ttf.numbers.metrics import FEWEST_ENDED

MOST_TYPES = 20


def runtime_by_gpu_type(given: Inputs, study: Study) -> Figure:
    what = "Run time by GPU type"
    known = given["runtime_by_group"].filter(
        pl.col("cutoff_s").is_null(), pl.col("outcome_set").is_in(SETS), feature="gpu_type"
    )
    if not known.height:
        return nothing_to_draw(what, f"no {study.unit} that succeeded or failed has a GPU type and a run time")
    jobs = known.group_by("value", maintain_order=True).agg(pl.col("jobs").sum())
    kept = jobs.sort("jobs", descending=True, maintain_order=True).head(MOST_TYPES)["value"]
    drawn = known.filter(pl.col("value").is_in(kept.implode()))
    names = labels(sorted(drawn["value"].unique()))
    rows = [
        {"type": names[row["value"]], "statistic": statistic, "x": on_log_time(row[f"runtime_{statistic}_s"])}
        | {"note": f"n = {row['jobs']:,}" if statistic == "mean" else None}
        | picked(row, "jobs", outcome="outcome_set", seconds=f"runtime_{statistic}_s")
        for row in drawn.iter_rows(named=True)
        for statistic in ("mean", "median")
    ]
    base = chart_of("types").encode(
        x=log_time([row["x"] for row in rows], "Run time (logarithmic)", 1.3),
        y=alt.Y("type:N", title="GPU type", sort=list(names.values())),
        yOffset=alt.YOffset("outcome:N", sort=list(SETS)),
        color=alt.Color("outcome:N", scale=COLOURS, legend=alt.Legend(title="outcome", orient="bottom")),
    )
    pointed = base.encode(
        shape=alt.Shape(
            "statistic:N",
            scale=alt.Scale(domain=["mean", "median"], range=["circle", "diamond"]),
            legend=alt.Legend(title="run time", orient="bottom"),
        ),
        tooltip=[
            *tips(type="GPU type"),
            *tips("outcome", "statistic"),
            *tips(form=",.1f", seconds="run time (s)"),
            *tips(form=",", jobs=study.units),
        ],
    )
    # Two layers, as the legends of a fill and of a stroke by one field would contradict each other.
    marks = [
        pointed.transform_filter(which).mark_point(size=70, filled=filled, strokeWidth=2, opacity=1)
        for filled, which in ((True, {"not": FEW.to_dict()}), (False, FEW))
    ]
    spans = base.mark_line(strokeWidth=1).encode(detail=["type:N", "outcome:N"])
    notes = (
        base.transform_filter("isValid(datum.note)")
        .mark_text(align="left", fontSize=10, baseline="middle")
        .encode(x=alt.value(508), text="note:N", color=alt.value(FAINT))
    )
    chart = alt.layer(spans, *marks, notes).properties(width=500, height=alt.Step(20 if len(names) > 1 else 34))
    caption = (
        f"Mean and median run time of the {study.units} of each GPU type that succeeded or failed at a known time; "
        f"n = {count(drawn['jobs'].sum(), study.unit)}, beside each row its own."
    )
    if left_out := jobs.height - len(names):
        caption += f" The {MOST_TYPES} commonest types; {count(left_out, 'rarer type')} left out."
    if drawn["runtime_median_s"].min() < 1 or drawn["runtime_mean_s"].min() < 1:
        caption += " Times below 1 s stand at 1 s."
    caption += few_in_a_mean(rows, study)
    title = _types_title(drawn, names, study)
    return figure(
        chart,
        {"types": rows},
        study,
        title=title,
        subtitle=f"Mean (circle) and median (diamond) run time of {study.units} by GPU type and outcome.",
        caption=caption,
        alt_text=f"Points on a logarithmic time axis, two rows for each of {count(len(names), 'GPU type')}. {title}.",
    )


def _types_title(drawn: pl.DataFrame, names: dict[str, str], study: Study) -> str:
    """Where failed jobs ran shorter; means of few jobs do not count, unless there are no others."""
    enough = drawn.filter(pl.col("jobs") >= FEWEST_ENDED)
    of_each = f" with {FEWEST_ENDED} or more of each" if 0 < enough.height < drawn.height else ""
    drawn = enough if enough.height else drawn
    means = {(row["value"], row["outcome_set"]): row["runtime_mean_s"] for row in drawn.iter_rows(named=True)}
    both = [name for name in names if all((name, outcome) in means for outcome in SETS)]
    if not both:
        (shortest, outcome), low = min(means.items(), key=lambda item: item[1])
        (longest, _), high = max(means.items(), key=lambda item: item[1])
        done = "succeeded" if outcome == "success" else "failed"
        title = f"{study.units.capitalize()} that {done} ran {duration(low)} on average on {names[shortest]}"
        return title + (f", {duration(high)} on {names[longest]}" if longest != shortest else "")
    if len(both) == 1:
        failed, succeeded = (duration(means[both[0], outcome]) for outcome in ("failure", "success"))
        return f"On {names[both[0]]}, failed {study.units} ran {failed} on average, successful ones {succeeded}"
    shorter = sum(means[name, "failure"] < means[name, "success"] for name in both)
    quantity = "all" if shorter == len(both) else f"{shorter} of" if shorter else "none of the"
    return (
        f"Failed {study.units} ran shorter on average than successful ones on {quantity} {len(both)} GPU types{of_each}"
    )


MOST_VALUES = 20
COLUMNS = 3
_NUMERIC_ORDER = pl.col("value").cast(pl.Float64, strict=False)


def failure_share(given: Inputs, study: Study) -> Figure:
    """Failure share with its interval by feature value; a panel per feature."""
    what, outcomes = "Failure share by feature", given["outcomes"]
    ended = given["failure_share"].filter(pl.col("ended") > 0)
    by_outcome = dict(outcomes.select("outcome", "jobs").iter_rows())
    failures, successes = by_outcome.get("failure", 0), by_outcome.get("success", 0)
    if not failures + successes:
        return nothing_to_draw(what, f"no {study.unit} ended in success or failure")
    features, single, cut = [], [], []
    for (feature,), part in ended.group_by("feature", maintain_order=True):
        if part.height < 2:
            single.append(str(feature))
            continue
        if part.height > MOST_VALUES:
            cut.append(str(feature))
        features.append(_Panel(str(feature), part))
    if not features:
        return nothing_to_draw(what, f"no feature has two values among the {study.units} that ended")
    overall = failures / (failures + successes)
    chart = alt.concat(*(panel.chart(study) for panel in features), columns=COLUMNS, spacing={"row": 18, "column": 12})
    chart = chart.resolve_scale(x="shared", y="independent")
    drawn = pl.concat(panel.kept for panel in features)
    caption = (
        f"Failures among the {study.units} that ended in success or failure; n = "
        f"{count(failures + successes, study.unit)}, {count(failures, 'failure')}. {by_what(drawn)} They are not "
        "adjusted for the number of values. Values in their order."
    )
    if limited := outcomes.filter(outcome="failure")["at_time_limit"].sum():
        caption += f" {limited:,} of the failures ended at their time limit."
    if cut:
        names = listed([FEATURE_NAMES[name] for name in cut])
        caption += f" Of {names} only the {MOST_VALUES} values with the most {study.units}."
    if single:
        caption += f" Left out, with one value only: {listed([FEATURE_NAMES[name] for name in single])}."
    title = _title(features, overall, study)
    return figure(
        chart,
        {panel.feature: panel.rows for panel in features} | {"all": [{"share": overall}]},
        study,
        title=title,
        subtitle=f"Share of ended {study.units} that failed, with its 95 % interval; upright line: all of them.",
        caption=caption,
        alt_text=f"The failure share of each value of {listed([FEATURE_NAMES[p.feature] for p in features])}. {title}.",
    )


class _Panel:
    """The commonest values of one feature, in order."""

    def __init__(self, feature: str, part: pl.DataFrame) -> None:
        self.feature = feature
        kept = part.sort("jobs", descending=True, maintain_order=True).head(MOST_VALUES)
        # Numbers as numbers; text (all null as numbers) by itself.
        kept = shown(kept).sort("value" if feature == "gpu_type" else _NUMERIC_ORDER)
        values = kept["value"]
        if feature != "gpu_type":
            values = values.map_elements(lambda text: significant(float(text), 4), pl.String)
        if values.n_unique() < values.len():
            values = kept["value"]
        named = labels(values)
        self.rows = [
            {"value": named[text]}
            | picked(row, "ended", "failures", "low", "high", "independent", share="failure_share")
            for text, row in zip(values, kept.iter_rows(named=True), strict=True)
        ]
        self.kept = kept

    def chart(self, study: Study) -> alt.LayerChart:
        axis_of_values = alt.Axis(labelLimit=70, labelFontSize=10, labelOverlap=False)
        base = chart_of(self.feature).encode(
            y=alt.Y("value:N", sort=[row["value"] for row in self.rows], title=None, axis=axis_of_values),
            tooltip=[
                *tips(value=feature_title(self.feature)),
                *tips(form=".1%", share="failure share", low="95 % from", high="95 % to"),
                *tips("failures", form=",", ended=f"ended {study.units}"),
            ],
        )
        x = alt.X("low:Q", scale=alt.Scale(domain=[0, 1]), axis=percent_axis(values=[0, 0.5, 1]))
        colour = OUTCOME_COLOURS["failure"]
        intervals = base.mark_rule(strokeWidth=1.6, color=colour, opacity=0.6).encode(
            x=x, x2="high:Q", strokeDash=DASHED
        )
        dots = base.mark_circle(size=34, color=colour, opacity=1).encode(x="share:Q")
        line = chart_of("all").mark_rule(strokeDash=[4, 3], color=FAINT)
        line = line.encode(x="share:Q", tooltip=tips(form=".1%", share="all"))
        heading = alt.TitleParams(feature_title(self.feature), fontSize=11, offset=4, anchor="start", frame="group")
        return (line + intervals + dots).properties(width=160, height=13 * len(self.rows) + 6, title=heading)


def _title(features: list[_Panel], overall: float, study: Study) -> str:
    if overall == 0:
        return f"None of the {study.units} that ended failed"
    if overall == 1:
        return f"All {study.units} that ended failed"
    title = f"Of the {study.units} that ended, {percent(overall)} failed"
    apart = []
    for panel in features:
        known = [row for row in panel.rows if not row["independent"]]
        if len(known) < 2:
            continue
        lowest = min(known, key=lambda row: row["high"])
        highest = max(known, key=lambda row: row["low"])
        apart.append((highest["low"] - lowest["high"], panel.feature, lowest, highest))
    if not apart:
        return f"{title}; whether values of a feature differ cannot be told"
    # By the gap between two intervals, not between two shares: those of rare values are far apart by chance.
    gap, feature, lowest, highest = max(apart, key=lambda item: item[0])
    if gap <= 0:
        return f"{title}; no two values of a feature differ beyond their intervals"
    unit = f" ({FEATURE_UNITS[feature]})" if feature in FEATURE_UNITS else ""
    return (
        f"{title}; {FEATURE_NAMES[feature]} sets them apart most: {percent(lowest['share'])} at {lowest['value']}, "
        f"{percent(highest['share'])} at {highest['value']}{unit}"
    )


_AXES = {"": False, "_log": True}
CHARTS = {
    "runtime_by_gpu_type": runtime_by_gpu_type,
    **{
        f"runtime_by_{feature}{axis}": partial(runtime_by_request, feature=feature, log=log)
        for feature in ("gpu_request", "cpu_request", "memory_request", "size")
        for axis, log in _AXES.items()
    },
    **{f"runtime_by_measured_use{axis}": partial(runtime_by_measured_use, log=log) for axis, log in _AXES.items()},
    "failure_share": failure_share,
}
