"""The study by sbatch gives the bytes of the local run, also when nodes, jobs, memory and the controller fail it."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import yaml
from modules import committed, user, using
from one_machine_slurm import until
from study_runs import PODS_HEADER, ROOT, SMALL, Checkout, check_out, environment, pods

# What a site writes into its profile, but with looks in quick succession.
SITE = (
    *("--workflow-profile", "profiles/slurm", "--cores", "2", "--resources", "mem_mb=7000"),
    *("--default-resources", "slurm_account=default", "slurm_partition=main", "disk_mb=1000"),
    *("--slurm-init-seconds-before-status-checks", "1", "--seconds-between-status-checks", "1", "--latency-wait", "5"),
)
PARTS = 16
# No run takes longer, also on a slow machine: after a controller's restart alone steps wait two minutes to be created.
RUN_S = 1200
CORRELATIONS = "results/sample/tables/correlations.csv"


def in_parts(checkout: Checkout) -> dict:
    """Write a trace of pods in parts, a folder each; the configuration that names them."""
    lines = pods(PARTS * 60)
    for part in range(PARTS):
        folder = checkout.folder / "raw" / f"part{part:02}"
        folder.mkdir(parents=True)
        table = "\n".join([PODS_HEADER, *lines[part::PARTS]])
        (folder / "openb_pod_list_default.csv").write_text(f"{table}\n")
    folders = [f"raw/part{part:02}" for part in range(PARTS)]
    return {"study": ["mine"], "registry": {"mine": {"format": "openb", "folder": folders}}}


@contextmanager
def start(checkout: Checkout, *arguments: str, **config) -> Iterator[subprocess.Popen]:
    """A run under way, which ends with the test."""
    (checkout.folder / "my.yaml").write_text(yaml.safe_dump(config))
    # As by `make`; a workflow that uses this one is started by Snakemake's own command.
    by_make = ("scripts/run_study.py", "--config=my.yaml")
    command = by_make if (checkout.folder / by_make[0]).exists() else ("-m", "snakemake", "--configfile", "my.yaml")
    run = subprocess.Popen(
        [sys.executable, *command, *SITE, *arguments],
        cwd=checkout.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(),
    )
    try:
        yield run
    finally:
        run.kill()
        run.wait()
        run.stdout.close()


def by_sbatch(checkout: Checkout, *arguments: str, **config) -> tuple[int, str]:
    """The exit code of a run, and what it said."""
    with start(checkout, *arguments, **config) as run:
        said, _ = run.communicate(timeout=RUN_S)
    return run.returncode, said


def test_the_sample_study_in_16_shares(slurm, checkout, finished_study):
    before = slurm.last_job()
    code, said = by_sbatch(checkout, **SMALL, scatter={"above_mb": 0})
    assert code == 0, said
    shares = checkout.folder / "benchmarks" / "sample" / "derive_share"
    assert len(list(shares.iterdir())) == 16, "as the profile says"
    assert checkout.hashes() == finished_study.hashes()
    states = slurm.states(before)
    assert set(states) == {"COMPLETED"}
    assert len(states) <= 14, "a job of a second goes with others"


def test_a_workflow_that_uses_the_study_as_a_module(slurm, finished_study, tmp_path):
    repository = tmp_path / "repository"
    repository.mkdir()
    folder = user(tmp_path / "use", using(committed(repository), "    config: config"))
    shutil.copytree(ROOT / "profiles", folder / "profiles")
    code, said = by_sbatch(Checkout(folder), **SMALL)
    assert code == 0, said
    assert Checkout(folder).hashes() == finished_study.hashes()


def test_parts_through_a_drained_node_a_cancelled_job_and_a_controller_started_anew(slurm, checkout, tmp_path):
    config = in_parts(checkout)
    before = slurm.last_job()
    with start(checkout, **config) as run:
        until(lambda: len(slurm.jobs("RUNNING", before)) > 1 or run.poll() is not None)
        slurm("scontrol", "update", "nodename=n1", "state=drain", "reason=test")
        running = slurm.jobs("RUNNING", before)
        slurm("scancel", str(running[-1]))
        # What is submitted at first takes more cores than the two nodes have: some of it starts now, on the other node.
        # Not so the cancelled job: the executor (2.8.0) takes `CANCELLED by 0`, as sacct has it, for a job that runs.
        # From a controller started anew it is CANCELLED alone.
        until(lambda: set(slurm.jobs("RUNNING", before)) - set(running) or run.poll() is not None)
        slurm("scontrol", "update", "nodename=n1", "state=resume")
        slurm.stop_controller()
        slurm.start_controller()
        said, _ = run.communicate(timeout=RUN_S)
    assert run.returncode == 0, said
    assert "CANCELLED" in said
    assert "It is tried again" in said
    assert slurm.states(before).count("CANCELLED") == 1

    local = check_out(tmp_path / "local")
    local.snakemake(one_process=True, **in_parts(local))
    assert checkout.hashes() == local.hashes()


def test_a_job_over_its_memory_is_told_of_and_tried_again_with_more(slurm, study, finished_study):
    (study.folder / CORRELATIONS).unlink()
    too_little = ("--set-resources", "correlate:mem_mb=60*attempt**3")
    code, said = by_sbatch(study, *too_little, "--retries", "0", "--", CORRELATIONS, **SMALL)
    assert code == 1
    assert "error in sample: correlate" in said
    assert "exceeded memory limit" in said
    assert "A rerun continues from here" in said
    code, said = by_sbatch(study, *too_little, "--", CORRELATIONS, **SMALL)
    assert code == 0, said
    assert "It runs again, with more memory and time." in said
    study.snakemake(one_process=True, **SMALL)
    assert study.hashes() == finished_study.hashes()


def test_a_message_of_the_study_is_told_as_on_one_machine(slurm, checkout):
    config = in_parts(checkout)
    (checkout.folder / "raw" / "part03" / "openb_pod_list_default.csv").write_text("<html>Not here</html>\n")
    code, said = by_sbatch(checkout, "--retries", "0", "--", "results/mine/parts/part03/raw", **config)
    assert code == 1
    assert "error in mine part03: ingest_part" in said
    assert "openb_pod_list_default.csv" in said.split("error in")[1]
    assert "Traceback" not in said
