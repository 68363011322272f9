"""The synthetic PAI trace: layout, habits, marginals, and the same bytes every time."""

from pathlib import Path

import polars as pl
import pytest
from cluster_effects import design_effect, intraclass_correlation, log_sd
from of_formats import raw_schemas
from samples.pai2020 import sample_published as pai
from samples.pai2020.sample import FILES, write_sample
from samples.pai2020.sample_tables import make_machines

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


def test_seven_files_without_header_and_with_every_column(output):
    folder, row_counts = output
    assert sorted(p.name for p in folder.iterdir()) == sorted(f"{table}.csv" for table in TABLES)
    for name, (table, columns) in zip(FILES, TABLES.items(), strict=True):
        lines = (folder / f"{table}.csv").read_text().splitlines()
        assert len(lines) == row_counts[name]
        assert {line.count(",") for line in lines} == {len(columns) - 1}
        assert not set(lines[0].split(",")) & set(columns)


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


def test_typed_tasks_run_on_machines_of_their_type(tables):
    placed = tables["instance_table"].join(tables["task_table"], on=KEY).drop_nulls("machine")
    placed = placed.join(tables["machine_spec"], on="machine", suffix="_machine")
    assert (placed["gpu_type"] == placed["gpu_type_machine"]).drop_nulls().all()
    typed_gpu_tasks = placed.filter(pl.col("gpu_type").is_not_null() & (pl.col("plan_gpu") > 0))
    assert (typed_gpu_tasks["plan_gpu"] <= 100 * typed_gpu_tasks["cap_gpu"]).all()


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


def test_start_is_blank_for_waiting_and_only_there(tables):
    for table in ("job_table", "task_table"):
        rows = tables[table]
        assert (rows["start_time"].is_null() == (rows["status"] == "Waiting")).all()


def test_running_and_waiting_tasks_have_no_end_and_terminated_have_one(tables):
    task = tables["task_table"]
    assert (
        task.filter(pl.col("status").is_in(["Running", "Waiting"]))["end_time"].null_count()
        == task["status"].is_in(["Running", "Waiting"]).sum()
    )
    assert task.filter(pl.col("status") == "Terminated")["end_time"].null_count() == 0


def test_most_failed_jobs_have_no_end_and_gangs_recover_some(tables):
    failed = tables["job_table"].filter(pl.col("status") == "Failed")
    assert 0.87 < failed["end_time"].null_count() / len(failed) < 0.92
    tasks = join_instances(tables).filter((pl.col("status") == "Failed") & pl.col("end_time").is_null())
    assert 0.1 < tasks["ended"].count() / len(tasks) < 0.3
    assert tasks.filter(pl.col("ended").is_not_null() & (pl.col("inst_num") > 1)).height > 0.7 * tasks["ended"].count()


def test_job_times_are_those_of_its_tasks(tables):
    span = tables["task_table"].group_by("job_name").agg(pl.col("start_time").min(), pl.col("end_time").max())
    job = tables["job_table"].join(span, on="job_name", suffix="_task")
    launched = job.drop_nulls("start_time")
    assert (launched["start_time"] == launched["start_time_task"]).all()
    assert job["end_time"].eq_missing(job["end_time_task"]).all()


def test_some_running_and_waiting_jobs_have_an_end_that_is_a_lower_bound(tables):
    job = tables["job_table"]
    for status in ("Running", "Waiting"):
        assert 0 < job.filter(pl.col("status") == status)["end_time"].count() < 30


def test_missing_instance_times_are_blank_by_status(tables):
    """Each status has its own blank times. tests/real/test_pai_instances.py compares the shares with real rows."""
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


def test_terminated_tasks_end_with_their_last_instance_or_seconds_later(tables):
    terminated = join_instances(tables).filter((pl.col("status") == "Terminated") & pl.col("ended").is_not_null())
    gap_s = terminated["end_time"] - terminated["ended"]
    assert gap_s.is_between(0, 9).all()
    assert 0.85 < (gap_s == 0).mean() < 0.95


def test_running_gangs_hold_ended_and_waiting_instances(tables):
    running = join_instances(tables).filter(pl.col("status") == "Running")
    assert (running["ends"] > 0).sum() >= 3
    assert (running["largest_status"] == "Waiting").sum() >= 3


def test_alphabetically_largest_status_misleads_for_failed_gangs(tables):
    failed = join_instances(tables).filter(pl.col("status") == "Failed")
    assert (failed["largest_status"] == "Terminated").sum() >= 3


def test_gangs_start_within_seconds_and_a_few_straggle(spans, trace):
    retried = trace["instance_table"].filter(pl.col("inst_name").is_duplicated())
    gangs = spans.filter((pl.col("rows") > 1) & (pl.col("status") == "Terminated")).join(retried, on=KEY, how="anti")
    times = trace["instance_table"].join(gangs.select(KEY), on=KEY).filter(pl.col("status") == "Terminated")
    span = times.group_by(KEY).agg(
        (pl.col("start_time").max() - pl.col("start_time").min()).alias("starts"),
        (pl.col("end_time").max() - pl.col("end_time").min()).alias("ends"),
    )
    assert (span["starts"] <= 6).mean() > 0.98
    assert 0.01 < (span["ends"] > 30).mean() < 0.06


# ---- habits: requests ----


def test_blank_plan_gpu_and_blank_gpu_type_are_different_rows(tables):
    task = tables["task_table"]
    assert task["plan_gpu"].min() > 0
    assert len(task.filter(pl.col("plan_gpu").is_null() & pl.col("gpu_type").is_not_null())) >= 3
    assert len(task.filter(pl.col("plan_gpu").is_not_null() & pl.col("gpu_type").is_null())) >= 3
    assert task.filter(pl.col("task_name") == "ps")["plan_gpu"].null_count() > 0
    assert set(task["gpu_type"].drop_nulls()) == set(pai.GPU_TYPES)


def test_rows_are_not_always_inst_num_and_some_tasks_have_none(tables):
    tasks = join_instances(tables)
    for status in ("Terminated", "Failed", "Waiting"):
        assert tasks.filter(pl.col("status") == status)["rows"].null_count() >= 3
    assert (tasks["rows"] < tasks["inst_num"]).sum() >= 3
    assert (tasks["rows"] > tasks["inst_num"]).sum() >= 3


# ---- habits: instances, sensors, tags, machines ----


def test_instances_are_tried_again_on_other_machines(tables):
    tries = tables["instance_table"].filter(pl.len().over("inst_name") > 1)
    time = pl.coalesce("start_time", "end_time")
    tries = tries.sort("inst_name", time, nulls_last=True).with_columns(nth=pl.int_range(pl.len()).over("inst_name"))
    earlier_attempts = tries.filter(pl.col("nth") < pl.len().over("inst_name") - 1)
    assert (earlier_attempts["status"] == "Failed").all()
    # A few types have so few machines that many attempts return to one of them.
    later_attempts = tries.with_columns(prior=pl.col("machine").shift(1).over("inst_name")).drop_nulls("prior")
    assert (later_attempts["machine"] != later_attempts["prior"]).mean() > 0.9
    assert tries.group_by("inst_name").len()["len"].max() >= 3


def test_sensors_cover_a_part_and_have_single_blanks(tables):
    sensor, instance = tables["sensor_table"], tables["instance_table"]
    assert 0.3 < len(sensor) / len(instance) < 0.5
    assert sensor["worker_name"].null_count() == 0
    assert 0 < sensor["cpu_usage"].null_count() < 0.005 * len(sensor)
    assert 0 < sensor["avg_mem"].null_count() < 0.001 * len(sensor)
    assert [sensor[c].null_count() for c in ("read", "write", "read_count", "write_count")] == [3] * 4
    assert (sensor["avg_mem"] <= sensor["max_mem"]).drop_nulls().all()
    assert (sensor["avg_gpu_wrk_mem"] <= sensor["max_gpu_wrk_mem"]).drop_nulls().all()


def test_measured_use_is_mostly_below_the_request(trace):
    pairs = {"plan_cpu": ("cpu_usage", 0.8446), "plan_gpu": ("gpu_wrk_util", 0.9802), "plan_mem": ("avg_mem", 0.9588)}
    mean_use = trace["sensor_table"].group_by(KEY).agg(pl.col(use_column).mean() for use_column, _ in pairs.values())
    task = mean_use.join(trace["task_table"], on=KEY)
    for plan_column, (use_column, share) in pairs.items():
        assert (task[plan_column] > task[use_column]).mean() == pytest.approx(share, abs=0.015)


def test_tags_are_mostly_blank_and_do_not_match_the_jobs_exactly(tables):
    tag, job = tables["group_tag_table"], tables["job_table"]
    assert tag["gpu_type_spec"].null_count() > 0.9 * len(tag)
    assert 0 < tag["workload"].count() < 0.25 * len(tag)
    assert len(tag.join(job, on="inst_id", how="anti")) >= 1
    assert len(job.join(tag, on="inst_id", how="anti")) >= 3
    tagged_jobs = tag.join(job, on="inst_id", suffix="_job")
    assert (tagged_jobs["user"] == tagged_jobs["user_job"]).all()


def test_groups_belong_to_one_user_and_most_jobs_recur(trace):
    groups = trace["group_tag_table"].group_by("group").agg(pl.col("user").n_unique(), pl.len().alias("jobs"))
    assert (groups["user"] == 1).all()
    recurring = groups.filter(pl.col("jobs") >= 5)["jobs"].sum() / groups["jobs"].sum()
    assert recurring == pytest.approx(0.65, abs=0.08)


def test_machines_of_every_type_have_their_capacities(tables):
    spec = tables["machine_spec"].select("gpu_type", "cap_cpu", "cap_gpu").unique()
    assert set(spec.iter_rows()) == {
        ("CPU", 96, 0), ("MISC", 96, 8), ("P100", 64, 2), ("T4", 96, 2), ("V100", 96, 8), ("V100M32", 96, 8),
    }  # fmt: skip
    assert set(tables["machine_spec"]["cap_mem"]) == {384, 512}


def test_all_machines_at_full_size():
    spec = make_machines(pai.PUBLISHED_TASKS, 2020).spec
    assert dict(spec["gpu_type"].value_counts().iter_rows()) == {
        "P100": 798, "T4": 497, "MISC": 280, "V100M32": 135, "V100": 104, "CPU": 83,
    }  # fmt: skip
    assert spec["cap_gpu"].sum() == 6_742


def test_metrics_cover_a_part_of_the_sensors_and_have_nulls(tables):
    metric = tables["machine_metric"]
    assert 0.6 < len(metric) / len(tables["sensor_table"]) < 0.72
    assert metric["machine_cpu"].null_count() > 0
    assert (metric["start_time"] > 0).all()


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


def test_users_and_groups_differ_as_configured(trace):
    """Check the files alone. test_samples_clustered.py checks the mean over several samples."""
    ended = trace["job_table"].filter(pl.col("status").is_in(["Failed", "Terminated"]))
    failed = ended["status"] == "Failed"
    assert design_effect(failed, ended["user"]) > 10
    assert log_sd(failed, ended["user"]) == pytest.approx(pai.USER_LOG_SD, abs=0.25)
    succeeded = ended.filter(~failed).join(trace["group_tag_table"].select("inst_id", "group"), on="inst_id")
    run_s = succeeded["end_time"] - succeeded["start_time"]
    assert intraclass_correlation(run_s, succeeded["group"]) > intraclass_correlation(run_s, succeeded["user"]) > 0.05
    # A group requests the same each time, except a few on the edge between two values.
    requests = trace["job_table"].join(trace["group_tag_table"].select("inst_id", "group"), on="inst_id")
    requests = requests.join(trace["task_table"].unique("job_name", keep="none"), on="job_name")
    repeats = requests.group_by("group").agg(n=pl.len(), values=pl.col("plan_cpu").n_unique()).filter(pl.col("n") > 1)
    assert (repeats["values"] == 1).mean() > 0.9


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


def test_failed_jobs_end_soon(trace):
    failed = trace["job_table"].filter(pl.col("status") == "Failed").drop_nulls("end_time")
    duration_s = failed["end_time"] - failed["start_time"]
    assert duration_s.median() == pytest.approx(220, rel=0.25)
    assert (duration_s < 60).mean() == pytest.approx(0.268, abs=0.06)
    assert (duration_s < 600).mean() == pytest.approx(0.674, abs=0.06)


def test_submissions_follow_the_clock_and_the_week_in_shanghai(trace):
    start_s = trace["task_table"].drop_nulls("start_time")["start_time"].cast(pl.Int64)
    assert start_s.min() == 494_319
    assert (start_s.max() - start_s.min()) / 3_600 == pytest.approx(1_642, abs=2)
    local_s = start_s + 8 * 3_600
    share_by_hour, share_by_day = value_shares(local_s // 3_600 % 24), value_shares((local_s // DAY_S + 3) % 7)
    assert share_by_hour[15] > 3 * share_by_hour[4]
    assert min(share_by_day[d] for d in range(5)) > max(share_by_day[5], share_by_day[6])
