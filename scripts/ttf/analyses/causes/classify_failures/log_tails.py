"""The ends of the logs of failed jobs: a JSON object a line, as a person's own script wrote them. Any bytes will do.

Read block by block, searched by the rules, and of those that no rule matches the line that says most.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl

from ttf.analyses.causes.classify_failures import LOG_TAILS
from ttf.analyses.causes.classify_failures.reason_rules import ATTEMPT_COLUMNS, KEY, search
from ttf.raw.raw_files import unpacked
from ttf.records.jobs import choose_text

# What is wrong with a line, by code.
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
# Of an unmatched log this much of the end is looked through for the line to show.
SHOWN_FROM_CHARACTERS = 4096
LONGEST_LINE = 200
_TELLING = r"(?i)error|exception|fail|fatal|abort|killed|cannot|could not|unable|denied|panic|invalid|not found"


def read_tails(path: Path, most_characters: int) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield (tails, wrong lines) block by block: COLUMNS with the last `most_characters` of each text; line and code.

    line counts from 1; blank lines are passed over. attempt is null where the line has none. Ids may be numbers. Bytes
    that are not UTF-8 become U+FFFD. Raises StudyError where the file is empty or its packing is damaged.
    """
    for first, lines in _blocks(path):
        texts = [line.decode("utf-8", "replace") for line in lines]
        frame = pl.DataFrame(
            {"line": range(first, first + len(texts)), "raw": texts}, schema_overrides={"line": pl.Int64}
        )
        frame = frame.filter(pl.col("raw").str.contains(r"\S"))
        # A path into what is no JSON finds nothing.
        found = frame.select(
            "line",
            *(
                pl.col("raw").str.json_path_match(f"$.{name}").alias(name)
                for name in ("job_id", "task", "attempt", "text")
            ),
            length=pl.col("raw").str.len_bytes(),
        )
        number = pl.col("attempt").str.strip_chars().cast(pl.Int64, strict=False)
        wrong = {
            "too_long": pl.col("length") > LONGEST_LINE_BYTES,
            "not_json": pl.any_horizontal(pl.col("job_id", "text").is_null()),
            "not_an_attempt": pl.col("attempt").is_not_null() & ~(number >= 0).fill_null(False),
        }
        found = found.with_columns(
            code=choose_text(wrong), attempt=number, text=pl.col("text").str.tail(most_characters)
        )
        right = found.filter(pl.col("code").is_null()).select(*COLUMNS)
        yield right, found.filter(pl.col("code").is_not_null()).select("line", "code")


def _blocks(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """The lines of the file in blocks, with the number of the first; of a line too long so much that it shows."""
    number, rest = 1, b""
    for chunk in _of_some_size(unpacked(path)):
        *lines, last = (rest + chunk).split(b"\n")
        if lines:
            yield number, lines
            number += len(lines)
        # What would never fit into memory need not be kept to be refused.
        rest = last[: LONGEST_LINE_BYTES + 1]
    if rest:
        yield number, [rest]


def _of_some_size(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in larger pieces: a block has its fixed costs."""
    pieces, size = [], 0
    for chunk in chunks:
        pieces.append(chunk)
        size += len(chunk)
        if size >= BLOCK_BYTES:
            yield b"".join(pieces)
            pieces, size = [], 0
    if pieces:
        yield b"".join(pieces)


def in_tails(
    tails: Iterable[tuple[pl.DataFrame, pl.DataFrame]], every: pl.DataFrame, taxonomy: dict
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What the logs say: per text of a failed attempt KEY, rule, shown; what became of the lines (LOG_TAILS).

    tails: what `read_tails` yields; every: of `every_attempt`. rule: the number of the first that matches, else null,
    and then `shown` the line that says most (see `telling_line`).
    """
    attempts = every.select(*KEY, "failed")
    lasts = every.filter("is_last").select(*KEY[:2], last="attempt")
    texts, lines = [], []
    for tail, wrong in tails:
        of_tail = tail.join(lasts, on=KEY[:2], how="left", nulls_equal=True, maintain_order="left")
        of_tail = of_tail.with_columns(pl.coalesce("attempt", "last")).join(
            attempts, on=KEY, how="left", nulls_equal=True, maintain_order="left"
        )
        unused = {
            "unknown_job": pl.col("last").is_null(),
            "unknown_attempt": pl.col("failed").is_null(),
            "not_failed": ~pl.col("failed"),
        }
        of_tail = of_tail.with_columns(code=choose_text(unused))
        lines += [wrong, of_tail.select("line", "code")]
        of_tail = of_tail.filter(pl.col("code").is_null())
        of_tail = of_tail.with_columns(rule=search(of_tail["text"], taxonomy["rules"]))
        shown = pl.when(pl.col("rule").is_null()).then("text")
        texts.append(of_tail.select(*KEY, "rule", shown=telling_line(of_tail.select(shown).to_series())))
    schema = {name: ATTEMPT_COLUMNS[name] for name in KEY} | {"rule": pl.Int64, "shown": pl.String}
    found = pl.concat([pl.DataFrame(schema=schema), *texts])
    return found, _account(pl.concat([pl.DataFrame(schema={"line": pl.Int64, "code": pl.String}), *lines]).sort("line"))


def _account(lines: pl.DataFrame) -> pl.DataFrame:
    """A row per code that occurs, after one for all lines that are not blank: none where there are none."""
    rows = [("lines", "info", lines.height, None, None, "lines that are not blank")] if lines.height else []
    for code, sentence in CODES.items():
        group = lines.filter(pl.col("code") == code)
        if group.height:
            first = ", ".join(str(line) for line in group["line"].head(5))
            severity = "info" if code == "not_failed" else "error"
            rows.append((code, severity, group.height, group.height / lines.height, first, sentence))
    return pl.DataFrame(rows, schema=LOG_TAILS.schema, orient="row")


def telling_line(texts: pl.Series) -> pl.Series:
    """Of each text the last line with a word such as error in it, else the last line, normalised; null for blank texts.

    Of the last SHOWN_FROM_CHARACTERS; at most LONGEST_LINE. Normalised: without control characters, # for numbers and
    for hexadecimal words of eight digits and more: the same complaint is the same line.
    """
    rows = pl.DataFrame({"row": pl.int_range(len(texts), eager=True), "line": texts}).drop_nulls()
    lines = (
        rows.with_columns(pl.col("line").str.tail(SHOWN_FROM_CHARACTERS).str.split("\n"))
        .explode("line")
        .with_columns(normalised("line"))
        .filter(pl.col("line") != "")
    )
    telling = pl.col("line").filter(pl.col("line").str.contains(_TELLING)).last()
    shown = lines.group_by("row", maintain_order=True).agg(pl.coalesce(telling, pl.col("line").last()))
    shown = shown.with_columns(pl.col("line").str.head(LONGEST_LINE))
    return pl.DataFrame({"row": pl.int_range(len(texts), eager=True)}).join(
        shown, on="row", how="left", maintain_order="left"
    )["line"]


def normalised(column: str) -> pl.Expr:
    plain = pl.col(column).str.replace_all(r"\x1b\[[0-9;]*[A-Za-z]", "").str.replace_all(r"[\p{C}\s]+", " ")
    return plain.str.replace_all(r"0[xX][0-9a-fA-F]+|\b[0-9a-fA-F]{8,}\b|\d+", "#").str.strip_chars()
