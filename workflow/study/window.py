"""The window of a trace: the days of a published study, from the registry to seconds on the trace's clock."""

from collections.abc import Iterator
from datetime import datetime


def window_of(entry: dict) -> tuple[int, int] | None:
    """(from, to) of the entry's window in seconds since 1970, the end not in it; None where it has none."""
    window = entry.get("window")
    return (_seconds(window["from"]), _seconds(window["to"])) if window else None


def window_problems(entry: dict) -> Iterator[tuple[tuple[str, ...], str]]:
    """(path within the entry, what is wrong) of `window`: a day that is not in the calendar, an end before the start.

    What the schema refuses anyway (another kind of value, a missing key) is passed over.
    """
    window = entry.get("window")
    found = {}
    for key in ("from", "to") if isinstance(window, dict) else ():
        value = window.get(key)
        if type(value) is int:
            found[key] = value
        elif isinstance(value, str) and "T" in value:
            try:
                found[key] = _seconds(value)
            except (ValueError, OverflowError):
                text = f"there is no such moment as {value!r}; write a date and time of the calendar with its offset, "
                yield ("window", key), text + "for example '2017-10-03T00:00:00-07:00'."
    if len(found) == 2 and found["from"] >= found["to"]:
        yield ("window", "to"), "is not after from; the window would be empty."


def _seconds(moment: str | int) -> int:
    """Raises ValueError for a text that is no moment, or one without an offset."""
    if isinstance(moment, int):
        return moment
    time = datetime.fromisoformat(moment)
    if time.tzinfo is None:
        raise ValueError("no offset")
    return int(time.timestamp())
