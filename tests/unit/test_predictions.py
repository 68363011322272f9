"""Scores of predictions: against scikit-learn, lifelines and statsmodels, and their influences against derivatives."""

import dataclasses
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import t
from ttf.stats import predictions
from ttf.stats.clustered import UNCLUSTERED
from ttf.stats.predictions import (
    SCORED,
    brier_parts,
    calibration,
    calibration_tenths,
    concordance,
    concordance_influence,
    difference,
    estimate_score,
    mean_ratio,
    median_factor_off,
    r2_log,
    tenths,
    total,
)

SCORES = {name: partial(estimate_score, name) for name in SCORED}


def draw_jobs(seed=1, n=600, users=30, levels=40):
    """Draw (failed, probability, another, user) for users that differ; the probability has `levels` values."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, users, n)
    eta = -1 + rng.normal(size=users)[user] + rng.normal(size=n)
    probability = (1 + np.floor(levels * expit(eta))) / (levels + 2)
    another = expit(eta + rng.normal(size=n))
    return rng.random(n) < expit(eta + 0.7 * rng.normal(size=users)[user]), probability, another, user


def draw_hours(seed=1, n=500, users=30):
    """Draw (hours, event, predicted, user) with ties."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, users, n)
    mean = rng.normal(size=users)[user]
    hours = 1 + np.floor(5 * np.exp(mean + rng.normal(size=n)))
    return hours, rng.random(n) < 0.6, np.round(np.exp(mean + rng.normal(size=n)), 1) + 0.1, user


# Against libraries -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [1, 3, 100_000])
def test_scores_are_those_of_scikit_learn(levels):
    metrics = pytest.importorskip("sklearn.metrics")
    failed, probability, _, user = draw_jobs(levels=levels)
    expected = {
        "average_precision": metrics.average_precision_score,
        "roc_auc": metrics.roc_auc_score,
        "brier": metrics.brier_score_loss,
        "log_loss": metrics.log_loss,
    }
    for name, score in SCORES.items():
        assert score(failed, probability, user, "user").estimate == pytest.approx(expected[name](failed, probability))


def test_roc_auc_of_unclustered_rows_is_near_delong():
    """With each row by itself the spread is DeLong's but for the 1 - h, and by pairs as the Mann-Whitney statistic."""
    failed, score, _, _ = draw_jobs(3, 400)
    x, y = score[failed], score[~failed]
    psi = (x[:, None] > y) + 0.5 * (x[:, None] == y)
    variance = psi.mean(axis=1).var(ddof=1) / x.size + psi.mean(axis=0).var(ddof=1) / y.size
    interval = estimate_score("roc_auc", failed, score, np.arange(400), "job")
    assert interval.estimate == pytest.approx(psi.mean())
    auc = interval.estimate
    half_width = t.ppf(0.975, x.size - 1) * math.sqrt(variance) / (auc * (1 - auc))
    assert interval.low == pytest.approx(expit(logit(auc) - half_width), rel=2e-3)
    assert interval.high == pytest.approx(expit(logit(auc) + half_width), rel=2e-3)


@pytest.mark.parametrize("seed", range(2))
def test_concordance_is_that_of_lifelines(seed):
    lifelines = pytest.importorskip("lifelines.utils")
    hours, event, predicted, user = draw_hours(seed)
    estimate = concordance(hours, event, predicted, user, "user")
    assert estimate.estimate == pytest.approx(lifelines.concordance_index(hours, predicted, event), abs=1e-12)


def test_calibration_is_the_cluster_robust_regression_of_statsmodels():
    """Its sandwich lacks the 1 - h factor, so our interval is a little wider."""
    sm = pytest.importorskip("statsmodels.api")
    failed, probability, _, user = draw_jobs(4, 20_000, 400, 10_000)
    expected = sm.Logit(failed.astype(float), sm.add_constant(logit(probability))).fit(
        disp=0, cov_type="cluster", cov_kwds={"groups": user, "use_correction": False}
    )
    actual = calibration(failed, probability, user, "user")
    for index, interval in enumerate((actual.intercept, actual.slope)):
        assert interval.estimate == pytest.approx(expected.params[index], abs=1e-7)
        se = (interval.high - interval.low) / 2 / t.ppf(0.975, interval.clusters - 1)
        assert expected.bse[index] < se < 1.02 * expected.bse[index]


# Influences --------------------------------------------------------------------------------------------------


def weighted_average_precision(failed, score, weights):
    higher = score[None, :] >= score[:, None]
    precision = (higher * (weights * failed)).sum(axis=1) / (higher * weights).sum(axis=1)
    return (weights * failed * precision).sum() / (weights * failed).sum()


def weighted_roc_auc(failed, score, weights):
    pairs = (weights * failed)[:, None] * (weights * ~failed)[None, :]
    higher = (score[:, None] > score) + 0.5 * (score[:, None] == score)
    return (pairs * higher).sum() / pairs.sum()


def weighted_concordance(hours, event, predicted, weights):
    later = event[:, None] & (
        (hours[None, :] > hours[:, None]) | ((hours[None, :] == hours[:, None]) & ~event[None, :])
    )
    pairs = later * weights[:, None] * weights[None, :]
    right = (predicted[None, :] > predicted[:, None]) + 0.5 * (predicted[None, :] == predicted[:, None])
    return (pairs * right).sum() / pairs.sum()


def assert_is_derivative(scored, weighted_score, n):
    assert scored.score == pytest.approx(weighted_score(np.ones(n)), abs=1e-12)
    assert scored.influence.sum() == pytest.approx(0, abs=1e-12)
    step = 1e-5
    for row in range(n):
        up, down = (weighted_score(1 + change * (np.arange(n) == row)) for change in (step, -step))
        assert scored.influence[row] == pytest.approx((up - down) / (2 * step), rel=1e-6, abs=1e-9)


ROWS = st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.integers(0, 4)), min_size=2, max_size=25)


@given(ROWS)
def test_influences_are_derivatives_in_the_weights(rows):
    failed, score, hours = (np.array(column) for column in zip(*rows, strict=True))
    score, hours = score / 7, hours.astype(float)
    if failed.any() and not failed.all():
        for name, weighted in (("average_precision", weighted_average_precision), ("roc_auc", weighted_roc_auc)):
            scored = SCORED[name](failed, score)
            assert_is_derivative(scored, lambda weights, rate=weighted: rate(failed, score, weights), failed.size)
    scored = concordance_influence(hours, failed, score)
    if scored is not None:
        assert_is_derivative(scored, lambda weights: weighted_concordance(hours, failed, score, weights), failed.size)


# Decompositions and groups -----------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 50)), min_size=1, max_size=120))
def test_the_parts_of_the_brier_score_add_up_to_it(rows):
    failed, percent = (np.array(column) for column in zip(*rows, strict=True))
    parts = brier_parts(failed, percent / 50)
    score = estimate_score("brier", failed, percent / 50, np.arange(failed.size), None).estimate
    assert parts.reliability - parts.resolution + parts.uncertainty + parts.within_tenths == pytest.approx(score)
    assert min(parts.reliability, parts.resolution, parts.uncertainty) >= 0


def test_tenths_are_of_one_size_and_ties_stay_together():
    rng = np.random.default_rng(1)
    assert np.bincount(tenths(rng.permutation(200) / 200)).tolist() == [20] * 10
    score = np.array([0.0] * 45 + [0.5] * 10 + list(np.linspace(0.6, 0.9, 45)))
    numbers = tenths(score)
    assert np.unique(numbers[:45]).tolist() == [2]
    assert np.unique(numbers[45:55]).tolist() == [5]
    assert np.unique(numbers[55:]).size == 5


def test_a_tenth_has_its_mean_prediction_and_failure_share():
    failed, probability, _, user = draw_jobs(6, 2_000, 60, 5_000)
    tenths_ = calibration_tenths(failed, probability, user, "user")
    assert [tenth.number for tenth in tenths_] == list(range(1, 11))
    assert sum(tenth.observed.n for tenth in tenths_) == 2_000
    assert sum(tenth.failures for tenth in tenths_) == failed.sum()
    assert sum(tenth.predicted * tenth.observed.n for tenth in tenths_) == pytest.approx(probability.sum())
    for tenth in tenths_:
        assert tenth.observed.estimate == tenth.failures / tenth.observed.n
        assert tenth.observed.low < tenth.observed.lower < tenth.observed.estimate < tenth.observed.upper


# Differences -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCORED)
def test_a_difference_is_paired_by_row(name):
    failed, first, second, user = draw_jobs(7)
    scores = [SCORES[name](failed, score, user, "user") for score in (first, second)]
    change = difference(name, failed, first, [second], user, "user")
    assert change.estimate == pytest.approx(scores[0].estimate - scores[1].estimate)
    assert change.high - change.estimate == pytest.approx(change.estimate - change.low)
    assert change.low < change.lower < change.estimate < change.upper < change.high
    reverse = difference(name, failed, second, [first], user, "user")
    assert (reverse.low, reverse.high) == pytest.approx((-change.high, -change.low))
    # Errors common to both do not widen the interval.
    assert change.high - change.low < math.hypot(*(score.high - score.low for score in scores))


@pytest.mark.parametrize("name", SCORED)
def test_no_difference_has_no_spread(name):
    failed, score, _, user = draw_jobs(8)
    change = difference(name, failed, score, [score], user, "user")
    assert change.estimate == 0
    assert change.low is None
    assert "no spread" in change.reason


@pytest.mark.parametrize("name", SCORED)
def test_a_difference_to_several_is_to_their_mean(name):
    failed, first, second, user = draw_jobs(11)
    third = np.roll(second, 1)
    changes = [difference(name, failed, first, [change], user, "user") for change in (second, third)]
    mean_change = difference(name, failed, first, [second, third], user, "user")
    assert mean_change.estimate == pytest.approx(sum(change.estimate for change in changes) / 2)
    assert mean_change.high - mean_change.low < sum(change.high - change.low for change in changes) / 2 + 1e-12


# Sums and ratios ---------------------------------------------------------------------------------------------


def test_a_mean_of_equal_clusters_has_the_interval_of_student():
    """With clusters of one size the spread is that of their means, over 1 - 1/m."""
    values = np.random.default_rng(1).normal(size=(8, 5))
    user_means = values.mean(axis=1)
    se = np.sqrt(((user_means - user_means.mean()) ** 2).sum()) / 8 / (1 - 1 / 8)
    user, ones = np.repeat(np.arange(8), 5), np.ones(40)
    interval = mean_ratio(values.ravel(), ones, user, "user")
    assert interval.estimate == pytest.approx(values.mean())
    assert interval.high == pytest.approx(values.mean() + t.ppf(0.975, 7) * se)
    assert interval.lower == pytest.approx(values.mean() - t.ppf(0.95, 7) * se)
    whole = total(values.ravel(), user, "user")
    assert (whole.estimate, whole.low) == pytest.approx((40 * interval.estimate, 40 * interval.low))
    assert mean_ratio(values.ravel(), 2 * ones, user, "user").high == pytest.approx(interval.high / 2)


def test_a_ratio_without_denominator_has_no_value():
    assert mean_ratio(np.ones(9), np.zeros(9), np.arange(9), "user").reason == predictions.NO_DENOMINATOR
    assert mean_ratio(np.zeros(0), np.zeros(0), np.zeros(0, np.int64), "user").reason == predictions.NO_ROWS
    assert total(np.zeros(9), np.arange(9), "user").estimate == 0


# Hours -------------------------------------------------------------------------------------------------------


def test_a_factor_off_counts_up_and_down_equally():
    rng = np.random.default_rng(2)
    observed = np.exp(rng.normal(size=801))
    predicted = observed * 3.0 ** rng.choice([-1, 1, 2], 801)
    factor = median_factor_off(predicted, observed, rng.integers(0, 40, 801), "user")
    assert factor.estimate == pytest.approx(3)
    off = np.sort(np.exp(np.abs(rng.normal(size=801))))
    factor = median_factor_off(off, np.ones(801), rng.integers(0, 40, 801), "user")
    assert factor.estimate == pytest.approx(off[400])
    assert factor.low < factor.estimate < factor.high


def test_less_than_a_second_counts_as_one():
    factor = median_factor_off(np.zeros(9), np.full(9, 2 / 3_600), np.arange(9), "user")
    assert factor.estimate == pytest.approx(2)


def test_r2_is_that_of_the_logarithms():
    metrics = pytest.importorskip("sklearn.metrics")
    hours, _, predicted, user = draw_hours(3)
    r2 = r2_log(predicted, hours, user, "user")
    assert r2.estimate == pytest.approx(metrics.r2_score(np.log(hours), np.log(predicted)))
    assert r2.low < r2.lower < r2.estimate < r2.upper < r2.high


# Missing estimates -------------------------------------------------------------------------------------------


def all_estimates(failed, probability, cluster, by):
    """Return each estimate by name; hours are the probability plus 1."""
    hours = probability + 1
    fit = calibration(failed, probability, cluster, by)
    return {
        **{name: kind(failed, probability, cluster, by) for name, kind in SCORES.items()},
        **{
            f"change of {kind}": difference(kind, failed, probability, [probability[::-1]], cluster, by)
            for kind in SCORED
        },
        "intercept": fit.intercept,
        "slope": fit.slope,
        **{f"tenth {part.number}": part.observed for part in calibration_tenths(failed, probability, cluster, by)},
        "concordance": concordance(hours, failed, probability, cluster, by),
        "factor": median_factor_off(hours, hours[::-1], cluster, by),
        "r2": r2_log(hours, hours[::-1], cluster, by),
    }


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 1e-9, 0.3, 0.5, 1.0]), st.integers(-1, 6)), max_size=30),
    st.sampled_from(["user", None]),
)
def test_no_estimate_is_nan_and_a_missing_interval_has_a_reason(rows, cluster_by):
    failed = np.array([row[0] for row in rows], bool)
    probability, cluster = np.array([row[1] for row in rows], float), np.array([row[2] for row in rows], np.int64)
    for name, estimate in all_estimates(failed, probability, cluster, cluster_by).items():
        numbers = [estimate.estimate, estimate.low, estimate.high, estimate.lower, estimate.upper, estimate.clusters]
        assert all(number is None or math.isfinite(number) for number in numbers), name
        assert all(type(number) in (float, type(None)) for number in numbers), name
        assert (estimate.low is None) == (estimate.reason is not None), name
        if estimate.low is not None:
            assert estimate.low <= estimate.lower <= estimate.upper <= estimate.high, name


ROWS_20 = np.arange(20)


@pytest.mark.parametrize(
    ("failed", "probability", "name", "reason"),
    [
        (np.zeros(20, bool), np.linspace(0, 1, 20), "roc_auc", predictions.NO_FAILURE),
        (np.ones(20, bool), np.linspace(0, 1, 20), "average_precision", predictions.ALL_FAILED),
        (np.zeros(0, bool), np.zeros(0), "brier", predictions.NO_ROWS),
        (ROWS_20 % 2 == 0, np.full(20, 0.5), "slope", predictions.EQUAL_PREDICTIONS),
        (ROWS_20 > 9, np.linspace(0, 1, 20), "slope", predictions.PERFECT_SEPARATION),
        (np.zeros(20, bool), np.linspace(0, 1, 20), "concordance", predictions.NO_PAIR),
        (ROWS_20 % 2 == 0, np.full(20, 0.5), "r2", predictions.EQUAL_TIMES),
    ],
)
def test_a_missing_estimate_has_a_reason(failed, probability, name, reason):
    estimate = all_estimates(failed, probability, np.arange(failed.size), "user")[name]
    assert (estimate.estimate, estimate.reason) == (None, reason)


def test_a_constant_score_has_the_precision_of_the_base_rate():
    failed = np.arange(60) % 4 == 0
    estimate = estimate_score("average_precision", failed, np.full(60, 0.3), np.arange(60) // 3, "user")
    assert estimate.estimate == pytest.approx(0.25)
    estimate = estimate_score("roc_auc", failed, np.full(60, 0.3), np.arange(60) // 3, "user")
    assert (estimate.estimate, estimate.low) == (0.5, None)
    assert "no spread" in estimate.reason


def test_a_perfect_score_has_no_interval():
    failed = ROWS_20 > 9
    for name in ("average_precision", "roc_auc"):
        estimate = SCORES[name](failed, ROWS_20 / 20, ROWS_20, "user")
        assert (estimate.estimate, estimate.low, estimate.reason) == (1, None, predictions.AT_SCALE_LIMIT)
    assert estimate_score("brier", failed, failed.astype(float), ROWS_20, "user").reason == predictions.AT_SCALE_LIMIT


def test_without_clusters_or_with_few_there_is_no_interval():
    failed, probability, _, user = draw_jobs(9)
    for cluster_by, cluster in ((None, user), ("user", np.full(user.size, -1))):
        for estimate in all_estimates(failed, probability, cluster, cluster_by).values():
            assert (estimate.low, estimate.reason) == (None, UNCLUSTERED)
    for estimate in all_estimates(failed, probability, user % 3, "user").values():
        assert "effective clusters by user, fewer than 4" in estimate.reason


def test_rows_without_a_user_are_one_more_cluster():
    failed, probability, _, user = draw_jobs(10)
    user_or_blank, named = np.where(user > 20, -1, user), np.where(user > 20, 99, user)
    for name, score in SCORES.items():
        actual, expected = score(failed, probability, user_or_blank, "user"), score(failed, probability, named, "user")
        assert dataclasses.astuple(actual) == pytest.approx(dataclasses.astuple(expected)), name


def test_failures_of_few_users_have_no_interval():
    """The effective number of clusters counts users with failures."""
    user = np.arange(400) % 40
    failed = (user < 2) & (np.arange(400) % 3 == 0)
    interval = estimate_score("roc_auc", failed, np.arange(400) % 17 / 17, user, "user")
    assert interval.clusters == pytest.approx(2, abs=0.1)
    assert interval.low is None


def test_columns_of_other_lengths_and_what_is_not_finite_are_refused():
    with pytest.raises(ValueError, match="values of 3 rows"):
        estimate_score("brier", np.ones(2, bool), np.ones(2), np.zeros(3, np.int64), "user")
    with pytest.raises(ValueError, match="not finite"):
        estimate_score("brier", np.ones(2, bool), np.array([0.1, np.nan]), np.zeros(2, np.int64), "user")


def test_a_slope_that_depends_on_one_cluster_has_no_interval():
    """All other users have one constant prediction."""
    rng = np.random.default_rng(3)
    user = np.repeat(np.arange(12), 40)
    probability = np.where(user == 0, rng.uniform(0.2, 0.8, user.size), 0.5)
    slope = calibration(rng.random(user.size) < probability, probability, user, "user").slope
    assert slope.estimate is not None
    assert slope.low is None
