"""The templates of the page ask for what there is: a name that is not known would leave a section out in silence."""

import re
from pathlib import Path

from ttf.analyses.catalogue import rooms

ROOT = Path(__file__).resolve().parents[2]


def test_analyses_that_templates_ask_for_are_declared() -> None:
    templates = [*(ROOT / "report").rglob("*.qmd"), *(ROOT / "scripts/ttf/analyses").rglob("*.qmd")]
    asked = {name for file in templates for name in re.findall(r'"(\w+)" in trace\.analyses', file.read_text())}
    assert asked and asked <= set(rooms())
