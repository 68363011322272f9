"""Findings of mypy by folder, compared with the numbers allowed."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "tools/setup"))
from check_types import compare, findings_by_folder

LINES = [
    "scripts/ttf/page/a.py:3: error: Incompatible types  [assignment]",
    "scripts/ttf/page/a.py:3: note: a hint",
    "scripts/ttf/page/deep/b.py:9: error: Missing argument  [call-arg]",
    "scripts/ttf/study/c.py:1: error: Missing argument  [call-arg]",
]


def test_findings_count_for_the_deepest_folder():
    findings = findings_by_folder(LINES, ["scripts/ttf/page", "scripts/ttf/page/deep"])
    assert {folder: len(lines) for folder, lines in findings.items()} == {
        "scripts/ttf/page": 1,
        "scripts/ttf/page/deep": 1,
        "scripts/ttf/study/c.py": 1,
    }


def test_more_findings_than_allowed_are_shown_and_fewer_lower_the_number():
    findings = findings_by_folder(LINES, ["scripts/ttf/page"])
    allowed = {"scripts/ttf/page": 2, "scripts/ttf/study/c.py": 1}
    assert compare(findings, allowed) == []
    assert (
        compare(findings, allowed | {"scripts/ttf/study/c.py": 0})[-1]
        == "scripts/ttf/study/c.py: 1 findings, 0 allowed"
    )
    (message,) = compare(findings, allowed | {"scripts/ttf/page": 3})
    assert "2 findings, 3 allowed: lower" in message
