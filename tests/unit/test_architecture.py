"""The diagram of docs/architecture.md matches the code."""

import runpy

from study_runs import ROOT


def test_the_diagram_is_up_to_date():
    generator = runpy.run_path(str(ROOT / "tools/docs/wings_diagram.py"))
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    assert generator["replace_diagram"](text) == text, "make docs"
