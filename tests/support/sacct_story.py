"""Events of a few jobs on a real Slurm, and the tables that the study has to derive from their accounting.

tests/slurm/test_accounting.py runs it. tests/fixtures/sacct/ stores the dumps of one run, so the same expectations are
tested without Slurm. Jobs are identified by JobID: raw ids of array tasks depend on which task starts first.
"""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
from format_tables import derive_table, raw_schemas
from ttf.formats.sacct import read as sacct_reader
from ttf.raw.implausible_cells import IS_BLANKED
from ttf.raw.ingest import ingest

FIXTURES = Path(__file__).parents[1] / "fixtures" / "sacct"

# The fields that the README recommends.
FIELDS = (
    "JobIDRaw,JobID,Cluster,User,Account,Partition,QOS,State,ExitCode,DerivedExitCode,Submit,Eligible,Start,End,"
    "ElapsedRaw,Suspended,TimelimitRaw,NNodes,NodeList,ReqTRES,AllocTRES,Reason,Flags"
)
# Fields of the events of nodes and of the cluster.
NODE_FIELDS = "Cluster,NodeName,Start,End,State,StateRaw,Reason,User"
CLUSTER_FIELDS = "Cluster,ClusterNodes,Start,End,TRES,Reason"
# Other fields in another order, with steps and with sacct's default times. sacct fails on unknown fields, so dump()
# drops those that this version lacks.
OTHER_FIELDS = (
    "State,JobID,JobIDRaw,End,Start,Submit,Elapsed,Suspended,User,NCPUS,ReqMem,NNodes,NodeList,AllocTRES,ReqTRES,"
    "Reserved,Planned,Restarts,FailedNode,MaxRSS"
)

# JobID -> outcome, states of its runs, GPUs (requested), nodes of its last run.
EXPECTED = {
    "1": ("success", ["COMPLETED"], 4, ["n1"]),
    "2": ("failure", ["FAILED"], 2, ["n1"]),
    "3": ("failure", ["TIMEOUT"], 1, ["n1"]),
    "4": ("cancelled", ["CANCELLED"], 0, ["n1"]),
    "5": ("success", ["REQUEUED", "COMPLETED"], 1, ["n1"]),
    "6": ("running", ["REQUEUED"], 1, ["n1"]),
    "7": ("failure", ["NODE_FAIL"], 2, ["n2"]),
    "8": ("success", ["NODE_FAIL", "COMPLETED"], 2, ["n2"]),
    "9": ("success", ["COMPLETED"], 0, ["n1"]),
    "10_0": ("success", ["COMPLETED"], 1, ["n1"]),
    "10_1": ("failure", ["FAILED"], 1, ["n1"]),
    "10_2": ("success", ["COMPLETED"], 1, ["n1"]),
    "13": ("cancelled", [], 0, None),
    "14": ("success", ["COMPLETED"], 2, ["n1"]),
    "15": ("success", ["COMPLETED"], 2, ["n1", "n2"]),
    "16+0": ("success", ["COMPLETED"], 1, None),
    "16+1": ("success", ["COMPLETED"], 0, None),
    "18": ("running", ["RUNNING"], 8, ["n1"]),
    "19": ("waiting", [], 0, None),
}


def derive_tables(*files: Path, folder: Path, **options) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return the row account, the jobs and the attempts of these dumps; write typed rows to `folder`.

    options: of `raw_schemas`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    schemas = raw_schemas("sacct", **options)
    account, quarantine = ingest({"record": list(files)}, schemas, folder, 1.0, sacct_reader.READERS)
    assert account["rows_quarantined"].item() == quarantine.filter(~IS_BLANKED).height
    raw = {"record": pl.scan_parquet(folder / "record.parquet")}
    return account, derive_table("sacct", "jobs", raw), derive_table("sacct", "attempts", raw)


def check_story(jobs: pl.DataFrame, attempts: pl.DataFrame) -> None:
    """Assert that jobs and attempts match EXPECTED."""
    runs = attempts.group_by("job_id", maintain_order=True).agg("state", nodes=pl.col("node_list").last())
    jobs_with_runs = jobs.join(runs, on="job_id", how="left")
    actual = {
        row["job_id_shown"]: (row["outcome"], row["state"] or [], row["gpu_milli"] // 1000, row["nodes_right"])
        for row in jobs_with_runs.iter_rows(named=True)
    }
    expected = {
        name: (*case[:3], case[3] if not name.startswith("16") else actual[name][3]) for name, case in EXPECTED.items()
    }
    assert actual == expected
    rows_by_name = {row["job_id_shown"]: row for row in jobs.iter_rows(named=True)}
    for name, (_, states, _, _) in EXPECTED.items():
        assert rows_by_name[name]["attempts"] == (len(states) or None), name
    assert jobs["job_id"].n_unique() == jobs.height
    started_jobs = jobs.filter(pl.col("start_s").is_not_null())
    assert started_jobs.select("end_s", "runtime_s", "queue_s").null_count().row(0) == (0, 0, 0)
    assert started_jobs.filter(pl.col("wall_s") < pl.col("runtime_s") + pl.col("suspended_s")).is_empty()
    assert attempts["infra_failure"].sum() == 2
    assert rows_by_name["8"]["infra_failures"] == 1
    assert attempts.filter(pl.col("node_list").list.len() != pl.col("nodes")).is_empty()
    # The run time is the sum of both runs, without the time between them.
    assert rows_by_name["5"]["wall_s"] > rows_by_name["5"]["runtime_s"]
    # Job 9 was suspended for some seconds.
    assert rows_by_name["9"]["suspended_s"] >= 2
    assert rows_by_name["9"]["wall_s"] == rows_by_name["9"]["runtime_s"] + rows_by_name["9"]["suspended_s"]
    # Job 14 shrank from two nodes to one: two overlapping records, one run.
    assert rows_by_name["14"]["wall_s"] == rows_by_name["14"]["runtime_s"]
    # Job 15 requested one GPU per node and received both nodes whole.
    assert rows_by_name["15"]["gpu_allocated_milli"] == 16_000
    assert rows_by_name["4"]["cancelled_by"] == 0
    assert rows_by_name["1"]["gpu_type"] == "a100"
    assert rows_by_name["1"]["user"] == "root"


def run_story(up_to_early_dump: Callable[[], None]) -> None:
    """Submit the jobs to the running cluster and drive them to the states in EXPECTED; 30 to 60 seconds."""
    n1 = ("-w", "n1")
    _submit("1", *n1, "--gres=gpu:a100:4", wrap="sleep 2")
    _submit("2", *n1, "--gres=gpu:2", wrap="exit 3")
    _submit("3", *n1, "--gres=gpu:a100:1", wrap="sleep 300")
    _submit("4", *n1, wrap="sleep 300")
    _submit("5", *n1, "--requeue", "--gres=gpu:1", wrap='test "$SLURM_RESTART_COUNT" && sleep 2 || sleep 300')
    _submit("6", *n1, "--requeue", "--gres=gpu:1", wrap="sleep 300")
    _submit("7", "-w", "n2", "--no-requeue", "--gres=gpu:a100:2", wrap="sleep 300")
    _submit("8", "-w", "n2", "--requeue", "--gres=gpu:a100:2", wrap='test "$SLURM_RESTART_COUNT" || sleep 300')
    _submit("9", *n1, wrap="sleep 5")
    for job in ("3", "4", "5", "6", "7", "8", "9"):
        _wait(lambda job=job: _state(job) == "RUNNING", f"job {job} runs")
    _scontrol("update", "JobId=3", "EndTime=now+1")
    _scontrol("suspend", "9")
    # The three tasks get the ids 10, 11, 12 when they start.
    _submit("10", *n1, "--array=0-2", "--gres=gpu:1", wrap="sleep 1; exit $((SLURM_ARRAY_TASK_ID == 1))")
    for job in ("10", "11", "12"):
        _wait(lambda job=job: _state(job) in ("COMPLETED", "FAILED"), f"job {job} ends")
    _submit("13", *n1, "--exclusive", wrap="sleep 300")
    time.sleep(2)
    subprocess.run(["scancel", "4", "13"], check=True)
    up_to_early_dump()
    _scontrol("requeue", "5,6")
    _scontrol("resume", "9")
    # The node goes down and returns by itself, because its daemon still answers.
    _scontrol("update", "nodename=n2", "state=down", "reason=test")
    _wait(lambda: _state("7") == "NODE_FAIL" and _state("8") == "PENDING", "the node is lost")
    _scontrol("update", "nodename=n2", "state=resume", check=False)
    _wait(lambda: _run("sinfo", "-h", "-n", "n2", "-o", "%t").strip() in ("idle", "mix"), "the node is back")
    # Within the second of its kill, Slurm would mistake a job's new credential for the old one.
    time.sleep(3)
    for job in ("5", "8"):
        # Slurm waits two minutes before it starts a requeued job again.
        _wait(lambda job=job: _state(job) == "PENDING", f"job {job} waits again")
        _scontrol("update", f"JobId={job}", "StartTime=now")
    _scontrol("hold", "6")
    for job in ("5", "8", "9"):
        _wait(lambda job=job: _state(job) == "COMPLETED", f"job {job} ends")
    _submit("14", "-N2", "-n2", "--gres=gpu:a100:1", wrap="sleep 5")
    _wait(lambda: _state("14") == "RUNNING", "job 14 runs")
    time.sleep(2)
    _scontrol("update", "JobId=14", "NumNodes=1")
    _wait(lambda: _state("14") == "COMPLETED", "job 14 ends")
    _wait(lambda: _state("3") == "TIMEOUT", "job 3 times out")
    _submit("15", "-N2", "--exclusive", "--gres=gpu:a100:1", wrap="sleep 2")
    _wait(lambda: _state("15") == "COMPLETED", "job 15 ends")
    _submit("16", "-n1", "--gres=gpu:a100:1", ":", "-n1", wrap="sleep 1")
    _wait(lambda: _state("17") == "COMPLETED" and _state("16") == "COMPLETED", "job 16 ends")
    _submit("18", *n1, "--gres=gpu:a100:8", wrap="sleep 300")
    _wait(lambda: _state("18") == "RUNNING", "job 18 runs")
    _submit("19", *n1, "--exclusive", wrap="sleep 300")
    # The accounting lags by a moment.
    _wait(lambda: len(dump(FIELDS, "-X").splitlines()) == 23, "all records are there")
    time.sleep(1)


def dump(fields: str, *options: str, times: str | None = "%s") -> str:
    known_fields = _run("sacct", "--helpformat").split()
    fields = ",".join(field for field in fields.split(",") if field in known_fields)
    env = os.environ | {"TZ": "UTC"} | ({"SLURM_TIME_FORMAT": times} if times else {})
    return _run("sacct", "-a", "-D", "-P", *options, "-S", "now-1day", "-o", fields, env=env)


def _submit(expected_id: str, *options: str, wrap: str) -> None:
    job_id = _run("sbatch", "--parsable", "-o", "/dev/null", "--mem=100M", *options, f"--wrap={wrap}")
    assert job_id.strip() == expected_id


def _scontrol(*arguments: str, check: bool = True) -> None:
    subprocess.run(["scontrol", *arguments], check=check, capture_output=True, timeout=60)


def _state(job: str) -> str:
    process = subprocess.run(["scontrol", "-o", "show", "job", job], capture_output=True, text=True, timeout=60)
    for line in process.stdout.splitlines():
        fields = dict(field.split("=", 1) for field in line.split() if "=" in field)
        if fields.get("JobId") == job:
            return fields["JobState"]
    return ""


def _wait(condition: Callable[[], bool], description: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {description}: {dump('JobID,State,Start,End', '-X')}"
        time.sleep(0.2)


def _run(*command: str, env: dict[str, str] | None = None) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60, env=env).stdout
