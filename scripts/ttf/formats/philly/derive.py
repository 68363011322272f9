"""Derive the tables of the Philly trace (Microsoft, 2017; Jeon et al., ATC'19), whose jobs have one or more attempts.

Only jobs have a status, attempts have none. The log's times are wall clock times without a zone, assumed to be Pacific.
The hour from 1 to 2 on 2017-11-05 occurred twice: its times are read as the earlier one, and may be an hour later.
"""

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl
from ttf.formats.format_declaration import load_declaration, resolve_outcomes
from ttf.formats.philly.gpu_use import GPUS, gpu_use
from ttf.formats.philly.read import ATTEMPTS, unpack_structs
from ttf.formats.protocol import Format, Source
from ttf.records.jobs import JOB_COLUMNS, NODE_COLUMNS, conform, conform_placements, is_in_repeated_hour, map_outcome

ZONE = load_declaration("philly")["zone"]
# The days with telemetry, about those of the paper: 2017-10-03 to before 2017-12-16, Pacific.
WINDOW_S = (1_507_014_000, 1_513_411_200)
# The machines of an attempt.
_MACHINES = pl.col("detail").list.eval(pl.element().struct.field("machine")).list.unique(maintain_order=True)


class Log(NamedTuple):
    """The unpacked job log: a row per job, with its index `row` in the log, and a row per attempt (_attempt_rows)."""

    jobs: pl.DataFrame
    tries: pl.DataFrame


def records(source: Source) -> Log:
    """Unpack the job log, whose attempts are JSON, once for all tables."""
    log = _read_log(source.raw, source.meaning).collect()
    return Log(log.drop("attempts"), _attempt_rows(log))


def jobs(source: Source) -> pl.DataFrame:
    """Return one row per job, in the log's order, with the columns of the common job record and some extras.

    wall_s: from the first start to the last end (run_time of the trace's notebook; gaps between attempts count).
    Flags, true or false: no_attempts; missing_start, missing_end: of any attempt; negative_queue: a start before the
    submission, with a blank delay; negative_run: an attempt's end before its start, with a blank run time;
    dst_ambiguous: a time in the hour that occurred twice; zero_gpu: the first attempt holds no GPU; out_of_window:
    submitted on a day without telemetry; zone_contradicted: submitted before the start of its resource manager, which
    its id names. If the table gpu_util is present, gpu_used_milli: mean use over the GPUs and minutes of its
    attempts, times its GPUs; gpu_readings: the number of readings in that mean.

    runtime_s is active time, the sum over attempts with a start and an end. It is blank if the last attempt to start
    has no end, because it still ran at the snapshot or its log was lost. The outcome follows from the status anyway.
    GPUs and nodes are those of attempt 0, and totals of the job: it is one instance (`size` 1).
    """
    raw, (log, tries) = source.raw, source.records
    frame = log.join(_summarise_by_job(tries), on="row", how="left", maintain_order="left")
    measured_columns = []
    if "gpu_util" in raw:
        measured_columns = ["gpu_used_milli", "gpu_readings"]
        use = gpu_use(_held_gpus(tries), raw["gpu_util"])
        frame = frame.join(use, left_on="row", right_on="owner", how="left", maintain_order="left")
        # Round to whole milli-GPUs, halves up; for the largest jobs the product exceeds 64 bits.
        numerator = pl.col("util_mpct_sum").cast(pl.Int128) * pl.col("gpu_milli") * 2
        denominator = pl.col("readings").cast(pl.Int128) * 100_000
        frame = frame.with_columns(
            gpu_used_milli=((numerator + denominator) // (denominator * 2)).cast(pl.Int64),
            gpu_readings=pl.col("readings").fill_null(0),
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
            trace_end_s=pl.lit(pl.concat([log["submit_s"], tries["start_s"], tries["end_s"]]).max(), dtype=pl.Int64),
            file="file",
            wall_s=pl.col("end_s") - pl.col("start_s"),
            no_attempts=pl.col("tries").is_null(),
            **{flag: pl.col(flag).fill_null(False) for flag in ("missing_start", "missing_end")},
            negative_queue=(queue_s < 0).fill_null(False),
            negative_run=pl.col("negative_run").fill_null(False),
            dst_ambiguous=is_in_repeated_hour("submit_s", ZONE) | pl.col("dst_ambiguous").fill_null(False),
            zero_gpu=(pl.col("gpu_milli") == 0).fill_null(False),
            out_of_window=~pl.col("submit_s").is_between(*WINDOW_S, closed="left"),
            zone_contradicted=(pl.col("submit_s") < _manager_start_s()).fill_null(False),
            **{name: name for name in measured_columns},
        ),
        JOB_COLUMNS,
    )


def attempts(source: Source) -> pl.DataFrame:
    """Return one row per attempt, by job and in sequence, with the columns of ATTEMPTS, flags, and queueing times.

    attempt counts from 0. An attempt is queued from the submission on, or from the end of the previous attempt. The
    trace has no status of attempts, so only the last one to start has an outcome, that of the job. node_list: its
    servers, joined by commas. A negative delay or run time is blank and flagged.
    """
    queue_s = pl.col("start_s") - pl.col("queued_from_s")
    return source.records.tries.select(
        *("job_id", "attempt", "queued_from_s"),
        pl.when(queue_s >= 0).then(queue_s).alias("queue_s"),
        *("start_s", "end_s", "runtime_s"),
        pl.when("is_last").then("outcome").alias("outcome"),
        *("gpu_milli", "nodes"),
        _MACHINES.list.join(",").alias("node_list"),
        (queue_s < 0).fill_null(False).alias("negative_queue"),
        *("negative_run", "dst_ambiguous"),
        job="row",
    )


def placements(source: Source) -> pl.LazyFrame:
    """Return one row per server of a started attempt, by job, attempt and order in the log, with PLACEMENT_COLUMNS.

    gpu_milli is the GPUs held on that server. outcome is that of the attempt, known for the last one of a job only.
    infra_failure is blank, because the trace has no reasons.
    """
    parts = (
        source.records.tries.with_row_index("attempt_id")
        .filter(pl.col("start_s").is_not_null())
        .select("row", "attempt_id", "job_id", "attempt", "start_s", "end_s", "nodes", "is_last", "outcome", "detail")
        .pipe(unpack_structs, "detail")
        .group_by("row", "attempt_id", "job_id", "attempt", "machine", maintain_order=True)
        .agg(
            pl.col("start_s", "end_s", "nodes", "is_last", "outcome").first(),
            gpu_milli=pl.col("gpus").list.len().sum().cast(pl.Int64) * 1000,
        )
        .drop_nulls("machine")
    )
    return conform_placements(
        parts.lazy().select(
            *("job_id", "attempt", "start_s", "end_s", "gpu_milli", "nodes", "attempt_id"),
            placement=pl.int_range(pl.len(), dtype=pl.Int64).over("row", "attempt"),
            node="machine",
            outcome=pl.when("is_last").then("outcome"),
        )
    )


def nodes(source: Source) -> pl.DataFrame:
    """Return one row per machine in any table, m2 before m10, with NODE_COLUMNS and `listed_gpu_count`.

    gpu_count is the highest index of a GPU measured or held on the machine, plus one; it is blank for a machine in
    neither the GPU telemetry nor the job log. The trace's list of machines is wrong for most machines (issue 8 of the
    source); listed_gpu_count has its value. mem_mib is the largest measured total.
    """
    raw, tries = source.raw, source.records.tries
    parts = [
        pl.LazyFrame(schema={"machine": pl.String, "mem_mib": pl.Int64, "listed_gpu_count": pl.Int64}),
        _held_gpus(tries).lazy().group_by("machine").agg(gpu_count=pl.col("gpu").max() + 1),
        # A job may hold a server without a GPU.
        tries.lazy().select(pl.lit(0, pl.Int64).alias("gpu_count"), machine=_MACHINES).explode("machine").drop_nulls(),
    ]
    if "gpu_util" in raw:
        highest = pl.max_horizontal(
            pl.when(pl.col(name) > 0).then(index + 1).otherwise(0) for index, name in enumerate(GPUS)
        )
        measured = raw["gpu_util"].group_by("machine").agg(pl.col(GPUS).count())
        parts.append(measured.select("machine", gpu_count=highest.cast(pl.Int64)))
    if "mem_util" in raw:
        parts.append(raw["mem_util"].group_by("machine").agg(mem_mib=pl.col("mem_total_kb").max() // 1024))
    if "cpu_util" in raw:
        parts.append(raw["cpu_util"].select("machine").unique())
    if "machine_list" in raw:
        parts.append(raw["machine_list"].select("machine", "listed_gpu_count"))
    frame = (
        pl.concat(parts, how="diagonal")
        .group_by("machine")
        .agg(pl.col("gpu_count", "mem_mib", "listed_gpu_count").max())
        .sort(pl.col("machine").str.len_chars(), "machine")
        .rename({"machine": "node"})
        .collect(engine="streaming")
    )
    return conform(frame.select("node", "gpu_count", "mem_mib", "listed_gpu_count"), NODE_COLUMNS)


FORMAT = Format(jobs=jobs, attempts=attempts, placements=placements, nodes=nodes, records=records)


def held_gpus(raw: Mapping[str, pl.LazyFrame], meaning: Mapping) -> pl.DataFrame:
    """Return one row per GPU of every attempt with a start and a later end. meaning: of `Source`.

    Columns: owner (index of the job in the log), attempt, machine, gpu (index), start_s, end_s, outcome and gpus of the
    job (GPUs of its first attempt), servers of this attempt.
    """
    tries = _attempt_rows(_read_log(raw, meaning).collect())
    gpus = pl.col("gpu_milli").first().over("row") // 1000
    attempt_columns = tries.select("attempt", "outcome", owner="row", gpus=gpus, servers="nodes")
    return (
        _held_gpus(tries)
        .filter(pl.col("start_s") < pl.col("end_s"))
        .join(attempt_columns, on=["owner", "attempt"], how="left", maintain_order="left", validate="m:1")
    )


def _manager_start_s() -> pl.Expr:
    """Parse the start of the resource manager from a job's id; blank for an id of another form."""
    return pl.col("job_id").str.extract(r"^application_([0-9]{13})_", 1).cast(pl.Int64) // 1000


def _read_log(raw: Mapping[str, pl.LazyFrame], meaning: Mapping) -> pl.LazyFrame:
    """Return the job log with `attempts` decoded from JSON, the outcome, and `row`: the index of the job."""
    return (
        raw["job_log"]
        .select("file", "job_id", "status", "vc", "user", "submit_s", pl.col("attempts").str.json_decode(ATTEMPTS))
        .with_columns(outcome=map_outcome("status", resolve_outcomes("philly", meaning)))
        .with_row_index("row")
    )


def _attempt_rows(log: pl.DataFrame) -> pl.DataFrame:
    """Return one row per attempt, by job and in sequence; is_last: the last attempt of its job to start."""
    gpus = pl.col("detail").list.eval(pl.element().struct.field("gpus").list.len()).list.sum()
    is_negative = (pl.col("end_s") < pl.col("start_s")).fill_null(False)
    started = pl.col("attempt").filter(pl.col("start_s").is_not_null())
    return (
        log.select("row", "job_id", "submit_s", "outcome", pl.col("attempts").alias("try"))
        .pipe(unpack_structs, "try")
        .with_columns(attempt=pl.int_range(pl.len(), dtype=pl.Int64).over("row"), negative_run=is_negative)
        .with_columns(
            is_last=(pl.col("attempt") == started.max().over("row")).fill_null(False),
            queued_from_s=pl.when(pl.col("attempt") == 0).then("submit_s").otherwise(pl.col("end_s").shift(1)),
            runtime_s=pl.when(~is_negative).then(pl.col("end_s") - pl.col("start_s")),
            gpu_milli=gpus.cast(pl.Int64) * 1000,
            nodes=_MACHINES.list.len().cast(pl.Int64),
            dst_ambiguous=is_in_repeated_hour("start_s", ZONE) | is_in_repeated_hour("end_s", ZONE),
        )
    )


def _summarise_by_job(tries: pl.DataFrame) -> pl.DataFrame:
    """Return, per job with attempts, by `row`: times, run time, GPUs and nodes of its first attempt, and flags."""
    started = pl.col("start_s").is_not_null()
    is_last = pl.col("is_last")
    return (
        tries.group_by("row", maintain_order=True)
        .agg(
            pl.col("gpu_milli", "nodes").first(),
            pl.col("negative_run", "dst_ambiguous").any(),
            tries=pl.len(),
            started=started.sum().cast(pl.Int64),
            start_s=pl.col("start_s").drop_nulls().first(),
            end_s=pl.col("end_s").filter(is_last & ~pl.col("negative_run")).first(),
            has_end=(is_last & pl.col("runtime_s").is_not_null()).any(),
            runtime_s=pl.col("runtime_s").sum(),
            missing_start=(~started).any(),
            missing_end=(started & pl.col("end_s").is_null()).any(),
        )
        .with_columns(runtime_s=pl.when("has_end").then("runtime_s"))
    )


def _held_gpus(tries: pl.DataFrame) -> pl.DataFrame:
    """Return owner (the job's row), attempt, machine, gpu, start_s, end_s: every GPU of every attempt, once."""
    return (
        tries.select("row", "attempt", "start_s", "end_s", "detail")
        .pipe(unpack_structs, "detail")
        .explode("gpus")
        .drop_nulls("gpus")
        .unique(["row", "attempt", "machine", "gpus"], maintain_order=True)
        .select("machine", "start_s", "end_s", "attempt", owner="row", gpu="gpus")
    )
