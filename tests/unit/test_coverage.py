"""Coverage of intervals in seeded simulations, at sample sizes where their theory holds.

The report names these sizes. `ttf.analyses.time_to_failure.judge_lifetimes.compute.FEWEST_FAILURES` is that of the
Weibull shape.
"""

import math

import numpy as np
import pytest
from scipy.stats import poisson
from ttf.analyses.time_to_failure.judge_lifetimes.compute import FEWEST_FAILURES
from ttf.stats.basics.normal import Z_95
from ttf.stats.durations import survival
from ttf.stats.durations.mttf import garwood_interval, poisson_limits
from ttf.stats.durations.strata import Times
from ttf.stats.lifetimes.lifetime_models import fit_weibull
from ttf.stats.lifetimes.lifetime_sample import CannotFit, Sample

ROUNDS = 500
# Three standard errors of a share of 95 % in these rounds.
ERROR = 3 * math.sqrt(0.95 * 0.05 / ROUNDS)


def times(durations: np.ndarray, failed: np.ndarray) -> Times:
    seconds, time_index = np.unique(durations, return_inverse=True)
    return Times(seconds, np.bincount(time_index), np.bincount(time_index, weights=failed).astype(np.int64))


def simulated(rng: np.random.Generator, shape: float, n: int, failing: float) -> Times:
    """Weibull durations of scale 10^7 s, censored when the share `failing` is expected to have failed."""
    limit_s = math.inf if failing == 1 else 10**7 * (-math.log1p(-failing)) ** (1 / shape)
    ages = 10**7 * rng.weibull(shape, n)
    return times(np.minimum(ages, limit_s).astype(np.int64) + 1, ages <= limit_s)


@pytest.mark.parametrize("confidence", [0.9, 0.95])
@pytest.mark.parametrize("expected", [1, 5, 10, 0.1, 40])
def test_mttf_interval_covers_exactly(expected, confidence):
    """Sum the probability of every failure count whose interval includes the true value."""
    exposure, covered = 10**6, 0.0
    for failures in range(200):
        low, high = garwood_interval(exposure, failures, confidence)
        if low <= exposure / expected and (high is None or high >= exposure / expected):
            covered += poisson.pmf(failures, expected)
    assert covered >= confidence


@pytest.mark.parametrize(("confidence", "minimum"), [(0.9, 0.870), (0.95, 0.938)])
def test_mixed_bounds_and_intervals_cover_as_documented(confidence, minimum):
    """Coverage is lowest where both the bound for zero failures and the interval for many failures can miss."""
    low, high = poisson_limits(np.arange(60), confidence)
    expected = np.linspace(0.5, 15, 2000)[:, None]
    probability = poisson.pmf(np.arange(60), expected)
    covered = (probability * ((low <= expected) & (expected <= high))).sum(axis=1)
    assert covered.min() == pytest.approx(minimum, abs=1e-3)


def shape_coverage(shape: float, failures: int, failing: float) -> float:
    """Share of simulated samples whose interval of the Weibull shape includes the true value."""
    rng, covered, fitted = np.random.default_rng(failures), 0, 0
    for _ in range(ROUNDS):
        durations = simulated(rng, shape, round(failures / failing), failing)
        try:
            fit = fit_weibull(Sample.from_times(durations))
        except CannotFit:
            continue
        fitted += 1
        covered += abs(math.log(fit["shape"] / shape)) <= Z_95 * fit["shape_se"] / fit["shape"]
    assert fitted > 0.9 * ROUNDS
    return covered / fitted


@pytest.mark.parametrize(("shape", "failing"), [(0.7, 0.2), (1.5, 1)])
def test_weibull_shape_covers_from_a_hundred_failures_on(shape, failing):
    assert abs(shape_coverage(shape, FEWEST_FAILURES, failing) - 0.95) <= ERROR


def band_coverage(n: int, true_survival: float, failing: float = 1) -> float:
    """Share of simulated samples whose Kaplan-Meier band includes the true survival at one age.

    If no unit survives, the band has no limits and counts as a miss.
    """
    rng, shape = np.random.default_rng(n), 1.5
    age = 10**7 * (-math.log(true_survival)) ** (1 / shape)
    covered = 0
    for _ in range(ROUNDS):
        steps = survival._kaplan_meier_steps(simulated(rng, shape, n, failing))
        row = np.searchsorted(steps["time_s"], age, side="right") - 1
        covered += bool(steps["ci_low"][row] <= true_survival <= steps["ci_high"][row])
    return covered / ROUNDS


@pytest.mark.parametrize(
    ("n", "true_survival", "failing"),
    [(100, 0.9, 1), (100, 0.1, 1), (1000, 0.99, 0.05)],
)
def test_kaplan_meier_covers_if_ten_failures_are_expected(n, true_survival, failing):
    assert round(n * (1 - true_survival)) >= 10
    # The number of failures is an integer, so coverage changes in steps.
    assert abs(band_coverage(n, true_survival, failing) - 0.95) <= ERROR + 0.005
