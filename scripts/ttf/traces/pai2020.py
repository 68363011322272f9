"""The Alibaba PAI GPU cluster trace 2020: a task is one job, its instances are placements that run side by side.

Times of a task come from its instances, as in "Analyzing ML Training Tasks: time to success and failure": start is the
smallest instance start above 0, end the largest instance end above 0. Where the instances do not give both, the task
table's own times stand in, and the column runtime_from says so.
"""

from collections.abc import Iterator

import polars as pl
from polars.io.plugins import register_io_source

from ttf.jobs import JOB_COLUMNS, conform, outcome_of
from ttf.placements import as_placements

NODE_TABLE = "machine_spec"
OUTCOMES = {"Terminated": "success", "Failed": "failure", "Running": "running", "Waiting": "waiting"}
TASK = ["job_name", "task_name"]
# Instances made into placements at a time.
BLOCK_ROWS = 500_000


def jobs(raw: dict[str, pl.LazyFrame]) -> pl.DataFrame:
    """One row per (job, task), in file order, with the columns of the common job record and these extras:

    runtime_from: `instance`, `task`, or blank where no end was written; task_start_s, task_end_s: the task table's own
    times; negative_queue: an instance started before its task (the queueing delay is blank then); recurrence_group,
    workload: from the group tags; gpu_used_milli, cpu_used_milli, mem_used_mib: means over the task's sensor rows.

    size is the number of instance rows, or inst_num for a task that has none.
    """
    tasks = raw["task"].rename({"start_s": "task_start_s", "end_s": "task_end_s"})
    users = raw["job"].select("job_name", "user", "inst_id")
    frame = (
        tasks.join(_instances(raw["instance"]), on=TASK, how="left", maintain_order="left")
        .join(users, on="job_name", how="left", maintain_order="left")
        .with_columns(trace_end_s=pl.lit(_trace_end(raw), dtype=pl.Int64))
    )
    if "sensor" in raw:
        frame = frame.join(_measured(raw["sensor"]), on=TASK, how="left", maintain_order="left")
    if "group_tag" in raw:
        tags = raw["group_tag"].select("inst_id", recurrence_group="group", workload="workload")
        frame = frame.join(tags, on="inst_id", how="left", maintain_order="left")
    measured = [name for name in ("gpu_used_milli", "cpu_used_milli", "mem_used_mib") if "sensor" in raw]
    tagged = [name for name in ("recurrence_group", "workload") if "group_tag" in raw]

    # A Waiting task has not started, whatever a stray instance row says.
    started = pl.col("status") != "Waiting"
    by_instances = started & (pl.col("instance_end_s") >= pl.col("instance_start_s")).fill_null(False)
    by_task = started & (pl.col("task_end_s") >= pl.col("task_start_s")).fill_null(False)
    queue_s = pl.when(started).then(pl.col("instance_start_s") - pl.col("task_start_s"))
    frame = frame.with_columns(
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
        frame.select(
            *measured,
            *tagged,
            job_id="job_name",
            task="task_name",
            user="user",
            submit_s="task_start_s",
            start_s="start_s",
            end_s="end_s",
            queue_s=pl.when(pl.col("queue_s") >= 0).then("queue_s"),
            runtime_s=pl.col("end_s") - pl.col("start_s"),
            outcome=outcome_of("status", OUTCOMES),
            status_raw="status",
            gpu_type="gpu_type",
            gpu_milli="gpu_milli",
            cpu_milli="cpu_milli",
            mem_mib="mem_mib",
            size=pl.coalesce("instances", "inst_num"),
            nodes=pl.when(started).then("nodes"),
            attempts=pl.when(started).then(pl.lit(1, dtype=pl.Int64)),
            trace_end_s="trace_end_s",
            runtime_from="runtime_from",
            task_start_s="task_start_s",
            task_end_s="task_end_s",
            file="file",
            negative_queue=(pl.col("queue_s") < 0).fill_null(False),
        )
        # Whole numbers only, and joins that keep the order of tasks: streaming gives the same rows in half the memory.
        .collect(engine="streaming"),
        JOB_COLUMNS,
    )


def placements(raw: dict[str, pl.LazyFrame]) -> pl.LazyFrame:
    """One row per instance that a machine is written of, in file order, with PLACEMENT_COLUMNS.

    A task is one attempt: attempt is 0, placement the instance's line in its file. outcome is that of the instance;
    where its status is blank, of the task. gpu_milli is what the task asked for per instance. An end before the start
    leaves the run time blank. infra_failure is blank: nothing in the trace tells causes apart.
    """
    instance = raw["instance"]
    seen = pl.col("machine").is_not_null()
    machines = instance.filter(seen).group_by(TASK).agg(nodes=_machines())
    status = outcome_of("status", OUTCOMES)
    tasks = raw["task"].select(*TASK, "gpu_milli", task_outcome=status).join(machines, on=TASK)
    of_tasks = tasks.collect(engine="streaming").lazy()
    is_own = pl.col("status").is_not_null()

    def block(first: int) -> pl.LazyFrame:
        parts = instance.slice(first, BLOCK_ROWS).filter(seen)
        return as_placements(
            parts.join(of_tasks, on=TASK, how="left", maintain_order="left").select(
                job_id="job_name",
                task="task_name",
                attempt=pl.lit(0, dtype=pl.Int64),
                placement="line",
                node="machine",
                start_s="start_s",
                end_s="end_s",
                gpu_milli="gpu_milli",
                outcome=pl.when(is_own).then(status).otherwise("task_outcome"),
                nodes="nodes",
                own_outcome=is_own | (pl.col("nodes") == 1),
            )
        )

    def blocks(*_unused) -> Iterator[pl.DataFrame]:
        rows = instance.select(pl.len()).collect().item()
        for first in range(0, rows, BLOCK_ROWS):
            yield block(first).collect(engine="in-memory")

    # A join that keeps the order of 7.5 million instances as a whole would hold them twice.
    return register_io_source(blocks, schema=block(0).collect_schema())


def _instances(instance: pl.LazyFrame) -> pl.LazyFrame:
    """Per task: its instance rows, earliest start, latest end, and the machines it was seen on (0 seen: blank)."""
    return (
        instance.group_by(TASK)
        .agg(
            instances=pl.len().cast(pl.Int64),
            instance_start_s=pl.col("start_s").min(),
            instance_end_s=pl.col("end_s").max(),
            machines=_machines(),
        )
        .with_columns(nodes=pl.when(pl.col("machines") > 0).then("machines"))
    )


def _machines() -> pl.Expr:
    """How many machines a task's instances are written of."""
    return pl.col("machine").cast(pl.Categorical).to_physical().drop_nulls().n_unique().cast(pl.Int64)


def _measured(sensor: pl.LazyFrame) -> pl.LazyFrame:
    """Per task: mean measured use over its sensor rows, from exact sums, rounded to the small unit."""
    columns = ("gpu_used_milli", "cpu_used_milli", "mem_used_mib")
    return sensor.group_by(TASK).agg(
        (pl.col(name).sum() / pl.col(name).count()).round(0, mode="half_away_from_zero").cast(pl.Int64, strict=False)
        for name in columns
    )


def _trace_end(raw: dict[str, pl.LazyFrame]) -> int | None:
    """The last moment seen in the job, task and instance tables, seconds on the trace's clock."""
    last = [
        raw[table]
        .select(pl.max_horizontal(pl.col("start_s").max(), pl.col("end_s").max()))
        .collect(engine="streaming")
        .item()
        for table in ("job", "task", "instance")
    ]
    return max((moment for moment in last if moment is not None), default=None)
