"""The synthetic PAI trace: keys that join, and shares and percentiles near the published ones."""

from pathlib import Path

import polars as pl
import pytest
from of_formats import raw_schemas
from samples.pai2020 import sample_published as pai
from samples.pai2020.sample import FILES, write_sample

TASKS = 20_000
KEY = ["job_name", "task_name"]
TEXT = {
    "job_name", "task_name", "inst_id", "inst_name", "worker_name", "user", "status", "machine", "gpu_type",
    "gpu_type_spec", "group", "workload", "gpu_name",
}  # fmt: skip

# Name of a file, without its ending -> its columns by the schema.
TABLES = {
    Path(file).stem: [column.name for column in raw_schemas("pai2020")[table].columns] for table, file in FILES.items()
}


def read(folder: Path, table: str) -> pl.DataFrame:
    schema = {name: pl.String if name in TEXT else pl.Float64 for name in TABLES[table]}
    return pl.read_csv(folder / f"{table}.csv", has_header=False, schema=schema)


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample") / "new" / "folder"
    write_sample(folder, TASKS)
    return {table.removeprefix("pai_"): read(folder, table) for table in TABLES}


@pytest.fixture(scope="module")
def spans(trace):
    """Join tasks to the first start and the mean run time of their instances."""
    began, ended = (pl.when(pl.col(name) > 0).then(name) for name in ("start_time", "end_time"))
    instances = trace["instance_table"].group_by(KEY).agg(began=began.min(), run=(ended - began).mean())
    return trace["task_table"].join(instances, on=KEY, how="left")


def test_every_instance_has_its_task_and_every_task_its_job(trace):
    job, task, instance = trace["job_table"], trace["task_table"], trace["instance_table"]
    assert task.join(job, on="job_name", how="anti").is_empty()
    assert job.join(task, on="job_name", how="anti").is_empty()
    assert instance.join(task, on=KEY, how="anti").is_empty()
    assert instance.join(job, on=["job_name", "inst_id"], how="anti").is_empty()
    for table in ("sensor_table", "machine_metric"):
        assert trace[table].join(instance, on=["worker_name", "machine"], how="anti").is_empty()
    placed = instance.drop_nulls("machine")
    assert placed.join(trace["machine_spec"], on="machine", how="anti").is_empty()


# ---- marginals at 20,000 tasks against the published ones ----


def value_shares(column: pl.Series) -> dict:
    return dict(column.value_counts(normalize=True).iter_rows())


def test_status_shares(trace):
    for table, published in (
        ("task_table", pai.PUBLISHED_TASK_STATUS),
        ("job_table", pai.PUBLISHED_JOB_STATUS),
    ):
        shares = value_shares(trace[table]["status"])
        for status, count in published.items():
            assert shares[status] == pytest.approx(count / sum(published.values()), abs=0.003)


def test_plan_gpu_and_gpu_type_shares(trace):
    task = trace["task_table"]
    shares = value_shares(task["plan_gpu"])
    for value, count in {**pai.PUBLISHED_PLAN_GPU, None: pai.PUBLISHED_NO_GPU}.items():
        assert shares[value] == pytest.approx(count / pai.PUBLISHED_TASKS, abs=0.003)
    shares = value_shares(task["gpu_type"])
    for name, count in pai.PUBLISHED_GPU_TYPE.items():
        assert shares[name] == pytest.approx(count / pai.PUBLISHED_TASKS, abs=0.005)


# Median, third quartile and ninth decile of the run times; median and ninth decile of the waits.
RUN_S = {
    "T4": (309, 1_181, 5_676), "MISC": (689, 3_923, 12_443), "P100": (967, 4_792, 15_674),
    "V100": (1_295, 5_337, 17_728), "V100M32": (1_163, 7_963, 24_873),
}  # fmt: skip
WAIT_S = {"T4": (3, 16), "MISC": (10, 111), "P100": (13, 827), "V100": (91, 6_724), "V100M32": (104, 3_630)}


@pytest.mark.parametrize("gpu_type", RUN_S)
def test_percentiles_of_run_times_of_terminated_tasks_and_of_waits(spans, gpu_type):
    tasks = spans.filter(gpu_type=gpu_type)
    run_s, wait_s = tasks.filter(status="Terminated")["run"], tasks["began"] - tasks["start_time"]
    # A few hundred V100 tasks only: their quantiles scatter more.
    tolerance = 0.15 if len(run_s) > 1_000 else 0.35
    assert [run_s.quantile(q) for q in (0.5, 0.75, 0.9)] == pytest.approx(RUN_S[gpu_type], rel=tolerance)
    assert [wait_s.quantile(q) for q in (0.5, 0.9)] == pytest.approx(WAIT_S[gpu_type], rel=0.25)
