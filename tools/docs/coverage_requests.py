"""Simulate how many of the next jobs fit the suggested time limits, if the weeks of a group differ."""

from collections.abc import Iterator

import numpy as np
import polars as pl
from ttf.analyses.queue.suggest_requests.compute import FEWEST_JOBS, FEWEST_TESTS, SMALLEST_SHARE
from ttf.analyses.queue.suggest_requests.rolling_test import SHARE, fitted_shares, suggest_and_test

WEEK_S = 7 * 86_400
GROUPS, WEEKS, JOBS = 200, 20, 150
# Log SD of a week's factor, and its correlation with that of the week before.
WORLDS = {
    "weeks that do not differ": (0.0, 0.0),
    "log SD 0.3, AR 0.8": (0.3, 0.8),
    "log SD 0.5, AR 0.8": (0.5, 0.8),
    "log SD 0.7": (0.7, 0.0),
    "log SD 0.7, AR 0.8": (0.7, 0.8),
}
# The last fifth of each group's jobs comes after the suggestion.
PAST_SHARE = 0.8


def simulate_groups(sd: float, ar: float, rng: np.random.Generator) -> pl.DataFrame:
    """Return the jobs of GROUPS groups in bursts: need_s, which failures and time limits cut, and what was recorded."""
    groups = []
    for number in range(GROUPS):
        n, effects = int(rng.lognormal(np.log(JOBS), 0.6)) + 1, [rng.normal(0, sd)]
        for _ in range(WEEKS - 1):
            effects.append(ar * effects[-1] + rng.normal(0, sd * np.sqrt(1 - ar**2)))
        week = np.sort(rng.choice(WEEKS, n, p=rng.dirichlet(np.full(WEEKS, 0.7))))
        need = np.ceil(np.exp(8 + np.array(effects)[week] + rng.normal(0, 1, n)))
        limit = np.minimum(np.exp(rng.normal(10.3, 0.5)), rng.exponential(np.exp(9.5), n))
        columns = {"start_s": week * WEEK_S + rng.integers(0, WEEK_S, n), "need_s": need.astype(np.int64)}
        columns |= {"duration_s": np.ceil(np.minimum(need, limit)).astype(np.int64), "succeeded": need <= limit}
        groups.append(pl.DataFrame(columns).with_columns(number=pl.lit(number, pl.UInt32)))
    jobs = pl.concat(groups).sort("number", "start_s")
    is_past = pl.int_range(pl.len()).over("number") < PAST_SHARE * pl.len().over("number")
    event = pl.when("succeeded").then(pl.lit("success"))
    return jobs.with_columns(end_s=pl.col("start_s") + pl.col("duration_s"), event=event, is_past=is_past)


def measure_fit(sd: float, ar: float, rng: np.random.Generator) -> list[float]:
    """Return shares of the groups with a suggestion, of next jobs that fit it, of groups with too few of these.

    Then the share that the test expects, and of next jobs within the quantile of past jobs alone.
    """
    jobs = simulate_groups(sd, ar, rng)
    rows, tests = suggest_and_test(jobs.filter("is_past"), is_time=True)
    rows = rows.filter(pl.col("n") >= FEWEST_JOBS).drop_nulls("quantile")
    is_supported = (pl.col("tested") >= FEWEST_TESTS) & (pl.col("fitted_share") >= SMALLEST_SHARE)
    suggested = rows.filter(is_supported).drop_nulls("suggested")
    next_jobs = (
        jobs.filter(~pl.col("is_past"))
        .join(rows, on="number")
        .with_columns(
            fits=pl.col("need_s") <= pl.col("suggested"), fits_quantile=pl.col("need_s") <= pl.col("quantile")
        )
    )
    by_group = next_jobs.join(suggested.select("number"), on="number").group_by("number").agg(pl.col("fits").mean())
    tested = fitted_shares(tests.select("event", "duration_s", all=pl.lit(0)), ["all"])["fitted_share"].item()
    shares = [suggested.height / rows.height, by_group["fits"].mean(), (by_group["fits"] < SMALLEST_SHARE).mean()]
    return [
        *map(float, shares),
        tested,
        next_jobs.group_by("number").agg(pl.col("fits_quantile").mean())["fits_quantile"].mean(),
    ]


def request_rows(repetitions: int, seed: int) -> Iterator[list[str]]:
    for name, (sd, ar) in WORLDS.items():
        rng = np.random.default_rng(seed)
        means = np.mean([measure_fit(sd, ar, rng) for _ in range(repetitions)], axis=0)
        given, fits, below, tested, quantile = (f"{mean:.3f}" for mean in means)
        yield [name, f"**{fits}** ({quantile})", tested, below, given]


HEADS = ["", "next jobs that fit", "in the test", f"groups below {SMALLEST_SHARE:.0%}", "given"]
TEXT = f"""{GROUPS} groups of some {JOBS} jobs in {WEEKS} weeks run in bursts; failures and time limits end jobs early.
The first 80% of a group's jobs make the suggested time limit, in which {SHARE:.0%} of the last 20% should succeed. The
columns are the share that does, in brackets by the quantile of past jobs alone; the share in the rolling test; groups
of which fewer than {SMALLEST_SHARE:.0%} of the next jobs fit; and groups with a suggestion."""
