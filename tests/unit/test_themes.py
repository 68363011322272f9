"""The order of a trace's chapter: every section of the rooms in one theme, those that do not apply absent."""

import re
from pathlib import Path

import pytest
from ttf.report.source import themes_of
from ttf.rooms import BUILT_IN, rooms
from ttf.themes import THEMES

REPORT = Path(__file__).parents[2] / "report"
# Of the whole study.
OF_THE_STUDY = {"compare_traces/comparison"}
# Which go on with the section before them.
WITHOUT_A_HEADING = {"describe_attempts/outcomes_window", "measure_drift/drift", "check_philly/philly_checks"}


def sections(*analyses: str) -> list[str]:
    return [section for theme in themes_of(analyses) for section in theme.sections]


def file_of(section: str) -> Path:
    return (REPORT if section.startswith("sections/") else BUILT_IN) / f"{section}.qmd"


def test_every_section_stands_in_one_theme():
    every = sections(*rooms())
    assert len(every) == len(set(every))
    templates = {f"{file.parent.name}/{file.stem}" for file in BUILT_IN.glob("*/*.qmd")}
    assert {section for section in every if not section.startswith("sections/")} == templates - OF_THE_STUDY


def test_the_themes_are_in_the_order_of_the_page():
    order = [theme.title for theme in THEMES.values()]
    shown = [theme.title for theme in themes_of(rooms())]
    assert shown == [title for title in order if title in shown]


def test_what_does_not_apply_is_absent():
    assert [theme.title for theme in themes_of(["fit_mttf", "judge_lifetimes", "plan_ettr"])] == [
        "Data quality",
        "Survival and mean time to failure",
        "Effective training time",
    ]
    assert sections("fit_mttf") == ["sections/data", "sections/quality", "fit_mttf/survival"]
    # A section may stand in another theme than that of its analysis.
    assert [
        section for theme in themes_of(["describe_attempts"]) if theme.title == "Outcomes" for section in theme.sections
    ] == ["describe_attempts/outcomes_window"]


@pytest.mark.parametrize("section", sections(*rooms()))
def test_sections_stand_below_their_theme(section):
    """The chapter is of level 1, its themes of level 2: they alone are in the table of contents."""
    levels = re.findall(r"^(#+) ", file_of(section).read_text(encoding="utf-8"), re.MULTILINE)
    assert all(len(level) >= 3 for level in levels)
    assert (levels[:1] != ["###"]) == (section in WITHOUT_A_HEADING)
