"""Runs by sbatch give the bytes of the local run, even if nodes, jobs, memory or the controller fail."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import yaml
from module_workflows import commit_checkout, module_snakefile, write_workflow
from one_machine_slurm import wait_until
from study_runs import PODS_HEADER, ROOT, SMALL, Checkout, check_out, environment, pods, ttf_command

PROFILE = "profiles/slurm"
# The package that another workflow finds installed.
INSTALLED: dict[str, str] = {}
# The options of a site's profile, with short polling intervals.
SITE = (
    *("--cores", "2", "--resources", "mem_mb=7000"),
    *("--default-resources", "slurm_account=default", "slurm_partition=main", "disk_mb=1000"),
    *("--slurm-init-seconds-before-status-checks", "1", "--seconds-between-status-checks", "1", "--latency-wait", "5"),
)
PARTS = 16
# Upper limit on a slow machine: after a restart of the controller, steps wait two minutes to be created.
RUN_S = 1200
CORRELATIONS = "results/sample/tables/correlations.csv"


def write_parts(checkout: Checkout) -> dict:
    """Write a trace of pods in parts, one folder each; return the configuration that names them."""
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
    """Start a run and yield it; kill it at the end of the test."""
    (checkout.folder / "my.yaml").write_text(yaml.safe_dump(config))
    if (checkout.folder / "scripts").is_dir():
        typed = ("report", "--config=my.yaml", f"--profile={PROFILE}", f"--snakemake={shlex.join([*SITE, *arguments])}")
        command = ttf_command(checkout.folder, *typed)
    else:  # another workflow, which is started with Snakemake's own command
        command = [sys.executable, "-m", "snakemake", "--configfile", "my.yaml", "--workflow-profile", PROFILE]
        command += [*SITE, *arguments]
    run = subprocess.Popen(
        command,
        cwd=checkout.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment() | INSTALLED,
    )
    try:
        yield run
    finally:
        run.kill()
        run.wait()
        run.stdout.close()


def run_on_slurm(checkout: Checkout, *arguments: str, **config) -> tuple[int, str]:
    with start(checkout, *arguments, **config) as run:
        output, _ = run.communicate(timeout=RUN_S)
    return run.returncode, output


def test_the_sample_study_in_16_shares(slurm, checkout, finished_study):
    last_id = slurm.last_job()
    code, output = run_on_slurm(checkout, **SMALL, scatter={"above_mb": 0})
    assert code == 0, output
    shares = checkout.folder / "benchmarks" / "sample" / "derive_share"
    assert len(list(shares.iterdir())) == 16, "the profile sets this number"
    assert checkout.hashes() == finished_study.hashes()
    states = slurm.states(last_id)
    assert set(states) == {"COMPLETED"}
    assert len(states) <= 14, "short jobs are grouped"


def test_a_workflow_that_uses_the_study_as_a_module(slurm, finished_study, tmp_path, monkeypatch):
    repository = tmp_path / "repository"
    repository.mkdir()
    folder = write_workflow(tmp_path / "use", module_snakefile(commit_checkout(repository), "    config: config"))
    shutil.copytree(ROOT / "profiles", folder / "profiles")
    monkeypatch.setitem(INSTALLED, "PYTHONPATH", str(repository / "scripts"))
    code, output = run_on_slurm(Checkout(folder), **SMALL)
    assert code == 0, output
    hashes, expected = Checkout(folder).hashes(), finished_study.hashes()
    # The manifest names the commit of the workflow.
    assert [name for name in expected if hashes[name] != expected[name]] == ["studies/sample/manifest.json"]


def test_parts_survive_a_drained_node_a_cancelled_job_and_a_restarted_controller(slurm, checkout, tmp_path):
    config = write_parts(checkout)
    last_id = slurm.last_job()
    with start(checkout, **config) as run:
        wait_until(lambda: len(slurm.jobs("RUNNING", last_id)) > 1 or run.poll() is not None)
        slurm("scontrol", "update", "nodename=n1", "state=drain", "reason=test")
        running = slurm.jobs("RUNNING", last_id)
        slurm("scancel", str(running[-1]))
        # What is submitted at first takes more cores than the two nodes have: some of it starts now, on the other node.
        # Not so the cancelled job: the executor (2.8.0) takes `CANCELLED by 0`, as sacct has it, for a job that runs.
        # From a controller started anew it is CANCELLED alone.
        wait_until(lambda: set(slurm.jobs("RUNNING", last_id)) - set(running) or run.poll() is not None)
        slurm("scontrol", "update", "nodename=n1", "state=resume")
        slurm.stop_controller()
        slurm.start_controller()
        output, _ = run.communicate(timeout=RUN_S)
    assert run.returncode == 0, output
    assert "CANCELLED" in output
    assert "It runs again" in output
    assert slurm.states(last_id).count("CANCELLED") == 1

    local = check_out(tmp_path / "local")
    local.snakemake(one_process=True, **write_parts(local))
    assert checkout.hashes() == local.hashes()


def test_a_job_over_its_memory_is_reported_and_retried_with_more(slurm, study, finished_study):
    (study.folder / CORRELATIONS).unlink()
    too_little = ("--set-resources", "correlate:mem_mb=60*attempt**3")
    code, output = run_on_slurm(study, *too_little, "--retries", "0", "--", CORRELATIONS, **SMALL)
    assert code == 1
    assert "error in sample: correlate" in output
    assert "exceeded memory limit" in output
    assert "A rerun continues from here" in output
    code, output = run_on_slurm(study, *too_little, "--", CORRELATIONS, **SMALL)
    assert code == 0, output
    assert "It runs again, with more memory and time." in output
    study.snakemake(one_process=True, **SMALL)
    assert study.hashes() == finished_study.hashes()


def test_an_error_of_the_study_is_reported_as_on_one_machine(slurm, checkout):
    config = write_parts(checkout)
    (checkout.folder / "raw" / "part03" / "openb_pod_list_default.csv").write_text("<html>Not here</html>\n")
    code, output = run_on_slurm(checkout, "--retries", "0", "--", "results/mine/parts/part03/raw", **config)
    assert code == 1
    assert "error in mine part03: ingest_part" in output
    assert "openb_pod_list_default.csv" in output.split("error in")[1]
    assert "Traceback" not in output
