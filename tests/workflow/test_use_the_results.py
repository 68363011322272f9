"""Each program in docs/use-the-results.md prints the value of the table."""

import re
import shutil
import subprocess
import sys

import duckdb
import polars as pl
import pytest
from study_runs import OWN, PAGE, ROOT, environment, ttf_command
from ttf.engine.storage.tables import read_table, write_product
from ttf.page.publish.dictionary import group_by_analysis, to_table
from ttf.page.report_contracts import DICTIONARY
from ttf.page.results_tables import load_all_contracts
from withheld_cells import find_withheld_cells

# The programs read the small study of the tests.
TEXT = (ROOT / "docs/use-the-results.md").read_text(encoding="utf-8").replace("sample_slurm", "sample")
FIRST_PROGRAM, *PROGRAMS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def run_program(kind, program, folder) -> str:
    if kind == "sql":
        with duckdb.connect() as connection:
            statements = [statement for statement in program.split(";\n") if statement.strip()]
            return [connection.execute(statement) for statement in statements][-1].fetchall()[0][0]
    if kind == "r" and not shutil.which("Rscript"):
        pytest.skip("R is not installed: make test-tools")
    command = [sys.executable, "-c"] if kind == "python" else ["Rscript", "-e"]
    return subprocess.run([*command, program], cwd=folder, capture_output=True, text=True, check=True).stdout


def test_the_package_gives_the_reason_of_a_withheld_mean(finished_study, monkeypatch, capsys):
    monkeypatch.chdir(finished_study.folder)
    exec(FIRST_PROGRAM[1], names := {})
    mttf = read_table("results/sample/tables/mttf.csv", load_all_contracts()["mttf"])
    assert capsys.readouterr().out == f"{mttf['reason'][0]}\n"
    assert names["rows"].height == mttf.height and names["jobs"].height > 1000


@pytest.mark.parametrize("is_withheld", [False, True])
@pytest.mark.parametrize(("kind", "program"), PROGRAMS, ids=["polars", "pandas", "r", "duckdb"])
def test_each_program_prints_the_mean_or_its_range(finished_study, monkeypatch, tmp_path, kind, program, is_withheld):
    """Too many failures of the sample have no end; the other table is the same with a mean."""
    contract, path, folder = load_all_contracts()["mttf"], "results/sample/tables/mttf.csv", finished_study.folder
    mttf = read_table(folder / path, contract)
    row = mttf.filter(event="failure", stratum="all", confidence=0.95).row(0, named=True)
    expected, reason = [row["mttf_low_s"] / 3600, row["mttf_high_s"] / 3600], row["reason"]
    if not is_withheld:
        expected, reason = [2.5], ""
        shown = {"mttf_low_s": None, "mttf_high_s": None, "mttf_s": 9_000.0}
        cells = {name: pl.lit(value, pl.Float64) for name, value in shown.items()}
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / OWN).mkdir(parents=True)
        write_product(mttf.with_columns(**cells), contract, tmp_path / path)
        shutil.copy(folder / OWN / "dictionary.csv", tmp_path / OWN)
        folder = tmp_path
    monkeypatch.chdir(folder)
    printed = run_program(kind, program, folder).split()
    assert [float(number) for number in printed[: len(expected)]] == pytest.approx(expected, abs=0.0006)
    assert " ".join(printed[len(expected) :]) == reason


def test_no_cell_has_an_estimate_that_missing_ends_withhold(finished_study):
    withheld, cells = find_withheld_cells(finished_study.folder / "results/sample")
    assert len(withheld) > 10 and cells == []


def test_the_dictionary_of_a_study_has_every_column_of_every_table_that_it_wrote(finished_study):
    dictionary = read_table(finished_study.folder / OWN / "dictionary.csv", DICTIONARY)
    assert dictionary.equals(to_table(group_by_analysis()))
    tables = sorted((finished_study.folder / "results/sample").glob("*/*.csv"))
    assert len(tables) > 40
    for table in tables:
        columns = dictionary.filter(path=f"{table.parent.name}/{table.name}")["column"].to_list()
        assert pl.read_csv(table, n_rows=0).columns == columns, table


def test_the_commands_of_the_section_on_reproducing_give_the_same_page(study):
    source = (study.folder / OWN / "report/source/index.qmd").read_text(encoding="utf-8")
    section = source[source.index("**Provenance.**") :]
    commands = [
        line.split() for block in re.findall(r"``` sh\n(.*?)```", section, re.DOTALL) for line in block.splitlines()
    ]
    commands = [words for words in commands if words and words[0] != "#"]
    assert {words[0] for words in commands} == {"ttf", "cp"} and ["ttf", "report", "--config", "again.yaml"] in commands
    page = study.folder / PAGE
    before = page.read_bytes()
    for program, *words in commands:
        command = ttf_command(study.folder, *words) if program == "ttf" else [program, *words]
        process = subprocess.run(
            command, cwd=study.folder, env=environment(), capture_output=True, text=True, check=False
        )
        assert process.returncode == 0, (words, process.stdout, process.stderr)
    assert page.read_bytes() == before
    assert re.search(r"made with Time to Failure \d+\.\d+\.\d+, Snakemake \d", section)
