"""Effective training time ratio (ETTR): how much of a job run's wall clock makes progress that lasts, under failures.

The model (Kokolis et al., HPCA 2025; Daly 2006). A run needs `productive_s` of work. It waits in the queue, starts up,
works, and after every `interval_s` of work stops for a checkpoint. Failures come at a constant rate while it is
scheduled, not while it is queued; each throws away what was done since the last checkpoint, and then the run waits in
the queue and starts up anew. The last piece of work may be shorter; it ends with a write like the others.

Exact, by renewal. To get through t seconds that a failure sends back to their beginning, and through a start-up of u
seconds after each failure, takes e^(lambda u) (e^(lambda t) - 1) / lambda scheduled seconds in the mean (a first
start-up, which is sent back to itself: the same with u in the place of t and no other u). The run is a start-up, then
n = ceil(R / dt) pieces one after the other, so its scheduled time has the mean

    E[S] = {e^(lambda u) - 1 + e^(lambda u) [(n - 1) (e^(lambda (dt + w)) - 1) + e^(lambda (r + w)) - 1]} / lambda

with r = R - (n - 1) dt. Failures are Poisson in scheduled time and the run stops at a stopping time, so lambda E[S] of
them are expected (Wald), each with a wait q, and the wall clock's mean is E[S] + q (1 + lambda E[S]). As R grows, the
start and the rounding no longer count, and R over that becomes dt lambda / (e^(lambda u) (e^(lambda (dt + w)) - 1)
(1 + lambda q)).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np
from scipy.special import exprel, lambertw

# Where lambda (u0 + dt / 2), the share of the scheduled time that failures take, is above this, the approximations are
# poor: they allow for at most one failure in a start-up and interval.
APPROXIMATION_LIMIT = 0.3
# From here on the closed form of the best interval loses digits to the branch point of Lambert's W, and a series of
# its first terms is better.
_SMALL = 1e-6

Number = float | np.ndarray


@dataclass(frozen=True)
class Plan:
    """A job run, or arrays of one shape of them. Seconds, and failures per second of scheduled time.

    interval_s: work between two checkpoints; write_s: how long writing one blocks the work; restart_s: from being
    scheduled to working; queue_s: mean wait at the submission and after each failure; productive_s: the work to do.
    Raises ValueError where a value is not finite or negative, or the interval or the work is 0.
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
        """lambda (u0 + dt / 2): about the share of the scheduled time that failures take, while it is small."""
        return self.failures_per_s * (self.restart_s + self.interval_s / 2)


def ettr_v1(plan: Plan) -> Number:
    """The approximation of the paper's first version, where writing is free: NaN where it would not be above 0.

    (1 - lambda (u0 + dt / 2)) / (1 + (u0 + q) / R + lambda q). A lower bound of the mean, poor above
    APPROXIMATION_LIMIT.
    """
    lost = plan.lost_share
    waits = plan.failures_per_s * plan.queue_s
    return _positive(1 - lost, 1 + (plan.restart_s + plan.queue_s) / plan.productive_s + waits)


def ettr_v2(plan: Plan) -> Number:
    """The approximation of the paper's second version, for long runs without queueing: NaN where not above 0.

    (1 - lambda (u0 + dt / 2)) / (1 + w / dt).
    """
    return _positive(1 - plan.lost_share, 1 + plan.write_s / plan.interval_s)


def ettr_combined(plan: Plan) -> Number:
    """Both in one: with writes, queueing and a run of finite length. NaN where it would not be above 0.

    With a = lambda (u0 + dt / 2), the scheduled time is S = (u0 + R (1 + w / dt)) / (1 - a), and the queue takes q at
    the submission and after each of its lambda S failures, so that the ratio of R to S + q (1 + lambda S) is
    (1 - a) / ((1 + w / dt + u0 / R) (1 + lambda q) + q (1 - a) / R).
    """
    kept = 1 - plan.lost_share
    scheduled = 1 + plan.write_s / plan.interval_s + plan.restart_s / plan.productive_s
    waits = scheduled * (1 + plan.failures_per_s * plan.queue_s)
    return _positive(kept, waits + plan.queue_s * kept / plan.productive_s)


def ettr_renewal(plan: Plan) -> Number:
    """The work over the mean wall clock, exactly (see the module): 0 where the wall clock is beyond all numbers."""
    return plan.productive_s / expected_wall_s(plan)


def ettr_long_run(plan: Plan) -> Number:
    """What ettr_renewal comes to as the work grows, whatever `productive_s` is; 0 where that is below all numbers."""
    rate, period = plan.failures_per_s, plan.interval_s + plan.write_s
    with np.errstate(over="ignore"):
        scheduled = np.exp(rate * plan.restart_s) * period * exprel(rate * period)
        return plan.interval_s / (scheduled * (1 + rate * plan.queue_s))


def expected_scheduled_s(plan: Plan) -> Number:
    """The mean time that the run holds its nodes: E[S] of the module; infinite where it is beyond all numbers."""
    rate, period = plan.failures_per_s, plan.interval_s + plan.write_s
    pieces = _pieces(plan)
    last = plan.productive_s - (pieces - 1) * plan.interval_s + plan.write_s
    with np.errstate(over="ignore"):
        # exprel(x) = (e^x - 1) / x, which is 1 at 0.
        first_start = plan.restart_s * exprel(rate * plan.restart_s)
        work = np.where(pieces > 1, np.maximum(pieces - 1, 1) * period * exprel(rate * period), 0.0)
        total = first_start + np.exp(rate * plan.restart_s) * (work + last * exprel(rate * last))
    return total[()]


def expected_interruptions(plan: Plan) -> Number:
    """The mean number of failures until the work is done."""
    return plan.failures_per_s * expected_scheduled_s(plan)


def expected_wall_s(plan: Plan) -> Number:
    """The mean time from the submission until the work is done."""
    # In this order a wait of 0 leaves an infinite time infinite.
    return plan.queue_s + (1 + plan.failures_per_s * plan.queue_s) * expected_scheduled_s(plan)


# What there is to expect of a plan: functions by the names of the columns of the tables.
EXPECTED = (ettr_v1, ettr_v2, ettr_combined, ettr_renewal, ettr_long_run, expected_interruptions, expected_wall_s)


def daly_young_interval_s(failures_per_s: Number, write_s: Number) -> Number:
    """sqrt(2 w / lambda) (Young 1974): infinite without failures, 0 where writing is free, NaN where both hold."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(np.divide(np.multiply(2.0, write_s), failures_per_s))


def optimal_interval_s(failures_per_s: Number, write_s: Number) -> Number:
    """The interval of the highest ETTR in long runs; infinite without failures, 0 where writing is free, NaN if both.

    The derivative of ettr_long_run is 0 where 1 - e^(-lambda (dt + w)) = lambda dt, of which the solution is
    dt = (1 + W(-e^(-1 - lambda w))) / lambda with the principal branch of Lambert's W; neither the start-up nor the
    wait matters. Its first term for small lambda w is `daly_young_interval_s`.
    """
    load = np.multiply(failures_per_s, write_s)
    root = np.sqrt(2 * load)
    series = root - root**2 / 3 + root**3 / 36
    exact = 1 + lambertw(-np.exp(-1 - load)).real
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.divide(np.where(load < _SMALL, series, exact), failures_per_s)
    # 0 / 0 of the series: without failures every interval is too short.
    return np.where((np.asarray(failures_per_s) == 0) & (np.asarray(write_s) > 0), np.inf, found)[()]


def simulate(plan: Plan, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Play runs through, failure by failure: wall clocks (s) and interruptions, an element for each run.

    plan: an element for each run (what they share may be plain numbers). Each step draws the next failure of every run
    that is not done, so the work is the sum of the interruptions: look at `expected_interruptions` first.
    """
    rate, interval, write, restart, queue, productive = np.atleast_1d(
        *np.broadcast_arrays(*(np.asarray(getattr(plan, field.name), dtype=float) for field in fields(plan)))
    )
    pieces = _pieces(plan) + np.zeros_like(rate)
    last = productive - (pieces - 1) * interval + write
    wall, interruptions = queue.copy(), np.zeros(rate.size, dtype=np.int64)
    at_work, to_do = np.arange(rate.size), pieces
    while at_work.size:
        period, start = interval[at_work] + write[at_work], restart[at_work]
        to_the_end = start + (to_do - 1) * period + last[at_work]
        with np.errstate(divide="ignore"):
            failure_after = rng.standard_exponential(at_work.size) / rate[at_work]
        fails = failure_after < to_the_end
        wall[at_work] += np.where(fails, failure_after + queue[at_work], to_the_end)
        to_do = (to_do - np.maximum(np.where(fails, failure_after, start) - start, 0) // period)[fails]
        at_work = at_work[fails]
        interruptions[at_work] += 1
    return wall, interruptions


def simulated_ettr(productive_s: float, wall_s: np.ndarray) -> tuple[float, float]:
    """The work over the mean wall clock of simulated runs, and its standard error (by the delta method).

    Raises ValueError for fewer than two runs.
    """
    if wall_s.size < 2:
        raise ValueError("a standard error needs two runs or more")
    mean = float(wall_s.mean())
    estimate = productive_s / mean
    return estimate, estimate * float(wall_s.std(ddof=1)) / (mean * np.sqrt(wall_s.size))


def combined_interval(estimate: float, lower: Iterable[float], upper: Iterable[float]) -> tuple[float, float]:
    """The interval of a share that depends on several estimates, from what it is at the end of each one's interval.

    The distances to these are squared and added: variances are recovered from the ends (MOVER: Zou & Donner 2008).

    Parameters
    ----------
    estimate
        The share at all estimates.
    lower, upper
        The share at the end of one estimate that lowers it, or raises it, all others as estimated.

    Returns
    -------
    (low, high), within 0 and 1.
    """
    below, above = (math.hypot(*(end - estimate for end in ends)) for ends in (lower, upper))
    return max(estimate - below, 0.0), min(estimate + above, 1.0)


def _positive(above: Number, below: Number) -> Number:
    return np.where(np.asarray(above) > 0, np.divide(above, below), np.nan)[()]


def _pieces(plan: Plan) -> Number:
    # An interval that divides the work but for its last digit leaves no piece of no length.
    return np.ceil(np.divide(plan.productive_s, plan.interval_s) * (1 - 1e-12))
