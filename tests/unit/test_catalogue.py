"""The catalogue finds analyses in folders without importing heavy libraries and rejects duplicate names."""

import subprocess
import sys
import uuid
from pathlib import Path

import pytest
import ttf.analyses
from ttf.analyses.catalogue import find_analysis_folders, load_analyses
from ttf.analyses.declaration import PRODUCTS, Analysis
from ttf.analyses.sections import THEMES
from ttf.engine.contract import REASON
from ttf.engine.errors import StudyError
from ttf.page.results_tables import load_all_contracts

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
DECLARATION = """\
from ttf.analyses.declaration import Analysis
from ttf.engine.contract import count, table
ANALYSIS = Analysis(question="Why?", theme="outcomes", tables=(table("TABLE", "A row.", n=count("n", "Jobs.")),))
"""


@pytest.fixture
def external_analysis(tmp_path, monkeypatch):
    """Return a function that declares an analysis in a folder outside the package and returns folder and name."""
    monkeypatch.setattr(ttf.analyses, "__path__", [*ttf.analyses.__path__])

    def write(text=DECLARATION, table="weekdays", name=None):
        name = name or f"analysis_{uuid.uuid4().hex}"  # Python caches a module by its name
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(text.replace("TABLE", table))
        return str(tmp_path), name

    return write


def test_declarations_import_neither_polars_nor_numpy_nor_altair():
    """Every start of the workflow loads all declarations."""
    program = "import sys; from ttf.page.results_tables import load_all_contracts as load; "
    program += "assert len(load()) > 80; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(SCRIPTS)}, capture_output=True, text=True, check=True
    )
    assert not {"polars", "numpy", "altair", "scipy", "pandas", "yaml"} & {*run.stdout.split()}


@pytest.mark.parametrize("name", load_analyses())
def test_a_declaration_is_complete(name):
    analysis, folder = load_analyses()[name], find_analysis_folders()[name]
    assert (folder / "compute.py").is_file()
    assert analysis.question.endswith("?") and (folder / "__init__.py").read_text().startswith('"""')
    assert {table for table in (*analysis.needs, *analysis.uses) if table not in PRODUCTS} <= {
        *load_all_contracts(),
        *("events", "losses", "tails", "jobs_against"),
    }
    for section in analysis.sections:
        theme, _, template = section.rpartition("/")
        assert theme in {"", *THEMES}
        assert (folder / f"{template}.qmd").is_file()
    assert (folder / "charts.py").is_file() == bool(analysis.charts)


def test_every_table_has_one_path_and_described_columns():
    tables = load_all_contracts()
    assert len({table.path for table in tables.values()}) == len(tables)
    for table in tables.values():
        assert table.description and (table.columns or table.open)
        assert table.path.endswith((".csv", ".parquet"))
        for name, column in table.columns.items():
            assert column.heading and column.description, (table.name, name)
            assert column.blank != ""
            assert column.blank != REASON or "reason" in table.columns, (table.name, name)


def test_an_external_analysis_joins(external_analysis):
    folder, name = external_analysis()
    assert isinstance(load_analyses((folder,))[name], Analysis)
    assert "weekdays" in load_all_contracts((folder,)) and "weekdays" not in load_all_contracts()
    assert find_analysis_folders((folder,))[name] == Path(folder, name)


def test_a_duplicate_name_reports_both_folders(external_analysis):
    folder, _ = external_analysis(name="correlate")
    with pytest.raises(StudyError, match="two analyses are called correlate") as error:
        load_analyses((folder,))
    assert str(find_analysis_folders()["correlate"]) in str(error.value) and str(Path(folder, "correlate")) in str(
        error.value
    )


@pytest.mark.parametrize("name", ["risk", "shared", "catalogue"])
def test_module_names_of_the_package_are_reserved(external_analysis, name):
    folder, _ = external_analysis(name=name)
    with pytest.raises(StudyError, match="this name is taken by the workflow") as error:
        load_analyses((folder,))
    assert str(Path(folder, name)) in str(error.value)


def test_a_duplicate_table(external_analysis):
    folder, name = external_analysis(table="mttf")
    with pytest.raises(
        StudyError, match=f"{name}: another table is called mttf|fit_mttf: another table is called mttf"
    ):
        load_all_contracts((folder,))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DECLARATION.replace('"outcomes"', '"outcome"'), "theme 'outcome'; expected outcomes, causes, "),
        ("ANALYSIS = None\n", "no ANALYSIS = Analysis"),
    ],
)
def test_an_invalid_declaration(external_analysis, text, message):
    folder, name = external_analysis(text)
    with pytest.raises(StudyError, match=message) as error:
        load_analyses((folder,))
    assert str(Path(folder, name, "__init__.py")) in str(error.value)
