"""Another workflow uses the study by its installed package: fetched by a tag, deployed by snakedeploy, or by its path.

No network: git redirects the web address to a local repository.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from module_workflows import commit_checkout, module_snakefile, write_workflow
from study_runs import ROOT, SMALL, Checkout, environment

ADDRESS = "https://github.com/somebody/time-to-failure"
DOCS = (ROOT / "docs/module.md").read_text(encoding="utf-8")


INSTALLED: dict[str, str] = {}


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Path:
    folder = commit_checkout(tmp_path_factory.mktemp("repository"))
    # As if that version were installed.
    INSTALLED["PYTHONPATH"] = str(folder / "scripts")
    return folder


@pytest.fixture
def web(repository, tmp_path) -> dict[str, str]:
    """Return an environment that redirects the address to the repository, with an empty cache of Snakemake."""
    redirect = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": f"url.file://{repository}.insteadOf"}
    return (
        environment()
        | INSTALLED
        | redirect
        | {"GIT_CONFIG_VALUE_0": ADDRESS, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    )


def snakemake(folder: Path, *arguments: str, env=None, check: bool = True) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "snakemake", "--cores", "2", *arguments]
    process = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, env=env or environment() | INSTALLED
    )
    if check:
        assert process.returncode == 0, process.stdout + process.stderr
    return process


def check_same_products(folder: Path, expected: dict[str, str], **env: str) -> None:
    """The manifest names the commit of the workflow, which the copy of a checkout lacks."""
    hashes = Checkout(folder).hashes()
    assert hashes.keys() == expected.keys()
    assert {name for name in hashes if hashes[name] != expected[name]} == {
        f"studies/{name}/manifest.json" for name in ["sample"]
    }
    dry_run = snakemake(folder, "--dry-run", env=environment() | INSTALLED | env)
    assert "Nothing to be done" in dry_run.stdout + dry_run.stderr


def test_a_clone_gives_the_same_bytes_under_names_of_its_own(repository, finished_study, tmp_path):
    folder = write_workflow(tmp_path / "use", module_snakefile(repository))
    log = snakemake(folder).stderr
    assert "rule ttf_ingest" in log
    assert "sample_slurm" not in log, "the module's config had no effect"
    check_same_products(folder, finished_study.hashes())


def test_snakedeploy_and_github_give_the_same_bytes(web, finished_study, tmp_path):
    deploy = re.search(r"^snakedeploy (.*)$", DOCS, re.MULTILINE)[1].replace("ADDRESS", ADDRESS)
    command = [Path(sys.executable).with_name("snakedeploy"), *deploy.replace("TAG", "v1").split()]
    subprocess.run(command, cwd=tmp_path, check=True, env=web, capture_output=True)
    folder = tmp_path / "my-study"
    assert (
        'github("somebody/time-to-failure", path="workflow/Snakefile", tag="v1")'
        in (folder / "workflow/Snakefile").read_text()
    )
    config = folder / "config/config.yaml"
    config.write_text(yaml.safe_dump(yaml.safe_load(config.read_text()) | SMALL))
    snakemake(folder, env=web)
    # Once fetched, neither the network nor the repository is needed.
    check_same_products(folder, finished_study.hashes(), XDG_CACHE_HOME=web["XDG_CACHE_HOME"])


def test_the_lines_by_hand_of_the_docs_run(web, tmp_path):
    snakefile = re.search(r"```python\n(.*?)```", DOCS, re.DOTALL)[1]
    folder = write_workflow(tmp_path / "use", snakefile)
    planned = snakemake(folder, "--dry-run", "--", "mine", env=web)
    assert "ttf_render_page" in planned.stdout
    assert "results/studies/sample_philly/report/index.html" in planned.stdout


def test_a_clone_by_its_path_is_used_as_it_stands_and_pandas_is_left_to_others(repository, tmp_path):
    snakefile = (
        module_snakefile(repository)
        .replace('gitfile("', '"')
        .replace('", path="workflow/Snakefile", tag="v1")', '/workflow/Snakefile"')
    )
    folder = write_workflow(tmp_path / "use", f"{snakefile}\nimport pandas\n")
    assert "ttf_ingest" in snakemake(folder, "--dry-run").stdout
    assert not (folder / ".snakemake/ttf").exists()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["    prefix: 'there'"], "prefix: this workflow writes to results/"),
        (
            ["    config: {'study': ['smaple']}"],
            "config: of the module: study: 'smaple' is not in the registry; did you mean sample?",
        ),
        (["    config: config"], "survival.max_stps: there is no such key; did you mean max_steps?"),
    ],
)
def test_an_error_is_one_message(repository, tmp_path, lines, message):
    folder = write_workflow(tmp_path / "use", module_snakefile(repository, *lines))
    (folder / "my.yaml").write_text("survival: {max_stps: 3}")
    options = ["--configfile", "my.yaml"] if "config: config" in lines[0] else []
    process = snakemake(folder, "--dry-run", *options, check=False)
    assert process.returncode == 1
    assert message in process.stderr
    assert "Traceback" not in process.stderr


def test_command_line_settings_reach_a_module_with_the_whole_config(repository, tmp_path):
    folder = write_workflow(tmp_path / "use", module_snakefile(repository, "    config: config"))
    typed = ("--config", "study=[sample_slurm]", "survival={max_steps: 50}", "scatter={jobs: 3}")
    planned = snakemake(folder, "--dry-run", *typed).stdout
    assert "results/studies/sample_slurm/report/index.html" in planned
    assert "ttf_derive_attempts" in planned


def test_a_part_of_the_other_workflows_configuration_is_handed_on(repository, tmp_path):
    folder = write_workflow(tmp_path / "use", module_snakefile(repository, '    config: config["ttf"]'))
    (folder / "my.yaml").write_text("mine: 3\nttf: {study: [sample], name: weekly}\n")
    planned = snakemake(folder, "--dry-run", "--configfile", "my.yaml").stdout
    assert "results/studies/weekly/report/index.html" in planned
    assert "sample_slurm" not in planned


def test_a_study_of_a_fetched_workflow_can_be_published_and_has_a_report_of_snakemake(repository, tmp_path):
    """Rules outside the default target also find the files of the workflow."""
    folder = write_workflow(tmp_path / "use", module_snakefile(repository))
    planned = snakemake(folder, "--dry-run", "--", "ttf_publish_site", "ttf_archive_results").stdout
    assert "report/report.pdf" in planned
