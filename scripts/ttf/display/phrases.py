"""What is written and what is shown: numbers in the texts of Python and of .qmd, and what becomes of them.

A text names its numbers: "[outcomes.failure_share] of jobs failed". `fill_slots` formats each and tags it with its key,
"{outcomes.failure_share|31.8%} of jobs failed". Page, PDF, comparison and console share the tagged texts: `to_html` and
`to_markdown` turn tags into handles, `strip_markup` removes them. Text from a trace passes through `quote_trace_text`,
so it can neither name a key nor hold markup.
"""

import html as _html
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from ttf.display.trace_numbers import Numbers
from ttf.engine import words
from ttf.engine.columns import GAP
from ttf.engine.contract import Table
from ttf.engine.size_unit import SizeUnit

UNITS = {"s": "seconds", "min": "minutes", "h": "hours"}
_FRACTIONS = ((1 / 5, "one in five"), (1 / 4, "one in four"), (1 / 3, "one in three"), (1 / 2, "one in two"))
# "[key]", "[key:2]", "[key job]", "[key:n job has|jobs have]".
# Text of a trace and numbers already filled in are skipped.
_SLOT = re.compile(
    "\u2068[^\u2068\u2069]*\u2069|\\{[^{}|]*\\|[^{}|]*\\}"
    r"|\[(?P<key>[A-Za-z]\w*(?:\.[\w-]+)+)(?::(?P<style>\w+))?(?: (?P<noun>[^\[\]]+))?\]"
)
# A number in a text: its key and its formatted value.
_TAG = re.compile(r"\{([\w.:-]+)\|([^{}|]*)\}")
_BLOCK = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_TRACE_TEXT = re.compile("\u2068([^\u2068\u2069]*)\u2069")
# Parts that must not change: the key of a number, text of a trace.
_FIXED_PARTS = re.compile("(\\{[\\w.:-]+\\||\u2068[^\u2068\u2069]*\u2069)")
_FRAGMENTS = {"unit", "note", "effect_note"}
_CONTROLS = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C])


def fill_slots(value: Any, m: Numbers) -> Any:
    """Fill the numbers into a text, or into all texts of a structure. Raises KeyError for an unknown number.

    "[outcomes.failure_share]" becomes "{outcomes.failure_share|31.8%}". A noun follows its number: "[data.jobs job]",
    with another form than the plural after a bar: "[data.jobs job has|jobs have]". "[cox.p:p_value]" and
    "[lemons.ratio:2]" name a style of `Numbers.words`. "[mttf.mttf_s:interval]" is the interval, of 95% confidence,
    "[mttf.mttf_s:interval90]" one of 90%, and "[queue.median:n job]" the number of observations.
    """
    return change_texts(value, lambda text, _: _SLOT.sub(lambda match: _fill_slot(match, m), text))


def _fill_slot(match: re.Match, m: Numbers) -> str:
    key, style, noun = match["key"], match["style"] or "", match["noun"]
    if key is None:
        return match[0]
    if style.startswith("interval"):
        return m.interval(key, style.removeprefix("interval") or "95")
    if isinstance(m[key], str):
        return quote_trace_text(m[key])
    count, text = (m.n(key), words.count(m.n(key))) if style == "n" else (m[key], m.tag(key, m.words(key, style)))
    if not noun:
        return text
    singular, _, plural = noun.partition("|")
    return f"{text} {singular if count == 1 else plural or words.plural_noun(singular)}"


def change_texts(value: Any, change: Callable[[str, str], str], field: str = "") -> Any:
    """Apply `change(text, field)` to every text of a structure of dataclasses, mappings, lists and tuples."""
    if isinstance(value, str):
        return change(value, field)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {item.name: change_texts(getattr(value, item.name), change, item.name) for item in fields(value)}
        return replace(value, **parts)
    if isinstance(value, Mapping):
        return {name: change_texts(part, change) for name, part in value.items()}
    return type(value)(change_texts(part, change) for part in value) if isinstance(value, list | tuple) else value


def noun(table: Table, trace_info: Mapping) -> str:
    """Return the singular noun for what a table counts: a job, a GPU, an outage, a gap between outages.

    Components make no attempts, so for them an attempt is a duration of a component.
    """
    nouns = {"durations": trace_info["subject"], "jobs": trace_info["unit"], "units": trace_info["unit"]}
    nouns["attempts"] = "attempt" if trace_info["gives"] == "jobs" else trace_info["subject"]
    return nouns.get(table.counts, table.counts.removesuffix("s"))


def is_repaired(trace_info: Mapping) -> bool:
    """Whether the durations of a trace are gaps between outages of repaired units."""
    return trace_info["subject"] == GAP


def hazard_scale(trace_info: Mapping) -> str:
    """Return the time scale of the hazard: "with age", or "after a repair"."""
    return "after a repair" if is_repaired(trace_info) else "with age"


def remove_direction_marks(text: str) -> str:
    """Remove the characters that change the direction of reading."""
    return text.translate(_CONTROLS)


def quote_trace_text(text: object, most: int = words.LONGEST_LABEL) -> str:
    """Make text of a trace safe: one line, cut, without braces, isolated from the direction of its surroundings."""
    flat = " ".join(remove_direction_marks(str(text)).split()).replace("{", "(").replace("}", ")")
    return f"\u2068{words.shorten(flat, most)}\u2069"


def to_html(text: str) -> str:
    """Return the text as HTML: numbers as <data> with their key, text of a trace as <bdi>, the rest escaped."""
    escaped = _html.escape(words.add_no_break_spaces(text), quote=False)
    return _TRACE_TEXT.sub(r"<bdi>\1</bdi>", _make_handles(escaped))


def to_markdown(text: str, m: Numbers) -> str:
    """Return a rendered template of .qmd with its numbers as handles; its blocks of HTML and code stay."""
    parts = _BLOCK.split(text)
    for index, part in enumerate(fill_slots(parts[::2], m)):
        parts[2 * index] = _TRACE_TEXT.sub(lambda match: f"<bdi>{words.markdown(match[1])}</bdi>", _make_handles(part))
    return "".join(parts)


def _make_handles(text: str) -> str:
    """Turn tags into handles: the key opens the card of the number with exact value, n and source."""
    return _TAG.sub(r'<data data-key="\1">\2</data>', text)


def convert_units(value: Any, unit: SizeUnit) -> Any:
    """Convert texts from GPUs to another size unit; keys of numbers, text of a trace and commands stay as they are."""

    def convert(text: str, field: str) -> str:
        """Return the text in the other unit; field: name of the dataclass field that holds it, or ""."""
        parts = enumerate(_FIXED_PARTS.split(text))
        if field == "command":
            return text
        changed = "".join(part if index % 2 else unit.worded(part) for index, part in parts)
        # A fragment follows a number on its line.
        return changed[:1].lower() + changed[1:] if field in _FRAGMENTS and changed != text else changed

    return change_texts(value, convert)


def strip_markup(text: str) -> str:
    """Return the text without keys and markup."""
    return _TRACE_TEXT.sub(r"\1", _TAG.sub(r"\2", text))


def list_keys(text: str) -> list[str]:
    """Return the keys of the numbers in the text."""
    return [match[1] for match in _TAG.finditer(text)]


def count_words(text: str) -> int:
    """Return the number of words of the text."""
    return len(strip_markup(text).split())


def fraction(m: Numbers, key: str) -> str:
    """Return a share in words if it is within 0.01 of a simple one, "one in three", else ""."""
    text = next((text for value, text in _FRACTIONS if abs(m[key] - value) < 0.01), "")
    return text and m.tag(key, text)


def split_duration(m: Numbers, key: str) -> tuple[str, str]:
    """Return a time as value and unit: 13.7, minutes."""
    value, _, unit = words.duration(m[key]).partition(words.NO_BREAK)
    unit = UNITS.get(unit, unit)
    return m.tag(key, value), unit.removesuffix("s") if value == "1" else unit


def join_parts(*parts: str | None, by: str = " · ") -> str:
    return by.join(part for part in parts if part)


def cost_text(m: Numbers, key: str) -> str:
    """Return "[actions.drain.cost] EUR", or "" if no price is set."""
    currency = m.value("failed_time.currency", "")
    return f"[{key}]{f' {quote_trace_text(currency, 20)}' if currency else ''}" if key in m else ""


def compare_groups(m: Numbers, units: str) -> str:
    """Return a clause that compares the groups with the highest and the lowest failed share."""
    high, low = (quote_trace_text(m[f"groups.{end}.name"], 24) for end in ("highest", "lowest"))
    return (
        f"[groups.highest.failed_share] of {units} of {m['groups.by']} {high} had failed by year "
        f"[groups.highest.years], [groups.lowest.events] of [groups.lowest.n] of {low}"
    )
