"""Reading a raw table as text, plain or compressed, in blocks of whole lines.

Nothing is unpacked to disk: an archive is read as a stream, so no name inside it is ever used as a path.
"""

import gzip
import lzma
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from ttf.errors import StudyError

# Large enough that a block's fixed costs vanish, small enough that the allocator reuses its memory.
BLOCK_BYTES = 8 * 1024 * 1024
# Longer than any line of a table: a file without line ends is not read into memory whole to find that out.
LONGEST_LINE_BYTES = 16 * 1024 * 1024
# No table of any trace comes near it; a small archive made to fill a disk does, and a server that never stops.
MOST_BYTES = 200 * 10**9
# tarfile holds the head of a member in memory, however long it says it is.
LONGEST_HEAD_BYTES = 64 * 1024 * 1024

# Ending -> the packing's name and the bytes that a file of it starts with.
_PACKINGS = {
    ".gz": ("gzip", b"\x1f\x8b"),
    ".xz": ("xz", b"\xfd7zXZ\x00"),
    ".zst": ("zstd", b"\x28\xb5\x2f\xfd"),
}
_ARCHIVES = (".tar.gz", ".tgz")

_FETCH_AGAIN = "Fetch the file again; compare its size or checksum with the publisher's."
_OR_FETCH_AGAIN = f"if not: f{_FETCH_AGAIN[1:]}"
_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, tarfile.TarError)


def blocks_of_lines(path: Path, block_bytes: int | None = None) -> Iterator[bytes]:
    r"""Yield the table's text in blocks of whole lines, each ending with \n (also the file's last line; \r\n is \n).

    Raises StudyError for an empty file, a damaged or truncated archive, and an HTML page in place of a table.
    """
    pieces: list[bytes] = []
    size = after_last_line = 0
    checked = False
    block_bytes = block_bytes or BLOCK_BYTES
    for chunk in unpacked(path, size=block_bytes):
        cut = chunk.rfind(b"\n") + 1
        after_last_line = len(chunk) - cut if cut else after_last_line + len(chunk)
        if after_last_line > LONGEST_LINE_BYTES:
            raise StudyError(f"{path}: a line longer than {LONGEST_LINE_BYTES:,} bytes: not a table. {_FETCH_AGAIN}")
        size += len(chunk)
        if not cut or size < block_bytes:
            pieces.append(chunk)
            continue
        block = b"".join((*pieces, memoryview(chunk)[:cut]))
        pieces, size = [chunk[cut:]], after_last_line
        checked = checked or is_a_table(path, block)
        yield _with_plain_line_ends(block)
    rest = b"".join(pieces)
    if rest:
        if not checked:
            is_a_table(path, rest)
        yield _with_plain_line_ends(rest if rest.endswith(b"\n") else rest + b"\n")


def _with_plain_line_ends(block: bytes) -> bytes:
    # Looking for the one byte first is ten times faster than a replacement that finds nothing.
    return block.replace(b"\r\n", b"\n") if b"\r" in block else block


def is_a_table(path: Path, block: bytes) -> bool:
    """Refuse what is plainly something else; False where white space is all there is to see."""
    if block.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise StudyError(f"{path}: line 1: the text is UTF-16; expected UTF-8. Save the table as CSV in UTF-8.")
    if block[257:262] == b"ustar" and b"\0" in block[:257]:
        raise StudyError(
            f"{path}: this is a tar archive, which its name does not say. Compress it and name it .tar.gz."
        )
    start = block[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()
    if start[:1] == b"<":
        raise StudyError(_web_page(path))
    return bool(start)


def _web_page(path: Path) -> str:
    return (
        f"{path}: line 1: this is an HTML or XML page, not a table: a download probably saved the server's "
        f"error page under this name. {_FETCH_AGAIN}"
    )


def unpacked(path: Path, name: str | None = None, size: int = 1 << 20) -> Iterator[bytes]:
    """Yield the table's bytes as they are, unpacked, in pieces of about `size` bytes or fewer.

    `name` has the ending that says how the file is packed, if its own name does not. Raises as blocks_of_lines does.
    """
    name = (name or path.name).lower()
    archive = name.endswith(_ARCHIVES)
    ending = ".gz" if archive else next((ending for ending in _PACKINGS if name.endswith(ending)), "")
    total = 0
    try:
        _check_magic(path, ending)
        for chunk in _unpacked_archive(path, size) if archive else _unpacked(path, ending, size):
            total += len(chunk)
            if total > MOST_BYTES:
                raise StudyError(f"{path}: unpacks to more than {MOST_BYTES:,} bytes: not a table. {_FETCH_AGAIN}")
            yield chunk
    except _DAMAGED as error:
        raise StudyError(f"{path}: the compressed file is damaged or cut short ({error}). {_FETCH_AGAIN}") from None
    except OSError as error:
        raise StudyError(
            f"{path}: cannot be read: {error.strerror or error}. Check that the file is there and may be read."
        ) from None
    if not total:
        raise StudyError(f"{path}: the file is empty inside its packing. {_FETCH_AGAIN}")


def _check_magic(path: Path, ending: str) -> None:
    """Refuse a file whose first bytes are of another kind than its name says."""
    with path.open("rb") as file:
        head = file.read(4096)
    if not head:
        raise StudyError(f"{path}: the file is empty. {_FETCH_AGAIN}")
    if not ending:
        for right, (packing, magic) in _PACKINGS.items():
            if head.startswith(magic):
                raise StudyError(
                    f"{path}: the bytes are {packing}, but the name says plain text. Give it the ending .csv{right} "
                    "(.tar.gz if it is an archive), or unpack it."
                )
        return
    packing, magic = _PACKINGS[ending]
    # Zstandard's skippable frames, which some of its tools write first, have numbers of their own.
    if head[: len(magic)] == magic[: len(head)] or (packing == "zstd" and head[1:4] == b"\x2a\x4d\x18"):
        return
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
        raise StudyError(f"{_web_page(path)} (Its name ends in {ending}; the bytes are not {packing}.)")
    raise StudyError(
        f"{path}: the bytes are not {packing}, though the name ends in {ending}. "
        f"If it is plain text, give it the ending .csv; {_OR_FETCH_AGAIN}"
    )


def _unpacked(path: Path, ending: str, size: int) -> Iterator[bytes]:
    if ending == ".zst":
        yield from _unpacked_zstd(path)
        return
    opener = {".gz": gzip.open, ".xz": lzma.open}.get(ending, open)
    with opener(path, "rb") as stream:
        while chunk := stream.read(size):
            yield chunk


def _unpacked_archive(path: Path, size: int) -> Iterator[bytes]:
    """The one file in a .tar.gz (folders and the dot files that macOS adds beside it do not count)."""
    found = None
    # tarfile's own reading of gzip neither checks the sum at the end nor misses it.
    with gzip.open(path, "rb") as unzipped:
        source = _Guarded(path, unzipped)
        try:
            with tarfile.open(fileobj=source, mode="r|", bufsize=1 << 20) as archive:
                for member in archive:
                    if member.isdir() or Path(member.name).name.startswith("._"):
                        continue
                    if not member.isfile():
                        raise StudyError(f"{path}: holds {member.name!r}, which is no plain file. {_FETCH_AGAIN}")
                    if found is not None:
                        raise StudyError(
                            f"{path}: holds {found!r} and {member.name!r}; expected one table in an archive. "
                            "Pack each table by itself."
                        )
                    found = member.name
                    stream = archive.extractfile(member)
                    source.in_table = True
                    while chunk := stream.read(size):
                        yield chunk
                    source.in_table = False
        except tarfile.TarError as error:
            if found is None:
                raise StudyError(
                    f"{path}: the gzip data hold no tar archive ({error}). If they are the table itself, give the file "
                    f"the ending .csv.gz; {_OR_FETCH_AGAIN}"
                ) from None
            raise
        while source.read(1 << 20):
            pass
    if found is None:
        raise StudyError(f"{path}: the archive holds no file. {_FETCH_AGAIN}")


class _Guarded:
    """The tar inside an archive; stops where far too much of it belongs to no table."""

    def __init__(self, path: Path, file: gzip.GzipFile):
        self.path, self.file, self.in_table, self.beside = path, file, False, 0

    def read(self, size: int) -> bytes:
        chunk = self.file.read(size)
        self.beside += 0 if self.in_table else len(chunk)
        if self.beside > LONGEST_HEAD_BYTES:
            raise StudyError(
                f"{self.path}: more than {LONGEST_HEAD_BYTES:,} bytes of the archive belong to no table. {_FETCH_AGAIN}"
            )
        return chunk


def _unpacked_zstd(path: Path) -> Iterator[bytes]:
    """Frame by frame, because the library's own reader takes a file cut short for one that ends there."""
    import zstandard

    decompressor = zstandard.ZstdDecompressor()
    frame = None
    with path.open("rb") as file:
        # A few kilobytes at a time: what they unpack to comes in one piece.
        while compressed := file.read(1 << 14):
            while compressed:
                if frame is None or frame.eof:
                    frame = decompressor.decompressobj()
                try:
                    chunk = frame.decompress(compressed)
                except zstandard.ZstdError as error:
                    raise EOFError(str(error)) from None
                compressed = frame.unused_data if frame.eof else b""
                if chunk:
                    yield chunk
    if frame and not frame.eof:
        raise EOFError("the last frame does not end")
