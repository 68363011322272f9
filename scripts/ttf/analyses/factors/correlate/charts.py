"""Charts of factors associated with run time and failure."""

import altair as alt
import polars as pl

from ttf.analyses.factors.correlate.run_time_charts import (
    COLOURS,
    IS_SMALL,
    SHOWN_SETS,
    factors_of_run_time,
    hollow_note,
    runtime_by_measured_use,
)
from ttf.display.charts.axes import log_time_channel, log_time_position, percent_axis
from ttf.display.charts.encodings import pick_columns, tooltips
from ttf.display.charts.figure import Figure, Study, empty_figure, make_chart, make_figure
from ttf.display.charts.intervals import add_bounds, clustering_note, draw_intervals
from ttf.display.charts.text import FEATURE_NAMES, feature_title, make_labels
from ttf.display.charts.theme import FAINT, OUTCOME_COLOURS
from ttf.engine.words import join_list, plural
from ttf.records.inputs import Inputs

MOST_TYPES = 20


def runtime_by_gpu_type(inputs: Inputs, study: Study) -> Figure:
    """Draw the mean and median run time by GPU type, of succeeded and of failed jobs."""
    title = "Run time by GPU type"
    groups = inputs["runtime_by_group"].filter(
        pl.col("cutoff_s").is_null(), pl.col("outcome_set").is_in(SHOWN_SETS), feature="gpu_type"
    )
    if not groups.height:
        return empty_figure(title, f"no {study.unit} that succeeded or failed has a GPU type and a run time")
    jobs = groups.group_by("value", maintain_order=True).agg(pl.col("jobs").sum())
    if jobs.height == 1:
        return empty_figure(title, "there is one GPU type only")
    largest = jobs.sort("jobs", descending=True, maintain_order=True).head(MOST_TYPES)["value"]
    shown_groups = groups.filter(pl.col("value").is_in(largest.implode()))
    names = make_labels(sorted(shown_groups["value"].unique()))
    rows = [
        {"type": names[row["value"]], "statistic": statistic, "x": log_time_position(row[f"runtime_{statistic}_s"])}
        | {"note": f"n = {row['jobs']:,}" if statistic == "mean" else None}
        | pick_columns(row, "jobs", outcome="outcome_set", seconds=f"runtime_{statistic}_s")
        for row in shown_groups.iter_rows(named=True)
        for statistic in ("mean", "median")
    ]
    base = make_chart("types").encode(
        x=log_time_channel([row["x"] for row in rows], "Run time (logarithmic)", 1.3),
        y=alt.Y("type:N", title="GPU type", sort=list(names.values())),
        yOffset=alt.YOffset("outcome:N", sort=list(SHOWN_SETS)),
        color=alt.Color("outcome:N", scale=COLOURS, legend=alt.Legend(title="outcome", orient="bottom")),
    )
    shapes = alt.Scale(domain=["mean", "median"], range=["circle", "diamond"])
    tooltip = [
        *tooltips(type="GPU type"),
        *tooltips("outcome", "statistic"),
        *tooltips(form=",.1f", seconds="run time (s)"),
    ]
    points = base.encode(
        shape=alt.Shape("statistic:N", scale=shapes, legend=alt.Legend(title="run time", orient="bottom")),
        tooltip=[*tooltip, *tooltips(form=",", jobs=study.units)],
    )
    # Two layers, because a fill and a stroke by the same field would have contradictory legends.
    marks = [
        points.transform_filter(condition).mark_point(size=70, filled=filled, strokeWidth=2, opacity=1)
        for filled, condition in ((True, alt.LogicalNotPredicate(**{"not": IS_SMALL})), (False, IS_SMALL))
    ]
    spans = base.mark_line(strokeWidth=1).encode(detail=["type:N", "outcome:N"])
    notes = base.transform_filter("isValid(datum.note)").mark_text(align="left", fontSize=10, baseline="middle")
    notes = notes.encode(x=alt.value(488), text="note:N", color=alt.value(FAINT))
    chart = alt.layer(spans, *marks, notes).properties(width=480, height=alt.Step(20 if len(names) > 1 else 34))
    caption = f"n = {plural(shown_groups['jobs'].sum(), study.unit)}{hollow_note(rows, study)}"
    if n_omitted := jobs.height - len(names):
        caption += f"; {plural(n_omitted, 'rarer type')} left out"
    return make_figure(
        chart,
        {"types": rows},
        study,
        title=title,
        subtitle=f"Mean (circle) and median (diamond) of {study.units} by outcome",
        caption=caption,
        alt_text=f"Points on a logarithmic time axis, two rows for each of {plural(len(names), 'GPU type')}.",
    )


MOST_VALUES = 20
COLUMNS = 3
_NUMERIC_ORDER = pl.col("value").cast(pl.Float64, strict=False)


def failure_share(inputs: Inputs, study: Study) -> Figure:
    """Draw the failure share with its interval by feature value, a panel per feature."""
    title, outcomes = "Failure share by feature", inputs["outcomes"]
    ended = inputs["failure_share"].filter(pl.col("ended") > 0)
    jobs_by_outcome = dict(outcomes.select("outcome", "jobs").iter_rows())
    failures, successes = jobs_by_outcome.get("failure", 0), jobs_by_outcome.get("success", 0)
    if not failures + successes:
        return empty_figure(title, f"no {study.unit} ended in success or failure")
    parts = {feature: part for (feature,), part in ended.group_by("feature", maintain_order=True) if part.height > 1}
    panels = [_Panel(feature, part) for feature, part in parts.items()]
    if not panels:
        return empty_figure(title, f"no feature has two values among the {study.units} that ended")
    overall = failures / (failures + successes)
    chart = alt.concat(*(panel.chart(study) for panel in panels), columns=COLUMNS, spacing={"row": 18, "column": 12})
    chart = chart.resolve_scale(x="shared", y="independent")
    shown_values = pl.concat(panel.values for panel in panels)
    counted = f"n = {plural(failures + successes, study.unit)}, {plural(failures, 'failure')}."
    caption = f"{counted} {clustering_note(shown_values)}"
    if timeouts := outcomes.filter(outcome="failure")["at_time_limit"].sum():
        caption += f" {timeouts:,} of the failures ended at their time limit."
    if truncated := [FEATURE_NAMES[feature] for feature, part in parts.items() if part.height > MOST_VALUES]:
        caption += f" The chart has the {MOST_VALUES} most common values of {join_list(truncated)}."
    return make_figure(
        chart,
        {panel.feature: panel.rows for panel in panels} | {"all": [{"share": overall}]},
        study,
        title=title,
        subtitle=f"Of ended {study.units}, with 95% CI not adjusted for the number of values; dashed line: all of them",
        caption=caption,
        alt_text=f"The failure share of each value of {join_list([FEATURE_NAMES[panel.feature] for panel in panels])}.",
    )


class _Panel:
    """A panel with the most common values of one feature, in order."""

    def __init__(self, feature: str, values: pl.DataFrame) -> None:
        self.feature = feature
        shown_values = values.sort("jobs", descending=True, maintain_order=True).head(MOST_VALUES)
        # Numbers sort as numbers; texts are all null as numbers.
        shown_values = add_bounds(shown_values).sort("value" if feature == "gpu_type" else _NUMERIC_ORDER)
        texts = shown_values["value"]
        if feature != "gpu_type":
            texts = texts.map_elements(lambda text: f"{float(text):,.4g}", pl.String)
        if texts.n_unique() < texts.len():
            texts = shown_values["value"]
        labels_by_text = make_labels(texts)
        self.rows = [
            {"value": labels_by_text[text]}
            | pick_columns(row, "ended", "failures", "low", "high", "independent", share="failure_share")
            for text, row in zip(texts, shown_values.iter_rows(named=True), strict=True)
        ]
        self.values = shown_values

    def chart(self, study: Study) -> alt.LayerChart:
        axis = alt.Axis(labelLimit=70, labelFontSize=10, labelOverlap=False)
        y = alt.Y("value:N", sort=[row["value"] for row in self.rows], title=None, axis=axis)
        tooltip = tooltips(value=feature_title(self.feature))
        tooltip += tooltips(form=".1%", share="failure share", low="95% from", high="95% to")
        tooltip += tooltips("failures", form=",", ended=f"ended {study.units}")
        base = make_chart(self.feature).encode(y=y, tooltip=tooltip)
        x = alt.X("low:Q", scale=alt.Scale(domain=[0, 1]), axis=percent_axis(values=[0, 0.5, 1]))
        colour = OUTCOME_COLOURS["failure"]
        intervals = draw_intervals(base, x, strokeWidth=1.6, color=colour, opacity=0.6)
        dots = base.mark_circle(size=34, color=colour, opacity=1).encode(x="share:Q")
        line = make_chart("all").mark_rule(strokeDash=[4, 3], color=FAINT)
        line = line.encode(x="share:Q", tooltip=tooltips(form=".1%", share="all"))
        heading = alt.TitleParams(feature_title(self.feature), fontSize=11, offset=4, anchor="start", frame="group")
        return (line + intervals + dots).properties(width=160, height=13 * len(self.rows) + 6, title=heading)


CHARTS = {
    "factors_of_run_time": factors_of_run_time,
    "runtime_by_gpu_type": runtime_by_gpu_type,
    "runtime_by_measured_use": runtime_by_measured_use,
    "failure_share": failure_share,
}
