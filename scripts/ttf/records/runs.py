"""The runs of jobs, by which what failures cost is counted: an attempt, or a job where the format has no attempts."""

from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from ttf.engine.storage.tables import BLOCK_ROWS, blocks_with_attempts, read_rows
from ttf.records.jobs import Frame, at_time_limit, conform, observed_s

RUN_COLUMNS = {
    **dict.fromkeys(("job", "attempt"), pl.Int64),
    **dict.fromkeys(("user", "account"), pl.String),
    **dict.fromkeys(("start_s", "end_s", "runtime_s", "gpu_milli"), pl.Int64),
    "outcome": pl.String,
    **dict.fromkeys(("failed", "infra"), pl.Boolean),
    "basis": pl.String,
    **dict.fromkeys(("preempted", "timed_out"), pl.Boolean),
    "node_list": pl.List(pl.String),
    **dict.fromkeys(("deterministic", "again", "after_infra"), pl.Boolean),
}

# Slurm's word, which traces of other schedulers have taken over.
PREEMPTED = "PREEMPTED"
# An hour of one GPU, in what `gpu_time` gives.
GPU_HOUR = 1000 * 3600
FEW_STARTS = 200
# How a run ended, as its infra life tells.
ENDS = ("basis", "infra", "timed_out", "preempted")


class Block(NamedTuple):
    """What `runs` takes of some jobs. attempts: None where the trace has none; of each, `job` is the row of its job."""

    jobs: pl.DataFrame
    attempts: pl.DataFrame | None
    infra_lives: pl.DataFrame


def in_blocks(
    jobs: pl.LazyFrame,
    attempts: pl.LazyFrame | None,
    infra_lives: pl.LazyFrame,
    reasons: pl.LazyFrame | None = None,
    size: int = BLOCK_ROWS,
) -> Iterator[Block]:
    """Jobs, so many at a time, with their attempts and infra lives: of the whole trace, in its order.

    All are tables on the disk, and of them those columns that are looked at; what `runs` does not ask for may lack.
    reasons: the rows of reasons.parquet, one for each failed attempt, or failed job where there are no attempts; where
    they are given, these have `deterministic`.
    """
    infra_lives, n_jobs = ended(infra_lives), jobs.select(pl.len()).collect().item()
    job = life = reason = 0
    for of_jobs, of_attempts in blocks_with_attempts(jobs, attempts, size):
        tries = of_jobs if of_attempts is None else of_attempts
        has_life = pl.col("outcome") != "waiting" if of_attempts is None else pl.col("start_s").is_not_null()
        n_lives, job = tries.select(has_life.sum()).item(), job + of_jobs.height
        # The last block has all the rest, so that lives too many are seen as lives too few are (`runs`).
        of_lives = read_rows(infra_lives, life, n_lives if job < n_jobs else None)
        if reasons is not None:
            told = read_rows(reasons, reason, _failed(tries).sum())
            tries, reason = with_reasons(tries, told), reason + told.height
        yield Block(tries, None, of_lives) if of_attempts is None else Block(of_jobs, tries, of_lives)
        life += n_lives


def runs(
    jobs: pl.DataFrame | pl.LazyFrame, attempts: pl.DataFrame | None, infra_lives: pl.DataFrame | pl.LazyFrame
) -> pl.LazyFrame:
    """One row per run that started, in the order of jobs and attempts, with RUN_COLUMNS; not held without attempts.

    jobs: the job record; attempts: of the same trace with `job`, the row of theirs, where the format tells them
    apart, else None; infra_lives: `ended` of what `ttf.records.infra.infra_lives` makes of the two, a row each: else
    what uses the runs raises Polars' ShapeError. job: the row of the job in `jobs`, from 0. runtime_s: seconds seen,
    blank where no end was written. end_s: when the run ended or was last seen. gpu_milli: of the whole run, 0 where
    nothing is known.

    failed: the run ended in failure; an attempt before the last of a trace that gives such attempts no outcome
    (Philly) counts as failed, as nothing else is known of it. infra: the run ended in an infra failure, on the ground
    named in `basis`. preempted: the scheduler ended it for another job. timed_out: it ran into its time limit.
    deterministic: whether its failure is one that a retry meets again (`with_reasons`), blank where none is known.
    again, after_infra: see `with_runs_before`.
    """
    tries = _of_jobs(jobs.lazy()) if attempts is None else _of_attempts(jobs.lazy(), attempts.lazy())
    tries = pl.concat([tries, infra_lives.lazy().select(ENDS)], how="horizontal")
    # An end without a start or a run time is no run.
    tries = tries.filter(pl.col("start_s").is_not_null() | pl.col("runtime_s").is_not_null())
    if attempts is None:
        tries = tries.with_columns(again=pl.lit(False), after_infra=pl.lit(False))
    else:
        tries = with_runs_before(in_sequence(tries.collect()).lazy())
    return conform(tries, RUN_COLUMNS).select(list(RUN_COLUMNS))


def ended(infra_lives: Frame) -> Frame:
    """The infra lives with ENDS, how they ended, in place of `event` and `state`."""
    ends = {
        "infra": pl.col("event").is_not_null(),
        "timed_out": at_time_limit("state"),
        "preempted": (pl.col("state").str.to_uppercase() == PREEMPTED).fill_null(False),
    }
    return infra_lives.with_columns(**ends).drop("event", "state")


def in_sequence(tries: pl.DataFrame) -> pl.DataFrame:
    """The tries by `job`, and those at one job by `attempt`."""
    job, attempt = pl.col("job"), pl.col("attempt")
    in_order = (job > job.shift(1)) | ((job == job.shift(1)) & (attempt > attempt.shift(1)))
    # They mostly are already, and looking is cheaper than sorting.
    return tries if tries.select(in_order.fill_null(True).all()).item() else tries.sort("job", "attempt")


def with_runs_before(tries: pl.LazyFrame) -> pl.LazyFrame:
    """The tries, in sequence, with `again`: whether the job had run before, and `after_infra`: that run ended in an

    infra failure.
    """
    again = (pl.col("job") == pl.col("job").shift(1)).fill_null(False)
    return tries.with_columns(again=again, after_infra=again & pl.col("infra").shift(1, fill_value=False))


def where_starts_are(starts: pl.Series, end_s: int) -> tuple[int, int]:
    """(begin_s, starts before it) of a record that ends at end_s: its first start, or where most of them begin.

    Of a record whose start is cut off, such as one of the pods that were not deleted yet, a few long runs are left: if
    fewer than one in FEW_STARTS starts lie in a quarter of the time or more, it begins after these.
    """
    ordered = starts.drop_nulls().sort()
    first_s, begin_s = ordered[0], ordered[ordered.len() // FEW_STARTS]
    if 4 * (begin_s - first_s) < end_s - first_s:
        return first_s, 0
    return begin_s, int((ordered < begin_s).sum())


def held(jobs: pl.LazyFrame, attempts: pl.LazyFrame | None) -> pl.DataFrame:
    """start_s, until_s, gpu_milli of the runs that held GPUs for a known time, to below until_s, as `runs` has them."""
    if attempts is None:
        runtime_s, gpus = observed_s(), _gpu_milli()
        tries = jobs.filter(pl.col("outcome") != "waiting").select("start_s", runtime_s=runtime_s, gpu_milli=gpus)
    else:
        tries = attempts.select("job", "start_s", "runtime_s", "gpu_milli")
        if tries.select(pl.col("gpu_milli").null_count()).collect(engine="streaming").item():
            of_jobs = jobs.select(of_job=_gpu_milli()).collect()["of_job"]
            tries = tries.with_columns(pl.coalesce("gpu_milli", pl.lit(of_jobs).gather("job")))
    spans = tries.select("start_s", "gpu_milli", until_s=pl.col("start_s") + pl.col("runtime_s"))
    spans = spans.filter(pl.col("gpu_milli") > 0, pl.col("start_s") < pl.col("until_s"))
    return spans.collect(engine="streaming")


def _gpu_milli() -> pl.Expr:
    """Of a whole job."""
    return (pl.col("gpu_milli") * pl.col("size")).fill_null(0)


def with_reasons(tries: pl.DataFrame, reasons: pl.DataFrame) -> pl.DataFrame:
    """The tries that runs are made of, jobs or attempts with `job`, with `deterministic`: whether their failure would

    come again. reasons: the rows of reasons.parquet, one for each that failed, in their order.
    Raises ValueError where these are not theirs.
    """
    has_attempts, failed = "job" in tries.columns, _failed(tries)
    if reasons.height != failed.sum() or (
        has_attempts and not tries.filter(failed)["attempt"].equals(reasons["attempt"])
    ):
        raise ValueError("reasons of other jobs")
    place = tries.select(pl.when(failed).then(failed.cum_sum() - 1)).to_series()
    return tries.with_columns(deterministic=reasons["deterministic"].gather(place))


def gpu_time() -> pl.Expr:
    """Milli-GPU seconds of a run, blank where its run time is. 128 bits wide, so that sums fit."""
    return pl.col("gpu_milli").cast(pl.Int128) * pl.col("runtime_s")


def _of_jobs(jobs: pl.LazyFrame) -> pl.LazyFrame:
    """The jobs that no longer wait, as infra lives have them."""
    running = pl.col("outcome") == "running"
    return (
        jobs.with_row_index("job")
        .filter(pl.col("outcome") != "waiting")
        .select(
            *("job", "start_s", "outcome"),
            *(name for name in ("user", "account", "deterministic") if name in jobs.collect_schema()),
            attempt=pl.lit(0, dtype=pl.Int64),
            end_s=pl.coalesce("end_s", pl.when(running).then("trace_end_s")),
            runtime_s=observed_s(),
            gpu_milli=_gpu_milli(),
            failed=pl.col("outcome") == "failure",
        )
    )


def _failed(tries: pl.DataFrame) -> pl.Series:
    """Whether each of the jobs, or attempts, failed."""
    is_told = not tries["outcome"].null_count()
    return tries.select(pl.col("outcome") == "failure" if is_told else _has_failed()).to_series()


def _has_failed() -> pl.Expr:
    """Of attempts: those before the last that have no outcome count."""
    is_last = pl.col("attempt") == pl.col("attempt").max().over("job")
    return (pl.col("outcome") == "failure").fill_null(~is_last)


def _of_attempts(jobs: pl.LazyFrame, attempts: pl.LazyFrame) -> pl.LazyFrame:
    """The attempts that started, as infra lives have them."""
    there = jobs.collect_schema()
    of_jobs = jobs.select(*(name for name in ("user", "account") if name in there), of_job=_gpu_milli())
    # None where nobody looks at it.
    is_text = attempts.collect_schema().get("node_list") == pl.String
    return (
        attempts.join(of_jobs.with_row_index("job"), on="job", how="left", maintain_order="left")
        .filter(pl.col("start_s").is_not_null())
        .with_columns(
            failed=_has_failed(),
            gpu_milli=pl.coalesce("gpu_milli", "of_job"),
            **({"node_list": pl.col("node_list").str.split(",")} if is_text else {}),
        )
    )
