"""Intervals that hold when users and nodes differ: what the members of a cluster share is not counted once per member.

The spread of an estimate is that of its clusters' influences on it (the sandwich of generalised estimating equations:
Liang & Zeger 1986), each over 1 - h, h being the cluster's share of what the estimate rests on: the cluster pulls the
estimate towards itself (as with CR3 or the jackknife, Bell & McCaffrey 2002). Quantiles are Student's with the
effective number of clusters (Kish 1965, (sum n)^2 / sum n^2 with n members each) less one degrees of freedom, as a
few clusters hold most members. `docs/coverage.md` shows how often the intervals cover.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from scipy.special import expit, logit, stdtr, stdtrit

from ttf.clusters import CLUSTER_COLUMNS, level_names
from ttf.columns import FEWEST_CLUSTERS
from ttf.jobs import Frame
from ttf.stats.counts import Counted

FEWEST = FEWEST_CLUSTERS
# Of a logarithm; what is smaller is rounding.
NO_ROUNDING = 1e-12
CLUSTERED = ("cluster_by", "clusters", "ci_low_clustered", "ci_high_clustered")
UNCLUSTERED = "nothing in the trace says what repeats: no clustered interval"
NO_SPREAD = "no spread between clusters to be seen"

# Lower and upper ends, an array each.
Limits = tuple[np.ndarray, np.ndarray]


def too_few(effective: float, by: str, what: str = "interval") -> str:
    """The reason why there is no clustered interval, or p-value."""
    return f"{effective:.1f} effective clusters by {by}, fewer than {FEWEST}: no clustered {what}"


def why_not(effective: float, by: str) -> str:
    """The reason why an interval of so many effective clusters lacks, where it does."""
    return too_few(effective, by) if effective < FEWEST else f"{NO_SPREAD}: no clustered interval"


@dataclass(frozen=True)
class Clusters:
    """The clusters of several strata, in order of the strata.

    place: the stratum of each, 0 up to strata - 1 (Int64); members: how many jobs or lives each has, 1 or more.
    """

    place: np.ndarray
    members: np.ndarray
    strata: int

    def sum(self, values: np.ndarray) -> np.ndarray:
        """Of a value of each cluster, the sum by stratum."""
        return np.bincount(self.place, weights=values, minlength=self.strata)

    def share(self, values: np.ndarray) -> np.ndarray:
        """Of a value of each cluster, its part in the sum of the stratum; NaN where that is 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return values / self.sum(values)[self.place]

    @cached_property
    def effective(self) -> np.ndarray:
        """Kish's effective number of clusters, by stratum; 0 without any."""
        squares = self.sum(self.members.astype(float) ** 2)
        return np.divide(self.sum(self.members) ** 2, squares, out=np.zeros(self.strata), where=squares > 0)

    def se(self, influence: np.ndarray, leverage: np.ndarray) -> np.ndarray:
        """The standard error by stratum of an estimate with these influences.

        NaN where there is no spread at all, which is no knowledge of it; infinite where one cluster holds all.
        """
        with np.errstate(invalid="ignore"):
            se = np.sqrt(self.sum(self.pulled(influence, leverage) ** 2))
            return np.where(se > NO_ROUNDING, se, np.nan)

    def pulled(self, influence: np.ndarray, leverage: np.ndarray) -> np.ndarray:
        """The influences without the pull of each cluster on the estimate."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(influence == 0, 0, influence / (1 - leverage))

    def student(self, confidence: float, spent: int = 1) -> np.ndarray:
        """Student's two-sided quantile by stratum, with effective - spent degrees of freedom; NaN below FEWEST."""
        return stdtrit(self._degrees(spent), (1 + confidence) / 2)

    def p_value(self, statistic: np.ndarray, spent: int = 1) -> np.ndarray:
        """Two-sided, by stratum, of a statistic in standard errors."""
        return 2 * stdtr(self._degrees(spent), -np.abs(statistic))

    def _degrees(self, spent: int) -> np.ndarray:
        return np.where(self.effective >= FEWEST, self.effective - spent, np.nan)

    def ratio(self, top: np.ndarray, bottom: np.ndarray, confidence: float, both: bool = False) -> Limits:
        """(low, high) by stratum of sum(top) / sum(bottom), symmetric on the log scale; NaN where there are none.

        both: h is the mean of the cluster's shares of top and bottom (a mean time to failure: exposure and failures),
        else its share of the bottom (a mean).
        """
        of_top, of_bottom = self.share(top), self.share(bottom)
        se = self.se(of_top - of_bottom, (of_top + of_bottom) / 2 if both else of_bottom)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            estimate, away = self.sum(top) / self.sum(bottom), np.exp(se * self.student(confidence))
            return _finite(estimate / away), _finite(estimate * away)

    def proportion(self, part: np.ndarray, whole: np.ndarray, confidence: float) -> Limits:
        """(low, high) by stratum of the share sum(part) / sum(whole), symmetric on the logit scale; NaN at 0 and 1."""
        away = self.student(confidence) * self._logit_se(part, whole)
        with np.errstate(divide="ignore", invalid="ignore"):
            centre = logit(self.sum(part) / self.sum(whole))
        return expit(centre - away), expit(centre + away)

    def around_the_middle(self, below: np.ndarray, whole: np.ndarray, confidence: float) -> Limits:
        """(low, high) by stratum of the ranks, from 0 to 1, between whose values the median lies (Woodruff 1952).

        below: the members of a cluster up to the median of its stratum.
        """
        away = self.student(confidence) * self._logit_se(below, whole)
        return expit(-away), expit(away)

    def _logit_se(self, part: np.ndarray, whole: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore", divide="ignore"):
            share = (self.sum(part) / self.sum(whole))[self.place]
            influence = (part - share * whole) / (self.sum(whole)[self.place] * share * (1 - share))
        return self.se(influence, self.share(whole))


def _finite(limit: np.ndarray) -> np.ndarray:
    """NaN where one cluster holds all."""
    return np.where(np.isfinite(limit), limit, np.nan)


def by_cluster(
    rows: Frame, by: Sequence[str], /, divided: bool = True, summed: Frame | None = None, **sums: pl.Expr
) -> pl.DataFrame:
    """Sums over the rows of each cluster of each stratum: *by, cluster_by, cluster, *sums, in their order.

    rows: of `ttf.clusters`; by: columns that form the strata, none for one of all rows. divided: a stratum that is one
    cluster alone (an account of one user, one system of several) is divided by its groups. summed: columns `by` and
    `cluster` and the sums over some rows of them, of each row once; then only what is divided is read of the rows. No
    rows where the trace names no clusters.
    """
    lazy = rows.lazy()
    # A column `cluster` by itself is a trace's own: Slurm's name of a whole cluster.
    if "cluster_by" not in lazy.collect_schema():
        lazy = lazy.with_columns(pl.lit(None, kind).alias(name) for name, kind in CLUSTER_COLUMNS.items())
    cluster_by, group_by = level_names(lazy)
    if summed is None or cluster_by is None:
        found = _sums(lazy, by, "cluster", cluster_by, sums)
    else:
        found = _sums(summed.lazy(), by, "cluster", cluster_by, {name: pl.col(name).sum() for name in sums})
    if cluster_by is None:
        return found.clear()
    alone = found.filter(pl.len().over(by) == 1) if by else found.filter(pl.len() == 1)
    if divided and alone.height:
        within = lazy.join(alone.lazy(), on=by, how="semi", nulls_equal=True) if by else lazy
        others = found.join(alone, on=by, how="anti", nulls_equal=True) if by else found.clear()
        found = pl.concat([others, _sums(within, by, "group", group_by, sums)])
    return found.sort(*by, "cluster", nulls_last=True)


def _sums(
    rows: pl.LazyFrame, by: Sequence[str], level: str, name: str | None, sums: dict[str, pl.Expr]
) -> pl.DataFrame:
    found = rows.group_by(*by, cluster=pl.col(level)).agg(**sums).collect(engine="streaming")
    return found.select(*by, pl.lit(name, pl.String).alias("cluster_by"), "cluster", *sums)


def in_strata(found: pl.DataFrame, by: Sequence[str], members: str) -> tuple[pl.DataFrame, pl.DataFrame, Clusters]:
    """(strata, rows, clusters) of sums `by_cluster`: a row a stratum with *by and cluster_by; the rows with members.

    members: the column that counts the members of a cluster; one without any has no say.
    """
    rows, keys = found.filter(pl.col(members) > 0), [*by, "cluster_by"]
    strata = rows.select(keys).unique(maintain_order=True)
    numbered = strata.with_row_index("place")
    place = rows.join(numbered, on=keys, how="left", nulls_equal=True, maintain_order="left")["place"]
    clusters = Clusters(place.to_numpy().astype(np.int64), rows[members].to_numpy().astype(float), strata.height)
    return strata, rows, clusters


def clustered_ratios(
    rows: Frame,
    by: Sequence[str],
    top: pl.Expr,
    bottom: pl.Expr,
    members: pl.Expr,
    confidence: float = 0.95,
    both: bool = False,
) -> pl.DataFrame:
    """The interval of sum(top) / sum(bottom) of each stratum: *by, CLUSTERED, why_not; see `Clusters.ratio`.

    top, bottom, members: aggregates of whole numbers over rows, such as those that `by_cluster` takes.
    """
    found = by_cluster(rows, by, top=top, bottom=bottom, members=members)
    strata, rows, clusters = in_strata(found, by, "members")
    parts = (rows[name].to_numpy().astype(float) for name in ("top", "bottom"))
    return with_limits(strata, clusters, *clusters.ratio(*parts, confidence, both))


def clustered_shares(
    rows: Frame, by: Sequence[str], part: pl.Expr, whole: pl.Expr, confidence: float = 0.95
) -> pl.DataFrame:
    """The interval of the share sum(part) / sum(whole) of each stratum: *by, CLUSTERED, why_not."""
    strata, rows, clusters = in_strata(by_cluster(rows, by, part=part, whole=whole), by, "whole")
    parts = (rows[name].to_numpy().astype(float) for name in ("part", "whole"))
    return with_limits(strata, clusters, *clusters.proportion(*parts, confidence))


def clustered_median(rows: Frame, column: str, values: Counted) -> pl.DataFrame:
    """The interval of the median of a column of whole numbers over all rows: CLUSTERED, why_not (Woodruff 1952).

    values: the counted values of the column, of which the limits are two (nearest rank).
    """
    middle = values.median() if values.size else 0
    found = by_cluster(rows, [], below=(pl.col(column) <= middle).sum(), n=pl.col(column).count())
    strata, found, clusters = in_strata(found, [], "n")
    ranks = clusters.around_the_middle(*(found[name].to_numpy().astype(float) for name in ("below", "n")), 0.95)
    limits = [np.array([at_share(values, rank) for rank in end], dtype=float) for end in ranks]
    return with_limits(strata, clusters, *limits)


def at_share(values: Counted, share: float) -> float:
    """The value of the rank at this share of all; NaN where there is no such share."""
    return values.at(min(int(share * values.size), values.size - 1)) if np.isfinite(share) else np.nan


def with_limits(strata: pl.DataFrame, clusters: Clusters, low: np.ndarray, high: np.ndarray) -> pl.DataFrame:
    """The strata with CLUSTERED, and why_not: why there is no interval, blank where there is one.

    Limits are blank that are not finite.
    """
    known = pl.Series(np.isfinite(low) & np.isfinite(high), dtype=pl.Boolean)
    effective = pl.Series(clusters.effective, dtype=pl.Float64)
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
