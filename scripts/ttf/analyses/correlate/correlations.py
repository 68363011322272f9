"""What goes with a long run: correlations of the run time with requests, size and measured use."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import polars as pl
from scipy.special import betainc, betaincc

from ttf.analyses.correlate import CORRELATIONS, RUNTIME_BY_GROUP
from ttf.analyses.correlate.kendall import kendall
from ttf.analyses.correlate.run_times import Sample, by_outcome_set, groups_of, samples
from ttf.stats.counts import Rows
from ttf.stats.exact import correlation_parts, dot, doubled_ranks, product, total
from ttf.stats.features import Feature, features_of
from ttf.stats.holm import holm
from ttf.stats.normal import Z_95
from ttf.stats.p_value import SMALLEST_P, TINY_P

TOO_FEW = "fewer than 3 points"
PERFECT = f"a perfect correlation has no interval; its p is written as {SMALLEST_P}"
PERFECT_KENDALL = "a perfect correlation has no interval"


@dataclass(frozen=True)
class Estimate:
    """One correlation of n points; blanks are None, and then `reason` says why."""

    n: int
    estimate: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    p_value: float | None = None
    reason: str | None = None


def correlations(
    jobs: Rows,
    cutoffs: Sequence[int | None],
    significance: float = 0.05,
    features: Sequence[Feature] | None = None,
) -> pl.DataFrame:
    """Correlation of each numeric feature with the run time, by outcome set and cut-off.

    jobs, cutoffs (s): see `run_times.samples`, also for the ValueErrors raised.
    unit `group_mean`: one point per distinct value, at the unweighted mean run time of its jobs (study 1):
    Pearson, Spearman, Kendall's tau-b. unit `job`: one point per job, measured values unrounded: Pearson,
    Spearman.

    Two-sided p: Pearson's exact under normality, Spearman's by the same distribution (the t approximation),
    Kendall's exact without ties up to 33 points, else normal: those of scipy's pearsonr, spearmanr and
    kendalltau. p_adjusted: Holm 1979 over the features within one outcome set, cut-off, unit and method;
    reject: p_adjusted < significance. 95 % intervals: Pearson by Fisher's z (Fisher 1921), Spearman by
    Bonett & Wright 2000, Kendall by Fieller, Hartley & Pearson 1957.

    Rows: outcome set, feature, cut-off (null first), unit, method. Everything over jobs comes from exact
    integer sums, so neither row order nor threads can change a bit.
    """
    chosen = features_of(jobs) if features is None else features
    numeric = [feature for feature in chosen if feature.is_numeric]
    rows = [(sample.outcome_set, row) for sample in samples(jobs, cutoffs, numeric) for row in _rows(sample)]
    return _table(by_outcome_set(rows), significance)


def groups_and_correlations(
    jobs: Rows, cutoffs: Sequence[int | None], significance: float = 0.05
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`run_times.runtime_by_group` and `correlations` of all features in one pass over their samples."""
    groups, rows = [], []
    for sample in samples(jobs, cutoffs):
        groups.append((sample.outcome_set, groups_of(sample)))
        if sample.feature.is_numeric:
            rows += ((sample.outcome_set, row) for row in _rows(sample))
    table = _table(by_outcome_set(rows), significance)
    return pl.concat([RUNTIME_BY_GROUP.frame([]), *by_outcome_set(groups)]), table


def _rows(sample: Sample) -> list[dict]:
    about = {"outcome_set": sample.outcome_set, "feature": sample.feature.name, "cutoff_s": sample.cutoff_s}
    return [about | {"unit": unit, "method": method, **vars(estimate)} for unit, method, estimate in _estimates(sample)]


def _table(rows: list[dict], significance: float) -> pl.DataFrame:
    _adjust(rows, significance)
    return CORRELATIONS.frame(rows)


def _adjust(rows: list[dict], significance: float) -> None:
    def family(row: dict) -> tuple:
        cutoff = -1 if row["cutoff_s"] is None else row["cutoff_s"]
        return row["outcome_set"], cutoff, row["unit"], row["method"]

    for _, members in groupby(sorted(rows, key=family), key=family):
        tests = list(members)
        adjusted = holm([row["p_value"] for row in tests])
        for row, p in zip(tests, adjusted, strict=True):
            row["p_adjusted"] = p
            row["reject"] = None if p is None else p < significance


def _estimates(sample: Sample) -> Iterator[tuple[str, str, Estimate]]:
    by_mean = _GroupMeans.of(sample)
    yield "group_mean", "pearson", by_mean.pearson()
    yield "group_mean", "spearman", by_mean.spearman()
    yield "group_mean", "kendall", by_mean.kendall()
    by_job = _Jobs(sample)
    yield "job", "pearson", by_job.pearson()
    yield "job", "spearman", by_job.spearman()


@dataclass(frozen=True)
class _GroupMeans:
    """One point per distinct value of the feature, ascending in it."""

    feature: str
    values: list[int]
    means: list[int]  # mean run times in units of 2^-64 s

    @classmethod
    def of(cls, sample: Sample) -> "_GroupMeans":
        present = np.flatnonzero(sample.group_counts)
        sums = sample.group_runtime_sums[present].tolist()
        counts = sample.group_counts[present].tolist()
        # In units of 2^-64 s, rounded down: a thousand times finer than a double, and two different means of
        # fewer than 2^32 jobs each stay different, so that ties are ties and nothing else is.
        means = [(sum_s << 64) // count for sum_s, count in zip(sums, counts, strict=True)]
        return cls(sample.feature.name, sample.coded.group_keys.gather(present).to_list(), means)

    def blank(self) -> Estimate | None:
        if len(self.values) < 3:
            return Estimate(len(self.values), reason=TOO_FEW)
        # The values are distinct by construction: only the means can be constant.
        if min(self.means) == max(self.means):
            return Estimate(len(self.values), reason="every mean run time is the same")
        return None

    def pearson(self) -> Estimate:
        return self.blank() or _fisher(len(self.values), _parts(self.values, self.means), 1.0)

    def spearman(self) -> Estimate:
        if blank := self.blank():
            return blank
        ranks = (2 * np.arange(1, len(self.values) + 1)).tolist()
        parts = _parts(ranks, self.mean_ranks())
        return _fisher(len(self.values), parts, _bonett_wright(parts))

    def kendall(self) -> Estimate:
        if blank := self.blank():
            return blank
        n = len(self.values)
        tau, p = kendall(np.array(self.mean_ranks()))
        if 1 - abs(tau) < 1e-12:
            # Rounding in tau-b's square roots; with untied values one swap changes tau by far more.
            reason = PERFECT_KENDALL if p >= SMALLEST_P else f"{PERFECT_KENDALL}; {TINY_P}"
            return Estimate(n, math.copysign(1.0, tau), None, None, max(p, SMALLEST_P), reason)
        spread = math.sqrt(0.437 / (n - 4)) if n > 4 else None
        return _with_interval(n, tau, spread, 4, p)

    def mean_ranks(self) -> list[int]:
        """Doubled ranks of the means, ties averaged."""
        distinct = sorted(set(self.means))
        code_of = {mean: code for code, mean in enumerate(distinct)}
        codes = [code_of[mean] for mean in self.means]
        ranks = doubled_ranks(np.bincount(codes, minlength=len(distinct)))
        return ranks[codes].tolist()


@dataclass(frozen=True)
class _Jobs:
    """One point per job, summed by distinct value of the feature first: requests have few of them."""

    sample: Sample

    def blank(self) -> Estimate | None:
        n = self.sample.n
        if n < 3:
            return Estimate(n, reason=TOO_FEW)
        if np.count_nonzero(self.sample.counts) == 1:
            return Estimate(n, reason=f"every value of {self.sample.feature.name} is the same")
        if self.sample.runtimes[0] == self.sample.runtimes[-1]:
            return Estimate(n, reason="every run time is the same")
        return None

    def pearson(self) -> Estimate:
        if blank := self.blank():
            return blank
        values = self.sample.coded.values.to_numpy()
        # Shifting the values changes no correlation and keeps the exact sums small and non-negative.
        shifted = values - values[0]
        parts = self._parts(shifted, self.sample.runtimes, self.sample.runtime_sums)
        return _fisher(self.sample.n, parts, 1.0)

    def spearman(self) -> Estimate:
        if blank := self.blank():
            return blank
        ranks = self.sample.ranks
        parts = self._parts(doubled_ranks(self.sample.counts), ranks, self.sample.sums(ranks))
        return _fisher(self.sample.n, parts, _bonett_wright(parts))

    def _parts(self, x: np.ndarray, y: np.ndarray, y_by_value: np.ndarray) -> tuple[float, float, float]:
        """x by distinct value, y by row and, summed over jobs, by distinct value."""
        n, weighted, y_of_jobs = self.sample.n, product(x, self.sample.counts), product(y, self.sample.jobs)
        parts = correlation_parts(
            n, total(weighted), total(y_of_jobs), dot(x, weighted), dot(y, y_of_jobs), dot(x, y_by_value)
        )
        assert parts is not None, "constant input is caught before"
        return parts


def _parts(x: list[int], y: list[int]) -> tuple[float, float, float]:
    """From a few points, in Python integers of any size."""
    parts = correlation_parts(
        len(x),
        sum(x),
        sum(y),
        sum(a * a for a in x),
        sum(b * b for b in y),
        sum(a * b for a, b in zip(x, y, strict=True)),
    )
    assert parts is not None, "constant input is caught before"
    return parts


def _bonett_wright(parts: tuple[float, float, float]) -> float:
    """How much wider than Pearson's the variance of Fisher's z is for Spearman: 1 + r^2 / 2."""
    return 1 + parts[1] / 2


def _fisher(n: int, parts: tuple[float, float, float], inflation: float) -> Estimate:
    """r with its interval by Fisher's z (variance inflation / (n - 3)) and its p-value."""
    r, square, complement = parts
    if abs(r) == 1.0:
        return Estimate(n, r, None, None, SMALLEST_P, PERFECT)
    spread = math.sqrt(inflation / (n - 3)) if n > 3 else None
    return _with_interval(n, r, spread, 3, _p_of_r(n, square, complement))


def _p_of_r(n: int, square: float, complement: float) -> float:
    """Two-sided p of r under no correlation: 1 - r^2 is beta distributed with n/2 - 1 and 1/2.

    The same as the t test with n - 2 degrees of freedom. Of the two equal forms, the one whose argument is
    known to full precision.
    """
    if square < 0.5:
        return float(betaincc(0.5, n / 2 - 1, square))
    return float(betainc(n / 2 - 1, 0.5, complement))


def _with_interval(n: int, estimate: float, spread: float | None, least: int, p: float) -> Estimate:
    """Back from Fisher's z; `spread` is its standard error, None where n <= least."""
    reasons = []
    low = high = None
    if spread is None:
        reasons.append(f"the interval needs more than {least} points")
    else:
        centre = math.atanh(estimate)
        low, high = math.tanh(centre - Z_95 * spread), math.tanh(centre + Z_95 * spread)
    if p < SMALLEST_P:
        p = SMALLEST_P
        reasons.append(TINY_P)
    return Estimate(n, estimate, low, high, p, "; ".join(reasons) or None)
