"""Savings of a trial on one GPU and of fewer retries."""

from fractions import Fraction

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from memory_tables import one_row
from trace_losses import what_if_table
from ttf.analyses.lost.measure_losses import NO_CERTAIN_RETRY, NO_RETRY, NO_SYSTEM_RETRY, NO_USER_RETRY, TRIAL, WHAT_IF
from ttf.analyses.lost.measure_losses.what_if import NO_LARGE, NO_REASONS, NO_RETRIES, NO_TIME
from ttf.records.runs import RUN_COLUMNS, add_previous_runs

HOUR = 3600


def make_runs(*rows: tuple) -> pl.LazyFrame:
    """Make runs of (job, GPUs, run time, outcome, changed columns); attempts are numbered."""
    records, last_attempt = [], {}
    for job, gpus, runtime, outcome, *changes in rows:
        last_attempt[job] = last_attempt.get(job, -1) + 1
        row = {
            "job": job,
            "attempt": last_attempt[job],
            "gpu_milli": int(1000 * gpus),
            "runtime_s": runtime,
            "outcome": outcome,
            "start_s": 0,
            "failed": outcome == "failure",
            "infra": False,
            "basis": "state",
            "preempted": False,
            "timed_out": False,
        }
        records.append(row | (changes[0] if changes else {}))
    return add_previous_runs(pl.LazyFrame(records, schema=RUN_COLUMNS))


def select_row(table: pl.DataFrame, scenario: str, trial_s: int | None = None) -> dict:
    return one_row(table, scenario=scenario, trial_s=trial_s)


def test_a_trial_by_hand():
    runs = make_runs(
        (0, 8, 60, "failure"),  # caught: 7 GPUs for a minute
        (1, 8, 61, "failure"),  # too late: costs a minute
        (2, 4, 30, "success"),  # costs half a minute
        (3, 1, 10, "failure"),  # one GPU: no trial
        (4, 1.5, 20, "failure"),  # half a GPU for 20 s
        (5, 2, 60, "failure", {"infra": True}),  # an infrastructure failure, which another node would not have
        (6, 2, None, "failure"),  # of unknown length: costs a minute
        (7, 2, 60, "failure", {"timed_out": True}),  # a time limit is no failure of the program
    )
    table = what_if_table(runs, [60])
    WHAT_IF.check(table)
    row = select_row(table, TRIAL, 60)
    assert (row["n"], row["affected"], row["saved_gpu_hours"]) == (7, 2, (7 * 60 + 10) / HOUR)
    assert row["cost_gpu_hours"] == (60 + 30 + 60 + 60 + 60) / HOUR
    total = 8 * 60 + 8 * 61 + 4 * 30 + 10 + 30 + 120 + 120
    assert row["net_share"] == 160 / total
    assert select_row(table, NO_RETRY)["reason"] == NO_RETRIES
    assert select_row(table, NO_CERTAIN_RETRY)["reason"] == NO_REASONS


def test_by_proxy_every_failure_enters_the_trial():
    row = select_row(
        what_if_table(make_runs((0, 2, 10, "failure", {"infra": True, "basis": "proxy"})), [60]), TRIAL, 60
    )
    assert row["affected"] == 1 and row["saved_gpu_hours"] == 10 / HOUR


def test_no_retries_by_hand():
    deterministic, transient = {"deterministic": True, "by_user": True}, {"deterministic": False, "by_user": False}
    runs = make_runs(
        *[(0, 2, HOUR, "failure", deterministic)] * 3,  # two in vain
        *[(1, 1, HOUR, "failure", transient), (1, 1, 2 * HOUR, "success")],  # the second would be given up
        *[(2, 1, HOUR, "failure", {"infra": True}), (2, 1, HOUR, "failure", transient)],  # a retry after a lost node
        *[(3, 1, HOUR, "failure", transient), (3, 1, HOUR, "cancelled")],
        *[(4, 1, HOUR, "failure", deterministic), (4, 1, HOUR, "running")],  # still open
        *[(5, 1, HOUR, "cancelled"), (5, 1, HOUR, "success")],
        *[(6, 1, HOUR, "failure", transient), (6, 1, HOUR, "unknown")],  # the outcome is not recorded
    )
    table = what_if_table(runs, [])
    row = select_row(table, NO_RETRY)
    assert (row["n"], row["affected"], row["given_up"]) == (6, 2, 1)
    assert (row["saved_gpu_hours"], row["cost_gpu_hours"], row["given_up_gpu_hours"]) == (5, 0, 2)
    row = select_row(table, NO_CERTAIN_RETRY)
    assert (row["n"], row["affected"], row["given_up"], row["saved_gpu_hours"]) == (2, 1, 0, 4)
    row = select_row(table, NO_USER_RETRY)
    assert (row["n"], row["affected"], row["given_up"], row["saved_gpu_hours"]) == (2, 1, 0, 4)
    row = select_row(table, NO_SYSTEM_RETRY)
    assert (row["n"], row["affected"], row["given_up"], row["saved_gpu_hours"]) == (4, 1, 1, 1)


def test_undefined_savings_are_blank():
    table = what_if_table(make_runs((0, 1, 10, "failure")), [60, 300])
    assert table.filter(pl.col("scenario") == TRIAL)["reason"].to_list() == [NO_LARGE] * 2
    assert table["net_gpu_hours"].null_count() == table.height == 6
    (row,) = what_if_table(make_runs((0, 2, 0, "failure")), [60]).head(1).to_dicts()
    assert row["net_share"] is None and row["reason"] == NO_TIME
    assert what_if_table(make_runs(), [60]).height == 5


RUNS = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.sampled_from([0, 0.5, 1, 1.5, 2, 8]),
        st.none() | st.integers(0, 900),
        st.sampled_from(["failure", "success", "cancelled", "running"]),
    ),
    max_size=25,
)


@given(RUNS, st.integers(1, 600))
def test_savings_of_a_trial_equal_plain_python(rows, trial_s):
    rows.sort(key=lambda row: row[0])
    table = what_if_table(make_runs(*rows), [trial_s])
    jobs: dict[int, list] = {}
    for job, *run in rows:
        jobs.setdefault(job, []).append(run)
    large = [runs[0] for runs in jobs.values() if runs[0][0] > 1]
    row = select_row(table, TRIAL, trial_s)
    assert row["n"] == (len(large) or None)
    if large:
        caught = [r for r in large if r[2] == "failure" and r[1] is not None and r[1] <= trial_s]
        saved = sum(Fraction(gpus - 1) * runtime for gpus, runtime, _ in caught)
        cost = sum(trial_s if r[1] is None else min(trial_s, r[1]) for r in large if r not in caught)
        assert row["affected"] == len(caught)
        assert row["net_gpu_hours"] == float((saved - cost) / 3600)
