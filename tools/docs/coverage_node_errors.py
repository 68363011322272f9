"""Simulate how often codes of errors are said to precede failures, where they do not, and where they do.

Each node runs four attempts at a time. The failure rates of users and of nodes differ by lognormal factors, and in a
week one user has most of a node. The codes are independent of attempts, or multiply their failure rate for a while.

In the worlds of CAUSES a code ends attempts, and others are written where attempts fail, without ending any.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from ttf.analyses.causes.judge_node_errors.evidence import SIGNIFICANCE, weigh_evidence
from ttf.analyses.causes.judge_node_errors.log_records import LogRecords, make_log_records
from ttf.records.clusters import DAY_S
from ttf.records.record_contracts import NODE_ERRORS, NODE_LOG_WATCH
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
    # Of the Weibull times to failure; below 1 attempts fail early.
    shape: float = 1.0
    lanes: int = LANES
    # Where the code without effect is written.
    kind: str = "at random"
    # Factor of the first user's failure rate.
    worst: float = 1.0
    # Mean time from the end of an attempt to its record.
    late_s: float = 0
    clock: str = "right"
    has_crash: bool = True
    shape_spread: float = 0.0


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


def _draw_runs(world: World, rng: np.random.Generator) -> pl.DataFrame:
    """Draw the runs of one trace: RUNS and rate."""
    span_s, lanes = world.days * DAY_S, world.nodes * world.lanes
    user_rate = world.rate * np.exp(rng.normal(0, world.user_spread, world.users))
    user_rate[0] *= world.worst
    user_shape = world.shape * np.exp(rng.normal(0, world.shape_spread, world.users)) if world.shape_spread else None
    user_shape = np.full(world.users, world.shape) if user_shape is None else user_shape
    node_factor = np.exp(rng.normal(0, world.node_spread, world.nodes))
    shape = lanes, span_s // 4_000
    run_s = rng.exponential(3_600 * np.exp(rng.normal(0, 1, shape))) + 60
    start_s = np.cumsum(run_s + rng.exponential(600, shape), axis=1) - run_s
    node = np.broadcast_to((np.arange(lanes) // world.lanes)[:, None], shape)
    week = np.minimum(start_s // WEEK_S, world.days // 7).astype(int)
    tenant = rng.integers(0, world.users, (world.nodes, world.days // 7 + 1))[node, week]
    user = np.where(rng.random(shape) < 0.4, rng.integers(0, world.users, shape), tenant)
    rate = user_rate[user] * node_factor[node]
    to_failure = 3_600 * (rng.exponential(size=shape) / (3_600 * rate)) ** (1 / user_shape[user])
    is_seen = start_s + run_s < span_s
    return pl.DataFrame(
        {
            "unit": node[is_seen].astype(np.uint32),
            "user": user[is_seen].astype(np.uint32),
            "start_s": start_s[is_seen].astype(np.int64),
            "end_s": (start_s + np.minimum(to_failure, run_s))[is_seen].astype(np.int64),
            "is_failed": (to_failure < run_s)[is_seen],
            "rate": rate[is_seen],
        }
    ).with_row_index("run")


def simulate(world: World, rng: np.random.Generator) -> tuple[History, pl.DataFrame]:
    """Draw the runs of one trace and its errors."""
    runs, span_s = _draw_runs(world, rng), world.days * DAY_S
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
    hits, controls = compare_with_control(signals, history, WINDOW_S)
    tests = [compare_counts(hits.filter(code=code), control.failures, 7) for code, control in controls.items()]
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


# Codes without effect where attempts fail, each with a code that ends half of the attempts it hits within 4 minutes.
_EARLY = World(shape=0.5, kind="at starts", nodes=20, errors=1_000, codes=2)
CAUSES = {
    "attempts fail early, code in their first 20 s": _EARLY,
    "the same, in every attempt": replace(_EARLY, kind="at all starts", nodes=8),
    "the same, shape 0.3": replace(_EARLY, shape=0.3, rate=5e-6),
    "the same, users differ in shape": replace(_EARLY, shape_spread=0.3),
    "attempts fail early, code at random": replace(_EARLY, kind="at random"),
    "one attempt a node": replace(_EARLY, lanes=1, nodes=80),
    "one in 20 attempts fails at 3:01, code at 3:00 of a third of the days": replace(_EARLY, kind="at night"),
    "one user fails 30 times as often, code in those attempts": replace(_EARLY, kind="of a user", worst=30),
    "code of one user, whose attempts it ends": replace(_EARLY, kind="of a user, ends", worst=30),
    "code up to a minute after failures": replace(_EARLY, kind="after failures"),
    "code from a minute before to a minute after failures": replace(_EARLY, kind="around failures"),
    "code at failures, ends recorded 2 minutes late": replace(_EARLY, kind="at failures", late_s=120, errors=200),
    "the same, constant failure rate": replace(_EARLY, kind="at failures", late_s=120, errors=200, shape=1),
    "the same, users do not differ either": replace(
        _EARLY, kind="at failures", late_s=120, errors=200, shape=1, user_spread=0, node_spread=0
    ),
    "code at all ends, recorded 2 minutes late": replace(_EARLY, kind="at ends", late_s=120, nodes=8),
    "logs an hour fast": replace(_EARLY, clock="hour"),
    "the same, no code of applications": replace(_EARLY, clock="hour", has_crash=False),
    "logs two minutes fast": replace(_EARLY, clock="minutes"),
    "logs of a third of the nodes an hour fast": replace(_EARLY, clock="nodes"),
    "logs an hour fast in half of the time": replace(_EARLY, clock="summer"),
}
EFFECT, CRASH = "cause", "crash"


def simulate_causes(world: World, rng: np.random.Generator) -> tuple[LogRecords, set[int]]:
    """Return the records of one trace, and the runs that the code EFFECT ended."""
    runs = _draw_runs(world, rng)
    if world.kind == "at night":
        nights = (pl.col("start_s") // DAY_S + 1) * DAY_S + 3 * 3_600 + 60
        hit = runs.filter(pl.Series(rng.random(runs.height) < 0.05)).with_columns(killed_s=nights)
        runs, _ = _end_runs(runs, hit)
    effect = _draw_errors(replace(world, errors=80), EFFECT, rng)
    hit = pair_running(effect, runs)
    after_s = pl.Series(rng.integers(1, 240, hit.height))
    hit = hit.with_columns(killed_s=pl.col("time_s") + after_s).filter(pl.Series(rng.random(hit.height) < 0.5))
    runs, killed = _end_runs(runs, hit)
    codes = [_draw_quiet(world, f"code {code}", runs, killed, rng) for code in range(world.codes)]
    for rows in codes if world.kind.endswith("ends") and world.worst > 1 else ():
        own = runs.filter(user=0).select("run", "unit", "start_s", "end_s")
        hit = rows.join(own, on="unit").filter(pl.col("time_s").is_between("start_s", "end_s"))
        after_s = pl.Series(rng.integers(1, 240, hit.height), dtype=pl.Int64)
        runs, _ = _end_runs(runs, hit.with_columns(killed_s=pl.col("time_s") + after_s))
    own = runs.filter("is_failed", ~pl.col("run").is_in(list(killed)))
    own = own.filter(pl.Series(rng.random(own.height) < 0.3))
    time_s = own["end_s"] - pl.Series(rng.integers(0, 4, own.height), dtype=pl.Int64)
    crash = own.select("unit", code=pl.lit(CRASH)).with_columns(time_s=time_s).head(own.height * world.has_crash)
    late_s = pl.Series(rng.exponential(world.late_s, runs.height).astype(np.int64))
    runs = runs.with_columns(pl.col("end_s") + late_s)
    errors = pl.concat([effect, crash, *codes])
    fast_s = {"right": 0, "hour": 3_600, "minutes": 120}.get(world.clock, 0)
    is_fast = pl.lit(True)
    if world.clock in ("nodes", "summer"):
        fast_s, is_fast = 3_600, pl.col("unit") % 3 == 0
        is_fast = is_fast if world.clock == "nodes" else pl.col("time_s") > world.days * DAY_S // 2
    errors = errors.with_columns(time_s=pl.col("time_s") + fast_s * is_fast.cast(pl.Int64))
    return _make_records(world, runs, errors), killed


def _end_runs(runs: pl.DataFrame, hit: pl.DataFrame) -> tuple[pl.DataFrame, set[int]]:
    killed = hit.group_by("run").agg(pl.col("killed_s").min())
    rows = runs.join(killed, on="run", how="left", maintain_order="left")
    is_killed = (pl.col("killed_s") < pl.col("end_s")).fill_null(False)
    ended = set(rows.filter(is_killed)["run"].to_list())
    end_s = pl.when(is_killed).then("killed_s").otherwise("end_s")
    return rows.with_columns(is_failed=pl.col("is_failed") | is_killed, end_s=end_s).drop("killed_s"), ended


def _draw_quiet(
    world: World, code: str, runs: pl.DataFrame, killed: set[int], rng: np.random.Generator
) -> pl.DataFrame:
    """Return the errors of a code without effect on the nodes."""
    if world.kind == "at night":
        nights = pl.DataFrame({"time_s": [day * DAY_S + 3 * 3_600 for day in range(1, world.days)]})
        units = runs.select("unit").unique().sort("unit")
        rows = units.join(nights, how="cross").select("unit", code=pl.lit(code), time_s="time_s")
        return rows.filter(pl.Series(rng.random(rows.height) < 0.3))
    if world.kind == "at random":
        return _draw_errors(world, code, rng)
    is_user, is_end = world.kind.startswith("of a user"), "failures" in world.kind or world.kind == "at ends"
    rows = runs.filter(user=0) if is_user else runs
    if "failures" in world.kind:
        rows = rows.filter("is_failed", ~pl.col("run").is_in(list(killed)))
    if world.kind not in ("at all starts", "at ends"):
        rows = rows[np.sort(rng.permutation(rows.height)[: world.errors])]
    length_s = (rows["end_s"] - rows["start_s"]).to_numpy()
    n, last = rows.height, {"after failures": 60, "around failures": 60}.get(world.kind, 5)
    age_s = rng.random(n) * (length_s if is_user else 20)
    first = -60 if world.kind == "around failures" else 1
    age_s = length_s + rng.integers(first, last + 1, n) if is_end else np.minimum(age_s, length_s)
    time_s = rows["start_s"] + pl.Series(age_s.astype(np.int64))
    return rows.select("unit", code=pl.lit(code)).with_columns(time_s=time_s)


def _make_records(world: World, runs: pl.DataFrame, errors: pl.DataFrame) -> LogRecords:
    def name_node(unit: pl.Expr) -> pl.Expr:
        return "n" + unit.cast(pl.String).str.zfill(4)

    attempts = runs.select(
        attempt_id="run", user=pl.format("u{}", "user"), gpu_type=pl.lit("a"), is_failed="is_failed",
        is_done=~pl.col("is_failed"), is_infra=pl.lit(None, pl.Boolean), gpu_time=pl.lit(0), gpus_a_node=pl.lit(1),
    )  # fmt: skip
    placements = runs.select("start_s", "end_s", attempt_id="run", node=name_node(pl.col("unit")))
    nodes = pl.DataFrame({"unit": range(world.nodes)}).select(node=name_node(pl.col("unit")))
    watch = nodes.with_columns(start_s=pl.lit(0), end_s=world.days * DAY_S, clock_offset_s=pl.lit(None, pl.Int64))
    machines = nodes.with_columns(gpu_type=pl.lit("a"), gpu_count=pl.lit(8, pl.Int64))
    rows = errors.unique(["unit", "code", "time_s"]).select(
        "code", "time_s", node=name_node(pl.col("unit")), last_s="time_s", component=pl.lit("GPU"), lines=pl.lit(1),
        severity=pl.lit("error"), application=pl.col("code") == CRASH, at_boot=pl.lit(False),
        gpu=pl.lit(None, pl.String),
    )  # fmt: skip
    return make_log_records(
        NODE_ERRORS.conform(rows), NODE_LOG_WATCH.conform(watch), attempts, placements.lazy(), machines, WINDOW_S
    )


def judge_causes(world: World, rng: np.random.Generator) -> tuple[list[dict], int, int, int]:
    """Return the codes of one trace, and the failures that ended by EFFECT, attributed, and falsely attributed."""
    records, killed = simulate_causes(world, rng)
    evidence = weigh_evidence(records, WINDOW_S, 7)
    attributed = set(evidence.attributions.filter(~pl.col("application"))["attempt_id"].to_list())
    return evidence.codes, len(killed), len(attributed & killed), len(attributed - killed)


def cause_rows(repetitions: int, seed: int) -> Iterator[list[str]]:
    """Yield for each world the shares of codes to which failures are attributed, and of failures."""
    for name, world in CAUSES.items():
        rng = np.random.default_rng(seed)
        results = [judge_causes(world, rng) for _ in range(repetitions)]
        explains = {row["code"]: [] for codes, *_ in results for row in codes}
        for codes, *_ in results:
            for row in codes:
                explains[row["code"]].append(row["explains"])
        quiet = [value for code, values in explains.items() if code.startswith("code") for value in values]
        ended, right, wrong = (sum(result[index] for result in results) for index in (1, 2, 3))
        share = f"{wrong / (wrong + right):.3f}" if wrong + right else ""
        power = f"{sum(explains[EFFECT]) / repetitions:.2f}"
        yield [name, f"**{sum(quiet) / len(quiet):.3f}**", share, power, f"{right / ended:.2f}"]
