"""Texts of the page in which each number knows its key: "{outcomes.failure_share|31.8%} of jobs failed".

Page, PDF, comparison and console are made from the same texts: `html` makes handles of the numbers, `plain` leaves
their words. What comes from a trace goes in through `of_trace`: no text of a stranger can name a key or hold markup.
"""

import html as _html
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from ttf import words
from ttf.columns import GAP
from ttf.contract import Table
from ttf.page.numbers import Numbers, handle
from ttf.size_unit import SizeUnit

UNITS = {"s": "seconds", "min": "minutes", "h": "hours"}
_FRACTIONS = ((1 / 5, "one in five"), (1 / 4, "one in four"), (1 / 3, "one in three"), (1 / 2, "one in two"))
_NUMBER = re.compile(r"\{([\w.:-]+)\|([^{}|]*)\}")
_OF_TRACE = re.compile("\u2068([^\u2068\u2069]*)\u2069")
# What of a text is no words of ours: the key of a number, a text of a trace.
_NO_WORDS = re.compile("(\\{[\\w.:-]+\\||\u2068[^\u2068\u2069]*\u2069)")
_FRAGMENTS = {"unit", "note", "effect_note"}
_CONTROLS = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C])


def number(metrics, key: str, worded: Callable[[float], str] | None = None, text: str | None = None) -> str:
    """The number `key` of the metrics in words, or as `text`, with its key. KeyError where it is not there."""
    value = metrics[key]
    return f"{{{key}|{text if text is not None else (worded or words.number)(value)}}}"


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
    handles = _NUMBER.sub(lambda at: handle(at[1], at[2]), escaped)
    return _OF_TRACE.sub(r"<bdi>\1</bdi>", handles)


def in_unit(value: Any, unit: SizeUnit) -> Any:
    """Texts, and what is made of texts, in the unit of sizes; keys of numbers and texts of a trace are left alone."""
    if isinstance(value, str):
        return "".join(part if place % 2 else unit.worded(part) for place, part in enumerate(_NO_WORDS.split(value)))
    if is_dataclass(value):
        parts = {of.name: in_unit(getattr(value, of.name), unit) for of in fields(value)}
        # These go on a line that a number begins.
        parts |= {
            name: parts[name][:1].lower() + parts[name][1:]
            for name in _FRAGMENTS & parts.keys()
            if parts[name] != getattr(value, name)
        }
        return replace(value, **parts)
    if isinstance(value, Mapping):
        return {name: in_unit(part, unit) for name, part in value.items()}
    return type(value)(in_unit(part, unit) for part in value) if isinstance(value, list | tuple) else value


def plain(text: str) -> str:
    """The words alone."""
    return _OF_TRACE.sub(r"\1", _NUMBER.sub(r"\2", text))


def keys(text: str) -> list[str]:
    """The keys of the numbers that the text names."""
    return [at[1] for at in _NUMBER.finditer(text)]


def length(text: str) -> int:
    """Of how many words the text is."""
    return len(plain(text).split())


def whole_percent(share: float) -> str:
    """A share to the per cent: 25%; below 1% as `words.share` has it."""
    return f"{100 * share:.0f}%" if share >= 0.01 else words.share(share)


def large(value: float) -> str:
    """A count for a header: 53,806; from a million on 3.47 M."""
    return f"{words.number(value / 1e6)} M" if value >= 1e6 else words.count(value)


def hours(value: float) -> str:
    """An amount of hours, to three digits: 51,500; from a million on 3.47 M."""
    return f"{words.number(value / 1e6)} M" if value >= 1e6 else words.number(value)


def fraction(m: Numbers, key: str) -> str:
    """A share as "one in three" where it is within a hundredth of that, else in per cent."""
    return number(m, key, words.share, _fraction(m[key]))


def is_fraction(m: Numbers, key: str) -> bool:
    return _fraction(m[key]) is not None


def _fraction(share: float) -> str | None:
    return next((text for value, text in _FRACTIONS if abs(share - value) < 0.01), None)


def timed(m: Numbers, key: str) -> tuple[str, str]:
    """A time as value and unit: 13.7, minutes."""
    value, _, unit = words.duration(m[key]).partition(words.NO_BREAK)
    return number(m, key, text=value), UNITS.get(unit, unit)


def span(m: Numbers, low: str, high: str, worded=words.number) -> str:
    """From one number to another, the unit once: 31.4–32.3%."""
    both = words.span(worded(m[low]), worded(m[high]))
    between = " to " if " to " in both else "–"
    first, _, last = both.partition(between)
    return f"{number(m, low, text=first)}{between}{number(m, high, text=last)}"


def interval(m: Numbers, ends: str, like: str | None = None, confidence: str = "95") -> str:
    """The clustered interval, else the exact one with what it supposes; "" where there is none.

    ends: keys with braces for `low` and `high` (and `low_clustered`), such as mttf.ci_{}_s; like: the key of the
    estimate, in whose unit a time is given.
    """
    by = "_clustered" if m.has(ends.format("low_clustered")) else ""
    low, high = (ends.format(end + by) for end in ("low", "high"))
    if not m.has(low):
        return ""
    proviso = "" if by else " if independent"
    if not m.has(high):
        return f"95% CI {number(m, low, _worded(m, low, like))} or more{proviso}"
    return f"{confidence}% CI {span(m, low, high, _worded(m, low, like))}{proviso}"


def _worded(m: Numbers, key: str, like: str | None):
    unit = m.unit(key)
    if unit == "s":
        return words.duration if like is None else lambda seconds: words.alike(m[like], seconds)[0]
    return words.share if unit == "share" else words.number


def joined(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


def plural(m: Numbers, key: str, one: str) -> str:
    """A count with its noun: 1 failure, 1,870 failures."""
    return f"{number(m, key, words.count)} {one if m[key] == 1 else one + 's'}"


def own_ends(m: Numbers) -> str:
    """That few failures have an end, as a sentence after another; "" where more than nineteen in twenty have."""
    if not m.has("mttf.range.low_s") or not m.value("without_end.without_end", 0) or not m.has("mttf.events"):
        return ""
    known, failures = (number(m, key, words.count) for key in ("mttf.events", "without_end.failures"))
    return f" Only {known} of {failures} failures have a recorded end; the others are left out here."
