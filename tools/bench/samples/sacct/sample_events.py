"""Draw the node events of the Slurm sample: what `sacctmgr show event` prints of the simulated nodes and runs.

A node that fails is down as long as in the simulation. It is first `Not responding`, then has the reason that somebody
found; or a health check drains it. While a node is idle, there are also drains by people, planned maintenance, reboots,
and one burst: a rack's switch takes several nodes down within a minute. One cold start of the controller marks every
node unknown for some seconds. One change of the cluster's resources closes and resends all open rows. Outages at the
end are open.

The random stream is separate: these draws do not change the dumps of jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from samples.draws import QuantileFunction, Random, round_to_int
from samples.sacct.sample_cluster import Failure, Run

NODE_COLUMNS = ("Cluster", "NodeName", "TimeStart", "TimeEnd", "State", "StateRaw", "Reason", "User")
CLUSTER_COLUMNS = ("Cluster", "Cluster Nodes", "TimeStart", "TimeEnd", "TRES", "Reason")
MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400
RAW = {"DOWN*": 2049, "DOWN": 1, "DRAIN": 514, "MAINT": 32_770, "BOOT^": 1_048_578, "UNK": 0}
SLURM, ADMIN = "slurm(64030)", "root(0)"
NODES_A_RACK = 16
Gap = tuple[int, int]
Event = tuple[int, int, str, str]  # time, node, code, severity

FINDINGS = {
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
# Per mille of the failed nodes: somebody writes the finding; or the node comes back by itself.
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
    """An outage of a node and the rows that describe it; the last row lasts to end_s."""

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
    events: Sequence[Event],
    nodes: int,
    first_s: int,
    end_s: int,
) -> list[Outage]:
    """Draw all outages of nodes, by start and node; outages of one node do not touch.

    An outage that lasts beyond end_s is still open. No run is on a node during its outage.
    """
    outages = _failure_outages(rng, failures, events)
    idle = _idle_gaps(runs, outages, nodes, first_s, end_s)
    outages += (burst := _rack_outages(rng, idle, nodes, first_s + BURST_AFTER_S))
    idle = _remove_used_gaps(idle, burst)
    for reasons, share, state, planned in (
        (DRAINED, DRAINS_PER_NODE, "DRAIN", False),
        (MAINTAINED, MAINTENANCE_PER_NODE, "MAINT", True),
        (("reboot issued",), REBOOTS_PER_NODE, "BOOT^", True),
    ):
        count = max(3, int(share * nodes))
        new_outages = _draw_idle_outages(rng, idle, count, reasons, state, planned)
        outages, idle = outages + new_outages, _remove_used_gaps(idle, new_outages)
    open_outages = [outage for outage in outages if outage.end_s >= end_s]
    idle_at_end = [(node, start) for node, gaps in enumerate(idle) for start, until in gaps if until == end_s]
    for node, start in idle_at_end[: max(0, OPEN_AT_END - len(open_outages))]:
        start_s = max(start + MINUTE_S, end_s - 5 * HOUR_S)
        row = Row(start_s, "DOWN*", "Not responding", SLURM)
        outages.append(Outage(node, end_s + DAY_S, (row,)))
    visible = [replace(outage, rows=tuple(row for row in outage.rows if row.start_s < end_s)) for outage in outages]
    return sorted(visible, key=lambda outage: (outage.start_s, outage.node))


def _failure_outages(rng: Random, failures: Sequence[Failure], events: Sequence[Event]) -> list[Outage]:
    """Make an outage from each failure of a node that was up, as in the simulated cluster."""
    up_s: dict[int, int] = {}
    codes: dict[int, list[tuple[int, str]]] = {}
    for second, node, code, severity in events:
        if severity == "high":
            codes.setdefault(node, []).append((second, code))
    outages = []
    for failure in failures:
        if failure.at_s < up_s.get(failure.node, 0):
            continue
        end_s = up_s[failure.node] = failure.at_s + failure.out_s
        near = [code for second, code in codes.get(failure.node, []) if abs(second - failure.at_s) <= 10 * MINUTE_S]
        code = near[0] if near else list(FINDINGS)[int(rng.integers(len(FINDINGS)))]
        gpu, later_s = int(rng.integers(8)), failure.at_s + int(rng.integers(5, 25)) * MINUTE_S
        draw = int(rng.integers(1_000))
        if failure.state == "FAILED":
            rows = [Row(failure.at_s, "DRAIN", CHECKED.format(code=code, gpu=gpu), ADMIN)]
        else:
            rows = [Row(failure.at_s, "DOWN*", "Not responding", SLURM)]
        if draw < FOUND_PER_MILLE:
            rows.append(Row(later_s, "DRAIN", FINDINGS[code].format(gpu=gpu), ADMIN))
        elif draw < FOUND_PER_MILLE + REBOOTED_PER_MILLE and failure.state != "FAILED":
            rows.append(Row(later_s, "DOWN", "Node unexpectedly rebooted", SLURM))
        outages.append(Outage(failure.node, end_s, tuple(rows)))
    return outages


def _idle_gaps(runs: Sequence[Run], outages: Sequence[Outage], nodes: int, first_s: int, end_s: int) -> list[list[Gap]]:
    """Return the times of each node in which it was up and nothing ran on it: (start, end)."""
    busy: list[list[Gap]] = [[(end_s, end_s)] for _ in range(nodes)]
    for run in runs:
        for node in run.nodes if run.start_s is not None else ():
            busy[node].append((run.start_s, end_s if run.end_s is None else run.end_s))
    for outage in outages:
        busy[outage.node].append((outage.start_s, min(outage.end_s, end_s)))
    idle = []
    for periods in busy:
        gaps, free_s = [], first_s
        for start_s, until_s in sorted(periods):
            if start_s > free_s:
                gaps.append((free_s, start_s))
            free_s = max(free_s, until_s)
        idle.append(gaps)
    return idle


def _remove_used_gaps(idle: list[list[Gap]], outages: Sequence[Outage]) -> list[list[Gap]]:
    """Return the idle times without those in which these outages began."""
    starts: dict[int, list[int]] = {}
    for outage in outages:
        starts.setdefault(outage.node, []).append(outage.start_s)
    return [
        [gap for gap in gaps if not any(gap[0] <= start_s < gap[1] for start_s in starts.get(node, ()))]
        for node, gaps in enumerate(idle)
    ]


def _draw_idle_outages(
    rng: Random, idle: list[list[Gap]], count: int, reasons: Sequence[str], state: str, planned: bool
) -> list[Outage]:
    """Draw up to `count` outages by a person or by Slurm, one per idle time, ended before the next job starts."""
    gaps = [(node, *gap) for node, gaps in enumerate(idle) for gap in gaps if gap[1] - gap[0] > HOUR_S]
    picked = sorted(rng.permutation(len(gaps))[:count].tolist())
    lengths = round_to_int(QuantileFunction(DRAIN_QUANTILES_S)(rng.random(len(picked))))
    outages = []
    for index, length_s in zip(picked, lengths.tolist(), strict=True):
        node, start_s, until_s = gaps[index]
        start_s += MINUTE_S + int(rng.integers((until_s - start_s) // 2))
        reason = reasons[int(rng.integers(len(reasons)))]
        limit_s = 5 * MINUTE_S if state == "BOOT^" else length_s
        row = Row(start_s, state, reason, SLURM if state == "BOOT^" else ADMIN)
        outages.append(Outage(node, min(start_s + limit_s, until_s - MINUTE_S), (row,), planned))
    return outages


def _rack_outages(rng: Random, idle: list[list[Gap]], nodes: int, after_s: int) -> list[Outage]:
    """Let the switch of a rack fail when most of its nodes are idle; no outage if fewer than three ever are."""
    long_gaps = [gap for gaps in idle for gap in gaps if gap[0] > after_s and gap[1] - gap[0] > 2 * BURST_S]
    starts = sorted(gap[0] + 10 * MINUTE_S for gap in long_gaps)
    best: list[int] = []
    start_of_burst_s = 0
    for start_s in starts[:: 1 + len(starts) // 200]:
        free = [any(gap[0] < start_s and start_s + 2 * BURST_S < gap[1] for gap in gaps) for gaps in idle]
        for rack in range(0, nodes, NODES_A_RACK):
            rack_nodes = [node for node in range(rack, min(nodes, rack + NODES_A_RACK)) if free[node]]
            if len(rack_nodes) > len(best):
                best, start_of_burst_s = rack_nodes, start_s
    outages = []
    for node in best[:BURST_NODES] if len(best) > 2 else ():
        start_s, duration_s = start_of_burst_s + int(rng.integers(50)), BURST_S // 2 + int(rng.integers(BURST_S // 2))
        later_s = start_s + int(rng.integers(5, 25)) * MINUTE_S
        rows = Row(start_s, "DOWN*", "Not responding", SLURM), Row(later_s, "DOWN*", "rack switch failed", ADMIN)
        outages.append(Outage(node, start_s + duration_s, rows))
    return outages


# ---- dumps ----


def dumps(
    outages: Sequence[Outage], names: Sequence[str], all_nodes: str, first_s: int, end_s: int
) -> dict[str, list[str]]:
    """Return the lines of both dumps printed at end_s: node_events, and cluster_events from first_s on.

    names: by node; all_nodes: the same as a hostlist.
    """
    resent_s = resent_at_s(outages, first_s)
    cold_s = cold_start_s(outages, first_s)
    rows = [(cold_s, cold_s + COLD_S, node, "UNK", "cold-start", SLURM) for node in range(len(names))]
    for outage in outages:
        row_ends = [*(row.start_s for row in outage.rows[1:]), outage.end_s]
        for row, until_s in zip(outage.rows, row_ends, strict=True):
            cuts = [at_s for at_s in (cold_s, cold_s + COLD_S, resent_s) if row.start_s < at_s < until_s]
            for start_s, stop_s in pairwise([row.start_s, *cuts, until_s]):
                if start_s != cold_s:  # then the controller writes cold-start for every node
                    rows.append((start_s, stop_s, outage.node, row.state, row.reason, row.user))
    rows = sorted(row for row in rows if row[0] < end_s)
    lines = [
        f"sim|{names[node]}|{start_s}|{_end(stop_s, end_s)}|{state}|{RAW[state]}|{reason}|{user}"
        for start_s, stop_s, node, state, reason, user in rows
    ]
    tres = f"cpu={96 * len(names)},gres/gpu={8 * len(names)},node={len(names)}"
    registered = "Cluster Registered TRES"
    spans = [
        (all_nodes, first_s, cold_s - AWAY_S, tres, registered),
        (all_nodes, cold_s - AWAY_S, cold_s, "", "slurmctld disconnect"),
        (all_nodes, cold_s, resent_s, tres, registered),
        (all_nodes, resent_s, end_s, f"billing={len(names)},{tres}", registered),
    ]
    return {
        "node_events": ["|".join(NODE_COLUMNS), *lines],
        "cluster_events": [
            "|".join(CLUSTER_COLUMNS),
            *(f"sim|{nodes}|{start}|{_end(stop, end_s)}|{tres}|{note}" for nodes, start, stop, tres, note in spans),
        ],
    }


def cold_start_s(outages: Sequence[Outage], first_s: int) -> int:
    """Return the time of the controller's cold start, at which no node goes down or comes back."""
    times = [time_s for outage in outages for time_s in (*(row.start_s for row in outage.rows), outage.end_s)]
    at_s = first_s + COLD_START_DAY * DAY_S
    while any(at_s - AWAY_S <= time_s <= at_s + 2 * COLD_S for time_s in times):
        at_s += AWAY_S
    return at_s


def resent_at_s(outages: Sequence[Outage], first_s: int) -> int:
    """Return the time at which the cluster's resources change: some nodes are down, if that occurs within a week."""
    earliest_s = first_s + RESENT_DAY * DAY_S
    times = range(earliest_s, earliest_s + 7 * DAY_S, HOUR_S)
    down = (sum(outage.start_s < time_s < outage.end_s for outage in outages) for time_s in times)
    return next((time_s for time_s, nodes in zip(times, down, strict=True) if nodes >= RESENT_NODES), earliest_s)


def _end(stop_s: int, end_s: int) -> str:
    return "Unknown" if stop_s >= end_s else str(stop_s)
