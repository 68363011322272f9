"""Whether a node fails more than its fleet: exact tests, the spread of ordinary nodes, a rate shrunken towards the

fleet's, the power of the test.
"""

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import betainc, betaincinv, expit, gammainc, gammaincc, gammaincinv, gammaln, pdtrik

from ttf.stats.durations.mttf import poisson_limits

CONFIDENCE = 0.95
POWER = 0.8
# The posterior is asked for the probability of more than so many times the fleet's rate.
MUCH_MORE = 3
# Nodes whose tails are worked out together.
_BLOCK = 256
# The part of the nodes, those that stand out most, that has no say in how ordinary ones differ.
TRIMMED = 0.05
# What is supposed of their coefficient of variation: its median, and the SD of its logarithm.
USUAL_CV, USUAL_SPREAD = 0.7, 0.5

# The same where one looks for those that make most failures: in simulated clusters two of three bad nodes of 200 are
# among the ten ranked first, of USUAL_CV fewer.
BLAMED_CV = 3


@dataclass(frozen=True)
class Ordinary:
    """How the failures of ordinary nodes differ: level: times those expected on average; cv: of their rates."""

    level: float
    cv: float

    def tail(self, counted: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """P(X >= counted) of ordinary nodes of which so many are expected: negative binomial."""
        shape, mean = self.cv**-2, self.level * expected
        return np.where(counted > 0, betainc(np.maximum(counted, 1), shape, mean / (shape + mean)), 1.0)


def ordinary_nodes(counted: np.ndarray, expected: np.ndarray) -> Ordinary:
    """The rates of ordinary nodes (gamma), as the nodes say that do not stand out: a bad one does not fit itself.

    Of the nodes with the smallest Poisson tails, TRIMMED of them and one at least, nothing is used but that they are
    left out: the counts of the others are negative binomial, cut off where they would have been left out too. The few
    failures of most fleets say little of the coefficient of variation, so its logarithm has a normal prior.
    """
    # scipy.optimize is slow to import, and only here.
    from scipy.optimize import minimize

    tails = np.where(counted > 0, gammainc(np.maximum(counted, 1), expected), 1.0)
    left_out = max(1, int(TRIMMED * counted.size)) if counted.size > 1 else 0
    least = np.sort(tails)[left_out]
    kept = tails >= least
    k, mean = counted[kept], expected[kept]
    # The most that a node may have and be kept.
    most = np.floor(pdtrik(1 - least, mean) + 1e-6) + 1 if least < 1 else np.zeros(k.size)
    most = np.maximum(np.where(1 - least < np.exp(-mean), 0, most), k)
    rows, times = np.unique(np.column_stack([k, mean, most]), axis=0, return_counts=True)
    k, mean, most = rows.T

    def loss(logs: np.ndarray) -> float:
        level, cv = np.exp(np.clip(logs, (-5, -4), (3, 2)))
        a, mu = cv**-2, level * mean
        terms = gammaln(a + k) - gammaln(a) - a * np.log1p(mu / a) + k * np.log(mu / (a + mu))
        within = np.log(np.maximum(betainc(a, most + 1, a / (a + mu)), np.finfo(float).tiny))
        return float(times @ (within - terms)) + ((np.log(cv / USUAL_CV)) / USUAL_SPREAD) ** 2 / 2

    options = {"xatol": 1e-6, "fatol": 1e-9, "maxiter": 400}
    found = minimize(loss, np.log([0.9, USUAL_CV]), method="Nelder-Mead", options=options).x
    return Ordinary(*np.exp(np.clip(found, (-5, -4), (3, 2))).tolist())


def blamed(attempt: np.ndarray, node: np.ndarray, counted: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """(failures, ratio), a column a node: of failures on one of several nodes, those it is likely to have caused, and

    its shrunken rate over that of its fleet with them. By EM: a failure is divided among its nodes by their ratios,
    and a ratio is the posterior mean of a gamma variable (mean 1, CV of BLAMED_CV) given what is counted.

    attempt, node: numbers from 0 on, a row for each node of each such failure; counted: failures that name the node;
    expected: of it in all, at the same use.
    """
    shape, ratio, failures = BLAMED_CV**-2, np.ones(counted.size), np.zeros(counted.size)
    for _ in range(1000):
        before, weights = ratio, ratio[node]
        failures = np.bincount(node, weights / np.bincount(attempt, weights)[attempt], counted.size)
        ratio = (shape + counted + failures) / (shape + expected)
        if np.abs(ratio - before).max() < 1e-6:
            break
    return np.array([failures, ratio])


def compared_by_trials(by_node: pl.DataFrame) -> pl.DataFrame:
    """node, trials, counted, expected, p_value, rate_ratio, ci_low, ci_high: of what `informative_trials` gives.

    p_value is P(X >= counted) for the sum X of the node's chances (Poisson-binomial), expected its mean. The ratio is
    counted over expected with Garwood's interval of the count.
    """
    expected, counted = by_node["chances"].list.sum(), by_node["counted"].to_numpy()
    tails = poisson_binomial_tail([chances.to_numpy() for chances in by_node["chances"]], counted.tolist())
    low, high = (limit / expected.to_numpy() for limit in poisson_limits(counted, CONFIDENCE))
    found = {"p_value": tails, "rate_ratio": counted / expected.to_numpy(), "ci_low": low, "ci_high": high}
    found = {name: pl.Series(values, dtype=pl.Float64) for name, values in found.items()}
    return by_node.drop("chances").with_columns(expected=expected, **found)


def detectable_by_trials(informative: Sequence[pl.DataFrame], threshold: float) -> float | None:
    """The smallest ratio of failures to those expected that a node of typical trials would have been found with.

    informative: of `informative_trials`. The node is the one with the median number of trials (of equals that of the
    median expectation); all odds of its trials have one factor: the ratio of the expectations with it and without it.
    Found: with a chance of POWER its p-value is at most `threshold`. None where no number of failures is enough.
    """
    by_trials = pl.concat(nodes.select("trials", "chances", mean=pl.col("chances").list.sum()) for nodes in informative)
    if by_trials.is_empty():
        return None
    typical = by_trials.sort("trials", "mean")["chances"][by_trials.height // 2].to_numpy()
    counts = range(1, typical.size + 1)
    place = bisect.bisect_left(counts, True, key=lambda k: poisson_binomial_tail([typical], [k])[0] <= threshold)
    if place == typical.size:
        return None
    needed = counts[place]

    def with_factor(log_factor: float) -> np.ndarray:
        return expit(np.log(typical) - np.log1p(-typical) + log_factor)

    low, high = 0.0, 40.0
    for _ in range(30):
        middle = (low + high) / 2
        is_found = poisson_binomial_tail([with_factor(middle)], [needed])[0] >= POWER
        low, high = (low, middle) if is_found else (middle, high)
    return float(with_factor(high).sum() / typical.sum())


def compared_by_exposure(nodes: pl.DataFrame) -> pl.DataFrame:
    """The nodes with expected, p_value, rate_ratio, ci_low, ci_high: counted failures against the fleet's, by exposure.

    nodes: fleet, counted and exposure_s (Int64). With K failures in a fleet of exposure E, a node of exposure e has
    Binomial(K, e / E) of them: p_value is P(X >= counted). The interval of e / E from `counted` of K (Clopper-Pearson),
    carried over by w / (1 - w) x (E - e) / e, is that of the ratio to the rest of the fleet. Blank without exposure,
    and where the fleet is this node alone or has no failure; no ratio where the rest has no failure.
    """
    sums = nodes.with_columns(
        fleet_counted=pl.col("counted").sum().over("fleet"), fleet_s=pl.col("exposure_s").sum().over("fleet")
    )
    names = ("counted", "fleet_counted", "exposure_s", "fleet_s")
    k, n, exposure, whole = (sums[name].to_numpy() for name in names)
    is_compared = (exposure > 0) & (exposure < whole) & (n > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        e = exposure / whole
        rest = (1 - e) / e
        ratio = k / (n - k) * rest
        # With all failures or none there is one limit only, which has the whole of what the confidence leaves.
        tail = (1 - CONFIDENCE) / np.where((k > 0) & (k < n), 2, 1)
        low = np.where(k > 0, betaincinv(k, n - k + 1, tail), 0.0)
        high = np.where(k < n, betaincinv(k + 1, n - k, 1 - tail), np.nan)
        columns = {
            "expected": n * e,
            "p_value": np.where(k > 0, betainc(k, n - k + 1, e), 1.0),
            "rate_ratio": np.where(k < n, ratio, np.nan),
            "ci_low": low / (1 - low) * rest,
            "ci_high": high / (1 - high) * rest,
        }
    blank = ((name, np.where(is_compared, values, np.nan)) for name, values in columns.items())
    return nodes.hstack([pl.Series(name, values).fill_nan(None) for name, values in blank])


def poisson_binomial_tail(chances: Sequence[Sequence[float]], counts: Sequence[int]) -> np.ndarray:
    """P(X >= k) for sums X of independent trials with these chances: one of each row of chances and count.

    Only sums of products of positive numbers are formed, so that small tails are right to the last digits. Checked
    against scipy.stats.poisson_binom, which takes a hundred times as long for a thousand nodes.
    """
    tails = np.ones(len(counts))
    order = sorted((row for row, count in enumerate(counts) if count > 0), key=lambda row: len(chances[row]))
    for start in range(0, len(order), _BLOCK):
        rows = order[start : start + _BLOCK]
        k = np.array([counts[row] for row in rows])
        padded = np.zeros((len(rows), len(chances[rows[-1]])))
        for place, row in enumerate(rows):
            padded[place, : len(chances[row])] = chances[row]
        # reached[j, i]: the chance of j failures of row i so far, counted so that k of the row stand in the last place,
        # a state of k and more that is not left again.
        last = k.max()
        reached, moved = np.zeros((2, last + 1, len(rows)))
        reached[last - k, np.arange(len(rows))] = 1
        for place, p in enumerate(padded.T):
            # States that are there already, and from which the last can still be reached.
            there = slice(max(0, last - (padded.shape[1] - place)), min(last, last - k.min() + place + 1))
            now = np.multiply(reached[there], p, out=moved[there])
            reached[there] -= now
            reached[there.start + 1 : there.stop + 1] += now
        tails[rows] = reached[last]
    return tails


def benjamini_hochberg(p_values: np.ndarray) -> np.ndarray:
    """The p-values adjusted for the rate of false discoveries among them (1995); NaN, of no test, stays."""
    # Imported here: see `ttf.stats.shares.wilson_interval`.
    from statsmodels.stats.multitest import multipletests

    adjusted, is_tested = np.full(p_values.size, np.nan), ~np.isnan(p_values)
    if is_tested.any():
        adjusted[is_tested] = multipletests(p_values[is_tested], method="fdr_bh")[1]
    return adjusted


def threshold_of_next(p_values: pl.Series, found: pl.Series, false_discovery: float) -> float:
    """The p-value with which one node more would have been found; blank p-values are of nodes without a test."""
    tested = p_values.count()
    return false_discovery * (int(found.sum()) + 1) / tested if tested else 0.0


def with_posterior(nodes: pl.DataFrame) -> pl.DataFrame:
    """The nodes with posterior_rate_ratio, _above_1, _above_3, _ci_low and _ci_high: of a node's rate over its fleet's,

    shrunken. nodes: fleet, counted, expected. Counts are Poisson with mean expected x ratio, the ratios of a fleet's
    nodes gamma with mean 1 and shape a, so that counts are negative binomial; a is that of the largest marginal
    likelihood (empirical Bayes). The posterior is gamma of shape a + counted and rate a + expected: its mean, and its
    probability above 1 and above MUCH_MORE, its quantiles at CONFIDENCE. Where the counts spread no more than Poisson
    counts do (the sum of (counted - expected)^2 is at most that of counted) there is no such shape: all ratios are 1,
    none is above MUCH_MORE, and there is no more to say. Blank without an expectation.
    """
    ratio, above_1, above_3, low, high = np.full((5, nodes.height), np.nan)
    counted, expected = nodes["counted"].to_numpy(), nodes["expected"].to_numpy()
    fleets, fleet = np.unique(nodes["fleet"].to_numpy(), return_inverse=True)
    for place in range(fleets.size):
        rows = np.flatnonzero((fleet == place) & (expected > 0))
        a = _gamma_shape(counted[rows], expected[rows]) if rows.size else None
        if a is None:
            ratio[rows], above_3[rows] = 1, 0
            continue
        shape, rate = a + counted[rows], a + expected[rows]
        ratio[rows] = shape / rate
        above_1[rows], above_3[rows] = gammaincc(shape, rate), gammaincc(shape, MUCH_MORE * rate)
        low[rows], high[rows] = (gammaincinv(shape, (1 + side * CONFIDENCE) / 2) / rate for side in (-1, 1))
    columns = {"rate_ratio": ratio, "above_1": above_1, "above_3": above_3, "ci_low": low, "ci_high": high}
    return nodes.with_columns(pl.Series(f"posterior_{name}", of).fill_nan(None) for name, of in columns.items())


def _gamma_shape(counted: np.ndarray, expected: np.ndarray) -> float | None:
    """See `with_posterior`; None where the counts spread no more than Poisson counts."""
    # scipy.optimize is slow to import, and only here.
    from scipy.optimize import minimize_scalar

    if ((counted - expected) ** 2).sum() <= counted.sum():
        return None
    # Alike ones once, in an order of their own: the sum does not depend on that of the nodes.
    pairs, times = np.unique(np.column_stack([counted, expected]), axis=0, return_counts=True)
    k, mean = pairs.T

    def loss(log_shape: float) -> float:
        a = np.exp(log_shape)
        terms = gammaln(a + k) - gammaln(a) - a * np.log1p(mean / a) - k * np.log(a + mean)
        return -float(times @ terms)

    return float(np.exp(minimize_scalar(loss, bounds=(-7.0, 14.0), method="bounded", options={"xatol": 1e-8}).x))


def with_power(nodes: pl.DataFrame, threshold: float, ordinary: Ordinary | None = None) -> pl.DataFrame:
    """The nodes with detectable_ratio: over its fleet's rate, of a node of the fleet's median exposure.

    nodes: fleet, counted, exposure_s, p_value. The smallest ratio with which the test would have found such a node with
    a chance of POWER: with n the fleet's counted failures and e the node's share of its exposure, the rest of the fleet
    has n (1 - e), the node needs the least k with P(Bin(n (1 - e) + k, e) >= k) <= threshold (and that of `ordinary`
    nodes), and a Poisson variable of mean ratio x n e reaches k with that chance. Blank where a node has no test.
    """
    tested = nodes.filter(pl.col("p_value").is_not_null())
    whole = nodes.group_by("fleet").agg(n=pl.col("counted").sum(), whole_s=pl.col("exposure_s").sum())
    fleets = tested.group_by("fleet").agg(typical_s=pl.col("exposure_s").median()).join(whole, on="fleet")
    share, n = (fleets["typical_s"] / fleets["whole_s"]).to_numpy(), fleets["n"].to_numpy()
    rest = n * (1 - share)

    def tail(k: np.ndarray) -> np.ndarray:
        alone = betainc(k, rest + 1, share)
        return alone if ordinary is None else np.maximum(alone, ordinary.tail(k, n * share))

    low, high = np.zeros(n.size), np.ones(n.size)
    while (tail(high) > threshold).any():
        high = high * 2
    for _ in range(64):
        middle = np.floor((low + high) / 2)
        is_enough = (tail(middle) <= threshold) & (middle > 0)
        low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
    ratio = pl.Series("ratio", gammaincinv(high, POWER) / (n * share))
    found = nodes.join(fleets.select("fleet", ratio), on="fleet", how="left", maintain_order="left")
    return found.with_columns(detectable_ratio=pl.when(pl.col("p_value").is_not_null()).then("ratio")).drop("ratio")


def typical_detectable(nodes: pl.DataFrame) -> float | None:
    """The ratio that would have been found on a typical node, of the fleets of lemon_nodes.csv the upper median."""
    ratios = nodes["detectable_ratio"].drop_nulls().sort()
    return ratios[ratios.len() // 2] if ratios.len() else None
