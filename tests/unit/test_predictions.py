"""Scores of predictions: against scikit-learn, lifelines and statsmodels, and their influences against derivatives."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import t
from ttf.stats import predictions
from ttf.stats.clustered import UNCLUSTERED
from ttf.stats.predictions import (
    SCORED,
    average_precision,
    brier,
    brier_parts,
    calibration,
    calibration_tenths,
    concordance,
    concordance_influence,
    difference,
    log_loss,
    mean_difference,
    mean_ratio,
    median_factor_off,
    r2_log,
    roc_auc,
    tenths,
    total,
)

OF_FAILURES = {"average_precision": average_precision, "roc_auc": roc_auc, "brier": brier, "log_loss": log_loss}


def drawn(seed=1, n=600, users=30, levels=40):
    """(failed, probability, another, user): of users that differ, the probability of so many levels."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, users, n)
    eta = -1 + rng.normal(size=users)[user] + rng.normal(size=n)
    probability = (1 + np.floor(levels * expit(eta))) / (levels + 2)
    another = expit(eta + rng.normal(size=n))
    return rng.random(n) < expit(eta + 0.7 * rng.normal(size=users)[user]), probability, another, user


def hours_drawn(seed=1, n=500, users=30):
    """(hours, event, predicted, user), with ties of both."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, users, n)
    mean = rng.normal(size=users)[user]
    hours = 1 + np.floor(5 * np.exp(mean + rng.normal(size=n)))
    return hours, rng.random(n) < 0.6, np.round(np.exp(mean + rng.normal(size=n)), 1) + 0.1, user


# Against libraries -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [1, 3, 40, 100_000])
@pytest.mark.parametrize("seed", [1, 2])
def test_scores_are_those_of_scikit_learn(seed, levels):
    metrics = pytest.importorskip("sklearn.metrics")
    failed, probability, _, user = drawn(seed, levels=levels)
    theirs = {
        "average_precision": metrics.average_precision_score,
        "roc_auc": metrics.roc_auc_score,
        "brier": metrics.brier_score_loss,
        "log_loss": metrics.log_loss,
    }
    for name, score in OF_FAILURES.items():
        assert score(failed, probability, user, "user").estimate == pytest.approx(theirs[name](failed, probability))


def test_roc_auc_of_rows_that_are_alike_to_none_is_near_delong():
    """With each row by itself the spread is DeLong's but for the 1 - h, and by pairs as the Mann-Whitney statistic."""
    failed, score, _, _ = drawn(3, 400)
    x, y = score[failed], score[~failed]
    psi = (x[:, None] > y) + 0.5 * (x[:, None] == y)
    variance = psi.mean(axis=1).var(ddof=1) / x.size + psi.mean(axis=0).var(ddof=1) / y.size
    found = roc_auc(failed, score, np.arange(400), "job")
    assert found.estimate == pytest.approx(psi.mean())
    auc = found.estimate
    away = t.ppf(0.975, x.size - 1) * math.sqrt(variance) / (auc * (1 - auc))
    assert found.low == pytest.approx(expit(logit(auc) - away), rel=2e-3)
    assert found.high == pytest.approx(expit(logit(auc) + away), rel=2e-3)


@pytest.mark.parametrize("seed", range(6))
def test_concordance_is_that_of_lifelines(seed):
    lifelines = pytest.importorskip("lifelines.utils")
    hours, event, predicted, user = hours_drawn(seed)
    found = concordance(hours, event, predicted, user, "user")
    assert found.estimate == pytest.approx(lifelines.concordance_index(hours, predicted, event), abs=1e-12)


def test_calibration_is_the_cluster_robust_regression_of_statsmodels():
    """Its sandwich lacks the 1 - h, so that ours is a little wider."""
    sm = pytest.importorskip("statsmodels.api")
    failed, probability, _, user = drawn(4, 20_000, 400, 10_000)
    theirs = sm.Logit(failed.astype(float), sm.add_constant(logit(probability))).fit(
        disp=0, cov_type="cluster", cov_kwds={"groups": user, "use_correction": False}
    )
    found = calibration(failed, probability, user, "user")
    for place, ours in enumerate((found.intercept, found.slope)):
        assert ours.estimate == pytest.approx(theirs.params[place], abs=1e-7)
        se = (ours.high - ours.low) / 2 / t.ppf(0.975, ours.clusters - 1)
        assert theirs.bse[place] < se < 1.02 * theirs.bse[place]


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


def assert_is_derivative(scored, of_weights, n):
    assert scored.score == pytest.approx(of_weights(np.ones(n)), abs=1e-12)
    assert scored.influence.sum() == pytest.approx(0, abs=1e-12)
    step = 1e-5
    for row in range(n):
        up, down = (of_weights(1 + way * (np.arange(n) == row)) for way in (step, -step))
        assert scored.influence[row] == pytest.approx((up - down) / (2 * step), rel=1e-6, abs=1e-9)


ROWS = st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.integers(0, 4)), min_size=2, max_size=25)


@settings(max_examples=60, deadline=None)
@given(ROWS)
def test_influences_are_derivatives_in_the_weights(rows):
    failed, score, hours = (np.array(column) for column in zip(*rows, strict=True))
    score, hours = score / 7, hours.astype(float)
    if failed.any() and not failed.all():
        for name, of_weights in (("average_precision", weighted_average_precision), ("roc_auc", weighted_roc_auc)):
            found = SCORED[name](failed, score)
            assert_is_derivative(found, lambda weights, of=of_weights: of(failed, score, weights), failed.size)
    found = concordance_influence(hours, failed, score)
    if found is not None:
        assert_is_derivative(found, lambda weights: weighted_concordance(hours, failed, score, weights), failed.size)


# Decompositions and groups -----------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 50)), min_size=1, max_size=120))
def test_the_parts_of_the_brier_score_add_up_to_it(rows):
    failed, percent = (np.array(column) for column in zip(*rows, strict=True))
    parts = brier_parts(failed, percent / 50)
    score = brier(failed, percent / 50, np.arange(failed.size), None).estimate
    assert parts.reliability - parts.resolution + parts.uncertainty + parts.within == pytest.approx(score)
    assert min(parts.reliability, parts.resolution, parts.uncertainty) >= 0


def test_where_groups_are_of_one_probability_nothing_is_left_over():
    probability = np.repeat([0.1, 0.4], 10)
    failed = np.arange(20) % 5 == 0
    parts = brier_parts(failed, probability)
    assert parts.within == pytest.approx(0)
    assert parts.reliability == pytest.approx((0.1**2 + 0.2**2) / 2)
    assert parts.resolution == pytest.approx(0)
    assert parts.uncertainty == pytest.approx(0.16)


def test_tenths_are_of_one_size_and_ties_stay_together():
    rng = np.random.default_rng(1)
    assert np.bincount(tenths(rng.permutation(200) / 200)).tolist() == [20] * 10
    score = np.array([0.0] * 45 + [0.5] * 10 + list(np.linspace(0.6, 0.9, 45)))
    found = tenths(score)
    assert np.unique(found[:45]).tolist() == [2]
    assert np.unique(found[45:55]).tolist() == [5]
    assert np.unique(found[55:]).size == 5


def test_a_tenth_is_told_by_its_mean_and_its_share():
    failed, probability, _, user = drawn(6, 2_000, 60, 5_000)
    found = calibration_tenths(failed, probability, user, "user")
    assert [tenth.number for tenth in found] == list(range(1, 11))
    assert sum(tenth.observed.n for tenth in found) == 2_000
    assert sum(tenth.failures for tenth in found) == failed.sum()
    assert sum(tenth.predicted * tenth.observed.n for tenth in found) == pytest.approx(probability.sum())
    for tenth in found:
        assert tenth.observed.estimate == tenth.failures / tenth.observed.n
        assert tenth.observed.low < tenth.observed.lower < tenth.observed.estimate < tenth.observed.upper


# Differences -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCORED)
def test_a_difference_is_of_the_same_rows(name):
    failed, one, other, user = drawn(7)
    apart = [OF_FAILURES[name](failed, each, user, "user") for each in (one, other)]
    found = difference(name, failed, one, other, user, "user")
    assert found.estimate == pytest.approx(apart[0].estimate - apart[1].estimate)
    assert found.high - found.estimate == pytest.approx(found.estimate - found.low)
    assert found.low < found.lower < found.estimate < found.upper < found.high
    back = difference(name, failed, other, one, user, "user")
    assert (back.low, back.high) == pytest.approx((-found.high, -found.low))
    # What both get wrong alike does not count.
    assert found.high - found.low < math.hypot(*(each.high - each.low for each in apart))


@pytest.mark.parametrize("name", SCORED)
def test_no_difference_has_no_spread(name):
    failed, one, _, user = drawn(8)
    found = difference(name, failed, one, one, user, "user")
    assert found.estimate == 0
    assert found.low is None
    assert "no spread" in found.reason


@pytest.mark.parametrize("name", SCORED)
def test_a_difference_to_several_is_to_their_mean(name):
    failed, one, other, user = drawn(11)
    third = np.roll(other, 1)
    apart = [difference(name, failed, one, each, user, "user") for each in (other, third)]
    found = mean_difference(name, failed, one, [other, third], user, "user")
    assert found.estimate == pytest.approx(sum(each.estimate for each in apart) / 2)
    assert found.high - found.low < sum(each.high - each.low for each in apart) / 2 + 1e-12


# Sums and ratios ---------------------------------------------------------------------------------------------


def test_a_mean_of_users_of_one_size_is_students():
    """With clusters of one size the spread is that of their means, over 1 - 1/m."""
    values = np.random.default_rng(1).normal(size=(8, 5))
    of_users = values.mean(axis=1)
    se = np.sqrt(((of_users - of_users.mean()) ** 2).sum()) / 8 / (1 - 1 / 8)
    user, ones = np.repeat(np.arange(8), 5), np.ones(40)
    found = mean_ratio(values.ravel(), ones, user, "user")
    assert found.estimate == pytest.approx(values.mean())
    assert found.high == pytest.approx(values.mean() + t.ppf(0.975, 7) * se)
    assert found.lower == pytest.approx(values.mean() - t.ppf(0.95, 7) * se)
    whole = total(values.ravel(), user, "user")
    assert (whole.estimate, whole.low) == pytest.approx((40 * found.estimate, 40 * found.low))
    assert mean_ratio(values.ravel(), 2 * ones, user, "user").high == pytest.approx(found.high / 2)


def test_a_ratio_of_nothing_has_no_value():
    assert mean_ratio(np.ones(9), np.zeros(9), np.arange(9), "user").reason == predictions.NO_DENOMINATOR
    assert mean_ratio(np.zeros(0), np.zeros(0), np.zeros(0, np.int64), "user").reason == predictions.NO_ROWS
    assert total(np.zeros(9), np.arange(9), "user").estimate == 0


# Hours -------------------------------------------------------------------------------------------------------


def test_a_factor_off_counts_up_and_down_alike():
    rng = np.random.default_rng(2)
    observed = np.exp(rng.normal(size=801))
    predicted = observed * 3.0 ** rng.choice([-1, 1, 2], 801)
    found = median_factor_off(predicted, observed, rng.integers(0, 40, 801), "user")
    assert found.estimate == pytest.approx(3)
    off = np.sort(np.exp(np.abs(rng.normal(size=801))))
    found = median_factor_off(off, np.ones(801), rng.integers(0, 40, 801), "user")
    assert found.estimate == pytest.approx(off[400])
    assert found.low < found.estimate < found.high


def test_less_than_a_second_counts_as_one():
    found = median_factor_off(np.zeros(9), np.full(9, 2 / 3_600), np.arange(9), "user")
    assert found.estimate == pytest.approx(2)


def test_r2_is_that_of_the_logarithms():
    metrics = pytest.importorskip("sklearn.metrics")
    hours, _, predicted, user = hours_drawn(3)
    found = r2_log(predicted, hours, user, "user")
    assert found.estimate == pytest.approx(metrics.r2_score(np.log(hours), np.log(predicted)))
    assert found.low < found.lower < found.estimate < found.upper < found.high


# What cannot be told -----------------------------------------------------------------------------------------


def every(failed, probability, cluster, by):
    """Each estimate by name, hours being the probability."""
    hours = probability + 1
    fit = calibration(failed, probability, cluster, by)
    return {
        **{name: of(failed, probability, cluster, by) for name, of in OF_FAILURES.items()},
        **{f"change of {of}": difference(of, failed, probability, probability[::-1], cluster, by) for of in SCORED},
        "intercept": fit.intercept,
        "slope": fit.slope,
        **{f"tenth {each.number}": each.observed for each in calibration_tenths(failed, probability, cluster, by)},
        "concordance": concordance(hours, failed, probability, cluster, by),
        "factor": median_factor_off(hours, hours[::-1], cluster, by),
        "r2": r2_log(hours, hours[::-1], cluster, by),
    }


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 1e-9, 0.3, 0.5, 1.0]), st.integers(-1, 6)), max_size=30),
    st.sampled_from(["user", None]),
)
def test_nothing_is_nan_and_what_lacks_has_a_reason(rows, by):
    failed = np.array([row[0] for row in rows], bool)
    probability, cluster = np.array([row[1] for row in rows], float), np.array([row[2] for row in rows], np.int64)
    for name, found in every(failed, probability, cluster, by).items():
        numbers = [found.estimate, found.low, found.high, found.lower, found.upper, found.clusters]
        assert all(number is None or math.isfinite(number) for number in numbers), name
        assert all(type(number) in (float, type(None)) for number in numbers), name
        assert (found.low is None) == (found.reason is not None), name
        if found.low is not None:
            assert found.low <= found.lower <= found.upper <= found.high, name


ALONE = np.arange(20)


@pytest.mark.parametrize(
    ("failed", "probability", "of", "reason"),
    [
        (np.zeros(20, bool), np.linspace(0, 1, 20), "roc_auc", predictions.NO_FAILURE),
        (np.ones(20, bool), np.linspace(0, 1, 20), "average_precision", predictions.ALL_FAILED),
        (np.zeros(0, bool), np.zeros(0), "brier", predictions.NO_ROWS),
        (ALONE % 2 == 0, np.full(20, 0.5), "slope", predictions.EQUAL_PREDICTIONS),
        (ALONE > 9, np.linspace(0, 1, 20), "slope", predictions.PERFECT_SEPARATION),
        (np.zeros(20, bool), np.linspace(0, 1, 20), "concordance", predictions.NO_PAIR),
        (ALONE % 2 == 0, np.full(20, 0.5), "r2", predictions.EQUAL_TIMES),
    ],
)
def test_what_cannot_be_estimated_says_why(failed, probability, of, reason):
    found = every(failed, probability, np.arange(failed.size), "user")[of]
    assert (found.estimate, found.reason) == (None, reason)


def test_a_constant_score_has_the_precision_of_chance():
    failed = np.arange(60) % 4 == 0
    found = average_precision(failed, np.full(60, 0.3), np.arange(60) // 3, "user")
    assert found.estimate == pytest.approx(0.25)
    found = roc_auc(failed, np.full(60, 0.3), np.arange(60) // 3, "user")
    assert (found.estimate, found.low) == (0.5, None)
    assert "no spread" in found.reason


def test_a_perfect_score_has_no_interval():
    failed = ALONE > 9
    for name in ("average_precision", "roc_auc"):
        found = OF_FAILURES[name](failed, ALONE / 20, ALONE, "user")
        assert (found.estimate, found.low, found.reason) == (1, None, predictions.AT_SCALE_LIMIT)
    assert brier(failed, failed.astype(float), ALONE, "user").reason == predictions.AT_SCALE_LIMIT


def test_without_clusters_or_with_few_there_is_no_interval():
    failed, probability, _, user = drawn(9)
    for by, cluster in ((None, user), ("user", np.full(user.size, -1))):
        for found in every(failed, probability, cluster, by).values():
            assert (found.low, found.reason) == (None, UNCLUSTERED)
    for found in every(failed, probability, user % 3, "user").values():
        assert "effective clusters by user, fewer than 4" in found.reason


def test_rows_of_nobody_are_one_cluster_more():
    failed, probability, _, user = drawn(10)
    some, named = np.where(user > 20, -1, user), np.where(user > 20, 99, user)
    for name, of in OF_FAILURES.items():
        one, other = of(failed, probability, some, "user"), of(failed, probability, named, "user")
        assert dataclasses.astuple(one) == pytest.approx(dataclasses.astuple(other)), name


def test_failures_of_few_users_have_no_interval_however_many_others_there_are():
    """What tells failures from other jobs rests on the failures."""
    user = np.arange(400) % 40
    failed = (user < 2) & (np.arange(400) % 3 == 0)
    found = roc_auc(failed, np.arange(400) % 17 / 17, user, "user")
    assert found.clusters == pytest.approx(2, abs=0.1)
    assert found.low is None


def test_columns_of_other_lengths_and_what_is_not_finite_are_refused():
    with pytest.raises(ValueError, match="values of 3 rows"):
        brier(np.ones(2, bool), np.ones(2), np.zeros(3, np.int64), "user")
    with pytest.raises(ValueError, match="not finite"):
        brier(np.ones(2, bool), np.array([0.1, np.nan]), np.zeros(2, np.int64), "user")


def test_one_cluster_that_holds_all_that_is_known_of_the_slope():
    """The predictions of all other users are one number."""
    rng = np.random.default_rng(3)
    user = np.repeat(np.arange(12), 40)
    probability = np.where(user == 0, rng.uniform(0.2, 0.8, user.size), 0.5)
    slope = calibration(rng.random(user.size) < probability, probability, user, "user").slope
    assert slope.estimate is not None
    assert slope.low is None
