"""Lives: exposure of one unit, and the event that ended it. Survival rules read lives and nothing else."""

import polars as pl

from ttf.records.clusters import CLUSTER_COLUMNS, with_clusters
from ttf.records.jobs import Frame, observed_s, with_blanks
from ttf.records.record_contracts import LIVES

# What ends a job; each competes with the others.
ENDS = ("failure", "success", "cancelled", "unknown")

LIFE_COLUMNS = LIVES.schema
# What jobs may have beside a run time, and attempts never.
LONGEST = {"runtime_max_s": pl.Int64}
# What `lives_of_jobs` reads of jobs.
READ_OF_JOBS = (
    *("trace", "job_id", "task", "account", "outcome", "start_s", "end_s", "runtime_s", "runtime_max_s", "trace_end_s"),
    *("gpu_type", "gpu_milli", "cpu_milli", "size", "nodes", *CLUSTER_COLUMNS),
)


def lives_of_jobs(jobs: Frame) -> Frame:
    """One life per job that no longer waits, in the jobs' order, with the columns LIFE_COLUMNS.

    A job that ended without ever having started has a life with blank durations, which no estimator counts.
    event: the outcome that ended it (failure, success, cancelled, unknown); blank for a running job, whose life is
    censored when it was last seen, or at the trace's end where no time was written. gpu_milli is what the whole job
    asked for (per instance x size), gpu_count the same in whole GPUs, rounded up (a share of one GPU counts as 1, none
    as 0).
    A job that ended at a time nobody wrote down has a blank duration_s, and in duration_max_s the longest it can have
    lasted (runtime_max_s, else from its start to the trace's end): estimators leave it out, and say how much it could
    change.

    entry_s is the age at which a job came under watch, 0 if it was watched from its start. Few traces say since when
    they were recorded, and a job that ended before then is not in them: one that already ran is there only because it
    went on. By the first end in the trace the record had begun; so a job that had started before that end came under
    watch at its age then, and the first end, from which the watch is reckoned, counts for nothing. This holds whatever
    was recorded before, and costs little where nothing was missed. Age is wall clock since the start, at most the
    duration: too high for a job with gaps between attempts. Estimators without delayed entry do not read it.
    """
    of_jobs = with_blanks(with_clusters(jobs), LONGEST).filter(pl.col("outcome") != "waiting")
    return of_jobs.select(**life_columns(first_end_s(of_jobs))).cast(LIFE_COLUMNS)


def first_end_s(jobs: Frame) -> int | None:
    """The first end in the trace (seconds on its clock); None where no job has one."""
    return jobs.lazy().select(pl.col("end_s").min()).collect(engine="streaming").item()


def life_columns(first_end: int | None) -> dict[str, pl.Expr]:
    """LIFE_COLUMNS of jobs that no longer wait, of each from its own row; see `lives_of_jobs` and `first_end_s`.

    The jobs have CLUSTER_COLUMNS and LONGEST.
    """
    gpu_milli = pl.col("gpu_milli") * pl.col("size")
    ended = pl.col("outcome").is_in(ENDS)
    longest = pl.col("runtime_max_s")
    duration = pl.when(longest.is_null()).then(observed_s())
    age = (pl.lit(first_end, dtype=pl.Int64) - pl.col("start_s")).clip(lower_bound=0).fill_null(0)
    return {
        "trace": pl.col("trace"),
        "unit_id": pl.concat_str("job_id", "task", separator="/", ignore_nulls=True),
        "life_id": pl.lit(0, dtype=pl.Int64),
        "entry_s": pl.min_horizontal(age, duration),
        "duration_s": duration,
        "event": pl.when(ended).then("outcome"),
        "gpu_count": ((gpu_milli + 999) // 1000).fill_null(0),
        "gpu_milli": gpu_milli.fill_null(0),
        "cpu_milli": pl.col("cpu_milli") * pl.col("size"),
        "nodes": pl.col("nodes"),
        "account": pl.col("account"),
        "gpu_type": pl.col("gpu_type"),
        **{name: pl.col(name) for name in CLUSTER_COLUMNS},
        "duration_max_s": pl.when(duration.is_null()).then(
            pl.coalesce(longest, pl.col("trace_end_s") - pl.col("start_s"))
        ),
    }


def nodes_at_work(node_gpus: int | None, node_gpus_from: str | None = None) -> pl.Expr:
    """The nodes of each life: those recorded if `node_gpus_from` is "jobs" or the units hold no GPUs; else its GPUs,

    rounded up to nodes of `node_gpus`. Both are columns of node_failure_rate.csv.
    """
    if node_gpus is None:
        return pl.col("nodes")
    rounded_up = (pl.col("gpu_count") + node_gpus - 1) // node_gpus
    recorded = pl.when((pl.col("nodes") > 0) & (pl.col("gpu_count") > 0)).then("nodes")
    return pl.coalesce(recorded, rounded_up) if node_gpus_from == "jobs" else rounded_up


def strata_in(lives: Frame, strata: list[str]) -> list[str]:
    """`all`, and those of `strata` in which any life has a value."""
    (known,) = lives.lazy().select(pl.col(strata).count()).collect(engine="streaming").iter_rows()
    return ["all", *(name for name, lives_with in zip(strata, known, strict=True) if lives_with)]


def ends_in(lives: Frame) -> list[str]:
    """Failure, and what else of ENDS ended any life."""
    seen = lives.lazy().select(pl.col("event").unique()).collect(engine="streaming")["event"]
    return [end for end in ENDS if end == "failure" or end in seen]


def by_cause(lives: Frame, cause: str) -> Frame:
    """The lives with `cause` as the event that ended them, where it did: every other end is censoring then."""
    return lives.with_columns(event=pl.when(pl.col(cause).fill_null(False)).then(pl.lit(cause)))
