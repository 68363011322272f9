"""Read a log of a training run in blocks: an event for each line that tells progress, and an account of all lines."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl

from ttf.raw.line_heads import MOST_LINES
from ttf.raw.node_logs.line_blocks import Block, read_blocks
from ttf.raw.training_logs.line_clocks import (
    SECOND_US,
    find_forms,
    has_epochs,
    read_clocks,
    read_iso_times,
    read_ranks,
)
from ttf.raw.training_logs.profiles import COMMON, Pattern, Profile, Profiles
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
    "samples": pl.Int64,
    "span_us": pl.Int64,
    "span_kind": pl.String,
    "rank": pl.Int64,
    "text": pl.String,
}
ROW_SCHEMA = EVENT_SCHEMA | {"log": pl.String, "lines": pl.Int64}
PROGRESS = ("step", "block")
ALL_LINES = "lines"
# Kinds of rows that are no line of progress: the first and the last line with a clock; a count of lines by use (profile
# is the use, step the number, text the first lines); the progress that counts as the steps of the file (text is its
# kind, total that of a bar of progress).
FIRST, LAST, COUNT, CHOSEN = "first", "last", "count", "chosen"
_UNITS = {"ms": 1_000, "s": SECOND_US}
_SPANS = {
    f"{kind}_{unit}": (kind, factor) for kind in ("mean", "interval", "one", "total") for unit, factor in _UNITS.items()
}
_SPANS |= {unit: ("own", factor) for unit, factor in _UNITS.items()}
_NUMBERS = ("step", "total", "samples")
MAX_TEXT = 200
# The clock before a line is that of one of so many lines before it.
NEAR_LINES = 50
# Columns of a CSV file of steps, of which the first one counts -> its cells.
_TABLE_CELLS = {
    STEP_COLUMNS: r"(?P<step>[0-9]+)(?:\.0*)?",
    TIME_COLUMNS: r'(?:(?P<time_s>[0-9]+(?:\.[0-9]+)?(?:e[+]?[0-9]+)?)|(?P<time>[^",]*))',
    ELAPSED_COLUMNS: "(?P<total_s>[0-9.]*)",
}
# Left of a colour by a program that removes the escape character only.
_LITERAL_COLOUR = r"\[[0-9]{1,2}(?:;[0-9]{1,2})?m"


@dataclass
class _Progress:
    """Lines of one kind and profile, of bars of progress also with one total: how many, and how many new steps."""

    first_lines: list[int]
    n: int = 0
    steps: int = 0
    highest: int = -1
    is_timed: bool = False

    def add(self, events: pl.DataFrame) -> None:
        highest = np.maximum.accumulate([self.highest, *events["step"].to_numpy()])
        self.n, self.steps = self.n + events.height, self.steps + int(np.count_nonzero(np.diff(highest)))
        self.highest = int(highest[-1])
        self.is_timed |= bool(events["time_us"].count() + events["span_us"].count())


class _Reading:
    """The state while the blocks of one file are read."""

    def __init__(self, path: Path, profiles: Profiles, zone: str) -> None:
        self.profiles, self.zone = profiles, zone
        self.year = datetime.fromtimestamp(path.stat().st_mtime, UTC).year
        self.clock_us: int | None = None
        self.forms: list[str] | None = None
        self.lines: Counter[str] = Counter()
        self.first_lines: dict[str, list[int]] = {}
        self.progress: dict[tuple, _Progress] = {}
        self.last_line = 0

    def count(self, code: str, lines: pl.Series | list[int], n: int | None = None) -> None:
        self.lines[code] += len(lines) if n is None else n
        first = self.first_lines.setdefault(code, [])
        first += list(lines[: 3 - len(first)]) if len(first) < 3 else []

    def read_block(self, block: Block) -> pl.DataFrame:
        """Return the events of a block (EVENT_SCHEMA)."""
        for code, n in block.counts.items():
            self.count(code, block.faults[code], n)
        rows = number_lines(block)
        if rows.is_empty():
            return pl.DataFrame(schema=EVENT_SCHEMA)
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
        self.last_line = rows["line"][-1]
        last_us = self.add_clocks(rows.tail(NEAR_LINES))["time_us"].drop_nulls()
        last_us = last_us if len(last_us) else kept["time_us"].drop_nulls()
        self.clock_us = last_us[-1] if len(last_us) else self.clock_us
        if self.clock_us is not None:
            self.year = datetime.fromtimestamp(self.clock_us / 1e6, UTC).year
        return self.tally(kept)

    def tally(self, events: pl.DataFrame) -> pl.DataFrame:
        """Count the events by what they tell; return them without progress that has no number."""
        is_progress, has_step = pl.col("kind").is_in(PROGRESS), pl.col("step").is_not_null()
        self.lines["other_progress"] += events.filter(is_progress & ~has_step).height
        events = events.filter(~is_progress | has_step)
        bar = pl.when(pl.col("span_kind") == "total").then("total")
        for (kind, profile, total), part in events.group_by("kind", "profile", bar.alias("bar"), maintain_order=True):
            if kind in PROGRESS:
                self.progress.setdefault((kind, profile, total), _Progress(part["line"][:3].to_list())).add(part)
            elif kind != FIRST:
                self.count(str(kind), part["line"])
        return events

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
            name: pl.lit(None, EVENT_SCHEMA[name]) for name in (*_NUMBERS, "span_us", "span_kind", "text")
        }
        values |= {name: pl.col(name).cast(pl.Int64, strict=False) for name in _NUMBERS if name in has}
        if "batches" in has:
            epoch, batch, batches = (
                pl.col(name).cast(pl.Int64, strict=False)
                for name in (*({"epoch", "epoch_from_0"} & has), "batch", "batches")
            )
            values |= {"step": (epoch - ("epoch" in has)) * batches + batch}
        for name, (kind, factor) in _SPANS.items():
            if name in has:
                values |= {"span_us": _to_microseconds(name, factor), "span_kind": pl.lit(kind)}
        if "elapsed" in has:
            parts = pl.col("elapsed").str.split(":").list.reverse().cast(pl.List(pl.Int64), strict=False)
            seconds = pl.sum_horizontal(parts.list.get(n, null_on_oob=True) * 60**n for n in range(3))
            values |= {"span_us": seconds * SECOND_US, "span_kind": pl.lit("total")}
        texts = [pl.col(name) for name in ("job", "gpus", "cause") if name in has]
        values |= {"text": pl.coalesce(texts).str.head(MAX_TEXT)} if texts else {}
        clocks = {"time_ms": 1_000, "time_s": SECOND_US}
        own = [*(_to_microseconds(name, factor) for name, factor in clocks.items() if name in has), pl.col("time_us")]
        rows = pl.concat([lines.drop("text"), fields], how="horizontal")
        if "time" in has:
            rows = rows.with_columns(named_us=read_iso_times(rows["time"], self.zone))
            own = [pl.col("named_us"), *own]
        return rows.with_columns(**values, kind=pl.lit(pattern.kind), time_us=pl.coalesce(own))

    def finish(self) -> pl.DataFrame:
        """Return the rows at the end of a file: LAST, CHOSEN and COUNT.

        The steps of a file are those of the profile with most of them, else its blocks; of bars of progress only those
        with most steps count, as others are of data or evaluations.
        """
        rows: list[dict] = []
        if self.last_line:
            rows.append({"line": self.last_line, "kind": LAST, "time_us": self.clock_us, "before_us": self.clock_us})
        ranks = {
            key: (key[0] == "block", not part.is_timed, -part.steps, part.first_lines[0])
            for key, part in self.progress.items()
        }
        chosen = min(ranks, key=ranks.__getitem__, default=None)
        for key, part in self.progress.items():
            code = "step" if key == chosen else "other_progress"
            self.count(code, part.first_lines, part.n)
        if chosen:
            rows.append({"kind": CHOSEN, "profile": chosen[1], "text": chosen[0], "total": chosen[2]})
        for code, n in sorted(self.lines.items()):
            text = ", ".join(map(str, self.first_lines.get(code, [])))
            rows.append({"kind": COUNT, "profile": code, "text": text, "step": n, "lines": n * (code == ALL_LINES)})
        return pl.DataFrame([{"line": 0, "profile": COMMON} | row for row in rows if row.get("step") != 0], ROW_SCHEMA)


def _to_microseconds(name: str, factor: int) -> pl.Expr:
    return (pl.col(name).cast(pl.Float64, strict=False) * factor).round().cast(pl.Int64, strict=False)


def number_lines(block: Block) -> pl.DataFrame:
    """Return `line` (its number in the file) and `text` of the lines of a block that are not blank."""
    rows = pl.DataFrame({"text": block.lines}).with_row_index("line", block.first).cast({"line": pl.Int64})
    return rows.filter(pl.col("text").str.contains(r"\S"))


def make_table_profiles(names: list[str]) -> Profiles:
    """Return the profile of a CSV file of steps with these columns. A time is in seconds since 1970, or ISO 8601."""
    cells = ['(?:"(?:[^"]|"")*"|[^",][^,]*)?'] * len(names)
    for columns, cell in _TABLE_CELLS.items():
        if name := next((name for name in columns if name in names), None):
            cells[names.index(name)] = f'"?{cell}"?'
    regex = "^" + ",".join(cells)
    return Profiles([Profile("csv", (Pattern("step", regex, (regex,)),)), Profile(COMMON, ())])


def drop_copies(events: pl.DataFrame) -> pl.DataFrame:
    """Keep one of the lines of one kind and step that several ranks print in one second."""
    second = pl.coalesce(pl.col("time_us") // SECOND_US, pl.col("line"))
    is_repeatable = pl.col("kind").is_in(PROGRESS) & pl.col("step").is_not_null()
    return events.filter(
        ~is_repeatable | pl.struct(second.alias("second"), "profile", "kind", "step").is_first_distinct()
    )


def read_rows(path: Path, profiles: Profiles, zone: str) -> Iterator[pl.DataFrame]:
    """Yield the rows of a log, plain or packed (ROW_SCHEMA): the events of each block, then the rows at its end.

    zone: for times without one. Raises StudyError for a damaged archive.
    """

    def label(rows: pl.DataFrame) -> pl.DataFrame:
        return pl.concat([pl.DataFrame(schema=ROW_SCHEMA), rows], how="diagonal").with_columns(
            pl.col("lines").fill_null(0), log=pl.lit(path.name)
        )

    reading: _Reading | None = None
    for block in read_blocks(path, splits_carriage_returns=True):
        if reading is None:
            names = parse_step_header(block.lines[0] if len(block.lines) else "")
            reading = _Reading(path, make_table_profiles(names) if names else profiles, zone)
            if names:
                block, reading.forms = block._replace(lines=block.lines[1:], first=2), []
                reading.count("header", [1])
                reading.count(ALL_LINES, [1])
        yield label(reading.read_block(block))
    reading = reading or _Reading(path, profiles, zone)
    yield label(reading.finish())
