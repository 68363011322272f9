"""docs/architecture.md is short, and its diagram matches the code."""

import runpy

from study_runs import ROOT

MAX_WORDS = 700


def test_the_page_is_short_and_its_diagram_up_to_date():
    generator = runpy.run_path(str(ROOT / "docs/wings_diagram.py"))
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    assert generator["replace_diagram"](text) == text, "make docs"
    assert len(text.split()) <= MAX_WORDS
