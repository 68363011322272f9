"""How far hazard ratios may be off when clusters of lives differ: what each cluster adds to the coefficients of a fit.

The score is a sum over lives, of what an event adds less what the life had to expect of the hazards that it went
through; the sum over the lives of a cluster is its score s (Lin & Wei 1989), and the cluster's part of the information
I_c: the spread of the columns about the mean of the risk set at each event, of its lives there. A fit without the
cluster would in one step be off by (I - I_c)^-1 s, and the covariance is the sum of the squares of these (CR3, the
jackknife; Bell & McCaffrey 2002). With I in place of I - I_c it is the sandwich that `coxph` of R's survival has with
`cluster`: too narrow where few clusters hold most lives.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ttf.analyses.factors.estimate_hazards.cox import Fit, Lives, State
from ttf.stats.basics.order import distinct_rows, first_of_each, numbered

# Into so many parts the ages of events are divided to say which part of the risk sets a cluster was; with no more ages
# each is a part of its own.
PARTS = 64
# Rows looked at together.
BLOCK_ROWS = 1 << 18
# So that the information without a cluster that has all of it can be inverted: its coefficient runs off then.
RIDGE = 1e-9


@dataclass(frozen=True)
class Alike:
    """Lives by cluster, by what is alike in their covariates and by how they ended: whole numbers, a row for each life.

    cluster: its number. group: the place of its covariates in `columns`, an array (groups, columns). seconds, failed:
    the duration and whether it ended by the event.
    """

    cluster: np.ndarray
    group: np.ndarray
    seconds: np.ndarray
    failed: np.ndarray
    columns: np.ndarray


def moves(lives: Lives, found: Fit, alike: Alike, one_step: bool = True) -> np.ndarray:
    """By how much each cluster moves the coefficients of a fit: an array (clusters, columns), in order of the clusters.

    one_step: without it each is I^-1 s, whose squares add up to the plain sandwich.
    """
    ages = _Ages(lives, found)
    hazard = np.exp(alike.columns @ found.coefficients - ages.highest)
    seen = np.searchsorted(ages.seconds, alike.seconds, side="right").astype(np.int32)
    seen[alike.failed] += ages.seconds.size + 1
    rows, number = distinct_rows(alike.cluster, alike.group, seen)
    del seen
    information = np.linalg.inv(found.covariance)
    found_moves = []
    for block in _blocks(rows[0]):
        scores, parts = ages.by_cluster(*(column[block] for column in rows), number[block], hazard, alike.columns)
        left = information * (1 + RIDGE) - parts if one_step else information
        found_moves.append(np.linalg.solve(left, scores[:, :, None])[:, :, 0])
    return np.concatenate(found_moves)


def _blocks(cluster: np.ndarray) -> Iterator[slice]:
    """Rows of whole clusters, about BLOCK_ROWS at a time."""
    begin = first_of_each(cluster)
    start = 0
    while start < cluster.size:
        after = int(np.searchsorted(begin, start + BLOCK_ROWS))
        end = int(begin[after]) if after < begin.size else cluster.size
        yield slice(start, end)
        start = end


class _Ages:
    """What a life that ended after so many of the events' ages had gone through: arrays with a row for each number.

    Twice: of lives that ended otherwise, and, ages + 1 places further on, of those that the event ended there, which by
    Efron's rule were at risk for a part of its last age only. passed: the hazard; passed_mean: the same times the mean
    of the columns in the risk set; mean: that mean at its last age, for those that the event ended. part: which part of
    the ages it is in; passed_before: the hazard before that part.
    """

    def __init__(self, lives: Lives, found: Fit) -> None:
        state, size = State(lives, found.coefficients), len(lives.columns)
        ages = lives.ties.size
        self.seconds, self.highest = lives.ages, state.highest
        hazard, of_gone = np.zeros(ages), np.zeros(ages)
        means, hazard_mean, gone_mean = (np.zeros((size, ages)) for _ in range(3))
        until = np.cumsum(lives.ties)
        part_of_age = np.arange(ages) if ages <= PARTS else numbered((until - 1) * PARTS // until[-1])
        self.parts = int(part_of_age[-1]) + 1
        self.squares = np.zeros((self.parts, size, size))
        of_columns = [lives.over_risk_sets(state.hazard * column) for column in lives.columns]
        for age, gone in lives.events():
            at_risk = state.still_there[age] - gone * state.ending[age]
            first = first_of_each(age)
            here = age[first]
            hazard[here] += np.add.reduceat(1 / at_risk, first)
            of_gone[here] += np.add.reduceat(gone / at_risk, first)
            mean = np.stack([(still_there[age] - gone * ending[age]) / at_risk for still_there, ending in of_columns])
            means[:, here] += np.add.reduceat(mean, first, axis=1)
            hazard_mean[:, here] += np.add.reduceat(mean / at_risk, first, axis=1)
            gone_mean[:, here] += np.add.reduceat(mean * (gone / at_risk), first, axis=1)
            begin = first_of_each(part_of_age[age])
            parts = part_of_age[age[begin]]
            for a in range(size):
                self.squares[parts, a, a:] += np.add.reduceat(mean[a] * mean[a:], begin, axis=1).T
        for a in range(size):
            self.squares[:, a:, a] = self.squares[:, a, a:]
        self.passed = _twice(hazard, of_gone)
        self.passed_mean = [_twice(hazard_mean[a], gone_mean[a]) for a in range(size)]
        self.mean = [np.concatenate(([0.0], means[a] / lives.ties)) for a in range(size)]
        begin = first_of_each(part_of_age)
        self.of_part = np.add.reduceat(hazard, begin)
        before = np.concatenate(([0.0], np.cumsum(hazard)))[begin]
        self.events = np.add.reduceat(lives.ties, begin)
        # A life that ended before the first event is in the first part, and has passed nothing of it.
        self.part = np.tile(np.concatenate(([0], part_of_age)), 2)
        self.passed_before = before[self.part]

    def by_cluster(
        self,
        cluster: np.ndarray,
        group: np.ndarray,
        seen: np.ndarray,
        number: np.ndarray,
        hazard: np.ndarray,
        columns: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """(scores, information) by cluster: (clusters, columns), (clusters, columns, columns); of rows in their order.

        number: the lives of a row; hazard and columns: by group.
        """
        size, half = columns.shape[1], self.seconds.size + 1
        failures = np.where(seen >= half, number, 0)
        at_risk = number * hazard[group]
        expected = at_risk * self.passed[seen]
        # Sums over the lives of a cluster in a group, then over the groups of a cluster.
        first = first_of_each(cluster, group)
        of_cluster = first_of_each(cluster[first])
        x = np.ascontiguousarray(columns[group[first]].T)
        events, over_group = np.add.reduceat(failures, first), np.add.reduceat(expected, first)
        last = np.where(failures > 0, seen - half, 0)
        passed_mean, scores = np.empty((size, first.size)), []
        for a in range(size):
            passed_mean[a] = np.add.reduceat(at_risk * self.passed_mean[a][seen], first)
            of_events = np.add.reduceat(failures * self.mean[a][last], first)
            score = (events - over_group) * x[a] + passed_mean[a] - of_events
            scores.append(np.add.reduceat(score, of_cluster))
        information = np.tensordot(self._share(cluster, seen, at_risk, expected), self.squares, 1)
        for a in range(size):
            of_groups = (over_group * x[a] - passed_mean[a]) * x[a:] - x[a] * passed_mean[a:]
            information[:, a, a:] += np.add.reduceat(of_groups, of_cluster, axis=1).T
            information[:, a:, a] = information[:, a, a:]
        return np.array(scores).T, information

    def _share(self, cluster: np.ndarray, seen: np.ndarray, at_risk: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """(clusters, parts): of the events of each part of the ages, those that a cluster had to expect."""
        begin = first_of_each(cluster)
        place = np.repeat(np.arange(begin.size), np.diff(np.append(begin, cluster.size))) * self.parts + self.part[seen]
        room = begin.size * self.parts
        within = np.bincount(place, expected - at_risk * self.passed_before[seen], room).reshape(-1, self.parts)
        ended = np.bincount(place, at_risk, room).reshape(-1, self.parts)
        later = np.cumsum(ended[:, ::-1], axis=1)[:, ::-1] - ended
        return (within + later * self.of_part) / self.events


def _twice(by_age: np.ndarray, of_gone: np.ndarray) -> np.ndarray:
    """Sums up to each age, from none of them on; then the same less what of the last of them had gone."""
    so_far = np.concatenate(([0.0], np.cumsum(by_age)))
    return np.concatenate((so_far, so_far - np.concatenate(([0.0], of_gone))))
