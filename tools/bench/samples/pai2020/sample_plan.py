"""Draw the plan of the PAI sample: every job and task, without instances; see sample.py."""

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
    apportion,
    ascending_values,
    correlated_scores,
    draw_failures,
    lognormal,
    pick,
    ranks,
    resubmission_groups,
    round_to_int,
    shuffled_values,
    spread_probabilities,
    submission_times,
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
    """Scale a count of the full trace to the size of this sample, rounded, at least `floor`."""
    return max(floor, (count * tasks * 2 + PUBLISHED_TASKS) // (2 * PUBLISHED_TASKS))


# A shorter task has no retried instance.
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
    """One entry per task, sorted by job; times in seconds, flags for the habits of a task."""

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
    """Draw each job's status in order of submission: more failures in the last quarter, Running and Waiting late."""
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


def job_counts(tasks: int) -> tuple[list[int], dict[tuple[int, int], int]]:
    """Return the jobs by status and the further tasks by (job status, task status) of a sample of `tasks` tasks."""
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
    """Draw job, position in the job (1 or 2) and status of every task that is not the first of its job."""
    job, position, task_status = [], [], []
    for code in range(len(STATUSES)):
        hosts = rng.permutation(np.flatnonzero(status == code))
        for (host_status, new_status), count in extra.items():
            if host_status != code:
                continue
            # Ends in Running and Waiting jobs are counted per job: one such task each.
            is_one_each = host_status in (RUNNING, WAITING) and new_status == TERMINATED
            host_count = count if is_one_each else -(-count * 7 // 10)
            number = np.arange(count)
            job.append(hosts[:host_count][number % host_count])
            position.append(1 + number // host_count)
            task_status.append(np.full(count, new_status))
            hosts = hosts[host_count:]
    return np.concatenate(job), np.concatenate(position), np.concatenate(task_status)


def pick_tasks_without_gpu(rng: Random, status: Ints, first: Bools) -> Bools:
    """Pick the tasks without a GPU: most further tasks (parameter servers), few first or failed ones."""
    tasks = len(status)
    failed = scaled(PUBLISHED_FAILED_NO_GPU, tasks, floor=3)
    others_count = scaled(PUBLISHED_NO_GPU, tasks) - failed
    failed_mask = pick(rng, (status == FAILED) & first, 0, min_rows=failed)
    servers = pick(rng, (status != FAILED) & ~first, 0.92, min_rows=0)
    first_count = others_count - int(servers.sum())
    return failed_mask | servers | pick(rng, (status != FAILED) & first, 0, min_rows=first_count)


def gpu_types(rng: Random, status: Ints, no_gpu: Bools, first_row: Ints) -> Ints:
    """Draw the type code of each task, one type per job; it is blank for most tasks without a GPU.

    Some types have a higher share of failures: FAILURES_BY_TYPE.
    """
    tasks = len(no_gpu)
    typed = scaled(sum(PUBLISHED_GPU_TYPE.values()), tasks)
    typed_no_gpu = pick(rng, no_gpu, TYPED_NO_GPU / PUBLISHED_NO_GPU)
    gpu_tasks = int((~no_gpu).sum())
    untyped_gpu = pick(rng, ~no_gpu, 0, min_rows=max(3, gpu_tasks + int(typed_no_gpu.sum()) - typed))
    has_type = (~no_gpu & ~untyped_gpu) | typed_no_gpu
    counts = apportion(int(has_type.sum()), list(PUBLISHED_GPU_TYPE.values()), floor=12)
    failed = has_type & (status == FAILED)
    failing = [count * FAILURES_BY_TYPE[name] for name, count in zip(PUBLISHED_GPU_TYPE, counts, strict=True)]
    failed_counts = apportion(int(failed.sum()), failing)
    other_counts = [count - failed_count for count, failed_count in zip(counts, failed_counts, strict=True)]
    types = np.full(tasks, NO_TYPE)
    codes = [GPU_TYPES.index(name) for name in PUBLISHED_GPU_TYPE]
    for rows, parts in ((failed, failed_counts), (has_type & ~failed, other_counts)):
        types[rows] = rng.permutation(np.repeat(codes, parts))
    first_types = types[first_row]
    return np.where(has_type & (first_types != NO_TYPE), first_types, types)


def gpu_requests(rng: Random, no_gpu: Bools, gpu_type: Ints) -> Ints:
    """Draw plan_gpu of each task (100 = one GPU); more than two GPUs only on machines that have eight."""
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
    """Return plan_mem (MB/1024) and the weight of each of about 130 values, a few of them common."""
    rare = dict.fromkeys(range(1_000, 60_001, 1_000), 12)
    rare |= dict.fromkeys(range(61_000, 91_000, 1_000), 2)
    rare |= dict.fromkeys(range(91_000, 390_000, 10_000), 1)
    return {mib: 2 * weight for mib, weight in {**rare, **NAMED_PLAN_MIB}.items()}


def gang_sizes(rng: Random, status: Ints, plan_gpu: Ints, first: Bools) -> Ints:
    """Draw inst_num of each task: one for three in four, then a heavy tail in round numbers."""
    tasks = len(status)
    gangs = scaled(PUBLISHED_TASKS - PUBLISHED_SINGLE, tasks)
    failed = scaled((PUBLISHED_TASKS - PUBLISHED_SINGLE) * FAILED_GANGS_PER_MILLE // 1_000, tasks)
    running = (status == RUNNING) & first
    several = pick(rng, status == FAILED, 0, min_rows=failed) | pick(rng, running, 0.25, min_rows=12)
    several |= pick(rng, (status != FAILED) & ~running, 0, min_rows=gangs - int(several.sum()))
    size = np.ones(tasks, dtype=np.int64)
    draws = QuantileFunction(GANG_QUANTILES)(spread_probabilities(rng, rng.random(int(several.sum()))))
    step = np.select([draws < 100, draws < 500, draws < 2_000], [1, 5, 20], 30)
    size[several] = np.clip(round_to_int(draws / step) * step, 2, LARGEST_GANG)
    # No task has more than 400 GPUs in total: a larger gang swaps its size with a small one without GPUs.
    too_large = rng.permutation(np.flatnonzero(size * plan_gpu > 40_000))
    partner = rng.permutation(np.flatnonzero((plan_gpu == NO_GPU) & (size <= 30)))[: len(too_large)]
    too_large = too_large[: len(partner)]
    size[too_large], size[partner] = size[partner], size[too_large]
    return size


def fit_runs_into_trace(rng: Random, start_s: Ints, run_s: Ints, group: Ints) -> Ints:
    """Return run times such that every run ends inside the trace.

    A run that would end later swaps with a short one of its group that began in the first half. So the distribution
    does not change.
    """
    run_s = run_s.copy()
    middle = (FIRST_START_S + TRACE_END_S) // 2
    for code in np.unique(group):
        member = group == code
        late_rows = rng.permutation(np.flatnonzero(member & (start_s + run_s > TRACE_END_S)))
        short = member & (start_s < middle) & (run_s <= np.median(run_s[member]))
        partner = rng.permutation(np.flatnonzero(short))[: len(late_rows)]
        late_rows = late_rows[: len(partner)]
        run_s[late_rows], run_s[partner] = run_s[partner], run_s[late_rows]
    return np.minimum(run_s, np.maximum(0, TRACE_END_S - start_s))


def waits_and_runs(
    rng: Random, submit_s: Ints, status: Ints, gpu_type: Ints, plan_gpu: Ints, length: Floats
) -> tuple[Ints, Ints]:
    """Draw queueing delay and run time (s) of the first task of each job, even if the run is not over.

    length: normal scores, larger ones for longer runs.
    """
    level = np.clip(plan_gpu, 0, 200) / 200
    failed = status == FAILED
    wait = np.zeros(len(status), dtype=np.int64)
    run = np.zeros(len(status), dtype=np.int64)
    # Published times of failed jobs count from the submission, so a long wait needs a long total time.
    to_end_rank = spread_probabilities(rng, length)
    to_end = np.zeros(len(status))
    to_end[failed] = QuantileFunction(FAILED_QUANTILES_S)(spread_probabilities(rng, to_end_rank[failed]))
    for code in range(len(RUN_QUANTILES_S)):
        for rows in (np.flatnonzero((gpu_type == code) & failed), np.flatnonzero((gpu_type == code) & ~failed)):
            run_at = spread_probabilities(rng, length[rows] + 0.24 * level[rows])
            run[rows] = round_to_int(QuantileFunction(RUN_QUANTILES_S[code])(run_at))
            # Waits are associated with run times: weakly, or strongly if the total time was published.
            lean = 2 * to_end_rank[rows] if failed[rows[:1]].any() else 0.8 * run_at
            wait_at = spread_probabilities(rng, rng.random(len(rows)) + lean)
            wait[rows] = round_to_int(QuantileFunction(WAIT_QUANTILES_S[code])(wait_at))
    run[failed] = np.maximum(round_to_int(to_end[failed]) - wait[failed], np.minimum(round_to_int(to_end[failed]), 3))
    wait = np.minimum(wait, (TRACE_END_S - submit_s) // 2)
    return wait, fit_runs_into_trace(rng, submit_s + wait, run, gpu_type + 10 * failed)


def assign_roles(rng: Random, job: Ints, position: Ints, no_gpu: Bools, families: Ints, extra_tasks: Ints) -> Ints:
    """Draw the role code of each task: by family in jobs of several tasks, else from the roles of single tasks."""
    family_roles = np.array([[ROLES.index(role) for role in roles] for roles, _ in JOB_FAMILIES])
    role = family_roles[families[job], position]
    for is_kind, weights in ((~no_gpu, SINGLE_ROLES), (no_gpu, CPU_ROLES)):
        rows = np.flatnonzero((extra_tasks[job] == 0) & is_kind)
        role[rows] = shuffled_values(rng, len(rows), {ROLES.index(name): w for name, w in weights.items()}, floor=1)
    return role


def users_and_groups(rng: Random, request: Ints, failed: Bools) -> tuple[Ints, Ints]:
    """Draw user and recurrence group of each job.

    Jobs with one request form groups of very uneven size, each of one user. The number of failed jobs per request does
    not change; their users and groups are drawn here.
    """
    group = resubmission_groups(rng, request, rng.random(len(request)), QuantileFunction(GROUP_QUANTILES))
    groups = int(group.max()) + 1
    user_by_group = assign_users(rng, groups)
    odds = lognormal(rng, int(user_by_group.max()) + 1, USER_LOG_SD)[user_by_group]
    odds *= lognormal(rng, groups, GROUP_LOG_SD)
    order = np.argsort(request, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(request[order])) + 1):
        is_failed = draw_failures(rng, int(failed[rows].sum()), odds[group[rows]])
        failing, other = group[rows[is_failed]], group[rows[~is_failed]]
        group[rows[failed[rows]]], group[rows[~failed[rows]]] = rng.permutation(failing), rng.permutation(other)
    return user_by_group[group], group


def assign_users(rng: Random, groups: int) -> Ints:
    """Draw the user of each group; a few users have most of the groups."""
    users = max(40, min(USERS_FULL, groups // 12))
    weights = {user: 1_000_000 // (user + 5) for user in range(users)}
    return shuffled_values(rng, groups, weights, floor=1)


def task_flags(rng: Random, status: Ints, instances: Ints, run_s: Ints, first: Bools) -> dict[str, np.ndarray]:
    """Draw the habits of each task and its number of instance rows."""
    gang = instances > 1
    started = status != WAITING
    long_enough = run_s >= FEWEST_S_OF_A_RETRY
    retried = pick(rng, (status == FAILED) & long_enough, RETRIED_IF_FAILED, min_rows=4)
    retried |= pick(rng, np.isin(status, (TERMINATED, RUNNING)) & long_enough, RETRIED, min_rows=4)
    earlier_tries = np.zeros(len(status), dtype=np.int64)
    earlier_tries[retried] = shuffled_values(rng, int(retried.sum()), EARLIER_TRIES)
    straggling = pick(rng, gang & (status == TERMINATED) & (run_s >= 120), 0.03)
    partly_ended = pick(rng, gang & (status == RUNNING) & first, 0.10, min_rows=4)
    partly_waiting = pick(rng, gang & (status == RUNNING) & ~partly_ended, 0.05)
    no_rows = pick(rng, (status == TERMINATED) & ~retried, 0.003)
    no_rows |= pick(rng, (status == FAILED) & ~retried, 0.02) | pick(rng, status == WAITING, 0.6)
    lacks_row = pick(rng, gang & started & ~no_rows & ~retried & ~partly_ended & ~partly_waiting, 0.01)
    rows = np.where(no_rows, 0, instances + earlier_tries - lacks_row)
    return {
        "rows": rows,
        "earlier_tries": earlier_tries,
        "straggling": straggling & ~lacks_row,
        "partly_ended": partly_ended,
        "partly_waiting": partly_waiting,
    }


def plan_sample(tasks: int, seed: int) -> Sample:
    """Draw all jobs and tasks of the sample."""
    rng = np.random.default_rng([seed, 0])
    status_counts, extra = job_counts(tasks)
    jobs = sum(status_counts)

    # Jobs in file order are not in order of submission.
    file_order = rng.permutation(jobs)
    job_status = job_statuses(rng, status_counts)
    hours = FIRST_START_S // HOUR_S + np.arange(START_HOURS)
    submit_s = submission_times(rng, jobs, hours, hours + SHANGHAI_S // HOUR_S, HOUR_WEIGHTS, WEEKDAY_WEIGHTS)
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

    no_gpu = pick_tasks_without_gpu(rng, status, first)
    gpu_type = gpu_types(rng, status, no_gpu, first_row[job])
    plan_gpu = gpu_requests(rng, no_gpu, gpu_type)
    request = (gpu_type * 1_000 + plan_gpu)[first_row]
    user, group = users_and_groups(rng, request, job_status == FAILED)
    # The jobs of a group have one request. A larger GPU request goes loosely with more cores and memory.
    cores, memory = rng.random((2, int(position.max()) + 1, int(group.max()) + 1))[:, position, group[job]]
    appetite = np.clip(plan_gpu, 0, 400) / 200
    plan_cpu = ascending_values(tasks, PLAN_CPU)[ranks(rng, cores * 5 + appetite)]
    plan_cpu[pick(rng, no_gpu, 0, min_rows=scaled(PUBLISHED_ZERO_PLAN_CPU, tasks, floor=3))] = 0
    plan_mib = ascending_values(tasks, memory_weights())[ranks(rng, memory * 12 + appetite)]
    instances = gang_sizes(rng, status, plan_gpu, first)

    # Further tasks of a job start and end with the first one.
    length = correlated_scores(rng, (user, RUN_BY_USER), (group, RUN_BY_GROUP))
    job_wait, job_run = waits_and_runs(rng, submit_s, job_status, gpu_type[first_row], plan_gpu[first_row], length)
    delay_s = np.where(first, 0, np.minimum(rng.integers(0, 20, tasks), job_wait[job]))
    start_s = submit_s[job] + delay_s
    wait_s = job_wait[job] - delay_s
    advance_s = np.where(first, 0, np.minimum(rng.integers(0, 8, tasks), job_run[job] // 8))
    run_s = job_run[job] - advance_s

    flags = task_flags(rng, status, instances, run_s, first)
    late_note_s = np.where(pick(rng, status == TERMINATED, 0.1), rng.integers(1, 10, tasks), 0)
    end_s = np.minimum(start_s + wait_s + run_s + late_note_s, TRACE_END_S)
    # Some failed jobs have their end from a further task that terminated; the others have their own.
    noted = scaled(PUBLISHED_FAILED_JOBS_WITH_END, tasks) - -(-extra[FAILED, TERMINATED] * 7 // 10)
    is_single = extra_tasks[job] == 0
    failed_end = pick(rng, (status == FAILED) & is_single, 0, min_rows=max(6, noted))
    end_s[(status != TERMINATED) & ~failed_end] = 0

    families = shuffled_values(rng, jobs, {i: weight for i, (_, weight) in enumerate(JOB_FAMILIES)}, floor=1)
    role = assign_roles(rng, job, position, no_gpu, families, extra_tasks)
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
