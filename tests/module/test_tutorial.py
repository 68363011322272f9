"""Run the commands of docs/tutorial.md verbatim in order, and check the results that it states.

test_docs.py runs the first block, the README's; here only the raw files of its study are made.
"""

import re
import subprocess
from pathlib import Path

import pytest
from study_runs import ROOT, Checkout, clone, clone_environment

TEXT = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
USERS = re.compile(r"\buser\d+\b")


@pytest.fixture(scope="module")
def tutorial_run(tmp_path_factory) -> tuple[Path, dict[str, str]]:
    """Return the final clone, and the output of each block by its last command."""
    folder = clone(tmp_path_factory.mktemp("tutorial") / "time-to-failure")
    sample = [f"data/sample_slurm/{name}" for name in re.findall(r"data/sample_slurm/(\S+)", BLOCKS[1] + BLOCKS[3])]
    Checkout(folder).snakemake("--", *sample, one_process=True, study=["sample_slurm"])
    # A copy has no commit to date the archive.
    env = clone_environment(folder) | {"SOURCE_DATE_EPOCH": "1760000000"}
    outputs = {}
    for block in BLOCKS[1:]:
        command = ["bash", "-e", "-c", block]
        process = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
        assert process.returncode == 0, block + process.stdout + process.stderr
        outputs[block.splitlines()[-1]] = process.stdout + process.stderr
    return folder, outputs


def test_it_begins_as_the_readme_does():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"```sh\n{BLOCKS[0]}```" in readme
    (page,) = re.findall(r"The page is `(.*?)`", readme)
    assert TEXT.count(f"`{page}`") == 1


def test_every_file_that_it_names_is_there(tutorial_run):
    folder, _ = tutorial_run
    named = re.findall(r"`(results/studies/my_slurm/[^`\s]+)`", TEXT)
    assert len(named) >= 5
    assert [name for name in named if not (folder / name).is_file()] == []


def test_of_the_second_dump_only_the_new_file_is_read(tutorial_run):
    _, outputs = tutorial_run
    assert "ingest_part: 2025-a.txt" in outputs["ttf report my_slurm"]
    (message,) = re.findall(r"`(ingest_part: .*?)`", TEXT)
    second_report = next(text for command, text in outputs.items() if command == "ttf report" and message in text)
    assert second_report.count("ingest_part: ") == 1
    assert second_report.startswith("study my_slurm, the most recent")


def test_what_moved_did_because_of_the_data_and_no_rule_is_crossed(tutorial_run):
    _, outputs = tutorial_run
    lines = outputs["ttf check --rules config/thresholds.yaml"].splitlines()
    heads = [line for line in lines if not line.startswith("  ")]
    assert re.fullmatch(r"The largest \d+ changes, in margins of error of both intervals:", heads[0])
    assert [head.partition(" ")[2] for head in heads[1:-2]] == ["numbers moved because the data changed:"]
    assert heads[-1].endswith("rules compared with the study: none crossed.")


def test_what_is_published_names_nobody(tutorial_run):
    folder, outputs = tutorial_run
    study_folder = folder / "results/studies/my_slurm"
    site = study_folder / "site"
    assert USERS.search((study_folder / "report/index.html").read_text(encoding="utf-8"))
    assert re.search(r"user-[0-9a-f]{12}", (site / "index.html").read_text(encoding="utf-8"))
    files = [path for path in site.rglob("*") if path.suffix in (".html", ".csv", ".json", ".js")]
    assert [path.name for path in files if USERS.search(path.read_text(encoding="utf-8"))] == []
    verified = outputs[f"ttf verify {site.relative_to(folder)}"]
    assert "as they were published, none missing, none added" in verified


def test_a_number_leads_back_to_both_dumps(tutorial_run):
    _, outputs = tutorial_run
    (chain,) = [text for command, text in outputs.items() if command.startswith("ttf explain")]
    assert {"my_slurm/2025-a.txt", "my_slurm/2025-b.txt"} <= {*re.findall(r"my_slurm/2025-.\.txt", chain)}


def test_it_fits_on_a_page_and_a_half():
    assert len(TEXT.split()) < 700
