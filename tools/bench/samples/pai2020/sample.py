"""Make a synthetic trace in the layout of the Alibaba PAI 2020 tables.

The full trace is several gigabytes and cannot be committed. Runs, tests and benchmarks of the workflow need data with
the same difficulties. `write_sample` writes the seven tables with the published marginals (sample_published.py, scaled
to the number of tasks) and with each habit of the real files. Times are seconds from the trace's origin, `plan_cpu` 100
= one core, `plan_gpu` 100 = one GPU, `plan_mem` GiB.

Habits of the real files
------------------------
Layout
  - No header in any file; columns in the order of the schema in format.yaml.
  - Integers are printed as floats (`1739162.0`), except in machine_spec and in the times of machine_metric.
  - job_name (24 hex digits) is unique and 1:1 with inst_id (64 hex digits), which names a job, not an instance.
  - A job has one to three tasks; task_name is one of 24 roles, unique only within its job.
Statuses and times
  - Terminated, Failed, Running, Waiting. A job is Failed if any task is, else Running, else Waiting. Instances may be
    Interrupted, too.
  - The start is blank for Waiting tasks, the end for Running and Waiting ones and for about 91 % of Failed tasks.
  - Terminated instances have both times, Interrupted ones an end, Waiting ones none. Nearly all Failed ones have only a
    start, the others only an end; three in ten Running ones have a start. See sample_published.py.
  - job start = its earliest task start (blank for Waiting jobs); job end = the latest end of its tasks. So the end of
    some Failed, Running and Waiting jobs is only a lower bound.
  - Missing instance times are blank.
  - Terminated task end = latest instance end; for one task in ten it is some seconds later.
  - Instance start - task start is the queueing delay; job start - task start is always 0.
  - Running gangs may have instances that ended and instances that still wait.
  - In most failed gangs one instance failed and the others are Interrupted. Some are Terminated, Running or Waiting, so
    the alphabetically largest status of the instances is not the status of the task.
  - A few run times are 0 seconds.
Requests
  - plan_gpu blank (never 0) for tasks without a GPU; gpu_type blank on a slightly different set of rows.
  - plan_mem is MB/1024 (29.296875 = 30000 MB); a few plan_cpu are 0.0; plan_gpu reaches 800, only on machines with
    eight cards; no task has more than 400 GPUs in total.
  - inst_num is mostly 1 with a heavy tail. It may differ from the number of instance rows: some gangs lack a row, some
    tasks have several tries of one instance, some have no row.
Instances, sensors, tags
  - A failed instance may be retried up to ten times, each time on another machine, as a row with the same inst_name and
    another worker_name.
  - worker_name is null if nothing started, and sometimes otherwise.
  - machine is null if nothing started.
  - Gangs start within seconds and end close together; a few have one straggler.
  - Sensors: only for some of the ended instances; lifetime averages mostly below the request; single blanks in
    cpu_usage, avg_mem and the network columns; no GPU columns for tasks without a GPU.
  - Group tags: gpu_type_spec and workload are mostly blank; some jobs lack a tag and some tags lack a job. Jobs of one
    group have similar requests.
Population
  - Submissions follow hour of day and weekday in Asia/Shanghai; the first is at 494319; the failure share rises in the
    last quarter; tasks without a GPU seldom fail; gangs fail less often than single instances.

True parameters
---------------
Jobs are not independent. The totals above are as published; which jobs they consist of depends on
  - the user: the odds that a job fails differ between users by a lognormal factor, the standard deviation of its
    logarithm USER_LOG_SD. A few users have most of the jobs.
  - the recurrence group: its jobs have one user and one request, and share a further factor of GROUP_LOG_SD. Normal
    scores of the run times of two jobs of a user correlate by RUN_BY_USER, of two of a group by RUN_BY_GROUP more.
  - the GPU type: FAILURES_BY_TYPE, relative shares of failures. A group has one type, a user may have all.
  - the machine of the first instance: the odds differ by a factor of MACHINE_LOG_SD.
The scheduler puts a user's jobs of one day into one rack, and the instances of a gang on one machine after another.

Same (tasks, seed), same bytes: see samples.draws. Instances are made in blocks of `BLOCK_TASKS` tasks, each with its
own generator, which limits the memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from ttf.formats.format_declaration import load_declaration

from samples.draws import check_sample_size, staged_files
from samples.pai2020.sample_plan import plan_sample
from samples.pai2020.sample_tables import (
    instance_frame,
    instance_names,
    job_frame,
    make_machines,
    measured_instances,
    metric_frame,
    place_instances,
    sensor_frame,
    tag_frame,
    task_frame,
)

FILES = load_declaration("pai2020")["sample"]["files"]
FEWEST_TASKS = 1_000
BLOCK_TASKS = 50_000


def blocks(total: int) -> Iterator[tuple[int, slice]]:
    """Yield blocks of rows with their numbers; a seed's bytes depend on their length, so it is no setting."""
    for number, start in enumerate(range(0, total, BLOCK_TASKS)):
        yield number, slice(start, min(start + BLOCK_TASKS, total))


def write_sample(folder: Path, tasks: int = 20_000, seed: int = 2020) -> dict[str, int]:
    """Write the seven tables of a synthetic trace with `tasks` tasks into `folder`; return the rows by table.

    The same `tasks` and `seed` give the same bytes.
    """
    check_sample_size(tasks, FEWEST_TASKS, "tasks", "the trace", seed)
    sample = plan_sample(tasks, seed)
    machines = make_machines(tasks, seed)
    written = dict.fromkeys(FILES, 0)
    with staged_files(folder, FILES) as files:

        def write(table: str, rows: pl.DataFrame) -> None:
            rows.write_csv(files[table], include_header=False)
            written[table] += rows.height

        write("machine_spec", machines.spec)
        for number, block in blocks(len(sample.jobs.status)):
            write("job", job_frame(sample, block))
            write("group_tag", tag_frame(sample, block, np.random.default_rng([seed, 1, number])))
        for number, block in blocks(tasks):
            rng = np.random.default_rng([seed, 2, number])
            write("task", task_frame(sample, block))
            instances = place_instances(rng, sample, block, written["instance"], machines)
            names = instance_names(sample, block, instances, machines)
            write("instance", instance_frame(sample, instances, names))
            measured = measured_instances(rng, instances)
            write("sensor", sensor_frame(sample, rng, instances, names, measured, written["sensor"]))
            write("machine_metric", metric_frame(rng, instances, names, measured, machines))
    return written
