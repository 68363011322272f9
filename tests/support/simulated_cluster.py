"""Simulate 200 nodes for 99 days, three of which fail about 18 times as often: a dump of sacct, a health log.

The three fail 9 to 12 times, the others 0.6 times on average. Each day twelve jobs run on sixteen random nodes each,
and small jobs of one GPU on the other eight: 50,000 jobs; users' own failures end a fifth. A failing node ends its
jobs as NODE_FAIL or, if a health check saw it first, FAILED; sacct does not name it. The health log names it some
minutes earlier, at times twice, and has even more false alarms at random nodes and times.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from format_tables import derive_table, raw_schemas
from memory_tables import ingested
from ttf.analyses.causes.judge_node_errors.log_records import LogRecords, make_log_records, mark_failures
from ttf.analyses.nodes.find_lemon_nodes.compute import lemon_effect, lemon_nodes
from ttf.engine.storage.partitions import Partitions
from ttf.formats.sacct import read as sacct_reader
from ttf.raw.extra_table_reader import health_events
from ttf.raw.ingest import ingest
from ttf.records.infra import attribute_to_errors, infra_durations
from ttf.records.outages.outage_records import merge_records
from ttf.records.record_contracts import NODE_ERRORS
from ttf.stats.nodes.node_runs import last_window, split_window

RULES = {"states": ["NODE_FAIL", "BOOT_FAIL"], "events": {"severities": ["high"]}}
FIRST_S, DAY = 1_735_689_600, 86_400
DAYS, NODES, JOBS = 99, 200, 50_000
WIDE, WIDE_NODES, LANES = 12, 16, 8
FAILURES, TIMES = 150, 18
FALSE_ALARMS_A_DAY = 2
USERS = 60


@dataclass(frozen=True)
class Simulated:
    """dump, events: the lines of sacct and of the health log; bad: the nodes that fail TIMES as often.

    outages: each failure of a node, as an outage of four hours that starts a minute later. ended_by: what ended each
    run of the dump before its time: node, user, or blank.
    """

    dump: pl.DataFrame
    ended_by: pl.Series
    events: pl.DataFrame
    outages: pl.DataFrame
    bad: set[str]


def simulate(seed: int, bad: int = 3) -> Simulated:
    rng = np.random.default_rng(seed)
    names = np.array([f"n{node + 1:03}" for node in range(NODES)])
    worse = rng.permutation(NODES)[:bad]
    once = FAILURES / (NODES + bad * (TIMES - 1))
    # By day and node: whether it fails, when (DAY if it does not), and whether as NODE_FAIL.
    fails = rng.random((DAYS, NODES)) < once / DAYS
    fails[:, worse] = rng.permuted(np.arange(DAYS)[:, None] < rng.integers(9, 13, bad), axis=0)
    at_s = np.where(fails, rng.integers(600, DAY - 600, fails.shape), DAY)
    is_node_fail = rng.random(fails.shape) < 0.65
    order = rng.permuted(np.tile(np.arange(NODES), (DAYS, 1)), axis=1)

    wide = order[:, : WIDE * WIDE_NODES].reshape(-1, WIDE_NODES)
    day = np.repeat(np.arange(DAYS), WIDE)
    first_failure_s = at_s[day[:, None], wide]
    failed_node_indices = wide[np.arange(len(wide)), first_failure_s.argmin(axis=1)]
    lists = [",".join(sorted(names[nodes].tolist())) for nodes in wide]
    start_s = rng.integers(0, 300, len(wide))
    rows = [
        _runs(
            rng,
            day,
            failed_node_indices,
            start_s,
            np.full(len(wide), DAY - 300),
            at_s,
            is_node_fail,
            lists,
            WIDE_NODES,
            0.1,
        )
    ]

    lane_nodes = order[:, WIDE * WIDE_NODES :]
    jobs = JOBS - len(wide)
    lanes = lane_nodes.size * LANES
    turns = -(-jobs // lanes)
    chosen = np.sort(rng.permutation(lanes * turns)[:jobs])
    lane, turn = chosen // turns, chosen % turns
    day, node = lane // (lane_nodes.shape[1] * LANES), lane_nodes.reshape(-1)[lane // LANES]
    length_s = (DAY - 600) // turns
    start_s = turn * length_s + rng.integers(0, length_s // 4, jobs)
    end_s = start_s + rng.integers(60, length_s * 3 // 4, jobs)
    rows.append(_runs(rng, day, node, start_s, end_s, at_s, is_node_fail, names[node].tolist(), 1, 0.2))

    dump = pl.concat(rows).sort("Start", "NodeList").with_columns(JobIDRaw=pl.int_range(1, pl.len() + 1))
    ended_by, dump = dump["ended_by"], dump.drop("ended_by")
    failed_day, failed = np.nonzero(fails)
    moment = FIRST_S + failed_day * DAY + at_s[fails] - rng.integers(0, 240, failed.size)
    is_repeated = rng.random(failed.size) < 0.2
    alarms = rng.poisson(FALSE_ALARMS_A_DAY * DAYS)
    events = pl.DataFrame(
        {
            "node": names[np.concatenate([failed, failed[is_repeated], rng.integers(0, NODES, alarms)])],
            "time": np.concatenate([moment, moment[is_repeated] + 5, FIRST_S + rng.integers(0, DAYS * DAY, alarms)]),
        }
    )
    codes = rng.choice(["XID79", "GPU_ECC", "IB_LINK"], events.height)
    events = events.with_columns(code=pl.Series(codes.tolist()), severity=pl.lit("high")).sort("time", "node", "code")
    down_s = FIRST_S + failed_day * DAY + at_s[fails] + 60
    down = pl.DataFrame({"unit_id": names[failed], "start_s": down_s, "end_s": down_s + 4 * 3600})
    outages, _ = merge_records("t", down.with_columns(node="unit_id"), None)
    return Simulated(dump, ended_by, events, outages, set(names[worse].tolist()))


def _runs(rng, day, failing_node, start_s, end_s, at_s, is_node_fail, lists, nodes, by_user) -> pl.DataFrame:
    """Return the runs planned from start_s to end_s of a day; users' own failures end a share `by_user`.

    failing_node: the node whose failure ends a run. No run starts on a failed node.
    """
    # Users' own failures are uniform over the run.
    by_user = rng.random(day.size) < by_user
    end_s = np.where(by_user, start_s + 30 + ((end_s - start_s - 30) * rng.random(day.size)).astype(np.int64), end_s)
    down_s = at_s[day, failing_node]
    by_node = down_s < end_s
    state = np.where(
        by_node,
        np.where(is_node_fail[day, failing_node], "NODE_FAIL", "FAILED"),
        np.where(by_user, "FAILED", "COMPLETED"),
    )
    gpus = 8 * nodes if nodes > 1 else 1
    frame = pl.DataFrame(
        {
            "User": [f"user{user}" for user in rng.integers(0, USERS, day.size).tolist()],
            "State": state.tolist(),
            "Submit": FIRST_S + day * DAY + start_s,
            "Start": FIRST_S + day * DAY + start_s,
            "End": FIRST_S + day * DAY + np.where(by_node, down_s, end_s),
            "NodeList": lists,
            "ended_by": np.where(by_node, "node", np.where(by_user, "user", "")).tolist(),
        }
    )
    records = frame.with_columns(
        NNodes=pl.lit(nodes), AllocTRES=pl.lit(f"gres/gpu:a100={gpus},gres/gpu={gpus},node={nodes}")
    )
    return records.filter(pl.Series(down_s > start_s))


APPLICATION_CODES, QUIET_CODE = ("XID 13", "XID 31", "XID 43"), "XID 63"


def simulate_node_errors(cluster: Simulated, seed: int, by_application: float = 0.3) -> pl.DataFrame:
    """Return the errors of the nodes' logs: the health events, three codes of applications, and one without effect.

    A share `by_application` of the users' failures writes an application code on one of its nodes up to 3 s before.
    """
    rng = np.random.default_rng([seed, 38])
    ends = cluster.dump.filter(cluster.ended_by == "user").select("NodeList", "End")
    ends = ends.filter(pl.Series(rng.random(ends.height) < by_application))
    node_lists, draws = ends["NodeList"].str.split(","), rng.random(ends.height)
    nodes = [names[int(draw * len(names))] for names, draw in zip(node_lists, draws, strict=True)]
    crashes = pl.DataFrame({"node": nodes, "time": ends["End"] - pl.Series(rng.integers(0, 4, ends.height))})
    crashes = crashes.with_columns(code=pl.Series(rng.choice(APPLICATION_CODES, ends.height).tolist()))
    quiet = rng.poisson(400)
    names = [f"n{node + 1:03}" for node in rng.integers(0, NODES, quiet)]
    moments = FIRST_S + rng.integers(0, DAYS * DAY, quiet)
    noise = pl.DataFrame({"node": names, "time": moments, "code": [QUIET_CODE] * quiet})
    rows = pl.concat([cluster.events.select("node", "time", "code"), crashes, noise])
    # Repeats within a minute are one error.
    rows = rows.sort("node", "code", "time")
    is_new = (pl.col("time") - pl.col("time").shift(1).over("node", "code") > 60).fill_null(True)
    return NODE_ERRORS.conform(
        rows.filter(is_new)
        .with_columns(
            gpu=pl.lit(None, pl.String),
            component=pl.when(pl.col("code") == "IB_LINK").then(pl.lit("Network")).otherwise(pl.lit("GPU")),
            severity=pl.lit("error"),
            application=pl.col("code").is_in(APPLICATION_CODES),
            time_s="time",
            last_s="time",
            lines=1,
            at_boot=False,
        )
        .sort("time_s", "node", "code")
    )


def make_cluster_records(cluster: Simulated, errors: pl.DataFrame, nodes_with_log: int = NODES) -> LogRecords:
    """Return the records of the cluster with these errors, without the detour over a dump of sacct."""
    is_infra = cluster.dump["State"] == "NODE_FAIL"
    attempts = cluster.dump.select(
        user="User",
        outcome=pl.col("State").replace_strict({"COMPLETED": "success"}, default="failure"),
        end_s="End",
        runtime_s=pl.col("End") - pl.col("Start"),
        gpu_milli=1000 * pl.when(pl.col("NNodes") > 1).then(8 * pl.col("NNodes")).otherwise(1),
        nodes="NNodes",
    ).with_columns(infra_failure=is_infra)
    runs = cluster.dump.select(start_s="Start", end_s="End", node=pl.col("NodeList").str.split(","))
    placements = runs.with_row_index("attempt_id").explode("node").lazy()
    names = [f"n{node + 1:03}" for node in range(nodes_with_log)]
    watch = pl.DataFrame({"node": names, "start_s": [FIRST_S] * len(names)})
    watch = watch.with_columns(end_s=pl.col("start_s") + DAYS * DAY, clock_offset_s=pl.lit(None, pl.Int64))
    nodes = pl.DataFrame({"node": names}).with_columns(gpu_type=pl.lit("a100"), gpu_count=8)
    errors = errors.filter(pl.col("node").is_in(names))
    return make_log_records(errors, watch, mark_failures(attempts), placements, nodes, 300)


def judge_cluster(
    cluster: Simulated,
    folder: Path,
    has_health_log: bool,
    has_outages: bool = False,
    attributions: pl.DataFrame | None = None,
) -> list[pl.DataFrame]:
    """Compute lemon_nodes and lemon_effect of the dump, with the health log, outages or attributions if asked."""
    folder.mkdir(parents=True, exist_ok=True)
    cluster.dump.write_csv(folder / "dump.txt", separator="|")
    schemas = raw_schemas("sacct")
    ingest({"record": [folder / "dump.txt"]}, schemas, folder, 0.0, sacct_reader.READERS)
    raw = {"record": pl.scan_parquet(folder / "record.parquet")}
    events = None
    if has_health_log:
        cluster.events.write_csv(folder / "events.csv")
        ingested("health_event", folder / "events.csv", folder)
        events = health_events(folder)
    jobs = derive_table("sacct", "jobs", raw).with_columns(trace=pl.lit("t"))
    outages = cluster.outages if has_outages else None
    errors = None if attributions is None else attribute_to_errors(attributions)
    attempts = derive_table("sacct", "attempts", raw)
    durations = infra_durations(jobs, attempts, RULES, events, outages, errors=errors).lazy()
    placements = derive_table("sacct", "placements", raw).lazy()
    window = last_window(placements, 365)
    node_results = lemon_nodes(placements, durations, [window, *split_window(window)], 0.05, Partitions(folder))
    return [node_results[0], lemon_effect(*node_results)]


# What the kernel writes for each code of `simulate_node_errors`.
KERNEL_LINES = {
    "XID79": "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    "GPU_ECC": "NVRM: Xid (PCI:0000:3b:00): 48, pid='<unknown>', name=<unknown>, DBE (double bit error) ECC Error",
    "IB_LINK": "mlx5_core 0000:12:00.0 ib0: Link down",
    "XID 13": "NVRM: Xid (PCI:0000:5e:00): 13, pid=4711, name=python, Graphics Exception: ESR 0x404490=0x80000001",
    "XID 31": "NVRM: Xid (PCI:0000:5e:00): 31, pid=4711, name=python, Ch 00000008, MMU Fault: ENGINE GRAPHICS",
    "XID 43": "NVRM: Xid (PCI:0000:5e:00): 43, pid=4711, name=python, Ch 00000010",
    "XID 63": "NVRM: Xid (PCI:0000:86:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row marked",
}
QUIET_LINE = "usb 1-1: new high-speed USB device number 2 using xhci_hcd"


def write_node_logs(errors: pl.DataFrame, folder: Path) -> None:
    """Write the kernel's journal of each node, a file each, with a harmless line every five days."""
    folder.mkdir(parents=True)
    names = [f"n{node + 1:03}" for node in range(NODES)]
    quiet = pl.DataFrame({"node": names, "time_s": [list(range(FIRST_S, FIRST_S + DAYS * DAY + 1, 5 * DAY))] * NODES})
    quiet = quiet.explode("time_s").with_columns(message=pl.lit(QUIET_LINE))
    picked = errors.select("node", "time_s", message=pl.col("code").replace_strict(KERNEL_LINES))
    time = pl.from_epoch("time_s").dt.strftime("%Y-%m-%dT%H:%M:%S+00:00")
    lines = pl.concat([quiet, picked]).sort("node", "time_s", "message")
    lines = lines.select("node", line=pl.format("{} {} kernel: {}", time, "node", "message"))
    for (node,), rows in lines.group_by("node", maintain_order=True):
        (folder / f"{node}.log").write_text("\n".join(rows["line"]) + "\n")
