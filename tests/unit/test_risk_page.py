"""Failure risk on the page: the verdict, its numbers, sentences and charts, from tables made by hand."""

from types import SimpleNamespace

import polars as pl
import pytest
from drawn_figures import draw_svg
from filled_texts import filled
from head_checks import check_head
from memory_tables import compute_metrics
from ttf.analyses.risk import predict_failure as analysis
from ttf.analyses.risk.predict_failure.charts import CHARTS
from ttf.analyses.risk.predict_failure.page import describe_importance, format_ci, head, lines, model_rows, tables
from ttf.analyses.risk.predict_failure.risk_labels import (
    CANNOT_SAY,
    MODERATE,
    NONE,
    STRONG,
    UNPRICED,
    WEAK,
    feature_value,
)
from ttf.analyses.risk.predict_failure.verdict import Origin, summarise_tests, verdict
from ttf.display import phrases
from ttf.display.charts.figure import Study
from ttf.display.section_head import Head, Line
from ttf.display.trace_numbers import Numbers

describe_importance, format_ci, head, lines = map(filled, (describe_importance, format_ci, head, lines))

ORIGINS = ("temporal_1", "temporal_2", "temporal_3")
TELLING = ((0.16, 0.08), (0.15, 0.06), (0.22, 0.11))
WITHOUT_INTERVALS = ((0.75, None), (0.74, None), (0.70, None))


def measured(metric: str, estimate: float | None, low: float | None = None, high: float | None = None, **cells) -> dict:
    """A row of risk_evaluation; of the logistic regression at the last origin, unless said otherwise."""
    row = {
        "stage": "probability",
        "model": "logistic",
        "split": "temporal_3",
        "serves": True,
        "slice": "all",
        "n": 656,
        "failures": 186,
    }
    ends = {"ci_low_clustered": low, "ci_high_clustered": high, "cluster_by": "user", "clusters": 12.3}
    note = None if low is not None else "too few"
    return (
        row | {"metric": metric, "estimate": estimate, "reason": note} | (ends if estimate is not None else {}) | cells
    )


def evaluation(*above: tuple[float, float | None], savings=(10.3, -23.5, 44.0), more=()) -> pl.DataFrame:
    """risk_evaluation with a base rate of 0.28; above: PR-AUC above it and the lower end of its interval, by origin."""
    rows = []
    for split, (estimate, low) in zip(ORIGINS, above, strict=False):
        bounds = (None, None) if low is None else (low, 2 * estimate - low)
        pr_auc_bounds = (None, None) if low is None else (0.28 + low, 0.28 + bounds[1])
        rows += [
            measured("pr_auc", 0.28, *pr_auc_bounds, split=split, model="base_rate", serves=False),
            measured("pr_auc", 0.28 + estimate, *pr_auc_bounds, split=split),
            measured("pr_auc_above_base_rate", estimate, *bounds, split=split),
        ]
    if savings:
        rows += [measured("gpu_hours_saved", *savings), measured("gpu_hours_saved_of_oracle", 0.457, 0.1, 0.8)]
    rows.append(measured("pr_auc", 0.55, 0.5, 0.6, split="random"))
    rows.append(measured("median_factor_off", 3.87, 2.8, 6.0, stage="hours", model="lognormal"))
    return analysis.EVALUATION.frame([*rows, *more])


def importance(*drops: tuple[str, float, float], history: tuple[float, float] | None = (0.127, 0.01)) -> pl.DataFrame:
    """risk_importance; drops: a feature, its drop and the lower end; history: those of the model without any."""
    rows = [(feature, "permuted", drop, low) for feature, drop, low in drops]
    rows += [("history", "left_out", *history)] if history else []
    return analysis.IMPORTANCE.frame(
        {
            "feature": feature,
            "how": how,
            "n": 656,
            "failures": 186,
            "drop": drop,
            "cluster_by": "user",
            "clusters": 12.3,
            "ci_low_clustered": low,
            "ci_high_clustered": None if low is None else 2 * drop - low,
            "share_of_gain": drop / 0.22,
        }
        for feature, how, drop, low in rows
    )


def features(*names: tuple[str, str, str]) -> pl.DataFrame:
    """risk_features; names: a feature, its kind and its columns."""
    return analysis.FEATURES.frame(
        {"feature": name, "kind": kind, "columns": columns, "jobs_with_value": 656, "used": True}
        for name, kind, columns in names
    )


USUAL = (("history", "history", "user, gpu_milli"), ("time_limit", "numeric", "timelimit_s"))


def decisions() -> pl.DataFrame:
    """risk_decisions: of 378 jobs none, 72 and all are tried in the order of the logistic regression."""
    rows = [("logistic", 0, 0, False, 0.0, 0.0), ("logistic", 72, 11, True, 18.5, 8.2)]
    rows += [("logistic", 378, 47, False, 22.4, 46.5), ("oracle", 0, 0, False, 0.0, 0.0)]
    rows += [("oracle", 47, 47, True, 22.4, 0.0), ("everyone", 378, 47, True, 22.4, 46.5)]
    names = ("model", "flagged", "caught", "chosen", "saved_gpu_hours", "cost_gpu_hours")
    made = [dict(zip(names, row, strict=True)) for row in rows]
    return analysis.DECISIONS.frame(
        row
        | {
            "serves": row["model"] == "logistic",
            "n": 378,
            "flagged_share": row["flagged"] / 378,
            "net_gpu_hours": row["saved_gpu_hours"] - row["cost_gpu_hours"],
        }
        for row in made
    )


def calibration(values=((0.1, 0.12), (0.4, 0.36), (0.62, 0.63))) -> pl.DataFrame:
    """risk_calibration: tenths of the last origin, the second without an interval, and of the random split."""
    return analysis.CALIBRATION.frame(
        {
            "model": "logistic",
            "split": split,
            "tenth": tenth,
            "n": 60,
            "failures": round(60 * observed),
            "predicted": predicted,
            "observed": observed,
            "cluster_by": "user",
            "clusters": 9.0,
            "ci_low_clustered": None if tenth == 2 else observed / 2,
            "ci_high_clustered": None if tenth == 2 else (1 + observed) / 2,
        }
        for split in ("temporal_3", "random")
        for tenth, (predicted, observed) in enumerate(values, start=1)
    )


def dependence(*values: str, feature: str = "history") -> pl.DataFrame:
    return analysis.DEPENDENCE.frame(
        {"feature": feature, "position": index, "value": value, "jobs": 10 + index, "probability": 0.1 + index / 100}
        for index, value in enumerate(values)
    )


def study_of(**changed) -> dict[str, pl.DataFrame]:
    tables_ = {
        "risk_evaluation": evaluation(*TELLING),
        "risk_calibration": calibration(),
        "risk_coefficients": analysis.COEFFICIENTS.frame([]),
        "risk_importance": importance(("history", 0.169, 0.06), ("time_limit", 0.056, 0.03), ("qos", -0.007, -0.02)),
        "risk_dependence": dependence("0.1", "0.2"),
        "risk_decisions": decisions(),
        "risk_extrapolation": analysis.EXTRAPOLATION.frame([]),
        "risk_features": features(*USUAL),
        "risk_jobs": analysis.TAKEN.frame(
            {"jobs_are": state, "jobs": jobs}
            for state, jobs in (("ended", 1976), ("running", 24), ("waiting", 1), ("no submission", 3))
        ),
    }
    return tables_ | {f"risk_{name}": table for name, table in changed.items()}


def numbers_of(tables_: dict[str, pl.DataFrame], **values) -> Numbers:
    verdict_row = summarise_tests(*(tables_[f"risk_{name}"] for name in ("evaluation", "features", "importance")))
    analysis.VERDICT.check(verdict_row)
    metrics = compute_metrics("predict_failure", tables_ | {"risk_verdict": verdict_row})
    return Numbers(metrics | {key: {"value": value, "unit": "share", "n": 1} for key, value in values.items()})


def trace_of(tables_by_name=None, unit="job"):
    tables_of = tables_by_name or {}
    return SimpleNamespace(info={"unit": unit}, table=lambda name: tables_of[name])


def checked_head(m: Numbers) -> Head:
    """The head of the section, which keeps to its measures and names each of its numbers."""
    head_ = head(trace_of(), m)
    assert isinstance(head_, Head)
    return check_head(head_, m)


def plain(text: str) -> str:
    return phrases.strip_markup(text).replace("\u00a0", " ").replace("\u2011", "-")


# The verdict ---------------------------------------------------------------------------------------------------

UP, DOWN, OPEN = (0.1, 0.05), (0.1, -0.01), (0.1, None)
# Saved, the lower end of its interval, and that of how many times its cost it is.
WELL, LITTLE, AT_A_LOSS, NO_SAVING, NO_INTERVAL = (
    *((9.0, 4.0, 2.5), (9.0, 2.0, 1.2), (-3.0, -6.0, 0.1)),
    *((0.0, None, None), (9.0, None, None)),
)


def origin(gain: tuple | None, saved: tuple | None = None, split: str = "temporal_1") -> Origin:
    """gain: PR-AUC above the base rate, and the lower end; None for one that cannot be tested. saved: as above."""
    if gain is None:
        return Origin(split, None, {}, "fewer than 20 test jobs")
    measures = {"pr_auc_above_base_rate": {"estimate": gain[0], "ci_low_clustered": gain[1]}}
    if saved is not None:
        measures["gpu_hours_saved"] = {"estimate": saved[0], "ci_low_clustered": saved[1]}
        measures["gpu_hours_saved_over_cost"] = {"estimate": 3.0, "ci_low_clustered": saved[2]}
    return Origin(split, "logistic", measures, None)


@pytest.mark.parametrize(
    ("tests", "expected"),
    [
        # Two of three decide, at each step.
        ([(UP, WELL)] * 3, STRONG),
        ([(UP, WELL), (UP, WELL), (DOWN, AT_A_LOSS)], STRONG),
        ([(UP, WELL), (UP, LITTLE), (UP, AT_A_LOSS)], MODERATE),
        ([(UP, AT_A_LOSS), (UP, NO_SAVING), (UP, NO_INTERVAL)], WEAK),
        # Acting where failure is not predicted pays nothing.
        ([(UP, WELL), (UP, AT_A_LOSS), (DOWN, WELL)], WEAK),
        # One that cannot be tested has no say.
        ([(UP, WELL), (UP, WELL), (None,)], STRONG),
        ([(DOWN,), (None,), (DOWN,)], NONE),
        ([(UP, WELL), (OPEN, WELL), (OPEN, WELL)], CANNOT_SAY),
        ([], CANNOT_SAY),
        # A saving that is not known is none of its results.
        ([(UP,)] * 3, UNPRICED),
        ([(UP, WELL), (UP, NO_INTERVAL), (UP, AT_A_LOSS)], UNPRICED),
    ],
)
def test_each_step_of_the_verdict_needs_two_of_three_origins(tests, expected):
    assert verdict([origin(*test) for test in tests]) == expected
    assert verdict([origin(*test) for test in reversed(tests)]) == expected


def test_an_origin_that_cannot_be_tested_is_left_out_and_said():
    """Gains of .149, .150 and none that can be told: it was said that failure cannot be predicted."""
    table = evaluation((0.149, 0.127), (0.150, 0.12), savings=None)
    lacking = measured("pr_auc", None, n=12, failures=3, reason="fewer than 20 test jobs")
    loss = [measured("gpu_hours_saved", -3.0, -6.0, -0.5, split=split) for split in ORIGINS[:2]]
    m = numbers_of(study_of(evaluation=pl.concat([table, analysis.EVALUATION.frame([lacking, *loss])])))
    head_ = checked_head(m)
    assert (m["risk.verdict"], m["risk.origin"]) == (WEAK, "temporal_2")
    assert plain(head_.claim) == (
        "Failure prediction is weak, not worth acting on: savings exceed costs at 0 of 2 origins"
    )
    keys = {key.label: plain(key.note) for key in head_.keys}
    assert keys["PR-AUC of logistic regression, second origin"] == "95% CI 0.400–0.460 by user only, n = 656"
    assert keys["Above the base rate"] == "95% CI 0.120–0.180 by user only, > 0 at 2 of 2 origins"
    assert plain(" ".join(head_.text)).endswith("The last origin cannot be tested: fewer than 20 test jobs.")


def test_a_prediction_has_its_numbers():
    m = numbers_of(study_of())
    head_ = checked_head(m)
    assert plain(head_.claim) == "Failure can be predicted: logistic regression has PR-AUC 0.500, base rate 0.280"
    assert head_.charts == ()
    keys = {key.label: (plain(key.value), plain(key.note)) for key in head_.keys}
    assert keys["PR-AUC of logistic regression, last origin"] == ("0.500", "95% CI 0.390–0.610 by user only, n = 656")
    assert keys["Above the base rate"] == ("0.220", "95% CI 0.110–0.330 by user only, > 0 at 3 of 3 origins")
    label = "Saved by trying jobs at risk on one GPU first"
    assert keys[label] == ("10.3 GPU-h", "95% CI −23.5 to 44.0, above its cost at 0 of 1 origin")
    assert m["risk.temporal_3.failures"] == 186 and m.n("risk.temporal_3.served.pr_auc") == 656
    assert m.get("risk.temporal_3.served.pr_auc")["source"] == "tables/risk_evaluation.csv"
    assert m["risk.savings.tried"] == 72 and m["risk.savings.oracle_gpu_hours"] == 22.4


def test_where_history_serves_it_is_named_and_the_regression_is_not_reported():
    """At PR-AUC .338 of history alone the page named the regression's .279."""
    table = served_by_history(0.058, 0.02, 0.116)
    m = numbers_of(study_of(evaluation=table, importance=importance(("history", 0.11, 0.06))))
    head_ = checked_head(m)
    assert plain(head_.claim) == "Failure can be predicted: history alone has PR-AUC 0.338, base rate 0.222"
    assert m["risk.temporal_3.served"] == "nested_rate" and m["risk.temporal_3.logistic.pr_auc"] == 0.279
    assert [key.label for key in head_.keys][:2] == ["PR-AUC of history alone, last origin", "Above the base rate"]
    assert "Above history alone" not in [key.label for key in head_.keys]
    assert plain(describe_importance(m)) == "On earlier jobs, a regression on all features did not beat history alone."


def served_by_history(above_regression: float, low: float, above: float) -> pl.DataFrame:
    """risk_evaluation of three origins at which history alone serves, and the regression lies below it."""
    rows = []
    for split in ORIGINS:
        cells = {"split": split, "model": "nested_rate"}
        rows += [
            measured("pr_auc", 0.222, 0.2, 0.25, split=split, model="base_rate", serves=False),
            measured("pr_auc", 0.222 + above, 0.3, 0.38, **cells),
            measured("pr_auc_above_base_rate", above, low, 0.2, **cells),
            measured("pr_auc", 0.222 + above - 0.059, 0.25, 0.31, split=split, serves=False),
            measured("pr_auc_above_base_rate", above_regression, low, 0.1, split=split, serves=False),
        ]
    return analysis.EVALUATION.frame(rows)


def test_without_intervals_the_data_cannot_say():
    few = [
        row | {"cluster_by": "request profile", "clusters": 1.52} for row in evaluation(*WITHOUT_INTERVALS).to_dicts()
    ]
    m = numbers_of(study_of(evaluation=analysis.EVALUATION.frame(few)))
    head_ = checked_head(m)
    assert m["risk.verdict"] == CANNOT_SAY and m.n("risk.origins_predicted") == 0
    assert plain(head_.claim) == (
        "The data cannot say whether failure can be predicted: failures are of 1.52 effective request profiles"
    )
    assert [plain(key.note) for key in head_.keys] == ["no interval: 1.52 effective request profiles, n = 656"]
    assert head_.charts == () and head_.text == ()


def test_a_trace_without_a_model_is_a_line():
    none = [
        measured("pr_auc", None, split=split, n=0, failures=0, serves=False, reason="fewer than 50 failures")
        for split in ORIGINS
    ]
    tables_ = study_of(evaluation=analysis.EVALUATION.frame(none), importance=analysis.IMPORTANCE.frame([]))
    m = numbers_of(tables_)
    line = head(trace_of(), m)
    assert line == Line(
        "Failure risk", "failure prediction cannot be tested: fewer than 50 failures", "risk_evaluation", checked=False
    )
    assert "risk.verdict" not in m and lines(trace_of(), m) == [] and tables(trace_of(tables_)) == {}


# Sentences -----------------------------------------------------------------------------------------------------


def test_what_carries_the_score():
    m = numbers_of(study_of())
    assert plain(describe_importance(m)) == (
        "The history of failures predicts best, then time limit; without history the score loses 57.7% of its gain."
    )
    assert plain(checked_head(m).text[0]).endswith("Do not use the score to rank people.")


def test_a_loss_whose_interval_holds_0_says_so():
    m = numbers_of(study_of(importance=importance(("history", 0.169, 0.06), history=(0.127, -0.001))))
    assert plain(describe_importance(m)).endswith("loses 57.7% of its gain (CI includes 0).")
    del m["risk.history.drop_ci_low_clustered"]
    assert plain(describe_importance(m)).endswith("loses 57.7% of its gain (no interval).")


def test_slices_and_extrapolation_have_their_number_or_their_reason():
    unseen_group = measured("pr_auc", 0.33, 0.2, 0.5, slice="unseen_group", n=119, failures=28)
    unseen_user = measured("pr_auc", None, slice="unseen_user", n=8, failures=2, reason="fewer than 20 test jobs")
    beyond = analysis.EXTRAPOLATION.frame(
        {
            "held_out": "largest_jobs",
            "value": "8",
            "trained": trained,
            "metric": "pr_auc",
            "n": 58,
            "failures": 17,
            "estimate": estimate,
            "ci_low_clustered": estimate - 0.1,
            "ci_high_clustered": estimate + 0.1,
        }
        for trained, estimate in (("without", 0.35), ("with", 0.42), ("difference", 0.07))
    )
    tables_ = study_of(evaluation=evaluation(*TELLING, more=[unseen_group, unseen_user]), extrapolation=beyond)
    m = numbers_of(tables_)
    assert m["risk.unseen_group.pr_auc"] == 0.33 and m["risk.unseen_user.jobs"] == 8
    assert plain(format_ci(m, "risk.largest_jobs.difference.pr_auc")) == "95% CI −0.0300 to 0.170"
    wide = model_rows(tables_["risk_evaluation"], "temporal_3")
    served = wide.filter(test="Last origin", model="logistic regression (serves)")
    assert served.select("n", "pr_auc").row(0) == (656, 0.5)
    extrapolation = tables(trace_of(tables_))["risk-extrapolation"]
    assert extrapolation.frame["kind"].to_list() == ["More than 8 GPUs"] * 3


# Charts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CHARTS)
@pytest.mark.parametrize("study", [Study(), Study("pod", True, narrow=True)], ids=["desk", "phone"])
def test_every_chart_is_drawn(name, study):
    figure = CHARTS[name](study_of(), study)
    assert figure.empty is None
    draw_svg(figure)


@pytest.mark.parametrize("name", CHARTS)
def test_without_rows_there_is_nothing_to_draw(name):
    contracts = {contract.name: contract for contract in analysis.ANALYSIS.tables}
    tables_ = {name: contract.frame([]) for name, contract in contracts.items()}
    assert CHARTS[name](tables_, Study()).empty


def test_the_calibration_has_every_tenth_and_intervals_of_the_last_origin_alone():
    figure = CHARTS["risk_calibration"](study_of(), Study())
    tenths = figure.datasets["tenths"]
    assert [row["of"] for row in tenths] == ["last tested origin"] * 3 + ["random split: sees the future"] * 3
    assert "n = 180 jobs, 67 failures" in figure.caption and "some have too few clusters" in figure.caption
    top = figure.datasets["right"][1]["at"]
    assert max(row["high"] or 0 for row in tenths) <= top <= 1
    slope = measured("calibration_slope", 0.9, 0.55, 1.25)
    tables_ = study_of(evaluation=evaluation(*TELLING, more=[slope]))
    assert "slope 0.900, right: 1" in CHARTS["risk_calibration"](tables_, Study()).caption


# Words ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "kind", "columns", "shown"),
    [
        ("10800", "numeric", "timelimit_s", "3\u00a0h"),
        ("8000", "numeric", "gpu_requested_milli", "8"),
        ("16384", "numeric", "mem_mib", "16"),
        ("0.284", "history", "user, gpu_milli", "28.4%"),
        ("V100", "category", "gpu_type", "V100"),
    ],
)
def test_values_of_features_in_words(value, kind, columns, shown):
    assert feature_value(value, kind, columns) == shown
