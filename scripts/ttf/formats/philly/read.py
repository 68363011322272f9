"""Reads the raw tables of the Philly trace, none of which is a plain table of lines.

The job log is one JSON array of jobs. The tables of lines differ from plain ones in small ways, which are put right in
the text before it is read as any other table: the zone of a time is a word (PDT, PST), rows of cluster_gpu_util end in
a comma that its header does not have, and in cluster_machine_list a blank follows each comma.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from ttf.formats.protocol import Reading
from ttf.raw.raw_files import blocks_of_lines
from ttf.raw.raw_json import LARGEST_BYTES, records_in, shown, texts_of_records, whole
from ttf.raw.raw_tables import (
    ASIDE_SCHEMA,
    LONGEST_TEXT_SHOWN,
    Column,
    Reader,
    TableSchema,
    check_rows,
    columns_by_header,
    raw_lines,
    read_block,
)

# A record of the job log as it is in the file.
_DETAIL = pl.Struct({"ip": pl.String, "gpus": pl.List(pl.String)})
_ATTEMPT = pl.Struct({"start_time": pl.String, "end_time": pl.String, "detail": pl.List(_DETAIL)})
RECORD = {"status": pl.String, "vc": pl.String, "jobid": pl.String, "attempts": pl.List(_ATTEMPT)}
RECORD |= {"submitted_time": pl.String, "user": pl.String}
# A job's attempts as they are stored, in JSON.
PLACEMENT = pl.Struct({"machine": pl.String, "gpus": pl.List(pl.Int64)})
ATTEMPTS = pl.List(pl.Struct({"start_s": pl.Int64, "end_s": pl.Int64, "detail": pl.List(PLACEMENT)}))

_BOM = b"\xef\xbb\xbf"
# Read by a thread each.
PIECE_BYTES = 4 << 20
_BETWEEN_JOBS = re.compile(rb"\}\s*,\s*(?=\{\s*\"(?:status|vc|jobid|attempts|submitted_time|user)\")")
_OFFSETS = {" PDT,": "-0700,", " PST,": "-0800,"}
# The field after the last comma of a row, which holds nothing.
_UNNAMED = Column(name="field after the last comma", type="text", as_="unnamed", keep=False, values=("",))


class _Unsound(Exception):
    """A record is not of the form expected; has the reason code and the field."""

    def __init__(self, reason: str, column: str | None = None):
        super().__init__(reason, column)
        self.reason, self.column = reason, column


def read_job_log(path: Path, schema: TableSchema) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield (jobs kept, records put aside) of the job log, as read_table, with `line` a record's number from 1.

    A record with anything amiss is put aside whole, with the field of it that broke a rule, as in
    `attempts[].detail[].gpus`. Unknown fields are read past; a list that is null is an empty one.
    Raises StudyError where the file is no JSON array, or is cut short.
    """
    text = whole(path)
    with ThreadPoolExecutor(pl.thread_pool_size()) as pool:
        pieces = list(pool.map(_read_at_once, _pieces(text)))
        if all(records is not None for records in pieces):
            yield from pool.map(partial(_kept_and_aside, schema=schema), _numbered(pieces))
            return
    records, unsound = _read_one_by_one(path, text.decode("utf-8", errors="surrogateescape"))
    yield _kept_and_aside(records, schema, unsound)


def _kept_and_aside(
    records: pl.DataFrame, schema: TableSchema, unsound: Sequence[tuple] = ()
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Jobs kept and records put aside; unsound: (number, reason, field, text) of those that were put aside before."""
    kept, broken = _checked(records, schema)
    if unsound:
        aside = pl.DataFrame(unsound, schema=["line", "reason", "column", "text"], orient="row")
        broken = pl.concat([broken, aside.cast(broken.schema)]).sort("line")
    return kept, broken.with_columns(table=pl.lit(schema.name)).select(*ASIDE_SCHEMA)


def read_lines(
    path: Path, schema: TableSchema, rewrite: Callable[[bytes], bytes], restore: Callable[[pl.Expr], pl.Expr]
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """As read_table, with each block of lines put right by `rewrite`; `restore` undoes that in texts put aside.

    Rows may end in a comma that the header does not have: most of a block's do or do not.
    """
    columns, next_line = None, 1
    for block in blocks_of_lines(path):
        if columns is None:
            header, _, block = block.removeprefix(_BOM).partition(b"\n")
            columns, next_line = columns_by_header(path, header, schema), 2
        lines, commas = block.count(b"\n"), block.count(b",")
        ends_in_comma = lines and 2 * commas >= (2 * len(columns) - 1) * lines
        kept, aside, lines = read_block(rewrite(block), columns + (_UNNAMED,) * ends_in_comma, schema)
        place = (pl.col("line") + next_line).alias("line")
        yield kept.with_columns(place), aside.with_columns(place, restore(pl.col("text")).alias("text"))
        next_line += lines


def _with_offsets(block: bytes) -> bytes:
    for zone, offset in _OFFSETS.items():
        block = block.replace(zone.encode(), offset.encode())
    return block


def _with_zones(text: pl.Expr) -> pl.Expr:
    for zone, offset in _OFFSETS.items():
        text = text.str.replace_all(offset, zone, literal=True)
    return text


_telemetry = Reader(partial(read_lines, rewrite=_with_offsets, restore=_with_zones), raw_lines)
_without_blanks = partial(re.sub, rb"[ \t]*,[ \t]*", b",")
_machine_list = Reader(partial(read_lines, rewrite=_without_blanks, restore=lambda text: text), raw_lines)

READERS = {
    "job_log": Reader(read_job_log, texts_of_records),
    **dict.fromkeys(("gpu_util", "cpu_util", "mem_util"), _telemetry),
    "machine_list": _machine_list,
}
READING = Reading(READERS)


# The job log: from text to records ------------------------------------------------------------------------


def _pieces(text: bytes) -> Iterator[bytes]:
    """Arrays of some records each that together are the array `text`; the text itself where it is too short.

    A piece ends where an object does that another follows whose first field is a job's. Wherever that is, be it within
    a name: if every piece is an array in JSON, the whole is one of all their records, in this order.
    """
    start, at = 0, PIECE_BYTES
    while cut := _BETWEEN_JOBS.search(text, at):
        yield (b"[" if start else b"") + text[start : cut.start() + 1] + b"]"
        start, at = cut.end(), cut.end() + PIECE_BYTES
    yield b"[" + text[start:] if start else text


def _numbered(pieces: Sequence[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """The records of each piece with their number in the whole, from 1, as `line`."""
    first = 1
    for records in pieces:
        yield records.with_row_index("line", first)
        first += records.height


def _read_at_once(text: bytes) -> pl.DataFrame | None:
    """The records; None where any of them may not be just as expected.

    Polars is fast and forgiving: it reads numbers as text and the first of two fields of one name, and fills in what is
    missing. So every quote and bracket of the text is accounted for: what was read has as many, or it is not taken; and
    outside of quotes nothing but null may stand.
    """
    if not text[:64].lstrip(b" \t\n\r").startswith(b"[") or b"\\" in text:
        return None
    # An object has the names of two fields at least; what has less in it would only take memory.
    if text.count(b'"') < 4 * text.count(b"{"):
        return None
    try:
        text.isascii() or text.decode("utf-8")
        records = pl.read_json(text, schema=RECORD)
    except (UnicodeDecodeError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    attempts = _each(records, "attempts")
    details = _each(attempts, "detail")
    gpus = details["gpus"].explode().drop_nulls()
    texts = [records.drop("attempts"), attempts.drop("detail"), details.drop("gpus")]
    strings = sum(frame.width * frame.height + sum(column.count() for column in frame) for frame in texts)
    strings += records.height + attempts.height + details.height + gpus.len()  # the names of the lists, and the GPUs
    lists = 1 + records["attempts"].count() + attempts["detail"].count() + details["gpus"].count()
    objects = records.height + attempts.height + details.height
    # What is null in a list has neither quotes nor brackets to count.
    all_there = details["ip"].null_count() == 0 and (attempts.height, details.height, gpus.len()) == (
        records["attempts"].list.len().sum(),
        attempts["detail"].list.len().sum(),
        details["gpus"].list.len().sum(),
    )
    if not all_there or (text.count(b'"'), text.count(b"["), text.count(b"{")) != (2 * strings, lists, objects):
        return None
    # NumPy, unlike split, lets the other threads work meanwhile.
    characters = np.frombuffer(text, np.uint8)
    is_quote = characters == ord('"')
    is_outside = ~np.logical_xor.accumulate(is_quote) & ~is_quote
    outside = characters[is_outside].tobytes().translate(None, b"[]{},: \t\n\r")
    if outside != b"null" * (len(outside) // 4):
        return None
    return records


def _each(frame: pl.DataFrame, lists: str) -> pl.DataFrame:
    """The structs in a column of lists, one row each."""
    return frame[lists].explode().drop_nulls().struct.unnest()


def _read_one_by_one(path: Path, text: str) -> tuple[pl.DataFrame, list[tuple]]:
    """The sound records as _read_at_once gives them, and (number, reason, field, text) of the others."""
    sound, numbers, unsound = [], [], []
    for number, (record, start, end) in enumerate(records_in(path, text), start=1):
        try:
            sound.append(json.dumps(_sound(record), ensure_ascii=False).encode())
            numbers.append(number)
        except _Unsound as error:
            unsound.append((number, error.reason, error.column, shown(text, start, end)))
        except UnicodeEncodeError:
            unsound.append((number, "not_utf8", None, shown(text, start, end)))
    frame = pl.read_json(b"[" + b",".join(sound) + b"]", schema=RECORD) if sound else pl.DataFrame(schema=RECORD)
    return frame.with_columns(line=pl.Series(numbers, dtype=pl.UInt32)), unsound


# The form of one record -----------------------------------------------------------------------------------


def _sound(record: object) -> dict:
    """The record with the fields of RECORD only. Raises _Unsound where its form is another."""
    if not isinstance(record, dict):
        raise _Unsound("wrong_column_count")
    if "attempts" not in record:
        raise _Unsound("missing_value", "attempts")
    return {name: _text(record, name, name) for name in RECORD if name != "attempts"} | {
        "attempts": [
            {
                "start_time": _text(attempt, "start_time", "attempts[].start_time"),
                "end_time": _text(attempt, "end_time", "attempts[].end_time"),
                "detail": [
                    {
                        "ip": _text(placement, "ip", "attempts[].detail[].ip") or "",
                        "gpus": _list(placement, "gpus", "attempts[].detail[].gpus", str),
                    }
                    for placement in _list(attempt, "detail", "attempts[].detail", dict)
                ],
            }
            for attempt in _list(record, "attempts", "attempts", dict)
        ]
    }


def _text(fields: dict, name: str, column: str) -> str | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise _Unsound("wrong_type", column)
    return value


def _list(fields: dict, name: str, column: str, of: type) -> list:
    """A list of values of one kind; null, or no field of the name, is an empty one."""
    values = fields.get(name)
    if values is None:
        return []
    if not isinstance(values, list) or not all(isinstance(value, of) for value in values):
        raise _Unsound("wrong_type", column)
    return values


# From records to jobs -------------------------------------------------------------------------------------


def _checked(records: pl.DataFrame, schema: TableSchema) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Jobs with the columns of `schema.stored`; and line, reason, column, text of records that broke a rule."""
    records = records.with_columns(pl.col("line").cast(pl.Int64))
    tried = (
        records.select("line", attempt="attempts")
        .explode("attempt")
        .drop_nulls("attempt")
        .unnest("attempt")
        .with_row_index("row")
    )
    times, late = _attempt_times(tried, schema)
    # The index of a GPU from its name, as in gpu0; null where it is another.
    index = pl.element().str.extract(r"^gpu([0-9]{1,2})$", 1).cast(pl.Int64)
    gpu = pl.element().struct.field("gpus").fill_null([]).list.eval(index)
    # What is missing in a list of lists: counted, as a condition on all of them at once cannot be had.
    placement = pl.struct(pl.element().struct.field("ip").alias("machine"), gpus=gpu)
    placed = tried.select("line", "row", pl.col("detail").fill_null([]).list.eval(placement))
    nameless = pl.element().struct.field("machine").str.strip_chars().fill_null("").eq("").any()
    no_gpu = pl.element().struct.field("gpus").list.eval(pl.element().is_null()).list.any().any()
    unplaced = [
        placed.filter(pl.col("detail").list.eval(is_amiss).list.first().fill_null(False)).select(
            "line", "row", reason=pl.lit(reason), column=pl.lit(f"attempts[].detail[].{field}")
        )
        for is_amiss, reason, field in ((nameless, "missing_value", "ip"), (no_gpu, "unknown_value", "gpus"))
    ]
    broken = pl.concat([late, *unplaced]).sort("row", maintain_order=True)
    broken = broken.unique("line", keep="first", maintain_order=True).select("line", "reason", "column")

    # Attempts with a time that is none are not among `times`; their jobs are put aside below.
    stored = (
        placed.join(times, on="row", how="inner", maintain_order="left")
        .group_by("line", maintain_order=True)
        .agg(attempts=pl.struct("start_s", "end_s", "detail"))
    )
    jobs = records.drop("attempts").join(stored, on="line", how="left", maintain_order="left")
    jobs = jobs.with_columns(_json(pl.col("attempts").fill_null([])))
    # The attempts, which are written as JSON, may be as long as they are.
    longest = {"attempts": LARGEST_BYTES}
    columns = (replace(column, longest=longest.get(column.name, column.longest)) for column in schema.columns)
    kept, failed = check_rows(jobs, tuple(columns), schema)
    broken = pl.concat([failed.select("line", "reason", "column"), broken])
    broken = broken.unique("line", keep="first", maintain_order=True).sort("line")
    texts = records.filter(pl.col("line").is_in(broken["line"].implode())).select(
        "line", text=pl.struct(*RECORD).struct.json_encode().str.slice(0, LONGEST_TEXT_SHOWN)
    )
    kept = kept.filter(~pl.col("line").is_in(broken["line"].implode()))
    return kept, broken.join(texts, on="line", how="left", maintain_order="left")


def _attempt_times(tried: pl.DataFrame, schema: TableSchema) -> tuple[pl.DataFrame, pl.DataFrame]:
    """row, start_s, end_s of the attempts (read as submitted_time is); line, row, reason, column of the rest."""
    like = next(column for column in schema.columns if column.as_ == "submit_s")
    columns = tuple(
        Column(f"attempts[].{name}", like.type, as_, blank=like.blank, formats=like.formats, zone=like.zone)
        for name, as_ in (("start_time", "start_s"), ("end_time", "end_s"))
    )
    frame = tried.select(
        pl.col("row").cast(pl.Int64).alias("line"),
        *(pl.col(column.name.removeprefix("attempts[].")).alias(column.name) for column in columns),
    )
    kept, failed = check_rows(frame, columns, TableSchema("attempts", True, columns))
    row = pl.col("line").cast(pl.UInt32).alias("row")
    late = failed.select(row, "reason", "column").join(tried.select("row", "line"), on="row", maintain_order="left")
    return kept.select(row, "start_s", "end_s"), late.select("line", "row", "reason", "column")


def _json(attempts: pl.Expr) -> pl.Expr:
    """A list as JSON text: what Polars writes for a struct of it, without the struct."""
    opening = '{"attempts":'
    text = pl.struct(attempts.alias("attempts")).struct.json_encode()
    return text.str.slice(len(opening)).str.head(-1).alias("attempts")
