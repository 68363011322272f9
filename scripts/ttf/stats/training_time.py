"""Where the time of a training run goes: every microsecond between its first and last moment in exactly one class."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ttf.records.training_runs import SECOND_US, Attempt

CLASSES = (
    *("queued", "down", "start_up", "restore", "productive", "slow", "stalled", "checkpoint", "evaluation", "lost"),
    *("detection", "shutdown", "unknown"),
)
MARKED = ("restore", "checkpoint", "evaluation")
# A step that takes longer than this many times the reference is slow, or stalled if its excess is longer than
# STALL_FACTOR references and STALL_US.
SLOW_FACTOR, STALL_FACTOR, STALL_US = 2, 10, 60 * SECOND_US
# Fewer intervals have no reference. A level that lasts for a tenth of the run's intervals may be the reference.
LEAST_INTERVALS, LEAST_SHARE = 20, 0.1
# A lasting change of the step time is at least 3 %, and its CUSUM at least this large (0.999 of chance is below 1.95).
LEAST_CHANGE, LEAST_CUSUM = 0.03, 2.5
# Longer than any step, where no reference is known.
NO_REFERENCE = 1e15

NO_CLOCK = "no line has a clock, and no step a time"
NO_END = "no line tells when the attempt ended"
CUT = "the log ends before the run does"


@dataclass
class AttemptTime:
    """Time of an attempt by class, in microseconds; gap_us: that from its end to the start of the next one.

    kept_steps: steps that no later attempt repeats; expected_us: their time at the reference speed. lost_steps: the
    others. changes: (step, time of a step before, after) at which its time changed for good.
    """

    attempt: Attempt
    time_us: dict[str, int]
    gap_us: dict[str, int] = field(default_factory=dict)
    kept_steps: int = 0
    expected_us: int = 0
    lost_steps: int = 0
    changes: list[tuple[int, float, float]] = field(default_factory=list)

    @property
    def restart_us(self) -> int:
        return self.time_us["start_up"] + self.time_us["restore"]


@dataclass
class RunTime:
    """attempts: what each took. reference_us: time of a step at the best lasting speed, None if too few are known.

    It is that of the most frequent batch size.
    """

    attempts: list[AttemptTime]
    reference_us: float | None
    wall_us: int
    is_timed: bool
    reasons: list[str]

    @property
    def time_us(self) -> dict[str, int]:
        parts = [time for attempt in self.attempts for time in (attempt.time_us, attempt.gap_us)]
        return {name: sum(part.get(name, 0) for part in parts) for name in CLASSES}


@dataclass
class _Intervals:
    """Intervals that end with a line of steps; the first one begins with the attempt.

    time_us: without marks. counts: steps. steps: the last one. is_regular: neither the first one nor marked. batch:
    size, 0 if unknown. segment: number of the stretch with one level, the median time of a step.
    """

    time_us: np.ndarray
    counts: np.ndarray
    steps: np.ndarray
    is_regular: np.ndarray
    batch: np.ndarray
    segment: np.ndarray
    level: np.ndarray


def account_run(attempts: Sequence[Attempt]) -> RunTime:
    """Return where the time of a run went; its attempts are in the order of their starts."""
    cutoffs = find_cutoffs(attempts)
    is_timed = any(attempt.is_timed for attempt in attempts)
    # Intervals are measured twice: those of a hundred thousand attempts would take half a gigabyte.
    intervals = (_measure_intervals(attempt, resolve_marks(attempt)) for attempt in attempts)
    references = find_references(intervals) if is_timed else {}
    times = [
        _account_attempt(attempt, cutoff, references, later)
        for attempt, cutoff, later in zip(attempts, cutoffs, [*attempts[1:], None], strict=True)
    ]
    reference = next(iter(references.values()), None)
    wall = attempts[-1].end_us - attempts[0].start_us + attempts[0].queued_us
    return RunTime(times, reference, wall, is_timed, _list_reasons(attempts, times, is_timed))


def _list_reasons(attempts: Sequence[Attempt], times: Sequence[AttemptTime], is_timed: bool) -> list[str]:
    reasons = {NO_CLOCK: not is_timed}
    reasons |= {NO_END: any(time.gap_us.get("unknown") for time in times), CUT: bool(times[-1].time_us["unknown"])}
    no_clock = "no line of a step has a clock: times of steps are added up, and what lies between them is unknown"
    reasons[no_clock] = is_timed and not any(attempt.has_clock for attempt in attempts)
    reasons["the clock goes back; the time it went back counts as none"] = any(a.clock_went_back for a in attempts)
    return [reason for reason, holds in reasons.items() if holds]


def find_cutoffs(attempts: Sequence[Attempt]) -> list[int | None]:
    """Return for each attempt the last step that no later attempt does again; None if no later one repeats any."""
    cutoffs: list[int | None] = []
    lowest: int | None = None
    for attempt in reversed(attempts):
        cutoffs.append(lowest)
        first = attempt.first_step
        lowest = lowest if first is None else first if lowest is None else min(first, lowest)
    return cutoffs[::-1]


def resolve_marks(attempt: Attempt) -> np.ndarray:
    """Return disjoint marks of an attempt, sorted: start, end and index in MARKED. The earlier one wins an overlap."""
    rows, latest = [], attempt.start_us
    for start, end, name in sorted(attempt.marks):
        start, end = max(start, latest), min(end, attempt.end_us)
        if start < end:
            rows.append((start, end, MARKED.index(name)))
            latest = end
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def _sum_before(marks: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the marked time before each moment."""
    if not len(marks):
        return np.zeros(len(times), dtype=np.int64)
    lengths = marks[:, 1] - marks[:, 0]
    sums = np.concatenate(([0], np.cumsum(lengths)))
    index = np.searchsorted(marks[:, 0], times, side="left")
    inside = np.where(index > 0, np.minimum(times - marks[index - 1, 0], lengths[index - 1]), 0)
    return np.where(index > 0, sums[index - 1] + inside, 0)


def _measure_intervals(attempt: Attempt, marks: np.ndarray) -> _Intervals:
    steps, counts, samples, times = (
        np.array(values, dtype=np.int64)
        for values in (attempt.steps, attempt.counts, attempt.samples, attempt.times_us)
    )
    times = np.concatenate(([attempt.start_us], times))
    marked = np.diff(_sum_before(marks, times))
    time_us = np.diff(times) - marked
    per_step = time_us / counts
    is_regular = marked == 0
    is_regular[:1] = False
    # A larger batch takes longer without being slower. That of the first line is not known.
    batch = np.rint(np.diff(samples, prepend=0) / counts).astype(np.int64)
    batch[:1] = batch[1:2] if len(batch) > 1 else 0
    segment, level = np.zeros(len(counts), dtype=np.int64), np.full(len(counts), np.nan)
    regular = np.flatnonzero(is_regular)
    for size in np.unique(batch[regular]):
        chosen = regular[batch[regular] == size]
        segment[chosen] = find_levels(per_step[chosen]) + segment.max() + 1
    if len(regular):
        # An irregular interval belongs to the level before it, the first ones to that after them.
        latest = np.maximum.accumulate(np.where(is_regular, np.arange(len(counts)), regular[0]))
        segment = segment[latest]
    for number in np.unique(segment[regular]):
        level[segment == number] = np.median(per_step[(segment == number) & is_regular])
    return _Intervals(time_us, counts, steps, is_regular, batch, segment, level)


def find_levels(per_step: np.ndarray) -> np.ndarray:
    """Return the number of the segment of each interval: the time of a step changes for good between segments.

    Binary segmentation by the CUSUM of the logarithms, cut at three deviations from the median.
    """
    segment = np.zeros(len(per_step), dtype=np.int64)
    values = np.log(np.maximum(per_step, 1.0))
    pending = [(0, len(values))]
    bounds = []
    while pending:
        start, end = pending.pop()
        part = values[start:end]
        if len(part) < 2 * LEAST_INTERVALS:
            continue
        center = np.median(part)
        spread = max(1.4826 * float(np.median(np.abs(np.diff(part)))) / np.sqrt(2), 1e-4)
        wide = max(3 * spread, 3 * 1.4826 * float(np.median(np.abs(part - center))), np.log1p(LEAST_CHANGE))
        part = np.clip(part, center - wide, center + wide)
        cusum = np.abs(np.cumsum(part - part.mean()))[:-1]
        cusum[: LEAST_INTERVALS - 1] = cusum[len(part) - LEAST_INTERVALS :] = 0
        at = int(np.argmax(cusum)) + 1
        change = abs(np.median(values[start : start + at]) - np.median(values[start + at : end]))
        if cusum[at - 1] / (spread * np.sqrt(len(part))) >= LEAST_CUSUM and change >= np.log1p(LEAST_CHANGE):
            bounds.append(start + at)
            pending += [(start, start + at), (start + at, end)]
    for bound in bounds:
        segment[bound:] += 1
    return segment


def find_references(intervals: Iterable[_Intervals]) -> dict[int, float]:
    """Return the lowest median time of a step that lasts, by batch size, the most frequent size first.

    Sizes with fewer than LEAST_INTERVALS regular intervals have none.
    """
    stretches: dict[int, list[np.ndarray]] = defaultdict(list)
    for part in intervals:
        for number in np.unique(part.segment[part.is_regular]):
            chosen = (part.segment == number) & part.is_regular
            stretches[int(part.batch[chosen][0])].append(part.time_us[chosen] / part.counts[chosen])
    totals = {size: sum(map(len, parts)) for size, parts in stretches.items()}
    references = {}
    for size in sorted(totals, key=lambda size: (-totals[size], size)):
        least = max(LEAST_INTERVALS, LEAST_SHARE * totals[size])
        lasting = [float(np.median(part)) for part in stretches[size] if len(part) >= least]
        if lasting:
            references[size] = min(lasting)
        elif totals[size] >= LEAST_INTERVALS:
            # Many short attempts: the median of all of them.
            references[size] = float(np.median(np.concatenate(stretches[size])))
    return references


def _account_attempt(
    attempt: Attempt, cutoff: int | None, references: Mapping[int, float], later: Attempt | None
) -> AttemptTime:
    marks = resolve_marks(attempt)
    intervals = _measure_intervals(attempt, marks)
    time_us = dict.fromkeys(CLASSES, 0)
    for index, name in enumerate(MARKED):
        time_us[name] = int((marks[:, 1] - marks[:, 0])[marks[:, 2] == index].sum())
    time_us["queued"] = attempt.queued_us
    begin, end = (attempt.times_us[-1] if attempt.steps else attempt.start_us), attempt.end_us
    tail_us = end - begin - int(np.diff(_sum_before(marks, np.array([begin, end])))[0])
    if not attempt.steps:
        time_us["start_up"] = tail_us
        return AttemptTime(attempt, time_us, _account_gap(attempt, later))
    counts, levels, lengths = intervals.counts, intervals.level, intervals.time_us.copy()
    reference = np.array([references.get(size, NO_REFERENCE) for size in intervals.batch.tolist()])
    # The first interval is one of steps too, without its start-up. Without a clock the first line has the time of its
    # steps alone; few others do not say whether it is too long.
    if attempt.has_clock or len(counts) > LEAST_INTERVALS:
        first_us = references.get(int(intervals.batch[0]), 0.0) if np.isnan(levels[0]) else levels[0]
        lengths[0] = min(lengths[0], round(first_us * counts[0]))
    time_us["start_up"] = int(intervals.time_us[0] - lengths[0])
    lost_steps = np.zeros_like(counts) if cutoff is None else np.clip(intervals.steps - cutoff, 0, counts)
    lost = np.rint(lengths * (lost_steps / counts)).astype(np.int64)
    time_us["lost"] = int(lost.sum())
    kept = lengths - lost
    excess = np.rint(np.maximum(kept - (counts - lost_steps) * reference, 0)).astype(np.int64)
    is_long = lengths > SLOW_FACTOR * reference * counts
    is_stalled = is_long & (excess > np.maximum(STALL_FACTOR * reference, STALL_US))
    is_stalled[1:] &= intervals.is_regular[1:]
    is_slow = ~is_stalled & (is_long | (levels > reference * (1 + LEAST_CHANGE)))
    time_us["stalled"], time_us["slow"] = int(excess[is_stalled].sum()), int(excess[is_slow].sum())
    time_us["productive"] = int(kept.sum()) - time_us["stalled"] - time_us["slow"]
    time_us[_name_tail(attempt, tail_us, min(references.values(), default=0.0), later)] += tail_us
    at = np.flatnonzero((np.diff(intervals.segment) != 0) & (np.diff(intervals.batch) == 0))
    changes = [
        (int(step) + 1, float(before), float(after))
        for step, before, after in zip(intervals.steps[at], levels[at], levels[at + 1], strict=True)
    ]
    expected_us = int(np.where(reference < NO_REFERENCE, (counts - lost_steps) * reference, kept).sum())
    n_lost = int(lost_steps.sum())
    return AttemptTime(
        attempt, time_us, _account_gap(attempt, later), int(counts.sum()) - n_lost, expected_us, n_lost, changes
    )


def _name_tail(attempt: Attempt, tail_us: int, reference: float, later: Attempt | None) -> str:
    """Return the class of the time from the last step to the end of an attempt."""
    if attempt.ends_well:
        return "shutdown"
    if later is not None or attempt.error is not None or attempt.has_failed:
        return "detection"
    limit = max(STALL_FACTOR * reference, STALL_US)
    return "stalled" if tail_us > limit else "unknown"


def _account_gap(attempt: Attempt, later: Attempt | None) -> dict[str, int]:
    """Return the time from the end of an attempt to the next start: down, or unknown if no line tells the end."""
    if later is None:
        return {}
    gap = later.start_us - attempt.end_us - later.queued_us
    is_told = attempt.ends_well or attempt.error is not None or attempt.state is not None
    return {"down" if is_told else "unknown": gap}
