"""Lemon nodes: machines on which more fails than their use explains, told from chance at a stated false-discovery rate.

The signals are those of Kokolis et al. (2025, section 7) that a trace supports. A bare ranking by them would list the
busiest nodes and the unlucky ones, so each node is tested against its fleet (nodes of the same GPU type; of a component
trace, of the same system), one-sided, and the p-values of all nodes are adjusted after Benjamini and Hochberg (1995).

What counts, and against what, depends on what ended the runs (`basis` of lives_infra.parquet):

- Infrastructure (`state`, `event`) and components: a failure is the node's. Given the fleet's failures, a node's share
  of them follows its share of the exposure: a conditional binomial test (Przyborowski and Wilenski 1940). An attempt on
  one node fails there; one on several fails on the node that the trace names (`failed_node` of the infra lives), and
  where it names none the failure is attributed to no node. Incidents count: one health event is one, however many
  attempts it ended. A node that goes down may do so again until it is mended: at most one incident a node and day.
- `proxy`, failures of any kind: most are of users' making, they come early in a run, and a user retries, on the same
  node often. Exposure would then take a node with many young runs for a bad one, and one user's bad job for many
  failures. So a trial is the first run that a user starts on a node on a day, until one of them has failed: a user's
  work can count against a node once. A node's trials are compared with those of the same user, day and fleet on other
  nodes: given that K of M of them failed, all users' propensities and bad days are alike for them. Not so their order:
  early runs fail more (or the last one is the one that worked), and a scheduler that fills the lowest node first gives
  low nodes the early ones. So the odds of a trial also depend on how many runs of the user's came before and after it
  that day: a conditional logistic regression over all strata, with odds that are linear between the knots of
  log2(1 + runs). A trial's chance is that of being among the K failures; the sum of a node's chances is a
  Poisson-binomial variable: a log-rank test in discrete time, stratified by user and day, adjusted for order.

Beside the tests stand a rate shrunken towards the fleet's (gamma-Poisson, see `with_posterior`) and the rate ratio that
a test would have found (see `with_power`). A failed attempt on several nodes that is attributed to none is `shared`.
"""

import bisect
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.special import betainc, betaincinv, expit, gammaincc, gammaincinv, gammaln

from ttf.infra import EVENT
from ttf.partitions import Partitions
from ttf.stats.exact import group_sums
from ttf.stats.mttf import SECONDS_A_DAY, garwood_interval, poisson_limits
from ttf.stats.names import Numbers, places_of
from ttf.stats.order import first_of_each, order_by
from ttf.stats.trials import chances_by_order

LEMON_SCHEMA = {
    "node": pl.String,
    "fleet": pl.String,
    "basis": pl.String,
    "window_from_s": pl.Int64,
    "window_to_s": pl.Int64,
    "placements": pl.Int64,
    "single_node_placements": pl.Int64,
    "single_node_failures": pl.Int64,
    "single_node_failure_rate": pl.Float64,
    "multi_node_failures": pl.Int64,
    "shared_multi_node_failures": pl.Int64,
    "out_count": pl.Int64,
    "exposure_s": pl.Int64,
    "failures": pl.Int64,
    "failures_per_1000_node_days": pl.Float64,
    "fleet_failures_per_1000_node_days": pl.Float64,
    "trials": pl.Int64,
    "counted": pl.Int64,
    "expected": pl.Float64,
    "rate_ratio": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "p_value": pl.Float64,
    "q_value": pl.Float64,
    "lemon": pl.Boolean,
    "incidents": pl.Int64,
    "posterior_rate_ratio": pl.Float64,
    "posterior_above_3": pl.Float64,
    "detectable_ratio": pl.Float64,
    "window_failures": pl.Int64,
    "attributed_failures": pl.Int64,
    "attributed_share": pl.Float64,
    "reason": pl.String,
}
EFFECT_SCHEMA = {
    "picked_on": pl.String,
    "measured_on": pl.String,
    "nodes": pl.Int64,
    "lemons": pl.Int64,
    "failures": pl.Int64,
    "exposure_s": pl.Int64,
    "mttf_s": pl.Float64,
    "ci_low_s": pl.Float64,
    "ci_high_s": pl.Float64,
    "failures_without": pl.Int64,
    "exposure_without_s": pl.Int64,
    "mttf_without_s": pl.Float64,
    "ci_low_without_s": pl.Float64,
    "ci_high_without_s": pl.Float64,
    "mttf_ratio": pl.Float64,
    "reason": pl.String,
}
CONFIDENCE = 0.95
POWER = 0.8
# The posterior is asked for the probability of more than so many times the fleet's rate.
MUCH_MORE = 3
WHOLE, FIRST, SECOND = "whole window", "first half", "second half"
NO_FLEET = "no GPU"
# Nodes whose tails are worked out together.
_BLOCK = 256
# Runs looked at together.
_BLOCK_ROWS = 1 << 18


def basis_of(lives: pl.LazyFrame) -> str:
    """What lays failures to infrastructure: one word of a trace; where it has no lives, nothing does."""
    found = lives.select("basis").head(1).collect(engine="streaming")
    return found.item() if found.height else "proxy"


def last_window(placements: pl.LazyFrame, days: int) -> tuple[int, int]:
    """The last `days` days of the placements: (from, to) in seconds, to being one more than the last moment written.

    from is the first start where there are fewer days. Without any time: (0, 0).
    """
    last = pl.max_horizontal(pl.col("start_s").max(), pl.col("end_s").max())
    times = placements.select(last=last, first=pl.col("start_s").min()).collect(engine="streaming")
    last, first = times.row(0)
    return (0, 0) if first is None else (max(first, last + 1 - days * SECONDS_A_DAY), last + 1)


@dataclass(frozen=True)
class Runs:
    """The placements on some nodes that were there within a window [from_s, from_s + length_s): arrays of one length.

    node, gpu_type: places among the names, which are sorted; user: a number of each (who has no name is one). start,
    last, until: seconds since from_s of the start, of the end (the start where it is not known), and of the start and
    the run time (the start where this is not known, the window's end for a run still going on), each cut to -1 and
    length_s. single: the attempt was on one node; failed: its failure is this node's; incident: and it is the attempt
    that the failure hit; shared: it failed, on which of its nodes is not told; known: whether this node's part failed
    is. attempt: its attempt_id, by which `order`, with basis `proxy`, has how many runs of its user's started earlier
    that day, and how many later.
    """

    from_s: int
    length_s: int
    nodes: pl.Series
    gpu_types: pl.Series
    node: np.ndarray
    gpu_type: np.ndarray
    user: np.ndarray
    start: np.ndarray
    last: np.ndarray
    until: np.ndarray
    single: np.ndarray
    failed: np.ndarray
    incident: np.ndarray
    shared: np.ndarray
    known: np.ndarray
    attempt: np.ndarray
    order: tuple[np.ndarray, ...]

    @cached_property
    def trials(self) -> np.ndarray:
        """The rows that are known and began in the window, by node, user and start, of equal ones in their order."""
        rows = np.flatnonzero(self.known & (self.start >= 0))
        return rows[order_by(self.node[rows], self.user[rows], self.start[rows])]


def runs_by_node(
    placements: pl.LazyFrame, lives: pl.LazyFrame, window: tuple[int, int], partitions: Partitions
) -> Iterator[Runs]:
    """The runs in a window, all of a node together, by the nodes' partitions, of which one at a time is held.

    placements: PLACEMENT_COLUMNS. lives: LIVES_READ of infra lives.
    """
    low, high = window
    is_proxy = basis_of(lives) == "proxy"
    frame, failed = placements, pl.lit(None, pl.Boolean)
    if is_proxy:
        failed = (pl.col("outcome") == "failure").fill_null(False)
        if placements.select((pl.col("attempt") > 0).any()).collect().item():
            # An attempt that was tried again and of which nobody tells how it ended: it did not succeed.
            last = placements.group_by("job_id", "task").agg(last_attempt=pl.col("attempt").max())
            frame = placements.join(last, on=["job_id", "task"], nulls_equal=True, how="left", maintain_order="left")
            failed |= (pl.col("outcome").is_null() & (pl.col("attempt") < pl.col("last_attempt"))).fill_null(False)
    is_running = (pl.col("outcome") == "running").fill_null(False) & pl.col("end_s").is_null()
    ended_s, run_to_s = pl.coalesce("end_s", "start_s"), pl.col("start_s") + pl.col("runtime_s")
    times = {
        "start": pl.col("start_s"),
        "last": ended_s,
        "until": pl.coalesce(run_to_s, pl.when(is_running).then(high), pl.col("start_s")),
    }
    there = frame.filter((pl.col("start_s") < high) & ((ended_s >= low) | is_running))
    names = Numbers()
    number = names.of(pl.col("node"))
    parts = partitions.split(
        "runs",
        there,
        "node",
        number,
        "attempt_id",
        *((time - low).clip(-1, high - low).cast(pl.Int32).alias(name) for name, time in times.items()),
        (pl.col("nodes") == 1).fill_null(False).alias("single"),
        "own_outcome",
        failed.alias("failed"),
        (pl.col("outcome") == "success").fill_null(False).alias("succeeded"),
    )
    of_attempts = _of_lives(lives, _numbers(placements), names, low if is_proxy else None)
    for part in parts:
        yield _runs_of(part, names, of_attempts, window)


def _runs_of(part: pl.LazyFrame, names: Numbers, of_attempts: "_Attempts", window: tuple[int, int]) -> Runs:
    """names: of the nodes, of which the part has the numbers."""
    low, high = window
    runs = part.collect(engine="streaming")
    single, is_own, failed = (runs[name].to_numpy() for name in ("single", "own_outcome", "failed"))
    attempt = runs["attempt_id"].to_numpy()
    there, incident = failed, failed
    if not of_attempts.order:
        failed, failed_node = of_attempts.failed[attempt], of_attempts.failed_node[attempt]
        is_own = single | (failed_node > 0)
        there = failed & (single | (failed_node == runs["node"].to_numpy() + 1))
        incident = of_attempts.is_hit[attempt]
    nodes, node = places_of(names.named(runs["node"]))
    return Runs(
        low,
        high - low,
        nodes,
        of_attempts.gpu_types,
        node,
        of_attempts.gpu_type[attempt],
        of_attempts.user[attempt],
        *(runs[name].to_numpy() for name in ("start", "last", "until")),
        single,
        failed=there & is_own,
        incident=there & is_own & incident,
        shared=failed & ~is_own,
        known=(failed | runs["succeeded"].to_numpy()) & is_own,
        attempt=attempt,
        order=of_attempts.order,
    )


# What is read of the infra lives.
LIVES_READ = ("attempt_id", "event", "basis", "user", "account", "gpu_type", "start_s", "failed_node", "incident")


@dataclass(frozen=True)
class _Attempts:
    """What the lives tell of each attempt, by its number; see Runs. One without a life did not fail.

    failed_node: one more than the node's number, 0 where none is told. order: (before, after), with basis `proxy`;
    else there is none, and with it there are no failed_node and is_hit.
    """

    gpu_types: pl.Series
    failed: np.ndarray
    gpu_type: np.ndarray
    user: np.ndarray
    failed_node: np.ndarray
    is_hit: np.ndarray
    order: tuple[np.ndarray, ...]


def _of_lives(lives: pl.LazyFrame, count: int, nodes: Numbers, days_from_s: int | None) -> _Attempts:
    """Of `count` attempts, and of those that the lives have beyond; of the lives a block at a time is held.

    days_from_s: with basis `proxy` the moment at which the first day begins of those whose runs are put in order.
    """
    count = max(count, _numbers(lives))
    types, users = Numbers(NO_FLEET), Numbers("")
    told = {
        "failed": ((pl.col("event") == EVENT).fill_null(False), bool),
        "gpu_type": (types.of(pl.col("gpu_type").fill_null(NO_FLEET)), np.uint32),
        "user": (users.of(pl.coalesce("user", "account").fill_null("")), np.uint32),
    }
    if days_from_s is None:
        told["failed_node"] = ((nodes.of(pl.col("failed_node")) + 1).fill_null(0), np.uint32)
        told["is_hit"] = ((pl.col("incident") == pl.col("attempt_id")).fill_null(False), bool)
    else:
        told["start"] = ((pl.col("start_s") - days_from_s).clip(-1).fill_null(-1), np.int64)
    found = {name: np.zeros(count, dtype) for name, (_, dtype) in told.items()}
    for block in lives.select("attempt_id", **{name: what for name, (what, _) in told.items()}).collect_batches(
        engine="streaming"
    ):
        of_block = block["attempt_id"].to_numpy()
        for name, of_all in found.items():
            of_all[of_block] = block[name].to_numpy()
    every = np.arange(int(found["gpu_type"].max(initial=0)) + 1, dtype=np.uint32)
    gpu_types, place_of = places_of(types.named(pl.Series(every)))
    nothing = np.zeros(0, bool)
    return _Attempts(
        gpu_types,
        found["failed"],
        place_of.astype(np.uint32)[found["gpu_type"]],
        found["user"],
        found.get("failed_node", nothing),
        found.get("is_hit", nothing),
        () if days_from_s is None else order_in_day(found["user"], found["start"]),
    )


def order_in_day(user: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many runs of the same user started earlier, and later, on the same day: two UInt16 arrays, cut at the most.

    start: seconds (Int64) since the beginning of a day; a run with one below 0 is left out.
    """
    before, after = np.zeros((2, user.size), np.uint16)
    rows = np.flatnonzero(start >= 0)
    rows = rows[order_by(user[rows], start[rows])]
    of_day = _ends_of_each(user[rows], start[rows] // SECONDS_A_DAY)
    of_moment = _ends_of_each(user[rows], start[rows])
    most = np.iinfo(np.uint16).max
    before[rows] = np.minimum(of_moment[0] - of_day[0], most)
    after[rows] = np.minimum(of_day[1] - of_moment[1], most)
    return before, after


def _ends_of_each(*columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each row the places where the run of rows equal to it in all columns begins, and where the next one does."""
    begin = first_of_each(*columns)
    size = np.diff(begin, append=columns[0].size)
    return np.repeat(begin, size), np.repeat(begin + size, size)


def _numbers(frame: pl.LazyFrame) -> int:
    """One more than the last attempt_id."""
    return (frame.select(pl.col("attempt_id").max()).collect(engine="streaming").item() or 0) + 1


def nodes_in(runs: Runs, basis: str, window: tuple[int, int]) -> pl.DataFrame:
    """The nodes with runs that were there within a window, by name: node, fleet, and what `lemon_nodes` counts.

    With the basis `proxy` a failure belongs to the start of its run, which is when the trial began; else to its end, or
    to its start where the end is not known; days: on how many, since the window's start, it had an incident. fleet: the
    GPU type that most of the node's runs here asked for (of equals the first by name), or NO_FLEET.
    """
    low, high = (moment - runs.from_s for moment in window)
    nodes, types, days = runs.nodes.len(), runs.gpu_types.len(), _days(high - low)
    # Runs of a node: by whether single, failed and shared; by GPU type.
    counts, of_types = np.zeros(nodes * 8, np.int64), np.zeros(nodes * types, np.int64)
    exposure_s, incidents, had_incident = *np.zeros((2, nodes), np.int64), np.zeros(nodes * days, bool)
    for first in range(0, runs.node.size, _BLOCK_ROWS):
        block = slice(first, first + _BLOCK_ROWS)
        start, last, until = runs.start[block], runs.last[block], runs.until[block]
        rows = np.flatnonzero((start < high) & (np.maximum(until, last) >= low))
        node, start, last, until = runs.node[block][rows].astype(np.int64), start[rows], last[rows], until[rows]
        moment = start if basis == "proxy" else last
        is_within = (moment >= low) & (moment < high)
        failed, shared, hit = (flag[block][rows] & is_within for flag in (runs.failed, runs.shared, runs.incident))
        counts += np.bincount(4 * (2 * node + runs.single[block][rows]) + 2 * failed + shared, minlength=counts.size)
        of_types += np.bincount(node * types + runs.gpu_type[block][rows], minlength=of_types.size)
        exposure_s += group_sums(node, np.clip(np.minimum(until, high) - np.maximum(start, low), 0, None), nodes)
        incidents += np.bincount(node[hit], minlength=nodes)
        had_incident[(node * days + (moment - low) // SECONDS_A_DAY)[hit]] = True
    # single, failed, shared
    counts = counts.reshape(nodes, 2, 2, 2)
    found = {
        "node": runs.nodes,
        "fleet": runs.gpu_types[of_types.reshape(nodes, types).argmax(axis=1)],
        "placements": counts.sum(axis=(1, 2, 3)),
        "single_node_placements": counts[:, 1].sum(axis=(1, 2)),
        "single_node_failures": counts[:, 1, 1].sum(axis=1),
        "multi_node_failures": counts[:, 0, 1].sum(axis=1),
        "shared_multi_node_failures": counts[..., 1].sum(axis=(1, 2)),
        "failures": counts[:, :, 1].sum(axis=(1, 2)),
        "incidents": incidents,
        "days": had_incident.reshape(nodes, days).sum(axis=1),
        "exposure_s": exposure_s,
    }
    return pl.DataFrame(found).filter(pl.col("placements") > 0)


def shared_in(runs: Runs, basis: str, window: tuple[int, int]) -> np.ndarray:
    """attempt_id, each once, of the attempts that failed within a window, on which of their nodes is not told."""
    low, high = (moment - runs.from_s for moment in window)
    moment = runs.start if basis == "proxy" else runs.last
    return np.unique(runs.attempt[runs.shared & (moment >= low) & (moment < high)])


def lemon_nodes(
    placements: pl.LazyFrame,
    lives: pl.LazyFrame,
    windows: Sequence[tuple[int, int]],
    false_discovery: float,
    partitions: Partitions,
) -> list[pl.DataFrame]:
    """For each window a row per node with runs within it, lemons first, then by p-value, with LEMON_SCHEMA.

    placements, lives: see `runs_by_node`; partitions: of the placements, one of which is held at a time. All windows
    are within the first.

    placements: of its runs; single_node_*: those of attempts on one node. multi_node_failures: of attempts on several
    that are attributed to this node; shared_multi_node_failures: to none. failures is the sum of single- and multi-node
    ones, incidents those of them that no other attempt's failure is the same incident as (with basis `proxy` blank);
    exposure_s the time of the placements within the window, added up: two jobs side by side give two node-days a day.
    The fleet's rate is over all its nodes. window_failures: of all nodes, the attempts attributed to none among them;
    attributed_failures, attributed_share: those attributed to a node.

    trials, counted, expected: see the module; trials only with basis `proxy`, and only those that tell something (not
    all or none of the user's failed that day). rate_ratio with its 95 % interval: with basis `proxy` counted / expected
    (Garwood's, which is too wide where trials are few), else the node's rate of counted failures over that of the rest
    of its fleet (Clopper and Pearson's, carried over). p_value: one-sided; q_value: adjusted over all nodes with one;
    lemon: q_value is at most `false_discovery`. posterior_*: see `with_posterior`; detectable_ratio: see `with_power`
    and, with basis `proxy`, `detectable_by_trials`. What cannot be computed is blank, and `reason` says why.
    """
    basis = basis_of(lives)

    def counted(part: int, runs: Runs) -> list[_Counted]:
        found = []
        for place, window in enumerate(windows):
            nodes, trials = nodes_in(runs, basis, window), None
            if basis == "proxy":
                trials = partitions.put_by(f"trials-{part}-{place}", trials_of(runs, nodes, window))
            found.append(_Counted(nodes, runs.nodes, trials, shared_in(runs, basis, window)))
        return found

    # Not a loop, whose variable would hold the runs of one partition while those of the next are made.
    parts = map(counted, itertools.count(), runs_by_node(placements, lives, windows[0], partitions))
    of_windows = zip(windows, zip(*parts, strict=True), strict=True)
    days = _days(windows[0][1] - windows[0][0])
    return [_tested(of_parts, basis, window, days, false_discovery) for window, of_parts in of_windows]


class _Counted(NamedTuple):
    """What the nodes of one partition had within a window; names: of the nodes that the trials give the places of."""

    nodes: pl.DataFrame
    names: pl.Series
    trials: pl.LazyFrame | None
    shared: np.ndarray


def _tested(
    parts: Sequence[_Counted], basis: str, window: tuple[int, int], days: int, false_discovery: float
) -> pl.DataFrame:
    """days: of the first window."""
    nodes = pl.concat(part.nodes for part in parts).sort("node")
    shared = np.unique(np.concatenate([part.shared for part in parts])).size
    nodes = nodes.with_columns(
        single_node_failure_rate=_over("single_node_failures", "single_node_placements"),
        attributed_failures=pl.col("failures").sum(),
        window_failures=pl.col("failures").sum() + shared,
    )
    if basis != "proxy":
        tested = compared_by_exposure(nodes.with_columns(counted="days")).with_columns(reason=_no_exposure_test())
        return _judged_by_exposure(tested, basis, false_discovery, window)
    chances = chances_of([part.trials for part in parts], days)
    told = [trials_that_tell(part.trials, chances) for part in parts]
    compared = [compared_by_trials(trials) for trials in told]
    named = [
        of_part.with_columns(node=part.names[of_part["node"]]) for of_part, part in zip(compared, parts, strict=True)
    ]
    tested = nodes.join(pl.concat(named), on="node", how="left", maintain_order="left").with_columns(
        basis=pl.lit(basis),
        incidents=None,
        reason=pl.when(pl.col("p_value").is_null()).then(
            pl.lit("no trial tells it from other nodes: no user was on several nodes on a day and failed on some only")
        ),
    )
    judged = _with_verdict(tested, false_discovery)
    ratio = detectable_by_trials(told, _threshold(judged, false_discovery))
    return _in_form(judged.with_columns(detectable_ratio=pl.when(pl.col("p_value").is_not_null()).then(ratio)), window)


def lemon_components(lives: pl.DataFrame, fleet_by: str, false_discovery: float) -> pl.DataFrame:
    """The same of a component trace whose units are nodes: each over its whole time in service, within its fleet.

    lives: infra lives of components, with the column `fleet_by`. They bear no dates, so there is no window. out_count
    is the node's outages, which are its failures; counted leaves out those within a day of the repair before.
    """
    again = (pl.col("duration_s") < SECONDS_A_DAY) & (pl.int_range(pl.len()).over("unit_id") > 0)
    failed = (pl.col("event") == EVENT).fill_null(False)
    nodes = (
        lives.filter(pl.col("duration_s").is_not_null())
        .with_columns(failed=failed, counts=failed & ~again)
        .group_by(node=pl.col("unit_id"))
        .agg(
            fleet=pl.col(fleet_by).first().cast(pl.String).fill_null("unknown"),
            out_count=pl.col("failed").sum().cast(pl.Int64),
            failures=pl.col("failed").sum().cast(pl.Int64),
            counted=pl.col("counts").sum().cast(pl.Int64),
            exposure_s=pl.col("duration_s").sum(),
        )
        .sort("node")
    )
    nodes = nodes.with_columns(window_failures=pl.col("failures").sum(), attributed_failures=pl.col("failures").sum())
    tested = compared_by_exposure(nodes).with_columns(reason=_no_exposure_test())
    return _judged_by_exposure(tested, "component", false_discovery, None)


def trials_of(runs: Runs, nodes: pl.DataFrame, window: tuple[int, int]) -> pl.DataFrame:
    """What counts of runs that failures of any kind end, see the module: node (its place), failed, stratum (a number),

    before and after (see `Runs`). nodes: node and fleet of each node of the runs in the window. Of equal starts the
    first row counts. A stratum has the same number in all partitions. Days begin as those of the runs' window do.
    """
    low, high = (moment - runs.from_s for moment in window)
    start = runs.start[runs.trials]
    trials = runs.trials[(start >= low) & (start < high)]
    node, user, day = runs.node[trials], runs.user[trials], runs.start[trials] // SECONDS_A_DAY
    first = first_of_each(node, user, day)
    trials, node, user, day = trials[first], node[first], user[first], day[first]
    # By user on a node, the days in order: how many had a failure before this one.
    failed = runs.failed[trials]
    failures = np.cumsum(failed) - failed
    begin = first_of_each(node, user)
    kept = failures == np.repeat(failures[begin], np.diff(begin, append=trials.size))
    fleet = np.zeros(runs.nodes.len(), np.int64)
    fleet[runs.nodes.search_sorted(nodes["node"]).to_numpy()] = runs.gpu_types.search_sorted(nodes["fleet"]).to_numpy()
    # A user is told in 32 bits, which leaves room for some millions of fleets over a year.
    days = _days(runs.length_s)
    stratum = ((fleet[node[kept]] << 32) + user[kept]) * days + day[kept]
    before, after = (count[runs.attempt[trials[kept]]] for count in runs.order)
    told = {"node": node[kept], "failed": failed[kept], "stratum": stratum, "before": before, "after": after}
    return pl.DataFrame(told)


def chances_of(trials: Sequence[pl.LazyFrame], days: int = 1) -> pl.DataFrame:
    """stratum, before, after, chance: of failing, of the trials of each stratum, unless all or none of them failed.

    With M trials, K failures: K / M where the order of all is the same, else the chance of being among the K, the odds
    by order being those of `chances_by_order`. days: by which a stratum's number is divided, the rest being its day.
    """
    key = ["stratum", "before", "after"]
    groups = pl.concat(trials).group_by(key).agg(trials=pl.len(), failed=pl.col("failed").sum())
    of_stratum = pl.col("trials", "failed").sum().over("stratum").name.prefix("all_")
    groups = groups.sort(key).with_columns(of_stratum).collect(engine="streaming")
    groups = groups.filter(pl.col("all_failed").is_between(0, pl.col("all_trials"), closed="none"))
    return groups.select(*key, chance=pl.Series(chances_by_order(groups, days), dtype=pl.Float64))


def trials_that_tell(trials: pl.LazyFrame, chances: pl.DataFrame) -> pl.DataFrame:
    """node, trials, counted, chances (ascending) of the nodes with a trial that tells; by node.

    trials: node, stratum, before, after, failed (Boolean), all of a node, which is at most once in a stratum. chances:
    of all nodes' trials (`chances_of`).
    """
    told = trials.join(chances.lazy(), on=["stratum", "before", "after"]).collect(engine="streaming")
    return (
        told.group_by("node")
        .agg(
            trials=pl.len().cast(pl.Int64),
            counted=pl.col("failed").sum().cast(pl.Int64),
            # In order of size, so that the sum does not depend on the rows' order.
            chances=pl.col("chance").sort(),
        )
        .sort("node")
    )


def compared_by_trials(by_node: pl.DataFrame) -> pl.DataFrame:
    """node, trials, counted, expected, p_value, rate_ratio, ci_low, ci_high: of what `trials_that_tell` gives.

    p_value is P(X >= counted) for the sum X of the node's chances (Poisson-binomial), expected its mean.
    """
    expected = by_node["chances"].list.sum()
    p_value = poisson_binomial_tail(
        [chances.to_numpy() for chances in by_node["chances"]], by_node["counted"].to_list()
    )
    ratios = [_standardised(count, mean) for count, mean in zip(by_node["counted"], expected, strict=True)]
    return by_node.drop("chances").with_columns(
        expected=expected,
        p_value=pl.Series(p_value, dtype=pl.Float64),
        **{
            name: pl.Series([row[place] for row in ratios], dtype=pl.Float64)
            for place, name in enumerate(("rate_ratio", "ci_low", "ci_high"))
        },
    )


def detectable_by_trials(told: Sequence[pl.DataFrame], threshold: float) -> float | None:
    """The smallest ratio of failures to those expected that a node of typical trials would have been found with.

    told: of `trials_that_tell`. The node is the one with the median number of trials (of equals that of the median
    expectation); all odds of its trials have one factor, and the ratio is that of the expectations with and without.
    Found: with a chance of POWER its p-value is at most `threshold`. None where no number of failures is enough.
    """
    by_trials = pl.concat(nodes.select("trials", "chances", mean=pl.col("chances").list.sum()) for nodes in told)
    if by_trials.is_empty():
        return None
    typical = by_trials.sort("trials", "mean")["chances"][by_trials.height // 2].to_numpy()
    counts = range(1, typical.size + 1)
    place = bisect.bisect_left(counts, True, key=lambda k: poisson_binomial_tail([typical], [k])[0] <= threshold)
    if place == typical.size:
        return None
    needed = counts[place]

    def with_factor(log_factor: float) -> np.ndarray:
        return expit(np.log(typical) - np.log1p(-typical) + log_factor)

    low, high = 0.0, 40.0
    for _ in range(50):
        middle = (low + high) / 2
        is_found = poisson_binomial_tail([with_factor(middle)], [needed])[0] >= POWER
        low, high = (low, middle) if is_found else (middle, high)
    return float(with_factor(high).sum() / typical.sum())


def compared_by_exposure(nodes: pl.DataFrame) -> pl.DataFrame:
    """The nodes with expected, p_value, rate_ratio, ci_low, ci_high: counted failures against the fleet's, by exposure.

    nodes: fleet, counted and exposure_s (Int64). With K failures in a fleet of exposure E, a node of exposure e has
    Binomial(K, e / E) of them: p_value is P(X >= counted). The interval of e / E from `counted` of K (Clopper-Pearson),
    carried over by w / (1 - w) x (E - e) / e, is that of the ratio to the rest of the fleet. Blank without exposure,
    and where the fleet is this node alone or has no failure; no ratio where the rest has no failure.
    """
    sums = nodes.with_columns(
        fleet_counted=pl.col("counted").sum().over("fleet"), fleet_s=pl.col("exposure_s").sum().over("fleet")
    )
    counted, total = sums["counted"].to_numpy(), sums["fleet_counted"].to_numpy()
    exposure, whole = sums["exposure_s"].to_numpy(), sums["fleet_s"].to_numpy()
    can = (exposure > 0) & (exposure < whole) & (total > 0)
    k, n, e = counted[can], total[can], exposure[can] / whole[can]
    rest = (1 - e) / e
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = k / (n - k) * rest
        # With all failures or none there is one limit only, which has the whole of what the confidence leaves.
        tail = (1 - CONFIDENCE) / np.where((k > 0) & (k < n), 2, 1)
        low = np.where(k > 0, betaincinv(k, n - k + 1, tail), 0.0)
        high = np.where(k < n, betaincinv(k + 1, n - k, 1 - tail), np.nan)
        found = {
            "expected": n * e,
            "p_value": np.where(k > 0, betainc(k, n - k + 1, e), 1.0),
            "rate_ratio": np.where(k < n, ratio, np.nan),
            "ci_low": low / (1 - low) * rest,
            "ci_high": high / (1 - high) * rest,
        }
    columns = []
    for name, values in found.items():
        column = np.full(nodes.height, np.nan)
        column[can] = values
        columns.append(pl.Series(name, column).fill_nan(None))
    return nodes.hstack(columns)


def poisson_binomial_tail(chances: Sequence[Sequence[float]], counts: Sequence[int]) -> np.ndarray:
    """P(X >= k) for sums X of independent trials with these chances: one of each row of chances and count.

    Only sums of products of positive numbers are formed, so that small tails are right to the last digits. Checked
    against scipy.stats.poisson_binom, which takes a hundred times as long for a thousand nodes.
    """
    tails = np.ones(len(counts))
    order = sorted((row for row, count in enumerate(counts) if count > 0), key=lambda row: len(chances[row]))
    for start in range(0, len(order), _BLOCK):
        rows = order[start : start + _BLOCK]
        k = np.array([counts[row] for row in rows])
        padded = np.zeros((len(rows), len(chances[rows[-1]])))
        for place, row in enumerate(rows):
            padded[place, : len(chances[row])] = chances[row]
        # reached[j, i]: the chance of j failures of row i so far, counted so that k of the row stand in the last place,
        # a state of k and more that is not left again.
        last = k.max()
        reached, moved = np.zeros((2, last + 1, len(rows)))
        reached[last - k, np.arange(len(rows))] = 1
        for place, p in enumerate(padded.T):
            # States that are there already, and from which the last can still be reached.
            there = slice(max(0, last - (padded.shape[1] - place)), min(last, last - k.min() + place + 1))
            now = np.multiply(reached[there], p, out=moved[there])
            reached[there] -= now
            reached[there.start + 1 : there.stop + 1] += now
        tails[rows] = reached[last]
    return tails


def benjamini_hochberg(p_values: np.ndarray) -> np.ndarray:
    """The p-values (one at least) adjusted for the rate of false discoveries among them (1995)."""
    # Not scipy.stats, whose import takes as long as all the tests here; the tests compare the two.
    order = np.argsort(p_values, kind="stable")
    scaled = p_values[order] * (order.size / np.arange(1, order.size + 1))
    adjusted = np.empty(order.size)
    adjusted[order] = np.minimum.accumulate(scaled[::-1])[::-1]
    return np.minimum(adjusted, 1)


def halves_of(window: tuple[int, int]) -> list[tuple[int, int]]:
    """The first and the second half of a window."""
    middle = (window[0] + window[1]) // 2
    return [(window[0], middle), (middle, window[1])]


def halves_of_lives(lives: pl.DataFrame) -> list[pl.DataFrame]:
    """The lives of the first and of the second half of each unit's time at risk; one across the middle is cut there.

    The part before the cut is censored, the part after it ends as the life did.
    """
    lives = lives.filter(pl.col("duration_s").is_not_null()).with_columns(
        until=pl.col("duration_s").cum_sum().over("unit_id"), half=pl.col("duration_s").sum().over("unit_id") // 2
    )
    since = pl.col("until") - pl.col("duration_s")
    lives = lives.with_columns(before_s=(pl.col("half") - since).clip(0, pl.col("duration_s")))
    is_whole = pl.col("before_s") == pl.col("duration_s")
    first = lives.with_columns(duration_s="before_s", event=pl.when(is_whole).then("event")).filter(
        pl.col("before_s") > 0
    )
    second = lives.with_columns(duration_s=pl.col("duration_s") - pl.col("before_s")).filter(pl.col("duration_s") > 0)
    return [half.drop("until", "half", "before_s") for half in (first, second)]


def lemon_effect(whole: pl.DataFrame, first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """The fleet's mean time to failure with and without its lemons: EFFECT_SCHEMA, two rows.

    whole, first, second: lemon tables of the whole window and of its halves. Picked and measured on the same window,
    lemons look worse than they are, since bad luck is part of why they were picked; picked on the first half and
    measured on the second they show what pulling them would have brought. mttf_s: node time per failure of its own
    (`failures`), with Garwood's 95 % interval; mttf_ratio: without over with. Blank where there is no lemon or no
    failure, and `reason` says why.
    """
    rows = []
    for picked_on, measured_on, picked, measured in ((WHOLE, WHOLE, whole, whole), (FIRST, SECOND, first, second)):
        lemons = picked.filter(pl.col("lemon").fill_null(False))["node"]
        rest = measured.filter(~pl.col("node").is_in(lemons.implode()))
        row = {
            "picked_on": picked_on,
            "measured_on": measured_on,
            "nodes": measured.height,
            "lemons": lemons.len(),
        } | _mean_time(measured, "")
        if lemons.is_empty():
            row["reason"] = f"no lemon found in the {picked_on}"
        elif rest.is_empty():
            row["reason"] = "no node is left"
        else:
            row |= _mean_time(rest, "_without")
            if row["mttf_s"] and row.get("mttf_without_s"):
                row["mttf_ratio"] = row["mttf_without_s"] / row["mttf_s"]
            else:
                row["reason"] = "no failure is left to measure a mean by"
        rows.append(row)
    return pl.DataFrame([{name: row.get(name) for name in EFFECT_SCHEMA} for row in rows], schema=EFFECT_SCHEMA)


def _days(length_s: int) -> int:
    return length_s // SECONDS_A_DAY + 1


def _over(count: str, of: str) -> pl.Expr:
    return pl.when(pl.col(of) > 0).then(pl.col(count) / pl.col(of))


def _no_exposure_test() -> pl.Expr:
    alone = pl.col("exposure_s") == pl.col("exposure_s").sum().over("fleet")
    return (
        pl.when(pl.col("exposure_s") == 0)
        .then(pl.lit("no time at risk is known"))
        .when(alone)
        .then(pl.lit("no other node of its fleet to compare it with"))
        .when(pl.col("p_value").is_null())
        .then(pl.lit("no failure in its fleet"))
        .when(pl.col("rate_ratio").is_null())
        .then(pl.lit("no failure in the rest of its fleet: lower limit of the ratio only"))
    )


def _judged_by_exposure(
    tested: pl.DataFrame, basis: str, false_discovery: float, window: tuple[int, int] | None
) -> pl.DataFrame:
    judged = _with_verdict(tested.with_columns(basis=pl.lit(basis)), false_discovery)
    return _in_form(with_power(with_posterior(judged), _threshold(judged, false_discovery)), window)


def _with_verdict(tested: pl.DataFrame, false_discovery: float) -> pl.DataFrame:
    p_values = tested["p_value"].drop_nulls().to_numpy()
    q_values = np.full(tested.height, np.nan)
    if p_values.size:
        q_values[tested["p_value"].is_not_null().to_numpy()] = benjamini_hochberg(p_values)
    return tested.with_columns(q_value=pl.Series(q_values).fill_nan(None)).with_columns(
        lemon=pl.col("q_value") <= false_discovery
    )


def _threshold(judged: pl.DataFrame, false_discovery: float) -> float:
    """The p-value with which one node more would have been a lemon."""
    tested = judged["p_value"].count()
    return false_discovery * (int(judged["lemon"].sum()) + 1) / tested if tested else 0.0


def with_posterior(nodes: pl.DataFrame) -> pl.DataFrame:
    """The nodes with posterior_rate_ratio and posterior_above_3: of a node's rate over its fleet's, shrunken.

    nodes: fleet, counted, expected. Counts are Poisson with mean expected x ratio, the ratios of a fleet's nodes gamma
    with mean 1 and shape a, so that counts are negative binomial; a is that of the largest marginal likelihood
    (empirical Bayes). The posterior is gamma of shape a + counted and rate a + expected: its mean, and its probability
    above MUCH_MORE. Where the counts spread no more than Poisson counts do (the sum of (counted - expected)^2 is at
    most that of counted) there is no such shape: all ratios are 1, none is above. Blank without an expectation.
    """
    ratio, above = np.full((2, nodes.height), np.nan)
    counted, expected = nodes["counted"].to_numpy(), nodes["expected"].to_numpy()
    fleets, fleet = np.unique(nodes["fleet"].to_numpy(), return_inverse=True)
    for place in range(fleets.size):
        rows = np.flatnonzero((fleet == place) & (expected > 0))
        k, mean = counted[rows], expected[rows]
        shape = _gamma_shape(k, mean) if rows.size else None
        ratio[rows] = 1 if shape is None else (shape + k) / (shape + mean)
        above[rows] = 0 if shape is None else gammaincc(shape + k, MUCH_MORE * (shape + mean))
    columns = {"posterior_rate_ratio": ratio, "posterior_above_3": above}
    return nodes.with_columns(pl.Series(name, values).fill_nan(None) for name, values in columns.items())


def _gamma_shape(counted: np.ndarray, expected: np.ndarray) -> float | None:
    """See `with_posterior`; None where the counts spread no more than Poisson counts."""
    # scipy.optimize is slow to import, and only here.
    from scipy.optimize import minimize_scalar

    if ((counted - expected) ** 2).sum() <= counted.sum():
        return None
    # Alike ones once, in an order of their own: the sum does not depend on that of the nodes.
    pairs, times = np.unique(np.column_stack([counted, expected]), axis=0, return_counts=True)
    k, mean = pairs.T

    def loss(log_shape: float) -> float:
        a = np.exp(log_shape)
        terms = gammaln(a + k) - gammaln(a) - a * np.log1p(mean / a) - k * np.log(a + mean)
        return -float(times @ terms)

    return float(np.exp(minimize_scalar(loss, bounds=(-7.0, 14.0), method="bounded", options={"xatol": 1e-8}).x))


def with_power(nodes: pl.DataFrame, threshold: float) -> pl.DataFrame:
    """The nodes with detectable_ratio: over its fleet's rate, of a node of the fleet's median exposure.

    nodes: fleet, counted, exposure_s, p_value. The smallest ratio with which the test would have found such a node with
    a chance of POWER: with n the fleet's counted failures and e the node's share of its exposure, the rest of the fleet
    has n (1 - e), the node needs the least k with P(Bin(n (1 - e) + k, e) >= k) <= threshold, and a Poisson variable of
    mean ratio x n e reaches k with that chance. Blank where a node has no test.
    """
    tested = nodes.filter(pl.col("p_value").is_not_null())
    whole = nodes.group_by("fleet").agg(n=pl.col("counted").sum(), whole_s=pl.col("exposure_s").sum())
    fleets = tested.group_by("fleet").agg(typical_s=pl.col("exposure_s").median()).join(whole, on="fleet")
    share, n = (fleets["typical_s"] / fleets["whole_s"]).to_numpy(), fleets["n"].to_numpy()
    rest = n * (1 - share)
    low, high = np.zeros(n.size), np.ones(n.size)
    while (betainc(high, rest + 1, share) > threshold).any():
        high = high * 2
    for _ in range(64):
        middle = np.floor((low + high) / 2)
        is_enough = (betainc(middle, rest + 1, share) <= threshold) & (middle > 0)
        low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
    ratio = pl.Series("ratio", gammaincinv(high, POWER) / (n * share))
    found = nodes.join(fleets.select("fleet", ratio), on="fleet", how="left", maintain_order="left")
    return found.with_columns(detectable_ratio=pl.when(pl.col("p_value").is_not_null()).then("ratio")).drop("ratio")


def _in_form(judged: pl.DataFrame, window: tuple[int, int] | None) -> pl.DataFrame:
    """The judged nodes with rates, lemons first, in the form of the contract."""
    per_1000 = 1000 * SECONDS_A_DAY
    fleet_rate = pl.col("failures").sum().over("fleet") * per_1000 / pl.col("exposure_s").sum().over("fleet")
    low, high = window or (None, None)
    table = judged.with_columns(
        failures_per_1000_node_days=pl.when(pl.col("exposure_s") > 0).then(
            pl.col("failures") * per_1000 / pl.col("exposure_s")
        ),
        fleet_failures_per_1000_node_days=pl.when(pl.col("exposure_s").sum().over("fleet") > 0).then(fleet_rate),
        window_from_s=pl.lit(low, dtype=pl.Int64),
        window_to_s=pl.lit(high, dtype=pl.Int64),
        attributed_share=_over("attributed_failures", "window_failures"),
    ).sort("lemon", "p_value", "node", descending=[True, False, False], nulls_last=True)
    blanks = [pl.lit(None, dtype).alias(name) for name, dtype in LEMON_SCHEMA.items() if name not in table.columns]
    return table.with_columns(blanks).select(pl.col(name).cast(dtype) for name, dtype in LEMON_SCHEMA.items())


def _standardised(counted: int, expected: float) -> tuple[float, float, float]:
    """Counted over expected with Garwood's interval of the count."""
    low, high = poisson_limits(np.int64(counted), CONFIDENCE)
    return counted / expected, float(low) / expected, float(high) / expected


def _mean_time(nodes: pl.DataFrame, suffix: str) -> dict:
    failures = int(nodes["failures"].sum())
    exposure_s = int(nodes["exposure_s"].sum())
    row = {f"failures{suffix}": failures, f"exposure{suffix}_s": exposure_s}
    if exposure_s == 0:
        return row | {f"mttf{suffix}_s": None}
    low, high = garwood_interval(exposure_s, failures, CONFIDENCE)
    mean = exposure_s / failures if failures else None
    return row | {f"mttf{suffix}_s": mean, f"ci_low{suffix}_s": low, f"ci_high{suffix}_s": high}
