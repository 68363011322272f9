"""What is known of a job at the moment it is submitted.

History counts the jobs that had ended before, by an as-of join: how many of them had failed, nested (those of the
group within the user within all) and shrunken towards the level above. No running totals: they say how old the trace
is, not who fails.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import logit

from ttf.analyses.shared.risk.training_jobs import NEVER, Population, codes_of, population
from ttf.engine.errors import StudyError
from ttf.engine.size_unit import GPU, SizeUnit
from ttf.stats.basics.order import distinct, numbered, order_by

NUMERIC, CATEGORY, HASHED, HISTORY, CLOCK = "numeric", "category", "hashed", "history", "clock"
# A rate among few jobs is drawn to that of the level above as if so many more had ended at that one.
STRENGTH = 5
# Of nothing that has ended yet.
AT_FIRST = 0.5


@dataclass(frozen=True)
class Feature:
    """kind: NUMERIC, CATEGORY, HASHED (of a column), HISTORY (keys: of each level the columns) or CLOCK.

    size: values of the vocabulary, or buckets. warm: its coefficients are warm-started from the model before.
    """

    name: str
    kind: str
    column: str = ""
    keys: tuple[tuple[str, ...], ...] = ()
    size: int = 0
    warm: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the job record that it is made of."""
        of_keys = tuple(dict.fromkeys(column for level in self.keys for column in level))
        return of_keys or ((self.column,) if self.column else ("submit_s",))

    @property
    def declared(self) -> dict[str, Any]:
        """As the configuration has it."""
        about: dict[str, Any] = {"kind": self.kind, "warm": self.warm}
        if self.column:
            about["column"] = self.column
        if self.keys:
            about["keys"] = [list(level) for level in self.keys]
        if self.size:
            about["vocabulary" if self.kind == CATEGORY else "buckets"] = self.size
        return about


def features_of(declared: Mapping[str, Mapping[str, Any]]) -> list[Feature]:
    """The features that a configuration declares (`risk.features`), in its order."""
    return [
        Feature(
            name,
            about["kind"],
            about.get("column", ""),
            tuple(tuple(level) for level in about.get("keys", ())),
            about.get("vocabulary") or about.get("buckets") or 0,
            about.get("warm", True),
        )
        for name, about in declared.items()
    ]


@dataclass(frozen=True)
class Submitted:
    """Jobs as they were known at submission: feature -> what it was, in the order of the jobs.

    numbers: of a numeric feature log2(1 + value), of a clock the hour, NaN where blank. labels: of a category its
    texts, and codes the place of each job's among them (-1 where blank). rates: of a history the share of failures, a
    column per level, and ended how many jobs it rests on. n: jobs.
    """

    n: int
    numbers: dict[str, np.ndarray]
    labels: dict[str, list[str]]
    codes: dict[str, np.ndarray]
    rates: dict[str, np.ndarray]
    ended: dict[str, np.ndarray]
    weekend: dict[str, np.ndarray]

    def take(self, rows: np.ndarray) -> "Submitted":
        """Some of the jobs; rows: their places, or a truth value each."""
        # By places it is a few times as quick as by truth values.
        places = np.flatnonzero(rows) if rows.dtype == bool else rows
        parts = ({name: values.take(places, axis=0) for name, values in part.items()} for part in self._by_job)
        numbers, codes, rates, ended, weekend = parts
        return Submitted(len(places), numbers, self.labels, codes, rates, ended, weekend)

    def told(self) -> Iterator[bytes]:
        """All of it, so that the same jobs say the same, whichever other texts a category has: for a digest.

        Of a category the texts of these jobs, and the place of each job's among them.
        """
        for name, codes in self.codes.items():
            there = [self.labels[name][code] if code >= 0 else None for code in distinct(codes)]
            yield json.dumps([name, self.n, there]).encode()
            yield numbered(codes).astype(np.int32).tobytes()
        for part in (self.numbers, self.rates, self.ended, self.weekend):
            for name, values in part.items():
                yield json.dumps([name, *values.shape, str(values.dtype)]).encode()
                yield values.tobytes()

    @property
    def _by_job(self) -> tuple[dict[str, np.ndarray], ...]:
        return self.numbers, self.codes, self.rates, self.ended, self.weekend


def submitted(
    jobs: pl.DataFrame, features: Sequence[Feature], clock: str | None, past: Population | None = None
) -> Submitted:
    """The features of jobs, in their order. clock: the zone by which hours are told.

    past: the jobs whose ends make up the history, which may be these themselves: only what had ended before the
    submission of a job counts for it. Without it nothing has.
    Raises StudyError for a numeric feature whose column holds no numbers.
    """
    numbers, labels, codes, rates, ended, weekend = {}, {}, {}, {}, {}, {}
    for feature in features:
        if feature.kind == NUMERIC:
            numbers[feature.name] = _numbers(jobs, feature)
        elif feature.kind in (CATEGORY, HASHED):
            labels[feature.name], codes[feature.name] = _labels(jobs, feature.column)
        elif feature.kind == CLOCK:
            numbers[feature.name], weekend[feature.name] = _clock(jobs["submit_s"], clock)
        else:
            rates[feature.name], ended[feature.name] = history(jobs, feature.keys, past)
    return Submitted(jobs.height, numbers, labels, codes, rates, ended, weekend)


@dataclass(frozen=True)
class Data:
    """The jobs of a trace and what was known of each at its submission, in the same order."""

    jobs: Population
    known: Submitted
    features: Sequence[Feature]

    @classmethod
    def of(
        cls,
        jobs: pl.LazyFrame,
        features: Sequence[Feature],
        clock: str | None,
        also: Sequence[str] = (),
        most: int | None = None,
        unit: SizeUnit = GPU,
    ) -> "Data":
        """jobs: the common job record; clock: as of `submitted`; also: columns that are read besides.

        most: only the latest so many jobs, which earlier ones are the history of. unit: as of `population`.
        """
        past = population(jobs, [*(column for feature in features for column in feature.columns), *also], unit)
        found = past if most is None else past.latest(most)
        return cls(found, submitted(found.jobs, features, clock, past), features)


def _numbers(jobs: pl.DataFrame, feature: Feature) -> np.ndarray:
    if feature.column not in jobs.columns:
        return np.full(jobs.height, np.nan)
    if not (column := jobs[feature.column]).dtype.is_numeric():
        raise StudyError(
            f"risk.features: {feature.name} is numeric, and the column {feature.column} of jobs.parquet holds "
            f"{column.dtype}: declare it a category."
        )
    return np.log2(1 + np.maximum(column.cast(pl.Float64).to_numpy(), 0))


def _labels(jobs: pl.DataFrame, column: str) -> tuple[list[str], np.ndarray]:
    if column not in jobs.columns:
        return [], np.full(jobs.height, -1)
    number = codes_of(jobs[column])
    values, first, place = np.unique(number, return_index=True, return_inverse=True)
    texts = jobs[column][first].cast(pl.String).to_list()
    known = [place for place, value in enumerate(values) if value]
    order = sorted(known, key=lambda place: texts[place])
    by_text = np.full(len(values), -1)
    by_text[order] = np.arange(len(order))
    return [texts[place] for place in order], by_text[place]


def _clock(submit_s: pl.Series, zone: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Hour of the day with its fraction, and whether it is Saturday or Sunday."""
    if zone is None:
        return np.full(len(submit_s), np.nan), np.zeros(len(submit_s), dtype=bool)
    local = pl.from_epoch(submit_s).dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    hour = local.dt.hour().cast(pl.Float64) + local.dt.minute().cast(pl.Float64) / 60
    return hour.to_numpy(), (local.dt.weekday() >= 6).fill_null(False).to_numpy()


# History -------------------------------------------------------------------------------------------------------


def history(
    jobs: pl.DataFrame, keys: Sequence[Sequence[str]], past: Population | None
) -> tuple[np.ndarray, np.ndarray]:
    """(rates, ended): a column for all jobs and one for each level of `keys` within the ones before, of each job.

    rates: of the past jobs with the same keys that had ended before the submission the share that failed, with
    STRENGTH more at the rate of the level above. ended: how many these are.
    """
    n, levels = jobs.height, len(keys) + 1
    rates, counts = np.full((n, levels), AT_FIRST), np.zeros((n, levels), dtype=np.int64)
    if past is None or not len(past) or not n:
        return rates, counts
    done = np.flatnonzero(past.known_s < NEVER)
    at, asked = past.known_s[done], jobs["submit_s"].to_numpy()
    failed = past.failed[done]
    of_past, of_jobs = np.zeros(len(done), dtype=np.int64), np.zeros(n, dtype=np.int64)
    above = np.full(n, AT_FIRST)
    for level in range(levels):
        for column in keys[level - 1] if level else ():
            of_past, of_jobs = _within(of_past, of_jobs, past.jobs, jobs, column, done)
        ended, failures = as_of(of_past, at, failed, of_jobs, asked)
        above = (failures + STRENGTH * above) / (ended + STRENGTH)
        rates[:, level], counts[:, level] = above, ended
    return rates, counts


def _within(
    of_past: np.ndarray, of_jobs: np.ndarray, past: pl.DataFrame, jobs: pl.DataFrame, column: str, done: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The keys of past jobs (the rows `done`) and of jobs, with a column more; a blank is a value like any other."""
    if past is jobs:
        number = numbered(of_jobs, codes_of(_column(jobs, column)))
        return number[done], number
    both = [_column(past, column)[done], _column(jobs, column)]
    if both[0].dtype != both[1].dtype:
        both = [part.cast(pl.String) for part in both]
    of_column = codes_of(pl.concat(both))
    number = numbered(np.concatenate([of_past, of_jobs]), of_column)
    return number[: len(done)], number[len(done) :]


def _column(jobs: pl.DataFrame, column: str) -> pl.Series:
    return jobs[column] if column in jobs.columns else pl.Series([None] * jobs.height, dtype=pl.String)


def as_of(
    key: np.ndarray, at: np.ndarray, failed: np.ndarray, asked_key: np.ndarray, asked_at: np.ndarray
) -> np.ndarray:
    """(ended, failures), a row each, of the events with the key of each question whose time lies before the question's.

    key, asked_key: from 0 on. failed: truth values. An event at the very moment of a question is not before it.
    """
    found = np.zeros((2, len(asked_at)), dtype=np.int64)
    if not len(at) or not len(asked_at):
        return found
    # Key, then time, in one number: a sort of these is quick, and so is a search by questions that are in order too.
    low = min(int(at.min()), int(asked_at.min()))
    span = max(int(at.max()), int(asked_at.max())) - low + 1
    events, questions = key * span + (at - low), asked_key * span + (asked_at - low)
    order = order_by(questions)
    questions, of_key = questions[order], asked_key[order]
    begins = np.arange(int(of_key[-1]) + 1) * span
    for place, counted in enumerate((events, events[failed])):
        ascending = pl.Series(counted).sort().to_numpy()
        before = np.searchsorted(ascending, questions)
        found[place, order] = before - np.searchsorted(ascending, begins)[of_key]
    return found


def increments(rates: np.ndarray) -> np.ndarray:
    """By how much each level is above the one before it, in log-odds: levels less one columns."""
    return np.diff(logit(rates), axis=1)
