"""Jobs by state and by size, the summary row, and their charts."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_tables import one_row as select_row
from memory_tables import outcome_table
from ttf.analyses.outcomes.describe_states import CLUSTER_SUMMARY, SIZE_MIX, STATES
from ttf.analyses.outcomes.describe_states.charts import draw_size_mix
from ttf.analyses.outcomes.describe_states.compute import MOST_STATES, build_size_mix, build_states, summarise_cluster
from ttf.display.charts.figure import Study
from ttf.records.infra import infra_durations
from ttf.records.jobs import JOB_COLUMNS

OUTCOMES = {"COMPLETED": "success", "FAILED": "failure", "NODE_FAIL": "failure", "PENDING": "waiting"}
RULES = {"states": ["NODE_FAIL"]}


def make_jobs(*rows):
    """Make jobs of (state, GPUs, run time), submitted a day apart, each queued for 10 s."""
    records = [
        {
            "trace": "micro",
            "job_id": f"j{i}",
            "status_raw": state,
            "outcome": OUTCOMES.get(state, "cancelled"),
            "gpu_milli": None if gpus is None else round(1000 * gpus),
            "size": 1,
            "submit_s": 86_400 * i,
            "start_s": 86_400 * i + 10,
            "end_s": None if runtime_s is None else 86_400 * i + 10 + runtime_s,
            "queue_s": 10,
            "runtime_s": runtime_s,
            "nodes": 1,
            "trace_end_s": 86_400 * len(rows),
        }
        for i, (state, gpus, runtime_s) in enumerate(rows)
    ]
    return pl.DataFrame([{name: row.get(name) for name in JOB_COLUMNS} for row in records], schema=JOB_COLUMNS)


def count_states(frame, attempts=None, rules=RULES):
    return build_states(frame, infra_durations(frame, attempts, rules), attempts is not None)


MICRO = make_jobs(
    ("COMPLETED", 1, 3600),
    ("COMPLETED", 8, 3600),
    ("FAILED", 0, 7200),
    ("NODE_FAIL", 16, 3600),
    ("PENDING", 4, None),
    (None, 1, 3600),
)


def test_states_by_hand():
    table = count_states(MICRO)
    STATES.check(table)
    assert table["state"].to_list() == ["COMPLETED", "FAILED", "NODE_FAIL", "PENDING", None, None]
    assert table["kind"].to_list() == ["state"] * 5 + ["infra"]
    completed = select_row(table, state="COMPLETED")
    assert (completed["count"], completed["n"], completed["count_share"]) == (2, 6, 2 / 6)
    assert (completed["with_gpu"], completed["n_with_gpu"]) == (2, 5)
    # 1 + 8 of 1 + 8 + 16 + 1 GPU hours.
    assert (completed["gpu_hours"], completed["gpu_hours_share"]) == (9, 9 / 26)
    assert table["reason"].to_list() == [None] * 4 + ["the trace does not say", None]
    infra = select_row(table, kind="infra")
    assert (infra["count"], infra["count_share"], infra["gpu_hours_share"]) == (1, 1 / 6, 16 / 26)
    assert infra["infra_basis"] == "state"


def test_without_rules_every_failure_is_the_proxy():
    infra = select_row(count_states(MICRO, rules={}), kind="infra")
    assert (infra["infra_basis"], infra["count"]) == ("proxy", 2)


def test_attempts_count_by_their_own_states():
    frame = make_jobs(("COMPLETED", 8, 3600))
    attempts = pl.DataFrame(
        {
            "job_id": ["j0", "j0"],
            "attempt": [0, 1],
            "start_s": [0, 4000],
            "end_s": [1800, 7600],
            "runtime_s": [1800, 3600],
            "outcome": ["failure", "success"],
            "state": ["NODE_FAIL", "COMPLETED"],
            "gpu_milli": [8000, 8000],
            "nodes": [1, 1],
        }
    )
    table = count_states(frame, attempts)
    assert table["unit"].to_list() == ["job", "attempt", "attempt", "attempt"]
    assert select_row(table, unit="job")["count_share"] == 1
    failed = select_row(table, unit="attempt", state="NODE_FAIL")
    assert (failed["count_share"], failed["gpu_hours"], failed["gpu_hours_share"]) == (0.5, 4, 1 / 3)
    assert select_row(table, kind="infra") | {"count": 1, "gpu_hours_share": 1 / 3} == select_row(table, kind="infra")


def test_only_the_most_frequent_states_have_rows():
    states = [f"s{i:03}" for i in range(50)]
    table = count_states(make_jobs(*((state, 1, 60) for state in states), ("s049", 1, 60)))
    state_rows = table.filter(kind="state")
    assert state_rows.height == MOST_STATES + 1
    assert state_rows["state"][0] == "s049"
    assert state_rows["state"][-1] == "other"
    assert state_rows["reason"][-1] == "30 more states"
    assert state_rows["count"].sum() == 51
    assert state_rows["gpu_hours_share"].sum() == pytest.approx(1)


SIZES = st.lists(
    st.tuples(
        st.sampled_from([None, 0, 0.25, 1, 2, 3, 5, 8, 9, 64, 100, 4096]), st.one_of(st.none(), st.integers(0, 9999))
    ),
    max_size=15,
)


@given(SIZES)
def test_shares_are_those_of_counting(rows):
    frame = make_jobs(*(("COMPLETED", *row) for row in rows))
    mix = build_size_mix(frame)
    SIZE_MIX.check(mix)
    assert mix.filter(gpus_high=0)["reason"].to_list() == ["no GPU: in no share"] * any(not row[0] for row in rows)
    sized = [(gpus, time or 0) for gpus, time in rows if gpus]
    total = sum(gpus * time for gpus, time in sized)
    assert mix["jobs"].sum() == len(rows)
    for row in mix.filter(pl.col("gpus_high") > 0).iter_rows(named=True):
        in_bucket = [job for job in sized if row["gpus_low"] <= max(job[0], 1) <= row["gpus_high"]]
        larger = [job for job in sized if max(job[0], 1) >= row["gpus_high"]]
        assert row["jobs_share"] == len(in_bucket) / len(sized)
        up_to = [job for job in sized if max(job[0], 1) <= row["gpus_high"]]
        assert row["jobs_up_to_share"] == pytest.approx(len(up_to) / len(sized))
        if total:
            assert row["gpu_hours_share"] == pytest.approx(sum(g * t for g, t in in_bucket) / total)
            assert row["gpu_hours_at_least_share"] == pytest.approx(sum(g * t for g, t in larger) / total)
        else:
            assert (row["gpu_hours_share"], row["reason"]) == (None, "no GPU time was seen")
    by_state = count_states(frame)
    assert by_state.filter(pl.col("kind") == "state")["count"].sum() == len(rows)
    if rows:
        assert by_state["gpu_hours"][0] == outcome_table(frame).filter(pl.col("jobs") > 0)["gpu_hours"].sum()


def test_the_summary_row_by_hand():
    table = summarise_cluster(
        make_jobs(("COMPLETED", 0.5, 100), ("FAILED", 8, 300), ("PENDING", 16, None), ("FAILED", 0, 5))
    )
    CLUSTER_SUMMARY.check(table)
    gpu = select_row(table, population="gpu")
    assert (gpu["jobs"], gpu["days"], gpu["jobs_per_day"]) == (3, 3, 1)
    assert (gpu["gpus_mean"], gpu["gpus_max"], gpu["gpus_sum"]) == (24.5 / 3, 16, 24.5)
    assert (gpu["runtime_n"], gpu["runtime_sum_s"], gpu["runtime_mean_s"]) == (2, 400, 200)
    assert (gpu["runtime_median_s"], gpu["runtime_max_s"], gpu["queue_mean_s"]) == (200, 300, 10)
    assert gpu["gpu_hours"] == (50 + 2400) / 3600
    without_gpu = select_row(table, population="no_gpu")
    assert (without_gpu["jobs"], without_gpu["gpus_mean"], without_gpu["runtime_median_s"]) == (1, None, 5)


def test_no_jobs():
    empty = make_jobs()
    assert count_states(empty).filter(pl.col("kind") == "state").height == 0
    assert build_size_mix(empty).height == 0
    assert summarise_cluster(empty)["reason"].to_list() == ["no such job"] * 3
    assert draw_size_mix({"size_mix": build_size_mix(empty)}, Study("pod")).empty == "no pod requested a GPU"
