"""openb: one pod is one job."""

import polars as pl
import pytest
import yaml
from format_tables import FORMATS, derive_table
from study_runs import PODS_HEADER
from ttf.records.jobs import JOB_COLUMNS, NODE_COLUMNS, read_nodes

HEADER = f"{PODS_HEADER}\n"


@pytest.fixture
def pods(ingested, tmp_path):
    def run(*rows):
        ingested("openb", pods=HEADER + "".join(f"p{n},{row}\n" for n, row in enumerate(rows)))
        return derive_table("openb", "jobs", {"pods": pl.scan_parquet(tmp_path / "raw/pods.parquet")})

    return run


def test_columns_of_the_job_record(pods):
    jobs = pods("12000,16384,1,460,V100M16|V100M32,LS,Succeeded,5,90,40")
    assert jobs.schema == pl.Schema(JOB_COLUMNS | {"file": pl.Int32, "qos": pl.String, "num_gpu": pl.Int64})
    assert {name: value for name, value in jobs.row(0, named=True).items() if value is not None} == yaml.safe_load("""
        job_id: p0
        submit_s: 5
        start_s: 40
        end_s: 90
        queue_s: 35
        runtime_s: 50
        outcome: success
        status_raw: Succeeded
        gpu_type: V100M16|V100M32
        gpu_milli: 460
        cpu_milli: 12000
        mem_mib: 16384
        size: 1
        nodes: 1
        attempts: 1
        trace_end_s: 90
        qos: LS
        num_gpu: 1
        file: 0
    """)


def test_time_zero_is_a_time(pods):
    jobs = pods("1,1,0,0,,LS,Running,0,100,0", "1,1,0,0,,LS,Failed,0,0,0")
    assert jobs.select("start_s", "runtime_s", "queue_s").rows() == [(0, 100, 0), (0, 0, 0)]


def test_gpu_request(pods):
    jobs = pods(
        "1,1,1,460,,LS,Failed,0,1,0",
        "1,1,2,1000,,LS,Failed,0,1,0",
        "1,1,8,1000,,LS,Failed,0,1,0",
        "1,1,0,0,,BE,Failed,0,1,0",
        "1,1,0,500,,BE,Failed,0,1,0",
        "1,1,4,0,,BE,Failed,0,1,0",
    )
    assert jobs["gpu_milli"].to_list() == [460, 2000, 8000, 0, 0, 4000]


def test_outcomes_and_censoring(pods):
    jobs = pods(
        "1,1,1,1000,,LS,Succeeded,0,50,10",
        "1,1,1,1000,,LS,Failed,0,60,10",
        "1,1,1,1000,,LS,Running,0,70,10",  # deleted before the trace's end
        "1,1,1,1000,,LS,Running,0,100,10",
        "1,1,1,1000,,LS,Running,0,,10",
        "1,1,1,1000,,LS,Pending,0,,",
        "1,1,1,1000,,LS,Pending,0,100,",
        "1,1,1,1000,,LS,Pending,0,100,20",  # pending in spite of a scheduled time
        "1,1,1,1000,,LS,Failed,0,90,",
    )
    assert jobs.select("outcome", "start_s", "end_s", "queue_s", "runtime_s", "nodes").rows() == [
        ("success", 10, 50, 10, 40, 1),
        ("failure", 10, 60, 10, 50, 1),
        ("unknown", 10, 70, 10, 60, 1),
        ("running", 10, 100, 10, 90, 1),
        ("running", 10, None, 10, None, 1),
        *[("waiting", None, None, None, None, None)] * 3,
        ("failure", None, None, None, None, None),
    ]
    assert jobs["trace_end_s"].unique().to_list() == [100]


def test_nodes(ingested, tmp_path):
    ingested("openb", nodes="sn,cpu_milli,memory_mib,gpu,model\nn0,32000,262144,0,\nn1,64000,262144,2,P100\n")
    raw = {"nodes": pl.scan_parquet(tmp_path / "raw/nodes.parquet")}
    node_table = FORMATS["openb"]["node_table"]
    assert read_nodes(raw, node_table).rows() == [
        ("n0", None, 0, 32000, 262144),
        ("n1", "P100", 2, 64000, 262144),
    ]
    assert read_nodes({}, node_table).schema == pl.Schema(NODE_COLUMNS)
