"""The recipes of config/mappings: files of schedulers and trackers, as `ttf report FILE` recognises and reads them."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from recognised_jobs import read_recognised
from ttf.engine.errors import StudyError
from ttf.study.recognition.recognise import recognise

START = datetime(2025, 1, 6, tzinfo=UTC)
T = round(START.timestamp())


@pytest.fixture
def read(tmp_path):
    """Read a file with this content; return the chosen columns of its jobs, without a row in the quarantine."""

    def read_text(content, *columns, name="jobs.data"):
        text = content if isinstance(content, str) else json.dumps(content)
        (tmp_path / name).write_text(text)
        jobs, quarantine = read_recognised(tmp_path / name, tmp_path)
        assert quarantine.rows() == []
        return jobs.select(columns).rows()

    return read_text


def moment(minutes, unit="iso"):
    time = START + timedelta(minutes=minutes)
    return f"{time:%Y-%m-%dT%H:%M:%SZ}" if unit == "iso" else round(time.timestamp() * 1000)


# Lines --------------------------------------------------------------------------------------------------

SWF = """\
; Version: 2.2
; UnixStartTime: {start}
   1      0     10   3600   4   -1 -1    4  7200 -1  1  7  1 -1  2 -1 -1 -1
   2     60.5   -1     -1  -1   -1 -1    8  7200 -1  5  8  1 -1  2 -1 -1 -1
   3    120      5    100   2 90.5 -1   -1    -1 -1  0 -1 -1 -1 -1 -1 -1 -1
"""


def test_standard_workload_format(read):
    columns = ("job_id", "outcome", "submit_s", "start_s", "runtime_s", "cpu_milli", "user")
    rows = [("1", "success", 0, 10, 3600, 4000, "7"), ("2", "cancelled", 60, None, None, 8000, "8")]
    rows += [("3", "failure", 120, 125, 100, 2000, None)]
    dated = [(*row[:2], row[2] + T, row[3] and row[3] + T, *row[4:]) for row in rows]
    assert read(SWF.format(start=T), *columns) == dated
    # Without the start of the trace, times count from zero.
    assert read(SWF.format(start=0).replace("60.5", "60"), *columns) == rows
    assert read("".join(SWF.splitlines(keepends=True)[2:]).replace("60.5", "60"), *columns) == rows


PBS = """\
01/06/2025 00:00:00;Q;1.srv;queue=gpu
01/06/2025 01:00:00;E;1.srv;user=ann group=g account="a b" jobname=x=1 queue=gpu ctime={t} start={t} exec_host=n1/0*8 \
Resource_List.ncpus=8 Resource_List.ngpus=2 Resource_List.nodect=1 end={end} Exit_status=0 resources_used.cput=00:00:01
01/06/2025 01:00:00;E;2[7].srv;user=bob group=g queue=gpu ctime={t} start={t} Resource_List.nodes=2:ppn=4:gpus=3:k80 \
end={end} Exit_status=271
01/06/2025 01:00:00;E;2[7].srv;user=bob group=g queue=gpu ctime={t} start={t} end={end} Exit_status=-11
01/06/2025 02:00:00;L;license;floating license hour:0
"""


def test_pbs_and_torque(read):
    text = PBS.format(t=T, end=T + 3600)
    assert read(text, "job_id", "outcome", "runtime_s", "gpu_milli", "cpu_milli", "nodes", "partition") == [
        ("1.srv", "success", 3600, 2000, 8000, 1, "gpu"),
        ("2[7].srv", "cancelled", 3600, 6000, None, None, "gpu"),
        ("2[7].srv", "failure", 3600, None, None, None, "gpu"),
    ]


def test_a_folder_of_daily_files_is_one_trace(tmp_path):
    (tmp_path / "pbs" / "older").mkdir(parents=True)
    for day in ("20250106", "20250107"):
        (tmp_path / "pbs" / day).write_text(PBS.format(t=T, end=T + 3600))
    assert read_recognised(tmp_path / "pbs", tmp_path)[0].height == 6


def test_a_line_that_is_no_record_is_quarantined(tmp_path):
    (tmp_path / "20250106").write_text(PBS.format(t=T, end=T + 3600) + "01/06/2025 01:00:\n")
    jobs, quarantine = read_recognised(tmp_path / "20250106", tmp_path, max_share=0.5)
    assert jobs.height == 3
    assert quarantine.select("line", "reason", "text").rows() == [(6, "wrong_column_count", "01/06/2025 01:00:")]


def sge_line(number, failed, code, task=0, slave="NONE", unit=1):
    usage = ":".join(["0"] * 17)
    times = f"{T * unit}:{(T + 60) * unit}:{(T + 3660) * unit}"
    last = f"ann:gpu:{usage}:NONE:dep:mpi:4:{task}:0:0:0:-l gpu=1:0:{slave}:0:0:0"
    return f"q:node1:g:ann:train:{number}:sge:0:{times}:{failed}:{code}:3600:" + last.partition("gpu:")[2] + "\n"


def test_grid_engine(read):
    text = "# Version: 8.1\n" + sge_line(1, 0, 0) + sge_line(2, 0, 1, task=5) + sge_line(3, 100, 137, unit=1000)
    text += sge_line(3, 0, 0, slave="1.node2") + sge_line(4, 25, 0)
    assert read(text, "job_id", "outcome", "queue_s", "runtime_s", "cpu_milli") == [
        ("1", "success", 60, 3600, 4000),
        ("2.5", "failure", 60, 3600, 4000),
        ("3", "failure", 60, 3600, 4000),
        ("4", "cancelled", 60, 3600, 4000),
    ]


def test_grid_engine_in_json(read):
    job = {
        "task_number": 0,
        "submission_time": T * 10**6,
        "start_time": (T + 60) * 10**6,
        "end_time": (T + 660) * 10**6,
    }
    ends = [(1, 0, 0), (2, 0, 1), (3, 100, 137)]
    lines = [json.dumps(job | {"job_number": n, "failed": failed, "exit_status": code}) for n, failed, code in ends]
    expected = [("1", "success", 600), ("2", "failure", 600), ("3", "failure", 600)]
    assert read("\n".join(lines), "job_id", "outcome", "runtime_s") == expected


def lsf_line(number, status, hosts=1, info=0, idx=0, extra=""):
    names = " ".join(f'"h{n}"' for n in range(hosts))
    start = T + 60 if hosts else 0
    usage = " ".join(["0.0"] * 19)
    asked = f'2 "any" "other" {hosts} {names}' if hosts else "0 0"
    return (
        f'"JOB_FINISH" "10.1" {T + 3660} {number} 1001 33554438 {max(hosts, 1)} {T} 0 0 {start} "ann" "gpu" '
        f'"select[x == ""y""]" "" "" "login" "dir" "" "o" "e" "f" {asked} {status} 60.0 "name, {idx}" "python a b" '
        f'{usage} "" "proj" 256 1 "" "" {idx} 1 2 "" "" "" "" 0 "" {info} "" -1 "" "" {extra}\n'
    )


def test_lsf(read):
    text = (
        '"JOB_START" "10.1" 1 2 3\n' + lsf_line(1, 64, extra='"rusage[ngpus_physical=2.00]"') + lsf_line(2, 32, hosts=3)
    )
    text += lsf_line(3, 32, info=14, idx=7) + lsf_line(4, 32, hosts=0, info=15)
    assert read(text, "job_id", "outcome", "runtime_s", "gpu_milli", "cpu_milli", "account") == [
        ("1", "success", 3600, 2000, 1000, "proj"),
        ("2", "failure", 3600, None, 3000, "proj"),
        ("3[7]", "cancelled", 3600, None, 1000, "proj"),
        ("4", "cancelled", None, None, 1000, "proj"),
    ]


def test_table_of_lsf(read):
    head = "JobID  GIndex  numProc  numHosts  WallTime(sec)  HostTime(sec)  ExitCode  QueueName  StartTime  EndTime\n\n"
    times = "2025/01/06 00:00:00  2025/01/06 01:00:00\n"
    text = f"{head}7 0 60 1 720 12 0 uv2k {times}8 2 1 1 1 1 256 uv2k {times}"
    assert read(text, "job_id", "outcome", "runtime_s") == [("7", "success", 3600), ("8[2]", "failure", 3600)]


# Slurm --------------------------------------------------------------------------------------------------


def make_sacct_job(number, state, is_new, **fields):
    """Make a job of `sacct --json`: of 23.11 and later, numbers may be unset or infinite, and states are a list."""

    def whole(value):
        return {"set": value is not None, "infinite": value == "all", "number": value or 0} if is_new else value

    tres = [
        {"type": "cpu", "name": "", "id": 1, "count": 8},
        {"type": "mem", "name": "", "id": 2, "count": 65536},
        {"type": "gres", "name": "gpu", "id": 1001, "count": 2},
        {"type": "gres", "name": "gpu:a100", "id": 1002, "count": 2},
    ]
    return {
        "job_id": number,
        "array": {"job_id": 7 if "task" in fields else 0, "task_id": whole(fields.get("task")), "task": ""},
        "association": {"account": "acct", "cluster": "c", "user": "ann", "partition": None},
        "account": "acct",
        "cluster": "c",
        "state": {"current": state if is_new else state[0], "reason": "None"},
        "time": {
            "submission": T,
            "eligible": T,
            "start": fields.get("start", T + 60),
            "end": fields.get("end", T + 3660),
            "elapsed": fields.get("elapsed", 3600),
            "limit": whole(60),
        },
        "exit_code": {"status": ["FAILED"], "return_code": whole(fields.get("code", 0)), "signal": {"id": whole(None)}},
        "derived_exit_code": {"status": "SUCCESS", "return_code": 0},
        "partition": "gpu",
        "nodes": "node[1-2]",
        "allocation_nodes": 2,
        "tres": {"allocated": tres if fields.get("start", 1) else [], "requested": tres},
        "steps": [{"state": "COMPLETED", "tres": {"allocated": []}}],
    }


@pytest.mark.parametrize("is_new", [False, True])
def test_sacct_json(read, is_new):
    jobs = [
        make_sacct_job(1, ["COMPLETED"], is_new),
        make_sacct_job(2, ["FAILED"], is_new, code=1, task=5),
        make_sacct_job(3, ["CANCELLED", "COMPLETING"], is_new, start=0, elapsed=0),
        make_sacct_job(4, ["RUNNING"], is_new, end=0),
    ]
    text = json.dumps({"meta": {"jobs": "[", "plugin": {}}, "errors": [], "jobs": jobs, "warnings": []})
    columns = ("job_id", "job_id_shown", "outcome", "runtime_s", "gpu_milli", "gpu_type", "exit_code", "timelimit_s")
    rows = read(text, *columns, name="jobs.json")
    assert rows == [
        ("1", "1", "success", 3600, 2000, "a100", "0:0", 3600),
        ("2", "7_5", "failure", 3600, 2000, "a100", "1:0", 3600),
        ("3", "3", "cancelled", None, 2000, "a100", "0:0", 3600),
        ("4", "4", "running", 3600, 2000, "a100", "0:0", 3600),
    ]
    # Pages of the REST API follow each other.
    assert len(read(text + text.replace('"job_id": ', '"job_id": 1'), "job_id", name="jobs.json")) == 8


def test_slurm_job_table(read):
    names = (
        "id_job id_array_job id_array_task id_user state exit_code timelimit time_submit time_start time_end tres_alloc"
    )
    rows = [
        ("1", "0", "4294967294", "9", "3", "0", "60", T, T, T + 60, "1=4,2=8192,4=1,5=4,1001=2,1002=2"),
        ("2", "7", "5", "9", "5", "33280", "4294967295", T, T, T + 60, "1=4,2=8192,4=1,1002=1"),
        ("3", "0", "NULL", "9", "0", "0", "60", T, "0", "0", "NULL"),
        ("4", "0", "0", "9", "11", "9", "60", T, T, T + 60, "1=4,11=1,21001=9"),
    ]
    text = "\n".join("\t".join(map(str, row)) for row in [names.split(), *rows])
    columns = ("job_id", "job_id_shown", "status_raw", "runtime_s", "gpu_allocated_milli", "cpu_milli", "exit_code")
    expected = [
        ("1", "1", "COMPLETED", 60, 2000, 4000, "0:0"),
        ("2", "7_5", "FAILED", 60, 1000, 4000, "130:0"),
        ("3", "3", "PENDING", None, None, None, "0:0"),
        ("4", "4", "OUT_OF_MEMORY", 60, 0, 4000, "0:9"),
    ]
    assert read(text, *columns) == expected
    quoted = "\n".join(",".join(f'"{cell}"' for cell in row) for row in [names.split(), *rows])
    assert read(quoted, *columns, name="jobs.csv") == expected


# JSON ---------------------------------------------------------------------------------------------------


def make_pod(number, phase, ended="Completed", exit_code=0, limits=("nvidia.com/gpu=2",), reason=None):
    times = {"startedAt": moment(1), "finishedAt": moment(61)}
    states = {
        "Pending": {"waiting": {"reason": "ContainerCreating"}},
        "Running": {"running": {"startedAt": moment(1)}},
    }
    state = states.get(phase, {"terminated": {"reason": ended, "exitCode": exit_code} | times})
    sidecar = {"terminated": {"reason": "Completed", "exitCode": 0} | times | {"startedAt": moment(2)}}
    status = {"phase": phase, "containerStatuses": [{"state": state}] + [{"state": sidecar}] * (phase == "Failed")}
    return {
        "kind": "Pod",
        "metadata": {"name": f"p{number}", "namespace": "n", "uid": f"u{number}", "creationTimestamp": moment(0)},
        "spec": {
            "containers": [{"resources": {"limits": dict([limit.split("=")]) | {"memory": "4Gi"}}} for limit in limits]
            + [{"name": "sidecar", "resources": {}}],
            "volumes": [{"configMap": {"items": [{"key": "a"}]}}],
        },
        "status": status | ({"reason": reason} if reason else {}),
    }


PODS = [
    make_pod(0, "Succeeded", limits=("nvidia.com/gpu=2", "nvidia.com/gpu=4")),
    make_pod(1, "Failed", "Error", 1, limits=("nvidia.com/mig-1g.10gb=1",)),
    make_pod(2, "Failed", "OOMKilled", 137, limits=("nvidia.com/gpu.shared=1",)),
    make_pod(3, "Failed", "Error", 143, limits=(), reason="DeadlineExceeded"),
    make_pod(4, "Running", limits=("amd.com/gpu=8",)),
    make_pod(5, "Pending", limits=("cpu=8",)),
    make_pod(6, "Unknown"),
]


def test_kubernetes_pods(read):
    columns = ("job_id", "outcome", "status_raw", "reason", "gpu_milli", "queue_s", "runtime_s", "exit_code")
    rows = [
        ("u0", "success", "Succeeded", None, 6000, 60, 3600, "0"),
        ("u1", "failure", "Failed", "Error", None, 60, 3600, "1"),
        ("u2", "failure", "OOMKilled", "OOMKilled", None, 60, 3600, "137"),
        ("u3", "failure", "DeadlineExceeded", "DeadlineExceeded", 0, 60, 3600, "143"),
        ("u4", "running", "Running", None, 8000, 60, None, None),
        ("u5", "waiting", "Pending", None, 0, None, None, None),
        ("u6", "unknown", "Unknown", None, 2000, 60, None, "0"),
    ]
    assert read({"apiVersion": "v1", "items": PODS, "kind": "List"}, *columns) == rows
    assert read(PODS, *columns) == rows
    assert read("\n".join(map(json.dumps, PODS)), *columns) == rows


def test_lists_of_several_days_are_one_trace(tmp_path):
    (tmp_path / "pods").mkdir()
    for day, pods in (
        ("06", [make_pod(1, "Running"), make_pod(2, "Failed", "Error", 1)]),
        ("07", [make_pod(1, "Succeeded")]),
    ):
        (tmp_path / f"pods/2025-01-{day}.json").write_text(json.dumps({"items": pods}))
    jobs, quarantine = read_recognised(tmp_path / "pods", tmp_path)
    assert quarantine.rows() == []
    assert jobs.select("job_id", "outcome", "runtime_s").sort("job_id").rows() == [
        ("u1", "success", 3600),
        ("u2", "failure", 3600),
    ]


def make_kubernetes_job(number, condition=None, parallelism=2, **status):
    conditions = [
        {"type": condition, "status": "True", "lastTransitionTime": moment(90), "reason": "BackoffLimitExceeded"}
    ]
    container = {"resources": {"limits": {"nvidia.com/gpu": "4"}}}
    return {
        "kind": "Job",
        "metadata": {"name": f"j{number}", "namespace": "n", "uid": f"u{number}", "creationTimestamp": moment(0)},
        "spec": {"parallelism": parallelism, "template": {"spec": {"containers": [container]}}},
        "status": status | ({"conditions": conditions} if condition else {}),
    }


def test_kubernetes_jobs(read):
    jobs = [
        make_kubernetes_job(1, "Complete", startTime=moment(1), completionTime=moment(61), succeeded=1),
        make_kubernetes_job(2, "Failed", startTime=moment(1), failed=7),
        make_kubernetes_job(3, startTime=moment(1), active=1),
        make_kubernetes_job(4, "Suspended"),
    ]
    rows = read({"items": jobs}, "job_id", "outcome", "runtime_s", "size", "gpu_milli", "reason")
    assert rows == [
        ("u1", "success", 3600, 2, 4000, None),
        ("u2", "failure", 5340, 2, 4000, "BackoffLimitExceeded"),
        ("u3", "running", None, 2, 4000, None),
        ("u4", "waiting", None, 2, 4000, None),
    ]


def make_ray_job(number, status, **fields):
    times = {"start_time": moment(0, "ms"), "end_time": moment(30, "ms") if status in ("SUCCEEDED", "FAILED") else 0}
    job = {
        "type": "SUBMISSION",
        "job_id": None,
        "submission_id": f"r{number}",
        "status": status,
        "message": "Job finished.",
    }
    return (
        job | {"entrypoint": 'bash -c "\nset -e | x"', "error_type": None, "metadata": {"user": "ann"}} | times | fields
    )


def test_ray(read):
    jobs = [
        make_ray_job(1, "SUCCEEDED"),
        make_ray_job(2, "FAILED", submission_id=None, job_id="02", error_type="E", message="failed\nwith |1"),
        make_ray_job(3, "RUNNING"),
        make_ray_job(4, "PENDING", start_time=None, end_time=None),
    ]
    rows = [
        ("r1", "success", 1800, None),
        ("02", "failure", 1800, "E: failed with ¦1"),
        ("r3", "running", None, None),
        ("r4", "waiting", None, None),
    ]
    assert read(jobs, "job_id", "outcome", "runtime_s", "reason") == rows
    assert read({"result": jobs, "total": 4}, "job_id", "outcome", "runtime_s", "reason") == rows


def make_batch_job(number, status, container=(), **fields):
    requested = [{"type": "GPU", "value": "4"}, {"type": "VCPU", "value": "32"}, {"type": "MEMORY", "value": "65536"}]
    times = {"createdAt": moment(0, "ms")} | ({"startedAt": moment(5, "ms")} if status != "RUNNABLE" else {})
    times |= {"stoppedAt": moment(35, "ms")} if status in ("SUCCEEDED", "FAILED") else {}
    queue = "arn:aws:batch:us-east-1:123456789012:job-queue/gpu"
    job = {"jobId": f"id-{number}", "jobQueue": queue, "status": status}
    return job | {"container": {"resourceRequirements": requested} | dict(container)} | times | fields


def test_aws_batch(read):
    jobs = [
        make_batch_job(1, "SUCCEEDED", container={"exitCode": 0}),
        make_batch_job(2, "FAILED", container={"exitCode": 1}, statusReason="Essential container exited"),
        make_batch_job(3, "FAILED", timeout={"attemptDurationSeconds": 1800}),
        make_batch_job(4, "FAILED", isTerminated=True, isCancelled=False),
        make_batch_job(5, "RUNNING", timeout={"attemptDurationSeconds": 60}),
        make_batch_job(6, "RUNNABLE", container={"resourceRequirements": [], "vcpus": 8, "memory": 2048}),
    ]
    columns = ("job_id", "status_raw", "outcome", "gpu_milli", "cpu_milli", "mem_mib", "runtime_s", "account")
    assert read({"jobs": jobs}, *columns) == [
        ("id-1", "SUCCEEDED", "success", 4000, 32_000, 65_536, 1800, "gpu"),
        ("id-2", "FAILED", "failure", 4000, 32_000, 65_536, 1800, "gpu"),
        ("id-3", "TIMEOUT", "failure", 4000, 32_000, 65_536, 1800, "gpu"),
        ("id-4", "CANCELLED", "cancelled", 4000, 32_000, 65_536, 1800, "gpu"),
        ("id-5", "RUNNING", "running", 4000, 32_000, 65_536, None, "gpu"),
        ("id-6", "RUNNABLE", "waiting", None, 8000, 2048, None, "gpu"),
    ]


def make_condor_job(number, status, **fields):
    job = {"ClusterId": number, "ProcId": 3, "JobStatus": status, "QDate": T, "Owner": "ann", "RequestGpus": 2}
    job |= {"JobStartDate": T, "JobCurrentStartDate": T + 60, "CompletionDate": 0, "EnteredCurrentStatus": T + 660}
    return job | {"RequestCpus": 4, "RequestMemory": 2048} | fields


def test_htcondor(read):
    jobs = [
        make_condor_job(1, 4, CompletionDate=T + 3660, ExitBySignal=False, ExitCode=0),
        make_condor_job(2, 4, CompletionDate=T + 3660, ExitBySignal=False, ExitCode=1),
        make_condor_job(3, 4, CompletionDate=T + 3660, ExitBySignal=True, ExitSignal=9),
        make_condor_job(4, 3, RemoveReason="via condor_rm"),
        make_condor_job(5, 1, JobCurrentStartDate=None, JobStartDate=None, RequestMemory="/Expr(ifthenelse(x, 1, 2))/"),
    ]
    columns = ("job_id", "outcome", "runtime_s", "gpu_milli", "mem_mib", "reason")
    rows = [
        ("1.3", "success", 3600, 2000, 2048, None),
        ("2.3", "failure", 3600, 2000, 2048, None),
        ("3.3", "failure", 3600, 2000, 2048, None),
        ("4.3", "cancelled", 600, 2000, 2048, "via condor_rm"),
        ("5.3", "waiting", None, 2000, None, None),
    ]
    assert read(jobs, *columns) == rows
    assert read(f"{json.dumps(jobs[:2])}\n{json.dumps(jobs[2:])}\n", *columns) == rows


def test_mlflow(read):
    runs = [
        {
            "info": {"run_id": status, "experiment_id": "1", "status": status, "user_id": "ann"}
            | {"start_time": moment(0, "ms"), "end_time": None if status == "RUNNING" else moment(1, "ms")},
            "data": {"tags": [{"key": "mlflow.user", "value": "bob"}], "params": [{"key": "user", "value": "x"}]},
        }
        for status in ("FINISHED", "FAILED", "KILLED", "RUNNING")
    ]
    rows = [
        ("FINISHED", "success", 60),
        ("FAILED", "failure", 60),
        ("KILLED", "cancelled", 60),
        ("RUNNING", "running", None),
    ]
    columns = ("job_id", "outcome", "runtime_s")
    assert read({"runs": runs, "next_page_token": "x"}, *columns) == rows
    assert read({"runs": runs}, "user")[0] == ("bob",)
    text = "run_id,experiment_id,status,artifact_uri,start_time,end_time,tags.mlflow.user\n"
    times = "2025-01-06 00:00:00.250000+00:00,2025-01-06 00:01:00.900000+00:00"
    text += f'"FINISHED",1,FINISHED,"a,b",{times},ann\nFAILED,1,FAILED,"two\nlines",{times},ann\n'
    assert read(text, *columns, name="runs.csv") == rows[:2]


def test_airflow(read):
    states = ("success", "failed", "upstream_failed", "running", None)
    tasks = [
        {
            "dag_id": "d",
            "dag_run_id": "r",
            "task_id": f"t{n}",
            "map_index": -1,
            "state": state,
            "pool": "p",
            "unixname": "a",
        }
        | {"start_date": f"2025-01-06T0{n}:00:00.5+00:00", "queued_when": "2025-01-06T00:00:00+00:00"}
        | {"end_date": None if state in ("running", None) else f"2025-01-06T0{n}:10:00.5+00:00"}
        for n, state in enumerate(states)
    ]
    tasks[4] |= {"start_date": None}
    columns = ("job_id", "outcome", "runtime_s", "account", "partition")
    rows = [(f"d/r/t{n}", outcome, 600, "d", "p") for n, outcome in enumerate(("success", "failure"))]
    rows += [("d/r/t2", "cancelled", None, "d", "p"), ("d/r/t3", "running", None, "d", "p")]
    rows += [("d/r/t4", "waiting", None, "d", "p")]
    assert read({"task_instances": tasks, "total_entries": 5}, *columns) == rows
    runs = "dag_id | run_id | state | execution_date | start_date | end_date".replace(" ", "")
    run = "d|m|failed|2025-01-06T00:00:00+00:00|2025-01-06T00:00:00+00:00|2025-01-06T00:10:00+00:00"
    assert read(f"{runs}\n{run}\n", *columns[:3], name="runs.csv") == [("d/m", "failure", 600)]


def test_oar(read):
    jobs = {
        str(number): {
            "id": number,
            "owner": "ann",
            "queue": "default",
            "project": "p",
            "state": state,
            "exit_code": code,
        }
        | {"submission_time": T, "start_time": T + 60, "stop_time": stop, "assigned_resources": [1, 2]}
        for number, state, code, stop in (
            (1, "Terminated", 0, T + 3660),
            (2, "Terminated", 256, T + 3660),
            (3, "Error", None, T + 3660),
            (4, "Running", None, 0),
        )
    }
    rows = [("1", "success", 3600), ("2", "failure", 3600), ("3", "failure", 3600), ("4", "running", None)]
    assert read(jobs, "job_id", "outcome", "runtime_s") == rows
    assert read({"items": [*jobs.values()]}, "job_id", "outcome", "runtime_s") == rows
    names = {"id": "Job_Id", "submission_time": "submissionTime", "start_time": "startTime", "stop_time": "stopTime"}
    older = {key: {names.get(name, name): part for name, part in job.items()} for key, job in jobs.items()}
    assert read(older, "job_id", "outcome", "runtime_s") == rows


def test_batsim(read):
    text = "job_id,workload_name,submission_time,requested_number_of_resources,success,final_state,starting_time,"
    text += "finish_time\n"
    text += "1,w,0.5,2,1,COMPLETED_SUCCESSFULLY,10.0,100.0\n2,w,1,2,0,COMPLETED_WALLTIME_REACHED,10,70\n"
    text += "2,v,1,2,0,REJECTED,-1,-1\n"
    assert read(text, "job_id", "outcome", "runtime_s", "cpu_milli", name="out_jobs.csv") == [
        ("w!1", "success", 90, 2000),
        ("w!2", "failure", 60, 2000),
        ("v!2", "cancelled", None, 2000),
    ]


def test_flux(read):
    jobs = [
        {"id": n, "userid": 7, "result": result, "state": state, "nnodes": 2, "ncores": 8, "nodelist": "n[1-2]"}
        | {"t_submit": T + 0.75, "t_run": run and T + 60.5, "t_cleanup": end and T + 3660.5}
        for n, result, state, run, end in (
            (1, "COMPLETED", "INACTIVE", 1, 1),
            (2, "TIMEOUT", "INACTIVE", 1, 1),
            (3, "CANCELED", "INACTIVE", 0.0, 1),
            (4, "", "RUN", 1, 0.0),
        )
    ]
    assert read({"jobs": jobs}, "job_id", "outcome", "queue_s", "runtime_s", "cpu_milli") == [
        ("1", "success", 60, 3600, 8000),
        ("2", "failure", 60, 3600, 8000),
        ("3", "cancelled", None, None, 8000),
        ("4", "running", 60, None, 8000),
    ]


def test_volcano_and_kubeflow(read):
    metadata = {"uid": "u", "namespace": "n", "creationTimestamp": moment(0)}
    pods = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 8}}}]}
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata}
    job |= {"spec": {"queue": "q", "tasks": [{"replicas": 2, "template": {"spec": pods}}]}}
    job |= {"status": {"state": {"phase": "Failed", "lastTransitionTime": moment(60)}}}
    assert read({"items": [job]}, "outcome", "partition", "end_s") == [("failure", "q", T + 3600)]
    job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": metadata}
    job |= {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 3, "template": {"spec": pods}}}}}
    conditions = [{"type": "Running", "status": "False", "lastTransitionTime": moment(1)}]
    conditions += [{"type": "Failed", "status": "True", "lastTransitionTime": moment(61)}]
    job |= {"status": {"startTime": moment(1), "conditions": conditions}}
    assert read({"items": [job]}, "outcome", "runtime_s", "gpu_milli") == [("failure", 3600, 24_000)]


def test_cobalt(read):
    names = "COBALT_JOBID QUEUED_TIMESTAMP START_TIMESTAMP END_TIMESTAMP USERNAME_GENID PROJECT_NAME_GENID QUEUE_NAME"
    rows = [
        (
            str(n),
            "2019-01-01 00:00:00.0",
            "2019-01-01 01:00:00.0",
            f"2019-01-01 0{n + 1}:00:00.0",
            "u",
            "p",
            "q",
            "512.0",
            code,
        )
        for n, code in ((1, "0"), (2, "137"))
    ]
    header = [*names.split(), "NODES_USED", "EXIT_STATUS"]
    text = "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in [header, *rows])
    expected = [("1", "success", 3600, 512), ("2", "failure", 7200, 512)]
    assert read(text, "job_id", "outcome", "runtime_s", "nodes", name="jobs.csv") == expected


def test_json_that_no_recipe_knows_is_drafted(read, tmp_path):
    """As experiments of Determined, in an object below another one, or one a line."""
    jobs = [
        {"id": n, "state": f"STATE_{state}", "times": {"startTime": moment(0), "endTime": moment(60)}, "labels": []}
        for n, state in enumerate(("COMPLETED", "ERROR", "CANCELED"))
    ]
    rows = [("0", "success", 3600), ("1", "failure", 3600), ("2", "cancelled", 3600)]
    for content in ({"meta": {}, "data": {"experiments": jobs}}, jobs, "\n".join(map(json.dumps, jobs))):
        assert read(content, "job_id", "outcome", "runtime_s", name="experiments.json") == rows
    entry = recognise(tmp_path / "experiments.json").entry
    assert entry["records"] == {"columns": {"startTime": "times_startTime", "endTime": "times_endTime"}}


WANDB = """\
"Name","State","Notes","User","Tags","Created","Runtime","Sweep","lr"
"a","finished","-","ann","","2025-01-06T00:00:00.000Z","3600","","0.001"
"a","crashed","ran, and ""broke"" it","ann","","2025-01-06T02:00:00.000Z","60","","0.1"
"c","killed","-","bob","","2025-01-06T04:00:00.000Z","180","",""
"d","running","-","bob","","2025-01-06T05:00:00.000Z","240","",""
"""


def test_wandb(read):
    rows = read(WANDB, "job_id", "user", "outcome", "runtime_s", name="wandb.csv")
    outcomes = (("a", "ann", "success"), ("a", "ann", "failure"), ("c", "bob", "cancelled"), ("d", "bob", "running"))
    assert rows == [(*row, runtime_s) for row, runtime_s in zip(outcomes, (3600, 60, 180, 240), strict=True)]


# Damage -------------------------------------------------------------------------------------------------


def test_cut_json_names_its_record(tmp_path):
    text = json.dumps({"items": PODS})
    (tmp_path / "pods.json").write_text(text[: text.index('"u3"')])
    with pytest.raises(StudyError, match=r"pods\.json: line 1: record 4 of the array is cut short"):
        read_recognised(tmp_path / "pods.json", tmp_path)


def test_wrong_sql_is_named(tmp_path):
    (tmp_path / "jobs.json").write_text(json.dumps([make_ray_job(1, "SUCCEEDED")]))
    entry = recognise(tmp_path / "jobs.json").entry
    from ttf.formats.table.read import build_readers, schema_document
    from ttf.raw.raw_tables import table_schemas

    for sql, message in (("NULLIF(", "records.columns: 'NULLIF\\('"), ("CAST(message AS DOUBLE)", "records.columns: ")):
        entry["records"]["columns"]["reason"] = sql
        reader = build_readers(entry)["rows"]
        with pytest.raises(StudyError, match=message):
            list(reader.rows(tmp_path / "jobs.json", table_schemas(schema_document(entry))["rows"]))
