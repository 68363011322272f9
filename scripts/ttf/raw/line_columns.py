"""Split columns of lines by their head into time, node, rank and rest.

An hour is text as the file has it, with its zone; the few different hours of a block are parsed, not its lines.
"""

import polars as pl

from ttf.raw.line_heads import LABELS, MONTHS, LineHead
from ttf.raw.plausible_times import is_plausible_time

_ADDED_LABEL = LABELS["label"].pattern.replace("<node>", "<node_added>")


def read_lines(
    texts: pl.Series, head: LineHead, zone: str = "UTC", year: int | None = None, base_s: int = 0
) -> pl.DataFrame:
    """Split lines by their head, and read their times.

    Parameters
    ----------
    texts : the lines.
    head : as `detect_head` returns it for the first of them.
    zone : IANA name of the zone of times without one.
    year : of times without one (clock yearless). `count_new_years` tells where lines go past a new year.
    base_s : start of a clock uptime or daytime, in seconds since 1970; 0 if it is not known.

    Returns
    -------
    One row per line: time_s (Int64; seconds since 1970, or since an unknown start; null without a time), node and
    rank (String; null where the line has none), rest (String; the line without its head, or the whole line).
    """
    lines = pl.DataFrame({"line": pl.int_range(len(texts), eager=True), "text": texts})
    heads = split_heads(lines, head, has_rests=True)
    hours = heads["hour"].drop_nulls().unique()
    hour_s = pl.col("hour").replace_strict(
        hours, parse_hours(hours, head, zone, year, base_s), default=None, return_dtype=pl.Int64
    )
    return heads.select("node", "rank", "rest", time_s=hour_s + seconds_in_hour("minute")).select(
        "time_s", "node", "rank", "rest"
    )


def split_heads(lines: pl.DataFrame, head: LineHead, has_rests: bool = False) -> pl.DataFrame:
    """Return line, text, node, hour and minute (MM:SS) of lines (line: number, text); null where a line has none.

    A line may lack labels of the head, or have the one of pdsh. has_rests: return rank and rest too.
    """
    has_rests, remaining, parts = has_rests or not head.key_group, lines, list[pl.DataFrame]()
    patterns = head.patterns
    if patterns and "label" not in head.forms:
        patterns = [*patterns, _ADDED_LABEL + patterns[0]]
    for pattern in patterns:
        key, pattern = ("head", f"(?P<head>{pattern})") if has_rests else (head.key_group, pattern)
        fields = remaining.select("line", "text", fields=pl.col("text").str.extract_groups(f"^{pattern}"))
        fields = fields.unnest("fields")
        is_match = fields[key].is_not_null()
        is_whole = is_match.all()
        parts.append(_name_columns(fields if is_whole else fields.filter(is_match), head, has_rests))
        if is_whole:
            break
        remaining = remaining.filter(~is_match)
    else:
        parts.append(_name_columns(remaining, head, has_rests))
    return parts[0] if len(parts) == 1 else pl.concat(parts).sort("line")


def _name_columns(fields: pl.DataFrame, head: LineHead, has_rests: bool) -> pl.DataFrame:
    """Replace the groups of a pattern by the columns of `split_heads`."""

    def choose(*names: str) -> pl.Expr:
        present = [name for name in names if name in fields.columns]
        return pl.coalesce(present) if present else pl.lit(None, pl.String)

    if head.key_group.startswith("number"):
        number = choose(head.key_group).cast(pl.Int64)
        hour = (number // 3600).cast(pl.String)
        minute = format_minute(number)
    else:
        hour, minute = choose(f"hour{head.time}"), choose(f"minute{head.time}")
        further = [f"{name}{head.time}" for name in ("zone", "year")]
        if any(name in fields.columns for name in further):
            hour = pl.concat_str(hour, *(choose(name).fill_null("") for name in further), separator="|")
    columns = {"node": choose(*head.list_groups("node"), "node_added"), "hour": hour, "minute": minute}
    if has_rests:
        columns["rank"] = choose(*head.list_groups("rank"))
        columns["rest"] = pl.col("text").str.strip_prefix(choose("head").fill_null(""))
    return fields.select("line", "text", **columns)


def parse_hours(hours: pl.Series, head: LineHead, zone: str, year: int | None = None, base_s: int = 0) -> pl.Series:
    """Return the start of each hour in seconds since 1970; null if it is no time. zone: for times without one.

    year, base_s: as for `read_lines`. The earlier one of two hours with the same name at the end of summer time is
    taken.
    """
    if not head.time_form.hour_format or head.clock == "daytime":
        starts = hours.cast(pl.Int64, strict=False) * 3600 + base_s
        return starts if head.clock in ("uptime", "daytime") and not base_s else blank_implausible(starts)
    frame = hours.to_frame("hour")
    parts = frame.select(pl.col("hour").str.splitn("|", 3).struct.rename_fields(["hour", "zone", "year"]))
    parts = parts.unnest("hour")
    text = pl.col("hour").str.replace_all("[-T:,/@ ]+", " ").str.replace_all("( |^)([0-9] )", "${1}0${2}")
    text = text.str.replace_many([*MONTHS], [f"{number:02d}" for number in range(1, 13)])
    form = head.time_form.hour_format
    if "%Y" not in form:
        years = pl.coalesce(pl.when(pl.col("year") != "").then("year"), pl.lit(year and str(year), pl.String))
        text, form = pl.concat_str(years, text, separator=" "), f"%Y {form}"
    clock = (text + ":00").str.to_datetime(f"{form}:%M", strict=False, time_unit="ms")
    return blank_implausible(parts.select(to_epoch_s(clock, pl.col("zone"), zone)).to_series())


def to_epoch_s(clock: pl.Expr, offset: pl.Expr, zone: str) -> pl.Expr:
    """Return seconds since 1970 of a clock time with an offset such as Z or +01:00; without one, in a time zone.

    An offset such as CET has to be the name of the time zone at that time.
    """
    moments = [
        clock.dt.replace_time_zone(zone, ambiguous=ambiguous, non_existent="null")
        for ambiguous in ("earliest", "latest")
    ]
    named = pl.coalesce(pl.when(moment.dt.to_string("%Z") == offset).then(moment.dt.epoch("s")) for moment in moments)
    sign = pl.when(offset.str.starts_with("-")).then(-1).otherwise(1)
    digits = offset.str.extract_groups("^(?:Z|UTC|GMT|[+-]([0-9]{2}):?([0-9]{2})?)$")
    hours, minutes = (digits.struct.field(name).cast(pl.Int64).fill_null(0) for name in ("1", "2"))
    utc = pl.when(offset.str.contains("^(?:Z|UTC|GMT|[+-])")).then(
        clock.dt.epoch("s") - sign * (hours * 3600 + minutes * 60)
    )
    return pl.when(offset.fill_null("") == "").then(moments[0].dt.epoch("s")).otherwise(pl.coalesce(utc, named))


def blank_implausible(times: pl.Series) -> pl.Series:
    return times.to_frame("t").select(pl.when(is_plausible_time(pl.col("t"))).then("t")).to_series()


def format_minute(seconds: pl.Expr) -> pl.Expr:
    """Return minutes and seconds since the start of the hour, such as 59:30."""
    return pl.from_epoch(seconds % 3600).dt.to_string("%M:%S")


def seconds_in_hour(minute: str) -> pl.Expr:
    """Return the seconds since the start of the hour of a text such as 59:30."""
    return pl.col(minute).str.head(2).cast(pl.Int64) * 60 + pl.col(minute).str.tail(2).cast(pl.Int64)


def count_new_years(hours: pl.Series, head: LineHead) -> pl.Series:
    """Return for each line without a year how many years began since the first: December before January, and back."""
    distinct = hours.drop_nulls().unique()
    starts = parse_hours(distinct, head, "UTC", 2000).to_frame("start").select(pl.from_epoch("start").dt.month())
    month = pl.col("hour").replace_strict(distinct, starts.to_series(), default=None, return_dtype=pl.Int64)
    step = month.forward_fill().diff().fill_null(0)
    turns = pl.when(step < -6).then(1).when(step > 6).then(-1).otherwise(0)
    return hours.to_frame("hour").select(turns.cum_sum().cast(pl.Int64)).to_series()
