"""A synthetic trace in the layout of the Alibaba PAI 2020 tables.

The full trace is several gigabytes and cannot be committed; the workflow still has to run, be tested and
be timed on something that bites in the same places. `write_sample` writes the seven tables with the
published marginals (`PUBLISHED_*`, scaled to the number of tasks asked for) and with each habit of the real
files. Times are seconds from the trace's origin, `plan_cpu` 100 = one core, `plan_gpu` 100 = one GPU,
`plan_mem` GiB.

How each habit shows
--------------------
Layout
  - No header in any file; columns in the order of the schema in format.yaml.
  - Integers printed as floats (`1739162.0`) everywhere but in machine_spec and in the times of machine_metric.
  - job_name (24 hex digits) is unique and 1:1 with inst_id (64 hex digits), which names a job, not an instance.
  - One to three tasks a job; task_name is a role (24 of them), unique only together with its job.
Statuses and times
  - Terminated, Failed, Running, Waiting. A job is Failed if any task is, else Running, else Waiting.
  - Waiting tasks have a blank start; Running and Waiting ones a blank end. About 91 % of Failed tasks have a
    blank end too; the instances of six in ten of those do carry one.
  - job start = its earliest task start (blank for Waiting jobs); job end = the latest end among its tasks, so
    that some Failed, Running and Waiting jobs have an end that is only a lower bound.
  - Instance times that are not there yet are 0.0 in half of the cases and blank in the other half.
  - Terminated task end = latest instance end, and one task in ten says some seconds more.
  - Instance start - task start is the queueing delay; job start - task start is 0 and tells nothing.
  - Running gangs may have instances that ended, and instances that still wait.
  - Failed gangs hold Terminated and Running instances as well, so that the alphabetically largest status of
    the instances is not the status of the task.
  - A few run times are 0 seconds.
Requests
  - plan_gpu blank (never 0) for tasks without a GPU; gpu_type blank on a slightly different set of rows.
  - plan_mem is MB/1024 (29.296875 = 30000 MB); a few plan_cpu are 0.0; plan_gpu reaches 800, on machines
    with eight cards only; no task has more than 400 GPUs in all.
  - inst_num is mostly 1 with a heavy tail, and is not always the number of instance rows: gangs with a row
    too few, tasks with a second try of one instance, tasks with no row at all.
Instances, sensors, tags
  - worker_name is null where nothing started and now and then elsewhere; a second try repeats it.
  - machine is null where nothing started.
  - Gangs start within seconds and end close together; a few have one straggler.
  - Sensors: a part of the ended instances only, lifetime averages mostly below the request, single blanks in
    cpu_usage, avg_mem and the network columns; no GPU columns for tasks without a GPU.
  - Group tags: gpu_type_spec mostly blank, workload mostly blank, some jobs without a tag and some tags
    without a job. Jobs of one group ask for much the same.
Population
  - Submissions follow hour of day and weekday in Asia/Shanghai; the first is at 494319; the failure share
    rises in the last quarter; tasks without a GPU seldom fail; gangs fail less often than single instances.

What the true parameters are
----------------------------
Jobs are not independent. The totals above stay as published; who makes them up depends on
  - the user: the odds that a job fails differ between users by a lognormal factor, the standard deviation of its
    logarithm USER_LOG_SD. A few users have most of the jobs.
  - what is sent again: the jobs of a recurrence group have one user and one request, and a further factor of
    GROUP_LOG_SD in common. Normal scores of the run times of two jobs of a user correlate by RUN_BY_USER, of two of a
    group by RUN_BY_GROUP more.
  - the GPU type: FAILURES_BY_TYPE, relative shares of failures. A group has one type, a user may have all.
  - the machine: where the first instance ran, the odds differ by a factor of MACHINE_LOG_SD.
The scheduler puts the jobs that a user submits on one day into one rack, and a gang on one machine after another.

Same (tasks, seed), same bytes: see ttf.formats.draws. Instances are made in blocks of `BLOCK_TASKS` tasks, each with
a generator of its own, which bounds the memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from ttf.formats.declared import declared
from ttf.formats.draws import (
    Bools,
    Floats,
    Ints,
    QuantileFunction,
    Random,
    alike,
    apportion,
    ascending,
    by_the_clock,
    check_asked,
    hex_ids,
    lognormal,
    mixed,
    pick,
    ranks,
    sent_again,
    shuffled,
    spread,
    staged_files,
    thousandths,
    which_fail,
    whole,
)

FILES = declared("pai2020")["sample"]

# ---- what was published of the full trace (counts) ----

PUBLISHED_TASKS = 1_261_050
PUBLISHED_JOBS = 1_055_501
PUBLISHED_JOB_STATUS = {"Failed": 256_555, "Running": 62_928, "Waiting": 3_663, "Terminated": 732_355}
PUBLISHED_TASK_STATUS = {"Failed": 256_762, "Running": 115_501, "Waiting": 3_714, "Terminated": 885_073}
PUBLISHED_SINGLE = 963_703  # tasks of one instance
PUBLISHED_NO_GPU = 223_965  # tasks with a blank plan_gpu
PUBLISHED_FAILED_NO_GPU = 4_031  # 1.8 % of them
PUBLISHED_PLAN_GPU = {100: 442_591, 25: 272_243, 50: 136_701, 10: 116_648, 200: 16_312, 800: 4_943}
PUBLISHED_GPU_TYPE = {"MISC": 696_000, "T4": 227_000, "P100": 73_000, "V100": 29_000, "V100M32": 19_000}
PUBLISHED_FAILED_JOBS_WITH_END = 25_620
PUBLISHED_RUNNING_JOBS_WITH_END = 1_061
PUBLISHED_WAITING_JOBS_WITH_END = 45
PUBLISHED_TAGGED_JOBS = 1_053_971
PUBLISHED_GROUP_TAGS = 1_055_032
PUBLISHED_LATE_FAILURE_PER_MILLE = 430  # of the jobs that ended, last quarter of the submissions

# ---- assumptions where nothing was published; each is one number to change ----

# The 47,647 tasks left after the published values: 21 more, so that 27 distinct ones occur. They keep the
# published bands: below 25 14.5 %, 25 to 50 26.2 %, 50 to 100 13.0 %, above 100 2.8 %.
OTHER_PLAN_GPU = {
    20: 14_900, 5: 9_100, 15: 5_200, 1: 2_600, 2: 1_700, 12: 1_300, 8: 900, 3: 500,
    30: 1_400, 40: 1_100, 33: 300, 60: 400, 80: 300, 75: 200, 70: 80, 90: 67,
    400: 5_900, 300: 1_000, 600: 400, 500: 200, 700: 100,
}  # fmt: skip
PLAN_CPU = {
    600: 5_200, 400: 1_000, 800: 620, 200: 520, 1000: 420, 500: 380, 1200: 360, 100: 340, 300: 240, 1600: 110,
    700: 90, 900: 80, 1100: 60, 2400: 70, 1500: 60, 2000: 55, 250: 40, 50: 35, 150: 30, 1400: 30, 1800: 28,
    3200: 24, 4800: 12, 6400: 4, 450: 15, 350: 12, 550: 10, 1300: 12, 1700: 9, 1900: 8, 2200: 8, 2500: 7,
    2800: 6, 3000: 9, 3600: 5, 4000: 6, 4400: 2, 5000: 3, 5600: 2, 6000: 3, 20: 3, 10: 3, 750: 4, 650: 4,
    2300: 2, 2600: 2, 3400: 1, 4600: 1, 5200: 1,
}  # fmt: skip
PUBLISHED_ZERO_PLAN_CPU = 11
NAMED_PLAN_MIB = {
    30_000: 3_600, 10_000: 900, 20_000: 800, 40_000: 420, 60_000: 260, 50_000: 240, 8_192: 380, 16_384: 330,
    32_768: 300, 4_096: 190, 65_536: 60, 2_048: 110, 1_024: 60, 512: 15, 100_000: 55, 120_000: 24, 131_072: 14,
    200_000: 9, 300_000: 4, 29_000: 300, 5_000: 180, 15_000: 150, 25_000: 130, 12_000: 90, 48_000: 60,
}  # fmt: skip
EXTRA_TASKS = {  # (status of the job, status of its further task) -> tasks at full size
    ("Failed", "Failed"): PUBLISHED_TASK_STATUS["Failed"] - PUBLISHED_JOB_STATUS["Failed"],
    ("Failed", "Terminated"): 5_000,
    ("Failed", "Running"): 4_000,
    ("Running", "Running"): PUBLISHED_TASK_STATUS["Running"] - PUBLISHED_JOB_STATUS["Running"] - 4_000,
    ("Running", "Terminated"): PUBLISHED_RUNNING_JOBS_WITH_END,
    ("Waiting", "Waiting"): PUBLISHED_TASK_STATUS["Waiting"] - PUBLISHED_JOB_STATUS["Waiting"],
    ("Waiting", "Terminated"): PUBLISHED_WAITING_JOBS_WITH_END,
}
TYPED_NO_GPU = 7_900  # tasks without plan_gpu that still have a gpu_type
FAILED_GANGS_PER_MILLE = 150  # of all gangs; gives the instance-weighted failure share of 14.7 %
SENSOR_SHARE = 0.475  # of the ended instances; 3.03 of 7.52 million instances in all
METRIC_SHARE = 0.664  # of the sensor rows
NULL_WORKER_SHARE = 0.004

# How unlike users, what is sent again, and machines are: see the top.
USER_LOG_SD, GROUP_LOG_SD, MACHINE_LOG_SD = 1.0, 0.5, 0.4
RUN_BY_USER, RUN_BY_GROUP = 0.1, 0.2
FAILURES_BY_TYPE = {"MISC": 100, "T4": 80, "P100": 110, "V100": 130, "V100M32": 75}
RACK_MACHINES = 16

STATUSES = ("Failed", "Running", "Waiting", "Terminated")
FAILED, RUNNING, WAITING, TERMINATED = range(4)
GPU_TYPES = ("MISC", "T4", "P100", "V100", "V100M32")
NO_TYPE = len(GPU_TYPES)
MISC, T4, P100, V100, V100M32 = range(5)
NO_GPU = -1  # plan_gpu of a task that asks for none

HOUR_S, DAY_S = 3_600, 86_400
SHANGHAI_S = 8 * HOUR_S  # no daylight saving time in any year that could be meant
FIRST_START_S = 494_319
START_HOURS = 1_642
TRACE_END_S = (FIRST_START_S // HOUR_S + START_HOURS + 1) * HOUR_S
HOUR_WEIGHTS = (30, 24, 20, 17, 15, 15, 16, 20, 30, 46, 62, 66, 54, 56, 70, 74, 74, 70, 58, 54, 56, 56, 50, 40)
WEEKDAY_WEIGHTS = (104, 108, 110, 108, 102, 72, 66)  # Monday first

# Quantile functions: probability -> value, with straight lines between (of the logarithm, for times and
# sizes). Seconds. p50, p75 and p90 are the published ones; the tails are fitted to the published means by type
# and to 0.14 % of the runs above 48 hours.
RUN_QUANTILES_S: dict[int, dict[float, float]] = {
    MISC: {0: 0.3, 0.1: 42, 0.25: 150, 0.5: 689, 0.75: 3_923, 0.9: 12_443, 0.99: 50_000, 0.9986: 150_000, 1: 4e5},
    T4: {0: 0.3, 0.1: 35, 0.25: 95, 0.5: 309, 0.75: 1_181, 0.9: 5_676, 0.99: 35_000, 0.9986: 100_000, 1: 3e5},
    P100: {0: 0.3, 0.1: 45, 0.25: 190, 0.5: 967, 0.75: 4_792, 0.9: 15_674, 0.99: 86_000, 0.9986: 235_000, 1: 8e5},
    V100: {0: 0.3, 0.1: 50, 0.25: 230, 0.5: 1_295, 0.75: 5_337, 0.9: 17_728, 0.99: 128_000, 0.9986: 300_000, 1: 9e5},
    V100M32: {0: 0.3, 0.1: 45, 0.25: 210, 0.5: 1_163, 0.75: 7_963, 0.9: 24_873, 0.99: 140_000, 0.9986: 3e5, 1: 9e5},
    NO_TYPE: {0: 0.3, 0.1: 40, 0.25: 140, 0.5: 600, 0.75: 3_400, 0.9: 11_500, 0.99: 50_000, 0.9986: 150_000, 1: 4e5},
}  # fmt: skip
# Time from the start of the job to its end; the queueing delay is taken out of it.
FAILED_QUANTILES_S = {
    0: 0.4, 0.1: 14, 0.268: 60, 0.5: 220, 0.674: 600, 0.85: 4_600, 0.95: 25_000, 0.99: 90_000, 0.999: 260_000,
    1: 600_000,
}  # fmt: skip
WAIT_QUANTILES_S: dict[int, dict[float, float]] = {
    MISC: {0: 0.6, 0.5: 10, 0.9: 111, 0.99: 3_600, 1: 60_000},
    T4: {0: 0.4, 0.5: 3, 0.9: 16, 0.99: 900, 1: 40_000},
    P100: {0: 0.6, 0.5: 13, 0.9: 827, 0.99: 9_000, 1: 90_000},
    V100: {0: 0.8, 0.5: 91, 0.9: 6_724, 0.99: 40_000, 1: 200_000},
    V100M32: {0: 0.8, 0.5: 104, 0.9: 3_630, 0.99: 30_000, 1: 200_000},
    NO_TYPE: {0: 0.4, 0.5: 6, 0.9: 60, 0.99: 2_400, 1: 40_000},
}
GANG_QUANTILES = {
    0: 1.6, 0.2: 2.5, 0.45: 5, 0.7: 13, 0.85: 28, 0.95: 75, 0.99: 205, 0.999: 760, 0.9999: 2_300, 1: 6_370,
}  # fmt: skip
LARGEST_GANG = 6_330
GROUP_QUANTILES = {0: 0.6, 0.7: 1.5, 0.87: 4.5, 0.95: 10, 0.99: 28, 0.999: 120, 1: 800}  # jobs a group

# Measured / requested, lifetime averages. The value 1 stands at the published share below the request.
CPU_USE = {0: 0.01, 0.3: 0.18, 0.5: 0.38, 0.7: 0.66, 0.8446: 1, 0.95: 1.9, 1: 6}
GPU_USE = {0: 0, 0.12: 0, 0.3: 0.02, 0.5: 0.08, 0.75: 0.35, 0.9: 0.7, 0.9802: 1, 1: 1.5}
MEM_USE = {0: 0.01, 0.3: 0.07, 0.5: 0.17, 0.8: 0.46, 0.9588: 1, 1: 1.8}
CARD_MEM_GB = (12, 16, 16, 16, 32, 16)  # by type code, the last for tasks without a type

# machine type -> (machines, cores, memory in GB of most, of the rest, machines with the rest, GPUs each)
MACHINES = {
    "CPU": (83, 96, 512, 512, 0, 0),
    "MISC": (280, 96, 512, 512, 0, 8),
    "P100": (798, 64, 512, 512, 0, 2),
    "T4": (497, 96, 512, 512, 0, 2),
    "V100": (104, 96, 512, 384, 45, 8),
    "V100M32": (135, 96, 384, 384, 0, 8),
}
ALL_MACHINES_AT_TASKS = PUBLISHED_TASKS // 10  # samples smaller than this have proportionally fewer machines
FEWEST_MACHINES = 2  # of each type

SINGLE_ROLES = {  # the one task of a job, with a GPU
    "tensorflow": 5_200, "PyTorchWorker": 2_400, "worker": 1_300, "xComputeWorker": 420, "OpenmpiWorker": 170,
    "BladeMain": 110, "TVMTuneMain": 90, "XGBoostWorker": 50, "CaffeWorker": 40, "MxnetWorker": 35, "JupyterTask": 90,
}  # fmt: skip
CPU_ROLES = {  # the same without a GPU
    "JupyterTask": 300, "OssToVolumeWorker": 240, "ReduceTask": 130, "MapTask": 120, "TensorboardTask": 60,
    "DataExportTask": 40, "xComputeWorker": 110,
}  # fmt: skip
JOB_FAMILIES = (  # roles that share a job, and how often
    (("worker", "ps", "evaluator"), 70),
    (("chief", "ps", "worker"), 16),
    (("tensorflow", "ps", "TensorboardTask"), 6),
    (("M1", "R2_1", "J3_1_2"), 5),
    (("worker", "ps", "chief"), 2),
    (("M2", "R3_2", "evaluator"), 1),
)
ROLES = tuple(dict.fromkeys([*SINGLE_ROLES, *CPU_ROLES, *(role for family, _ in JOB_FAMILIES for role in family)]))
WORKLOADS = {
    "ctr": 44, "bert": 20, "graphlearn": 14, "inception": 6, "nmt": 5, "resnet": 5, "rl": 4, "vgg": 1, "xlnet": 1,
}  # fmt: skip
USERS_FULL = 1_350

FEWEST_TASKS = 1_000
BLOCK_TASKS = 50_000
# Kinds of identifiers: each gets numbers of its own, so that no two kinds share an id.
JOB_NAME, JOB_INST, USER, GROUP, ORPHAN, MACHINE, INSTANCE, WORKER = range(8)


def scaled(count: int, tasks: int, floor: int = 0) -> int:
    """A count of the full trace at the size of this sample, rounded, at least `floor`."""
    return max(floor, (count * tasks * 2 + PUBLISHED_TASKS) // (2 * PUBLISHED_TASKS))


# ---- the plan: every job and task, before instances are made ----


@dataclass(frozen=True)
class Jobs:
    """One entry per job, in file order."""

    status: Ints
    submit_s: Ints
    user: Ints
    group: Ints
    tagged: Bools
    end_s: Ints  # 0 where no task wrote an end


@dataclass(frozen=True)
class Tasks:
    """One entry per task, sorted by job; times in seconds, flags for the habits that a task shows."""

    job: Ints
    role: Ints
    status: Ints
    instances: Ints
    rows: Ints  # instance rows, which need not be `instances`
    start_s: Ints
    wait_s: Ints
    run_s: Ints
    end_s: Ints  # as the task table says; 0 where it is blank
    plan_cpu: Ints
    plan_mib: Ints
    plan_gpu: Ints  # NO_GPU where blank
    gpu_type: Ints
    end_unwritten: Bools  # failed, and its instances have no end either
    second_try: Bools
    straggling: Bools
    partly_ended: Bools
    partly_waiting: Bools


@dataclass(frozen=True)
class Sample:
    seed: int
    jobs: Jobs
    tasks: Tasks


def job_statuses(rng: Random, counts: Sequence[int]) -> Ints:
    """Status of each job in order of submission: more failures in the last quarter, Running and Waiting late."""
    jobs = sum(counts)
    late = jobs - 3 * jobs // 4
    late_running, late_waiting = counts[RUNNING] * 55 // 100, counts[WAITING] * 9 // 10
    ended = late - late_running - late_waiting
    late_failed = min(counts[FAILED], ended * PUBLISHED_LATE_FAILURE_PER_MILLE // 1_000)
    late_counts = [late_failed, late_running, late_waiting, ended - late_failed]
    parts = []
    for segment in ([n - m for n, m in zip(counts, late_counts, strict=True)], late_counts):
        status = np.repeat(np.arange(4), segment)
        # The largest of several uniform numbers leans towards the end of the segment.
        key = rng.random((6, len(status)))
        key[1:3, (status != RUNNING) & (status != WAITING)] = 0
        key[3:, status != WAITING] = 0
        parts.append(status[np.argsort(key.max(axis=0), kind="stable")])
    return np.concatenate(parts)


def counts_of_jobs(tasks: int) -> tuple[list[int], dict[tuple[int, int], int]]:
    """Jobs by status, and further tasks by (job status, task status), for a sample of so many tasks."""
    jobs = scaled(PUBLISHED_JOBS, tasks)
    status = [scaled(PUBLISHED_JOB_STATUS[name], tasks, floor=8) for name in STATUSES]
    status[TERMINATED] = jobs - sum(status[:TERMINATED])
    extra = {
        (STATUSES.index(job), STATUSES.index(task)): scaled(count, tasks, floor=3)
        for (job, task), count in EXTRA_TASKS.items()
    }
    extra[TERMINATED, TERMINATED] = tasks - jobs - sum(extra.values())
    return status, extra


def further_tasks(rng: Random, status: Ints, extra: Mapping[tuple[int, int], int]) -> tuple[Ints, Ints, Ints]:
    """Job, position in the job (1 or 2) and status of every task that is not the first of its job."""
    job, position, task_status = [], [], []
    for code in range(len(STATUSES)):
        hosts = rng.permutation(np.flatnonzero(status == code))
        for (host_status, new_status), count in extra.items():
            if host_status != code:
                continue
            # Ends in Running and Waiting jobs are counted per job: one such task each.
            alone = host_status in (RUNNING, WAITING) and new_status == TERMINATED
            used = count if alone else -(-count * 7 // 10)
            number = np.arange(count)
            job.append(hosts[:used][number % used])
            position.append(1 + number // used)
            task_status.append(np.full(count, new_status))
            hosts = hosts[used:]
    return np.concatenate(job), np.concatenate(position), np.concatenate(task_status)


def without_gpu(rng: Random, status: Ints, first: Bools) -> Bools:
    """Which tasks ask for no GPU: most further tasks (parameter servers), few first ones, few that failed."""
    tasks = len(status)
    failed = scaled(PUBLISHED_FAILED_NO_GPU, tasks, floor=3)
    rest = scaled(PUBLISHED_NO_GPU, tasks) - failed
    chosen = pick(rng, (status == FAILED) & first, 0, at_least=failed)
    servers = pick(rng, (status != FAILED) & ~first, 0.92, at_least=0)
    left = rest - int(servers.sum())
    return chosen | servers | pick(rng, (status != FAILED) & first, 0, at_least=left)


def gpu_types(rng: Random, status: Ints, no_gpu: Bools, first_row_of: Ints) -> Ints:
    """Type code of each task. Blank on nearly, not quite, the tasks without a GPU; one type a job.

    Some types have more than their part of the failures: FAILURES_BY_TYPE.
    """
    tasks = len(no_gpu)
    typed = scaled(sum(PUBLISHED_GPU_TYPE.values()), tasks)
    typed_no_gpu = pick(rng, no_gpu, TYPED_NO_GPU / PUBLISHED_NO_GPU)
    gpu_tasks = int((~no_gpu).sum())
    untyped_gpu = pick(rng, ~no_gpu, 0, at_least=max(3, gpu_tasks + int(typed_no_gpu.sum()) - typed))
    has_type = (~no_gpu & ~untyped_gpu) | typed_no_gpu
    counts = apportion(int(has_type.sum()), list(PUBLISHED_GPU_TYPE.values()), floor=12)
    failed = has_type & (status == FAILED)
    failing = [count * FAILURES_BY_TYPE[name] for name, count in zip(PUBLISHED_GPU_TYPE, counts, strict=True)]
    of_failed = apportion(int(failed.sum()), failing)
    of_others = [count - fails for count, fails in zip(counts, of_failed, strict=True)]
    types = np.full(tasks, NO_TYPE)
    codes = [GPU_TYPES.index(name) for name in PUBLISHED_GPU_TYPE]
    for rows, parts in ((failed, of_failed), (has_type & ~failed, of_others)):
        types[rows] = rng.permutation(np.repeat(codes, parts))
    of_first = types[first_row_of]
    return np.where(has_type & (of_first != NO_TYPE), of_first, types)


def gpu_requests(rng: Random, no_gpu: Bools, gpu_type: Ints) -> Ints:
    """plan_gpu of each task (100 = one GPU). More than two GPUs only on machines that have eight."""
    rows = np.flatnonzero(~no_gpu)
    weights = {**PUBLISHED_PLAN_GPU, **OTHER_PLAN_GPU}
    counts = dict(zip(weights, apportion(len(rows), list(weights.values())), strict=True))
    for value in (*PUBLISHED_PLAN_GPU, 400):
        shortfall = max(0, 3 - counts[value])
        counts[value] += shortfall
        counts[100] -= shortfall
    large = np.repeat([v for v in counts if v > 200], [counts[v] for v in counts if v > 200])
    small = np.repeat([v for v in counts if v <= 200], [counts[v] for v in counts if v <= 200])
    # Large requests favour the V100 machines five to one; two-card machines cannot take them.
    key = rng.random(len(rows))
    types = gpu_type[rows]
    key[(types == V100) | (types == V100M32)] /= 5
    key[(types == T4) | (types == P100)] += 2
    order = np.argsort(key, kind="stable")
    plan = np.full(len(no_gpu), NO_GPU)
    plan[rows[order[: len(large)]]] = rng.permutation(large)
    plan[rows[order[len(large) :]]] = rng.permutation(small)
    return plan


def memory_weights() -> dict[int, int]:
    """plan_mem in MB/1024 units and how common each is: about 130 values, a few of them usual."""
    rare = dict.fromkeys(range(1_000, 60_001, 1_000), 12)
    rare |= dict.fromkeys(range(61_000, 91_000, 1_000), 2)
    rare |= dict.fromkeys(range(91_000, 390_000, 10_000), 1)
    return {mib: 2 * weight for mib, weight in {**rare, **NAMED_PLAN_MIB}.items()}


def gang_sizes(rng: Random, status: Ints, plan_gpu: Ints, first: Bools) -> Ints:
    """inst_num of each task: one for three in four, then a heavy tail in round numbers."""
    tasks = len(status)
    gangs = scaled(PUBLISHED_TASKS - PUBLISHED_SINGLE, tasks)
    failed = scaled((PUBLISHED_TASKS - PUBLISHED_SINGLE) * FAILED_GANGS_PER_MILLE // 1_000, tasks)
    running = (status == RUNNING) & first
    several = pick(rng, status == FAILED, 0, at_least=failed) | pick(rng, running, 0.25, at_least=12)
    several |= pick(rng, (status != FAILED) & ~running, 0, at_least=gangs - int(several.sum()))
    size = np.ones(tasks, dtype=np.int64)
    drawn = QuantileFunction(GANG_QUANTILES)(spread(rng, rng.random(int(several.sum()))))
    step = np.select([drawn < 100, drawn < 500, drawn < 2_000], [1, 5, 20], 30)
    size[several] = np.clip(whole(drawn / step) * step, 2, LARGEST_GANG)
    # No task has more than 400 GPUs in all: a larger gang changes places with a small one without GPUs.
    too_large = rng.permutation(np.flatnonzero(size * plan_gpu > 40_000))
    partner = rng.permutation(np.flatnonzero((plan_gpu == NO_GPU) & (size <= 30)))[: len(too_large)]
    too_large = too_large[: len(partner)]
    size[too_large], size[partner] = size[partner], size[too_large]
    return size


def within_trace(rng: Random, start_s: Ints, run_s: Ints, group: Ints) -> Ints:
    """Run times such that everything ends inside the trace.

    A run that would end later changes places with a short one of its group that began in the first half,
    which leaves the distribution as it is.
    """
    run_s = run_s.copy()
    middle = (FIRST_START_S + TRACE_END_S) // 2
    for code in np.unique(group):
        member = group == code
        late = rng.permutation(np.flatnonzero(member & (start_s + run_s > TRACE_END_S)))
        short = member & (start_s < middle) & (run_s <= np.median(run_s[member]))
        partner = rng.permutation(np.flatnonzero(short))[: len(late)]
        late = late[: len(partner)]
        run_s[late], run_s[partner] = run_s[partner], run_s[late]
    return np.minimum(run_s, np.maximum(0, TRACE_END_S - start_s))


def waits_and_runs(
    rng: Random, submit_s: Ints, status: Ints, gpu_type: Ints, plan_gpu: Ints, length: Floats
) -> tuple[Ints, Ints]:
    """Queueing delay and run time (s) of the first task of each job, also where the run is not over yet.

    length: normal scores, larger ones for longer runs.
    """
    level = np.clip(plan_gpu, 0, 200) / 200
    failed = status == FAILED
    wait = np.zeros(len(status), dtype=np.int64)
    run = np.zeros(len(status), dtype=np.int64)
    # Failed jobs: the published times count from the submission, so a long wait needs a long time in all.
    to_end_rank = spread(rng, length)
    to_end = np.zeros(len(status))
    to_end[failed] = QuantileFunction(FAILED_QUANTILES_S)(spread(rng, to_end_rank[failed]))
    for code in range(len(RUN_QUANTILES_S)):
        for rows in (np.flatnonzero((gpu_type == code) & failed), np.flatnonzero((gpu_type == code) & ~failed)):
            run_at = spread(rng, length[rows] + 0.24 * level[rows])
            run[rows] = whole(QuantileFunction(RUN_QUANTILES_S[code])(run_at))
            # Long waits go with long runs: loosely, and closely where the total time was published.
            lean = 2 * to_end_rank[rows] if failed[rows[:1]].any() else 0.8 * run_at
            wait_at = spread(rng, rng.random(len(rows)) + lean)
            wait[rows] = whole(QuantileFunction(WAIT_QUANTILES_S[code])(wait_at))
    run[failed] = np.maximum(whole(to_end[failed]) - wait[failed], np.minimum(whole(to_end[failed]), 3))
    wait = np.minimum(wait, (TRACE_END_S - submit_s) // 2)
    return wait, within_trace(rng, submit_s + wait, run, gpu_type + 10 * failed)


def roles_of(rng: Random, job: Ints, position: Ints, no_gpu: Bools, families: Ints, extra_tasks: Ints) -> Ints:
    """Role code of each task: by the family for jobs of several tasks, else by what runs alone."""
    family_roles = np.array([[ROLES.index(role) for role in roles] for roles, _ in JOB_FAMILIES])
    role = family_roles[families[job], position]
    for alone, weights in ((~no_gpu, SINGLE_ROLES), (no_gpu, CPU_ROLES)):
        rows = np.flatnonzero((extra_tasks[job] == 0) & alone)
        role[rows] = shuffled(rng, len(rows), {ROLES.index(name): w for name, w in weights.items()}, floor=1)
    return role


def users_and_groups(rng: Random, request: Ints, failed: Bools) -> tuple[Ints, Ints]:
    """User and recurrence group of each job: jobs with one request, in groups of very uneven size, each of one user.

    As many jobs of a request fail as did before; which of its users and groups have them is drawn here.
    """
    group = sent_again(rng, request, rng.random(len(request)), QuantileFunction(GROUP_QUANTILES))
    groups = int(group.max()) + 1
    user_of = users_of(rng, groups)
    odds = lognormal(rng, int(user_of.max()) + 1, USER_LOG_SD)[user_of] * lognormal(rng, groups, GROUP_LOG_SD)
    order = np.argsort(request, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(request[order])) + 1):
        fails = which_fail(rng, int(failed[rows].sum()), odds[group[rows]])
        of_failed, of_others = group[rows[fails]], group[rows[~fails]]
        group[rows[failed[rows]]], group[rows[~failed[rows]]] = rng.permutation(of_failed), rng.permutation(of_others)
    return user_of[group], group


def users_of(rng: Random, groups: int) -> Ints:
    """User of each group, a few users having most of the groups."""
    users = max(40, min(USERS_FULL, groups // 12))
    weights = {user: 1_000_000 // (user + 5) for user in range(users)}
    return shuffled(rng, groups, weights, floor=1)


def task_flags(rng: Random, status: Ints, instances: Ints, run_s: Ints, first: Bools) -> dict[str, np.ndarray]:
    """Which tasks show which habit, and how many instance rows each has."""
    gang = instances > 1
    started = status != WAITING
    second_try = pick(rng, (status == TERMINATED) & (run_s >= 64), 0.004, at_least=4)
    straggling = pick(rng, gang & (status == TERMINATED) & (run_s >= 120), 0.03)
    partly_ended = pick(rng, gang & (status == RUNNING) & first, 0.10, at_least=4)
    partly_waiting = pick(rng, gang & (status == RUNNING) & ~partly_ended, 0.05)
    no_rows = pick(rng, (status == TERMINATED) & ~second_try, 0.003)
    no_rows |= pick(rng, status == FAILED, 0.02) | pick(rng, status == WAITING, 0.6)
    one_fewer = pick(rng, gang & started & ~no_rows & ~second_try & ~partly_ended & ~partly_waiting, 0.01)
    rows = np.where(no_rows, 0, instances + second_try - one_fewer)
    return {
        "rows": rows,
        "second_try": second_try,
        "straggling": straggling & ~one_fewer,
        "partly_ended": partly_ended,
        "partly_waiting": partly_waiting,
    }


def plan_sample(tasks: int, seed: int) -> Sample:
    """All jobs and tasks of the sample; instances follow from them."""
    rng = np.random.default_rng([seed, 0])
    status_counts, extra = counts_of_jobs(tasks)
    jobs = sum(status_counts)

    # Jobs in file order are not in order of submission.
    file_order = rng.permutation(jobs)
    job_status = job_statuses(rng, status_counts)
    hours = FIRST_START_S // HOUR_S + np.arange(START_HOURS)
    submit_s = by_the_clock(rng, jobs, hours, hours + SHANGHAI_S // HOUR_S, HOUR_WEIGHTS, WEEKDAY_WEIGHTS)
    submit_s = np.maximum(submit_s, FIRST_START_S + 1)
    submit_s[np.flatnonzero(job_status != WAITING)[0]] = FIRST_START_S
    job_status, submit_s = job_status[file_order], submit_s[file_order]

    extra_job, extra_position, extra_status = further_tasks(rng, job_status, extra)
    job = np.concatenate([np.arange(jobs), extra_job])
    position = np.concatenate([np.zeros(jobs, dtype=np.int64), extra_position])
    status = np.concatenate([job_status, extra_status])
    order = np.lexsort((position, job))
    job, position, status = job[order], position[order], status[order]
    first = position == 0
    first_row = np.flatnonzero(first)
    extra_tasks = np.bincount(job, minlength=jobs) - 1

    no_gpu = without_gpu(rng, status, first)
    gpu_type = gpu_types(rng, status, no_gpu, first_row[job])
    plan_gpu = gpu_requests(rng, no_gpu, gpu_type)
    user, group = users_and_groups(rng, (gpu_type * 1_000 + plan_gpu)[first_row], job_status == FAILED)
    # A group asks for the same each time. Who asks for more GPU asks for more cores and memory too, loosely.
    cores, memory = rng.random((2, int(position.max()) + 1, int(group.max()) + 1))[:, position, group[job]]
    appetite = np.clip(plan_gpu, 0, 400) / 200
    plan_cpu = ascending(tasks, PLAN_CPU)[ranks(rng, cores * 5 + appetite)]
    plan_cpu[pick(rng, no_gpu, 0, at_least=scaled(PUBLISHED_ZERO_PLAN_CPU, tasks, floor=3))] = 0
    plan_mib = ascending(tasks, memory_weights())[ranks(rng, memory * 12 + appetite)]
    instances = gang_sizes(rng, status, plan_gpu, first)

    # Further tasks of a job start and end with the first one.
    length = alike(rng, (user, RUN_BY_USER), (group, RUN_BY_GROUP))
    job_wait, job_run = waits_and_runs(rng, submit_s, job_status, gpu_type[first_row], plan_gpu[first_row], length)
    after_first_s = np.where(first, 0, np.minimum(rng.integers(0, 20, tasks), job_wait[job]))
    start_s = submit_s[job] + after_first_s
    wait_s = job_wait[job] - after_first_s
    earlier_s = np.where(first, 0, np.minimum(rng.integers(0, 8, tasks), job_run[job] // 8))
    run_s = job_run[job] - earlier_s

    flags = task_flags(rng, status, instances, run_s, first)
    late_note_s = np.where(pick(rng, status == TERMINATED, 0.1), rng.integers(1, 10, tasks), 0)
    end_s = np.minimum(start_s + wait_s + run_s + late_note_s, TRACE_END_S)
    # Of the failed jobs with an end, some owe it to a further task that terminated; the rest wrote their own.
    noted = scaled(PUBLISHED_FAILED_JOBS_WITH_END, tasks) - -(-extra[FAILED, TERMINATED] * 7 // 10)
    alone = extra_tasks[job] == 0
    failed_end = pick(rng, (status == FAILED) & alone, 0, at_least=max(6, noted))
    end_s[(status != TERMINATED) & ~failed_end] = 0
    end_unwritten = pick(rng, (status == FAILED) & ~failed_end, 0.4)

    families = shuffled(rng, jobs, {i: weight for i, (_, weight) in enumerate(JOB_FAMILIES)}, floor=1)
    role = roles_of(rng, job, position, no_gpu, families, extra_tasks)
    job_end_s = np.maximum.reduceat(end_s, first_row)
    plan_jobs = Jobs(
        status=job_status,
        submit_s=submit_s,
        user=user,
        group=group,
        tagged=~pick(rng, np.ones(jobs, dtype=bool), 1 - PUBLISHED_TAGGED_JOBS / PUBLISHED_JOBS),
        end_s=job_end_s,
    )
    plan_tasks = Tasks(
        job=job,
        role=role,
        status=status,
        instances=instances,
        start_s=start_s,
        wait_s=wait_s,
        run_s=run_s,
        end_s=end_s,
        plan_cpu=plan_cpu,
        plan_mib=plan_mib,
        plan_gpu=plan_gpu,
        gpu_type=gpu_type,
        end_unwritten=end_unwritten,
        **flags,
    )
    return Sample(seed, plan_jobs, plan_tasks)


# ---- columns and frames ----


def words(names: Sequence[str], codes: Ints) -> pl.Series:
    """Names by code; the code past the last name is blank."""
    return pl.Series([*names, None], dtype=pl.String).gather(codes)


def blank_where(values: np.ndarray, blank: Bools) -> pl.Series:
    """A float column, so that whole numbers are printed as `1739162.0`, with blanks."""
    column = values.astype(np.float64)
    column[blank] = np.nan
    return pl.Series(column, nan_to_null=True)


def text_where(column: pl.Series, present: Bools) -> pl.Series:
    """A text column, blank where not present."""
    return pl.select(pl.when(pl.Series(present)).then(column)).to_series()


def job_frame(sample: Sample, rows: slice) -> pl.DataFrame:
    jobs, seed = sample.jobs, sample.seed
    number = np.arange(len(jobs.status))[rows]
    return pl.DataFrame(
        {
            "job_name": hex_ids(seed, JOB_NAME, number, 24),
            "inst_id": hex_ids(seed, JOB_INST, number, 64),
            "user": hex_ids(seed, USER, jobs.user[rows], 12),
            "status": words(STATUSES, jobs.status[rows]),
            "start_time": blank_where(jobs.submit_s[rows], jobs.status[rows] == WAITING),
            "end_time": blank_where(jobs.end_s[rows], jobs.end_s[rows] == 0),
        }
    )


def task_frame(sample: Sample, rows: slice) -> pl.DataFrame:
    tasks = sample.tasks
    return pl.DataFrame(
        {
            "job_name": hex_ids(sample.seed, JOB_NAME, tasks.job[rows], 24),
            "task_name": words(ROLES, tasks.role[rows]),
            "inst_num": tasks.instances[rows].astype(np.float64),
            "status": words(STATUSES, tasks.status[rows]),
            "start_time": blank_where(tasks.start_s[rows], tasks.status[rows] == WAITING),
            "end_time": blank_where(tasks.end_s[rows], tasks.end_s[rows] == 0),
            "plan_cpu": tasks.plan_cpu[rows].astype(np.float64),
            "plan_mem": tasks.plan_mib[rows] / 1_024,
            "plan_gpu": blank_where(tasks.plan_gpu[rows], tasks.plan_gpu[rows] == NO_GPU),
            "gpu_type": words(GPU_TYPES, tasks.gpu_type[rows]),
        }
    )


def tag_frame(sample: Sample, rows: slice, rng: Random) -> pl.DataFrame:
    """Tags of the jobs in `rows`, and tags of jobs that the job table does not know."""
    jobs, seed = sample.jobs, sample.seed
    number = np.flatnonzero(jobs.tagged[rows]) + rows.start
    orphans = max(1, (PUBLISHED_GROUP_TAGS - PUBLISHED_TAGGED_JOBS) * len(number) // PUBLISHED_TAGGED_JOBS)
    like = np.concatenate([number, rng.permutation(number)[:orphans]])
    ids = [hex_ids(seed, JOB_INST, number, 64), hex_ids(seed, ORPHAN, number[:orphans], 64)]
    demanded = np.where(rng.random(len(like)) < 0.04, rng.integers(0, NO_TYPE, len(like)), NO_TYPE)
    # The workload belongs to the group: all jobs of one have it or none.
    kinds = np.repeat(np.arange(len(WORKLOADS)), list(WORKLOADS.values()))
    scrambled = mixed(jobs.group[like].astype(np.uint64) + np.uint64(seed))
    workload = kinds[scrambled % np.uint64(len(kinds))]
    named = scrambled >> np.uint64(32) < np.uint64(95 * 2**32 // 1_000)
    return pl.DataFrame(
        {
            "inst_id": pl.concat(ids),
            "user": hex_ids(seed, USER, jobs.user[like], 12),
            "gpu_type_spec": words(GPU_TYPES, demanded),
            "group": hex_ids(seed, GROUP, jobs.group[like], 24),
            "workload": words(tuple(WORKLOADS), np.where(named, workload, len(WORKLOADS))),
        }
    )


@dataclass(frozen=True)
class Machines:
    """The machines, sorted by type, and where each type begins and ends."""

    spec: pl.DataFrame
    first: Ints  # by GPU type code; the last entry: any machine
    count: Ints
    edges: Floats  # from 0: the sums of the factors, by machine, of the odds that what runs there fails


def make_machines(tasks: int, seed: int) -> Machines:
    """Machines in proportion to the trace's; small samples have fewer of each type, never none."""
    counts = [
        max(FEWEST_MACHINES, count * min(tasks, ALL_MACHINES_AT_TASKS) // ALL_MACHINES_AT_TASKS)
        for count, *_ in MACHINES.values()
    ]
    memory = np.concatenate(
        [
            np.where(np.arange(n) < rest * n // whole_count, other, most)
            for n, (whole_count, _, most, other, rest, _) in zip(counts, MACHINES.values(), strict=True)
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


def machines_of(rng: Random, sample: Sample, block: slice, machines: Machines) -> Ints:
    """Machine of the first instance of each task of a block.

    What a user submits on one day goes to one rack of machines of the type asked for. There what fails is the likelier
    on a machine the higher its odds, and all else is as likely on each.
    """
    tasks = sample.tasks
    job, on = tasks.job[block], tasks.gpu_type[block]
    day = sample.jobs.submit_s[job] // DAY_S
    racks = -(-machines.count[on] // RACK_MACHINES)
    rack = (mixed((sample.jobs.user[job] * 1_000 + day).astype(np.uint64)) % racks.astype(np.uint64)).astype(np.int64)
    low, high = (machines.first[on] + (rack + end) * machines.count[on] // racks for end in (0, 1))
    draw = rng.random(len(job))
    edges = machines.edges
    by_odds = np.searchsorted(edges, edges[low] + draw * (edges[high] - edges[low]), side="right") - 1
    by_chance = low + (draw * (high - low)).astype(np.int64)
    return np.where(tasks.status[block] == FAILED, np.clip(by_odds, low, high - 1), by_chance)


@dataclass(frozen=True)
class Instances:
    """One entry per instance row of a block; 0 in a time means not there yet."""

    task: Ints
    number: Ints  # counted through the whole trace
    worker: Ints  # number behind worker_name; a second try shares that of the first
    status: Ints
    start_s: Ints
    end_s: Ints
    named: Bools
    machine: Ints


def place_instances(rng: Random, sample: Sample, block: slice, before: int, machines: Machines) -> Instances:
    """The instances of a block of tasks: when each began and ended, where, and how."""
    tasks = sample.tasks
    rows = tasks.rows[block]
    task = np.repeat(np.arange(len(tasks.rows))[block], rows)
    index = np.arange(len(task)) - np.repeat(np.cumsum(rows) - rows, rows)  # within the task
    number = before + np.arange(len(task))
    status = tasks.status[task]
    run = tasks.run_s[task]
    begin = tasks.start_s[task] + tasks.wait_s[task]
    finish = begin + run
    lead = index == 0  # the instance that begins first and ends last
    draw = rng.random(len(task))

    # Seconds apart in a gang, less where the run itself is short.
    jitter = np.minimum(run // 4, 5) + 1
    start = begin + np.where(lead, 0, rng.integers(0, jitter))
    end = np.maximum(start, finish - np.where(lead, 0, rng.integers(0, jitter)))

    straggled = tasks.straggling[task] & ~lead
    share = (3 + tasks.job[task] % 5) / 10  # the others were done after 30 to 70 % of the straggler's time
    end = np.where(straggled, np.maximum(start, begin + (run * share).astype(np.int64)), end)

    # A second try: the extra row is the first try, which failed after an eighth of the time.
    last = index == np.repeat(rows, rows) - 1
    first_try = tasks.second_try[task] & last
    start = np.where(first_try, begin, start)
    end = np.where(first_try, begin + run // 8, end)
    start = np.where(tasks.second_try[task] & lead, begin + run // 8 + run // 16, start)
    worker = np.where(first_try, number - index, number)

    in_failed = (status == FAILED) & ~lead
    ended_early = tasks.partly_ended[task] & ~lead & ((draw < 0.4) | (index == 1))
    still_waiting = tasks.partly_waiting[task] & ~lead & ((draw < 0.4) | (index == 1))
    status = np.where(in_failed & (draw < 0.25), TERMINATED, status)
    status = np.where(in_failed & (draw > 0.85), RUNNING, status)
    status = np.where(first_try, FAILED, status)
    status = np.where(ended_early, TERMINATED, status)
    status = np.where(still_waiting, WAITING, status)
    early_end = start + (run * rng.random(len(task))).astype(np.int64)
    end = np.where(ended_early, early_end, end)

    unfinished = (status == RUNNING) | (status == WAITING) | tasks.end_unwritten[task]
    # A gang takes one machine after another.
    on = tasks.gpu_type[task]
    first = np.repeat(machines_of(rng, sample, block, machines), rows) - machines.first[on]
    machine = machines.first[on] + (first + index) % machines.count[on]
    return Instances(
        task=task,
        number=number,
        worker=worker,
        status=status,
        start_s=np.where(status == WAITING, 0, start),
        end_s=np.where(unfinished, 0, end),
        named=(status != WAITING) & ((rng.random(len(task)) >= NULL_WORKER_SHARE) | first_try),
        machine=machine,
    )


def instance_names(sample: Sample, block: slice, instances: Instances, machines: Machines) -> pl.DataFrame:
    """Text columns of the instances of a block, made once for the three tables that carry them."""
    job = sample.tasks.job[block]
    within = sample.tasks.job[instances.task] - job[0]
    known = np.arange(job[0], job[-1] + 1)
    return pl.DataFrame(
        {
            "job_name": hex_ids(sample.seed, JOB_NAME, known, 24).gather(within),
            "task_name": words(ROLES, sample.tasks.role[instances.task]),
            "worker_name": text_where(hex_ids(sample.seed, WORKER, instances.worker, 64), instances.named),
            "inst_id": hex_ids(sample.seed, JOB_INST, known, 64).gather(within),
            "machine": text_where(machines.spec["machine"].gather(instances.machine), instances.status != WAITING),
        }
    )


def instance_frame(sample: Sample, rng: Random, instances: Instances, names: pl.DataFrame) -> pl.DataFrame:
    blank = rng.random((2, len(instances.task))) < 0.5  # the other half of the missing times stays 0.0
    return pl.DataFrame(
        {
            "job_name": names["job_name"],
            "task_name": names["task_name"],
            "inst_name": hex_ids(sample.seed, INSTANCE, instances.number, 24),
            "worker_name": names["worker_name"],
            "inst_id": names["inst_id"],
            "status": words(STATUSES, instances.status),
            "start_time": blank_where(instances.start_s, blank[0] & (instances.start_s == 0)),
            "end_time": blank_where(instances.end_s, blank[1] & (instances.end_s == 0)),
            "machine": names["machine"],
        }
    )


def measured_instances(rng: Random, instances: Instances) -> Ints:
    """Rows of the instances with a sensor row: some of those that ended and have a worker's name."""
    usable = instances.named & (instances.end_s > 0) & (instances.worker == instances.number)
    return np.flatnonzero(usable & (rng.random(len(usable)) < SENSOR_SHARE))


def sensor_frame(
    sample: Sample, rng: Random, instances: Instances, names: pl.DataFrame, rows: Ints, before: int
) -> pl.DataFrame:
    """Lifetime averages of the measured instances. The instances of a task measure much the same."""
    tasks = sample.tasks
    task = instances.task[rows]
    n = len(rows)
    per_task = rng.random((3, int(instances.task[-1] - instances.task[0]) + 1))[:, task - instances.task[0]]
    near = 0.97 + 0.06 * rng.random((3, n))
    plan_gpu = np.maximum(tasks.plan_gpu[task], 0)
    use = [QuantileFunction(knots, log=False) for knots in (CPU_USE, GPU_USE, MEM_USE)]
    cpu = np.minimum(9_600, tasks.plan_cpu[task] * use[0](per_task[0]) * near[0])
    gpu = np.minimum(800, plan_gpu * use[1](per_task[1]) * near[1])
    avg_mem = np.minimum(512, tasks.plan_mib[task] / 1_024 * use[2](per_task[2]) * near[2])
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
    # Blanks at fixed distances: about as rare as in the trace, and there in the smallest sample too.
    at = before + np.arange(n)
    no_network = np.isin(at, (5, 50, 500))
    return pl.DataFrame(
        {
            **names[rows].to_dict(),
            "gpu_name": words([f"/dev/nvidia{i}" for i in range(8)], np.where(no_gpu, 8, card)),
            "cpu_usage": blank_where(thousandths(cpu), at % 520 == 7),
            "gpu_wrk_util": blank_where(thousandths(gpu), no_gpu),
            "avg_mem": blank_where(thousandths(avg_mem), at % 2_492 == 11),
            "max_mem": thousandths(max_mem),
            "avg_gpu_wrk_mem": blank_where(thousandths(avg_gpu_mem), no_gpu),
            "max_gpu_wrk_mem": blank_where(thousandths(max_gpu_mem), no_gpu),
            "read": blank_where(read_count * volume[0], no_network),
            "write": blank_where(write_count * volume[1], no_network),
            "read_count": blank_where(read_count, no_network),
            "write_count": blank_where(write_count, no_network),
        }
    )


def metric_frame(
    rng: Random, instances: Instances, names: pl.DataFrame, rows: Ints, machines: Machines
) -> pl.DataFrame:
    """What the machine did during the life of an instance; its times are printed as integers."""
    rows = rows[rng.random(len(rows)) < METRIC_SHARE]
    n = len(rows)
    iowait, kernel, usr = thousandths(rng.random((3, n)) * np.array([[1.5], [5.0], [60.0]]))
    gpus = machines.spec["cap_gpu"].to_numpy()[instances.machine[rows]]
    unknown = rng.random(n) < 0.01
    return pl.DataFrame(
        {
            **names["worker_name", "machine"][rows].to_dict(),
            "start_time": instances.start_s[rows],
            "end_time": instances.end_s[rows],
            "machine_cpu_iowait": blank_where(iowait, unknown),
            "machine_cpu_kernel": blank_where(kernel, unknown),
            "machine_cpu_usr": blank_where(usr, unknown),
            "machine_gpu": blank_where(thousandths(rng.random(n) * 100 * gpus), unknown | (gpus == 0)),
            "machine_load_1": blank_where(thousandths(rng.random(n) * 90), unknown),
            "machine_net_receive": blank_where(thousandths(rng.random(n) * 4e8), rng.random(n) < 0.02),
            "machine_num_worker": thousandths(1 + rng.random(n) * 24),
            "machine_cpu": blank_where(thousandths(iowait + kernel + usr), unknown),
        }
    )


# ---- writing ----


def blocks(total: int) -> Iterator[tuple[int, slice]]:
    """Blocks of rows with their numbers; their length is part of what a seed means, not a setting."""
    for number, start in enumerate(range(0, total, BLOCK_TASKS)):
        yield number, slice(start, min(start + BLOCK_TASKS, total))


def write_sample(folder: Path, tasks: int = 20_000, seed: int = 2020) -> dict[str, int]:
    """Write the seven tables of a synthetic trace with `tasks` tasks into `folder`; rows written per table.

    The same `tasks` and `seed` give the same bytes.
    """
    check_asked(tasks, FEWEST_TASKS, "tasks", "the trace", seed)
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
            write("instance", instance_frame(sample, rng, instances, names))
            measured = measured_instances(rng, instances)
            write("sensor", sensor_frame(sample, rng, instances, names, measured, written["sensor"]))
            write("machine_metric", metric_frame(rng, instances, names, measured, machines))
    return written
