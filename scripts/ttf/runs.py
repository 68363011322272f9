"""The runs of jobs, by which what failures cost is counted: an attempt, or a job where the format has no attempts."""

import polars as pl

from ttf.jobs import at_time_limit, conform, observed_s

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
# The basis of infra failures where nothing in the trace tells causes apart; the others: see ttf.infra.
PROXY = "proxy"
# An hour of one GPU, in what `gpu_time` gives.
GPU_HOUR = 1000 * 3600


def runs(
    jobs: pl.DataFrame | pl.LazyFrame, attempts: pl.DataFrame | None, infra_lives: pl.DataFrame | pl.LazyFrame
) -> pl.LazyFrame:
    """One row per run that started, in the order of jobs and attempts, with RUN_COLUMNS; not held without attempts.

    jobs: the job record; attempts: of the same trace, where the format tells them apart, else None; infra_lives: what
    `ttf.infra.infra_lives` makes of the two, a row each: else what uses the runs raises Polars' ShapeError. job: the
    row of the job in `jobs`, from 0. runtime_s: seconds seen, blank where no end was written. end_s: when the run ended
    or was last seen. gpu_milli: of the whole run, 0 where nothing is known of it.

    failed: the run ended in failure; an attempt before the last of a trace that gives such attempts no outcome
    (Philly) counts as failed, as nothing else is known of it. infra: the run ended in an infra failure, on the ground
    named in `basis`. preempted: the scheduler ended it for another job. timed_out: it ran into its time limit.
    deterministic: whether its failure is one that a retry meets again (`with_reasons`), blank where none is known.
    again, after_infra: see `with_runs_before`.
    """
    tries = _of_jobs(jobs.lazy()) if attempts is None else _of_attempts(jobs.lazy(), attempts.lazy())
    states = infra_lives.lazy().select(
        "basis",
        infra=pl.col("event").is_not_null(),
        timed_out=at_time_limit("state"),
        preempted=(pl.col("state").str.to_uppercase() == PREEMPTED).fill_null(False),
    )
    tries = pl.concat([tries, states], how="horizontal")
    # An end without a start or a run time is no run.
    tries = tries.filter(pl.col("start_s").is_not_null() | pl.col("runtime_s").is_not_null())
    if attempts is None:
        tries = tries.with_columns(again=pl.lit(False), after_infra=pl.lit(False))
    else:
        tries = with_runs_before(in_sequence(tries.collect()).lazy())
    return conform(tries, RUN_COLUMNS).select(list(RUN_COLUMNS))


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


def with_reasons(
    jobs: pl.DataFrame, attempts: pl.DataFrame | None, reasons: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """jobs and attempts, the ones that runs are made of with `deterministic`: whether their failure would come again.

    reasons: the rows of reasons.parquet, one for each failed attempt, or failed job where there are no attempts.
    """
    key = ["job_id", "task"] if attempts is None else ["job_id", "attempt"]
    named = (jobs if attempts is None else attempts).join(
        reasons.select(*key, "deterministic"),
        on=key,
        how="left",
        nulls_equal=True,
        maintain_order="left",
        validate="m:1",
    )
    return (named, None) if attempts is None else (jobs, named)


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
            *("job", "user", "account", "start_s", "outcome"),
            *(name for name in ("deterministic",) if name in jobs.collect_schema()),
            attempt=pl.lit(0, dtype=pl.Int64),
            end_s=pl.coalesce("end_s", pl.when(running).then("trace_end_s")),
            runtime_s=observed_s(),
            gpu_milli=(pl.col("gpu_milli") * pl.col("size")).fill_null(0),
            failed=pl.col("outcome") == "failure",
        )
    )


def _of_attempts(jobs: pl.LazyFrame, attempts: pl.LazyFrame) -> pl.LazyFrame:
    """The attempts that started, as infra lives have them."""
    of_jobs = jobs.with_row_index("job").select(
        *("job", "job_id", "user", "account"), of_job=(pl.col("gpu_milli") * pl.col("size")).fill_null(0)
    )
    is_last = pl.col("attempt") == pl.col("attempt").max().over("job")
    is_text = attempts.collect_schema()["node_list"] == pl.String
    return (
        attempts.join(of_jobs, on="job_id", how="left", maintain_order="left", validate="m:1")
        .filter(pl.col("start_s").is_not_null())
        .with_columns(
            failed=(pl.col("outcome") == "failure").fill_null(~is_last),
            gpu_milli=pl.coalesce("gpu_milli", "of_job"),
            node_list=pl.col("node_list").str.split(",") if is_text else pl.col("node_list"),
        )
    )
