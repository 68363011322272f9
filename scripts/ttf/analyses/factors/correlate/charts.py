"""The charts of factors associated with run time and failure."""

import altair as alt
import polars as pl

from ttf.analyses.factors.correlate.run_time_charts import (
    COLOURS,
    FEW,
    SETS,
    factors_of_run_time,
    few_in_a_mean,
    runtime_by_measured_use,
)
from ttf.display.charts.axes import log_time, on_log_time, percent_axis
from ttf.display.charts.encodings import picked, tips
from ttf.display.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.display.charts.intervals import by_what, draw_intervals, shown
from ttf.display.charts.text import FEATURE_NAMES, feature_title, labels
from ttf.display.charts.theme import FAINT, OUTCOME_COLOURS
from ttf.engine.words import listed, plural
from ttf.records.inputs import Inputs

MOST_TYPES = 20


def runtime_by_gpu_type(given: Inputs, study: Study) -> Figure:
    what = "Run time by GPU type"
    known = given["runtime_by_group"].filter(
        pl.col("cutoff_s").is_null(), pl.col("outcome_set").is_in(SETS), feature="gpu_type"
    )
    if not known.height:
        return nothing_to_draw(what, f"no {study.unit} that succeeded or failed has a GPU type and a run time")
    jobs = known.group_by("value", maintain_order=True).agg(pl.col("jobs").sum())
    if jobs.height == 1:
        return nothing_to_draw(what, "there is one GPU type only")
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
    shapes = alt.Scale(domain=["mean", "median"], range=["circle", "diamond"])
    tooltip = [*tips(type="GPU type"), *tips("outcome", "statistic"), *tips(form=",.1f", seconds="run time (s)")]
    pointed = base.encode(
        shape=alt.Shape("statistic:N", scale=shapes, legend=alt.Legend(title="run time", orient="bottom")),
        tooltip=[*tooltip, *tips(form=",", jobs=study.units)],
    )
    # Two layers, as the legends of a fill and of a stroke by one field would contradict each other.
    marks = [
        pointed.transform_filter(which).mark_point(size=70, filled=filled, strokeWidth=2, opacity=1)
        for filled, which in ((True, {"not": FEW.to_dict()}), (False, FEW))
    ]
    spans = base.mark_line(strokeWidth=1).encode(detail=["type:N", "outcome:N"])
    notes = base.transform_filter("isValid(datum.note)").mark_text(align="left", fontSize=10, baseline="middle")
    notes = notes.encode(x=alt.value(488), text="note:N", color=alt.value(FAINT))
    chart = alt.layer(spans, *marks, notes).properties(width=480, height=alt.Step(20 if len(names) > 1 else 34))
    caption = f"n = {plural(drawn['jobs'].sum(), study.unit)}{few_in_a_mean(rows, study)}"
    if left_out := jobs.height - len(names):
        caption += f"; {plural(left_out, 'rarer type')} left out"
    return figure(
        chart,
        {"types": rows},
        study,
        title=what,
        subtitle=f"Mean (circle) and median (diamond) of {study.units} by outcome",
        caption=caption,
        alt_text=f"Points on a logarithmic time axis, two rows for each of {plural(len(names), 'GPU type')}.",
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
    parts = {feature: part for (feature,), part in ended.group_by("feature", maintain_order=True) if part.height > 1}
    features = [_Panel(feature, part) for feature, part in parts.items()]
    if not features:
        return nothing_to_draw(what, f"no feature has two values among the {study.units} that ended")
    overall = failures / (failures + successes)
    chart = alt.concat(*(panel.chart(study) for panel in features), columns=COLUMNS, spacing={"row": 18, "column": 12})
    chart = chart.resolve_scale(x="shared", y="independent")
    drawn = pl.concat(panel.kept for panel in features)
    caption = f"n = {plural(failures + successes, study.unit)}, {plural(failures, 'failure')}. {by_what(drawn)}"
    if limited := outcomes.filter(outcome="failure")["at_time_limit"].sum():
        caption += f" {limited:,} of the failures ended at their time limit."
    if cut := [FEATURE_NAMES[feature] for feature, part in parts.items() if part.height > MOST_VALUES]:
        caption += f" Of {listed(cut)} the {MOST_VALUES} commonest values."
    return figure(
        chart,
        {panel.feature: panel.rows for panel in features} | {"all": [{"share": overall}]},
        study,
        title=what,
        subtitle=f"Of ended {study.units}, with 95% CI not adjusted for the number of values; dashed line: all",
        caption=caption,
        alt_text=f"The failure share of each value of {listed([FEATURE_NAMES[p.feature] for p in features])}.",
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
            values = values.map_elements(lambda text: f"{float(text):,.4g}", pl.String)
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
        axis = alt.Axis(labelLimit=70, labelFontSize=10, labelOverlap=False)
        y = alt.Y("value:N", sort=[row["value"] for row in self.rows], title=None, axis=axis)
        tooltip = tips(value=feature_title(self.feature))
        tooltip += tips(form=".1%", share="failure share", low="95% from", high="95% to")
        tooltip += tips("failures", form=",", ended=f"ended {study.units}")
        base = chart_of(self.feature).encode(y=y, tooltip=tooltip)
        x = alt.X("low:Q", scale=alt.Scale(domain=[0, 1]), axis=percent_axis(values=[0, 0.5, 1]))
        colour = OUTCOME_COLOURS["failure"]
        intervals = draw_intervals(base, x, strokeWidth=1.6, color=colour, opacity=0.6)
        dots = base.mark_circle(size=34, color=colour, opacity=1).encode(x="share:Q")
        line = chart_of("all").mark_rule(strokeDash=[4, 3], color=FAINT)
        line = line.encode(x="share:Q", tooltip=tips(form=".1%", share="all"))
        heading = alt.TitleParams(feature_title(self.feature), fontSize=11, offset=4, anchor="start", frame="group")
        return (line + intervals + dots).properties(width=160, height=13 * len(self.rows) + 6, title=heading)


CHARTS = {
    "factors_of_run_time": factors_of_run_time,
    "runtime_by_gpu_type": runtime_by_gpu_type,
    "runtime_by_measured_use": runtime_by_measured_use,
    "failure_share": failure_share,
}
