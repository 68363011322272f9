"""The order of the page: each section of an analysis is in one theme; headings of folds are below those of sections."""

from ttf.analyses import BUILT_IN
from ttf.analyses.catalogue import load_analyses
from ttf.analyses.sections import APPENDIX, THEMES, number_sections


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
    assert {*sections} == template_names
    assert {theme for theme, _ in declared_sections()} <= {*THEMES}


def test_shown_sections_are_numbered_without_a_gap():
    numbered = number_sections({"large_runs", "factors", "time_to_failure"})
    assert {theme: section.number for theme, section in numbered.items()} == {
        "factors": "1",
        "time_to_failure": "2",
        "large_runs": "3",
    }
    assert [*numbered] == ["factors", "time_to_failure", "large_runs"]
    assert [theme.number for theme in number_sections({"numbers", "quality"}, APPENDIX).values()] == ["A", "B"]
