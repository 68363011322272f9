"""What the README says is made again, is made."""

import re
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import pytest
from ttf.rooms import contracts, rooms

ROOT = Path(__file__).parents[2]
OF_JOBS = SimpleNamespace(has_jobs=True, strata=[])
CHARTS = [room.charts(OF_JOBS) if callable(room.charts) else room.charts for room in rooms().values()]
MADE = {*contracts(), *chain(*CHARTS)}
SECTION = (ROOT / "README.md").read_text().split("## Published figures, made again")[1].split("\n## ")[0]
CELLS = [line.split("|")[3] for line in SECTION.splitlines() if line.startswith("| ")][1:]
NAMES = sorted(
    {name for cell in CELLS for name in re.findall(r"`(\w+)`", cell)}
    | {name for cell in CELLS if ";" in cell for name in re.findall(r"[\w*]+", cell.split(";")[1])}
)


def test_the_table_is_read():
    assert len(CELLS) >= 30
    assert {"study1", "gpu_use", "runtime_by_*"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_table_and_chart_is_declared(name):
    assert any(fnmatchcase(made, name) for made in MADE), name
