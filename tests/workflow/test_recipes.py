"""The mappings of config/mappings, typed as their comments say: the tool's JSON, jq, ttf report DATA. --config"""

import csv
import json
import re
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
import yaml
from study_runs import ROOT, check_out

MAPPINGS = ROOT / "config/mappings"
NAMES = sorted(path.stem for path in MAPPINGS.glob("*.yaml"))
START = datetime(2025, 1, 6, tzinfo=UTC)
needs_jq = pytest.mark.skipif(not shutil.which("jq"), reason="jq is not installed")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    return check_out(tmp_path_factory.mktemp("recipes") / "checkout")


def moment(minutes, unit="iso"):
    time = START + timedelta(minutes=minutes)
    return f"{time:%Y-%m-%dT%H:%M:%SZ}" if unit == "iso" else round(time.timestamp() * 1000)


def make_pod(number, phase, minutes=60, reason=None, ended="Completed", exit_code=0, gpus=(2,)):
    """Make a pod that was created every 10 minutes and began a minute later, in the layout of `kubectl get pods`."""
    begin = 10 * number + 1
    times = {"startedAt": moment(begin), "finishedAt": moment(begin + minutes)}
    if phase == "Pending":
        states = [{"waiting": {"reason": "ContainerCreating"}}]
    elif phase == "Running":
        states = [{"running": {"startedAt": moment(begin)}}]
    else:
        states = [{"terminated": {"reason": ended, "exitCode": exit_code} | times}]
    status = {"phase": phase, "containerStatuses": [{"name": "main", "state": state} for state in states]}
    if reason:
        status |= {"reason": reason}
        if reason == "Evicted":
            del status["containerStatuses"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"train-{number}",
            "namespace": f"team-{number % 7}",
            "uid": f"uid-{number}",
            "creationTimestamp": moment(10 * number),
        },
        "spec": {
            "containers": [
                {"name": f"c{i}", "resources": {"limits": {"nvidia.com/gpu": str(count), "memory": "64Gi"}}}
                for i, count in enumerate(gpus)
            ]
            + [{"name": "sidecar", "resources": {}}],
        },
        "status": status,
    }


PODS = [
    make_pod(0, "Succeeded", gpus=(2, 4)),
    make_pod(1, "Failed", ended="Error", exit_code=1),
    make_pod(2, "Failed", ended="OOMKilled", exit_code=137),
    make_pod(3, "Failed", reason="DeadlineExceeded", ended="Error", exit_code=143),
    make_pod(4, "Failed", reason="Evicted"),
    make_pod(5, "Running"),
    make_pod(6, "Pending"),
    make_pod(7, "Unknown", ended="Error", exit_code=1),
]
PODS += [
    make_pod(number, "Failed" if number % 3 == 0 else "Succeeded", 20 + number % 200, exit_code=number % 3 == 0)
    for number in range(8, 400)
]


def make_ray_job(number, status, minutes=30, **fields):
    begun, over = status != "PENDING", status in ("SUCCEEDED", "FAILED", "STOPPED")
    return {
        "type": "SUBMISSION" if number % 2 else "DRIVER",
        "job_id": f"{number:08d}" if begun else None,
        "submission_id": f"raysubmit_{number}" if number % 2 else None,
        "driver_info": None,
        "status": status,
        "entrypoint": 'python train.py --text "a, b"',
        "message": "Job finished.",
        "error_type": None,
        "start_time": moment(10 * number, "ms") if begun else None,
        "end_time": moment(10 * number + minutes, "ms") if over else (0 if begun else None),
        "metadata": {},
        "runtime_env": {},
        "driver_exit_code": None,
    } | fields


RAY_JOBS = [
    make_ray_job(1, "SUCCEEDED"),
    make_ray_job(2, "FAILED", error_type="JOB_ENTRYPOINT_COMMAND_ERROR", message="Job failed\nwith exit code 1"),
    make_ray_job(3, "STOPPED"),
    make_ray_job(4, "RUNNING"),
    make_ray_job(5, "PENDING"),
]


def make_batch_job(number, status, minutes=30, container=(), **fields):
    began, over = status not in ("RUNNABLE", "SUBMITTED"), status in ("SUCCEEDED", "FAILED")
    times = {"startedAt": moment(10 * number + 5, "ms")} if began else {}
    times |= {"stoppedAt": moment(10 * number + 5 + minutes, "ms")} if over else {}
    requested = [{"type": "GPU", "value": "4"}, {"type": "VCPU", "value": "32"}, {"type": "MEMORY", "value": "65536"}]
    return (
        {
            "jobArn": f"arn:aws:batch:us-east-1:123456789012:job/{number}",
            "jobName": "train",
            "jobId": f"id-{number}",
            "jobQueue": "arn:aws:batch:us-east-1:123456789012:job-queue/gpu-queue",
            "status": status,
            "createdAt": moment(10 * number, "ms"),
            "jobDefinition": "arn:aws:batch:us-east-1:123456789012:job-definition/train:1",
            "container": {"resourceRequirements": requested} | dict(container),
        }
        | times
        | fields
    )


BATCH_JOBS = [
    make_batch_job(1, "SUCCEEDED", container={"exitCode": 0}),
    make_batch_job(2, "FAILED", statusReason="Essential container in task exited", container={"exitCode": 1}),
    make_batch_job(3, "FAILED", timeout={"attemptDurationSeconds": 1800}, container={"exitCode": 137}),
    make_batch_job(4, "FAILED", isTerminated=True, isCancelled=False, statusReason="stop"),
    make_batch_job(5, "RUNNING", timeout={"attemptDurationSeconds": 60}),
    make_batch_job(6, "RUNNABLE", container={"resourceRequirements": [], "vcpus": 8, "memory": 2048}),
]
# The layout of two exports in public repositories.
WANDB = """\
"Name","State","Notes","User","Tags","Created","Runtime","Sweep","lr"
"a","finished","-","ann","","2025-01-06T00:00:00.000Z","3600","","0.001"
"a","crashed","-","ann","","2025-01-06T02:00:00.000Z","60","","0.1"
"b","failed","ran, and ""broke"" it","bob","","2025-01-06T03:00:00.000Z","120","",""
"c","killed","-","bob","","2025-01-06T04:00:00.000Z","180","",""
"d","running","-","bob","","2025-01-06T05:00:00.000Z","240","",""
"""
TEXTS = {
    "kubernetes": json.dumps({"apiVersion": "v1", "kind": "List", "items": PODS}),
    "ray": json.dumps(RAY_JOBS),
    "aws_batch": json.dumps({"jobs": BATCH_JOBS}),
    "wandb": WANDB,
}


def typed_commands(name):
    """Return the commands in the comment of a mapping: [the tool with jq, if it needs one, ttf report]."""
    lines = [line.removeprefix("#").strip() for line in (MAPPINGS / f"{name}.yaml").read_text().splitlines()]
    return [line for line in lines if re.match(r"(kubectl|ray|aws|ttf) .*(\.csv|\.jq)", line)]


def convert(checkout, name):
    """Type the recipe's jq, with the text of the tool instead of the tool; return the CSV file."""
    *tools, typed = typed_commands(name)
    file = checkout.folder / name / re.search(r"report (\S+)", typed)[1]
    file.parent.mkdir(exist_ok=True)
    if not tools:
        file.write_text(TEXTS[name])
        return file
    command, target = tools[0].partition(" | ")[2].split(" > ")
    assert target == file.name
    with file.open("w") as stdout:
        subprocess.run(command.split(), input=TEXTS[name], stdout=stdout, cwd=checkout.folder, text=True, check=True)
    return file


def report(checkout, name, data, *targets):
    """Type `ttf report DATA --config`, whose command this is."""
    config = re.search(r"--config (\S+)", typed_commands(name)[-1])[1]
    return checkout.report(*(["--", *targets] if targets else []), config=config, data=str(data))


def read_jobs(checkout, name):
    data = convert(checkout, name).relative_to(checkout.folder)
    process = report(checkout, name, data, f"results/{name}/jobs.parquet")
    assert process.returncode == 0, process.stdout + process.stderr
    assert pl.read_parquet(checkout.folder / f"results/{name}/quality/quarantine.parquet").rows() == []
    return pl.read_parquet(checkout.folder / f"results/{name}/jobs.parquet")


def test_every_recipe_is_tested_and_says_its_source():
    assert set(NAMES) == set(TEXTS)
    for name in NAMES:
        text = (MAPPINGS / f"{name}.yaml").read_text()
        assert "ttf report " in text and f" --config config/mappings/{name}.yaml" in text
        assert list(yaml.safe_load(text)["registry"]) == yaml.safe_load(text)["study"] == [name]
        assert re.search(r"kubernetes\.io|ray\.dashboard|docs\.wandb\.ai|API reference of AWS", text)


@needs_jq
def test_kubernetes(checkout):
    jobs = read_jobs(checkout, "kubernetes")
    assert jobs.height == len(PODS)
    rows = jobs.head(8).select("job_id", "outcome", "status_raw", "reason", "gpu_milli", "queue_s", "runtime_s").rows()
    assert rows == [
        ("uid-0", "success", "Succeeded", None, 6000, 60, 3600),
        ("uid-1", "failure", "Failed", "Error", 2000, 60, 3600),
        ("uid-2", "failure", "OOMKilled", "OOMKilled", 2000, 60, 3600),
        ("uid-3", "failure", "DeadlineExceeded", "DeadlineExceeded", 2000, 60, 3600),
        ("uid-4", "failure", "Failed", "Evicted", 2000, None, None),
        ("uid-5", "running", "Running", None, 2000, 60, None),
        ("uid-6", "waiting", "Pending", None, 2000, None, None),
        ("uid-7", "unknown", "Unknown", "Error", 2000, 60, None),
    ]
    assert jobs["account"].n_unique() == 7 and jobs["exit_code"].head(3).to_list() == ["0", "1", "137"]


@needs_jq
def test_kubernetes_becomes_a_page(checkout):
    data = convert(checkout, "kubernetes").relative_to(checkout.folder)
    process = report(checkout, "kubernetes", data)
    assert process.returncode == 0, process.stdout + process.stderr
    page = (checkout.folder / "results/studies/kubernetes/report/index.html").read_text()
    assert "Next requests" in page
    # Typed again without arguments, it is the same study of the same file.
    again = checkout.report("-n", study="kubernetes")
    assert "Nothing to be done" in again.stdout + again.stderr


@needs_jq
def test_ray(checkout):
    jobs = read_jobs(checkout, "ray")
    assert jobs.select("job_id", "outcome", "runtime_s", "reason").rows() == [
        ("raysubmit_1", "success", 1800, None),
        ("00000002", "failure", 1800, "JOB_ENTRYPOINT_COMMAND_ERROR: Job failed with exit code 1"),
        ("raysubmit_3", "cancelled", 1800, None),
        ("00000004", "running", None, None),
        ("raysubmit_5", "waiting", None, None),
    ]


@needs_jq
def test_aws_batch(checkout):
    jobs = read_jobs(checkout, "aws_batch")
    assert jobs.select("job_id", "status_raw", "outcome", "gpu_milli", "cpu_milli", "mem_mib", "runtime_s").rows() == [
        ("id-1", "SUCCEEDED", "success", 4000, 32_000, 65_536, 1800),
        ("id-2", "FAILED", "failure", 4000, 32_000, 65_536, 1800),
        ("id-3", "TIMEOUT", "failure", 4000, 32_000, 65_536, 1800),
        ("id-4", "CANCELLED", "cancelled", 4000, 32_000, 65_536, 1800),
        ("id-5", "RUNNING", "running", 4000, 32_000, 65_536, None),
        ("id-6", "RUNNABLE", "waiting", None, 8000, 2048, None),
    ]
    assert set(jobs["account"]) == {"gpu-queue"} and set(jobs["queue_s"].drop_nulls()) == {300}


def test_wandb(checkout):
    jobs = read_jobs(checkout, "wandb")
    assert jobs.select("job_id", "user", "outcome", "runtime_s").rows() == [
        ("a", "ann", "success", 3600),
        ("a", "ann", "failure", 60),
        ("b", "bob", "failure", 120),
        ("c", "bob", "cancelled", 180),
        ("d", "bob", "running", 240),
    ]


def test_cells_that_look_like_code_stay_text(checkout):
    """jq quotes every text, and nothing of the record is evaluated."""
    if not shutil.which("jq"):
        pytest.skip("jq is not installed")
    job = make_ray_job(1, "FAILED", message='"; rm -rf / #\n=1+1,"x"', error_type="$(touch x)")
    command = ["jq", "-r", "-f", str(MAPPINGS / "ray.jq")]
    text = subprocess.run(command, input=json.dumps([job]), capture_output=True, text=True, check=True).stdout
    (row,) = csv.DictReader(text.splitlines())
    assert row["reason"] == '$(touch x): "; rm -rf / # =1+1,"x"'


def test_wrong_data_is_named(checkout):
    text = "study: [a, b]\n"
    (checkout.folder / "two.yaml").write_text(text)
    Path(checkout.folder / "pods.json").write_text("{}")
    for config, data, message in (
        ("config/mappings/ray.yaml", "nowhere.csv", "nowhere.csv: there is no such file or folder."),
        ("two.yaml", "pods.json", "pods.json: --config two.yaml must name one trace"),
        (
            "config/mappings/kubernetes.yaml",
            "pods.json",
            "first make a CSV of it: jq -r -f config/mappings/kubernetes.jq pods.json > pods.csv",
        ),
    ):
        process = checkout.report(config=config, data=data)
        assert process.returncode == 1 and message in process.stderr, process.stderr
