"""The metrics of a trace as texts of the page ask for them, and how the interval about a number is said."""

import re
from collections.abc import Callable, Mapping

from ttf.engine import words
from ttf.engine.columns import FEWEST_CLUSTERS
from ttf.engine.size_unit import GPU, SizeUnit

# Ends of intervals, and by what they are clustered.
_BESIDE = re.compile(r"(.*_)?(low|high)(_.*)?|cluster_by|clusters")
# A number in a text, and its words.
KEYED = re.compile(r"\{([\w.:-]+)\|([^{}|]*)\}")
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

    def words(self, key: str, how: str = "") -> str:
        """A number in the words of its unit; how: a function of `ttf.engine.words` instead, or so many significant
        digits."""
        value = super().__getitem__(key)["value"]
        if isinstance(value, str):
            return value
        if how.isdigit():
            return words.number(value, int(how))
        return getattr(words, how)(value) if how else self._worded(key)(value)

    def keyed(self, key: str, text: str) -> str:
        """A text of the page that knows the number it gives: "{outcomes.failure_share|31.8%}"."""
        return f"{{{key}|{text}}}"

    def span(self, low: str, high: str, like: str | None = None, worded: Callable[[float], str] | None = None) -> str:
        """From one number to another, the unit once, each with its key; like: the key whose unit a time is given in."""
        ends = [self[low], self[high]]
        if worded is None and self.unit(low) == "s":
            texts = words.alike(self[like or low], *ends)
        else:
            texts = list(map(worded or self._worded(low), ends))
        both = words.span(*texts)
        between = " to " if " to " in both else "–"
        first, _, last = both.partition(between)
        return f"{self.keyed(low, first)}{between}{self.keyed(high, last)}"

    def keyed_interval(self, ends: str, like: str | None = None, confidence: str = "95") -> str:
        """The interval that a sentence gives: the clustered one, else the exact one with its proviso, "" without any.

        ends: the keys of the ends with braces for `low` and `high`, and `low_clustered` and `high_clustered`, such as
        mttf.ci_{}_s; like: the key of the estimate, in whose unit a time is given.
        """
        for kind, proviso in (("_clustered", ""), ("", " if independent")):
            if told := self._ends(ends, kind, like):
                return f"{confidence}% CI {told}{proviso}"
        return ""

    def interval(self, ends: str, like: str | None = None, confidence: str = "95") -> str:
        """The same without keys, and in words where there is none."""
        return KEYED.sub(r"\2", self.keyed_interval(ends, like, confidence)) or "no interval"

    def independent(self, ends: str, unit: str, like: str | None = None) -> str:
        """The sentence that says by what the interval is clustered, and what the exact one would be."""
        about = ends.partition("{")[0].rpartition(".")[0]
        by = self.value(f"{about}.cluster_by", None)
        if by is None:
            return (
                f"The interval holds if {unit}s fail independently; the trace names nothing that they have in common."
            )
        clusters = f"{words.number(self[f'{about}.clusters'])} effective clusters"
        if not self._ends(ends, "_clustered", like):
            text = f"The interval holds only if {unit}s fail independently: by {by} there are {clusters}"
            few = self[f"{about}.clusters"] < FEWEST_CLUSTERS
            return f"{text}, {'too few' if few else 'too much alike'} to tell."
        exact = KEYED.sub(r"\2", self._ends(ends, "", like))
        return (
            f"Clustered by {words.clustering([by])} ({clusters}); if {unit}s failed independently, it would be {exact}."
        )

    def _ends(self, ends: str, kind: str, like: str | None) -> str:
        low, high = (ends.format(end + kind) for end in ("low", "high"))
        if low in self and high in self:
            return self.span(low, high, like)
        for key, bound in ((low, "or more"), (high, "or less")):
            if key in self:
                return f"{self.keyed(key, self._worded(key, like)(self[key]))} {bound}"
        return ""

    def _worded(self, key: str, like: str | None = None) -> Callable[[float], str]:
        if (unit := self.unit(key)) == "s" and like is not None:
            return lambda seconds: words.alike(self[like], seconds)[0]
        return _WORDED.get(unit) or (
            words.count if isinstance(super().__getitem__(key)["value"], int) else words.number
        )


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
