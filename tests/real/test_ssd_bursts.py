"""Alibaba's SSD tickets: chains and pairs by loops over the file, like the script of FAST'21."""

import csv
from collections import defaultdict
from datetime import datetime
from itertools import pairwise

import polars as pl
import pytest
from outage_analyses import Frames, compute_tables

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
    return compute_tables("find_bursts", frames, tmp_path_factory.mktemp("bursts"))["bursts"]


@pytest.mark.parametrize("location", ["node", "rack"])
def test_chains(tickets, bursts, location):
    """Test the share of tickets in chains of two or more with gaps up to the window."""
    times_by_place = defaultdict(list)
    for row in tickets:
        times_by_place[row[f"{location}_id"]].append(row["at"])
    for window in (MINUTE, 30 * MINUTE, 1440 * MINUTE, 7 * 1440 * MINUTE):
        lengths = []
        for times in map(sorted, times_by_place.values()):
            lengths.append(1)
            for time, next_time in pairwise(times):
                if next_time - time <= window:
                    lengths[-1] += 1
                else:
                    lengths.append(1)
        row = bursts.filter(location=location, window_s=window).row(0, named=True)
        assert row["n"] == 18_387
        assert row["chain_share"] == pytest.approx(sum(n for n in lengths if n > 1) / 18_387, abs=1e-12)
        assert row["longest_chain"] == max(lengths)


def test_tickets_with_one_of_another_node_of_the_rack_near(tickets, bursts):
    racks = defaultdict(list)
    for row in tickets:
        racks[row["rack_id"]].append((row["at"], row["node_id"]))
    near = sum(
        any(other_node != node and abs(other_time - time) <= 1800 for other_time, other_node in events)
        for events in racks.values()
        for time, node in events
    )
    row = bursts.filter(location="rack", window_s=1800).row(0, named=True)
    assert row["near"] == near
    assert row["is_burst"] and row["share"] > row["chance"]
