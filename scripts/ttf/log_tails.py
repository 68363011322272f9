"""The ends of the logs of failed jobs: a JSON object a line, as a person's own script wrote them. Any bytes will do."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from ttf.raw_files import unpacked

# What is wrong with a line, by code.
WRONG = {
    "not_json": "the line is not a JSON object with job_id and text",
    "too_long": "the line is longer than 16 MiB",
    "not_an_attempt": "attempt is not a whole number from 0",
}
LONGEST_LINE_BYTES = 16 * 1024 * 1024
BLOCK_BYTES = 8 * 1024 * 1024

COLUMNS = {"line": pl.Int64, "job_id": pl.String, "task": pl.String, "attempt": pl.Int64, "text": pl.String}


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
        wrong = (
            pl.when(pl.col("length") > LONGEST_LINE_BYTES)
            .then(pl.lit("too_long"))
            .when(pl.any_horizontal(pl.col("job_id", "text").is_null()))
            .then(pl.lit("not_json"))
            .when(pl.col("attempt").is_not_null() & ~(number >= 0).fill_null(False))
            .then(pl.lit("not_an_attempt"))
        )
        found = found.with_columns(code=wrong, attempt=number, text=pl.col("text").str.tail(most_characters))
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
