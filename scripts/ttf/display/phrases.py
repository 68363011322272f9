"""Texts of the page in which each number knows its key: "{outcomes.failure_share|31.8%} of jobs failed".

Page, PDF, comparison and console are made from the same texts: `html` makes handles of the numbers, `plain` leaves
their words. What comes from a trace goes in through `of_trace`: no text of a stranger can name a key or hold markup.
"""

import html as _html
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import wraps
from typing import Any

from ttf.display.trace_numbers import KEYED, Numbers, handle
from ttf.engine import words
from ttf.engine.columns import GAP
from ttf.engine.contract import Table
from ttf.engine.size_unit import SizeUnit

UNITS = {"s": "seconds", "min": "minutes", "h": "hours"}
_FRACTIONS = ((1 / 5, "one in five"), (1 / 4, "one in four"), (1 / 3, "one in three"), (1 / 2, "one in two"))
# "[key]", "[key:2]", "[key failure]"; a text of a trace and a number that is filled in are left alone.
_SLOT = re.compile(
    "\u2068[^\u2068\u2069]*\u2069|\\{[^{}|]*\\|[^{}|]*\\}"
    r"|\[(?P<key>[A-Za-z]\w*(?:\.[\w-]+)+)(?::(?P<how>\w+)| (?P<noun>[^\[\]]+))?\]"
)
_OF_TRACE = re.compile("\u2068([^\u2068\u2069]*)\u2069")
# What of a text is no words of ours: the key of a number, a text of a trace.
_NO_WORDS = re.compile("(\\{[\\w.:-]+\\||\u2068[^\u2068\u2069]*\u2069)")
_FRAGMENTS = {"unit", "note", "effect_note"}
_CONTROLS = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C])


def fill(value: Any, m: Numbers) -> Any:
    """Texts, and what is made of texts, with the numbers that they name.

    "[outcomes.failure_share]" becomes "{outcomes.failure_share|31.8%}", "[data.jobs job]" the number with its noun, and
    "[cox.p:p_value]" or "[lemons.ratio:2]" what `Numbers.words` makes of it. KeyError where there is no such number.
    """
    return change_texts(value, lambda text, _: _SLOT.sub(lambda at: _number(at, m), text))


def with_numbers(function: Callable) -> Callable:
    """Fill the texts that a function returns with numbers of its argument `m`."""

    @wraps(function)
    def filled(*given, **named):
        m = next(value for value in (*given, *named.values()) if isinstance(value, Numbers))
        return fill(function(*given, **named), m)

    return filled


def _number(at: re.Match, m: Numbers) -> str:
    key, how, noun = at["key"], at["how"], at["noun"]
    if key is None:
        return at[0]
    number = m.keyed(key, m.words(key, how or ""))
    return f"{number} {noun if m[key] == 1 else words.many(noun)}" if noun else number


def change_texts(value: Any, change: Callable[[str, str], str], field: str = "") -> Any:
    """What is made of texts, with each text changed by a function of it and of the field that holds it."""
    if isinstance(value, str):
        return change(value, field)
    if is_dataclass(value):
        parts = {of.name: change_texts(getattr(value, of.name), change, of.name) for of in fields(value)}
        return replace(value, **parts)
    if isinstance(value, Mapping):
        return {name: change_texts(part, change) for name, part in value.items()}
    return type(value)(change_texts(part, change) for part in value) if isinstance(value, list | tuple) else value


def noun(table: Table, about: Mapping) -> str:
    """One of what a table counts, in the words of a trace: a job, a GPU, an outage, a gap between outages.

    Sentences that give a share or a number of a table take their noun from here. An attempt is one at a job; components
    make none, and what stands for them are their lives.
    """
    nouns = {"lives": about["life"], "jobs": about["unit"], "units": about["unit"]}
    nouns["attempts"] = "attempt" if about["gives"] == "jobs" else about["life"]
    return nouns.get(table.counts, table.counts.removesuffix("s"))


def is_repaired(about: Mapping) -> bool:
    """Whether the lives of a trace are the gaps between outages of units that are repaired."""
    return about["life"] == GAP


def with_age(about: Mapping) -> str:
    """How the hazard of a trace changes: by age, or by the time since a repair."""
    return "after a repair" if is_repaired(about) else "with age"


def unturned(text: str) -> str:
    """The text without signs that change the direction of reading."""
    return text.translate(_CONTROLS)


def of_trace(text: object, most: int = words.LONGEST_LABEL) -> str:
    """A text from a trace: on one line, cut, without braces, and isolated from the direction of what stands around."""
    flat = " ".join(unturned(str(text)).split()).replace("{", "(").replace("}", ")")
    return f"\u2068{words.shorten(flat, most)}\u2069"


def html(text: str) -> str:
    """As HTML: numbers are <data> with their key, texts of a trace <bdi>, everything else is escaped."""
    escaped = _html.escape(words.unbroken(text), quote=False)
    handles = KEYED.sub(lambda at: handle(at[1], at[2]), escaped)
    return _OF_TRACE.sub(r"<bdi>\1</bdi>", handles)


def in_unit(value: Any, unit: SizeUnit) -> Any:
    """Texts, and what is made of texts, in the unit of sizes; keys of numbers and texts of a trace are left alone."""

    def worded(text: str, field: str) -> str:
        parts = enumerate(_NO_WORDS.split(text))
        changed = "".join(part if index % 2 else unit.worded(part) for index, part in parts)
        # A fragment goes on a line that a number begins.
        return changed[:1].lower() + changed[1:] if field in _FRAGMENTS and changed != text else changed

    return change_texts(value, worded)


def plain(text: str) -> str:
    """The words alone."""
    return _OF_TRACE.sub(r"\1", KEYED.sub(r"\2", text))


def keys(text: str) -> list[str]:
    """The keys of the numbers that the text names."""
    return [at[1] for at in KEYED.finditer(text)]


def length(text: str) -> int:
    """Of how many words the text is."""
    return len(plain(text).split())


def fraction(m: Numbers, key: str) -> str:
    """A share as "one in three" where it is within a hundredth of that, else in per cent."""
    return m.keyed(key, _fraction(m[key]) or m.words(key))


def is_fraction(m: Numbers, key: str) -> bool:
    return _fraction(m[key]) is not None


def _fraction(share: float) -> str | None:
    return next((text for value, text in _FRACTIONS if abs(share - value) < 0.01), None)


def timed(m: Numbers, key: str) -> tuple[str, str]:
    """A time as value and unit: 13.7, minutes."""
    value, _, unit = words.duration(m[key]).partition(words.NO_BREAK)
    unit = UNITS.get(unit, unit)
    return m.keyed(key, value), unit.removesuffix("s") if value == "1" else unit


def joined(*parts: str | None, by: str = " · ") -> str:
    return by.join(part for part in parts if part)


def own_ends(m: Numbers) -> str:
    """That few failures have an end, as a sentence after another; "" where more than nineteen in twenty have."""
    if not m.has("mttf.range.low_s") or not m.value("without_end.without_end", 0) or not m.has("mttf.events"):
        return ""
    return " Only [mttf.events] of [without_end.failures] failures have a recorded end; the others are left out here."


def by_group(m: Numbers, units: str) -> str:
    """How many had failed of the group that fails most often, and of the one that does least."""
    high, low = (of_trace(m[f"groups.{end}.name"], 24) for end in ("highest", "lowest"))
    of = m["groups.by"]
    return (
        f"[groups.highest.failed_share] of {units} of {of} {high} had failed by year "
        f"[groups.highest.years], [groups.lowest.events] of [groups.lowest.n] of {low}"
    )
