"""Jobs by outcome, and the tables of outcomes and run times."""

import polars as pl

from ttf.inputs import Inputs
from ttf.outcomes import observed_times, outcome_table, runtime_quantiles, split_outcomes


def compute(given: Inputs) -> dict:
    jobs = given.scan("jobs")
    times_of, words = observed_times(jobs), given.settings.words
    return split_outcomes(jobs) | {
        "outcomes": outcome_table(jobs, times_of, words),
        # Published shares are mostly of the jobs that asked for a GPU.
        "outcomes_gpu": outcome_table(jobs.filter(pl.col("gpu_milli") > 0), words=words),
        "runtime_quantiles": runtime_quantiles(times_of),
    }
