"""References within a page, and headings of folds: made here, so that every renderer gives the same page.

In the templates a table or figure is referred to as @tbl-name or @fig-name, a heading of a fold is ### Title {#id}.
"""

import re
from collections.abc import Mapping

from ttf.engine.errors import StudyError
from ttf.engine.words import NO_BREAK

_RAW = re.compile(r"^(```\{=html\}\n.*?^```$)", re.MULTILINE | re.DOTALL)
_REFERENCE = re.compile(r"(?<![\w&#;@/])@((?:fig|tbl|sec)-[\w-]*\w)")
_HEADING = re.compile(r"^(#{3,4}) (.*?) \{#([\w-]+)\}$", re.MULTILINE)
_PLACES = {"fig": "chart", "tbl": "table"}


def place_of(name: str) -> str:
    """The id of what is referred to: chart-name, table-name, or that of the heading itself."""
    kind, _, rest = name.partition("-")
    return f"{_PLACES[kind]}-{rest}" if kind in _PLACES else name


def resolved(text: str, places: Mapping[str, str]) -> str:
    """The text with links for references, and headings as HTML. places: tbl-name or fig-name -> what it is called here.

    Raises StudyError for a reference to what is not in the page.
    """
    sections = {name for block in _RAW.split(text)[::2] for _, _, name in _HEADING.findall(block)}

    def link(at: re.Match) -> str:
        name = at[1]
        if name not in places and name not in sections:
            raise StudyError(f"the page refers to @{name}, which is not in it")
        called = places[name].replace(" ", NO_BREAK) if name in places else "there"
        return f"[{called}](#{place_of(name)})"

    def heading(at: re.Match) -> str:
        return f'```{{=html}}\n<h{len(at[1])} id="{at[3]}">{at[2]}</h{len(at[1])}>\n```'

    parts = _RAW.split(text)
    parts[::2] = [_REFERENCE.sub(link, _HEADING.sub(heading, part)) for part in parts[::2]]
    return "".join(parts)
