"""Split jobs into training, recalibration and test sets as in use: train on ended jobs, test on later ones."""

from dataclasses import dataclass

import numpy as np

from ttf.analyses.shared.risk.training_jobs import Population

# Shares of all submissions: train before the first, recalibrate up to the second, test up to the third.
ORIGINS = ((0.40, 0.50, 0.67), (0.57, 0.67, 0.83), (0.73, 0.83, 1.0))
RANDOM = (0.6, 0.7)


@dataclass(frozen=True)
class Split:
    """learn, recalibrate, test: (n,) boolean masks; until_s: time at which the model is made.

    running: jobs submitted in the test period that still run at the end of the trace.
    """

    name: str
    learn: np.ndarray
    recalibrate: np.ndarray
    test: np.ndarray
    running: np.ndarray
    until_s: int


def split_at_origins(jobs: Population) -> list[Split]:
    """Split at three rolling origins.

    Train on jobs that were submitted and ended before t1, recalibrate on those submitted from t1 and ended before t2,
    test on those submitted from t2 with a recorded outcome.
    """
    n = len(jobs)
    splits = []
    for number, shares in enumerate(ORIGINS, start=1):
        end_s = int(jobs.submit_s[-1]) + 1 if n else 0
        t1, t2, t3 = (int(jobs.submit_s[min(int(share * n), n - 1)]) if share < 1 and n else end_s for share in shares)
        learn = jobs.ended & (jobs.submit_s < t1) & (jobs.known_s < t1)
        recalibrate = jobs.ended & (jobs.submit_s >= t1) & (jobs.submit_s < t2) & (jobs.known_s < t2)
        is_submitted = (jobs.submit_s >= t2) & (jobs.submit_s < t3)
        running = jobs.running & is_submitted
        splits.append(Split(f"temporal_{number}", learn, recalibrate, jobs.ended & is_submitted, running, t2))
    return splits


def split_at_random(jobs: Population, seed: int) -> Split:
    """Split jobs at random: a common mistake that sees the future, shown as a warning."""
    draw = np.random.default_rng(seed).random(len(jobs))
    training_limit, calibration_limit = RANDOM
    end_s = int(jobs.submit_s[-1]) + 1 if len(jobs) else 0
    return Split(
        "random",
        jobs.ended & (draw < training_limit),
        jobs.ended & (draw >= training_limit) & (draw < calibration_limit),
        jobs.ended & (draw >= calibration_limit),
        jobs.running & (draw >= calibration_limit),
        end_s,
    )
