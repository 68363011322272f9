"""The synthetic PAI trace: layout, habits, marginals, and the same bytes every time."""

from pathlib import Path

import polars as pl
import pytest
from of_formats import raw_schemas
from samples.pai2020 import sample_published as pai
from samples.pai2020.sample import FILES, write_sample

TASKS = 20_000
DAY_S = 86_400
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
def output(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample") / "new" / "folder"
    return folder, write_sample(folder, TASKS)


@pytest.fixture(scope="module")
def trace(output):
    return {table.removeprefix("pai_"): read(output[0], table) for table in TABLES}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    write_sample(folder, 2_000, seed=7)
    return {table.removeprefix("pai_"): read(folder, table) for table in TABLES}


@pytest.fixture(scope="module", params=["trace", "small"])
def tables(request):
    """Tables of either size: each habit must show at 20,000 tasks and at 2,000."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def spans(trace):
    return join_instances(trace)


def join_instances(tables) -> pl.DataFrame:
    """Join tasks to the aggregates of their instances, as the publisher derives them."""
    instances = tables["instance_table"].with_columns(
        pl.when(pl.col("start_time") > 0).then("start_time").alias("began"),
        pl.when(pl.col("end_time") > 0).then("end_time").alias("ended"),
    )
    instances_by_task = instances.group_by(KEY).agg(
        pl.col("began").min(),
        pl.col("ended").max(),
        (pl.col("ended") - pl.col("began")).mean().alias("run"),
        pl.len().alias("rows"),
        pl.col("ended").count().alias("ends"),
        pl.col("status").max().alias("largest_status"),
    )
    return tables["task_table"].join(instances_by_task, on=KEY, how="left")


# ---- layout ----


# ---- keys ----


def test_keys_are_unique(tables):
    job = tables["job_table"]
    assert job["job_name"].is_unique().all()
    assert job["inst_id"].is_unique().all()
    assert tables["task_table"].select(KEY).is_unique().all()
    assert tables["instance_table"]["worker_name"].drop_nulls().is_unique().all()
    # Attempts of one instance share its name and its task.
    assert (tables["instance_table"].group_by("inst_name").agg(pl.struct(KEY).n_unique())["job_name"] == 1).all()
    assert tables["machine_spec"]["machine"].is_unique().all()
    assert tables["group_tag_table"]["inst_id"].is_unique().all()


def test_every_instance_has_its_task_and_every_task_its_job(tables):
    job, task, instance = tables["job_table"], tables["task_table"], tables["instance_table"]
    assert task.join(job, on="job_name", how="anti").is_empty()
    assert job.join(task, on="job_name", how="anti").is_empty()
    assert instance.join(task, on=KEY, how="anti").is_empty()
    assert instance.join(job, on=["job_name", "inst_id"], how="anti").is_empty()
    for table in ("sensor_table", "machine_metric"):
        assert tables[table].join(instance, on=["worker_name", "machine"], how="anti").is_empty()
    placed = instance.drop_nulls("machine")
    assert placed.join(tables["machine_spec"], on="machine", how="anti").is_empty()


# ---- habits: statuses and times ----


def test_job_status_follows_from_its_tasks(tables):
    statuses = tables["task_table"].group_by("job_name").agg(pl.col("status").unique())
    expected = pl.coalesce(
        pl.when(pl.col("status").list.contains(status)).then(pl.lit(status))
        for status in ("Failed", "Running", "Waiting", "Terminated")
    )
    job = tables["job_table"].join(statuses.with_columns(expected.alias("status_expected")), on="job_name")
    assert (job["status"] == job["status_expected"]).all()
    instance_statuses = set(tables["instance_table"]["status"])
    assert set(job["status"]) == set(tables["task_table"]["status"]) == instance_statuses - {"Interrupted"}
    assert instance_statuses == set(pai.STATUSES)


def test_missing_instance_times_are_blank_by_status(tables):
    """Each status has its own blank times."""
    instance = tables["instance_table"]
    times = {"start_time": pl.col("start_time").is_not_null(), "end_time": pl.col("end_time").is_not_null()}
    patterns = instance.group_by("status", **times).len()
    assert set(patterns.select("status", "start_time", "end_time").iter_rows()) == {
        ("Terminated", True, True),
        ("Failed", True, False),
        ("Failed", False, True),
        ("Interrupted", False, True),
        ("Running", True, False),
        ("Running", False, False),
        ("Waiting", False, False),
    }
    assert min(instance["start_time"].min(), instance["end_time"].min()) > 0


def test_no_time_is_negative_and_nothing_ends_before_it_starts(tables):
    task, instance = tables["task_table"], tables["instance_table"]
    for rows in (tables["job_table"], task, instance):
        rows_with_times = rows.filter((pl.col("start_time") > 0) & (pl.col("end_time") > 0))
        assert (rows_with_times["end_time"] >= rows_with_times["start_time"]).all()
    tasks = join_instances(tables)
    assert (tasks["began"] >= tasks["start_time"]).drop_nulls().all()
    assert instance["end_time"].max() <= pai.TRACE_END_S
    assert task["end_time"].max() <= pai.TRACE_END_S


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


def test_failure_shares(trace):
    task = trace["task_table"].with_columns(pl.col("plan_gpu").is_not_null().alias("gpu"))
    failure_share_by_gpu = dict(task.group_by("gpu").agg((pl.col("status") == "Failed").mean()).iter_rows())
    assert failure_share_by_gpu[True] == pytest.approx(0.244, abs=0.01)
    assert failure_share_by_gpu[False] == pytest.approx(0.018, abs=0.005)


def test_failure_share_rises_in_the_last_quarter(trace):
    ended = trace["job_table"].drop_nulls("start_time").sort("start_time")
    ended = ended.with_row_index("n").filter(pl.col("status").is_in(["Failed", "Terminated"]))
    in_last_quarter = ended["n"] >= 3 * len(trace["job_table"]) // 4
    failed = ended["status"] == "Failed"
    assert failed.filter(~in_last_quarter).mean() == pytest.approx(0.20, abs=0.02)
    assert failed.filter(in_last_quarter).mean() == pytest.approx(0.43, abs=0.02)


RUN_S = {
    "T4": (309, 1_181, 5_676), "MISC": (689, 3_923, 12_443), "P100": (967, 4_792, 15_674),
    "V100": (1_295, 5_337, 17_728), "V100M32": (1_163, 7_963, 24_873),
}  # fmt: skip
WAIT_S = {"T4": (3, 16), "MISC": (10, 111), "P100": (13, 827), "V100": (91, 6_724), "V100M32": (104, 3_630)}


@pytest.mark.parametrize("gpu_type", RUN_S)
def test_run_time_percentiles_of_terminated_tasks(spans, gpu_type):
    run_s = spans.filter((pl.col("status") == "Terminated") & (pl.col("gpu_type") == gpu_type))["run"]
    # A few hundred V100 tasks only: their quantiles scatter more.
    tolerance = 0.15 if len(run_s) > 1_000 else 0.35
    for q, value in zip((0.5, 0.75, 0.9), RUN_S[gpu_type], strict=True):
        assert run_s.quantile(q) == pytest.approx(value, rel=tolerance)


@pytest.mark.parametrize("gpu_type", WAIT_S)
def test_queueing_delay_percentiles(spans, gpu_type):
    wait_s = spans.filter(pl.col("gpu_type") == gpu_type).select(pl.col("began") - pl.col("start_time"))["began"]
    for q, value in zip((0.5, 0.9), WAIT_S[gpu_type], strict=True):
        assert wait_s.quantile(q) == pytest.approx(value, rel=0.25)


def test_submissions_follow_the_clock_and_the_week_in_shanghai(trace):
    start_s = trace["task_table"].drop_nulls("start_time")["start_time"].cast(pl.Int64)
    assert start_s.min() == 494_319
    assert (start_s.max() - start_s.min()) / 3_600 == pytest.approx(1_642, abs=2)
    local_s = start_s + 8 * 3_600
    share_by_hour, share_by_day = value_shares(local_s // 3_600 % 24), value_shares((local_s // DAY_S + 3) % 7)
    assert share_by_hour[15] > 3 * share_by_hour[4]
    assert min(share_by_day[d] for d in range(5)) > max(share_by_day[5], share_by_day[6])
