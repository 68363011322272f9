"""The house of ttf: wings in the order in which data travel, and no module imports from a later one."""

import ast
import runpy
from collections import defaultdict
from functools import cache
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest
from import_graph import SCRIPTS, imported

ROOT = SCRIPTS.parent
TTF, STUDY = SCRIPTS / "ttf", ROOT / "workflow" / "study"
WINGS = list(runpy.run_path(str(ROOT / "docs" / "wings_diagram.py"))["WINGS"])
# Within the page: the brief of a trace, then the pages, then what is published of them.
PAGE = [{"brief", "replication", "render"}, {"report"}, {"publish"}]
# A folder has more modules only where these are the parts of one analysis.
MOST_MODULES = 15
# What each analysis and each format has a module of its own for.
ROLES = {"analyses": {"compute", "charts", "numbers", "page"}, "formats": {"derive", "read"}}


@cache
def modules() -> dict[Path, set[Path]]:
    """Module of ttf -> the modules that it imports, wherever in it the statement stands."""
    files = [file for file in TTF.rglob("*.py") if file.name != "__init__.py" or "ANALYSIS = " in file.read_text()]
    return {file: {other for other in imported(file) if other.suffix == ".py"} - {file} for file in files}


def wing_of(file: Path) -> int:
    return WINGS.index(file.relative_to(TTF).parts[0])


def test_ttf_holds_the_wings_alone():
    assert {path.name for path in TTF.iterdir()} - {"__pycache__", "__init__.py"} == {*WINGS}


@pytest.mark.parametrize("wing", WINGS)
def test_a_wing_imports_from_no_later_one(wing):
    later = {
        f"{file.relative_to(TTF)} imports {other.relative_to(TTF)}"
        for file, imports in modules().items()
        if file.is_relative_to(TTF / wing)
        for other in imports - {TTF / "__init__.py"}
        if wing_of(other) > WINGS.index(wing)
    }
    assert not later


def test_no_module_imports_itself_by_way_of_others():
    graph = {file: imports & modules().keys() for file, imports in modules().items()}
    assert [*TopologicalSorter(graph).static_order()]


def test_the_page_is_made_in_one_direction():
    for earlier, later in pairwise(PAGE):
        names = set().union(*PAGE[PAGE.index(later) :])
        for file, imports in modules().items():
            if file.parent.parent == TTF / "page" and file.parent.name in earlier:
                assert not {other for other in imports if other.parent.name in names}, file


def test_a_folder_has_few_modules():
    for folder in {file.parent for file in modules()}:
        assert len([file for file in folder.glob("*.py") if file.name != "__init__.py"]) <= MOST_MODULES, folder


def test_no_two_modules_share_a_name_except_the_parts_of_analyses_and_formats():
    files_by_name = defaultdict(list)
    for file in (*modules(), *STUDY.glob("*.py")):
        wing = file.relative_to(TTF).parts[0] if file.is_relative_to(TTF) else None
        if file.name != "__init__.py" and file.stem not in ROLES.get(wing, ()):
            files_by_name[file.stem].append(str(file.relative_to(ROOT)))
    roles = set().union(*ROLES.values())
    assert not {name: files for name, files in files_by_name.items() if len(files) > 1 or name in roles}


def test_the_workflow_and_the_package_import_one_another_in_one_direction():
    """What both need lives in ttf alone: nothing in it knows of the study."""
    for file in TTF.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.ImportFrom):
                assert (node.module or "").split(".")[0] != "study", file
