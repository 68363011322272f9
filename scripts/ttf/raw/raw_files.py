"""Reading a raw table as text, plain or compressed, in blocks of whole lines.

Nothing is unpacked to disk: an archive is read as a stream, so no name inside it is ever used as a path. A path that
goes on behind an archive names a file in it: `traces.tar.gz/log.csv`.
"""

import gzip
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from ttf.engine.errors import StudyError
from ttf.raw.headers import DELIMITERS

# Large enough that a block's fixed costs vanish, small enough that the allocator reuses its memory.
BLOCK_BYTES = 16 * 1024 * 1024
# A plain file is looked into so far for the end of a line, so that a piece of it is a block as it stands.
NEAR_BYTES = 1 << 16
# Longer than any line of a table: a file without line ends is not read into memory whole to find that out.
LONGEST_LINE_BYTES = 16 * 1024 * 1024
# No table of any trace comes near it; a small archive made to fill a disk does, and a server that never stops.
MOST_BYTES = 200 * 10**9
# So many times its own size a packed table may be once it is past the floor: ten is usual, a hundred was never seen.
MOST_TIMES_PACKED = 200
PACKED_FLOOR_BYTES = 64 * 1024 * 1024
# A block has no more lines, however short they are: each is looked at by itself where something is amiss.
MOST_LINES = 1 << 18
# tarfile holds the head of a member in memory, however long it says it is.
LONGEST_HEAD_BYTES = 64 * 1024 * 1024
# Names of an archive's files in a message.
MOST_NAMES = 12

# Ending -> the packing's name and the bytes that a file of it starts with.
_PACKINGS = {
    ".gz": ("gzip", b"\x1f\x8b"),
    ".xz": ("xz", b"\xfd7zXZ\x00"),
    ".zst": ("zstd", b"\x28\xb5\x2f\xfd"),
    ".zip": ("zip", b"PK\x03\x04"),
}
_TARS = (".tar.gz", ".tgz")
ARCHIVES = (*_TARS, ".zip")
# Of one table.
PACKED = (".gz", ".zst", ".xz")

_FETCH_AGAIN = "Fetch the file again; compare its size or checksum with the publisher's."
_OR_UNPACK = "Look into the file; if it is the right one, unpack it."
_OR_FETCH_AGAIN = f"if not: f{_FETCH_AGAIN[1:]}"
_LINE_ENDS = (
    "its lines end in CR, as on old Macs; expected LF or CR LF. "
    r"Convert the file: tr '\r' '\n' < the file > a new one, and give that."
)
_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile)


def tables_in(given: Mapping[str, Sequence[str]], members: Mapping[str, Sequence[str]]) -> dict[str, list[Path]]:
    """Table -> the files it is read from: those that are given for it, or what `members` names in these archives."""
    return {
        table: [Path(path) / member for path, member in zip(given[table], names, strict=True)]
        for table, names in members.items()
    }


def blocks_of_lines(path: Path, block_bytes: int | None = None) -> Iterator[bytes]:
    r"""Yield the table's text in blocks of whole lines, each ending with \n (also the file's last line; \r\n is \n).

    Raises StudyError for an empty file, a damaged or truncated archive, a file that changes while it is read, lines
    that end in \r, and an HTML page in place of a table.
    """
    header, lines = None, 0
    for block in _whole_blocks(path, block_bytes):
        if may_have_a_line_of(block, LONGEST_LINE_BYTES) and max(map(len, block.split(b"\n"))) > LONGEST_LINE_BYTES:
            raise _too_long_a_line(path)
        if header is None:
            header = block[: block.find(b"\n")].partition(b"\r")[0]
        if b"\r" in block:
            _refuse_lone_returns(path, block, header, lines)
        count = count_lines(block)
        lines += count
        yield from _of_few_lines(block) if count > MOST_LINES else (block,)


def _whole_blocks(path: Path, block_bytes: int | None) -> Iterator[bytes]:
    pieces: list[bytes] = []
    size = after_last_line = 0
    checked = False
    block_bytes = block_bytes or BLOCK_BYTES
    for chunk in unpacked(path, size=block_bytes):
        cut = chunk.rfind(b"\n") + 1
        after_last_line = len(chunk) - cut if cut else after_last_line + len(chunk)
        if after_last_line > LONGEST_LINE_BYTES:
            if chunk.count(b"\r") > 1:
                raise StudyError(f"{path}: line 1: {_LINE_ENDS}")
            raise _too_long_a_line(path)
        size += len(chunk)
        if not cut or size < block_bytes:
            pieces.append(chunk)
            continue
        rest = chunk[cut:]
        block = b"".join((*pieces, memoryview(chunk)[:cut])) if pieces or rest else chunk
        pieces, size = [rest] if rest else [], after_last_line
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


def may_have_a_line_of(block: bytes, longest: int) -> bool:
    """Whether any line may be longer than so many bytes: where each half of that has a line's end, none is."""
    half = longest // 2
    return any(block.find(b"\n", start, start + half) < 0 for start in range(0, len(block) - half, half))


def count_lines(block: bytes) -> int:
    """Number of line ends."""
    if len(block) < 1 << 20:  # NumPy is imported for large tables alone
        return block.count(b"\n")
    import numpy as np  # a quarter of the time that bytes.count takes

    return int(np.count_nonzero(np.frombuffer(block, np.uint8) == ord("\n")))


def _too_long_a_line(path: Path) -> StudyError:
    return StudyError(f"{path}: a line longer than {LONGEST_LINE_BYTES:,} bytes: not a table. {_FETCH_AGAIN}")


def _of_few_lines(block: bytes) -> Iterator[bytes]:
    """The block, in pieces where it has more than MOST_LINES."""
    if count_lines(block) <= MOST_LINES:
        yield block
        return
    middle = block.find(b"\n", len(block) // 2) + 1
    if middle in (0, len(block)):  # one long line after many short ones
        middle = block.rfind(b"\n", 0, len(block) // 2) + 1
    yield from _of_few_lines(block[:middle])
    yield from _of_few_lines(block[middle:])


def _refuse_lone_returns(path: Path, block: bytes, header: bytes, before: int) -> None:
    r"""Raise StudyError where \r stands between two rows: each has as many delimiters as the header.

    Elsewhere it is a part of somebody's text. before: how many lines came before the block.
    """
    mark = max((delimiter.encode() for delimiter in DELIMITERS), key=header.count)
    fields = header.count(mark)
    for number, line in enumerate(block.split(b"\n") if fields else (), before + 1):
        if b"\r" in line and sum(part.count(mark) == fields for part in line.split(b"\r")) > 1:
            raise StudyError(f"{path}: line {number}: {_LINE_ENDS}")


def is_a_table(path: Path, block: bytes) -> bool:
    """Refuse what is plainly something else; False where white space is all there is to see."""
    if block.startswith((b"\xff\xfe", b"\xfe\xff")) or (b"\0" in block[:2] and not block.startswith(b"\0\0")):
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
    path, member = archive_and_member(path)
    name = (name or path.name).lower()
    ending = ".gz" if name.endswith(_TARS) else next((ending for ending in _PACKINGS if name.endswith(ending)), "")
    total = 0
    try:
        before = _state(path)
        _check_magic(path, ending)
        if name.endswith(_TARS):
            chunks = _unpacked_tar(path, size, member)
        else:
            chunks = _unpacked_zip(path, size, member) if ending == ".zip" else _unpacked(path, ending, size)
        for chunk in chunks:
            total += len(chunk)
            if total > MOST_BYTES or ending:
                _refuse_too_large(path, total, before)
            yield chunk
        if _state(path) != before:
            raise StudyError(f"{path}: the file changed while it was read. Run the command again once it is complete.")
    except _DAMAGED as error:
        raise StudyError(f"{path}: the compressed file is damaged or cut short ({error}). {_FETCH_AGAIN}") from None
    except OSError as error:
        raise StudyError(
            f"{path}: cannot be read: {error.strerror or error}. Check that the file is there and may be read."
        ) from None
    if not total:
        raise StudyError(f"{path}: the file is empty inside its packing. {_FETCH_AGAIN}")


def _state(path: Path) -> tuple[int, int]:
    """Size in bytes and time of the last change."""
    seen = path.stat()
    return seen.st_size, seen.st_mtime_ns


def _refuse_too_large(path: Path, total: int, state: tuple[int, int]) -> None:
    """Raise StudyError where more bytes come out of a file than belong to any table of its size."""
    if total > MOST_BYTES:
        raise StudyError(f"{path}: unpacks to more than {MOST_BYTES:,} bytes: not a table. {_FETCH_AGAIN}")
    if total > max(PACKED_FLOOR_BYTES, MOST_TIMES_PACKED * state[0]):
        raise StudyError(
            f"{path}: its {state[0]:,} bytes unpack to more than {MOST_TIMES_PACKED} times as many: no table is packed "
            f"so tightly. {_OR_UNPACK}"
        )


def archive_and_member(path: Path) -> tuple[Path, PurePosixPath | None]:
    """The file on the disk, and what is named in it where the path goes on behind an archive."""
    for above in path.parents:
        if above.name.lower().endswith(ARCHIVES) and not above.is_dir():
            return above, PurePosixPath(path.relative_to(above))
    return path, None


def _is_wanted(name: str, member: PurePosixPath | None) -> bool:
    """Whether a file in an archive is meant: its path ends in `member`. The dot files that macOS adds never are."""
    parts = PurePosixPath(name).parts
    is_added = bool(parts) and parts[-1].startswith("._")
    return not is_added and (member is None or parts[-len(member.parts) :] == member.parts)


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
                    f"{path}: the bytes are {packing}, but the name says plain text. Give it the ending "
                    f"{right if right in ARCHIVES else f'.csv{right}'} "
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
    if not ending:
        yield from _plain(path, size)
        return
    with {".gz": gzip.open, ".xz": lzma.open}[ending](path, "rb") as stream:
        yield from iter(partial(stream.read, size), b"")


def _plain(path: Path, size: int) -> Iterator[bytes]:
    """A plain file in pieces that end with a line, unless the line's end is far off."""
    start = 0
    with path.open("rb") as file:
        while True:
            after = os.pread(file.fileno(), NEAR_BYTES, start + size)
            chunk = os.pread(file.fileno(), size + after.find(b"\n") + 1, start)
            if not chunk:
                return
            start += len(chunk)
            yield chunk


def _more_than_one(path: Path, first: str, second: str, member: PurePosixPath | None) -> StudyError:
    advice = "Pack each table by itself." if member is None else "Say which one, with the folder that it lies in."
    return StudyError(
        f"{path}: holds {first!r} and {second!r}; expected one {member or 'table'} in an archive. {advice}"
    )


def _no_plain_file(path: Path, name: str) -> StudyError:
    return StudyError(f"{path}: holds {name!r}, which is no plain file. {_FETCH_AGAIN}")


def _nothing_found(path: Path, member: PurePosixPath | None, names: list[str]) -> StudyError:
    if member is None:
        return StudyError(f"{path}: the archive holds no file. {_FETCH_AGAIN}")
    return StudyError(
        f"{path}: there is no {str(member)!r} in the archive; it holds {', '.join(map(repr, names)) or 'no file'}. "
        f"Correct the name in the registry; {_OR_FETCH_AGAIN}"
    )


def _unpacked_zip(path: Path, size: int, member: PurePosixPath | None) -> Iterator[bytes]:
    """The one file in a .zip, or the one called `member`."""
    with zipfile.ZipFile(path) as archive:
        there = [info for info in archive.infolist() if not info.is_dir()]
        wanted = [info for info in there if _is_wanted(info.filename, member)]
        if not wanted:
            raise _nothing_found(path, member, [info.filename for info in there[:MOST_NAMES]])
        if len(wanted) > 1:
            raise _more_than_one(path, wanted[0].filename, wanted[1].filename, member)
        (info,) = wanted
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            raise _no_plain_file(path, info.filename)
        if info.flag_bits & 1:
            raise StudyError(f"{path}: {info.filename!r} is encrypted. Unpack it, and pack it without a password.")
        try:
            with archive.open(info) as stream:
                yield from iter(partial(stream.read, size), b"")
        except NotImplementedError as error:
            raise StudyError(f"{path}: {info.filename!r} is packed in an unknown way ({error}). Unpack it.") from None


def _unpacked_tar(path: Path, size: int, member: PurePosixPath | None) -> Iterator[bytes]:
    """The one file in a .tar.gz, or the one called `member`; the others are read past."""
    found = None
    names: list[str] = []
    # tarfile's own reading of gzip neither checks the sum at the end nor misses it.
    with gzip.open(path, "rb") as unzipped:
        source = _Guarded(path, unzipped)
        try:
            with tarfile.open(fileobj=source, mode="r|", bufsize=1 << 20) as archive:
                for info in archive:
                    is_wanted = _is_wanted(info.name, member) and not info.isdir()
                    if is_wanted and not info.isfile():
                        raise _no_plain_file(path, info.name)
                    if is_wanted and found is not None:
                        raise _more_than_one(path, found, info.name, member)
                    if not info.isfile():
                        continue
                    found = info.name if is_wanted else found
                    names += [info.name] if len(names) < MOST_NAMES else []
                    # Another table may be as long as this one; what is added beside tables may not.
                    source.in_table = is_wanted or member is not None
                    stream = archive.extractfile(info)
                    while chunk := stream.read(size):
                        if is_wanted:
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
        raise _nothing_found(path, member, names)


class _Guarded:
    """The tar inside an archive; stops where far too much of it belongs to no table, or it has no end."""

    def __init__(self, path: Path, file: gzip.GzipFile):
        self.path, self.file, self.in_table, self.beside, self.total = path, file, False, 0, 0
        self.state = _state(path)

    def read(self, size: int) -> bytes:
        chunk = self.file.read(size)
        self.total += len(chunk)
        _refuse_too_large(self.path, self.total, self.state)
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
