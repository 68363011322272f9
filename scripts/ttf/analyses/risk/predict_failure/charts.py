"""Failure risk: predicted against observed, what carries the score, how it moves, what acting on it would save."""

from collections.abc import Mapping, Sequence

import altair as alt
import polars as pl

from ttf.analyses.risk.predict_failure import PROBABILITY
from ttf.analyses.risk.predict_failure.risk_labels import MODELS, RANDOM, feature_name, feature_unit, feature_value
from ttf.analyses.risk.predict_failure.verdict import Origin, origins, reported
from ttf.display.charts.axes import percent_axis
from ttf.display.charts.encodings import coloured, picked, tips
from ttf.display.charts.figure import Figure, Study, chart_of, figure, fitted, nothing_to_draw
from ttf.display.charts.text import labels
from ttf.display.charts.theme import ACCENT, CANCELLED, FAILURE, FAINT, INFRA, INK, OPEN_LINE, THIRD
from ttf.engine.words import capital, listed, number, plural, share
from ttf.records.inputs import Inputs

# Of a feature with many values those that most jobs have.
MOST_VALUES = 11
# Room above the largest share of the calibration, and the least that an axis reaches to.
HEADROOM, LEAST_SHARE = 1.05, 0.05
_TEMPORAL, _RANDOM = "last tested origin", "random split: sees the future"
_MODEL_COLOURS = {"logistic": ACCENT, "gradient_boosting": INFRA, "nested_rate": THIRD, "base_rate": CANCELLED}
_ORACLE, _EVERYONE = "all that fail are known", "all are tried"


def risk_calibration(given: Inputs, study: Study) -> Figure:
    """Of tenths of the test jobs by their predicted probability the share that failed: last tested origin, random."""
    what, evaluation = "Predicted and observed failures", given["risk_evaluation"]
    served = evaluation.filter("serves", stage=PROBABILITY, slice="all", metric="pr_auc").select("split", "model")
    tenths = given["risk_calibration"].join(served, on=["split", "model"], how="semi", maintain_order="left")
    origin = reported(origins(evaluation))
    if origin is None:
        return nothing_to_draw(what, f"no probability was predicted for enough {study.units}")
    last = tenths.filter(split=origin.split)
    names = {origin.split: _TEMPORAL, RANDOM: _RANDOM}
    rows = [
        picked(row, "tenth", "n", "failures", "predicted", "observed", low="ci_low_clustered", high="ci_high_clustered")
        | {"of": names[row["split"]]}
        for row in tenths.filter(pl.col("split").is_in(list(names))).iter_rows(named=True)
    ]
    ends = [row[name] for row in rows for name in ("predicted", "observed")]
    ends += [row["high"] or 0 for row in rows if row["of"] == _TEMPORAL]
    top = min(1.0, max(HEADROOM * max(ends), LEAST_SHARE))
    scale = alt.Scale(domain=[0, top], nice=False)
    x = alt.X("predicted:Q", scale=scale, axis=percent_axis("Predicted", tickCount=5))
    y = alt.Y("observed:Q", scale=scale, axis=percent_axis("Failed", tickCount=5))
    present = [name for name in (_TEMPORAL, _RANDOM) if any(row["of"] == name for row in rows)]
    colours = {name: {_TEMPORAL: ACCENT, _RANDOM: CANCELLED}[name] for name in present}
    colour = coloured("of", colours, title=None, orient="bottom", symbolType="circle", columns=2)
    right = chart_of("right").encode(x=alt.X("at:Q", scale=scale), y="at:Q")
    right = right.mark_line(color=FAINT, strokeDash=[4, 3], strokeWidth=1)
    base = chart_of("tenths").encode(x=x, color=colour)
    is_last = f"datum.of === '{_TEMPORAL}'"
    rules = base.transform_filter(f"{is_last} && isValid(datum.low)").mark_rule(strokeWidth=1.8)
    tooltip = [*tips(of="test"), *tips("predicted", "observed", form=".1%", low="95% from", high="95% to")]
    tooltip += tips(form=",", n="n", failures="failures")
    size = alt.condition(is_last, alt.value(60), alt.value(24))
    points = base.mark_circle(opacity=1).encode(y=y, size=size, tooltip=tooltip)
    lines = base.transform_filter(f"!({is_last})").mark_line(strokeWidth=1).encode(y=y)
    chart = right + lines + rules.encode(y="low:Q", y2="high:Q") + points
    n = f"n = {plural(last['n'].sum(), study.unit)}, {plural(last['failures'].sum(), 'failure')}"
    return figure(
        fitted(chart, study, 290),
        {"tenths": rows, "right": [{"at": 0}, {"at": top}]},
        study,
        title=what,
        subtitle=f"{capital(MODELS[origin.model])}: tenths of the test {study.units}, 95% CI; dashed: as predicted",
        caption=f"{n}{_slope(origin)}. {_clusters(last)}",
        alt_text=f"Points by the dashed diagonal: {_spoken(last)}.",
    )


def _slope(origin: Origin) -> str:
    """The slope of calibration, where it is known."""
    slope = origin.measures.get("calibration_slope", {}).get("estimate")
    return "" if slope is None else f"; slope {number(slope)}, right: 1"


def _clusters(rows: pl.DataFrame) -> str:
    by = rows.drop_nulls("ci_low_clustered")["cluster_by"].unique().drop_nulls().sort().to_list()
    if not by:
        return "No intervals: too few clusters."
    missing = "; some have too few clusters" if rows["ci_low_clustered"].null_count() else ""
    return f"Clustered by {listed(by)}{missing}."


def _spoken(tenths: pl.DataFrame) -> str:
    ends = [tenths.sort("predicted").row(place, named=True) for place in (0, -1)]
    return listed([f"predicted {share(row['predicted'])}, failed {share(row['observed'])}" for row in ends])


def risk_importance(given: Inputs, study: Study) -> Figure:
    """How much PR-AUC is lost without each feature."""
    what = "PR-AUC lost without a feature"
    how = {"permuted": "values permuted", "left_out": "trained without any history"}
    known = given["risk_importance"].drop_nulls("drop")
    if not known.height:
        return nothing_to_draw(what, f"too few test {study.units}, or no feature is used")
    named = labels(known["feature"])
    rows = [
        picked(row, "drop", low="ci_low_clustered", high="ci_high_clustered")
        | {"how": how[row["how"]]}
        | {"feature": "All history" if row["how"] == "left_out" else capital(feature_name(named[row["feature"]]))}
        for row in known.sort("how", "drop", descending=True, maintain_order=True).iter_rows(named=True)
    ]
    present = [name for name in how.values() if any(row["how"] == name for row in rows)]
    colours = dict(zip(present, (ACCENT, FAILURE), strict=False))
    order = list(dict.fromkeys(row["feature"] for row in rows))
    base = chart_of("features").encode(
        y=alt.Y("feature:N", sort=order, title=None, axis=alt.Axis(domain=False, ticks=False, grid=True)),
        color=coloured("how", colours, title=None, orient="bottom", symbolType="circle"),
        tooltip=[*tips("feature", "how"), *tips("drop", form=".3f", low="95% from", high="95% to")],
    )
    x = alt.X("drop:Q", axis=alt.Axis(title="PR-AUC lost", tickCount=5))
    nought = chart_of("features").mark_rule(color=FAINT, strokeDash=[3, 3]).encode(x=alt.datum(0))
    rules = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.8).encode(x="low:Q", x2="high:Q")
    first = known.row(0, named=True)
    spoken = listed([f"{row['feature']} {number(row['drop'])}" for row in rows[:4]])
    return figure(
        fitted(nought + rules + base.mark_circle(size=55, opacity=1).encode(x=x), study, 22 * len(order) + 70),
        {"features": rows},
        study,
        title=what,
        subtitle=f"Of the model that serves, on the test {study.units} of the last tested origin; 95% CI",
        caption=f"n = {plural(first['n'], study.unit)}, {plural(first['failures'], 'failure')}. {_clusters(known)}",
        alt_text=f"Points with intervals; {spoken}.",
    )


def risk_dependence(given: Inputs, study: Study) -> Figure:
    """The mean predicted probability by the value of each of the features that matter most, a panel each."""
    what, table = "Predicted probability by feature", given["risk_dependence"]
    if not table.height:
        return nothing_to_draw(what, "no feature with values to show is used")
    about = {row["feature"]: row for row in given["risk_features"].iter_rows(named=True)}
    rows: dict[str, list[dict]] = {}
    for name in table["feature"].unique(maintain_order=True):
        rows[f"panel{len(rows)}"] = _values(table.filter(feature=name), about[name])
    top = HEADROOM * max(row["probability"] for panel in rows.values() for row in panel)
    named = labels(table["feature"].unique(maintain_order=True))
    panels = [
        _panel(place, f"{capital(feature_name(label))}{_unit(about[name])}", panel, min(top, 1.0))
        for (name, label), (place, panel) in zip(named.items(), rows.items(), strict=True)
    ]
    first = table.filter(feature=table["feature"][0])["jobs"].sum()
    return figure(
        alt.concat(*panels, columns=2, spacing=24),
        rows,
        study,
        title=what,
        subtitle=f"Mean over the test {study.units} were the feature the same in all of them; last tested origin",
        caption=f"n = {plural(first, study.unit)}. Size of a point: {study.units} of about that value.",
        alt_text=f"Points by value, a panel each of {listed([feature_name(label) for label in named.values()])}.",
    )


def _values(table: pl.DataFrame, about: Mapping) -> list[dict]:
    """The rows of a panel; different values of a trace keep different labels."""
    kept = table.top_k(MOST_VALUES, by="jobs").sort("place") if table.height > MOST_VALUES else table.sort("place")
    shown = {value: feature_value(value, about["kind"], about["columns"]) for value in kept["value"]}
    distinct = len(set(shown.values())) == len(shown)
    named = labels(shown.values()) if distinct else labels(shown)
    return [
        picked(row, "jobs", "probability") | {"value": named[shown[row["value"]] if distinct else row["value"]]}
        for row in kept.iter_rows(named=True)
    ]


def _unit(about: Mapping) -> str:
    if about["kind"] == "history":
        return ": share that failed"
    unit = feature_unit(about["columns"]) if about["kind"] == "numeric" else ""
    return f" ({unit})" if unit else ""


def _panel(name: str, title: str, rows: Sequence[Mapping], top: float) -> alt.LayerChart:
    axis = alt.Axis(domain=False, ticks=False, grid=True, labelLimit=120)
    base = chart_of(name).encode(y=alt.Y("value:N", sort=[row["value"] for row in rows], title=None, axis=axis))
    x = alt.X("probability:Q", scale=alt.Scale(domain=[0, top], nice=False), axis=percent_axis(tickCount=4))
    size = alt.Size("jobs:Q", scale=alt.Scale(range=[30, 160]), legend=None)
    tooltip = [*tips("value"), *tips("probability", form=".1%"), *tips(form=",", jobs="n")]
    points = base.mark_circle(color=ACCENT, opacity=1).encode(x=x, size=size, tooltip=tooltip)
    return points.properties(title=alt.TitleParams(title, fontSize=12), width=215, height=alt.Step(17))


def risk_decisions(given: Inputs, study: Study) -> Figure:
    """GPU-hours saved in the net by how many jobs are tried on one GPU first, by what they are ordered."""
    what, table = "Net saving of a trial on one GPU", given["risk_decisions"]
    if not table.height:
        return nothing_to_draw(what, "no trial can be judged")
    origin = reported(origins(given["risk_evaluation"]))
    served = origin and origin.model
    names = MODELS | {"oracle": _ORACLE}
    colours = {MODELS[model]: colour for model, colour in _MODEL_COLOURS.items() if model in table["model"]}
    colours[_ORACLE] = INK
    curves, chosen = (
        [
            picked(row, "flagged", "caught", share="flagged_share", net="net_gpu_hours") | {"by": names[row["model"]]}
            for row in table.filter(which, pl.col("model").is_in(list(of))).iter_rows(named=True)
        ]
        for which, of in ((True, names), ("chosen", MODELS))
    )
    band = [
        picked(row, share="flagged_share", low="ci_low_clustered", high="ci_high_clustered")
        for row in table.filter(pl.col("ci_low_clustered").is_not_null(), model=served).iter_rows(named=True)
    ]
    everyone = table.filter(model="everyone").row(0, named=True)
    notes = [{"share": 1, "net": everyone["net_gpu_hours"], "note": _EVERYONE}]
    axis = percent_axis(f"Tried, of the {study.units} of more than one GPU")
    x = alt.X("share:Q", scale=alt.Scale(domain=[0, 1]), axis=axis)
    y = alt.Y("net:Q", axis=alt.Axis(title="GPU-hours saved, net", format=",.6~g"))
    colour = coloured("by", colours, title=None, orient="bottom", columns=2 if study.narrow else 4, symbolType="stroke")
    tooltip = [*tips(by="order"), *tips(form=",", flagged="tried", caught="failed within the trial")]
    tooltip += tips(form=",.3~g", net="net GPU-hours")
    lines = chart_of("curves").mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, order="share:Q", tooltip=tooltip)
    points = chart_of("chosen").mark_circle(size=70, opacity=1).encode(x=x, y=y, color=colour, tooltip=tooltip)
    end = chart_of("all").encode(x=x, y=y, text="note:N")
    end = end.mark_text(align="right", dx=-12, dy=-1, fontSize=12, color=FAINT)
    ends = chart_of("band").mark_area(opacity=0.12, color=ACCENT).encode(x=x, y=alt.Y("low:Q"), y2="high:Q")
    nought = chart_of("all").mark_rule(color=OPEN_LINE, strokeDash=[3, 3]).encode(y=alt.datum(0))
    best = table.filter(model="oracle")["net_gpu_hours"].max()
    mine = next((row["net"] for row in chosen if row["by"] == MODELS.get(served)), None)
    told = "" if mine is None else f"; {MODELS[served]}, which serves, {number(mine)}"
    return figure(
        fitted(ends + nought + lines + points + end, study, 300),
        {"band": band, "curves": curves, "chosen": chosen, "all": notes},
        study,
        title=what,
        subtitle=f"{capital(study.units)} by expected saving; dot: those above 0; band: 95% CI; last tested origin",
        caption=f"n = {plural(everyone['flagged'], study.unit)} of more than one GPU. An upper bound.",
        alt_text=f"Curves of net GPU-hours; were all failures known {number(best or 0)}{told}.",
    )


CHARTS = {
    "risk_calibration": risk_calibration,
    "risk_importance": risk_importance,
    "risk_dependence": risk_dependence,
    "risk_decisions": risk_decisions,
}
