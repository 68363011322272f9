"""Lines of text and of the journal's JSON as columns: node, hour, minute and message.

An hour is text as the layout writes it, with its zone; the few different hours of a block are parsed, not its lines.
"""

import json
from collections.abc import Callable

import polars as pl

from ttf.raw.node_logs.layouts import JSON_HOST, JSON_TIME, MONTHS, PREFIX, PROGRAM, TEXT_LAYOUTS
from ttf.raw.plausible_times import is_plausible_time

_MONTHS = {name: number for number, name in enumerate(MONTHS, 1)}
COLUMNS = ("line", "node", "hour", "minute", "message")


def parse_text(lines: pl.DataFrame, layout: str) -> pl.DataFrame:
    """Return COLUMNS of the lines (line: number, text); hour is null for a line that is not of the layout.

    node: as the line names it, else as pdsh or clush does, else null. zone is appended to hour behind a bar. The
    message is still the whole line, see read_messages.
    """
    pattern = TEXT_LAYOUTS[layout]
    captures = lines.select("line", "text", fields=pl.col("text").str.extract_groups(f"^{pattern}")).unnest("fields")
    if captures["hour"].null_count():
        prefixed = pl.col("text").str.extract_groups(f"^{PREFIX}{pattern}")
        prefixed_lines = (
            captures.filter(pl.col("hour").is_null()).select("line", "text", fields=prefixed).unnest("fields")
        )
        captures = pl.concat([captures.filter(pl.col("hour").is_not_null()), prefixed_lines], how="diagonal").sort(
            "line"
        )
    has = captures.columns
    names = [name for name in ("node", "prefix") if name in has]
    node = pl.coalesce(names) if names else pl.lit(None, pl.String)
    hour = pl.concat_str("hour", pl.col("zone").fill_null(""), separator="|") if "zone" in has else pl.col("hour")
    return captures.select("line", node=node, hour=hour, minute="minute", message="text")


def parse_journal(lines: pl.DataFrame, _: str) -> pl.DataFrame:
    """Return COLUMNS of lines of journalctl -o json; the message is still the whole record, see read_messages."""
    text = pl.col("text")
    time_s = text.str.extract(rf'"{JSON_TIME}" ?: ?"?([0-9]{{10}})[0-9]{{6}}"?').cast(pl.Int64)
    is_whole = text.str.strip_chars_end().str.ends_with("}")
    return lines.select(
        "line",
        node=text.str.extract(rf'"{JSON_HOST}" ?: ?"([A-Za-z0-9][A-Za-z0-9._-]*)"'),
        hour=pl.when(is_whole).then((time_s // 3600).cast(pl.String)),
        minute=pl.concat_str(
            (time_s % 3600 // 60).cast(pl.String).str.zfill(2),
            (time_s % 60).cast(pl.String).str.zfill(2),
            separator=":",
        ),
        message=text,
    )


def read_messages(texts: pl.Series, layout: str) -> pl.Series:
    """Return the messages in lines, without their heads and programs; null for a record of the journal without one."""
    if layout == "journal_json":
        return pl.Series([_read_message(record) for record in texts], dtype=pl.String)
    without_head = pl.col("text").str.replace(f"^(?:{PREFIX})?{TEXT_LAYOUTS[layout]}", "")
    has_program = layout in ("iso", "syslog")
    message = without_head.str.replace(PROGRAM, "") if has_program else without_head
    # The kernel's own time since its start, which syslog keeps.
    return texts.to_frame("text").select(message.str.replace(r"^\[ *[0-9]+\.[0-9]+\] ", "")).to_series()


def _read_message(record: str) -> str | None:
    try:
        message = json.loads(record).get("MESSAGE")
        return bytes(message).decode("utf-8", "replace") if isinstance(message, list) else message and str(message)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def parse_hours(hours: pl.Series, layout: str, zone: str, year: int | None = None) -> pl.Series:
    """Return the start of each hour in seconds since 1970; null if it is no time. zone: for times without one.

    year: for syslog, whose lines have none. The earlier one of two hours with the same name at the end of summer time
    is taken.
    """
    frame = hours.to_frame("hour")
    if layout == "journal_json":
        return _blank_implausible(frame.select(pl.col("hour").cast(pl.Int64) * 3600).to_series())
    parts = frame.select(pl.col("hour").str.splitn("|", 2).struct.rename_fields(["hour", "zone"])).unnest("hour")
    if layout in ("dmesg", "syslog"):
        number = pl.col("hour").str.head(3).replace_strict(_MONTHS, default=None, return_dtype=pl.Int64).cast(pl.String)
        rest = pl.col("hour").str.slice(4).str.replace_all(" ", "0").str.replace("^(..)0", "${1} ")
        years = pl.lit(str(year)) if layout == "syslog" else pl.col("zone")
        parts = parts.select(
            hour=pl.concat_str(years, number.str.zfill(2), rest, separator="-"), zone=pl.lit(None, pl.String)
        )
    clock = pl.col("hour").str.replace("T", " ") + ":00"
    clock = clock.str.to_datetime("%Y-%m-%d %H:%M", strict=False, time_unit="ms")
    return _blank_implausible(parts.select(to_epoch_s(clock, pl.col("zone"), zone)).to_series())


def to_epoch_s(clock: pl.Expr, offset: pl.Expr, zone: str) -> pl.Expr:
    """Return seconds since 1970 of a clock time with an offset such as Z or +01:00; without one, in a time zone."""
    local = clock.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null").dt.epoch("s")
    sign = pl.when(offset.str.starts_with("-")).then(-1).otherwise(1)
    digits = offset.str.replace_all("[^0-9]", "").str.zfill(4)
    offset_s = sign * (digits.str.head(2).cast(pl.Int64) * 3600 + digits.str.tail(2).cast(pl.Int64) * 60)
    return pl.when(offset.fill_null("") != "").then(clock.dt.epoch("s") - offset_s).otherwise(local)


def _blank_implausible(times: pl.Series) -> pl.Series:
    return times.to_frame("t").select(pl.when(is_plausible_time(pl.col("t"))).then("t")).to_series()


def seconds_in_hour(minute: str) -> pl.Expr:
    """Return the seconds since the start of the hour of a text such as 59:30."""
    return pl.col(minute).str.head(2).cast(pl.Int64) * 60 + pl.col(minute).str.tail(2).cast(pl.Int64)


def count_new_years(hours: pl.Series) -> pl.Series:
    """Return for each line of syslog how many years began since the first: December before January, and back."""
    month = pl.col("hour").str.head(3).replace_strict(_MONTHS, default=None, return_dtype=pl.Int64).forward_fill()
    step = month.diff().fill_null(0)
    turns = pl.when(step < -6).then(1).when(step > 6).then(-1).otherwise(0)
    return hours.to_frame("hour").select(turns.cum_sum().cast(pl.Int64)).to_series()


PARSERS: dict[str, Callable[[pl.DataFrame, str], pl.DataFrame]] = {
    **dict.fromkeys(TEXT_LAYOUTS, parse_text),
    "journal_json": parse_journal,
}
