"""Mean run time against what jobs asked for and what they used: a point per group, a panel per outcome set."""

from collections.abc import Sequence

import altair as alt
import polars as pl

from ttf.analyses.correlate.groups import COLOURS, FEW, SETS, Points, few_in_a_mean, points
from ttf.analyses.correlate.trends import note, trend_of_request, trend_of_use
from ttf.charts.axes import log_domain, log_scale, log_ticks, on_log_time, time_axis, time_domain
from ttf.charts.encodings import tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.text import FEATURE_NAMES, capital, count, feature_title, listed
from ttf.charts.theme import INK
from ttf.inputs import Inputs
from ttf.numbers.metrics import FEWEST_ENDED

MEASURED = ("gpu_utilisation", "cpu_usage", "memory_usage")
MOST_CUTOFFS = 3

# Of all panels in a row with the gaps between them.
_WIDTH = 608
_HEIGHT = 150
_GAP = 8
_FEW_TICKS_S = (1, 60, 3_600, 86_400, 8_640_000, 864_000_000)
# Above the highest point, for the correlation in the corner of each panel.
_HEADROOM = 12


def runtime_by_request(given: Inputs, study: Study, *, feature: str, log: bool) -> Figure:
    """Mean run time against the value of one request; a row of panels per outcome, a column per cut-off."""
    groups, correlations, name = given["runtime_by_group"], given["correlations"], FEATURE_NAMES[feature]
    what = f"Run time by {name}" + (" (logarithmic)" if log else "")
    known = groups.filter((pl.col("feature") == feature) & pl.col("outcome_set").is_in(SETS))
    if not known.height:
        return nothing_to_draw(what, f"no {study.unit} that succeeded or failed has a {name} and a run time")
    cutoffs = sorted(known["cutoff_s"].drop_nulls().unique(), reverse=True)
    shown = [None, *cutoffs[:MOST_CUTOFFS]]
    ready = points(known.filter(pl.col("cutoff_s").is_in(shown, nulls_equal=True)), log)
    if len({row["value"] for row in ready.rows}) < 2:
        above = " above 0" if log else ""
        return nothing_to_draw(what, f"fewer than two values of {name}{above} occur among {study.units} that ended")
    columns = {cutoff: "no cut-off" if cutoff is None else f"run time < {cutoff:,} s" for cutoff in shown}
    present = _present(ready)
    rows = [_drawn(row) | {"column": columns[row["cutoff_s"]]} for row in ready.rows]
    notes = [
        {"outcome": outcome, "column": label, "note": note(correlations, feature, outcome, cutoff)}
        for outcome in present
        for cutoff, label in columns.items()
    ]
    x = _x(feature, ready.rows, log)
    panel = _panel("groups", x, _y(ready.rows), _size(ready.rows, study), _tooltip(feature, ready))
    chart = panel.properties(width=_width(len(columns), _GAP), height=_HEIGHT).facet(
        row=alt.Row("outcome:N", sort=present, title=None, header=alt.Header(labelOrient="right")),
        column=alt.Column("column:N", sort=list(columns.values()), title=None),
        spacing=_GAP,
    )
    title = trend_of_request(correlations, feature, study)
    caption = f"One point per distinct {name}: the mean run time of its {study.units}. {_numbers(ready, study)}"
    caption += _remarks(ready, study, log)
    if cutoffs:
        caption += " A cut-off selects on the outcome: it leaves out the long runs."
    if len(cutoffs) > MOST_CUTOFFS:
        caption += f" {count(len(cutoffs) - MOST_CUTOFFS, 'smaller cut-off')} left to the table."
    return figure(
        chart,
        {"groups": [*rows, *notes]},
        study,
        title=title,
        subtitle=_subtitle(name, study),
        caption=caption,
        alt_text=f"Scatter plots of mean run time against {name}, for {listed(present)}, without and with cut-offs of "
        f"the run time. {title}.",
    )


def runtime_by_measured_use(given: Inputs, study: Study, *, log: bool) -> Figure:
    """Mean run time against measured use, without a cut-off; a column of panels per feature, a row per outcome."""
    groups, correlations = given["runtime_by_group"], given["correlations"]
    what = "Run time by measured use" + (" (logarithmic)" if log else "")
    known = groups.filter(
        pl.col("feature").is_in(MEASURED) & pl.col("cutoff_s").is_null() & pl.col("outcome_set").is_in(SETS)
    )
    if not known.height:
        return nothing_to_draw(what, f"no {study.unit} that succeeded or failed has a measured use and a run time")
    ready = points(known, log)
    by_feature = {name: [row for row in ready.rows if row["feature"] == name] for name in MEASURED}
    features = [name for name, rows in by_feature.items() if len({row["value"] for row in rows}) > 1]
    if not features:
        above = " above 0" if log else ""
        return nothing_to_draw(what, f"no measured use has two values{above} among {study.units} that ended")
    ready = Points([row for name in features for row in by_feature[name]], ready.zeros, ready.merged)
    present = _present(ready)
    datasets, panels = {}, []
    for feature in features:
        for outcome in present:
            mine = [row for row in by_feature[feature] if row["outcome_set"] == outcome]
            text = {"outcome": outcome, "note": note(correlations, feature, outcome, None)}
            datasets[f"{outcome}_{feature}"] = [*map(_drawn, mine), text]
            heading = alt.TitleParams(capital(outcome), fontSize=12, offset=4, anchor="middle", frame="group")
            panel = _panel(
                f"{outcome}_{feature}",
                _x(feature, by_feature[feature], log),
                # The panels of a row have one run time axis, at the left.
                _y(ready.rows, labelled=outcome == present[0]),
                _size(ready.rows, study),
                _tooltip(feature, ready),
            )
            panel = panel.properties(width=_width(len(present), 20), height=_HEIGHT)
            panels.append(panel.properties(title=heading) if feature == features[0] else panel)
    # Legends alike are drawn once.
    chart = alt.concat(*panels, columns=len(present), spacing={"row": 2 * _GAP, "column": 20}).resolve_scale(
        x="independent", y="independent", size="shared", color="shared"
    )
    title = trend_of_use(correlations, features, study)
    names = listed([FEATURE_NAMES[name] for name in features])
    caption = (
        f"One point per whole unit of measured use: the mean run time of its {study.units}, without a cut-off. "
        f"{_numbers(ready, study)}"
    )
    return figure(
        chart,
        datasets,
        study,
        title=title,
        subtitle=_subtitle(names, study),
        caption=caption + _remarks(ready, study, log),
        alt_text=f"Scatter plots of mean run time against {names}, for {listed(present)}. {title}.",
    )


def _present(ready: Points) -> list[str]:
    return [name for name in SETS if any(row["outcome_set"] == name for row in ready.rows)]


def _width(panels: int, gap: int) -> int:
    return (_WIDTH - gap * (panels - 1)) // panels


def _drawn(row: dict) -> dict:
    drawn = {"outcome": row["outcome_set"], "y": on_log_time(row["mean_s"])}
    drawn |= {name: row[name] for name in ("value", "jobs", "mean_s", "median_s")}
    return drawn | ({"from": row["from"], "to": row["to"]} if "from" in row else {})


def _y(rows: Sequence[dict], labelled: bool = True) -> alt.Y:
    """The axis of run times that all panels share."""
    axis = time_axis("Mean run time" if labelled else None, _FEW_TICKS_S, labels=labelled, ticks=labelled)
    return alt.Y(
        "y:Q", scale=log_scale(time_domain([on_log_time(row["mean_s"]) for row in rows], _HEADROOM)), axis=axis
    )


def _size(rows: Sequence[dict], study: Study) -> alt.Size:
    """The sizes of points, alike in all panels."""
    most = max(row["jobs"] for row in rows)
    # One significant digit, rounded down, so that no size in the legend is beyond the largest point.
    digit = 10 ** (len(str(most)) - 1)
    top = most // digit * digit
    legend = alt.Legend(
        title=f"{study.units} in a group",
        orient="bottom",
        direction="horizontal",
        values=sorted({1, max(1, top // 4), top}),
        symbolStrokeWidth=1,
        format=",.0f",
    )
    return alt.Size(
        "jobs:Q", scale=alt.Scale(type="sqrt", domain=[1, max(2, most)], range=[14, 260], zero=False), legend=legend
    )


def _x(feature: str, rows: Sequence[dict], log: bool) -> alt.X:
    values = [row["value"] for row in rows]
    # On two lines, because a panel is narrow.
    title = feature_title(feature).replace(" (", "\n(").split("\n")
    shown = {"title": title, "format": ",.6~g", "labelOverlap": True}
    if log:
        domain = log_domain(values)
        axis = alt.Axis(values=log_ticks(domain), **shown)
        return alt.X("value:Q", scale=log_scale(domain), axis=axis)
    margin = 0.03 * max(values)
    # A label near the end of an axis stays off the next panel.
    axis = alt.Axis(tickCount=3, labelFlush=15, **shown)
    return alt.X("value:Q", scale=alt.Scale(domain=[-margin, max(values) + margin], nice=False), axis=axis)


def _tooltip(feature: str, ready: Points) -> list[alt.Tooltip]:
    value = tips(form=",.6~g", value=feature_title(feature))
    if feature in ready.merged:
        value += [alt.Tooltip("from:Q", title="values from", format=",.6~g"), *tips(form=",.6~g", to="values to")]
    return [
        *tips("outcome"),
        *value,
        *tips(form=",", jobs="n"),
        *tips(form=",.1f", mean_s="mean run time (s)", median_s="median run time (s)"),
    ]


def _panel(dataset: str, x: alt.X, y: alt.Y, size: alt.Size, tooltip: list[alt.Tooltip]) -> alt.LayerChart:
    base = chart_of(dataset)
    outcome = {"scale": COLOURS, "legend": None}
    dots = (
        base.transform_filter("isValid(datum.value)")
        .mark_circle(opacity=0.65)
        .encode(
            x=x,
            y=y,
            color=alt.Color("outcome:N", **outcome),
            stroke=alt.condition(FEW, alt.Stroke("outcome:N", **outcome), alt.value("white")),
            strokeWidth=alt.condition(FEW, alt.value(1), alt.value(0.4)),
            fillOpacity=alt.condition(FEW, alt.value(0), alt.value(1)),
            size=size,
            tooltip=tooltip,
        )
    )
    corner = (
        base.transform_filter("isValid(datum.note)")
        .mark_text(align="left", baseline="top", fontSize=10.5, color=INK)
        .encode(x=alt.value(5), y=alt.value(5), text="note:N")
    )
    return dots + corner


def _subtitle(names: str, study: Study) -> str:
    return (
        f"Mean run time of {study.units} by {names}; larger points stand for more {study.units}, hollow ones for "
        f"fewer than {FEWEST_ENDED}. In the corners: Pearson's correlation of the group means, n groups."
    )


def _numbers(ready: Points, study: Study) -> str:
    """How many jobs are drawn without a cut-off."""
    parts = []
    for outcome in _present(ready):
        jobs: dict[str, int] = {}
        for row in ready.rows:
            if row["outcome_set"] == outcome and row["cutoff_s"] is None:
                jobs[row["feature"]] = jobs.get(row["feature"], 0) + row["jobs"]
        least, most = min(jobs.values(), default=0), max(jobs.values(), default=0)
        parts.append(f"{outcome} {most:,}" if least == most else f"{outcome} {least:,} to {most:,} by feature")
    return f"n ({study.units} drawn, no cut-off): {', '.join(parts)}."


def _remarks(ready: Points, study: Study, log: bool) -> str:
    text = few_in_a_mean(ready.rows, study)
    if ready.merged:
        names = listed([FEATURE_NAMES[name] for name in ready.merged])
        text += (
            f" Too many values of {names} to draw: neighbouring groups are merged into 100 bins of equal width"
            f"{' on the logarithmic axis' if log else ''}, their means weighted by n."
        )
    if log and ready.zeros:
        text += f" A logarithmic axis has no 0: {count(ready.zeros, 'group')} at 0, over all panels, not drawn."
    text += (
        " The correlations are of all groups, each of the same weight, and of values and means themselves, not their "
        "logarithms: the same on both axes."
    )
    if any(row["mean_s"] < 1 for row in ready.rows):
        text += " Means below 1 s stand at 1 s."
    return text + (
        " A trend is called clear where its p-value, adjusted over the features (Holm), is below the study's "
        "significance level."
    )
