"""Simulate how often the list of nodes to drain names an ordinary node, and which bad nodes it names.

A fleet is watched for a year. The rates of ordinary nodes are equal or gamma; bad nodes fail 18 times as often. Weeks
share a factor (`coverage_weeks`), nodes may come late, and an outage may be followed by others within days.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent))

import polars as pl
from coverage_weeks import LEMON, World
from ttf.analyses.outages.list_drains.history import History
from ttf.stats.basics.benjamini_hochberg import benjamini_hochberg
from ttf.stats.nodes.excess_failures import compare_by_exposure

DAY_S, WEEK_S, WEEKS = 86_400, 7 * 86_400, 52
FALSE_DISCOVERY = 0.05
CVS, BAD_NODES = (0, 0.5, 0.71, 1), 3


@dataclass(frozen=True)
class Fleet:
    """Parameters of a simulated fleet.

    outages: per ordinary node and year; sd, ar: log SD and autocorrelation of the weeks' factors; late: share of the
    nodes that come in week 39; burst: mean outages per failure of a node, a few days apart.
    """

    nodes: int = 200
    outages: float = 1.5
    sd: float = 0.0
    ar: float = 0.0
    late: float = 0.0
    burst: float = 1.0


FLEETS = {
    "1.5 outages a node": Fleet(),
    "0.5 outages a node": Fleet(outages=0.5),
    "6 outages a node": Fleet(outages=6),
    "50 nodes": Fleet(nodes=50),
    "weeks of log SD 0.5, AR 0.8": Fleet(sd=0.5, ar=0.8),
    "the same, half of the nodes come late": Fleet(sd=0.5, ar=0.8, late=0.5),
    "in bursts of 2 on a node": Fleet(burst=2),
}


def simulate_history(fleet: Fleet, cv: float, bad: int, rng: np.random.Generator) -> History:
    """Draw a fleet; the first `bad` nodes are bad."""
    rates = rng.gamma(cv**-2, cv**2, fleet.nodes) if cv else np.ones(fleet.nodes)
    rates[:bad] = LEMON
    first_week = np.where(rng.random(fleet.nodes) < fleet.late, 39, 0)
    factors = World(fleet.sd, fleet.ar, WEEKS).draw_factors(rng, 1)[0] * (np.arange(WEEKS) >= first_week[:, None])
    counts = rng.poisson(fleet.outages / fleet.burst / WEEKS * rates[:, None] * factors)
    node, week = (np.repeat(index, counts[counts > 0]) for index in np.nonzero(counts))
    start = week * WEEK_S + rng.integers(0, WEEK_S, node.size)
    repeats = rng.geometric(1 / fleet.burst, node.size)
    node, start = np.repeat(node, repeats), np.repeat(start, repeats)
    start = start + (rng.exponential(3 * DAY_S, start.size) * (fleet.burst > 1)).astype(np.int64)
    order = np.lexsort((start, node))
    node, start = node[order], start[order]
    end = np.minimum(start + rng.lognormal(np.log(DAY_S / 12), 1, node.size).astype(np.int64), WEEKS * WEEK_S)
    is_repeat = np.append(False, (node[1:] == node[:-1]) & (start[1:] - end[:-1] <= DAY_S))[: node.size]
    names = [f"n{number}" for number in range(fleet.nodes)]
    watch = np.arange(fleet.nodes), first_week * WEEK_S, np.full(fleet.nodes, WEEKS * WEEK_S)
    return History(names, ["all"] * fleet.nodes, watch, (node, start, end), (node, start, is_repeat))


def list_nodes(history: History) -> tuple[np.ndarray, np.ndarray]:
    """Return masks of the listed nodes, and of those listed if ordinary nodes were equal."""
    listed = history.compare_nodes(history.end_s, FALSE_DISCOVERY)[0]
    equal = compare_by_exposure(listed.select("fleet", "counted", "exposure_s"))["p_value"].cast(pl.Float64).to_numpy()
    return listed["listed"].to_numpy(), benjamini_hochberg(equal) <= FALSE_DISCOVERY


def rows(repetitions: int, seed: int) -> Iterator[list[str]]:
    for name, fleet in FLEETS.items():
        for cv in CVS:
            rng = np.random.default_rng(seed)
            quiet = [
                [mask.any() for mask in list_nodes(simulate_history(fleet, cv, 0, rng))] for _ in range(repetitions)
            ]
            lists = [list_nodes(simulate_history(fleet, cv, BAD_NODES, rng))[0] for _ in range(repetitions)]
            named, equal = np.mean(quiet, axis=0)
            found = np.mean([listed[:BAD_NODES].mean() for listed in lists])
            false = np.mean([listed[BAD_NODES:].sum() / max(1, listed.sum()) for listed in lists])
            any_named = np.mean([listed[BAD_NODES:].any() for listed in lists])
            yield [
                name,
                f"{cv:g}",
                f"**{named:.3f}** ({equal:.3f})",
                *(f"{share:.2f}" for share in (any_named, false, found)),
            ]
