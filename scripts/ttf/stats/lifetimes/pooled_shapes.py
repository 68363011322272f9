"""Weibull shapes with clustered standard errors, and shapes within groups."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl

from ttf.engine.counts import count_rows, distinct_texts, text_codes
from ttf.records.clusters import level_names
from ttf.records.jobs import Frame
from ttf.stats.basics.order import example_rows, number_rows
from ttf.stats.clustered import FEWEST, Clusters, too_few_reason
from ttf.stats.durations.strata import ALL
from ttf.stats.lifetimes.frailty import Ages, Fit, Units, age_bin, fit_frailty, fit_pooled

CONFIDENCE = 0.95
# An interval of a log shape that is wider tells nothing, and its limits may exceed a float.
WIDEST_SE = 10
# (event, stratum_by, stratum) -> its columns of LIFETIME_VERDICT.
ShapesByStratum = Mapping[tuple[str, str, str], dict]


def fit_shapes(durations: Frame, events: Mapping[str, pl.Expr], strata: Sequence[str]) -> ShapesByStratum:
    """Fit the pooled Weibull shape with clustered errors, and the shape within groups, per event and stratum.

    Parameters
    ----------
    durations : duration_s (Int64, null is excluded), CLUSTER_COLUMNS and the strata's columns
    events : name -> whether this event ended a duration
    strata : columns, or `all`

    Returns
    -------
    (event, stratum_by, stratum) -> cells. cluster_by, clusters: as of `ttf.stats.clustered`. reach: half-width of the
    pooled shape's interval on the log scale. p_clustered: test that this shape is 1. group_by: what the groups are.
    groups: number with two durations or more. shape_within with its interval, frailty_variance. why_not,
    why_not_within: reasons for blanks.

    Notes
    -----
    Groups are the finest level, or the clusters if most durations are alone in their group. Standard errors are
    sandwiches by cluster with Student's t (Lin & Wei 1989, J. Am. Stat. Assoc. 84), where h is the mean of the
    cluster's shares of failures and of hazard; by group if the stratum is one cluster.

    Examples
    --------
    >>> from ttf.records.clusters import add_clusters
    >>> rows = {"duration_s": [10, 20, 30, 40] * 10, "event": ["failure", "success"] * 20}
    >>> durations = add_clusters(pl.DataFrame(rows | {"user": list("abcdefghij") * 4}))
    >>> cells = fit_shapes(durations, {"failure": pl.col("event") == "failure"}, ["all"])["failure", "all", "all"]
    >>> cells["cluster_by"], round(cells["clusters"], 2)
    ('user', 10.0)
    """
    lazy = durations.lazy()
    cluster_by, group_by, _ = level_names(lazy)
    if cluster_by is None:
        return {}
    cells_by_stratum = {}
    for stratum_by, stratum, event, *arguments in _iterate_strata(lazy.drop_nulls("duration_s"), strata, events):
        cells_by_stratum[event, stratum_by, stratum] = _shape_cells(*arguments, cluster_by, group_by)
    return cells_by_stratum


def _iterate_strata(durations: pl.LazyFrame, strata: Sequence[str], events: Mapping[str, pl.Expr]) -> Iterator[tuple]:
    """Yield stratum_by, stratum, event and the arguments of `_shape_cells` for each.

    Groups of different clusters are distinct; both are numbered from 0. Durations are counted once, by all strata,
    cluster, group, age and event.
    """
    labels_by_column = {name: distinct_texts(durations, name) for name in strata if name != ALL}
    strata_codes = {f"stratum {name}": text_codes(name, names) for name, names in labels_by_column.items()}
    events_by_column = {f"event {name}": is_event for name, is_event in events.items()}
    keys = {"cluster": pl.col("cluster"), "group": pl.col("group"), "age": age_bin(pl.col("duration_s"))}
    rows = durations.select(**strata_codes, **keys, **events_by_column, seconds="duration_s").collect(
        engine="streaming"
    )
    event_seconds = {f"seconds {name}": pl.col("seconds").filter(pl.col(f"event {name}")).sum() for name in events}
    sums = {"n": pl.len(), "seconds": pl.col("seconds").sum()} | event_seconds
    sums |= {name: pl.col(name).sum() for name in events_by_column}
    by_age = rows.group_by(*strata_codes, "age").agg(**sums)
    distinct_rows = count_rows(rows, **{name: pl.col(name) for name in rows.columns if name != "seconds"})
    group = number_rows(*(distinct_rows[name].to_numpy() for name in ("cluster", "group")))
    distinct_rows = distinct_rows.with_columns(group=group)
    distinct_rows = pl.DataFrame([column.shrink_dtype() for column in distinct_rows])
    for stratum_by in strata:
        column = pl.selectors.by_name(f"stratum {stratum_by}", require_all=False)
        ages = _split_by_stratum(by_age.group_by(column, "age").sum(), stratum_by)
        for index, rows in _split_by_stratum(distinct_rows, stratum_by).items():
            group = number_rows(rows["group"].to_numpy())
            cluster = number_rows(rows["cluster"].to_numpy()[example_rows(group)])
            age_sums = {name: column.to_numpy() for name, column in ages[index].to_dict().items()}
            bins, n_durations = (rows[name].to_numpy() for name in ("age", "n"))
            for name in events:
                names = ("age", "n", "seconds", f"event {name}", f"seconds {name}")
                mean_ages = Ages.from_sums(*(age_sums[sum_name] for sum_name in names))
                n_events = n_durations * rows[f"event {name}"].to_numpy()
                stratum = ALL if stratum_by == ALL else labels_by_column[stratum_by][index]
                yield stratum_by, stratum, name, cluster, group, bins, n_durations, n_events, mean_ages


def _split_by_stratum(rows: pl.DataFrame, stratum_by: str) -> dict[int, pl.DataFrame]:
    """Return the rows of each stratum by its index, without rows that have none."""
    column = f"stratum {stratum_by}"
    rows = rows.select(~pl.selectors.starts_with("stratum ") | pl.selectors.by_name(column, require_all=False))
    if stratum_by == ALL:
        return {0: rows}
    parts = rows.partition_by(column, include_key=False, as_dict=True)
    return {index: part for (index,), part in parts.items() if index >= 0}


def _shape_cells(
    cluster: np.ndarray,
    group: np.ndarray,
    age: np.ndarray,
    durations: np.ndarray,
    events: np.ndarray,
    ages: Ages,
    cluster_by: str,
    group_by: str,
) -> dict:
    """Return the cells of `fit_shapes`. cluster: of each group, ascending; other arrays as for `Units.from_entries`."""
    if not events.any():
        return {}
    groups = Units.from_entries(group, age, durations, events, ages)
    if cluster[-1] == 0:
        # With a single cluster, the groups are the clusters.
        cluster_by, cluster = group_by, np.arange(cluster.size)
    clusters = Clusters.in_one_stratum(np.bincount(cluster, groups.members))
    cells = {"cluster_by": cluster_by, "clusters": float(clusters.effective[0])}
    if clusters.effective[0] < FEWEST:
        return cells | {"why_not": too_few_reason(clusters.effective[0], cluster_by)}
    student = float(clusters.student(CONFIDENCE)[0])
    pooled_fit = fit_pooled(groups)
    if se := _compute_shape_se(groups, pooled_fit, cluster, clusters):
        p_value = float(clusters.p_value(pooled_fit.point[1] / np.array([se]))[0])
        cells |= {"reach": student * se, "p_clustered": p_value}
    else:
        cells["why_not"] = "the spread of the shape between clusters cannot be told"
    if not _has_repeats(groups):
        groups, group_by = Units.from_entries(cluster[group], age, durations, events, ages), cluster_by
        cluster = np.arange(clusters.members.size)
        pooled_fit = fit_pooled(groups)
    cells |= {"group_by": group_by, "groups": int((groups.members >= 2).sum())}
    if not _has_repeats(groups):
        return cells | {"why_not_within": f"most are alone in their group by {group_by}, or the groups are too few"}
    frailty_fit = fit_frailty(groups, pooled_fit)
    if not (se := _compute_shape_se(groups, frailty_fit, cluster, clusters)):
        return cells | {"why_not_within": f"no shape within groups by {group_by} can be told"}
    factor = math.exp(se * student)
    return cells | {
        "shape_within": frailty_fit.shape,
        "shape_within_ci_low": frailty_fit.shape / factor,
        "shape_within_ci_high": frailty_fit.shape * factor,
        "frailty_variance": frailty_fit.variance,
    }


def _has_repeats(units: Units) -> bool:
    """Tell whether most durations share their unit: single ones inform the shape only through the assumed model."""
    repeated = units.members[units.members >= 2]
    return bool(repeated.sum() >= units.members.sum() / 2 and Clusters.in_one_stratum(repeated).effective[0] >= FEWEST)


def _compute_shape_se(units: Units, fit: Fit, cluster: np.ndarray, clusters: Clusters) -> float | None:
    if not fit.converged or not np.isfinite(fit.information).all() or np.linalg.eigvalsh(fit.information)[0] <= 0:
        return None
    influence = fit.scores @ np.linalg.inv(fit.information)[1]
    influence, failures, hazard = (np.bincount(cluster, values) for values in (influence, units.failures, fit.hazard))
    se = float(clusters.se(influence, (clusters.share(failures) + clusters.share(hazard)) / 2)[0])
    return se if 0 < se < WIDEST_SE else None
