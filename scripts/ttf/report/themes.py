"""The order of a trace's chapter: themes, and the sections that each has."""

from collections.abc import Iterable
from dataclasses import dataclass

from ttf.rooms import rooms
from ttf.themes import THEMES

# The sections of the stages before the analyses.
_OF_STAGES = {"data": ["sections/data", "sections/quality"]}


@dataclass(frozen=True)
class Chapter:
    """A theme with the templates of the sections that apply to one trace."""

    title: str
    anchor: str
    sections: list[str]


def themes_of(analyses: Iterable[str], folders: tuple[str, ...] = ()) -> list[Chapter]:
    """The themes of a trace with these analyses that have a section, in the order of the page."""
    sections = {theme: list(_OF_STAGES.get(theme, [])) for theme in THEMES}
    for name, analysis in rooms(folders).items():
        for section in analysis.sections if name in analyses else ():
            theme, _, template = section.rpartition("/")
            sections[theme or analysis.theme].append(f"{name}/{template}")
    return [Chapter(*THEMES[theme], found) for theme, found in sections.items() if found]
