"""Read a raw table as text, plain or compressed, in blocks of whole lines.

Nothing is unpacked to disk: an archive is read as a stream, so no name inside it is ever used as a path. A path may
continue behind an archive to name a file in it: `traces.tar.gz/log.csv`.
"""

import gzip
import io
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from ttf.engine.errors import StudyError
from ttf.raw.headers import DELIMITERS

# Large enough that a block's fixed costs vanish, small enough that the allocator reuses its memory.
BLOCK_BYTES = 16 * 1024 * 1024
# Search this far in a plain file for the end of a line, so that a chunk is a block of whole lines without copying.
LOOKAHEAD_BYTES = 1 << 16
# Longer than any line of a table. The limit keeps a file without line ends from filling the memory.
MAX_LINE_BYTES = 16 * 1024 * 1024
# No table of any trace comes near it. An archive made to fill a disk does, and so does a server that never stops.
MOST_BYTES = 200 * 10**9
# Limit of the ratio of unpacked to packed size, above the floor. Ten is usual; a hundred was never seen.
MAX_UNPACKING_RATIO = 200
UNPACKING_FLOOR_BYTES = 64 * 1024 * 1024
_CACHED_BYTES = 1 << 18
# Limit of the lines in a block: a block with an error is searched line by line.
MOST_LINES = 1 << 18
# tarfile holds the header of a member in memory, whatever length the header claims.
MAX_MEMBER_HEADER_BYTES = 64 * 1024 * 1024
MAX_NAMES_SHOWN = 12

# File name ending -> name of the compression and the first bytes of such a file.
_PACKINGS = {
    ".gz": ("gzip", b"\x1f\x8b"),
    ".xz": ("xz", b"\xfd7zXZ\x00"),
    ".zst": ("zstd", b"\x28\xb5\x2f\xfd"),
    ".zip": ("zip", b"PK\x03\x04"),
}
_TARS = (".tar.gz", ".tgz")
ARCHIVES = (*_TARS, ".zip")
# Compressions of a single table.
PACKED = (".gz", ".zst", ".xz")

FETCH_AGAIN = "Fetch the file again; compare its size or checksum with the publisher's."
_OR_UNPACK = "Check the file; if it is the right one, unpack it."
_OR_FETCH_AGAIN = f"if not: f{FETCH_AGAIN[1:]}"
_LINE_ENDS = (
    "its lines end in CR, as on old Macs; expected LF or CR LF. "
    r"Convert the file with tr '\r' '\n' < old > new, and use the new file."
)
_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile)


def table_paths(inputs: Mapping[str, Sequence[str]], members: Mapping[str, Sequence[str]]) -> dict[str, list[Path]]:
    """Map each table to its files: the paths in `inputs`, each extended by the name in `members` of a file in it."""
    return {
        table: [Path(path) / member for path, member in zip(inputs[table], names, strict=True)]
        for table, names in members.items()
    }


def read_line_blocks(path: Path, block_bytes: int | None = None) -> Generator[bytes, None, None]:
    r"""Yield the table's text in blocks of whole lines, all of which end with \n, the last one too; \r\n becomes \n.

    Raises StudyError for an empty file, a damaged or truncated archive, a file that changes while it is read, lines
    that end in \r, and an HTML page in place of a table.
    """
    header, lines = None, 0
    for block in _read_whole_line_blocks(path, block_bytes):
        if may_have_longer_line(block, MAX_LINE_BYTES) and max(map(len, block.split(b"\n"))) > MAX_LINE_BYTES:
            raise _line_too_long_error(path)
        if header is None:
            header = block[: block.find(b"\n")].partition(b"\r")[0]
        # Searching for one byte first is ten times faster than a replacement without a match.
        if b"\r" in block and b"\r" in (block := block.replace(b"\r\n", b"\n")):
            _refuse_lone_returns(path, block, header, lines)
        count = count_lines(block)
        lines += count
        yield from _split_long_block(block) if count > MOST_LINES else (block,)


def _read_whole_line_blocks(path: Path, block_bytes: int | None) -> Iterator[bytes]:
    pieces: list[bytes] = []
    size = tail_bytes = 0
    is_checked = False
    block_bytes = block_bytes or BLOCK_BYTES
    for chunk in read_unpacked(path, size=block_bytes):
        cut = chunk.rfind(b"\n") + 1
        tail_bytes = len(chunk) - cut if cut else tail_bytes + len(chunk)
        if tail_bytes > MAX_LINE_BYTES:
            if chunk.count(b"\r") > 1:
                raise StudyError(f"{path}: line 1: {_LINE_ENDS}")
            raise _line_too_long_error(path)
        size += len(chunk)
        if not cut or size < block_bytes:
            pieces.append(chunk)
            continue
        rest = chunk[cut:]
        block = b"".join((*pieces, memoryview(chunk)[:cut])) if pieces or rest else chunk
        pieces, size = [rest] if rest else [], tail_bytes
        is_checked = is_checked or check_is_table(path, block)
        yield block
    rest = b"".join(pieces)
    if rest:
        if not is_checked:
            check_is_table(path, rest)
        yield rest if rest.endswith(b"\n") else rest + b"\n"


def may_have_longer_line(block: bytes, max_bytes: int) -> bool:
    """Return False only if no line is longer than `max_bytes`: each stretch of half that length has a line end."""
    half = max_bytes // 2
    return any(block.find(b"\n", start, start + half) < 0 for start in range(0, len(block) - half, half))


def count_lines(block: bytes) -> int:
    """Count the line ends of a block."""
    if len(block) < 1 << 20:  # a small table does not pay for the import of NumPy
        return block.count(b"\n")
    import numpy as np  # takes a quarter of the time of bytes.count

    text = np.frombuffer(block, np.uint8)
    # Pieces that stay in the processor's cache take two thirds of the time.
    pieces = (text[start : start + _CACHED_BYTES] for start in range(0, text.size, _CACHED_BYTES))
    return sum(int(np.count_nonzero(piece == ord("\n"))) for piece in pieces)


def _line_too_long_error(path: Path) -> StudyError:
    return StudyError(f"{path}: a line longer than {MAX_LINE_BYTES:,} bytes: not a table. {FETCH_AGAIN}")


def _split_long_block(block: bytes) -> Iterator[bytes]:
    if count_lines(block) <= MOST_LINES:
        yield block
        return
    middle = block.find(b"\n", len(block) // 2) + 1
    if middle in (0, len(block)):  # one long line after many short ones
        middle = block.rfind(b"\n", 0, len(block) // 2) + 1
    yield from _split_long_block(block[:middle])
    yield from _split_long_block(block[middle:])


def _refuse_lone_returns(path: Path, block: bytes, header: bytes, lines_before: int) -> None:
    r"""Raise StudyError if a \r separates two rows, each with as many delimiters as the header.

    Any other \r is part of a text. lines_before: number of lines before the block.
    """
    separator = max((delimiter.encode() for delimiter in DELIMITERS), key=header.count)
    fields = header.count(separator)
    for number, line in enumerate(block.split(b"\n") if fields else (), lines_before + 1):
        if b"\r" in line and sum(part.count(separator) == fields for part in line.split(b"\r")) > 1:
            raise StudyError(f"{path}: line {number}: {_LINE_ENDS}")


def check_is_table(path: Path, block: bytes) -> bool:
    """Raise StudyError if the block is plainly no table; return False if it holds white space alone."""
    if block.startswith((b"\xff\xfe", b"\xfe\xff")) or (b"\0" in block[:2] and not block.startswith(b"\0\0")):
        raise StudyError(
            f"{path}: line 1: the text is UTF-16; expected UTF-8. "
            f"Convert it: iconv -f UTF-16 -t UTF-8 {path.name} > utf8_{path.name}"
        )
    if block[257:262] == b"ustar" and b"\0" in block[:257]:
        raise StudyError(
            f"{path}: this is a tar archive, but its name does not say so. Compress it and name it .tar.gz."
        )
    start = block[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()
    # A line of syslog may start with its priority, as <4>.
    if start[:1] == b"<" and not start[1:2].isdigit():
        raise StudyError(_web_page_message(path))
    return bool(start)


def _web_page_message(path: Path) -> str:
    return (
        f"{path}: line 1: this is an HTML or XML page, not a table: a download probably saved the server's "
        f"error page under this name. {FETCH_AGAIN}"
    )


def read_unpacked(path: Path, name: str | None = None, size: int = 1 << 20) -> Generator[bytes, None, None]:
    """Yield the unpacked bytes of the table in chunks of about `size` bytes or fewer.

    `name` has the ending that names the compression, if the path has none. Raises as read_line_blocks does.
    """
    path, member = split_archive_path(path)
    name = (name or path.name).lower()
    ending = ".gz" if name.endswith(_TARS) else next((ending for ending in _PACKINGS if name.endswith(ending)), "")
    total = 0
    try:
        state = _size_and_mtime(path)
        _check_magic(path, ending)
        if name.endswith(_TARS):
            chunks = _read_tar(path, size, member)
        else:
            chunks = _read_zip(path, size, member) if ending == ".zip" else _read_outside_archive(path, ending, size)
        for chunk in chunks:
            total += len(chunk)
            if total > MOST_BYTES or ending:
                _refuse_too_large(path, total, state[0])
            yield chunk
        if _size_and_mtime(path) != state:
            raise StudyError(f"{path}: the file changed while it was read. Run the command again once it is complete.")
    except _DAMAGED as error:
        raise StudyError(f"{path}: the compressed file is damaged or cut short ({error}). {FETCH_AGAIN}") from None
    except OSError as error:
        raise StudyError(
            f"{path}: cannot be read: {error.strerror or error}. Check that the file is there and may be read."
        ) from None
    if not total:
        raise StudyError(f"{path}: the file is empty inside its packing. {FETCH_AGAIN}")


def _size_and_mtime(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _refuse_too_large(path: Path, total: int, packed_bytes: int) -> None:
    """Raise StudyError if a file unpacks to more bytes than any table of its packed size."""
    if total > MOST_BYTES:
        raise StudyError(f"{path}: unpacks to more than {MOST_BYTES:,} bytes: not a table. {FETCH_AGAIN}")
    if total > max(UNPACKING_FLOOR_BYTES, MAX_UNPACKING_RATIO * packed_bytes):
        raise StudyError(
            f"{path}: its {packed_bytes:,} bytes unpack to more than {MAX_UNPACKING_RATIO} times as many: "
            f"no table compresses so well. {_OR_UNPACK}"
        )


def split_archive_path(path: Path) -> tuple[Path, PurePosixPath | None]:
    """Split a path into the file on the disk and, if that is an archive, the name inside it."""
    for folder in path.parents:
        if folder.name.lower().endswith(ARCHIVES) and not folder.is_dir():
            return folder, PurePosixPath(path.relative_to(folder))
    return path, None


def _is_wanted(name: str, member: PurePosixPath | None) -> bool:
    """Return whether the path of a file in an archive ends in `member`; False for the dot files that macOS adds."""
    parts = PurePosixPath(name).parts
    is_added = bool(parts) and parts[-1].startswith("._")
    return not is_added and (member is None or parts[-len(member.parts) :] == member.parts)


def _check_magic(path: Path, ending: str) -> None:
    """Raise StudyError if the first bytes of a file contradict the ending of its name."""
    with path.open("rb") as file:
        head = file.read(4096)
    if not head:
        raise StudyError(f"{path}: the file is empty. {FETCH_AGAIN}")
    if not ending:
        for expected_ending, (packing, magic) in _PACKINGS.items():
            if head.startswith(magic):
                raise StudyError(
                    f"{path}: the bytes are {packing}, but the name says plain text. Give it the ending "
                    f"{expected_ending if expected_ending in ARCHIVES else f'.csv{expected_ending}'} "
                    "(.tar.gz for an archive), or unpack it."
                )
        return
    packing, magic = _PACKINGS[ending]
    # Some Zstandard tools start a file with a skippable frame, whose magic number differs.
    if head[: len(magic)] == magic[: len(head)] or (packing == "zstd" and head[1:4] == b"\x2a\x4d\x18"):
        return
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
        raise StudyError(f"{_web_page_message(path)} (The name ends in {ending}, but the bytes are not {packing}.)")
    raise StudyError(
        f"{path}: the name ends in {ending}, but the bytes are not {packing}. "
        f"If it is plain text, give it the ending .csv; {_OR_FETCH_AGAIN}"
    )


def _read_outside_archive(path: Path, ending: str, size: int) -> Iterator[bytes]:
    if ending == ".zst":
        yield from _read_zstd(path)
    elif not ending:
        yield from _read_plain(path, size)
    else:
        with gzip.open(path) if ending == ".gz" else lzma.open(path) as stream:
            yield from iter(partial(stream.read, size), b"")


def _read_plain(path: Path, size: int) -> Iterator[bytes]:
    """Yield a plain file in chunks that end with a line, unless its end is more than LOOKAHEAD_BYTES away."""
    start = 0
    with path.open("rb") as file:
        while True:
            lookahead = os.pread(file.fileno(), LOOKAHEAD_BYTES, start + size)
            chunk = os.pread(file.fileno(), size + lookahead.find(b"\n") + 1, start)
            if not chunk:
                return
            start += len(chunk)
            yield chunk


def _several_members_error(path: Path, first: str, second: str, member: PurePosixPath | None) -> StudyError:
    advice = "Pack each table by itself." if member is None else "Name the file with its folder."
    return StudyError(
        f"{path}: holds {first!r} and {second!r}; expected one {member or 'table'} in an archive. {advice}"
    )


def _member_not_plain_error(path: Path, name: str) -> StudyError:
    return StudyError(f"{path}: {name!r} in the archive is no plain file. {FETCH_AGAIN}")


def _member_missing_error(path: Path, member: PurePosixPath | None, names: list[str]) -> StudyError:
    if member is None:
        return StudyError(f"{path}: the archive holds no file. {FETCH_AGAIN}")
    return StudyError(
        f"{path}: the archive has no {str(member)!r}; it holds {', '.join(map(repr, names)) or 'no file'}. "
        f"Correct the name in the registry; {_OR_FETCH_AGAIN}"
    )


def _read_zip(path: Path, size: int, member: PurePosixPath | None) -> Iterator[bytes]:
    """Yield the bytes of the only file in a .zip, or of the file `member`."""
    with zipfile.ZipFile(path) as archive:
        files = [info for info in archive.infolist() if not info.is_dir()]
        matches = [info for info in files if _is_wanted(info.filename, member)]
        if not matches:
            raise _member_missing_error(path, member, [info.filename for info in files[:MAX_NAMES_SHOWN]])
        if len(matches) > 1:
            raise _several_members_error(path, matches[0].filename, matches[1].filename, member)
        (info,) = matches
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            raise _member_not_plain_error(path, info.filename)
        if info.flag_bits & 1:
            raise StudyError(f"{path}: {info.filename!r} is encrypted. Unpack it, and pack it without a password.")
        try:
            with archive.open(info) as stream:
                yield from iter(partial(stream.read, size), b"")
        except NotImplementedError as error:
            raise StudyError(f"{path}: {info.filename!r} has an unknown compression ({error}). Unpack it.") from None


def _read_tar(path: Path, size: int, member: PurePosixPath | None) -> Iterator[bytes]:
    """Yield the bytes of the only file in a .tar.gz, or of the file `member`."""
    member_name = None
    names: list[str] = []
    # tarfile's own gzip reader neither verifies the checksum at the end nor notices that it is missing.
    with gzip.open(path, "rb") as unzipped:
        source = _GuardedTar(path, unzipped)
        try:
            with tarfile.open(fileobj=source, mode="r|", bufsize=1 << 20) as archive:
                for info in archive:
                    is_wanted = _is_wanted(info.name, member) and not info.isdir()
                    if is_wanted and not info.isfile():
                        raise _member_not_plain_error(path, info.name)
                    if is_wanted and member_name is not None:
                        raise _several_members_error(path, member_name, info.name, member)
                    stream = archive.extractfile(info) if info.isfile() else None
                    if stream is None:
                        continue
                    member_name = info.name if is_wanted else member_name
                    names += [info.name] if len(names) < MAX_NAMES_SHOWN else []
                    # Another table may be as long as this one; other contents of the archive may not.
                    source.is_in_table = is_wanted or member is not None
                    while chunk := stream.read(size):
                        if is_wanted:
                            yield chunk
                    source.is_in_table = False
        except tarfile.TarError as error:
            if member_name is None:
                raise StudyError(
                    f"{path}: the gzip data hold no tar archive ({error}). If they are the table itself, give the file "
                    f"the ending .csv.gz; {_OR_FETCH_AGAIN}"
                ) from None
            raise
        while source.read(1 << 20):
            pass
    if member_name is None:
        raise _member_missing_error(path, member, names)


class _GuardedTar(io.RawIOBase):
    """Read the tar inside an archive; stop if far too many bytes belong to no table, or if it has no end."""

    def __init__(self, path: Path, file: gzip.GzipFile) -> None:
        self.path, self.file, self.is_in_table, self.bytes_outside_tables, self.total = path, file, False, 0, 0
        self.packed_bytes, _ = _size_and_mtime(path)

    def read(self, size: int = -1) -> bytes:
        chunk = self.file.read(size)
        self.total += len(chunk)
        _refuse_too_large(self.path, self.total, self.packed_bytes)
        self.bytes_outside_tables += 0 if self.is_in_table else len(chunk)
        if self.bytes_outside_tables > MAX_MEMBER_HEADER_BYTES:
            raise StudyError(
                f"{self.path}: more than {MAX_MEMBER_HEADER_BYTES:,} bytes of the archive belong to no table. "
                f"{FETCH_AGAIN}"
            )
        return chunk


def _read_zstd(path: Path) -> Iterator[bytes]:
    """Unpack frame by frame, because the library's own reader does not notice that a file is truncated."""
    import zstandard

    decompressor = zstandard.ZstdDecompressor()
    frame = None
    with path.open("rb") as file:
        # Read a few kilobytes at a time: all that they unpack to arrives in one piece.
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
