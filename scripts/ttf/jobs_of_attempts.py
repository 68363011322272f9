"""Which job an attempt is of: by their places, as attempts stand in the order of jobs; to join them by text takes long.

Blocks of jobs with their attempts are what rules keep results of (`ttf.kept`).
"""

from collections.abc import Iterator, Sequence

import polars as pl

from ttf.inputs import Inputs
from ttf.kept import BLOCK_ROWS
from ttf.tables import blocks

_NONE = pl.Series("job_id", dtype=pl.String)


def with_jobs(jobs: pl.DataFrame, attempts: pl.DataFrame) -> pl.DataFrame:
    """The attempts (job_id) with `job`, the row of their job in jobs (job_id); blank where it has none. By text.

    Raises Polars' ComputeError where two jobs have the id of an attempt.
    """
    rows = jobs.select("job_id").with_row_index("job")
    return attempts.join(rows, on="job_id", how="left", maintain_order="left", validate="m:1")


def in_blocks(
    given: Inputs, of_jobs: Sequence[str], of_attempts: Sequence[str], size: int = BLOCK_ROWS
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """So many jobs at a time and all their attempts, both in their order; all at once where attempts do not stand so.

    of_jobs, of_attempts: their columns that are wanted. Attempts also have `job`, the row of theirs among these jobs.
    """
    found = places(given.scan("jobs", ["job_id"]), given.scan("attempts", ["job_id"]), size)
    jobs, attempts = given.scan("jobs", of_jobs), given.scan("attempts", of_attempts)
    job = attempt = 0
    for n_jobs, of_job in found:
        yield some_of(jobs, job, n_jobs), some_of(attempts, attempt, of_job.len()).with_columns(of_job)
        job, attempt = job + n_jobs, attempt + of_job.len()


def some_of(table: pl.LazyFrame, first: int, rows: int | None) -> pl.DataFrame:
    """Rows of a table on the disk from `first` on: so many, or all that follow."""
    return table.slice(first, rows).collect(engine="streaming")


def places(jobs: pl.LazyFrame, attempts: pl.LazyFrame | None, size: int) -> list[tuple[int, pl.Series | None]]:
    """Of each block, at least one: how many jobs, and `job` of each attempt of theirs, its job's row in the block.

    Tables on the disk, of which job_id is read, some at a time. Where attempts do not stand in the order of their jobs,
    all is one block.
    """
    if attempts is None:
        n_jobs = jobs.select(pl.len()).collect().item()
        return [(min(size, n_jobs - first), None) for first in range(0, n_jobs, size)] or [(0, None)]
    found, coming, ahead = [], blocks(attempts.select("job_id"), size), _NONE
    for of_jobs in blocks(jobs.select("job_id"), size):
        names, of_block, job = of_jobs["job_id"], [], 0
        while True:
            place = _leading(ahead, names.slice(job)) + job
            of_block.append(place)
            if place.len() < ahead.len() or (further := next(coming, None)) is None:
                break
            ahead, job = further["job_id"], place.last() or job
            # The job that came last, unless it has no more.
            job += ahead.first() != names[job]
        ahead = ahead.slice(of_block[-1].len())
        found.append((names.len(), pl.concat(of_block)))
    if not found or ahead.len() or next(coming, None) is not None:
        names, of_attempts = (rows.select("job_id").collect() for rows in (jobs, attempts))
        return [(names.height, with_jobs(names, of_attempts)["job"])]
    return found


def _leading(attempts: pl.Series, names: pl.Series) -> pl.Series:
    """`job` of the first of the attempts, as far as their jobs are among the names; both of one order."""
    is_first = attempts.ne_missing(attempts.shift(1))
    firsts = attempts.filter(is_first)
    number = (is_first.cum_sum() - 1).cast(pl.UInt32).rename("job")
    as_many = min(firsts.len(), names.len())
    if (firsts.head(as_many) == names.head(as_many)).all():
        return number.filter(number < as_many)
    # Some jobs have no attempts.
    place = with_jobs(names.to_frame("job_id"), firsts.to_frame("job_id"))["job"]
    place = place.filter(place.is_null().cum_sum() == 0)
    return place.gather(number.filter(number < place.len()))
