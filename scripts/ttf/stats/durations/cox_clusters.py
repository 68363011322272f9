"""Cluster-robust covariance of hazard ratios: the change of a Cox fit when each cluster of durations is removed.

The score is a sum over durations: the contribution of the event less the expectation from the hazards passed. The sum
over a cluster is its score s (Lin & Wei 1989). The cluster's part of the information, I_c, is the covariance of the
columns in the risk set at each event, summed over the cluster's members in it. Removing the cluster changes the fit in
one step by (I - I_c)^-1 s, and the covariance is the sum of the squares of these changes (CR3, the jackknife; Bell &
McCaffrey 2002). With I in place of I - I_c it is the sandwich of `coxph` in R's survival with `cluster`: too narrow if
few clusters hold most durations.

A cell is the durations of a cluster that began in one week. Cells give what different clusters share in a week: see
`ttf.stats.clustered`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ttf.stats.basics.order import distinct_rows, number_rows, run_starts
from ttf.stats.durations.cox import Fit, PartialLikelihood, RiskSets

# Number of parts into which the ages of events are divided to compute a cluster's share of the risk sets. If there are
# no more ages than this, each is a part.
PARTS = 64
# Rows per block.
BLOCK_ROWS = 1 << 18
# Keeps I - I_c invertible if one cluster holds all information; its coefficient then becomes very large.
RIDGE = 1e-9


@dataclass(frozen=True)
class ClusteredDurations:
    """Durations with their cluster and covariates, a row for each.

    cluster, week: their numbers. group: index of the covariates in `columns`, an array (groups, columns). seconds,
    failed: the duration and whether the event ended it.
    """

    cluster: np.ndarray
    week: np.ndarray
    group: np.ndarray
    seconds: np.ndarray
    failed: np.ndarray
    columns: np.ndarray


@dataclass(frozen=True)
class Effects:
    """Effects of clusters and cells on sums of coefficients: arrays with a column per sum.

    change: of the sum when each cluster is removed. influence: of each cell, to first order. leverage: its share of the
    variance of the sum's own covariate.
    """

    change: np.ndarray
    influence: np.ndarray
    leverage: np.ndarray


def effects_by_cluster(
    risk_sets: RiskSets, estimate: Fit, durations: ClusteredDurations, contrasts: np.ndarray
) -> Effects:
    """Return the effects of each cluster, and of each cell in order of cluster and week, on sums of coefficients.

    Parameters
    ----------
    risk_sets, estimate : the data of the fit and its result, p coefficients
    durations : the same durations by cluster
    contrasts : (sums, p) floats

    Returns
    -------
    change (clusters, sums), influence and leverage (cells, sums)

    Notes
    -----
    One step of the jackknife: (I - I_c)^-1 s (CR3; Bell & McCaffrey 2002, Surv. Methodol. 28), with the scores of Lin &
    Wei (1989, J. Am. Stat. Assoc. 84). The squares of the sums of `influence` by cluster add up to the plain sandwich.

    Examples
    --------
    >>> from ttf.stats.durations.cox import fit
    >>> seconds, failed, large = np.array([1, 2, 3, 4, 5, 6]), np.ones(6, bool), np.array([1, 0, 1, 0, 1, 0])
    >>> risk_sets = RiskSets(seconds, failed, [large])
    >>> week, columns = np.zeros(6, np.int64), np.array([[0.0], [1.0]])
    >>> durations = ClusteredDurations(np.array([0, 0, 1, 1, 2, 2]), week, large, seconds, failed, columns)
    >>> effects_by_cluster(risk_sets, fit(risk_sets), durations, np.eye(1)).influence.round(3).tolist()
    [[-0.108], [-0.046], [0.154]]
    """
    ages = _AgeSums(risk_sets, estimate)
    hazard = np.exp(durations.columns @ estimate.coefficients - ages.highest)
    ages_seen = np.searchsorted(ages.seconds, durations.seconds, side="right").astype(np.int32)
    ages_seen[durations.failed] += ages.seconds.size + 1
    rows, counts = distinct_rows(durations.cluster, durations.group, durations.week, ages_seen)
    del ages_seen
    information, weights = np.linalg.inv(estimate.covariance), estimate.covariance @ contrasts.T
    covariate = durations.columns @ weights
    covariate -= np.average(covariate, axis=0, weights=np.bincount(durations.group, minlength=hazard.size) * hazard)
    effects = []
    for block in _blocks(rows[0]):
        cluster, group, week, ages_seen = (column[block] for column in rows)
        keys, counts_of_block = (cluster, group, week), counts[block]
        scores, expected, parts = ages.sum_by_cluster(*keys, ages_seen, counts_of_block, hazard, durations.columns)
        cluster, group, week = (key[run_starts(*keys)] for key in keys)
        by_cluster = np.add.reduceat(scores, run_starts(cluster))
        change = np.linalg.solve(information * (1 + RIDGE) - parts, by_cluster[:, :, None])[:, :, 0]
        cell, squares = number_rows(cluster, week), expected[:, None] * covariate[group] ** 2
        influence, leverage = (
            np.stack([np.bincount(cell, column) for column in values.T], axis=1)
            for values in (scores @ weights, squares)
        )
        effects.append((change @ contrasts.T, influence, leverage))
    change, influence, leverage = map(np.concatenate, zip(*effects, strict=True))
    return Effects(change, influence, leverage / leverage.sum(axis=0))


def _blocks(cluster: np.ndarray) -> Iterator[slice]:
    """Yield slices of whole clusters, about BLOCK_ROWS rows each."""
    cluster_starts = run_starts(cluster)
    start = 0
    while start < cluster.size:
        next_cluster = int(np.searchsorted(cluster_starts, start + BLOCK_ROWS))
        end = int(cluster_starts[next_cluster]) if next_cluster < cluster_starts.size else cluster.size
        yield slice(start, end)
        start = end


class _AgeSums:
    """Sums over the ages of events that a duration has seen, indexed by the number of these ages.

    The second half of each array, from index ages + 1 on, is for durations that the event ended: by Efron's rule they
    were at risk for only a part of their last age. cumulative_hazard: sum of the hazard. cumulative_mean: sum of the
    hazard times the mean of each column in the risk set. event_mean: that mean at the last age. part: the part that
    contains the last age. hazard_before_part: cumulative hazard before this part.
    """

    def __init__(self, risk_sets: RiskSets, estimate: Fit) -> None:
        likelihood, size = PartialLikelihood(risk_sets, estimate.coefficients), len(risk_sets.columns)
        n_ages = risk_sets.ties.size
        self.seconds, self.highest = risk_sets.ages, likelihood.highest
        hazard, efron_hazard = np.zeros(n_ages), np.zeros(n_ages)
        means, hazard_mean, efron_mean = (np.zeros((size, n_ages)) for _ in range(3))
        n_events = np.cumsum(risk_sets.ties)
        part_of_age = np.arange(n_ages) if n_ages <= PARTS else number_rows((n_events - 1) * PARTS // n_events[-1])
        self.n_parts = int(part_of_age[-1]) + 1
        self.squares = np.zeros((self.n_parts, size, size))
        column_sums = [risk_sets.sum_over_risk_sets(likelihood.hazard * column) for column in risk_sets.columns]
        for age, efron_share in risk_sets.event_blocks():
            at_risk = likelihood.risk_set_hazard[age] - efron_share * likelihood.event_hazard[age]
            starts = run_starts(age)
            event_ages = age[starts]
            hazard[event_ages] += np.add.reduceat(1 / at_risk, starts)
            efron_hazard[event_ages] += np.add.reduceat(efron_share / at_risk, starts)
            mean = np.stack([(total[age] - efron_share * events[age]) / at_risk for total, events in column_sums])
            means[:, event_ages] += np.add.reduceat(mean, starts, axis=1)
            hazard_mean[:, event_ages] += np.add.reduceat(mean / at_risk, starts, axis=1)
            efron_mean[:, event_ages] += np.add.reduceat(mean * (efron_share / at_risk), starts, axis=1)
            part_starts = run_starts(part_of_age[age])
            parts = part_of_age[age[part_starts]]
            for a in range(size):
                self.squares[parts, a, a:] += np.add.reduceat(mean[a] * mean[a:], part_starts, axis=1).T
        for a in range(size):
            self.squares[:, a:, a] = self.squares[:, a, a:]
        self.cumulative_hazard = _cumulate(hazard, efron_hazard)
        self.cumulative_mean = [_cumulate(hazard_mean[a], efron_mean[a]) for a in range(size)]
        self.event_mean = [np.concatenate(([0.0], means[a] / risk_sets.ties)) for a in range(size)]
        part_starts = run_starts(part_of_age)
        self.part_hazard = np.add.reduceat(hazard, part_starts)
        cumulative = np.concatenate(([0.0], np.cumsum(hazard)))[part_starts]
        self.part_events = np.add.reduceat(risk_sets.ties, part_starts)
        # A duration that ended before the first event is in the first part, with hazard 0.
        self.part = np.tile(np.concatenate(([0], part_of_age)), 2)
        self.hazard_before_part = cumulative[self.part]

    def sum_by_cluster(
        self,
        cluster: np.ndarray,
        group: np.ndarray,
        week: np.ndarray,
        ages_seen: np.ndarray,
        counts: np.ndarray,
        hazard: np.ndarray,
        columns: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return sums over sorted rows: scores (runs, columns), expected events, information by cluster.

        A run has one cluster, group and week. The information is an array (clusters, columns, columns).

        counts: number of durations in each row; hazard, columns: by group.
        """
        size, half = columns.shape[1], self.seconds.size + 1
        failures = np.where(ages_seen >= half, counts, 0)
        at_risk = counts * hazard[group]
        expected = at_risk * self.cumulative_hazard[ages_seen]
        # Sum over runs, over the groups of a cluster, then over clusters.
        starts = run_starts(cluster, group, week)
        group_starts = run_starts(cluster[starts], group[starts])
        cluster_starts = run_starts(cluster[starts][group_starts])
        x = np.ascontiguousarray(columns[group[starts]].T)
        events, run_expected = np.add.reduceat(failures, starts), np.add.reduceat(expected, starts)
        last_age = np.where(failures > 0, ages_seen - half, 0)
        expected_mean, scores = np.empty((size, starts.size)), []
        for a in range(size):
            expected_mean[a] = np.add.reduceat(at_risk * self.cumulative_mean[a][ages_seen], starts)
            event_mean = np.add.reduceat(failures * self.event_mean[a][last_age], starts)
            scores.append((events - run_expected) * x[a] + expected_mean[a] - event_mean)
        group_expected, expected_mean = (
            np.add.reduceat(sums, group_starts, axis=-1) for sums in (run_expected, expected_mean)
        )
        x = x[:, group_starts]
        information = np.tensordot(self._expected_shares(cluster, ages_seen, at_risk, expected), self.squares, 1)
        for a in range(size):
            products = (group_expected * x[a] - expected_mean[a]) * x[a:] - x[a] * expected_mean[a:]
            information[:, a, a:] += np.add.reduceat(products, cluster_starts, axis=1).T
            information[:, a:, a] = information[:, a, a:]
        return np.array(scores).T, run_expected, information

    def _expected_shares(
        self, cluster: np.ndarray, ages_seen: np.ndarray, at_risk: np.ndarray, expected: np.ndarray
    ) -> np.ndarray:
        """Return the expected share of the events in each part of the ages: array (clusters, parts)."""
        starts = run_starts(cluster)
        cluster_index = np.repeat(np.arange(starts.size), np.diff(np.append(starts, cluster.size)))
        bin_index = cluster_index * self.n_parts + self.part[ages_seen]
        n_bins = starts.size * self.n_parts
        expected_in_part = np.bincount(bin_index, expected - at_risk * self.hazard_before_part[ages_seen], n_bins)
        last_at_risk = np.bincount(bin_index, at_risk, n_bins).reshape(-1, self.n_parts)
        later_at_risk = np.cumsum(last_at_risk[:, ::-1], axis=1)[:, ::-1] - last_at_risk
        return (expected_in_part.reshape(-1, self.n_parts) + later_at_risk * self.part_hazard) / self.part_events


def _cumulate(values: np.ndarray, efron_values: np.ndarray) -> np.ndarray:
    """Return sums over the first 0, 1, ... ages; then the same less Efron's part of the last age."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    return np.concatenate((sums, sums - np.concatenate(([0.0], efron_values))))
