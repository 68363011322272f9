"""The jobs that a risk is learnt from: what became of each, and from which moment on that was known."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import polars.selectors as cs

from ttf.clusters import READ_OF_JOBS, level_names
from ttf.jobs import observed_s

# A recorded failure is held against all other ends.
ENDED = ("success", "failure", "cancelled", "unknown")
# An end that nobody wrote is taken to be known after this share of the ends of that outcome that were written.
LATE = 0.99
READ = (
    *("submit_s", "start_s", "end_s", "runtime_s", "outcome", "trace_end_s", "gpu_milli", "size"),
    *("user", "gpu_type", "part", *READ_OF_JOBS),
)
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Population:
    """Jobs in the order of submission, n of each array.

    jobs: their columns; ended, failed: truth values; known_s: when the end was known (NEVER of those that run or wait);
    started_s, ended_s: NEVER where it has not, or nobody wrote it; hours: of
    the run as far as it was seen, NaN where it is not known; running; gpus: GPUs of all instances (0 where no
    GPU was requested); cluster: number of what repeats, -1 where the trace names nothing; by: what that is.
    left_out: reason -> jobs that take no part.
    """

    jobs: pl.DataFrame
    ended: np.ndarray
    failed: np.ndarray
    running: np.ndarray
    submit_s: np.ndarray
    started_s: np.ndarray
    ended_s: np.ndarray
    known_s: np.ndarray
    hours: np.ndarray
    gpus: np.ndarray
    cluster: np.ndarray
    by: str | None
    left_out: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ended)

    def codes(self, column: str) -> np.ndarray | None:
        """The number of each job's value in a column, 0 for a blank; None where the trace has no such values."""
        if column not in self.jobs.columns or self.jobs[column].null_count() == len(self):
            return None
        return codes_of(self.jobs[column])


def codes_of(values: pl.Series) -> np.ndarray:
    """Numbers that tell values apart, 0 for a blank; no order is meant."""
    if values.dtype == pl.String:
        values = values.cast(pl.Categorical)
    number = values.to_physical() if values.dtype == pl.Categorical else values.rank("dense") - 1
    return (number.cast(pl.Int64) + 1).fill_null(0).to_numpy()


def population(jobs: pl.LazyFrame, columns: Sequence[str] = ()) -> Population:
    """The jobs of a trace as far as a risk can be learnt from them. jobs: the common job record.

    columns: what of them is read besides READ. A job without a submission, or that ended before it, takes no part.
    The end of a job that ended at a time nobody wrote counts as known as long after its submission as 99 in 100 of the
    others of its outcome took: later than that it hardly was, and earlier it may not be used.
    """
    there = jobs.collect_schema().names()
    wanted = [name for name in dict.fromkeys([*READ, *columns]) if name in there]
    # Texts by number: those of a million jobs would be most of the memory.
    read = jobs.select(wanted, seen_s=observed_s()).with_columns(cs.string().cast(pl.Categorical)).collect()
    dated = read.filter(pl.col("submit_s").is_not_null())
    kept = dated.filter(~(pl.col("end_s") < pl.col("submit_s")).fill_null(False)).sort("submit_s", maintain_order=True)
    left_out = {
        "no submission": read.height - dated.height,
        "ended before it was submitted": dated.height - kept.height,
    }
    outcome, submit_s = kept["outcome"].cast(pl.String), kept["submit_s"].to_numpy()
    ended, running = outcome.is_in(ENDED).to_numpy(), (outcome == "running").to_numpy()
    took = pl.col("end_s") - pl.col("submit_s")
    lag = took.quantile(LATE, "higher").cast(pl.Int64)
    ends = kept.lazy().filter(ended).group_by(pl.col("outcome").cast(pl.String)).agg(lag)
    late = dict(ends.collect().iter_rows())
    unwritten = pl.col("submit_s") + outcome.replace_strict(late, default=None, return_dtype=pl.Int64)
    known = kept.select(pl.coalesce("end_s", unwritten, "trace_end_s")).to_series().fill_null(NEVER).to_numpy()
    hours = kept["seen_s"].cast(pl.Float64).to_numpy() / 3600
    gpus = (kept["gpu_milli"] * kept["size"].fill_null(1)).fill_null(0).to_numpy() / 1000
    by, group_by = level_names(kept)
    cluster = np.full(kept.height, -1)
    if by is not None and kept.height:
        cluster = kept["cluster"].cast(pl.Int64).to_numpy()
        if cluster.max() == 0 and cluster.min() == 0:
            by, cluster = group_by, kept["group"].cast(pl.Int64).to_numpy()
    return Population(
        jobs=kept.drop("seen_s"),
        ended=ended,
        failed=(outcome == "failure").to_numpy(),
        running=running,
        submit_s=submit_s,
        started_s=kept["start_s"].fill_null(NEVER).to_numpy(),
        ended_s=kept["end_s"].fill_null(NEVER).to_numpy(),
        known_s=np.where(ended, known, NEVER),
        hours=hours,
        gpus=gpus,
        cluster=cluster,
        by=by,
        left_out={why: number for why, number in left_out.items() if number},
    )
