"""What the lives tell of the shape when what they have in common is known: by cluster, and within groups."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from ttf.analyses.time_to_failure.judge_lifetimes.frailty import Ages, Fit, Units, age_bin, pooled, within
from ttf.engine.counts import code, counts, labels
from ttf.records.clusters import level_names
from ttf.records.jobs import Frame
from ttf.stats.basics.order import numbered
from ttf.stats.clustered import FEWEST, Clusters, too_few
from ttf.stats.durations.strata import ALL

CONFIDENCE = 0.95
# (event, stratum_by, stratum) -> its columns of LIFETIME_VERDICT.
Found = dict[tuple[str, str, str], dict]


def shapes(lives: Frame, events: Mapping[str, pl.Expr], strata: Sequence[str]) -> Found:
    """The pooled Weibull shape with a spread by cluster, and the shape within groups, of each event and stratum.

    lives: duration_s (Int64, null is left out), CLUSTER_COLUMNS and the strata's columns; events: name -> whether it
    ended a life; strata: `all` or columns. cluster_by, clusters: as of `ttf.stats.clustered`. reach: how far the pooled
    shape's interval goes on the log scale; p_clustered: that this shape is 1. within: what the groups are, groups: how
    many have two lives or more, shape_within with its interval, frailty_variance. Groups are the finest level; the
    clusters, where most are alone in their group. Spreads are sandwiches by cluster with Student's t, h being
    the mean of the cluster's shares of failures and of hazard; by group where the stratum is one cluster. What lacks
    has its reason in why_not (of all) or why_not_within.
    """
    lazy = lives.lazy()
    cluster_by, group_by, _ = level_names(lazy)
    if cluster_by is None:
        return {}
    found = {}
    for stratum_by, stratum, event, *counted in _counted(lazy.drop_nulls("duration_s"), strata, events):
        found[event, stratum_by, stratum] = _shapes(*counted, cluster_by, group_by)
    return found


def _counted(lives: pl.LazyFrame, strata: Sequence[str], events: Mapping[str, pl.Expr]) -> Iterator[tuple]:
    """(stratum_by, stratum, event, cluster, group, age, lives, events, ages) of each: what `_shapes` takes of them.

    Groups of different clusters are different ones; both are numbered from 0 on. The lives are counted once, by what
    is alike in all strata, group, age and end.
    """
    columns = [name for name in strata if name != ALL]
    lives = lives.with_columns(pl.col(name).cast(pl.String) for name in columns)
    named = {name: labels(lives, name) for name in columns}
    places = {f"of {name}": code(name, of) for name, of in named.items()}
    seconds, age = pl.col("duration_s"), age_bin(pl.col("duration_s"))
    hits = {f"hit {name}": hit for name, hit in events.items()}
    until = {f"until {name}": seconds.filter(hit).sum() for name, hit in events.items()}
    sums = {"n": pl.len(), "seconds": seconds.sum(), **{name: hit.sum() for name, hit in hits.items()}, **until}
    by_age = lives.group_by(**places, age=age).agg(**sums).collect(engine="streaming")
    alike = counts(lives, **places, cluster=pl.col("cluster"), group=pl.col("group"), age=age, **hits)
    alike = pl.DataFrame([column.shrink_dtype() for column in alike])
    for stratum_by in strata:
        ages = _by_stratum(by_age, stratum_by)
        for place, rows in _by_stratum(alike, stratum_by).items():
            codes = [rows[name].to_numpy().astype(np.int64) for name in ("cluster", "group")]
            group = numbered(*codes)
            cluster = np.zeros(int(group.max(initial=-1)) + 1, np.int64)
            cluster[group] = numbered(codes[0])
            of_age = {name: of.to_numpy() for name, of in ages[place].group_by("age").sum().to_dict().items()}
            bins, lived = (rows[name].to_numpy() for name in ("age", "n"))
            for name in events:
                hit, until = of_age[f"hit {name}"], of_age[f"until {name}"]
                mean = Ages.of(of_age["age"], of_age["n"], of_age["seconds"], hit, until)
                ended = lived * rows[f"hit {name}"].to_numpy()
                stratum = ALL if stratum_by == ALL else named[stratum_by][place]
                yield stratum_by, stratum, name, cluster, group, bins, lived, ended, mean


def _by_stratum(rows: pl.DataFrame, stratum_by: str) -> dict[int, pl.DataFrame]:
    """The rows of each stratum by its place; those without one are in none."""
    kept = rows.select(~pl.selectors.starts_with("of ") | pl.selectors.by_name(f"of {stratum_by}", require_all=False))
    if stratum_by == ALL:
        return {0: kept}
    parts = kept.partition_by(f"of {stratum_by}", include_key=False, as_dict=True)
    return {place: part for (place,), part in parts.items() if place >= 0}


def _shapes(
    cluster: np.ndarray,
    group: np.ndarray,
    age: np.ndarray,
    lives: np.ndarray,
    events: np.ndarray,
    ages: Ages,
    cluster_by: str,
    group_by: str,
) -> dict:
    """cluster: of each group, ascending; group, age, lives, events: entries as of `Units.of`."""
    if not events.any():
        return {}
    groups = Units.of(group, age, lives, events, ages)
    if cluster[-1] == 0:
        # Of one cluster alone the groups are what differs.
        cluster_by, cluster = group_by, np.arange(cluster.size)
    by = _alone(np.bincount(cluster, groups.members))
    found = {"cluster_by": cluster_by, "clusters": float(by.effective[0])}
    if by.effective[0] < FEWEST:
        return found | {"why_not": too_few(by.effective[0], cluster_by)}
    student = float(by.student(CONFIDENCE)[0])
    alike = pooled(groups)
    if se := _se(groups, alike, cluster, by):
        p_value = float(by.p_value(alike.point[1] / np.array([se]))[0])
        found |= {"reach": student * se, "p_clustered": p_value}
    else:
        found["why_not"] = "the spread of the shape between clusters cannot be told"
    if not _repeat(groups):
        groups, group_by = Units.of(cluster[group], age, lives, events, ages), cluster_by
        cluster = np.arange(by.members.size)
        alike = pooled(groups)
    found |= {"within": group_by, "groups": int((groups.members >= 2).sum())}
    if not _repeat(groups):
        why = f"most are alone in their group by {group_by}, or the groups are too few"
        return found | {"why_not_within": why}
    fit = within(groups, alike)
    if not (se := _se(groups, fit, cluster, by)):
        return found | {"why_not_within": f"no shape within groups by {group_by} can be told"}
    factor = math.exp(se * student)
    return found | {
        "shape_within": fit.shape,
        "shape_within_ci_low": fit.shape / factor,
        "shape_within_ci_high": fit.shape * factor,
        "frailty_variance": fit.variance,
    }


def _alone(members: np.ndarray) -> Clusters:
    return Clusters(np.zeros(members.size, dtype=np.int64), members, 1)


def _repeat(units: Units) -> bool:
    """Whether most lives share their unit with another; of one life alone only the assumed form says anything."""
    shared = units.members[units.members >= 2]
    return bool(shared.sum() >= units.members.sum() / 2 and _alone(shared).effective[0] >= FEWEST)


def _se(units: Units, fit: Fit, cluster: np.ndarray, by: Clusters) -> float | None:
    """The standard error of the log shape by cluster; None where it has none."""
    if not fit.converged or not np.isfinite(fit.information).all() or np.linalg.eigvalsh(fit.information)[0] <= 0:
        return None
    influence = fit.scores @ np.linalg.inv(fit.information)[1]
    influence, failures, hazard = (np.bincount(cluster, values) for values in (influence, units.failures, fit.hazard))
    se = float(by.se(influence, (by.share(failures) + by.share(hazard)) / 2)[0])
    return se if 0 < se < math.inf else None
