"""Failure risk on the real openb trace: three temporal splits, every model, and missing intervals."""

import numpy as np
import polars as pl
import pytest
from format_tables import FORMATS, derive_table, raw_schemas
from ttf.analyses.risk.predict_failure import EVALUATION
from ttf.analyses.risk.predict_failure.evaluate import evaluate_probability
from ttf.analyses.risk.predict_failure.model_trials import BASE, NOT_RECORDED, run_trial
from ttf.analyses.risk.predict_failure.risk_labels import CANNOT_SAY
from ttf.analyses.risk.predict_failure.verdict import read_origins, verdict
from ttf.analyses.shared.risk import LOGISTIC, NESTED
from ttf.analyses.shared.risk.features import Data, parse_features
from ttf.analyses.shared.risk.splits import split_at_origins
from ttf.raw.ingest import ingest
from ttf.records.clusters import add_clusters
from ttf.stats.clustered import FEWEST
from ttf.study.configuration.model_features import build_risk_options

# Split -> test pods, failures among them; PR-AUC by model.
MEASURED = {
    "temporal_1": (1249, 208, {BASE: 0.167, NESTED: 0.923, LOGISTIC: 0.922}),
    "temporal_2": (1110, 133, {BASE: 0.120, NESTED: 0.857, LOGISTIC: 0.858}),
    "temporal_3": (1176, 330, {BASE: 0.281, NESTED: 0.983, LOGISTIC: 0.983}),
}
# Split -> test pods of a profile that was not in the training, failures among them.
UNSEEN = {"temporal_1": (296, 0), "temporal_2": (9, 1), "temporal_3": (8, 5)}
BAND = 0.02


@pytest.fixture(scope="module")
def data(shared_data, tmp_path_factory) -> Data:
    folder = tmp_path_factory.mktemp("openb")
    ingest({"pods": [shared_data / "openb" / "openb_pod_list_default.csv"]}, raw_schemas("openb"), folder, 0)
    pods = add_clusters(derive_table("openb", "jobs", {"pods": pl.scan_parquet(folder / "pods.parquet")}))
    risk = build_risk_options("openb", {"format": "openb"}, FORMATS["openb"], {}, FORMATS["openb"]["zone"])
    return Data.load(pods.lazy(), parse_features(risk["features"]), risk["clock"])


@pytest.fixture(scope="module")
def trials(data):
    return {split.name: run_trial(data, split, with_hours=False) for split in split_at_origins(data.jobs)}


@pytest.fixture(scope="module")
def rows(data, trials) -> list[dict]:
    return [row for trial in trials.values() for row in evaluate_probability(data, trial, "probability")]


def select_rows(rows, **values):
    return [row for row in rows if values.items() <= row.items()]


def test_all_pods_that_ended_are_learnt_from_or_tested(data):
    assert (len(data.jobs), int(data.jobs.ended.sum()), int(data.jobs.failed.sum())) == (8152, 7221, 1870)
    assert data.jobs.exclusions == {}
    assert data.jobs.cluster_by == "request profile"
    for split in split_at_origins(data.jobs):
        assert (data.jobs.known_s[split.learn | split.recalibrate] < split.until_s).all()
        assert (data.jobs.submit_s[split.test] >= split.until_s).all()


@pytest.mark.parametrize("model", [BASE, NESTED, LOGISTIC])
@pytest.mark.parametrize("split", MEASURED)
def test_pr_auc_of_each_model(rows, split, model):
    n, failures, measured = MEASURED[split]
    (row,) = select_rows(rows, split=split, model=model, slice="all", metric="pr_auc")
    assert (row["n"], row["failures"]) == (n, failures)
    band = 1e-3 if model == BASE else BAND
    assert row["estimate"] == pytest.approx(measured[model], abs=band)


def test_history_alone_serves_and_without_intervals_the_data_cannot_say(trials, rows):
    assert {trial.model.kind for trial in trials.values()} == {NESTED}
    tests = read_origins(EVALUATION.frame(rows))
    assert [(test.model, test.is_predicted) for test in tests] == [(NESTED, None)] * 3
    assert verdict(tests) == CANNOT_SAY


def test_no_interval_where_one_profile_has_most_of_the_failures(data, trials, rows):
    for split, trial in trials.items():
        failed = data.jobs.failed[trial.rows]
        failures_by_profile = np.bincount(data.jobs.cluster[trial.rows][failed])
        assert failures_by_profile.max() > 0.35 * failed.sum()
        (row,) = select_rows(rows, split=split, model=LOGISTIC, slice="all", metric="pr_auc")
        # Kish's effective number of profiles among the failures.
        assert row["clusters"] == pytest.approx(failures_by_profile.sum() ** 2 / (failures_by_profile**2).sum())
        assert row["clusters"] < FEWEST
        assert row["ci_low_clustered"] is None and row["ci_high_clustered"] is None
        assert row["reason"].endswith(
            f"effective clusters by request profile, fewer than {FEWEST}: no clustered interval"
        )


def test_pods_of_profiles_that_were_not_trained_on(data, trials, rows):
    """There are too few such pods, or none failed, so the score has no estimate."""
    for split, (n, failures) in UNSEEN.items():
        unseen_rows = select_rows(rows, split=split, model=LOGISTIC, slice="unseen_group", metric="pr_auc")
        assert [(row["n"], row["failures"], row.get("estimate")) for row in unseen_rows] == [(n, failures, None)]
        assert unseen_rows[0]["reason"] == ("no job failed" if n >= 20 else "fewer than 20 test jobs")
        (row,) = select_rows(rows, split=split, model=LOGISTIC, slice="unseen_user")
        assert row["reason"] == NOT_RECORDED.format("users")
    # None of these failed, and their predicted risk is low.
    trial, group = trials["temporal_1"], data.jobs.codes("group")
    is_trained = trial.split.learn | trial.split.recalibrate
    unseen = ~np.isin(group[trial.rows], group[is_trained])
    assert unseen.sum() == 296
    assert trial.probability[LOGISTIC][unseen].mean() < 0.05 < 0.3 < trial.probability[BASE][0]
