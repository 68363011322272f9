"""Synthetic Slurm accounting: two dumps of `sacct -P`, health and node events, logs of the kernel and of training.

sample_events.py draws the events of nodes, sample_logs.py the log, sample_training.py writes logs of training runs.

The nodes of the cluster fail at a given rate. The mix of sizes and states follows RSC-1 (Kokolis et al., HPCA 2025):
most jobs have a GPU or a node, jobs of 256 GPUs and more take most of the GPU time. Some hundred nodes are simulated
(sample_cluster.py). They fail as a Poisson process of `failures_per_1000_node_days`, a few of them so many times as
often, the others by a lognormal factor of `node_log_sd` more or less often than each other; the mean over all nodes is
the rate.

Habits of a dump
----------------
- A record is a run or a wait for one. A requeued or preempted job has several records with one id; Submit is the end of
  the previous run. A node failure ends all runs on the node: as NODE_FAIL, and the job is requeued; or a health check
  ends them as FAILED, and the health events have it (10 minutes before to 5 after the end).
- The second dump begins when the first was printed. Jobs that ran or waited then are in both, in a later state.
- At the end some jobs run (End Unknown) and some wait (Start Unknown), among them an array: 123_[0-3].
- CANCELLED by a user id, also before the start: Start is None, or equals End. Arrays: 123_4. The first dump has steps
  of some jobs. Node lists are compressed: n[001-032,040].

True parameters of users
------------------------
Jobs are not independent. The number of jobs per final state is fixed; which of them fail depends on
- the user: the odds that a job fails (not by a node) differ between users by a lognormal factor, the standard deviation
  of its logarithm USER_LOG_SD. A few users have most of the jobs.
- the campaign: a user requests the same GPUs several times within a day, and the jobs of such a campaign share a
  further factor of GROUP_LOG_SD. Normal scores of the work of two jobs of a user correlate by RUN_BY_USER, of two of a
  campaign by RUN_BY_GROUP more. An array belongs to one campaign.
The scheduler puts small jobs on the first of the nodes that they fill best, and other jobs on idle nodes in turn. So
jobs submitted together run close together.

Same (jobs, seed), same bytes: see samples.draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from samples.draws import (
    Floats,
    Ints,
    QuantileFunction,
    Random,
    apportion,
    check_sample_size,
    correlated_scores,
    draw_failures,
    lognormal,
    pick,
    resubmission_groups,
    round_to_int,
    shuffled_values,
    spread_probabilities,
    staged_files,
)
from samples.sacct import sample_events, sample_logs, sample_training
from samples.sacct.sample_cluster import HIGH, LOW, NODE_GPUS, NORMAL, Cluster, Failure, Jobs, Run

FILES = {"record_a": "2025-a.txt", "record_b": "2025-b.txt", "health_events": "health_events.csv"}
FILES |= {"node_events": "node_events.txt", "cluster_events": "cluster_events.txt", "node_logs": "kernel.log"}
FILES |= {name: name for name in sample_training.LOGS}
COLUMNS = (
    "JobIDRaw", "JobID", "Cluster", "User", "Account", "Partition", "QOS", "State", "ExitCode", "DerivedExitCode",
    "Submit", "Eligible", "Start", "End", "ElapsedRaw", "Suspended", "TimelimitRaw", "NNodes", "NodeList", "ReqTRES",
    "AllocTRES", "Reason", "Flags", "Restarts", "FailedNode",
)  # fmt: skip
FEWEST_JOBS = 300

HOUR_S, DAY_S = 3_600, 86_400
FIRST_S = 1_735_689_600  # 2025-01-01 UTC
DAYS = 60
MIDDLE_S, END_S = FIRST_S + DAYS // 2 * DAY_S, FIRST_S + DAYS * DAY_S
NODES_PER_1000_JOBS = 60
FEWEST_NODES = 80
FIRST_ID = 10_001

GPUS = {1: 435, 2: 85, 4: 85, 8: 300, 16: 18, 32: 14, 64: 14, 128: 14, 256: 25, 512: 10}
LARGE_GPUS = 64  # from here on jobs run for days, in a partition of their own
# Work in hours.
SMALL_QUANTILES_H = {0: 0.01, 0.25: 0.1, 0.5: 0.6, 0.75: 4, 0.9: 24, 1: 120}
MIDDLE_QUANTILES_H = {0: 0.02, 0.25: 1, 0.5: 8, 0.75: 30, 0.9: 70, 1: 150}
LARGE_QUANTILES_H = {0: 0.05, 0.1: 1, 0.3: 12, 0.5: 36, 0.8: 80, 1: 150}
# Final states of jobs that neither a node nor the scheduler ends.
STATES = {"COMPLETED": 680, "FAILED": 240, "CANCELLED": 60, "TIMEOUT": 12, "OUT_OF_MEMORY": 8}
FAILURES = ("FAILED", "TIMEOUT", "OUT_OF_MEMORY")
# Differences between users and campaigns: see the module docstring.
USER_LOG_SD, GROUP_LOG_SD = 1.0, 0.5
RUN_BY_USER, RUN_BY_GROUP = 0.1, 0.2
CAMPAIGN_QUANTILES = {0: 0.6, 0.5: 1.5, 0.8: 4.5, 0.95: 10, 1: 16}  # jobs per campaign
CAMPAIGN_S = DAY_S  # the jobs of a campaign lie within this time, mixed with those of others
NEVER_STARTED_PER_MILLE = 10
REQUEUED_PER_MILLE = 15
# Per mille of the jobs of 128 GPUs and more that may preempt, and of the smaller ones that may be preempted.
HIGH_PER_MILLE, LOW_PER_MILLE = 500, 400
EXIT_CODES = {"FAILED": ("1:0", "1:0", "1:0", "2:0", "137:0", "0:11"), "OUT_OF_MEMORY": ("0:125",)}
USERS, ACCOUNTS = 60, 8
ARRAY_TASKS = 4
LONGEST_LIMIT_MIN = 7 * 24 * 60

CODES = {"IB_LINK": 30, "FS_MOUNT": 22, "GPU_ECC": 20, "PCIE": 16, "NVLINK": 7, "XID79": 5}
NODE_FAIL_PER_MILLE = 650  # of the failures; the others are a health check's
TOLD_NODE_FAIL_PER_MILLE = 300  # of those, with a health event nevertheless
OUT_QUANTILES_S = {0: 1_800, 0.5: 4 * HOUR_S, 0.9: 24 * HOUR_S, 1: 72 * HOUR_S}
LOW_EVENTS_PER_NODE_DAY = 0.01  # warnings that end nothing


@dataclass(frozen=True)
class Hazard:
    """Failure rates of nodes: the mean, and how many of each 64 nodes fail `lemon_multiple` times as often.

    node_log_sd: standard deviation of the logarithm of the other nodes' rates.
    """

    failures_per_1000_node_days: float = 6.5
    lemons_per_64_nodes: int = 1
    lemon_multiple: float = 20.0
    node_log_sd: float = 0.4

    def lemons(self, nodes: int) -> Ints:
        """Return the lemons' node numbers, spread over the cluster."""
        count = self.lemons_per_64_nodes * nodes // 64
        return (np.arange(count) * nodes + nodes // 2) // max(1, count)

    def per_node_hour(self, nodes: int) -> Floats:
        lemons = self.lemons(nodes)
        weight = lognormal(np.random.default_rng(nodes), nodes, self.node_log_sd)
        weight[lemons] = self.lemon_multiple * np.delete(weight, lemons).mean()
        return self.failures_per_1000_node_days / 1000 / 24 * weight * nodes / weight.sum()


@dataclass(frozen=True)
class Plan:
    jobs: Jobs
    user: Ints
    account: Ints
    campaign: Ints
    limit_min: Ints
    exit_code: list[str]
    never_started: Ints  # s from submission to cancellation of a job that never started; 0: it started
    job_id: list[tuple[int, str]]  # JobIDRaw and JobID


def node_count(jobs: int) -> int:
    return max(FEWEST_NODES, jobs * NODES_PER_1000_JOBS // 1000)


def plan(jobs: int, seed: int) -> Plan:
    rng = np.random.default_rng([seed, 0])
    gpus = shuffled_values(rng, jobs, GPUS, floor=3)
    requested_s = np.sort(FIRST_S + (rng.random(jobs) * (END_S - FIRST_S - HOUR_S)).astype(np.int64))
    campaign, account, user = _owners(rng, gpus, requested_s)
    # Arrays: jobs of one GPU one after the other, submitted at once by one user.
    singles = np.flatnonzero(gpus == 1)
    arrays = [singles[first : first + ARRAY_TASKS] for first in range(0, len(singles) - ARRAY_TASKS, 12 * ARRAY_TASKS)]
    for members in arrays:
        for job_values in (requested_s, campaign, account, user):
            job_values[members] = job_values[members[0]]
    names = list(STATES)
    user_odds = lognormal(rng, int(user.max()) + 1, USER_LOG_SD)[user]
    state = _states(rng, user_odds, campaign)
    length = correlated_scores(rng, (user, RUN_BY_USER), (campaign, RUN_BY_GROUP))
    work_s = np.zeros(jobs, dtype=np.int64)
    sizes = ((gpus <= NODE_GPUS, SMALL_QUANTILES_H), (gpus >= LARGE_GPUS, LARGE_QUANTILES_H))
    for rows, knots in (*sizes, ((gpus > NODE_GPUS) & (gpus < LARGE_GPUS), MIDDLE_QUANTILES_H)):
        hours = QuantileFunction(knots)(spread_probabilities(rng, length[rows]))
        work_s[rows] = np.maximum(30, round_to_int(HOUR_S * hours))
    # Limits in whole hours, from the intended work, so that the limit does not reveal how a job ends.
    limit_min = np.minimum(LONGEST_LIMIT_MIN, (work_s * 5 // 4 // HOUR_S + 3) * 60)
    is_timeout = state == names.index("TIMEOUT")
    work_s = np.where(is_timeout, 60 * limit_min, work_s)
    # Most failures by users come early.
    early_share = rng.random(jobs) * rng.random(jobs)
    unfinished = np.isin(state, [names.index(name) for name in ("FAILED", "CANCELLED", "OUT_OF_MEMORY")])
    work_s = np.where(unfinished, np.maximum(5, (work_s * early_share).astype(np.int64)), work_s)

    wide = gpus >= 128
    priority = np.full(jobs, NORMAL)
    priority[pick(rng, wide, HIGH_PER_MILLE / 1000)] = HIGH
    priority[pick(rng, ~wide, LOW_PER_MILLE / 1000)] = LOW
    requeued = pick(rng, (work_s >= 600) & ~is_timeout, REQUEUED_PER_MILLE / 1000)
    fewest = max(4, jobs * NEVER_STARTED_PER_MILLE // 1000)
    never_started = pick(rng, state == names.index("CANCELLED"), 0, min_rows=fewest)
    codes = [EXIT_CODES.get(names[code], ("0:0",)) for code in state.tolist()]
    exit_code = [choices[int(u * len(choices))] for choices, u in zip(codes, rng.random(jobs).tolist(), strict=True)]
    job_id = [(FIRST_ID + number, str(FIRST_ID + number)) for number in range(jobs)]
    for members in arrays:
        for task, member in enumerate(members.tolist()):
            job_id[member] = (FIRST_ID + member, f"{FIRST_ID + int(members[0])}_{task}")
    return Plan(
        jobs=Jobs(
            requested_s=requested_s.tolist(),
            gpus=gpus.tolist(),
            priority=priority.tolist(),
            work_s=work_s.tolist(),
            state=[names[code] for code in state.tolist()],
            requeued_after_s=np.where(requeued, work_s // 2, 0).tolist(),
        ),
        user=user,
        account=account,
        campaign=campaign,
        limit_min=limit_min,
        exit_code=exit_code,
        never_started=np.where(never_started, rng.integers(1, 3_600, jobs), 0),
        job_id=job_id,
    )


def _owners(rng: Random, gpus: Ints, requested_s: Ints) -> tuple[Ints, Ints, Ints]:
    """Draw campaign, account and user of each job; a campaign has one of each, a few users have most campaigns."""
    proximity = requested_s + rng.integers(0, CAMPAIGN_S, len(gpus))
    campaign = resubmission_groups(rng, gpus, proximity, QuantileFunction(CAMPAIGN_QUANTILES))
    draws = rng.random((4, int(campaign.max()) + 1))
    account = (ACCOUNTS * draws[0] * draws[1]).astype(np.int64)
    user = account + ACCOUNTS * (USERS // ACCOUNTS * draws[2] * draws[3]).astype(np.int64)
    return campaign, account[campaign], user[campaign]


def _states(rng: Random, user_odds: Floats, campaign: Ints) -> Ints:
    """Draw the final state of each job that neither a node nor the scheduler ends, as a number in STATES."""
    odds = user_odds * lognormal(rng, int(campaign.max()) + 1, GROUP_LOG_SD)[campaign]
    codes = np.repeat(np.arange(len(STATES)), apportion(len(odds), list(STATES.values()), floor=3))
    is_failure = np.isin(codes, [list(STATES).index(name) for name in FAILURES])
    is_failed = draw_failures(rng, int(is_failure.sum()), odds)
    state = np.empty(len(odds), dtype=np.int64)
    state[is_failed], state[~is_failed] = rng.permutation(codes[is_failure]), rng.permutation(codes[~is_failure])
    return state


def node_failures(rng: Random, nodes: int, hazard: Hazard) -> tuple[list[Failure], list[tuple[int, int, str, str]]]:
    """Draw the failures of all nodes and the health events (time, node, code, severity), both in order of time.

    In each hour each node fails at its rate: a Poisson process without two failures of a node in one hour.
    """
    hours = DAYS * 24
    hour, node = np.nonzero(rng.random((hours, nodes)) < hazard.per_node_hour(nodes))
    count = len(hour)
    failure_s = FIRST_S + hour * HOUR_S + rng.integers(0, HOUR_S, count)
    is_node_fail = rng.random(count) < NODE_FAIL_PER_MILLE / 1000
    is_reported = ~is_node_fail | (rng.random(count) < TOLD_NODE_FAIL_PER_MILLE / 1000)
    out_s = round_to_int(QuantileFunction(OUT_QUANTILES_S)(rng.random(count)))
    order = np.lexsort((node, failure_s))
    failures = [
        Failure(int(failure_s[i]), int(node[i]), int(out_s[i]), "NODE_FAIL" if is_node_fail[i] else "FAILED")
        for i in order
    ]
    names, total = list(CODES), sum(CODES.values())
    kinds = np.repeat(np.arange(len(names)), list(CODES.values()))
    code = kinds[(rng.random(count) * total).astype(np.int64)]
    shift_s = rng.integers(-540, 241, count)
    event_s = failure_s + shift_s
    events = [(int(event_s[i]), int(node[i]), names[code[i]], "high") for i in np.flatnonzero(is_reported)]
    warning_cells = np.nonzero(rng.random((DAYS, nodes)) < LOW_EVENTS_PER_NODE_DAY)
    seconds = FIRST_S + warning_cells[0] * DAY_S + rng.integers(0, DAY_S, len(warning_cells[0]))
    warnings = zip(seconds.tolist(), warning_cells[1].tolist(), strict=True)
    events += [(second, node, "GPU_TEMPERATURE", "low") for second, node in warnings]
    return failures, sorted(events)


def simulate_runs(plan: Plan, nodes: int, failures: list[Failure]) -> list[Run]:
    """Simulate every run and wait of every job, in order of submission."""
    skipped = plan.never_started > 0
    requested_s = np.where(skipped, END_S, plan.jobs.requested_s).tolist()
    runs = Cluster(replace(plan.jobs, requested_s=requested_s), nodes, failures, END_S).run_all()
    for job in np.flatnonzero(skipped).tolist():
        submit_s = plan.jobs.requested_s[job]
        end_s = submit_s + int(plan.never_started[job])
        runs.append(Run(job, 0, submit_s, submit_s, None, end_s, "CANCELLED"))
    return sorted(runs, key=lambda run: (run.submit_s, run.job, run.number))


# ---- dumps ----


def node_name(node: int) -> str:
    return f"n{node + 1:03}"


def hostlist(nodes: tuple[int, ...]) -> str:
    """Return the names of nodes in ascending order as Slurm writes them: n[001-032,040]."""
    if len(nodes) == 1:
        return node_name(nodes[0])
    gaps = [(left, right) for left, right in pairwise(nodes) if right != left + 1]
    firsts, lasts = [nodes[0], *(right for _, right in gaps)], [*(left for left, _ in gaps), nodes[-1]]
    parts = [
        node_name(first)[1:] + (f"-{node_name(last)[1:]}" if last > first else "")
        for first, last in zip(firsts, lasts, strict=True)
    ]
    return f"n[{','.join(parts)}]"


def record(plan: Plan, run: Run, seen_s: int) -> list[str]:
    """Return the fields of a run or wait in a dump printed at `seen_s`."""
    job, gpus = run.job, plan.jobs.gpus[run.job]
    started = run.start_s is not None and run.start_s < seen_s
    ended = run.end_s is not None and run.end_s < seen_s
    state = run.state if ended else "RUNNING" if started else "PENDING"
    never_started = ended and not started
    state_field = f"CANCELLED by {1000 + int(plan.user[job])}" if state == "CANCELLED" else state
    failed_node = run.failed_node if ended else None
    exit_code = plan.exit_code[job] if state in EXIT_CODES and failed_node is None else "0:0"
    exit_code = "1:0" if state in ("FAILED", "NODE_FAIL") and failed_node is not None else exit_code
    nodes = len(run.nodes) if started else max(1, gpus // NODE_GPUS)
    tres = f"billing={gpus},cpu={12 * gpus},gres/gpu:a100={gpus},gres/gpu={gpus},mem={120 * gpus}G,node={nodes}"
    end = str(run.end_s) if ended else "Unknown"
    unstarted = (end if job % 2 else "None") if never_started else "Unknown"
    raw_id, job_field = plan.job_id[job]
    elapsed_s = (run.end_s if ended else seen_s) - run.start_s if started else 0
    return [
        str(raw_id), job_field, "sim", f"user{plan.user[job]:02}", f"project{plan.account[job]}",
        "large" if gpus >= LARGE_GPUS else "gpu",
        {HIGH: "high", NORMAL: "normal", LOW: "low"}[plan.jobs.priority[job]], state_field, exit_code, exit_code,
        str(run.submit_s), str(run.eligible_s), str(run.start_s) if started else unstarted, end, str(elapsed_s),
        "00:00:00", str(plan.limit_min[job]), str(nodes), hostlist(run.nodes) if started else "None assigned", tres,
        tres if started else "", "NodeDown" if state == "NODE_FAIL" else "None", "SchedMain",
        str(run.number), "None" if failed_node is None else node_name(failed_node),
    ]  # fmt: skip


def steps(fields: list[str]) -> list[list[str]]:
    """Return the batch step and the first step of a run that ended, which sacct prints without -X."""
    values = dict(zip(COLUMNS, fields, strict=True))
    rows = []
    for step in ("batch", "0"):
        step_values = values | {"JobIDRaw": f"{values['JobIDRaw']}.{step}", "JobID": f"{values['JobID']}.{step}"}
        blank = dict.fromkeys(("User", "Partition", "QOS", "TimelimitRaw", "ReqTRES", "Reason", "Flags"), "")
        rows.append(list((step_values | blank | {"State": values["State"].split()[0]}).values()))
    return rows


def dumps(plan: Plan, runs: list[Run]) -> tuple[list[list[str]], list[list[str]]]:
    """Return the rows of both dumps: one printed in the middle, one at the end with the jobs from the middle on."""
    first_dump, second_dump = [], []
    for number, run in enumerate(runs):
        if run.submit_s < MIDDLE_S:
            fields = record(plan, run, MIDDLE_S)
            first_dump.append(fields)
            if number % 25 == 3 and fields[12].isdigit() and fields[13].isdigit() and run.start_s is not None:
                first_dump += steps(fields)
        if run.end_s is None or run.end_s >= MIDDLE_S:
            second_dump.append(record(plan, run, END_S))
    array_id = FIRST_ID + len(plan.job_id)
    waiting = Run(len(plan.job_id) - 1, 0, END_S - HOUR_S, END_S - HOUR_S)
    last_fields = record(plan, waiting, END_S)
    return first_dump, [*second_dump, [str(array_id), f"{array_id}_[0-{ARRAY_TASKS - 1}]", *last_fields[2:]]]


def write_sample(folder: Path, jobs: int = 3_000, seed: int = 2025, hazard: Hazard = Hazard()) -> dict[str, int]:
    """Write two dumps of a cluster with `jobs` jobs and a waiting array, its health and node events; rows by file.

    The same `jobs`, `seed` and `hazard` give the same bytes.
    """
    check_sample_size(jobs, FEWEST_JOBS, "jobs", "a dump", seed)
    job_plan, nodes = plan(jobs, seed), node_count(jobs)
    failures, events = node_failures(np.random.default_rng([seed, 1]), nodes, hazard)
    runs = simulate_runs(job_plan, nodes, failures)
    first_dump, second_dump = dumps(job_plan, runs)
    outages = simulate_outages(seed, runs, failures, events, nodes)
    all_nodes = hostlist(tuple(range(nodes)))
    tables = {
        "record_a": ["|".join(fields) for fields in (COLUMNS, *first_dump)],
        "record_b": ["|".join(fields) for fields in (COLUMNS, *second_dump)],
        "health_events": [
            "node,time,code,severity",
            *(f"{node_name(node)},{second_dump},{code},{severity}" for second_dump, node, code, severity in events),
        ],
    } | sample_events.dumps(outages, [node_name(node) for node in range(nodes)], all_nodes, FIRST_S, END_S)
    tables["node_logs"] = sample_logs.kernel_log(
        np.random.default_rng([seed, 3]), runs, job_plan.user.tolist(), failures, events, nodes, FIRST_S, END_S
    )
    job_ids = [number for number, _ in job_plan.job_id]
    tables |= sample_training.training_logs(runs, job_plan.jobs.gpus, job_ids, END_S)
    with staged_files(folder, FILES) as files:
        for name, lines in tables.items():
            files[name].write(("\n".join(lines) + "\n").encode())
    return {name: len(lines) - (not name.endswith(("_logs", ".log"))) for name, lines in tables.items()}


def simulate_outages(
    seed: int, runs: Sequence[Run], failures: Sequence[Failure], events: Sequence, nodes: int
) -> list[sample_events.Outage]:
    """Simulate all outages of nodes: see sample_events."""
    rng = np.random.default_rng([seed, 2])
    return sample_events.outages(rng, runs, failures, events, nodes, FIRST_S, END_S)
