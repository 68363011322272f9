"""Effective training time ratio (ETTR): the share of a run's wall clock that makes lasting progress, despite failures.

The model (Kokolis et al., HPCA 2025; Daly 2006): a run needs `productive_s` of work. It waits in the queue, starts up,
works, and stops for a checkpoint after every `interval_s` of work. Failures come at a constant rate while the run is
scheduled, not while it is queued. Each failure discards the work since the last checkpoint; then the run queues and
starts up again. The last piece of work may be shorter; it also ends with a write.

The expectation is exact, by renewal. A piece of t seconds that restarts at each failure, with a start-up of u seconds
after each failure, takes a mean scheduled time of e^(lambda u) (e^(lambda t) - 1) / lambda. The first start-up restarts
itself: t is its length, and u is 0. The run is a start-up, then n = ceil(R / dt) pieces, so its mean scheduled time is

    E[S] = {e^(lambda u) - 1 + e^(lambda u) [(n - 1) (e^(lambda (dt + w)) - 1) + e^(lambda (r + w)) - 1]} / lambda

with r = R - (n - 1) dt. Failures are Poisson in scheduled time and the run stops at a stopping time, so it expects
lambda E[S] failures (Wald), each with a wait q. The mean wall clock is E[S] + q (1 + lambda E[S]). As R grows, the
first start-up and the rounding vanish, and R over that becomes dt lambda / (e^(lambda u) (e^(lambda (dt + w)) - 1) (1 +
lambda q)).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np
from scipy.special import exprel, lambertw

# Above this share of scheduled time lost to failures, lambda (u0 + dt / 2), the approximations are poor: they allow for
# at most one failure in a start-up and interval.
APPROXIMATION_LIMIT = 0.3
# Below this load the closed form of the best interval loses digits at the branch point of Lambert's W. A series of its
# first terms is more exact.
_SMALL = 1e-6

Number = float | np.ndarray


@dataclass(frozen=True)
class Plan:
    """A job run, or arrays of one shape of runs, in seconds and failures per second of scheduled time.

    interval_s: work between two checkpoints. write_s: time that one write blocks the work. restart_s: from being
    scheduled to working. queue_s: mean wait at the submission and after each failure. productive_s: work to do. Raises
    ValueError for values that are negative or not finite, and for an interval or work of 0.
    """

    failures_per_s: Number
    interval_s: Number
    write_s: Number
    restart_s: Number
    queue_s: Number
    productive_s: Number

    def __post_init__(self) -> None:
        for field in fields(self):
            value = np.asarray(getattr(self, field.name), dtype=float)
            if not np.isfinite(value).all() or (value < 0).any():
                raise ValueError(f"{field.name} has to be finite and not negative")
            if field.name in ("interval_s", "productive_s") and (value == 0).any():
                raise ValueError(f"{field.name} has to be above 0")

    @property
    def lost_share(self) -> Number:
        """Return lambda (u0 + dt / 2): approximate share of scheduled time lost to failures, if small."""
        return self.failures_per_s * (self.restart_s + self.interval_s / 2)


def ettr_v1(plan: Plan) -> Number:
    """Return the approximation of the paper's first version, with free writes: NaN where it would not be above 0.

    Parameters
    ----------
    plan : numbers, or arrays of one shape

    Returns
    -------
    ETTR, of that shape

    Notes
    -----
    (1 - lambda (u0 + dt / 2)) / (1 + (u0 + q) / R + lambda q), with u0 restart, dt interval, q queue and R work
    (Kokolis et al., HPCA 2025). A lower bound of the mean; poor above APPROXIMATION_LIMIT.

    Examples
    --------
    >>> round(float(ettr_v1(Plan(1e-6, 3600.0, 0.0, 300.0, 0.0, 864_000.0))), 4)
    0.9976
    """
    lost_share = plan.lost_share
    queue_share = plan.failures_per_s * plan.queue_s
    return _divide_if_positive(1 - lost_share, 1 + (plan.restart_s + plan.queue_s) / plan.productive_s + queue_share)


def ettr_v2(plan: Plan) -> Number:
    """Return the approximation of the paper's second version, for long runs without queueing: NaN where not above 0.

    Parameters
    ----------
    plan : numbers, or arrays of one shape

    Returns
    -------
    ETTR, of that shape

    Notes
    -----
    (1 - lambda (u0 + dt / 2)) / (1 + w / dt), with u0 restart, dt interval and w write (Kokolis et al., HPCA 2025).

    Examples
    --------
    >>> round(float(ettr_v2(Plan(1e-6, 3600.0, 60.0, 300.0, 0.0, 864_000.0))), 4)
    0.9815
    """
    return _divide_if_positive(1 - plan.lost_share, 1 + plan.write_s / plan.interval_s)


def ettr_combined(plan: Plan) -> Number:
    """Return the ETTR approximation with writes, queueing and finite length: NaN where it would not be above 0.

    Parameters
    ----------
    plan : numbers, or arrays of one shape

    Returns
    -------
    ETTR, of that shape

    Notes
    -----
    With a = lambda (u0 + dt / 2), the scheduled time is S = (u0 + R (1 + w / dt)) / (1 - a). The queue takes q at the
    submission and after each of its lambda S failures. The ratio of R to S + q (1 + lambda S) is (1 - a) / ((1 + w / dt
    + u0 / R) (1 + lambda q) + q (1 - a) / R).

    Examples
    --------
    >>> round(float(ettr_combined(Plan(1e-6, 3600.0, 60.0, 300.0, 0.0, 864_000.0))), 4)
    0.9812
    """
    lasting_share = 1 - plan.lost_share
    scheduled = 1 + plan.write_s / plan.interval_s + plan.restart_s / plan.productive_s
    wall = scheduled * (1 + plan.failures_per_s * plan.queue_s)
    return _divide_if_positive(lasting_share, wall + plan.queue_s * lasting_share / plan.productive_s)


def ettr_renewal(plan: Plan) -> Number:
    """Return work over mean wall clock, exactly; 0 where the wall clock overflows.

    Parameters
    ----------
    plan : numbers, or arrays of one shape

    Returns
    -------
    ETTR, of that shape

    Notes
    -----
    By renewal: the module has the formula and its source.

    Examples
    --------
    >>> round(float(ettr_renewal(Plan(1e-6, 3600.0, 60.0, 300.0, 0.0, 864_000.0))), 4)
    0.9812
    """
    return plan.productive_s / expected_wall_s(plan)


def ettr_long_run(plan: Plan) -> Number:
    """Return the limit of ettr_renewal as the work grows, for any `productive_s`; 0 where it underflows.

    Parameters
    ----------
    plan : numbers, or arrays of one shape

    Returns
    -------
    ETTR, of that shape

    Examples
    --------
    >>> round(float(ettr_long_run(Plan(1e-6, 3600.0, 60.0, 300.0, 0.0, 1.0))), 4)
    0.9815
    """
    rate, period = plan.failures_per_s, plan.interval_s + plan.write_s
    with np.errstate(over="ignore"):
        scheduled = np.exp(rate * plan.restart_s) * period * exprel(rate * period)
        return plan.interval_s / (scheduled * (1 + rate * plan.queue_s))


def expected_scheduled_s(plan: Plan) -> Number:
    """Return the mean time that the run holds its nodes, E[S] of the module; infinite on overflow."""
    rate, period = plan.failures_per_s, plan.interval_s + plan.write_s
    pieces = _count_work_pieces(plan)
    last = plan.productive_s - (pieces - 1) * plan.interval_s + plan.write_s
    with np.errstate(over="ignore"):
        # exprel(x) = (e^x - 1) / x, which is 1 at 0.
        first_start = plan.restart_s * exprel(rate * plan.restart_s)
        work = np.where(pieces > 1, np.maximum(pieces - 1, 1) * period * exprel(rate * period), 0.0)
        total = first_start + np.exp(rate * plan.restart_s) * (work + last * exprel(rate * last))
    return total[()]


def expected_interruptions(plan: Plan) -> Number:
    """Return the mean number of failures until the work is done; infinite on overflow."""
    with np.errstate(over="ignore"):
        return plan.failures_per_s * expected_scheduled_s(plan)


def expected_wall_s(plan: Plan) -> Number:
    """Return the mean time from the submission until the work is done; infinite on overflow."""
    with np.errstate(over="ignore"):
        # This order of terms keeps an infinite time infinite when the wait is 0.
        return plan.queue_s + (1 + plan.failures_per_s * plan.queue_s) * expected_scheduled_s(plan)


# Functions of a plan whose names are columns of tables.
EXPECTED = (ettr_v1, ettr_v2, ettr_combined, ettr_renewal, ettr_long_run, expected_interruptions, expected_wall_s)


def daly_young_interval_s(failures_per_s: Number, write_s: Number) -> Number:
    """Return Young's interval between checkpoints, sqrt(2 w / lambda), in s.

    Infinite without failures, 0 for free writes, NaN for both.

    Parameters
    ----------
    failures_per_s : lambda
    write_s : w, time that one write blocks the work

    Returns
    -------
    interval, of the shape of the arguments

    References
    ----------
    Young (1974), Communications of the ACM 17

    Examples
    --------
    >>> float(daly_young_interval_s(2e-6, 100.0))
    10000.0
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(np.divide(np.multiply(2.0, write_s), failures_per_s))


def optimal_interval_s(failures_per_s: Number, write_s: Number) -> Number:
    """Return the interval between checkpoints with the highest ETTR in long runs, in s.

    Infinite without failures, 0 for free writes, NaN without both. Start-up and wait have no effect.

    Parameters
    ----------
    failures_per_s : lambda
    write_s : w, time that one write blocks the work

    Returns
    -------
    interval, of the shape of the arguments

    Notes
    -----
    The derivative of ettr_long_run is 0 where 1 - e^(-lambda (dt + w)) = lambda dt. The solution is dt = (1 + W(-e^(-1
    - lambda w))) / lambda with the principal branch of Lambert's W (Corless et al. 1996, Adv. Comput. Math. 5). The
    first term for small lambda w is `daly_young_interval_s`.

    Examples
    --------
    >>> round(float(optimal_interval_s(2e-6, 100.0)))
    9933
    """
    load = np.multiply(failures_per_s, write_s)
    root = np.sqrt(2 * load)
    series = root - root**2 / 3 + root**3 / 36
    exact = 1 + lambertw(-np.exp(-1 - load)).real
    with np.errstate(divide="ignore", invalid="ignore"):
        interval = np.divide(np.where(load < _SMALL, series, exact), failures_per_s)
    # The series gives 0 / 0: without failures every finite interval is too short.
    return np.where((np.asarray(failures_per_s) == 0) & (np.asarray(write_s) > 0), np.inf, interval)[()]


def simulate(plan: Plan, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Simulate runs failure by failure: wall clocks (s) and interruptions, one element for each run.

    plan: one element for each run; common values may be plain numbers. Each step draws the next failure of every
    unfinished run, so the work is the sum of the interruptions: check `expected_interruptions` first.
    """
    rate, interval, write, restart, queue, productive = np.atleast_1d(
        *np.broadcast_arrays(*(np.asarray(getattr(plan, field.name), dtype=float) for field in fields(plan)))
    )
    pieces = _count_work_pieces(plan) + np.zeros_like(rate)
    last = productive - (pieces - 1) * interval + write
    wall, interruptions = queue.copy(), np.zeros(rate.size, dtype=np.int64)
    active, pieces_left = np.arange(rate.size), pieces
    while active.size:
        period, start = interval[active] + write[active], restart[active]
        remaining_s = start + (pieces_left - 1) * period + last[active]
        with np.errstate(divide="ignore"):
            failure_s = rng.standard_exponential(active.size) / rate[active]
        fails = failure_s < remaining_s
        wall[active] += np.where(fails, failure_s + queue[active], remaining_s)
        pieces_left = (pieces_left - np.maximum(np.where(fails, failure_s, start) - start, 0) // period)[fails]
        active = active[fails]
        interruptions[active] += 1
    return wall, interruptions


def estimate_ettr(productive_s: float, wall_s: np.ndarray) -> tuple[float, float]:
    """Return work over mean wall clock of simulated runs, two or more, and its standard error (delta method)."""
    if wall_s.size < 2:
        raise ValueError("a standard error needs two runs or more")
    mean = float(wall_s.mean())
    estimate = productive_s / mean
    return estimate, estimate * float(wall_s.std(ddof=1)) / (mean * np.sqrt(wall_s.size))


def combine_intervals(estimate: float, lower: Iterable[float], upper: Iterable[float]) -> tuple[float, float]:
    """Return the interval (low, high), within 0 and 1, of a share that depends on several estimates.

    It recovers variances from limits (MOVER): the squared distances from the estimate add up.

    Parameters
    ----------
    estimate : share at all estimates
    lower, upper : share at the limit of one estimate that lowers or raises it, other estimates unchanged

    Returns
    -------
    (low, high)

    References
    ----------
    Zou & Donner (2008), Stat. Med. 27

    Examples
    --------
    >>> low, high = combine_intervals(0.5, [0.47, 0.46], [0.53, 0.54])
    >>> round(low, 4), round(high, 4)
    (0.45, 0.55)
    """
    distance_low, distance_high = (math.hypot(*(limit - estimate for limit in limits)) for limits in (lower, upper))
    return max(estimate - distance_low, 0.0), min(estimate + distance_high, 1.0)


def _divide_if_positive(numerator: Number, denominator: Number) -> Number:
    return np.where(np.asarray(numerator) > 0, np.divide(numerator, denominator), np.nan)[()]


def _count_work_pieces(plan: Plan) -> Number:
    # Rounding must not add a piece of no length when the interval divides the work.
    return np.ceil(np.divide(plan.productive_s, plan.interval_s) * (1 - 1e-12))
