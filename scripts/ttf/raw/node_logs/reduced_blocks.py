"""Reduce a block of text to what is needed of it, so that the memory does not grow with the log."""

from typing import NamedTuple

import polars as pl

from ttf.raw.line_columns import count_new_years, parse_hours, seconds_in_hour
from ttf.raw.line_heads import LABELS, LineHead
from ttf.raw.node_logs.layouts import JOURNAL_NOTE, JSON_CODED, Layout
from ttf.raw.node_logs.line_blocks import Block
from ttf.raw.node_logs.text_lines import parse_lines

_LABEL = LABELS["label"].pattern


class ReducedBlock(NamedTuple):
    """What is needed of a block of text.

    groups: node, hour, year, lines, first (line), start and end (minute). picks: line, node, hour, minute, text and
    year of the lines of interest. unused: kind -> lines. months: hour of the first and of the last line; years: new
    years between them.
    """

    groups: pl.DataFrame
    picks: pl.DataFrame
    unused: dict[str, pl.DataFrame]
    months: list[str]
    years: int


def list_lines(block: Block) -> pl.DataFrame:
    """Return line and text of the lines that are not blank."""
    rows = pl.DataFrame({"text": block.lines, "line": pl.int_range(len(block.lines), eager=True) + block.first})
    return rows.filter(pl.col("text").str.contains(r"[^ \t\r]"))


def reduce_block(block: Block, layout: Layout, pattern: str, fallback: str, zone: str) -> ReducedBlock:
    """Return line counts by node and hour, and the lines that match `pattern`. fallback: node of heads without one."""
    rows = list_lines(block)
    parsed, head, is_text = parse_lines(rows, layout), layout.head, layout.name == "text"
    if is_text and not head.has_host:
        parsed = parsed.with_columns(pl.col("node").fill_null(fallback))
    unused = {}
    if layout.clock == "uptime":
        parsed = _drop_later_starts(parsed)
    hours = parsed["hour"].drop_nulls().unique()
    # Lines without years have none yet.
    if layout.clock == "dated" and (no_times := hours.filter(parse_hours(hours, head, zone).is_null())).len():
        parsed = parsed.with_columns(hour=pl.when(~pl.col("hour").is_in(no_times.implode())).then("hour"))
    if parsed["hour"].null_count() and is_text:
        parsed = _join_continued(parsed)
        unused["continued"] = rows.join(parsed, on="line", how="anti", maintain_order="left")
    if parsed["hour"].null_count():
        is_wrong = pl.col("hour").is_null()
        wrong = rows.join(parsed.filter(is_wrong).select("line"), on="line", how="semi", maintain_order="left")
        is_note = pl.col("text").str.contains(JOURNAL_NOTE)
        unused |= {"note": wrong.filter(is_note), "no_time": wrong.filter(~is_note)}
        parsed = parsed.filter(~is_wrong)
    if parsed["node"].null_count():
        unused["no_node"] = parsed.filter(pl.col("node").is_null())
        parsed = parsed.filter(pl.col("node").is_not_null())
    years = count_new_years(parsed["hour"], head) if layout.clock == "yearless" else pl.lit(0, pl.Int64)
    parsed = parsed.with_columns(year=years)
    groups = parsed.group_by("node", "hour", "year").agg(
        lines=pl.len().cast(pl.Int64),
        first=pl.col("line").min(),
        start=pl.col("minute").min(),
        end=pl.col("minute").max(),
    )
    # In a record of the journal, a message may be a list of bytes, or have escapes.
    coded = "" if is_text else rf"|{JSON_CODED}"
    picks = parsed.filter(pl.col("text").str.contains(pattern + coded))
    ends = [parsed["hour"][0], parsed["hour"][-1]] if parsed.height else []
    return ReducedBlock(groups.sort("first"), picks, unused, ends, parsed["year"][-1] if parsed.height else 0)


def _join_continued(parsed: pl.DataFrame) -> pl.DataFrame:
    """Append to each message the lines that continue it: those after it without a time that start with a space."""
    is_continued = pl.col("hour").is_null() & pl.col("text").str.contains(rf"^(?:{_LABEL})?[ \t]")
    owner = pl.when(~is_continued).then("line").forward_fill()
    tail = pl.col("text").str.strip_chars().str.join("\n")
    tails = parsed.with_columns(owner=owner).filter(is_continued).group_by("owner").agg(tail=tail)
    lines = parsed.filter(~is_continued).join(
        tails, left_on="line", right_on="owner", how="left", maintain_order="left"
    )
    text = pl.concat_str("text", "tail", separator="\n", ignore_nulls=True)
    return lines.with_columns(text=text).drop("tail")


def _drop_later_starts(parsed: pl.DataFrame) -> pl.DataFrame:
    """Remove the hours behind another start of the node, at which its time since the start falls back."""
    # Lines of several processors may be out of order by less than a second.
    time_s = pl.col("hour").cast(pl.Int64) * 3600 + seconds_in_hour("minute")
    is_later = (time_s < time_s.cum_max().over("node") - 1).cum_max().over("node")
    return parsed.with_columns(hour=pl.when(is_later.fill_null(False).not_()).then("hour"))


def copy_block(part: ReducedBlock) -> ReducedBlock:
    """Copy the texts, which otherwise keep the whole block in memory."""
    groups, picks = (pl.DataFrame(f.to_dict(as_series=False), schema=f.schema) for f in (part.groups, part.picks))
    return part._replace(groups=groups, picks=picks, unused={})


def join_years(parts: list[ReducedBlock], head: LineHead) -> list[ReducedBlock]:
    """Add to the years of each block those of the blocks before, and a new year between two blocks."""
    years, last, joined = 0, None, []
    for part in parts:
        if part.months:
            if last is not None:
                years += int(count_new_years(pl.Series([last, part.months[0]]), head)[1])
            year, last = pl.col("year") + years, part.months[1]
            part = part._replace(groups=part.groups.with_columns(year), picks=part.picks.with_columns(year))
            years += part.years
        joined.append(part)
    return joined
