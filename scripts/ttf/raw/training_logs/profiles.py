"""The patterns of config/training_log_profiles.yaml: which lines of a training log tell what."""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

COMMON = "common"
_JSON_FIELDS = ('"timestamp": ?"(?P<time>[^"]{10,40})"', '"step": ?(?P<step>[0-9]+)')


class Pattern(NamedTuple):
    """regex: a line that matches is of this kind. fields: patterns whose named groups are read from such a line."""

    kind: str
    regex: str
    fields: tuple[str, ...]


class Profile(NamedTuple):
    """The patterns of one framework."""

    name: str
    patterns: tuple[Pattern, ...]

    @property
    def any_regex(self) -> str:
        """Return a pattern that occurs in every line with which the profile does something."""
        return "|".join(f"(?:{strip_names(pattern.regex)})" for pattern in self.patterns)


class Profiles(tuple[Profile, ...]):
    """Profiles in the order in which they are tried; the last one is for the log of any framework."""

    @classmethod
    def from_options(cls, options: Mapping) -> "Profiles":
        named = {**options["profiles"], COMMON: options.get(COMMON, {})}
        return cls(Profile(name, tuple(_list_patterns(kinds))) for name, kinds in named.items())

    @cached_property
    def any_regex(self) -> str:
        return "|".join(profile.any_regex for profile in self if profile.patterns)


def strip_names(regex: str) -> str:
    """Return a pattern without the names of its groups, as a name may occur only once in a pattern."""
    return re.sub(r"\(\?P?<\w+>", "(?:", regex)


def _list_patterns(kinds: Mapping) -> Iterator[Pattern]:
    key = kinds.get("json")
    for kind, items in kinds.items():
        if kind != "json" and key:
            values = "|".join(map(re.escape, items))
            yield Pattern(kind, rf'"{re.escape(key)}": ?"(?:{values})"', _JSON_FIELDS)
        elif kind != "json":
            yield from (Pattern(kind, regex, (regex,)) for regex in items)
