"""Log-rank tests: whether the hazard differs between all strata, and between each pair."""

from collections.abc import Callable

import numpy as np
from scipy.special import gammaincc

from ttf.stats.basics.p_value import raise_to_smallest
from ttf.stats.clustered import FEWEST, UNCLUSTERED, Clusters, name_levels, too_few_reason
from ttf.stats.durations.clustered_durations import ClusterDurations, make_cells
from ttf.stats.durations.strata import Times

# With fewer expected events the distribution of the statistic is only roughly chi-squared.
FEWEST_EXPECTED = 5

TOO_FEW_STRATA = "fewer than two strata of known durations"
NO_CONTRAST = "no event while two strata were at risk: nothing to compare"
NO_SPREAD = "no spread between clusters to be seen: no clustered p-value"
ROUGH = f"fewer than {FEWEST_EXPECTED} events expected in a stratum: the p-value is rough"


def compare_strata(strata: list[tuple[Times, ClusterDurations | None]], code: int) -> dict:
    """Test whether the hazard differs between strata: the log-rank test, for independent and for clustered durations.

    Parameters
    ----------
    strata : durations of each stratum in s, all and by cluster (None without clusters)
    code : code of the event in the durations by cluster

    Returns
    -------
    strata, n, events, cluster_by and clusters; statistic (chi-squared), df, p_value and p_clustered if they can be
    computed; reason for what is blank

    References
    ----------
    Mantel (1966); Peto & Peto (1972); for clusters Lin & Wei (1989), Rao & Scott (1984)

    Examples
    --------
    >>> one = np.ones(3, np.int64)
    >>> early, late = Times(np.array([1, 2, 3]), one, one), Times(np.array([4, 5, 6]), one, one)
    >>> test = compare_strata([(early, None), (late, None)], code=1)
    >>> round(test["statistic"], 3), test["df"]
    (5.052, 1)
    """
    stratum_times = [times for times, _ in strata]
    durations = [cluster_durations for _, cluster_durations in strata if cluster_durations is not None]
    has_clusters = bool(strata) and len(durations) == len(strata)
    cluster_by, effective = None, 0.0
    if has_clusters:
        cell, cells = _join_cells(durations)
        undivided = [stratum for stratum in durations if stratum.divided is None]
        kind, block_by = (undivided or durations)[0].kind, durations[0].block_by
        cluster_by, effective = name_levels(kind, block_by, cells), float(cells.effective[0])
    row: dict[str, object] = {
        "strata": len(stratum_times),
        "n": sum(times.durations for times in stratum_times),
        "events": sum(times.failures for times in stratum_times),
        "cluster_by": cluster_by,
        "clusters": effective if has_clusters else None,
    }
    if len(stratum_times) < 2:
        return row | {"reason": TOO_FEW_STRATA}
    ages = np.unique(np.concatenate([times.seconds[times.events > 0] for times in stratum_times]))
    at_risk = np.stack([times.at_risk(ages) for times in stratum_times])
    events = np.stack([_count_events_at(times, ages) for times in stratum_times]).sum(axis=0)
    n_at_risk = at_risk.sum(axis=0)
    share = at_risk / n_at_risk
    expected = (events * share).sum(axis=1)
    # The hypergeometric variance of the events at one age; with one duration at risk it is 0.
    age_variance = np.divide(events * (n_at_risk - events), n_at_risk - 1, out=np.zeros(ages.size), where=n_at_risk > 1)
    observed = np.array([times.failures for times in stratum_times])
    # A stratum can be compared only if it is at risk together with another when an event occurs.
    comparable = np.flatnonzero((age_variance * share * (1 - share)).sum(axis=1) > 0)
    if comparable.size < 2:
        return row | {"reason": NO_CONTRAST}
    # Differences sum to 0, so one stratum is redundant.
    indices = comparable[1:]
    variance = np.array([[(age_variance * share[a] * ((a == b) - share[b])).sum() for b in indices] for a in indices])
    difference = (observed - expected)[indices]
    statistic = float(difference @ np.linalg.solve(variance, difference))
    p, p_reason = raise_to_smallest(float(gammaincc(indices.size / 2, statistic / 2)))
    p_clustered, cluster_reason = None, None
    if cluster_by is None:
        cluster_reason = UNCLUSTERED
    elif effective < FEWEST:
        cluster_reason = too_few_reason(effective, cluster_by, "p-value")
    else:
        scores = _scores(durations, code, ages, share, events / n_at_risk, indices)
        by_cell = np.stack([np.bincount(cell, column) for column in scores], axis=1)
        p_clustered = _clustered_p(statistic, variance, by_cell, cells)
        cluster_reason = NO_SPREAD if p_clustered is None else None
    n_excluded = len(stratum_times) - comparable.size
    reasons = (
        f"{n_excluded} strata without events to compare by are left out" if n_excluded else None,
        ROUGH if expected[comparable].min() < FEWEST_EXPECTED else None,
        p_reason,
        cluster_reason,
    )
    row |= {"statistic": statistic, "df": indices.size, "p_value": p, "p_clustered": p_clustered}
    return row | {"reason": "; ".join(filter(None, reasons)) or None}


def _join_cells(strata: list[ClusterDurations]) -> tuple[np.ndarray, Clusters]:
    """Return the cells (clusters by week) of all strata together, and the number of each stratum's cells there.

    If each stratum is one cluster, their groups are the clusters; else such a stratum counts as one cluster.
    """
    uses_groups = all(durations.divided is not None for durations in strata)
    clusters = [
        durations.cells.cluster
        if uses_groups or durations.divided is None
        else np.full_like(durations.cells.cluster, durations.divided)
        for durations in strata
    ]
    columns = ([getattr(durations.cells, name) for durations in strata] for name in ("block", "members"))
    return make_cells(*map(np.concatenate, (clusters, *columns)))


def _scores(
    strata: list[ClusterDurations],
    code: int,
    ages: np.ndarray,
    share: np.ndarray,
    hazard: np.ndarray,
    columns: np.ndarray,
) -> np.ndarray:
    """Return the part of each stratum's cells in the difference of observed and expected events: strata by cells.

    columns: strata tested; ages: of events; share: of each stratum among those at risk; hazard: over all strata.
    """
    cumulative_hazard = np.concatenate(([0.0], np.cumsum(hazard)))
    expected = [np.concatenate(([0.0], np.cumsum(share[stratum] * hazard))) for stratum in columns]
    scores: list[list[np.ndarray]] = [[] for _ in columns]
    for stratum, durations in enumerate(strata):
        # Number of event ages before the end of a duration; shifted by their number if an event ended it.
        age_index = np.searchsorted(ages, durations.ages, side="right")[durations.age]
        age_index[durations.code == code] += cumulative_hazard.size
        for column, index in enumerate(columns):
            is_own = stratum == index
            censored = expected[column] - is_own * cumulative_hazard
            failed = censored + is_own - np.concatenate(([0.0], share[index]))
            values = durations.durations * np.concatenate((censored, failed))[age_index]
            scores[column].append(np.bincount(durations.cell, values))
    return np.array([np.concatenate(parts) for parts in scores])


def _clustered_p(statistic: float, variance: np.ndarray, scores: np.ndarray, cells: Clusters) -> float | None:
    """Return the p-value of the statistic if its variance is that of the scores, a row per cell."""
    # In these coordinates the exact variance is 1, and the covariance of weeks is diagonal.
    scores = np.linalg.solve(np.linalg.cholesky(variance), scores.T).T
    if cells.counts_blocks[0]:
        by_block = _sum_columns(cells.block_groups.sum, scores)
        scores = scores @ np.linalg.eigh(by_block.T @ by_block - scores.T @ scores)[1]
    by_cluster = _sum_columns(cells.cluster_groups.sum, scores)
    ratio = by_cluster.T @ by_cluster
    if cells.counts_blocks[0]:
        ratio += np.diag([cells.shared_variance(column, np.zeros(column.size))[0][0] for column in scores.T])
    trace, square_trace = float(np.trace(ratio)), float(np.trace(ratio @ ratio))
    if not (trace > 0 and square_trace > 0):
        return None
    return raise_to_smallest(float(gammaincc(trace**2 / square_trace / 2, statistic * trace / square_trace / 2)))[0]


def _sum_columns(sum_groups: Callable[[np.ndarray], np.ndarray], scores: np.ndarray) -> np.ndarray:
    return np.stack([sum_groups(column) for column in scores.T], axis=1)


def _count_events_at(times: Times, ages: np.ndarray) -> np.ndarray:
    events = np.zeros(ages.size, dtype=np.int64)
    has_events = times.events > 0
    events[np.searchsorted(ages, times.seconds[has_events])] = times.events[has_events]
    return events
