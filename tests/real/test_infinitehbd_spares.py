"""InfiniteHBD: simultaneous outages and spares against a walk through all events."""

import json
import math
from collections import defaultdict

import pytest
from outage_analyses import Frames, compute_tables, render_analysis
from outage_traces import DAY, infinitehbd
from scipy import stats

DAYS = 348.9798


@pytest.fixture(scope="module")
def trace(shared_data):
    folder = shared_data / "infinitehbd"
    if not folder.is_dir():
        pytest.skip("InfiniteHBD is not among the real data")
    return folder, *infinitehbd(folder)


def test_spares(trace, tmp_path):
    folder, outages, _, exposure = trace
    tables = compute_tables(
        "size_spares", Frames({"outages": outages, "exposure": exposure}, seed=1, block_days=7, sizes=[]), tmp_path
    )
    rows_by_p = {row["p"]: row for row in tables["spares"].iter_rows(named=True)}
    assert [rows_by_p[p]["spares_observed"] for p in (0.99, 0.999)] == [31, 33]
    assert [rows_by_p[p]["spares_binomial"] for p in (0.99, 0.999)] == [17, 20]
    # Walk through the events and count the faults of each node, hence the nodes with any.
    events = sorted(json.loads((folder / "fault_trace.json").read_text()), key=lambda event: event["event_time"])
    faults, days_by_count, last_time = defaultdict(int), defaultdict(float), 0.0
    for event in [*events, {"event_time": DAYS}]:
        days_by_count[sum(count > 0 for count in faults.values())] += event["event_time"] - last_time
        last_time = event["event_time"]
        if "node_id" in event:
            faults[event["node_id"]] += 1 if event["event_type"] == "fault_start" else -1
    mean = sum(count * days for count, days in days_by_count.items()) / DAYS
    time = tables["units_down"]["time_share"].to_numpy()
    # Times are rounded to seconds.
    assert time == pytest.approx([days_by_count[count] / DAYS for count in range(len(time))], abs=1e-6)
    assert (time > 0).nonzero()[0].max() == 35
    assert rows_by_p[0.999]["spares_binomial"] == stats.binom.ppf(0.999, 400, mean / 400)
    assert exposure["until_s"][0] == round(DAYS * DAY)
    m, text, _ = render_analysis("size_spares", tables)
    assert m["spares.most_down"] == 35
    assert "At most 35 of 400 were down at once" in text


def test_a_week_of_256_nodes_takes_more_spares_than_the_formula_says(trace, tmp_path):
    _, outages, _, exposure = trace
    settings = {
        "spare_targets": [0.99],
        "spares": [0, 16],
        "simulations": 300,
        "seed": 1,
        "block_days": 7,
        "sizes": [256],
    }
    frames = Frames({"outages": outages, "exposure": exposure}, **settings)
    tables = compute_tables("size_spares", frames, tmp_path)
    needed = dict(tables["spares_needed"].filter(hours=168).select("way", "spares").iter_rows())
    assert needed["exponential"] == 15
    assert abs(needed["observed"] - 15) <= 1
    assert needed["weeks"] > 20
    # Probability that 256 nodes that are up have no fault for a week, at the trace's rate.
    week = tables["capacity"].filter(hours=168, spares=0, way="exponential").row(0, named=True)
    down_s = (outages["seen_until_s"] - outages["start_s"]).sum()
    up_s = 400 * round(DAYS * DAY) - down_s
    assert week["p_no_interruption"] == pytest.approx(math.exp(-256 * 7 * DAY * outages.height / up_s), rel=1e-6)
