"""Estimate when each part of the records begins and ends, from the submissions of its jobs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

QUARTER_S = 900
# Largest share of a part's jobs on the wrong side of its border, because they waited or are filed by their end.
MOST_WRONG = 0.5
ONE_PART = "fewer than two parts have jobs"
NO_TIMES = "no submission or end is written"
OVERLAP = "the parts do not follow each other in time, in the order of their names"


@dataclass(frozen=True)
class Calendar:
    """Parts of the records and their times.

    names, jobs: of the parts with jobs, in order; begins_s: start of each (Int64); end_s: of the last. If the times
    cannot be estimated, begins_s is empty and `reason` says why.
    """

    names: list[str]
    jobs: np.ndarray
    begins_s: np.ndarray
    end_s: int | None
    reason: str | None = None

    @property
    def ends_s(self) -> np.ndarray:
        return np.append(self.begins_s[1:], self.end_s)

    @property
    def follow_up_s(self) -> int:
        """Return a seventh of the last part: a day of a week."""
        return int(self.end_s - self.begins_s[-1]) // 7


def estimate_calendar(jobs: pl.LazyFrame, parts: Sequence[str]) -> Calendar:
    """Estimate when the parts begin. jobs: part, submit_s, start_s, end_s, trace_end_s; parts: all names in order.

    A part begins with a quarter of an hour in which a job was submitted: the one that leaves the fewest jobs on the
    wrong side. The first part begins with the first recorded end of a job, because only the longest of the earlier runs
    are in the records. The last part ends with the records.
    """
    quarter_counts = jobs.group_by("part", quarter=pl.coalesce("submit_s", "start_s") // QUARTER_S).agg(
        jobs=pl.len().cast(pl.Int64),
        first=pl.col("end_s").min(),
        last=pl.col("trace_end_s").max(),
    )
    part_number = pl.col("part").cast(pl.Enum(list(parts))).to_physical().cast(pl.Int64)
    counts = quarter_counts.collect(engine="streaming").with_columns(number=part_number).sort("number", "quarter")
    part_sizes = counts.group_by("number", maintain_order=True).agg(pl.col("jobs").sum())
    names, sizes = [parts[number] for number in part_sizes["number"]], part_sizes["jobs"].to_numpy()
    first_s, end_s = counts.select(pl.col("first").min(), pl.col("last").max()).row(0)
    dated = counts.drop_nulls("quarter")

    def undated(reason: str) -> Calendar:
        return Calendar(names, sizes, np.zeros(0, np.int64), end_s, reason)

    if len(names) < 2:
        return undated(ONE_PART)
    if first_s is None or end_s is None or dated["number"].n_unique() < len(names):
        return undated(NO_TIMES)
    quarters, quarter = np.unique(dated["quarter"].to_numpy(), return_inverse=True)
    part_index = (dated["number"].rank("dense").cast(pl.Int64) - 1).to_numpy()
    quarter_jobs = np.bincount(quarter, weights=dated["jobs"].to_numpy(), minlength=quarters.size)
    early, starts_s = np.zeros(quarters.size), [first_s]
    for number in range(1, len(names)):
        mask = part_index == number - 1
        early += np.bincount(quarter[mask], weights=dated["jobs"].to_numpy()[mask], minlength=quarters.size)
        late = quarter_jobs - early
        # Jobs of earlier parts after each possible border, and of later parts before it.
        misplaced = early.sum() - (np.cumsum(early) - early) + np.cumsum(late) - late
        border = int(misplaced.argmin())
        if misplaced[border] > MOST_WRONG * sizes[number]:
            return undated(OVERLAP)
        starts_s.append(int(quarters[border]) * QUARTER_S)
    begins_s = np.array(starts_s, np.int64)
    if (np.diff(np.append(begins_s, end_s)) <= 0).any():
        return undated(OVERLAP)
    return Calendar(names, sizes, begins_s, int(end_s))
