"""PAI 2020: the times of a task come from its instances or its own record; none is imputed."""

import polars as pl
import pytest
from format_tables import FORMATS
from hypothesis import given
from hypothesis import strategies as st
from memory_tables import outcome_table
from pai_products import derive_jobs, derive_placements
from ttf.formats.format_declaration import load_outcomes
from ttf.records.durations import durations_of_jobs
from ttf.records.jobs import JOB_COLUMNS, NODE_COLUMNS, read_nodes

END = 5000  # end of the trace, recorded in a separate job
EXTRAS = {
    "inst_num": pl.Int64,
    "job_tasks": pl.Int64,
    "runtime_from": pl.String,
    "task_start_s": pl.Int64,
    "task_end_s": pl.Int64,
    "file": pl.Int32,
    "negative_queue": pl.Boolean,
    "negative_run": pl.Boolean,
    "instance_rows": pl.Int64,
}
TIMES = ("start_s", "end_s", "runtime_s", "queue_s", "runtime_from")


@pytest.fixture
def derive(ingested, tmp_path):
    def run(tasks, instances, **other_tables):
        """Derive jobs from tasks of (job, status, start, end) and instances of (job, start, end)."""
        tables = {
            "job": f"last,i,u0,Running,1.0,{END}.0\n"
            + "".join(f"{job},i{job},u{job},{status},1.0,2.0\n" for job, status, *_ in tasks),
            "task": "".join(
                f"{job},worker,3.0,{status},{start},{end},600.0,29.296875,50.0,T4\n"
                for job, status, start, end in tasks
            ),
            "instance": "".join(
                f"{job},worker,x{n},w,i,Running,{start},{end},m{n % 2}\n"
                for n, (job, start, end) in enumerate(instances)
            )
            or "a,worker,x,w,i,Running,,,\n",
        } | other_tables
        ingested("pai2020", **tables)
        return derive_jobs({name: pl.scan_parquet(tmp_path / "raw" / f"{name}.parquet") for name in tables})

    return run


def test_columns_of_the_job_record(derive):
    jobs = derive([("a", "Terminated", "100.0", "210.0")], [("a", "120.0", "150.0"), ("a", "110.0", "200.0")])
    assert jobs.schema == pl.Schema(JOB_COLUMNS | EXTRAS)
    assert {name: value for name, value in jobs.row(0, named=True).items() if value is not None} == {
        "job_id": "a",
        "task": "worker",
        "user": "ua",
        "submit_s": 100,
        "start_s": 110,
        "end_s": 200,
        "queue_s": 10,
        "runtime_s": 90,
        "outcome": "success",
        "status_raw": "Terminated",
        "gpu_type": "T4",
        "gpu_milli": 500,
        "cpu_milli": 6000,
        "mem_mib": 30000,
        "size": 2,
        "nodes": 2,
        "attempts": 1,
        "trace_end_s": END,
        "inst_num": 3,
        "job_tasks": 1,
        "runtime_from": "instance",
        "task_start_s": 100,
        "task_end_s": 210,
        "file": 0,
        "negative_queue": False,
        "negative_run": False,
        "instance_rows": 2,
    }


@pytest.mark.parametrize(
    ("task", "instances", "expected"),
    [
        # (status, start, end), instances, (start_s, end_s, runtime_s, queue_s, runtime_from)
        (("Terminated", "100", "200"), [("0", "0")], (100, 200, 100, None, "task")),
        (("Terminated", "100", "200"), [("110", "0"), ("0", "180")], (110, 180, 70, 10, "instance")),
        (("Terminated", "100", "200"), [("0", "90"), ("110", "0")], (100, 200, 100, 10, "task")),
        (("Terminated", "100", "100"), [], (100, 100, 0, None, "task")),
        (("Failed", "100", ""), [("110", "130"), ("120", "")], (110, 130, 20, 10, "siblings")),
        (("Running", "100", ""), [("110", "130"), ("120", "0")], (110, 130, 20, 10, "instance")),
        (("Waiting", "100", "200"), [("110", "130")], (None,) * 5),
    ],
)
def test_times_of_a_task(derive, task, instances, expected):
    jobs = derive([("a", *task)], [("a", *times) for times in instances])
    assert jobs.select(TIMES).row(0) == expected


def test_tasks_are_distinguished_by_both_parts_of_their_key(derive, tmp_path):
    row = "{},{},1.0,Terminated,100,200,,,,\n"
    jobs = derive(
        [],
        [],
        task=row.format("a", "ps") + row.format("a", "worker") + row.format("b", "ps"),
        instance="b,ps,1,,,,150,160,\na,ps,1,,,,110,120,\na,ps,2,,,,115,140,\n",
    )
    assert jobs.select("job_id", "task", "start_s", "end_s", "size", "nodes").rows() == [
        ("a", "ps", 110, 140, 2, None),
        ("a", "worker", 100, 200, 1, None),
        ("b", "ps", 150, 160, 1, None),
    ]
    assert jobs["gpu_milli"].to_list() == [None] * 3


def test_rows_with_one_name_are_attempts_of_one_instance(derive):
    rows = ["a,worker,x,w,i,Failed,110,,m1", "a,worker,y,w,i,Terminated,110,300,m2", "a,worker,x,w,i,Failed,,140,m3"]
    rows += ["a,worker,x,w,i,Terminated,150,300,m4"]
    jobs = derive([("a", "Terminated", "100", "300")], [], instance="\n".join(rows) + "\n")
    assert jobs.select("size", "instance_rows", "attempts", "start_s", "end_s").row(0) == (2, 4, 3, 110, 300)


def test_a_failure_without_an_end_is_bounded_by_the_end_of_its_siblings(derive):
    """The failed instance has only a start; its end is at most that of the instances stopped with it."""
    rows = "a,worker,x,w,i,Failed,110,,m1\na,worker,y,w,i,Interrupted,,300,m2\n"
    rows += "b,worker,x,w,i,Failed,110,200,m1\nb,worker,y,w,i,Interrupted,,300,m2\n"
    jobs = derive([("a", "Failed", "100", ""), ("b", "Failed", "100", "")], [], instance=rows)
    assert jobs.select("runtime_s", "runtime_max_s", "runtime_from").rows() == [
        (190, 190, "siblings"),
        (190, None, "instance"),
    ]
    assert durations_of_jobs(jobs).select("duration_s", "duration_max_s").rows() == [(None, 190), (190, None)]


def test_an_end_before_the_start_is_no_run_time_and_is_marked(derive):
    rows = "a,worker,x,w,i,Failed,,90,m1\na,worker,y,w,i,Failed,110,,m2\n"
    jobs = derive([("a", "Failed", "80", "")], [], instance=rows)
    assert jobs.select("start_s", "end_s", "runtime_s", "negative_run").row(0) == (110, None, None, True)


def test_tasks_by_the_instance_table_alone(ingested, tmp_path):
    """A task's status is the worst status among the last attempts of its instances."""
    tries = {
        "again": [("x", "Terminated", 20, 30), ("x", "Failed", "", 10)],
        "failed": [("x", "Failed", 10, ""), ("y", "Interrupted", "", 40), ("z", "Terminated", 10, 40)],
        "runs": [("x", "Failed", 10, ""), ("x", "Running", "", ""), ("y", "Terminated", 10, 40)],
        "waits": [("x", "Waiting", "", "")],
        "stopped": [("x", "Interrupted", "", 40)],
    }
    rows = [
        f"{job},t,{name},w,i,{state},{start},{end},m" for job, rows in tries.items() for name, state, start, end in rows
    ]
    ingested("pai2020", instance="\n".join(rows) + "\n")
    raw = {"instance": pl.scan_parquet(tmp_path / "raw" / "instance.parquet")}
    jobs = derive_jobs(raw)
    assert jobs.equals(derive_jobs(raw, number=3))
    assert jobs.select("job_id", "status_raw", "outcome", "size").rows() == [
        ("again", "Terminated", "success", 1),
        ("failed", "Failed", "failure", 3),
        ("runs", "Running", "running", 2),
        ("waits", "Waiting", "waiting", 1),
        ("stopped", "Interrupted", "cancelled", 1),
    ]
    for column in ("user", "gpu_milli", "submit_s", "inst_num"):
        assert jobs[column].null_count() == jobs.height
    placements = derive_placements(raw).filter(pl.col("job_id") == "again")
    assert placements.select("outcome", "attempt", "placement", "start_s").rows() == [
        ("success", 1, 1, 20),
        ("failure", 0, 1, None),
    ]


def test_durations_of_tasks_without_an_end(derive):
    jobs = derive(
        [
            ("ended", "Failed", "100", "150"),
            ("lost", "Failed", "100", ""),
            ("going", "Running", "100", ""),
            ("partly", "Running", "100", ""),
            ("waits", "Waiting", "", ""),
        ],
        [("lost", "110", ""), ("going", "110", "0"), ("partly", "110", "140"), ("partly", "120", "")],
    )
    durations = durations_of_jobs(jobs)
    assert durations.select("unit_id", "duration_s", "event", "duration_max_s", "gpu_milli", "gpu_count").rows() == [
        ("ended/worker", 50, "failure", None, 1500, 2),
        ("lost/worker", None, "failure", END - 110, 500, 1),
        ("going/worker", END - 110, None, None, 500, 1),
        ("partly/worker", 30, None, None, 1000, 1),
    ]
    table = outcome_table(jobs)
    assert table.select("outcome", "jobs", "n").rows() == [
        ("success", 0, 0),
        ("failure", 2, 1),
        ("running", 2, 2),
        ("waiting", 1, 0),
    ]


def test_a_running_task_has_ended_if_it_or_all_of_its_instances_have(derive):
    jobs = derive(
        [
            ("own", "Running", "100", "300"),
            ("all", "Running", "100", ""),
            ("some", "Running", "100", ""),
            ("last", "Running", "100", ""),
            ("won", "Terminated", "100", "300"),
        ],
        [
            *[("own", "110", "290"), ("own", "110", "")],
            *[("all", "110", "200"), ("all", "110", "250")],
            *[("some", "110", "200"), ("some", "110", "0")],
            ("last", "110", str(END)),
        ],
    )
    assert dict(jobs.select("job_id", "outcome").iter_rows()) == {
        "own": "unknown",
        "all": "unknown",
        "some": "running",
        "last": "running",
        "won": "success",
    }
    rows = durations_of_jobs(jobs).select("unit_id", "duration_s", "event").head(3).rows()
    assert rows == [("own/worker", 180, "unknown"), ("all/worker", 140, "unknown"), ("some/worker", 90, None)]


@pytest.mark.parametrize("table", ["job", "task", "instance"])
@pytest.mark.parametrize("column", ["start", "end"])
def test_the_trace_ends_with_the_last_time_in_any_table(derive, table, column):
    times = {"start": "9000", "end": ""} if column == "start" else {"start": "", "end": "9000"}
    rows = {
        "job": "z,i,u,Failed,{start},{end}\n",
        "task": "a,t,,Failed,{start},{end},,,,\n",
        "instance": "a,worker,,,,,{start},{end},\n",
    }
    other_tables = {table: rows[table].format(**times)}
    if table == "task":
        other_tables["instance"] = "a,t,,,,,,,\n"
    jobs = derive([("a", "Running", "100", "")], [], **other_tables)
    assert jobs["trace_end_s"].unique().to_list() == [9000]


def test_no_time_anywhere(derive):
    jobs = derive([("a", "Failed", "", "")], [], job="a,i,u,Failed,,\n")
    assert jobs.select("trace_end_s", "runtime_s").row(0) == (None, None)
    assert durations_of_jobs(jobs).select("duration_s", "duration_max_s", "event").rows() == [(None, None, "failure")]


def test_sensors_and_tags(derive):
    sensor = "{},worker,w,i,m,g,{},{},{},,,,,,,\n"
    jobs = derive(
        [("a", "Terminated", "100", "200"), ("b", "Terminated", "100", "200")],
        [],
        sensor=sensor.format("a", "100.0", "50.0", "1.0") + sensor.format("a", "200.1", "", "2.0"),
        group_tag="ia,ua,,g1,bert\n",
    )
    assert jobs.select("cpu_used_milli", "gpu_used_milli", "mem_used_mib", "recurrence_group", "workload").rows() == [
        (1501, 500, 1536, "g1", "bert"),
        (None, None, None, None, None),
    ]


def test_machines(ingested, tmp_path):
    ingested("pai2020", machine_spec="m1,P100,64.0,512.0,2.0\nm2,CPU,96,384,0\n")
    raw = {"machine_spec": pl.scan_parquet(tmp_path / "raw/machine_spec.parquet")}
    assert read_nodes(raw, FORMATS["pai2020"]["node_table"]).rows() == [
        ("m1", "P100", 2, 64000, 524288),
        ("m2", "CPU", 0, 96000, 393216),
    ]
    assert read_nodes(raw, FORMATS["pai2020"]["node_table"]).schema == pl.Schema(NODE_COLUMNS)


def test_many_tasks_stay_in_file_order(derive):
    """The rows exceed one batch of the streaming engine."""
    names = [f"j{n * 7919 % 60_013}" for n in range(60_013)]
    jobs = derive(
        [(name, "Terminated", "5", "9") for name in names],
        [(name, "6", name.removeprefix("j") + "0") for name in sorted(names) if name != "j0"],
    )
    assert jobs["job_id"].to_list() == names
    ends = [int(name[1:]) * 10 if name != "j0" else 9 for name in names]
    assert jobs["end_s"].to_list() == ends
    assert jobs["user"].to_list() == [f"u{name}" for name in names]


moment = st.one_of(st.none(), st.integers(1, 30))
status = st.sampled_from(list(load_outcomes("pai2020")))


instances = st.lists(st.tuples(moment, moment), max_size=4)


@given(st.lists(st.tuples(status, moment, moment, instances), min_size=1, max_size=4))
def test_jobs_match_a_derivation_in_plain_python(tasks):
    """Run times are never negative and need two recorded times."""
    tasks = [
        (status, start, end if None in (start, end) or end >= start else None, instances)
        for status, start, end, instances in tasks
    ]
    strings = dict.fromkeys(("job_name", "task_name", "machine", "user", "inst_id", "gpu_type"), pl.String)
    integers = dict.fromkeys(("start_s", "end_s", "inst_num", "cpu_milli", "mem_mib", "gpu_milli", "file"), pl.Int64)
    integers |= {"instance": pl.UInt64}

    def frame(rows, *names):
        return pl.LazyFrame(rows, schema={n: (strings | integers).get(n, pl.String) for n in names}, orient="row")

    raw = {
        "job": frame(
            [(f"j{n}", None, "u", 1, None) for n in range(len(tasks))],
            *("job_name", "inst_id", "user", "start_s", "end_s"),
        ),
        "task": frame(
            [
                (0, f"j{n}", "t", status, start, end, 7, 1, 1, 1, "T4")
                for n, (status, start, end, _) in enumerate(tasks)
            ],
            *("file", "job_name", "task_name", "status", "start_s", "end_s", "inst_num"),
            *("cpu_milli", "mem_mib", "gpu_milli", "gpu_type"),
        ),
        "instance": frame(
            [
                (f"j{n}", "t", number, status, *times, "m")
                for n, (status, *_, instances) in enumerate(tasks)
                for number, times in enumerate(instances)
            ],
            *("job_name", "task_name", "instance", "status", "start_s", "end_s", "machine"),
        ),
    }
    jobs = derive_jobs(raw)
    for row, (status, task_start, task_end, instances) in zip(jobs.iter_rows(named=True), tasks, strict=True):
        start = min((s for s, _ in instances if s), default=None)
        end = max((e for _, e in instances if e), default=None)
        if status == "Waiting":
            expected = (None, None)
        elif start and end and end >= start:
            expected = (end - start, "instance")
        elif task_start and task_end:
            expected = (task_end - task_start, "task")
        else:
            expected = (None, None)
        assert (row["runtime_s"], row["runtime_from"]) == expected
        assert row["size"] == (len(instances) or 7)
        queue = start - task_start if start and task_start and status != "Waiting" else None
        assert row["queue_s"] == (queue if queue is not None and queue >= 0 else None)
        assert row["negative_queue"] == (queue is not None and queue < 0)
    durations = durations_of_jobs(jobs)
    assert durations.height == sum(status != "Waiting" for status, *_ in tasks)
    assert not (durations["duration_s"] < 0).any()
    assert not (durations["duration_max_s"] < 0).any()
