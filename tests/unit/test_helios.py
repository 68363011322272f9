"""Helios: one row of a cluster's Slurm log is one job."""

import polars as pl
import pytest
import yaml
from format_tables import derive_table, filled, ingest_tables, row_of
from ttf.records.jobs import JOB_COLUMNS

HEADER = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
# Three rows of the publishers' README and nine more like them.
LOG = HEADER + (
    "1425511,uXBbc,vcJkd,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0\n"
    "1425512,uVMrF,vchbv,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0\n"
    "1425513,uzqls,vcpDC,1,1,1,CANCELLED,2020-06-09 18:41:28,2020-06-09 18:41:28,2020-06-17 14:15:21,675233,0\n"
    "1425514,uzqls,vcpDC,0,8,1,COMPLETED,2020-06-09 18:41:30,2020-06-09 18:41:32,2020-06-09 18:41:34,2,2\n"
    "1425515,uzqls,vcpDC,64,256,8,TIMEOUT,2020-06-09 19:00:00,2020-06-09 19:10:00,2020-07-29 19:10:09,4320009,600\n"
    "1425516,uXBbc,vcJkd,8,32,1,NODE_FAIL,2020-06-10 00:00:00,2020-06-10 00:00:05,2020-06-10 01:00:05,3600,5\n"
    "1425517,uXBbc,vcJkd,1,4,1,SUSPENDED,2020-06-10 00:00:00,2020-06-10 00:00:05,2020-06-10 01:00:05,3600,5\n"
    "1425518,uXBbc,vc7Bz,1,4,1,FAILED,2020-06-10 08:00:00,2020-06-10 08:00:00,2020-06-10 08:00:00,0,0\n"
    "1425519,uXBbc,vcJkd,2,4,1,COMPLETED,2020-06-10 08:00:00,2020-06-10 08:00:10,2020-06-10 08:01:10,70,10\n"
    "1425520,uXBbc,vcJkd,2,4,1,COMPLETED,2020-06-10 08:00,2020-06-10 08:00:10,2020-06-10 08:01:10,60,10\n"
    "1425521,uXBbc,vcJkd,2,4,1,CANCELLED,2020-06-10 08:00:00,,,,\n"
    "1425522,,,0,,1,CANCELLED,2020-06-10 09:00:00,2020-06-10 09:00:00,2020-06-10 09:00:01,1,0\n"
)


@pytest.fixture
def cluster(tmp_path):
    """Return a function that reads table texts as (jobs, account, quarantine)."""

    def run(folder="venus", max_share=1.0, **texts):
        raw, *account_and_quarantine = ingest_tables("helios", tmp_path / folder, max_share, **texts)
        return derive_table("helios", "jobs", raw), *account_and_quarantine

    return run


def test_columns_of_the_job_record(cluster):
    jobs, _, _ = cluster(log=LOG)
    extras = {"file": pl.Int32, "duration_s": pl.Int64, "duration_differs": pl.Boolean, "test_vc": pl.Boolean}
    assert jobs.schema == pl.Schema(JOB_COLUMNS | extras)
    assert filled(row_of(jobs, "1425512")) == yaml.safe_load("""
        job_id: '1425512'
        user: uVMrF
        account: vchbv
        submit_s: 1591699287
        start_s: 1591699287
        end_s: 1591699536
        queue_s: 0
        runtime_s: 249
        outcome: failure
        status_raw: FAILED
        gpu_milli: 4000
        cpu_milli: 16000
        size: 1
        nodes: 1
        trace_end_s: 1596021009
        file: 0
        duration_s: 249
        duration_differs: false
        test_vc: false
    """)


def test_every_row_is_accepted_or_quarantined(cluster):
    jobs, account, quarantine = cluster(log=LOG)
    assert account.rows() == [("log", 12, 10, 2)]
    assert jobs.height == 10
    assert quarantine.select("line", "reason", "column").rows() == [
        (8, "unknown_value", "state"),
        (11, "not_a_time", "submit_time"),
    ]


def test_run_time_and_queue_are_recomputed_and_the_duration_compared(cluster):
    jobs, _, _ = cluster(log=LOG)
    columns = ("runtime_s", "queue_s", "duration_s", "duration_differs")
    assert [row_of(jobs, "1425519")[name] for name in columns] == [60, 10, 70, True]
    assert [row_of(jobs, "1425515")[name] for name in columns] == [4320009, 600, 4320009, False]
    assert [row_of(jobs, "1425521")[name] for name in columns] == [None] * 4
    assert jobs["duration_differs"].sum() == 1


def test_quirk_a_job_id_is_unique_in_one_cluster_only(cluster):
    first = LOG.splitlines()[1] + "\n"
    venus, _, quarantine = cluster("venus", log=HEADER + first + first.replace("uXBbc", "uOther"))
    assert (venus.height, quarantine["reason"].to_list()) == (1, ["duplicate_key"])
    assert venus["user"].to_list() == ["uXBbc"]
    earth, _, quarantine = cluster("earth", log=HEADER + first)
    assert (earth["job_id"].to_list(), quarantine.height) == (venus["job_id"].to_list(), 0)


def test_quirk_virtual_clusters_keep_their_names_and_the_test_cluster_is_marked(cluster):
    jobs, _, _ = cluster(log=LOG)
    assert set(jobs["account"]) == {"vcJkd", "vchbv", "vcpDC", "vc7Bz", None}
    assert jobs.filter("test_vc")["job_id"].to_list() == ["1425518"]


def test_quirk_capacity_is_that_of_the_day(cluster):
    # Columns of virtual clusters are ignored; days are in Chinese local time.
    capacity = "date,vcJkd,vc8Sj,total\n2020-06-09,16,0,1064\n2020-06-10,0,0,1080\n2020-06-09,16,0,9\n"
    jobs, account, quarantine = cluster(log=LOG, gpu_number=capacity)
    assert account.rows() == [("log", 12, 10, 2), ("gpu_number", 3, 2, 1)]
    assert quarantine.filter(pl.col("table") == "gpu_number")["reason"].to_list() == ["duplicate_key"]
    assert jobs.columns[-1] == "cluster_gpus"
    # 1425516 started at 2020-06-10 00:00:05 in China, the day before in UTC.
    assert jobs["cluster_gpus"].to_list() == [1064, 1064, 1064, 1064, 1064, 1080, 1080, 1080, None, 1080]
    assert row_of(jobs, "1425511")["account"] == "vcJkd"
