"""Error messages of bounded length, and how values appear in them."""

import datetime
import itertools
import re
from typing import Any

from ttf.engine.errors import StudyError
from ttf.engine.words import escape_unprintable

# A message fits a screen of 40 lines of 120 characters, with the lines that programs print above it.
MOST_LINES, WIDTH, LONGEST_LINE = 34, 120, 1500


class ConfigError(StudyError):
    """Errors of the configuration, one problem per line, for the user.

    Long messages and long lines are shortened; control characters are escaped.
    """

    def __init__(self, text: str) -> None:
        lines = [_shorten_and_escape(line) for line in text.split("\n")]
        heights = itertools.accumulate(-(-len(line) // WIDTH) for line in lines)
        shown = max(1, sum(height <= MOST_LINES for height in heights))
        more = [f"... and at least {len(lines) - shown:,} more. Fix these first."] if shown < len(lines) else []
        super().__init__("\n".join(lines[:shown] + more))


def _shorten_and_escape(line: str) -> str:
    return escape_unprintable(line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} ...")


def show(value: Any) -> str:
    """Return the repr of a value, at most 80 characters long."""
    return truncate(repr(value))


def truncate(text: str) -> str:
    """Cut a text to at most 80 characters."""
    return text if len(text) <= 80 else f"{text[:77]}..."


def format_key(key: str) -> str:
    """Return a configuration key for a message: unchanged if it has only letters, digits, _ and -, else quoted."""
    return key if re.fullmatch(r"[\w-]+", key) else show(key)


def join_lines(text: object) -> str:
    return " ".join(str(text).split())


def describe_value(value: Any) -> str:
    """Return a description of a value that has the wrong type."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"{str(value).lower()} (yes, no, on and off mean true or false)"
    if isinstance(value, str):
        return f"the text {show(value)}"
    if isinstance(value, float) and abs(value) == float("inf"):
        return "a number that is too large"
    if isinstance(value, int | float):
        return f"the {'whole ' if isinstance(value, int) else ''}number {show(value)}"
    if isinstance(value, datetime.date):
        return f"the date {value}"
    return "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else show(value)
