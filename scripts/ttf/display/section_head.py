"""The open part of a section of the page: its finding, one or two charts, a few key values and a few sentences.

All texts follow `ttf.display.phrases`. The analysis that leads a section returns its head by `head(trace, m)` in
page.py. `lines(trace, m)` returns what was tested without a finding, or is not in the trace, for the section at the
end.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Key:
    """A key value with its label; note: interval, n, or the base of a share."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Callout:
    """A highlighted remark; kind: `info`, `care` (read with care) or `stop` (not estimated)."""

    kind: str
    lead: str
    text: str = ""


@dataclass(frozen=True)
class Head:
    """The finding that leads a section.

    claim: the finding in at most 18 words, with its number, without interval or p; charts: names of charts; keys: at
    most four; text: paragraphs of at most 60 words in all; details: summary of the fold below, such as "states as
    recorded, outcomes by month"; planner: initial values of the planner; file: the module of
    the texts, set by the page.
    """

    claim: str
    charts: tuple[str, ...] = ()
    keys: tuple[Key, ...] = ()
    text: tuple[str, ...] = ()
    callout: Callout | None = None
    details: str = ""
    planner: dict | None = None
    file: str = field(default="", compare=False)


@dataclass(frozen=True)
class Line:
    """A line of "Checked, nothing found" (`checked`) or of "Not in this trace": subject, result, table, file."""

    subject: str
    result: str
    table: str = ""
    checked: bool = True
    file: str = field(default="", compare=False)
