"""The page is made in one direction: words and numbers, tiles and the brief, sections, the page."""

from graphlib import TopologicalSorter

import pytest
from import_graph import SCRIPTS, imported

PAGE, CHARTS = SCRIPTS / "ttf" / "page", SCRIPTS / "ttf" / "charts"
LAYERS = [
    {"words", "numbers", "phrases", "rules", "model", "head", "minis", "tables"},
    {"tiles", "bottom_line", "facts", "grade", "actions", "changes", "brief", "strata"},
    {"blocks", "quality", "quality_lines", "all_numbers", "scorecard", "references", "packing"},
    {"trace_page", "comparison", "paper", "source", "render", "template"},
]


def modules_of(file):
    return {other for other in imported(file) if other.suffix == ".py" and other.name != "__init__.py"} - {file}


def test_no_module_imports_itself_by_way_of_others():
    graph = {file: modules_of(file) for file in (SCRIPTS / "ttf").rglob("*.py")}
    assert [*TopologicalSorter(graph).static_order()]


@pytest.mark.parametrize("layer", range(len(LAYERS)))
def test_a_layer_of_the_page_imports_none_above_it(layer):
    above = set().union(*LAYERS[layer + 1 :])
    files = [SCRIPTS / "ttf" / "words.py", *PAGE.glob("*.py")]
    mine = [file for file in files if file.stem in LAYERS[layer]]
    assert len(mine) == len(LAYERS[layer])
    for file in mine:
        assert not {other.stem for other in modules_of(file) if other.parent == PAGE} & above, file


def test_charts_know_nothing_of_the_page():
    assert not {other for file in CHARTS.glob("*.py") for other in modules_of(file) if PAGE in other.parents}
