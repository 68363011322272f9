"""Job failures near outages of their nodes: by hand, and the null probability against every shift."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_placements import make_placements
from memory_tables import compute_metrics, one_row
from ttf.analyses.outages.match_outages import OUTAGE_MATCHES
from ttf.analyses.outages.match_outages.compute import DAY, EFFECTS, HOUR, NEAR, compute
from ttf.analyses.outages.match_outages.page import LABELS
from ttf.records.infra import AFTER_S, BEFORE_S, EVENT
from ttf.records.inputs import Inputs
from ttf.records.record_contracts import DURATIONS_INFRA, EXPOSURE, OUTAGES
from ttf.stats.outages.nearness import covered_share

SPAN = 100 * DAY


def match_table(tmp_path, attempts, outages, nodes="abcd"):
    """Match attempts of (node or nodes, start_s, end_s, failed) with outages of (node, start_s, planned)."""
    placements = [(f"j{n}", node, *times, 1000) for n, (names, *times, _) in enumerate(attempts) for node in names]
    number = pl.col("job_id").str.slice(1).cast(pl.UInt32)
    durations = [
        {"attempt_id": n, "end_s": end, "event": EVENT if failed else None, "basis": "state"}
        | {"cluster_by": "user", "cluster": n, "group_by": "user", "group": n}
        for n, (_, _, end, failed) in enumerate(attempts)
    ]
    outage_rows = [
        {"trace": "t", "unit_id": node, "node": node, "start_s": start, "seen_until_s": start + HOUR}
        | {"planned": planned, "counted": True, "records": 1}
        for node, start, planned in outages
    ]
    exposure = [{"trace": "t", "unit_id": node, "node": node, "from_s": 0, "until_s": SPAN} for node in nodes]
    frames = {
        "placements": make_placements(placements).with_columns(attempt_id=number),
        "durations_infra": DURATIONS_INFRA.frame(durations),
        "outages": OUTAGES.frame(outage_rows),
        "exposure": EXPOSURE.frame(exposure),
    }
    for name, frame in frames.items():
        frame.write_parquet(tmp_path / f"{name}.parquet")
    table = compute(Inputs({name: str(tmp_path / f"{name}.parquet") for name in frames}, {}, {}))["outage_matches"]
    OUTAGE_MATCHES.check(table)
    return table


def row(table, measure=NEAR, kind="unplanned", before_s=BEFORE_S, after_s=AFTER_S):
    return one_row(table, measure=measure, kind=kind, before_s=before_s, after_s=after_s)


def test_failures_and_outages_by_hand(tmp_path):
    end_s = 10 * DAY
    attempts = [
        ("ab", end_s - HOUR, end_s, True),  # b goes down a minute later
        ("c", end_s - HOUR, end_s, True),  # c goes down half an hour before, and has a planned drain 2 h later
        ("d", end_s - HOUR, end_s, True),  # d does not go down
        ("z", end_s - HOUR, end_s, True),  # not observed
        ("a", end_s, end_s + 2 * DAY, False),  # continues through an outage of a
        ("c", end_s, end_s + 5 * HOUR, False),  # ends without failure as c goes down again
    ]
    outages = [("b", end_s + 60, False), ("c", end_s - 1800, False), ("c", end_s + 2 * HOUR, True)]
    outages += [("a", end_s + DAY + HOUR, False), ("c", end_s + 5 * HOUR, False), ("d", end_s + 30 * DAY, False)]
    table = match_table(tmp_path, attempts, outages)
    window, hour, day = (row(table, before_s=b, after_s=a) for b, a in ((600, 300), (HOUR, HOUR), (DAY, 0)))
    assert [(match["n"], match["events"], match["median_s"]) for match in (window, hour, day)] == [
        (3, 1, 60.0),
        (3, 2, (60 - 1800) / 2),
        (3, 1, -1800.0),
    ]
    assert row(table, before_s=0, after_s=DAY)["events"] == 2 and row(table, before_s=DAY, after_s=DAY)["events"] == 2
    assert row(table, kind="planned", before_s=0, after_s=DAY)["median_s"] == 2 * HOUR
    # Outage starts of one node are far apart.
    covered = 901 / SPAN
    assert window["expected"] == pytest.approx((1 - (1 - covered) ** 2 + 2 * covered + covered) / 3)
    effects = {name: row(table, name)["events"] for name in EFFECTS}
    assert effects == {"job_failed": 1, "job_ended": 1, "job_ran_on": 2, "no_job": 1}
    assert row(table, "no_job", "planned")["events"] == 0 and row(table, "job_ran_on", "planned")["events"] == 1
    assert {*EFFECTS, NEAR} == set(LABELS)
    metrics = compute_metrics("match_outages", {"outage_matches": table})
    assert metrics["outage_matches.failures.share"]["value"] == 1 / 3
    assert metrics["outage_matches.no_job.share"]["value"] == 1 / 5


def test_without_failures_every_row_has_a_reason(tmp_path):
    table = match_table(tmp_path, [("a", 0, 10, False)], [])
    assert table["n"].sum() == 0 and table["reason"].null_count() == 0
    assert not compute_metrics("match_outages", {"outage_matches": table})


@given(st.lists(st.integers(0, 39), min_size=1, unique=True).map(sorted), st.integers(1, 50))
def test_the_null_probability_is_the_share_of_matching_shifts(starts, width):
    """Shift starts by whole seconds on a circle of 40; a shift matches if a start is within `width` seconds of 0."""
    shifts = range(40)
    hits = [any((start + shift) % 40 < width for start in starts) for shift in shifts]
    assert covered_share(np.array(starts), 40, width) == pytest.approx(np.mean(hits))
