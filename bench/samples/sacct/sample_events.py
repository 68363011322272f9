"""The node events of the Slurm sample: what `sacctmgr show event` prints of the nodes and runs that were simulated.

A node that fails is down for as long as the simulated one: `Not responding`, in the same second followed by what was
found where somebody looked, or drained by a health check. Beside these, in times in which a node stood idle: drains by
people, planned maintenance, reboots, and one burst (a rack's switch takes several nodes down within a minute). The
controller is started cold once, which writes every node unknown for some seconds. The resources of the cluster change
once, at which all open rows are closed and sent again. Whoever is down at the end is open.

A random stream of its own: the dumps of jobs do not change with what is drawn here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from samples.draws import QuantileFunction, Random, whole
from samples.sacct.sample_cluster import Failure, Run

NODE_COLUMNS = ("Cluster", "NodeName", "TimeStart", "TimeEnd", "State", "StateRaw", "Reason", "User")
CLUSTER_COLUMNS = ("Cluster", "Cluster Nodes", "TimeStart", "TimeEnd", "TRES", "Reason")
MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400
RAW = {"DOWN*": 2049, "DOWN": 1, "DRAIN": 514, "MAINT": 32_770, "BOOT^": 1_048_578, "UNK": 0}
SLURM, ADMIN = "slurm(64030)", "root(0)"
NODES_A_RACK = 16
Gap = tuple[int, int]

FOUND = {
    "GPU_ECC": "GPU {gpu} uncorrectable ECC errors, to be replaced",
    "XID79": "GPU {gpu} has fallen off the bus (Xid 79)",
    "NVLINK": "NVLink errors on GPU {gpu}",
    "PCIE": "PCIe link of GPU {gpu} degraded | reseated",
    "IB_LINK": "IB link down, cable swapped",
    "FS_MOUNT": "file system not mounted",
}
CHECKED = "NHC: {code} failed on GPU {gpu}"
DRAINED = ("investigating slow all-reduce", "fan noise, ticket 4711", "user reports wrong results", "disk full")
MAINTAINED = ("planned maintenance: firmware", "scheduled kernel upgrade")
# Per mille of the failed nodes: somebody writes what was found; or the node comes back by itself.
FOUND_PER_MILLE, REBOOTED_PER_MILLE = 600, 250
DRAINS_PER_NODE, MAINTENANCE_PER_NODE, REBOOTS_PER_NODE = 0.1, 0.08, 0.05
DRAIN_QUANTILES_S = {0: 900, 0.5: 3 * HOUR_S, 1: 48 * HOUR_S}
BURST_NODES, BURST_S, BURST_AFTER_S = 8, 2 * HOUR_S, 10 * DAY_S
OPEN_AT_END = 2
COLD_START_DAY, RESENT_DAY, RESENT_NODES = 17, 38, 2
AWAY_S, COLD_S = 90, 30


@dataclass(frozen=True)
class Row:
    start_s: int
    state: str
    reason: str
    user: str


@dataclass(frozen=True)
class Outage:
    """A node out of use, by the rows that tell of it; the last lasts to end_s."""

    node: int
    end_s: int
    rows: tuple[Row, ...]
    planned: bool = False

    @property
    def start_s(self) -> int:
        return self.rows[0].start_s


def outages(
    rng: Random,
    runs: Sequence[Run],
    failures: Sequence[Failure],
    events: Sequence[tuple[int, int, str, str]],
    nodes: int,
    first_s: int,
    end_s: int,
) -> list[Outage]:
    """Every time in which a node was out of use, by start and node; none touches another of its node.

    An outage that lasts beyond end_s is still open. No run is on a node meanwhile.
    """
    found = _failed(rng, failures, events)
    idle = _idle(runs, found, nodes, first_s, end_s)
    found += (burst := _burst(rng, idle, nodes, first_s + BURST_AFTER_S))
    idle = _without(idle, burst)
    for reasons, share, state, planned in (
        (DRAINED, DRAINS_PER_NODE, "DRAIN", False),
        (MAINTAINED, MAINTENANCE_PER_NODE, "MAINT", True),
        (("reboot issued",), REBOOTS_PER_NODE, "BOOT^", True),
    ):
        asked = max(3, int(share * nodes))
        drawn = _in_idle_times(rng, idle, asked, reasons, state, planned)
        found, idle = found + drawn, _without(idle, drawn)
    still = [outage for outage in found if outage.end_s >= end_s]
    at_end = [(node, start) for node, gaps in enumerate(idle) for start, until in gaps if until == end_s]
    for node, start in at_end[: max(0, OPEN_AT_END - len(still))]:
        since = max(start + MINUTE_S, end_s - 5 * HOUR_S)
        row = Row(since, "DOWN*", "Not responding", SLURM)
        found.append(Outage(node, end_s + DAY_S, (row,)))
    told = [replace(outage, rows=tuple(row for row in outage.rows if row.start_s < end_s)) for outage in found]
    return sorted(told, key=lambda outage: (outage.start_s, outage.node))


def _failed(rng: Random, failures: Sequence[Failure], events: Sequence[tuple[int, int, str, str]]) -> list[Outage]:
    """The failures of nodes that were up, as the simulated cluster takes them."""
    up_s: dict[int, int] = {}
    codes: dict[int, list[tuple[int, str]]] = {}
    for second, node, code, severity in events:
        if severity == "high":
            codes.setdefault(node, []).append((second, code))
    found = []
    for failure in failures:
        if failure.at_s < up_s.get(failure.node, 0):
            continue
        end_s = up_s[failure.node] = failure.at_s + failure.out_s
        seen = [code for second, code in codes.get(failure.node, []) if abs(second - failure.at_s) <= 10 * MINUTE_S]
        code = seen[0] if seen else list(FOUND)[int(rng.integers(len(FOUND)))]
        gpu, later_s = int(rng.integers(8)), failure.at_s + int(rng.integers(5, 25)) * MINUTE_S
        luck = int(rng.integers(1_000))
        if failure.state == "FAILED":
            rows = [Row(failure.at_s, "DRAIN", CHECKED.format(code=code, gpu=gpu), ADMIN)]
        else:
            rows = [Row(failure.at_s, "DOWN*", "Not responding", SLURM)]
        if luck < FOUND_PER_MILLE:
            rows.append(Row(later_s, "DRAIN", FOUND[code].format(gpu=gpu), ADMIN))
        elif luck < FOUND_PER_MILLE + REBOOTED_PER_MILLE and failure.state != "FAILED":
            rows.append(Row(later_s, "DOWN", "Node unexpectedly rebooted", SLURM))
        found.append(Outage(failure.node, end_s, tuple(rows)))
    return found


def _idle(runs: Sequence[Run], found: Sequence[Outage], nodes: int, first_s: int, end_s: int) -> list[list[Gap]]:
    """Of each node the times in which nothing ran on it and it was up: (start, end)."""
    busy: list[list[Gap]] = [[(end_s, end_s)] for _ in range(nodes)]
    for run in runs:
        for node in run.nodes if run.start_s is not None else ():
            busy[node].append((run.start_s, end_s if run.end_s is None else run.end_s))
    for outage in found:
        busy[outage.node].append((outage.start_s, min(outage.end_s, end_s)))
    idle = []
    for own in busy:
        gaps, free_s = [], first_s
        for start_s, until_s in sorted(own):
            if start_s > free_s:
                gaps.append((free_s, start_s))
            free_s = max(free_s, until_s)
        idle.append(gaps)
    return idle


def _without(idle: list[list[Gap]], taken: Sequence[Outage]) -> list[list[Gap]]:
    """The idle times without those in which these outages began."""
    starts: dict[int, list[int]] = {}
    for outage in taken:
        starts.setdefault(outage.node, []).append(outage.start_s)
    return [
        [gap for gap in gaps if not any(gap[0] <= start_s < gap[1] for start_s in starts.get(node, ()))]
        for node, gaps in enumerate(idle)
    ]


def _in_idle_times(
    rng: Random, idle: list[list[Gap]], asked: int, reasons: Sequence[str], state: str, planned: bool
) -> list[Outage]:
    """About so many outages by a person or by Slurm, one an idle time, ended before the next job starts."""
    gaps = [(node, *gap) for node, gaps in enumerate(idle) for gap in gaps if gap[1] - gap[0] > HOUR_S]
    chosen = sorted(rng.permutation(len(gaps))[:asked].tolist())
    lengths = whole(QuantileFunction(DRAIN_QUANTILES_S)(rng.random(len(chosen))))
    found = []
    for number, length_s in zip(chosen, lengths.tolist(), strict=True):
        node, start_s, until_s = gaps[number]
        start_s += MINUTE_S + int(rng.integers((until_s - start_s) // 2))
        reason = reasons[int(rng.integers(len(reasons)))]
        lasts_s = 5 * MINUTE_S if state == "BOOT^" else length_s
        row = Row(start_s, state, reason, SLURM if state == "BOOT^" else ADMIN)
        found.append(Outage(node, min(start_s + lasts_s, until_s - MINUTE_S), (row,), planned))
    return found


def _burst(rng: Random, idle: list[list[Gap]], nodes: int, after_s: int) -> list[Outage]:
    """The switch of a rack fails, when most nodes of the rack stand idle; nothing where fewer than three ever do."""
    long = [gap for gaps in idle for gap in gaps if gap[0] > after_s and gap[1] - gap[0] > 2 * BURST_S]
    starts = sorted(gap[0] + 10 * MINUTE_S for gap in long)
    best: list[int] = []
    at_s = 0
    for start_s in starts[:: 1 + len(starts) // 200]:
        free = [any(gap[0] < start_s and start_s + 2 * BURST_S < gap[1] for gap in gaps) for gaps in idle]
        for rack in range(0, nodes, NODES_A_RACK):
            there = [node for node in range(rack, min(nodes, rack + NODES_A_RACK)) if free[node]]
            if len(there) > len(best):
                best, at_s = there, start_s
    found = []
    for node in best[:BURST_NODES] if len(best) > 2 else ():
        start_s, lasts_s = at_s + int(rng.integers(50)), BURST_S // 2 + int(rng.integers(BURST_S // 2))
        later_s = start_s + int(rng.integers(5, 25)) * MINUTE_S
        rows = Row(start_s, "DOWN*", "Not responding", SLURM), Row(later_s, "DOWN*", "rack switch failed", ADMIN)
        found.append(Outage(node, start_s + lasts_s, rows))
    return found


# ---- dumps ----


def dumps(
    found: Sequence[Outage], names: Sequence[str], everyone: str, first_s: int, end_s: int
) -> dict[str, list[str]]:
    """The lines of the two dumps printed at end_s: node_events, and cluster_events with the nodes from first_s on.

    names: of each node. everyone: all of them, as a hostlist.
    """
    resent_s = resent_at_s(found, first_s)
    cold_s = cold_start_s(found, first_s)
    rows = [(cold_s, cold_s + COLD_S, node, "UNK", "cold-start", SLURM) for node in range(len(names))]
    for outage in found:
        ends = [*(row.start_s for row in outage.rows[1:]), outage.end_s]
        for row, until_s in zip(outage.rows, ends, strict=True):
            cuts = [at_s for at_s in (cold_s, cold_s + COLD_S, resent_s) if row.start_s < at_s < until_s]
            for start_s, stop_s in pairwise([row.start_s, *cuts, until_s]):
                if start_s != cold_s:  # the controller says cold-start of everyone
                    rows.append((start_s, stop_s, outage.node, row.state, row.reason, row.user))
    rows = sorted(row for row in rows if row[0] < end_s)
    lines = [
        f"sim|{names[node]}|{start_s}|{_end(stop_s, end_s)}|{state}|{RAW[state]}|{reason}|{user}"
        for start_s, stop_s, node, state, reason, user in rows
    ]
    tres = f"cpu={96 * len(names)},gres/gpu={8 * len(names)},node={len(names)}"
    registered = "Cluster Registered TRES"
    about = [
        (everyone, first_s, cold_s - AWAY_S, tres, registered),
        (everyone, cold_s - AWAY_S, cold_s, "", "slurmctld disconnect"),
        (everyone, cold_s, resent_s, tres, registered),
        (everyone, resent_s, end_s, f"billing={len(names)},{tres}", registered),
    ]
    return {
        "node_events": ["|".join(NODE_COLUMNS), *lines],
        "cluster_events": [
            "|".join(CLUSTER_COLUMNS),
            *(f"sim|{who}|{start_s}|{_end(stop_s, end_s)}|{what}|{why}" for who, start_s, stop_s, what, why in about),
        ],
    }


def cold_start_s(found: Sequence[Outage], first_s: int) -> int:
    """When the controller is started cold: while no node goes down or comes back."""
    times = [time_s for outage in found for time_s in (*(row.start_s for row in outage.rows), outage.end_s)]
    at_s = first_s + COLD_START_DAY * DAY_S
    while any(at_s - AWAY_S <= time_s <= at_s + 2 * COLD_S for time_s in times):
        at_s += AWAY_S
    return at_s


def resent_at_s(found: Sequence[Outage], first_s: int) -> int:
    """When the resources of the cluster change: while some nodes are down, if that comes within a week."""
    earliest_s = first_s + RESENT_DAY * DAY_S
    moments = range(earliest_s, earliest_s + 7 * DAY_S, HOUR_S)
    down = (sum(outage.start_s < at_s < outage.end_s for outage in found) for at_s in moments)
    return next((at_s for at_s, nodes in zip(moments, down, strict=True) if nodes >= RESENT_NODES), earliest_s)


def _end(stop_s: int, end_s: int) -> str:
    return "Unknown" if stop_s >= end_s else str(stop_s)
