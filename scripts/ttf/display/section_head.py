"""What stands open of a section of the page: its finding, one chart or two, a few key values and a few sentences.

All texts are those of `ttf.display.phrases`. The room that leads a section gives its head by `head(trace, m)` in
page.py; what was looked for and not found, or is not in the trace, is a line for the section at the end: `lines(trace,
m)`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Key:
    """A key value: what it is, the value, and beside it its interval, n or what it is a share of."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Callout:
    """One thing to know: `info`, `care` (read with care) or `stop` (not estimated)."""

    kind: str
    lead: str
    text: str = ""


@dataclass(frozen=True)
class Head:
    """claim: the finding, a sentence of at most 18 words with its number and without interval or p; charts: names of
    charts, the first beside the keys; keys: at most four; text: paragraphs of at most 60 words in all; details: what
    the fold below holds, in some words: "states as recorded, outcomes by month"; planner: at what a planner starts.
    """

    claim: str
    charts: tuple[str, ...] = ()
    keys: tuple[Key, ...] = ()
    text: tuple[str, ...] = ()
    callout: Callout | None = None
    details: str = ""
    planner: dict | None = None


@dataclass(frozen=True)
class Line:
    """A line of "Checked, nothing found" (`checked`), or of "Not in this trace": what, what was found, its table."""

    what: str
    found: str
    table: str = ""
    checked: bool = True
