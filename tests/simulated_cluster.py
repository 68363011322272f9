"""A cluster of 200 nodes for 99 days, of which three fail some 18 times as often: a dump of sacct, a health log.

The three fail 9 to 12 times, the others 0.6 times on average. Each day twelve jobs hold sixteen nodes each, chosen
anew, and small jobs of one GPU the other eight: 50,000 jobs, of which users' own failures end a fifth. A node that
fails ends what runs on it, NODE_FAIL or, where a health check saw it first, FAILED; sacct does not name it. The health
log does, some minutes before the end, at times twice; and it has more false alarms than that, at any node and time.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from given_tables import ingested
from of_formats import raw_schemas, table_of
from ttf.analyses.nodes.find_lemon_nodes.compute import lemon_effect, lemon_nodes
from ttf.analyses.nodes.find_lemon_nodes.node_runs import last_window, split_window
from ttf.engine.storage.partitions import Partitions
from ttf.formats.sacct import read as sacct_reader
from ttf.raw.extra_table_reader import health_events
from ttf.raw.ingest import ingest
from ttf.records.infra import infra_lives
from ttf.records.outages.outage_records import outages_of

RULES = {"states": ["NODE_FAIL", "BOOT_FAIL"], "events": {"severities": ["high"]}}
FIRST_S, DAY = 1_735_689_600, 86_400
DAYS, NODES, JOBS = 99, 200, 50_000
WIDE, WIDE_NODES, LANES = 12, 16, 8
FAILURES, TIMES = 150, 18
FALSE_ALARMS_A_DAY = 2
USERS = 60


@dataclass(frozen=True)
class Simulated:
    """dump, events: the lines of sacct and of the health log; bad: the nodes that fail so many times as often.

    outages: each failure of a node, down for four hours from a minute after it.
    """

    dump: pl.DataFrame
    events: pl.DataFrame
    outages: pl.DataFrame
    bad: set[str]


def simulate(seed: int, bad: int = 3) -> Simulated:
    rng = np.random.default_rng(seed)
    names = np.array([f"n{node + 1:03}" for node in range(NODES)])
    worse = rng.permutation(NODES)[:bad]
    once = FAILURES / (NODES + bad * (TIMES - 1))
    # Day by node: whether it fails, and when, DAY where it does not; whether as NODE_FAIL.
    fails = rng.random((DAYS, NODES)) < once / DAYS
    fails[:, worse] = rng.permuted(np.arange(DAYS)[:, None] < rng.integers(9, 13, bad), axis=0)
    at_s = np.where(fails, rng.integers(600, DAY - 600, fails.shape), DAY)
    is_node_fail = rng.random(fails.shape) < 0.65
    order = rng.permuted(np.tile(np.arange(NODES), (DAYS, 1)), axis=1)

    wide = order[:, : WIDE * WIDE_NODES].reshape(-1, WIDE_NODES)
    day = np.repeat(np.arange(DAYS), WIDE)
    first = at_s[day[:, None], wide]
    hit = wide[np.arange(len(wide)), first.argmin(axis=1)]
    lists = [",".join(sorted(names[nodes].tolist())) for nodes in wide]
    start_s = rng.integers(0, 300, len(wide))
    rows = [_runs(rng, day, hit, start_s, np.full(len(wide), DAY - 300), at_s, is_node_fail, lists, WIDE_NODES, 0.1)]

    small = order[:, WIDE * WIDE_NODES :]
    jobs = JOBS - len(wide)
    lanes = small.size * LANES
    turns = -(-jobs // lanes)
    chosen = np.sort(rng.permutation(lanes * turns)[:jobs])
    lane, turn = chosen // turns, chosen % turns
    day, node = lane // (small.shape[1] * LANES), small.reshape(-1)[lane // LANES]
    length_s = (DAY - 600) // turns
    start_s = turn * length_s + rng.integers(0, length_s // 4, jobs)
    end_s = start_s + rng.integers(60, length_s * 3 // 4, jobs)
    rows.append(_runs(rng, day, node, start_s, end_s, at_s, is_node_fail, names[node].tolist(), 1, 0.2))

    dump = pl.concat(rows).sort("Start", "NodeList").with_columns(JobIDRaw=pl.int_range(1, pl.len() + 1))
    failed_day, failed = np.nonzero(fails)
    moment = FIRST_S + failed_day * DAY + at_s[fails] - rng.integers(0, 240, failed.size)
    again = rng.random(failed.size) < 0.2
    alarms = rng.poisson(FALSE_ALARMS_A_DAY * DAYS)
    events = pl.DataFrame(
        {
            "node": names[np.concatenate([failed, failed[again], rng.integers(0, NODES, alarms)])],
            "time": np.concatenate([moment, moment[again] + 5, FIRST_S + rng.integers(0, DAYS * DAY, alarms)]),
        }
    )
    codes = rng.choice(["XID79", "GPU_ECC", "IB_LINK"], events.height)
    events = events.with_columns(code=pl.Series(codes.tolist()), severity=pl.lit("high")).sort("time", "node", "code")
    down_s = FIRST_S + failed_day * DAY + at_s[fails] + 60
    down = pl.DataFrame({"unit_id": names[failed], "start_s": down_s, "end_s": down_s + 4 * 3600})
    outages, _ = outages_of("t", down.with_columns(node="unit_id"), None)
    return Simulated(dump, events, outages, set(names[worse].tolist()))


def _runs(rng, day, hit, start_s, end_s, at_s, is_node_fail, lists, nodes, by_user) -> pl.DataFrame:
    """Runs planned from start_s to end_s of a day, of which users' own failures end a share `by_user`.

    hit: the node whose failure ends them. None starts on a node that has failed.
    """
    # Users' own failures come at any time of the run.
    by_user = rng.random(day.size) < by_user
    end_s = np.where(by_user, start_s + 30 + ((end_s - start_s - 30) * rng.random(day.size)).astype(np.int64), end_s)
    down_s = at_s[day, hit]
    by_node = down_s < end_s
    state = np.where(
        by_node, np.where(is_node_fail[day, hit], "NODE_FAIL", "FAILED"), np.where(by_user, "FAILED", "COMPLETED")
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
        }
    )
    told = frame.with_columns(
        NNodes=pl.lit(nodes), AllocTRES=pl.lit(f"gres/gpu:a100={gpus},gres/gpu={gpus},node={nodes}")
    )
    return told.filter(pl.Series(down_s > start_s))


def judged(cluster: Simulated, folder: Path, with_log: bool, with_outages: bool = False) -> list[pl.DataFrame]:
    """lemon_nodes and lemon_effect of the dump and, if so, the health log or outages, by the study's own functions."""
    folder.mkdir(parents=True, exist_ok=True)
    cluster.dump.write_csv(folder / "dump.txt", separator="|")
    schemas = raw_schemas("sacct")
    ingest({"record": [folder / "dump.txt"]}, schemas, folder, 0.0, sacct_reader.READERS)
    raw = {"record": pl.scan_parquet(folder / "record.parquet")}
    events = None
    if with_log:
        cluster.events.write_csv(folder / "events.csv")
        ingested("health_event", folder / "events.csv", folder)
        events = health_events(folder)
    jobs = table_of("sacct", "jobs", raw).with_columns(trace=pl.lit("t"))
    outages = cluster.outages if with_outages else None
    lives = infra_lives(jobs, table_of("sacct", "attempts", raw), RULES, events, outages).lazy()
    placements = table_of("sacct", "placements", raw).lazy()
    window = last_window(placements, 365)
    found = lemon_nodes(placements, lives, [window, *split_window(window)], 0.05, Partitions(folder))
    return [found[0], lemon_effect(*found)]
