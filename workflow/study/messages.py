"""What is wrong, in words that a person can read: one error, of bounded length, and how values are shown in it."""

import datetime
import itertools
import re
from typing import Any

from ttf.engine.errors import StudyError

# A message fits a screen of 40 lines of 120 characters, with those that programs put above it.
MOST_LINES, WIDTH, LONGEST_LINE = 34, 120, 1500


class ConfigError(StudyError):
    """What is wrong with the configuration, one problem a line, for the user to read.

    Of many problems the first, of a long line its beginning; characters that a terminal would act on are written out.
    """

    def __init__(self, text: str):
        lines = [_fit(line) for line in text.split("\n")]
        heights = itertools.accumulate(-(-len(line) // WIDTH) for line in lines)
        shown = max(1, sum(height <= MOST_LINES for height in heights))
        more = [f"... and at least {len(lines) - shown:,} more. Put these right first."] if shown < len(lines) else []
        super().__init__("\n".join(lines[:shown] + more))


def _fit(line: str) -> str:
    line = line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} ..."
    return line if line.isprintable() else "".join(char if char.isprintable() else _escaped(char) for char in line)


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode()


def show(value: Any) -> str:
    """A value on one line, cut where it is long."""
    return cut(repr(value))


def cut(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


def key_text(key: str) -> str:
    """A key in a key path: in quotes if it is not a plain word."""
    return key if re.fullmatch(r"[\w-]+", key) else show(key)


def one_line(text: object) -> str:
    """A text with its line breaks as blanks."""
    return " ".join(str(text).split())


def found(value: Any) -> str:
    """What stands where something else should, in words."""
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
    return {dict: "a mapping", list: "a list"}.get(type(value), show(value))
