"""Which job an attempt is of: by their places, as attempts stand in the order of jobs; to join them by text takes long.

Blocks of jobs with their attempts are what rules keep results of (`ttf.kept`).
"""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from ttf.inputs import Inputs
from ttf.kept import BLOCK_ROWS


def jobs_of(jobs: pl.DataFrame, attempts: pl.DataFrame) -> pl.Series:
    """`job`: the row in jobs (job_id, attempts) of the job of each attempt (job_id), from 0; blank where it has none.

    Raises Polars' ComputeError where two jobs have the id of an attempt.
    """
    ids = attempts["job_id"]
    run = (ids != ids.shift(1)).fill_null(True).cum_sum() - 1
    tried = jobs.select(pl.col("attempts") > 0).to_series().arg_true()
    if run.len() and tried.len() == run[-1] + 1:
        job = tried.gather(run)
        if (jobs["job_id"].gather(job) == ids).all():
            return job.alias("job")
    of_jobs = jobs.select("job_id").with_row_index("job")
    found = attempts.select("job_id").join(of_jobs, on="job_id", how="left", maintain_order="left", validate="m:1")
    return found["job"]


def in_blocks(
    given: Inputs, of_jobs: Sequence[str], of_attempts: Sequence[str], size: int = BLOCK_ROWS
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """So many jobs at a time and all their attempts, both in their order; all at once where attempts do not stand so.

    of_jobs, of_attempts: their columns that are wanted. Attempts also have `job`, the row of theirs among these jobs.
    """
    jobs, attempts = given.scan("jobs", of_jobs), given.scan("attempts", of_attempts)
    job = jobs_of(given.read("jobs", ("job_id", "attempts")), given.read("attempts", ("job_id",)))
    if job.null_count() or not job.is_sorted():
        yield jobs.collect(), attempts.collect().with_columns(job)
        return
    # One at least, of no rows.
    first = np.arange(0, max(jobs.select(pl.len()).collect().item(), 1), size)
    begin = np.searchsorted(job.to_numpy(), first).tolist()
    for at, low, high in zip(first.tolist(), begin, [*begin[1:], job.len()], strict=True):
        some = attempts.slice(low, high - low).collect(engine="streaming")
        yield jobs.slice(at, size).collect(engine="streaming"), some.with_columns(job[low:high] - at)
