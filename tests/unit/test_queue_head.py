"""Queue and utilisation on the page: the claim, for any subset of the measures that a trace has."""

from types import SimpleNamespace

import polars as pl
import pytest
from filled_texts import filled
from head_checks import check_head
from memory_tables import compute_metrics
from ttf.analyses.outcomes.split_outcomes.summaries import summarise_jobs
from ttf.analyses.queue.describe_workload.page import head, lines
from ttf.display import phrases
from ttf.display.trace_numbers import Numbers
from ttf.formats.common_tables import drop_zero_queue_times
from ttf.records.jobs import JOB_COLUMNS, NODE_COLUMNS

head, lines = map(filled, (head, lines))

HOUR = 3600.0
USE = {"occupancy.all.gpus_in_use_share": 0.914, "occupancy.all.time_s": 79 * 24 * HOUR, "occupancy.peak_share": 1.0}
WAITS = {"workload.queue.all.median_s": 8.52 * 24 * HOUR, "workload.queue.all.p90_s": 14.1 * 24 * HOUR}
LARGEST = {
    f"workload.queue.largest.{name}": value for name, value in (("gpus", ">8"), ("median_s", 9.0), ("p90_s", 9.0))
}
CAUSES = {"occupancy.causes.unrecognised.jobs_share": 0.68, "occupancy.causes.full.jobs_share": 0.3}


def make_numbers(**values) -> Numbers:
    units = {key: "share" if key.endswith("share") else "s" for key in values}
    return Numbers({key: {"value": value, "n": 3724, "unit": units[key]} for key, value in values.items()})


def trace_of(*drawn, unit="job"):
    return SimpleNamespace(info={"unit": unit}, figures={name: {"empty": None} for name in drawn})


def checked_head(values, *drawn, unit="job"):
    m = make_numbers(**values)
    section_head = head(trace_of(*drawn, unit=unit), m)
    assert phrases.list_keys(section_head.claim)
    return check_head(section_head, m)


@pytest.mark.parametrize(
    ("values", "claim"),
    [
        (USE | WAITS, "91.4% of GPUs were in use; the median job waited 8.52 days"),
        (
            USE | WAITS | {"workload.queue.all.median_s": 0.0},
            "91.4% of GPUs were in use; half of jobs started at once, nine in ten within 14.1 days",
        ),
        (WAITS, "The median job waited 8.52 days, one in ten longer than 14.1 days"),
    ],
)
def test_the_claim(values, claim):
    assert phrases.strip_markup(checked_head(values).claim).replace("\u00a0", " ") == claim


@pytest.mark.parametrize(("starts", "waits"), [([5, 9, None], [None, None, None]), ([5, 10, None], [0, 1, None])])
def test_equal_times_are_no_waits_of_zero(starts, waits):
    """One column is both submission and start; and one job did wait."""
    submits = [5, 9, 20]
    queue_s = [None if start is None else start - submit for submit, start in zip(submits, starts, strict=True)]
    frame = pl.DataFrame({"submit_s": submits, "start_s": starts, "queue_s": queue_s})
    jobs = drop_zero_queue_times(frame.lazy()).collect()
    assert jobs["queue_s"].to_list() == waits
    blank = {name: pl.lit(None, dtype) for name, dtype in JOB_COLUMNS.items() if name not in frame.columns}
    jobs = jobs.with_columns(**blank | {"outcome": pl.lit("success")}).lazy()
    summary = summarise_jobs(jobs, pl.DataFrame(schema=NODE_COLUMNS))
    metrics = compute_metrics("split_outcomes", {"jobs_summary": summary})
    finding_by_line = {line.subject: line.result for line in lines(trace_of(), Numbers(metrics))}
    if waits[0] is None:
        assert finding_by_line["Waits in the queue"] == "Every start equals its submission, so no waiting is computed."
    else:
        assert "queue.reason" not in metrics and metrics["queue.median"]["value"] == 0.5


def test_without_waits_and_gpus_there_is_no_section_but_lines():
    assert head(trace_of(), Numbers()) is None
    findings = {
        line.subject: line.result for line in lines(trace_of(), make_numbers(**{"occupancy.reason": "no GPU was held"}))
    }
    assert findings["GPUs in use"] == "No GPU was held."
    assert {"Waits in the queue", "GPU activity"} <= set(findings)
    assert not any(line.checked for line in lines(trace_of(), Numbers()))


@pytest.mark.parametrize(
    ("drawn", "first"),
    [(("gpus_in_use", "queue_by_gpus"), ("gpus_in_use",)), (("queue_by_gpus",), ("queue_by_gpus",)), ((), ())],
)
def test_a_trace_without_nodes_shows_its_waits(drawn, first):
    assert checked_head(WAITS, *drawn, unit="pod").charts == first


def test_key_values_have_n_and_causes_are_marked_as_inferred():
    head_ = checked_head(USE | WAITS | LARGEST | CAUSES)
    assert [key.label for key in head_.keys] == [
        "GPUs in use",
        "Median wait",
        "Median wait, more than 8 GPUs",
    ]
    assert phrases.strip_markup(head_.keys[1].note).endswith("n = 3,724 jobs")
    assert "likelier reasons than capacity" in head_.text[0] and "inferred" in head_.text[0]
    full_head = checked_head(USE | WAITS | CAUSES | {"occupancy.causes.unrecognised.jobs_share": 0.1})
    assert "too few GPUs were free" in full_head.text[0]
