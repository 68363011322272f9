"""The rules of `ttf check`: read, and checked against the available numbers before any rule is evaluated."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from ttf.engine.checkout import CHECKOUT
from ttf.engine.words import SECONDS
from ttf.page.checks.thresholds import Rule, Subject
from ttf.study.configuration.documents import Problem, load_document, suggest_match
from ttf.study.configuration.messages import show

KINDS = ("above", "below", "is", "is_not")
# Unit in a rule -> unit of the number, and factor.
_UNITS = {"%": ("share", Fraction(1, 100))} | {unit: ("s", Fraction(size)) for unit, size in SECONDS.items()}
_UNITS |= {unit.removesuffix("s"): _UNITS[unit] for unit in ("days", "years")}
_NUMBERS_FILE = CHECKOUT / "docs" / "metrics.md"


def load_rules(path: str | Path, subjects: Sequence[Subject]) -> list[Rule]:
    """Return the rules of a file, with limits in the units of the numbers.

    Raises ConfigError, one problem per line: file, line, key, expectation and the closest valid name.
    """
    document = load_document(
        path,
        "thresholds.schema.yaml",
        contradictions=lambda document: _find_contradictions(document["rules"], subjects),
    )
    return [_build_rule(entry) for entry in document["rules"]]


def _find_contradictions(entries: list[dict], subjects: Sequence[Subject]) -> Iterator[Problem]:
    """Yield unknown names, and limits that do not fit the unit of the number."""
    names = [subject.name for subject in subjects]
    catalogue = build_number_pattern()
    for index, entry in enumerate(entries):
        if (trace := entry.get("trace", names[0])) not in names:
            text = f"{trace} is not a trace of this study{suggest_match(trace, names)} It has: {', '.join(names)}."
            yield Problem(("rules", index, "trace"), text)
            continue
        number, numbers = entry["number"], _find_numbers(entry, subjects)
        is_withheld = any(number in subject.withheld for subject in subjects)
        if not numbers and not is_withheld and not catalogue.fullmatch(number):
            keys = list(dict.fromkeys(key for subject in subjects for key in subject.metrics))
            hint = f"{suggest_match(number, keys)} Expected: a key of metrics.json, as docs/metrics.md lists."
            text = f"there is no number {show(number)}{hint}"
            yield Problem(("rules", index, "number"), text)
        kind = _find_comparison_key(entry)
        for number_info in numbers[:1]:
            if problem := _explain_misfit(kind, entry[kind], number, number_info):
                yield Problem(("rules", index, kind), problem)
            elif kind in ("is", "is_not") and "by" in entry:
                yield Problem(("rules", index, "by"), "works with above and below only: a text has no interval.")


def _explain_misfit(kind: str, limit: Any, number: str, number_info: Mapping[str, Any]) -> str | None:
    """Return why a number cannot be compared with a limit."""
    unit, is_text = number_info["unit"], isinstance(number_info["value"], str | bool)
    if is_text and kind in ("above", "below"):
        return f"{number} is a text, now {show(number_info['value'])}; expected is or is_not."
    if kind in ("is", "is_not"):
        return None if is_text else f"{number} is a number; expected above or below."
    if isinstance(limit, str) and (quantity_unit := _split_quantity(limit)[1]) != unit:
        allowed = [word for word, (base_unit, _) in _UNITS.items() if base_unit == unit]
        unit_hint = f", or with one of {', '.join(allowed)}" if allowed else ""
        quantity = "a share" if quantity_unit == "share" else "a time"
        return f"{limit} is {quantity}, and the unit of {number} is {unit or 'none'}; expected that unit{unit_hint}."
    if unit == "share" and parse_limit(limit) > 1:
        return f"{limit} is more than 100%: {number} is a share; expected, for example, 30% or 0.3."
    return None


def _find_numbers(entry: Mapping[str, Any], subjects: Iterable[Subject]) -> list[Mapping[str, Any]]:
    trace, key = entry.get("trace"), entry["number"]
    return [s.metrics[key] for s in subjects if trace in (None, s.name) and key in s.metrics]


def _find_comparison_key(entry: Mapping[str, Any]) -> str:
    return next(kind for kind in KINDS if kind in entry)


def _build_rule(entry: Mapping[str, Any]) -> Rule:
    kind = _find_comparison_key(entry)
    limit = entry[kind] if kind in ("is", "is_not") else parse_limit(entry[kind])
    options = {key: entry[key] for key in ("by", "if_missing", "trace", "say") if key in entry}
    return Rule(entry["number"], kind, limit, **options)


def parse_limit(text: float | str) -> float:
    """Return a limit in the unit of its number, as the closest double: 30% as 0.3, 12 h as 43,200."""
    return float(_split_quantity(text)[0]) if isinstance(text, str) else text


def _split_quantity(text: str) -> tuple[Fraction, str]:
    """Return the value in the base unit, and that unit: 12 h is (43200, "s")."""
    _, value, unit, _ = re.split(r"(-?[0-9.]+) ?(\D+)", text)
    base_unit, size = _UNITS[unit]
    return Fraction(value) * size, base_unit


def build_number_pattern(file: Path = _NUMBERS_FILE) -> re.Pattern[str]:
    """Return a pattern of the keys in docs/metrics.md, which a study may lack today; without the file, of none."""
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    keys = re.findall(r"^\| `(.+?)` \|", text, re.MULTILINE)
    return re.compile("|".join(map(_build_key_pattern, keys)) or r"(?!)")


def _build_key_pattern(key: str) -> str:
    pattern = re.sub(r"\\\{(.*?)\\\}", lambda match: f"({match[1].replace(',', '|')})", re.escape(key))
    return pattern.replace("…", "[^.]+")
