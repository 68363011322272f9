"""Lemon nodes: machines on which more fails than their use explains, at a stated false-discovery rate.

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

Nodes differ, too, without any being bad: counted by exposure, a lemon also fails more than the spread of ordinary nodes
explains, which is fitted to those that do not stand out (`ordinary_nodes`). `docs/coverage.md` shows what this finds,
and what not. Trials are not held against it: of a user's failures on a day a node has a share within narrow bounds.

Beside the tests stand a rate shrunken towards the fleet's (gamma-Poisson, see `with_posterior`) and the rate ratio that
a test would have found (see `with_power`). A failed attempt on several nodes that is attributed to none is `shared`.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from ttf.analyses.nodes.find_lemon_nodes import LEMON_EFFECT, LEMON_NODES, LEMON_SUMMARY
from ttf.analyses.nodes.find_lemon_nodes.excess import (
    CONFIDENCE,
    Ordinary,
    benjamini_hochberg,
    blamed,
    compared_by_exposure,
    compared_by_trials,
    detectable_by_trials,
    ordinary_nodes,
    threshold_of_next,
    typical_detectable,
    with_posterior,
    with_power,
)
from ttf.analyses.nodes.find_lemon_nodes.node_runs import (
    LIVES_READ,
    Runs,
    basis_of,
    halves_of,
    last_window,
    runs_by_node,
)
from ttf.analyses.nodes.find_lemon_nodes.trial_odds import chances_by_order
from ttf.engine.exact_sums import group_sums
from ttf.engine.storage.partitions import Partitions, partitions_of
from ttf.records.infra import EVENT
from ttf.records.inputs import Inputs
from ttf.records.jobs import choose_text, conform
from ttf.stats.basics.order import first_of_each
from ttf.stats.clustered import Clusters
from ttf.stats.durations.mttf import SECONDS_A_DAY, garwood_interval

# Placements looked at together; of these the ones within the window are held.
PARTITION_ROWS = 1 << 23
# Runs looked at together.
_BLOCK_ROWS = 1 << 18
WHOLE, FIRST, SECOND = "whole window", "first half", "second half"


def compute(given: Inputs) -> dict:
    settings = given.settings
    rate = settings.false_discovery
    if "placements" in given:
        lives, placements = given.scan("lives_infra", LIVES_READ), given.scan("placements")
        days = settings.window_days if basis_of(lives) == "proxy" else settings.infra_window_days
        window = last_window(placements, days)
        with given.scratch() as spilled:
            partitions = partitions_of([placements], PARTITION_ROWS, spilled)
            found = lemon_nodes(placements, lives, [window, *halves_of(window)], rate, partitions)
    else:
        lives = given.read("lives_infra", ("unit_id", "event", "duration_s", settings.fleet_by))
        found = [lemon_components(part, settings.fleet_by, rate) for part in (lives, *halves_of_lives(lives))]
    return {
        "lemon_nodes": found[0],
        "lemon_summary": summarise_nodes(found[0]),
        "lemon_effect": lemon_effect(*found),
    }


def summarise_nodes(nodes: pl.DataFrame) -> pl.DataFrame:
    """The one row of LEMON_SUMMARY; nodes: LEMON_NODES."""
    tested = nodes.drop_nulls("p_value")
    lemons, failures = tested.filter("lemon"), int(nodes["failures"].sum())
    row = {"nodes": nodes.height, "tested": tested.height, "lemons": lemons.height, "failures": failures}
    row |= {"counted": int(tested["counted"].sum()), "detectable_ratio": typical_detectable(tested)}
    row |= {"window_failures": 0, "unattributed": 0}
    for first in nodes.head(1).iter_rows(named=True):
        row |= {name: first[name] for name in ("basis", "window_failures", "attributed_share")}
        row["unattributed"] = first["window_failures"] - first["attributed_failures"]
        if first["window_to_s"] is not None:
            row["window_s"] = first["window_to_s"] - first["window_from_s"]
    if lemons.height:
        row["share_of_failures"] = lemons["failures"].sum() / max(failures, 1)
        row["share_of_nodes"] = lemons.height / nodes.height
    return LEMON_SUMMARY.frame([row])


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


def shared_in(runs: Runs, basis: str, window: tuple[int, int]) -> pl.DataFrame:
    """attempt and node of the attempts that failed within a window, on which of their nodes is not known.

    With the basis `proxy`, where no node can be blamed for what users do, without the nodes.
    """
    low, high = (moment - runs.from_s for moment in window)
    moment = runs.start if basis == "proxy" else runs.last
    rows = np.flatnonzero(runs.shared & (moment >= low) & (moment < high))
    if basis == "proxy":
        return pl.DataFrame({"attempt": np.unique(runs.attempt[rows])})
    return pl.DataFrame({"attempt": runs.attempt[rows], "node": runs.nodes.gather(runs.node[rows])}).unique()


def lemon_nodes(
    placements: pl.LazyFrame,
    lives: pl.LazyFrame,
    windows: Sequence[tuple[int, int]],
    false_discovery: float,
    partitions: Partitions,
) -> list[pl.DataFrame]:
    """For each window a row per node with runs within it, lemons first, then by p-value: LEMON_NODES.

    placements, lives: see `runs_by_node`; partitions: of the placements, one of which is held at a time. All windows
    are within the first.

    placements: of its runs; single_node_*: those of attempts on one node. multi_node_failures: of attempts on several
    that are attributed to this node; shared_multi_node_failures: to none. failures is the sum of single- and multi-node
    ones, incidents those of them that no other attempt's failure is the same incident as (with basis `proxy` blank);
    exposure_s the time of the placements within the window, added up: two jobs side by side give two node-days a day.
    The fleet's rate is over all its nodes. window_failures: of all nodes, the attempts attributed to none among them;
    attributed_failures, attributed_share: those attributed to a node.

    trials, counted, expected: see the module; trials only with basis `proxy`, and only those that are informative
    (not all or none of the user's failed that day). rate_ratio with its 95% CI: with basis `proxy` counted over
    expected (Garwood's, which is too wide where trials are few), else the node's rate of counted failures over that of
    the rest of its fleet (Clopper and Pearson's, carried over). p_value: one-sided; q_value: adjusted over all tests;
    p_spread, q_spread: the same against ordinary nodes, which differ; lemon: q_spread is at most `false_discovery`.
    posterior_*: see `with_posterior`; detectable_ratio: see `with_power`
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
    shared: pl.DataFrame


def _tested(
    parts: Sequence[_Counted], basis: str, window: tuple[int, int], days: int, false_discovery: float
) -> pl.DataFrame:
    """days: of the first window."""
    nodes = pl.concat(part.nodes for part in parts).sort("node")
    shared = pl.concat(part.shared for part in parts)
    nodes = nodes.with_columns(
        single_node_failure_rate=_over(pl.col("single_node_failures"), pl.col("single_node_placements")),
        attributed_failures=pl.col("failures").sum(),
        window_failures=pl.col("failures").sum() + shared["attempt"].n_unique(),
    )
    if basis != "proxy":
        judged = _judged_by_exposure(nodes.with_columns(counted="days"), basis, false_discovery, window)
        return with_blame(judged, shared)
    chances = chances_of([part.trials for part in parts], days)
    informative = [informative_trials(part.trials, chances) for part in parts]
    named = [
        compared_by_trials(trials).with_columns(node=part.names[trials["node"]])
        for trials, part in zip(informative, parts, strict=True)
    ]
    why = "no trial tells it from other nodes: no user was on several nodes on a day and failed on some only"
    tested = nodes.join(pl.concat(named), on="node", how="left", maintain_order="left")
    untested = pl.when(pl.col("p_value").is_null())
    tested = tested.with_columns(basis=pl.lit(basis), incidents=None, reason=untested.then(pl.lit(why)))
    judged, _ = with_verdict(tested, false_discovery, differ=False)
    ratio = detectable_by_trials(informative, _threshold(judged, false_discovery))
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
            *(pl.col("failed").sum().cast(pl.Int64).alias(name) for name in ("out_count", "failures")),
            fleet=pl.col(fleet_by).first().cast(pl.String).fill_null("unknown"),
            counted=pl.col("counts").sum().cast(pl.Int64),
            exposure_s=pl.col("duration_s").sum(),
        )
        .sort("node")
    )
    nodes = nodes.with_columns(window_failures=pl.col("failures").sum(), attributed_failures=pl.col("failures").sum())
    return _judged_by_exposure(nodes, "component", false_discovery, None)


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
    # A user is a number of 32 bits, which leaves room for some millions of fleets over a year.
    days = _days(runs.length_s)
    stratum = ((fleet[node[kept]] << 32) + user[kept]) * days + day[kept]
    before, after = (count[runs.attempt[trials[kept]]] for count in runs.order)
    return pl.DataFrame(
        {"node": node[kept], "failed": failed[kept], "stratum": stratum, "before": before, "after": after}
    )


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


def informative_trials(trials: pl.LazyFrame, chances: pl.DataFrame) -> pl.DataFrame:
    """node, trials, counted, chances (ascending) of the nodes with trials in a stratum of `chances`; by node.

    trials: node, stratum, before, after, failed (Boolean), all of a node, which is at most once in a stratum. chances:
    of all nodes' trials (`chances_of`).
    """
    return (
        trials.join(chances.lazy(), on=["stratum", "before", "after"])
        .collect(engine="streaming")
        .group_by("node")
        .agg(
            trials=pl.len().cast(pl.Int64),
            counted=pl.col("failed").sum().cast(pl.Int64),
            # In order of size, so that the sum does not depend on the rows' order.
            chances=pl.col("chance").sort(),
        )
        .sort("node")
    )


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
    """The fleet's mean time to failure with and without its lemons: LEMON_EFFECT, two rows.

    whole, first, second: lemon tables of the whole window and of its halves. Picked and measured on the same window,
    lemons look worse than they are, since bad luck is part of why they were picked; picked on the first half and
    measured on the second they show what pulling them would have brought. mttf_s: node time per failure of its own
    (`failures`), with Garwood's 95% CI and one clustered by node; mttf_ratio: without over with. Blank where
    there is no lemon or no failure, and `reason` says why.
    """
    rows = []
    for picked_on, measured_on, picked, measured in ((WHOLE, WHOLE, whole, whole), (FIRST, SECOND, first, second)):
        lemons = picked.filter(pl.col("lemon").fill_null(False))["node"]
        rest = measured.filter(~pl.col("node").is_in(lemons.implode()))
        row = {"picked_on": picked_on, "measured_on": measured_on, "nodes": measured.height, "lemons": lemons.len()}
        row |= _mean_time(measured, "")
        if lemons.is_empty():
            row["reason"] = f"no node is significant in the {picked_on}"
        elif rest.is_empty():
            row["reason"] = "no node is left"
        else:
            row |= _mean_time(rest, "_without")
            if row["mttf_s"] and row.get("mttf_without_s"):
                row["mttf_ratio"] = row["mttf_without_s"] / row["mttf_s"]
            else:
                row["reason"] = "no failure is left to measure a mean by"
        rows.append(row)
    return LEMON_EFFECT.frame(rows)


def _days(length_s: int) -> int:
    return length_s // SECONDS_A_DAY + 1


def _over(count: pl.Expr, of: pl.Expr) -> pl.Expr:
    return pl.when(of > 0).then(count / of)


def _no_exposure_test() -> pl.Expr:
    exposure_s = pl.col("exposure_s")
    reasons = {
        "no time at risk is known": exposure_s == 0,
        "no other node of its fleet to compare it with": exposure_s == exposure_s.sum().over("fleet"),
        "no failure in its fleet": pl.col("p_value").is_null(),
        "no failure in the rest of its fleet: lower limit of the ratio only": pl.col("rate_ratio").is_null(),
    }
    return choose_text(reasons)


def _judged_by_exposure(
    nodes: pl.DataFrame, basis: str, false_discovery: float, window: tuple[int, int] | None
) -> pl.DataFrame:
    tested = compared_by_exposure(nodes).with_columns(reason=_no_exposure_test(), basis=pl.lit(basis))
    judged, ordinary = with_verdict(tested, false_discovery)
    return _in_form(with_power(with_posterior(judged), _threshold(judged, false_discovery), ordinary), window)


def with_blame(nodes: pl.DataFrame, shared: pl.DataFrame) -> pl.DataFrame:
    """LEMON_NODES with likely_failures and likely_ratio of the nodes of shared failures; shared: attempt and node."""
    if shared.is_empty():
        return nodes
    rows = shared.join(nodes.select("node").with_row_index("place"), on="node").sort("attempt", "place")
    attempt, place = (rows[name].rank("dense").to_numpy() - 1 for name in ("attempt", "place"))
    mine = nodes.with_row_index("place").filter(pl.col("place").is_in(rows["place"].unique().implode()))
    uniform = np.bincount(place, 1 / np.bincount(attempt)[attempt], mine.height)
    extra = nodes.join(mine.select("node", uniform=uniform), on="node", how="left", maintain_order="left")
    every = (pl.col("counted").fill_null(0) + pl.col("uniform").fill_null(0)).sum().over("fleet")
    expected = every * pl.col("exposure_s") / pl.col("exposure_s").sum().over("fleet")
    extra = extra.select("node", expected_all=expected.fill_nan(0)).join(mine.select("node"), on="node", how="semi")
    counted = mine["counted"].fill_null(0).to_numpy()
    failures, ratio = blamed(attempt, place, counted, extra["expected_all"].to_numpy())
    found = mine.select("node", likely_failures=pl.Series(failures), likely_ratio=pl.Series(ratio))
    found = nodes.drop("likely_failures", "likely_ratio").join(found, on="node", how="left", maintain_order="left")
    return found.select(list(LEMON_NODES.columns))


def with_verdict(
    tested: pl.DataFrame, false_discovery: float, differ: bool = True
) -> tuple[pl.DataFrame, Ordinary | None]:
    """The nodes with q_value, p_spread, q_spread, ordinary_cv, ordinary_expected and lemon; and what ordinary ones are.

    A lemon fails more than chance explains (p_value), and more than ordinary nodes do if they `differ`: p_spread is the
    larger of both p-values.
    """
    # NaN where a node has no test.
    p_values, counted, expected = (tested[name].to_numpy().astype(float) for name in ("p_value", "counted", "expected"))
    is_tested, p_spread, ordinary, cv, level = ~np.isnan(p_values), p_values, None, np.nan, np.nan
    if differ and is_tested.any():
        ordinary = ordinary_nodes(counted[is_tested], expected[is_tested])
        p_spread, cv, level = np.maximum(p_values, ordinary.tail(counted, expected)), ordinary.cv, ordinary.level
    columns = {
        "q_value": benjamini_hochberg(p_values),
        "p_spread": p_spread,
        "q_spread": benjamini_hochberg(p_spread),
        "ordinary_cv": np.where(is_tested, cv, np.nan),
        "ordinary_expected": level * expected,
    }
    judged = tested.with_columns(pl.Series(name, values).fill_nan(None) for name, values in columns.items())
    return judged.with_columns(lemon=pl.col("q_spread") <= false_discovery), ordinary


def _threshold(judged: pl.DataFrame, false_discovery: float) -> float:
    return threshold_of_next(judged["p_spread"], judged["lemon"], false_discovery)


def _in_form(judged: pl.DataFrame, window: tuple[int, int] | None) -> pl.DataFrame:
    """The judged nodes with rates, lemons first, in the form of the contract."""
    fleet = {name: pl.col(name).sum().over("fleet") for name in ("failures", "exposure_s")}
    low, high = window or (None, None)
    per_1000 = 1000 * SECONDS_A_DAY
    table = judged.with_columns(
        failures_per_1000_node_days=_over(pl.col("failures") * per_1000, pl.col("exposure_s")),
        fleet_failures_per_1000_node_days=_over(fleet["failures"] * per_1000, fleet["exposure_s"]),
        window_from_s=pl.lit(low, dtype=pl.Int64),
        window_to_s=pl.lit(high, dtype=pl.Int64),
        attributed_share=_over(pl.col("attributed_failures"), pl.col("window_failures")),
    ).sort("lemon", "p_value", "node", descending=[True, False, False], nulls_last=True)
    return conform(table, LEMON_NODES.schema).select(list(LEMON_NODES.columns))


def _mean_time(nodes: pl.DataFrame, suffix: str) -> dict:
    failures, exposure_s = int(nodes["failures"].sum()), int(nodes["exposure_s"].sum())
    row = {f"failures{suffix}": failures, f"exposure{suffix}_s": exposure_s, f"mttf{suffix}_s": None}
    if exposure_s == 0:
        return row
    low, high = garwood_interval(exposure_s, failures, CONFIDENCE)
    mean = exposure_s / failures if failures else None
    row |= {f"mttf{suffix}_s": mean, f"ci_low{suffix}_s": low, f"ci_high{suffix}_s": high}
    return row | _clustered(nodes.filter(pl.col("exposure_s") > 0), suffix)


def _clustered(nodes: pl.DataFrame, suffix: str) -> dict:
    """The interval that holds when nodes differ, each of them a cluster that counts by its time."""
    failures, exposure_s = (nodes[name].to_numpy().astype(float) for name in ("failures", "exposure_s"))
    clusters = Clusters(np.zeros(nodes.height, np.int64), exposure_s, 1)
    ends = clusters.ratio(exposure_s, failures, CONFIDENCE, both=True)
    limits = {
        f"ci_{end}_clustered{suffix}_s": float(limit[0]) for end, limit in zip(("low", "high"), ends[:2], strict=True)
    }
    found = {name: limit for name, limit in limits.items() if np.isfinite(limit)}
    return found | ({} if suffix else {"cluster_by": "node", "clusters": float(clusters.effective[0])})
