"""The order of a trace's chapter: every section of the templates in one theme, those that do not apply absent."""

import re
from pathlib import Path

import pytest
from ttf.report.analyses import ANALYSES
from ttf.report.themes import themes_of
from ttf.report.trace import Trace

SECTIONS = Path(__file__).parents[2] / "report" / "sections"
# Of the whole study, or put into another section.
NOT_OF_A_TRACE = {
    *("findings", "findings_in_a_line", "comparison", "ettr_reference", "scorecard", "methods", "availability"),
    *("reproducibility", "philly_checks"),
}


def trace(gives="jobs", analyses=()):
    return Trace("a", 1, {"gives": gives, "analyses": list(analyses)}, Path())


def sections(of):
    return [section for theme in themes_of(of) for section in theme.sections]


def test_every_section_stands_in_one_theme():
    every = sections(trace(analyses=ANALYSES))
    assert len(every) == len(set(every))
    assert set(every) == {file.stem for file in SECTIONS.glob("*.qmd")} - NOT_OF_A_TRACE


def test_what_does_not_apply_is_absent():
    assert [theme.title for theme in themes_of(trace("lives", ["lifetimes", "ettr"]))] == [
        "Data quality",
        "Survival and mean time to failure",
        "Effective training time",
    ]
    assert sections(trace("lives")) == ["data", "quality", "survival"]
    assert "queueing" not in sections(trace())


@pytest.mark.parametrize("section", sections(trace(analyses=ANALYSES)))
def test_sections_stand_below_their_theme(section):
    """The chapter is of level 1, its themes of level 2: they alone are in the table of contents."""
    levels = re.findall(r"^(#+) ", (SECTIONS / f"{section}.qmd").read_text(encoding="utf-8"), re.MULTILINE)
    assert all(len(level) >= 3 for level in levels)
    assert section == "outcomes_window" or levels[0] == "###"
