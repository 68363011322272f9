"""Failures of jobs beside outages of their nodes: by hand, and the chance of a null against every shift."""

import numpy as np
import polars as pl
import pytest
from given_tables import metrics_of
from hypothesis import given, settings
from hypothesis import strategies as st
from made_placements import placed
from ttf.analyses.outages.match_outages import OUTAGE_MATCHES
from ttf.analyses.outages.match_outages.compute import (
    DAY,
    EFFECTS,
    HOUR,
    NEAR,
    compute,
    covered_share,
    null_probability,
)
from ttf.analyses.outages.match_outages.page import LABELS
from ttf.records.infra import AFTER_S, BEFORE_S, EVENT
from ttf.records.inputs import Inputs
from ttf.records.record_contracts import EXPOSURE, LIVES_INFRA, OUTAGES

SPAN = 100 * DAY


def tables(tmp_path, attempts, outages, nodes="abcd"):
    """attempts: (node or nodes, start_s, end_s, failed); outages: (node, start_s, planned)."""
    placements = [(f"j{n}", node, start, end, 1000) for n, (on, start, end, _) in enumerate(attempts) for node in on]
    number = pl.col("job_id").str.slice(1).cast(pl.UInt32)
    lives = [
        {"attempt_id": n, "end_s": end, "event": EVENT if failed else None, "basis": "state"}
        | {"cluster_by": "user", "cluster": n, "group_by": "user", "group": n}
        for n, (_, _, end, failed) in enumerate(attempts)
    ]
    down = [
        {"trace": "t", "unit_id": node, "node": node, "start_s": start, "seen_until_s": start + HOUR}
        | {"planned": planned, "counted": True, "records": 1}
        for node, start, planned in outages
    ]
    watched = [{"trace": "t", "unit_id": node, "node": node, "from_s": 0, "until_s": SPAN} for node in nodes]
    frames = {
        "placements": placed(placements).with_columns(attempt_id=number),
        "lives_infra": LIVES_INFRA.frame(lives),
        "outages": OUTAGES.frame(down),
        "exposure": EXPOSURE.frame(watched),
    }
    for name, frame in frames.items():
        frame.write_parquet(tmp_path / f"{name}.parquet")
    table = compute(Inputs({name: str(tmp_path / f"{name}.parquet") for name in frames}, {}, {}))["outage_matches"]
    OUTAGE_MATCHES.check(table)
    return table


def row(table, measure=NEAR, kind="unplanned", before_s=BEFORE_S, after_s=AFTER_S):
    return table.row(
        by_predicate=pl.all_horizontal(
            pl.col(name) == value
            for name, value in {"measure": measure, "kind": kind, "before_s": before_s, "after_s": after_s}.items()
        ),
        named=True,
    )


def test_failures_and_outages_by_hand(tmp_path):
    at = 10 * DAY
    attempts = [
        ("ab", at - HOUR, at, True),  # b goes down a minute later
        ("c", at - HOUR, at, True),  # c half an hour before, and is drained by plan 2 h after
        ("d", at - HOUR, at, True),  # d never
        ("z", at - HOUR, at, True),  # not watched
        ("a", at, at + 2 * DAY, False),  # runs on through an outage of a
        ("c", at, at + 5 * HOUR, False),  # ends otherwise as c goes down again
    ]
    outages = [("b", at + 60, False), ("c", at - 1800, False), ("c", at + 2 * HOUR, True)]
    outages += [("a", at + DAY + HOUR, False), ("c", at + 5 * HOUR, False), ("d", at + 30 * DAY, False)]
    table = tables(tmp_path, attempts, outages)
    reach, hour, day = (row(table, before_s=b, after_s=a) for b, a in ((600, 300), (HOUR, HOUR), (DAY, 0)))
    assert [(of["n"], of["events"], of["median_s"]) for of in (reach, hour, day)] == [
        (3, 1, 60.0),
        (3, 2, (60 - 1800) / 2),
        (3, 1, -1800.0),
    ]
    assert row(table, before_s=0, after_s=DAY)["events"] == 2 and row(table, before_s=DAY, after_s=DAY)["events"] == 2
    assert row(table, kind="planned", before_s=0, after_s=DAY)["median_s"] == 2 * HOUR
    # Every watched node but a has starts that are far apart.
    of_one = 901 / SPAN
    assert reach["expected"] == pytest.approx((1 - (1 - of_one) ** 2 + 2 * of_one + of_one) / 3)
    did = {name: row(table, name)["events"] for name in EFFECTS}
    assert did == {"job_failed": 1, "job_ended": 1, "job_ran_on": 2, "no_job": 1}
    assert row(table, "no_job", "planned")["events"] == 0 and row(table, "job_ran_on", "planned")["events"] == 1
    assert {*EFFECTS, NEAR} == set(LABELS)
    metrics = metrics_of("match_outages", {"outage_matches": table})
    assert metrics["outage_matches.failures.share"]["value"] == 1 / 3
    assert metrics["outage_matches.no_job.share"]["value"] == 1 / 5


def test_without_failures_every_row_says_why(tmp_path):
    table = tables(tmp_path, [("a", 0, 10, False)], [])
    assert table["n"].sum() == 0 and table["reason"].null_count() == 0
    metrics = metrics_of("match_outages", {"outage_matches": table})
    assert not metrics


@given(st.lists(st.integers(0, 39), min_size=1, unique=True).map(sorted), st.integers(1, 50))
def test_the_chance_of_the_null_is_that_of_every_shift(starts, width):
    """Of whole seconds on a circle of 40: a failure at 0 has a start in the `width` seconds up to it."""
    shifts = range(40)
    hits = [any((start + shift) % 40 < width for start in starts) for shift in shifts]
    assert covered_share(np.array(starts), 40, width) == pytest.approx(np.mean(hits))


@settings(max_examples=3)
@given(st.integers(0, 10**6))
def test_where_outages_and_failures_have_nothing_to_do_with_each_other_the_share_is_as_expected(seed):
    rng = np.random.default_rng(seed)
    nodes = [f"n{k}" for k in range(20)]
    down = pl.DataFrame({"node": rng.choice(nodes, 400).tolist(), "time_s": rng.integers(0, SPAN, 400)})
    watched = pl.DataFrame({"node": nodes, "from_s": 0, "until_s": SPAN})
    ends, lists = (
        rng.integers(DAY, SPAN - DAY, 2000),
        [rng.choice(nodes, 4, replace=False).tolist() for _ in range(2000)],
    )
    failures = pl.DataFrame({"node_list": lists})
    expected = null_probability(failures, down, watched, 2 * DAY + 1)
    times = {node: np.sort(down.filter(node=node)["time_s"].to_numpy()) for node in nodes}
    hits = [
        any(np.abs(times[node] - end).min(initial=SPAN) <= DAY for node in of)
        for end, of in zip(ends, lists, strict=True)
    ]
    assert np.mean(hits) == pytest.approx(expected.mean(), abs=0.08)
