"""Make a synthetic trace in the layout of the Microsoft Philly trace, with a log of training losses.

The published log covers about five hundred machines. Here some dozens are simulated (sample_cluster.py), so that one
attempt at a time holds a GPU, and waits, occupancy and fragmentation are meaningful. The published inputs are run times
by GPUs (Fig 2 of the trace's notebook, digitised), shares of the statuses (Table 6 of Jeon et al., ATC'19), GPU
utilisation by GPUs and status (Table 3) and by servers (Table 5), relative sizes of the virtual clusters, and epochs to
the lowest loss (Fig 8).

Habits of the real files
------------------------
- The job log is one JSON array. Times have no zone (they are Pacific); some are in the hour that occurred twice.
- A missing start or end is null, an empty text or the text `None`. Some jobs have no attempts. Some last attempts have
  no end: they still ran, or their log is lost. Attempts have no status.
- The next attempt is requested three minutes after the end of the previous one. Failed and large jobs have more
  retries.
- The telemetry has a row per machine and minute. Its times end in PDT or PST; NA is a machine out of service. Rows of
  cluster_gpu_util end in an empty field without a name. The telemetry covers hours, not the whole time.
- The list of machines is wrong for most machines and has a space after each comma.

True parameters
---------------
Jobs are not independent. The shares of the statuses by GPUs are fixed; which jobs have them depends on
- the user: the odds that a job fails differ between users by a lognormal factor, the standard deviation of its
  logarithm USER_LOG_SD. A few users have most of the jobs.
- the campaign: a user requests the same GPUs several times within a day, and the jobs of such a campaign share a
  further factor of GROUP_LOG_SD. Normal scores of the run times of two jobs of a user correlate by RUN_BY_USER, of two
  of a campaign by RUN_BY_GROUP more.
- the machines of the last attempt: the mean of their factors, of MACHINE_LOG_SD. The scheduler fills the first of the
  best-fitting machines, so that jobs submitted together run close together.

Same (jobs, seed), same bytes: see samples.draws.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
from ttf.formats.format_declaration import load_declaration

from samples.draws import (
    Bools,
    Floats,
    Ints,
    QuantileFunction,
    Random,
    apportion,
    check_sample_size,
    correlated_scores,
    draw_failures,
    hex_ids,
    lognormal,
    pick,
    resubmission_groups,
    round_to_int,
    shuffled_values,
    spread_probabilities,
    staged_files,
    submission_times,
)
from samples.philly import sample_cluster, sample_telemetry
from samples.philly.sample_cluster import Attempt

FILES = load_declaration("philly")["sample"]["files"]
FEWEST_JOBS = 300

# ---- published values ----

STATUSES = ("Pass", "Killed", "Failed")
PASS, KILLED, FAILED = range(3)
BUCKETS = ("1", "2-4", "5-8", ">8")
# Run time in minutes, percentiles 25, 50, 75, 80, 90; the ends are assumed.
RUN_QUANTILES_MIN = (
    {0: 0.1, 0.25: 2.1, 0.5: 19, 0.75: 64, 0.8: 93, 0.9: 244, 0.98: 3_000, 1: 9_000},
    {0: 0.1, 0.25: 1.5, 0.5: 33, 0.75: 1_035, 0.8: 1_510, 0.9: 3_446, 1: 14_000},
    {0: 0.1, 0.25: 15, 0.5: 206, 0.75: 1_921, 0.8: 2_804, 0.9: 5_972, 1: 14_000},
    {0: 0.1, 0.25: 10, 0.5: 136, 0.75: 934, 0.8: 1_187, 0.9: 3_108, 1: 10_000},
)
# Virtual clusters and their relative sizes (machines, as others assumed them); the last four are tiny.
ACCOUNTS = {
    "6214e9": 64, "b436b2": 64, "ee9e8c": 64, "7f04ca": 32, "6c71a0": 32, "0e4a51": 32, "11cb48": 16, "e13805": 16,
    "2869ce": 16, "ed69ec": 8, "103959": 8, "51b7ef": 1, "925e2b": 1, "795a4c": 1, "23dbec": 1,
}  # fmt: skip
LARGE_ACCOUNTS = 6  # the number of first accounts with jobs of more GPUs than one machine has
NO_ATTEMPTS_PER_MILLE = 45
LOST_END_PER_MILLE = 30  # of the jobs with attempts, beside those still running at the end
ATTEMPTS_WITHOUT_START = 3

# ---- assumptions where nothing was published; each is one number to change ----

JOBS_BY_BUCKET = (700, 135, 130, 35)
GPUS = ({1: 1}, {2: 6, 3: 1, 4: 6}, {5: 1, 6: 1, 8: 16}, {12: 2, 16: 12, 24: 2, 32: 4})
# Per mille of the jobs of a bucket, by status: together they give the published 69.3, 13.5 and 17.2 %.
STATUS_BY_BUCKET = ((725, 122, 153), (660, 145, 195), (610, 180, 210), (520, 190, 290))
# How many jobs of a bucket have 0, 1, 2 ... retries: those that failed in the end, and the others.
RETRIES_FAILED = ((40, 30, 20, 10), (30, 30, 25, 15), (22, 28, 30, 20), (10, 25, 30, 35))
RETRIES_OTHERS = ((96, 3, 1), (93, 5, 2), (88, 8, 4), (75, 15, 10))
# Killed jobs lean towards long runs, by so many standard deviations.
LEAN = (0.0, 0.7, 0.0)
# Differences between users, campaigns and machines: see the module docstring.
USER_LOG_SD, GROUP_LOG_SD, MACHINE_LOG_SD = 1.0, 0.5, 0.4
RUN_BY_USER, RUN_BY_GROUP = 0.1, 0.2
CAMPAIGN_QUANTILES = {0: 0.6, 0.5: 1.5, 0.8: 4.5, 0.95: 10, 1: 16}  # jobs per campaign
CAMPAIGN_S = 86_400  # the jobs of a campaign lie within this time, mixed with those of others
# From the submission of a job to the request of its first attempt, s.
LATENCY_QUANTILES_S = {0: 4, 0.4: 15, 0.7: 60, 0.95: 240, 1: 900}

FIRST_S = 1_506_841_200  # 2017-10-01 00:00 Pacific
END_S = 1_510_041_600  # 2017-11-07 00:00
CLOCKS_BACK_S = 1_509_872_400  # 2017-11-05 02:00 PDT, then 01:00 PST
HOUR_S = 3_600
HOUR_WEIGHTS = (36, 30, 26, 22, 20, 18, 20, 24, 34, 50, 62, 66, 60, 62, 68, 70, 70, 66, 58, 52, 50, 48, 46, 42)
WEEKDAY_WEIGHTS = (108, 112, 112, 110, 106, 70, 64)  # Monday first
# When the resource manager started; it is in the id of every job submitted since.
MANAGER_STARTS_MS = (1_506_638_472_019, 1_508_277_839_677)

MACHINES_PER_1000_JOBS = 13
FEWEST_MACHINES = 10
JOBS_A_USER = 30
USER = 0  # kind of identifier

# ---- the losses: the shares of Fig 8, each exact but for rounding, by status: Pass, Killed ----

# Shares of jobs that need every epoch for their lowest loss, or come within 0.1 % of it by two fifths of their epochs.
NEEDS_ALL_SHARE = {0: 0.84, 1: 0.75}
WITHIN_BY_40_SHARE = {0: 0.74, 1: 0.64}
JOBS_SHARE = 0.25  # of the jobs of that status that ran long enough
LOSS_RUN_S = 1_200
FEWEST_EPOCHS, MOST_EPOCHS = 10, 60
MICRO = 1_000_000  # losses are drawn in millionths


@dataclass(frozen=True)
class Plan:
    """One entry per job, in order of submission, as drawn before scheduling."""

    submit_s: Ints
    requested_s: Ints
    bucket: Ints
    gpus: Ints
    status: Ints
    account: Ints
    user: Ints
    campaign: Ints
    odds: Floats  # of failure, from its user and campaign
    durations_s: list[list[int]]  # by attempt; none for jobs that were never scheduled


def plan(jobs: int, seed: int) -> Plan:
    rng = np.random.default_rng([seed, 0])
    hours = np.arange(FIRST_S // HOUR_S, END_S // HOUR_S)
    # After the end of daylight saving time local time is an hour off, which does not matter here.
    submit_s = submission_times(rng, jobs, hours, hours - 7, HOUR_WEIGHTS, WEEKDAY_WEIGHTS)
    bucket = shuffled_values(rng, jobs, dict(enumerate(JOBS_BY_BUCKET)), floor=20)
    gpus = np.zeros(jobs, dtype=np.int64)
    for code in range(len(BUCKETS)):
        rows = np.flatnonzero(bucket == code)
        gpus[rows] = shuffled_values(rng, len(rows), GPUS[code], floor=1)
    campaign, account, user = _owners(rng, gpus, submit_s)
    user_odds = lognormal(rng, int(user.max()) + 1, USER_LOG_SD)[user]
    odds = user_odds * lognormal(rng, int(campaign.max()) + 1, GROUP_LOG_SD)[campaign]
    length = correlated_scores(rng, (user, RUN_BY_USER), (campaign, RUN_BY_GROUP))
    status, run_s, retries = (np.zeros(jobs, dtype=np.int64) for _ in range(3))
    for code in range(len(BUCKETS)):
        rows = np.flatnonzero(bucket == code)
        passed, killed, failed = apportion(len(rows), STATUS_BY_BUCKET[code], floor=3)
        fails = draw_failures(rng, failed, odds[rows])
        status[rows[fails]] = FAILED
        status[rows[~fails]] = rng.permutation(np.repeat([PASS, KILLED], [passed, killed]))
        run_at = spread_probabilities(rng, length[rows] + np.array(LEAN)[status[rows]])
        run_s[rows] = np.maximum(1, round_to_int(60 * QuantileFunction(RUN_QUANTILES_MIN[code])(run_at)))
        for is_failed, weights in ((True, RETRIES_FAILED), (False, RETRIES_OTHERS)):
            group_rows = rows[fails == is_failed]
            retries[group_rows] = shuffled_values(rng, len(group_rows), dict(enumerate(weights[code])))
    is_killed = status == KILLED
    never_scheduled = pick(rng, is_killed, 0.7 * jobs * NO_ATTEMPTS_PER_MILLE / 1000 / max(1, is_killed.sum()))
    never_scheduled |= pick(rng, ~is_killed, 0.3 * jobs * NO_ATTEMPTS_PER_MILLE / 1000 / (~is_killed).sum())

    latency_s = round_to_int(QuantileFunction(LATENCY_QUANTILES_S)(rng.random(jobs)))
    return Plan(
        submit_s=submit_s,
        requested_s=submit_s + latency_s,
        bucket=bucket,
        gpus=gpus,
        status=status,
        account=account,
        user=user,
        campaign=campaign,
        odds=odds,
        durations_s=_durations(rng, run_s, retries, never_scheduled),
    )


def _owners(rng: Random, gpus: Ints, submit_s: Ints) -> tuple[Ints, Ints, Ints]:
    """Draw campaign, account and user of each job; a campaign has one account and one user."""
    proximity = submit_s + rng.integers(0, CAMPAIGN_S, len(gpus))
    campaign = resubmission_groups(rng, gpus, proximity, QuantileFunction(CAMPAIGN_QUANTILES))
    campaigns = int(campaign.max()) + 1
    campaign_gpus = np.zeros(campaigns, dtype=np.int64)
    campaign_gpus[campaign] = gpus
    weights = list(ACCOUNTS.values())
    account = shuffled_values(rng, campaigns, dict(enumerate(weights)), floor=1)
    large = campaign_gpus > sample_cluster.SERVER_GPUS
    account[large] = shuffled_values(rng, int(large.sum()), dict(enumerate(weights[:LARGE_ACCOUNTS])))
    users = apportion(max(len(weights), len(gpus) // JOBS_A_USER), weights, floor=1)
    first_user = np.cumsum([0, *users[:-1]])
    # A few users have most of the campaigns.
    skewed_draw = rng.random(campaigns) * rng.random(campaigns)
    user = first_user[account] + (np.array(users)[account] * skewed_draw).astype(np.int64)
    return campaign, account[campaign], user[campaign]


def _durations(rng: Random, run_s: Ints, retries: Ints, never_scheduled: np.ndarray) -> list[list[int]]:
    """Divide the run time of each job among its attempts, at least one second each."""
    durations = []
    for total, retry_count, is_never in zip(run_s.tolist(), retries.tolist(), never_scheduled.tolist(), strict=True):
        tries = min(retry_count + 1, total)
        if is_never:
            durations.append([])
        elif tries == 1:
            durations.append([total])
        else:
            weights = rng.integers(1, 11, tries).tolist()
            durations.append([1 + part for part in apportion(total - tries, weights)])
    return durations


def machine_gpus(jobs: int) -> list[int]:
    """Return the GPUs of each machine: 8 and 4 in turn, about the real proportions."""
    return [
        8 if number % 2 == 0 else 4 for number in range(max(FEWEST_MACHINES, jobs * MACHINES_PER_1000_JOBS // 1000))
    ]


def schedule(plan: Plan, machines: list[int]) -> list[Attempt]:
    quota = apportion(sum(machines), list(ACCOUNTS.values()), floor=1)
    return sample_cluster.run(
        machines, quota, plan.account.tolist(), plan.gpus.tolist(), plan.requested_s.tolist(), plan.durations_s, END_S
    )


def redraw_statuses(plan: Plan, attempts: list[Attempt], machines: int, seed: int) -> Plan:
    """Return the plan with statuses redrawn by odds that include the machines.

    Among jobs of one size and number of attempts the same number fail as before, so the schedule stays valid.
    """
    rng = np.random.default_rng([seed, 4])
    machine_factors = lognormal(rng, machines, MACHINE_LOG_SD)
    odds = plan.odds.copy()
    for attempt in {attempt.job: attempt for attempt in attempts}.values():
        odds[attempt.job] *= machine_factors[list(attempt.gpus_by_machine)].mean()
    status = plan.status.copy()
    tries = np.array([len(durations) for durations in plan.durations_s])
    cell = plan.bucket * (tries.max() + 1) + tries
    for code in np.unique(cell):
        rows = np.flatnonzero(cell == code)
        failed_before = status[rows] == FAILED
        failed_now = draw_failures(rng, int(failed_before.sum()), odds[rows])
        newly_failed, no_longer_failed = rows[failed_now & ~failed_before], rows[failed_before & ~failed_now]
        status[no_longer_failed], status[newly_failed] = rng.permutation(status[newly_failed]), FAILED
    return replace(plan, status=status)


# ---- the log ----


def clock(second: int) -> str:
    """Format a time as in the log: Pacific, without a zone."""
    offset_s = (7 if second < CLOCKS_BACK_S else 8) * HOUR_S
    return f"{datetime.fromtimestamp(second - offset_s, UTC):%Y-%m-%d %H:%M:%S}"


def missing_times(attempts: list[Attempt], seed: int) -> tuple[Bools, Bools]:
    """Draw whether the start and the end of each attempt are missing.

    A few starts of first attempts with a later one are missing, some ends of last ones, and all after the trace.
    """
    rng = np.random.default_rng([seed, 1])
    last = {attempt.job: number for number, attempt in enumerate(attempts)}
    is_last = np.zeros(len(attempts), dtype=bool)
    is_last[list(last.values())] = True
    is_first = np.array([attempt.number == 0 for attempt in attempts])
    no_start = pick(rng, is_first & ~is_last, 0, min_rows=ATTEMPTS_WITHOUT_START)
    no_end = np.array([attempt.end_s >= END_S for attempt in attempts])
    return no_start, no_end | pick(rng, is_last & ~no_end, LOST_END_PER_MILLE / 1000)


def job_ids(plan: Plan) -> list[str]:
    """Return the ids of the jobs: the start of the resource manager, and their number since."""
    ids, sequence, manager = [], 0, -1
    for submit_s in plan.submit_s.tolist():
        manager_index = sum(submit_s * 1000 >= start for start in MANAGER_STARTS_MS) - 1
        sequence, manager = (1 if manager_index != manager else sequence + 1), manager_index
        ids.append(f"application_{MANAGER_STARTS_MS[manager]}_{sequence:04}")
    return ids


def job_log(plan: Plan, attempts: list[Attempt], no_start: Bools, no_end: Bools, seed: int) -> list[dict]:
    """Return the records of the log, in order of submission; no_start, no_end: see `missing_times`."""
    tries_by_job: list[list[tuple[Attempt, bool, bool]]] = [[] for _ in plan.submit_s]
    for attempt, *missing in zip(attempts, no_start.tolist(), no_end.tolist(), strict=True):
        tries_by_job[attempt.job].append((attempt, *missing))
    blanks = (None, "None", "")
    users = hex_ids(seed, USER, np.arange(int(plan.user.max()) + 1), 6).to_list()
    accounts, ids = list(ACCOUNTS), job_ids(plan)
    records = []
    for job, (submit_s, tries) in enumerate(zip(plan.submit_s.tolist(), tries_by_job, strict=True)):
        logged_attempts = [
            {
                "start_time": blanks[job % 3] if is_start_missing else clock(attempt.start_s),
                "end_time": blanks[job % 3] if is_end_missing else clock(attempt.end_s),
                "detail": [
                    {"ip": f"m{machine}", "gpus": [f"gpu{index}" for index in gpus]}
                    for machine, gpus in attempt.gpus_by_machine.items()
                ],
            }
            for attempt, is_start_missing, is_end_missing in tries
        ]
        records.append(
            {
                "status": STATUSES[plan.status[job]],
                "vc": accounts[plan.account[job]],
                "jobid": ids[job],
                "attempts": logged_attempts,
                "submitted_time": clock(submit_s),
                "user": users[plan.user[job]],
            }
        )
    return records


def machine_list(machines: list[int]) -> list[str]:
    """Return the list of machines: wrong for nine in ten, and with two that appear nowhere else."""
    lines = ["machineId, number of GPUs, single GPU mem"]
    for number, gpus in enumerate([*machines, 8, 8]):
        listed_gpus = gpus if number % 10 == 7 else {8: 2, 4: 8}[gpus]
        lines.append(f"m{number}, {listed_gpus}, {'24GB' if listed_gpus == 8 else '12GB'}")
    return lines


def loss_rows(rng: Random, plan: Plan, attempts: list[Attempt], job_ids: list[str]) -> pl.DataFrame:
    """Draw the losses of passed or killed jobs with one attempt: job, epoch (from 1), loss, time (s since 1970).

    A loss falls to within 0.1 % of the lowest, slowly reaches the lowest, and then stays above it.
    """
    attempt_by_job = {attempt.job: attempt for attempt in attempts if len(plan.durations_s[attempt.job]) == 1}
    run_s = np.array([plan.durations_s[job][0] if job in attempt_by_job else 0 for job in range(len(job_ids))])
    rows = []
    for status, share_all in NEEDS_ALL_SHARE.items():
        jobs = np.flatnonzero(pick(rng, (plan.status == status) & (run_s >= LOSS_RUN_S), JOBS_SHARE))
        epochs = rng.integers(FEWEST_EPOCHS, MOST_EPOCHS + 1, len(jobs))
        needs_all = pick(rng, np.ones(len(jobs), dtype=bool), share_all)
        early = pick(rng, np.ones(len(jobs), dtype=bool), WITHIN_BY_40_SHARE[status])
        for job, count, needs_last, is_early in zip(jobs.tolist(), epochs.tolist(), needs_all, early, strict=True):
            two_fifths = 2 * count // 5
            near_lowest = int(rng.integers(2, two_fifths + 1)) if is_early else int(rng.integers(two_fifths + 1, count))
            lowest = count if needs_last else int(rng.integers(near_lowest, count))
            rows.append(_curve(rng, attempt_by_job[job], job_ids[job], count, near_lowest, lowest))
    return pl.concat(rows)


def _curve(rng: Random, attempt: Attempt, job_id: str, epochs: int, near_lowest: int, lowest: int) -> pl.DataFrame:
    """Draw the losses of one job: within 0.1 % of the lowest from epoch `near_lowest` on, the lowest at `lowest`."""
    epoch = np.arange(1, epochs + 1)
    low = int(rng.integers(50_000, 2 * MICRO))
    steps = rng.integers(1, 100, epochs)
    # Before `near_lowest`: from four times the lowest down to 0.2 % above it.
    far = low + low // 500 + 1 + 3 * low * (near_lowest - epoch) // near_lowest + steps * low // 100_000
    near = low + 1 + (low // 1_000 - 2) * np.maximum(lowest - epoch, 0) // max(1, lowest)
    final = low + 1 + steps * low // 10_000
    stages = [epoch < near_lowest, epoch < lowest, epoch == lowest]
    loss = np.select(stages, [far, near, np.full(epochs, low)], final)
    end_s = attempt.start_s + (attempt.end_s - attempt.start_s) * epoch // epochs
    return pl.DataFrame({"job": [job_id] * epochs, "epoch": epoch, "loss": loss / MICRO, "time": end_s})


def write_sample(folder: Path, jobs: int = 3_000, seed: int = 2017) -> dict[str, int]:
    """Write log, telemetry, list of machines and losses of a trace of `jobs` jobs; return the rows by table.

    The same `jobs` and `seed` give the same bytes.
    """
    check_sample_size(jobs, FEWEST_JOBS, "jobs", "the trace", seed)
    job_plan, machines = plan(jobs, seed), machine_gpus(jobs)
    attempts = schedule(job_plan, machines)
    job_plan = redraw_statuses(job_plan, attempts, len(machines), seed)
    no_start, no_end = missing_times(attempts, seed)
    records = job_log(job_plan, attempts, no_start, no_end, seed)
    rng = np.random.default_rng([seed, 2])
    job = [attempt.job for attempt in attempts]
    telemetry = sample_telemetry.frames(
        rng, machines, attempts, job_plan.gpus[job], job_plan.status[job], is_logged=~(no_start | no_end)
    )
    losses = loss_rows(np.random.default_rng([seed, 3]), job_plan, attempts, [record["jobid"] for record in records])
    lines = machine_list(machines)
    rows = {"job_log": len(records), "machine_list": len(lines) - 1, "loss_log": losses.height}
    with staged_files(folder, FILES) as files:
        # One job per line, for human readers.
        text = ",\n".join(json.dumps(record) for record in records)
        files["job_log"].write(f"[{text}]\n".encode())
        files["machine_list"].write(("\n".join(lines) + "\n").encode())
        losses.write_csv(files["loss_log"])
        for name, frame in telemetry.items():
            # The rows of the GPU table end in a comma that its header does not have.
            ragged = name == "gpu_util"
            header = ",".join(frame.columns[:-1] if ragged else frame.columns) + "\n"
            files[name].write(header.encode())
            frame.write_csv(files[name], include_header=False)
            rows[name] = frame.height
    return rows
