"""User-defined thresholds on the numbers of a study, evaluated to one sentence each."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ttf.display.trace_numbers import Numbers, find_interval
from ttf.engine import words

HELD, CROSSED, UNTOLD = "held", "crossed", "not available"
# Units that are not printed after a value.
_HIDDEN_UNITS = {"s", "share", "label", "truth", "1", "p", "r", ""}


@dataclass(frozen=True)
class Rule:
    """A threshold. kind: above, below, is or is_not; limit: in the unit of the number; trace: None for all traces.

    by: whether the whole `interval` or only the `estimate` must pass the limit. if_missing: tell, ignore or fail.
    say: text to append to the sentence.
    """

    number: str
    kind: str
    limit: float | str | bool
    by: str = "interval"
    if_missing: str = "tell"
    trace: str | None = None
    say: str = ""


class Subject(NamedTuple):
    """A trace to evaluate: name, metrics, key -> reason for withheld numbers, and the folder of its results."""

    name: str
    metrics: Mapping[str, Mapping[str, Any]]
    withheld: Mapping[str, str] = {}
    folder: Path | None = None


class Interval(NamedTuple):
    """An interval. high: None without an upper bound; how: its clustering or assumption, "" if not stated."""

    low: float
    high: float | None
    how: str


class Answer(NamedTuple):
    """Whether a rule fires, and the sentence that says why."""

    state: str
    sentence: str


def evaluate(rule: Rule, subject: Subject) -> Answer:
    """Evaluate a rule; the sentence states number, value, interval, n and limit."""
    if rule.number not in subject.metrics:
        reason = explain_missing(rule.number, subject)
        state = CROSSED if rule.if_missing == "fail" else UNTOLD
        return Answer(
            state, f"{subject.name}: {to_single_line(rule.number)} is not available: {reason}.{_own_words(rule)}"
        )
    sentence = (
        f"{subject.name}: {to_single_line(rule.number)} is {_comparison_text(rule, subject.metrics)}.{_own_words(rule)}"
    )
    return Answer(CROSSED if _is_crossed(rule, subject.metrics) else HELD, sentence)


def _is_crossed(rule: Rule, metrics: Mapping[str, Mapping]) -> bool:
    value = metrics[rule.number]["value"]
    if rule.kind in ("is", "is_not"):
        return (value == rule.limit) == (rule.kind == "is")
    interval = read_interval(metrics, rule.number) if rule.by == "interval" else None
    low, high = (value, value) if interval is None else interval[:2]
    limit = float(rule.limit)
    return low > limit if rule.kind == "above" else high is not None and high < limit


def _comparison_text(rule: Rule, metrics: Mapping[str, Mapping]) -> str:
    """Return the number and the limit, with all digits if they would read the same."""
    number_info = metrics[rule.number]
    if rule.kind in ("is", "is_not"):
        limit = format_value(rule.limit, number_info["unit"])
        return describe_number(metrics, rule.number) + (f", not {limit}" if rule.kind == "is_not" else "")
    value, limit = (format_value(number, number_info["unit"]) for number in (number_info["value"], rule.limit))
    if value == limit:
        value, limit = (f"{number!r} {number_info['unit']}" for number in (number_info["value"], rule.limit))
    basis = ""
    if read_interval(metrics, rule.number):
        basis = ", by the estimate alone" if rule.by == "estimate" else " with the whole interval"
    return f"{describe_number(metrics, rule.number, value)}, {rule.kind} {limit}{basis}"


def describe_number(metrics: Mapping[str, Mapping], key: str, value: str | None = None) -> str:
    """Format a number with interval and n: 28.3% (CI 21.9–35.8%, clustered by user; n = 3,736); value: its text."""
    number_info = metrics[key]
    text = value or format_value(number_info["value"], number_info["unit"])
    text = f"{number_info['bound']} {text}" if "bound" in number_info else text
    details = []
    if interval := read_interval(metrics, key):
        basis = f", {interval.how}" if interval.how else ""
        details.append(f"CI {_format_bounds(interval, number_info['value'], number_info['unit'])}{basis}")
    if number_info["n"] is not None:
        details.append(f"n = {words.count(number_info['n'])}")
    return f"{text} ({'; '.join(details)})" if details else text


def format_value(value: float | str | bool, unit: str) -> str:
    """Format a value as on the page, with its unit if the format lacks it; quote texts."""
    if isinstance(value, str | bool):
        return f'"{to_single_line(value)}"' if isinstance(value, str) else str(value).lower()
    text = Numbers(it={"value": value, "unit": unit}).words("it").replace(words.NO_BREAK, " ")
    return text if unit in _HIDDEN_UNITS else f"{text} {unit}"


def _format_bounds(interval: Interval, estimate: float, unit: str) -> str:
    low, high, _ = interval
    if high is None:
        return f"{format_value(low, unit)} or more"
    if unit == "s":
        return words.time_range(low, high, estimate).replace(words.NO_BREAK, " ")
    bound_unit = unit if unit in _HIDDEN_UNITS else ""
    return words.join_range(format_value(low, bound_unit), format_value(high, bound_unit))


def read_interval(metrics: Mapping[str, Mapping], key: str) -> Interval | None:
    """Return the clustered interval of a number, else the exact one, else None.

    In addition to the keys of `find_interval`, this knows those of medians and projections:
    runtime_median_low_clustered_s of runtime_median_s, mttf_low_s of mttf_s, and x.low.r of x.estimate.r.
    """
    if isinstance(metrics[key]["value"], str | bool):
        return None
    if interval := find_interval(metrics, key):
        return Interval(*interval[:2], f"clustered by {interval[2]}" if interval[2] else "if independent")
    group, _, name = key.rpartition(".")
    stem, _, suffix = name.rpartition("_")
    for pattern in (f"{stem}_ci_{{}}_clustered_{suffix}", f"{stem}_{{}}_clustered_{suffix}", f"{stem}_{{}}_{suffix}"):
        low, high = (metrics.get(f"{group}.{pattern.format(bound)}") for bound in ("low", "high"))
        if stem and low and high and low["unit"] == metrics[key]["unit"]:
            cluster_by = metrics.get(f"{group}.cluster_by", {}).get("value", "") if "clustered" in pattern else ""
            return Interval(low["value"], high["value"], f"clustered by {cluster_by}" if cluster_by else "")
    if group.endswith(".estimate"):
        # A low failure rate gives a high ETTR.
        low, high = (metrics.get(f"{group.removesuffix('estimate')}{bound}.{name}") for bound in ("low", "high"))
        if low and high:
            return Interval(min(low["value"], high["value"]), max(low["value"], high["value"]), "")
    return None


def explain_missing(key: str, subject: Subject) -> str:
    """Return why the trace has no number of this key: withheld, blank for a reason, or not recorded."""
    return to_single_line(find_reason(key, subject) or "the records of the trace do not contain it").rstrip(".")


def find_reason(key: str, subject: Subject) -> str:
    """Return why a number is withheld, or why its cell is blank; "" if there is no such cell.

    The cell is in the row of the table that has another number of the same group.
    """
    if key in subject.withheld or key in subject.metrics:
        return subject.withheld.get(key, "")
    group, _, name = key.rpartition(".")
    cell = next((cell for other, cell in subject.metrics.items() if other.rpartition(".")[0] == group), None)
    if cell is None or subject.folder is None or not cell["source"].endswith(".csv"):
        return ""
    with (subject.folder / cell["source"]).open(encoding="utf-8", newline="") as file:
        row = next(islice(csv.DictReader(file), cell["line"] - 2, None))  # the heading is line 1
    return "" if row.get(name, "no column") else row.get("reason") or f"blank in {cell['source']}"


def _own_words(rule: Rule) -> str:
    """Return the text that the rule adds to the sentence, after a space, or ""."""
    return f" {to_single_line(rule.say)}" if rule.say else ""


def to_single_line(text: object) -> str:
    """Return a text on one line with control and direction characters escaped."""
    return words.escape_unprintable(" ".join(str(text).split()))
