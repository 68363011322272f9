"""Acme: each row of a cluster's job table is one job. Seren ran on Slurm, Kalos on Kubernetes."""

import re

import polars as pl
import pytest
import yaml
from format_tables import derive_table, epoch, filled, ingest_tables, row_of
from ttf.engine.errors import StudyError
from ttf.records.jobs import JOB_COLUMNS

SEREN_HEADER = (
    "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n"
)
KALOS_HEADER = (
    "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,"
    "submit_time,start_time,end_time,fail_time,stop_time,duration,queue,gpu_time\n"
)


# What both clusters have beyond the job record.
EXTRAS = {
    "file": pl.Int32,
    "workload": pl.String,
    "duration_s": pl.Int64,
    "duration_differs": pl.Boolean,
    "negative_queue": pl.Boolean,
    "gpu_requested_milli": pl.Int64,
    "cpu_requested_milli": pl.Int64,
}


def seren_times(rows):
    """01@00:18:22 -> 2023-03-01 00:18:22+08:00"""
    return re.sub(r"(\d\d)@([\d:]{8})", r"2023-03-\1 \2+08:00", rows)


def kalos_times(rows):
    """11:00:58 -> 2023-05-17 11:00:58+00:00"""
    return re.sub(r"\d\d:\d\d:\d\d", r"2023-05-17 \g<0>+00:00", rows)


# The first two rows of each table come from the publishers' README; the others imitate them.
SEREN = SEREN_HEADER + seren_times("""\
5778432,u5907,1,8,128,Other,FAILED,01@00:18:22,01@00:18:54,01@00:20:51,117,32,936.0
5778469,u5907,1,8,128,Other,COMPLETED,01@00:23:58,01@00:24:11,01@01:09:04,2693,13,21544.0
5778470,u1,1,0,16,Debug,COMPLETED,01@00:24:00,01@00:24:00,01@00:24:14,14,0,0.0
5778471,u1,128,1024,16384,Pretrain,NODE_FAIL,01@00:00:00,01@00:00:01,02@00:00:01,86400,1,88473600.0
5778472,u1,1,8,128,MLLM,TIMEOUT,01@00:00:00,01@00:00:00,01@01:00:00,3600,0,28800.0
5778473,u1,1,1,16,Eval,PREEMPTED,01@00:00:00,01@00:01:40,01@00:05:00,200,100,200.0
5778474,u1,1,1,16,SFT,CANCELLED,01@00:00:00,01@00:01:40,01@00:05:00,201,100,200.0
5778475,u1,1,1,16,SFT,CANCELLED,2023-03-01 00:00:00,2023-03-01 00:01:40,2023-03-01 00:05:00,200,100,200.0
5778476,u1,1,1,16,SFT,SUSPENDED,01@00:00:00,01@00:01:40,01@00:05:00,200,100,200.0
""")
# dlc-nine: nine GPUs on two nodes. dlc-cores: its GPUs divide evenly among its nodes, its cores do not.
KALOS = KALOS_HEADER + kalos_times("""\
dlctk696s0jbvitv,uf794,8,64,960,1000,100.0,Other,FAILED,11:00:58,11:01:08,11:01:16,11:01:16,,18,10.0,1152.0
dlc1t2ypl09b8qtp,uf794,8,64,960,1000,100.0,Other,CANCELLED,11:28:42,11:28:54,11:30:04,,11:30:04,82,12.0,5248.0
dlc-cpu,u1,1,0,4,0.5,0.0,Eval,COMPLETED,12:00:00,12:00:09,12:00:31,,,31,9.0,0.0
dlc-nine,u1,2,9,96,100,,SFT,COMPLETED,12:00:00,12:00:10,12:01:50,,,110,10.0,990.0
dlc-cores,u1,3,24,10,100,,Other,COMPLETED,12:00:00,12:00:10,12:01:50,,,110,10.0,2640.0
dlc-half,u1,1,0.5,2,10,,Other,COMPLETED,12:00:00,12:00:10,12:01:50,,,110,10.0,55.0
dlc-queued,u2,1,8,120,100,,Pretrain,CANCELLED,13:00:00,,13:05:00,,13:05:00,300,,
dlc-fail-open,u2,1,8,120,100,,Other,FAILED,13:00:00,13:00:05,,13:00:30,,,5.0,
dlc-done-open,u2,1,8,120,100,,Other,COMPLETED,13:00:00,13:00:05,,,,,5.0,
dlc-running,u2,2,16,240,100,,Pretrain,RUNNING,13:00:00,13:00:20,,,,,20.0,
dlc-clock,u2,1,8,120,,,Debug,FAILED,13:00:00,12:59:59,13:00:19,13:00:19,,19,-1.0,152
dlc-backwards,u2,1,8,120,,,Debug,FAILED,13:00:00,13:00:09,13:00:08,,,8,9.0,64
dlc-last,u2,1,1,1,1,,Debug,FAILED,14:00:00,14:00:00,14:00:00,,14:00:20,0,0.0,0
""")


@pytest.fixture
def cluster(tmp_path):
    """Text of the tables -> (jobs, account, quarantine)."""

    def run(**texts):
        raw, *ingest_results = ingest_tables("acme", tmp_path, **texts)
        return derive_table("acme", "jobs", raw), *ingest_results

    return run


def test_columns_of_a_job_of_seren(cluster):
    jobs, _, _ = cluster(seren=SEREN)
    assert jobs.schema == pl.Schema(JOB_COLUMNS | EXTRAS)
    assert filled(row_of(jobs, "5778432")) == yaml.safe_load("""
        job_id: '5778432'
        user: u5907
        submit_s: 1677601102
        start_s: 1677601134
        end_s: 1677601251
        queue_s: 32
        runtime_s: 117
        outcome: failure
        status_raw: FAILED
        gpu_milli: 8000
        cpu_milli: 128000
        size: 1
        nodes: 1
        trace_end_s: 1677686401
        file: 0
        workload: Other
        duration_s: 117
        duration_differs: false
        negative_queue: false
        gpu_requested_milli: 8000
        cpu_requested_milli: 128000
    """)


def test_columns_of_a_job_of_kalos(cluster):
    jobs, _, _ = cluster(kalos=KALOS)
    extras = {"fail_s": pl.Int64, "stop_s": pl.Int64, "uneven_pods": pl.Boolean}
    assert jobs.schema == pl.Schema(JOB_COLUMNS | EXTRAS | extras)
    assert filled(row_of(jobs, "dlctk696s0jbvitv")) == yaml.safe_load("""
        job_id: dlctk696s0jbvitv
        user: uf794
        submit_s: 1684321258
        start_s: 1684321268
        end_s: 1684321276
        queue_s: 10
        runtime_s: 8
        outcome: failure
        status_raw: FAILED
        gpu_milli: 8000
        cpu_milli: 120000
        mem_mib: 1024000
        size: 8
        nodes: 8
        trace_end_s: 1684332020
        file: 0
        workload: Other
        duration_s: 18
        duration_differs: true
        negative_queue: false
        gpu_requested_milli: 64000
        cpu_requested_milli: 960000
        fail_s: 1684321276
        uneven_pods: false
    """)


def test_a_trace_has_exactly_one_cluster(cluster):
    with pytest.raises(StudyError, match=r"holds both trace_seren\.csv and trace_kalos\.csv; expected one"):
        cluster(seren=SEREN, kalos=KALOS)
    with pytest.raises(StudyError, match=r"neither trace_seren\.csv nor trace_kalos\.csv; expected one"):
        derive_table("acme", "jobs", {})


def test_times_keep_their_written_offset(cluster):
    seren, _, _ = cluster(seren=SEREN)
    kalos, _, _ = cluster(kalos=KALOS)
    assert row_of(seren, "5778469")["start_s"] == epoch(2023, 2, 28, 16, 24, 11)
    assert row_of(seren, "5778471")["submit_s"] == epoch(2023, 2, 28, 16, 0, 0)
    iso_jobs, _, quarantine = cluster(seren=re.sub(r"(-\d\d) (\d\d:)", r"\1T\2", SEREN))
    assert iso_jobs.equals(seren)
    assert quarantine.height == 2
    assert row_of(kalos, "dlc-cpu")["end_s"] == epoch(2023, 5, 17, 12, 0, 31)


def test_every_row_is_accepted_or_quarantined(cluster):
    jobs, account, quarantine = cluster(seren=SEREN)
    assert account.rows() == [("seren", 9, 7, 2)]
    assert jobs.height == 7
    assert quarantine.select("line", "reason", "column").rows() == [
        (9, "not_a_time", "submit_time"),  # no offset
        (10, "unknown_value", "state"),
    ]
    jobs, account, quarantine = cluster(kalos=KALOS)
    assert account.rows() == [("kalos", 13, 13, 0)]
    assert jobs.height == 13
    assert quarantine.select("line", "reason", "column").rows() == [(13, "before_previous_blanked", "end_time")]


def test_quirk_kalos_counts_duration_from_submission(cluster):
    jobs, _, _ = cluster(kalos=KALOS)
    recomputed = jobs.select("job_id", "queue_s", "runtime_s", "duration_s", "duration_differs").rows()
    assert recomputed[:2] == [("dlctk696s0jbvitv", 10, 8, 18, True), ("dlc1t2ypl09b8qtp", 12, 70, 82, True)]
    assert row_of(jobs, "dlc-last")["duration_differs"] is False
    assert row_of(jobs, "dlc-queued")["duration_differs"] is None


def test_pods_add_up_to_the_job(cluster):
    jobs, _, _ = cluster(kalos=KALOS)
    columns = ("size", "gpu_milli", "cpu_milli", "mem_mib", "nodes", "uneven_pods")
    assert [row_of(jobs, "dlc1t2ypl09b8qtp")[name] for name in columns] == [8, 8000, 120000, 1024000, 8, False]
    assert [row_of(jobs, "dlc-nine")[name] for name in columns] == [1, 9000, 96000, 204800, 2, True]
    assert [row_of(jobs, "dlc-cores")[name] for name in columns] == [1, 24000, 10000, 307200, 3, True]
    assert [row_of(jobs, "dlc-half")[name] for name in columns] == [1, 500, 2000, 10240, 1, False]


def test_quirk_kalos_start_and_end_may_be_empty(cluster):
    jobs, _, _ = cluster(kalos=KALOS)
    columns = ("outcome", "queue_s", "runtime_s")
    assert [row_of(jobs, "dlc-queued")[name] for name in columns] == ["cancelled", None, None]
    assert [row_of(jobs, "dlc-fail-open")[name] for name in columns] == ["failure", 5, None]
    assert [row_of(jobs, "dlc-done-open")[name] for name in columns] == ["success", 5, None]
    assert [row_of(jobs, "dlc-running")[name] for name in columns] == ["running", 20, None]


def test_a_start_before_the_submission_blanks_only_the_delay(cluster):
    jobs, _, _ = cluster(kalos=KALOS)
    job = row_of(jobs, "dlc-clock")
    assert (job["queue_s"], job["negative_queue"], job["runtime_s"]) == (None, True, 20)
    assert jobs["negative_queue"].sum() == 1
