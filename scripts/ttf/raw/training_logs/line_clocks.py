"""The clocks of the lines of a training log, in microseconds since 1970, and the ranks that wrote them.

Lines of several loggers and lines without a clock alternate, so a file has no one head. The forms of time are those of
ttf.raw.line_heads, searched near the start of each line.
"""

import re
from collections.abc import Iterable

import polars as pl

from ttf.raw.line_columns import parse_hours, seconds_in_hour
from ttf.raw.line_heads import LABELS, TIMES, LineHead, Piece

# A number of ten digits, or a time of day, may be anything.
_FORMS = [
    name for name, form in TIMES.items() if form.clock in ("dated", "yearless") and name not in ("unix", "compact")
]
# Behind prefixes such as `[rank0]:[titan] `, `  12: ` or `[INFO|trainer.py:1143] `.
_BEFORE = r"^[^\n]{0,48}?"
# As the shells of MLPerf print it; a process prints the same moment with its own clock.
_HALF_DAY = r"^[^\n]{0,70}[0-9]{2}:[0-9]{2}:[0-9]{2} [AP]M"
_RANKS = (
    "|".join(re.sub(r"\?P<\w+>", "", LABELS[name].pattern) for name in ("mpi", "task"))
    + r"|\[(?:rank|default)([0-9]+)\]:"
)
SECOND_US = 1_000_000
# The forms of ttf.raw.line_heads skip fractions of a second.
_FRACTION, _NAMED_FRACTION = "(?:[.,][0-9]{1,9})?", "(?:[.,](?P<fraction>[0-9]{1,9}))?"


def find_forms(texts: Iterable[str]) -> list[str]:
    """Return the forms of time in the first lines of a file, the most special first; all if there is none."""
    lines = [text[:200] for text in texts]
    found = [name for name in _FORMS if any(re.search(_BEFORE + TIMES[name].pattern, line) for line in lines)]
    return found or ["iso", "glog"]


def has_epochs(texts: pl.Series) -> bool:
    """Return whether lines have MLPerf's clock, milliseconds since 1970."""
    return texts.str.contains(":::MLLOG", literal=True).any()


def read_clocks(texts: pl.Series, forms: Iterable[str], zone: str, year: int) -> pl.Series:
    """Return the time of each line, null without one. zone: for times without one. year: for times without one."""
    frame = texts.to_frame("text")
    times = pl.repeat(None, len(texts), dtype=pl.Int64, eager=True)
    for name in forms:
        times = _fill(times, _read(frame, _BEFORE, name, zone, year))
    if times.null_count() and has_epochs(texts):
        times = _fill(times, texts.str.extract('"time_ms": ?([0-9]{13})').cast(pl.Int64) * 1000)
    if times.null_count() and texts.str.contains('"timestamp"', literal=True).any():
        times = _fill(times, read_iso_times(texts.str.extract('"timestamp": ?"([^"]{10,40})"'), zone))
    return times.alias("time_us")


def read_iso_times(texts: pl.Series, zone: str) -> pl.Series:
    return _read(texts.to_frame("text"), "^", "iso", zone, 2000).alias("time_us")


def _fill(times: pl.Series, others: pl.Series) -> pl.Series:
    return pl.select(pl.coalesce(times, others)).to_series()


def _read(frame: pl.DataFrame, before: str, name: str, zone: str, year: int) -> pl.Series:
    """Return the times in one form, null in other lines."""
    pattern = TIMES[name].pattern.replace(_FRACTION, _NAMED_FRACTION)
    fields = frame.select(pl.col("text").str.extract_groups(before + pattern)).unnest("text")
    further = [part for part in ("zone", "year") if part in fields.columns]
    if further:
        parts = (pl.col(part).fill_null("") if part in further else pl.lit("") for part in ("zone", "year"))
        fields = fields.with_columns(hour=pl.concat_str("hour", *parts, separator="|"))
    hours = fields["hour"].drop_nulls().unique()
    head = LineHead((Piece(name, pattern),))
    starts = parse_hours(hours, head, zone, year)
    fraction = pl.lit(0, pl.Int64)
    if "fraction" in fields.columns:
        fraction = pl.col("fraction").str.pad_end(6, "0").str.head(6).cast(pl.Int64).fill_null(0)
    second = pl.col("hour").replace_strict(hours, starts, default=None, return_dtype=pl.Int64) + seconds_in_hour(
        "minute"
    )
    is_half = frame["text"].str.contains(_HALF_DAY)
    return fields.select(pl.when(~is_half).then(second * SECOND_US + fraction).alias("time_us")).to_series()


def read_ranks(texts: pl.Series) -> pl.Series:
    """Return the rank that wrote each line, by the labels of srun, torchrun and mpirun."""
    ranks = texts.to_frame("text").select(pl.col("text").str.extract_groups(f"^ *(?:{_RANKS})")).unnest("text")
    return ranks.select(rank=pl.coalesce(ranks.columns).cast(pl.Int64, strict=False)).to_series()
