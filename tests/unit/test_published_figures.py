"""What the README says is made again, is made."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RULES = "".join(file.read_text() for file in (ROOT / "workflow" / "rules").glob("*.smk"))
SECTION = (ROOT / "README.md").read_text().split("## Published figures, made again")[1].split("\n## ")[0]
CELLS = [line.split("|")[3] for line in SECTION.splitlines() if line.startswith("| ")][1:]
NAMES = sorted(
    {name for cell in CELLS for name in re.findall(r"`(\w+)`", cell)}
    | {name for cell in CELLS if ";" in cell for name in re.findall(r"[\w*]+", cell.split(";")[1])}
)


def test_the_table_is_read():
    assert len(CELLS) >= 30
    assert {"study1", "gpu_use_by_servers", "runtime_by_*"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_makes_each_table_and_chart(name):
    pattern = name.replace("*", r"\w+")
    assert re.search(rf'["/]{pattern}["/.]', RULES), name
