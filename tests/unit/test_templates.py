"""Templates of the page name existing analyses; an unknown name would silently omit a section."""

import re
from pathlib import Path

from ttf.analyses.catalogue import load_analyses

ROOT = Path(__file__).resolve().parents[2]


def test_analyses_named_in_templates_are_declared():
    templates = [*(ROOT / "report").rglob("*.qmd"), *(ROOT / "scripts/ttf/analyses").rglob("*.qmd")]
    names = {name for file in templates for name in re.findall(r'"(\w+)" in trace\.analyses', file.read_text())}
    assert names and names <= set(load_analyses())
