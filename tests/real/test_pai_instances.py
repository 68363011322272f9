"""PAI 2020 from its instance table alone: 27,583 published rows, against counts of the raw lines."""

import csv
import gzip
import json
from collections import Counter, defaultdict
from itertools import pairwise

import polars as pl
import pytest
from acceptance import CHROMIUM, browsing, faults
from published_cells import wrong_study_cells
from withheld_cells import find_withheld_cells

JOBS, TASKS, MACHINES, ROWS = 5_135, 6_080, 1_773, 27_583
ALONE = {"job", "task", "sensor", "group_tag", "machine_spec", "machine_metric"}


@pytest.fixture(scope="module")
def pai(results):
    return results / "pai"


@pytest.fixture(scope="module")
def page(results):
    return results / "studies/study/report/pai.html"


@pytest.fixture(scope="module")
def rows(shared_data):
    """Return the raw rows as texts, with times as whole seconds or None."""
    with gzip.open(shared_data / "pai-instances" / "pai_instance_table.csv.gz", "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    for line, row in enumerate(rows, start=2):
        row["line"] = line
        for name in ("start_time", "end_time"):
            row[name] = int(float(row[name])) if row[name] else None
    return rows


@pytest.fixture(scope="module")
def tries(rows):
    """Return the rows of each (job, task, instance), sorted by start, else end; rows without times are last."""
    tries = defaultdict(list)
    for row in rows:
        tries[row["job_name"], row["task_name"], row["inst_name"]].append(row)
    for instance_tries in tries.values():
        instance_tries.sort(key=lambda row: (moment(row) is None, moment(row) or 0))
    return tries


@pytest.fixture(scope="module")
def tasks(rows, tries):
    """Return status, smallest start, largest end, and whether a failed row has an end, by (job, task)."""
    last_states = defaultdict(set)
    for (job, task, _), instance_tries in tries.items():
        last_states[job, task].add(instance_tries[-1]["status"])
    worst = ("Failed", "Running", "Waiting", "Terminated", "Interrupted")
    tasks = {
        key: {"status": next(status for status in worst if status in statuses)} for key, statuses in last_states.items()
    }
    for task in tasks.values():
        task |= {"start": None, "end": None, "failed_end": False, "rows": 0}
    for row in rows:
        task = tasks[row["job_name"], row["task_name"]]
        task["rows"] += 1
        if row["start_time"] is not None:
            task["start"] = min(row["start_time"], task["start"] or row["start_time"])
        if row["end_time"] is not None:
            task["end"] = max(row["end_time"], task["end"] or 0)
            task["failed_end"] |= row["status"] == "Failed"
    return tasks


def moment(row):
    return row["end_time"] if row["start_time"] is None else row["start_time"]


def metrics(folder):
    return {key: metric["value"] for key, metric in json.loads((folder / "metrics.json").read_text()).items()}


def test_every_row_is_accounted_for(pai, real_study):
    assert pl.read_csv(pai / "quality" / "row_account.csv").rows() == [("instance", ROWS, ROWS, 0)]
    printed = (real_study.folder / "printed.txt").read_text()
    assert {table for table in ALONE if f"pai: there is no table {table}: " in printed} == ALONE


def test_tasks_come_from_instances(pai, tasks):
    jobs = pl.read_parquet(pai / "jobs.parquet")
    assert (jobs.height, jobs["job_id"].n_unique(), len(tasks)) == (TASKS, JOBS, TASKS)
    outcomes = {"Terminated": "success", "Failed": "failure", "Interrupted": "cancelled"}
    negative = Counter()
    for row in jobs.iter_rows(named=True):
        task = tasks[row["job_id"], row["task"]]
        assert (row["status_raw"], row["instance_rows"]) == (task["status"], task["rows"])
        has_both = task["start"] is not None and task["end"] is not None
        backwards = has_both and task["end"] < task["start"] and task["status"] != "Waiting"
        negative[task["status"]] += backwards
        assert row["negative_run"] == backwards
        if has_both and not backwards and task["status"] not in ("Running", "Waiting"):
            assert row["outcome"] == outcomes[task["status"]]
            assert row["runtime_s"] == task["end"] - task["start"]
            has_sibling_end = task["status"] == "Failed" and not task["failed_end"]
            assert row["runtime_from"] == ("siblings" if has_sibling_end else "instance")
            assert row["runtime_max_s"] == (row["runtime_s"] if has_sibling_end else None)
        elif task["status"] != "Waiting":
            assert row["runtime_s"] is None or not backwards
    assert sum(negative.values()) == jobs["negative_run"].sum() == metrics(pai)["data.negative_run"] > 0
    assert not (jobs["runtime_s"] < 0).any()


def test_tries_are_attempts_of_one_instance(pai, tries):
    placements = pl.read_parquet(pai / "placements.parquet")
    repeated = [instance_tries for instance_tries in tries.values() if len(instance_tries) > 1]
    assert (len(repeated), max(map(len, repeated))) == (747, 12)
    pairs = Counter(
        tuple(row["status"] for row in instance_tries) for instance_tries in repeated if len(instance_tries) == 2
    )
    assert pairs["Failed", "Terminated"] == 345
    placement_by_line = {}
    for instance_tries in tries.values():
        first_line = min(row["line"] for row in instance_tries)
        placement_by_line |= {
            row["line"]: (attempt, first_line, row["machine"]) for attempt, row in enumerate(instance_tries)
        }
    placed_lines = sorted(line for line, (_, _, machine) in placement_by_line.items() if machine)
    assert placements.height == len(placed_lines)
    assert placements.select("placement", "node").rows() == [placement_by_line[line][1:] for line in placed_lines]
    # Tries without a time, or within one second, are ordered by file or status, so skip them here.
    is_ordered = [
        all(moment(row) is not None for row in instance_tries)
        and len({moment(row) for row in instance_tries}) == len(instance_tries)
        for instance_tries in repeated
    ]
    assert sum(is_ordered) > 600
    attempt_by_line = dict(zip(placed_lines, placements["attempt"], strict=True))
    for instance_tries in (
        instance_tries for instance_tries, is_clear in zip(repeated, is_ordered, strict=True) if is_clear
    ):
        assert [attempt_by_line[row["line"]] for row in instance_tries] == list(range(len(instance_tries)))


def test_how_failed_tries_fare_when_tried_again(pai, tries):
    repeats = pl.read_csv(pai / "tables" / "repeats.csv", infer_schema_length=None).filter(pl.col("group_by") == "part")
    counts_by_measure = {name: (n, events) for name, n, events in repeats.select("measure", "n", "events").iter_rows()}
    same_node, other_node, failed, retried = Counter(), Counter(), 0, 0
    for instance_tries in tries.values():
        failed += sum(row["status"] == "Failed" for row in instance_tries)
        for row, following in pairwise(instance_tries):
            if row["status"] == "Failed":
                retried += 1
                (same_node if row["machine"] == following["machine"] else other_node)[following["status"]] += 1
    assert failed == 2_539
    assert counts_by_measure["retried_share"] == (failed, retried)
    for name, counted in (("failure_on_same_node", same_node), ("failure_on_other_node", other_node)):
        assert counts_by_measure[name] == (counted["Failed"] + counted["Terminated"], counted["Failed"])


def test_the_mean_time_to_failure_is_a_range_over_what_missing_ends_allow(pai, tasks):
    """The range does not rest on the few failures with both times."""
    value = metrics(pai)
    failed = [task for task in tasks.values() if task["status"] == "Failed"]
    with_own_end = [task for task in failed if task["failed_end"] and None not in (task["start"], task["end"])]
    with_own_end = [task for task in with_own_end if task["end"] >= task["start"]]
    assert (value["without_end.failures"], value["without_end.without_end"]) == (
        len(failed),
        len(failed) - len(with_own_end),
    )
    assert "mttf.mttf_s" not in value
    exposure = value["mttf.exposure_s"]
    end = max(moment for task in tasks.values() for moment in (task["start"], task["end"]) if moment)
    longest = 0
    for task in failed:
        if task["start"] is None or task in with_own_end:
            continue
        latest_end = task["end"] if task["end"] is not None and task["end"] >= task["start"] else end
        longest += latest_end - task["start"]
    assert value["mttf.range.high_s"] == pytest.approx((exposure + longest) / len(failed), rel=1e-12)
    assert value["mttf.range.low_s"] < exposure / len(failed)


def test_no_cell_has_the_mean_of_the_few_failures_with_an_end(pai, page):
    """18 of 928 failures have an end: 56.6 days per failure."""
    withheld, cells = find_withheld_cells(pai)
    assert (f"{4893349.5555555556:.10g}" in withheld, cells) == (True, [])
    assert "56.6 days" not in page.read_text(encoding="utf-8").replace("\u00a0", " ")


def test_every_machine_is_in_the_published_list(pai, shared_data):
    with (shared_data / "pai" / "pai_machine_spec.csv").open(newline="") as file:
        published = {row[0] for row in csv.reader(file)}
    nodes = set(pl.read_parquet(pai / "placements.parquet", columns=["node"])["node"])
    assert len(nodes) == MACHINES
    assert nodes <= published


def test_every_printed_value_of_study_1_stands_beside_the_cell_of_these_rows(results, page):
    assert wrong_study_cells(results, "study", "pai", "study1") == []
    text = page.read_text(encoding="utf-8")
    assert "Printed of the whole trace; here: a copy or a part of it." in text


@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed: make test-tools")
def test_the_page_is_accepted(pai, page):
    with browsing() as browser:
        assert faults(browser, page, pai) == []
