"""The number of observed units in a trace of outages, and the observation window: `nodes` and `window_days`."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from ttf.study.configuration.documents import Problem
from ttf.study.trace_files import find_log_key

DAY_S = 86_400


def read_watch_options(entry: dict, clock: str | None) -> dict:
    """Return `nodes` and `window_days` of the entry; dates become days since 1970."""
    options = {"nodes": entry["nodes"]} if "nodes" in entry else {}
    if "window_days" in entry:
        options["window_days"] = [_to_days(moment, clock) for moment in entry["window_days"]]
    return options


def parse_log_end(entry: dict) -> int | None:
    """Return the end of the day `node_log_end` of the entry in seconds since 1970; None without one."""
    if "node_log_end" not in entry:
        return None
    year, month, day = map(int, entry["node_log_end"].split("-"))
    return round(datetime(year, month, 1, tzinfo=UTC).timestamp()) + day * DAY_S


def parse_boots(entry: dict, zone: str) -> dict[str, int]:
    """Return `node_log_boot` of the entry: node -> start in seconds since 1970; the empty name is of all nodes."""
    boots, starts = entry.get("node_log_boot", {}), {}
    for node, text in (boots if isinstance(boots, dict) else {"": boots}).items():
        year, month, day, hour, minute, second = map(int, re.findall("[0-9]+", f"{text}:00")[:6])
        start = datetime(year, month, 1, hour, minute, second, tzinfo=ZoneInfo(zone)) + timedelta(days=day - 1)
        starts[node] = round(start.timestamp())
    return starts


def find_watch_problems(
    name: str, entry: dict, format: dict, has_outages: bool, clock: str | None
) -> Iterator[Problem]:
    """Yield problems of these keys; format: the format's declaration; clock: the time zone, None without dates."""
    keys = [key for key in ("nodes", "window_days") if key in entry]
    for key in keys:
        path = ("registry", name, key)
        if key == "nodes" and find_log_key(format) == "node_logs":
            continue
        if not has_outages:
            yield Problem(path, f"needs outages, and this trace of the format {entry['format']} has none.")
        elif format.get("exposure") is False:
            yield Problem(path, f"{format['unit']}s came and went at unknown times; remove this key.")
        elif format.get("exposure") is True or "units" in entry:
            yield Problem(path, f"the files say which {format['unit']}s were observed; remove this key.")
    if "window_days" in keys:
        path = ("registry", name, "window_days")
        if "nodes" not in keys and "units" not in entry:
            yield Problem(path, f"says when {format['unit']}s were observed; also give their number with nodes.")
        if text := _find_window_problem(entry["window_days"], clock):
            yield Problem(path, text)


def describe_missing_nodes(name: str, format: dict) -> str:
    unit = format["unit"]
    alternative = f", or units with a table of the {unit}s," if "units" in format["tables"] else ""
    return (
        f"registry.{name}.nodes: how many {unit}s were observed, including those without an outage? No file of the "
        f"trace says. Without nodes{alternative} there are only causes, repair times and bursts, no rates, "
        "availability and spares."
    )


def _find_window_problem(window: list, clock: str | None) -> str | None:
    example = '[0, 348.98] or, where times are dates, ["2024-03-30", "2025-03-14T12:00:00+01:00"]'
    if len(window) != 2:
        return f"has {len(window)} items; expected two, the first and the last day, for example {example}."
    if clock is None and any(isinstance(moment, str) for moment in window):
        return "the times of the trace count from an unknown origin; write days on its clock, as in [0, 348.98]."
    try:
        first, last = (_to_days(moment, clock) for moment in window)
    except (ValueError, OverflowError):
        return f"not a valid date; write two days, for example {example}."
    return None if first < last else f"{window[1]} is not after {window[0]}; the window would be empty."


def _to_days(moment: float | str, clock: str | None) -> float:
    if not isinstance(moment, str):
        return moment
    date_time = datetime.fromisoformat(moment)
    return (date_time if date_time.tzinfo else date_time.replace(tzinfo=ZoneInfo(clock or "UTC"))).timestamp() / DAY_S
