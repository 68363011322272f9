"""Charts of failure risk: calibration, importance, partial dependence, and GPU time saved by acting on it."""

from collections.abc import Mapping, Sequence

import altair as alt
import polars as pl

from ttf.analyses.risk.predict_failure import PROBABILITY
from ttf.analyses.risk.predict_failure.risk_labels import MODELS, RANDOM, feature_name, feature_unit, feature_value
from ttf.analyses.risk.predict_failure.verdict import last_tested, read_origins
from ttf.display.charts.axes import percent_axis
from ttf.display.charts.encodings import colour_by, pick_columns, tooltips
from ttf.display.charts.figure import Figure, Study, empty_figure, fit_width, make_chart, make_figure
from ttf.display.charts.text import make_labels
from ttf.display.charts.theme import ACCENT, CANCELLED, FAILURE, FAINT, INK, OPEN_LINE, THIRD
from ttf.engine.words import capitalise, join_list, number, plural, share
from ttf.records.inputs import Inputs

# Most values drawn per feature; the most frequent ones are kept.
MOST_VALUES = 11
# Headroom above the largest share, and the least upper limit of an axis.
HEADROOM, LEAST_SHARE = 1.05, 0.05
_TEMPORAL, _RANDOM = "last tested origin", "random split: sees the future"
_MODEL_COLOURS = {"logistic": ACCENT, "nested_rate": THIRD, "base_rate": CANCELLED}
_ORACLE, _EVERYONE = "all that fail are known", "all are tried"


def risk_calibration(inputs: Inputs, study: Study) -> Figure:
    """Draw the share that failed by tenths of predicted probability: last tested origin and random split."""
    title, evaluation = "Predicted and observed failures", inputs["risk_evaluation"]
    served = evaluation.filter("serves", stage=PROBABILITY, slice="all", metric="pr_auc").select("split", "model")
    tenths = inputs["risk_calibration"].join(served, on=["split", "model"], how="semi", maintain_order="left")
    origin = last_tested(read_origins(evaluation))
    if origin is None:
        return empty_figure(title, f"no probability was predicted for enough {study.units}")
    last_tenths = tenths.filter(split=origin.split)
    names = {origin.split: _TEMPORAL, RANDOM: _RANDOM}
    rows = [
        pick_columns(
            row, "tenth", "n", "failures", "predicted", "observed", low="ci_low_clustered", high="ci_high_clustered"
        )
        | {"of": names[row["split"]]}
        for row in tenths.filter(pl.col("split").is_in(list(names))).iter_rows(named=True)
    ]
    shares = [row[name] for row in rows for name in ("predicted", "observed")]
    shares += [row["high"] or 0 for row in rows if row["of"] == _TEMPORAL]
    limit = min(1.0, max(HEADROOM * max(shares), LEAST_SHARE))
    scale = alt.Scale(domain=[0, limit], nice=False)
    x = alt.X("predicted:Q", scale=scale, axis=percent_axis("Predicted", tickCount=5))
    y = alt.Y("observed:Q", scale=scale, axis=percent_axis("Failed", tickCount=5))
    colours = {_TEMPORAL: ACCENT, _RANDOM: CANCELLED}
    colours = {name: colour for name, colour in colours.items() if any(row["of"] == name for row in rows)}
    colour = colour_by("of", colours, alt.Legend(title=None, orient="bottom", symbolType="circle", columns=2))
    diagonal = make_chart("right").encode(x=alt.X("at:Q", scale=scale), y="at:Q")
    diagonal = diagonal.mark_line(color=FAINT, strokeDash=[4, 3], strokeWidth=1)
    base = make_chart("tenths").encode(x=x, color=colour)
    is_last = f"datum.of === '{_TEMPORAL}'"
    rules = base.transform_filter(f"{is_last} && isValid(datum.low)").mark_rule(strokeWidth=1.8)
    tooltip = [*tooltips(of="test"), *tooltips("predicted", "observed", form=".1%", low="95% from", high="95% to")]
    tooltip += tooltips(form=",", n="n", failures="failures")
    size = alt.condition(is_last, alt.value(60), alt.value(24))
    points = base.mark_circle(opacity=1).encode(y=y, size=size, tooltip=tooltip)
    lines = base.transform_filter(f"!({is_last})").mark_line(strokeWidth=1).encode(y=y)
    chart = diagonal + lines + rules.encode(y="low:Q", y2="high:Q") + points
    n_jobs, failures = (int(last_tenths[name].sum()) for name in ("n", "failures"))
    slope = origin.measures.get("calibration_slope", {}).get("estimate")
    slope_text = "" if slope is None else f"; slope {number(slope)}, right: 1"
    return make_figure(
        fit_width(chart, study, 290),
        {"tenths": rows, "right": [{"at": 0}, {"at": limit}]},
        study,
        title=title,
        subtitle=f"{capitalise(MODELS[origin.model])}: tenths of the test {study.units}, 95% CI; dashed: as predicted",
        caption=f"n = {plural(n_jobs, study.unit)}, {plural(failures, 'failure')}{slope_text}. "
        f"{_describe_clusters(last_tenths)}",
        alt_text=f"Points by the dashed diagonal: {_describe_extremes(last_tenths)}.",
    )


def _describe_clusters(rows: pl.DataFrame) -> str:
    cluster_names = rows.drop_nulls("ci_low_clustered")["cluster_by"].unique().drop_nulls().sort().to_list()
    if not cluster_names:
        return "No intervals: too few clusters."
    missing = "; some have too few clusters" if rows["ci_low_clustered"].null_count() else ""
    return f"Clustered by {join_list(cluster_names)}{missing}."


def _describe_extremes(tenths: pl.DataFrame) -> str:
    extremes = [tenths.sort("predicted").row(index, named=True) for index in (0, -1)]
    return join_list([f"predicted {share(row['predicted'])}, failed {share(row['observed'])}" for row in extremes])


def risk_importance(inputs: Inputs, study: Study) -> Figure:
    """Draw the PR-AUC lost without each feature."""
    title = "PR-AUC lost without a feature"
    labels_by_how = {"permuted": "values permuted", "left_out": "trained without any history"}
    drops = inputs["risk_importance"].drop_nulls("drop")
    if not drops.height:
        return empty_figure(title, f"too few test {study.units}, or no feature is used")
    names = {feature: feature_name(label) for feature, label in make_labels(drops["feature"]).items()}
    rows = [
        pick_columns(row, "drop", low="ci_low_clustered", high="ci_high_clustered")
        | {"how": labels_by_how[row["how"]]}
        | {"feature": "All history" if row["how"] == "left_out" else capitalise(names[row["feature"]])}
        for row in drops.sort("how", "drop", descending=True, maintain_order=True).iter_rows(named=True)
    ]
    trainings = [name for name in labels_by_how.values() if any(row["how"] == name for row in rows)]
    colours = dict(zip(trainings, (ACCENT, FAILURE), strict=False))
    order = list(dict.fromkeys(row["feature"] for row in rows))
    base = make_chart("features").encode(
        y=alt.Y("feature:N", sort=order, title=None, axis=alt.Axis(domain=False, ticks=False, grid=True)),
        color=colour_by("how", colours, alt.Legend(title=None, orient="bottom", symbolType="circle")),
        tooltip=[*tooltips("feature", "how"), *tooltips("drop", form=".3f", low="95% from", high="95% to")],
    )
    x = alt.X("drop:Q", axis=alt.Axis(title="PR-AUC lost", tickCount=5))
    zero_line = make_chart("features").mark_rule(color=FAINT, strokeDash=[3, 3]).encode(x=alt.datum(0))
    rules = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.8).encode(x="low:Q", x2="high:Q")
    row = drops.row(0, named=True)
    n = f"n = {plural(row['n'], study.unit)}, {plural(row['failures'], 'failure')}"
    description = join_list([f"{row['feature']} {number(row['drop'])}" for row in rows[:4]])
    return make_figure(
        fit_width(zero_line + rules + base.mark_circle(size=55, opacity=1).encode(x=x), study, 22 * len(order) + 70),
        {"features": rows},
        study,
        title=title,
        subtitle=f"Of the model that serves, on the test {study.units} of the last tested origin; 95% CI",
        caption=f"{n}. {_describe_clusters(drops)}",
        alt_text=f"Points with intervals; {description}.",
    )


def risk_dependence(inputs: Inputs, study: Study) -> Figure:
    """Draw the mean predicted probability by value, one panel for each of the most important features."""
    title, table = "Predicted probability by feature", inputs["risk_dependence"]
    if not table.height:
        return empty_figure(title, "no feature with values to show is used")
    features = {row["feature"]: row for row in inputs["risk_features"].iter_rows(named=True)}
    rows: dict[str, list[dict]] = {}
    for name in table["feature"].unique(maintain_order=True):
        rows[f"panel{len(rows)}"] = _make_panel_rows(table.filter(feature=name), features[name])
    limit = HEADROOM * max(row["probability"] for panel in rows.values() for row in panel)
    feature_labels = make_labels(table["feature"].unique(maintain_order=True))
    panels = [
        _draw_panel(chart_name, f"{capitalise(feature_name(label))}{_unit(features[name])}", panel, min(limit, 1.0))
        for (name, label), (chart_name, panel) in zip(feature_labels.items(), rows.items(), strict=True)
    ]
    n_jobs = int(table.filter(feature=table["feature"][0])["jobs"].sum())
    return make_figure(
        alt.concat(*panels, columns=2, spacing=24),
        rows,
        study,
        title=title,
        subtitle=f"Mean over the test {study.units} if all had this value; last tested origin",
        caption=f"n = {plural(n_jobs, study.unit)}. Larger points have more {study.units} near that value.",
        alt_text=f"Points by value, a panel each of {join_list(list(map(feature_name, feature_labels.values())))}.",
    )


def _make_panel_rows(table: pl.DataFrame, feature: Mapping) -> list[dict]:
    """Return the MOST_VALUES most frequent values of a feature as chart rows; distinct values keep distinct labels."""
    shown_rows = (table.top_k(MOST_VALUES, by="jobs") if table.height > MOST_VALUES else table).sort("position")
    texts = {value: feature_value(value, feature["kind"], feature["columns"]) for value in shown_rows["value"]}
    is_distinct = len(set(texts.values())) == len(texts)
    names = make_labels(texts.values()) if is_distinct else make_labels(texts)
    return [
        pick_columns(row, "jobs", "probability")
        | {"value": names[texts[row["value"]] if is_distinct else row["value"]]}
        for row in shown_rows.iter_rows(named=True)
    ]


def _unit(feature: Mapping) -> str:
    """Return the end of a panel's title: " (GiB)" for a unit, ": share that failed" for a history, or ""."""
    if feature["kind"] == "history":
        return ": share that failed"
    unit = feature_unit(feature["columns"]) if feature["kind"] == "numeric" else ""
    return f" ({unit})" if unit else ""


def _draw_panel(name: str, title: str, rows: Sequence[Mapping], limit: float) -> alt.LayerChart:
    axis = alt.Axis(domain=False, ticks=False, grid=True, labelLimit=120)
    base = make_chart(name).encode(y=alt.Y("value:N", sort=[row["value"] for row in rows], title=None, axis=axis))
    x = alt.X("probability:Q", scale=alt.Scale(domain=[0, limit], nice=False), axis=percent_axis(tickCount=4))
    size = alt.Size("jobs:Q", scale=alt.Scale(range=[30, 160]), legend=None)
    tooltip = [*tooltips("value"), *tooltips("probability", form=".1%"), *tooltips(form=",", jobs="n")]
    points = base.mark_circle(color=ACCENT, opacity=1).encode(x=x, size=size, tooltip=tooltip)
    return points.properties(title=alt.TitleParams(title, fontSize=12), width=215, height=alt.Step(17))


def risk_decisions(inputs: Inputs, study: Study) -> Figure:
    """Draw the net GPU-hours saved by the share of jobs tried on one GPU first, one curve per ranking."""
    title, table = "Net saving of a trial on one GPU", inputs["risk_decisions"]
    if not table.height:
        return empty_figure(title, "no trial can be judged")
    origin = last_tested(read_origins(inputs["risk_evaluation"]))
    serving_model = origin.model if origin else ""
    names = MODELS | {"oracle": _ORACLE}
    colours = {MODELS[model]: colour for model, colour in _MODEL_COLOURS.items() if model in table["model"]}
    colours[_ORACLE] = INK
    curves, dots = (
        [
            pick_columns(row, "flagged", "caught", share="flagged_share", net="net_gpu_hours")
            | {"by": names[row["model"]]}
            for row in table.filter(condition, pl.col("model").is_in(list(models))).iter_rows(named=True)
        ]
        for condition, models in ((True, names), ("chosen", MODELS))
    )
    band = [
        pick_columns(row, share="flagged_share", low="ci_low_clustered", high="ci_high_clustered")
        for row in table.filter(pl.col("ci_low_clustered").is_not_null(), model=serving_model).iter_rows(named=True)
    ]
    everyone = table.filter(model="everyone").row(0, named=True)
    notes = [{"share": 1, "net": everyone["net_gpu_hours"], "note": _EVERYONE}]
    axis = percent_axis(f"Tried, of the {study.units} of more than one GPU")
    x = alt.X("share:Q", scale=alt.Scale(domain=[0, 1]), axis=axis)
    y = alt.Y("net:Q", axis=alt.Axis(title="GPU-hours saved, net", format=",.6~g"))
    legend = alt.Legend(title=None, orient="bottom", columns=2 if study.narrow else 4, symbolType="stroke")
    colour = colour_by("by", colours, legend)
    tooltip = [*tooltips(by="order"), *tooltips(form=",", flagged="tried", caught="failed within the trial")]
    tooltip += tooltips(form=",.3~g", net="net GPU-hours")
    lines = (
        make_chart("curves").mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, order="share:Q", tooltip=tooltip)
    )
    points = make_chart("chosen").mark_circle(size=70, opacity=1).encode(x=x, y=y, color=colour, tooltip=tooltip)
    note_layer = make_chart("all").encode(x=x, y=y, text="note:N")
    note_layer = note_layer.mark_text(align="right", dx=-12, dy=-1, fontSize=12, color=FAINT)
    band_layer = make_chart("band").mark_area(opacity=0.12, color=ACCENT).encode(x=x, y=alt.Y("low:Q"), y2="high:Q")
    zero_line = make_chart("all").mark_rule(color=OPEN_LINE, strokeDash=[3, 3]).encode(y=alt.datum(0))
    best = table.filter(model="oracle").select(pl.col("net_gpu_hours").max()).item()
    serving_net = next((row["net"] for row in dots if row["by"] == MODELS.get(serving_model)), None)
    serving_text = "" if serving_net is None else f"; {MODELS[serving_model]}, which serves, {number(serving_net)}"
    return make_figure(
        fit_width(band_layer + zero_line + lines + points + note_layer, study, 300),
        {"band": band, "curves": curves, "chosen": dots, "all": notes},
        study,
        title=title,
        subtitle=f"{capitalise(study.units)} by expected saving; dot: all above 0 tried; 95% CI; last tested origin",
        caption=f"n = {plural(everyone['flagged'], study.unit)} of more than one GPU. An upper bound.",
        alt_text=f"Curves of net GPU-hours; were all failures known {number(best or 0)}{serving_text}.",
    )


CHARTS = {
    "risk_calibration": risk_calibration,
    "risk_importance": risk_importance,
    "risk_dependence": risk_dependence,
    "risk_decisions": risk_decisions,
}
