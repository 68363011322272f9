"""Bad input gives one clear message with file and line or key, exit code 1 and no partial output."""

import gzip
import os
import subprocess
import tarfile

import polars as pl
import pytest
import whole_study
from study_runs import Checkout, check_out, environment, pods, ttf_command, write_pods


@pytest.fixture(scope="module")
def folder_with_workflow(tmp_path_factory) -> Checkout:
    return check_out(tmp_path_factory.mktemp("bad") / "checkout")


def refusal_message(study: Checkout, config: dict, *target: str) -> str:
    process = study.snakemake(*target, check=False, **config)
    assert process.returncode == 1
    message = process.stderr + process.stdout
    for scaffolding in ("Traceback", "RuleException", "CalledProcessError", "WorkflowError", "jobid"):
        assert scaffolding not in message
    return message


TABLE = "raw/mine/openb_pod_list_default.csv"


def empty(path):
    path.write_bytes(b"")


def html_page(path):
    path.write_text("<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n")


def foreign_columns(path):
    path.write_text("time,level,text\n1,info,hello\n")


def truncated_gz(path):
    content = gzip.compress(path.read_bytes(), mtime=0)
    path.with_name(path.name + ".gz").write_bytes(content[: len(content) // 2])
    path.unlink()


def truncated_tar_gz(path):
    archive = path.with_name("openb_pod_list_default.tar.gz")
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(path, arcname=path.name)
    archive.write_bytes(archive.read_bytes()[:-400])
    path.unlink()


def text_for_numbers(path):
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], *(line.replace(",8192,", ",eight,") for line in lines[1:])]) + "\n")


def short_rows(path):
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], *(line.rsplit(",", 1)[0] for line in lines[1:])]) + "\n")


BAD_FILES = {
    empty: [TABLE, "the file is empty"],
    html_page: [TABLE, "line 1", "HTML"],
    foreign_columns: [TABLE, "the header row has no column", "pod_phase"],
    truncated_gz: [TABLE + ".gz", "cut short"],
    truncated_tar_gz: ["openb_pod_list_default.tar.gz", "cut short"],
    text_for_numbers: [TABLE, "not_a_number", "memory_mib", "line 2", "quarantine.max_share"],
    short_rows: [TABLE, "wrong_column_count", "line 2", "11 columns"],
}


@pytest.mark.parametrize("spoil", BAD_FILES, ids=lambda spoil: spoil.__name__)
def test_a_bad_file_is_named(tmp_path, spoil):
    config = write_pods(Checkout(tmp_path), pods())
    spoil(tmp_path / TABLE)
    result = whole_study.run(config, tmp_path, only=lambda job: job.script == "ingest")
    assert result.refused, result
    assert [part for part in BAD_FILES[spoil] if part not in result.refused] == []


def test_a_bad_file_ends_the_run_and_a_corrected_one_goes_on(checkout):
    config = write_pods(checkout, pods())
    text_for_numbers(checkout.folder / TABLE)
    message = refusal_message(checkout, config, "--", "ingested")
    assert [part for part in BAD_FILES[text_for_numbers] if part not in message] == []
    assert not (checkout.folder / "results" / "mine" / "raw").exists()
    assert not list((checkout.folder / "results").rglob("*.parquet"))
    checkout.snakemake("--", "ingested", one_process=True, **write_pods(checkout, pods()))
    account = pl.read_csv(checkout.folder / "results/mine/quality/row_account.csv")
    assert account.rows() == [("pods", 200, 200, 0)]


def test_a_missing_folder_is_named(folder_with_workflow):
    study = folder_with_workflow
    registry = {"mine": {"format": "openb", "folder": "nowhere"}}
    message = refusal_message(study, {"study": ["mine"], "registry": registry})
    assert "registry.mine.folder" in message
    assert "no such folder" in message


def test_wrong_key_is_answered_with_file_key_and_nearest(folder_with_workflow):
    message = refusal_message(folder_with_workflow, {"survival": {"max_stps": 3}})
    assert "my.yaml: line 2, column 3: survival.max_stps" in message
    assert "did you mean max_steps" in message


def test_a_configuration_is_checked_before_snakemake_reads_it(folder_with_workflow):
    """Snakemake alone would block on the pipe, and report the bracket without file and line."""
    folder = folder_with_workflow.folder
    os.mkfifo(folder / "pipe")
    (folder / "open.yaml").write_text("study: [sample\nname: weekly\n")
    for name, message in (
        ("pipe", "pipe: it is a pipe; expected a plain file."),
        ("open.yaml", "open.yaml: line 2, column 5: "),
    ):
        command = ttf_command(folder, "report", f"--config={name}", "--dry-run")
        process = subprocess.run(command, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True, timeout=60)
        assert (process.returncode, process.stderr.count("\n") < 9) == (1, True)
        assert process.stderr.startswith(f"error in the configuration\n{message}")
