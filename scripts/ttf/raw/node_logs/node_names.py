"""Match names of nodes in logs with those of the trace: short with full names, capitals with small letters."""

from collections import Counter
from collections.abc import Iterable

import polars as pl


class NodeNames:
    """names: the nodes of the trace; empty if it has none, then every name of a log stands for itself."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = sorted(set(names))
        short_names = [_shorten(name) for name in self._names]
        # A short name that two nodes share tells neither.
        unique = {name for name, count in Counter(short_names).items() if count == 1}
        self._name_by_short = {
            short: name for short, name in zip(short_names, self._names, strict=True) if short in unique
        }

    def match(self, raw: pl.Series) -> pl.Series:
        """Return the trace's name of each node; null for a node that the trace does not name."""
        distinct = raw.drop_nulls().unique().to_list()
        if not self._names:
            return raw
        exact = set(self._names)
        matches = {name: name if name in exact else self._match_short(name) for name in distinct}
        return raw.replace_strict(matches, default=None, return_dtype=pl.String)

    def _match_short(self, raw: str) -> str | None:
        name = self._name_by_short.get(_shorten(raw))
        # Two full names with the same first label are different nodes.
        return None if name is None or ("." in name and "." in raw and name.lower() != raw.lower()) else name


def _shorten(name: str) -> str:
    return name.partition(".")[0].lower()
