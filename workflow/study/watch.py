"""How many units of a trace of outages were watched, and when: `nodes` and `window_days` of its registry entry."""

from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

from study.documents import Problem

DAY_S = 86_400


def watch_of(entry: dict, clock: str | None) -> dict:
    """`nodes`, and `window_days` as numbers of days on the trace's clock, of what the entry says."""
    watched = {"nodes": entry["nodes"]} if "nodes" in entry else {}
    if "window_days" in entry:
        watched["window_days"] = [_days(moment, clock) for moment in entry["window_days"]]
    return watched


def watch_problems(name: str, entry: dict, format: dict, has_outages: bool, clock: str | None) -> Iterator[Problem]:
    """What is wrong with them; format: the declaration of the trace's format; clock: its zone, None without dates."""
    given = [key for key in ("nodes", "window_days") if key in entry]
    for key in given:
        path = ("registry", name, key)
        if not has_outages:
            yield Problem(path, f"is of traces of outages, and of the format {entry['format']} there are none here.")
        elif format.get("exposure") is False:
            yield Problem(path, f"{format['unit']}s came and went, and no file says when; leave it out.")
        elif format.get("exposure") is True:
            yield Problem(
                path, f"the files of {entry['format']} say which {format['unit']}s were watched; leave it out."
            )
    if "window_days" in given:
        path = ("registry", name, "window_days")
        if "nodes" not in given:
            yield Problem(path, f"says when {format['unit']}s were watched; say how many there were, too, with nodes.")
        if text := _window_problem(entry["window_days"], clock):
            yield Problem(path, text)


def unwatched(name: str, unit: str) -> str:
    """What to ask of a trace of outages of which nobody knows how many units were watched."""
    return (
        f"registry.{name}.nodes: how many {unit}s were watched, those without an outage too? No file of the trace says "
        "it. Without it there are only causes, repair times and bursts; with it rates, availability and spares."
    )


def _window_problem(window: list, clock: str | None) -> str | None:
    example = '[0, 348.98] or, where times are dates, ["2024-03-30", "2025-03-14T12:00:00+01:00"]'
    if len(window) != 2:
        return f"has {len(window)} items; expected two, the first day and the last, for example {example}."
    if clock is None and any(isinstance(moment, str) for moment in window):
        return "the times of the trace count from an origin of their own; write days on its clock, as in [0, 348.98]."
    try:
        first, last = (_days(moment, clock) for moment in window)
    except (ValueError, OverflowError):
        return f"there is no such day; write two of them, for example {example}."
    return None if first < last else f"{window[1]} is not after {window[0]}; the nodes would never be watched."


def _days(moment: float | str, clock: str | None) -> float:
    """Days on the trace's clock; of a date, its midnight in the zone of the clock, since 1970."""
    if not isinstance(moment, str):
        return moment
    at = datetime.fromisoformat(moment)
    return (at if at.tzinfo else at.replace(tzinfo=ZoneInfo(clock or "UTC"))).timestamp() / DAY_S
