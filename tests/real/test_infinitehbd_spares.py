"""InfiniteHBD: nodes down at once and spares, against a count of every minute."""

import json
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
    given = tables_of("size_spares", Frames({"outages": outages, "exposure": exposure}, seed=1), tmp_path)
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
