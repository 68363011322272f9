"""Every table that the docs name as a reproduced published figure is declared."""

import re
from pathlib import Path

import pytest
from ttf.page.results_tables import load_all_contracts

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "docs/scorecard.md").read_text().split("## Published figures, made again")[1].split("\n## ")[0]
CELLS = [line.split("|")[3] for line in SECTION.splitlines() if line.startswith("| ")][1:]
NAMES = sorted({name for cell in CELLS for name in re.findall(r"`(\w+)`", cell)})


@pytest.mark.parametrize("name", NAMES)
def test_each_table_is_declared(name):
    assert name in load_all_contracts()
