"""The metrics of a trace, formatted for texts of the page, with their intervals."""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import NamedTuple

from ttf.engine import words
from ttf.engine.columns import FEWEST_CLUSTERS
from ttf.engine.size_unit import GPU, SizeUnit

# Names of interval bounds and of their clustering.
_INTERVAL_FIELD = re.compile(r"(.*_)?(low|high)(_.*)?|cluster_by|clusters")
_FORMATTER_BY_UNIT = {"s": words.duration, "share": words.share}


class Bounds(NamedTuple):
    """The keys of the bounds of an interval; one of both may be missing."""

    low: str
    high: str
    clustered: bool


class Numbers(dict):
    """The metrics of a trace; a missing key is an error, not a blank."""

    def __getitem__(self, key: str):
        return self.cell(key)["value"]

    @property
    def size(self) -> SizeUnit:
        """The unit of job sizes."""
        return SizeUnit(self.value("data.size_unit", GPU))

    def value(self, key: str, default=None):
        cell = self.get(key)
        return cell["value"] if cell else default

    def n(self, key: str) -> int:
        """Return the number of observations behind a number."""
        return self.cell(key)["n"]

    def cell(self, key: str) -> dict:
        """Return the entry of metrics.json."""
        return super().__getitem__(key)

    def unit(self, key: str) -> str:
        return self.cell(key)["unit"]

    def words(self, key: str, style: str = "") -> str:
        """Format a number by its unit, with its bound; style: a function of `words`, or a number of digits."""
        value = self[key]
        if isinstance(value, str):
            return value
        if style.isdigit():
            return words.number(value, int(style))
        if style:
            return getattr(words, style)(value)
        return " ".join(filter(None, (self.cell(key).get("bound"), self._choose_formatter(key)(value))))

    def tag(self, key: str, text: str) -> str:
        """Return the text of a number with its key: "{outcomes.failure_share|31.8%}"."""
        return f"{{{key}|{text}}}"

    def span(self, low: str, high: str, estimate_key: str | None = None, format_value: Callable | None = None) -> str:
        """Format a range of two numbers with one unit, each tagged; estimate_key: the number whose unit times take."""
        values = [self[low], self[high]]
        if format_value is None and self.unit(low) == "s":
            texts = words.in_common_unit(self[estimate_key or low], *values)
        else:
            texts = list(map(format_value or self._choose_formatter(low), values))
        text = words.join_range(*texts)
        dash = " to " if " to " in text else "–"
        low_text, _, high_text = text.partition(dash)
        return f"{self.tag(low, low_text)}{dash}{self.tag(high, high_text)}"

    def interval(self, key: str, confidence: str = "95", missing: str = "no interval") -> str:
        """Format the clustered interval, else the exact one marked "if independent", else return `missing`.

        If weeks could not be allowed for, it is marked "by user only".
        """
        bounds = next(find_bounds(self, key), None)
        if bounds is None:
            return missing
        cluster_by = self.value(f"{_group(key)}.cluster_by", "")
        proviso = f" by {words.clustering_words([cluster_by])}" if cluster_by and " and " not in cluster_by else ""
        return (
            f"{confidence}% CI {self._format_bounds(key, bounds)}{proviso if bounds.clustered else ' if independent'}"
        )

    def describe_clustering(self, key: str, unit: str) -> str:
        """Return a sentence on how the interval of a number is clustered, and on the exact interval."""
        group = _group(key)
        cluster_by = self.value(f"{group}.cluster_by")
        if cluster_by is None:
            return f"The interval is valid only if {unit}s are independent: the trace records no users."
        clusters = f"[{group}.clusters:number] effective clusters"
        first, *others = find_bounds(self, key)
        if not first.clustered:
            sentence = f"The interval is valid only if {unit}s are independent: {clusters} by {cluster_by} are"
            is_few = self[f"{group}.clusters"] < FEWEST_CLUSTERS
            return f"{sentence} {'too few' if is_few else 'too similar'} for a clustered interval."
        cluster_unit = words.clustering_words([cluster_by])
        exact = next(self._format_bounds(key, bounds) for bounds in others if not bounds.clustered)
        clause = f"The interval is clustered by {cluster_unit} ({clusters})."
        return f"{clause} If {unit}s were independent, the CI would be {exact}."

    def _format_bounds(self, key: str, bounds: Bounds) -> str:
        if bounds.low in self and bounds.high in self:
            return self.span(bounds.low, bounds.high, key)
        end, words_after = (bounds.low, "or more") if bounds.low in self else (bounds.high, "or less")
        return f"{self.tag(end, self._choose_formatter(end, key)(self[end]))} {words_after}"

    def _choose_formatter(self, key: str, estimate_key: str | None = None) -> Callable[[float], str]:
        if (unit := self.unit(key)) == "s" and estimate_key is not None:
            return lambda seconds: words.in_common_unit(self[estimate_key], seconds)[0]
        return _FORMATTER_BY_UNIT.get(unit) or (words.count if isinstance(self[key], int) else words.number)


def _group(key: str) -> str:
    return key.rpartition(".")[0]


def is_interval_field(key: str) -> bool:
    """Whether a number is a bound of another number's interval, or describes its clustering."""
    return _INTERVAL_FIELD.fullmatch(key.rpartition(".")[2]) is not None


def find_bounds(metrics: Mapping[str, Mapping], key: str, has_stem: bool = True) -> Iterator[Bounds]:
    """Yield the intervals that can be those of a number by their names, the clustered ones first.

    outcomes.failure_share_low, risk.savings_ci_low, survival.1h.ci_low, mttf.ci_low_s, survival.median_ci_low_s and
    outcomes.failure.runtime_median_low_s are the lower bounds of outcomes.failure_share, risk.savings,
    survival.1h.survival, mttf.mttf_s, survival.median_s and outcomes.failure.runtime_median_s. has_stem: also the last
    two forms.
    """
    group, _, name = key.rpartition(".")
    stem, _, suffix = name.rpartition("_")
    names = [f"{key}_{{}}", f"{key}_ci_{{}}", f"{group}.ci_{{}}", f"{group}.ci_{{}}_{name.partition('_')[2]}"]
    names.append(f"{group}.ci_{{}}_{suffix}")
    names += [f"{group}.{stem}_ci_{{}}_{suffix}", f"{group}.{stem}_{{}}_{suffix}"] if has_stem else []
    for kind, pattern in product(("_clustered", ""), names):
        low, high = (pattern.format(f"{bound}{kind}") for bound in ("low", "high"))
        if low in metrics or high in metrics:
            yield Bounds(low, high, bool(kind))


def find_interval(metrics: Mapping[str, Mapping], key: str) -> tuple[float, float | None, str] | None:
    """Return (low, high, cluster unit or "") of the interval of a number, or None.

    The unit of the bounds must match, and the interval must include the value.
    """
    group, _, name = key.rpartition(".")
    value, unit = (metrics.get(key, {})[name] for name in ("value", "unit"))
    if isinstance(value, str) or "_low" in name or "_high" in name:
        return None
    for bounds in find_bounds(metrics, key, has_stem=False):
        low, high = (metrics.get(end) for end in bounds[:2])
        if low and low["unit"] == unit and low["value"] <= value <= (high["value"] if high else value):
            cluster_by = metrics.get(f"{group}.cluster_by", {}).get("value", "") if bounds.clustered else ""
            return low["value"], high["value"] if high else None, cluster_by
    return None
