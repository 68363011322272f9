"""The Alibaba PAI GPU cluster trace 2020: a task is one job, its instances are placements that run side by side.

Times of a task come from its instances, as in "Analyzing ML Training Tasks: time to success and failure": start is the
smallest instance start above 0, end the largest instance end above 0. Where the instances do not give both, the task
table's own times stand in, and the column runtime_from says so.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import polars as pl
from ttf.formats.declared import outcomes_of
from ttf.formats.protocol import Format, Source
from ttf.jobs import JOB_COLUMNS, as_placements, conform, ended_unrecorded, outcome_of
from ttf.partitions import Partitions, beside, check_keys, one_by_one

OUTCOMES = outcomes_of("pai2020")
TASK = ["job_name", "task_name"]
MEASURED = ("gpu_used_milli", "cpu_used_milli", "mem_used_mib")


def jobs(source: Source) -> pl.LazyFrame:
    """One row per (job, task), in file order, with the columns of the common job record and these extras:

    inst_num: the instances that the task asked for; job_tasks: the tasks that its job is made of; runtime_from:
    `instance`, `task`, or blank where no end was written; task_start_s, task_end_s: the task table's own times;
    negative_queue: an instance started before its task (the queueing delay is blank then); recurrence_group,
    workload: from the group tags; gpu_used_milli, cpu_used_milli, mem_used_mib: means over the task's sensor rows.

    A Running task that has an end before the trace's, be it its own or that of every one of its instances, has ended,
    with an unknown result. Where some of them have none it runs, and its end is when the others were last seen.

    source.results: those of `task_totals`. size is the number of instance rows, or inst_num for a task that has none.
    """
    end_s = _trace_end(source.raw)
    return beside(source.raw["task"], pl.lit(True), source.results, lambda tasks: _job_record(tasks, end_s))


def task_totals(raw: Mapping[str, pl.LazyFrame], partitions: Partitions) -> Iterator[pl.DataFrame]:
    """Per task what the other tables say of it, partition by partition, for `jobs`.

    Columns: row, its place in the task table; user; job_tasks, the tasks of its job; of its instances their number
    (instances), how many of them have an end (instances_ended), the earliest start and latest end
    (instance_start_s, instance_end_s) and on how many machines they were seen (nodes, blank for none); the mean use
    by its sensor rows and its job's tags, where the trace has these tables.
    Raises SharedKeyError where two tasks of a partition have the same key.
    """
    split, key = partitions.split, partitions.key(*TASK)
    parts = [
        split("user", _users(raw, partitions), "job_name", pl.all()),
        split("task", raw["task"].with_row_index("row"), "job_name", "row", "job_name", key),
        split("instance", raw["instance"], "job_name", key, "start_s", "end_s", _machine()),
    ]
    if "sensor" in raw:
        parts.append(split("sensor", raw["sensor"], "job_name", key, *MEASURED))
    for users, tasks, instances, *sensors in zip(*parts, strict=True):
        jobs = tasks.group_by("job_name").agg(job_tasks=pl.len().cast(pl.Int64))
        of_tasks = tasks.join(users, on="job_name", how="left").join(jobs, on="job_name", how="left")
        of_tasks = of_tasks.join(_instances(instances), on="key", how="left")
        for sensor in sensors:
            of_tasks = of_tasks.join(_measured(sensor), on="key", how="left")
        of_tasks = of_tasks.drop("job_name").sort("row").collect(engine="streaming")
        check_keys(of_tasks)
        yield of_tasks.drop("key")


def placements(source: Source) -> pl.LazyFrame:
    """One row per instance that a machine is written of, in file order, with PLACEMENT_COLUMNS.

    A task is one attempt: attempt is 0, attempt_id the task's place in its table, placement the instance's line in its
    file. outcome is that of the instance; where its status is blank, of the task. gpu_milli is what the task asked for
    per instance. An end before the start leaves the run time blank. infra_failure is blank: nothing in the trace tells
    causes apart.

    source.results: those of `instance_tasks`.
    """

    def of_rows(parts: pl.LazyFrame) -> pl.LazyFrame:
        is_own = pl.col("status").is_not_null()
        return as_placements(
            parts.with_columns(is_own=is_own, status=pl.coalesce("status", "task_status")).select(
                *("start_s", "end_s", "gpu_milli", "nodes", "attempt_id"),
                job_id="job_name",
                task="task_name",
                attempt=pl.lit(0, dtype=pl.Int64),
                placement="line",
                node="machine",
                outcome=outcome_of("status", OUTCOMES),
                own_outcome=pl.col("is_own") | (pl.col("nodes") == 1),
            )
        )

    return beside(source.raw["instance"], pl.col("machine").is_not_null(), source.results, of_rows)


def instance_tasks(raw: Mapping[str, pl.LazyFrame], partitions: Partitions) -> Iterator[pl.DataFrame]:
    """Per instance that a machine is written of what its task says of it, partition by partition, for `placements`.

    Columns: row, its place in the instance table; attempt_id, gpu_milli and task_status of its task; nodes, on how
    many machines the task's instances were seen. Raises SharedKeyError as `task_totals` does.
    """
    split, key = partitions.split, partitions.key(*TASK)
    tasks = raw["task"].with_row_index("attempt_id").rename({"status": "task_status"})
    seen = raw["instance"].with_row_index("row").filter(pl.col("machine").is_not_null())
    parts = [
        split("task", tasks, "job_name", key, "attempt_id", "gpu_milli", "task_status"),
        split("instance", seen, "job_name", "row", key, _machine()),
    ]
    for tasks, instances in zip(*parts, strict=True):
        of_tasks = tasks.collect(engine="streaming")
        check_keys(of_tasks)
        machines = instances.group_by("key").agg(nodes=pl.col("machine").n_unique().cast(pl.Int64))
        of_tasks = of_tasks.lazy().join(machines, on="key")
        of_instances = instances.select("row", "key").join(of_tasks, on="key", how="left").drop("key")
        yield of_instances.sort("row").collect(engine="streaming")


FORMAT = Format(jobs=jobs, placements=placements, by_partition={"jobs": task_totals, "placements": instance_tasks})


def _job_record(tasks: pl.LazyFrame, end_s: int | None) -> pl.LazyFrame:
    """The columns of `jobs` from rows of the task table with the columns of `task_totals` beside them."""
    given = tasks.collect_schema().names()
    extras = [name for name in (*MEASURED, "recurrence_group", "workload") if name in given]
    tasks = tasks.rename({"start_s": "task_start_s", "end_s": "task_end_s"})

    # A Waiting task has not started, whatever a stray instance row says.
    started = pl.col("status") != "Waiting"
    by_instances = started & (pl.col("instance_end_s") >= pl.col("instance_start_s")).fill_null(False)
    by_task = started & (pl.col("task_end_s") >= pl.col("task_start_s")).fill_null(False)
    has_ended = by_task | (pl.col("instances_ended") == pl.col("instances"))
    queue_s = pl.when(started).then(pl.col("instance_start_s") - pl.col("task_start_s"))
    times = tasks.with_columns(
        start_s=pl.when(by_instances)
        .then("instance_start_s")
        .when(by_task)
        .then("task_start_s")
        .when(started)
        .then(pl.coalesce("instance_start_s", "task_start_s")),
        end_s=pl.when(by_instances).then("instance_end_s").when(by_task).then("task_end_s"),
        runtime_from=pl.when(by_instances).then(pl.lit("instance")).when(by_task).then(pl.lit("task")),
        queue_s=queue_s,
    )
    return conform(
        times.select(
            *("user", "start_s", "end_s", "gpu_type", "gpu_milli", "cpu_milli", "mem_mib"),
            *(*extras, "inst_num", "job_tasks", "runtime_from", "task_start_s", "task_end_s", "file"),
            job_id="job_name",
            task="task_name",
            submit_s="task_start_s",
            queue_s=pl.when(pl.col("queue_s") >= 0).then("queue_s"),
            runtime_s=pl.col("end_s") - pl.col("start_s"),
            outcome=ended_unrecorded(
                outcome_of("status", OUTCOMES), pl.when(has_ended).then("end_s"), pl.lit(end_s, dtype=pl.Int64)
            ),
            status_raw="status",
            size=pl.coalesce("instances", "inst_num"),
            nodes=pl.when(started).then("nodes"),
            attempts=pl.when(started).then(pl.lit(1, dtype=pl.Int64)),
            trace_end_s=pl.lit(end_s, dtype=pl.Int64),
            negative_queue=(pl.col("queue_s") < 0).fill_null(False),
        ),
        JOB_COLUMNS,
    )


def _users(raw: Mapping[str, pl.LazyFrame], partitions: Partitions) -> pl.LazyFrame:
    """Per job of this share its user and, where the trace has group tags, those of the job's inst_id."""
    users = raw["job"].select("job_name", "user", "inst_id")
    if "group_tag" not in raw:
        return users.drop("inst_id")
    tags = raw["group_tag"].select("inst_id", recurrence_group="group", workload="workload")
    users = users.filter(partitions.is_of_share("job_name"))
    whole = replace(partitions, share=0, shares=1)
    parts = (whole.split(name, rows, "inst_id", pl.all()) for name, rows in (("tagged", users), ("tag", tags)))
    tagged = [users.join(tags, on="inst_id", how="left").drop("inst_id") for users, tags in zip(*parts, strict=True)]
    return tagged[0] if len(tagged) == 1 else one_by_one(tagged)


def _instances(instance: pl.LazyFrame) -> pl.LazyFrame:
    """Per task: its instance rows, those with an end, earliest start, latest end, and the machines it was seen on.

    0 machines seen: blank.
    """
    machines = pl.col("machine").drop_nulls().n_unique().cast(pl.Int64)
    return (
        instance.group_by("key")
        .agg(
            instances=pl.len().cast(pl.Int64),
            instances_ended=pl.col("end_s").count().cast(pl.Int64),
            instance_start_s=pl.col("start_s").min(),
            instance_end_s=pl.col("end_s").max(),
            machines=machines,
        )
        .select(pl.exclude("machines"), nodes=pl.when(pl.col("machines") > 0).then("machines"))
    )


def _machine() -> pl.Expr:
    """The machine as a number, the same one as long as the process lives."""
    return pl.col("machine").cast(pl.Categorical).to_physical()


def _measured(sensor: pl.LazyFrame) -> pl.LazyFrame:
    """Per task: mean measured use over its sensor rows, from exact sums, rounded to the small unit."""
    return sensor.group_by("key").agg(
        (pl.col(name).sum() / pl.col(name).count()).round(0, mode="half_away_from_zero").cast(pl.Int64, strict=False)
        for name in MEASURED
    )


def _trace_end(raw: Mapping[str, pl.LazyFrame]) -> int | None:
    """The last moment seen in the job, task and instance tables, seconds on the trace's clock."""
    last = [
        raw[table]
        .select(pl.max_horizontal(pl.col("start_s").max(), pl.col("end_s").max()))
        .collect(engine="streaming")
        .item()
        for table in ("job", "task", "instance")
    ]
    return max((moment for moment in last if moment is not None), default=None)
