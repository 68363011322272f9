"""The failure rate over time: exposure by day, rolling windows, causes, and reasons for blanks."""

import json
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_tables import compute_metrics
from scipy import stats
from ttf.analyses.nodes.track_failure_rate import FAILURE_RATE_OVER_TIME
from ttf.analyses.nodes.track_failure_rate.charts import CHARTS
from ttf.analyses.nodes.track_failure_rate.compute import summarise_windows
from ttf.analyses.nodes.track_failure_rate.over_time import (
    MOST_WINDOWS,
    failure_rate_over_time,
    window_days,
    with_domains,
)
from ttf.display.charts.figure import Study
from ttf.records.infra import EVENT
from ttf.records.runs import find_record_start

DAY = 86_400
NOON = int(datetime(2023, 5, 1, 12, tzinfo=UTC).timestamp())
DURATIONS = {
    "unit_id": pl.String,
    "duration_id": pl.Int64,
    "start_s": pl.Int64,
    "duration_s": pl.Int64,
    "gpu_count": pl.Int64,
    "nodes": pl.Int64,
    "event": pl.String,
    "cause": pl.String,
    "basis": pl.String,
}


def numbers_over_time(table):
    return compute_metrics(
        "track_failure_rate", {"failure_rate_over_time": table, "failure_rate_windows": summarise_windows(table)}
    )


def durations(*rows, basis="state"):
    """Make durations from rows of (start, duration, GPUs, cause or None for no failure)."""
    records = [
        (f"j{i}", 0, start, length, gpus, gpus, EVENT if cause else None, cause, basis)
        for i, (start, length, gpus, cause) in enumerate(rows)
    ]
    return pl.DataFrame(records, schema=DURATIONS, orient="row")


def chart(table, study):
    return CHARTS["failure_rate_over_time"]({"failure_rate_over_time": table}, study)


def test_a_run_over_midnight_is_at_risk_on_both_days_and_fails_on_the_last():
    # 32 GPUs are four nodes of eight: noon to six in the morning of the day after, 12 h and 6 h.
    table = failure_rate_over_time(durations((NOON, 18 * 3600, 32, "NODE_FAIL")), "state", 8)
    FAILURE_RATE_OVER_TIME.check(table)
    assert table["window"].to_list() == ["2023-05-01", "2023-05-02"]
    assert table["node_days"].to_list() == [2.0, 1.0]
    assert table["failures"].to_list() == [0, 1]
    first, second = table.iter_rows(named=True)
    assert (first["failures_per_1000_node_days"], first["ci_low"]) == (0, 0)
    assert first["reason"] == "no failures: upper limit only"
    assert first["ci_high"] == pytest.approx(500 * stats.chi2.ppf(0.9, 2) / 2, rel=1e-12)
    assert second["failures_per_1000_node_days"] == 1000
    assert second["ci_low"] == pytest.approx(1000 * stats.chi2.ppf(0.05, 2) / 2, rel=1e-12)
    assert second["ci_high"] == pytest.approx(1000 * stats.chi2.ppf(0.95, 4) / 2, rel=1e-12)


def test_days_of_a_relative_clock_start_with_the_first_run():
    table = failure_rate_over_time(durations((1000, DAY, 8, None), (1000 + DAY, DAY, 8, "x")), "state", 8)
    assert table["window"].to_list() == ["day 1", "day 2"]
    assert table["node_days"].to_list() == [1, 1]
    weeks = failure_rate_over_time(durations((0, 30 * DAY, 8, None)), "state", 8)
    assert weeks["window_days"].unique().to_list() == [7]
    assert weeks["window"][0] == "days 1 to 7"
    assert weeks.height == 24


def test_windows_skip_a_beginning_with_hardly_any_starts():
    """Only two of 600 runs start in the first 100 of 150 days; the rate there is not 0."""
    early_runs = [(day * DAY, (150 - day) * DAY, 8, None) for day in (0, 50)]
    late_runs = [((100 + k % 50) * DAY, DAY // 2, 8, EVENT) for k in range(598)]
    table = failure_rate_over_time(durations(*early_runs, *late_runs), "state", 8)
    assert set(table.select("runs_before", "days_before").rows()) == {(2, 100)}
    assert table["window"][0] == "days 101 to 107" and table["failures"].min() > 50
    # Both long runs count, and half a day of twelve runs a day.
    assert table["node_days"][0] == pytest.approx(7 * 2 + 7 * 12 / 2)
    assert numbers_over_time(table)["sizes.over_time.days_before"]["value"] == 100
    assert find_record_start(pl.Series([0, 50, *range(100, 200)]), 200) == (0, 0)


@pytest.mark.parametrize(("days", "window"), [(1, 1), (20, 1), (21, 7), (89, 7), (90, 30), (3000, 30)])
def test_the_window_is_the_longest_that_fits_three_times(days, window):
    assert window_days(days) == window


def test_causes_add_up_to_all_and_rare_causes_are_combined():
    words = [*["a"] * 8, *["b"] * 7, *["c"] * 6, *["d"] * 5, *["e"] * 4, "f", "g"]
    runs = durations(*((NOON + i * 3600, 7200, 32, word) for i, word in enumerate(words)))
    without_cause = runs.tail(1).with_columns(cause=pl.lit(None, pl.String))
    table = failure_rate_over_time(pl.concat([runs, without_cause]), "proxy", 8, cause_by="domain")
    causes = table.filter(pl.col("by") == "domain")
    assert causes["cause"].unique(maintain_order=True).to_list() == ["a", "b", "c", "d", "e", "other", "not told"]
    counts = causes.group_by("to_day").agg(pl.col("failures").sum(), pl.col("failures_per_1000_node_days").sum())
    joined = table.filter(pl.col("by") == "all").join(counts, on="to_day")
    assert joined["failures"].to_list() == joined["failures_right"].to_list()
    assert joined["failures_per_1000_node_days"].to_list() == pytest.approx(
        joined["failures_per_1000_node_days_right"].to_list()
    )


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], "the trace gives no times of starting"),
        ([(None, 5, 8, "x")], "the trace gives no times of starting"),
        ([(NOON, None, 8, "x")], "no run with a known start and time"),
        ([(0, 1, 8, "x"), (NOON * 10, 1, 8, None)], "the times of the trace are 194,786"),
    ],
)
def test_a_missing_rate_has_a_reason(rows, reason):
    table = failure_rate_over_time(durations(*rows), "state", 8)
    assert table.height == 1
    assert table["reason"][0].startswith(reason)
    assert table["failures_per_1000_node_days"][0] is None
    assert chart(table, Study()).empty.startswith(reason)
    assert numbers_over_time(table)["sizes.over_time.reason"]["value"].startswith(reason)


RUNS = st.lists(
    st.tuples(st.integers(0, 6 * DAY), st.integers(0, 4 * DAY), st.integers(1, 40), st.booleans()),
    min_size=1,
    max_size=12,
)


@given(RUNS, st.integers(0, 400_000))
def test_windows_are_the_sums_of_their_days(rows, shift):
    shifted = [
        (NOON + shift + 4 * start, 8 * length, 8 * nodes, "x" if fail else None) for start, length, nodes, fail in rows
    ]
    table = failure_rate_over_time(durations(*shifted), "state", 8)
    for row in table.filter(pl.col("by") == "all").iter_rows(named=True):
        node_s = sum(
            gpus // 8 * max(0, min(start + length, row["end_s"]) - max(start, row["start_s"]))
            for start, length, gpus, _ in shifted
        )
        failed = [max(start, start + length - 1) for start, length, _, cause in shifted if cause]
        assert row["failures"] == sum(row["start_s"] <= moment < row["end_s"] for moment in failed)
        assert row["node_days"] == node_s / DAY
        assert row["end_s"] - row["start_s"] == row["window_days"] * DAY


def test_a_long_trace_has_a_limited_number_of_windows():
    rng = np.random.default_rng(3)
    starts = np.sort(rng.integers(0, 3400 * DAY, 3000))
    runs = durations(*((NOON + int(start), 5 * DAY, 8, "x" if i % 9 else "y") for i, start in enumerate(starts)))
    table = failure_rate_over_time(runs, "state", 8)
    assert table.filter(pl.col("by") == "all").height <= MOST_WINDOWS
    assert len(json.dumps(chart(table, Study("job", True)).spec(validate=True))) < 20_000


def test_domains_come_from_reasons_unless_they_are_ambiguous():
    reasons = pl.DataFrame(
        {
            "job_id": ["j0", "j1", "j1"],
            "task": [None, None, None],
            "attempt": [0, 0, 0],
            "domain": ["user", "user", "hardware"],
        },
        schema_overrides={"task": pl.String},
    )
    with_causes = with_domains(durations((NOON, 60, 8, "x"), (NOON, 60, 8, "x"), (NOON, 60, 8, "x")), reasons)
    assert with_causes.collect().sort("unit_id")["cause"].to_list() == ["user", None, None]
