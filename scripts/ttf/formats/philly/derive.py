"""The Philly trace (Microsoft, 2017; Jeon et al., ATC'19): a job is tried one or several times, on one or more servers.

Only a job has a status; its attempts have none. The log's times are wall clock without a zone, taken to be Pacific. The
hour from 1 to 2 of 2017-11-05 came twice: its times are taken as of the first passing, and may be an hour later.
"""

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl
from ttf.formats.format_declaration import declared, outcomes_of
from ttf.formats.philly.gpu_use import GPUS, gpu_use
from ttf.formats.philly.read import ATTEMPTS
from ttf.formats.protocol import Format, Source
from ttf.records.jobs import JOB_COLUMNS, NODE_COLUMNS, as_placements, came_twice, conform, outcome_of

OUTCOMES = outcomes_of("philly")
ZONE = declared("philly")["zone"]
# The days that have telemetry, which are about those of the paper: 2017-10-03 to before 2017-12-16, Pacific.
WINDOW_S = (1_507_014_000, 1_513_411_200)


class Log(NamedTuple):
    """The job log unpacked: a row per job, with its place `row` in the log; and a row per attempt, see _tries."""

    jobs: pl.DataFrame
    tries: pl.DataFrame


def records(source: Source) -> Log:
    """The job log, whose attempts are JSON, unpacked once for all that comes from it."""
    log = _log(source.raw).collect()
    return Log(log.drop("attempts"), _tries(log))


def jobs(source: Source) -> pl.DataFrame:
    """One row per job, in the log's order, with the columns of the common job record and these extras:

    wall_s: from the first start to the last end (run_time of the trace's notebook; gaps between attempts count).
    Flags, true or false: no_attempts; missing_start, missing_end: of any attempt; negative_queue, negative_run: a start
    before the submission, an attempt's end before its start (the delay, the run time is blank then); dst_ambiguous: a
    time in the hour that came twice; zero_gpu: the first attempt holds no GPU; out_of_window: submitted on a day
    without telemetry; zone_contradicted: submitted before its resource manager had started (see zone_evidence).
    Where the table gpu_util is there, gpu_used_milli: mean use over the GPUs and minutes of its attempts, times its
    GPUs; gpu_readings: how many readings that is the mean of.

    runtime_s is active time, the sum over attempts with a start and an end. It is blank where the last attempt to start
    has no end: still running at the snapshot, or its log lost. The outcome is that of the job's status all the same.
    GPUs and nodes are those of attempt 0, and all of the job's: it is one instance (`size` 1).
    """
    raw, (log, tries) = source.raw, source.records
    frame = log.join(_by_job(tries), on="row", how="left", maintain_order="left")
    measured = []
    if "gpu_util" in raw:
        measured = ["gpu_used_milli", "gpu_readings"]
        used = gpu_use(_held(tries), raw["gpu_util"])
        frame = frame.join(used, left_on="row", right_on="owner", how="left", maintain_order="left")
        # The nearest whole milli-GPU, halves up; the product would not fit 64 bits for the largest jobs.
        twice = pl.col("util_mpct_sum").cast(pl.Int128) * pl.col("gpu_milli") * 2
        whole = pl.col("readings").cast(pl.Int128) * 100_000
        frame = frame.with_columns(
            gpu_used_milli=((twice + whole) // (whole * 2)).cast(pl.Int64), gpu_readings=pl.col("readings").fill_null(0)
        )
    queue_s = pl.col("start_s") - pl.col("submit_s")
    return conform(
        frame.select(
            *("job_id", "user", "submit_s", "start_s", "end_s", "runtime_s", "outcome", "gpu_milli", "nodes"),
            account="vc",
            status_raw="status",
            queue_s=pl.when(queue_s >= 0).then(queue_s),
            size=pl.lit(1, dtype=pl.Int64),
            attempts=pl.col("started").fill_null(0),
            trace_end_s=pl.lit(_trace_end(log, tries), dtype=pl.Int64),
            file="file",
            wall_s=pl.col("end_s") - pl.col("start_s"),
            no_attempts=pl.col("tries").is_null(),
            **{flag: pl.col(flag).fill_null(False) for flag in ("missing_start", "missing_end")},
            negative_queue=(queue_s < 0).fill_null(False),
            negative_run=pl.col("negative_run").fill_null(False),
            dst_ambiguous=came_twice("submit_s", ZONE) | pl.col("dst_ambiguous").fill_null(False),
            zero_gpu=(pl.col("gpu_milli") == 0).fill_null(False),
            out_of_window=~pl.col("submit_s").is_between(*WINDOW_S, closed="left"),
            zone_contradicted=(pl.col("submit_s") < _manager_start_s()).fill_null(False),
            **{name: name for name in measured},
        ),
        JOB_COLUMNS,
    )


def attempts(source: Source) -> pl.DataFrame:
    """One row per attempt, by job and in sequence, with the columns of ATTEMPTS, these flags, and when it was queued.

    attempt counts from 0. It was queued from the submission on, or from the end of the attempt before it. As the trace
    gives attempts no status, only the last one to start has an outcome, which is the job's. node_list: its servers,
    with commas between. A negative delay or run time is blank and flagged.
    """
    queue_s = pl.col("start_s") - pl.col("queued_from_s")
    return source.records.tries.select(
        *("job_id", "attempt", "queued_from_s"),
        pl.when(queue_s >= 0).then(queue_s).alias("queue_s"),
        *("start_s", "end_s", "runtime_s"),
        pl.when("is_last").then("outcome").alias("outcome"),
        *("gpu_milli", "nodes"),
        _machines().list.join(",").alias("node_list"),
        (queue_s < 0).fill_null(False).alias("negative_queue"),
        *("negative_run", "dst_ambiguous"),
        job="row",
    )


def placements(source: Source) -> pl.LazyFrame:
    """One row per server of an attempt that started, by job, attempt and place in the log, with PLACEMENT_COLUMNS.

    gpu_milli is the GPUs it held on that server. outcome is the attempt's: known of the last one of a job only.
    infra_failure is blank, as the trace has no reasons.
    """
    parts = (
        source.records.tries.with_row_index("attempt_id")
        .filter(pl.col("start_s").is_not_null())
        .select("row", "attempt_id", "job_id", "attempt", "start_s", "end_s", "nodes", "is_last", "outcome", "detail")
        .explode("detail")
        .drop_nulls("detail")
        .unnest("detail")
        .group_by("row", "attempt_id", "job_id", "attempt", "machine", maintain_order=True)
        .agg(
            pl.col("start_s", "end_s", "nodes", "is_last", "outcome").first(),
            gpu_milli=pl.col("gpus").list.len().sum().cast(pl.Int64) * 1000,
        )
        .drop_nulls("machine")
    )
    return as_placements(
        parts.lazy().select(
            *("job_id", "attempt", "start_s", "end_s", "gpu_milli", "nodes", "attempt_id"),
            placement=pl.int_range(pl.len(), dtype=pl.Int64).over("row", "attempt"),
            node="machine",
            outcome=pl.when("is_last").then("outcome"),
        )
    )


def nodes(source: Source) -> pl.DataFrame:
    """One row per machine that any table names, m2 before m10, with NODE_COLUMNS and `listed_gpu_count`.

    gpu_count is one more than the highest index of a GPU that was ever measured or held on the machine: blank for a
    machine that is in neither the GPU telemetry nor the job log. The trace's list of machines has it wrong for most
    (issue 8 of the source); what it says is listed_gpu_count. mem_mib is the largest total ever measured.
    """
    raw, tries = source.raw, source.records.tries
    seen = [
        _held(tries).lazy().group_by("machine").agg(gpu_count=pl.col("gpu").max() + 1),
        # A server may be held without a GPU.
        tries.lazy()
        .select(pl.lit(0, pl.Int64).alias("gpu_count"), machine=_machines())
        .explode("machine")
        .drop_nulls(),
    ]
    if "gpu_util" in raw:
        highest = pl.max_horizontal(
            pl.when(pl.col(name) > 0).then(index + 1).otherwise(0) for index, name in enumerate(GPUS)
        )
        measured = raw["gpu_util"].group_by("machine").agg(pl.col(GPUS).count())
        seen.append(measured.select("machine", gpu_count=highest.cast(pl.Int64)))
    facts = []
    if "mem_util" in raw:
        facts.append(raw["mem_util"].group_by("machine").agg(mem_mib=pl.col("mem_total_kb").max() // 1024))
    if "cpu_util" in raw:
        facts.append(raw["cpu_util"].select("machine").unique())
    if "machine_list" in raw:
        facts.append(raw["machine_list"].select("machine", "listed_gpu_count"))
    blanks = pl.LazyFrame(schema={"machine": pl.String, "mem_mib": pl.Int64, "listed_gpu_count": pl.Int64})
    frame = (
        pl.concat([blanks, *seen, *facts], how="diagonal")
        .group_by("machine")
        .agg(pl.col("gpu_count", "mem_mib", "listed_gpu_count").max())
        .sort(pl.col("machine").str.len_chars(), "machine")
        .rename({"machine": "node"})
        .collect(engine="streaming")
    )
    return conform(frame.select("node", "gpu_count", "mem_mib", "listed_gpu_count"), NODE_COLUMNS)


FORMAT = Format(jobs=jobs, attempts=attempts, placements=placements, nodes=nodes, records=records)


def held_gpus(raw: Mapping[str, pl.LazyFrame]) -> pl.DataFrame:
    """One row per GPU of every attempt that has a start and an end after it.

    owner (the job's place in the log), attempt, machine, gpu (index), start_s, end_s, outcome and gpus (of the job; the
    GPUs of its first attempt), servers (of this attempt).
    """
    tries = _tries(_log(raw).collect())
    gpus = pl.col("gpu_milli").first().over("row") // 1000
    of_attempts = tries.select("attempt", "outcome", owner="row", gpus=gpus, servers="nodes")
    return (
        _held(tries)
        .filter(pl.col("start_s") < pl.col("end_s"))
        .join(of_attempts, on=["owner", "attempt"], how="left", maintain_order="left", validate="m:1")
    )


def zone_evidence(jobs: pl.DataFrame) -> pl.DataFrame:
    """Whether the log's times can be Pacific, and whether they could be UTC: one row per start of the resource manager.

    A job's id names the moment its resource manager (YARN) started, in milliseconds since 1970 UTC, and no job can be
    submitted before. Columns: manager_start_s, jobs, first_submit_after_s, first_submit_after_if_utc_s: seconds from
    that start to the earliest submission, its wall clock read as Pacific, or as UTC. One below 0 rules the zone out.
    """
    wall = pl.from_epoch("submit_s", time_unit="s").dt.convert_time_zone(ZONE).dt.replace_time_zone(None)
    return (
        jobs.select("submit_s", manager_start_s=_manager_start_s(), if_utc_s=wall.dt.epoch("s"))
        .drop_nulls()
        .group_by("manager_start_s")
        .agg(
            jobs=pl.len().cast(pl.Int64),
            first_submit_after_s=pl.col("submit_s").min() - pl.col("manager_start_s").first(),
            first_submit_after_if_utc_s=pl.col("if_utc_s").min() - pl.col("manager_start_s").first(),
        )
        .sort("manager_start_s")
    )


def _manager_start_s() -> pl.Expr:
    """When the resource manager of a job started, from the job's id; blank for an id of another form."""
    return pl.col("job_id").str.extract(r"^application_([0-9]{13})_", 1).cast(pl.Int64) // 1000


def _log(raw: Mapping[str, pl.LazyFrame]) -> pl.LazyFrame:
    """The job log with its outcomes, attempts as lists, and `row`: a job's place in it."""
    return (
        raw["job_log"]
        .select("file", "job_id", "status", "vc", "user", "submit_s", pl.col("attempts").str.json_decode(ATTEMPTS))
        .with_columns(outcome=outcome_of("status", OUTCOMES))
        .with_row_index("row")
    )


def _tries(log: pl.DataFrame) -> pl.DataFrame:
    """One row per attempt, by job and in sequence; is_last: the last one of its job to start."""
    gpus = pl.col("detail").list.eval(pl.element().struct.field("gpus").list.len()).list.sum()
    negative = (pl.col("end_s") < pl.col("start_s")).fill_null(False)
    started = pl.col("attempt").filter(pl.col("start_s").is_not_null())
    return (
        log.select("row", "job_id", "submit_s", "outcome", pl.col("attempts").alias("try"))
        .explode("try")
        .drop_nulls("try")
        .unnest("try")
        .with_columns(attempt=pl.int_range(pl.len(), dtype=pl.Int64).over("row"), negative_run=negative)
        .with_columns(
            is_last=(pl.col("attempt") == started.max().over("row")).fill_null(False),
            queued_from_s=pl.when(pl.col("attempt") == 0).then("submit_s").otherwise(pl.col("end_s").shift(1)),
            runtime_s=pl.when(~negative).then(pl.col("end_s") - pl.col("start_s")),
            gpu_milli=gpus.cast(pl.Int64) * 1000,
            nodes=_machines().list.len().cast(pl.Int64),
            dst_ambiguous=came_twice("start_s", ZONE) | came_twice("end_s", ZONE),
        )
    )


def _machines() -> pl.Expr:
    """The servers of an attempt, each once."""
    machines = pl.col("detail").list.eval(pl.element().struct.field("machine"))
    return machines.list.unique(maintain_order=True)


def _by_job(tries: pl.DataFrame) -> pl.DataFrame:
    """Per job with attempts, by `row`: times, run time, what its first attempt holds, and flags."""
    started = pl.col("start_s").is_not_null()
    last = pl.col("is_last")
    return (
        tries.group_by("row", maintain_order=True)
        .agg(
            pl.col("gpu_milli", "nodes").first(),
            pl.col("negative_run", "dst_ambiguous").any(),
            tries=pl.len(),
            started=started.sum().cast(pl.Int64),
            start_s=pl.col("start_s").drop_nulls().first(),
            end_s=pl.col("end_s").filter(last & ~pl.col("negative_run")).first(),
            has_end=(last & pl.col("runtime_s").is_not_null()).any(),
            runtime_s=pl.col("runtime_s").sum(),
            missing_start=(~started).any(),
            missing_end=(started & pl.col("end_s").is_null()).any(),
        )
        .with_columns(runtime_s=pl.when("has_end").then("runtime_s"))
    )


def _held(tries: pl.DataFrame) -> pl.DataFrame:
    """owner (the job's row), attempt, machine, gpu, start_s, end_s: every GPU of every attempt, once."""
    return (
        tries.select("row", "attempt", "start_s", "end_s", "detail")
        .explode("detail")
        .drop_nulls("detail")
        .unnest("detail")
        .explode("gpus")
        .drop_nulls("gpus")
        .unique(["row", "attempt", "machine", "gpus"], maintain_order=True)
        .select("machine", "start_s", "end_s", "attempt", owner="row", gpu="gpus")
    )


def _trace_end(log: pl.DataFrame, tries: pl.DataFrame) -> int | None:
    """The last moment the job log names."""
    last = [log["submit_s"].max(), tries["start_s"].max(), tries["end_s"].max()]
    return max((moment for moment in last if moment is not None), default=None)
