"""Intervals that hold when users and nodes differ: what the members of a cluster share is not counted once per member.

The spread of an estimate is that of its clusters' influences on it (the sandwich of generalised estimating equations:
Liang & Zeger 1986), each over 1 - h, h being the cluster's share of what the estimate rests on: the cluster pulls the
estimate towards itself (as with CR3 or the jackknife, Bell & McCaffrey 2002). Quantiles are Student's with the
effective number of clusters (Kish 1965, (sum n)^2 / sum n^2 with n members each) less one degrees of freedom, as a
few clusters hold most members. `docs/coverage.md` shows how often the intervals cover.

Weeks differ too: what different clusters share in one week, or carry over to the next, is added to that spread. It is
the sum of the products of the influences of different clusters within a block of time (Cameron, Gelbach & Miller 2011:
by cluster + by block - by both), times (1 + r) / (1 - r), the long-run variance of an AR(1); r is the same sum over
neighbouring blocks as a part of it, with the bias of a short series taken out (Kendall 1954). Products within a cluster
are in its own spread already, so that a user's campaign of some weeks counts once (Chiang, Hansen & Sasaki 2024).
Degrees of freedom are those of the sum of both spreads (Satterthwaite 1946).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.special import expit, logit, stdtr, stdtrit

from ttf.engine.columns import FEWEST_BLOCKS, FEWEST_CLUSTERS
from ttf.engine.counts import Counted
from ttf.records.clusters import CLUSTER_COLUMNS, level_names
from ttf.records.jobs import Frame

FEWEST = FEWEST_CLUSTERS
# With fewer degrees of freedom one cluster makes nearly all of the spread: Student's quantile is 4.3 at 2, 12.7 at 1.
FEWEST_DEGREES = 2
# The correlation of neighbouring blocks counts as no higher: with it the spread is 19 times that of one block. Of T
# blocks, as no higher than 1 - 4 / T, which leaves two effective ones: what a few weeks say of it is mostly chance.
HIGHEST_CORRELATION = 0.9
# Of a logarithm; what is smaller is rounding.
NO_ROUNDING = 1e-12
CLUSTERED = ("cluster_by", "clusters", "ci_low_clustered", "ci_high_clustered")
UNCLUSTERED = "nothing in the trace says what repeats: no clustered interval"
NO_SPREAD = "no spread between clusters to be seen"


class Limits(NamedTuple):
    """Both ends of an interval by stratum, and the effective number that its degrees of freedom are of (plus one)."""

    low: np.ndarray
    high: np.ndarray
    effective: np.ndarray


def too_few(effective: float, by: str, what: str = "interval") -> str:
    """The reason why there is no clustered interval, or p-value."""
    return f"{effective:.1f} effective clusters by {by}, fewer than {FEWEST}: no clustered {what}"


def why_not(effective: float, by: str) -> str:
    """The reason why an interval of so many effective clusters lacks, where it does."""
    return too_few(effective, by) if effective < FEWEST else f"{NO_SPREAD}: no clustered interval"


@dataclass(frozen=True)
class _Groups:
    """Groups of rows, in order of stratum and key: the group of each row, and the stratum and key of each group."""

    group: np.ndarray
    stratum: np.ndarray
    key: np.ndarray

    @classmethod
    def of(cls, stratum: np.ndarray, key: np.ndarray) -> "_Groups":
        _, first, group = np.unique(_codes(stratum, key), return_index=True, return_inverse=True)
        return cls(group, stratum[first], key[first])

    def sum(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.group, weights=values, minlength=self.stratum.size)


@dataclass(frozen=True)
class _Stretches:
    """Blocks by stratum that rows cover, from `first` up to before `end` each: stratum and key, in their order.

    first, end: places in a table of all strata by as many blocks as there are, and one; covered: the blocks in it.
    """

    first: np.ndarray
    end: np.ndarray
    shape: tuple[int, int]
    covered: np.ndarray

    @classmethod
    def of(cls, stratum: np.ndarray, block: np.ndarray, blocks: np.ndarray, strata: int) -> "_Stretches":
        block = block - block.min(initial=0)
        width = int((block + blocks).max(initial=0)) + 1
        first = stratum * width + block
        every = cls(first, first + blocks, (strata, width), np.ones((strata, width), bool))
        return replace(every, covered=every.sum(np.ones(block.size)).reshape(every.shape) > 0)

    @property
    def stratum(self) -> np.ndarray:
        return np.nonzero(self.covered)[0]

    @property
    def key(self) -> np.ndarray:
        return np.nonzero(self.covered)[1]

    def sum(self, values: np.ndarray) -> np.ndarray:
        steps = (np.bincount(place, values, self.covered.size) for place in (self.first, self.end))
        return np.cumsum(np.subtract(*steps).reshape(self.shape), axis=1)[self.covered]


def _codes(*keys: np.ndarray) -> np.ndarray:
    """One number for each combination of some whole numbers, in their order."""
    codes = np.zeros(keys[0].size, np.int64)
    for key in keys:
        low = key.min(initial=0)
        codes = codes * (int(key.max(initial=0)) - int(low) + 1) + (key - low)
    return codes


@dataclass(frozen=True)
class Spread:
    """The spread of an estimate by stratum: its standard error and the degrees of freedom of it.

    se: NaN where there is no spread at all, which is no knowledge of it; infinite where one cluster holds all.
    degrees: NaN where there is no interval, as of fewer than FEWEST effective clusters. effective: the degrees plus
    one, or the effective number of clusters where it alone counts.
    """

    se: np.ndarray
    degrees: np.ndarray
    effective: np.ndarray

    def half_width(self, confidence: float) -> np.ndarray:
        """Half the interval of this confidence."""
        return self.se * stdtrit(self.degrees, (1 + confidence) / 2)

    def p_value(self, estimate: np.ndarray) -> np.ndarray:
        """The two-sided p-value of the estimate being 0."""
        return 2 * stdtr(self.degrees, -np.abs(estimate / self.se))


@dataclass(frozen=True)
class Clusters:
    """The clusters of several strata, in order of the strata; or the parts of clusters by block of time.

    place: the stratum of each row, 0 up to strata - 1 (Int64); members: how many jobs or lives each has, 1 or more.
    Without `cluster` and `block` a row is a cluster. With them it is what one cluster has in one block, each pair once;
    cluster: its number within the stratum; block: the number of the week, neighbours being one apart. With `blocks`
    a row stands for so many neighbours from that block on that are alike, and its values are those of each of them.
    """

    place: np.ndarray
    members: np.ndarray
    strata: int
    cluster: np.ndarray | None = None
    block: np.ndarray | None = None
    blocks: np.ndarray | int = 1

    def sum(self, values: np.ndarray) -> np.ndarray:
        """Of a value of each row, the sum by stratum."""
        return np.bincount(self.place, weights=values * self.blocks, minlength=self.strata)

    def share(self, values: np.ndarray) -> np.ndarray:
        """Of a value of each row, its part in the sum of the stratum; NaN where that is 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return values / self.sum(values)[self.place]

    @cached_property
    def effective(self) -> np.ndarray:
        """Kish's effective number of clusters, by stratum; 0 without any."""
        return self._kish(self._clusters, self.members * self.blocks)

    @cached_property
    def counts_blocks(self) -> np.ndarray:
        """By stratum, whether what blocks share is in the spread: of FEWEST_BLOCKS or more, and FEWEST clusters."""
        if self.block is None:
            return np.zeros(self.strata, bool)
        enough = np.bincount(self._blocks.stratum, minlength=self.strata) >= FEWEST_BLOCKS
        return enough & (self.effective >= FEWEST)

    @cached_property
    def _clusters(self) -> _Groups:
        if self.cluster is None:
            return _Groups(np.arange(self.place.size), self.place, self.place)
        return _Groups.of(self.place, self.cluster)

    @cached_property
    def _blocks(self) -> "_Groups | _Stretches":
        if isinstance(self.blocks, int):
            return _Groups.of(self.place, self.block)
        return _Stretches.of(self.place, self.block, self.blocks, self.strata)

    @cached_property
    def _next(self) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of rows of one cluster in neighbouring blocks: the rows, and those after them."""
        order = np.argsort(_codes(self._clusters.group, self.block), kind="stable")
        row, after = order[:-1], order[1:]
        ends = self.block + self.blocks
        is_next = (np.diff(self._clusters.group[order]) == 0) & (ends[row] == self.block[after])
        return row[is_next], after[is_next]

    def _kish(self, groups: "_Groups | _Stretches", members: np.ndarray) -> np.ndarray:
        squares = np.bincount(groups.stratum, groups.sum(members) ** 2, self.strata)
        return np.divide(self.sum(self.members) ** 2, squares, out=np.zeros(self.strata), where=squares > 0)

    def spread(self, influence: np.ndarray, leverage: np.ndarray, spent: int = 1, by_influence: bool = False) -> Spread:
        """The spread by stratum of an estimate, from the influence on it and the leverage of each row.

        Both add up over rows: the part of an estimate that a row makes, and its share of what the estimate rests on.
        spent: the parameters estimated. by_influence: a few influences may carry the estimate, so that the degrees of
        freedom of the clusters are (sum i^2)^2 / sum i^4, Kish's number of the squared influences; below
        FEWEST_DEGREES there are none.
        """
        groups = self._clusters
        squares = jackknifed(groups.sum(influence * self.blocks), groups.sum(leverage * self.blocks)) ** 2
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            variance = np.bincount(groups.stratum, squares, self.strata)
            degrees = self.effective - spent
            if by_influence:
                degrees = variance**2 / np.bincount(groups.stratum, squares**2, self.strata)
                degrees = np.where(degrees >= FEWEST_DEGREES, degrees, np.nan)
            degrees, effective = np.where(self.effective >= FEWEST, degrees, np.nan), self.effective
            if self.counts_blocks.any():
                shared, of_blocks = self._shared_in_time(influence, leverage)
                both = (variance + shared) ** 2 / (variance**2 / degrees + shared**2 / of_blocks)
                has_both = (shared > 0) & np.isfinite(both)
                degrees = np.where(has_both, both, degrees)
                effective = np.where(has_both, both + spent, effective)
                variance = variance + shared
            se = np.sqrt(variance)
        return Spread(np.where(se > NO_ROUNDING, se, np.nan), degrees, effective)

    def _shared_in_time(self, influence: np.ndarray, leverage: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(variance, its degrees of freedom) by stratum of what different clusters share in time: 0 where nothing."""
        blocks, (row, after) = self._blocks, self._next
        number = np.bincount(blocks.stratum, minlength=self.strata)
        total = jackknifed(blocks.sum(influence), blocks.sum(leverage))
        each = jackknifed(influence, leverage)
        is_next = (np.diff(blocks.stratum) == 0) & (np.diff(blocks.key) == 1)

        def between_clusters(of_blocks: np.ndarray, stratum: np.ndarray, within: np.ndarray, place: np.ndarray):
            return np.bincount(stratum, of_blocks, self.strata) - np.bincount(place, within, self.strata)

        together = between_clusters(total**2, blocks.stratum, each**2 * self.blocks, self.place)
        neighbours = total[:-1] * total[1:]
        carried = between_clusters(
            neighbours[is_next], blocks.stratum[:-1][is_next], each[row] * each[after], self.place[row]
        )
        # Those of a row are neighbours of each other.
        carried -= np.bincount(self.place, each**2 * (self.blocks - 1), self.strata)
        counts = self.counts_blocks & (together > 0)
        short = np.where(counts, number, FEWEST_BLOCKS)
        long_run = _long_run(short, carried, np.where(counts, together, 1))
        # Of weeks that are much alike the number is not known well itself.
        degrees = np.maximum(self._kish(blocks, self.members) / long_run - 1, FEWEST - 1)
        return np.where(counts, together * long_run, 0), degrees

    def se(self, influence: np.ndarray, leverage: np.ndarray) -> np.ndarray:
        """The standard error by stratum of an estimate with these influences: see `spread`."""
        return self.spread(influence, leverage).se

    def student(self, confidence: float) -> np.ndarray:
        """Student's two-sided quantile by stratum, of the clusters alone; NaN below FEWEST."""
        return stdtrit(self._degrees, (1 + confidence) / 2)

    def p_value(self, statistic: np.ndarray) -> np.ndarray:
        """Two-sided, by stratum, of a statistic in standard errors; of the clusters alone."""
        return 2 * stdtr(self._degrees, -np.abs(statistic))

    @property
    def _degrees(self) -> np.ndarray:
        return np.where(self.effective >= FEWEST, self.effective - 1, np.nan)

    def ratio(
        self,
        top: np.ndarray,
        bottom: np.ndarray,
        confidence: float,
        both: bool = False,
        by_influence: bool = False,
    ) -> Limits:
        """The interval by stratum of sum(top) / sum(bottom), symmetric on the log scale; NaN where there is none.

        both: h is the mean of the cluster's shares of top and bottom (a mean time to failure: exposure and failures),
        else its share of the bottom (a mean). by_influence: see `spread`.
        """
        of_top, of_bottom = self.share(top), self.share(bottom)
        leverage = (of_top + of_bottom) / 2 if both else of_bottom
        spread = self.spread(of_top - of_bottom, leverage, by_influence=by_influence)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            estimate, away = self.sum(top) / self.sum(bottom), np.exp(spread.half_width(confidence))
            return Limits(_finite(estimate / away), _finite(estimate * away), spread.effective)

    def proportion(self, part: np.ndarray, whole: np.ndarray, confidence: float, by_influence: bool = False) -> Limits:
        """The interval by stratum of sum(part) / sum(whole), symmetric on the logit scale; NaN at 0 and 1."""
        spread = self._logit_spread(part, whole, by_influence)
        away = spread.half_width(confidence)
        with np.errstate(divide="ignore", invalid="ignore"):
            centre = logit(self.sum(part) / self.sum(whole))
        return Limits(expit(centre - away), expit(centre + away), spread.effective)

    def around_the_middle(self, below: np.ndarray, whole: np.ndarray, confidence: float) -> Limits:
        """The interval by stratum of ranks, from 0 to 1, between whose values the median lies (Woodruff 1952).

        below: the members of a row up to the median of its stratum.
        """
        spread = self._logit_spread(below, whole)
        away = spread.half_width(confidence)
        return Limits(expit(-away), expit(away), spread.effective)

    def _logit_spread(self, part: np.ndarray, whole: np.ndarray, by_influence: bool = False) -> Spread:
        with np.errstate(invalid="ignore", divide="ignore"):
            share = (self.sum(part) / self.sum(whole))[self.place]
            influence = (part - share * whole) / (self.sum(whole)[self.place] * share * (1 - share))
        return self.spread(influence, self.share(whole), by_influence=by_influence)


def _long_run(blocks: np.ndarray | int, carried: np.ndarray, together: np.ndarray) -> np.ndarray:
    """(1 + r) / (1 - r) of an AR(1) of so many blocks, by the products of neighbours and the squares of all; 1 or more.

    r is without its bias in a short series (Kendall 1954).
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        r = np.nan_to_num((blocks * carried / together + 1) / (blocks - 4))
    r = np.clip(r, 0, np.minimum(HIGHEST_CORRELATION, 1 - 4 / np.maximum(blocks, FEWEST_BLOCKS)))
    return (1 + r) / (1 - r)


def jackknifed(influence: np.ndarray, leverage: np.ndarray) -> np.ndarray:
    """Influences over 1 - leverage: without the pull of each on the estimate."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(influence == 0, 0, influence / (1 - leverage))


def _finite(limit: np.ndarray) -> np.ndarray:
    """NaN where one cluster holds all."""
    return np.where(np.isfinite(limit), limit, np.nan)


def by_cluster(
    rows: Frame, by: Sequence[str], /, divided: bool = True, summed: Frame | None = None, **sums: pl.Expr
) -> pl.DataFrame:
    """Sums over the rows of each cluster and block of each stratum: *by, LEVELS, *sums, in their order.

    rows: of `ttf.records.clusters`; by: columns that form the strata, none for one of all rows. divided: a stratum that
    is one cluster alone (an account of one user, one system of several) is divided by its groups. summed: columns `by`,
    `cluster`, `block` and the sums over some rows of them, of each row once; then only what is divided is read of the
    rows. No rows where the trace names no clusters. Rows without a column `block` are in no block.
    """
    lazy = rows.lazy()
    # A column `cluster` by itself is a trace's own: Slurm's name of a whole cluster.
    there = lazy.collect_schema()
    missing = [name for name in CLUSTER_COLUMNS if name not in there or "cluster_by" not in there]
    lazy = lazy.with_columns(pl.lit(None, CLUSTER_COLUMNS[name]).alias(name) for name in missing)
    cluster_by, group_by, block_by = level_names(lazy)
    if summed is None or cluster_by is None:
        found = _sums(lazy, by, "cluster", (cluster_by, block_by), sums)
    else:
        again = {name: pl.col(name).sum() for name in sums}
        found = _sums(summed.lazy(), by, "cluster", (cluster_by, block_by), again)
    if cluster_by is None:
        return found.clear()
    first = pl.col("cluster").first()
    one = (pl.col("cluster").eq_missing(first)).all()
    alone = found.filter(one.over(by) if by else one)
    if divided and alone.height:
        within = lazy.join(alone.lazy(), on=by, how="semi", nulls_equal=True) if by else lazy
        others = found.join(alone, on=by, how="anti", nulls_equal=True) if by else found.clear()
        found = pl.concat([others, _sums(within, by, "group", (group_by, block_by), sums)])
    return found.sort(*by, "cluster", "block", nulls_last=True)


# What the clusters are, how long the blocks are, and the numbers of both.
LEVELS = ("cluster_by", "block_by", "cluster", "block")


def _sums(
    rows: pl.LazyFrame, by: Sequence[str], level: str, names: tuple[str | None, str | None], sums: dict[str, pl.Expr]
) -> pl.DataFrame:
    block = pl.col("block") if "block" in rows.collect_schema() else pl.lit(None, CLUSTER_COLUMNS["block"])
    found = rows.group_by(*by, cluster=pl.col(level), block=block).agg(**sums).collect(engine="streaming")
    named = (pl.lit(name, pl.String).alias(column) for column, name in zip(LEVELS[:2], names, strict=True))
    return found.select(*by, *named, *LEVELS[2:], *sums)


def in_strata(found: pl.DataFrame, by: Sequence[str], members: str) -> tuple[pl.DataFrame, pl.DataFrame, Clusters]:
    """(strata, rows, clusters) of sums `by_cluster`: a row a stratum with *by and cluster_by; the rows with members.

    members: the column that counts the members of a cluster; one without any has no say. cluster_by names the blocks
    too where they count. Of sums without `block` clusters count alone.
    """
    rows, keys = found.filter(pl.col(members) > 0), [*by, "cluster_by"]
    strata = rows.select(keys).unique(maintain_order=True)
    numbered = strata.with_row_index("place")
    place = rows.join(numbered, on=keys, how="left", nulls_equal=True, maintain_order="left")["place"]
    place, of_each = place.to_numpy().astype(np.int64), rows[members].to_numpy().astype(float)
    if "block" not in rows.columns or not rows["block"].count():
        return strata, rows, Clusters(place, of_each, strata.height)
    # What is in no known block, or of no known cluster, is in one of its own.
    cluster, block = (
        rows[name].cast(pl.Int64).fill_null(rows[name].min() - 2 if rows[name].count() else 0).to_numpy()
        for name in ("cluster", "block")
    )
    clusters = Clusters(place, of_each, strata.height, cluster, block)
    named = pl.format("{} and {}", "cluster_by", pl.lit(rows["block_by"].first()))
    by_both = pl.when(pl.Series(clusters.counts_blocks)).then(named).otherwise("cluster_by")
    return strata.with_columns(cluster_by=by_both), rows, clusters


def clustered_ratios(
    rows: Frame,
    by: Sequence[str],
    top: pl.Expr,
    bottom: pl.Expr,
    members: pl.Expr,
    confidence: float = 0.95,
    both: bool = False,
    by_influence: bool = False,
) -> pl.DataFrame:
    """The interval of sum(top) / sum(bottom) of each stratum: *by, CLUSTERED, why_not; see `Clusters.ratio`.

    top, bottom, members: aggregates of whole numbers over rows, such as those that `by_cluster` takes.
    """
    found = by_cluster(rows, by, top=top, bottom=bottom, members=members)
    strata, rows, clusters = in_strata(found, by, "members")
    parts = (rows[name].to_numpy().astype(float) for name in ("top", "bottom"))
    return with_limits(strata, *clusters.ratio(*parts, confidence, both, by_influence))


def clustered_shares(
    rows: Frame, by: Sequence[str], part: pl.Expr, whole: pl.Expr, confidence: float = 0.95
) -> pl.DataFrame:
    """The interval of the share sum(part) / sum(whole) of each stratum: *by, CLUSTERED, why_not."""
    strata, rows, clusters = in_strata(by_cluster(rows, by, part=part, whole=whole), by, "whole")
    parts = (rows[name].to_numpy().astype(float) for name in ("part", "whole"))
    return with_limits(strata, *clusters.proportion(*parts, confidence))


def clustered_median(rows: Frame, column: str, values: Counted) -> pl.DataFrame:
    """The interval of the median of a column of whole numbers over all rows: CLUSTERED, why_not (Woodruff 1952).

    values: the counted values of the column, of which the limits are two (nearest rank).
    """
    middle = values.median() if values.size else 0
    found = by_cluster(rows, [], below=(pl.col(column) <= middle).sum(), n=pl.col(column).count())
    strata, found, clusters = in_strata(found, [], "n")
    ranks = clusters.around_the_middle(*(found[name].to_numpy().astype(float) for name in ("below", "n")), 0.95)
    limits = [np.array([at_share(values, rank) for rank in end], dtype=float) for end in ranks]
    return with_limits(strata, *limits)


def at_share(values: Counted, share: float) -> float:
    """The value of the rank at this share of all; NaN where there is no such share."""
    return values.at(min(int(share * values.size), values.size - 1)) if np.isfinite(share) else np.nan


def with_limits(strata: pl.DataFrame, low: np.ndarray, high: np.ndarray, effective: np.ndarray) -> pl.DataFrame:
    """The strata with CLUSTERED, and why_not: why there is no interval, blank where there is one.

    low, high, effective: `Limits`; those that are not finite are blank.
    """
    known = pl.Series(np.isfinite(low) & np.isfinite(high), dtype=pl.Boolean)
    effective = pl.Series(effective, dtype=pl.Float64)
    why = [why_not(number, by) for number, by in zip(effective, strata["cluster_by"], strict=True)]
    return strata.with_columns(
        clusters=effective,
        ci_low_clustered=pl.when(known).then(pl.Series(low, dtype=pl.Float64)),
        ci_high_clustered=pl.when(known).then(pl.Series(high, dtype=pl.Float64)),
        why_not=pl.when(~known).then(pl.Series(why, dtype=pl.String)),
    )


def beside(
    table: pl.DataFrame,
    found: pl.DataFrame,
    by: Sequence[str],
    exact: str = "ci_low",
    clustered: str = "ci_low_clustered",
) -> pl.DataFrame:
    """The table with CLUSTERED of the strata `found`, and in `reason` why a clustered interval lacks.

    by: columns of both; exact: a column of the table that is blank where there is no interval of any kind; clustered:
    a column of `found` that is blank where there is none.
    """
    joined = table.join(found, on=list(by), how="left", nulls_equal=True, maintain_order="left")
    why = pl.when(pl.col("cluster_by").is_null()).then(pl.lit(UNCLUSTERED)).otherwise("why_not")
    lacks = pl.col(exact).is_not_null() & pl.col(clustered).is_null()
    reason = pl.concat_str("reason", pl.when(lacks).then(why), separator="; ", ignore_nulls=True)
    return joined.with_columns(reason=pl.when(reason != "").then(reason)).drop("why_not")


def block_spread(
    influence: np.ndarray, leverage: np.ndarray, apart: np.ndarray | float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """The standard error of an estimate, and the effective number of blocks of time behind it.

    For what is one cluster, such as a fleet: blocks are the clusters, and their neighbours' correlation counts.

    Parameters
    ----------
    influence
        Part of each block in the estimate's deviation, in order of time along the first axis; FEWEST_BLOCKS or more.
    leverage
        Share of each block in what the estimate rests on, of the same shape.
    apart
        Sum of squares, in each block, of the influences of single events. They are in the spread once; as they hide
        how much blocks are alike, the correlation is that of the products of different events.

    Returns
    -------
    (se, effective), without the first axis; se is NaN where there is no spread at all. The effective number is Kish's
    of the leverages, less for blocks that are alike, but FEWEST of as many.
    """
    each = jackknifed(influence, leverage)
    squares, own = (each**2).sum(axis=0), np.sum(jackknifed(jackknifed(apart, leverage), leverage), axis=0)
    together = np.maximum(squares - own, 0)
    long_run = _long_run(len(each), (each[1:] * each[:-1]).sum(axis=0), together)
    variance = squares - together + together * long_run
    kish = leverage.sum(axis=0) ** 2 / (leverage**2).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        se, effective = np.sqrt(variance), kish * squares / variance
    # Of blocks that are much alike the number is not known well itself.
    effective = np.where(kish >= FEWEST, np.maximum(effective, FEWEST), kish)
    return np.where(se > NO_ROUNDING, se, np.nan), effective
