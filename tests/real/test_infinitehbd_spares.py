"""InfiniteHBD: nodes down at once and spares, against a count of every minute."""

import json
import math
from collections import defaultdict

import pytest
from outage_rooms import Frames, on_page, tables_of
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
    given = tables_of("size_spares", Frames({"outages": outages, "exposure": exposure}, seed=1, block_days=7), tmp_path)
    found = {row["p"]: row for row in given["spares"].iter_rows(named=True)}
    assert [found[p]["spares_observed"] for p in (0.99, 0.999)] == [31, 33]
    assert [found[p]["spares_binomial"] for p in (0.99, 0.999)] == [17, 20]
    # A walk through the events: how many faults each node has, and so how many nodes have any.
    events = sorted(json.loads((folder / "fault_trace.json").read_text()), key=lambda event: event["event_time"])
    faults, lasted, before = defaultdict(int), defaultdict(float), 0.0
    for event in [*events, {"event_time": DAYS}]:
        lasted[sum(count > 0 for count in faults.values())] += event["event_time"] - before
        before = event["event_time"]
        if "node_id" in event:
            faults[event["node_id"]] += 1 if event["event_type"] == "fault_start" else -1
    mean = sum(down * days for down, days in lasted.items()) / DAYS
    time = given["units_down"]["time_share"].to_numpy()
    # Times are rounded to seconds.
    assert time == pytest.approx([lasted[down] / DAYS for down in range(len(time))], abs=1e-6)
    assert (time > 0).nonzero()[0].max() == 35
    assert found[0.999]["spares_binomial"] == stats.binom.ppf(0.999, 400, mean / 400)
    assert exposure["until_s"][0] == round(DAYS * DAY)
    m, text, _ = on_page("size_spares", given)
    assert m["spares.most_down"] == 35
    assert "At most 35 of 400 were down at once" in text


def test_a_week_of_256_nodes_takes_more_spares_than_the_formula_says(trace, tmp_path):
    _, outages, _, exposure = trace
    asked = {"spare_targets": [0.99], "spares": [0, 16], "simulations": 300, "seed": 1, "sizes": [256]}
    given = tables_of("plan_capacity", Frames({"outages": outages, "exposure": exposure}, **asked), tmp_path)
    needed = dict(given["spares_needed"].filter(hours=168).select("way", "spares").iter_rows())
    assert needed["exponential"] == 15
    assert abs(needed["observed"] - 15) <= 1
    assert needed["weeks"] > 20
    # Of 256 nodes, all up: no fault for a week, at the rate of the trace while up.
    week = given["capacity"].filter(hours=168, spares=0, way="exponential").row(0, named=True)
    down_s = (outages["seen_until_s"] - outages["start_s"]).sum()
    up_s = 400 * round(DAYS * DAY) - down_s
    assert week["p_no_interruption"] == pytest.approx(math.exp(-256 * 7 * DAY * outages.height / up_s), rel=1e-6)
