"""The Alibaba PAI GPU cluster trace 2020: a task is one job, its instances are placements that run side by side.

Times of a task come from its instances, as in "Analyzing ML Training Tasks: time to success and failure": start is the
smallest instance start above 0, end the largest instance end above 0. Where the instances do not give both, the task
table's own times stand in, and the column runtime_from says so.

Rows of one task with one inst_name are tries of one instance: of the published rows nearly all that failed have only a
start or only an end, and the next try ran on another machine. Without the task table the tasks are those that instances
name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source
from ttf.engine.storage.partitions import Partitions, beside, key_hashes, one_by_one
from ttf.engine.storage.tables import blocks
from ttf.formats.format_declaration import outcomes_of
from ttf.formats.protocol import Format, Source
from ttf.records.jobs import (
    JOB_COLUMNS,
    PLACEMENT_COLUMNS,
    as_placements,
    conform,
    ended_unrecorded,
    last_moment,
    outcome_of,
)

OUTCOMES = outcomes_of("pai2020")
TASK = ["job_name", "task_name"]
# What tells two rows of one instance apart; rows that agree in all of it are one try.
TIMES = ("start_s", "end_s")
TRY = [*TIMES, "machine"]
# The hashes of a task's names.
KEY = ("hash", "second_hash")
MEASURED = ("gpu_used_milli", "cpu_used_milli", "mem_used_mib")


def jobs(source: Source) -> pl.LazyFrame:
    """One row per (job, task), in file order, with the columns of the common job record and these extras:

    inst_num: the instances that the task asked for; job_tasks: the tasks that its job is made of; runtime_from:
    `instance`, `siblings` (the end is that of other instances than those that failed), `task`, or blank where no end
    was written; task_start_s, task_end_s: the task table's own times; negative_queue: an instance started before its
    task (the queueing delay is blank then); negative_run: the largest end lies before the smallest start (there is no
    run time then); instance_rows: rows of the instance table; recurrence_group, workload: from the group tags;
    gpu_used_milli, cpu_used_milli, mem_used_mib: means over the task's sensor rows.

    A Running task that has an end before the trace's, be it its own or that of every one of its instances, has ended,
    with an unknown result. Where some of them have none it runs, and its end is when the others were last seen.
    runtime_max_s: of a failure with the end of its siblings, its run time: it failed at some moment before.

    source.results: those of `task_totals`. size is the number of instances, or inst_num for a task that has none;
    attempts the most tries of one of them.
    """
    end_s = last_moment(source.raw[table] for table in ("job", "task", "instance") if table in source.raw)
    return beside(tasks_in(source.raw), source.results, lambda tasks: _job_record(tasks, end_s))


def tasks_in(raw: Mapping[str, pl.LazyFrame]) -> pl.LazyFrame:
    """The task table; without it a row per task that the instance table names, in the order of their first rows.

    Such a task has a status by the last try of each of its instances: Failed if one failed, else Running, Waiting or
    Terminated if one does so, else Interrupted. It has no times of its own and no requests.
    """
    if "task" in raw:
        return raw["task"]
    order = ["Failed", "Running", "Waiting", "Terminated", "Interrupted"]
    moment = pl.coalesce("start_s", "end_s")
    last_tries = (
        raw["instance"]
        .with_row_index("row")
        .sort("row")
        .group_by(*TASK, pl.coalesce("instance", "row"))
        .agg(
            pl.col("file", "line", "row").first(),
            pl.col("status").sort_by(moment, "row", nulls_last=True).last(),
        )
    )
    # A status that is no word of the format comes last, as it stands.
    rank = pl.col("status").replace_strict({word: rank for rank, word in enumerate(order)}, default=len(order))
    tasks = (
        last_tries.group_by(TASK)
        .agg(pl.col("file", "line").sort_by("row").first(), pl.col("row").min(), pl.col("status").sort_by(rank).first())
        .sort("row")
        .drop("row")
    )
    whole = pl.lit(None, dtype=pl.Int64)
    blank = ("inst_num", "start_s", "end_s", "cpu_milli", "mem_mib", "gpu_milli")
    tasks = tasks.with_columns(**dict.fromkeys(blank, whole), gpu_type=pl.lit(None, dtype=pl.String))
    return tasks.collect(engine="streaming").lazy()


def task_totals(raw: Mapping[str, pl.LazyFrame], partitions: Partitions) -> Iterator[pl.DataFrame]:
    """Per task what the other tables say of it, partition by partition, for `jobs`.

    Columns: row, its place in the task table; user; job_tasks, the tasks of its job; instance_rows, its rows in the
    instance table, and how many of them have an end (rows_ended); instances, and the most tries of one of them
    (tries); the earliest start and latest end of any row (instance_start_s, instance_end_s), whether a failed row has
    an end (failed_end) and on how many machines they were seen (nodes, blank for none); the mean use by its sensor
    rows and its job's tags, where the trace has these tables.
    """
    # Of the names their hashes go along: to move and join the texts of jobs and tags took 0.8 of 3.5 seconds.
    split, job, task = partitions.split, key_hashes(["job_name"], "job_hash"), key_hashes(TASK)
    failed = (pl.col("status") == "Failed").fill_null(False).alias("failed")
    parts = [
        split("user", _users(raw, partitions), "job_name", pl.exclude("job_name"), **job),
        split("task", tasks_in(raw).with_row_index("row"), "job_name", "row", **job, **task),
        split("instance", raw["instance"], "job_name", "instance", *TIMES, failed, _machine(), **task),
    ]
    if "sensor" in raw:
        parts.append(split("sensor", raw["sensor"], "job_name", *MEASURED, **task))
    for users, tasks, instances, *sensors in zip(*parts, strict=True):
        jobs = tasks.group_by(*job).agg(job_tasks=pl.len().cast(pl.Int64))
        of_tasks = tasks.join(users, on=[*job], how="left").join(jobs, on=[*job], how="left")
        of_tasks = of_tasks.join(_instances(instances), on=[*task], how="left")
        of_tasks = of_tasks.join(_several_tries(instances), on=[*task], how="left").with_columns(
            tries=pl.when(pl.col("instance_rows") > 0).then(pl.col("tries").fill_null(1)),
            instances=pl.col("instance_rows") - pl.col("again").fill_null(0),
        )
        for sensor in sensors:
            of_tasks = of_tasks.join(_measured(sensor), on=[*task], how="left")
        yield of_tasks.drop(*job, *task).sort("row").collect(engine="streaming")


def placements(source: Source) -> pl.LazyFrame:
    """One row per instance that a machine is written of, in file order, with PLACEMENT_COLUMNS.

    attempt is the number of the try of its instance, by time: where a try has no start, by its end; one without either
    is the last. placement is the line of the instance's first try in its file. attempt_id is the task's place in its
    table: a trace of tasks has no attempts at a task. outcome is that of the try; where its status is blank, of the
    task. gpu_milli is what the task asked for per instance. An end before the start leaves the run time blank.
    infra_failure is blank: nothing in the trace tells causes apart.

    source.jobs: those of `jobs`.
    """
    # These columns alone are joined: wider rows would all be held.
    hashes = source.jobs.select(**key_hashes(["job_id", "task"])).with_row_index("attempt_id")
    instances = source.raw["instance"].with_row_index("row")
    keys = instances.select(**key_hashes(TASK))
    numbers = keys.join(hashes, on=[*KEY], how="left", maintain_order="left")
    task_rows = numbers.select("attempt_id").collect(engine="streaming").to_series()
    status, of_one_try = pl.col("status_raw").cast(pl.Categorical), pl.col("attempts").eq_missing(1)
    tasks = source.jobs.select("gpu_milli", "nodes", status, of_one_try=of_one_try).collect(engine="streaming")

    def seen(*columns: str) -> Iterator[pl.DataFrame]:
        for block in blocks(instances.select("row", *columns), beside={"attempt_id": task_rows}):
            yield block.filter(pl.col("machine").is_not_null())

    # Nobody has counted the machines of a task that waits.
    retried = pl.concat(
        rows.filter(~tasks["of_one_try"][rows["attempt_id"]]) for rows in seen("instance", "line", *TRY)
    )
    machines = retried.group_by("attempt_id").agg(pl.col("machine").n_unique().cast(pl.Int64))
    tasks = tasks.with_columns(nodes=tasks["nodes"].scatter(*machines))
    tries = _tries(retried)

    def rows_of_placements(*_unused) -> Iterator[pl.DataFrame]:
        for rows in seen(*TASK, *TRY, "status", "line"):
            rows = rows.hstack(tasks[rows["attempt_id"]].drop("of_one_try"))
            numbered = tries.filter(pl.col("row").is_between(rows["row"].min(), rows["row"].max()))
            rows = rows.join(numbered, on="row", how="left", maintain_order="left")
            is_own = pl.col("status").is_not_null()
            rows = rows.with_columns(is_own=is_own, status=pl.coalesce("status", pl.col("status_raw").cast(pl.String)))
            yield as_placements(
                rows.lazy().select(
                    *("start_s", "end_s", "gpu_milli", "nodes", "attempt_id"),
                    attempt=pl.col("attempt").fill_null(0),
                    job_id="job_name",
                    task="task_name",
                    placement=pl.coalesce("first_line", "line"),
                    node="machine",
                    outcome=outcome_of("status", OUTCOMES),
                    own_outcome=pl.col("is_own") | (pl.col("nodes") == 1),
                )
            ).collect()

    return register_io_source(rows_of_placements, schema=PLACEMENT_COLUMNS)


FORMAT = Format(jobs=jobs, placements=placements, by_partition=task_totals)


def _job_record(tasks: pl.LazyFrame, end_s: int | None) -> pl.LazyFrame:
    """The columns of `jobs` from rows of the task table with the columns of `task_totals` beside them."""
    given = tasks.collect_schema().names()
    extras = [name for name in (*MEASURED, "recurrence_group", "workload") if name in given]
    tasks = tasks.rename({"start_s": "task_start_s", "end_s": "task_end_s"})

    # A Waiting task has not started, whatever a stray instance row says.
    started = pl.col("status") != "Waiting"
    by_instances = started & (pl.col("instance_end_s") >= pl.col("instance_start_s")).fill_null(False)
    by_task = started & (pl.col("task_end_s") >= pl.col("task_start_s")).fill_null(False)
    has_ended = by_task | (pl.col("rows_ended") == pl.col("instance_rows"))
    # The instance that failed has no end of its own: the end is when others of the task ended.
    by_siblings = by_instances & (pl.col("status") == "Failed") & ~pl.col("failed_end")
    queue_s = pl.when(started).then(pl.col("instance_start_s") - pl.col("task_start_s"))
    times = tasks.with_columns(
        start_s=pl.when(by_instances)
        .then("instance_start_s")
        .when(by_task)
        .then("task_start_s")
        .when(started)
        .then(pl.coalesce("instance_start_s", "task_start_s")),
        end_s=pl.when(by_instances).then("instance_end_s").when(by_task).then("task_end_s"),
        runtime_from=pl.when(by_siblings)
        .then(pl.lit("siblings"))
        .when(by_instances)
        .then(pl.lit("instance"))
        .when(by_task)
        .then(pl.lit("task")),
        queue_s=queue_s,
    )
    run_s = pl.col("end_s") - pl.col("start_s")
    return conform(
        times.select(
            *("user", "start_s", "end_s", "gpu_type", "gpu_milli", "cpu_milli", "mem_mib"),
            *(*extras, "inst_num", "job_tasks", "runtime_from", "task_start_s", "task_end_s", "file"),
            job_id="job_name",
            task="task_name",
            submit_s="task_start_s",
            queue_s=pl.when(pl.col("queue_s") >= 0).then("queue_s"),
            runtime_s=run_s,
            runtime_max_s=pl.when(pl.col("runtime_from") == "siblings").then(run_s),
            outcome=ended_unrecorded(
                outcome_of("status", OUTCOMES), pl.when(has_ended).then("end_s"), pl.lit(end_s, dtype=pl.Int64)
            ),
            status_raw="status",
            size=pl.coalesce("instances", "inst_num"),
            nodes=pl.when(started).then("nodes"),
            attempts=pl.when(started).then(pl.col("tries").fill_null(1)),
            trace_end_s=pl.lit(end_s, dtype=pl.Int64),
            negative_queue=(pl.col("queue_s") < 0).fill_null(False),
            negative_run=(started & (pl.col("instance_end_s") < pl.col("instance_start_s"))).fill_null(False),
            instance_rows="instance_rows",
        ),
        JOB_COLUMNS,
    )


def _users(raw: Mapping[str, pl.LazyFrame], partitions: Partitions) -> pl.LazyFrame:
    """Per job of this share its user and, where the trace has group tags, those of the job's inst_id.

    No rows where the trace comes without its job table.
    """
    if "job" not in raw:
        return pl.LazyFrame(schema={"job_name": pl.String, "user": pl.String})
    users = raw["job"]
    if "group_tag" not in raw:
        return users.select("job_name", "user")
    inst_id = key_hashes(["inst_id"])
    users = users.filter(partitions.is_of_share("job_name")).select("job_name", "user", **inst_id)
    tags = raw["group_tag"].select(recurrence_group="group", workload="workload", **inst_id)
    whole = replace(partitions, share=0, shares=1)
    parts = (whole.split(name, rows, "hash", pl.all()) for name, rows in (("tagged", users), ("tag", tags)))
    tagged = [users.join(tags, on=[*inst_id], how="left").drop(*inst_id) for users, tags in zip(*parts, strict=True)]
    return tagged[0] if len(tagged) == 1 else one_by_one(tagged)


def _instances(instance: pl.LazyFrame) -> pl.LazyFrame:
    """Per task: its instance rows, those with an end, whether a failed one has, earliest start, latest end, machines.

    0 machines seen: blank.
    """
    machines = pl.col("machine").drop_nulls().n_unique().cast(pl.Int64)
    return (
        instance.group_by(*KEY)
        .agg(
            instance_rows=pl.len().cast(pl.Int64),
            rows_ended=pl.col("end_s").count().cast(pl.Int64),
            failed_end=(pl.col("failed") & pl.col("end_s").is_not_null()).any(),
            instance_start_s=pl.col("start_s").min(),
            instance_end_s=pl.col("end_s").max(),
            machines=machines,
        )
        .select(pl.exclude("machines"), nodes=pl.when(pl.col("machines") > 0).then("machines"))
    )


def _retried(instances: pl.LazyFrame) -> pl.LazyFrame:
    """The rows of instances of which there are several, and perhaps few others; instances: with KEY and instance."""
    pair = pl.col("hash") ^ pl.col("instance")
    # NumPy sorts millions of numbers in a tenth of a second.
    numbers = np.sort(instances.select(pair.alias("pair")).drop_nulls().collect(engine="streaming")["pair"].to_numpy())
    again = pl.Series(numbers[1:][numbers[1:] == numbers[:-1]]).unique()
    return instances.filter(pair.is_in(again.implode()).fill_null(False))


def _several_tries(instances: pl.LazyFrame) -> pl.LazyFrame:
    """Per task with an instance that has several rows: those after the first (again), the most of one (tries)."""
    rows = pl.len().cast(pl.Int64)
    tries = _retried(instances).group_by(*KEY, "instance").agg(rows=rows)
    return tries.group_by(*KEY).agg(again=(pl.col("rows") - 1).sum(), tries=pl.col("rows").max())


def _tries(rows: pl.DataFrame) -> pl.DataFrame:
    """Of instances with several rows: row, attempt (from 0, by time), first_line."""
    moment = pl.coalesce("start_s", "end_s")
    instance = ["attempt_id", "instance"]
    rows = rows.filter(pl.col("instance").is_not_null() & (pl.len().over(instance) > 1))
    # Of rows that are one try the first stands for all.
    rows = rows.with_columns(first=pl.col("row").min().over(*instance, *TRY)).sort(
        *instance, moment, "first", "row", nulls_last=True
    )
    is_next = (pl.col("first") != pl.col("first").shift(1)).fill_null(True).over(instance)
    return rows.select(
        "row",
        attempt=is_next.cast(pl.Int64).cum_sum().over(instance) - 1,
        first_line=pl.col("line").min().over(instance),
    )


def _machine() -> pl.Expr:
    """The machine as a number, the same one as long as the process lives."""
    return pl.col("machine").cast(pl.Categorical).to_physical()


def _measured(sensor: pl.LazyFrame) -> pl.LazyFrame:
    """Per task: mean measured use over its sensor rows, from exact sums, rounded to the small unit."""
    return sensor.group_by(*KEY).agg(
        (pl.col(name).sum() / pl.col(name).count()).round(0, mode="half_away_from_zero").cast(pl.Int64, strict=False)
        for name in MEASURED
    )
