"""The package, built as a wheel and installed: the command `ttf` in folders that are no checkout."""

import json
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from study_runs import ROOT, Checkout, environment, pods, ttf_command, write_pods

MANIFEST = "results/studies/mine/manifest.json"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def ttf(wheel, tmp_path_factory) -> Path:
    """Return the installed command; its libraries are those of the tests."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False)
    uv = Path(sysconfig.get_path("scripts")) / "uv"
    install = [uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", folder / "bin/python", wheel]
    subprocess.run(install, check=True)
    (site_packages,) = folder.glob("lib/*/site-packages")
    (site_packages / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin/ttf"


def run(folder: Path, *command, check: bool = True) -> subprocess.CompletedProcess:
    folder.mkdir(exist_ok=True)
    process = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True)
    if check:
        assert process.returncode == 0, process.stdout + process.stderr
    return process


def hash_results(folder: Path) -> dict[str, str]:
    """Hash all results but the manifest, which names the place and the commit of the workflow."""
    hashes = Checkout(folder).hashes()
    return {name: digest for name, digest in hashes.items() if not name.endswith("manifest.json")}


def test_the_wheel_is_small(wheel):
    assert wheel.stat().st_size < 10e6


def test_a_folder_of_data_gives_the_bytes_of_a_checkout(ttf, tmp_path):
    """The name of the folder is data: a dash, a space and a quote are part of it."""
    data = tmp_path / "-o'd d"
    data.mkdir()
    write_pods(Checkout(tmp_path), pods())
    (tmp_path / "raw/mine").rename(data / "mine")
    here, there = tmp_path / "here", tmp_path / "there"
    run(here, ttf, "report", "--cores=1", "--", f"../{data.name}/mine")
    run(there, *ttf_command(ROOT, "report", "--cores=1", "--", f"../{data.name}/mine"))
    assert hash_results(here) == hash_results(there) != {}
    assert run(here, ttf, "verify").stdout.startswith(
        f"{len(json.loads((here / MANIFEST).read_text())['products'])} prod"
    )
    assert json.loads(run(here, ttf, "studies", "--json").stdout) == ["mine"]
    assert "Nothing to be done" in run(here, ttf, "report", "--dry-run").stdout
    table = run(here, ttf, "table", "outcomes", "--latex").stdout
    assert "\\begin{tabular" in table and "Trace mine" in table


def test_a_module_of_another_workflow_is_the_installed_package(ttf, tmp_path):
    """A study of two traces, and a rule of the other workflow's own on the jobs of each."""
    snakefile = run(tmp_path, ttf, "snakefile").stdout.strip()
    assert Path(snakefile).is_file() and "site-packages" in snakefile
    traces = ["sample_philly", "sample_slurm"]
    (tmp_path / "Snakefile").write_text(
        f"""
module ttf:
    snakefile:
        "{snakefile}"
    config:
        {{"study": {traces}, "name": "two"}}


use rule * from ttf as ttf_*


rule sizes:
    default_target: True
    input:
        expand("sizes/{{trace}}.txt", trace={traces}),


rule size:
    input:
        "results/{{trace}}/jobs.parquet",
    output:
        "sizes/{{trace}}.txt",
    shell:
        "wc -c < {{input}} > {{output}}"
"""
    )
    snakemake = [ttf.with_name("python"), "-m", "snakemake", "--cores=1"]
    run(tmp_path, *snakemake)
    for trace in traces:
        jobs = tmp_path / "results" / trace / "jobs.parquet"
        assert int((tmp_path / "sizes" / f"{trace}.txt").read_text()) == jobs.stat().st_size
    planned = run(tmp_path, *snakemake, "--dry-run", "--", "ttf_all").stdout
    for page in ("index", *traces):
        assert f"results/studies/two/report/{page}.html" in planned
    program = "import ttf; print(ttf.__file__)"
    assert "site-packages" in run(tmp_path, ttf.with_name("python"), "-c", program).stdout


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (("report", "nowhere"), "error: nowhere: "),
        (("report", "--trace", "a b"), "error: --trace 'a b': expected names of traces"),
        (("report", "--profile", "nowhere"), "error: --profile nowhere: there is no such folder"),
        (("verify", "--study", "x"), "this folder has no study yet"),
        (("table", "mttf"), "this folder has no study yet"),
    ],
)
def test_a_refusal_is_one_line(ttf, tmp_path, typed, message):
    process = run(tmp_path / "empty", ttf, *typed, check=False)
    assert process.returncode and message in process.stderr and "Traceback" not in process.stderr
