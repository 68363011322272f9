"""Which model serves, history or the regression: on records of known risk, never chosen by the test jobs."""

from dataclasses import replace

import made_risk
import numpy as np
import polars as pl
import pytest
from scipy.special import expit, logit
from threadpoolctl import threadpool_limits
from ttf.analyses.risk.predict_failure.compute import evaluate_models
from ttf.analyses.risk.predict_failure.model_trials import Trial, run_trial
from ttf.analyses.risk.predict_failure.risk_labels import CANNOT_SAY, NONE
from ttf.analyses.risk.predict_failure.verdict import read_origins, verdict
from ttf.analyses.shared.risk import LOGISTIC, NESTED
from ttf.analyses.shared.risk.features import Data, parse_features
from ttf.analyses.shared.risk.model import NO_HISTORY, TrainingData, choose_kind, train_candidates
from ttf.analyses.shared.risk.splits import Split, split_at_origins
from ttf.stats.predictions import SCORED

FEATURES = {name: declaration for name, declaration in made_risk.FEATURES.items() if name != "clock"}
DICE, SIDES = 8, 30


@pytest.fixture(autouse=True)
def one_thread():
    """Use one thread, as a rule does: small matrix products are slower with more threads than free cores."""
    with threadpool_limits(1):
        yield


def data_of(jobs: pl.DataFrame, dice: int = 0) -> Data:
    """Build the data; `dice` is the number of uninformative features, each of many values."""
    rng = np.random.default_rng(9)
    dice_values = {f"dice_{number}": rng.integers(0, SIDES, jobs.height) for number in range(dice)}
    features = FEATURES | {name: {"kind": "category", "column": name, "vocabulary": SIDES} for name in dice_values}
    jobs = jobs.with_columns(pl.Series(name, values).cast(pl.String) for name, values in dice_values.items())
    return Data.load(jobs.lazy(), parse_features(features), "UTC")


def trials_of(data: Data) -> list[Trial]:
    return [run_trial(data, split, with_hours=False) for split in split_at_origins(data.jobs)]


def pr_auc(failed: np.ndarray, probability: np.ndarray) -> float:
    return SCORED["average_precision"](failed, probability).score


def test_history_alone_is_the_share_of_earlier_failures():
    """Its log-odds are those of the shrunken share of user and group, against the share of all, on a line."""
    data = data_of(made_risk.with_users(3_000, 5))
    split = split_at_origins(data.jobs)[-1]
    model = made_risk.train(
        data.jobs, data.job_features, data.features, split.learn, split.recalibrate, split.until_s, kind=NESTED
    )
    rates = data.job_features.rates["history"]
    line = np.polyfit(
        logit(rates[:, -1]) - logit(rates[:, 0]), logit(model.probability(model.encoder.design(data.job_features))), 1
    )
    against_all = logit(rates[:, -1]) - logit(rates[:, 0])
    assert model.probability(model.encoder.design(data.job_features)) == pytest.approx(
        expit(np.polyval(line, against_all))
    )
    assert line[0] > 0
    assert [feature.name for feature in model.scoring_features] == ["history"]
    assert model.hours is not None, "of all features, as ever"


def test_without_a_history_the_regression_serves():
    data = data_of(made_risk.with_requests(3_000, 1))
    data = replace(data, features=[feature for feature in data.features if feature.name != "history"])
    (trial, *_) = trials_of(data)
    assert trial.model.kind == LOGISTIC
    assert trial.missing == {NESTED: NO_HISTORY}
    split = trial.split
    assert (
        made_risk.train(
            data.jobs, data.job_features, data.features, split.learn, split.recalibrate, split.until_s, kind=NESTED
        )
        == NO_HISTORY
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_the_regression_serves_where_requests_predict(seed):
    for trial in trials_of(data_of(made_risk.with_requests(6_000, seed))):
        assert trial.model.kind == LOGISTIC


@pytest.mark.parametrize("seed", [1, 2])
def test_history_serves_where_features_mislead(seed):
    """The regression has learnt from dice, and lies below history alone."""
    below = 0
    for trial in trials_of(data := data_of(made_risk.with_users(6_000, seed), DICE)):
        failed = data.jobs.failed[trial.rows]
        assert trial.model.kind == NESTED
        below += pr_auc(failed, trial.probability[LOGISTIC]) < pr_auc(failed, trial.probability[NESTED])
    assert below >= 2


def test_with_few_jobs_to_compare_on_history_serves():
    data = data_of(made_risk.with_requests(800, 1))
    split = split_at_origins(data.jobs)[0]
    lesson = TrainingData.select(
        data.jobs, data.job_features, split.learn, split.recalibrate, split.until_s, with_hours=False
    )
    models, design = train_candidates(lesson, data.features)
    assert set(models) == {NESTED, LOGISTIC}
    assert choose_kind(lesson, models, design) == NESTED


def test_the_choice_knows_nothing_of_the_test():
    """The model is identical to the last bit for any outcome of the jobs submitted after it was made."""
    jobs = made_risk.with_requests(3_000, 2)
    split = split_at_origins(data_of(jobs).jobs)[-1]
    later = pl.col("submit_s") >= split.until_s
    for outcome in ("failure", "success"):
        later_data = data_of(jobs.with_columns(outcome=pl.when(later).then(pl.lit(outcome)).otherwise("outcome")))
        (actual, expected) = (run_trial(data, split, with_hours=False).model for data in (data_of(jobs), later_data))
        assert actual.to_json() == expected.to_json()


# Simulations ---------------------------------------------------------------------------------------------------


def half_sample_gains(trial: Trial, data: Data, rng: np.random.Generator) -> tuple[float, float, int]:
    """PR-AUC of the regression less that of history alone, on either half of the test jobs; 1 if the regression
    serves, else -1.
    """
    is_first = rng.random(len(trial.rows)) < 0.5
    failed = data.jobs.failed[trial.rows]
    first, second = (
        pr_auc(failed[half], trial.probability[LOGISTIC][half]) - pr_auc(failed[half], trial.probability[NESTED][half])
        for half in (is_first, ~is_first)
    )
    return first, second, 1 if trial.model.kind == LOGISTIC else -1


def test_the_reported_gain_of_the_model_that_serves_is_not_biased():
    """What it gains over the other on one half of the test jobs is what it gains on the other half, in the mean.

    Of 72 origins where both models are about as good. Had the first half been used to choose, the gain on it would be
    too large by many standard errors.
    """
    rng, gaps, test_gaps = np.random.default_rng(3), [], []
    for seed in range(24):
        for trial in trials_of(data := data_of(made_risk.with_users(2_500, seed))):
            first, second, serves = half_sample_gains(trial, data, rng)
            gaps.append(serves * (first - second))
            test_gaps.append(np.sign(first) * (first - second))
    gaps, test_gaps = (np.mean(values) / (np.std(values) / np.sqrt(len(values))) for values in (gaps, test_gaps))
    assert abs(gaps) < 3
    assert test_gaps > 4


def test_a_coin_is_not_predicted():
    """At most one of 8 random records is called predictable."""
    verdicts = []
    for seed in range(8):
        tables = evaluate_models(data_of(made_risk.coin(2_500, seed)), 3600, 1 / 6, 1)
        verdicts.append(verdict(read_origins(tables["risk_evaluation"])))
    assert sum(word not in (NONE, CANNOT_SAY) for word in verdicts) <= 1
    assert verdicts.count(NONE) > 5


def test_the_last_origin_without_a_test_is_left_out():
    """Jobs submitted last still run: results are those of the origin before, the verdict of two origins."""
    jobs = made_risk.with_users(6_000, 1)
    from_s = jobs["submit_s"].quantile(0.825)
    runs = pl.col("submit_s") >= from_s
    running = jobs.with_columns(
        outcome=pl.when(runs).then(pl.lit("running")).otherwise("outcome"),
        end_s=pl.when(~runs).then("end_s"),
        runtime_s=pl.when(~runs).then("runtime_s"),
    )
    tables = evaluate_models(data_of(running), 3600, 1 / 6, 1)
    tests = read_origins(tables["risk_evaluation"])
    assert [test.reason for test in tests] == [None, None, "fewer than 20 test jobs"]
    assert [test.is_predicted for test in tests] == [True, True, None]
    assert verdict(tests) not in (NONE, CANNOT_SAY)
    n = tests[1].measures["pr_auc"]["n"]
    assert set(tables["risk_importance"]["n"]) == {n}
    assert tables["risk_decisions"].height and tables["risk_dependence"].height


def splits() -> list[Split]:
    return split_at_origins(data_of(made_risk.with_requests(2_500, 1)).jobs)
