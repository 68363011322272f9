"""What a risk is learnt on and tested on, as it would be used: on jobs that had ended, tested on those that came."""

from dataclasses import dataclass

import numpy as np

from ttf.analyses.shared.risk.training_jobs import Population

# Of all submissions: those before the first learn, those up to the second recalibrate, those up to the third test.
ORIGINS = ((0.40, 0.50, 0.67), (0.57, 0.67, 0.83), (0.73, 0.83, 1.0))
RANDOM = (0.6, 0.7)


@dataclass(frozen=True)
class Split:
    """learn, recalibrate, test: truth values, a job each; until_s: the moment at which the model is made.

    running: jobs submitted when those of the test were, that still run at the trace's end.
    """

    name: str
    learn: np.ndarray
    recalibrate: np.ndarray
    test: np.ndarray
    running: np.ndarray
    until_s: int


def temporal(jobs: Population) -> list[Split]:
    """Three rolling origins. Learnt on jobs submitted and ended before t1, recalibrated on those submitted from then on
    and ended before t2, tested on those submitted after, as far as the trace says how they ended."""
    n = len(jobs)
    found = []
    for number, shares in enumerate(ORIGINS, start=1):
        last = int(jobs.submit_s[-1]) + 1 if n else 0
        t1, t2, t3 = (int(jobs.submit_s[min(int(share * n), n - 1)]) if share < 1 and n else last for share in shares)
        learn = jobs.ended & (jobs.submit_s < t1) & (jobs.known_s < t1)
        again = jobs.ended & (jobs.submit_s >= t1) & (jobs.submit_s < t2) & (jobs.known_s < t2)
        came = (jobs.submit_s >= t2) & (jobs.submit_s < t3)
        running = jobs.running & came
        found.append(Split(f"temporal_{number}", learn, again, jobs.ended & came, running, t2))
    return found


def at_random(jobs: Population, seed: int) -> Split:
    """Jobs dealt out by chance, as is often done: what it promises too much stands beside the others as a warning."""
    draw = np.random.default_rng(seed).random(len(jobs))
    low, high = RANDOM
    end = int(jobs.submit_s[-1]) + 1 if len(jobs) else 0
    return Split(
        "random",
        jobs.ended & (draw < low),
        jobs.ended & (draw >= low) & (draw < high),
        jobs.ended & (draw >= high),
        jobs.running & (draw >= high),
        end,
    )
