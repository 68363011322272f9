"""A draft of the mapping of an unknown table of jobs, from its header and its first rows, for the format table.

A column is taken for a key if its name and its values agree (config/column_names.yaml). If two columns could be the
key, neither is taken.
"""

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from polars import selectors

from ttf.engine.checkout import CHECKOUT
from ttf.engine.storage.on_disk import scan_parquet
from ttf.raw.headers import DELIMITERS, parse_header
from ttf.raw.raw_tables import AUTOMATIC, Column, parse_number
from ttf.study.configuration.yaml_files import load_yaml
from ttf.study.recognition.first_lines import LONGEST_NAME, read_first_bytes, show_name

_TERMS = load_yaml(CHECKOUT / "config" / "column_names.yaml")
_OUTCOME_BY_WORD = {word: outcome for outcome, words in _TERMS["outcomes"].items() for word in words.split()}
_KEY_BY_TIME = {word: key for key, words in _TERMS["times"].items() for word in words.split()}
_FORMATS = [AUTOMATIC, *map("".join, product(_TERMS["days"], (" ", ", "), _TERMS["clocks"])), *_TERMS["formats"]]
MOST_BYTES, MOST_ROWS, MOST_WORDS = 1 << 20, 20_000, 30
# Share of a column's values that must be times, numbers or different; ingest tolerates as many rows that break a rule.
LEAST_SHARE = 0.99
# 2000 and 2100; a day read as a year is no plausible time.
_PLAUSIBLE_S = (946_684_800, 4_102_444_800)


class Sample(NamedTuple):
    """The first rows of a table as text. words: the same, with words for no value. options: how to read the file."""

    rows: pl.DataFrame
    words: pl.DataFrame
    options: dict[str, Any]


@dataclass
class Draft:
    """A trace's entry in the registry, null where a key must be completed.

    lines: field by field what was taken, and what not. missing: path of a key -> how to complete it.
    """

    entry: dict[str, Any] = field(default_factory=lambda: {"mapping": {}})
    lines: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """Return the columns of the file that are mapped so far."""
        parts = filter(None, self.entry["mapping"].values())
        return [part if isinstance(part, str) else part["column"] for part in parts]

    def take(self, key: str, part: str | dict[str, str | bool], comment: str = "") -> None:
        """Map a key of the entry to a column (`part`), and say so in `lines`."""
        self.entry["mapping"][key] = part
        self.lines.append(f"  {key}: {show_name(self.columns[-1])}{comment and f' ({comment})'}")

    def require(self, path: str, text: str) -> None:
        """Say in `missing` and `lines` how to complete a key of the entry, which is null unless it has a value."""
        *parents, key = path.split(".")
        values = self.entry
        for parent in parents:
            values = values.setdefault(parent, {})
        values.setdefault(key, None)
        self.missing[path] = text
        self.lines.append(f"  {path}: not sure; {text}")


def read_sample(path: Path) -> Sample | None:
    """Return the first rows of a table; None if it has fewer than two columns, no row, or cannot be read."""
    is_parquet = path.name.lower().endswith(".parquet")
    try:
        rows, options = (_read_first_parquet_rows(path), {}) if is_parquet else _read_first_text_rows_and_options(path)
    except (Exception, pl.exceptions.PanicException):  # whatever libraries raise for a file that is no such table
        return None
    if rows.width < 2 or not rows.height:
        return None
    words = rows.select(
        pl.col(name).str.strip_chars().replace("", None) for name in rows.columns if _is_usable_name(name)
    )
    blank_words = _TERMS["blank"].split()
    return Sample(words.select(pl.when(~pl.all().str.to_lowercase().is_in(blank_words)).then(pl.all())), words, options)


def draft_mapping(sample: Sample) -> Draft | None:
    """Return the draft of a table's entry; None if it does not look like a table of jobs."""
    draft = Draft()
    formats = {name: formats for name in sample.rows.columns if (formats := list_formats(sample.rows[name]))}
    _draft_job_id(sample, draft)
    _draft_status(sample, draft)
    _draft_times(sample, draft, formats)
    if not formats or not {*draft.columns} - {draft.entry["mapping"]["job_id"]}:
        return None
    for key in ("user", "account", "gpus", "gpu_type", "cpus", "memory", "nodes", "exit_code", "reason"):
        _draft_optional_key(key, sample, draft)
    values = {value for name in {*draft.columns} for value in sample.words[name].drop_nulls().unique()}
    outcome_words = {word for words in (draft.entry["outcomes"] or {}).values() for word in words}
    if blank := sorted(value for value in values - outcome_words if value.lower() in _TERMS["blank"].split()):
        draft.entry["blank"] = blank
    draft.entry |= sample.options
    unused = [name for name in sample.rows.columns if name not in draft.columns]
    draft.lines += [f"  not used: {_join_names(unused)}"] if unused else []
    return draft


def list_formats(values: pl.Series) -> list[str]:
    """Return the formats by which nearly all values are times or placeholders; empty for a column without times."""
    values = values.drop_nulls()
    formats = _FORMATS if values.str.contains("[0-9]{2}").any() else []
    # A few values exclude nearly all formats.
    for part in (values.head(20), values):
        formats = [format for format in formats if _are_times(part, format)]
        formats = [AUTOMATIC] if AUTOMATIC in formats else formats
    return [format for format in formats if _is_plausible_time(values, format).any()]


def classify_word(word: str) -> str | None:
    """Return the outcome that a word of the status means; None if it is in no list."""
    return _OUTCOME_BY_WORD.get("".join(_split_name(word.lower())))


# Reading ------------------------------------------------------------------------------------------------


def _read_first_parquet_rows(path: Path) -> pl.DataFrame:
    columns = selectors.all() - selectors.nested() - selectors.binary() - selectors.duration()
    rows = scan_parquet(path).head(MOST_ROWS).select(columns)
    rows = rows.with_columns(selectors.datetime(time_zone="*").dt.convert_time_zone("UTC"))
    return rows.select(pl.all().cast(pl.String)).collect()


def _read_first_text_rows_and_options(path: Path) -> tuple[pl.DataFrame, dict[str, Any]]:
    head = read_first_bytes(str(path), MOST_BYTES) or b""
    header, *lines = head.splitlines()
    delimiter = max(DELIMITERS, key=lambda mark: header.count(mark.encode()))
    quoted = b'"' in head
    names = parse_header(header, delimiter, quoted)
    # The last line may be cut off.
    texts = [line.decode("utf-8", "replace") for line in (lines if len(head) < MOST_BYTES else lines[:-1])]
    rows = csv.reader(texts[:MOST_ROWS], delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE)
    cells = [row for row in rows if len(row) == len(names)]
    columns = zip(names, zip(*cells, strict=True), strict=True)
    options = ({"delimiter": delimiter} if delimiter != "," else {}) | ({"quoted": True} if quoted else {})
    return pl.DataFrame({name: values for name, values in columns if names.count(name) == 1}), options


# Fields -------------------------------------------------------------------------------------------------


def _draft_job_id(sample: Sample, draft: Draft) -> None:
    names, rows = _list_candidates("job_id", sample), sample.rows
    unique = [name for name in names if rows[name].drop_nulls().n_unique() >= LEAST_SHARE * rows.height]
    if len(unique) == 1:
        draft.take("job_id", unique[0], "differs in each row")
    elif len(names) == 1 and rows[names[0]].null_count() <= (1 - LEAST_SHARE) * rows.height:
        draft.take("job_id", names[0])
        draft.require("unique_ids", "ids repeat: false if each row is a job, true if a second row of an id is an error")
    else:
        draft.require("mapping.job_id", _describe_candidates(unique or names))


def _draft_status(sample: Sample, draft: Draft) -> None:
    words_by_column = {
        name: words
        for name in sample.words.columns
        if 0 < len(words := sample.words[name].drop_nulls().unique(maintain_order=True).to_list()) <= MOST_WORDS
    }
    readable = [name for name, words in words_by_column.items() if all(map(classify_word, words))]
    names = [name for name in _list_candidates("status", sample) if name in words_by_column]
    candidates = [name for name in names if name in readable] or names
    # Without such a name the words tell; a single outcome might be chance.
    candidates = candidates or [name for name in readable if len({*map(classify_word, words_by_column[name])}) > 1]
    if len(candidates) != 1:
        draft.require("mapping.status", _describe_candidates(candidates))
        draft.require("outcomes", "list the words of the status under success, failure, cancelled, running and others")
        return
    (name,) = candidates
    words = words_by_column[name]
    first_words = [word.split()[0] for word in words]
    is_phrase = name not in readable and all(map(classify_word, first_words))
    words = sorted({*first_words} if is_phrase else words)
    outcomes = {outcome: [word for word in words if classify_word(word) == outcome] for outcome in _TERMS["outcomes"]}
    outcomes = {outcome: words for outcome, words in outcomes.items() if words}
    draft.entry["outcomes"] = outcomes
    comment = "; ".join(f"{outcome}: {_join_names(words)}" for outcome, words in outcomes.items())
    draft.take("status", {"column": name, "first_word": True} if is_phrase else name, comment)
    if states := [word for word in words if "".join(_split_name(word.lower())) in _TERMS["infra_failures"].split()]:
        draft.entry["infra_failures"] = {"states": states}
    if unclear := [word for word in words if not classify_word(word)]:
        outcomes["unclear"] = unclear
        draft.require("outcomes.unclear", f"move each word to the outcome that it means: {_join_names(unclear)}")


def _draft_times(sample: Sample, draft: Draft, formats: Mapping[str, list[str]]) -> None:
    columns: dict[str, list[str]] = {key: [] for key in _TERMS["times"]}
    for name in formats:
        if key := _KEY_BY_TIME.get(_extract_time_word(name)):
            columns[key].append(name)
    columns = {key: _drop_equal_columns(sample.rows, names) for key, names in columns.items()}
    submit, start, end = columns["submit"] or columns["created"], columns["start"], columns["end"]
    if not columns["submit"] and not (submit and start):
        submit = start = submit or start
    unused_times = [name for name in formats if name not in (*submit, *start, *end)]
    comment = "also start, so no waits are computed" if submit and submit == start else ""
    for key, names in (("submit", submit), ("start", start), ("end", end)):
        if len(names) != 1:
            if names or (key == "end" and not _draft_runtime(sample, draft)) or (key == "start" and not submit):
                draft.require(f"mapping.{key}", _describe_candidates(names or unused_times))
            elif key == "start":
                draft.lines.append("  start: no column, so no run times are computed")
        elif key != "submit" and sample.rows[names[0]].drop_nulls().str.contains("^[0-9]{4}-[0-9]{2}-[0-9]{2}$").all():
            draft.require(f"mapping.{key}", f"{show_name(names[0])} has no time of day")
        else:
            draft.take(key, names[0], comment if key == "submit" else "")
    _draft_format(sample, draft, [name for name in formats if name in draft.columns], formats)


def _draft_format(sample: Sample, draft: Draft, columns: list[str], formats: Mapping[str, list[str]]) -> None:
    """Set the format that all times have in common, if it is not recognised anyway, and the zone."""
    common = [format for format in _FORMATS if all(format in formats[name] for name in columns)]
    common = [format for format in common if "%.f" not in format or format.replace("%.f", "") not in common]
    if columns and len(common) != 1:
        reason = f"no value decides between {' and '.join(common)}" if common else "the times have different forms"
        draft.require("times.format", f"{_join_names(columns)}: {reason}")
    elif columns and common != [AUTOMATIC]:
        draft.entry["times"] = {"format": common[0]}
        draft.lines.append(f"  times.format: {common[0]}")
    values = pl.concat([pl.Series(dtype=pl.String), *(sample.rows[name].alias("") for name in columns)]).drop_nulls()
    if not values.str.contains(r"(Z|UTC|:[0-9.]+ ?[+-][0-9]{2}(:?[0-9]{2})?)$|^[0-9.e+]{9,}$").all():
        draft.entry.setdefault("times", {})["zone"] = "UTC"
        draft.lines.append("  times.zone: UTC is assumed, because the times name no zone")


def _draft_runtime(sample: Sample, draft: Draft) -> bool:
    """Map a run time whose name tells the unit, if there is a start; return whether there is one."""
    names = [name for name in _list_candidates("runtime", sample) if _find_unit("runtime", name)]
    if len(names) != 1 or not _is_numeric(sample.rows[names[0]]) or not draft.entry["mapping"].get("start"):
        return False
    draft.take("runtime", {"column": names[0], "unit": _find_unit("runtime", names[0])})
    return True


def _draft_optional_key(key: str, sample: Sample, draft: Draft) -> None:
    names = [name for name in _list_candidates(key, sample) if name not in draft.columns]
    if key in ("gpus", "cpus", "nodes", "memory", "gpu_type"):
        names = [name for name in names if _is_numeric(sample.rows[name]) == (key != "gpu_type")]
    unit = _find_unit(key, names[0]) if names else ""
    if len(names) > 1:
        draft.lines.append(f"  {key}: not taken; {_describe_candidates(names)}")
    elif names and key == "memory" and not unit:
        draft.lines.append(f"  memory: not taken; the name {show_name(names[0])} tells no unit")
    elif names:
        draft.take(key, {"column": names[0], "unit": unit} if unit else names[0])


# Names and values ---------------------------------------------------------------------------------------


def _list_candidates(key: str, sample: Sample) -> list[str]:
    """Return the columns that are not blank and have one of the likeliest names of the key."""
    for likely_names in _TERMS["names"][key]:
        names = [name for name in sample.rows.columns if _list_readings(key, name) & {*likely_names.split()}]
        if names := [name for name in names if sample.words[name].count()]:
            return _drop_equal_columns(sample.words, names)
    return []


def _drop_equal_columns(rows: pl.DataFrame, names: list[str]) -> list[str]:
    return [name for n, name in enumerate(names) if not any(rows[name].equals(rows[other]) for other in names[:n])]


def _list_readings(key: str, name: str) -> set[str]:
    """Return a name without marks and without its unit; also without a first word such as job."""
    parts = _split_name(name)
    parts = parts[:-1] if len(parts) > 1 and _find_unit(key, name) else parts
    return {"".join(parts), "".join(_drop_prefix(parts))}


def _extract_time_word(name: str) -> str:
    """Return the word of a name such as started_at or jobEndTime that tells which time it is."""
    parts = _drop_prefix(_split_name(name))
    while len(parts) > 1 and parts[-1] in _TERMS["time_endings"].split():
        parts = parts[:-1]
    return re.sub("(?<=..)(time|date)$", "", "".join(parts))


def _drop_prefix(parts: list[str]) -> list[str]:
    return parts[1:] if len(parts) > 1 and parts[0] in _TERMS["prefixes"].split() else parts


def _find_unit(key: str, name: str) -> str:
    return _TERMS["units"].get(key, {}).get((_split_name(name) or [""])[-1], "")


def _split_name(name: str) -> list[str]:
    return re.findall(r"[^\W_]+", re.sub("(?<=[a-z0-9])(?=[A-Z])", " ", name).lower())


def _is_usable_name(name: str) -> bool:
    return name.isprintable() and 0 < len(name) <= LONGEST_NAME and name not in ("line", " ")


def _is_numeric(values: pl.Series) -> bool:
    values = values.drop_nulls()
    return len(values) > 0 and values.cast(pl.Float64, strict=False).ge(0).sum() >= LEAST_SHARE * len(values)


def _are_times(values: pl.Series, format: str) -> bool:
    """Return whether nearly all values are plausible times, apart from placeholders such as 0001-01-01."""
    is_time = _is_plausible_time(values, format)
    n_times = len(values.filter(is_time))
    return n_times >= LEAST_SHARE * (n_times + is_time.null_count())


def _is_plausible_time(values: pl.Series, format: str) -> pl.Series:
    """Return whether each value is a plausible time, as the reader parses it; null for what is no time."""
    column = Column(name=values.name, type="time", as_="", formats=(format,))
    return values.to_frame().select(parse_number(column).is_between(*_PLAUSIBLE_S)).to_series()


def _join_names(words: Iterable[str]) -> str:
    words = [*words]
    return ", ".join(map(show_name, words[:MOST_WORDS])) + (" ..." if len(words) > MOST_WORDS else "")


def _describe_candidates(names: Iterable[str]) -> str:
    candidates = " or ".join(map(show_name, names))
    return f"it could be {candidates}" if candidates else "no column looks like it"
