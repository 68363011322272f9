"""The afternoon of a researcher: real formats in one study, a changed definition, and what a paper needs of it."""

import html
import re
import subprocess
from pathlib import Path

import polars as pl
import pytest
from published_cells import wrong_study_cells
from study_runs import environment, ttf_command


def type_ttf(folder: Path, *typed: str) -> str:
    command = ttf_command(folder, *typed)
    process = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


@pytest.fixture(scope="module")
def folder(real_study) -> Path:
    return real_study.folder


def read_page(folder: Path, trace: str) -> str:
    text = (folder / f"results/studies/study/report/{trace}.html").read_text(encoding="utf-8")
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_a_changed_definition_is_told_and_counted(folder):
    outcomes = pl.read_csv(folder / "results/late/tables/outcomes.csv")
    counts = dict(outcomes.select("outcome", "jobs").iter_rows())
    assert counts == {"success": 47, "cancelled": 15, "failure": 1}
    assert "FAILED counts as cancelled (set for this trace)" in read_page(folder, "late")


def test_the_printed_tables_stand_beside_the_numbers_of_the_rows(folder):
    results = folder / "results"
    assert wrong_study_cells(results, "study", "pai", "study1") == []
    assert wrong_study_cells(results, "study", "openb", "weng2023") == []
    assert (results / "studies/study/scorecard.csv").is_file()
    compared = pl.read_csv(results / "studies/study/scorecard.csv", infer_schema_length=None)
    assert {"titan", "lanl", "infinitehbd", "openb"} <= {*compared.filter(pl.col("verdict") == "reproduced")["trace"]}


def test_a_paper_gets_a_table_a_figure_and_a_citation(folder):
    latex = type_ttf(folder, "table", "study1_correlations", "--trace", "pai", "--latex")
    assert r"\begin{tabular" in latex and "Analyzing ML Training Tasks" in latex and "95\\% CI" in latex
    markdown = type_ttf(folder, "table", "mttf", "--trace", "titan")
    assert "Mean time to failure" in markdown and "| --: |" in markdown
    type_ttf(folder, "figures", "--study", "study")
    figures = folder / "results/studies/study/figures"
    assert len([*figures.glob("*/*.pdf")]) == len([*figures.glob("*/*.svg")]) > 15
    captions = (figures / "captions.txt").read_text(encoding="utf-8")
    assert "titan/" in captions and "openb/" in captions
    page = read_page(folder, "titan")
    assert "@misc{ttftitan," in page and "Time to Failure report, version" in page
