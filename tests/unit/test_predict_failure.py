"""Failure prediction: on records whose risk is known, by hand on a few jobs, and on records with little information."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import made_risk
import numpy as np
import polars as pl
import pytest
from made_risk import FEATURES
from scipy.integrate import quad
from scipy.stats import lognorm
from ttf.analyses.risk.predict_failure import ANALYSIS
from ttf.analyses.risk.predict_failure.compute import compute, evaluate_models
from ttf.analyses.risk.predict_failure.extrapolate import select_largest, select_newest_type
from ttf.analyses.risk.predict_failure.model_trials import Trial, has_run_for
from ttf.analyses.risk.predict_failure.savings import NO_HOURS, NO_LARGE, Savings
from ttf.analyses.shared.risk import LOGISTIC
from ttf.analyses.shared.risk.features import Data, parse_features
from ttf.analyses.shared.risk.model import NO_FEATURES, ONE_KIND, TOO_FEW, Model
from ttf.analyses.shared.risk.splits import split_at_origins
from ttf.analyses.shared.risk.training_jobs import load_population
from ttf.records.inputs import Inputs
from ttf.stats.regression.censored_lognormal import Hours
from ttf.stats.regression.design import Design
from ttf.stats.regression.logistic import Fit
from whole_study import hashes

ROOT = Path(__file__).resolve().parents[2]
LANDMARK_S, TRIAL_MIN, SEED = 3600, 10, 7
ORIGINS = ["temporal_1", "temporal_2", "temporal_3"]
AT_ALL = pl.col("slice") == "all"


def data_of(jobs: pl.DataFrame, features=FEATURES, clock="UTC") -> Data:
    return Data.load(jobs.lazy(), parse_features(features), clock)


def tables_of(jobs: pl.DataFrame, features=FEATURES, clock="UTC") -> dict[str, pl.DataFrame]:
    """All tables, each checked against its contract."""
    tables = evaluate_models(data_of(jobs, features, clock), LANDMARK_S, TRIAL_MIN / 60, SEED)
    assert list(tables) == [table.name for table in ANALYSIS.tables]
    for table in ANALYSIS.tables:
        table.check(tables[table.name])
    return tables


@pytest.fixture(scope="module")
def user_studies():
    return [tables_of(made_risk.with_users(12_000, seed)) for seed in (1, 3)]


def rows(tables: dict[str, pl.DataFrame], model: str, metric: str, stage: str = "probability") -> pl.DataFrame:
    """Select the measures of all test jobs at the three origins."""
    is_measure = (pl.col("model") == model) & (pl.col("metric") == metric) & (pl.col("stage") == stage)
    return tables["risk_evaluation"].filter(is_measure & AT_ALL & pl.col("split").is_in(ORIGINS))


def served(tables: dict[str, pl.DataFrame], split: str = "temporal_3") -> str:
    """Return the model that serves at an origin."""
    selection = {"stage": "probability", "split": split, "metric": "pr_auc"}
    return tables["risk_evaluation"].filter("serves", AT_ALL, **selection)["model"].item()


def test_the_score_without_the_one_user_of_most_failures_stands_beside_it():
    """One user has nearly all failures of the last week; the score of the other jobs is lower."""
    jobs = made_risk.with_users(6_000, 2)
    is_one = (pl.col("user") == jobs["user"].mode().sort()[0]) & pl.col("outcome").is_in(["success", "failure"])
    jobs = jobs.with_columns(outcome=pl.when(is_one).then(pl.lit("failure")).otherwise("outcome"))
    spare = (pl.col("outcome") == "failure") & ~is_one & (pl.int_range(pl.len()) % 4 > 0)
    jobs = jobs.with_columns(outcome=pl.when(spare).then(pl.lit("success")).otherwise("outcome"))
    score = tables_of(jobs)["risk_evaluation"].filter("serves", stage="probability", metric="pr_auc", split=ORIGINS[-1])
    (all_jobs,), (other_jobs,) = (score.filter(slice=name).to_dicts() for name in ("all", "without_most"))
    assert 0 < other_jobs["failures"] < all_jobs["failures"] / 2 and other_jobs["n"] < all_jobs["n"]
    assert other_jobs["estimate"] < all_jobs["estimate"]
    coin_measures = tables_of(made_risk.coin(3_000, 1))["risk_evaluation"]
    assert not coin_measures.filter(slice="without_most").height


# Where the risk is known -------------------------------------------------------------------------------------


def test_where_users_differ_the_score_is_above_the_base_rate(user_studies):
    for tables in user_studies:
        above = rows(tables, "logistic", "pr_auc_above_base_rate")
        assert above["split"].to_list() == ORIGINS
        assert (above["ci_low_clustered"] > 0).all()
        assert (rows(tables, "nested_rate", "pr_auc_above_base_rate")["ci_low_clustered"] > 0).all()


def test_the_slope_of_the_calibration_holds_1(user_studies):
    """At least five of six intervals hold 1, because later users are drawn anew."""
    slopes = pl.concat(rows(tables, "logistic", "calibration_slope") for tables in user_studies)
    holds = (slopes["ci_low_clustered"] <= 1) & (slopes["ci_high_clustered"] >= 1)
    assert slopes.height == 6
    assert holds.sum() >= 5
    assert slopes["estimate"].mean() == pytest.approx(1, abs=0.1)


def test_the_score_is_near_the_best_there_can_be(user_studies):
    """The ROC-AUC of the true risk is the bound; the score gets most of the way from chance to it."""
    jobs = load_population(made_risk.with_users(12_000, 1).lazy(), ["true_risk"])
    aucs = rows(user_studies[0], "logistic", "roc_auc")["estimate"].to_list()
    for split, auc in zip(split_at_origins(jobs), aucs, strict=True):
        risk, failed = jobs.jobs["true_risk"].to_numpy()[split.test], jobs.failed[split.test]
        order = np.argsort(np.argsort(risk))
        fails = int(failed.sum())
        best = (order[failed].sum() - fails * (fails - 1) / 2) / (fails * (len(failed) - fails))
        assert 0.5 + 0.8 * (best - 0.5) < auc < best + 0.02


def test_measures_count_the_tested_jobs_of_their_stage(user_studies):
    key = ["stage", "model", "split", "slice", "metric"]
    assert not user_studies[0]["risk_evaluation"].select(key).is_duplicated().any()
    data = data_of(made_risk.with_users(12_000, 1))
    splits = split_at_origins(data.jobs)
    # The landmark counts runs known to have lasted so long; a run without an end is unknown.
    has_reached = has_run_for(data.jobs, LANDMARK_S)
    for stage, tested in (
        ("probability", [s.test for s in splits]),
        ("landmark", [s.test & has_reached for s in splits]),
    ):
        measured = rows(user_studies[0], "logistic", "pr_auc", stage).select("n", "failures").rows()
        assert measured == [(rows_.sum(), data.jobs.failed[rows_].sum()) for rows_ in tested]


def test_hours_are_predicted_better_than_by_one_number(user_studies):
    """Failed runs last longer with each doubling of GPUs, so their order can be predicted."""
    for tables in user_studies:
        order = rows(tables, "lognormal", "concordance", "hours")
        assert (order["estimate"] > 0.5).all()
        assert (order["ci_low_clustered"] > 0.5).sum() >= 2
        factor = rows(tables, "lognormal", "median_factor_off", "hours")["estimate"]
        # Half of a normal distribution lies within 0.674 of its spread: exp(0.674 RUN_LOG_SD) is the best there can be.
        assert factor.is_between(
            0.9 * np.exp(0.674 * made_risk.RUN_LOG_SD), 1.25 * np.exp(0.674 * made_risk.RUN_LOG_SD)
        ).all()


# What carries the score --------------------------------------------------------------------------------------


def test_a_feature_of_noise_has_no_importance():
    jobs = made_risk.with_users(6_000, 4)
    noise = np.random.default_rng(1)
    jobs = jobs.with_columns(
        dice=pl.Series(noise.integers(0, 6, jobs.height)).cast(pl.String), draw=pl.Series(noise.random(jobs.height))
    )
    noise_features = {
        "dice": {"kind": "category", "column": "dice", "vocabulary": 12},
        "draw": {"kind": "numeric", "column": "draw"},
        "buckets": {"kind": "hashed", "column": "dice", "buckets": 4},
    }
    importance = tables_of(jobs, FEATURES | noise_features)["risk_importance"]
    permuted = importance.filter(pl.col("how") == "permuted")
    drops = dict(permuted.select("feature", "drop").iter_rows())
    assert all(abs(drops[name]) < 0.01 for name in noise_features)
    assert permuted["feature"][0] == "history"
    assert drops["history"] > 0.1
    assert permuted["drop"].is_sorted(descending=True)
    left_out = importance.row(by_predicate=pl.col("how") == "left_out", named=True)
    assert left_out["feature"] == "history"
    assert left_out["share_of_gain"] > 0.5


def test_coefficients_have_intervals(user_studies):
    """Where history alone serves, no coefficients are fitted."""
    assert [tables["risk_coefficients"].height > 0 for tables in user_studies] == [
        served(tables) == LOGISTIC for tables in user_studies
    ]
    terms = tables_of(made_risk.with_requests(12_000, 1))["risk_coefficients"]
    by_user = terms.row(by_predicate=pl.col("term") == "history by user", named=True)
    assert by_user["ci_low_clustered"] > 0
    assert by_user["odds_ratio"] == pytest.approx(np.exp(by_user["coefficient"]))
    middle = (terms["ci_low_clustered"] + terms["ci_high_clustered"]) / 2
    assert (middle - terms["coefficient"]).abs().max() < 1e-9


# Savings ------------------------------------------------------------------------------------------------------


def hand_made_savings(probability: list[float], hours: Hours | None) -> Savings:
    """Five jobs. The first failed early, the second succeeded, the third has one GPU, the fourth failed late, and the
    fifth was cancelled early.
    """
    run_h = [0.1, 5.0, 0.1, 3.0, 0.05]
    jobs = pl.DataFrame(
        {
            "submit_s": list(range(5)),
            "outcome": ["failure", "success", "failure", "failure", "cancelled"],
            "gpu_milli": [8_000, 4_000, 1_000, 2_000, 2_000],
            "user": list("abcde"),
            "runtime_s": [round(3600 * run) for run in run_h],
        },
    ).with_columns(
        start_s="submit_s",
        end_s=pl.col("submit_s") + pl.col("runtime_s"),
        size=1,
        trace_end_s=10**6,
    )
    training_jobs = load_population(jobs.lazy())
    encoder = data_of(made_risk.with_users(20, 1))  # unused
    zero = np.zeros(1)
    model = Model(encoder, Fit(zero, np.eye(1), True), LOGISTIC, zero, 0.0, 1.0, hours, zero, 5, 3, 0)
    split = split_at_origins(training_jobs)[-1]
    trial = Trial(split, model, np.arange(5), Design(np.empty((5, 0)), ()), {"logistic": np.array(probability)})
    return Savings(replace(encoder, jobs=training_jobs), trial, 0.5)


def test_savings_by_hand():
    savings = hand_made_savings([0.9, 0.01, 0.9, 0.9, 0.9], Hours(np.log([0.2]), 0.7, 10.0, 20, 0.0, True))
    # The first job saves 7 GPUs for 0.1 h; a job that runs on pays half an hour, or its run if shorter.
    assert savings.saved_h == pytest.approx([0.7, 0, 0, 0])
    assert savings.cost_h == pytest.approx([0, 0.5, 0.5, 0.05])
    law = lognorm(0.7, scale=0.2)
    early = quad(lambda t: t * law.pdf(t), 0, 0.5)[0]
    gain = [p * (g - 1) * early - (1 - p * law.cdf(0.5)) * 0.5 for p, g in ((0.9, 8), (0.01, 4), (0.9, 2), (0.9, 2))]
    assert savings._expected_savings("logistic") == pytest.approx(gain, rel=1e-6)
    assert [value > 0 for value in gain] == [True, False, True, True]
    curve = pl.DataFrame(savings.curve_rows())
    chosen = {row["model"]: row for row in curve.filter("chosen").iter_rows(named=True)}
    logistic = chosen["logistic"]
    assert (logistic["flagged"], logistic["caught"]) == (3, 1)
    assert logistic["net_gpu_hours"] == pytest.approx(0.7 - 0.55)
    assert chosen["oracle"]["net_gpu_hours"] == pytest.approx(0.7)
    assert (chosen["everyone"]["flagged"], chosen["everyone"]["net_gpu_hours"]) == (4, pytest.approx(0.7 - 1.05))
    measured = {row["metric"]: row for row in savings.metric_rows("logistic")}
    assert measured["gpu_hours_saved"]["estimate"] == pytest.approx(0.15)
    assert measured["gpu_hours_saved_of_oracle"]["estimate"] == pytest.approx(0.15 / 0.7)
    assert (measured["gpu_hours_saved"]["n"], measured["gpu_hours_saved"]["failures"]) == (4, 1)

    savings = hand_made_savings([0.5] * 5, None)
    assert savings.missing == NO_HOURS and not list(savings.curve_rows())


def test_the_oracle_saves_the_most(user_studies):
    for tables in user_studies:
        curve = tables["risk_decisions"]
        best = curve.filter(pl.col("model") == "oracle", "chosen")["net_gpu_hours"].item()
        assert best > 0
        assert (curve["net_gpu_hours"] <= best + 1e-9).all()
        # Tried all, every model is everyone.
        everyone = curve.filter(pl.col("model") == "everyone").row(0, named=True)
        at_the_end = curve.filter(pl.col("flagged") == everyone["flagged"], pl.col("model") != "everyone")
        assert at_the_end["net_gpu_hours"].to_numpy() == pytest.approx(everyone["net_gpu_hours"])
        for (_,), model_curve in curve.group_by("model", maintain_order=True):
            assert model_curve["chosen"].sum() == 1
            assert model_curve["flagged"].diff().drop_nulls().gt(0).all()
            assert model_curve["caught"].diff().drop_nulls().ge(0).all()
        saved = rows(tables, "logistic", "gpu_hours_saved")["estimate"][-1]
        net_gpu_hours = curve.filter(pl.col("model") == "logistic", "chosen")["net_gpu_hours"].item()
        assert saved == pytest.approx(net_gpu_hours)


# Beyond the training -----------------------------------------------------------------------------------------


def test_jobs_of_a_held_out_kind_are_compared(user_studies):
    for tables in user_studies:
        compared = tables["risk_extrapolation"].filter(pl.col("held_out") == "newest_gpu_type")
        assert set(compared["value"]) == {"C"}
        measured = compared.filter(pl.col("trained") == "without")
        assert measured["metric"].to_list() == ["pr_auc", "roc_auc", "log_loss", "calibration_slope"]
        without, with_kind, difference = (
            compared.filter(pl.col("trained") == trained, pl.col("metric") == "pr_auc")["estimate"].item()
            for trained in ("without", "with", "difference")
        )
        assert difference == pytest.approx(with_kind - without)


def test_the_held_out_kinds_are_the_largest_and_the_newest():
    data = data_of(made_risk.with_users(3_000, 1))
    trial = Trial(split_at_origins(data.jobs)[-1], NO_FEATURES, np.arange(0), None)
    value, held_out, _ = select_largest(data, trial)
    limit = np.quantile(data.jobs.gpus[trial.split.learn], 0.9, method="lower")
    assert value == f"{limit:g}"
    assert held_out is None or (held_out == (data.jobs.gpus > limit)).all()
    value, held_out, _ = select_newest_type(data)
    types = data.jobs.jobs["gpu_type"].cast(pl.String).to_numpy()
    assert value == "C"
    assert (held_out == (types == "C")).all()


# Records with little information ------------------------------------------------------------------------------

MADE = made_risk.with_users(1_500, 3)
BLANK_TIME = pl.lit(None, dtype=pl.Int64)
NO_CLUSTERS = {
    "cluster_by": pl.lit(None, dtype=pl.String),
    "cluster": pl.lit(None, dtype=pl.UInt32),
    "group_by": pl.lit(None, dtype=pl.String),
    "group": pl.lit(None, dtype=pl.UInt32),
}
FAILED = pl.col("outcome") == "failure"
LAST_THIRD = pl.col("submit_s") >= MADE["submit_s"].quantile(0.8, "higher")
ROW_INDEX = pl.int_range(pl.len())
NO_GPUS = {"gpu_milli": pl.lit(None, dtype=pl.Int64), "gpu_type": pl.lit(None, dtype=pl.String)}
CONSTANT = {name: FEATURES[name] for name in ("gpus", "gpu_type")}


@pytest.mark.parametrize(
    ("jobs", "features", "reason"),
    [
        (MADE.clear(), FEATURES, TOO_FEW),
        (MADE.with_columns(outcome=pl.lit("failure")), FEATURES, ONE_KIND),
        (MADE.with_columns(submit_s=BLANK_TIME), FEATURES, TOO_FEW),
        (MADE.with_columns(gpu_milli=pl.lit(1000), gpu_type=pl.lit("A")), CONSTANT, NO_FEATURES),
        (MADE, {}, NO_FEATURES),
    ],
    ids=["none", "failure", "undated", "alike", "unknown"],
)
def test_untrainable_records_give_tables_with_a_reason(jobs, features, reason):
    tables = tables_of(jobs, features)
    measures = tables["risk_evaluation"]
    assert measures["estimate"].is_null().all()
    assert set(measures["reason"]) == {reason}
    assert set(measures["split"]) == {*ORIGINS, "random"}
    assert tables["risk_extrapolation"]["reason"].null_count() == 0
    assert tables["risk_features"]["feature"].to_list() == list(features)
    assert not tables["risk_features"]["used"].any()
    for name in ("calibration", "coefficients", "importance", "dependence", "decisions"):
        assert tables[f"risk_{name}"].is_empty()


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (NO_CLUSTERS | {"user": pl.lit(None, dtype=pl.String)}, "nothing in the trace says what repeats"),
        ({"cluster": pl.lit(0, dtype=pl.UInt32), "group": pl.lit(0, dtype=pl.UInt32)}, "effective clusters by"),
        ({"user": pl.lit("a"), "cluster": pl.lit(0, dtype=pl.UInt32)}, "there is no such test job"),
        ({"outcome": pl.when(LAST_THIRD & FAILED).then(pl.lit("success")).otherwise("outcome")}, "no job failed"),
        ({"submit_s": pl.when(ROW_INDEX % 3 == 0).then(pl.col("end_s") + 9).otherwise("submit_s")}, None),
        (NO_GPUS, NO_LARGE),
        ({"gpu_type": pl.when(FAILED).then(pl.lit("A")).otherwise(pl.lit("B"))}, "tells all failures from the others"),
        ({"runtime_s": pl.col("runtime_s") * 0, "end_s": pl.col("start_s") + 0 * pl.col("end_s")}, None),
        ({"gpu_milli": pl.when(ROW_INDEX % 97 == 0).then(pl.lit(10**15)).otherwise("gpu_milli")}, None),
        ({"runtime_s": pl.when(~FAILED).then("runtime_s")}, "too few failures of known time"),
    ],
    ids=[
        *("no clusters", "one cluster", "one user", "no failure tested", "after their end", "no GPU"),
        *("separated", "at once", "huge", "no hours"),
    ],
)
def test_what_cannot_be_estimated_is_blank_with_a_reason(columns, reason):
    """Each table within its contract, and no warning."""
    measures = tables_of(MADE.with_columns(**columns))["risk_evaluation"]
    assert measures["estimate"].is_not_null().any()
    assert reason is None or measures["reason"].str.contains(reason, literal=True).any()


def test_without_a_clock_the_hour_is_not_known():
    features = tables_of(MADE, clock=None)["risk_features"]
    clock = features.row(by_predicate=pl.col("feature") == "clock", named=True)
    assert (clock["used"], clock["jobs_with_value"], clock["reason"]) == (False, 0, "the hour is not known")
    assert features.filter(pl.col("used"))["feature"].to_list() == ["gpus", "gpu_type", "history"]


def test_a_table_without_the_columns_of_features_is_as_one_of_blanks():
    tables = tables_of(MADE.drop("user", "recurrence_group", "gpu_type"))
    assert tables["risk_features"].filter(pl.col("feature") == "gpu_type")["reason"].to_list() == ["blank in all jobs"]
    reasons = tables["risk_evaluation"]["reason"]
    assert {"the trace names no users", "the trace names no GPU types"} <= set(reasons)


def test_only_the_latest_jobs_are_used(tmp_path):
    path = tmp_path / "jobs.parquet"
    MADE.head(1_500).write_parquet(path)
    tables = compute(Inputs({"jobs": path}, {}, SETTINGS | {"latest_jobs": 1_200}))
    jobs_by_state = dict(tables["risk_jobs"].select("jobs_are", "jobs").iter_rows())
    assert jobs_by_state["earlier"] == 300
    assert sum(jobs_by_state.values()) == 1_500


# The same bytes ----------------------------------------------------------------------------------------------

SETTINGS = {
    "risk": {"features": FEATURES, "clock": "UTC", "unit": "job"},
    "latest_jobs": 10_000,
    "landmark_s": LANDMARK_S,
    "trial_minutes": TRIAL_MIN,
    "seed": SEED,
}
COMPUTED = """
import json, sys
import ttf.engine.process.entry
from ttf.analyses.risk.predict_failure.compute import compute
from ttf.records.inputs import Inputs
for name, table in compute(Inputs({"jobs": sys.argv[1]}, {}, json.loads(sys.argv[3]))).items():
    table.write_csv(f"{sys.argv[2]}/{name}.csv")
"""


def test_tables_do_not_depend_on_the_number_of_threads(tmp_path):
    """Computed as the rule does, from a jobs.parquet."""
    path, file_digests = tmp_path / "jobs.parquet", []
    MADE.head(1_000).write_parquet(path)
    for threads in ("1", "here"):
        folder = tmp_path / threads
        folder.mkdir()
        if threads == "here":
            for name, table in compute(Inputs({"jobs": path}, {}, SETTINGS)).items():
                table.write_csv(folder / f"{name}.csv")
        else:
            environment = os.environ | {"POLARS_MAX_THREADS": threads, "PYTHONPATH": str(ROOT / "scripts")}
            command = [sys.executable, "-c", COMPUTED, path, folder, json.dumps(SETTINGS)]
            subprocess.run(command, env=environment, check=True, timeout=120)
        file_digests.append(hashes(folder))
    assert file_digests[0] == file_digests[1]
    assert len(file_digests[0]) == len(ANALYSIS.tables)
