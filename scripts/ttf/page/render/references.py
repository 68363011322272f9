"""References within a page, and headings of folds, resolved here so that every renderer gives the same page.

Templates refer to a table or figure as @tbl-name or @fig-name; a heading of a fold is ### Title {#id}.
"""

import re
from collections.abc import Mapping

from ttf.engine.errors import StudyError
from ttf.engine.words import NO_BREAK

_RAW = re.compile(r"^(```\{=html\}\n.*?^```$)", re.MULTILINE | re.DOTALL)
_REFERENCE = re.compile(r"(?<![\w&#;@/])@((?:fig|tbl|sec)-[\w-]*\w)")
_HEADING = re.compile(r"^(#{3,4}) (.*?) \{#([\w-]+)\}$", re.MULTILINE)
_PREFIXES = {"fig": "chart", "tbl": "table"}


def target_id(name: str) -> str:
    """Return the id of a reference's target: chart-name for fig-name, table-name for tbl-name, else the name itself."""
    kind, _, rest = name.partition("-")
    return f"{_PREFIXES[kind]}-{rest}" if kind in _PREFIXES else name


def resolve_references(text: str, labels: Mapping[str, str]) -> str:
    """Return the text with links for references, and headings as HTML. labels: tbl-name or fig-name -> its label.

    Raises StudyError for a reference without a target in the page.
    """
    sections = {name for block in _RAW.split(text)[::2] for _, _, name in _HEADING.findall(block)}

    def link(match: re.Match) -> str:
        name = match[1]
        if name not in labels and name not in sections:
            raise StudyError(f"the page refers to @{name}, which is not in it")
        label = labels[name].replace(" ", NO_BREAK) if name in labels else "there"
        return f"[{label}](#{target_id(name)})"

    def heading(match: re.Match) -> str:
        return f'```{{=html}}\n<h{len(match[1])} id="{match[3]}">{match[2]}</h{len(match[1])}>\n```'

    parts = _RAW.split(text)
    parts[::2] = [_REFERENCE.sub(link, _HEADING.sub(heading, part)) for part in parts[::2]]
    return "".join(parts)
