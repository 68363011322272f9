"""The window of a trace: the days of a published study, from the registry to seconds on the trace's clock."""

from collections.abc import Iterator
from datetime import datetime


def window_of(entry: dict) -> tuple[int, int] | None:
    """(from, to) of the entry's window in seconds since 1970, the end not in it; None where it has none."""
    window = entry.get("window")
    return (_seconds(window["from"]), _seconds(window["to"])) if window else None


def window_problems(entry: dict) -> Iterator[tuple[tuple[str, ...], str]]:
    """(path within the entry, what is wrong) of `window`: a day that no calendar has, an end before the start."""
    found = {}
    for key, moment in entry.get("window", {}).items():
        try:
            found[key] = _seconds(moment)
        except (ValueError, OverflowError):
            text = f"there is no such moment as {moment!r}; write a date and time of the calendar with its offset, "
            yield ("window", key), text + "for example '2017-10-03T00:00:00-07:00'."
    if len(found) == 2 and found["from"] >= found["to"]:
        yield ("window", "to"), "is not after from; the window would be empty."


def _seconds(moment: str | int) -> int:
    return moment if isinstance(moment, int) else int(datetime.fromisoformat(moment).timestamp())
