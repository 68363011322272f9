"""Runs of jobs, GPU time lost to failures by size and month, and preemptions attributed to failures."""

from datetime import UTC, datetime
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import make_run_rows
from sacct_story import FIXTURES, derive_tables
from trace_losses import linked_preemptions, loss_sums
from trace_losses import make_runs as runs
from ttf.analyses.lost.measure_losses import LOST_WORK, LOST_WORK_ALL, LOST_WORK_BY_MONTH
from ttf.analyses.lost.measure_losses.charts import gpu_hours_by_size as draw_chart
from ttf.analyses.lost.measure_losses.lost_work import (
    NO_END,
    NO_NODES,
    NO_PREEMPTION,
    NO_TIME,
    lost_work,
    lost_work_all,
    lost_work_by_month,
)
from ttf.display.charts.figure import Study
from ttf.records.infra import infra_durations
from ttf.records.jobs import JOB_COLUMNS, conform
from ttf.records.months import WINDOW_S
from ttf.records.runs import RUN_COLUMNS, add_previous_runs

HOUR = 3600
SACCT = {"states": ["NODE_FAIL", "BOOT_FAIL"]}


def make_runs(*rows: dict) -> pl.LazyFrame:
    """Make runs with RUN_COLUMNS; by default each is the only run of a job that failed by proxy."""
    failed = [{"end_s": row.get("runtime_s"), "infra": "outcome" not in row} | row for row in rows]
    return add_previous_runs(make_run_rows(failed, outcome="failure", basis="proxy"))


def test_lost_work_by_hand():
    run_frame = make_runs(
        {"gpu_milli": 8000, "runtime_s": 2 * HOUR},  # loses half an hour of 8 GPUs
        {"gpu_milli": 5000, "runtime_s": 360},  # loses all of its 6 minutes
        {"gpu_milli": 500, "runtime_s": HOUR},  # half of one GPU
        {"gpu_milli": 0, "runtime_s": HOUR},
        {"gpu_milli": 4000, "runtime_s": HOUR, "outcome": "success"},
        {"gpu_milli": 3000, "runtime_s": None},
    )
    table = lost_work(loss_sums(run_frame, HOUR, 300))
    LOST_WORK.check(table)
    columns = ("gpus_low", "gpus_high", "runs", "gpu_hours", "failed_runs", "failed_without_time", "failed_gpu_hours")
    assert table.select(*columns, "first_order_gpu_hours").rows() == [
        (0, 0, 1, 0.0, 1, 0, 0.0, 0.0),
        (1, 1, 1, 0.5, 1, 0, 0.5, 0.25),
        (3, 4, 2, 4.0, 1, 1, 0.0, 0.0),
        (5, 8, 2, 16.5, 2, 0, 16.5, 4.5),
    ]
    assert table.select("infra_failures", "infra_without_time").rows() == [(1, 0), (1, 0), (1, 1), (2, 0)]
    assert table["failed_gpu_hours_share"].to_list() == [0, 0.5 / 21, 0, 16.5 / 21]
    assert table["infra_basis"].unique().to_list() == ["proxy"]
    assert table["second_order_gpu_hours"].null_count() == table["preemptions"].null_count() == 4
    assert set(table["reason"]) == {NO_PREEMPTION}
    total = lost_work_all(loss_sums(run_frame, HOUR, 300))
    LOST_WORK_ALL.check(total)
    assert total.select(*columns[2:], "first_order_gpu_hours").rows() == [(6, 21.0, 5, 1, 17.0, 4.75)]
    assert total.select("failed_above_8_gpus_share", "first_order_gpu_hours_share").rows() == [(0, 4.75 / 21)]


def test_no_runs_and_no_time():
    LOST_WORK.check(lost_work(loss_sums(make_runs(), HOUR, 300)))
    LOST_WORK_BY_MONTH.check(lost_work_by_month(loss_sums(make_runs(), HOUR, 300), None, None))
    (row,) = lost_work(loss_sums(make_runs({"runtime_s": 0}), HOUR, 300)).to_dicts()
    assert row["failed_gpu_hours_share"] is None and row["reason"] == f"{NO_TIME}; {NO_PREEMPTION}"


def test_sums_beyond_64_bits_are_exact():
    row = {"gpu_milli": 131_072_000, "runtime_s": 31_536_000_000}
    table = lost_work(loss_sums(make_runs(row, row, row), HOUR, 300))
    assert table["gpu_hours"].item() == 3 * 131_072 * 31_536_000_000 / HOUR


# --- preemptions


def preempted(**columns) -> dict:
    return {"outcome": "cancelled", "preempted": True, "basis": "state", "runtime_s": HOUR, "infra": False} | columns


def failed_then_restarted(failed_s: int, restart_s: int, nodes: list, job: int = 99) -> list[dict]:
    failure = {"job": job, "infra": True, "basis": "state", "runtime_s": failed_s, "node_list": nodes}
    restart = {"attempt": 1, "start_s": restart_s, "end_s": restart_s + 9, "runtime_s": 9, "outcome": "success"}
    return [failure, {"job": job, "infra": False, "basis": "state", "node_list": nodes} | restart]


@pytest.mark.parametrize(
    ("columns", "is_linked"),
    [
        ({"end_s": 1000, "node_list": ["n1", "n2"]}, True),
        ({"end_s": 700, "node_list": ["n2"]}, True),  # at the start of the window
        ({"end_s": 699, "node_list": ["n2"]}, False),
        ({"end_s": 1001, "node_list": ["n2"]}, False),  # after the restart
        ({"end_s": 1000, "node_list": ["n3"]}, False),
        ({"end_s": 1000, "node_list": None}, False),
        ({"end_s": 1000, "node_list": ["n2"], "preempted": False}, False),
    ],
)
def test_a_preemption_is_attributed_to_a_restart_on_one_of_its_nodes(columns, is_linked):
    run_frame = make_runs(preempted(**columns), *failed_then_restarted(500, 1000, ["n2", "n9"]))
    assert linked_preemptions(run_frame, 300).to_list() == [0] * is_linked


def test_preemptions_are_second_order_losses():
    run_frame = make_runs(
        preempted(gpu_milli=2000, end_s=1000, node_list=["n2"]),
        preempted(gpu_milli=2000, end_s=50_000, runtime_s=600, node_list=["n2"]),
        *failed_then_restarted(500, 1000, ["n2"]),
    )
    table = lost_work(loss_sums(run_frame, HOUR, 300)).sort("gpus_low")
    assert table["preemptions"].to_list() == [0, 2]
    assert table["second_order_gpu_hours"].to_list() == [0, 1 + 1 / 3]
    assert table["linked_preemptions"].to_list() == [0, 1]
    assert table["linked_gpu_hours"].to_list() == [0, 1]
    first_order = table["first_order_gpu_hours"]
    assert table["first_and_linked_gpu_hours"].to_list() == [first_order[0], first_order[1] + 1]
    assert table["reason"].null_count() == 2
    # Without a restarted job nothing can be linked; the reason says so.
    unlinked = lost_work(loss_sums(run_frame.head(2), HOUR, 300))
    assert unlinked["linked_gpu_hours"].to_list() == [None] and unlinked["reason"].to_list() == [NO_NODES]


# --- months


def moment(*date: int) -> int:
    return int(datetime(*date, tzinfo=UTC).timestamp())


def test_months_of_the_calendar():
    ends = [moment(2024, 11, 30, 23, 59, 59), moment(2024, 12, 1), moment(2025, 2, 10), None]
    run_frame = make_runs(*({"end_s": end, "runtime_s": HOUR if end else None} for end in ends))
    table = lost_work_by_month(
        loss_sums(run_frame, HOUR, 300, moment(2024, 11, 15)), moment(2024, 11, 15), moment(2025, 2, 20)
    )
    assert table["window"].to_list() == ["2024-11", "2024-12", "2025-02", None]
    assert table["complete"].to_list() == [False, True, False, None]
    assert table["end_s"].to_list() == [moment(2024, 12, 1), moment(2025, 1, 1), moment(2025, 3, 1), None]
    assert table["failed_gpu_hours"].to_list() == [1, 1, 1, 0]
    assert table["runs"].sum() == 4
    assert table["gpu_hours_share"].to_list() == [1 / 3, 1 / 3, 1 / 3, 0]
    assert table["failed_gpu_hours_share"].to_list() == [1, 1, 1, None]
    assert table["reason"][3].startswith(NO_END)


def test_windows_of_28_days_if_the_clock_has_no_calendar():
    begin = 1000
    ends = [begin, begin + WINDOW_S - 1, begin + WINDOW_S, begin + 3 * WINDOW_S - 1]
    run_frame = make_runs(*({"end_s": end, "runtime_s": 60} for end in ends))
    table = lost_work_by_month(loss_sums(run_frame, HOUR, 300, begin), begin, begin + 3 * WINDOW_S - 1)
    assert table.select("window", "runs", "start_s", "complete").rows() == [
        ("days 1 to 28", 2, begin, True),
        ("days 29 to 56", 1, begin + WINDOW_S, True),
        ("days 57 to 84", 1, begin + 2 * WINDOW_S, False),  # its last second is not covered
    ]


# --- runs


def make_jobs(*rows: dict) -> pl.DataFrame:
    base = {"trace": "t", "outcome": "success", "gpu_milli": 1000, "size": 1, "trace_end_s": 1000, "start_s": 0}
    records = [{"job_id": f"j{number}", **base, **row} for number, row in enumerate(rows)]
    names = {name for row in records for name in row}
    return conform(pl.DataFrame(records, schema={name: JOB_COLUMNS[name] for name in sorted(names)}), JOB_COLUMNS)


def derive_runs(jobs: pl.DataFrame, attempts: pl.DataFrame | None = None, rules: dict | None = None) -> pl.DataFrame:
    return runs(jobs, attempts, infra_durations(jobs, attempts, rules or {})).collect()


def test_jobs_without_attempts_are_runs():
    jobs = make_jobs(
        {"outcome": "waiting", "start_s": None},
        {"outcome": "running", "start_s": 400, "size": 3},
        {"outcome": "failure", "end_s": 60, "runtime_s": 60, "status_raw": "NODE_FAIL"},
        {"outcome": "failure", "start_s": None, "end_s": 60},  # never ran
        {"outcome": "running", "status_raw": "Preempted", "end_s": 50, "runtime_s": 50, "gpu_milli": None},
    )
    run_frame = derive_runs(jobs)
    assert dict(run_frame.schema) == RUN_COLUMNS
    assert run_frame.select("job", "end_s", "runtime_s", "gpu_milli", "failed", "infra", "preempted").rows() == [
        (1, 1000, 600, 3000, False, False, False),
        (2, 60, 60, 1000, True, True, False),
        (4, 50, 50, 0, False, False, True),
    ]
    assert run_frame["basis"].unique().to_list() == ["proxy"]
    assert derive_runs(jobs, rules={"states": ["NODE_FAIL"]})["basis"].unique().to_list() == ["state"]


def test_an_attempt_before_the_last_without_an_outcome_failed():
    jobs = make_jobs({"job_id": "a", "status_raw": "Pass"})
    attempts = pl.DataFrame(
        {
            "job_id": ["a", "a", "a"],
            "attempt": [0, 1, 2],
            "start_s": [0, 100, None],
            "end_s": [50, 200, None],
            "runtime_s": [50, 100, None],
            "outcome": [None, "success", None],
            "gpu_milli": [2000, None, 1000],
            "nodes": [2, 1, 1],
            "node_list": ["m1,m2", "m1", "m1"],
        }
    )
    run_frame = derive_runs(jobs, attempts)
    assert run_frame["failed"].to_list() == [True, False]
    assert run_frame["gpu_milli"].to_list() == [2000, 1000]
    assert run_frame["node_list"].to_list() == [["m1", "m2"], ["m1"]]


def test_a_real_slurm(tmp_path):
    """Jobs of tests/support/sacct_story.py: 2, 3 and 10_1 failed, 7 and 8 lost their node, 8 succeeded in the end."""
    _, jobs, attempts = derive_tables(FIXTURES / "real_readme.txt", folder=tmp_path)
    run_frame = derive_runs(jobs, attempts, SACCT)
    table = lost_work(loss_sums(run_frame.lazy(), HOUR, 300))
    rows = {row["gpus_high"]: row for row in table.to_dicts()}
    assert table["runs"].sum() == 19 and table["failed_runs"].sum() == 5
    assert table["infra_failures"].sum() == rows[2]["infra_failures"] == 2
    # Two runs of 5 s on 2 GPUs. The time limit of job 3 (28 s) is a failure, but not of infrastructure.
    assert rows[2]["first_order_gpu_hours"] == 20 / HOUR
    assert rows[1]["failed_gpu_hours"] == 29 / HOUR
    assert rows[1]["first_order_gpu_hours"] == 0
    assert table["preemptions"].null_count() == table.height


# --- properties

RUN = st.fixed_dictionaries(
    {
        "gpu_milli": st.integers(0, 70_000),
        "runtime_s": st.none() | st.integers(0, 200_000),
        "outcome": st.sampled_from(["success", "failure", "cancelled", "running"]),
        "start_s": st.integers(0, 100 * 86_400),
        "submit_s": st.integers(0, 86_400),
        "status_raw": st.sampled_from(["NODE_FAIL", "PREEMPTED", "FAILED"]),
    }
)


def finished(row: dict, number: int) -> dict:
    end_s = None if row["runtime_s"] is None else row["start_s"] + row["runtime_s"]
    return row | {"job_id": f"j{number}", "end_s": end_s, "trace_end_s": 400 * 86_400}


@given(st.lists(RUN, max_size=25), st.integers(1, 20_000), st.booleans(), st.randoms(use_true_random=False))
def test_losses_are_bounded_add_up_exactly_and_ignore_row_order(rows, interval, has_causes, random):
    rows = [finished(row, number) for number, row in enumerate(rows)]
    rules = {"states": ["NODE_FAIL"]} if has_causes else {}

    def tables(rows: list[dict]) -> list[pl.DataFrame]:
        run_frame = derive_runs(make_jobs(*rows) if rows else pl.DataFrame(schema=JOB_COLUMNS), rules=rules).lazy()
        return [
            lost_work(loss_sums(run_frame, interval, 300)),
            lost_work_by_month(loss_sums(run_frame, interval, 300, 0), 0, 400 * 86_400),
        ]

    by_size, by_month = tables(rows)
    timed = [row for row in rows if row["runtime_s"] is not None]
    # A running job without an end is observed until the trace's end.
    timed += [
        row | {"runtime_s": row["trace_end_s"] - row["start_s"]}
        for row in rows
        if row["runtime_s"] is None and row["outcome"] == "running"
    ]

    def hours(rows: list[dict], limit: Fraction | None = None) -> Fraction:
        parts = (row["gpu_milli"] * min(filter(lambda x: x is not None, (row["runtime_s"], limit))) for row in rows)
        return Fraction(sum(parts), 1000 * HOUR)

    infra = [row for row in timed if (row["status_raw"] == "NODE_FAIL" if has_causes else row["outcome"] == "failure")]
    failed = [row for row in timed if row["outcome"] == "failure"]
    stopped = [row for row in timed if row["status_raw"] == "PREEMPTED"]
    for table in (by_size, by_month):
        assert table["runs"].sum() == len(rows)
        for column, expected in (
            ("gpu_hours", hours(timed)),
            ("failed_gpu_hours", hours(failed)),
            ("first_order_gpu_hours", hours(infra, Fraction(interval, 2))),
            ("second_order_gpu_hours", hours(stopped, Fraction(interval, 2))),
        ):
            # Each row rounds its exact sum once, so the rows' sum differs by that rounding only.
            assert table[column].sum() == pytest.approx(float(expected), rel=1e-14, abs=0)
        assert (table["first_order_gpu_hours"] <= table["infra_gpu_hours"]).all()
        assert (table["infra_gpu_hours"] <= table["gpu_hours"]).all()
    for row in by_size.to_dicts():
        same_size = [r for r in timed if row["gpus_low"] <= -(-r["gpu_milli"] // 1000) <= row["gpus_high"]]
        assert row["gpu_hours"] == float(hours(same_size))
    random.shuffle(rows)
    for ordered_table, shuffled_table in zip((by_size, by_month), tables(rows), strict=True):
        assert ordered_table.write_csv() == shuffled_table.write_csv()


# --- the chart


@pytest.mark.parametrize("basis", ["proxy", "state"])
def test_chart_of_losses(basis):
    run_frame = make_runs(
        {"gpu_milli": 8000, "runtime_s": HOUR, "basis": basis},
        {"gpu_milli": 1000, "runtime_s": HOUR, "basis": basis, "infra": basis == "proxy"},
        {"gpu_milli": 2000, "runtime_s": HOUR, "outcome": "cancelled", "preempted": True, "basis": basis},
        {"gpu_milli": 2000, "runtime_s": None, "basis": basis},
    )
    chart = draw_chart({"lost_work": lost_work(loss_sums(run_frame, HOUR, 300))}, Study("pod"))
    chart.spec(validate=True)
    parts = {(row["gpus"], row["part"]): row["to"] - row["from"] for row in chart.datasets["parts"]}
    # Failures of unknown cause are one part; otherwise infrastructure and other failures are separate parts.
    unknown_causes = {("5–8", "failed, cause unknown"): 8.0, ("1", "failed, cause unknown"): 1.0}
    known_causes = {("5–8", "failed: infrastructure"): 8.0, ("1", "failed: other"): 1.0}
    assert parts == (unknown_causes if basis == "proxy" else known_causes) | {("2", "not failed"): 2.0}
