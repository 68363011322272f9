"""Derive jobs and placements of the Alibaba PAI GPU cluster trace 2020: tasks are jobs, instances run in parallel.

Times of a task come from its instances, as in "Analyzing ML Training Tasks: time to success and failure": start is the
smallest instance start above 0, end the largest instance end above 0. If the instances lack either, the times of the
task table replace both, and the column runtime_from says so.

Rows of a task with the same inst_name are tries of one instance: nearly all published rows that failed have only a
start or only an end, and the next try ran on another machine. Without the task table, the instance table names the
tasks.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source
from ttf.engine.storage.partitions import Partitions, choose_partitions, hash_columns, join_results, scan_in_turn
from ttf.engine.storage.tables import read_blocks
from ttf.formats.format_declaration import resolve_outcomes
from ttf.formats.protocol import Format, Source
from ttf.records.jobs import (
    JOB_COLUMNS,
    PLACEMENT_COLUMNS,
    conform,
    conform_placements,
    last_moment,
    map_outcome,
    mark_unrecorded_ends,
)

TASK_COLUMNS = ["job_name", "task_name"]
# Columns that distinguish the rows of an instance; rows that agree in all of them are one try.
TIME_COLUMNS = ("start_s", "end_s")
TRY_COLUMNS = [*TIME_COLUMNS, "machine"]
# Jobs or tags that are joined at once: 0.1 GB.
JOINED_ROWS = 2_000_000
MEASURED = ("gpu_used_milli", "cpu_used_milli", "mem_used_mib")


def jobs(source: Source) -> pl.LazyFrame:
    """Return one row per (job, task), in file order, with the columns of the common job record and some extras.

    inst_num: the requested instances; job_tasks: the number of tasks in its job; runtime_from: `instance`, `siblings`
    (the end is that of other instances than the failed ones), `task`, or blank without an end; task_start_s,
    task_end_s: the times of the task table; negative_queue: an instance started before its task, and the queueing delay
    is blank; negative_run: the largest end is before the smallest start, and the run time is blank; instance_rows: rows
    of the instance table; recurrence_group, workload: from the group tags; gpu_used_milli, cpu_used_milli,
    mem_used_mib: means over the task's sensor rows.

    A Running task with an end before the trace's end, its own or that of all instances, has ended with an unknown
    outcome. If some instances have no end, it runs, and its end is the last observed end of the others. runtime_max_s:
    the run time of a failure with the end of its siblings, which is an upper bound: it failed before.

    source.results: from `task_totals`. size is the number of instances, or inst_num for a task without instances;
    attempts is the largest number of tries of an instance.
    """
    end_s = last_moment(source.raw[table] for table in ("job", "task", "instance") if table in source.raw)
    outcomes = resolve_outcomes("pai2020", source.meaning)
    return join_results(read_tasks(source.raw), source.results, lambda tasks: _derive_jobs(tasks, end_s, outcomes))


def read_tasks(raw: Mapping[str, pl.LazyFrame]) -> pl.LazyFrame:
    """Return the task table, or without it a row per task in the instance table, in the order of the first rows.

    The status of such a task follows from the last try of each instance: the first of Failed, Running, Waiting,
    Terminated, Interrupted that occurs. The task has no own times and no requests.
    """
    if "task" in raw:
        return raw["task"]
    statuses = ["Failed", "Running", "Waiting", "Terminated", "Interrupted"]
    last_tries = (
        raw["instance"]
        .with_row_index("row")
        .sort("row")
        .group_by(*TASK_COLUMNS, pl.coalesce("instance", "row"))
        .agg(
            pl.col("file", "line", "row").first(),
            pl.col("status").sort_by(pl.coalesce("start_s", "end_s"), "row", nulls_last=True).last(),
        )
    )
    # An unknown status ranks last and stays unchanged.
    rank = pl.col("status").replace_strict({word: rank for rank, word in enumerate(statuses)}, default=len(statuses))
    tasks = (
        last_tries.group_by(TASK_COLUMNS)
        .agg(pl.col("file", "line").sort_by("row").first(), pl.col("row").min(), pl.col("status").sort_by(rank).first())
        .sort("row")
        .drop("row")
    )
    null_integer = pl.lit(None, dtype=pl.Int64)
    missing_columns = ("inst_num", "start_s", "end_s", "cpu_milli", "mem_mib", "gpu_milli")
    tasks = tasks.with_columns(**dict.fromkeys(missing_columns, null_integer), gpu_type=pl.lit(None, dtype=pl.String))
    return tasks.collect(engine="streaming").lazy()


def task_totals(raw: Mapping[str, pl.LazyFrame], partitions: Partitions) -> Iterator[pl.DataFrame]:
    """Summarise the other tables per task, partition by partition, for `jobs`.

    Columns: row: index in the task table; user; job_tasks: number of tasks in its job; instance_rows: rows in the
    instance table; rows_ended: those with an end; instances: number of instances; tries: largest number of tries of an
    instance; instance_start_s, instance_end_s: earliest start and latest end of any row; failed_end: whether a failed
    row has an end; nodes: number of machines, blank for none; mean use from its sensor rows and the tags of its job, if
    the trace has these tables.
    """
    # Join by hashes of the names: moving and joining the texts of jobs and tags took 0.8 of 3.5 seconds.
    split, job, task = partitions.split, hash_columns(["job_name"]), hash_columns(TASK_COLUMNS)
    failed = (pl.col("status") == "Failed").fill_null(False).alias("failed")
    machine = pl.col("machine").cast(pl.Categorical).to_physical()
    parts = [
        split("user", _read_users(raw, partitions), "job_name", pl.exclude("job_name"), job=job),
        split("task", read_tasks(raw).with_row_index("row"), "job_name", "row", job=job, task=task),
        split("instance", raw["instance"], "job_name", "instance", *TIME_COLUMNS, failed, machine, task=task),
    ]
    if "sensor" in raw:
        parts.append(split("sensor", raw["sensor"], "job_name", *MEASURED, task=task))
    for users, tasks, instances, *sensors in zip(*parts, strict=True):
        totals = tasks.with_columns(job_tasks=pl.len().over("job").cast(pl.Int64)).collect()
        # Joins in memory took a third of the time of joins and a sort by the streaming engine.
        for columns in (_summarise_instances(instances), *map(_average_sensors, sensors)):
            totals = totals.join(columns, on="task", how="left", maintain_order="left")
        totals = totals.join(users.collect(engine="streaming"), on="job", how="left", maintain_order="left")
        yield totals.drop("job", "task")


def placements(source: Source) -> pl.LazyFrame:
    """Return one row per instance row with a machine, in file order, with PLACEMENT_COLUMNS.

    attempt is the number of the try of its instance, by start, or by end if the start is missing; a try without either
    is the last. placement is the line of the instance's first try in its file. attempt_id is the index of the task in
    its table, because the trace has no attempts of tasks. outcome is that of the try, or of the task if the try's
    status is blank. gpu_milli is the request per instance. An end before the start leaves the run time blank.
    infra_failure is blank, because the trace has no causes.

    source.jobs: from `jobs`.
    """
    # Join these columns alone: wider rows would all be held in memory.
    hashes = source.jobs.select(hash=hash_columns(["job_id", "task"])).with_row_index("attempt_id")
    instances = source.raw["instance"].with_row_index("row")
    numbers = instances.select(hash=hash_columns(TASK_COLUMNS)).join(hashes, "hash", "left", maintain_order="left")
    task_rows = numbers.select("attempt_id").collect(engine="streaming").to_series()
    status, has_one_try = pl.col("status_raw").cast(pl.Categorical), pl.col("attempts").eq_missing(1)
    tasks = source.jobs.select("gpu_milli", "nodes", status, has_one_try=has_one_try).collect(engine="streaming")

    def read_rows_with_machine(*columns: str) -> Iterator[pl.DataFrame]:
        for block in read_blocks(instances.select("row", *columns), extra_columns={"attempt_id": task_rows}):
            yield block.filter(pl.col("machine").is_not_null())

    # The number of machines of a waiting task is not known yet.
    retried = pl.concat(
        rows.filter(~tasks["has_one_try"][rows["attempt_id"]])
        for rows in read_rows_with_machine("instance", "line", *TRY_COLUMNS)
    )
    machines = retried.group_by("attempt_id").agg(pl.col("machine").n_unique().cast(pl.Int64))
    tasks = tasks.with_columns(nodes=tasks["nodes"].scatter(*machines))
    tries, outcomes = _number_tries(retried), resolve_outcomes("pai2020", source.meaning)

    def iterate_placements(*_unused: object) -> Iterator[pl.DataFrame]:
        for rows in read_rows_with_machine(*TASK_COLUMNS, *TRY_COLUMNS, "status", "line"):
            rows = rows.hstack(tasks[rows["attempt_id"]].drop("has_one_try"))
            numbered_tries = tries.filter(pl.col("row").is_between(rows["row"].min(), rows["row"].max()))
            rows = rows.join(numbered_tries, on="row", how="left", maintain_order="left")
            is_own = pl.col("status").is_not_null()
            rows = rows.with_columns(is_own=is_own, status=pl.coalesce("status", pl.col("status_raw").cast(pl.String)))
            yield conform_placements(
                rows.lazy().select(
                    *("start_s", "end_s", "gpu_milli", "nodes", "attempt_id"),
                    attempt=pl.col("attempt").fill_null(0),
                    job_id="job_name",
                    task="task_name",
                    placement=pl.coalesce("first_line", "line"),
                    node="machine",
                    outcome=map_outcome("status", outcomes),
                    own_outcome=pl.col("is_own") | (pl.col("nodes") == 1),
                )
            ).collect()

    return register_io_source(iterate_placements, schema=PLACEMENT_COLUMNS)


FORMAT = Format(jobs=jobs, placements=placements, by_partition=task_totals)


def _derive_jobs(tasks: pl.LazyFrame, end_s: int | None, outcomes: Mapping[str, str]) -> pl.LazyFrame:
    """Derive the columns of `jobs` from rows of the task table joined with `task_totals`. end_s: the trace's end."""
    columns = tasks.collect_schema().names()
    extras = [name for name in (*MEASURED, "recurrence_group", "workload") if name in columns]
    tasks = tasks.rename({"start_s": "task_start_s", "end_s": "task_end_s"})

    # A Waiting task has not started, even if it has a stray instance row.
    has_started = pl.col("status") != "Waiting"
    has_instance_times = has_started & (pl.col("instance_end_s") >= pl.col("instance_start_s")).fill_null(False)
    has_task_times = has_started & (pl.col("task_end_s") >= pl.col("task_start_s")).fill_null(False)
    has_ended = has_task_times | (pl.col("rows_ended") == pl.col("instance_rows"))
    # The failed instance has no end, so the end is that of other instances of the task.
    has_sibling_end = has_instance_times & (pl.col("status") == "Failed") & ~pl.col("failed_end")
    times = tasks.with_columns(
        start_s=pl.when(has_instance_times)
        .then("instance_start_s")
        .when(has_task_times)
        .then("task_start_s")
        .when(has_started)
        .then(pl.coalesce("instance_start_s", "task_start_s")),
        end_s=pl.when(has_instance_times).then("instance_end_s").when(has_task_times).then("task_end_s"),
        runtime_from=pl.when(has_sibling_end)
        .then(pl.lit("siblings"))
        .when(has_instance_times)
        .then(pl.lit("instance"))
        .when(has_task_times)
        .then(pl.lit("task")),
        queue_s=pl.when(has_started).then(pl.col("instance_start_s") - pl.col("task_start_s")),
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
            outcome=mark_unrecorded_ends(
                map_outcome("status", outcomes), pl.when(has_ended).then("end_s"), pl.lit(end_s, dtype=pl.Int64)
            ),
            status_raw="status",
            size=pl.coalesce("instances", "inst_num"),
            nodes=pl.when(has_started).then("nodes"),
            attempts=pl.when(has_started).then(pl.col("tries").fill_null(1)),
            trace_end_s=pl.lit(end_s, dtype=pl.Int64),
            negative_queue=(pl.col("queue_s") < 0).fill_null(False),
            negative_run=(has_started & (pl.col("instance_end_s") < pl.col("instance_start_s"))).fill_null(False),
            instance_rows="instance_rows",
        ),
        JOB_COLUMNS,
    )


def _read_users(raw: Mapping[str, pl.LazyFrame], partitions: Partitions) -> pl.LazyFrame:
    """Return, per job of this share, its user and, with group tags, its tags; no rows without the job table."""
    if "job" not in raw:
        return pl.LazyFrame(schema={"job_name": pl.String, "user": pl.String})
    users = raw["job"]
    if "group_tag" not in raw:
        return users.select("job_name", "user")
    inst_id = hash_columns(["inst_id"])
    users = users.filter(partitions.is_of_share("job_name")).select("job_name", "user", hash=inst_id)
    tags = raw["group_tag"].select(recurrence_group="group", workload="workload", hash=inst_id)
    joins = choose_partitions([raw["job"], raw["group_tag"]], JOINED_ROWS, partitions.folder)
    parts = (joins.split(name, rows, "hash", pl.all()) for name, rows in (("tagged", users), ("tag", tags)))
    tagged = [users.join(tags, on="hash", how="left").drop("hash") for users, tags in zip(*parts, strict=True)]
    return tagged[0] if len(tagged) == 1 else scan_in_turn(tagged)


def _summarise_instances(instances: pl.LazyFrame) -> pl.DataFrame:
    """Summarise, per task: instance rows, rows with an end, failed_end, times, machines, tries and instances."""
    tries = _count_tries(instances)
    totals = instances.group_by("task").agg(
        instance_rows=pl.len().cast(pl.Int64),
        rows_ended=pl.col("end_s").count().cast(pl.Int64),
        failed_end=(pl.col("failed") & pl.col("end_s").is_not_null()).any(),
        instance_start_s=pl.col("start_s").min(),
        instance_end_s=pl.col("end_s").max(),
        machines=pl.col("machine").drop_nulls().n_unique().cast(pl.Int64),
    )
    return (
        totals.collect(engine="streaming")
        .join(tries, on="task", how="left")
        .select(
            pl.exclude("machines", "extra_rows", "tries"),
            nodes=pl.when(pl.col("machines") > 0).then("machines"),
            tries=pl.col("tries").fill_null(1),
            instances=pl.col("instance_rows") - pl.col("extra_rows").fill_null(0),
        )
    )


def _count_tries(instances: pl.LazyFrame) -> pl.DataFrame:
    """Count, per task, instance rows after the first (extra_rows) and the largest number of one instance (tries)."""
    names = instances.select("task", "instance").collect(engine="streaming")
    pair = pl.col("task") ^ pl.col("instance")
    # NumPy sorts millions of numbers in a tenth of a second.
    numbers = np.sort(names.select(pair).to_series().drop_nulls().to_numpy())
    repeated = pl.Series(numbers[1:][numbers[1:] == numbers[:-1]]).unique()
    # Equal numbers may stand for different instances.
    tries = names.filter(pair.is_in(repeated.implode())).group_by("task", "instance").agg(rows=pl.len().cast(pl.Int64))
    return tries.group_by("task").agg(extra_rows=(pl.col("rows") - 1).sum(), tries=pl.col("rows").max())


def _number_tries(rows: pl.DataFrame) -> pl.DataFrame:
    """Assign numbers to the tries of instances with several rows: row, attempt (from 0, by time), first_line."""
    moment = pl.coalesce("start_s", "end_s")
    instance = ["attempt_id", "instance"]
    rows = rows.filter(pl.col("instance").is_not_null() & (pl.len().over(instance) > 1))
    # The first row represents all rows of a try.
    rows = rows.with_columns(first_row=pl.col("row").min().over(*instance, *TRY_COLUMNS)).sort(
        *instance, moment, "first_row", "row", nulls_last=True
    )
    is_new_try = (pl.col("first_row") != pl.col("first_row").shift(1)).fill_null(True).over(instance)
    return rows.select(
        "row",
        attempt=is_new_try.cast(pl.Int64).cum_sum().over(instance) - 1,
        first_line=pl.col("line").min().over(instance),
    )


def _average_sensors(sensor: pl.LazyFrame) -> pl.DataFrame:
    """Return, per task, the mean of each column of MEASURED, rounded to a whole number."""
    means = (
        (pl.col(name).sum() / pl.col(name).count()).round(0, mode="half_away_from_zero").cast(pl.Int64, strict=False)
        for name in MEASURED
    )
    return sensor.group_by("task").agg(means).collect(engine="streaming")
