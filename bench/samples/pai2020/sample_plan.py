"""The plan of the PAI sample: every job and task, before instances are made; see sample.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from samples.draws import (
    Bools,
    Floats,
    Ints,
    QuantileFunction,
    Random,
    alike,
    apportion,
    ascending,
    by_the_clock,
    lognormal,
    pick,
    ranks,
    sent_again,
    shuffled,
    spread,
    which_fail,
    whole,
)
from samples.pai2020.sample_published import (
    CPU_ROLES,
    EARLIER_TRIES,
    EXTRA_TASKS,
    FAILED,
    FAILED_GANGS_PER_MILLE,
    FAILED_QUANTILES_S,
    FAILURES_BY_TYPE,
    FIRST_START_S,
    GANG_QUANTILES,
    GPU_TYPES,
    GROUP_LOG_SD,
    GROUP_QUANTILES,
    HOUR_S,
    HOUR_WEIGHTS,
    JOB_FAMILIES,
    LARGEST_GANG,
    NAMED_PLAN_MIB,
    NO_GPU,
    NO_TYPE,
    OTHER_PLAN_GPU,
    P100,
    PLAN_CPU,
    PUBLISHED_FAILED_JOBS_WITH_END,
    PUBLISHED_FAILED_NO_GPU,
    PUBLISHED_GPU_TYPE,
    PUBLISHED_JOB_STATUS,
    PUBLISHED_JOBS,
    PUBLISHED_LATE_FAILURE_PER_MILLE,
    PUBLISHED_NO_GPU,
    PUBLISHED_PLAN_GPU,
    PUBLISHED_SINGLE,
    PUBLISHED_TAGGED_JOBS,
    PUBLISHED_TASKS,
    PUBLISHED_ZERO_PLAN_CPU,
    RETRIED,
    RETRIED_IF_FAILED,
    ROLES,
    RUN_BY_GROUP,
    RUN_BY_USER,
    RUN_QUANTILES_S,
    RUNNING,
    SHANGHAI_S,
    SINGLE_ROLES,
    START_HOURS,
    STATUSES,
    T4,
    TERMINATED,
    TRACE_END_S,
    TYPED_NO_GPU,
    USER_LOG_SD,
    USERS_FULL,
    V100,
    V100M32,
    WAIT_QUANTILES_S,
    WAITING,
    WEEKDAY_WEIGHTS,
)


def scaled(count: int, tasks: int, floor: int = 0) -> int:
    """A count of the full trace at the size of this sample, rounded, at least `floor`."""
    return max(floor, (count * tasks * 2 + PUBLISHED_TASKS) // (2 * PUBLISHED_TASKS))


# A task that runs for less has no instance that is tried again.
FEWEST_S_OF_A_RETRY = 256


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
    earlier_tries: Ints  # of its first instance, before the last one
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
    status = [scaled(count, tasks, floor=8) for count in PUBLISHED_JOB_STATUS.values()]
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
    """User and recurrence group of each job.

    Jobs with one request lie in groups of very uneven size, each of one user.

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
    long_enough = run_s >= FEWEST_S_OF_A_RETRY
    retried = pick(rng, (status == FAILED) & long_enough, RETRIED_IF_FAILED, at_least=4)
    retried |= pick(rng, np.isin(status, (TERMINATED, RUNNING)) & long_enough, RETRIED, at_least=4)
    earlier_tries = np.zeros(len(status), dtype=np.int64)
    earlier_tries[retried] = shuffled(rng, int(retried.sum()), EARLIER_TRIES)
    straggling = pick(rng, gang & (status == TERMINATED) & (run_s >= 120), 0.03)
    partly_ended = pick(rng, gang & (status == RUNNING) & first, 0.10, at_least=4)
    partly_waiting = pick(rng, gang & (status == RUNNING) & ~partly_ended, 0.05)
    no_rows = pick(rng, (status == TERMINATED) & ~retried, 0.003)
    no_rows |= pick(rng, (status == FAILED) & ~retried, 0.02) | pick(rng, status == WAITING, 0.6)
    one_fewer = pick(rng, gang & started & ~no_rows & ~retried & ~partly_ended & ~partly_waiting, 0.01)
    rows = np.where(no_rows, 0, instances + earlier_tries - one_fewer)
    return {
        "rows": rows,
        "earlier_tries": earlier_tries,
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
    request = (gpu_type * 1_000 + plan_gpu)[first_row]
    user, group = users_and_groups(rng, request, job_status == FAILED)
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
        **flags,
    )
    return Sample(seed, plan_jobs, plan_tasks)
