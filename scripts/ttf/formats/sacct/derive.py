"""One's own Slurm accounting, as `sacct -P` prints it: a record is one run of a job, or a job that has not run.

Facts of Slurm 22.05 this rests on (tried on a real one; tests/fixtures/sacct/real.txt is its dump):
- With `-D` a requeued job has a record for each run. Submit of the next one is when the run before was ended.
- Elapsed leaves suspended time out. A run still going on was last seen at Start + Elapsed + Suspended.
- A job that changes size gets a new record, which keeps the first Start: the two overlap.
- Where nodes fail to boot, a job that may be requeued is REQUEUED. BOOT_FAIL is the end of one that may not be, and
  Slurm refuses to requeue it afterwards: a later record of its id is another job's, unless Restarts says otherwise.
- A job that failed and is then requeued is REQUEUED, and no longer FAILED, in its first record.
- A job cancelled before it started has Start None and no nodes; other versions write one time for Start and End.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from ttf.engine.storage.on_disk import scan_parquet
from ttf.engine.storage.tables import write_parquet
from ttf.formats.protocol import Source
from ttf.formats.sacct.hostlist import node_lists
from ttf.formats.sacct.read import (
    CONTINUED,
    ENDED_UNSTARTED,
    INFRASTRUCTURE,
    OUTCOMES,
    OUTCOMES_OF_A_RUN,
    cancelled_by,
    state_word,
)
from ttf.formats.sacct.tres import mebibytes, tres
from ttf.formats.slurm_events.derive import FORMAT as NODE_EVENTS
from ttf.records.jobs import JOB_COLUMNS, as_placements, came_twice, conform, outcome_of

# A requeued job is submitted again at once. A longer gap means that the id was given out anew.
LONGEST_REQUEUE_S = 24 * 3600
# Texts that are handed on as they stand, of which a dump has few: a number in memory stands for each.
_FEW_TEXTS = ["account", "partition", "qos", "exit_code", "derived_exit_code", "slurm_reason", "flags"]
_FEW_TEXTS += ["failed_node"]
_PLACE = ["file", "line"]
# Columns of a record that an earlier look at it cannot add to.
_OF_THIS_LOOK = ["file", "line", "cluster", "job_id_raw", "submit_s", "start_s", "end_s", "state", "cancelled_by"]
_OF_THIS_LOOK += ["suspended_s", "is_over", "is_waiting", "started", "progress"]
_KEY = ["cluster", "job_id_raw"]
# Columns of which others are made.
_TAKEN_APART = ["state_raw", "elapsed_s", "elapsed", "timelimit_min", "cpus", "mem"]
_TAKEN_APART += ["tres_requested", "tres_allocated", "cpu_allocated_milli", "mem_allocated_mib"]
# What ReqTRES says: the request alone, whatever was allocated.
_REQUESTED = ["gpu_requested_milli", "gpu_type_requested", "cpu_requested_milli", "mem_requested_mib"]
# What a job has of its first record, or of all of them, and not of its last.
_OF_FIRST = [*_PLACE, "submit_s", "eligible_s", "cpu_requested_milli", "mem_requested_mib"]


def jobs(source: Source) -> pl.LazyFrame:
    """One row per job, in the order of its first record, with the columns of the common job record and extras.

    start_s is the first start, end_s the last end (of a job still running: when it was last seen), queue_s the first
    start - the first submission, runtime_s the sum of the runs without suspended time, attempts the number of runs
    that started. gpu_milli, cpu_milli and mem_mib are what the whole job asked for (size is 1); where the dump does
    not say, what it got. A job between two runs (its last record is PREEMPTED, or PENDING after REQUEUED) is running,
    and censored at its last end; where no other record came within LONGEST_REQUEUE_S, it has ended, with an unknown
    result. One that never started has no start, end or run time.

    Extras: job_id_shown (JobID: 123_4 of an array), cluster, partition, qos, state in words of Slurm's: exit_code,
    derived_exit_code, slurm_reason, flags; cancelled_by: user id; eligible_s; planned_s; timelimit_s; wall_s: end -
    start; suspended_s; gpu_allocated_milli: of the last run; gpu_requested_milli, gpu_type_requested,
    cpu_requested_milli, mem_requested_mib: what its first record says in ReqTRES, blank in a dump without;
    infra_failures: runs whose state names infrastructure; negative_queue: it started before it was submitted (the
    queueing delay is blank then); dst_ambiguous: one of its times is in an hour that the clocks of the zone that the
    registry names (times: {zone}) showed twice, and may be an hour later (a dump in epoch seconds has none such, and
    needs no zone).
    """
    last_seen = pl.lit(source.records.last_seen, dtype=pl.Int64)
    found = source.records.jobs
    # Between two runs for so long: a record that came now would be another job's, of the same id.
    comes_no_more = (pl.col("outcome") == "running") & pl.col("status_raw").is_in(CONTINUED)
    comes_no_more &= pl.col("end_s") < last_seen - LONGEST_REQUEUE_S
    outcome = pl.when(comes_no_more).then(pl.lit("unknown")).otherwise("outcome")
    return found.with_columns(outcome=outcome, trace_end_s=last_seen).drop("line")


def _jobs(records: pl.DataFrame, zone: str) -> pl.DataFrame:
    """The jobs of some records, with `line` and without trace_end_s: as far as no other job plays a part."""
    records = records.lazy()
    last = records.filter(pl.col("job") != pl.col("job").shift(-1, fill_value=-1))
    of_runs = (
        records.filter("started")
        .group_by("job", maintain_order=True)
        .agg(
            start_s=pl.col("start_s").min(),
            end_s=_unless_unknown("end_s", pl.col("end_s").max()),
            runtime_s=_unless_unknown("runtime_s", pl.col("runtime_s").sum()),
            suspended_s=pl.col("suspended_s").sum(),
            runs=pl.col("is_new_run").sum().cast(pl.Int64),
            restarts=pl.col("restarts").max(),
            infra_failures=pl.col("state").is_in(INFRASTRUCTURE).sum().cast(pl.Int64),
            nodes=pl.col("nodes").last(),
            gpu_allocated_milli=pl.col("gpu_allocated_milli").last(),
        )
    )
    of_records = records.group_by("job", maintain_order=True).agg(
        *(pl.col(name).first() for name in _PLACE),
        submit_s=pl.col("submit_s").min(),
        eligible_s=pl.col("eligible_s").min(),
        # Of the first record: a later one may tell what the job was resized to.
        **{f"first_{name}": pl.col(name).first() for name in _REQUESTED},
    )
    frame = (
        of_records.join(last.drop(_OF_FIRST), on="job", how="left", maintain_order="left")
        .drop("start_s", "end_s", "runtime_s", "suspended_s", "restarts", "nodes", "gpu_allocated_milli")
        .join(of_runs, on="job", how="left", maintain_order="left")
        .sort(_PLACE)
    )
    has_run = pl.col("start_s").is_not_null()
    outcome = outcome_of("state", OUTCOMES)
    queue_s = pl.col("start_s") - pl.col("submit_s")
    return conform(
        frame.select(
            *("job_id", "user", "account", "submit_s", "start_s", "end_s", "runtime_s", "cpu_milli", "mem_mib"),
            *("nodes", *_PLACE, "job_id_shown"),
            pl.col("cluster").alias("slurm_cluster"),
            _text("partition", "qos", "exit_code", "derived_exit_code", "slurm_reason", "flags"),
            *("cancelled_by", "eligible_s", "planned_s", "timelimit_s"),
            (pl.col("end_s") - pl.col("start_s")).alias("wall_s"),
            *("suspended_s", "gpu_allocated_milli"),
            *(pl.col(f"first_{name}").alias(name) for name in _REQUESTED),
            pl.col("infra_failures").fill_null(0),
            (queue_s < 0).fill_null(False).alias("negative_queue"),
            _ambiguous(zone, "submit_s", "start_s", "end_s").alias("dst_ambiguous"),
            queue_s=pl.when(queue_s >= 0).then(queue_s),
            # Waiting for the next run is no waiting to start, and a run without a start is none.
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
            # A dump without -D has the last run only, and newer versions say how many there were before it.
            attempts=pl.max_horizontal("runs", pl.col("restarts") + 1),
        ),
        JOB_COLUMNS,
    ).collect()


def attempts(source: Source) -> pl.LazyFrame:
    """One row per run of a job, in the order of jobs and then of time, with the columns of ATTEMPTS and extras.

    attempt counts from 0. runtime_s is without suspended time. outcome: what ended this run; a run that was requeued
    or preempted is `cancelled`, as the scheduler ended it. infra_failure: NODE_FAIL or BOOT_FAIL, until
    `ttf.records.infra.with_infra_failures` says it by the rules and health events of the trace. gpu_milli is what
    the run got (or asked for, where the dump does not say). A run that changed size is one run with the nodes and GPUs
    it had at its end. Extras: suspended_s, exit_code, slurm_reason, failed_node; dst_ambiguous: as of jobs.
    Raises StudyError where all node lists together would not fit into memory.
    """
    return source.records.attempts.drop(_PLACE)


def _attempts(records: pl.DataFrame, zone: str) -> pl.DataFrame:
    """The runs of some records, with the place of their job's first one."""
    order = records.group_by("job", maintain_order=True).agg(*(pl.col(name).first() for name in _PLACE))
    last = pl.col("job_id", "job", "state", "gpu_allocated_milli", "gpu_requested_milli", "nodes", "nodes_text").last()
    runs = (
        records.filter("started")
        .rename({"node_list": "nodes_text"})
        .group_by("run", maintain_order=True)
        .agg(
            last,
            pl.col("exit_code", "slurm_reason", "failed_node").last(),
            start_s=pl.col("start_s").min(),
            end_s=_unless_unknown("end_s", pl.col("end_s").max()),
            runtime_s=_unless_unknown("runtime_s", pl.col("runtime_s").sum()),
            suspended_s=pl.col("suspended_s").sum(),
        )
        .with_columns(attempt=pl.col("run") - pl.col("run").first().over("job"))
        .join(order, on="job", how="left", maintain_order="left")
        .sort(*_PLACE, "attempt")
    )
    runs = runs.with_columns(node_lists(runs["nodes_text"])["node_list"])
    return runs.select(
        *(*_PLACE, "job_id", "attempt", "start_s", "end_s", "runtime_s", "state"),
        outcome_of("state", OUTCOMES_OF_A_RUN).alias("outcome"),
        pl.col("state").is_in(INFRASTRUCTURE).alias("infra_failure"),
        pl.coalesce("gpu_allocated_milli", "gpu_requested_milli").alias("gpu_milli"),
        pl.coalesce("nodes", pl.col("node_list").list.len().cast(pl.Int64)).alias("nodes"),
        *("node_list", "suspended_s"),
        _text("exit_code", "slurm_reason", "failed_node"),
        _ambiguous(zone, "start_s", "end_s").alias("dst_ambiguous"),
    )


def _ambiguous(zone: str, *columns: str) -> pl.Expr:
    """Whether any of these times is in an hour that came twice."""
    return pl.any_horizontal(came_twice(column, zone) for column in columns)


def placements(source: Source) -> pl.LazyFrame:
    """One row per node of a run, in the order of runs and of their node lists, with PLACEMENT_COLUMNS.

    A run whose node list is blank has none. gpu_milli is known of a run on one node only, as Slurm's accounting does
    not say what lay where. Of a run on several nodes that infrastructure ended, infra_failure is true for the node that
    the record names as failed and false for the others; blank for all where it names none of them.
    """
    # What a window over all rows would say is known of each run: nothing is held.
    node, on_one = pl.col("node_list").list.unique(maintain_order=True).list.drop_nulls(), pl.col("parts") == 1
    runs = source.attempts.with_row_index("attempt_id").with_columns(node=node, parts=node.list.len())
    runs = runs.filter(pl.col("parts") > 0).with_columns(
        placement=pl.int_ranges(pl.col("parts").cast(pl.Int64)),
        gpu_milli=pl.when(on_one).then("gpu_milli"),
        is_told=pl.col("node").list.contains(pl.col("failed_node")).fill_null(False),
    )
    failed_here = (pl.col("failed_node") == pl.col("node")).fill_null(False)
    infra_failure = pl.when(~pl.col("infra_failure") | on_one).then("infra_failure").when("is_told").then(failed_here)
    return as_placements(
        runs.drop("node_list")
        .explode("node", "placement")
        .select(
            *("job_id", "attempt", "node", "start_s", "end_s", "runtime_s", "outcome", "nodes", "attempt_id"),
            *("placement", "gpu_milli"),
            infra_failure=infra_failure,
        )
    )


def _text(*columns: str) -> pl.Expr:
    """What _FEW_TEXTS of the records say, in letters."""
    return pl.col(*columns).cast(pl.String)


@dataclass(frozen=True)
class Records:
    """What all tables come from, in the order of jobs: jobs with `line`, attempts with _PLACE and `job`.

    last_seen: the last moment that any record tells of; None where none does.
    """

    jobs: pl.LazyFrame
    attempts: pl.LazyFrame
    last_seen: int | None


def records(source: Source) -> Records:
    """The jobs and the runs of the records, worked out dump by dump.

    A dump has the ids that no earlier one has, with what later ones tell of them: a job on the border of two weeks, a
    requeued one, an id that was given out anew. Jobs of different ids are none of each other's business.
    """
    raw = source.raw["record"]
    said, zone = _said_in_all(raw.filter(_is_no_step())), source.meaning.get("times", {}).get("zone", "UTC")
    pieces, last_seen, n_jobs = {"jobs": [], "attempts": []}, [], 0
    moved = {name: defaultdict(list) for name in pieces}
    for number, rows in _by_first_dump(raw):
        found = _records(rows, said)
        last_seen.append(found.select(pl.max_horizontal("submit_s", "start_s", "end_s").max()).item())
        tables = {"jobs": _jobs(found, zone), "attempts": _attempts(found, zone)}
        for name, table in tables.items():
            # An id that was given out anew is that of a job whose first record a later dump has.
            is_here, others = pl.col("file") == number, moved[name].pop(number, [])
            for (later,), some in table.filter(~is_here).group_by("file"):
                moved[name][later].append(some)
            here = pl.concat([table.filter(is_here), *others])
            tables[name] = here.sort(_PLACE, maintain_order=True) if others else here
        rows = tables["jobs"].select(_PLACE).with_row_index("job", n_jobs)
        n_jobs += rows.height
        tables["attempts"] = tables["attempts"].join(rows, on=_PLACE, how="left", maintain_order="left", validate="m:1")
        for name, table in tables.items():
            pieces[name].append(_spilled(table, source.spilled, f"{name}-{number}"))
    scans = {name: pl.concat(of_dumps) for name, of_dumps in pieces.items()}
    return Records(**scans, last_seen=max((seen for seen in last_seen if seen is not None), default=None))


def _spilled(table: pl.DataFrame, folder: Path | None, name: str) -> pl.LazyFrame:
    """The table, to be read from the folder; held where there is none."""
    if folder is None:
        return table.lazy()
    write_parquet(table, folder / f"{name}.parquet")
    return scan_parquet(folder / f"{name}.parquet")


def _is_no_step() -> pl.Expr:
    return ~pl.col("job_id_raw").str.contains(".", literal=True)


def _by_first_dump(raw: pl.LazyFrame) -> Iterator[tuple[int, pl.DataFrame]]:
    """(number of the dump, the records of the ids that it is the first to have), dump by dump; without steps."""
    heights = raw.group_by("file").len().sort("file").collect(engine="streaming")
    # Two ids with one hash are looked at together, which changes nothing.
    raw = raw.with_columns(id=pl.col("job_id_raw").hash(0))
    owners = raw.group_by("id").agg(owner=pl.col("file").min(), last=pl.col("file").max())
    owners = owners.filter(pl.col("last") > pl.col("owner")).select("id", "owner").collect(engine="streaming")
    told_later = raw.filter(_is_no_step()).join(owners.lazy(), on="id").filter(pl.col("file") > pl.col("owner"))
    waiting = told_later.collect(engine="streaming").partition_by("owner", as_dict=True, include_key=False)
    first = 0
    for number, height in heights.iter_rows():
        rows = raw.slice(first, height).filter(_is_no_step()).collect()
        rows = rows.join(owners, on="id", how="left", maintain_order="left")
        own = rows.filter((pl.col("owner") >= number).fill_null(True)).drop("owner")
        later = waiting.pop((number,), own.clear())
        yield number, pl.concat([own, later]).drop("id")
        first += height


def _said_in_all(raw: pl.LazyFrame) -> dict[str, Any]:
    """What all dumps together say: whether any names nodes, how many clusters there are, and the first one's name."""
    cluster = pl.col("cluster").drop_nulls()
    said = pl.col("node_list").count() + pl.col("tres_allocated").count()
    columns = {"nodes": said > 0, "clusters": cluster.n_unique(), "cluster": cluster.first()}
    return raw.select(**columns).collect(engine="streaming").row(0, named=True)


def _records(raw: pl.DataFrame, said: Mapping[str, Any]) -> pl.DataFrame:
    """The records of jobs, by job and time, each with its job and its run.

    Steps (123.batch) are folded into their job, whose record has it all. A record that several dumps hold, as a job on
    the border of two months, counts once, as it was last seen. Columns beside the raw ones: state; start_s and end_s of
    a run (blank if it has not started; the last moment seen if it still runs); started; runtime_s; suspended_s; job
    (a number, rising), job_id; run (a number, rising), is_new_run; the resources in numbers.
    """
    found = _once_each(_typed(raw.lazy(), said).collect(engine="streaming"))
    previous = pl.col("state", "user", "end_s", "started").shift(1).name.prefix("previous_")
    found = found.with_columns(previous, is_same_id=_is_same([*_KEY], shift=1))
    goes_on = (
        pl.col("is_same_id")
        & (pl.col("previous_state").is_in(CONTINUED) | (pl.col("restarts") > 0)).fill_null(False)
        & (pl.col("user") == pl.col("previous_user")).fill_null(True)
        & (pl.col("submit_s") - pl.col("previous_end_s") <= LONGEST_REQUEUE_S).fill_null(True)
    )
    found = found.with_columns(goes_on=goes_on)
    # Of the job's resized part before, the record tells once more.
    is_same_run = pl.col("goes_on") & pl.col("started") & pl.col("previous_started")
    is_same_run &= pl.col("previous_state") == "RESIZING"
    since = pl.when(is_same_run).then(pl.max_horizontal("start_s", "previous_end_s")).otherwise("start_s")
    found = found.with_columns(
        job=(~pl.col("goes_on")).cum_sum().cast(pl.Int64).set_sorted(),
        is_new_run=pl.col("started") & ~is_same_run,
        runtime_s=(pl.col("end_s") - since - pl.col("suspended_s")).clip(lower_bound=0),
    )
    # How many jobs had the id before.
    first_of_id = pl.when(~pl.col("is_same_id")).then("job").forward_fill()
    name = [pl.col("cluster") + ":"] if said["clusters"] > 1 else []
    again = pl.col("job") - first_of_id + 1
    return found.with_columns(
        run=pl.col("is_new_run").cum_sum().cast(pl.Int64),
        job_id=pl.concat_str(*name, "job_id_raw", pl.when(again > 1).then(pl.format("@{}", again)), ignore_nulls=True),
    ).drop("previous_state", "previous_user", "previous_end_s", "previous_started", "is_same_id", "goes_on")


_OF_JOBS = {"jobs": jobs, "attempts": attempts, "placements": placements, "records": records}
FORMAT = replace(NODE_EVENTS, **_OF_JOBS, jobs_on_disk=True, placements_of_attempts=True)


def _typed(records: pl.LazyFrame, said: Mapping[str, Any]) -> pl.LazyFrame:
    """The records with their states, times and resources as the schema of the raw table leaves them to be read."""
    # A blank says nothing where all are blank. One dump names the cluster, another not.
    outcome = outcome_of("state", OUTCOMES)
    has_no_node = pl.col("node_list").is_null() & pl.col("tres_allocated").is_null()
    has_no_node &= pl.lit(said["nodes"]) | pl.col("state").is_in(ENDED_UNSTARTED)
    return (
        records.with_columns(
            *_resources(records, "tres_requested", "requested"),
            *_resources(records, "tres_allocated", "allocated"),
            pl.col(_FEW_TEXTS).cast(pl.Categorical),
            cluster=pl.lit(said["cluster"], pl.String) if said["clusters"] == 1 else "cluster",
            state=state_word(pl.col("state_raw")),
            cancelled_by=cancelled_by(pl.col("state_raw")),
            suspended_s=pl.col("suspended_s").fill_null(0),
            elapsed_s=pl.coalesce("elapsed_s", "elapsed"),
            timelimit_s=pl.col("timelimit_min") * 60,
        )
        .with_columns(
            is_over=~outcome.is_in(["running", "waiting"])
            | (pl.col("state").is_in(CONTINUED) & pl.col("end_s").is_not_null()),
            is_waiting=outcome == "waiting",
        )
        .with_columns(
            started=pl.col("start_s").is_not_null()
            & ~pl.col("is_waiting")
            & ~(has_no_node & (pl.col("end_s") <= pl.col("start_s")).fill_null(False)),
            end_s=pl.coalesce(
                "end_s",
                pl.when(~pl.col("is_over") & ~pl.col("is_waiting")).then(
                    pl.col("start_s") + pl.col("elapsed_s") + pl.col("suspended_s")
                ),
            ),
            cpu_milli=pl.coalesce("cpu_requested_milli", "cpu_allocated_milli", pl.col("cpus") * 1000),
            mem_mib=pl.coalesce("mem_requested_mib", "mem_allocated_mib", _memory_asked_mib()),
        )
        .with_columns(start_s=pl.when("started").then("start_s"))
        .drop(_TAKEN_APART)
    )


def _resources(records: pl.LazyFrame, column: str, which: str) -> list[pl.Expr]:
    """The resources in the texts of a column, each distinct one read once: gpu_{which}_milli and so on."""
    texts = records.select(pl.col(column).drop_nulls().unique()).collect(engine="streaming").to_series()
    names = {"gpu_milli": f"gpu_{which}_milli", "gpu_type": f"gpu_type_{which}"}
    names |= {"cpu_milli": f"cpu_{which}_milli", "mem_mib": f"mem_{which}_mib"}
    found = tres(texts)
    return [
        pl.col(column).replace_strict(texts, found[name], default=None, return_dtype=found[name].dtype).alias(called)
        for name, called in names.items()
    ]


def _once_each(records: pl.DataFrame) -> pl.DataFrame:
    """The records sorted by id and time, without earlier looks at the same one.

    One record is one id, submission and start; the look that saw it furthest counts. A job that waited in one dump is
    in a later one with its start.
    """
    same = [*_KEY, "submit_s", "start_s"]
    progress = pl.when("is_waiting").then(0).when(~pl.col("is_over")).then(1).otherwise(2)
    records = records.with_columns(progress=progress).sort(
        *same, "progress", "end_s", *_PLACE, nulls_last=[False, False, False, True, False, False, False, False]
    )
    is_seen_again = _is_same(same, shift=-1)
    if records.select(is_seen_again.any()).item():
        # What one look leaves out, such as a column that its dump does not have, the one before may tell.
        told = [name for name in records.columns if name not in _OF_THIS_LOOK]
        row, is_first = pl.int_range(pl.len()), ~_is_same(same, shift=1)
        first = pl.when(is_first).then(row).forward_fill()
        records = records.with_columns(
            pl.when(pl.when(pl.col(name).is_not_null()).then(row).forward_fill() >= first)
            .then(pl.col(name).forward_fill())
            .alias(name)
            for name in told
        )
    records = records.filter(~is_seen_again)
    return records.filter(~(pl.col("is_waiting") & _is_same([*_KEY, "submit_s"], shift=1))).drop("progress")


def _is_same(columns: list[str], shift: int) -> pl.Expr:
    """Whether these columns equal those of the row before (shift 1) or after (shift -1); blanks are equal."""
    row = pl.int_range(pl.len())
    is_there = row > 0 if shift > 0 else row < pl.len() - 1
    return is_there & pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(shift)) for name in columns)


def _unless_unknown(column: str, value: pl.Expr) -> pl.Expr:
    """The value of a group, blank where the column is blank in any of its rows."""
    return pl.when(pl.col(column).null_count() == 0).then(value)


def _memory_asked_mib() -> pl.Expr:
    """ReqMem: of the whole job, or as older versions print it, per core (4Gc) or per node (4Gn)."""
    mem = pl.col("mem").str.strip_chars()
    per = pl.when(mem.str.ends_with("c")).then("cpus").when(mem.str.ends_with("n")).then("nodes").otherwise(1)
    mib = mebibytes(mem) * per
    return pl.when(mib > 0).then(mib)
