"""The order of the page: each section of an analysis is in one theme; headings of folds are below those of sections."""

import re
from pathlib import Path

from ttf.analyses import BUILT_IN
from ttf.analyses.catalogue import load_analyses
from ttf.analyses.sections import APPENDIX, RESULTS, THEMES, number_sections

REPORT = Path(__file__).parents[2] / "report"
# Another page renders it.
COMPARISON_SECTIONS = {"compare_traces/comparison"}


def declared_sections() -> list[tuple[str, str]]:
    """List (theme, analysis/template) of each section that an analysis declares."""
    sections = []
    for name, analysis in load_analyses().items():
        for section in analysis.sections:
            theme, _, template = section.rpartition("/")
            sections.append((theme or analysis.theme, f"{name}/{template}"))
    return sections


def test_every_template_of_an_analysis_is_in_one_theme():
    sections = [section for _, section in declared_sections()]
    assert len(sections) == len(set(sections))
    template_names = {f"{file.parent.name}/{file.stem}" for file in BUILT_IN.glob("*/*/*.qmd")}
    assert {*sections} == template_names - COMPARISON_SECTIONS
    assert {theme for theme, _ in declared_sections()} <= {*THEMES}


def test_anchors_are_unique_and_result_sections_ask_a_question():
    themes = [*{**THEMES, **APPENDIX}.values()]
    anchors = [theme.anchor for theme in themes]
    assert len(anchors) == len({*anchors, "overview", "actions", "nothing", "absent", "checked"}) - 5
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", anchor) for anchor in anchors)
    assert all(theme.question.endswith("?") == (theme in RESULTS.values()) for theme in themes)


def test_every_section_has_an_analysis_with_a_head():
    """Pages lack a section if no analysis of its theme has a head."""
    themes_with_head = {
        analysis.theme
        for name, analysis in load_analyses().items()
        if (page := BUILT_IN / analysis.theme / name / "page.py").is_file()
        and "\ndef head(" in page.read_text(encoding="utf-8")
    }
    assert themes_with_head == {*RESULTS}


def test_shown_sections_are_numbered_without_a_gap():
    numbered = number_sections({"large_runs", "factors", "time_to_failure"})
    assert {theme: section.number for theme, section in numbered.items()} == {
        "factors": "1",
        "time_to_failure": "2",
        "large_runs": "3",
    }
    assert [*numbered] == ["factors", "time_to_failure", "large_runs"]
    assert [theme.number for theme in number_sections({"numbers", "quality"}, APPENDIX).values()] == ["A", "B"]
