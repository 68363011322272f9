"""Which share of the ended jobs failed, by the value of each feature."""

import altair as alt
import polars as pl

from ttf.charts.axes import percent_axis
from ttf.charts.encodings import picked, tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.picking import Picks
from ttf.charts.text import FEATURE_NAMES, FEATURE_UNITS, count, feature_title, labels, listed, percent, significant
from ttf.charts.theme import FAINT, OUTCOME_COLOURS
from ttf.inputs import Inputs

MOST_VALUES = 20
COLUMNS = 3
_ROW = 13
_NUMERIC_ORDER = pl.col("value").cast(pl.Float64, strict=False)


def failure_share(given: Inputs, study: Study) -> Figure:
    """Failure share with its Wilson interval by feature value; a panel per feature."""
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
    charts = [panel.chart(study) for panel in features]
    chart = alt.concat(*charts, columns=COLUMNS, spacing={"row": 18, "column": 12}).resolve_scale(
        x="shared", y="independent"
    )
    caption = (
        f"Failures among the {study.units} that ended in success or failure, with 95 % Wilson intervals (not adjusted "
        f"for the number of values); n = {count(failures + successes, study.unit)}, {count(failures, 'failure')}. "
        "Values in their order."
    )
    limited = outcomes.filter(pl.col("outcome") == "failure")["at_time_limit"].sum()
    if limited:
        caption += f" {limited:,} of the failures ended at their time limit."
    if cut:
        caption += (
            f" Of {listed([FEATURE_NAMES[name] for name in cut])} only the {MOST_VALUES} values with the most "
            f"{study.units}."
        )
    if single:
        caption += f" Left out, with one value only: {listed([FEATURE_NAMES[name] for name in single])}."
    title = _title(features, overall, study)
    types = [row["value"] for panel in features if panel.feature == "gpu_type" for row in panel.rows]
    return figure(
        chart,
        {panel.feature: panel.rows for panel in features} | {"all": [{"share": overall}]},
        study,
        title=title,
        subtitle=f"Share of ended {study.units} that failed, with its 95 % interval; dashed: all ended {study.units}.",
        caption=caption,
        alt_text=f"The failure share of each value of {listed([FEATURE_NAMES[p.feature] for p in features])}. {title}.",
        picks=Picks(("gpu_type",), "value", {name: name for name in types}) if types else None,
    )


class _Panel:
    """The commonest values of one feature, in order."""

    def __init__(self, feature: str, part: pl.DataFrame) -> None:
        self.feature = feature
        kept = part.sort("jobs", descending=True, maintain_order=True).head(MOST_VALUES)
        # Numbers as numbers; text (all null as numbers) by itself.
        kept = kept.sort("value") if feature == "gpu_type" else kept.sort(_NUMERIC_ORDER)
        shown = kept["value"] if feature == "gpu_type" else kept["value"].map_elements(_number, pl.String)
        if shown.n_unique() < shown.len():
            shown = kept["value"]
        named = labels(shown)
        self.rows = [
            {"value": named[text]}
            | picked(row, "ended", "failures", share="failure_share", low="ci_low", high="ci_high")
            for text, row in zip(shown, kept.iter_rows(named=True), strict=True)
        ]

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
        scale = alt.Scale(domain=[0, 1])
        axis = percent_axis(values=[0, 0.5, 1])
        intervals = base.mark_rule(strokeWidth=1.6, color=OUTCOME_COLOURS["failure"], opacity=0.6).encode(
            x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q"
        )
        dots = base.mark_circle(size=34, color=OUTCOME_COLOURS["failure"], opacity=1).encode(x="share:Q")
        line = chart_of("all").mark_rule(strokeDash=[4, 3], color=FAINT)
        line = line.encode(x="share:Q", tooltip=tips(form=".1%", share="all"))
        heading = alt.TitleParams(feature_title(self.feature), fontSize=11, offset=4, anchor="start", frame="group")
        return (line + intervals + dots).properties(width=160, height=_ROW * len(self.rows) + 6, title=heading)


def _number(text: str) -> str:
    return significant(float(text), 4)


def _title(features: list[_Panel], overall: float, study: Study) -> str:
    if overall == 0:
        return f"None of the {study.units} that ended failed"
    if overall == 1:
        return f"All {study.units} that ended failed"
    title = f"Of the {study.units} that ended, {percent(overall)} failed"
    apart = []
    for panel in features:
        lowest = min(panel.rows, key=lambda row: row["high"])
        highest = max(panel.rows, key=lambda row: row["low"])
        apart.append((highest["low"] - lowest["high"], panel.feature, lowest, highest))
    # By the gap between two intervals, not between two shares: those of rare values are far apart by chance.
    gap, feature, lowest, highest = max(apart, key=lambda item: item[0])
    if gap <= 0:
        return f"{title}; no two values of a feature differ beyond their intervals"
    unit = f" ({FEATURE_UNITS[feature]})" if feature in FEATURE_UNITS else ""
    return (
        f"{title}; {FEATURE_NAMES[feature]} sets them apart most: {percent(lowest['share'])} at {lowest['value']}, "
        f"{percent(highest['share'])} at {highest['value']}{unit}"
    )
