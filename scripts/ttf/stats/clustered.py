"""Confidence intervals that hold when users and nodes differ, by the cluster sandwich estimator.

The variance of an estimate is the sum of its clusters' squared influences (the sandwich of generalised estimating
equations: Liang & Zeger 1986). Each influence is divided by 1 - h, where h is the cluster's leverage: its share of the
estimate's denominator. This removes the pull of a cluster on the estimate (CR3 or the jackknife, Bell & McCaffrey
2002). Quantiles are Student's. The degrees of freedom are the effective number of clusters (Kish 1965, (sum n)^2 / sum
n^2 with n members each) less one, because a few clusters hold most members. `docs/coverage.md` reports the coverage.

Weeks differ too: the variance that different clusters share in one week, or carry over to the next, is added. It is the
sum of the products of the influences of different clusters within a block of time (Cameron, Gelbach & Miller 2011: by
cluster + by block - by both), times (1 + r) / (1 - r), the long-run variance of an AR(1). Here r is the same sum over
neighbouring blocks, relative to it, without the bias of a short series (Kendall 1954). Products within a cluster are
already in its own variance, so that a user's campaign of several weeks counts once (Chiang, Hansen & Sasaki 2024). The
degrees of freedom are those of the sum of both variances (Satterthwaite 1946).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.special import expit, logit, stdtr, stdtrit

from ttf.engine.columns import FEWEST_BLOCKS, FEWEST_CLUSTERS
from ttf.engine.counts import Rows, ValueCounts
from ttf.records.clusters import CLUSTER_COLUMNS, level_names
from ttf.stats.basics.order import example_rows, number_rows, sort_order
from ttf.stats.shares import ENDED

FEWEST = FEWEST_CLUSTERS
# With fewer degrees of freedom one cluster makes nearly all of the variance: Student's quantile is 4.3 at 2, 12.7 at 1.
FEWEST_DEGREES = 2
# Upper limit for the correlation of neighbouring blocks; it makes the variance 19 times that of one block. With T
# blocks the limit is 1 - 4 / T, which leaves two effective blocks: an estimate from a few weeks is mostly random
# variation.
HIGHEST_CORRELATION = 0.9
# Standard errors of a logarithm below this are rounding errors.
NO_ROUNDING = 1e-12
CLUSTERED = ("cluster_by", "clusters", "ci_low_clustered", "ci_high_clustered")
UNCLUSTERED = "nothing in the trace says what repeats: no clustered interval"
NO_SPREAD = "no spread between clusters to be seen"


class Limits(NamedTuple):
    """Bounds of an interval by stratum, and the effective number of clusters behind its degrees of freedom."""

    low: np.ndarray
    high: np.ndarray
    effective: np.ndarray


def too_few_reason(n_effective: float, cluster_by: str, result: str = "interval") -> str:
    """Return the reason for a missing clustered interval or p-value."""
    return f"{n_effective:.1f} effective clusters by {cluster_by}, fewer than {FEWEST}: no clustered {result}"


def no_interval_reason(n_effective: float, cluster_by: str) -> str:
    """Return the reason for a missing interval."""
    return too_few_reason(n_effective, cluster_by) if n_effective < FEWEST else f"{NO_SPREAD}: no clustered interval"


def _sum_rows(index: np.ndarray, values: np.ndarray, size: int) -> np.ndarray:
    """Sum the rows of values (rows, ...) with each index from 0 up to `size`."""
    if values.ndim == 1:
        return np.bincount(index, values, size)
    columns = values.shape[1]
    cells = index[:, None] * columns + np.arange(columns)
    return np.bincount(cells.ravel(), values.ravel(), size * columns).reshape(size, columns)


@dataclass(frozen=True)
class _Groups:
    """Groups of rows in order of stratum and key: the group of each row, the stratum and key of each group."""

    group: np.ndarray
    stratum: np.ndarray
    key: np.ndarray

    @classmethod
    def from_keys(cls, stratum: np.ndarray, key: np.ndarray) -> "_Groups":
        group = number_rows(stratum, key)
        rows = example_rows(group)
        return cls(group, stratum[rows], key[rows])

    def sum(self, values: np.ndarray) -> np.ndarray:
        """Sum a value of each row by group."""
        return _sum_rows(self.group, values, self.stratum.size)


@dataclass(frozen=True)
class _BlockRanges:
    """Ranges of blocks by stratum that rows cover, from `start` up to before `stop`, in order of stratum and block.

    start, stop: positions in a flattened table of shape (strata, blocks + 1). covered: cells that any row covers.
    """

    start: np.ndarray
    stop: np.ndarray
    shape: tuple[int, int]
    covered: np.ndarray

    @classmethod
    def from_ranges(cls, stratum: np.ndarray, block: np.ndarray, lengths: np.ndarray, strata: int) -> "_BlockRanges":
        """Return the ranges of rows that cover `lengths` blocks from `block` on."""
        block = block - block.min(initial=0)
        width = int((block + lengths).max(initial=0)) + 1
        start = stratum * width + block
        ranges = cls(start, start + lengths, (strata, width), np.ones((strata, width), bool))
        return replace(ranges, covered=ranges.sum(np.ones(block.size)).reshape(ranges.shape) > 0)

    @property
    def stratum(self) -> np.ndarray:
        """Return the stratum of each covered block."""
        return np.nonzero(self.covered)[0]

    @property
    def key(self) -> np.ndarray:
        """Return the number of each covered block, from 0 on."""
        return np.nonzero(self.covered)[1]

    def sum(self, values: np.ndarray) -> np.ndarray:
        """Sum over each block the values of the rows whose ranges cover it."""
        steps = (np.bincount(position, values, self.covered.size) for position in (self.start, self.stop))
        return np.cumsum(np.subtract(*steps).reshape(self.shape), axis=1)[self.covered]


@dataclass(frozen=True)
class Spread:
    """Standard error of an estimate by stratum, and its degrees of freedom.

    se: NaN where all influences are 0 and nothing is known about it; infinite where one cluster holds all. degrees: NaN
    where there is no interval, for example with fewer than FEWEST effective clusters. effective: the degrees plus one,
    or the effective number of clusters where it alone counts.
    """

    se: np.ndarray
    degrees: np.ndarray
    effective: np.ndarray

    def half_width(self, confidence: float) -> np.ndarray:
        """Return half the width of the interval at this confidence."""
        return self.se * stdtrit(self.degrees, (1 + confidence) / 2)

    def p_value(self, estimate: np.ndarray | float) -> np.ndarray:
        """Return the two-sided p-value of an estimate of 0."""
        return 2 * stdtr(self.degrees, -np.abs(estimate / self.se))


@dataclass(frozen=True)
class Clusters:
    """Clusters of several strata, or the parts of clusters by block of time.

    stratum_index: stratum of each row, 0 to strata - 1 (Int64). members: number of jobs or durations of each row, at
    least 1. Without `cluster` and `block` each row is a cluster. With them each row is one pair of cluster and block.
    cluster: its number within the stratum. block: number of the week; neighbouring weeks differ by one. With `blocks` a
    row stands for that many consecutive equal blocks, starting with `block`; its values are those of each of them.
    """

    stratum_index: np.ndarray
    members: np.ndarray
    strata: int
    cluster: np.ndarray | None = None
    block: np.ndarray | int = 0
    blocks: np.ndarray | int = 1

    @classmethod
    def in_one_stratum(cls, members: np.ndarray, *numbers: np.ndarray) -> "Clusters":
        """Return clusters of a single stratum. numbers: `cluster` and `block` of each row, if they are pairs.

        >>> Clusters.in_one_stratum(np.array([3.0, 3.0, 3.0])).effective
        array([3.])
        """
        return cls(np.zeros(members.size, np.int64), members, 1, *numbers)

    def sum(self, values: np.ndarray) -> np.ndarray:
        """Sum a value of each row by stratum."""
        return np.bincount(self.stratum_index, weights=values * self.blocks, minlength=self.strata)

    def share(self, values: np.ndarray) -> np.ndarray:
        """Return each row's share of the sum of its stratum; NaN where that sum is 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return values / self.sum(values)[self.stratum_index]

    @cached_property
    def effective(self) -> np.ndarray:
        """Return Kish's effective number of clusters by stratum; 0 for a stratum without clusters."""
        return self._kish_number(self.cluster_groups, self.members * self.blocks)

    @cached_property
    def counts_blocks(self) -> np.ndarray:
        """Return by stratum whether the variance between blocks counts: FEWEST_BLOCKS blocks, FEWEST clusters."""
        enough = np.bincount(self.block_groups.stratum, minlength=self.strata) >= FEWEST_BLOCKS
        return enough & (self.effective >= FEWEST)

    @cached_property
    def cluster_groups(self) -> _Groups:
        if self.cluster is None:
            return _Groups(np.arange(self.stratum_index.size), self.stratum_index, self.stratum_index)
        return _Groups.from_keys(self.stratum_index, self.cluster)

    @cached_property
    def block_groups(self) -> "_Groups | _BlockRanges":
        if isinstance(self.blocks, int):
            return _Groups.from_keys(self.stratum_index, self._row_blocks)
        return _BlockRanges.from_ranges(self.stratum_index, self._row_blocks, self.blocks, self.strata)

    @property
    def _row_blocks(self) -> np.ndarray:
        return np.broadcast_to(self.block, self.stratum_index.shape)

    @cached_property
    def _neighbour_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of rows of one cluster in neighbouring blocks: the earlier and the later rows."""
        order = sort_order(self.cluster_groups.group, self._row_blocks)
        earlier, later = order[:-1], order[1:]
        block_ends = self._row_blocks + self.blocks
        is_next = (np.diff(self.cluster_groups.group[order]) == 0) & (block_ends[earlier] == self._row_blocks[later])
        return earlier[is_next], later[is_next]

    def _kish_number(self, groups: "_Groups | _BlockRanges", members: np.ndarray) -> np.ndarray:
        squares = np.bincount(groups.stratum, groups.sum(members) ** 2, self.strata)
        return np.divide(self.sum(self.members) ** 2, squares, out=np.zeros(self.strata), where=squares > 0)

    def spread(self, influence: np.ndarray, leverage: np.ndarray, by_influence: bool = False) -> Spread:
        """Return the standard error by stratum of an estimate, and its degrees of freedom.

        Parameters
        ----------
        influence, leverage: part of the estimate that a row makes, and its share of the denominator; both add up. Of
            one stratum there may be several estimates: arrays (rows, estimates) and (rows, 1).
        by_influence: bool
            Whether a few influences may dominate the estimate. Then the degrees of freedom of the clusters are (sum
            i^2)^2 / sum i^4, Kish's number of the squared influences; NaN below FEWEST_DEGREES.
        """
        groups = self.cluster_groups
        squares = jackknife_influences(groups.sum(influence * self.blocks), groups.sum(leverage * self.blocks)) ** 2
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            variance = _sum_rows(groups.stratum, squares, self.strata)
            degrees = self.effective - 1
            if by_influence:
                degrees = variance**2 / np.bincount(groups.stratum, squares**2, self.strata)
                degrees = np.where(degrees >= FEWEST_DEGREES, degrees, np.nan)
        return self.add_shared_variance(variance, degrees, influence, leverage)

    def add_shared_variance(
        self, variance: np.ndarray, degrees: np.ndarray, influence: np.ndarray, leverage: np.ndarray
    ) -> Spread:
        """Return the spread of an estimate of this variance by cluster, and what different clusters share in time."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            degrees, effective = np.where(self.effective >= FEWEST, degrees, np.nan), self.effective
            if self.counts_blocks.any():
                extra, extra_degrees = self.shared_variance(influence, leverage)
                total_degrees = (variance + extra) ** 2 / (variance**2 / degrees + extra**2 / extra_degrees)
                has_extra = (extra > 0) & np.isfinite(total_degrees)
                degrees = np.where(has_extra, total_degrees, degrees)
                effective = np.where(has_extra, total_degrees + 1, effective)
                variance = variance + extra
            se = np.sqrt(variance)
        return Spread(np.where(se > NO_ROUNDING, se, np.nan), degrees, effective)

    def shared_variance(self, influence: np.ndarray, leverage: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return by stratum the variance that different clusters share in time, 0 if none, and its degrees."""
        blocks, (earlier, later) = self.block_groups, self._neighbour_rows
        n_blocks = np.bincount(blocks.stratum, minlength=self.strata)
        block_influence = jackknife_influences(blocks.sum(influence), blocks.sum(leverage))
        row_influence = jackknife_influences(influence, leverage)
        is_next = (np.diff(blocks.stratum) == 0) & (np.diff(blocks.key) == 1)

        def sum_by_stratum(stratum: np.ndarray, products: np.ndarray) -> np.ndarray:
            # Of no products, such as where no two blocks are neighbours, the sums would be whole numbers.
            return _sum_rows(stratum, products, self.strata).astype(float)

        # Products within clusters are subtracted.
        same_block = sum_by_stratum(blocks.stratum, block_influence**2)
        same_block -= sum_by_stratum(self.stratum_index, row_influence**2 * self.blocks)
        neighbours = block_influence[:-1] * block_influence[1:]
        next_block = sum_by_stratum(blocks.stratum[:-1][is_next], neighbours[is_next])
        next_block -= sum_by_stratum(self.stratum_index[earlier], row_influence[earlier] * row_influence[later])
        # The blocks of one row are neighbours of each other.
        next_block -= sum_by_stratum(self.stratum_index, row_influence**2 * (self.blocks - 1))
        has_shared = self.counts_blocks & (same_block > 0)
        n_blocks = np.where(has_shared, n_blocks, FEWEST_BLOCKS)
        long_run = _long_run_factor(n_blocks, next_block, np.where(has_shared, same_block, 1))
        # With strongly correlated weeks their effective number is itself uncertain.
        degrees = np.maximum(self._kish_number(blocks, self.members) / long_run - 1, FEWEST - 1)
        return np.where(has_shared, same_block * long_run, 0), degrees

    def se(self, influence: np.ndarray, leverage: np.ndarray) -> np.ndarray:
        """Return the standard error by stratum of an estimate with these influences; see `spread`."""
        return self.spread(influence, leverage).se

    def student(self, confidence: float) -> np.ndarray:
        """Return Student's two-sided quantile by stratum from the clusters alone; NaN below FEWEST clusters."""
        return stdtrit(self._cluster_degrees, (1 + confidence) / 2)

    def p_value(self, statistic: np.ndarray) -> np.ndarray:
        """Return the two-sided p-value by stratum of a statistic in standard errors, from the clusters alone."""
        return 2 * stdtr(self._cluster_degrees, -np.abs(statistic))

    @property
    def _cluster_degrees(self) -> np.ndarray:
        return np.where(self.effective >= FEWEST, self.effective - 1, np.nan)

    def ratio(
        self,
        top: np.ndarray,
        bottom: np.ndarray,
        confidence: float,
        has_mean_leverage: bool = False,
        by_influence: bool = False,
    ) -> Limits:
        """Return the interval of sum(top) / sum(bottom) by stratum, symmetric on the log scale; NaN for none.

        A sum of 1 is a single event, which shows no spread between clusters.

        has_mean_leverage: the leverage is the mean of the shares of top and bottom (a mean time to failure: exposure
        and failures), else the share of the bottom (a mean). by_influence: see `spread`.
        """
        top_share, bottom_share = self.share(top), self.share(bottom)
        leverage = (top_share + bottom_share) / 2 if has_mean_leverage else bottom_share
        spread = self.spread(top_share - bottom_share, leverage, by_influence=by_influence)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            estimate, factor = self.sum(top) / self.sum(bottom), np.exp(spread.half_width(confidence))
            factor = np.where((self.sum(top) == 1) | (self.sum(bottom) == 1), np.nan, factor)
            return Limits(_blank_infinite(estimate / factor), _blank_infinite(estimate * factor), spread.effective)

    def proportion(self, part: np.ndarray, whole: np.ndarray, confidence: float, by_influence: bool = False) -> Limits:
        """Return the interval of sum(part) / sum(whole) by stratum, symmetric on the logit scale; NaN at 0 and 1.

        NaN too if one member is in the part, or all but one are: see `ratio`.
        """
        spread = self._logit_spread(part, whole, by_influence)
        is_single = (self.sum(part) == 1) | (self.sum(whole - part) == 1)
        half_width = np.where(is_single, np.nan, spread.half_width(confidence))
        with np.errstate(divide="ignore", invalid="ignore"):
            centre = logit(self.sum(part) / self.sum(whole))
        return Limits(expit(centre - half_width), expit(centre + half_width), spread.effective)

    def around_the_middle(self, below: np.ndarray, whole: np.ndarray, confidence: float) -> Limits:
        """Return the interval of ranks by stratum, from 0 to 1, between whose values the median lies (Woodruff 1952).

        below: number of members of each row up to the median of its stratum.
        """
        spread = self._logit_spread(below, whole)
        half_width = spread.half_width(confidence)
        return Limits(expit(-half_width), expit(half_width), spread.effective)

    def _logit_spread(self, part: np.ndarray, whole: np.ndarray, by_influence: bool = False) -> Spread:
        with np.errstate(invalid="ignore", divide="ignore"):
            share = (self.sum(part) / self.sum(whole))[self.stratum_index]
            influence = (part - share * whole) / (self.sum(whole)[self.stratum_index] * share * (1 - share))
        return self.spread(influence, self.share(whole), by_influence=by_influence)


def name_levels(kind: str, block_by: str | None, clusters: Clusters) -> str:
    """Return the kind of clusters, and of blocks where they count: user and week."""
    return f"{kind} and {block_by}" if clusters.counts_blocks[0] else kind


def _long_run_factor(n_blocks: np.ndarray | int, next_block: np.ndarray, same_block: np.ndarray) -> np.ndarray:
    """Return (1 + r) / (1 - r) of an AR(1), at least 1. r is without its bias in a short series (Kendall 1954).

    next_block, same_block: sums of the products of influences of neighbouring blocks, and within blocks.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        r = np.nan_to_num((n_blocks * next_block / same_block + 1) / (n_blocks - 4))
    r = np.clip(r, 0, np.minimum(HIGHEST_CORRELATION, 1 - 4 / np.maximum(n_blocks, FEWEST_BLOCKS)))
    return (1 + r) / (1 - r)


def jackknife_influences(influence: np.ndarray | float, leverage: np.ndarray) -> np.ndarray:
    """Return influences / (1 - leverage), which removes the pull of each on the estimate.

    Parameters
    ----------
    influence, leverage : arrays of one shape

    Returns
    -------
    floats of that shape

    References
    ----------
    Bell & McCaffrey (2002), Surv. Methodol. 28

    Examples
    --------
    >>> jackknife_influences(np.array([0.1, -0.1]), np.array([0.5, 0.0])).tolist()
    [0.2, -0.1]
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(influence == 0, 0, influence / (1 - leverage))


def _blank_infinite(bounds: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(bounds), bounds, np.nan)


def sum_ended(rows: Rows, *keys: str) -> pl.DataFrame:
    """Count jobs, ended jobs and failures by keys, and by cluster and block if the rows have clusters.

    `clustered_failure_shares` reads these sums for each value of the keys, or for several values together.
    """
    levels = ("cluster", "block") if "cluster_by" in rows.collect_schema() else ()
    sums = rows.lazy().group_by(*keys, *levels).agg(jobs=pl.len().cast(pl.Int64), **ENDED)
    return sums.collect(engine="streaming")


def sum_by_cluster(
    rows: Rows, keys: Sequence[str], divided: bool = True, summed: Rows | None = None, /, **sums: pl.Expr
) -> pl.DataFrame:
    """Sum over the rows of each cluster and block of each stratum: columns *keys, LEVELS and *sums, in their order.

    The result is empty where the trace names no clusters. Rows without a column `block`, or with a blank block_by, are
    in no block.

    Parameters
    ----------
    rows: frame with the columns of `ttf.records.clusters`
    keys: columns that form the strata; none for one stratum of all rows
    divided: bool
        Whether to split a stratum that is a single cluster (an account of one user, one system) by its groups.
    summed: frame, optional
        Columns `keys`, `cluster`, `block` and partial sums that cover each row once. Then only the strata to split are
        read from the rows.
    sums: aggregates by name
    """
    lazy = rows.lazy()
    # A column `cluster` without cluster_by belongs to the trace: Slurm's name of a whole cluster.
    schema = lazy.collect_schema()
    missing = [name for name in CLUSTER_COLUMNS if name not in schema or "cluster_by" not in schema]
    lazy = lazy.with_columns(pl.lit(None, CLUSTER_COLUMNS[name]).alias(name) for name in missing)
    cluster_by, group_by, block_by = level_names(lazy)
    if cluster_by is None:
        return _sum_by_level(lazy.clear(), keys, "cluster", (None, None), sums)
    if summed is None:
        totals = _sum_by_level(lazy, keys, "cluster", (cluster_by, block_by), sums)
    else:
        partial = {name: pl.col(name).sum() for name in sums}
        totals = _sum_by_level(summed.lazy(), keys, "cluster", (cluster_by, block_by), partial)
    first = pl.col("cluster").first()
    is_single = (pl.col("cluster").eq_missing(first)).all()
    single = totals.filter(is_single.over(keys) if keys else is_single)
    if divided and single.height:
        split_rows = lazy.join(single.lazy(), on=keys, how="semi", nulls_equal=True) if keys else lazy
        unsplit = totals.join(single, on=keys, how="anti", nulls_equal=True) if keys else totals.clear()
        totals = pl.concat([unsplit, _sum_by_level(split_rows, keys, "group", (group_by, block_by), sums)])
    levels = (pl.col(name).cast(pl.Int64) for name in LEVELS[2:])
    order = totals.select(number.fill_null(number.max() + 1).fill_null(0) for number in levels).get_columns()
    if keys:
        # Numbers instead of texts: 0.02 s for 130,000 rows, against 0.08 s.
        order.insert(0, pl.Series(number_strata(totals, keys, in_order_of_keys=True)[1]))
    return totals[sort_order(*(numbers.to_numpy() for numbers in order))]


# The kind of clusters, the length of blocks, and the numbers of both.
LEVELS = ("cluster_by", "block_by", "cluster", "block")


def _sum_by_level(
    rows: pl.LazyFrame,
    keys: Sequence[str],
    level: str,
    level_words: tuple[str | None, str | None],
    sums: dict[str, pl.Expr],
) -> pl.DataFrame:
    """Return sums by keys, cluster (the column `level`) and block, with LEVELS. level_words: cluster_by, block_by."""
    has_blocks = "block" in rows.collect_schema() and level_words[1] is not None
    block = pl.col("block") if has_blocks else pl.lit(None, CLUSTER_COLUMNS["block"])
    groups = rows.with_columns(cluster=pl.col(level), block=block).group_by(*keys, "cluster", "block")
    totals = groups.agg(**sums).collect(engine="streaming")
    name_columns = (pl.lit(name, pl.String).alias(column) for column, name in zip(LEVELS[:2], level_words, strict=True))
    return totals.select(*keys, *name_columns, *LEVELS[2:], *sums)


def number_strata(
    rows: pl.DataFrame, keys: Sequence[str], in_order_of_keys: bool = False
) -> tuple[pl.DataFrame, np.ndarray]:
    """Return the strata, a row for each with its keys, and each row's index of them (Int64).

    The strata are in the order of appearance, or of their keys, blanks last.
    """
    strata = rows.select(keys).unique(maintain_order=True)
    if in_order_of_keys:
        strata = strata.sort(keys, nulls_last=True)
    numbered = strata.with_row_index("stratum_index")
    stratum = rows.select(keys).join(numbered, on=keys, how="left", nulls_equal=True, maintain_order="left")
    return strata, stratum["stratum_index"].to_numpy().astype(np.int64)


def float_columns(rows: pl.DataFrame, *names: str) -> list[np.ndarray]:
    """Return these columns of numbers as arrays of floats."""
    return [rows[name].to_numpy().astype(float) for name in names]


def build_clusters(
    sums: pl.DataFrame, keys: Sequence[str], members: str
) -> tuple[pl.DataFrame, pl.DataFrame, Clusters]:
    """Return (strata, rows, clusters) of `sums`, the result of `sum_by_cluster`.

    strata: a row for each stratum with *keys and cluster_by, which also names the blocks where they count. rows: the
    sums with members. members: column with the number of members of a cluster. Without a column `block` only clusters
    count.
    """
    rows = sums.filter(pl.col(members) > 0)
    strata, stratum = number_strata(rows, [*keys, "cluster_by"])
    (member_counts,) = float_columns(rows, members)
    if "block" not in rows.columns or not rows["block"].count():
        return strata, rows, Clusters(stratum, member_counts, strata.height)
    # Rows of unknown block or cluster form a block or cluster of their own.
    cluster, block = (
        rows.select(number.fill_null(number.min() - 2).fill_null(0)).to_series().to_numpy()
        for number in (pl.col("cluster").cast(pl.Int64), pl.col("block").cast(pl.Int64))
    )
    clusters = Clusters(stratum, member_counts, strata.height, cluster, block)
    cluster_and_block = pl.format("{} and {}", "cluster_by", pl.lit(rows["block_by"].first()))
    cluster_by = pl.when(pl.Series(clusters.counts_blocks)).then(cluster_and_block).otherwise("cluster_by")
    return strata.with_columns(cluster_by=cluster_by), rows, clusters


def clustered_ratios(
    rows: Rows,
    keys: Sequence[str],
    top: pl.Expr,
    bottom: pl.Expr,
    members: pl.Expr,
    confidence: float = 0.95,
    has_mean_leverage: bool = False,
    by_influence: bool = False,
) -> pl.DataFrame:
    """Return the interval of sum(top) / sum(bottom) of each stratum: *keys, CLUSTERED, why_not; see `Clusters.ratio`.

    top, bottom, members: aggregates of whole numbers over rows. keys: columns that form the strata.
    """
    sums = sum_by_cluster(rows, keys, top=top, bottom=bottom, members=members)
    strata, sums, clusters = build_clusters(sums, keys, "members")
    tops, bottoms = float_columns(sums, "top", "bottom")
    return add_limits(strata, *clusters.ratio(tops, bottoms, confidence, has_mean_leverage, by_influence))


def clustered_shares(rows: Rows, keys: Sequence[str], part: pl.Expr, whole: pl.Expr) -> pl.DataFrame:
    """Return the 95 % interval of the share sum(part) / sum(whole) of each stratum, allowing for clusters.

    Parameters
    ----------
    rows : frame with the columns of `ttf.records.clusters`
    keys : columns that form the strata; none for one stratum of all rows
    part, whole : aggregates of whole numbers over rows

    Returns
    -------
    *keys, CLUSTERED, why_not

    Notes
    -----
    See `Clusters.proportion`.

    Examples
    --------
    >>> from ttf.records.clusters import add_clusters
    >>> jobs = pl.DataFrame({"user": [f"u{n % 20}" for n in range(200)], "failed": [n % 20 < 4 for n in range(200)]})
    >>> shares = clustered_shares(add_clusters(jobs), [], pl.col("failed").sum(), pl.len())
    >>> round(shares["ci_low_clustered"].item(), 3), round(shares["ci_high_clustered"].item(), 3)
    (0.068, 0.461)
    """
    return _limits_of_shares(sum_by_cluster(rows, keys, part=part, whole=whole), keys, "part", "whole")


def clustered_failure_shares(rows: Rows, keys: Sequence[str], ended: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return the interval of the failures among ended jobs, as `clustered_shares`. ended: `sum_ended`, if it exists."""
    return _limits_of_shares(sum_by_cluster(rows, keys, True, ended, **ENDED), keys, "failures", "ended")


def _limits_of_shares(sums: pl.DataFrame, keys: Sequence[str], part: str, whole: str) -> pl.DataFrame:
    strata, sums, clusters = build_clusters(sums, keys, whole)
    parts, wholes = float_columns(sums, part, whole)
    return add_limits(strata, *clusters.proportion(parts, wholes, 0.95))


def clustered_medians(
    rows: Rows, stratum: str, column: str, values_by_stratum: Mapping[Any, ValueCounts]
) -> pl.DataFrame:
    """Return the interval of the median of a column of whole numbers by stratum: stratum, CLUSTERED, why_not.

    stratum: column of the rows. values_by_stratum: counted values of the column, for the strata that are estimated. The
    limits are two of them, by nearest rank (Woodruff 1952).
    """
    medians = [(name, values.median()) for name, values in values_by_stratum.items() if values.size]
    schema: dict[str, Any] = {stratum: rows.collect_schema()[stratum], "median": pl.Float64}
    rows = rows.lazy().join(pl.LazyFrame(medians, schema, orient="row"), on=stratum)
    is_below = pl.col(column) <= pl.col("median")
    sums = sum_by_cluster(rows, [stratum], below=is_below.sum(), n=pl.col(column).count())
    strata, sums, clusters = build_clusters(sums, [stratum], "n")
    below, n = float_columns(sums, "below", "n")
    ranks = clusters.around_the_middle(below, n, 0.95)
    low, high = (
        [value_at_share(values_by_stratum[name], rank) for name, rank in zip(strata[stratum], side, strict=True)]
        for side in (ranks.low, ranks.high)
    )
    return add_limits(strata, np.array(low, float), np.array(high, float), ranks.effective)


def value_at_share(values: ValueCounts, share: float) -> float:
    """Return the value whose rank is this share of all values; NaN if the share is NaN."""
    return values.at(min(int(share * values.size), values.size - 1)) if np.isfinite(share) else np.nan


def add_limits(strata: pl.DataFrame, low: np.ndarray, high: np.ndarray, effective: np.ndarray) -> pl.DataFrame:
    """Add CLUSTERED and `why_not` to the strata.

    low, high, effective: fields of `Limits`; bounds that are not finite become blank. why_not: reason for a missing
    interval, else blank.
    """
    has_interval = pl.Series(np.isfinite(low) & np.isfinite(high), dtype=pl.Boolean)
    reasons = [
        no_interval_reason(number, cluster_by)
        for number, cluster_by in zip(effective, strata["cluster_by"], strict=True)
    ]
    return strata.with_columns(
        clusters=pl.Series(effective, dtype=pl.Float64),
        ci_low_clustered=pl.when(has_interval).then(pl.Series(low, dtype=pl.Float64)),
        ci_high_clustered=pl.when(has_interval).then(pl.Series(high, dtype=pl.Float64)),
        why_not=pl.when(~has_interval).then(pl.Series(reasons, dtype=pl.String)),
    )


def join_clustered(
    table: pl.DataFrame,
    strata: pl.DataFrame,
    keys: Sequence[str],
    exact: str = "ci_low",
    clustered: str = "ci_low_clustered",
) -> pl.DataFrame:
    """Join CLUSTERED of the strata to the table, and add the reason for a missing clustered interval to `reason`.

    keys: columns of both. exact: column of the table that is blank without any interval. clustered: column of the
    strata that is blank without a clustered one.
    """
    joined = table.join(strata, on=list(keys), how="left", nulls_equal=True, maintain_order="left")
    why_not = pl.when(pl.col("cluster_by").is_null()).then(pl.lit(UNCLUSTERED)).otherwise("why_not")
    return append_reason(joined.with_columns(why_not=why_not), exact, clustered)


def append_reason(table: pl.DataFrame, exact: str = "ci_low", clustered: str = "ci_low_clustered") -> pl.DataFrame:
    """Add why_not to `reason` where an exact interval has no clustered counterpart; see `join_clustered`."""
    is_missing = pl.col(exact).is_not_null() & pl.col(clustered).is_null()
    reason = pl.concat_str("reason", pl.when(is_missing).then("why_not"), separator="; ", ignore_nulls=True)
    return table.with_columns(reason=pl.when(reason != "").then(reason)).drop("why_not")


def block_spread(
    influence: np.ndarray, leverage: np.ndarray, event_squares: np.ndarray | float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return the standard error of an estimate, and the effective number of blocks of time behind it.

    For data of a single cluster, such as a fleet: blocks take the place of clusters, and neighbours correlate.

    Parameters
    ----------
    influence : (blocks, ...) floats
        Part of each block in the estimate's deviation, in order of time; FEWEST_BLOCKS or more.
    leverage : (blocks, ...) floats
        Share of each block in the estimate's denominator.
    event_squares : floats
        Sum of squares, in each block, of the influences of single events. They count once in the variance. Because they
        dilute the correlation of blocks, the correlation is computed from the products of different events.

    Returns
    -------
    (se, effective), without the first axis. se is NaN where all influences are 0. effective is Kish's number of the
    leverages, reduced for correlated blocks, but at least FEWEST.

    References
    ----------
    Kish (1965), Survey Sampling, section 11.7

    Examples
    --------
    >>> se, effective = block_spread(np.tile([0.1, -0.1], 10), np.full(20, 0.05))
    >>> round(float(se), 3), round(float(effective), 1)
    (0.471, 20.0)
    """
    scaled = jackknife_influences(influence, leverage)
    squares = (scaled**2).sum(axis=0)
    own_squares = np.sum(jackknife_influences(jackknife_influences(event_squares, leverage), leverage), axis=0)
    shared = np.maximum(squares - own_squares, 0)
    long_run = _long_run_factor(len(scaled), (scaled[1:] * scaled[:-1]).sum(axis=0), shared)
    variance = squares - shared + shared * long_run
    kish = leverage.sum(axis=0) ** 2 / (leverage**2).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        se, effective = np.sqrt(variance), kish * squares / variance
    # With strongly correlated blocks their effective number is itself uncertain.
    effective = np.where(kish >= FEWEST, np.maximum(effective, FEWEST), kish)
    return np.where(se > NO_ROUNDING, se, np.nan), effective
