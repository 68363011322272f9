"""Durations of jobs: exposure, event, censoring."""

import polars as pl
import pytest
from ttf.records.durations import DURATION_COLUMNS, durations_of_jobs, find_ends, find_strata
from ttf.records.jobs import JOB_COLUMNS


def jobs(**columns):
    n = max(len(values) for values in columns.values())
    base = {"trace": "t", "job_id": "j", "outcome": "success", "start_s": 0, "runtime_s": 10, "trace_end_s": 100}
    return pl.DataFrame({name: columns.get(name, [base.get(name)] * n) for name in JOB_COLUMNS}, schema=JOB_COLUMNS)


@pytest.mark.parametrize(
    ("outcome", "start_s", "runtime_s", "expected"),
    [
        # duration_s, event, duration_max_s
        ("success", 20, 30, (30, "success", None)),
        ("failure", 20, 30, (30, "failure", None)),
        ("unknown", 20, None, (None, "unknown", 80)),
        ("running", 20, 30, (30, None, None)),
        ("running", 20, None, (80, None, None)),
        ("running", 100, None, (0, None, None)),
        ("running", None, None, (None, None, None)),
        ("failure", 20, None, (None, "failure", 80)),
        ("failure", None, None, (None, "failure", None)),
    ],
)
def test_duration_and_event(outcome, start_s, runtime_s, expected):
    durations = durations_of_jobs(jobs(outcome=[outcome], start_s=[start_s], runtime_s=[runtime_s]))
    assert durations.select("duration_s", "event", "duration_max_s").rows() == [expected]
    assert durations.schema == pl.Schema(DURATION_COLUMNS)
    assert durations.select("entry_s", "duration_id").row(0) == (0, 0)


def test_waiting_jobs_have_no_duration():
    durations = durations_of_jobs(jobs(outcome=["waiting", "failure", "waiting"], job_id=["a", "b", "c"]))
    assert durations["unit_id"].to_list() == ["b"]
    assert durations_of_jobs(jobs(outcome=["waiting"])).schema == pl.Schema(DURATION_COLUMNS)


def test_unit_of_a_job_with_and_without_task():
    assert durations_of_jobs(jobs(job_id=["a", "b"], task=["ps", None]))["unit_id"].to_list() == ["a/ps", "b"]


@pytest.mark.parametrize(
    ("gpu_milli", "size", "gpu_count", "job_gpu_milli"),
    [
        (None, 1, 0, 0),
        (500, 1, 1, 500),
        (500, 3, 2, 1500),
        (1000, None, 0, 0),
        (10**10, 10**6, 10**13, 10**16),
    ],
)
def test_gpus_of_the_whole_job(gpu_milli, size, gpu_count, job_gpu_milli):
    durations = durations_of_jobs(jobs(gpu_milli=[gpu_milli], size=[size]))
    assert durations.select("gpu_count", "gpu_milli").row(0) == (gpu_count, job_gpu_milli)


def test_strata_without_any_value_are_left_out():
    strata = ["gpu_type", "gpu_count", "account"]
    assert find_strata(durations_of_jobs(jobs(job_id=["a"])), strata) == ["all", "gpu_count"]
    durations = durations_of_jobs(jobs(gpu_type=[None, "T4"], account=["x", None]))
    assert find_strata(durations, strata) == ["all", *strata]
    assert find_strata(durations_of_jobs(jobs(outcome=["waiting"])), strata) == ["all"]


@pytest.mark.parametrize(
    ("events", "ends"),
    [(["success", None], ["failure", "success"]), (["failure", "cancelled"], ["failure", "cancelled"])],
)
def test_failure_is_an_end_even_if_none_occurs(events, ends):
    assert find_ends(pl.DataFrame({"event": events})) == ends


def test_a_job_that_started_before_the_first_end_has_a_delayed_entry():
    durations = durations_of_jobs(
        jobs(
            job_id=["before", "first end", "at it", "after", "no end", "no start", "gaps"],
            outcome=["success", "failure", "failure", "success", "running", "cancelled", "success"],
            start_s=[10, 20, 50, 60, 30, None, 0],
            end_s=[90, 50, 70, 70, None, None, 80],
            runtime_s=[80, 30, 20, 10, None, None, 35],
        )
    )
    # The first end is at 50. The last job ran for 35 s in total, which limits its entry age.
    assert durations["entry_s"].to_list() == [40, 30, 0, 0, 20, 0, 35]
    assert durations["duration_s"].to_list() == [80, 30, 20, 10, 70, None, 35]
    assert durations_of_jobs(jobs(outcome=["running"], runtime_s=[None]))["entry_s"].to_list() == [0]
