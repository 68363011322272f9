"""Test sizes of jobs in the unit of a trace against sums over the raw files in plain Python."""

import html
import json
import re

import csv_traces
import polars as pl
import pytest
import whole_study
from prose_checks import faults_of_page
from samples.sacct.sample import write_sample
from study_runs import tables_without_sense

# Texts about GPUs that also appear for a trace without GPUs.
OF_GPUS_ALONE = r"GPU (type|activity)|no GPU|placement held a GPU|GPUs in use, and free GPUs|GPUs numeric"


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    return tmp_path_factory.mktemp("raw")


def write_dump(folder):
    """Write a dump of sacct without GPUs and return its registry entry."""
    folder.mkdir()
    write_sample(folder, jobs=800)
    for path in folder.iterdir():
        if not path.name.startswith("20"):
            path.unlink()
            continue
        path.write_text(re.sub(r",?gres/gpu[^,|]*=\d+", "", path.read_text()))
    return {"format": "sacct", "folder": str(folder)}


@pytest.fixture(scope="module")
def results(raw, tmp_path_factory):
    registry = csv_traces.write(raw) | {"dump": write_dump(raw / "dump")}
    folder = tmp_path_factory.mktemp("sizes")
    result = whole_study.run({"study": [*registry], "registry": registry}, folder)
    assert (result.job, result.refused, result.crash, result.warned) == (None, None, None, [])
    return folder / "results"


def table(results, trace, name):
    return pl.read_csv(results / trace / f"tables/{name}.csv", infer_schema_length=None)


def metrics(results, trace):
    return json.loads((results / trace / "metrics.json").read_text())


def page(results, trace):
    return (results / f"studies/study/report/{trace}.html").read_text()


def findings_text(results, trace):
    text = re.sub(r"<(script|style)\b.*?</\1>", "", page(results, trace), flags=re.DOTALL)
    text = text.partition('<section id="appendix">')[0]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


@pytest.mark.parametrize(
    ("trace", "unit"),
    [("in_nodes", "node"), ("in_cores", "core"), ("half_gpus", "GPU"), ("one_gpu_a_node", "GPU"), ("dump", "node")],
)
def test_the_unit_is_the_first_that_enough_jobs_have(results, trace, unit):
    units = table(results, trace, "size_unit")
    assert units.filter("used")["unit"].to_list() == [unit]
    assert units["unit"].to_list() == ["GPU", "node", "core", "job"]
    assert metrics(results, trace)["data.size_unit"]["value"] == unit


@pytest.mark.parametrize("trace", [*csv_traces.SIZES, "dump"])
def test_pages_and_tables_are_sound(results, trace):
    assert faults_of_page(page(results, trace)) == []
    assert tables_without_sense(results / trace) == []


@pytest.mark.parametrize(("trace", "unit"), [("in_nodes", "node"), ("in_cores", "core"), ("dump", "node")])
def test_a_page_without_gpus_uses_the_unit_of_the_trace(results, trace, unit):
    text = re.sub(OF_GPUS_ALONE, "", findings_text(results, trace))
    assert [match[0] for match in re.finditer(r".{30}GPU.{30}", text)] == []
    assert f"{unit.capitalize()} time in failed attempts" in text and f"{unit}-hours" in text
    assert f"by {unit}s requested" in text
    for figure in (results / trace / "figures").glob("*.svg"):
        svg = figure.read_text()
        assert "nothing to draw" in svg or "GPU" not in re.sub(OF_GPUS_ALONE, "", svg)
    numbers = metrics(results, trace).items()
    units = {metric["unit"] for key, metric in numbers if not key.startswith("occupancy.")}
    assert f"{unit}-hours" in units and not [name for name in units if "GPU" in name]


@pytest.mark.parametrize(("trace", "unit", "column"), [("in_nodes", "node", "hosts"), ("in_cores", "core", "cores")])
def test_times_are_sizes_times_hours(results, raw, trace, unit, column):
    jobs = csv_traces.read(raw, trace)
    outcomes = table(results, trace, "outcomes")
    assert "gpu_hours" not in outcomes.columns
    status_words = {"success": "COMPLETED", "failure": "FAILED", "cancelled": "CANCELLED"}
    hours = {
        outcome: sum(int(job[column]) * job["hours"] for job in jobs if job["state"] == state)
        for outcome, state in status_words.items()
    }
    assert dict(outcomes.select("outcome", f"{unit}_hours").iter_rows()) == pytest.approx(hours)
    share = metrics(results, trace)["lost_work.failed_gpu_hours_share"]["value"]
    assert share == pytest.approx(hours["failure"] / sum(hours.values()))
    lost = table(results, trace, "lost_work")
    assert lost[f"failed_{unit}_hours"].sum() == pytest.approx(hours["failure"])


def test_attempts_of_a_dump_have_the_nodes_that_it_says(results, raw):
    tries = {}
    for path in sorted((raw / "dump").iterdir()):
        header, *rows = [line.split("|") for line in path.read_text().splitlines()]
        for row in (dict(zip(header, cells, strict=True)) for cells in rows):
            # Both parts contain the runs that crossed the end of the first.
            if "." not in row["JobID"]:
                tries[row["JobIDRaw"], row["Start"]] = int(row["NNodes"]) * int(row["ElapsedRaw"]) / 3600
    assert metrics(results, "dump")["lost_work.gpu_hours"]["value"] == pytest.approx(sum(tries.values()))
    assert metrics(results, "dump")["lost_work.gpu_hours"]["unit"] == "node-hours"


@pytest.mark.parametrize("trace", ["in_nodes", "one_gpu_a_node"])
def test_rates_and_times_to_failure_are_by_recorded_nodes(results, raw, trace):
    jobs = csv_traces.read(raw, trace)
    rate = table(results, trace, "node_failure_rate").row(0, named=True)
    size_limit = rate["above_nodes" if trace == "in_nodes" else "above_gpus"]
    large_jobs = [job for job in jobs if int(job["hosts"]) > size_limit]
    node_days = sum(int(job["hosts"]) * job["hours"] / 24 for job in large_jobs)
    failures = sum(job["state"] == "FAILED" for job in large_jobs)
    assert rate["node_gpus_from"] == "jobs" and rate["failures"] == failures
    assert rate["failures_per_1000_node_days"] == pytest.approx(1000 * failures / node_days)
    sizes = table(results, trace, "mttf_by_gpus")
    low, high = ("nodes_low", "nodes_high") if trace == "in_nodes" else ("gpus_low", "gpus_high")
    for row in sizes.filter(pl.col("failures") > 0).iter_rows(named=True):
        class_jobs = [job for job in jobs if row[low] <= int(job["hosts"]) <= row[high]]
        hours = sum(job["hours"] for job in class_jobs)
        assert row["jobs"] == len(class_jobs)
        assert row["mttf_s"] == pytest.approx(3600 * hours / sum(job["state"] == "FAILED" for job in class_jobs))
    assert "per node." not in findings_text(results, trace)


def test_without_nodes_there_is_no_rate_of_a_node(results):
    rate = table(results, "in_cores", "node_failure_rate")
    assert rate["failures_per_1000_node_days"].null_count() == rate.height
    assert table(results, "in_cores", "strata")["failures_per_1000_node_days"].null_count() > 0
    assert "No job whose nodes are known ran for a known time." in findings_text(results, "in_cores")


def test_jobs_without_a_gpu_are_named_beside_the_sizes(results, raw):
    jobs = csv_traces.read(raw, "half_gpus")
    cpu_jobs = [job for job in jobs if job["gpus"] == "0" and job["state"] != "CANCELLED"]
    failed = sum(job["state"] == "FAILED" for job in cpu_jobs)
    text = findings_text(results, "half_gpus")
    assert f"Of {len(cpu_jobs):,} ended jobs without a GPU, {100 * failed / len(cpu_jobs):.1f}% failed." in text
    assert f"{sum(job['gpus'] == '0' for job in jobs):,} jobs had no GPU" in text


def test_a_start_at_each_submission_is_no_wait(results):
    text = findings_text(results, "one_gpu_a_node")
    assert "Every start equals its submission, so no waiting is computed." in text
    assert "at once" not in text and "queue.median" not in metrics(results, "one_gpu_a_node")
    assert pl.read_parquet(results / "one_gpu_a_node/jobs.parquet")["queue_s"].null_count() == csv_traces.JOBS
    assert "queue.median" in metrics(results, "in_nodes")
