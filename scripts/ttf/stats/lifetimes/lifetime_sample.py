"""Durations of one stratum as the lifetime models read them, and fast sums over the censored ones."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ttf.stats.durations.strata import Times

# A duration of 0 whole seconds lasted a part of one. A density at exactly 0 s is 0 or infinite for every shape but 1,
# so such durations stand at the middle of their second.
ZERO_STANDS_FOR_S = 0.5
# With fewer distinct times a sum over the times themselves is as cheap.
FEW_TIMES = 2_000

NODES = 16
_ANGLES = np.pi * (np.arange(NODES) + 0.5) / NODES
# Row j maps the values at the nodes of a panel to the coefficient of the Chebyshev polynomial T_j.
_COEFFICIENTS = np.cos(np.outer(np.arange(NODES), _ANGLES)) * np.where(np.arange(NODES) == 0, 1, 2)[:, None] / NODES


class CannotFit(Exception):
    """Raised if a model has no estimate on these durations; the message is the table's reason."""


@dataclass(frozen=True)
class Points:
    """Log times and weights such that the sum of weights * f(log times) is the sum of f over the durations.

    panels: number of durations in each panel of NODES points if the points are nodes of an interpolation; None if they
    are the times themselves.
    """

    log_times: np.ndarray
    weights: np.ndarray
    panels: np.ndarray | None = None

    def error(self, values: np.ndarray) -> float:
        """Bound the error of the sum of f, given f at the points: the durations times f's last coefficients."""
        if self.panels is None:
            return 0.0
        last = np.einsum("pk,jk->pj", values.reshape(-1, NODES), _COEFFICIENTS[-2:])
        return float((self.panels * np.abs(last).sum(axis=1)).sum())


def condense(log_times: np.ndarray, durations: np.ndarray, width: float) -> Points:
    """Return the points for sums over durations: the times, or if these are many, the Chebyshev nodes of panels.

    log_times: float array (n,), ascending. durations: number of durations at each. width: of a panel, on the log scale.
    A function of log time that is smooth over a panel is the sum of its first 16 Chebyshev polynomials there, up to
    rounding (Trefethen 2013, chapter 8). So its sum over a million times is a sum over a few hundred nodes.
    """
    if log_times.size > FEW_TIMES:
        span = float(log_times[-1] - log_times[0])
        panels = max(1, math.ceil(span / width))
        if panels * NODES < log_times.size:
            return _chebyshev_points(log_times, durations, panels, span / panels)
    return Points(log_times, durations)


def _chebyshev_points(log_times: np.ndarray, durations: np.ndarray, panels: int, width: float) -> Points:
    position = (log_times - log_times[0]) / width
    panel = np.minimum(position.astype(np.int64), panels - 1)
    t = 2 * (position - panel) - 1
    # The sum of T_j(t) over the durations of each panel, by the recurrence of the polynomials.
    previous, current = durations * t, durations
    moments = np.empty((NODES, panels))
    for degree in range(NODES):
        moments[degree] = np.bincount(panel, weights=current, minlength=panels)
        previous, current = current, 2 * t * current - previous
    has_durations = moments[0] > 0
    weights = np.einsum("jp,jk->pk", moments[:, has_durations], _COEFFICIENTS)
    nodes = log_times[0] + width * (np.flatnonzero(has_durations)[:, None] + (np.cos(_ANGLES) + 1) / 2)
    return Points(nodes.ravel(), weights.ravel(), moments[0][has_durations])


# eq=False makes samples hashable by identity, so that lru_cache can cache their fits.
@dataclass(frozen=True, eq=False)
class Sample:
    """One stratum's durations by distinct value, ascending, as float arrays of one length.

    seconds: the durations, with 0 s replaced; ended: number of this length; events: those ended by the event.
    """

    seconds: np.ndarray
    ended: np.ndarray
    events: np.ndarray

    @classmethod
    def from_times(cls, times: Times) -> "Sample":
        seconds = np.where(times.seconds == 0, ZERO_STANDS_FOR_S, times.seconds.astype(np.float64))
        return cls(seconds, times.ended.astype(np.float64), times.events.astype(np.float64))

    @cached_property
    def total_events(self) -> float:
        return float(self.events.sum())

    @cached_property
    def log_times(self) -> np.ndarray:
        """Log of each time over the geometric mean of the events' times."""
        return self._logs_from_first - self._mean_log_from_first

    @cached_property
    def centre(self) -> float:
        """Mean log time (s) of the events."""
        return math.log(self._first_event_s) + self._mean_log_from_first

    @property
    def _first_event_s(self) -> float:
        return float(self.seconds[np.argmax(self.events > 0)])

    @cached_property
    def _logs_from_first(self) -> np.ndarray:
        """Log of each time over the time of the first event."""
        # For nearly equal times the difference of two logarithms would be rounding error.
        difference = (self.seconds - self._first_event_s) / self._first_event_s
        return np.where(np.abs(difference) < 0.5, np.log1p(difference), np.log(self.seconds / self._first_event_s))

    @cached_property
    def _mean_log_from_first(self) -> float:
        """Mean of `_logs_from_first` over the events."""
        return float((self.events * self._logs_from_first).sum()) / self.total_events

    def censored_points(self, width: float) -> Points:
        """Return the points for sums over the censored durations, in `log_times`; see `condense`."""
        n_censored = self.ended - self.events
        is_censored = n_censored > 0
        return condense(self.log_times[is_censored], n_censored[is_censored], width)
