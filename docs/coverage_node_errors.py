"""Simulate how often codes of errors are said to precede failures, where they do not, and where they do.

Each node runs four attempts at a time. The failure rates of users and of nodes differ by lognormal factors, and in a
week one user has most of a node. The codes are independent of attempts, or multiply their failure rate for a while.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

sys.path.append(str(Path(__file__).parents[1] / "scripts"))

from ttf.analyses.causes.judge_node_errors.evidence import SIGNIFICANCE
from ttf.records.clusters import DAY_S
from ttf.stats.basics.holm import holm
from ttf.stats.matched_risk import History, RatioTest, compare_counts, compare_with_control, pair_running

WINDOW_S, WEEK_S, LANES = 300, 7 * DAY_S, 4


@dataclass(frozen=True)
class World:
    """errors: of each code in all; burst: errors in one burst; ratio: of the failure rate in the window after one.

    user_spread, node_spread: log SD of the failure rates. code_spread: log SD of the nodes' rates of errors.
    """

    errors: int = 100
    burst: int = 1
    ratio: float = 1.0
    nodes: int = 60
    days: int = 60
    users: int = 20
    codes: int = 4
    user_spread: float = 1.2
    node_spread: float = 0.7
    code_spread: float = 1.0
    rate: float = 1e-5


WORLDS = {
    "users and nodes do not differ": World(user_spread=0, node_spread=0, code_spread=0),
    "users and nodes differ": World(),
    "the same, 1,000 errors a code": World(errors=1_000),
    "the same, in bursts of 5": World(errors=500, burst=5),
    "8 users, bursts of 5": World(errors=500, burst=5, users=8),
    "12 nodes": World(nodes=12),
    "failure rate 3 times as high": World(errors=500, ratio=3),
    "failure rate 10 times as high": World(errors=200, ratio=10),
}


def simulate(world: World, rng: np.random.Generator) -> tuple[History, pl.DataFrame]:
    """Draw the runs of one trace and its errors."""
    span_s, lanes = world.days * DAY_S, world.nodes * LANES
    user_rate = world.rate * np.exp(rng.normal(0, world.user_spread, world.users))
    node_factor = np.exp(rng.normal(0, world.node_spread, world.nodes))
    shape = lanes, span_s // 4_000
    run_s = rng.exponential(3_600 * np.exp(rng.normal(0, 1, shape))) + 60
    start_s = np.cumsum(run_s + rng.exponential(600, shape), axis=1) - run_s
    node = np.broadcast_to((np.arange(lanes) // LANES)[:, None], shape)
    week = np.minimum(start_s // WEEK_S, world.days // 7).astype(int)
    tenant = rng.integers(0, world.users, (world.nodes, world.days // 7 + 1))[node, week]
    user = np.where(rng.random(shape) < 0.4, rng.integers(0, world.users, shape), tenant)
    rate = user_rate[user] * node_factor[node]
    to_failure = rng.exponential(size=shape) / rate
    is_seen = start_s + run_s < span_s
    runs = pl.DataFrame(
        {
            "unit": node[is_seen].astype(np.uint32),
            "start_s": start_s[is_seen].astype(np.int64),
            "end_s": (start_s + np.minimum(to_failure, run_s))[is_seen].astype(np.int64),
            "is_failed": (to_failure < run_s)[is_seen],
            "rate": rate[is_seen],
        }
    ).with_row_index("run")
    signals = pl.concat([_draw_errors(world, f"code {code}", rng) for code in range(world.codes)])
    if world.ratio > 1:
        runs = _raise_rate(world, runs, signals, rng)
    watch = pl.DataFrame({"unit": np.arange(world.nodes, dtype=np.uint32)}).with_columns(
        start_s=pl.lit(0, pl.Int64), end_s=pl.lit(span_s, pl.Int64)
    )
    return History(runs.drop("rate"), watch), signals


def _draw_errors(world: World, code: str, rng: np.random.Generator) -> pl.DataFrame:
    weight, bursts = np.exp(rng.normal(0, world.code_spread, world.nodes)), world.errors // world.burst
    unit = np.repeat(rng.choice(world.nodes, bursts, p=weight / weight.sum()), world.burst)
    time_s = np.repeat(rng.integers(0, world.days * DAY_S, bursts), world.burst)
    if world.burst > 1:
        time_s = time_s + rng.exponential(7_200, time_s.size).astype(np.int64)
    columns = {"unit": unit.astype(np.uint32), "time_s": time_s.astype(np.int64)}
    return pl.DataFrame(columns).select("unit", code=pl.lit(code), time_s="time_s")


def _raise_rate(world: World, runs: pl.DataFrame, signals: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    pairs = pair_running(signals, runs)
    after_s = rng.exponential(size=pairs.height) / ((world.ratio - 1) * pairs["rate"].to_numpy())
    pairs = pairs.with_columns(after_s=pl.Series(np.minimum(after_s, 10 * WINDOW_S)))
    killed = pairs.filter(pl.col("after_s") < WINDOW_S)
    killed = killed.group_by("run").agg(killed_s=(pl.col("time_s") + pl.col("after_s")).min().cast(pl.Int64))
    rows = runs.join(killed, on="run", how="left", maintain_order="left")
    is_killed = (pl.col("killed_s") < pl.col("end_s")).fill_null(False)
    end_s = pl.when(is_killed).then("killed_s").otherwise("end_s")
    return rows.with_columns(is_failed=pl.col("is_failed") | is_killed, end_s=end_s).drop("killed_s")


def judge(world: World, rng: np.random.Generator) -> Iterator[tuple[RatioTest, float | None]]:
    """Yield the test of each code of one trace, and its p-value adjusted among the codes."""
    history, signals = simulate(world, rng)
    hits, control_failures = compare_with_control(signals, history, WINDOW_S)
    tests = [compare_counts(hits.filter(code=code), control, 7) for code, control in control_failures.items()]
    yield from zip(tests, holm([test.p_value for test in tests]), strict=True)


def rows(repetitions: int, seed: int) -> Iterator[list[str]]:
    """Yield for each world: codes that precede failures, p below .05, the interval holds the ratio, and is given."""
    for name, world in WORLDS.items():
        rng = np.random.default_rng(seed)
        results = [result for _ in range(repetitions) for result in judge(world, rng)]
        tested = [(test, adjusted) for test, adjusted in results if adjusted is not None]
        preceding = sum(adjusted <= SIGNIFICANCE and test.ratio > 1 for test, adjusted in tested) / len(results)
        rejected = sum(test.p_value <= SIGNIFICANCE for test, _ in tested) / len(tested)
        covered = sum(test.low <= world.ratio <= test.high for test, _ in tested) / len(tested)
        yield [name, f"**{preceding:.3f}**", f"{rejected:.3f}", f"{covered:.3f}", f"{len(tested) / len(results):.2f}"]
