"""Outage records become outages: overlapping or touching ones are merged, unusual ones flagged."""

import itertools

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from outage_traces import make_outages
from ttf.records.outages.outage_causes import apply_rules
from ttf.records.outages.outage_records import merge_records


def test_records_that_overlap_or_touch_are_one_outage():
    outages, records, _ = make_outages({"a": [(10, 20), (20, 30), (25, 28), (40, 40)], "b": [(5, None)]}, 100)
    assert outages.select("unit_id", "start_s", "end_s", "duration_s", "records").rows() == [
        ("a", 10, 30, 20, 3),
        ("a", 40, 40, 0, 1),
        ("b", 5, None, None, 1),
    ]
    assert outages["seen_until_s"].to_list() == [30, 40, 100]
    assert outages["flagged"].to_list() == [None, "starts and ends in the same second", "no end was written"]
    assert records["outage"].to_list() == [0, 0, 0, 1, 2]


def test_outages_that_start_outside_the_observation_are_not_counted():
    outages, *_ = make_outages({"a": [(0, 10), (50, 200), (300, 400)]}, 100)
    assert outages["counted"].to_list() == [False, True, False]
    assert outages["flagged"].str.contains("watched").to_list() == [None, True, True]


def test_rules_mark_planned_outages_and_drop_records_that_are_no_outage():
    rows = [("a", 0, 1, "Hardware", "Maintenance"), ("a", 5, 6, "Hardware", "CPU"), ("a", 9, 9, "", "cold-start")]
    records = pl.DataFrame(rows, schema=["unit_id", "start_s", "end_s", "level", "cause"], orient="row")
    rules = [
        {"cause": ["^cold-start$"], "outage": False},
        {"level": ["^hardware$"], "cause": ["maint"], "planned": True},
        {"level": ["^hardware$"], "domain": ["hardware"], "planned": False},
        {"cause": ["cpu"], "part": "Processor"},
    ]
    classified = apply_rules(records, rules)
    assert classified.select("class", "cause", "planned", "domain").rows() == [
        (None, "Maintenance", True, "hardware"),
        ("Processor", "CPU", False, "hardware"),
    ]
    outages, _ = merge_records("t", classified, None)
    assert outages["counted"].all()


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60), st.integers(0, 20)), min_size=1, max_size=30))
def test_outages_cover_the_moments_of_their_records_and_never_touch(rows):
    intervals = {"a": [], "b": []}
    for unit, start, length in rows:
        intervals[unit].append((start, start + length))
    outages, records, _ = make_outages(intervals, 100)
    for unit, recorded in intervals.items():
        merged = outages.filter(unit_id=unit).select("start_s", "end_s").rows()
        assert {s for a, b in recorded for s in range(a, b + 1)} == {s for a, b in merged for s in range(a, b + 1)}
        assert all(first[1] < second[0] for first, second in itertools.pairwise(merged))
    assert outages["records"].sum() == records.height == len(rows)
