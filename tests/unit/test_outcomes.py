"""Outcomes and run times against values by hand."""

import polars as pl
import pytest
from format_tables import FORMATS
from memory_tables import compute_metrics, observed_times, outcome_table, sized_jobs
from ttf.analyses.outcomes.split_outcomes import OUTCOMES_GPU
from ttf.analyses.outcomes.split_outcomes.compute import NO_LIMITS, runtime_quantiles
from ttf.analyses.outcomes.split_outcomes.summaries import ended_jobs
from ttf.formats.format_declaration import outcome_by_word
from ttf.records.clusters import add_clusters
from ttf.records.jobs import JOB_COLUMNS, gpu_seconds_milli, map_outcome


def jobs(*rows, trace_end_s=7300):
    """Make jobs from rows of (outcome, start_s, runtime_s, gpu_milli, size)."""
    names = ("outcome", "start_s", "runtime_s", "gpu_milli", "size")
    frame = pl.DataFrame(rows, schema={name: JOB_COLUMNS[name] for name in names}, orient="row")
    return frame.with_columns(trace_end_s=pl.lit(trace_end_s, dtype=pl.Int64))


EXAMPLE_JOBS = jobs(
    ("success", 0, 3600, 1000, 1),  # 1 GPU hour
    ("success", 0, 7200, 500, 2),  # 2
    ("success", 0, 0, 2000, 1),
    ("success", 0, 60, None, 4),  # requested no GPU
    ("failure", 0, 1800, 8000, 1),  # 4
    ("failure", 0, 100, 0, 1),
    ("failure", 0, None, 1000, 1),  # has no recorded end
    ("cancelled", 0, 3600, 1000, 1),  # 1
    ("unknown", 0, 360, 1000, 1),  # 0.1
    ("running", 100, None, 1000, 1),  # from its start to the trace's end: 7,200 s, 2
    ("running", 0, 720, 10_000, 1),  # observed until 720 s, 2
    ("waiting", None, None, 8000, 4),
    ("waiting", None, None, None, None),
)


def test_a_dozen_jobs():
    table = outcome_table(EXAMPLE_JOBS)
    OUTCOMES_GPU.check(table)
    waits = "has not started, so it has no run time"
    assert table.rows() == [
        ("success", 4, 4 / 13, 3.0, 30 / 121, 2715.0, 1830.0, 6120.0, 4, None, NO_LIMITS),
        ("failure", 3, 3 / 13, 4.0, 40 / 121, 950.0, 950.0, 1630.0, 2, None, NO_LIMITS),
        ("cancelled", 1, 1 / 13, 1.0, 10 / 121, 3600.0, 3600.0, 3600.0, 1, None, NO_LIMITS),
        ("unknown", 1, 1 / 13, 0.1, 1 / 121, 360.0, 360.0, 360.0, 1, None, NO_LIMITS),
        ("running", 2, 2 / 13, 4.0, 40 / 121, 3960.0, 3960.0, 6552.0, 2, None, NO_LIMITS),
        ("waiting", 2, 2 / 13, 0.0, 0.0, None, None, None, 0, None, f"{waits}; {NO_LIMITS}"),
    ]


def test_gpu_time_of_a_large_cluster_does_not_overflow():
    large_jobs = jobs(*[("success", 0, 10**11, 10**10, 10**6)] * 100)
    assert large_jobs.select(gpu_seconds_milli()).to_series().sum() == 100 * 10**27
    assert outcome_table(large_jobs)["gpu_hours"][0] == pytest.approx(1e29 / 3.6e6)


WORDS = {name: outcome_by_word(entry["outcomes"]) for name, entry in FORMATS.items() if "outcomes" in entry}


def with_states(*rows):
    """Make jobs from rows of (outcome, status_raw)."""
    frame = jobs(*((outcome, 0, 60, 1000, 1) for outcome, _ in rows))
    return frame.with_columns(status_raw=pl.Series([status for _, status in rows], dtype=pl.String))


LIMITED = with_states(
    ("success", "COMPLETED"),
    *[("failure", "TIMEOUT")] * 3,
    ("failure", "DEADLINE"),
    ("failure", "FAILED"),
    ("failure", None),
    ("cancelled", "TIMEOUT"),
    ("running", "RUNNING"),
)


def test_time_limits_are_counted_if_the_format_has_a_word_for_them():
    table = outcome_table(LIMITED, words=WORDS["sacct"])
    assert list(table.columns[-2:]) == ["at_time_limit", "reason"]
    assert table.select("outcome", "jobs", "at_time_limit").rows() == [
        ("success", 1, 0),
        ("failure", 6, 4),
        ("cancelled", 1, 1),
        ("running", 1, 0),
    ]
    # The format has the word, but no job reached its limit.
    unlimited = outcome_table(LIMITED.head(1), words=["COMPLETED", "TIMEOUT"])
    assert unlimited["at_time_limit"].to_list() == [0, 0]
    assert outcome_table(LIMITED, words=["COMPLETED"])["at_time_limit"].to_list() == [None] * 4


def ended_numbers(jobs, words=()):
    table = ended_jobs(outcome_table(jobs, words), *sized_jobs(add_clusters(jobs)))
    return compute_metrics("split_outcomes", {"ended_jobs": table})


def test_numbers_of_time_limits():
    metrics = ended_numbers(LIMITED, words=["TIMEOUT"])
    timeouts = metrics["outcomes.timeouts"]
    assert (timeouts["value"], timeouts["unit"], timeouts["n"]) == (4, "jobs", 6)
    assert metrics["outcomes.timeout_share"]["value"] == 4 / 6
    # 2 of 7 jobs that ended in success or failure.
    share = metrics["outcomes.failure_share_without_timeout"]
    assert (share["value"], share["n"]) == (2 / 7, 7)
    without_words = ended_numbers(LIMITED)
    assert "outcomes.timeout_share" not in without_words
    assert without_words["outcomes.failure_share"] == metrics["outcomes.failure_share"]


@pytest.mark.parametrize("name", WORDS)
def test_an_undeclared_status_word_has_an_unknown_outcome(name):
    words = pl.DataFrame({"status": ["a word of my own", *WORDS[name]]})
    outcomes = words.select(map_outcome("status", WORDS[name])).to_series().to_list()
    assert outcomes == ["unknown", *WORDS[name].values()]


def test_quantiles_are_run_times_that_occur():
    table = runtime_quantiles(observed_times(EXAMPLE_JOBS), steps=4)
    assert table.filter(pl.col("outcome") == "success").rows() == [
        ("success", 4, 0.0, 0),
        ("success", 4, 0.25, 60),
        ("success", 4, 0.5, 3600),
        ("success", 4, 0.75, 3600),
        ("success", 4, 1.0, 7200),
    ]
    assert table.filter(pl.col("outcome") == "cancelled")["runtime_s"].to_list() == [3600] * 5
