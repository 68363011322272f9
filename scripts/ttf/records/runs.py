"""Runs of jobs, the unit of failure costs: attempts, or jobs if the format has no attempts."""

from collections.abc import Iterator
from typing import NamedTuple

import polars as pl

from ttf.engine.storage.tables import BLOCK_ROWS, read_blocks_with_attempts, read_rows
from ttf.records.jobs import DataType, Frame, conform, is_at_time_limit, observed_s

RUN_COLUMNS: dict[str, DataType] = {
    **dict.fromkeys(("job", "attempt"), pl.Int64),
    **dict.fromkeys(("user", "account"), pl.String),
    **dict.fromkeys(("start_s", "end_s", "runtime_s", "gpu_milli"), pl.Int64),
    "outcome": pl.String,
    **dict.fromkeys(("failed", "infra"), pl.Boolean),
    "basis": pl.String,
    **dict.fromkeys(("preempted", "timed_out"), pl.Boolean),
    "node_list": pl.List(pl.String),
    **dict.fromkeys(("deterministic", "by_user", "again", "after_infra"), pl.Boolean),
}

# Slurm's word, also used by traces of other schedulers.
PREEMPTED = "PREEMPTED"
# An hour of one GPU, in the unit of `gpu_time`.
GPU_HOUR = 1000 * 3600
FEW_STARTS = 200
# The domain of reasons.parquet of causes that can only lie in the user program.
USER = "user program"
# Columns of a run's end, from its infrastructure duration.
ENDS = ("basis", "infra", "timed_out", "preempted")


class Block(NamedTuple):
    """Inputs of `build_runs` for some jobs. attempts: with `job`, the row in jobs, or None if the trace has none."""

    jobs: pl.DataFrame
    attempts: pl.DataFrame | None
    infra_durations: pl.DataFrame


def iterate_blocks(
    jobs: pl.LazyFrame,
    attempts: pl.LazyFrame | None,
    infra_durations: pl.LazyFrame,
    reasons: pl.LazyFrame | None = None,
    size: int = BLOCK_ROWS,
) -> Iterator[Block]:
    """Yield jobs block by block with their attempts and infrastructure durations, in the order of the trace.

    All are tables on disk, of which only used columns are read; columns that `build_runs` does not use may be missing.
    reasons: rows of reasons.parquet, one for each failed attempt (or failed job without attempts); with them the
    attempts have `deterministic` and `by_user`.
    """
    infra_durations, n_jobs = add_end_columns(infra_durations), jobs.select(pl.len()).collect().item()
    job = duration = reason = 0
    for block_jobs, block_attempts in read_blocks_with_attempts(jobs, attempts, size):
        rows = block_jobs if block_attempts is None else block_attempts
        has_duration = pl.col("outcome") != "waiting" if block_attempts is None else pl.col("start_s").is_not_null()
        n_durations, job = rows.select(has_duration.sum()).item(), job + block_jobs.height
        # The last block takes all remaining durations, so that `build_runs` detects too many as well as too few.
        block_durations = read_rows(infra_durations, duration, n_durations if job < n_jobs else None)
        if reasons is not None:
            block_reasons = read_rows(reasons, reason, int(_is_failed_job_or_attempt(rows).sum()))
            rows, reason = add_reasons(rows, block_reasons), reason + block_reasons.height
        yield Block(rows, None, block_durations) if block_attempts is None else Block(block_jobs, rows, block_durations)
        duration += n_durations


def build_runs(
    jobs: pl.DataFrame | pl.LazyFrame, attempts: pl.DataFrame | None, infra_durations: pl.DataFrame | pl.LazyFrame
) -> pl.LazyFrame:
    """Return one row per run that started, in the order of jobs and attempts, with RUN_COLUMNS; lazy without attempts.

    jobs: the job record. attempts: of the same trace with `job`, the row of their job; None if the format does not
    distinguish attempts. infra_durations: a row for each of them, with `add_end_columns`; otherwise collecting the
    runs raises Polars' ShapeError. job: row of the job in `jobs`, from 0. runtime_s: observed seconds, blank without an
    end. end_s: when the run ended or was last seen. gpu_milli: of the whole run, 0 if unknown.

    failed: the run ended in failure. An attempt before the last, in a trace without outcomes for such attempts
    (Philly), counts as failed. infra: the run ended in an infrastructure failure, by the rule in `basis`. preempted:
    the scheduler ended it for another job. timed_out: it reached its time limit. deterministic: whether a retry would
    fail again; by_user: whether the cause can only be the user program (`add_reasons`); both blank if unknown. again,
    after_infra: see `add_previous_runs`.
    """
    rows = _make_runs_of_jobs(jobs.lazy()) if attempts is None else _make_runs_of_attempts(jobs.lazy(), attempts.lazy())
    rows = pl.concat([rows, infra_durations.lazy().select(ENDS)], how="horizontal")
    # A row with neither a start nor a run time is no run.
    rows = rows.filter(pl.col("start_s").is_not_null() | pl.col("runtime_s").is_not_null())
    if attempts is None:
        rows = rows.with_columns(again=pl.lit(False), after_infra=pl.lit(False))
    else:
        rows = add_previous_runs(sort_attempts(rows.collect()).lazy())
    return conform(rows, RUN_COLUMNS).select(list(RUN_COLUMNS))


def add_end_columns(infra_durations: Frame) -> Frame:
    """Replace `event` and `state` of the infrastructure durations by ENDS."""
    end_columns = {
        "infra": pl.col("event").is_not_null(),
        "timed_out": is_at_time_limit("state"),
        "preempted": (pl.col("state").str.to_uppercase() == PREEMPTED).fill_null(False),
    }
    return infra_durations.with_columns(**end_columns).drop("event", "state")


def sort_attempts(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort attempts by `job` and `attempt`."""
    job, attempt = pl.col("job"), pl.col("attempt")
    is_sorted = (job > job.shift(1)) | ((job == job.shift(1)) & (attempt > attempt.shift(1)))
    # They are mostly sorted already, and a check is cheaper than sorting.
    return rows if rows.select(is_sorted.fill_null(True).all()).item() else rows.sort("job", "attempt")


def add_previous_runs(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Add `again` (whether the job had run before) and `after_infra` (that run ended in an infrastructure failure)."""
    is_retry = (pl.col("job") == pl.col("job").shift(1)).fill_null(False)
    return rows.with_columns(again=is_retry, after_infra=is_retry & pl.col("infra").shift(1, fill_value=False))


def find_record_start(starts: pl.Series, end_s: int) -> tuple[int, int]:
    """Return (begin_s, number of starts before it) of a record that ends at end_s: its first start, or that of most.

    A record with a truncated start, such as one of pods not yet deleted, has a few long runs left from before. If fewer
    than one in FEW_STARTS starts lie in a quarter of the time or more, the record begins after them.
    """
    ordered = starts.drop_nulls().sort()
    first_s, begin_s = ordered[0], ordered[ordered.len() // FEW_STARTS]
    if 4 * (begin_s - first_s) < end_s - first_s:
        return first_s, 0
    return begin_s, int((ordered < begin_s).sum())


def gpu_allocations(jobs: pl.LazyFrame, attempts: pl.LazyFrame | None) -> pl.DataFrame:
    """Return start_s, until_s (exclusive), gpu_milli of the runs that held GPUs for a known time (see `build_runs`)."""
    if attempts is None:
        runtime_s, gpu_milli = observed_s(), _job_gpu_milli()
        rows = jobs.filter(pl.col("outcome") != "waiting").select("start_s", runtime_s=runtime_s, gpu_milli=gpu_milli)
    else:
        rows = attempts.select("job", "start_s", "runtime_s", "gpu_milli")
        if rows.select(pl.col("gpu_milli").null_count()).collect(engine="streaming").item():
            job_gpus = jobs.select(job_gpu_milli=_job_gpu_milli()).collect()["job_gpu_milli"]
            rows = rows.with_columns(pl.coalesce("gpu_milli", pl.lit(job_gpus).gather("job")))
    spans = rows.select("start_s", "gpu_milli", until_s=pl.col("start_s") + pl.col("runtime_s"))
    spans = spans.filter(pl.col("gpu_milli") > 0, pl.col("start_s") < pl.col("until_s"))
    return spans.collect(engine="streaming")


def _job_gpu_milli() -> pl.Expr:
    return (pl.col("gpu_milli") * pl.col("size")).fill_null(0)


def add_reasons(rows: pl.DataFrame, reasons: pl.DataFrame) -> pl.DataFrame:
    """Add `deterministic` and `by_user` to jobs, or attempts with `job`.

    reasons: rows of reasons.parquet, one for each failure, in order. Raises ValueError if they belong to other rows.
    """
    has_attempts, failed = "job" in rows.columns, _is_failed_job_or_attempt(rows)
    if reasons.height != failed.sum() or (
        has_attempts and not rows.filter(failed)["attempt"].equals(reasons["attempt"])
    ):
        raise ValueError("reasons of other jobs")
    reason_index = rows.select(pl.when(failed).then(failed.cum_sum() - 1)).to_series()
    by_user = reasons["domain"] == USER
    return rows.with_columns(
        deterministic=reasons["deterministic"].gather(reason_index), by_user=by_user.gather(reason_index)
    )


def gpu_time() -> pl.Expr:
    """Return the milli-GPU seconds of a run, blank without a run time; 128 bits wide, so that sums fit."""
    return pl.col("gpu_milli").cast(pl.Int128) * pl.col("runtime_s")


def _make_runs_of_jobs(jobs: pl.LazyFrame) -> pl.LazyFrame:
    is_running = pl.col("outcome") == "running"
    return (
        jobs.with_row_index("job")
        .filter(pl.col("outcome") != "waiting")
        .select(
            *("job", "start_s", "outcome"),
            *(name for name in ("user", "account", "deterministic", "by_user") if name in jobs.collect_schema()),
            attempt=pl.lit(0, dtype=pl.Int64),
            end_s=pl.coalesce("end_s", pl.when(is_running).then("trace_end_s")),
            runtime_s=observed_s(),
            gpu_milli=_job_gpu_milli(),
            failed=pl.col("outcome") == "failure",
        )
    )


def _is_failed_job_or_attempt(rows: pl.DataFrame) -> pl.Series:
    has_outcomes = not rows["outcome"].null_count()
    return rows.select(pl.col("outcome") == "failure" if has_outcomes else _is_attempt_failed()).to_series()


def _is_attempt_failed() -> pl.Expr:
    """Return whether an attempt failed; without an outcome it failed unless it is the last of its job."""
    is_last = pl.col("attempt") == pl.col("attempt").max().over("job")
    return (pl.col("outcome") == "failure").fill_null(~is_last)


def _make_runs_of_attempts(jobs: pl.LazyFrame, attempts: pl.LazyFrame) -> pl.LazyFrame:
    schema = jobs.collect_schema()
    job_columns = jobs.select(*(name for name in ("user", "account") if name in schema), job_gpu_milli=_job_gpu_milli())
    # None if the column is not read.
    is_text = attempts.collect_schema().get("node_list") == pl.String
    return (
        attempts.join(job_columns.with_row_index("job"), on="job", how="left", maintain_order="left")
        .filter(pl.col("start_s").is_not_null())
        .with_columns(
            failed=_is_attempt_failed(),
            gpu_milli=pl.coalesce("gpu_milli", "job_gpu_milli"),
            **({"node_list": pl.col("node_list").str.split(",")} if is_text else {}),
        )
    )
