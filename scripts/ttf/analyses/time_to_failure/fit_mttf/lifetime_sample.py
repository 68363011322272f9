"""The lives of one stratum as the lifetime models read them, and fast sums over the censored ones."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ttf.stats.durations.strata import Times

# A life of 0 whole seconds lasted some part of one; a density at exactly 0 s is 0 or infinite for every shape
# but 1, so such lives stand at the middle of their second.
ZERO_STANDS_FOR_S = 0.5
# Below so many distinct times a sum is as cheap over the times themselves.
FEW_TIMES = 2_000

NODES = 16
_ANGLES = np.pi * (np.arange(NODES) + 0.5) / NODES
# Row j turns the values at the nodes of a panel into the coefficient of the Chebyshev polynomial T_j.
_COEFFICIENTS = np.cos(np.outer(np.arange(NODES), _ANGLES)) * np.where(np.arange(NODES) == 0, 1, 2)[:, None] / NODES


class CannotFit(Exception):
    """A model has no estimate on these lives; the message is the table's reason."""


@dataclass(frozen=True)
class Points:
    """Log times and weights such that the sum of weights * f(log times) is that of f over some lives.

    panels: the lives in each panel of NODES points, where the points are nodes of an interpolation; None where they
    are the lives' own times.
    """

    log_times: np.ndarray
    weights: np.ndarray
    panels: np.ndarray | None = None

    def error(self, values: np.ndarray) -> float:
        """How far the sum of f may be off, given f at the points: the lives times f's last coefficients."""
        if self.panels is None:
            return 0.0
        last = np.einsum("pk,jk->pj", values.reshape(-1, NODES), _COEFFICIENTS[-2:])
        return float((self.panels * np.abs(last).sum(axis=1)).sum())


def condensed(log_times: np.ndarray, lives: np.ndarray, width: float) -> Points:
    """The points for sums over lives: their own times, or where those are many the Chebyshev nodes of panels.

    log_times: ascending; lives: how many at each; width: of a panel, on the log scale. A function of log time that is
    smooth over a panel is there the sum of its first 16 Chebyshev polynomials to rounding (Trefethen 2013, chapter
    8), so that its sum over a million times is a sum over a few hundred nodes.
    """
    if log_times.size > FEW_TIMES:
        span = float(log_times[-1] - log_times[0])
        panels = max(1, math.ceil(span / width))
        if panels * NODES < log_times.size:
            return _interpolating(log_times, lives, panels, span / panels)
    return Points(log_times, lives)


def _interpolating(log_times: np.ndarray, lives: np.ndarray, panels: int, width: float) -> Points:
    place = (log_times - log_times[0]) / width
    panel = np.minimum(place.astype(np.int64), panels - 1)
    within = 2 * (place - panel) - 1
    # The sum of T_j over the lives of each panel, by the recurrence of the polynomials.
    before, now = lives * within, lives
    moments = np.empty((NODES, panels))
    for number in range(NODES):
        moments[number] = np.bincount(panel, weights=now, minlength=panels)
        before, now = now, 2 * within * now - before
    held = moments[0] > 0
    weights = np.einsum("jp,jk->pk", moments[:, held], _COEFFICIENTS)
    nodes = log_times[0] + width * (np.flatnonzero(held)[:, None] + (np.cos(_ANGLES) + 1) / 2)
    return Points(nodes.ravel(), weights.ravel(), moments[0][held])


# A sample is itself alone: so fits of it can be remembered.
@dataclass(frozen=True, eq=False)
class Sample:
    """One stratum's lives by distinct duration, ascending, as float arrays of one length.

    seconds: the durations, zeros moved; ended: lives that lasted as long; events: those of them ended by the
    event.
    """

    seconds: np.ndarray
    ended: np.ndarray
    events: np.ndarray

    @classmethod
    def of(cls, times: Times) -> "Sample":
        seconds = np.where(times.seconds == 0, ZERO_STANDS_FOR_S, times.seconds.astype(np.float64))
        return cls(seconds, times.ended.astype(np.float64), times.events.astype(np.float64))

    @cached_property
    def total_events(self) -> float:
        return float(self.events.sum())

    @cached_property
    def log_times(self) -> np.ndarray:
        """The log of each time over the geometric mean of the events' times."""
        return self._from_first - self._mean_from_first

    @cached_property
    def centre(self) -> float:
        """The mean log time (s) of the events."""
        return math.log(self._first_event) + self._mean_from_first

    @property
    def _first_event(self) -> float:
        return float(self.seconds[np.argmax(self.events > 0)])

    @cached_property
    def _from_first(self) -> np.ndarray:
        # Of times nearly alike the difference of two logarithms would be rounding.
        difference = (self.seconds - self._first_event) / self._first_event
        return np.where(np.abs(difference) < 0.5, np.log1p(difference), np.log(self.seconds / self._first_event))

    @cached_property
    def _mean_from_first(self) -> float:
        return float((self.events * self._from_first).sum()) / self.total_events

    def censored(self, width: float) -> Points:
        """The points for sums over the censored lives, in `log_times`; see `condensed`."""
        lives = self.ended - self.events
        left = lives > 0
        return condensed(self.log_times[left], lives[left], width)
