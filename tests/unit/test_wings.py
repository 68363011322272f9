"""The folders of ttf are in the order of the data flow, and no module imports from a later folder."""

import runpy
from functools import cache
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest
from import_graph import SCRIPTS, direct_imports

ROOT = SCRIPTS.parent
TTF = SCRIPTS / "ttf"
WINGS = list(runpy.run_path(str(ROOT / "tools/docs" / "wings_diagram.py"))["WINGS"])
# Order of the folders of `page`: the brief of a trace, the pages, their publication.
PAGE = [{"brief", "replication", "render"}, {"report"}, {"publish"}]


@cache
def map_imports() -> dict[Path, set[Path]]:
    """Map each module of ttf to the modules that it imports at any place."""
    files = [file for file in TTF.rglob("*/*.py") if file.name != "__init__.py" or "ANALYSIS = " in file.read_text()]
    return {file: {module for module in direct_imports(file) if module.suffix == ".py"} - {file} for file in files}


def wing_index(file: Path) -> int:
    return WINGS.index(file.relative_to(TTF).parts[0])


@pytest.mark.parametrize("wing", WINGS)
def test_a_wing_imports_from_no_later_one(wing):
    late_imports = {
        f"{file.relative_to(TTF)} imports {module.relative_to(TTF)}"
        for file, imports in map_imports().items()
        if file.is_relative_to(TTF / wing)
        for module in imports - {TTF / "__init__.py"}
        if wing_index(module) > WINGS.index(wing)
    }
    assert not late_imports


def test_imports_have_no_cycle():
    graph = {file: imports & map_imports().keys() for file, imports in map_imports().items()}
    assert [*TopologicalSorter(graph).static_order()]


def test_folders_of_the_page_import_in_one_direction():
    for earlier, later in pairwise(PAGE):
        names = set().union(*PAGE[PAGE.index(later) :])
        for file, imports in map_imports().items():
            if file.parent.parent == TTF / "page" and file.parent.name in earlier:
                assert not {module for module in imports if module.parent.name in names}, file
