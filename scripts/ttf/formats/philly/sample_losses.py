"""A log of training losses for some jobs of the Philly sample: job, epoch, loss, and when the epoch ended.

The shares are those of Fig 8 of Jeon et al. (ATC'19), each exact but for rounding: jobs that need every epoch for their
lowest loss, and jobs that are within 0.1 % of it after two fifths of their epochs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from ttf.formats.draws import Random, pick
from ttf.formats.philly.sample_cluster import Attempt

if TYPE_CHECKING:
    from ttf.formats.philly.sample import Plan

NEEDS_ALL_SHARE = {0: 0.84, 1: 0.75}  # by status: Pass, Killed
WITHIN_BY_40_SHARE = {0: 0.74, 1: 0.64}
JOBS_SHARE = 0.25  # of the jobs of that status that ran long enough
LEAST_RUN_S = 1_200
FEWEST_EPOCHS, MOST_EPOCHS = 10, 60
MICRO = 1_000_000  # losses are drawn in millionths


def loss_rows(rng: Random, plan: Plan, attempts: list[Attempt], job_ids: list[str]) -> pl.DataFrame:
    """job, epoch (from 1), loss, time (s since 1970), by job and epoch: of jobs with one attempt, passed or killed.

    A loss falls to within 0.1 % of the lowest, creeps to the lowest, and after that stays above it.
    """
    only = {attempt.job: attempt for attempt in attempts if len(plan.durations_s[attempt.job]) == 1}
    run_s = np.array([plan.durations_s[job][0] if job in only else 0 for job in range(len(job_ids))])
    rows = []
    for status, share_all in NEEDS_ALL_SHARE.items():
        jobs = np.flatnonzero(pick(rng, (plan.status == status) & (run_s >= LEAST_RUN_S), JOBS_SHARE))
        epochs = rng.integers(FEWEST_EPOCHS, MOST_EPOCHS + 1, len(jobs))
        needs_all = pick(rng, np.ones(len(jobs), dtype=bool), share_all)
        early = pick(rng, np.ones(len(jobs), dtype=bool), WITHIN_BY_40_SHARE[status])
        for job, count, to_end, is_early in zip(jobs.tolist(), epochs.tolist(), needs_all, early, strict=True):
            two_fifths = 2 * count // 5
            within = int(rng.integers(2, two_fifths + 1)) if is_early else int(rng.integers(two_fifths + 1, count))
            lowest = count if to_end else int(rng.integers(within, count))
            rows.append(_curve(rng, only[job], job_ids[job], count, within, lowest))
    return pl.concat(rows)


def _curve(rng: Random, attempt: Attempt, job_id: str, epochs: int, within: int, lowest: int) -> pl.DataFrame:
    """The epochs of one job: within 0.1 % of the lowest loss from epoch `within` on, the lowest at `lowest`."""
    epoch = np.arange(1, epochs + 1)
    low = int(rng.integers(50_000, 2 * MICRO))
    steps = rng.integers(1, 100, epochs)
    # Before: at least 0.2 % above, less and less, up to four times as much.
    far = low + low // 500 + 1 + 3 * low * (within - epoch) // within + steps * low // 100_000
    near = low + 1 + (low // 1_000 - 2) * np.maximum(lowest - epoch, 0) // max(1, lowest)
    after = low + 1 + steps * low // 10_000
    loss = np.select([epoch < within, epoch < lowest, epoch == lowest], [far, near, np.full(epochs, low)], after)
    end_s = attempt.start_s + (attempt.end_s - attempt.start_s) * epoch // epochs
    return pl.DataFrame({"job": [job_id] * epochs, "epoch": epoch, "loss": loss / MICRO, "time": end_s})
