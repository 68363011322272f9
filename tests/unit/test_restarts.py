"""What follows interruptions: made-up Slurm accounting and node events with known delays give these delays again."""

import numpy as np
import polars as pl
import pytest
from sacct_story import derive_tables
from ttf.analyses.queue.describe_attempts import RESTARTS, RETRY_SUCCESS
from ttf.analyses.queue.describe_attempts.restarts import build_restarts, build_retry_success, list_interruptions
from ttf.records.infra import infra_durations
from ttf.records.jobs import add_blank_columns
from ttf.records.record_contracts import OUTAGES

COLUMNS = ("JobIDRaw", "User", "State", "Submit", "Eligible", "Start", "End", "NodeList", "FailedNode", "AllocTRES")
HEAD = "|".join(COLUMNS) + "\n"
USERS, LENGTH_S, DELAY_S, DRAIN_S = 20, 3_600, 120, 60
RULES = {"states": ["NODE_FAIL"], "exit_codes": [], "reasons": [], "events": {}}


def write_dump(path):
    """Write a dump of 200 jobs with a node failure each; return its outages, waits and repairs.

    Each 10th job ends with it, each 10th still waits when the dump ends, and others start `wait` s after they became
    eligible, which is DELAY_S after the end. The node is down DRAIN_S after the end, for `repair` s.
    """
    lines, outages, waits, repairs = [], [], [], []
    for job in range(200):
        start = 1_700_000_000 + 10_000 * job
        end, node, user = start + LENGTH_S, f"n{job % 50}", f"u{job % USERS}"
        repair, wait = 600 + 60 * (job % 7), 30 * (job % 11)
        state = ("FAILED", "COMPLETED")[job % 4 > 0]
        failed = [job, user, "NODE_FAIL", start - 5, start - 5, start, end, node, node, "cpu=1,node=1,gres/gpu=8"]
        lines.append(failed)
        outages.append((node, end + DRAIN_S, end + DRAIN_S + repair, end + DRAIN_S + repair))
        repairs.append(repair)
        if job % 10 == 0:
            continue
        again = end + DELAY_S + wait
        is_pending = job % 10 == 9 and job > 150
        times = ["Unknown", "Unknown"] if is_pending else [again, again + LENGTH_S]
        word = "PENDING" if is_pending else state
        where = ["", "", ""] if is_pending else [node, "", "cpu=1,node=1,gres/gpu=8"]
        lines.append([job, user, word, end, end + DELAY_S, *times, *where])
        waits += [] if is_pending else [wait]
    path.write_text(HEAD + "".join("|".join(map(str, line)) + "\n" for line in lines))
    frame = pl.DataFrame(outages, ["node", "start_s", "end_s", "seen_until_s"], orient="row")
    return add_blank_columns(frame, OUTAGES.schema), waits, repairs


@pytest.fixture
def interruptions(tmp_path):
    outages, waits, repairs = write_dump(tmp_path / "dump.txt")
    _, jobs, attempts = derive_tables(tmp_path / "dump.txt", folder=tmp_path / "raw")
    rows = list_interruptions(infra_durations(jobs, attempts, RULES).lazy(), attempts.lazy(), jobs.lazy())
    return rows, outages, waits, repairs


def test_planted_delays_come_out(interruptions):
    rows, outages, waits, repairs = interruptions
    table = build_restarts(rows, outages)
    RESTARTS.check(table)
    cells = {row["phase"]: row for row in table.filter(cause="NODE_FAIL").iter_rows(named=True)}
    assert rows.filter(cause="NODE_FAIL").height == 200
    assert [cells[phase]["p50_s"] for phase in ("end to outage", "end to eligible")] == [DRAIN_S, DELAY_S]
    for percent in (50, 90):
        quantile = f"p{percent}_s"
        assert cells["outage to repair"][quantile] == np.quantile(repairs, percent / 100, method="inverted_cdf")
        assert cells["eligible to start"][quantile] == np.quantile(waits, percent / 100, method="inverted_cdf")
    # 20 jobs ended with the interruption, and 5 still wait: these are censored late, after all others have started.
    assert (cells["end to start"]["n"], cells["end to start"]["events"]) == (len(waits) + 5, len(waits))
    with_waiting = np.array([*waits, *[10**6] * 5]) + DELAY_S
    assert cells["end to start"]["p90_s"] == np.quantile(with_waiting, 0.9, method="inverted_cdf")
    assert cells["end to start"]["p50_ci_low_clustered_s"] <= cells["end to start"]["p50_s"]
    assert cells["end to start"]["p50_ci_high_clustered_s"] >= cells["end to start"]["p50_s"]


def test_how_retries_end(interruptions):
    rows, _, waits, _ = interruptions
    table = build_retry_success(rows)
    RETRY_SUCCESS.check(table)
    failures = sum(job % 4 == 0 and job % 10 > 0 for job in range(200))
    assert table.filter(cause="all").select("retry", "n", "successes").rows() == [
        (1, len(waits), len(waits) - failures)
    ]


def test_unknown_causes_have_no_rows(tmp_path):
    write_dump(tmp_path / "dump.txt")
    _, jobs, attempts = derive_tables(tmp_path / "dump.txt", folder=tmp_path / "raw")
    rules = {**RULES, "states": []}
    rows = list_interruptions(infra_durations(jobs, attempts, rules).lazy(), attempts.lazy(), jobs.lazy())
    assert build_restarts(rows, OUTAGES.frame([])).is_empty()
    assert build_retry_success(rows).is_empty()
