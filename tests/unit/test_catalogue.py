"""The analyses that there are: found in folders, declared without heavy libraries, each name and table once."""

import subprocess
import sys
import uuid
from pathlib import Path

import pytest
import ttf.analyses
from ttf.analyses import BUILT_IN
from ttf.analyses.catalogue import places, rooms
from ttf.analyses.declaration import PRODUCTS, Analysis
from ttf.analyses.sections import THEMES
from ttf.engine.contract import REASON
from ttf.engine.errors import StudyError
from ttf.page.results_tables import contracts

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
DECLARATION = """\
from ttf.analyses.declaration import Analysis
from ttf.engine.contract import count, table
ANALYSIS = Analysis(question="Why?", theme="outcomes", tables=(table("TABLE", "A row.", n=count("n", "Jobs.")),))
"""


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """Writes the declaration of an analysis with a name of its own in a folder outside; returns folder and name."""
    monkeypatch.setattr(ttf.analyses, "__path__", [*ttf.analyses.__path__])

    def write(text=DECLARATION, table="weekdays", name=None):
        name = name or f"of_{uuid.uuid4().hex}"  # Python keeps a module by its name
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(text.replace("TABLE", table))
        return str(tmp_path), name

    return write


def test_declarations_import_neither_polars_nor_numpy_nor_altair():
    """Every start of the workflow loads them all."""
    program = (
        "import sys; from ttf.page.results_tables import contracts; assert len(contracts()) > 80; print(*sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(SCRIPTS)}, capture_output=True, text=True, check=True
    )
    assert not {"polars", "numpy", "altair", "scipy", "pandas", "yaml"} & {*run.stdout.split()}


def test_every_room_is_found_in_the_order_of_the_page():
    found = rooms()
    assert set(found) == set(places())
    for name, folder in places().items():
        assert folder == BUILT_IN / found[name].theme / name, "in the folder of its section"
    order = list(THEMES)
    assert [order.index(room.theme) for room in found.values()] == sorted(
        order.index(room.theme) for room in found.values()
    )
    for theme in THEMES:
        ranked = [(room.rank, name) for name, room in found.items() if room.theme == theme]
        assert ranked == sorted(ranked)


@pytest.mark.parametrize("name", rooms())
def test_a_declaration_is_whole(name):
    room, folder = rooms()[name], places()[name]
    assert (folder / "compute.py").is_file()
    assert room.question.endswith("?") and (folder / "__init__.py").read_text().startswith('"""')
    assert {asked for asked in (*room.needs, *room.uses) if asked not in PRODUCTS} <= {
        *contracts(),
        *("events", "losses", "tails", "jobs_against"),
    }
    for section in room.sections:
        theme, _, template = section.rpartition("/")
        assert theme in {"", *THEMES}
        assert (folder / f"{template}.qmd").is_file()
    assert (folder / "charts.py").is_file() == bool(room.charts)


def test_every_table_has_one_place_and_columns_with_words():
    found = contracts()
    assert len({table.path for table in found.values()}) == len(found)
    for table in found.values():
        assert table.about and (table.columns or table.open)
        assert table.path.endswith((".csv", ".parquet"))
        for name, column in table.columns.items():
            assert column.heading and column.about, (table.name, name)
            assert column.blank != ""
            assert column.blank != REASON or "reason" in table.columns, (table.name, name)


def test_an_analysis_of_a_folder_outside_joins(outside):
    folder, name = outside()
    assert isinstance(rooms((folder,))[name], Analysis)
    assert "weekdays" in contracts((folder,)) and "weekdays" not in contracts()
    assert places((folder,))[name] == Path(folder, name)


def test_a_name_that_is_taken_names_both_folders(outside):
    folder, _ = outside(name="correlate")
    with pytest.raises(StudyError, match="two analyses are called correlate") as error:
        rooms((folder,))
    assert str(places()["correlate"]) in str(error.value) and str(Path(folder, "correlate")) in str(error.value)


@pytest.mark.parametrize("name", ["risk", "shared", "catalogue"])
def test_a_name_of_a_module_beside_the_analyses_is_taken(outside, name):
    folder, _ = outside(name=name)
    with pytest.raises(StudyError, match="this name is taken by the workflow") as error:
        rooms((folder,))
    assert str(Path(folder, name)) in str(error.value)


def test_a_table_that_there_is_already(outside):
    folder, name = outside(table="mttf")
    with pytest.raises(
        StudyError, match=f"{name}: another table is called mttf|fit_mttf: another table is called mttf"
    ):
        contracts((folder,))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (DECLARATION.replace('"outcomes"', '"outcome"'), "theme 'outcome'; expected outcomes, causes, "),
        ("ANALYSIS = None\n", "no ANALYSIS = Analysis"),
        ("", "no ANALYSIS = Analysis"),
    ],
)
def test_a_declaration_that_is_none(outside, text, says):
    folder, name = outside(text)
    with pytest.raises(StudyError, match=says) as error:
        rooms((folder,))
    assert str(Path(folder, name, "__init__.py")) in str(error.value)
