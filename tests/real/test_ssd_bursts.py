"""Alibaba's SSD tickets: chains and pairs by loops over the file, in the manner of FAST'21's own script."""

import csv
from collections import defaultdict
from datetime import datetime
from itertools import pairwise

import polars as pl
import pytest
from outage_rooms import Frames, tables_of

MINUTE = 60


@pytest.fixture(scope="module")
def tickets(shared_data):
    file = shared_data / "alibaba-ssd" / "ssd_failure_tag.csv"
    if not file.is_file():
        pytest.skip("the SSD tickets are not among the real data")
    with file.open() as lines:
        rows = list(csv.DictReader(lines))
    for row in rows:
        row["at"] = int((datetime.fromisoformat(row["failure_time"]) - datetime(1970, 1, 1)).total_seconds())
    return rows


@pytest.fixture(scope="module")
def bursts(tickets, tmp_path_factory):
    names = {"node": "node_id", "rack": "rack_id", "group": "machine_room_id", "start_s": "at", "seen_until_s": "at"}
    frame = pl.DataFrame(tickets).select(
        unit_id=pl.concat_str("model", "disk_id", separator=" "),
        kind=pl.concat_str("model", "app", separator=" "),
        end_s=pl.lit(None, pl.Int64),
        planned=pl.lit(False),
        counted=pl.lit(True),
        **{name: pl.col(column) for name, column in names.items()},
    )
    frames = Frames({"outages": frame}, seed=1, simulations=20, jitter_s=43_200)
    return tables_of("find_bursts", frames, tmp_path_factory.mktemp("bursts"))["bursts"]


@pytest.mark.parametrize("within", ["node", "rack"])
def test_chains(tickets, bursts, within):
    """The share of tickets in chains of two or more, each at most so long after the one before."""
    places = defaultdict(list)
    for row in tickets:
        places[row[f"{within}_id"]].append(row["at"])
    for window in (MINUTE, 30 * MINUTE, 1440 * MINUTE, 7 * 1440 * MINUTE):
        lengths = []
        for times in map(sorted, places.values()):
            lengths.append(1)
            for before, after in pairwise(times):
                if after - before <= window:
                    lengths[-1] += 1
                else:
                    lengths.append(1)
        row = bursts.filter(within=within, window_s=window).row(0, named=True)
        assert row["n"] == 18_387
        assert row["chain_share"] == pytest.approx(sum(n for n in lengths if n > 1) / 18_387, abs=1e-12)
        assert row["longest_chain"] == max(lengths)


def test_tickets_with_one_of_another_node_of_the_rack_near(tickets, bursts):
    racks = defaultdict(list)
    for row in tickets:
        racks[row["rack_id"]].append((row["at"], row["node_id"]))
    near = sum(
        any(other != node and abs(then - at) <= 1800 for then, other in events)
        for events in racks.values()
        for at, node in events
    )
    row = bursts.filter(within="rack", window_s=1800).row(0, named=True)
    assert row["near"] == near
    # Models and applications have their days: exchanged among these, times are near each other more than by chance.
    assert row["share"] > row["null_permuted_high"] > row["null_permuted"] > 10 * row["null_uniform"]
    # And days have their rates: jittered by half a day, tickets are nearer each other than by chance, and less than so.
    assert row["is_burst"] and row["share"] > row["null_jittered_high"] and row["chance"] >= row["null_jittered"]
