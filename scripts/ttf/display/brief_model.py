"""The data classes of a brief, and its file brief.json."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SHOWN, FEW, WITHHELD = "shown", "few", "withheld"


@dataclass(frozen=True)
class Fact:
    """A field of the header: label Jobs, value 53,806, note "40,226 ended"."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Tile:
    """A tile of the first screen; state: shown, few (few events, greyed) or withheld.

    value, unit, interval: the texts from top to bottom. In a withheld tile, means states the reason and needed the data
    that would allow an estimate. badge: a short caveat. link: anchor of a section. mini: input of
    ttf.page.brief.mini_charts. target: whether the target of the configuration is met.
    """

    name: str
    title: str
    state: str
    value: str
    unit: str = ""
    interval: str = ""
    means: str = ""
    badge: str = ""
    link: str = ""
    needed: str = ""
    mini: dict[str, Any] | None = None
    target: str = ""


@dataclass(frozen=True)
class Action:
    """An action with its evidence, expected effect ("" if unknown), and basis: upper bound, model or measured.

    command: text to copy, in which names are safe in a shell; nothing runs it.
    """

    title: str
    evidence: str
    effect: str
    effect_note: str
    basis: str
    link: str
    command: str = ""

    @property
    def summary(self) -> str:
        """The title with the effect, if it is known."""
        return f"{self.title} ({self.effect} {self.effect_note})" if self.effect else self.title


@dataclass(frozen=True)
class Change:
    """A measure before and after, formatted ("" if missing), with its verdict and the sign of the verdict.

    details: difference, interval and n, or the new entries.
    """

    name: str
    title: str
    before: str
    after: str
    verdict: str
    mark: str
    details: str


@dataclass(frozen=True)
class Changes:
    """Changes with the last part of the records; summary, forecast: one sentence each; notes: the tests."""

    title: str
    summary: str
    rows: tuple[Change, ...]
    forecast: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Brief:
    """The brief of a trace. bottom_line: two sentences, the first one bold. withheld: key of a number -> reason.

    more_actions: those without a row; not_worth: tested actions that are not worth doing; actions_claim: the heading
    over the actions. period: such as "1 March to 7 June 2025", or "". changes: only for a trace with at least two parts
    that have jobs.
    """

    subtitle: str
    facts: tuple[Fact, ...]
    grade: str
    grade_reasons: tuple[str, ...]
    bottom_line: tuple[str, ...]
    tiles: tuple[Tile, ...]
    actions_claim: str = ""
    actions: tuple[Action, ...] = ()
    more_actions: tuple[str, ...] = ()
    not_worth: tuple[str, ...] = ()
    withheld: dict[str, str] = field(default_factory=dict)
    period: str = ""
    changes: Changes | None = None

    def text(self) -> str:
        """Return the brief as JSON."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_brief(file: Path) -> Brief:
    stored = json.loads(file.read_text(encoding="utf-8"))
    for name, kind in (("facts", Fact), ("tiles", Tile), ("actions", Action)):
        stored[name] = tuple(kind(**row) for row in stored[name])
    for name in ("grade_reasons", "bottom_line", "more_actions", "not_worth"):
        stored[name] = tuple(stored[name])
    if changes := stored["changes"]:
        rows = tuple(Change(**row) for row in changes["rows"])
        stored["changes"] = Changes(**changes | {"rows": rows, "notes": tuple(changes["notes"])})
    return Brief(**stored)
