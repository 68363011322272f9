"""The file of rules of `make check`: read, and held against the numbers that there are, before any rule is."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Any

from ttf.engine.words import SECONDS
from ttf.page.checks.thresholds import Rule, Subject

from study.documents import Problem, load_document, mean
from study.messages import show

KINDS = ("above", "below", "is", "is_not")
# Unit that a person writes -> the unit of the number, and how many of it are one.
_WRITTEN = {"%": ("share", Fraction(1, 100))} | {unit: ("s", Fraction(size)) for unit, size in SECONDS.items()}
_WRITTEN |= {unit.removesuffix("s"): _WRITTEN[unit] for unit in ("days", "years")}
_NUMBERS = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"


def load_rules(path: str | Path, subjects: Sequence[Subject], others: Sequence[Subject] = ()) -> list[Rule]:
    """The rules of a file, their limits in the units of the numbers.

    subjects: what a rule is held against that names no trace; others: what it may name besides. Raises ConfigError, a
    line a problem: file, line, key, what was expected and the nearest right name.
    """
    every = [*subjects, *others]
    document = load_document(
        path, "thresholds.schema.yaml", contradictions=lambda read: _contradictions(read["rules"], every)
    )
    return [_rule(entry, _meant(entry, every)) for entry in document["rules"]]


def _contradictions(entries: list[dict], subjects: Sequence[Subject]) -> Iterator[Problem]:
    """Names that nothing has, and limits that no number of that unit can be held against."""
    names = [subject.name for subject in subjects]
    catalogue = known_numbers()
    for place, entry in enumerate(entries):
        if (trace := entry.get("trace", names[0])) not in names:
            text = f"{trace} is no trace of this study{mean(trace, names)} It has: {', '.join(names)}."
            yield Problem(("rules", place, "trace"), text)
            continue
        number, meant = entry["number"], _meant(entry, subjects)
        if not meant and not catalogue.fullmatch(number) and not any(number in of.withheld for of in subjects):
            keys = list(dict.fromkeys(key for subject in subjects for key in subject.metrics))
            near = get_close_matches(number, keys, n=1, cutoff=0.6)
            hint = f"; did you mean {near[0]}?" if near else "."
            text = f"there is no number {show(number)}{hint} Expected: a key of metrics.json, as docs/metrics.md lists."
            yield Problem(("rules", place, "number"), text)
        kind = _kind(entry)
        for about in meant[:1]:
            if wrong := _misfit(kind, entry[kind], number, about):
                yield Problem(("rules", place, kind), wrong)
            elif kind in ("is", "is_not") and "by" in entry:
                yield Problem(("rules", place, "by"), "works with above and below only: a text has no interval.")


def _misfit(kind: str, limit: Any, number: str, about: Mapping[str, Any]) -> str | None:
    """Why a number cannot be held against a limit."""
    unit, is_text = about["unit"], isinstance(about["value"], str | bool)
    if is_text and kind in ("above", "below"):
        return f"{number} is a text, here {show(about['value'])}; expected is or is_not."
    if kind in ("is", "is_not"):
        return None if is_text else f"{number} is a number; expected above or below."
    if isinstance(limit, str) and (of := _parts(limit)[1]) != unit:
        allowed = [word for word, (of_unit, _) in _WRITTEN.items() if of_unit == unit]
        with_unit = f", or with one of {', '.join(allowed)}" if allowed else ""
        what = "a share" if of == "share" else "a time"
        return f"{limit} is {what}, and the unit of {number} is {unit or 'none'}; expected a number in it{with_unit}."
    if unit == "share" and limit_of(limit) > 1:
        return f"{limit} is more than all: {number} is a share of 1; expected, for example, 30% or 0.3."
    return None


def _meant(entry: Mapping[str, Any], subjects: Iterable[Subject]) -> list[Mapping[str, Any]]:
    """What is known of the number of a rule, in each subject that has it and that the rule is for."""
    trace, number = entry.get("trace"), entry["number"]
    return [of.metrics[number] for of in subjects if trace in (None, of.name) and number in of.metrics]


def _kind(entry: Mapping[str, Any]) -> str:
    return next(kind for kind in KINDS if kind in entry)


def _rule(entry: Mapping[str, Any], meant: list[Mapping[str, Any]]) -> Rule:
    kind = _kind(entry)
    limit = entry[kind] if kind in ("is", "is_not") else limit_of(entry[kind])
    more = {key: entry[key] for key in ("by", "if_missing", "trace", "say") if key in entry}
    return Rule(entry["number"], kind, limit, **more)


def limit_of(written: float | str) -> float:
    """A limit in the unit of its number: 30% as 0.3, 12 h as 43,200. The nearest double, as of a number in a file."""
    return float(_parts(written)[0]) if isinstance(written, str) else written


def _parts(written: str) -> tuple[Fraction, str]:
    value, unit = re.fullmatch(r"(-?[0-9.]+) ?(\D+)", written).groups()
    of_unit, size = _WRITTEN[unit]
    return Fraction(value) * size, of_unit


def known_numbers(file: Path = _NUMBERS) -> re.Pattern[str]:
    """The keys that docs/metrics.md lists: a number that a study lacks today is known by it. Without the file, none."""
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    keys = re.findall(r"^\| `(.+?)` \|", text, re.MULTILINE)
    return re.compile("|".join(map(_pattern, keys)) or r"(?!)")


def _pattern(key: str) -> str:
    """Of a key as the docs have it: names in braces for one of them, … for any other."""
    of_names = re.sub(r"\\\{(.*?)\\\}", lambda names: f"({names[1].replace(',', '|')})", re.escape(key))
    return of_names.replace("…", "[^.]+")
