"""What a brief is made of, and its file."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SHOWN, FEW, WITHHELD = "shown", "few", "withheld"


@dataclass(frozen=True)
class Fact:
    """A field of the header: 53,806 under Jobs, beside it 40,226 ended."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Tile:
    """name: of the tile, `failure_rate`; state: shown, few (few events, greyed) or withheld.

    value, unit, interval: as they stand under each other; of a tile that is withheld value says so and means gives the
    reason, needed what data it would take. badge: in a word what to mind. link: anchor of a section. mini: what
    ttf.page.brief.mini_charts draws. target: whether the configuration's target is met, in words.
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
    """Something to do: its evidence, the expected effect, and the basis: upper bound, model or measured."""

    title: str
    evidence: str
    effect: str
    effect_note: str
    basis: str
    link: str


@dataclass(frozen=True)
class Change:
    """A measure before and after, in words ("" where there is none); verdict: one of three, mark: its sign; details:

    difference, interval and n, or what is new.
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
    """What changed with the last part of the records. summary, forecast: a sentence; notes: how it was tested."""

    title: str
    summary: str
    rows: tuple[Change, ...]
    forecast: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Brief:
    """bottom_line: two sentences, the first is the bold one. withheld: key of a number -> why it is not given.

    not_worth: what was tested and is not worth doing; actions_claim: the heading over the actions. period: of the data,
    "1 March to 7 June 2025", or "". changes: of a trace in two or more parts that have jobs.
    """

    subtitle: str
    facts: tuple[Fact, ...]
    grade: str
    grade_reasons: tuple[str, ...]
    bottom_line: tuple[str, ...]
    tiles: tuple[Tile, ...]
    actions_claim: str = ""
    actions: tuple[Action, ...] = ()
    not_worth: tuple[str, ...] = ()
    withheld: dict[str, str] = field(default_factory=dict)
    period: str = ""
    changes: Changes | None = None

    def tile(self, name: str) -> Tile:
        return next(tile for tile in self.tiles if tile.name == name)

    def text(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_brief(file: Path) -> Brief:
    kept = json.loads(file.read_text(encoding="utf-8"))
    of = {"facts": Fact, "tiles": Tile, "actions": Action}
    made = {name: tuple(kind(**row) for row in kept[name]) for name, kind in of.items()}
    lists = {name: tuple(kept[name]) for name in ("grade_reasons", "bottom_line", "not_worth")}
    if changes := kept["changes"]:
        rows = tuple(Change(**row) for row in changes["rows"])
        made["changes"] = Changes(**changes | {"rows": rows, "notes": tuple(changes["notes"])})
    return Brief(**kept | made | lists)
