"""The order of the page: every section of the rooms in one theme, and headings of folds below those of sections."""

import re
from pathlib import Path

import pytest
from ttf.analyses import BUILT_IN
from ttf.analyses.catalogue import rooms
from ttf.analyses.sections import APPENDIX, RESULTS, THEMES, number_sections

REPORT = Path(__file__).parents[2] / "report"
# A page of its own renders it.
OF_THE_COMPARISON = {"compare_traces/comparison"}
# Which go on with the section before them.
WITHOUT_A_HEADING = {"describe_attempts/outcomes_window", "measure_drift/drift", "check_philly/philly_checks"}


def placed() -> list[tuple[str, str]]:
    """(theme, room/template) of each section that a room declares."""
    found = []
    for name, room in rooms().items():
        for section in room.sections:
            theme, _, template = section.rpartition("/")
            found.append((theme or room.theme, f"{name}/{template}"))
    return found


def templates() -> list[Path]:
    return [*sorted((REPORT / "sections").glob("*.qmd")), *sorted(BUILT_IN.glob("*/*/*.qmd"))]


def test_every_template_of_a_room_stands_in_one_theme():
    sections = [section for _, section in placed()]
    assert len(sections) == len(set(sections))
    there = {f"{file.parent.name}/{file.stem}" for file in BUILT_IN.glob("*/*/*.qmd")}
    assert {*sections} == there - OF_THE_COMPARISON
    assert {theme for theme, _ in placed()} <= {*THEMES}


def test_every_place_is_named_once_and_every_section_asks():
    every = [*{**THEMES, **APPENDIX}.values()]
    anchors = [theme.anchor for theme in every]
    assert len(anchors) == len({*anchors, "overview", "actions", "nothing", "absent", "checked"}) - 5
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", anchor) for anchor in anchors)
    assert all(theme.question.endswith("?") == (theme in RESULTS.values()) for theme in every)


def test_every_section_is_led_by_a_room():
    """A section that no room of its theme could open would be missing from every page."""
    led = {
        room.theme
        for name, room in rooms().items()
        if (page := BUILT_IN / room.theme / name / "page.py").is_file()
        and "\ndef head(" in page.read_text(encoding="utf-8")
    }
    assert led == {*RESULTS}


@pytest.mark.parametrize("file", templates(), ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_headings_of_a_fold_stand_below_that_of_its_section(file):
    text = re.sub(r"^```.*?^```", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    levels = re.findall(r"^(#+) ", text, re.MULTILINE)
    assert all(len(level) >= 3 for level in levels)
    if file.is_relative_to(BUILT_IN):
        assert (levels[:1] != ["###"]) == (f"{file.parent.name}/{file.stem}" in WITHOUT_A_HEADING)


def test_sections_that_a_page_shows_are_numbered_on_without_a_gap():
    numbered = number_sections({"large_runs", "factors", "time_to_failure"})
    assert {theme: about.number for theme, about in numbered.items()} == {
        "factors": "1",
        "time_to_failure": "2",
        "large_runs": "3",
    }
    assert [*numbered] == ["factors", "time_to_failure", "large_runs"]
    assert [theme.number for theme in number_sections({"numbers", "quality"}, APPENDIX).values()] == ["A", "B"]
