"""Read and search the ends of the logs of failed jobs: a JSON object per line, from a user's script, with any bytes.

They are read block by block and searched by the rules; if no rule matches, the most informative line is kept.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl

from ttf.analyses.causes.classify_failures import LOG_TAILS
from ttf.analyses.causes.classify_failures.reason_rules import ATTEMPT_COLUMNS, KEY, search
from ttf.raw.raw_files import read_unpacked
from ttf.records.jobs import choose_text

# Problems of a line, by code.
CODES = {
    "not_json": "the line is not a JSON object with job_id and text",
    "too_long": "the line is longer than 16 MiB",
    "not_an_attempt": "attempt is not a whole number from 0",
    "unknown_job": "the trace has no such job, or it never ran",
    "unknown_attempt": "the job has no such attempt",
    "not_failed": "the attempt did not fail, so its text is not looked at",
}
LONGEST_LINE_BYTES = 16 * 1024 * 1024
BLOCK_BYTES = 8 * 1024 * 1024

COLUMNS = {"line": pl.Int64, "job_id": pl.String, "task": pl.String, "attempt": pl.Int64, "text": pl.String}
# Length of the end of an unmatched log in which the line to show is searched.
SHOWN_FROM_CHARACTERS = 4096
LONGEST_LINE = 200
_ERROR_WORDS = r"(?i)error|exception|fail|fatal|abort|killed|cannot|could not|unable|denied|panic|invalid|not found"


def read_tails(path: Path, most_characters: int) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield per block (usable lines: COLUMNS, the last `most_characters` of the text; line and code of the others).

    line counts from 1; blank lines are skipped. attempt is null if the line has none. Ids may be numbers. Bytes that
    are not UTF-8 become U+FFFD. Raises StudyError if the file is empty or its compression is damaged.
    """
    for first, lines in _read_blocks(path):
        texts = [line.decode("utf-8", "replace") for line in lines]
        frame = pl.DataFrame(
            {"line": range(first, first + len(texts)), "raw": texts}, schema_overrides={"line": pl.Int64}
        )
        frame = frame.filter(pl.col("raw").str.contains(r"\S"))
        # A JSON path into a line that is no JSON returns null.
        rows = frame.select(
            "line",
            **{name: pl.col("raw").str.json_path_match(f"$.{name}") for name in ("job_id", "task", "attempt", "text")},
            length=pl.col("raw").str.len_bytes(),
        )
        attempt = pl.col("attempt").str.strip_chars().cast(pl.Int64, strict=False)
        problems = {
            "too_long": pl.col("length") > LONGEST_LINE_BYTES,
            "not_json": pl.any_horizontal(pl.col("job_id", "text").is_null()),
            "not_an_attempt": pl.col("attempt").is_not_null() & ~(attempt >= 0).fill_null(False),
        }
        rows = rows.with_columns(
            code=choose_text(problems), attempt=attempt, text=pl.col("text").str.tail(most_characters)
        )
        usable = rows.filter(pl.col("code").is_null()).select(*COLUMNS)
        yield usable, rows.filter(pl.col("code").is_not_null()).select("line", "code")


def _read_blocks(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Yield (number of the first line, lines) of each block; cut a line just above the longest length."""
    number, rest = 1, b""
    for chunk in _merge_chunks(read_unpacked(path)):
        *lines, last = (rest + chunk).split(b"\n")
        if lines:
            yield number, lines
            number += len(lines)
        # A line that is too long for memory is rejected without keeping all of it.
        rest = last[: LONGEST_LINE_BYTES + 1]
    if rest:
        yield number, [rest]


def _merge_chunks(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in larger pieces, because each block has fixed costs."""
    pieces, size = [], 0
    for chunk in chunks:
        pieces.append(chunk)
        size += len(chunk)
        if size >= BLOCK_BYTES:
            yield b"".join(pieces)
            pieces, size = [], 0
    if pieces:
        yield b"".join(pieces)


def match_tails(
    tails: Iterable[tuple[pl.DataFrame, pl.DataFrame]], attempts: pl.DataFrame, taxonomy: dict
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return (KEY, rule and shown for each log of a failed attempt, the table LOG_TAILS).

    tails: from `read_tails`; attempts: from `list_attempts`. rule: index of the first rule that matches; if it is null,
    `shown` is the most informative line (see `informative_line`).
    """
    has_failed = attempts.select(*KEY, "failed")
    last_attempts = attempts.filter("is_last").select(*KEY[:2], last="attempt")
    texts, lines = [], []
    for tail, wrong_lines in tails:
        rows = tail.join(last_attempts, on=KEY[:2], how="left", nulls_equal=True, maintain_order="left")
        rows = rows.with_columns(pl.coalesce("attempt", "last")).join(
            has_failed, on=KEY, how="left", nulls_equal=True, maintain_order="left"
        )
        problems = {
            "unknown_job": pl.col("last").is_null(),
            "unknown_attempt": pl.col("failed").is_null(),
            "not_failed": ~pl.col("failed"),
        }
        rows = rows.with_columns(code=choose_text(problems))
        lines += [wrong_lines, rows.select("line", "code")]
        rows = rows.filter(pl.col("code").is_null())
        rows = rows.with_columns(rule=search(rows["text"], taxonomy["rules"]))
        shown = pl.when(pl.col("rule").is_null()).then("text")
        texts.append(rows.select(*KEY, "rule", shown=informative_line(rows.select(shown).to_series())))
    schema = {name: ATTEMPT_COLUMNS[name] for name in KEY} | {"rule": pl.Int64, "shown": pl.String}
    matches = pl.concat([pl.DataFrame(schema=schema), *texts])
    all_lines = pl.concat([pl.DataFrame(schema={"line": pl.Int64, "code": pl.String}), *lines])
    return matches, _count_by_code(all_lines.sort("line"))


def _count_by_code(lines: pl.DataFrame) -> pl.DataFrame:
    """Build LOG_TAILS: a first row for all non-blank lines, then a row per code; no rows without lines."""
    rows: list[tuple] = []
    if lines.height:
        rows.append(("lines", "info", lines.height, None, None, "lines that are not blank"))
    for code, sentence in CODES.items():
        group = lines.filter(pl.col("code") == code)
        if group.height:
            first = ", ".join(str(line) for line in group["line"].head(5))
            severity = "info" if code == "not_failed" else "error"
            rows.append((code, severity, group.height, group.height / lines.height, first, sentence))
    return pl.DataFrame(rows, schema=LOG_TAILS.schema, orient="row")


def informative_line(texts: pl.Series) -> pl.Series:
    """Return the last line of each text with a word such as error, else its last line, normalised; null if blank.

    Only the last SHOWN_FROM_CHARACTERS are searched; the line has at most LONGEST_LINE.
    """
    rows = pl.DataFrame({"row": pl.int_range(len(texts), eager=True), "line": texts})
    lines = (
        rows.drop_nulls()
        .with_columns(pl.col("line").str.tail(SHOWN_FROM_CHARACTERS).str.split("\n"))
        .explode("line")
        .with_columns(normalise_line("line"))
        .filter(pl.col("line") != "")
    )
    error_line = pl.col("line").filter(pl.col("line").str.contains(_ERROR_WORDS)).last()
    last_lines = lines.group_by("row", maintain_order=True).agg(pl.coalesce(error_line, pl.col("line").last()))
    last_lines = last_lines.with_columns(pl.col("line").str.head(LONGEST_LINE))
    return rows.select("row").join(last_lines, on="row", how="left", maintain_order="left")["line"]


def normalise_line(column: str) -> pl.Expr:
    """Replace numbers and long hexadecimal words in a text column by #, and control characters by one space."""
    printable = pl.col(column).str.replace_all(r"\x1b\[[0-9;]*[A-Za-z]", "").str.replace_all(r"[\p{C}\s]+", " ")
    return printable.str.replace_all(r"0[xX][0-9a-fA-F]+|\b[0-9a-fA-F]{8,}\b|\d+", "#").str.strip_chars()
