"""Thresholds that a person sets on the numbers of a study: which are crossed, each in a sentence."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ttf.display.trace_numbers import Numbers, interval_about
from ttf.engine import words

HELD, CROSSED, UNTOLD = "held", "crossed", "cannot be told"
# What is no word beside a value.
_UNSAID = {"s", "share", "label", "truth", "1", "p", "r", ""}


@dataclass(frozen=True)
class Rule:
    """kind: above, below, is or is_not the limit; a limit in the unit of the number. trace: None for each of the study.

    by: of an estimate with an interval, whether the whole `interval` or the `estimate` alone has to lie beyond.
    if_missing: tell, ignore or fail. say: a person's own words.
    """

    number: str
    kind: str
    limit: float | str | bool
    by: str = "interval"
    if_missing: str = "tell"
    trace: str | None = None
    say: str = ""


class Subject(NamedTuple):
    """What a rule is held against: the name of a trace, its metrics, and key -> why the study withholds the number."""

    name: str
    metrics: Mapping[str, Mapping[str, Any]]
    withheld: Mapping[str, str] = {}


class Interval(NamedTuple):
    """high None: there is no upper end. how: by what it is clustered, or what it supposes; "" if that is not said."""

    low: float
    high: float | None
    how: str


class Answer(NamedTuple):
    state: str
    sentence: str


def answer(rule: Rule, subject: Subject) -> Answer:
    """Whether the rule is crossed by the subject, in a sentence that names number, value, interval, n and limit."""
    if rule.number not in subject.metrics:
        why = _why_missing(rule.number, subject)
        state = CROSSED if rule.if_missing == "fail" else UNTOLD
        return Answer(state, f"{subject.name}: {flat(rule.number)} cannot be told: {why}.{_said(rule)}")
    beyond = _beyond(rule, subject.metrics)
    sentence = f"{subject.name}: {flat(rule.number)} is {_against(rule, subject.metrics)}.{_said(rule)}"
    return Answer(CROSSED if beyond else HELD, sentence)


def _beyond(rule: Rule, metrics: Mapping[str, Mapping]) -> bool:
    value = metrics[rule.number]["value"]
    if rule.kind in ("is", "is_not"):
        return (value == rule.limit) == (rule.kind == "is")
    interval = interval_of(metrics, rule.number) if rule.by == "interval" else None
    low, high = (value, value) if interval is None else interval[:2]
    return low > rule.limit if rule.kind == "above" else high is not None and high < rule.limit


def _against(rule: Rule, metrics: Mapping[str, Mapping]) -> str:
    """The number and, where it is not what the rule names, the limit; in words that differ where they do."""
    about = metrics[rule.number]
    if rule.kind in ("is", "is_not"):
        limit = in_words(rule.limit, about["unit"])
        return described(metrics, rule.number) + (f", not {limit}" if rule.kind == "is_not" else "")
    value, limit = (in_words(number, about["unit"]) for number in (about["value"], rule.limit))
    if value == limit:
        value, limit = (f"{number!r} {about['unit']}" for number in (about["value"], rule.limit))
    how = ""
    if interval_of(metrics, rule.number):
        how = ", by the estimate alone" if rule.by == "estimate" else " with the whole interval"
    return f"{described(metrics, rule.number, value)}, {rule.kind} {limit}{how}"


def described(metrics: Mapping[str, Mapping], key: str, value: str | None = None) -> str:
    """A number, its interval and its n: 28.3% (CI 21.9–35.8%, clustered by user; n = 3,736). value: in other words."""
    about = metrics[key]
    text = value or in_words(about["value"], about["unit"])
    beside = []
    if interval := interval_of(metrics, key):
        how = f", {interval.how}" if interval.how else ""
        beside.append(f"CI {_ends(interval, about['value'], about['unit'])}{how}")
    if about["n"] is not None:
        beside.append(f"n = {words.count(about['n'])}")
    return f"{text} ({'; '.join(beside)})" if beside else text


def in_words(value: float | str | bool, unit: str) -> str:
    """A value as the page words it, with the unit where that is no part of the words; a text in quotes."""
    if isinstance(value, str | bool):
        return f'"{flat(value)}"' if isinstance(value, str) else str(value).lower()
    said = Numbers(it={"value": value, "unit": unit}).words("it").replace(words.NO_BREAK, " ")
    return said if unit in _UNSAID else f"{said} {unit}"


def _ends(interval: Interval, like: float, unit: str) -> str:
    low, high, _ = interval
    if high is None:
        return f"{in_words(low, unit)} or more"
    if unit == "s":
        return words.until(low, high, like).replace(words.NO_BREAK, " ")
    bare = unit if unit in _UNSAID else ""
    return words.span(in_words(low, bare), in_words(high, bare))


def interval_of(metrics: Mapping[str, Mapping], key: str) -> Interval | None:
    """The clustered interval about a number, else the exact one; None where it has none.

    Beside the names that the table of all numbers knows (`interval_about`) also those of medians and of projections:
    runtime_median_low_clustered_s of runtime_median_s, mttf_low_s of mttf_s, and x.low.ettr of x.estimate.ettr.
    """
    value = metrics[key]["value"]
    if isinstance(value, str | bool):
        return None
    if found := interval_about(metrics, key):
        low, high, by = found
        return Interval(low, high, f"clustered by {by}" if by else "if independent")
    about, _, name = key.rpartition(".")
    stem, _, suffix = name.rpartition("_")
    for ends in (f"{stem}_ci_{{}}_clustered_{suffix}", f"{stem}_{{}}_clustered_{suffix}", f"{stem}_{{}}_{suffix}"):
        low, high = (metrics.get(f"{about}.{ends.format(end)}") for end in ("low", "high"))
        if stem and low and high and low["unit"] == metrics[key]["unit"]:
            by = metrics.get(f"{about}.cluster_by", {}).get("value", "") if "clustered" in ends else ""
            return Interval(low["value"], high["value"], f"clustered by {by}" if by else "")
    if about.endswith(".estimate"):
        # Of a low failure rate the ETTR is high.
        ends = [metrics.get(f"{about.removesuffix('estimate')}{end}.{name}") for end in ("low", "high")]
        if all(ends):
            return Interval(*sorted(end["value"] for end in ends), "")
    return None


def _why_missing(key: str, subject: Subject) -> str:
    if key in subject.withheld:
        return flat(subject.withheld[key]).rstrip(".")
    about = subject.metrics.get(f"{key.rpartition('.')[0]}.reason", {})
    return flat(about["value"]) if about else "what the trace records does not give it"


def _said(rule: Rule) -> str:
    return f" {flat(rule.say)}" if rule.say else ""


def flat(text: object) -> str:
    """Any text on one line, with what a terminal would act on, or what turns the direction of reading, written out."""
    line = " ".join(str(text).split())
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape", "surrogatepass").decode() for letter in line
    )
