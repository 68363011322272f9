"""How the brief words numbers, each with its key: intervals, times, shares in words."""

from ttf.report import words
from ttf.report.numbers import Numbers
from ttf.report.said import number

UNITS = {"s": "seconds", "min": "minutes", "h": "hours"}
_FRACTIONS = ((1 / 5, "one in five"), (1 / 4, "one in four"), (1 / 3, "one in three"), (1 / 2, "one in two"))


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
