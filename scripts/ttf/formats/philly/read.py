"""Read the raw tables of the Philly trace, none of which is a plain table of lines.

The job log is one JSON array of jobs. The text of the other tables needs small corrections before it is read as usual:
the zone of a time is a word (PDT, PST), rows of cluster_gpu_util end in a comma that the header lacks, and in
cluster_machine_list a blank follows each comma.
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
from ttf.raw.raw_files import read_line_blocks
from ttf.raw.raw_json import MAX_BYTES, read_record_texts, read_records, read_whole, record_start
from ttf.raw.raw_tables import (
    MAX_TEXT_SHOWN,
    QUARANTINED_SCHEMA,
    Column,
    Reader,
    TableSchema,
    check_rows,
    match_header_columns,
    raw_lines,
    read_block,
)

# A record of the job log in the file.
_RAW_PLACEMENT = pl.Struct({"ip": pl.String, "gpus": pl.List(pl.String)})
_RAW_ATTEMPT = pl.Struct({"start_time": pl.String, "end_time": pl.String, "detail": pl.List(_RAW_PLACEMENT)})
RECORD: dict[str, pl.DataType | type[pl.DataType]]
RECORD = {"status": pl.String, "vc": pl.String, "jobid": pl.String, "attempts": pl.List(_RAW_ATTEMPT)}
RECORD |= {"submitted_time": pl.String, "user": pl.String}
# The attempts of a job as stored, in JSON.
PLACEMENT = pl.Struct({"machine": pl.String, "gpus": pl.List(pl.Int64)})
ATTEMPTS = pl.List(pl.Struct({"start_s": pl.Int64, "end_s": pl.Int64, "detail": pl.List(PLACEMENT)}))

_BOM = b"\xef\xbb\xbf"
# Each piece is read by one thread.
PIECE_BYTES = 4 << 20
_JOB_BOUNDARY = re.compile(rb"\}\s*,\s*(?=\{\s*\"(?:status|vc|jobid|attempts|submitted_time|user)\")")
_OFFSETS = {" PDT,": "-0700,", " PST,": "-0800,"}
# The empty field after the last comma of a row.
_EMPTY_COLUMN = Column(name="field after the last comma", type="text", as_="unnamed", keep=False, values=("",))


class _InvalidRecordError(Exception):
    """A record does not have the expected form; has the reason code and the field."""

    def __init__(self, reason: str, column: str | None = None) -> None:
        super().__init__(reason, column)
        self.reason, self.column = reason, column


def read_job_log(path: Path, schema: TableSchema) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield (accepted jobs, quarantined records) as read_raw_table does; `line` is the number of a record from 1.

    An error quarantines the whole record, with the field that breaks a rule, such as `attempts[].detail[].gpus`.
    Unknown fields are ignored; a null list is an empty list.
    Raises StudyError if the file is no JSON array, or is truncated.
    """
    text = read_whole(path)
    with ThreadPoolExecutor(pl.thread_pool_size()) as pool:
        pieces = list(pool.map(_read_fast, _split_array(text)))
        valid_pieces = [records for records in pieces if records is not None]
        if len(valid_pieces) == len(pieces):
            yield from pool.map(partial(_split_records, schema=schema), _add_line_numbers(valid_pieces))
            return
    records, invalid = _read_slowly(path, text.decode("utf-8", errors="surrogateescape"))
    yield _split_records(records, schema, invalid)


def _split_records(
    records: pl.DataFrame, schema: TableSchema, invalid: Sequence[tuple] = ()
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return accepted jobs and quarantined records. invalid: (number, reason, field, text) of further records."""
    accepted, failed = _check_jobs(records, schema)
    if invalid:
        invalid_rows = pl.DataFrame(invalid, schema=["line", "reason", "column", "text"], orient="row")
        failed = pl.concat([failed, invalid_rows.cast(failed.schema)]).sort("line")
    return accepted, failed.with_columns(table=pl.lit(schema.name)).select(*QUARANTINED_SCHEMA)


def read_lines(
    path: Path, schema: TableSchema, rewrite: Callable[[bytes], bytes], restore: Callable[[pl.Expr], pl.Expr]
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Read as read_raw_table does, after `rewrite` corrects each block; `restore` undoes that in quarantined texts.

    Rows may end in a comma that the header lacks; the majority of a block decides.
    """
    columns, next_line = None, 1
    for block in read_line_blocks(path):
        if columns is None:
            header, _, block = block.removeprefix(_BOM).partition(b"\n")
            columns, next_line = match_header_columns(path, header, schema), 2
        lines, commas = block.count(b"\n"), block.count(b",")
        ends_in_comma = lines and 2 * commas >= (2 * len(columns) - 1) * lines
        accepted, quarantined, lines = read_block(rewrite(block), columns + (_EMPTY_COLUMN,) * ends_in_comma, schema)
        line = (pl.col("line") + next_line).alias("line")
        yield accepted.with_columns(line), quarantined.with_columns(line, restore(pl.col("text")).alias("text"))
        next_line += lines


def _replace_zones_by_offsets(block: bytes) -> bytes:
    for zone, offset in _OFFSETS.items():
        block = block.replace(zone.encode(), offset.encode())
    return block


def _replace_offsets_by_zones(text: pl.Expr) -> pl.Expr:
    for zone, offset in _OFFSETS.items():
        text = text.str.replace_all(offset, zone, literal=True)
    return text


def _strip_fields(block: bytes) -> bytes:
    return re.sub(rb"[ \t]*,[ \t]*", b",", block)


_TELEMETRY = Reader(
    partial(read_lines, rewrite=_replace_zones_by_offsets, restore=_replace_offsets_by_zones), raw_lines
)
_MACHINE_LIST = Reader(partial(read_lines, rewrite=_strip_fields, restore=lambda text: text), raw_lines)

READERS = {
    "job_log": Reader(read_job_log, read_record_texts),
    **dict.fromkeys(("gpu_util", "cpu_util", "mem_util"), _TELEMETRY),
    "machine_list": _MACHINE_LIST,
}
READING = Reading(READERS)


# The job log: from text to records ------------------------------------------------------------------------


def _split_array(text: bytes) -> Iterator[bytes]:
    """Split the array `text` into shorter arrays; yield the text itself if it is short.

    A piece ends between an object and a following object whose first field is that of a job. The match may even be
    within a text: if every piece is a JSON array, the whole is the array of all their records, in this order.
    """
    start, search_from = 0, PIECE_BYTES
    while cut := _JOB_BOUNDARY.search(text, search_from):
        yield (b"[" if start else b"") + text[start : cut.start() + 1] + b"]"
        start, search_from = cut.end(), cut.end() + PIECE_BYTES
    yield b"[" + text[start:] if start else text


def _add_line_numbers(pieces: Sequence[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    first_line = 1
    for records in pieces:
        yield records.with_row_index("line", first_line)
        first_line += records.height


def _read_fast(text: bytes) -> pl.DataFrame | None:
    """Return the records, or None if any of them may not have the expected form.

    Polars is fast but lenient: it reads numbers as text, takes the first of two fields with one name, and fills in
    missing fields. So the result counts only if it accounts for every quote and bracket of the text, and if the text
    outside of quotes is null alone.
    """
    if not text[:64].lstrip(b" \t\n\r").startswith(b"[") or b"\\" in text:
        return None
    # An object has the names of at least two fields; reading anything else would only take memory.
    if text.count(b'"') < 4 * text.count(b"{"):
        return None
    try:
        text.isascii() or text.decode("utf-8")
        records = pl.read_json(text, schema=RECORD)
    except (UnicodeDecodeError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    attempts = unpack_structs(records.select("attempts"), "attempts")
    details = unpack_structs(attempts.select("detail"), "detail")
    gpus = details["gpus"].explode().drop_nulls()
    texts = [records.drop("attempts"), attempts.drop("detail"), details.drop("gpus")]
    strings = sum(frame.width * frame.height + sum(column.count() for column in frame) for frame in texts)
    strings += records.height + attempts.height + details.height + gpus.len()  # the names of the lists, and the GPUs
    lists = 1 + records["attempts"].count() + attempts["detail"].count() + details["gpus"].count()
    objects = records.height + attempts.height + details.height
    # A null in a list has neither quotes nor brackets to count.
    has_no_nulls = details["ip"].null_count() == 0 and (attempts.height, details.height, gpus.len()) == (
        records["attempts"].list.len().sum(),
        attempts["detail"].list.len().sum(),
        details["gpus"].list.len().sum(),
    )
    if not has_no_nulls or (text.count(b'"'), text.count(b"["), text.count(b"{")) != (2 * strings, lists, objects):
        return None
    # Unlike bytes.split, NumPy releases the lock for other threads.
    characters = np.frombuffer(text, np.uint8)
    is_quote = characters == ord('"')
    is_outside = ~np.logical_xor.accumulate(is_quote) & ~is_quote
    rest = characters[is_outside].tobytes().translate(None, b"[]{},: \t\n\r")
    if rest != b"null" * (len(rest) // 4):
        return None
    return records


def _read_slowly(path: Path, text: str) -> tuple[pl.DataFrame, list[tuple]]:
    """Return the valid records as _read_fast does, and (number, reason, field, text) of the other records."""
    texts, numbers, invalid = [], [], []
    for number, (record, start, end) in enumerate(read_records(path, text), start=1):
        try:
            texts.append(json.dumps(_check_record(record), ensure_ascii=False).encode())
            numbers.append(number)
        except _InvalidRecordError as error:
            invalid.append((number, error.reason, error.column, record_start(text, start, end)))
        except UnicodeEncodeError:
            invalid.append((number, "not_utf8", None, record_start(text, start, end)))
    frame = pl.read_json(b"[" + b",".join(texts) + b"]", schema=RECORD) if texts else pl.DataFrame(schema=RECORD)
    return frame.with_columns(line=pl.Series(numbers, dtype=pl.UInt32)), invalid


# The form of one record -----------------------------------------------------------------------------------


def _check_record(record: object) -> dict:
    """Return the record with the fields of RECORD only. Raises _InvalidRecordError if it has another form."""
    if not isinstance(record, dict):
        raise _InvalidRecordError("wrong_column_count")
    if "attempts" not in record:
        raise _InvalidRecordError("missing_value", "attempts")
    return {name: _get_text_or_raise(record, name, name) for name in RECORD if name != "attempts"} | {
        "attempts": [
            {
                "start_time": _get_text_or_raise(attempt, "start_time", "attempts[].start_time"),
                "end_time": _get_text_or_raise(attempt, "end_time", "attempts[].end_time"),
                "detail": [
                    {
                        "ip": _get_text_or_raise(placement, "ip", "attempts[].detail[].ip") or "",
                        "gpus": _get_list_or_raise(placement, "gpus", "attempts[].detail[].gpus", str),
                    }
                    for placement in _get_list_or_raise(attempt, "detail", "attempts[].detail", dict)
                ],
            }
            for attempt in _get_list_or_raise(record, "attempts", "attempts", dict)
        ]
    }


def _get_text_or_raise(fields: dict, name: str, column: str) -> str | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise _InvalidRecordError("wrong_type", column)
    return value


def _get_list_or_raise(fields: dict, name: str, column: str, kind: type) -> list:
    values = fields.get(name)
    if values is None:
        return []
    if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
        raise _InvalidRecordError("wrong_type", column)
    return values


# From records to jobs -------------------------------------------------------------------------------------


def _check_jobs(records: pl.DataFrame, schema: TableSchema) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return jobs with the columns of `schema.dtypes`, and line, reason, column, text of failed records."""
    records = records.with_columns(pl.col("line").cast(pl.Int64))
    attempts = unpack_structs(records.select("line", attempt="attempts"), "attempt").with_row_index("row")
    times, time_errors = _attempt_times(attempts, schema)
    # The index of a GPU from its name, such as gpu0; null for any other name.
    index = pl.element().str.extract(r"^gpu([0-9]{1,2})$", 1).cast(pl.Int64)
    gpu = pl.element().struct.field("gpus").fill_null([]).list.eval(index)
    # Polars has no condition on all elements of nested lists, so check each level.
    placement = pl.struct(pl.element().struct.field("ip").alias("machine"), gpus=gpu)
    placements = attempts.select("line", "row", pl.col("detail").fill_null([]).list.eval(placement))
    has_no_machine = pl.element().struct.field("machine").str.strip_chars().fill_null("").eq("").any()
    has_no_gpu = pl.element().struct.field("gpus").list.eval(pl.element().is_null()).list.any().any()
    placement_errors = [
        placements.filter(pl.col("detail").list.eval(is_wrong).list.first().fill_null(False)).select(
            "line", "row", reason=pl.lit(reason), column=pl.lit(f"attempts[].detail[].{field}")
        )
        for is_wrong, reason, field in ((has_no_machine, "missing_value", "ip"), (has_no_gpu, "unknown_value", "gpus"))
    ]
    failures = pl.concat([time_errors, *placement_errors]).sort("row", maintain_order=True)
    failures = failures.unique("line", keep="first", maintain_order=True).select("line", "reason", "column")

    # `times` lacks attempts with an invalid time; their jobs are quarantined below.
    stored_attempts = (
        placements.join(times, on="row", how="inner", maintain_order="left")
        .group_by("line", maintain_order=True)
        .agg(attempts=pl.struct("start_s", "end_s", "detail"))
    )
    jobs = records.drop("attempts").join(stored_attempts, on="line", how="left", maintain_order="left")
    jobs = jobs.with_columns(_encode_json(pl.col("attempts").fill_null([])))
    # The JSON of the attempts has no limit of its own.
    max_bytes = {"attempts": MAX_BYTES}
    columns = (replace(column, longest=max_bytes.get(column.name, column.longest)) for column in schema.columns)
    accepted, failed = check_rows(jobs, tuple(columns), schema)
    failures = pl.concat([failed.select("line", "reason", "column"), failures])
    failures = failures.unique("line", keep="first", maintain_order=True).sort("line")
    texts = records.filter(pl.col("line").is_in(failures["line"].implode())).select(
        "line", text=pl.struct(*RECORD).struct.json_encode().str.slice(0, MAX_TEXT_SHOWN)
    )
    accepted = accepted.filter(~pl.col("line").is_in(failures["line"].implode()))
    return accepted, failures.join(texts, on="line", how="left", maintain_order="left")


def _attempt_times(attempts: pl.DataFrame, schema: TableSchema) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return row, start_s, end_s of the attempts, parsed like submitted_time, and errors: line, row, reason, column."""
    submit = next(column for column in schema.columns if column.as_ == "submit_s")
    columns = tuple(
        Column(f"attempts[].{name}", submit.type, as_, blank=submit.blank, formats=submit.formats, zone=submit.zone)
        for name, as_ in (("start_time", "start_s"), ("end_time", "end_s"))
    )
    frame = attempts.select(
        pl.col("row").cast(pl.Int64).alias("line"),
        *(pl.col(column.name.removeprefix("attempts[].")).alias(column.name) for column in columns),
    )
    accepted, failed = check_rows(frame, columns, TableSchema("attempts", True, columns))
    row = pl.col("line").cast(pl.UInt32).alias("row")
    errors = failed.select(row, "reason", "column")
    errors = errors.join(attempts.select("row", "line"), on="row", maintain_order="left")
    return accepted.select(row, "start_s", "end_s"), errors.select("line", "row", "reason", "column")


def unpack_structs(rows: pl.DataFrame, list_column: str) -> pl.DataFrame:
    """Return a row per struct in the lists of a column, with the structs' fields in place of the column."""
    return rows.explode(list_column).drop_nulls(list_column).unnest(list_column)


def _encode_json(attempts: pl.Expr) -> pl.Expr:
    """Encode a list as JSON: the text that Polars writes for a struct of it, without the struct."""
    prefix = '{"attempts":'
    text = pl.struct(attempts.alias("attempts")).struct.json_encode()
    return text.str.slice(len(prefix)).str.head(-1).alias("attempts")
