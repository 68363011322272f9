"""Make the seven tables of the PAI sample from its plan: machines, instances and their placement; see sample.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from ttf.raw.packed_samples import scramble

from samples.draws import Bools, Floats, Ints, QuantileFunction, Random, hex_ids, lognormal, round_to_thousandths
from samples.pai2020.sample_plan import Sample
from samples.pai2020.sample_published import (
    ALL_MACHINES_AT_TASKS,
    CARD_MEM_GB,
    CPU_USE,
    DAY_S,
    FAILED,
    FEWEST_MACHINES,
    GPU_TYPES,
    GPU_USE,
    INTERRUPTED,
    MACHINE_LOG_SD,
    MACHINES,
    MEM_USE,
    METRIC_SHARE,
    NO_GPU,
    NO_TYPE,
    NULL_WORKER_SHARE,
    P100,
    PUBLISHED_GROUP_TAGS,
    PUBLISHED_TAGGED_JOBS,
    RACK_MACHINES,
    ROLES,
    RUNNING,
    RUNNING_WITH_START,
    SENSOR_SHARE,
    START_ALONE,
    START_ALONE_IF_RETRIED,
    STATUSES,
    T4,
    TERMINATED,
    WAITING,
    WITH_A_FAILED_ONE,
    WORKLOADS,
)

# Kinds of identifiers: no two kinds share an id.
JOB_NAME, JOB_INST, USER, GROUP, ORPHAN, MACHINE, INSTANCE, WORKER = range(8)
# Kind -> digits of its identifiers.
DIGITS = {JOB_NAME: 24, JOB_INST: 64, USER: 12, GROUP: 24, ORPHAN: 64, MACHINE: 24, INSTANCE: 24, WORKER: 64}


# ---- columns and frames ----


def decode_names(names: Sequence[str], codes: Ints) -> pl.Series:
    """Return names by code; the code after the last name is blank."""
    return pl.Series([*names, None], dtype=pl.String).gather(codes)


def float_column(values: np.ndarray, blank: Bools) -> pl.Series:
    """Make a float column with blanks, so that whole numbers are printed as `1739162.0`."""
    column = values.astype(np.float64)
    column[blank] = np.nan
    return pl.Series(column, nan_to_null=True)


def text_column(column: pl.Series, present: Bools) -> pl.Series:
    """Make a text column that is blank if not present."""
    return pl.select(pl.when(pl.Series(present)).then(column)).to_series()


def job_frame(sample: Sample, rows: slice) -> pl.DataFrame:
    jobs, seed = sample.jobs, sample.seed
    number = np.arange(len(jobs.status))[rows]
    return pl.DataFrame(
        {
            "job_name": hex_ids(seed, JOB_NAME, number, 24),
            "inst_id": hex_ids(seed, JOB_INST, number, 64),
            "user": hex_ids(seed, USER, jobs.user[rows], 12),
            "status": decode_names(STATUSES, jobs.status[rows]),
            "start_time": float_column(jobs.submit_s[rows], jobs.status[rows] == WAITING),
            "end_time": float_column(jobs.end_s[rows], jobs.end_s[rows] == 0),
        }
    )


def task_frame(sample: Sample, rows: slice) -> pl.DataFrame:
    tasks = sample.tasks
    return pl.DataFrame(
        {
            "job_name": hex_ids(sample.seed, JOB_NAME, tasks.job[rows], 24),
            "task_name": decode_names(ROLES, tasks.role[rows]),
            "inst_num": tasks.instances[rows].astype(np.float64),
            "status": decode_names(STATUSES, tasks.status[rows]),
            "start_time": float_column(tasks.start_s[rows], tasks.status[rows] == WAITING),
            "end_time": float_column(tasks.end_s[rows], tasks.end_s[rows] == 0),
            "plan_cpu": tasks.plan_cpu[rows].astype(np.float64),
            "plan_mem": tasks.plan_mib[rows] / 1_024,
            "plan_gpu": float_column(tasks.plan_gpu[rows], tasks.plan_gpu[rows] == NO_GPU),
            "gpu_type": decode_names(GPU_TYPES, tasks.gpu_type[rows]),
        }
    )


def tag_frame(sample: Sample, rows: slice, rng: Random) -> pl.DataFrame:
    """Make the tags of the jobs in `rows`, and tags of jobs that the job table lacks."""
    jobs, seed = sample.jobs, sample.seed
    number = np.flatnonzero(jobs.tagged[rows]) + rows.start
    orphans = max(1, (PUBLISHED_GROUP_TAGS - PUBLISHED_TAGGED_JOBS) * len(number) // PUBLISHED_TAGGED_JOBS)
    tagged_jobs = np.concatenate([number, rng.permutation(number)[:orphans]])
    ids = [hex_ids(seed, JOB_INST, number, 64), hex_ids(seed, ORPHAN, number[:orphans], 64)]
    requested_types = np.where(rng.random(len(tagged_jobs)) < 0.04, rng.integers(0, NO_TYPE, len(tagged_jobs)), NO_TYPE)
    # The workload belongs to the group: all of its jobs have it or none.
    kinds = np.repeat(np.arange(len(WORKLOADS)), list(WORKLOADS.values()))
    bits = scramble(jobs.group[tagged_jobs].astype(np.uint64) + np.uint64(seed))
    workload = kinds[bits % np.uint64(len(kinds))]
    has_workload = bits >> np.uint64(32) < np.uint64(95 * 2**32 // 1_000)
    return pl.DataFrame(
        {
            "inst_id": pl.concat(ids),
            "user": hex_ids(seed, USER, jobs.user[tagged_jobs], 12),
            "gpu_type_spec": decode_names(GPU_TYPES, requested_types),
            "group": hex_ids(seed, GROUP, jobs.group[tagged_jobs], 24),
            "workload": decode_names(tuple(WORKLOADS), np.where(has_workload, workload, len(WORKLOADS))),
        }
    )


@dataclass(frozen=True)
class Machines:
    """The machines, sorted by type, with the first row and the number of each type."""

    spec: pl.DataFrame
    first: Ints  # by GPU type code; the last entry: any machine
    count: Ints
    edges: Floats  # from 0: cumulative sums of the machines' factors of the odds of failure


def make_machines(tasks: int, seed: int) -> Machines:
    """Make machines in proportion to those of the trace; small samples have fewer of each type, never none."""
    counts = [
        max(FEWEST_MACHINES, count * min(tasks, ALL_MACHINES_AT_TASKS) // ALL_MACHINES_AT_TASKS)
        for count, *_ in MACHINES.values()
    ]
    memory = np.concatenate(
        [
            np.where(np.arange(n) < rest * n // total, rest_memory, main_memory)
            for n, (total, _, main_memory, rest_memory, rest, _) in zip(counts, MACHINES.values(), strict=True)
        ]
    )
    begin = dict(zip(MACHINES, np.cumsum([0, *counts[:-1]]), strict=True))
    number = dict(zip(MACHINES, counts, strict=True))
    spec = pl.DataFrame(
        {
            "machine": hex_ids(seed, MACHINE, np.arange(sum(counts)), 24),
            "gpu_type": np.repeat(list(MACHINES), counts).tolist(),
            "cap_cpu": np.repeat([row[1] for row in MACHINES.values()], counts),
            "cap_mem": memory,
            "cap_gpu": np.repeat([row[5] for row in MACHINES.values()], counts),
        }
    )
    return Machines(
        spec,
        first=np.array([*(begin[name] for name in GPU_TYPES), 0]),
        count=np.array([*(number[name] for name in GPU_TYPES), sum(counts)]),
        edges=np.concatenate(
            [[0], np.cumsum(lognormal(np.random.default_rng([seed, 3]), sum(counts), MACHINE_LOG_SD))]
        ),
    )


def first_machines(rng: Random, sample: Sample, block: slice, machines: Machines) -> Ints:
    """Draw the machine of the first instance of each task of a block.

    A user's jobs of one day go to one rack of machines of the requested type. Within the rack failed tasks are
    distributed by the machines' odds, all others uniformly.
    """
    tasks = sample.tasks
    job, gpu_type = tasks.job[block], tasks.gpu_type[block]
    day = sample.jobs.submit_s[job] // DAY_S
    racks = -(-machines.count[gpu_type] // RACK_MACHINES)
    rack = (scramble((sample.jobs.user[job] * 1_000 + day).astype(np.uint64)) % racks.astype(np.uint64)).astype(
        np.int64
    )
    low, high = (machines.first[gpu_type] + (rack + offset) * machines.count[gpu_type] // racks for offset in (0, 1))
    draw = rng.random(len(job))
    edges = machines.edges
    odds_machines = np.searchsorted(edges, edges[low] + draw * (edges[high] - edges[low]), side="right") - 1
    random_machines = low + (draw * (high - low)).astype(np.int64)
    return np.where(tasks.status[block] == FAILED, np.clip(odds_machines, low, high - 1), random_machines)


@dataclass(frozen=True)
class Instances:
    """One entry per instance row of a block; a time of 0 is not written."""

    task: Ints
    number: Ints  # counted through the whole trace
    name: Ints  # number behind inst_name, which the tries of one instance share
    status: Ints
    start_s: Ints
    end_s: Ints
    named: Bools
    machine: Ints


def place_instances(rng: Random, sample: Sample, block: slice, instances_before: int, machines: Machines) -> Instances:
    """Draw the instances of a block of tasks: times, machine and status of each."""
    tasks = sample.tasks
    rows = tasks.rows[block]
    task = np.repeat(np.arange(len(tasks.rows))[block], rows)
    index = np.arange(len(task)) - np.repeat(np.cumsum(rows) - rows, rows)  # within the task
    number = instances_before + np.arange(len(task))
    status = tasks.status[task]
    run = tasks.run_s[task]
    begin = tasks.start_s[task] + tasks.wait_s[task]
    finish = begin + run
    is_first_instance = index == 0  # the instance that begins first and ends last, in its last try
    draw = rng.random(len(task))

    # Instances of a gang start and end seconds apart, less if the run is short.
    jitter = np.minimum(run // 4, 5) + 1
    start = begin + np.where(is_first_instance, 0, rng.integers(0, jitter))
    end = np.maximum(start, finish - np.where(is_first_instance, 0, rng.integers(0, jitter)))

    straggled = tasks.straggling[task] & ~is_first_instance
    share = (3 + tasks.job[task] % 5) / 10  # the others end after 30 to 70 % of the straggler's time
    end = np.where(straggled, np.maximum(start, begin + (run * share).astype(np.int64)), end)

    # The last rows of a task are earlier tries of its first instance, all within the first eighth of its time.
    earlier = tasks.earlier_tries[task]
    earlier_try = index - (np.repeat(rows, rows) - earlier)  # from 0 on; below it, no earlier try
    is_earlier = earlier_try >= 0
    spacing = run // 8 // np.maximum(earlier, 1)
    start = np.where(is_earlier, begin + earlier_try * spacing, start)
    end = np.where(is_earlier, start + spacing, end)
    start = np.where((earlier > 0) & is_first_instance, begin + run // 8 + run // 16, start)
    name = np.where(is_earlier, number - index, number)

    in_failed_gang = (status == FAILED) & ~is_first_instance & ~is_earlier
    other_statuses, shares = list(WITH_A_FAILED_ONE), list(WITH_A_FAILED_ONE.values())
    other_status = np.array(other_statuses)[np.searchsorted(np.cumsum(shares[:-1]), draw, side="right")]
    ended_early = tasks.partly_ended[task] & ~is_first_instance & ((draw < 0.4) | (index == 1))
    is_waiting = tasks.partly_waiting[task] & ~is_first_instance & ((draw < 0.4) | (index == 1))
    status = np.where(in_failed_gang, other_status, status)
    status = np.where(ended_early, TERMINATED, status)
    status = np.where(is_waiting, WAITING, status)
    status = np.where(is_earlier, FAILED, status)
    early_end = start + (run * rng.random(len(task))).astype(np.int64)
    end = np.where(ended_early, early_end, end)

    # Which of the two times each row has; a failed try has one of them.
    draw_written = rng.random(len(task))
    failed = status == FAILED
    start_alone = np.where(is_earlier, START_ALONE_IF_RETRIED, START_ALONE)
    has_start = (status == TERMINATED) | (failed & (draw_written < start_alone))
    has_start |= (status == RUNNING) & (draw_written < RUNNING_WITH_START)
    has_end = np.isin(status, (TERMINATED, INTERRUPTED)) | (failed & (draw_written >= start_alone))
    # A gang takes one machine after another.
    gpu_type = tasks.gpu_type[task]
    first = np.repeat(first_machines(rng, sample, block, machines), rows) - machines.first[gpu_type]
    machine = machines.first[gpu_type] + (first + index) % machines.count[gpu_type]
    return Instances(
        task=task,
        number=number,
        name=name,
        status=status,
        start_s=np.where(has_start, start, 0),
        end_s=np.where(has_end, end, 0),
        named=(status != WAITING) & (rng.random(len(task)) >= NULL_WORKER_SHARE),
        machine=machine,
    )


def instance_names(sample: Sample, block: slice, instances: Instances, machines: Machines) -> pl.DataFrame:
    """Make the text columns of a block's instances once for the three tables that have them."""
    job = sample.tasks.job[block]
    job_offset = sample.tasks.job[instances.task] - job[0]
    job_numbers = np.arange(job[0], job[-1] + 1)
    return pl.DataFrame(
        {
            "job_name": hex_ids(sample.seed, JOB_NAME, job_numbers, 24).gather(job_offset),
            "task_name": decode_names(ROLES, sample.tasks.role[instances.task]),
            "worker_name": text_column(hex_ids(sample.seed, WORKER, instances.number, 64), instances.named),
            "inst_id": hex_ids(sample.seed, JOB_INST, job_numbers, 64).gather(job_offset),
            "machine": text_column(machines.spec["machine"].gather(instances.machine), instances.status != WAITING),
        }
    )


def instance_frame(sample: Sample, instances: Instances, names: pl.DataFrame) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "job_name": names["job_name"],
            "task_name": names["task_name"],
            "inst_name": hex_ids(sample.seed, INSTANCE, instances.name, 24),
            "worker_name": names["worker_name"],
            "inst_id": names["inst_id"],
            "status": decode_names(STATUSES, instances.status),
            "start_time": float_column(instances.start_s, instances.start_s == 0),
            "end_time": float_column(instances.end_s, instances.end_s == 0),
            "machine": names["machine"],
        }
    )


def measured_instances(rng: Random, instances: Instances) -> Ints:
    """Draw the instances with a sensor row from those with both times and a worker's name."""
    usable = instances.named & (instances.start_s > 0) & (instances.end_s > 0)
    return np.flatnonzero(usable & (rng.random(len(usable)) < SENSOR_SHARE))


def sensor_frame(
    sample: Sample, rng: Random, instances: Instances, names: pl.DataFrame, rows: Ints, rows_before: int
) -> pl.DataFrame:
    """Draw lifetime averages of the measured instances; those of one task are similar."""
    tasks = sample.tasks
    task = instances.task[rows]
    n = len(rows)
    per_task = rng.random((3, int(instances.task[-1] - instances.task[0]) + 1))[:, task - instances.task[0]]
    noise = 0.97 + 0.06 * rng.random((3, n))
    plan_gpu = np.maximum(tasks.plan_gpu[task], 0)
    use = [QuantileFunction(knots, log=False) for knots in (CPU_USE, GPU_USE, MEM_USE)]
    cpu = np.minimum(9_600, tasks.plan_cpu[task] * use[0](per_task[0]) * noise[0])
    gpu = np.minimum(800, plan_gpu * use[1](per_task[1]) * noise[1])
    avg_mem = np.minimum(512, tasks.plan_mib[task] / 1_024 * use[2](per_task[2]) * noise[2])
    max_mem = avg_mem * (1 + rng.random(n))
    cards = (plan_gpu + 99) // 100
    card_mem = np.array(CARD_MEM_GB)[tasks.gpu_type[task]] * cards
    max_gpu_mem = card_mem * rng.random(n)
    avg_gpu_mem = max_gpu_mem * rng.random(n)
    card = (rng.random(n) * np.where(np.isin(tasks.gpu_type[task], [T4, P100]), 2, 8)).astype(np.int64)
    no_gpu = plan_gpu == 0
    read_count = rng.integers(1, 2_000, n) * (1 + instances.end_s[rows] - instances.start_s[rows]) // 60 + 10
    write_count = read_count // rng.integers(2, 40, n)
    volume = rng.integers(200, 60_000, (2, n))
    # Blanks at fixed distances: about as rare as in the trace, and present in the smallest sample.
    row_number = rows_before + np.arange(n)
    no_network = np.isin(row_number, (5, 50, 500))
    return pl.DataFrame(
        {
            **names[rows].to_dict(),
            "gpu_name": decode_names([f"/dev/nvidia{i}" for i in range(8)], np.where(no_gpu, 8, card)),
            "cpu_usage": float_column(round_to_thousandths(cpu), row_number % 520 == 7),
            "gpu_wrk_util": float_column(round_to_thousandths(gpu), no_gpu),
            "avg_mem": float_column(round_to_thousandths(avg_mem), row_number % 2_492 == 11),
            "max_mem": round_to_thousandths(max_mem),
            "avg_gpu_wrk_mem": float_column(round_to_thousandths(avg_gpu_mem), no_gpu),
            "max_gpu_wrk_mem": float_column(round_to_thousandths(max_gpu_mem), no_gpu),
            "read": float_column(read_count * volume[0], no_network),
            "write": float_column(write_count * volume[1], no_network),
            "read_count": float_column(read_count, no_network),
            "write_count": float_column(write_count, no_network),
        }
    )


def metric_frame(
    rng: Random, instances: Instances, names: pl.DataFrame, rows: Ints, machines: Machines
) -> pl.DataFrame:
    """Draw the machine's metrics during an instance; its times are printed as integers."""
    rows = rows[rng.random(len(rows)) < METRIC_SHARE]
    n = len(rows)
    iowait, kernel, usr = round_to_thousandths(rng.random((3, n)) * np.array([[1.5], [5.0], [60.0]]))
    gpus = machines.spec["cap_gpu"].to_numpy()[instances.machine[rows]]
    unknown = rng.random(n) < 0.01
    return pl.DataFrame(
        {
            **names["worker_name", "machine"][rows].to_dict(),
            "start_time": instances.start_s[rows],
            "end_time": instances.end_s[rows],
            "machine_cpu_iowait": float_column(iowait, unknown),
            "machine_cpu_kernel": float_column(kernel, unknown),
            "machine_cpu_usr": float_column(usr, unknown),
            "machine_gpu": float_column(round_to_thousandths(rng.random(n) * 100 * gpus), unknown | (gpus == 0)),
            "machine_load_1": float_column(round_to_thousandths(rng.random(n) * 90), unknown),
            "machine_net_receive": float_column(round_to_thousandths(rng.random(n) * 4e8), rng.random(n) < 0.02),
            "machine_num_worker": round_to_thousandths(1 + rng.random(n) * 24),
            "machine_cpu": float_column(round_to_thousandths(iowait + kernel + usr), unknown),
        }
    )
