"""When each part of the records begins and ends, which no file says: as the submissions of its jobs tell."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

QUARTER_S = 900
# Of the jobs of a part so many may be on the wrong side: they waited over the border, or are of the part they ended in.
MOST_WRONG = 0.5
ONE_PART = "fewer than two parts have jobs"
NO_TIMES = "no submission or end is written"
OVERLAP = "the parts do not follow each other in time, in the order of their names"


@dataclass(frozen=True)
class Calendar:
    """names: of the parts with jobs, in their order; jobs: of each. begins_s: when each begins (Int64); end_s: of all.

    begins_s is empty and `why` says so where that cannot be told.
    """

    names: list[str]
    jobs: np.ndarray
    begins_s: np.ndarray
    end_s: int | None
    why: str | None = None

    @property
    def ends_s(self) -> np.ndarray:
        return np.append(self.begins_s[1:], self.end_s)

    @property
    def follow_up_s(self) -> int:
        """A seventh of the last part: a day of a week."""
        return int(self.end_s - self.begins_s[-1]) // 7


def calendar_of(jobs: pl.LazyFrame, parts: Sequence[str]) -> Calendar:
    """jobs: part, submit_s, start_s, end_s, trace_end_s; parts: all names in order.

    A part begins with the quarter of an hour before and after which the fewest jobs are on the wrong side, of those in
    which a job was submitted. The first begins with the first end of a job that is written: of what ran before that,
    only what lasted is in the records. The last ends with the records.
    """
    found = jobs.group_by("part", quarter=pl.coalesce("submit_s", "start_s") // QUARTER_S).agg(
        jobs=pl.len().cast(pl.Int64),
        first=pl.col("end_s").min(),
        last=pl.col("trace_end_s").max(),
    )
    number = pl.col("part").cast(pl.Enum(list(parts))).to_physical().cast(pl.Int64)
    found = found.collect(engine="streaming").with_columns(number=number).sort("number", "quarter")
    of_parts = found.group_by("number", maintain_order=True).agg(pl.col("jobs").sum())
    names, sizes = [parts[number] for number in of_parts["number"]], of_parts["jobs"].to_numpy()
    first_s, end_s = found["first"].min(), found["last"].max()
    dated = found.drop_nulls("quarter")

    def without(why: str) -> Calendar:
        return Calendar(names, sizes, np.zeros(0, np.int64), end_s, why)

    if len(names) < 2:
        return without(ONE_PART)
    if first_s is None or end_s is None or dated["number"].n_unique() < len(names):
        return without(NO_TIMES)
    quarters, place = np.unique(dated["quarter"].to_numpy(), return_inverse=True)
    of_part = (dated["number"].rank("dense").cast(pl.Int64) - 1).to_numpy()
    in_quarter = np.bincount(place, weights=dated["jobs"].to_numpy(), minlength=quarters.size)
    early, begins = np.zeros(quarters.size), [first_s]
    for number in range(1, len(names)):
        mine = of_part == number - 1
        early += np.bincount(place[mine], weights=dated["jobs"].to_numpy()[mine], minlength=quarters.size)
        late = in_quarter - early
        # Of a border at the beginning of each quarter: jobs of earlier parts after it, of later ones before it.
        wrong = early.sum() - (np.cumsum(early) - early) + np.cumsum(late) - late
        border = int(wrong.argmin())
        if wrong[border] > MOST_WRONG * sizes[number]:
            return without(OVERLAP)
        begins.append(int(quarters[border]) * QUARTER_S)
    begins_s = np.array(begins, np.int64)
    if (np.diff(np.append(begins_s, end_s)) <= 0).any():
        return without(OVERLAP)
    return Calendar(names, sizes, begins_s, int(end_s))
