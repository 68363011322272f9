"""The metrics of a trace as texts of the page ask for them, and how the interval about a number is said."""

import re
from collections.abc import Callable, Mapping

from ttf import words
from ttf.charts.text import clustering
from ttf.columns import FEWEST_CLUSTERS
from ttf.size_unit import GPU, SizeUnit

# Ends of intervals, and by what they are clustered.
_BESIDE = re.compile(r"(.*_)?(low|high)(_.*)?|cluster_by|clusters")
# How numbers of a unit are worded where nothing else is said.
_WORDED = {"s": words.duration, "share": words.share}


class _Known:
    """A number that knows its key, so that its words can be made a handle."""

    key: str


class Whole(int, _Known):
    pass


class Real(float, _Known):
    pass


class Numbers(dict):
    """The metrics of a trace; a key that is not there is an error, not a blank."""

    def __getitem__(self, key: str):
        value = super().__getitem__(key)["value"]
        kind = {int: Whole, float: Real}.get(type(value))
        if kind is None:
            return value
        known = kind(value)
        known.key = key
        return known

    @property
    def size(self) -> SizeUnit:
        """The unit in which sizes of jobs are told."""
        return SizeUnit(self.value("data.size_unit", GPU))

    def has(self, key: str) -> bool:
        return key in self

    def value(self, key: str, otherwise):
        return self[key] if self.has(key) else otherwise

    def n(self, key: str) -> int:
        return super().__getitem__(key)["n"]

    def unit(self, key: str) -> str:
        return super().__getitem__(key)["unit"]

    def source(self, key: str) -> str:
        return super().__getitem__(key)["source"]

    def words(self, key: str) -> str:
        """A number in the words of its unit."""
        value = super().__getitem__(key)["value"]
        if isinstance(value, str):
            return value
        worded = _WORDED.get(self.unit(key), words.count if isinstance(value, int) else words.number)
        return worded(value)

    def interval(self, ends: str, like: str | None = None, confidence: str = "95") -> str:
        """The interval that a sentence gives, in words: the clustered one, else the exact one with its proviso.

        ends: the keys of the ends with braces for `low` and `high`, and `low_clustered` and `high_clustered`, such as
        mttf.ci_{}_s; like: the key of the estimate, in whose unit a time is given.
        """
        clustered = self._ends(ends, "_clustered", like)
        exact = self._ends(ends, "", like)
        if clustered is None and exact is None:
            return "no interval"
        return f"{confidence}% CI {clustered or f'{exact} if independent'}"

    def independent(self, ends: str, unit: str, like: str | None = None) -> str:
        """The sentence that says by what the interval is clustered, and what the exact one would be."""
        exact, about = self._ends(ends, "", like), ends.partition("{")[0].rpartition(".")[0]
        by = self.value(f"{about}.cluster_by", None)
        if by is None:
            return (
                f"The interval holds if {unit}s fail independently; the trace names nothing that they have in common."
            )
        clusters = f"{words.number(self[f'{about}.clusters'])} effective clusters"
        if self._ends(ends, "_clustered", like) is None:
            text = f"The interval holds only if {unit}s fail independently: by {by} there are {clusters}"
            few = self[f"{about}.clusters"] < FEWEST_CLUSTERS
            return f"{text}, {'too few' if few else 'too much alike'} to tell."
        return f"Clustered by {clustering([by])} ({clusters}); if {unit}s failed independently, it would be {exact}."

    def _ends(self, ends: str, kind: str, like: str | None) -> str | None:
        low, high = (ends.format(end + kind) for end in ("low", "high"))
        if low not in self and high not in self:
            return None
        unit = self.unit(low if low in self else high)
        worded = _WORDED.get(unit, words.number)
        if low not in self:
            return f"{worded(self[high])} or less"
        if high not in self:
            return f"{worded(self[low])} or more"
        if unit == "s":
            return words.until(self[low], self[high], self[like] if like else None)
        return words.span(worded(self[low]), worded(self[high]))


def handle(key: str, shown: str) -> str:
    """A number of the page, `shown` being HTML: the card that names its exact value, n and source hangs on the key."""
    return f'<data data-key="{key}">{shown}</data>'


def handled(worded: Callable[..., str]) -> Callable[..., str]:
    """A filter of templates whose words are a handle where the value is a number with a key."""

    def words_of(value, *given, **named) -> str:
        text = worded(value, *given, **named)
        return handle(value.key, text) if isinstance(value, _Known) else text

    return words_of


def is_beside(key: str) -> bool:
    """Whether a number is an end of the interval about another one, or says by what that is clustered."""
    return _BESIDE.fullmatch(key.rpartition(".")[2]) is not None


def interval_about(metrics: Mapping[str, Mapping], key: str) -> tuple[float | None, float | None, str] | None:
    """The interval among the metrics that belongs to the number `key`: its ends, and by what it is clustered, or "".

    By the names of their keys: outcomes.failure_share_low, mttf.ci_low_s. None where there is none with the same unit
    about that value.
    """
    about, _, name = key.rpartition(".")
    value, unit = (metrics.get(key)[name] for name in ("value", "unit"))
    if isinstance(value, str) or "_low" in name or "_high" in name:
        return None
    suffix = f"_{name.rpartition('_')[2]}"
    for kind in ("_clustered", ""):
        names = (f"{key}_{{}}", f"{key}_ci_{{}}", f"{about}.ci_{{}}")
        for ends in (*(f"{name}{kind}" for name in names), f"{about}.ci_{{}}{kind}{suffix}"):
            low, high = (metrics.get(ends.format(end)) for end in ("low", "high"))
            if low and low["unit"] == unit and low["value"] <= value <= (high["value"] if high else value):
                by = metrics.get(f"{about}.cluster_by", {}).get("value", "") if kind else ""
                return low["value"], high["value"] if high else None, by
    return None
