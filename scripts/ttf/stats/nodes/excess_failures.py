"""Tests of whether a node fails more than its fleet.

Exact tests, the spread of ordinary nodes, a rate shrunken towards the fleet's, and the power of the test.
"""

import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import betainc, betaincinv, expit, gammainc, gammaincc, gammaincinv, gammaln

from ttf.stats.basics.benjamini_hochberg import benjamini_hochberg
from ttf.stats.basics.poisson_binomial import poisson_binomial_tail
from ttf.stats.durations.mttf import poisson_limits

CONFIDENCE = 0.95
POWER = 0.8
# Posterior probabilities are those of a ratio to the fleet's rate above this.
HIGH_RATIO = 3
# Share of the nodes, the most extreme ones, that is excluded from the fit to ordinary nodes.
TRIMMED = 0.05
# Prior of the coefficient of variation of ordinary nodes: its median, and the SD of its logarithm.
USUAL_CV, USUAL_SPREAD = 0.7, 0.5

# CV of the prior that ranks nodes with shared failures: in simulated clusters it puts two of three bad nodes of 200
# among the first ten, more than USUAL_CV does.
SHARED_FAILURE_CV = 3


@dataclass(frozen=True)
class OrdinaryRates:
    """Distribution of the rates of ordinary nodes. level: mean ratio to the expected failures; cv: of the rates."""

    level: float
    cv: float

    def tail(self, counted: np.ndarray, expected: np.ndarray | float) -> np.ndarray:
        """Return P(X >= counted) of ordinary nodes with the expected failures: negative binomial."""
        shape, mean = self.cv**-2, self.level * expected
        return np.where(counted > 0, betainc(np.maximum(counted, 1), shape, mean / (shape + mean)), 1.0)


def ordinary_nodes(
    counted: np.ndarray, expected: np.ndarray, n_excluded: int = 0, previous: OrdinaryRates | None = None
) -> OrdinaryRates:
    """Fit the gamma-distributed rates of ordinary nodes, excluding the most extreme nodes.

    Parameters
    ----------
    counted : (nodes,) failures
    expected : (nodes,) failures expected at the same use, above 0
    n_excluded : number of nodes to exclude; default: the TRIMMED share, at least one
    previous : an earlier fit, by whose tails nodes are excluded; default: Poisson's

    Returns
    -------
    mean ratio to the expected failures and the coefficient of variation of the rates

    Notes
    -----
    The nodes with the smallest tails are excluded, so that a bad node is not part of its own reference. The counts of
    the others are negative binomial (Greenwood & Yule 1920, J. R. Stat. Soc. 83), truncated where they would be
    excluded. Few failures say little about the coefficient of variation, so its logarithm has a normal prior.

    Examples
    --------
    >>> ordinary_nodes(np.array([1, 2, 0, 3, 1, 2, 0, 1, 2, 30]), np.full(10, 4.2)).level < 1
    True
    """
    # Imported here because scipy.optimize is slow to import.
    from scipy.optimize import minimize

    def tail(count: np.ndarray, mean: np.ndarray) -> np.ndarray:
        return gammainc(np.maximum(count, 1), mean) if previous is None else previous.tail(count, mean)

    tails = np.where(counted > 0, tail(counted, expected), 1.0)
    n_excluded = min(n_excluded or max(1, int(TRIMMED * counted.size)), counted.size - 1)
    # Given the largest tail of the excluded nodes, those of the others are independent.
    excluded_tail, least_tail = np.append(0.0, np.sort(tails))[n_excluded : n_excluded + 2]
    is_ordinary = tails >= least_tail
    # Expectations in steps of 1%: a fit to LANL's 5,000 nodes then takes 0.03 s, not 0.3 s.
    pairs = np.column_stack([counted, np.log(expected).round(2)])[is_ordinary]
    (k, log_mean), times = (part.T for part in np.unique(pairs, axis=0, return_counts=True))
    mean = np.exp(log_mean)
    # The largest count with which a node is not excluded.
    limit = np.maximum(_least_count(lambda count: tail(count, mean), excluded_tail, k.size) - 1, k)

    def negative_log_likelihood(logs: np.ndarray) -> float:
        level, cv = np.exp(np.clip(logs, (-5, -4), (3, 2)))
        a, mu = cv**-2, level * mean
        terms = gammaln(a + k) - gammaln(a) - a * np.log1p(mu / a) + k * np.log(mu / (a + mu))
        log_truncated = np.log(np.maximum(betainc(a, limit + 1, a / (a + mu)), np.finfo(float).tiny))
        return float(times @ (log_truncated - terms)) + ((np.log(cv / USUAL_CV)) / USUAL_SPREAD) ** 2 / 2

    options = {"xatol": 1e-6, "fatol": 1e-9, "maxiter": 400}
    optimum = minimize(negative_log_likelihood, np.log([0.9, USUAL_CV]), method="Nelder-Mead", options=options).x
    return OrdinaryRates(*np.exp(np.clip(optimum, (-5, -4), (3, 2))).tolist())


def divide_failures(attempt: np.ndarray, node: np.ndarray, counted: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Divide multi-node failures among their nodes by EM, in proportion to the nodes' ratios.

    Parameters
    ----------
    attempt, node : (rows,) int, numbers from 0; a row for each node of each such failure
    counted : (nodes,) int, failures that name the node
    expected : (nodes,) floats, failures expected at the same use

    Returns
    -------
    (2, nodes) floats: each node's part of the failures, and its rate ratio, the posterior mean of a gamma variable
    (mean 1, CV of SHARED_FAILURE_CV) given the counts

    References
    ----------
    Dempster, Laird & Rubin (1977), J. R. Stat. Soc. B 39

    Examples
    --------
    >>> attempt, node = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> divide_failures(attempt, node, np.array([0, 0]), np.array([1.0, 1.0])).round(2)
    array([[1., 1.],
           [1., 1.]])
    """
    shape, ratio = SHARED_FAILURE_CV**-2, np.ones(counted.size)
    for _ in range(1000):
        previous_ratio, weights = ratio, ratio[node]
        failures = np.bincount(node, weights / np.bincount(attempt, weights)[attempt], counted.size)
        ratio = (shape + counted + failures) / (shape + expected)
        if np.abs(ratio - previous_ratio).max() < 1e-6:
            break
    return np.array([failures, ratio])


def compare_by_trials(nodes: pl.DataFrame) -> pl.DataFrame:
    """Test the nodes of `informative_trials` against the chances of their trials.

    Parameters
    ----------
    nodes : node, trials, counted and chances (a list of floats)

    Returns
    -------
    nodes without `chances`, with expected, p_value, rate_ratio, ci_low and ci_high

    Notes
    -----
    p_value is P(X >= counted) for the sum X of the node's chances (Poisson-binomial; Hong 2013, Comput. Stat. Data
    Anal. 59), expected is its mean. The ratio is counted over expected, with Garwood's interval of the count.

    Examples
    --------
    >>> nodes = pl.DataFrame({"node": [0], "trials": [2], "counted": [2], "chances": [[0.5, 0.5]]})
    >>> compare_by_trials(nodes).select("expected", "p_value", "rate_ratio").row(0)
    (1.0, 0.25, 2.0)
    """
    expected, counted = nodes["chances"].list.sum(), nodes["counted"].to_numpy()
    tails = poisson_binomial_tail([chances.to_numpy() for chances in nodes["chances"]], counted.tolist())
    low, high = (limit / expected.to_numpy() for limit in poisson_limits(counted, CONFIDENCE))
    columns = {"p_value": tails, "rate_ratio": counted / expected.to_numpy(), "ci_low": low, "ci_high": high}
    columns = {name: pl.Series(values, dtype=pl.Float64) for name, values in columns.items()}
    return nodes.drop("chances").with_columns(expected=expected, **columns)


def detectable_trial_ratio(informative: Sequence[pl.DataFrame], threshold: float) -> float | None:
    """Return the smallest ratio of failures to those expected that is detectable on a node of typical trials.

    The typical node has the median number of trials (ties: the median expectation). One factor multiplies the odds of
    all its trials; the ratio is that of the expectations with and without it.

    Parameters
    ----------
    informative : frames of `informative_trials`
    threshold : p-value at which a node is significant, reached with probability POWER

    Returns
    -------
    ratio, above 1; None if no number of failures suffices

    Examples
    --------
    >>> nodes = pl.DataFrame({"node": [0], "trials": [20], "chances": [[0.1] * 20]})
    >>> round(detectable_trial_ratio([nodes], 0.05), 3)
    3.133
    """
    node_trials = pl.concat(
        nodes.select("trials", "chances", mean=pl.col("chances").list.sum()) for nodes in informative
    )
    if node_trials.is_empty():
        return None
    typical = node_trials.sort("trials", "mean")["chances"][node_trials.height // 2].to_numpy()
    counts = range(1, typical.size + 1)
    index = bisect.bisect_left(counts, True, key=lambda k: poisson_binomial_tail([typical], [k])[0] <= threshold)
    if index == typical.size:
        return None
    least_count = counts[index]

    def scale_odds(log_factor: float) -> np.ndarray:
        return expit(np.log(typical) - np.log1p(-typical) + log_factor)

    low, high = 0.0, 40.0
    for _ in range(30):
        middle = (low + high) / 2
        is_detected = poisson_binomial_tail([scale_odds(middle)], [least_count])[0] >= POWER
        low, high = (low, middle) if is_detected else (middle, high)
    return float(scale_odds(high).sum() / typical.sum())


def compare_by_exposure(nodes: pl.DataFrame) -> pl.DataFrame:
    """Test counted failures against the fleet's by exposure.

    Parameters
    ----------
    nodes : fleet, counted and exposure_s (Int64)

    Returns
    -------
    nodes with expected, p_value, rate_ratio, ci_low and ci_high. Blank without exposure, and if the fleet is this node
    alone or has no failure; no ratio if the rest has no failure.

    Notes
    -----
    With K failures in a fleet of exposure E, a node of exposure e has Binomial(K, e / E) failures: p_value is P(X >=
    counted). The ratio is to the rest of the fleet. Its interval is that of the share w from `counted` of K (Clopper &
    Pearson 1934, Biometrika 26), transformed by w / (1 - w) x (E - e) / e.

    Examples
    --------
    >>> nodes = pl.DataFrame({"fleet": ["V100"] * 2, "counted": [3, 1], "exposure_s": [100, 100]})
    >>> compare_by_exposure(nodes)["p_value"].round(4).to_list()  # 5 / 16 and 15 / 16
    [0.3125, 0.9375]
    """
    sums = nodes.with_columns(
        fleet_counted=pl.col("counted").sum().over("fleet"), fleet_s=pl.col("exposure_s").sum().over("fleet")
    )
    names = ("counted", "fleet_counted", "exposure_s", "fleet_s")
    k, n, exposure, fleet_s = (sums[name].to_numpy() for name in names)
    is_compared = (exposure > 0) & (exposure < fleet_s) & (n > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        e = exposure / fleet_s
        odds = (1 - e) / e
        ratio = k / (n - k) * odds
        # With all failures or none there is only one limit, at the whole error probability.
        tail = (1 - CONFIDENCE) / np.where((k > 0) & (k < n), 2, 1)
        low = np.where(k > 0, betaincinv(k, n - k + 1, tail), 0.0)
        high = np.where(k < n, betaincinv(k + 1, n - k, 1 - tail), np.nan)
        columns = {
            "expected": n * e,
            "p_value": np.where(k > 0, betainc(k, n - k + 1, e), 1.0),
            "rate_ratio": np.where(k < n, ratio, np.nan),
            "ci_low": low / (1 - low) * odds,
            "ci_high": high / (1 - high) * odds,
        }
    series = ((name, np.where(is_compared, values, np.nan)) for name, values in columns.items())
    return nodes.hstack([pl.Series(name, values).fill_nan(None) for name, values in series])


def with_verdict(
    tested: pl.DataFrame, false_discovery: float, differ: bool = True
) -> tuple[pl.DataFrame, OrdinaryRates | None]:
    """Say which nodes fail more than chance and ordinary nodes explain.

    Whatever accuses a node uses this rule. A significant node fails more than expected by chance (p_value) and, if
    nodes `differ`, more than ordinary nodes: p_spread is the larger of both p-values.

    Parameters
    ----------
    tested : counted, expected and p_value, blank for nodes without a test
    false_discovery : largest share of wrong verdicts among the significant nodes
    differ : whether ordinary nodes have different rates

    Returns
    -------
    tested with q_value, p_spread, q_spread, ordinary_cv, ordinary_expected and lemon; and the rates of ordinary nodes

    Notes
    -----
    Ordinary nodes are fitted twice: without the most extreme nodes, then without the nodes that this first fit makes
    significant. The first fit alone takes ordinary nodes for too equal. q-values are those of Benjamini & Hochberg
    (1995, J. R. Stat. Soc. B 57).

    Examples
    --------
    >>> tested = pl.DataFrame({"counted": [9, 1], "expected": [2.0, 2.0], "p_value": [0.0002, 0.9]})
    >>> with_verdict(tested, 0.05, differ=False)[0].select("q_value", "lemon").rows()
    [(0.0004, True), (0.9, False)]
    """
    # NaN where a node has no test.
    p_values, counted, expected = (tested[name].to_numpy().astype(float) for name in ("p_value", "counted", "expected"))
    is_tested, p_spread, n_excluded = ~np.isnan(p_values), p_values, 0
    ordinary: OrdinaryRates | None = None
    for _ in range(2 if differ and is_tested.any() else 0):
        ordinary = ordinary_nodes(counted[is_tested], expected[is_tested], n_excluded, ordinary)
        p_spread = np.maximum(p_values, ordinary.tail(counted, expected))
        n_excluded = max(1, int(np.count_nonzero(benjamini_hochberg(p_spread) <= false_discovery)))
    cv, level = (np.nan, np.nan) if ordinary is None else (ordinary.cv, ordinary.level)
    columns = {
        "q_value": benjamini_hochberg(p_values),
        "p_spread": p_spread,
        "q_spread": benjamini_hochberg(p_spread),
        "ordinary_cv": np.where(is_tested, cv, np.nan),
        "ordinary_expected": level * expected,
    }
    table = tested.with_columns(pl.Series(name, values).fill_nan(None) for name, values in columns.items())
    return table.with_columns(lemon=pl.col("q_spread") <= false_discovery), ordinary


def next_threshold(p_values: pl.Series, is_significant: pl.Series, false_discovery: float) -> float:
    """Return the p-value at which one more node would be significant.

    Parameters
    ----------
    p_values : of the nodes, blank without a test
    is_significant : whether each is significant now
    false_discovery : of Benjamini and Hochberg's rule

    Returns
    -------
    p-value; 0 without tests

    Examples
    --------
    >>> next_threshold(pl.Series([0.001, 0.5, None]), pl.Series([True, False, False]), 0.05)
    0.05
    """
    n_tests = p_values.count()
    return false_discovery * (int(is_significant.sum()) + 1) / n_tests if n_tests else 0.0


def with_posterior(nodes: pl.DataFrame) -> pl.DataFrame:
    """Add the shrunken ratio of each node's rate to its fleet's.

    Parameters
    ----------
    nodes : fleet, counted, expected

    Returns
    -------
    nodes with posterior_rate_ratio, posterior_above_1, posterior_above_3, posterior_ci_low and posterior_ci_high.
    Without an expectation all are blank.

    Notes
    -----
    Counts are Poisson with mean expected x ratio. The ratios of a fleet are gamma with mean 1 and shape a
    (empirical Bayes; Clayton & Kaldor 1987, Biometrics 43), which maximises the negative binomial likelihood here. The
    posterior is gamma with shape a + counted and rate a + expected: its mean, its probabilities above 1 and above
    HIGH_RATIO, its quantiles at CONFIDENCE. If the sum of (counted - expected)^2 is at most that of counted, counts
    vary no more than Poisson counts and no such shape exists: all ratios are 1, none is above HIGH_RATIO, the other
    columns are blank.

    Examples
    --------
    >>> nodes = pl.DataFrame({"fleet": ["V100"] * 4, "counted": [9, 0, 1, 2], "expected": [3.0] * 4})
    >>> with_posterior(nodes)["posterior_rate_ratio"].round(2).to_list()
    [2.57, 0.21, 0.48, 0.74]
    """
    ratio, above_1, above_3, low, high = np.full((5, nodes.height), np.nan)
    counted, expected = nodes["counted"].to_numpy(), nodes["expected"].to_numpy()
    fleets, fleet = np.unique(nodes["fleet"].to_numpy(), return_inverse=True)
    for index in range(fleets.size):
        rows = np.flatnonzero((fleet == index) & (expected > 0))
        a = _gamma_shape(counted[rows], expected[rows]) if rows.size else None
        if a is None:
            ratio[rows], above_3[rows] = 1, 0
            continue
        shape, rate = a + counted[rows], a + expected[rows]
        ratio[rows] = shape / rate
        above_1[rows], above_3[rows] = gammaincc(shape, rate), gammaincc(shape, HIGH_RATIO * rate)
        low[rows], high[rows] = (gammaincinv(shape, (1 + side * CONFIDENCE) / 2) / rate for side in (-1, 1))
    columns = {"rate_ratio": ratio, "above_1": above_1, "above_3": above_3, "ci_low": low, "ci_high": high}
    return nodes.with_columns(pl.Series(f"posterior_{name}", values).fill_nan(None) for name, values in columns.items())


def _gamma_shape(counted: np.ndarray, expected: np.ndarray) -> float | None:
    """Return the shape of `with_posterior`; None if the counts vary no more than Poisson counts."""
    # Imported here because scipy.optimize is slow to import.
    from scipy.optimize import minimize_scalar

    if ((counted - expected) ** 2).sum() <= counted.sum():
        return None
    # Equal pairs once and sorted, so that the sum does not depend on the order of the nodes.
    pairs, times = np.unique(np.column_stack([counted, expected]), axis=0, return_counts=True)
    k, mean = pairs.T

    def negative_log_likelihood(log_shape: float) -> float:
        a = np.exp(log_shape)
        return -float(times @ (gammaln(a + k) - gammaln(a) - a * np.log1p(mean / a) - k * np.log(a + mean)))

    return float(
        np.exp(
            minimize_scalar(negative_log_likelihood, bounds=(-7.0, 14.0), method="bounded", options={"xatol": 1e-8}).x
        )
    )


def with_power(nodes: pl.DataFrame, threshold: float, ordinary: OrdinaryRates | None = None) -> pl.DataFrame:
    """Add detectable_ratio: the smallest ratio to the fleet's rate that the test detects on a typical node.

    Parameters
    ----------
    nodes : fleet, counted, exposure_s, p_value
    threshold : p-value at which a node is significant
    ordinary : rates of ordinary nodes, which the node has to exceed too

    Returns
    -------
    nodes with detectable_ratio, blank without a test

    Notes
    -----
    The typical node has the fleet's median exposure, and detection has probability POWER. With n the fleet's counted
    failures and e the node's share of its exposure, the rest of the fleet has n (1 - e). The node needs the least k
    with P(Bin(n (1 - e) + k, e) >= k) <= threshold (and the same for `ordinary` nodes). A Poisson variable of mean
    ratio x n e reaches k with probability POWER.

    Examples
    --------
    >>> nodes = pl.DataFrame({"fleet": ["V100"] * 4, "counted": [5] * 4, "exposure_s": [100] * 4, "p_value": [0.5] * 4})
    >>> with_power(nodes, 0.05)["detectable_ratio"].round(3).to_list()
    [2.73, 2.73, 2.73, 2.73]
    """
    tested = nodes.filter(pl.col("p_value").is_not_null())
    fleet_sums = nodes.group_by("fleet").agg(n=pl.col("counted").sum(), fleet_s=pl.col("exposure_s").sum())
    fleets = tested.group_by("fleet").agg(typical_s=pl.col("exposure_s").median()).join(fleet_sums, on="fleet")
    share, n = (fleets["typical_s"] / fleets["fleet_s"]).to_numpy(), fleets["n"].to_numpy()
    rest_failures = n * (1 - share)

    def tail(k: np.ndarray) -> np.ndarray:
        binomial_tail = betainc(k, rest_failures + 1, share)
        return binomial_tail if ordinary is None else np.maximum(binomial_tail, ordinary.tail(k, n * share))

    least_count = _least_count(tail, threshold, n.size)
    ratio = pl.Series("ratio", gammaincinv(least_count, POWER) / (n * share))
    joined = nodes.join(fleets.select("fleet", ratio), on="fleet", how="left", maintain_order="left")
    return joined.with_columns(detectable_ratio=pl.when(pl.col("p_value").is_not_null()).then("ratio")).drop("ratio")


def _least_count(tail: Callable[[np.ndarray], np.ndarray], threshold: float, size: int) -> np.ndarray:
    """Return for each of `size` nodes the smallest count, at least 1, whose tail is at most the threshold."""
    low, high = np.zeros(size), np.ones(size)
    while (tail(high) > threshold).any():
        high = high * 2
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2)
        is_enough = (tail(middle) <= threshold) & (middle > 0)
        low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
    return high


def median_detectable_ratio(nodes: pl.DataFrame) -> float | None:
    """Return the upper median, over fleets of lemon_nodes.csv, of the ratio detectable on a typical node."""
    ratios = nodes["detectable_ratio"].drop_nulls().sort()
    return ratios[ratios.len() // 2] if ratios.len() else None
