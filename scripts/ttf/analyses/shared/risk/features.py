"""Compute the features of jobs from what is known at submission.

History is the share of failures among jobs that ended before the submission (an as-of join). It is nested (all, user,
group) and each level is shrunken towards the one above. Running totals are not features: they measure the age of the
trace, not who fails.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ttf.analyses.shared.risk.training_jobs import NEVER, Population, encode_values, load_population
from ttf.engine.errors import StudyError
from ttf.engine.size_unit import GPU, SizeUnit
from ttf.records.clusters import level_names
from ttf.stats.basics.order import distinct_values, example_rows, number_rows, sort_order

NUMERIC, CATEGORY, HASHED, HISTORY, CLOCK = "numeric", "category", "hashed", "history", "clock"
# Shrinkage: a rate counts as if this many more jobs had ended at the rate of the level above.
PRIOR_JOBS = 5
# Failure rate assumed before any job has ended.
INITIAL_RATE = 0.5


@dataclass(frozen=True)
class Feature:
    """kind: NUMERIC, CATEGORY, HASHED, HISTORY (keys: the columns of each level) or CLOCK.

    size: number of vocabulary values or hash buckets. warm: whether its coefficients start from the previous model.
    """

    name: str
    kind: str
    column: str = ""
    keys: tuple[tuple[str, ...], ...] = ()
    size: int = 0
    warm: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the job record that the feature is computed from."""
        key_columns = tuple(dict.fromkeys(column for level in self.keys for column in level))
        return key_columns or ((self.column,) if self.column else ("submit_s",))

    @property
    def declaration(self) -> dict[str, Any]:
        """The feature as a mapping, in the form of the configuration."""
        declaration: dict[str, Any] = {"kind": self.kind, "warm": self.warm}
        if self.column:
            declaration["column"] = self.column
        if self.keys:
            declaration["keys"] = [list(level) for level in self.keys]
        if self.size:
            declaration["vocabulary" if self.kind == CATEGORY else "buckets"] = self.size
        return declaration


def parse_features(declarations: Mapping[str, Mapping[str, Any]]) -> list[Feature]:
    """Parse the features that a configuration declares (`risk.features`), in its order."""
    return [
        Feature(
            name,
            declaration["kind"],
            declaration.get("column", ""),
            tuple(tuple(level) for level in declaration.get("keys", ())),
            declaration.get("vocabulary") or declaration.get("buckets") or 0,
            declaration.get("warm", True),
        )
        for name, declaration in declarations.items()
    ]


@dataclass(frozen=True)
class JobFeatures:
    """Feature values of n jobs at submission: feature -> array in the order of the jobs.

    numbers: log2(1 + value) of a numeric feature, the hour of a clock; NaN where blank. labels: the distinct texts of a
    category; codes: the index of each job's label (-1 where blank). rates: (n, levels) share of failures in a history;
    ended_counts: (n, levels) number of jobs behind each rate.
    """

    n: int
    numbers: dict[str, np.ndarray]
    labels: dict[str, list[str]]
    codes: dict[str, np.ndarray]
    rates: dict[str, np.ndarray]
    ended_counts: dict[str, np.ndarray]
    weekend: dict[str, np.ndarray]

    def take(self, rows: np.ndarray) -> "JobFeatures":
        """Return the features of some jobs; rows: indices, or a boolean mask."""
        # Taking by index is a few times as fast as by mask.
        indices = np.flatnonzero(rows) if rows.dtype == bool else rows
        parts = self.numbers, self.codes, self.rates, self.ended_counts, self.weekend
        numbers, codes, rates, ended_counts, weekend = (
            {name: values.T.take(indices, axis=-1).T for name, values in part.items()} for part in parts
        )
        return JobFeatures(len(indices), numbers, self.labels, codes, rates, ended_counts, weekend)

    def digest_parts(self) -> Iterator[bytes]:
        """Yield what a training reads as bytes; labels that none of these jobs has make no difference."""
        for name, codes in self.codes.items():
            present = [self.labels[name][code] if code >= 0 else None for code in distinct_values(codes)]
            yield json.dumps([name, self.n, present]).encode()
            yield number_rows(codes).astype(np.int32).tobytes()
        for arrays in (self.numbers, self.rates, self.weekend):
            for name, values in arrays.items():
                yield json.dumps([name, *values.shape, str(values.dtype)]).encode()
                yield values.T.tobytes()


def compute_job_features(
    jobs: pl.DataFrame,
    features: Sequence[Feature],
    clock: str | None,
    past: Population | None = None,
    latest: int | None = None,
) -> JobFeatures:
    """Compute the features of jobs. Raise StudyError if the column of a numeric feature has no numbers.

    Parameters
    ----------
    jobs : the common job record
    clock : time zone of the hour of day; None if the trace has no calendar times
    past : jobs that make up the history, possibly `jobs` themselves; only those that ended before a job's submission
        count for it. None: no history
    latest : number of jobs with features, the last; None: all
    """
    history_jobs, jobs = jobs, jobs.tail(jobs.height if latest is None else latest)
    numbers, labels, codes, rates, ended_counts, weekend = {}, {}, {}, {}, {}, {}
    for feature in features:
        if feature.kind == NUMERIC:
            numbers[feature.name] = _numeric_values(jobs, feature)
        elif feature.kind in (CATEGORY, HASHED):
            labels[feature.name], codes[feature.name] = _encode_labels(jobs, feature.column)
        elif feature.kind == CLOCK:
            numbers[feature.name], weekend[feature.name] = _local_hours(jobs["submit_s"], clock)
        else:
            rates[feature.name], ended_counts[feature.name] = history_rates(
                history_jobs, feature.keys, past, jobs.height
            )
    return JobFeatures(jobs.height, numbers, labels, codes, rates, ended_counts, weekend)


@dataclass(frozen=True)
class Data:
    """Jobs of a trace and their features at submission, in the same order."""

    jobs: Population
    job_features: JobFeatures
    features: Sequence[Feature]

    @classmethod
    def load(
        cls,
        jobs: pl.LazyFrame,
        features: Sequence[Feature],
        clock: str | None,
        max_jobs: int | None = None,
        unit: SizeUnit = GPU,
    ) -> "Data":
        """Load the jobs of the common job record; clock: see `compute_job_features`; unit: see `load_population`.

        max_jobs: keep only the latest; earlier jobs still count in their history.
        """
        columns = [column for feature in features for column in feature.columns]
        past = load_population(_number_history_keys(jobs, features), columns, unit)
        latest = past if max_jobs is None else past.latest(max_jobs)
        return cls(latest, compute_job_features(past.jobs, features, clock, past, len(latest)), features)


def _number_history_keys(jobs: pl.LazyFrame, features: Sequence[Feature]) -> pl.LazyFrame:
    """Replace texts that only identify a history by the numbers of clusters or groups, which are faster to load."""
    cluster_by, group_by, _ = level_names(jobs)
    numbers = {"user": ("cluster", cluster_by == "user"), "recurrence_group": ("group", group_by == "recurrence group")}
    texts, available = {feature.column for feature in features}, jobs.collect_schema()
    return jobs.with_columns(
        pl.when(pl.col(column).is_not_null()).then(number).alias(column)
        for column, (number, is_numbered) in numbers.items()
        if is_numbered and column in available and column not in texts
    )


def _numeric_values(jobs: pl.DataFrame, feature: Feature) -> np.ndarray:
    """Return log2(1 + value) of each job, NaN if blank. Raise StudyError if the column holds no numbers."""
    if feature.column not in jobs.columns:
        return np.full(jobs.height, np.nan)
    if not (column := jobs[feature.column]).dtype.is_numeric():
        raise StudyError(
            f"risk.features: {feature.name} is numeric, and the column {feature.column} of jobs.parquet holds "
            f"{column.dtype}: declare it a category."
        )
    return np.log2(1 + np.maximum(column.cast(pl.Float64).to_numpy(), 0))


def _encode_labels(jobs: pl.DataFrame, column: str) -> tuple[list[str], np.ndarray]:
    """Return (distinct values as texts, index of each job's text, -1 if blank)."""
    if column not in jobs.columns:
        return [], np.full(jobs.height, -1)
    value_codes = encode_values(jobs[column])
    index = number_rows(value_codes)
    rows = example_rows(index)
    texts = jobs[column][rows].cast(pl.String).to_list()
    present = [index for index, value in enumerate(value_codes[rows]) if value]
    order = sorted(present, key=lambda index: texts[index])
    label_codes = np.full(len(rows), -1, dtype=np.int32)
    label_codes[order] = np.arange(len(order))
    return [texts[index] for index in order], label_codes[index]


def _local_hours(submit_s: pl.Series, zone: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the hour of day with its fraction, and whether the day is a Saturday or Sunday."""
    if zone is None:
        return np.full(len(submit_s), np.nan), np.zeros(len(submit_s), dtype=bool)
    local = pl.from_epoch(submit_s).dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    hour = local.dt.hour().cast(pl.Float64) + local.dt.minute().cast(pl.Float64) / 60
    return hour.to_numpy(), (local.dt.weekday() >= 6).fill_null(False).to_numpy()


# History -------------------------------------------------------------------------------------------------------


def history_rates(
    jobs: pl.DataFrame, keys: Sequence[Sequence[str]], past: Population | None, latest: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the nested failure rates of earlier jobs, for each job at its submission.

    Parameters
    ----------
    jobs : jobs with `submit_s` and the key columns
    keys : for each level the columns added to the key of the level above; the first level is all jobs
    past : jobs whose ends form the history; None: no history
    latest : rates are computed for the last n of `jobs`; None: for all

    Returns
    -------
    rates : (n, levels) share that failed of the past jobs with the same key that had ended, shrunken by PRIOR_JOBS
        jobs at the rate of the level above
    ended_counts : (n, levels) number of these jobs
    """
    n, levels = jobs.height if latest is None else latest, len(keys) + 1
    # Level by level in memory, as they are computed.
    rates, counts_by_level = np.full((levels, n), INITIAL_RATE), np.zeros((levels, n), dtype=np.int32)
    if past is None or not len(past) or not n:
        return rates.T, counts_by_level.T
    ended = np.flatnonzero(past.known_s < NEVER)
    known_s, submit_s = past.known_s[ended], jobs["submit_s"].to_numpy()[-n:]
    failed = past.failed[ended]
    past_keys, job_keys = np.zeros(len(ended), dtype=np.int64), np.zeros(jobs.height, dtype=np.int64)
    parent_rates = np.full(n, INITIAL_RATE)
    for level in range(levels):
        for column in keys[level - 1] if level else ():
            past_keys, job_keys = _add_key_column(past_keys, job_keys, past.jobs, jobs, column, ended)
        ended_counts, failure_counts = count_ended_before(past_keys, known_s, failed, job_keys[-n:], submit_s)
        parent_rates = (failure_counts + PRIOR_JOBS * parent_rates) / (ended_counts + PRIOR_JOBS)
        rates[level], counts_by_level[level] = parent_rates, ended_counts
    return rates.T, counts_by_level.T


def _add_key_column(
    past_keys: np.ndarray, job_keys: np.ndarray, past: pl.DataFrame, jobs: pl.DataFrame, column: str, ended: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Refine the keys of past jobs (rows `ended`) and of jobs by a column; blank counts as a value."""
    if past is jobs:
        keys = number_rows(job_keys, encode_values(_column_or_nulls(jobs, column)))
        return keys[ended], keys
    columns = [_column_or_nulls(past, column)[ended], _column_or_nulls(jobs, column)]
    if columns[0].dtype != columns[1].dtype:
        columns = [part.cast(pl.String) for part in columns]
    keys = number_rows(np.concatenate([past_keys, job_keys]), encode_values(pl.concat(columns)))
    return keys[: len(ended)], keys[len(ended) :]


def _column_or_nulls(jobs: pl.DataFrame, column: str) -> pl.Series:
    return jobs[column] if column in jobs.columns else pl.Series([None] * jobs.height, dtype=pl.String)


def count_ended_before(
    keys: np.ndarray, end_times: np.ndarray, failed: np.ndarray, query_keys: np.ndarray, query_times: np.ndarray
) -> np.ndarray:
    """Count for each query the jobs with its key that ended before its time, and the failures among them.

    Parameters
    ----------
    keys, query_keys : integers from 0
    end_times, query_times : seconds; an end at the time of the query does not count
    failed : boolean mask of the jobs that ended

    Returns
    -------
    counts : (2, queries) ended jobs, failures
    """
    counts = np.zeros((2, len(query_times)), dtype=np.int64)
    if not len(end_times) or not len(query_times):
        return counts
    # Key and time in one integer sort fast, and a search by sorted queries is fast too.
    low = min(int(end_times.min()), int(query_times.min()))
    span = max(int(end_times.max()), int(query_times.max())) - low + 1
    query_positions, sorted_keys = query_keys * span + (query_times - low), query_keys
    order: slice | np.ndarray = slice(None)
    if (query_positions[1:] < query_positions[:-1]).any():
        order = sort_order(query_positions)
        query_positions, sorted_keys = query_positions[order], query_keys[order]
    # The last digit of an event tells failures.
    events = pl.Series(2 * (keys * span + (end_times - low)) + failed).sort().to_numpy()
    ended_upto = np.arange(len(events) + 1), np.concatenate([[0], np.cumsum(events & 1)])
    key_starts = np.searchsorted(events, np.arange(int(sorted_keys[-1]) + 1) * (2 * span))
    end = np.searchsorted(events, 2 * query_positions)
    for row, upto in zip(counts, ended_upto, strict=True):
        row[order] = upto[end] - upto[key_starts][sorted_keys]
    return counts
