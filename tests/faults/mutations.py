"""Seeded mutations of the files of a trace: bytes, lines, cells, packing and neighbouring files.

A trace maps names to bytes, or to an Odd entry that is no plain file. Each mutation draws from the passed generator,
so a seed gives the same bytes everywhere.
"""

import gzip
import io
import lzma
import os
import random
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import zstandard


@dataclass(frozen=True)
class Odd:
    """A directory, a link or a named pipe in place of a file; target: the link's target."""

    kind: str
    target: str = ""


Entries = dict[str, bytes | Odd]
Mutation = Callable[[random.Random, Entries], str]

CELLS = (
    *(
        b"",
        b" ",
        b"0",
        b"-1",
        b"-0.5",
        b"1e400",
        b"nan",
        b"inf",
        b"-inf",
        b"9" * 30,
        b"1e18",
        b"0x1F",
        b"1_000",
        b"1,5",
    ),
    *(b"None", b"NULL", b"N/A", b"Unknown", b"true", b"1970-01-01 00:00:00", b"2025-02-30T25:61:61", b"99999-01-01"),
    *(b"=1+1", b"@SUM(A1)", b"+1", b"../../../etc/passwd", b"<script>alert(1)</script>", b"{a}", b"{{a}}", b"$(id)"),
    *(
        "日本語".encode(),
        "🔥".encode(),
        "\u202egpj.exe".encode(),
        "é".encode("latin-1"),
        b"\xed\xa0\x80",
        b"\x00",
        b"\x1b[2J",
    ),
    *(b'"', b'"unclosed', b"a|b|c", b"a,b,c", b"a\tb", b"n[001-9999999]", b"n[3-1]", b"x" * 100_000, b"[" * 5_000),
)
PACKED = {
    ".gz": lambda content: gzip.compress(content, mtime=0),
    ".zst": zstandard.compress,
    ".xz": lzma.compress,
    ".zip": lambda content: _zipped({"table.csv": content}),
    ".tar.gz": lambda content: gzip.compress(_tarred({"table.csv": content}), mtime=0),
}


def _zipped(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


def _tarred(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def _file(draw: random.Random, entries: Entries) -> str:
    return draw.choice(sorted(name for name, content in entries.items() if isinstance(content, bytes)))


def _on_bytes(change: Callable[[random.Random, bytes], bytes]) -> Mutation:
    def mutate(draw: random.Random, entries: Entries) -> str:
        name = _file(draw, entries)
        entries[name] = change(draw, entries[name])
        return name

    mutate.__name__ = change.__name__
    return mutate


def _on_lines(change: Callable[[random.Random, list[bytes]], list[bytes]]) -> Mutation:
    def change_bytes(draw: random.Random, content: bytes) -> bytes:
        return b"\n".join(change(draw, content.split(b"\n")))

    change_bytes.__name__ = change.__name__
    return _on_bytes(change_bytes)


def _delimiter(header: bytes) -> bytes:
    return max((b",", b"|", b"\t", b";"), key=header.count)


# Bytes --------------------------------------------------------------------------------------------------


def cut_short(draw, content):
    return content[: draw.randrange(len(content) + 1)]


def bytes_changed(draw, content):
    mutable = bytearray(content)
    for _ in range(min(len(mutable), draw.choice([1, 3, 30]))):
        mutable[draw.randrange(len(mutable))] = draw.randrange(256)
    return bytes(mutable)


def bytes_dropped(draw, content):
    start = draw.randrange(len(content) + 1)
    return content[:start] + content[start + draw.choice([1, 10, 1000]) :]


def bytes_inserted(draw, content):
    position = draw.randrange(len(content) + 1)
    return (
        content[:position]
        + draw.choice([b"\0" * 50, draw.randbytes(200), b"\xff\xfe", b"\xef\xbb\xbf", b"\r"])
        + content[position:]
    )


def encoding_changed(draw, content):
    text = content.decode("utf-8", errors="replace")
    return draw.choice(
        [text.encode("utf-16"), text.encode("utf-8-sig"), text.encode("utf-32"), text.encode("cp037", "replace")]
    )


def line_ends_changed(draw, content):
    end = draw.choice([b"\r\n", b"\r", b"\n\r", b"\n\n", "\u2028".encode(), b"\x0b"])
    return content.replace(b"\n", end) if draw.random() < 0.7 else content.replace(b"\n", end, len(content) // 400)


def content_replaced(draw, _):
    contents = [b"", b"\n", b"\n" * 5000, b" ", b"{}", b"[]", b"null", b"<html><body>404</body></html>", b"\0" * 4096]
    return draw.choice([*contents, draw.randbytes(3000), b"PAR1" + draw.randbytes(50), b"\x1f\x8b", b"x^" + b"a" * 30])


# Lines --------------------------------------------------------------------------------------------------


def a_prefix(draw, lines):
    return [*lines[: draw.choice([1, 2, 3, 4, 6, 11, 21, 51])], b""]


def lines_repeated(draw, lines):
    start = draw.randrange(len(lines))
    return lines[: start + 20] + lines[start:]


def lines_shuffled(draw, lines):
    head, body = lines[:1], lines[1:-1]
    draw.shuffle(body)
    return [*head, *body, *lines[-1:]]


def header_changed(draw, lines):
    delimiter = _delimiter(lines[0])
    names = lines[0].split(delimiter)
    index = draw.randrange(len(names))
    ways = {
        "gone": names[:index] + names[index + 1 :],
        "twice": [*names[:index], names[index], *names[index:]],
        "quoted": [b'"' + name + b'"' for name in names],
        "upper": [name.upper() for name in names],
        "long": [*names[:index], b'"' + b"h" * 200_000 + b'"', *names[index + 1 :]],
        "turned": names[::-1],
    }
    return [delimiter.join(ways[draw.choice(sorted(ways))]), *lines[1:]]


def another_delimiter(draw, lines):
    delimiter = _delimiter(lines[0])
    return [line.replace(delimiter, draw.choice([b";", b"\t", b"|", b","])) for line in lines]


def cells_changed(draw, lines):
    delimiter, new_lines = _delimiter(lines[0]), list(lines)
    for _ in range(draw.choice([1, 5, len(lines) // 3 + 1])):
        row_index = draw.randrange(len(lines))
        cells = new_lines[row_index].split(delimiter)
        cells[draw.randrange(len(cells))] = draw.choice(CELLS)
        new_lines[row_index] = delimiter.join(cells)
    return new_lines


def constant_column(draw, lines):
    delimiter = _delimiter(lines[0])
    index, cell = draw.randrange(lines[0].count(delimiter) + 1), draw.choice(CELLS)
    rows = [line.split(delimiter) for line in lines[1:]]
    return [
        lines[0],
        *(delimiter.join([*row[:index], cell, *row[index + 1 :]] if len(row) > index else row) for row in rows),
    ]


def shuffled_column(draw, lines):
    delimiter = _delimiter(lines[0])
    index = draw.randrange(lines[0].count(delimiter) + 1)
    rows = [line.split(delimiter) for line in lines]
    cells = [row[index] for row in rows[1:] if len(row) > index]
    draw.shuffle(cells)
    shuffled_cells = iter(cells)
    return [
        lines[0],
        *(
            delimiter.join([*row[:index], next(shuffled_cells), *row[index + 1 :]] if len(row) > index else row)
            for row in rows[1:]
        ),
    ]


def a_long_cell(draw, lines):
    delimiter, row_index = _delimiter(lines[0]), draw.randrange(len(lines))
    cells = lines[row_index].split(delimiter)
    cells[draw.randrange(len(cells))] = b"L" * draw.choice([70_000, 2_000_000, 8_000_000])
    return [*lines[:row_index], delimiter.join(cells), *lines[row_index + 1 :]]


# Packing and neighbouring files ---------------------------------------------------------------------------


def packed(draw: random.Random, entries: Entries) -> str:
    name, suffix = _file(draw, entries), draw.choice(sorted(PACKED))
    content = PACKED[suffix](entries.pop(name))
    harm = draw.choice([None, None, cut_short, bytes_changed])
    name_suffix = draw.choice([suffix, suffix, suffix, suffix.upper(), ""])
    entries[f"{name}{name_suffix}"] = harm(draw, content) if harm else content
    return f"{name}{name_suffix} {harm.__name__ if harm else 'whole'}"


def a_bomb(draw: random.Random, entries: Entries) -> str:
    name = _file(draw, entries)
    head = entries[name].partition(b"\n")[0] + b"\n" if draw.random() < 0.5 else b""
    entries[f"{name}.gz"] = gzip.compress(head + draw.choice([b"\n", b" ", b"0"]) * 200_000_000, 1, mtime=0)
    del entries[name]
    return name


def foreign_file(draw: random.Random, entries: Entries) -> str:
    name = _file(draw, entries)
    stem, dot, suffix = name.partition(".")
    names = [
        f"{stem}-b{dot}{suffix}{draw.choice(['', '.zip', '.tar.gz', '.bak', '~', '.gz'])}",
        "notes.md",
        "README.txt",
    ]
    names += [
        ".hidden.csv",
        f"{stem}[1]{dot}{suffix}",
        f"{stem.upper()}{dot}{suffix}",
        "a b.csv",
        "ü{x}.txt",
        "-rf.csv",
    ]
    new_name = draw.choice(names)
    suffix = next((suffix for suffix in PACKED if new_name.endswith(suffix)), None)
    content = draw.choice([entries[name], b"", b"some words\n"])
    entries.setdefault(new_name, PACKED[suffix](content) if suffix else content)
    return new_name


def special_file(draw: random.Random, entries: Entries) -> str:
    name = _file(draw, entries)
    kind = draw.choice(["folder", "pipe", "dangling", "loop", "link"])
    new_name = draw.choice([name, f"{name}.gz", f"other-{name}"])
    if new_name == name or kind == "link":
        moved = f".{name}.moved"
        entries[moved] = entries[name]
        target = moved
    else:
        target = name
    if new_name == name:
        del entries[name]
    entries[new_name] = Odd(kind, {"dangling": "nowhere", "loop": new_name, "link": target}.get(kind, ""))
    return f"{new_name} is a {kind}"


def packed_beside(draw: random.Random, entries: Entries) -> str:
    name, suffix = _file(draw, entries), draw.choice(sorted(PACKED))
    entries[f"{name}{suffix}"] = PACKED[suffix](entries[name])
    return f"{name}{suffix}"


def file_removed(draw: random.Random, entries: Entries) -> str:
    name = _file(draw, entries)
    del entries[name]
    return name


_BYTES = (
    cut_short,
    bytes_changed,
    bytes_dropped,
    bytes_inserted,
    encoding_changed,
    line_ends_changed,
    content_replaced,
)
_LINES = (a_prefix, lines_repeated, lines_shuffled, header_changed, another_delimiter, cells_changed, constant_column)
_LINES += (shuffled_column, a_long_cell)
MUTATIONS: tuple[Mutation, ...] = (
    *map(_on_bytes, _BYTES),
    *map(_on_lines, _LINES),
    *(packed, foreign_file, special_file, packed_beside, file_removed),
)
# Rare, because each takes seconds.
SELDOM = (a_bomb,)


def mutated(draw: random.Random, files: dict[str, bytes]) -> tuple[str, Entries]:
    """Return the mutations in words and the mutated entries of the folder."""
    entries: Entries = dict(files)
    descriptions = []
    chosen = draw.choices(MUTATIONS, k=draw.choice([1, 1, 1, 2, 3])) if draw.random() < 0.99 else [*SELDOM]
    for mutation in chosen:
        if any(isinstance(content, bytes) and content for content in entries.values()):
            descriptions.append(f"{mutation.__name__} ({mutation(draw, entries)})")
    return ", ".join(descriptions), entries


def lay_out(folder: Path, entries: Entries) -> None:
    """Create the folder and write the entries into it."""
    folder.mkdir(parents=True)
    for name, content in entries.items():
        path = folder / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif content.kind == "folder":
            path.mkdir()
        elif content.kind == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to(content.target)
