"""Derive jobs, attempts and placements from Slurm accounting, as `sacct -P` prints it.

A record is one run of a job, or a job that has not run. The code relies on these facts of Slurm 22.05, verified on a
real cluster (tests/fixtures/sacct/real.txt is its dump):
- With `-D` a requeued job has a record for each run. Submit of the next record is the end of the previous run.
- Elapsed excludes suspended time. A running job was last seen at Start + Elapsed + Suspended.
- Start and End are local times without a zone, so Elapsed counts if they differ. Elapsed is 0 for a job without a node.
- A job that changes size gets a new record with the first Start, so the two records overlap.
- If nodes fail to boot, a job that may be requeued is REQUEUED. Otherwise it ends as BOOT_FAIL, and Slurm refuses to
  requeue it: a later record of its id belongs to another job, unless Restarts says otherwise.
- A job that failed and was then requeued has REQUEUED instead of FAILED in its first record.
- A job cancelled before it started has Start None and no nodes; other versions write the same time for Start and End.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from polars import selectors as cs
from ttf.engine.storage.on_disk import scan_parquet
from ttf.engine.storage.tables import write_parquet
from ttf.formats.format_declaration import resolve_outcomes
from ttf.formats.protocol import Format, Source
from ttf.formats.sacct.hostlist import node_lists
from ttf.formats.sacct.read import (
    CONTINUED_STATES,
    INFRASTRUCTURE_STATES,
    OUTCOMES,
    RUN_OUTCOMES,
    UNSTARTED_END_STATES,
    cancelled_by,
    first_state_word,
)
from ttf.formats.sacct.tres import parse_mib, parse_tres
from ttf.formats.slurm_events.derive import FORMAT as NODE_EVENTS
from ttf.records.jobs import JOB_COLUMNS, conform, conform_placements, is_in_repeated_hour, map_outcome

# Whether a record is that of a job, not of one of its steps.
_IS_JOB_RECORD = ~pl.col("job_id_raw").str.contains(".", literal=True)
# A requeued job is submitted again at once. A longer gap means that Slurm reused the id.
MAX_REQUEUE_S = 24 * 3600
# Texts that are copied unchanged and have few different values in a dump.
_CATEGORIES = ["account", "partition", "qos", "exit_code", "derived_exit_code", "slurm_reason", "flags"]
_CATEGORIES += ["failed_node"]
_POSITION = ["file", "line"]
# Columns of a record that an earlier version of it cannot complete.
_VERSION_COLUMNS = ["file", "line", "cluster", "job_id_raw", "submit_s", "start_s", "end_s", "state", "cancelled_by"]
_VERSION_COLUMNS += ["elapsed_s", "suspended_s", "is_over", "is_waiting", "started", "progress"]
_KEY = ["cluster", "job_id_raw"]
# Columns that only serve to compute others.
_CONSUMED_COLUMNS = ["state_raw", "elapsed", "timelimit_min", "cpus", "mem"]
_CONSUMED_COLUMNS += ["tres_requested", "tres_allocated", "cpu_allocated_milli", "mem_allocated_mib"]
# The request according to ReqTRES, whatever was allocated.
_REQUESTED = ["gpu_requested_milli", "gpu_type_requested", "cpu_requested_milli", "mem_requested_mib"]
# Columns that a job takes from its first record, or from all of them, and not from its last.
_FIRST_RECORD_COLUMNS = [*_POSITION, "submit_s", "eligible_s", "cpu_requested_milli", "mem_requested_mib"]


def jobs(source: Source) -> pl.LazyFrame:
    """Return one row per job, in the order of its first record, with the columns of the common job record and extras.

    start_s is the first start, end_s the last end (if the job still runs, the moment it was last seen), queue_s the
    first start - the first submission, runtime_s the sum of the runs without suspended time, attempts the number of
    runs that started. gpu_milli, cpu_milli and mem_mib are the request of the whole job (size is 1), or its allocation
    if the dump has no request. A job between two runs (its last record is REQUEUED, or PENDING after it) is running,
    and censored at its last end. If no record followed within MAX_REQUEUE_S, the job has ended with an unknown outcome.
    A job that never started has no start, end or run time.

    Extras: job_id_shown (JobID: 123_4 of an array); cluster; partition; qos; exit_code, derived_exit_code,
    slurm_reason, flags as Slurm writes them; cancelled_by: user id; eligible_s; planned_s; timelimit_s; wall_s: end -
    start; suspended_s; gpu_allocated_milli: of the last run; gpu_requested_milli, gpu_type_requested,
    cpu_requested_milli, mem_requested_mib: ReqTRES of the first record, blank in a dump without it; infra_failures:
    runs whose state names infrastructure; negative_queue: it started before its submission, and the queueing delay is
    blank; dst_ambiguous: one of its times is in an hour that occurred twice in the zone of the registry (times:
    {zone}), and may be an hour later. A dump in epoch seconds has no such times and needs no zone.
    """
    last_seen = pl.lit(source.records.last_seen, dtype=pl.Int64)
    jobs = source.records.jobs
    # After such a gap, a new record of the id would belong to another job.
    has_ended = (pl.col("outcome") == "running") & pl.col("status_raw").is_in(CONTINUED_STATES)
    has_ended &= pl.col("end_s") < last_seen - MAX_REQUEUE_S
    outcome = pl.when(has_ended).then(pl.lit("unknown")).otherwise("outcome")
    return jobs.with_columns(outcome=outcome, trace_end_s=last_seen).drop("line")


def _summarise_jobs(records: pl.LazyFrame, zone: str, outcomes: Mapping[str, str]) -> pl.DataFrame:
    """Return the jobs of these records, with `line`; trace_end_s is missing, because it depends on all records."""
    last_records = records.filter(pl.col("job") != pl.col("job").shift(-1, fill_value=-1))
    run_sums = (
        records.filter("started")
        .group_by("job", maintain_order=True)
        .agg(
            start_s=pl.col("start_s").min(),
            end_s=_null_if_any_null("end_s", pl.col("end_s").max()),
            runtime_s=_null_if_any_null("runtime_s", pl.col("runtime_s").sum()),
            suspended_s=pl.col("suspended_s").sum(),
            runs=pl.col("is_new_run").sum().cast(pl.Int64),
            restarts=pl.col("restarts").max(),
            infra_failures=pl.col("state").is_in(INFRASTRUCTURE_STATES).sum().cast(pl.Int64),
            nodes=pl.col("nodes").last(),
            gpu_allocated_milli=pl.col("gpu_allocated_milli").last(),
        )
    )
    record_sums = records.group_by("job", maintain_order=True).agg(
        *(pl.col(name).first() for name in _POSITION),
        submit_s=pl.col("submit_s").min(),
        eligible_s=pl.col("eligible_s").min(),
        # Of the first record: a later one may have the new size of a resized job.
        **{f"first_{name}": pl.col(name).first() for name in _REQUESTED},
    )
    frame = (
        record_sums.join(last_records.drop(_FIRST_RECORD_COLUMNS), on="job", how="left", maintain_order="left")
        .drop("start_s", "end_s", "runtime_s", "suspended_s", "restarts", "nodes", "gpu_allocated_milli")
        .join(run_sums, on="job", how="left", maintain_order="left")
        .sort(_POSITION)
    )
    has_run = pl.col("start_s").is_not_null()
    outcome = map_outcome("state", outcomes)
    queue_s = pl.col("start_s") - pl.col("submit_s")
    return conform(
        frame.select(
            *("job_id", "user", "account", "submit_s", "start_s", "end_s", "runtime_s", "cpu_milli", "mem_mib"),
            *("nodes", *_POSITION, "job_id_shown"),
            pl.col("cluster").alias("slurm_cluster"),
            pl.col("partition", "qos", "exit_code", "derived_exit_code", "slurm_reason", "flags").cast(pl.String),
            *("cancelled_by", "eligible_s", "planned_s", "timelimit_s"),
            (pl.col("end_s") - pl.col("start_s")).alias("wall_s"),
            *("suspended_s", "gpu_allocated_milli"),
            *(pl.col(f"first_{name}").alias(name) for name in _REQUESTED),
            pl.col("infra_failures").fill_null(0),
            (queue_s < 0).fill_null(False).alias("negative_queue"),
            _is_any_in_repeated_hour(zone, "submit_s", "start_s", "end_s").alias("dst_ambiguous"),
            queue_s=pl.when(queue_s >= 0).then(queue_s),
            # A job that waits for its next run is running; a job without a start is waiting.
            outcome=pl.when(~outcome.is_in(["running", "waiting"]))
            .then(outcome)
            .when(~has_run)
            .then(pl.lit("waiting"))
            .otherwise(pl.lit("running")),
            status_raw="state",
            gpu_type=pl.coalesce("gpu_type_allocated", "gpu_type_requested"),
            gpu_milli=pl.coalesce(
                pl.when(pl.col("gpu_requested_milli") > 0).then("gpu_requested_milli"),
                "gpu_allocated_milli",
                "gpu_requested_milli",
            ),
            size=pl.lit(1, dtype=pl.Int64),
            # A dump without -D has the last run only, but newer versions state the number of restarts.
            attempts=pl.max_horizontal("runs", pl.col("restarts") + 1),
        ),
        JOB_COLUMNS,
    ).collect()


def attempts(source: Source) -> pl.LazyFrame:
    """Return one row per run, in the order of jobs and then of time, with the columns of ATTEMPTS and extras.

    attempt counts from 0. runtime_s excludes suspended time. outcome: the end of this run; a requeued or preempted run
    is `cancelled`, because the scheduler ended it. infra_failure: NODE_FAIL or BOOT_FAIL, until
    `ttf.records.infra.add_infra_failure` applies the rules and health events of the trace. gpu_milli is the
    allocation of the run, or its request if the dump has no allocation. A run that changed size is one run with the
    nodes and GPUs at its end. Extras: suspended_s; eligible_s, the later one of its submission and of when it became
    eligible; exit_code, slurm_reason, failed_node; dst_ambiguous: as for jobs. Raises StudyError if all node lists
    together would not fit into memory.
    """
    return source.records.attempts.drop(_POSITION)


def _summarise_attempts(records: pl.DataFrame, zone: str, outcomes: Mapping[str, str]) -> pl.DataFrame:
    """Return the runs of these records, with the position of the first record of their job."""
    job_rows = records.group_by("job", maintain_order=True).agg(*(pl.col(name).first() for name in _POSITION))
    last_values = pl.col(
        "job_id", "job", "state", "gpu_allocated_milli", "gpu_requested_milli", "nodes", "nodes_text"
    ).last()
    runs = (
        records.filter("started")
        .rename({"node_list": "nodes_text"})
        .group_by("run", maintain_order=True)
        .agg(
            last_values,
            pl.col("exit_code", "slurm_reason", "failed_node").last(),
            start_s=pl.col("start_s").min(),
            end_s=_null_if_any_null("end_s", pl.col("end_s").max()),
            runtime_s=_null_if_any_null("runtime_s", pl.col("runtime_s").sum()),
            suspended_s=pl.col("suspended_s").sum(),
            eligible_s=pl.max_horizontal("submit_s", "eligible_s").first(),
        )
        .with_columns(attempt=pl.col("run") - pl.col("run").first().over("job"))
        .join(job_rows, on="job", how="left", maintain_order="left")
        .sort(*_POSITION, "attempt")
    )
    runs = runs.with_columns(node_lists(runs["nodes_text"])["node_list"])
    return runs.select(
        *(*_POSITION, "job_id", "attempt", "start_s", "end_s", "runtime_s", "state"),
        map_outcome("state", {**outcomes, **RUN_OUTCOMES}).alias("outcome"),
        pl.col("state").is_in(INFRASTRUCTURE_STATES).alias("infra_failure"),
        pl.coalesce("gpu_allocated_milli", "gpu_requested_milli").alias("gpu_milli"),
        pl.coalesce("nodes", pl.col("node_list").list.len().cast(pl.Int64)).alias("nodes"),
        *("node_list", "suspended_s", "eligible_s"),
        pl.col("exit_code", "slurm_reason", "failed_node").cast(pl.String),
        _is_any_in_repeated_hour(zone, "start_s", "end_s").alias("dst_ambiguous"),
    )


def _is_any_in_repeated_hour(zone: str, *columns: str) -> pl.Expr:
    return pl.any_horizontal(is_in_repeated_hour(column, zone) for column in columns)


def placements(source: Source) -> pl.LazyFrame:
    """Return one row per node of a run, in the order of runs and of their node lists, with PLACEMENT_COLUMNS.

    A run with a blank node list has no placement. gpu_milli is known for a run on one node only, because Slurm's
    accounting does not state the GPUs per node. If infrastructure ended a run on several nodes, infra_failure is true
    for the node that the record names as failed and false for the others, or blank for all if it names none of them.
    """
    # Row-wise expressions rather than a window over all rows, so that nothing is held in memory.
    node, is_single = pl.col("node_list").list.unique(maintain_order=True).list.drop_nulls(), pl.col("parts") == 1
    runs = source.attempts.with_row_index("attempt_id").with_columns(node=node, parts=node.list.len())
    runs = runs.filter(pl.col("parts") > 0).with_columns(
        placement=pl.int_ranges(pl.col("parts").cast(pl.Int64)),
        gpu_milli=pl.when(is_single).then("gpu_milli"),
        names_failed_node=pl.col("node").list.contains(pl.col("failed_node")).fill_null(False),
    )
    is_failed_node = (pl.col("failed_node") == pl.col("node")).fill_null(False)
    infra_failure = pl.when(~pl.col("infra_failure") | is_single).then("infra_failure")
    return conform_placements(
        runs.drop("node_list")
        .explode("node", "placement")
        .select(
            *("job_id", "attempt", "node", "start_s", "end_s", "runtime_s", "outcome", "nodes", "attempt_id"),
            *("placement", "gpu_milli"),
            infra_failure=infra_failure.when("names_failed_node").then(is_failed_node),
        )
    )


@dataclass(frozen=True)
class Records:
    """The source of all tables, in the order of jobs: jobs with `line`, attempts with _POSITION and `job`.

    last_seen: the last moment in any record, or None.
    """

    jobs: pl.LazyFrame
    attempts: pl.LazyFrame
    last_seen: int | None


def records(source: Source) -> Records:
    """Derive the jobs and the runs from the records, dump by dump.

    Each dump contributes the ids that no earlier dump has, with their records in later dumps: of a job on the border of
    two weeks, a requeued job, or a reused id. Jobs with different ids do not affect each other.
    """
    raw = source.raw["record"]
    summary, zone = _summarise_dumps(raw.filter(_IS_JOB_RECORD)), source.meaning.get("times", {}).get("zone", "UTC")
    outcomes = resolve_outcomes("sacct", source.meaning)
    scans_by_name: dict[str, list[pl.LazyFrame]] = {"jobs": [], "attempts": []}
    moved_rows: dict[str, defaultdict[int, list[pl.DataFrame]]] = {name: defaultdict(list) for name in scans_by_name}
    last_moments, n_jobs = [], 0
    for number, rows in _read_by_first_dump(raw):
        dump_records = _prepare_records(rows, summary)
        last_moments.append(dump_records.select(pl.max_horizontal("submit_s", "start_s", "end_s").max()).item())
        tables = {
            "jobs": _summarise_jobs(dump_records.lazy(), zone, outcomes),
            "attempts": _summarise_attempts(dump_records, zone, outcomes),
        }
        for name, table in tables.items():
            # A reused id may belong to a job whose first record is in a later dump.
            is_in_dump, moved_in = pl.col("file") == number, moved_rows[name].pop(number, [])
            for (later_dump,), later_rows in table.filter(~is_in_dump).group_by("file"):
                moved_rows[name][later_dump].append(later_rows)
            dump_rows = pl.concat([table.filter(is_in_dump), *moved_in])
            tables[name] = dump_rows.sort(_POSITION, maintain_order=True) if moved_in else dump_rows
        rows = tables["jobs"].select(_POSITION).with_row_index("job", n_jobs)
        n_jobs += rows.height
        tables["attempts"] = tables["attempts"].join(
            rows, on=_POSITION, how="left", maintain_order="left", validate="m:1"
        )
        for name, table in tables.items():
            scans_by_name[name].append(_spill_table(table, source.spilled, f"{name}-{number}"))
    scans = {name: pl.concat(dump_scans) for name, dump_scans in scans_by_name.items()}
    return Records(**scans, last_seen=max((moment for moment in last_moments if moment is not None), default=None))


def _spill_table(table: pl.DataFrame, folder: Path | None, name: str) -> pl.LazyFrame:
    """Write the table to the folder and return a scan of it; without a folder, keep it in memory."""
    if folder is None:
        return table.lazy()
    write_parquet(table, folder / f"{name}.parquet")
    return scan_parquet(folder / f"{name}.parquet")


def _read_by_first_dump(raw: pl.LazyFrame) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield (number of the dump, all records of the ids that first appear in it), dump by dump and without steps."""
    heights = raw.group_by("file").len().sort("file").collect(engine="streaming")
    # Two ids with the same hash are processed together, without an effect on the result.
    raw = raw.with_columns(id=pl.col("job_id_raw").hash(0))
    dumps = raw.group_by("id").agg(owner=pl.col("file").min(), last=pl.col("file").max())
    owners = dumps.filter(pl.col("last") > pl.col("owner")).select("id", "owner").collect(engine="streaming")
    later_records = raw.filter(_IS_JOB_RECORD).join(owners.lazy(), on="id").filter(pl.col("file") > pl.col("owner"))
    pending = later_records.collect(engine="streaming").partition_by("owner", as_dict=True, include_key=False)
    offset = 0
    for number, height in heights.iter_rows():
        rows = raw.slice(offset, height).filter(_IS_JOB_RECORD).collect()
        rows = rows.join(owners, on="id", how="left", maintain_order="left")
        own_records = rows.filter((pl.col("owner") >= number).fill_null(True)).drop("owner")
        yield number, pl.concat([own_records, pending.pop((number,), own_records.clear())]).drop("id")
        offset += height


def _summarise_dumps(raw: pl.LazyFrame) -> dict[str, Any]:
    """Return nodes (whether any dump names nodes), clusters (their number) and cluster (the name of the first one)."""
    cluster = pl.col("cluster").drop_nulls()
    n_values = pl.col("node_list").count() + pl.col("tres_allocated").count()
    columns = {"nodes": n_values > 0, "clusters": cluster.n_unique(), "cluster": cluster.first()}
    return raw.select(**columns).collect(engine="streaming").row(0, named=True)


def _prepare_records(raw: pl.DataFrame, summary: Mapping[str, Any]) -> pl.DataFrame:
    """Return the records of jobs, by job and time, each with its job and its run.

    Steps (123.batch) are dropped, because the record of their job is complete. A record in several dumps, such as of a
    job on the border of two months, counts once, in its last version. Additional columns: state; start_s and end_s of a
    run (blank if it has not started; the last moment seen if it still runs); started; runtime_s; suspended_s; job
    (ascending number), job_id; run (ascending number), is_new_run; the resources as numbers.
    """
    records = _keep_last_version(_parse_records(raw.lazy(), summary).collect(engine="streaming"))
    previous = pl.col("state", "user", "end_s", "started").shift(1).name.prefix("previous_")
    records = records.with_columns(previous, is_same_id=_equals_neighbour([*_KEY], shift=1))
    is_continued = (
        pl.col("is_same_id")
        & (pl.col("previous_state").is_in(CONTINUED_STATES) | (pl.col("restarts") > 0)).fill_null(False)
        & (pl.col("user") == pl.col("previous_user")).fill_null(True)
        & (pl.col("submit_s") - pl.col("previous_end_s") <= MAX_REQUEUE_S).fill_null(True)
    )
    records = records.with_columns(is_continued=is_continued)
    # The record of a resized job covers the previous record as well.
    is_same_run = pl.col("is_continued") & pl.col("started") & pl.col("previous_started")
    is_same_run &= pl.col("previous_state") == "RESIZING"
    run_start_s = pl.when(is_same_run).then(pl.max_horizontal("start_s", "previous_end_s")).otherwise("start_s")
    run_s = pl.coalesce("elapsed_s", pl.col("end_s") - pl.col("start_s") - pl.col("suspended_s"))
    records = records.with_columns(
        job=(~pl.col("is_continued")).cum_sum().cast(pl.Int64).set_sorted(),
        is_new_run=pl.col("started") & ~is_same_run,
        runtime_s=(run_s - (run_start_s - pl.col("start_s"))).clip(lower_bound=0),
    )
    # Number the jobs that share an id.
    first_of_id = pl.when(~pl.col("is_same_id")).then("job").forward_fill()
    name = [pl.col("cluster") + ":"] if summary["clusters"] > 1 else []
    n = pl.col("job") - first_of_id + 1
    return records.with_columns(
        run=pl.col("is_new_run").cum_sum().cast(pl.Int64),
        job_id=pl.concat_str(*name, "job_id_raw", pl.when(n > 1).then(pl.format("@{}", n)), ignore_nulls=True),
    ).drop(cs.starts_with("previous_"), "is_same_id", "is_continued", "elapsed_s")


_JOB_TABLES = Format(jobs, attempts, placements, records=records, jobs_on_disk=True, placements_of_attempts=True)
FORMAT = replace(_JOB_TABLES, outage_records=NODE_EVENTS.outage_records, exposure=NODE_EVENTS.exposure)


def _parse_records(records: pl.LazyFrame, summary: Mapping[str, Any]) -> pl.LazyFrame:
    """Add state, cancelled_by, is_over, is_waiting, started, timelimit_s and numeric resources; fill in end_s."""
    # If all dumps leave a column blank, a blank has no meaning. Some dumps omit the name of the cluster.
    outcome = map_outcome("state", OUTCOMES)
    has_no_node = pl.col("node_list").is_null() & pl.col("tres_allocated").is_null()
    has_no_node &= pl.lit(summary["nodes"]) | pl.col("state").is_in(UNSTARTED_END_STATES)
    has_not_run = (pl.col("end_s") <= pl.col("start_s")) | (pl.col("elapsed_s") == 0)
    return (
        records.with_columns(
            *_resources(records, "tres_requested", "requested"),
            *_resources(records, "tres_allocated", "allocated"),
            pl.col(_CATEGORIES).cast(pl.Categorical),
            cluster=pl.lit(summary["cluster"], pl.String) if summary["clusters"] == 1 else "cluster",
            state=first_state_word(pl.col("state_raw")),
            cancelled_by=cancelled_by(pl.col("state_raw")),
            suspended_s=pl.col("suspended_s").fill_null(0),
            elapsed_s=pl.coalesce("elapsed_s", "elapsed"),
            timelimit_s=pl.col("timelimit_min") * 60,
        )
        .with_columns(
            is_over=~outcome.is_in(["running", "waiting"])
            | (pl.col("state").is_in(CONTINUED_STATES) & pl.col("end_s").is_not_null()),
            is_waiting=outcome == "waiting",
        )
        .with_columns(
            started=pl.col("start_s").is_not_null()
            & ~pl.col("is_waiting")
            & ~(has_no_node & has_not_run.fill_null(False)),
            # Some dumps have an Elapsed of 0 in every row, and some count the suspended time in it.
            elapsed_s=pl.when(
                (pl.col("elapsed_s") > 0) | ~(pl.col("is_over") | pl.col("is_waiting")),
                (pl.col("elapsed_s") != pl.col("end_s") - pl.col("start_s")).fill_null(True),
            ).then("elapsed_s"),
        )
        .with_columns(
            # Of a run during which the clocks were set back, the end is later than written.
            end_s=pl.max_horizontal("end_s", pl.col("start_s") + pl.col("elapsed_s") + pl.col("suspended_s")),
            cpu_milli=pl.coalesce("cpu_requested_milli", "cpu_allocated_milli", pl.col("cpus") * 1000),
            mem_mib=pl.coalesce("mem_requested_mib", "mem_allocated_mib", _requested_memory_mib()),
        )
        .with_columns(start_s=pl.when("started").then("start_s"))
        .drop(_CONSUMED_COLUMNS)
    )


def _resources(records: pl.LazyFrame, column: str, kind: str) -> list[pl.Expr]:
    """Return the resources in the texts of a column (gpu_{kind}_milli ...); each distinct text is parsed once."""
    texts = records.select(pl.col(column).drop_nulls().unique()).collect(engine="streaming").to_series()
    names = {"gpu_milli": f"gpu_{kind}_milli", "gpu_type": f"gpu_type_{kind}"}
    names |= {"cpu_milli": f"cpu_{kind}_milli", "mem_mib": f"mem_{kind}_mib"}
    table = parse_tres(texts)
    return [
        pl.col(column).replace_strict(texts, table[name], default=None, return_dtype=table[name].dtype).alias(alias)
        for name, alias in names.items()
    ]


def _keep_last_version(records: pl.DataFrame) -> pl.DataFrame:
    """Sort the records by id and time, and drop earlier versions of the same record.

    Id, submission and start identify a record; its most advanced version counts. A job that waited in one dump has a
    start in a later dump.
    """
    record_key = [*_KEY, "submit_s", "start_s"]
    progress = pl.when("is_waiting").then(0).when(~pl.col("is_over")).then(1).otherwise(2)
    records = records.with_columns(progress=progress).sort(
        *record_key, "progress", "end_s", *_POSITION, nulls_last=[False, False, False, True, False, False, False, False]
    )
    is_seen_again = _equals_neighbour(record_key, shift=-1)
    if records.select(is_seen_again.any()).item():
        # An earlier version may complete a later one, for example in a column that the later dump lacks.
        other_columns = [name for name in records.columns if name not in _VERSION_COLUMNS]
        row, is_first = pl.int_range(pl.len()), ~_equals_neighbour(record_key, shift=1)
        first = pl.when(is_first).then(row).forward_fill()
        records = records.with_columns(
            pl.when(pl.when(pl.col(name).is_not_null()).then(row).forward_fill() >= first)
            .then(pl.col(name).forward_fill())
            .alias(name)
            for name in other_columns
        )
    records = records.filter(~is_seen_again)
    return records.filter(~(pl.col("is_waiting") & _equals_neighbour([*_KEY, "submit_s"], shift=1))).drop("progress")


def _equals_neighbour(columns: list[str], shift: int) -> pl.Expr:
    """Return whether these columns equal those of the previous row (shift 1) or the next row (shift -1)."""
    row = pl.int_range(pl.len())
    has_neighbour = row > 0 if shift > 0 else row < pl.len() - 1
    return has_neighbour & pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(shift)) for name in columns)


def _null_if_any_null(column: str, value: pl.Expr) -> pl.Expr:
    return pl.when(pl.col(column).null_count() == 0).then(value)


def _requested_memory_mib() -> pl.Expr:
    """Parse ReqMem: memory of the whole job or, in older versions, per core (4Gc) or per node (4Gn)."""
    mem = pl.col("mem").str.strip_chars()
    factor = pl.when(mem.str.ends_with("c")).then("cpus").when(mem.str.ends_with("n")).then("nodes").otherwise(1)
    mib = parse_mib(mem) * factor
    return pl.when(mib > 0).then(mib)
