"""Read a log of a training run in blocks: an event for each line that tells progress, and an account of all lines."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl

from ttf.raw.line_heads import MOST_LINES
from ttf.raw.node_logs.layouts import split_csv_line
from ttf.raw.node_logs.line_blocks import Block, read_blocks
from ttf.raw.training_logs.line_clocks import (
    SECOND_US,
    find_forms,
    has_epochs,
    read_clocks,
    read_iso_times,
    read_ranks,
)
from ttf.raw.training_logs.profiles import COMMON, Pattern, Profiles
from ttf.raw.training_logs.recognised_lines import ELAPSED_COLUMNS, STEP_COLUMNS, TIME_COLUMNS, parse_step_header

# time_us: the line's own clock. before_us: the last clock before the line. span_us: a duration that the line names, and
# span_kind what it is: mean, interval, one, total (see config/training_log_profiles.yaml), or own, that of the event.
EVENT_SCHEMA: dict[str, type[pl.DataType]] = {
    "line": pl.Int64,
    "kind": pl.String,
    "profile": pl.String,
    "time_us": pl.Int64,
    "before_us": pl.Int64,
    "step": pl.Int64,
    "total": pl.Int64,
    "span_us": pl.Int64,
    "span_kind": pl.String,
    "rank": pl.Int64,
    "text": pl.String,
}
ROW_SCHEMA = EVENT_SCHEMA | {"log": pl.String, "lines": pl.Int64}
PROGRESS = ("step", "block")
ALL_LINES = "lines"
# Kinds of the first and the last line of a file with a clock, and of a row that counts lines.
FIRST, LAST, COUNT = "first", "last", "count"
_UNITS = {"ms": 1_000, "s": SECOND_US}
_SPANS = {
    f"{kind}_{unit}": (kind, factor) for kind in ("mean", "interval", "one", "total") for unit, factor in _UNITS.items()
}
_SPANS |= {unit: ("own", factor) for unit, factor in _UNITS.items()}
MAX_TEXT = 200
# The clock before a line is that of one of so many lines before it.
NEAR_LINES = 50
# Left of a colour by a program that removes the escape character only.
_LITERAL_COLOUR = r"\[[0-9]{1,2}(?:;[0-9]{1,2})?m"


@dataclass(frozen=True)
class TrainingLog:
    """events: EVENT_SCHEMA, in the order of the lines. lines: how many lines there are by what they told.

    first_lines: the same -> the numbers of the first lines.
    """

    events: pl.DataFrame
    lines: Counter[str] = field(default_factory=Counter)
    first_lines: dict[str, list[int]] = field(default_factory=dict)

    def to_rows(self, log: str) -> pl.DataFrame:
        """Return ROW_SCHEMA: the events, and a row of the kind COUNT per use of lines.

        Such a row has the use as its profile, the number of lines as its step, and the numbers of its first lines as
        its text. `lines` is that of all lines in one row, else 0.
        """
        counts = [
            {"kind": COUNT, "profile": code, "text": ", ".join(map(str, self.first_lines.get(code, [])))}
            | {"line": 0, "step": n, "lines": n if code == ALL_LINES else 0, "log": log}
            for code, n in sorted(self.lines.items())
            if n
        ]
        rows = pl.concat([self.events, pl.DataFrame(counts, schema=ROW_SCHEMA)], how="diagonal")
        return rows.with_columns(pl.col("lines").fill_null(0), log=pl.lit(log)).select(*ROW_SCHEMA)


class _Reading:
    """The state while the blocks of one file are read."""

    def __init__(self, path: Path, profiles: Profiles, zone: str) -> None:
        self.profiles, self.zone = profiles, zone
        self.year = datetime.fromtimestamp(path.stat().st_mtime, UTC).year
        self.clock_us: int | None = None
        self.forms: list[str] | None = None
        self.lines: Counter[str] = Counter()
        self.first_lines: dict[str, list[int]] = {}
        self.events = [pl.DataFrame(schema=EVENT_SCHEMA)]
        self.last_line = 0

    def count(self, code: str, lines: pl.Series | list[int], n: int | None = None) -> None:
        self.lines[code] += len(lines) if n is None else n
        first = self.first_lines.setdefault(code, [])
        first += list(lines[: 3 - len(first)]) if len(first) < 3 else []

    def add_block(self, block: Block) -> None:
        for code, n in block.counts.items():
            self.count(code, block.faults[code], n)
        rows = number_lines(block)
        if rows.is_empty():
            return
        if rows["text"].str.contains(_LITERAL_COLOUR).any():
            rows = rows.with_columns(pl.col("text").str.replace_all(_LITERAL_COLOUR, ""))
        if self.forms is None or (self.forms and has_epochs(rows["text"])):
            # MLPerf's own clock is UTC; clocks of other loggers in the same log may be of any zone.
            self.forms = [] if has_epochs(rows["text"]) else find_forms(rows["text"].head(MOST_LINES))
        hits = self.add_clocks(rows.filter(pl.col("text").str.contains(self.profiles.any_regex)))
        events = self.add_clocks_before(self.find_events(hits), rows)
        first_lines = rows.head(MOST_LINES).join(events, on="line", how="anti")["line"]
        self.count("not_read", first_lines, rows.height - events["line"].n_unique())
        self.count(ALL_LINES, rows["line"][:3], rows.height)
        kept = drop_copies(events)
        self.count("copy", events.join(kept, on="line", how="anti")["line"])
        if self.clock_us is None and (clocked := self.add_clocks(rows.head(MOST_LINES)).drop_nulls("time_us")).height:
            first = clocked.head(1).select("line", "time_us", kind=pl.lit(FIRST), profile=pl.lit(COMMON))
            kept = pl.concat([kept, first], how="diagonal").sort("line", maintain_order=True)
        self.events.append(kept)
        self.last_line = rows["line"][-1]
        last_us = self.add_clocks(rows.tail(NEAR_LINES))["time_us"].drop_nulls()
        last_us = last_us if len(last_us) else kept["time_us"].drop_nulls()
        self.clock_us = last_us[-1] if len(last_us) else self.clock_us
        if self.clock_us is not None:
            self.year = datetime.fromtimestamp(self.clock_us / 1e6, UTC).year

    def add_clocks(self, rows: pl.DataFrame) -> pl.DataFrame:
        return rows.with_columns(time_us=read_clocks(rows["text"], self.forms or (), self.zone, self.year))

    def add_clocks_before(self, events: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
        """Add before_us. Only lines near events that need it are read: clocks of all lines take six times as long."""
        needs = events.filter(~pl.col("kind").is_in(PROGRESS) | pl.col("time_us").is_null())["line"].unique()
        starts = rows["line"].search_sorted(needs)
        ends = np.zeros(rows.height + 1, dtype=np.int64)
        np.add.at(ends, np.maximum(0, starts.to_numpy().astype(np.int64) - NEAR_LINES), 1)
        np.add.at(ends, starts.to_numpy(), -1)
        near = self.add_clocks(rows.filter(pl.Series(np.cumsum(ends)[:-1] > 0)))
        clocks = pl.concat([part.select("line", "time_us").drop_nulls() for part in (near, events)])
        clocks = clocks.unique("line", keep="first").sort("line").rename({"time_us": "before_us"})
        joined = events.drop("before_us").sort("line", maintain_order=True)
        joined = joined.join_asof(clocks, on="line", strategy="backward", allow_exact_matches=False)
        before = pl.col("before_us").fill_null(pl.lit(self.clock_us, pl.Int64))
        return joined.with_columns(before_us=before).select(*EVENT_SCHEMA)

    def find_events(self, hits: pl.DataFrame) -> pl.DataFrame:
        hits = hits.with_columns(rank=read_ranks(hits["text"]), before_us=pl.lit(None, pl.Int64))
        frames = [pl.DataFrame(schema=EVENT_SCHEMA)]
        for profile in self.profiles:
            if not profile.patterns:
                continue
            lines = hits.filter(pl.col("text").str.contains(profile.any_regex))
            for pattern in profile.patterns if lines.height else ():
                matches = lines.filter(pl.col("text").str.contains(pattern.regex))
                if matches.height:
                    frames.append(self.read_fields(matches, pattern).with_columns(profile=pl.lit(profile.name)))
        events = pl.concat(frame.select(*EVENT_SCHEMA) for frame in frames)
        return events.sort("line", maintain_order=True)

    def read_fields(self, lines: pl.DataFrame, pattern: Pattern) -> pl.DataFrame:
        """Return the columns of an event for lines that match a pattern."""
        groups = [lines.select(pl.col("text").str.extract_groups(regex)).unnest("text") for regex in pattern.fields]
        fields = pl.concat(groups, how="horizontal")
        has = {*fields.columns}
        values: dict[str, pl.Expr] = {
            name: pl.lit(None, EVENT_SCHEMA[name]) for name in ("step", "total", "span_us", "span_kind", "text")
        }
        values |= {name: pl.col(name).cast(pl.Int64, strict=False) for name in ("step", "total") if name in has}
        if "batches" in has:
            epoch, batch, batches = (
                pl.col(name).cast(pl.Int64, strict=False)
                for name in (*({"epoch", "epoch_from_0"} & has), "batch", "batches")
            )
            values |= {"step": (epoch - ("epoch" in has)) * batches + batch}
        for name, (kind, factor) in _SPANS.items():
            if name in has:
                value = pl.col(name).cast(pl.Float64, strict=False) * factor
                values |= {"span_us": value.round().cast(pl.Int64, strict=False), "span_kind": pl.lit(kind)}
        if "elapsed" in has:
            parts = pl.col("elapsed").str.split(":").list.reverse().cast(pl.List(pl.Int64), strict=False)
            seconds = pl.sum_horizontal(parts.list.get(n, null_on_oob=True) * 60**n for n in range(3))
            values |= {"span_us": seconds * SECOND_US, "span_kind": pl.lit("total")}
        texts = [pl.col(name) for name in ("job", "gpus", "cause") if name in has]
        values |= {"text": pl.coalesce(texts).str.head(MAX_TEXT)} if texts else {}
        own = [pl.col("time_us")]
        for name, factor in (("time_ms", 1_000), ("time_s", SECOND_US)):
            own = [pl.col(name).cast(pl.Int64, strict=False) * factor, *own] if name in has else own
        rows = pl.concat([lines.drop("text"), fields], how="horizontal")
        if "time" in has:
            rows = rows.with_columns(named_us=read_iso_times(rows["time"], self.zone))
            own = [pl.col("named_us"), *own]
        return rows.with_columns(**values, kind=pl.lit(pattern.kind), time_us=pl.coalesce(own))

    def add_rows(self, block: Block, names: list[str]) -> None:
        """Add the rows of a CSV file of steps. A time in a cell is in seconds since 1970, or ISO 8601."""
        rows = number_lines(block)
        is_header = rows["line"] == 1
        self.count(ALL_LINES, rows["line"][:3], rows.height)
        self.count("header", rows.filter(is_header)["line"])
        rows = rows.filter(~is_header)
        cells = [split_csv_line(text) for text in rows["text"]]

        def column(choices: tuple[str, ...]) -> pl.Series:
            place = next((names.index(name) for name in choices if name in names), None)
            values = [None if place is None or place >= len(row) else row[place] for row in cells]
            return pl.Series(values, dtype=pl.String)

        times, elapsed, steps = column(TIME_COLUMNS), column(ELAPSED_COLUMNS), column(STEP_COLUMNS)
        seconds = times.cast(pl.Float64, strict=False)
        events = rows.select("line", kind=pl.lit("step"), profile=pl.lit("csv")).with_columns(
            step=steps.cast(pl.Float64, strict=False).cast(pl.Int64, strict=False),
            time_us=pl.select(
                pl.coalesce((seconds * 1e6).round().cast(pl.Int64, strict=False), read_iso_times(times, self.zone))
            ).to_series(),
            span_us=(elapsed.cast(pl.Float64, strict=False) * 1e6).round().cast(pl.Int64, strict=False),
            span_kind=pl.lit("total"),
        )
        timed = events.filter(
            pl.col("step").is_not_null() & pl.any_horizontal(pl.col("time_us", "span_us").is_not_null())
        )
        self.count("not_read", events.join(timed, on="line", how="anti")["line"])
        self.events.append(pl.concat([pl.DataFrame(schema=EVENT_SCHEMA), timed], how="diagonal"))
        if timed.height:
            self.last_line, self.clock_us = timed["line"][-1], max(timed["time_us"].drop_nulls(), default=None)

    def finish(self) -> TrainingLog:
        events = pl.concat(self.events).rechunk()
        if self.clock_us is not None or events.height:
            last = {
                "line": self.last_line,
                "kind": LAST,
                "profile": COMMON,
                "time_us": self.clock_us,
                "before_us": self.clock_us,
            }
            events = pl.concat([events, pl.DataFrame([last], schema_overrides=EVENT_SCHEMA)], how="diagonal").select(
                *EVENT_SCHEMA
            )
        chosen = choose_progress(events)
        kept = pl.col("kind").is_in(PROGRESS)
        for kind, n in (
            chosen.filter(~pl.col("kind").is_in([FIRST, LAST])).group_by("kind").len().sort("kind").iter_rows()
        ):
            self.count(kind, chosen.filter(kind=kind)["line"][:3], n)
        self.lines["other_progress"] = events.filter(kept).height - chosen.filter(kept).height
        return TrainingLog(chosen, self.lines, self.first_lines)


def number_lines(block: Block) -> pl.DataFrame:
    """Return `line` (its number in the file) and `text` of the lines of a block that are not blank."""
    rows = pl.DataFrame({"text": block.lines}).with_row_index("line", block.first).cast({"line": pl.Int64})
    return rows.filter(pl.col("text").str.contains(r"\S"))


def drop_copies(events: pl.DataFrame) -> pl.DataFrame:
    """Keep one of the lines of one kind and step that several ranks print in one second."""
    second = pl.coalesce(pl.col("time_us") // SECOND_US, pl.col("line"))
    is_repeatable = pl.col("kind").is_in(PROGRESS) & pl.col("step").is_not_null()
    return events.filter(
        ~is_repeatable | pl.struct(second.alias("second"), "profile", "kind", "step").is_first_distinct()
    )


def choose_progress(events: pl.DataFrame) -> pl.DataFrame:
    """Return events whose steps are those of one profile: the one with most different steps, else most blocks.

    They get the kind step. Of bars of progress only those with most steps count: others are of data or evaluations.
    """
    progress = events.filter(pl.col("kind").is_in(PROGRESS) & pl.col("step").is_not_null())
    is_bar = (pl.col("span_kind") == "total") & pl.col("total").is_not_null()
    sums = progress.group_by("kind", "profile", bar=pl.when(is_bar).then("total")).agg(
        steps=pl.col("step").n_unique().cast(pl.Int64),
        timed=pl.any_horizontal(pl.col("time_us", "span_us").is_not_null()).any(),
        line=pl.col("line").min(),
    )
    sums = sums.sort(pl.col("kind") == "block", ~pl.col("timed"), -pl.col("steps"), "line", "profile", "bar")
    rest = events.filter(~pl.col("kind").is_in(PROGRESS))
    if sums.is_empty():
        return rest
    kind, profile, bar = sums.row(0)[:3]
    chosen = progress.filter(pl.col("kind") == kind, pl.col("profile") == profile)
    if bar is not None:
        chosen = chosen.filter(pl.col("total") == bar)
    return pl.concat([rest, chosen.with_columns(kind=pl.lit("step"))]).sort("line", maintain_order=True)


def read_training_log(path: Path, profiles: Profiles, zone: str) -> TrainingLog:
    """Read a log, plain or packed. zone: for times without one. Raises StudyError for a damaged archive."""
    reading = _Reading(path, profiles, zone)
    names: list[str] | None = None
    for block in read_blocks(path, splits_carriage_returns=True):
        if names is None:
            names = parse_step_header(block.lines[0] if len(block.lines) else "")
        if names:
            reading.add_rows(block, names)
        else:
            reading.add_block(block)
    return reading.finish()


def read_rows(path: Path, profiles: Profiles, zone: str) -> pl.DataFrame:
    """Return the rows of a log (TrainingLog.to_rows), with the name of its file."""
    return read_training_log(path, profiles, zone).to_rows(path.name)
