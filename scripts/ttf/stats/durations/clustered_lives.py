"""What estimates of survival owe to each cluster of lives, and intervals that hold when clusters differ.

An estimate by age is a sum over lives of what each adds by its end, less what it had to expect of the hazards that it
went through (a martingale); the sum over the lives of a cluster is its influence, and the spread of an estimate that of
the influences (the infinitesimal jackknife, as `survfit` of R's survival has it with `cluster`), each over 1 - h, h
being the cluster's share of the lives. Quantiles are Student's: see `ttf.stats.clustered`.

What a life owes depends on who else was at risk, so that one life more changes what all others owe: none of this is a
sum over blocks of lives that could be kept for the next run, nor is a Cox regression. With 1.3 million lives of 600
users the curves, tests and regression of `estimate_hazards` are worked out anew in 4 s of processor time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import polars as pl

from ttf.stats.basics.order import distinct_rows, first_of_each, places
from ttf.stats.clustered import UNCLUSTERED, Clusters, why_not

# A sum of squares that falls to this share of its terms is what rounding leaves of them.
ROUNDING = 1e-10


@dataclass(frozen=True)
class ClusterLives:
    """The lives of one stratum by cluster, age and end: arrays of one length, in the order of these.

    by: what the clusters are (user, ...). cluster: their numbers. seconds: the durations. code: 0 for a life that none
    of some events ended, 1 for the first of the events, ... lives: how many a row stands for. divided: the number of
    the one cluster that the stratum is, where `cluster` numbers the groups within it.
    """

    by: str
    cluster: np.ndarray
    seconds: np.ndarray
    code: np.ndarray
    lives: np.ndarray
    divided: int | None = None

    @cached_property
    def first(self) -> np.ndarray:
        """The first row of each cluster."""
        return first_of_each(self.cluster)

    @cached_property
    def members(self) -> np.ndarray:
        """The lives of each cluster."""
        return np.add.reduceat(self.lives, self.first).astype(float)

    @cached_property
    def clusters(self) -> Clusters:
        return Clusters(np.zeros(self.first.size, np.int64), self.members, 1)

    @property
    def effective(self) -> float:
        return float(self.clusters.effective[0])

    @cached_property
    def pull(self) -> np.ndarray:
        """1 / (1 - h) of each cluster; 0 where it holds all lives, of which nothing can be told."""
        left = 1 - self.clusters.share(self.members)
        return np.divide(1, left, out=np.zeros(left.size), where=left > 0)

    def student(self) -> float:
        """Student's quantile of a 95% CI; NaN below FEWEST."""
        return float(self.clusters.student(0.95)[0])

    def about(self) -> dict[str, str | float | None]:
        """cluster_by, clusters, and why_not: why an interval lacks, where it does."""
        return {"cluster_by": self.by, "clusters": self.effective, "why_not": why_not(self.effective, self.by)}

    def by_cluster(self, values: np.ndarray) -> np.ndarray:
        """The sum of a value of each row, by cluster."""
        return np.add.reduceat(values, self.first)


def about(lives: ClusterLives | None) -> dict[str, str | float | None]:
    """`ClusterLives.about`; of lives without clusters that there are none."""
    return {"cluster_by": None, "clusters": None, "why_not": UNCLUSTERED} if lives is None else lives.about()


class Influences:
    """By age, sums over clusters of products of what their lives have added so far.

    lives: of one stratum; seconds: the ages, ascending, all durations among them. pull: a weight of each cluster, by
    which its influence is multiplied.

    A life adds `own` (of the age and the way it ended) less `passed` of that age when it ends; until then it has passed
    what there was of it up to now. So the influence of a cluster on an estimate is its sum of what has been added less
    passed times its lives still at risk, and only ages at which lives of a cluster end change its sums: of ever so many
    clusters and ages no more is worked out than of the rows.
    """

    def __init__(self, lives: ClusterLives, seconds: np.ndarray, pull: np.ndarray | None = None) -> None:
        self.lives, self.size = lives, seconds.size
        self.place = places(seconds, lives.seconds).astype(np.int32, copy=False)
        self.rows = np.diff(np.append(lives.first, lives.cluster.size))
        self.pull = lives.pull if pull is None else pull
        of_clusters = lives.members * self.pull
        self.at_risk = np.repeat(of_clusters, self.rows) - self._so_far(lives.lives * np.repeat(self.pull, self.rows))
        self.still = self.products(self.at_risk, self.at_risk, np.square(of_clusters))

    def added(self, own: Sequence[np.ndarray | None], passed: np.ndarray) -> "Added":
        """own: by age what lives add that end by no event, the first event, ...; None: nothing."""
        lives = self.lives
        gains = np.tile(-passed, (max(len(own), int(lives.code.max(initial=0)) + 1), 1))
        for gain, values in zip(gains, own, strict=False):
            if values is not None:
                gain += values
        # Looked up in one table by end and age, in a third of the time that it takes end by end.
        at = np.multiply(lives.code, self.size, dtype=np.int64)
        at += self.place
        gain = gains.ravel()[at]
        del at
        gain *= lives.lives
        gain *= np.repeat(self.pull, self.rows)
        return Added(self, self._so_far(gain), passed)

    def _so_far(self, values: np.ndarray) -> np.ndarray:
        """The sum of the values of a cluster up to each of its rows."""
        total, first = np.cumsum(values), self.lives.first
        total -= np.repeat(total[first] - values[first], self.rows)
        return total

    def products(self, one: np.ndarray, other: np.ndarray, at_first: np.ndarray | float = 0.0) -> np.ndarray:
        """By age the sum over clusters of the product of two sums after each row; at_first: before their first rows."""
        product, first = one * other, self.lives.first
        change = np.empty_like(product)
        np.subtract(product[1:], product[:-1], out=change[1:])
        change[first] = product[first] - at_first
        return np.sum(at_first) + np.cumsum(np.bincount(self.place, change, self.size))


@dataclass(frozen=True)
class Added:
    """One of the sums that `Influences` is about: that of a cluster after each row; passed: by age."""

    influences: Influences
    sums: np.ndarray
    passed: np.ndarray

    @cached_property
    def squares(self) -> np.ndarray:
        return self.times(self)

    @cached_property
    def with_still(self) -> np.ndarray:
        return self.influences.products(self.sums, self.influences.at_risk)

    def times(self, other: "Added") -> np.ndarray:
        return self.influences.products(self.sums, other.sums)

    def se(self, less: "Added | None" = None, factor: np.ndarray | float = 0.0) -> np.ndarray:
        """By age the standard error of what has these influences, or these less a factor by age times others."""
        still, passed = self.influences.still, self.passed
        crossed, squares = self.with_still, self.squares
        if less is not None:
            passed = passed - factor * less.passed
            crossed = crossed - factor * less.with_still
            squares = squares - 2 * factor * self.times(less) + factor**2 * less.squares
        terms = squares - 2 * passed * crossed + passed**2 * still
        return np.sqrt(np.where(terms > ROUNDING * (squares + passed**2 * still), terms, 0.0))


def with_why(table: pl.DataFrame) -> pl.DataFrame:
    """The table with its why_not added to `reason` where an exact interval stands without a clustered one."""
    lacks = pl.col("ci_low").is_not_null() & pl.col("ci_low_clustered").is_null()
    reason = pl.concat_str("reason", pl.when(lacks).then("why_not"), separator="; ", ignore_nulls=True)
    return table.with_columns(reason=pl.when(reason != "").then(reason)).drop("why_not")


def limits_log_log(estimate: np.ndarray, se: np.ndarray, student: float) -> tuple[np.ndarray, np.ndarray]:
    """(low, high) of shares strictly between 0 and 1, symmetric on the scale log(-log); NaN where se is not above 0.

    se: of the logarithm of the estimate.
    """
    inside = (estimate > 0) & (estimate < 1) & (se > 0)
    base = np.where(inside, estimate, 0.5)
    # A spread beyond e^30 is an interval from 0 to 1 already.
    spread = np.exp(np.minimum(student * se / -np.log(base), 30))
    return np.where(inside, base**spread, np.nan), np.where(inside, base ** (1 / spread), np.nan)


def counted(
    lives: pl.LazyFrame, stratum: pl.Expr | None, labels: Sequence, level: tuple[str, str], events: Sequence[str]
) -> dict[int, ClusterLives]:
    """The lives of some strata by cluster: place of the label -> `ClusterLives`.

    lives: with duration_s not blank, event and the columns of `ttf.records.clusters`. stratum: the column of the
    strata, None for one of all; labels: its values that are asked for. level: the column of the clusters, and what
    these are.
    """
    hits = ((pl.col("event") == event).fill_null(False) * pl.lit(code, pl.Int8) for code, event in enumerate(events, 1))
    code = pl.sum_horizontal(pl.lit(0, pl.Int8), *hits).cast(pl.Int8)
    wanted = {"cluster": pl.col(level[0]), "duration_s": pl.col("duration_s"), "code": code}
    if stratum is None:
        found = lives.select(**wanted).collect(engine="streaming")
        place = np.zeros(found.height, np.int8)
    else:
        # A join streams; in which order it leaves the rows does not matter.
        numbers = pl.LazyFrame({"stratum": labels}).with_row_index("place")
        found = lives.select(stratum=stratum, **wanted).join(numbers, on="stratum").drop("stratum")
        found = found.collect(engine="streaming")
        place = found["place"].to_numpy()
    rows, lives_of = distinct_rows(place, *(found[name].to_numpy() for name in wanted))
    del found
    # Of ten million lives: as small as they can be.
    types = (np.int32, np.uint32, np.int64, np.int8)
    place, cluster, seconds, code = (column.astype(dtype) for column, dtype in zip(rows, types, strict=True))
    lives_of = lives_of.astype(np.int32)
    del rows
    return {
        int(place[start]): ClusterLives(level[1], *(column[start:end] for column in (cluster, seconds, code, lives_of)))
        for start, end in pairwise([*first_of_each(place), place.size])
    }
