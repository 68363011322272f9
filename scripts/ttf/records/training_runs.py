"""Attempts and runs in the events of training logs: when each attempt began and ended, and which steps it did.

A new attempt begins where a process is launched, where training starts again, or where the steps go back. A new run
begins where an attempt repeats steps of one that had ended well. Times are in microseconds.
"""

import itertools
import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter

import numpy as np
import polars as pl

from ttf.engine.storage.tables import read_blocks
from ttf.raw.training_logs.event_reader import ALL_LINES, CHOSEN, COUNT, LAST, PROGRESS
from ttf.raw.training_logs.line_clocks import SECOND_US
from ttf.records.record_contracts import TRAINING_EVENTS, TRAINING_LOG_LINES

# Rows in memory at once.
BLOCK_ROWS = 1 << 18
# Ranks of one launch print their first lines within this time; of one step, within the second.
LAUNCH_US, COPY_US = 30 * SECOND_US, 2 * SECOND_US
# A late rank's first line, where the lines name their rank.
RANK_US = 600 * SECOND_US
# A clock that goes back by more was set; less is the order of lines of several processes.
JUMP_US = 30 * SECOND_US
# Kind of a line that begins a mark -> the class of its time; kind that ends one -> the kind that begins it.
BEGINS = {"load": "restore", "save": "checkpoint", "evaluation": "evaluation"}
ENDS = {"loaded": "load", "saved": "save", "evaluated": "evaluation"}


@dataclass
class Attempt:
    """A launch of a training run.

    start_us, end_us: its first and last line, or what the scheduler says. steps, times_us: the steps of its lines, and
    the times at which they ended. counts: how many steps each line stands for. samples: used up to each line, 0 if
    unknown. marks: (start, end, class) of loads, saves and evaluations. resumed: the step that it continues from, None
    if unknown. error: (time, cause, how long before that it hung). log: where it is. framework: the profile
    that read its steps. is_timed: a clock or times of steps are known. record: the attempt of a job that it belongs to
    (ttf.records.training_joins), empty if none is known.
    """

    start_us: int
    log: str = ""
    framework: str = ""
    end_us: int = 0
    interval: int = 1
    total: int | None = None
    resumed: int | None = None
    # A list takes five times the memory.
    steps: array = field(default_factory=partial(array, "q"))
    times_us: array = field(default_factory=partial(array, "q"))
    counts: array = field(default_factory=partial(array, "q"))
    samples: array = field(default_factory=partial(array, "q"))
    marks: list[tuple[int, int, str]] = field(default_factory=list)
    saves: list[int] = field(default_factory=list)
    ranks: set[int | None] = field(default_factory=set)
    error: tuple[int, str, int] | None = None
    has_end: bool = False
    has_clock: bool = False
    is_timed: bool = False
    clock_went_back: int = 0
    started_us: int | None = None
    job: str | None = None
    queued_us: int = 0
    gpus: int | None = None
    record: Mapping = field(default_factory=dict)

    @property
    def state(self) -> str | None:
        """Return the scheduler's state of an attempt that has ended."""
        return self.record["state"] if self.record and self.record["end"] is not None else None

    @property
    def ends_well(self) -> bool:
        """Return whether training ended as planned: by its last words, its last step, or the scheduler's state."""
        is_complete = bool(self.steps) and self.steps[-1] == self.total
        return self.has_end or is_complete or self.state in ("COMPLETED", "success")

    @property
    def has_failed(self) -> bool:
        """Return whether the scheduler's state says that the attempt did not end as planned."""
        return self.state not in (None, "COMPLETED", "success", "RUNNING", "running")

    @property
    def cause(self) -> str | None:
        """Return the cause of its end.

        It is the code of a node's log or event; else a state other than a plain failure; else the first error in the
        log.
        """
        state = self.state if self.has_failed else None
        if state and self.record["cause"] not in (None, state):
            return self.record["cause"]
        by_log = self.error[1] if self.error else None
        return by_log or state if state in (None, "FAILED", "failure", "CANCELLED", "cancelled") else state

    @property
    def first_step(self) -> int | None:
        """Return the step that it continued from, at the latest: known, or one log interval before its first step."""
        if self.resumed is not None:
            return self.resumed
        return max(0, self.steps[0] - self.interval) if self.steps else None


@dataclass
class _Survey:
    """What the steps of a log have in common: gaps: number of steps between two lines -> how often."""

    gaps: Counter[int] = field(default_factory=Counter)
    last_step: int | None = None
    framework: str = ""
    has_clock: bool = False

    @property
    def log_interval(self) -> int:
        """Return the usual number of steps between two lines of steps."""
        return self.gaps.most_common(1)[0][0] if self.gaps else 1

    @property
    def unit(self) -> int:
        """Return the size of a step in the numbers of the log: MLPerf counts samples or tokens."""
        return self.log_interval if self.framework == "mllog" else 1

    def add(self, events: pl.DataFrame) -> None:
        steps = events.filter(kind="step")
        self.has_clock |= events["time_us"].count() > 0
        if steps.height:
            self.framework = self.framework or steps["profile"][0]
            numbers = steps["step"].to_numpy()
            gaps = np.diff(numbers if self.last_step is None else np.concatenate(([self.last_step], numbers)))
            self.gaps.update(gaps[gaps > 0].tolist())
            self.last_step = int(numbers[-1])


def _place_in_time(rows: Iterable[dict], survey: _Survey) -> Iterator[dict]:
    """Yield the events with t, a time that never goes back, and took: the time since the event before by its line.

    Where a line has no clock, the times of steps are added up after the last clock; before the first clock they are
    subtracted. is_clock: the line has a clock. jump: by how much the clock went back before it.
    """
    interval = survey.log_interval // survey.unit
    last_total: dict[str, int] = {}
    last_step, t, clock, shift = None, 0, None, 0
    # What came before the first clock is placed before it.
    early: list[dict] = []
    for row in _drop_bar_copies(rows):
        if row["kind"] == "step":
            row["step"] //= survey.unit
        is_copy = row["kind"] == "step" and row["step"] == last_step
        row["took"] = 0 if is_copy else _find_span(row, last_step, last_total, interval)
        row["jump"], row["is_clock"] = 0, row["time_us"] is not None
        last_step = last_step if row["step"] is None else row["step"]
        if row["is_clock"]:
            own = row["time_us"] + shift
            if clock is None:
                yield from ({**earlier, "t": earlier["t"] + own - t} for earlier in early)
                t = own
            elif own < clock - JUMP_US:
                row["jump"] = clock - own
                shift += row["jump"]
                own = clock
            t, clock = max(t, own), own
        else:
            t += row["took"]
            if row["before_us"] is not None and clock is not None:
                t = max(t, row["before_us"] + shift)
        row["t"] = t
        if clock is None and survey.has_clock:
            early.append(row)
        else:
            yield row


def _drop_bar_copies(rows: Iterable[dict]) -> Iterator[dict]:
    """Yield the rows without those of a bar of progress that another rank has printed since the last launch."""
    total_by_step = dict[int, int]()
    for row in rows:
        if row["kind"] in ("launch", "start"):
            total_by_step = {}
        if row["span_kind"] == "total" and row["time_us"] is None and row["span_us"] is not None:
            if abs(total_by_step.get(row["step"], -COPY_US - 1) - row["span_us"]) <= COPY_US:
                continue
            total_by_step[row["step"]] = row["span_us"]
        yield row


def _find_span(row: dict, last_step: int | None, last_total: dict[str, int], interval: int) -> int:
    """Return the time that a line says has passed since the line before of its kind; 0 if it says none."""
    span, kind = row["span_us"], row["span_kind"]
    if span is None or (row["kind"] != "step" and kind != "own"):
        return 0
    if kind == "mean":
        return span * interval
    if kind == "one":
        # The time of one of several steps says little about the others.
        is_next = last_step is None or row["step"] - last_step <= 1
        return span if is_next and interval == 1 else 0
    if kind == "total":
        before, last_total[row["profile"]] = last_total.get(row["profile"], 0), span
        # A counter that falls was reset, or is that of a new process.
        return span - before if span >= before else span
    # An error's own span is a hang before it; it takes no time of its own.
    return span if kind == "interval" or row["kind"] not in ("error", "signal") else 0


class _Splitter:
    def __init__(self, interval: int, log: str, framework: str) -> None:
        self.interval, self.log, self.framework = interval, log, framework
        self.attempts: list[Attempt] = []
        self.open: dict[str, int] = {}
        self.last_us = 0
        self.job: str | None = None
        self.awaits_clock = False

    @property
    def current(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    def add(self, event: dict) -> None:
        kind, t = event["kind"], event["t"]
        attempt = self.current
        if attempt is None or self.begins_attempt(event, attempt):
            attempt = self.begin(event)
        if self.awaits_clock and (event["is_clock"] or kind == "step"):
            # The launch has no clock: what lies before its first clock may be anything.
            attempt.start_us += max(0, t - self.last_us) if event["is_clock"] else 0
            self.awaits_clock = False
        if kind in ("load", "loaded") and event["step"] is not None and not attempt.steps:
            attempt.resumed = event["step"]
        if kind in ("launch", "start"):
            attempt.ranks.add(event["rank"])
        attempt.clock_went_back += event["jump"] > 0
        attempt.has_clock |= event["is_clock"]
        attempt.is_timed |= event["is_clock"] or event["took"] > 0
        if kind == "step":
            self.add_step(event, attempt)
        elif kind in BEGINS:
            self.open.setdefault(kind, t)
        elif kind in ENDS:
            self.add_end(event, attempt)
        elif kind == "start":
            attempt.started_us = t
            attempt.resumed = event["step"] - 1 if event["step"] is not None else attempt.resumed
        elif kind == "end":
            attempt.has_end, attempt.error = True, None
        elif kind in ("error", "signal"):
            hang = event["span_us"] or 0
            # The first line after the last step names the cause; a traceback alone says less than what follows it.
            if attempt.error is None or attempt.error[1] == "Traceback":
                attempt.error = (attempt.error[0] if attempt.error else t, event["text"] or kind, hang)
        elif kind == "job":
            self.job = event["text"]
        elif kind == "gpus" and (event["text"] or "").isdecimal():
            attempt.gpus = int(event["text"])
        if self.job and kind != LAST:
            attempt.job = attempt.job or self.job
        self.last_us = t
        attempt.end_us = max(attempt.end_us, t)

    def begins_attempt(self, event: dict, attempt: Attempt) -> bool:
        kind, t, step = event["kind"], event["t"], event["step"]
        has_progress = (
            bool(attempt.steps) or attempt.resumed is not None or attempt.has_end or attempt.error is not None
        )
        if kind == "launch":
            if event["span_us"] and not has_progress:
                # The end of the launch that has begun.
                return False
            if event["rank"] is not None and event["rank"] not in attempt.ranks and not attempt.steps:
                return t - attempt.start_us > RANK_US
            is_near = not event["is_clock"] or t - attempt.start_us <= LAUNCH_US
            return has_progress or bool(self.open) or not is_near
        if kind == "start":
            if attempt.steps:
                return True
            return attempt.started_us is not None and event["is_clock"] and t - attempt.started_us > LAUNCH_US
        if kind in ("load", "loaded"):
            return bool(attempt.steps) and step is not None and step <= attempt.steps[-1]
        return kind == "step" and bool(attempt.steps) and step <= attempt.steps[-1] and not self.is_copy(event, attempt)

    def is_copy(self, event: dict, attempt: Attempt) -> bool:
        """Return whether another rank printed the step, or the lines of two ranks changed places."""
        step, t = event["step"], event["t"]
        if event["is_clock"]:
            index = bisect_left(attempt.steps, step)
            return t - attempt.times_us[index if attempt.steps[index] == step else -1] <= COPY_US
        return attempt.steps[-1] - step < 2 * self.interval

    def begin(self, event: dict) -> Attempt:
        before = self.current
        if before is not None and event["is_clock"] and event["before_us"] is not None:
            before.end_us = max(before.end_us, min(event["t"], event["before_us"] + event["t"] - event["time_us"]))
        self.close()
        start = event["t"] - (event["took"] if not event["is_clock"] or event["kind"] == "launch" else 0)
        attempt = Attempt(start, self.log, self.framework, event["t"], self.interval)
        self.attempts.append(attempt)
        self.open = {}
        self.awaits_clock = before is not None and before.has_clock and not event["is_clock"] and not event["took"]
        if event["kind"] == "launch":
            self.job = None
        return attempt

    def add_step(self, event: dict, attempt: Attempt) -> None:
        step, t = event["step"], event["t"]
        if attempt.steps and step <= attempt.steps[-1]:
            return
        count = step - (attempt.steps[-1] if attempt.steps else attempt.resumed or max(0, step - self.interval))
        # Lines are missing between them: a mean is that of the steps of one line.
        is_part = not event["is_clock"] and event["span_kind"] == "mean"
        attempt.counts.append(max(1, min(count, self.interval) if is_part or not attempt.steps else count))
        attempt.steps.append(step)
        attempt.times_us.append(t)
        attempt.samples.append(event["samples"] or 0)
        # A step says that what came before it is over; an asynchronous save does not block.
        self.open = {}
        attempt.total = event["total"] if event["total"] is not None else attempt.total
        attempt.has_end, attempt.error = False, None

    def add_end(self, event: dict, attempt: Attempt) -> None:
        kind, t, span = event["kind"], event["t"], event["span_us"]
        begin = self.open.pop(ENDS[kind], None)
        if kind == "saved":
            attempt.saves.append(t)
        start = begin if begin is not None else t - span if span else None
        # Steps inside: the save did not block.
        if start is not None and start < t and not (attempt.times_us and start < attempt.times_us[-1] < t):
            attempt.marks.append((max(start, attempt.start_us), t, BEGINS[ENDS[kind]]))

    def close(self) -> None:
        """Add the evaluation during which the log of the last attempt breaks off."""
        attempt, start = self.current, self.open.get("evaluation")
        if attempt is not None and start is not None and start < attempt.end_us and not attempt.has_end:
            attempt.marks.append((start, attempt.end_us, "evaluation"))

    def finish(self) -> list[Attempt]:
        self.close()
        return [attempt for attempt in self.attempts if attempt.steps or attempt.has_clock]


def find_runs(attempts: Sequence[Attempt]) -> list[list[Attempt]]:
    """Divide attempts, in order, into runs: one ends where an attempt repeats steps of one that had ended well."""
    runs: list[list[Attempt]] = []
    last_step: int | None = None
    for attempt in attempts:
        before = runs[-1][-1] if runs else None
        repeats = bool(attempt.steps) and last_step is not None and attempt.steps[0] <= last_step
        if before is None or attempt.start_us < before.end_us or (before.ends_well and repeats):
            runs.append([])
            last_step = None
        else:
            # A job may be submitted while the attempt before it runs.
            attempt.queued_us = min(attempt.queued_us, attempt.start_us - before.end_us)
        runs[-1].append(attempt)
        last_step = attempt.steps[-1] if attempt.steps else last_step
    return runs


def find_logs_of_events(events: pl.LazyFrame) -> dict[str, list[Attempt]]:
    """Return the attempts of each log by its name. events: TRAINING_EVENTS, read twice in blocks."""
    surveys: dict[str, _Survey] = {}
    for block in read_blocks(events, BLOCK_ROWS):
        for (log,), part in block.group_by("log", maintain_order=True):
            surveys.setdefault(str(log), _Survey()).add(part)
    rows = (row for block in read_blocks(events, BLOCK_ROWS) for row in block.iter_rows(named=True))
    logs = {}
    for log, own_rows in itertools.groupby(rows, key=itemgetter("log")):
        survey = surveys[log]
        splitter = _Splitter(survey.log_interval // survey.unit, log, survey.framework)
        for event in _place_in_time(own_rows, survey):
            splitter.add(event)
        logs[log] = splitter.finish()
    return {log: attempts for log, attempts in logs.items() if attempts}


def name_runs(logs: Mapping[str, list[Attempt]]) -> dict[str, list[Attempt]]:
    """Return the attempts of each run by its name.

    Logs are of one run if their names differ in numbers only, as one log per job, and their times do not overlap. Of
    logs that overlap, as one per rank, the one with most steps counts. The name is that of the run's first log.
    """
    groups: dict[str, list[list[Attempt]]] = {}
    for log, attempts in logs.items():
        groups.setdefault(re.sub("[0-9]+", "#", log), []).append(attempts)
    named = dict[str, list[Attempt]]()
    for group in groups.values():
        for run in find_runs(_chain_logs(group)):
            name = next(name for name in _suggest_names(run[0].log) if name not in named)
            named[name] = run
    return named


def _suggest_names(log: str) -> Iterator[str]:
    yield log
    yield from (f"{log} ({number})" for number in itertools.count(2))


def _chain_logs(logs: Sequence[list[Attempt]]) -> list[Attempt]:
    """Return the attempts of several logs in the order of their times, without those that overlap a longer log."""
    if not all(attempt.has_clock for log in logs for attempt in log):
        return [attempt for log in logs for attempt in log]
    kept: list[list[Attempt]] = []
    for log in sorted(logs, key=lambda log: -sum(len(attempt.steps) for attempt in log)):
        start, end = log[0].start_us, log[-1].end_us
        if all(end <= other[0].start_us or start >= other[-1].end_us for other in kept):
            kept.append(log)
    return [attempt for log in sorted(kept, key=lambda log: log[0].start_us) for attempt in log]


# Use of lines -> the sentence of training_log_lines.csv; others are kinds of events.
_SENTENCES = {
    ALL_LINES: "lines that are not blank",
    "not_read": "no pattern of a profile occurs in them",
    "copy": "steps that another rank printed too",
    "other_progress": "steps of another profile, or bars of data and evaluations",
    "header": "the header of a CSV file",
    "cut": "lines of more than 1 MB; their start was read",
    "nul": "lines with NUL bytes, which were removed",
    "undecodable": "lines with bytes that are no character of UTF-8",
}


def select_events(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return TRAINING_EVENTS of the rows of all logs (read_rows): of progress only the steps of each file."""
    is_progress, total = pl.col("kind").is_in(PROGRESS), pl.when(pl.col("span_kind") == "total").then("total")
    chosen = rows.filter(kind=CHOSEN).select("log", "profile", kind="text", bar="total", is_chosen=True)
    events = (
        rows.filter(~pl.col("kind").is_in([CHOSEN, COUNT]))
        .with_columns(bar=total)
        .join(chosen, on=["log", "profile", "kind", "bar"], how="left", nulls_equal=True, maintain_order="left")
    )
    kept = events.filter(~is_progress | pl.col("is_chosen").is_not_null())
    return kept.with_columns(kind=pl.when(is_progress).then(pl.lit("step")).otherwise("kind")).select(
        *TRAINING_EVENTS.columns
    )


def tabulate_lines(rows: pl.LazyFrame) -> pl.DataFrame:
    """Return TRAINING_LOG_LINES of the rows of all logs (read_rows)."""
    counts = rows.filter(kind=COUNT).select("log", code="profile", rows="step", first_lines="text").collect()
    sentence = pl.col("code").replace_strict(_SENTENCES, default=pl.format("read as {}", "code"))
    return TRAINING_LOG_LINES.conform(counts.with_columns(pl.col("first_lines").replace("", None), sentence=sentence))
