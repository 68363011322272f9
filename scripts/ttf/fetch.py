"""Download a raw table: go on where a download broke off, try the mirrors, compare checksums, then put it in place.

In the folder of the file, under names that begin with a dot: `.part` has what has arrived, `.piece` a whole part of
a file that comes in parts, `.wrong` another file than expected. The file itself appears in one step, complete and
checked.
"""

import errno
import hashlib
import itertools
import os
import random
import re
import shutil
import string
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ttf.errors import StudyError
from ttf.http_get import Answer, Broken, Refused, ask, checked
from ttf.plain_files import opened, what_lies_at
from ttf.raw_files import MOST_BYTES, unpacked
from ttf.report.words import plural

HEAD_BYTES = 512
# Names of the parts of a file, after its own.
PIECES = r"\d{3}\.piece|(\d{3}|joined)\.part"
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1"


@dataclass(frozen=True)
class Wanted:
    """A file and where it is: `urls`, then the mirror in `parts` (see part_urls); its length and checksums if known.

    content_sha256 is the checksum of the one table inside, unpacked.
    """

    urls: list[str]
    parts: list[str] | None = None
    bytes: int | None = None
    sha256: str | None = None
    content_sha256: str | None = None


@dataclass(frozen=True)
class Patience:
    """When to give up: without data, or with fewer than least_bytes_s a second, for stall_s seconds; on an address
    after so many tries that get no further.
    """

    stall_s: float = 30
    least_bytes_s: float = 1000
    tries: int = 5
    most_tries: int = 200
    first_wait_s: float = 1
    longest_wait_s: float = 60
    sleep: Callable[[float], None] = time.sleep

    def waits(self) -> Iterator[float]:
        """Seconds before the next try: twice as many each time, more or less by up to a quarter, from a fixed seed."""
        jitter = random.Random(0)
        for power in itertools.count():
            seconds = min(self.first_wait_s * 2 ** min(power, 30), self.longest_wait_s)
            yield seconds * jitter.uniform(0.75, 1.25)


def to_stderr(line: str) -> None:
    print(f"  {line}", file=sys.stderr, flush=True)


def fetch(
    target: Path, wanted: Wanted, patience: Patience | None = None, report: Callable[[str], None] = to_stderr
) -> str:
    """Download `wanted` to `target`; return a few words about it. A file already there is replaced in one step.

    A download that an earlier run began continues if a checksum can show that it was of the same file.
    Raises StudyError, with a line for every address tried, if none gives the file; and if it cannot be written.
    """
    patience = patience or Patience()
    problems = []
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _refuse_what_is_in_the_way(target)
        if not wanted.sha256:
            _remove(target, PIECES)  # nothing shows whether they are of this version
        ways = [(url, "", partial(_whole, url)) for url in wanted.urls]
        for url, how, way in [*ways, *((url, " (in parts)", _in_parts) for url in (wanted.parts or [])[:1])]:
            try:
                way(target, wanted, patience, report)
            except Refused as problem:
                problems.append(f"{url}{how}: {problem}")
            else:
                return _done(target, wanted, url)
    except OSError as error:
        raise StudyError(_not_written(target, wanted, error)) from None
    lines = [f"{target}: the download failed.", *(f"  {line}" for line in problems), _advice(target)]
    raise StudyError("\n".join(lines))


def part_urls(parts: list[str]) -> Iterator[str]:
    """The addresses of the parts; one that ends in * stands for the names that split(1) gives: aa, ab, ... zz."""
    for url in parts:
        if url.endswith("*"):
            for letters in itertools.product(string.ascii_lowercase, repeat=2):
                yield url[:-1] + "".join(letters)
        else:
            yield url


class Partial:
    """What has arrived of a file, with its checksum so far."""

    def __init__(self, path: Path):
        self.path = path
        self.file = os.fdopen(opened(path, os.O_RDWR | os.O_CREAT | os.O_APPEND), "a+b", buffering=0)
        self.size, self.sha256 = 0, hashlib.sha256()
        self.file.seek(0)
        while chunk := self.file.read(1 << 20):
            self._count(chunk)

    def _count(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self.sha256.update(chunk)

    def write(self, chunk: bytes) -> None:
        left = memoryview(chunk)
        while left:
            left = left[self.file.write(left) :]
        self._count(chunk)

    def start_anew(self) -> None:
        if self.size:
            self.file.truncate(0)
            self.size, self.sha256 = 0, hashlib.sha256()

    def __enter__(self) -> "Partial":
        return self

    def __exit__(self, *_) -> None:
        self.file.close()
        if not self.size:
            self.path.unlink(missing_ok=True)


def _whole(url: str, target: Path, wanted: Wanted, patience: Patience, report: Callable[[str], None]) -> None:
    """The file from one address, checked and put in place."""
    checked(url)
    with Partial(_beside(target, "part")) as partial:
        resumed = partial.size > 0
        if resumed and wanted.sha256 and not _differs(partial, wanted):
            _put_in_place(partial, target, wanted)
            return
        _download(url, partial, wanted.bytes, bool(wanted.sha256), patience, _Progress(target.name, report))
        if resumed and _differs(partial, wanted):
            report(f"{target.name}: what an earlier run had left was of another file; from the start again")
            partial.start_anew()
            _download(url, partial, wanted.bytes, True, patience, _Progress(target.name, report))
        _put_in_place(partial, target, wanted)


def _in_parts(target: Path, wanted: Wanted, patience: Patience, report: Callable[[str], None]) -> None:
    """The file from the addresses of its parts, joined in their order, checked and put in place."""
    size, pieces = 0, []
    for number, url in enumerate(part_urls(wanted.parts)):
        piece = _beside(target, f"{number:03}.piece")
        if not piece.exists():
            with Partial(_beside(target, f"{number:03}.part")) as partial:
                try:
                    _download(checked(url), partial, None, False, patience, _Progress(Path(url).name, report))
                except Refused as problem:
                    raise Refused(f"{Path(url).name}: {problem}") from None
                os.fsync(partial.file.fileno())
            partial.path.replace(piece)
        pieces.append(piece)
        size += piece.stat().st_size
        if wanted.bytes and size >= wanted.bytes:
            break
    _beside(target, "joined.part").unlink(missing_ok=True)
    with Partial(_beside(target, "joined.part")) as joined:
        for piece in pieces:
            with os.fdopen(opened(piece), "rb") as file:
                while chunk := file.read(1 << 20):
                    joined.write(chunk)
        try:
            _put_in_place(joined, target, wanted)
        except Refused:
            _remove(target, PIECES)
            raise


def _download(
    url: str, partial: Partial, length: int | None, will_be_checked: bool, patience: Patience, progress: "_Progress"
) -> None:
    """Bring `partial` to the whole of what is at `url`, with as many tries as it takes while they get further."""
    # Without a checksum, nothing shows whether what an earlier run left is of this version.
    if not will_be_checked or (length and partial.size > length):
        partial.start_anew()
    furthest, idle, version, total = partial.size, 0, None, None
    waits = patience.waits()
    for attempt in range(1, patience.most_tries + 1):
        if length and partial.size == length:
            return
        try:
            with ask(url, partial.size, version, patience.stall_s, patience.least_bytes_s) as answer:
                if answer.start and total is not None and answer.total not in (None, total):
                    before, total = total, None
                    raise Broken(f"the file there has {answer.total:,} bytes now, and had {before:,}", anew=True)
                version, total = answer.validator, answer.total or total
                _write(answer, partial, length, progress)
            return
        except Broken as trouble:
            problem = trouble
        # Without a sign of the file's version, only a checksum shows that the rest belongs to the beginning.
        if problem.anew or not (version or will_be_checked):
            partial.start_anew()
        if partial.size > furthest and not problem.slow:
            furthest, idle, waits = partial.size, 0, patience.waits()
        else:
            idle += 1
        if idle >= patience.tries or attempt == patience.most_tries:
            raise Refused(f"{problem} ({plural(attempt, 'try', 'tries')})") from None
        wait_s = max(next(waits), problem.wait_s)
        progress.report(f"{progress.name}: {problem}; at {_mb(partial.size)}, next try in {wait_s:.1f} s")
        patience.sleep(wait_s)


def _write(answer: Answer, partial: Partial, length: int | None, progress: "_Progress") -> None:
    """Write the body of an answer behind what has arrived; see that it is a file, and of the right length."""
    chunks = answer.chunks
    if answer.start == 0:
        head = b""
        for chunk in chunks:
            head += chunk
            if len(head) >= HEAD_BYTES:
                break
        _refuse_what_is_no_file(head)
        chunks = itertools.chain([head] if head else [], chunks)
    total = answer.total
    if length and total is not None and total != length:
        raise Refused(f"the file there has {total:,} bytes, expected {length:,}: it is another file or version")
    if (total or 0) > MOST_BYTES:
        raise Refused(f"the server says that the file has {total:,} bytes; more than {MOST_BYTES:,} is no table")
    if answer.start == 0:
        partial.start_anew()
    expected = length or total
    _refuse_a_full_disk(partial, expected)
    progress.begin(partial.size, expected)
    for chunk in chunks:
        if partial.size + len(chunk) > (length or MOST_BYTES):
            raise Refused(f"sends more than the {length or MOST_BYTES:,} bytes expected")
        partial.write(chunk)
        progress.at(partial.size)
    if expected is not None and partial.size < expected:
        raise Broken(f"the server ended the connection after {partial.size:,} of {expected:,} bytes")
    if not partial.size:
        raise Refused("the file there is empty")


def _refuse_what_is_no_file(head: bytes) -> None:
    if head.startswith(LFS_POINTER):
        raise Refused(
            "a Git-LFS pointer came, not the file it stands for (on GitHub, that one is at "
            "https://media.githubusercontent.com/media/OWNER/REPOSITORY/BRANCH/PATH)"
        )
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"<"):
        raise Refused(f"an HTML or XML page came, not the file; it begins {start[:60]!r}")


def _refuse_what_is_in_the_way(target: Path) -> None:
    """Nothing is written through a link and no pipe is waited for; in the place of the file itself one is replaced."""
    for path in [*_left(target, "part|wrong", PIECES), target]:
        kind = what_lies_at(path)
        if kind and (path != target or kind == "a folder"):
            raise StudyError(f"{path}: is {kind}, where a file of the download goes. Remove it and run again.")


def _refuse_a_full_disk(partial: Partial, expected: int | None) -> None:
    """Before gigabytes have come for nothing."""
    free = shutil.disk_usage(partial.path.parent).free
    if expected and expected - partial.size > free:
        raise OSError(errno.ENOSPC, f"{_mb(expected - partial.size)} are still to come and {_mb(free)} are free")


def _differs(partial: Partial, wanted: Wanted) -> bool:
    return bool(wanted.sha256) and partial.sha256.hexdigest() != wanted.sha256


def _put_in_place(partial: Partial, target: Path, wanted: Wanted) -> None:
    """Check the whole file, see that it is on the disk, give it its name. Raises Refused; a wrong file is set aside."""
    problem = None
    if wanted.bytes and partial.size != wanted.bytes:
        problem = f"has {partial.size:,} bytes, expected {wanted.bytes:,}"
    elif _differs(partial, wanted):
        problem = f"has the SHA-256 {partial.sha256.hexdigest()}, expected {wanted.sha256}"
    elif wanted.content_sha256:
        problem = _wrong_content(partial.path, target, wanted)
    if problem:
        partial.path.replace(_beside(target, "wrong"))
        raise Refused(f"what came {problem}: it is another file or version; set aside as {_beside(target, 'wrong')}")
    os.fsync(partial.file.fileno())
    partial.path.replace(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    _remove(target, "part|wrong", PIECES)


def _wrong_content(path: Path, target: Path, wanted: Wanted) -> str | None:
    """What is wrong with the table inside. If the file itself is the right one, that is an error in the registry."""
    digest = hashlib.sha256()
    try:
        for chunk in unpacked(path, target.name):
            digest.update(chunk)
    except StudyError as error:
        if wanted.sha256:
            raise
        return f"cannot be unpacked ({error})"
    if digest.hexdigest() == wanted.content_sha256:
        return None
    found = f"holds a table with the SHA-256 {digest.hexdigest()}, expected {wanted.content_sha256}"
    if wanted.sha256:
        raise StudyError(
            f"{target}: the file that came has the SHA-256 it should have, but {found}. One of the two in the registry "
            "is wrong: correct or remove content_sha256. The file is kept; nothing will be downloaded again."
        )
    return found


def _done(target: Path, wanted: Wanted, url: str) -> str:
    known = "SHA-256 as expected" if wanted.sha256 or wanted.content_sha256 else "no checksum known"
    return f"{target.name}: {_mb(target.stat().st_size)} from {url.split('/')[2]}, {known}"


def _advice(target: Path) -> str:
    kept = sum(path.stat().st_size for path in _left(target, "part", PIECES))
    again = f" {_mb(kept)} have arrived and are kept: a rerun goes on from there." if kept else ""
    return (
        f"Try again later, or put the file into {target.parent} by hand. A table that the study can do without is left "
        f"out with `urls: []` under its name in registry.{target.parent.name}.download.{again}"
    )


def _not_written(target: Path, wanted: Wanted, error: OSError) -> str:
    where = f"{target.parent}: {target.name} cannot be written"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        size = f" The whole file has {_mb(wanted.bytes)}." if wanted.bytes else ""
        return (
            f"{where}: the disk is full or your share of it is ({error.strerror}).{size} "
            "Make room and run again: the download goes on where it stopped."
        )
    return f"{where}: {error.strerror or error}. Check that the folder is yours to write to."


def _beside(target: Path, kind: str) -> Path:
    return target.with_name(f".{target.name}.{kind}")


def _left(target: Path, *kinds: str) -> list[Path]:
    """What downloads of this file have left there: the names, without its own, that match a pattern."""
    wanted = re.compile(re.escape(f".{target.name}.") + f"({'|'.join(kinds)})")
    return sorted(path for path in target.parent.iterdir() if wanted.fullmatch(path.name))


def _remove(target: Path, *kinds: str) -> None:
    for path in _left(target, *kinds):
        path.unlink()


class _Progress:
    """A line when another tenth has come, or nothing has been said for half a minute; at most one a second."""

    def __init__(self, name: str, report: Callable[[str], None], clock: Callable[[], float] = time.monotonic):
        self.name, self.report, self.clock = name, report, clock

    def begin(self, size: int, total: int | None) -> None:
        self.total, self.said_size, self.said_at = total, size, self.clock()

    def at(self, size: int) -> None:
        now = self.clock()
        seconds, come = now - self.said_at, size - self.said_size
        if seconds < 1 or (seconds < 30 and come < (self.total or 10**9) / 10):
            return
        share = f" of {_mb(self.total)} ({100 * size // self.total}%)" if self.total else ""
        self.report(f"{self.name}: {_mb(size)}{share}, {_mb(come / seconds)}/s")
        self.said_size, self.said_at = size, now


def _mb(size: float) -> str:
    return f"{size / 10**6:,.1f} MB"
