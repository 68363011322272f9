"""What names and values of columns mean: keys of a mapping, units, outcomes, forms of times and numbers."""

import re
from collections.abc import Sequence
from functools import cache
from itertools import product

import polars as pl

from ttf.raw.raw_tables import AUTOMATIC, Column, parse_number
from ttf.study.recognition.table_sample import TERMS, Sample

_OUTCOME_BY_WORD = {word: outcome for outcome, words in TERMS["outcomes"].items() for word in words.split()}
_KEY_BY_TIME = {word: key for key, words in TERMS["times"].items() for word in words.split()}
# The trace's own clock, from 0.
SECONDS = "seconds"
FORMATS = [
    AUTOMATIC,
    *map("".join, product(TERMS["days"], (" ", ", "), TERMS["clocks"])),
    *TERMS["formats"],
]
# Share of a column's values that must be times or numbers.
LEAST_SHARE = 0.9
# 2000 and 2100; a day read as a year is no plausible time.
_PLAUSIBLE_S = (946_684_800, 4_102_444_800)
_LATEST_OWN_S = 10**8
# Decimal marks of a column's numbers: none besides the point, or one beside groups of digits.
DECIMALS = ("", ",", ".")


# Names --------------------------------------------------------------------------------------------------


def list_candidates(key: str, sample: Sample) -> list[str]:
    """Return the columns that are not blank and have one of the likeliest names of the key."""
    names = list_named(key, [name for name in sample.rows.columns if sample.words[name].count()])
    return drop_equal_columns(sample.words, names)


def list_named(key: str, names: Sequence[str]) -> list[str]:
    """Return those of the names of columns that are among the likeliest names of the key."""
    for likely_names in TERMS["names"][key]:
        if matches := [name for name in names if _list_readings(key, name) & {*likely_names.split()}]:
            return matches
    return []


def drop_equal_columns(rows: pl.DataFrame, names: list[str]) -> list[str]:
    return [name for n, name in enumerate(names) if not any(rows[name].equals(rows[other]) for other in names[:n])]


def find_time_key(name: str) -> str | None:
    """Return which time a name such as started_at, time_end or jobEndTime tells."""
    parts = _drop_prefix(split_name(name))
    while len(parts) > 1 and parts[-1] in TERMS["time_endings"].split():
        parts = parts[:-1]
    return _KEY_BY_TIME.get(re.sub("(?<=..)(time|date)$", "", "".join(parts)))


def find_unit(key: str, name: str) -> str:
    return TERMS["units"].get(key, {}).get((split_name(name) or [""])[-1], "")


def split_name(name: str) -> list[str]:
    return re.findall(r"[^\W_]+", re.sub("(?<=[a-z0-9])(?=[A-Z])", " ", name).lower())


def _list_readings(key: str, name: str) -> set[str]:
    """Return a name without marks and without its unit; also without a first word such as job."""
    parts = split_name(name)
    parts = parts[:-1] if len(parts) > 1 and find_unit(key, name) else parts
    return {"".join(parts), "".join(_drop_prefix(parts))}


def _drop_prefix(parts: list[str]) -> list[str]:
    return parts[1:] if len(parts) > 1 and parts[0] in TERMS["prefixes"].split() else parts


# Values -------------------------------------------------------------------------------------------------


def classify_word(word: str) -> str | None:
    """Return the outcome that a word of the status means; None if it is in no list."""
    parts = split_name(word.lower())
    return _OUTCOME_BY_WORD.get("".join(parts)) or _OUTCOME_BY_WORD.get("".join(_drop_prefix(parts)))


def classify_flag(name: str, word: str) -> str | None:
    """Return the outcome that a cell such as 1 or false means in a column such as success or is_failed."""
    flags = TERMS["flags"]
    outcome = next((key for key in ("success", "failure") if {*split_name(name)[-1:]} & {*flags[key].split()}), None)
    if outcome and word.lower() in flags["false"].split():
        return "failure" if outcome == "success" else "success"
    return outcome if word.lower() in flags["true"].split() else None


def list_formats(values: pl.Series) -> list[str]:
    """Return the formats by which most values are times or placeholders; empty for a column without times."""
    values = values.drop_nulls()
    formats = FORMATS if values.str.contains("[0-9]{2}").any() else []
    # A few values exclude nearly all formats.
    for part in (values.head(20), values):
        is_time = part.alias("cell").to_frame().select(**{format: _is_time(format) for format in formats})
        formats = [format for format in formats if _are_times(is_time[format])]
        formats = [AUTOMATIC] if AUTOMATIC in formats else formats
    return [format for format in formats if is_time[format].any()]


def counts_from_zero(values: pl.Series) -> bool:
    """Return whether the values are numbers of a clock that starts at 0, rather than in 1970."""
    numbers = parse_numbers(values)
    return numbers.n_unique() > 1 and is_mostly(numbers.is_between(0, _LATEST_OWN_S), values)


def _are_times(is_time: pl.Series) -> bool:
    """Return whether most values are plausible times, apart from placeholders such as 0001-01-01."""
    n_times = int(is_time.sum())
    return n_times >= LEAST_SHARE * (n_times + is_time.null_count())


def parse_times(values: pl.Series, format: str) -> pl.Series:
    """Return whether each value is a plausible time, as the reader parses it; null for what is no time."""
    if format == SECONDS:
        return values.cast(pl.Float64, strict=False).ge(0)
    return values.alias("cell").to_frame().select(_is_time(format)).to_series()


@cache
def _is_time(format: str) -> pl.Expr:
    column = Column(name="cell", type="time", as_="", formats=(format,))
    return parse_number(column).is_between(*_PLAUSIBLE_S)


def parse_numbers(values: pl.Series, decimal: str = "", type: str = "number") -> pl.Series:
    """Return the numbers in a column with this decimal mark, or its durations as text; null for all else."""
    column = Column(name=values.name, type=type, as_="", decimal=decimal)
    return values.to_frame().select(parse_number(column)).to_series()


def are_durations(values: pl.Series) -> bool:
    """Return whether most values are durations as text, such as 2.1min or 1-02:03:04."""
    return is_mostly(parse_numbers(values, type="duration").is_not_null(), values)


def is_mostly(is_kind: pl.Series, values: pl.Series) -> bool:
    """Return whether most values that are not blank are of a kind, and at least one is."""
    return is_kind.sum() >= max(1, LEAST_SHARE * values.count())


def list_decimals(values: pl.Series) -> list[str]:
    """Return the decimal marks by which most values are numbers."""
    return [decimal for decimal in DECIMALS if is_mostly(parse_numbers(values, decimal).is_not_null(), values)]
