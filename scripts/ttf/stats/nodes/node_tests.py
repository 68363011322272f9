"""Nodes with excess failures: more failures than their use explains, at a stated false-discovery rate.

The signals are those of Kokolis et al. (2025, section 7) that a trace supports. A bare ranking would list the busiest
and the unlucky nodes. So each node is tested against its fleet (nodes of the same GPU type, or of the same system for a
component trace), one-sided, with the p-values of all nodes adjusted after Benjamini and Hochberg (1995).

What the tests count depends on how failures are attributed (`basis` of durations_infra.parquet):

- Infrastructure (`state`, `event`) and components: given the fleet's failures, a node's share of them follows its share
  of the exposure: a conditional binomial test (Przyborowski and Wilenski 1940). An attempt on one node fails there. A
  failed attempt on several nodes is attributed to the node that the trace names (`failed_node`), else to none. The
  tests count incidents: one health event is one incident, however many attempts it ended. A node that goes down may do
  so again until it is repaired, so at most one incident per node and day counts.
- `proxy`, failures of any kind: users cause most of them, they come early in a run, and users retry, often on the same
  node. Exposure would mistake a node with many young runs for a bad one, and one user's bad job for many failures. So a
  trial is the first run that a user starts on a node on a day, until one of the user's trials there has failed: a
  user's work counts against a node once. A node's trials are compared with those of the same user, day and fleet on
  other nodes: given that K of M failed, they share the user's propensity and bad days. They differ in order: early runs
  fail more (or the last one is the one that worked), and a scheduler that fills the lowest node first gives low nodes
  the early runs. So the odds of a trial also depend on the number of the user's runs before and after it that day: a
  conditional logistic regression over all strata, with log odds linear between the knots of log2(1 + runs). A trial's
  chance is the probability to be among the K failures. The failures of a node are then a Poisson-binomial variable: a
  log-rank test in discrete time, stratified by user and day, adjusted for order.

Nodes also differ without being bad. With tests by exposure, a significant node must also fail more than the spread of
ordinary nodes explains, which is fitted without the extreme nodes (`ordinary_nodes`). `docs/coverage.md` shows what
this detects. Tests by trials do without it: a node's share of a user's failures on a day has narrow bounds.

The tables also have a rate shrunken towards the fleet's (gamma-Poisson, see `with_posterior`) and the detectable rate
ratio (see `with_power`). A failed multi-node attempt that is attributed to no node is `shared`.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from ttf.engine.exact_sums import group_sums
from ttf.engine.storage.partitions import Partitions
from ttf.records.infra import EVENT
from ttf.records.jobs import choose_text
from ttf.stats.basics.order import run_starts
from ttf.stats.durations.mttf import SECONDS_A_DAY
from ttf.stats.nodes.conditional_logistic import chances_by_order
from ttf.stats.nodes.excess_failures import (
    compare_by_exposure,
    compare_by_trials,
    detectable_trial_ratio,
    divide_failures,
    next_threshold,
    with_posterior,
    with_power,
    with_verdict,
)
from ttf.stats.nodes.node_runs import Runs, read_basis, runs_by_node

# Placements per partition; those in the window are in memory.
PARTITION_ROWS = 1 << 23
# Runs per block.
_BLOCK_ROWS = 1 << 18


def count_node_runs(runs: Runs, basis: str, window: tuple[int, int]) -> pl.DataFrame:
    """Count runs, failures and exposure of each node in a window, by name of the node.

    With the basis `proxy` a failure belongs to the start of its run, when the trial began; else to its end, or to its
    start if the end is unknown. days: number of days, from the window's start, with an incident. fleet: the GPU type
    that most of the node's runs requested (ties: the first by name), or NO_FLEET.
    """
    low, high = (moment - runs.from_s for moment in window)
    nodes, types, days = runs.nodes.len(), runs.gpu_types.len(), _count_days(high - low)
    # Runs of a node by (single, failed, shared), and by GPU type.
    counts, type_counts = np.zeros(nodes * 8, np.int64), np.zeros(nodes * types, np.int64)
    exposure_s, incidents, had_incident = *np.zeros((2, nodes), np.int64), np.zeros(nodes * days, bool)
    for block_start in range(0, runs.node.size, _BLOCK_ROWS):
        block = slice(block_start, block_start + _BLOCK_ROWS)
        start, last, run_end = runs.start[block], runs.last[block], runs.run_end[block]
        rows = np.flatnonzero((start < high) & (np.maximum(run_end, last) >= low))
        node, start, last, run_end = runs.node[block][rows].astype(np.int64), start[rows], last[rows], run_end[rows]
        moment = start if basis == "proxy" else last
        is_in_window = (moment >= low) & (moment < high)
        flags = (runs.failed, runs.shared, runs.incident)
        failed, shared, incident = (flag[block][rows] & is_in_window for flag in flags)
        counts += np.bincount(4 * (2 * node + runs.single[block][rows]) + 2 * failed + shared, minlength=counts.size)
        type_counts += np.bincount(node * types + runs.gpu_type[block][rows], minlength=type_counts.size)
        run_s = np.clip(np.minimum(run_end, high) - np.maximum(start, low), 0, None)
        # 64 bits as in the sums: else np.add.at takes ten times as long.
        exposure_s += group_sums(node, run_s.astype(np.int64), nodes)
        incidents += np.bincount(node[incident], minlength=nodes)
        had_incident[(node * days + (moment - low) // SECONDS_A_DAY)[incident]] = True
    by_flag = counts.reshape(nodes, 2, 2, 2)
    columns = {
        "node": runs.nodes,
        "fleet": runs.gpu_types[type_counts.reshape(nodes, types).argmax(axis=1)],
        "placements": by_flag.sum(axis=(1, 2, 3)),
        "single_node_placements": by_flag[:, 1].sum(axis=(1, 2)),
        "single_node_failures": by_flag[:, 1, 1].sum(axis=1),
        "multi_node_failures": by_flag[:, 0, 1].sum(axis=1),
        "shared_multi_node_failures": by_flag[..., 1].sum(axis=(1, 2)),
        "failures": by_flag[:, :, 1].sum(axis=(1, 2)),
        "incidents": incidents,
        "days": had_incident.reshape(nodes, days).sum(axis=1),
        "exposure_s": exposure_s,
    }
    return pl.DataFrame(columns).filter(pl.col("placements") > 0)


def shared_failures(runs: Runs, basis: str, window: tuple[int, int]) -> pl.DataFrame:
    """Return attempt and node of attempts that failed in a window on an unknown one of their nodes.

    With the basis `proxy` only the attempts: users' failures cannot be attributed to nodes.
    """
    low, high = (moment - runs.from_s for moment in window)
    moment = runs.start if basis == "proxy" else runs.last
    rows = np.flatnonzero(runs.shared & (moment >= low) & (moment < high))
    if basis == "proxy":
        return pl.DataFrame({"attempt": np.unique(runs.attempt[rows])})
    return pl.DataFrame({"attempt": runs.attempt[rows], "node": runs.nodes.gather(runs.node[rows])}).unique()


def compare_nodes(
    placements: pl.LazyFrame,
    durations: pl.LazyFrame,
    windows: Sequence[tuple[int, int]],
    false_discovery: float,
    partitions: Partitions,
) -> list[pl.DataFrame]:
    """Test the nodes of each window against their fleets.

    Parameters
    ----------
    placements, durations : see `runs_by_node`
    windows : (start, end) in seconds; all are in the first
    false_discovery : false-discovery rate of the tests
    partitions : of the placements; one at a time is in memory

    Returns
    -------
    a frame for each window: a row per node, significant nodes first, then by p-value. A blank has a `reason`.

    Notes
    -----
    placements: of the node's runs; single_node_*: of attempts on one node. multi_node_failures: of attempts on several
    nodes, attributed to this one; shared_multi_node_failures: attributed to none. failures: sum of single- and
    multi-node failures. incidents: those that no other attempt's failure shares (blank with basis `proxy`). exposure_s:
    sum of the placements' times in the window: two parallel jobs give two node-days a day. The fleet's rate is over all
    its nodes. window_failures: of all nodes, including failures attributed to none; attributed_failures,
    attributed_share: those attributed to a node.

    trials, counted, expected: see the module. trials: only with basis `proxy`, and only informative ones (not all or
    none of the user's failed that day). rate_ratio with its 95% CI: with basis `proxy` counted over expected
    (Garwood's, too wide if trials are few), else the node's rate of counted failures over that of the rest of its fleet
    (transformed from Clopper and Pearson's). p_value: one-sided; q_value: adjusted over all tests; p_spread, q_spread:
    the same against ordinary nodes; lemon: q_spread is at most `false_discovery`. posterior_*: see `with_posterior`.
    detectable_ratio: see `with_power`, with basis `proxy` `detectable_trial_ratio`.
    """
    basis = read_basis(durations)

    def count_partition(partition: int, runs: Runs) -> list[_PartitionCounts]:
        counts = []
        for index, window in enumerate(windows):
            nodes, trials = count_node_runs(runs, basis, window), pl.LazyFrame()
            if basis == "proxy":
                trials = partitions.put_by(f"trials-{partition}-{index}", select_trials(runs, nodes, window))
            counts.append(_PartitionCounts(nodes, runs.nodes, trials, shared_failures(runs, basis, window)))
        return counts

    # map, not a loop: a loop variable would keep the runs of one partition in memory while the next is read.
    partition_counts = map(
        count_partition, itertools.count(), runs_by_node(placements, durations, windows[0], partitions)
    )
    window_counts = zip(windows, zip(*partition_counts, strict=True), strict=True)
    days = _count_days(windows[0][1] - windows[0][0])
    return [_test_nodes(counts, basis, window, days, false_discovery) for window, counts in window_counts]


class _PartitionCounts(NamedTuple):
    """Counts of the nodes of one partition in a window.

    names: of the nodes, indexed by the trials. trials: empty unless the basis is `proxy`.
    """

    nodes: pl.DataFrame
    names: pl.Series
    trials: pl.LazyFrame
    shared: pl.DataFrame


def _test_nodes(
    partitions: Sequence[_PartitionCounts], basis: str, window: tuple[int, int], days: int, false_discovery: float
) -> pl.DataFrame:
    """Test the nodes of a window from the counts of all partitions. days: number of days in the first window."""
    nodes = pl.concat(partition.nodes for partition in partitions).sort("node")
    shared = pl.concat(partition.shared for partition in partitions)
    nodes = nodes.with_columns(
        single_node_failure_rate=_divide_or_null(pl.col("single_node_failures"), pl.col("single_node_placements")),
        attributed_failures=pl.col("failures").sum(),
        window_failures=pl.col("failures").sum() + shared["attempt"].n_unique(),
    )
    if basis != "proxy":
        tested = _test_by_exposure(nodes.with_columns(counted="days"), basis, false_discovery, window)
        return with_likely_failures(tested, shared)
    chances = trial_chances([partition.trials for partition in partitions], days)
    informative = [informative_trials(partition.trials, chances) for partition in partitions]
    tests = [
        compare_by_trials(trials).with_columns(node=partition.names[trials["node"]])
        for trials, partition in zip(informative, partitions, strict=True)
    ]
    reason = "no trial tells it from other nodes: no user was on several nodes on a day and failed on some only"
    tested = nodes.join(pl.concat(tests), on="node", how="left", maintain_order="left")
    untested = pl.when(pl.col("p_value").is_null())
    tested = tested.with_columns(basis=pl.lit(basis), incidents=None, reason=untested.then(pl.lit(reason)))
    tested, _ = with_verdict(tested, false_discovery, differ=False)
    threshold = next_threshold(tested["p_spread"], tested["lemon"], false_discovery)
    ratio = detectable_trial_ratio(informative, threshold)
    tested = tested.with_columns(detectable_ratio=pl.when(pl.col("p_value").is_not_null()).then(ratio))
    return _add_window(tested, window)


def compare_components(durations: pl.DataFrame, fleet_by: str, false_discovery: float) -> pl.DataFrame:
    """Test the nodes of a component trace against their fleets, over their whole time in service.

    They have no dates, so there is no window.

    Parameters
    ----------
    durations : durations_infra of components, with the column `fleet_by`
    fleet_by : column whose values are the fleets
    false_discovery : false-discovery rate of the tests

    Returns
    -------
    the columns of `compare_nodes`; out_count: the node's outages, which are its failures; counted excludes those within
    a day of the previous repair

    Notes
    -----
    The tests are `compare_by_exposure` and `with_verdict`.

    Examples
    --------
    >>> rows = {"unit_id": ["a", "a", "b", "b"], "duration_s": [86_400 * 9, 86_400 * 2, 86_400 * 5, 86_400 * 6]}
    >>> durations = pl.DataFrame(rows | {"event": [EVENT, EVENT, EVENT, None], "cabinet": ["c"] * 4})
    >>> compare_components(durations, "cabinet", 0.05).select("node", "counted", "expected").rows()
    [('a', 2, 1.5), ('b', 1, 1.5)]
    """
    is_repeated = (pl.col("duration_s") < SECONDS_A_DAY) & (pl.int_range(pl.len()).over("unit_id") > 0)
    is_failure = (pl.col("event") == EVENT).fill_null(False)
    nodes = (
        durations.filter(pl.col("duration_s").is_not_null())
        .with_columns(is_failure=is_failure, is_counted=is_failure & ~is_repeated)
        .group_by(node=pl.col("unit_id"))
        .agg(
            *(pl.col("is_failure").sum().cast(pl.Int64).alias(name) for name in ("out_count", "failures")),
            fleet=pl.col(fleet_by).first().cast(pl.String).fill_null("unknown"),
            counted=pl.col("is_counted").sum().cast(pl.Int64),
            exposure_s=pl.col("duration_s").sum(),
        )
        .sort("node")
    )
    nodes = nodes.with_columns(window_failures=pl.col("failures").sum(), attributed_failures=pl.col("failures").sum())
    return _test_by_exposure(nodes, "component", false_discovery, None)


def select_trials(runs: Runs, nodes: pl.DataFrame, window: tuple[int, int]) -> pl.DataFrame:
    """Select the trials of a window, as the module defines them, with basis `proxy`.

    runs: runs on the nodes of one partition. nodes: node and fleet of each node with runs in the window. window: start
    and end in seconds.

    Returns node (index), failed, stratum (a number, the same in all partitions), before and after (see `Runs`). Of
    equal starts the first row counts. Days begin as those of the runs' window do.
    """
    low, high = (moment - runs.from_s for moment in window)
    start = runs.start[runs.trials]
    rows = runs.trials[(start >= low) & (start < high)]
    node, user, day = runs.node[rows], runs.user[rows], runs.start[rows] // SECONDS_A_DAY
    first_of_day = run_starts(node, user, day)
    rows, node, user, day = rows[first_of_day], node[first_of_day], user[first_of_day], day[first_of_day]
    # Number of earlier days with a failure of the same user on the node.
    failed = runs.failed[rows]
    failures = np.cumsum(failed) - failed
    starts = run_starts(node, user)
    is_trial = failures == np.repeat(failures[starts], np.diff(starts, append=rows.size))
    fleet = np.zeros(runs.nodes.len(), np.int64)
    fleet[runs.nodes.search_sorted(nodes["node"]).to_numpy()] = runs.gpu_types.search_sorted(nodes["fleet"]).to_numpy()
    # User numbers have 32 bits, which leaves bits for some millions of fleets over a year.
    days = _count_days(runs.length_s)
    stratum = ((fleet[node[is_trial]] << 32) + user[is_trial]) * days + day[is_trial]
    before, after = (run_counts[runs.attempt[rows[is_trial]]] for run_counts in runs.order)
    trials = {"node": node[is_trial], "failed": failed[is_trial], "stratum": stratum}
    return pl.DataFrame(trials | {"before": before, "after": after})


def trial_chances(trials: Sequence[pl.LazyFrame], days: int = 1) -> pl.DataFrame:
    """Return the chance of failure of a trial by stratum, before and after; without strata where all or none failed.

    Parameters
    ----------
    trials : frames of node, stratum, before, after and failed
    days : the day of a stratum is its number modulo `days`

    Returns
    -------
    stratum, before, after and chance

    Notes
    -----
    K / M for M trials with K failures of the same order, else that of `chances_by_order`.

    Examples
    --------
    >>> none = [0, 0, 0]
    >>> rows = {"node": [0, 1, 2], "stratum": none, "before": none, "after": none, "failed": [True, False, False]}
    >>> trial_chances([pl.LazyFrame(rows)])["chance"].round(4).to_list()
    [0.3333]
    """
    key = ["stratum", "before", "after"]
    groups = pl.concat(trials).group_by(key).agg(trials=pl.len(), failed=pl.col("failed").sum())
    stratum_sums = pl.col("trials", "failed").sum().over("stratum").name.prefix("all_")
    all_groups = groups.sort(key).with_columns(stratum_sums).collect(engine="streaming")
    mixed = all_groups.filter(pl.col("all_failed").is_between(0, pl.col("all_trials"), closed="none"))
    return mixed.select(*key, chance=pl.Series(chances_by_order(mixed, days), dtype=pl.Float64))


def informative_trials(trials: pl.LazyFrame, chances: pl.DataFrame) -> pl.DataFrame:
    """Return node, trials, counted and ascending chances of nodes with trials in the strata of `chances`.

    trials: node, stratum, before, after, failed (Boolean); a node is at most once in a stratum. chances: from
    `trial_chances`.
    """
    return (
        trials.join(chances.lazy(), on=["stratum", "before", "after"])
        .collect(engine="streaming")
        .group_by("node")
        .agg(
            trials=pl.len().cast(pl.Int64),
            counted=pl.col("failed").sum().cast(pl.Int64),
            # Sorted, so that the sum does not depend on the order of the rows.
            chances=pl.col("chance").sort(),
        )
        .sort("node")
    )


def split_in_halves(durations: pl.DataFrame) -> list[pl.DataFrame]:
    """Split the durations of each unit at half of its time at risk.

    A duration across the middle is cut: the first part is censored, the second ends as the duration did.

    Parameters
    ----------
    durations : unit_id, duration_s (Int64) and event, in the order of time of each unit

    Returns
    -------
    the durations of both halves

    Examples
    --------
    >>> halves = split_in_halves(pl.DataFrame({"unit_id": ["a"], "duration_s": [10], "event": ["failure"]}))
    >>> [half.select("duration_s", "event").rows() for half in halves]
    [[(5, None)], [(5, 'failure')]]
    """
    durations = durations.filter(pl.col("duration_s").is_not_null()).with_columns(
        end_s=pl.col("duration_s").cum_sum().over("unit_id"), half_s=pl.col("duration_s").sum().over("unit_id") // 2
    )
    start_s = pl.col("end_s") - pl.col("duration_s")
    durations = durations.with_columns(before_s=(pl.col("half_s") - start_s).clip(0, pl.col("duration_s")))
    is_whole = pl.col("before_s") == pl.col("duration_s")
    first = durations.with_columns(duration_s="before_s", event=pl.when(is_whole).then("event")).filter(
        pl.col("before_s") > 0
    )
    second = durations.with_columns(duration_s=pl.col("duration_s") - pl.col("before_s")).filter(
        pl.col("duration_s") > 0
    )
    return [half.drop("end_s", "half_s", "before_s") for half in (first, second)]


def _count_days(length_s: int) -> int:
    return length_s // SECONDS_A_DAY + 1


def _divide_or_null(numerator: pl.Expr, denominator: pl.Expr) -> pl.Expr:
    return pl.when(denominator > 0).then(numerator / denominator)


def _blank_reason() -> pl.Expr:
    exposure_s = pl.col("exposure_s")
    reasons = {
        "no time at risk is known": exposure_s == 0,
        "no other node of its fleet to compare it with": exposure_s == exposure_s.sum().over("fleet"),
        "no failure in its fleet": pl.col("p_value").is_null(),
        "no failure in the rest of its fleet: lower limit of the ratio only": pl.col("rate_ratio").is_null(),
    }
    return choose_text(reasons)


def _test_by_exposure(
    nodes: pl.DataFrame, basis: str, false_discovery: float, window: tuple[int, int] | None
) -> pl.DataFrame:
    """Test nodes with counted failures, each by its share of its fleet's exposure."""
    tested = compare_by_exposure(nodes).with_columns(reason=_blank_reason(), basis=pl.lit(basis))
    tested, ordinary = with_verdict(tested, false_discovery)
    threshold = next_threshold(tested["p_spread"], tested["lemon"], false_discovery)
    return _add_window(with_power(with_posterior(tested), threshold, ordinary), window)


def with_likely_failures(nodes: pl.DataFrame, shared: pl.DataFrame) -> pl.DataFrame:
    """Add likely_failures and likely_ratio of the nodes of shared failures. shared: attempt and node."""
    if shared.is_empty():
        return nodes
    rows = shared.join(nodes.select("node").with_row_index("index"), on="node").sort("attempt", "index")
    attempt, node_index = (rows[name].rank("dense").to_numpy() - 1 for name in ("attempt", "index"))
    suspects = nodes.with_row_index("index").filter(pl.col("index").is_in(rows["index"].unique().implode()))
    uniform = np.bincount(node_index, 1 / np.bincount(attempt)[attempt], suspects.height)
    expectation = nodes.join(suspects.select("node", uniform=uniform), on="node", how="left", maintain_order="left")
    fleet_failures = (pl.col("counted").fill_null(0) + pl.col("uniform").fill_null(0)).sum().over("fleet")
    expected = fleet_failures * pl.col("exposure_s") / pl.col("exposure_s").sum().over("fleet")
    expectation = expectation.select("node", expected_all=expected.fill_nan(0))
    expected_all = expectation.join(suspects.select("node"), on="node", how="semi")["expected_all"].to_numpy()
    failures, ratio = divide_failures(attempt, node_index, suspects["counted"].fill_null(0).to_numpy(), expected_all)
    likely = suspects.select("node", likely_failures=pl.Series(failures), likely_ratio=pl.Series(ratio))
    return nodes.join(likely, on="node", how="left", maintain_order="left")


def _add_window(nodes: pl.DataFrame, window: tuple[int, int] | None) -> pl.DataFrame:
    """Add the window and the share of attributed failures; significant nodes first, then by p-value."""
    low, high = window or (None, None)
    return nodes.with_columns(
        window_from_s=pl.lit(low, dtype=pl.Int64),
        window_to_s=pl.lit(high, dtype=pl.Int64),
        attributed_share=_divide_or_null(pl.col("attributed_failures"), pl.col("window_failures")),
    ).sort("lemon", "p_value", "node", descending=[True, False, False], nulls_last=True)
