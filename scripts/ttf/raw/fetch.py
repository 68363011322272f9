"""Download a raw table over HTTP: resume, try the mirrors, check the file, then put it in place.

Files beside the target, with names that begin with a dot: `.part` holds what has arrived, `.piece` a complete part of
a file that comes in parts, `.wrong` a file that failed its check. The target appears in one step, complete and checked.
Import this module in the download job only: requests takes 0.2 s to import.
"""

import errno
import hashlib
import io
import itertools
import os
import re
import shutil
import signal
import socket
import ssl
import string
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import responses
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
import tenacity
import urllib3

from ttf.engine.errors import StudyError
from ttf.engine.storage.plain_files import opened, what_lies_at
from ttf.engine.words import plural
from ttf.raw.raw_files import MOST_BYTES, unpacked

CHUNK_BYTES = 256 * 1024
LEAST_BYTES_S = 1000
MAX_REDIRECTS = 5
MAX_WAIT_S = 60
BUSY_STATUSES = (408, 425, 429, 500, 502, 503, 504)
HEADERS = {
    "User-Agent": "time-to-failure",
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "Connection": "close",  # one request; a kept connection may be closed just as a redirect is followed
}
CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,15})-[0-9]{1,15}/([0-9]{1,15}|\*)")
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1"
# Name suffixes of what a download leaves beside its target, as regular expressions.
PIECES = r"\d{3}\.piece"
ARRIVED = rf"((\d{{3}}|joined)\.)?part|{PIECES}"
LEFTOVERS = rf"wrong|{ARRIVED}"


class SourceError(Exception):
    """This address does not give the file, and another try would not help."""


class AttemptError(Exception):
    """The try failed, and another may not. `restart`: what has arrived is of no use to the next try."""

    def __init__(self, text: str, restart: bool = False, wait_s: int = 0):
        super().__init__(text)
        self.restart, self.wait_s = restart, wait_s


@dataclass(frozen=True)
class Download:
    """A file of the registry: its addresses, those of its parts (see part_urls), its length and checksums if known.

    content_sha256 is the checksum of the one table inside, unpacked.
    """

    urls: list[str]
    parts: list[str] | None = None
    bytes: int | None = None
    sha256: str | None = None
    content_sha256: str | None = None


def fetch(target: Path, download: Download, report: Callable[[str], None], **limits: Any) -> str:
    """Download a file to `target`, replacing an older one in one step; return a few words about it.

    A download that an earlier run began continues if a checksum can show that it was of the same file.
    `report` gets lines of progress; `limits` are those of _Transfer.
    Raises StudyError with a line for each address if none gives the file, and if the file cannot be written.
    """

    def transfer(url: str, file: io.FileIO, length: int | None, name: str) -> None:
        _Transfer(url, file, length, bool(download.sha256), lambda text: report(f"{name}: {text}"), **limits).run()

    problems = []
    sources = [(url, url, partial(_fetch_whole, url, report)) for url in download.urls]
    sources += [(url, f"{url} (in parts)", _fetch_parts) for url in (download.parts or [])[:1]]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _refuse_obstacles(target)
        for url, label, fetch_source in sources:
            if not download.sha256:
                _remove(target, ARRIVED)  # nothing shows whether it is of this version
            try:
                fetch_source(target, download, transfer)
            except SourceError as problem:
                problems.append(f"  {label}: {problem}")
            else:
                check = "SHA-256 as expected" if download.sha256 or download.content_sha256 else "no checksum known"
                return f"{target.name}: {_mb(target.stat().st_size)} from {url.split('/')[2]}, {check}"
    except OSError as error:
        raise StudyError(_write_failure(target, download, error)) from None
    raise StudyError("\n".join([f"{target}: the download failed.", *problems, _advice(target)]))


def part_urls(parts: list[str]) -> Iterator[str]:
    """Yield the addresses of the parts; one that ends in * stands for the suffixes of split(1): aa, ab, ... zz."""
    suffixes = ["".join(letters) for letters in itertools.product(string.ascii_lowercase, repeat=2)]
    for url in parts:
        yield from (url[:-1] + suffix for suffix in suffixes) if url.endswith("*") else [url]


def _fetch_whole(url: str, report: Callable[[str], None], target: Path, download: Download, transfer: Callable) -> None:
    """Fetch the file from one address, check it and put it in place."""
    with _part_file(_beside(target, "part")) as file:
        resumed = bool(_size(file))
        fault = _fault(file, target, download) if resumed else "has not arrived"
        if fault:
            transfer(url, file, download.bytes, target.name)
            fault = _fault(file, target, download)
        if fault and resumed:
            report(f"{target.name}: what an earlier run had left was of another file; from the start again")
            file.truncate(0)
            transfer(url, file, download.bytes, target.name)
            fault = _fault(file, target, download)
        _put_in_place(file, target, fault)


def _fetch_parts(target: Path, download: Download, transfer: Callable) -> None:
    """Fetch the parts, join them in their order, check the file and put it in place."""
    size, pieces = 0, []
    for number, url in enumerate(part_urls(download.parts)):
        piece, name = _beside(target, f"{number:03}.piece"), Path(url).name
        if not piece.exists():
            with _part_file(_beside(target, f"{number:03}.part")) as file:
                try:
                    transfer(url, file, None, name)
                except SourceError as problem:
                    raise SourceError(f"{name}: {problem}") from None
                os.fsync(file.fileno())
                Path(file.name).replace(piece)
        pieces.append(piece)
        size += piece.stat().st_size
        if download.bytes and size >= download.bytes:
            break
    with _part_file(_beside(target, "joined.part")) as joined:
        joined.truncate(0)
        for piece in pieces:
            with io.FileIO(piece, opener=opened) as file:
                shutil.copyfileobj(file, joined)
        fault = _fault(joined, target, download)
        if fault:
            _remove(target, PIECES)
        _put_in_place(joined, target, fault)


@dataclass
class _Transfer:
    """Bring the file at an address into `file`, with as many tries as it takes while they make progress."""

    url: str
    file: io.FileIO
    length: int | None
    checked: bool  # a checksum will show whether what has arrived belongs together
    say: Callable[[str], None]
    # A try fails if fewer than LEAST_BYTES_S * stall_s bytes come in stall_s seconds. A try that brings as many makes
    # progress. The address fails after so many tries in a row without progress.
    stall_s: float = 30
    tries: int = 5
    sleep: Callable[[float], None] = time.sleep
    version: str | None = None
    total: int | None = None
    attempts: int = 0

    def run(self) -> None:
        if self.length and _size(self.file) > self.length:
            self.file.truncate(0)
        self.furthest, self.least_bytes = _size(self.file), LEAST_BYTES_S * self.stall_s
        backoff = tenacity.wait_exponential_jitter(max=MAX_WAIT_S)
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(AttemptError),
            after=self._judge,
            wait=lambda state: max(backoff(state), state.outcome.exception().wait_s),
            stop=tenacity.stop_after_attempt(self.tries),
            before_sleep=lambda state: self.say(
                f"{state.outcome.exception()}; at {_mb(_size(self.file))}, next try in {state.upcoming_sleep:.1f} s"
            ),
            sleep=self.sleep,
            reraise=True,
        )
        try:
            retrying(self._attempt)
        except AttemptError as problem:
            raise SourceError(f"{problem} ({plural(self.attempts, 'try')})") from None

    def _judge(self, state: tenacity.RetryCallState) -> None:
        """Keep or drop what has arrived; a try that made progress starts the count of tries, and the waits, anew."""
        self.attempts += 1
        if state.outcome.exception().restart or not (self.version or self.checked):
            self.file.truncate(0)
        if _size(self.file) >= self.furthest + self.least_bytes:
            self.furthest, state.attempt_number = _size(self.file), 0

    def _attempt(self) -> None:
        offset = _size(self.file)
        if self.length and offset == self.length:
            return
        # requests leaves out a header that is None.
        headers = {"Range": f"bytes={offset}-", "If-Range": self.version} if offset else {}
        _check_url(self.url)
        # The timeout of a socket would count from the last byte, and headers may come for ever, a byte at a time.
        signal.signal(signal.SIGALRM, _expire)
        signal.setitimer(signal.ITIMER_REAL, self.stall_s)
        try:
            with _Session() as session:
                # An address that does not answer leaves time for the server's others, such as IPv4 after IPv6.
                options = {"headers": headers, "stream": True, "timeout": (self.stall_s / 4, None)}
                # The certificates of this machine: a company's proxy may have its own, which requests does not bring.
                certificates = ssl.get_default_verify_paths()
                options["verify"] = certificates.cafile or certificates.capath or True
                with session.get(self.url, **options) as response:
                    self._receive(response, *_extent(response, offset))
        except (requests.RequestException, urllib3.exceptions.HTTPError, TimeoutError, UnicodeError) as error:
            too_slow = f"fewer than {self.least_bytes:,.0f} bytes came in {self.stall_s:g} s"
            raise _plain_error(error, too_slow) from None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _receive(self, response: requests.Response, start: int, total: int | None) -> None:
        """Write the body of an answer, which begins with byte `start` of the file, behind what has arrived."""
        if start and total and self.total and total != self.total:
            before, self.total = self.total, None
            raise AttemptError(f"the file there has {total:,} bytes now, and had {before:,}", restart=True)
        etag = response.headers.get("ETag", "")
        # A weak ETag (W/...) does not promise the same bytes.
        self.version = etag if etag.startswith('"') else response.headers.get("Last-Modified")
        self.total = total or self.total
        response.raw.enforce_content_length = False  # our own message names how much is missing
        # Not unpacked, whatever the Content-Encoding is: the checksum is of the file as it lies there.
        head = b"" if start else response.raw.read(512, decode_content=False)
        _refuse_page(head)
        if self.length and total not in (None, self.length):
            raise SourceError(
                f"the file there has {total:,} bytes, expected {self.length:,}: it is another file or version"
            )
        expected, size = self.length or total, start
        if expected and expected > MOST_BYTES:
            raise SourceError(f"the server says {expected:,.3g} bytes; more than {MOST_BYTES:,} is no table")
        free = shutil.disk_usage(Path(self.file.name).parent).free
        if expected and expected - start > free:
            raise OSError(errno.ENOSPC, f"{_mb(expected - start)} are still to come and {_mb(free)} are free")
        self.file.truncate(start)
        renewed_at = start
        chunks = itertools.chain([head], iter(partial(response.raw.read1, CHUNK_BYTES, decode_content=False), b""))
        for chunk in _with_progress(chunks, start, expected, self.say):
            size += len(chunk)
            if size >= renewed_at + self.least_bytes:
                renewed_at = size
                signal.setitimer(signal.ITIMER_REAL, self.stall_s)
            if size > (expected or MOST_BYTES):
                raise SourceError(f"sends more than the {expected or MOST_BYTES:,} bytes expected")
            while chunk:
                chunk = chunk[self.file.write(chunk) :]
        if expected and size < expected:
            raise AttemptError(f"the server ended the connection after {size:,} of {expected:,} bytes")
        if not size:
            raise SourceError("the file there is empty")


class _Session(requests.Session):
    """Follow redirects to http and https alone, never from https to http; send no password from ~/.netrc."""

    def __init__(self):
        super().__init__()
        self.headers, self.max_redirects = HEADERS, MAX_REDIRECTS
        self.auth = lambda request: request

    def rebuild_auth(self, prepared_request: requests.PreparedRequest, response: requests.Response) -> None:
        """Leave the redirected request without a password, too."""

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        try:
            target = super().get_redirect_target(resp)
            if target:
                _check_url(target, resp.url)
        except (SourceError, UnicodeError):
            resp.close()
            raise
        return target


def _check_url(url: str, redirected_from: str = "") -> None:
    try:
        scheme = urlsplit(urljoin(redirected_from, url)).scheme
    except ValueError:
        scheme = ""
    if scheme not in ("http", "https"):
        raise SourceError(f"{url!a:.120} is no address of http or https")
    if redirected_from.startswith("https:") and scheme == "http":
        raise SourceError(f"redirects from https to http: {url!a:.120}")


def _expire(*_: object) -> None:
    raise TimeoutError


def _plain_error(error: Exception, text_of_timeout: str) -> SourceError | AttemptError:
    """Say in plain words what a library reports."""
    if isinstance(error, requests.TooManyRedirects):
        return SourceError(f"redirects more than {MAX_REDIRECTS} times")
    if isinstance(error, requests.exceptions.InvalidURL | UnicodeError):
        return SourceError("is no address that can be asked, or redirects to one")
    # The error of the system is the cause of theirs, or an argument.
    while inner := error.__cause__ or next((each for each in error.args if isinstance(each, Exception)), None):
        error = inner
    if isinstance(error, ssl.SSLCertVerificationError):
        return SourceError(f"the server's certificate is not accepted ({error.verify_message})")
    if isinstance(error, TimeoutError):
        return AttemptError(text_of_timeout)
    if isinstance(error, socket.gaierror):
        return AttemptError("the server's name is not known here; is there a network?")
    if isinstance(error, OSError) and error.strerror:
        return AttemptError(error.strerror)
    return AttemptError("the server ended the connection or answered in no known way")


def _extent(response: requests.Response, offset: int) -> tuple[int, int | None]:
    """Return the first byte that the body holds, and the length of the whole file if the server says it."""
    status = response.status_code
    # The server's own words for the number are not to be trusted on a terminal.
    words = f"HTTP {status} {responses.get(status, '')}".rstrip()
    if status == 416:
        raise AttemptError("the server's file is not longer than what had arrived", restart=True)
    if status in BUSY_STATUSES:
        after = re.fullmatch(r"[0-9]{1,9}", response.headers.get("Retry-After", ""))
        raise AttemptError(words, wait_s=min(int(after[0]), MAX_WAIT_S) if after else 0)
    if status == 200:
        return 0, response.raw.length_remaining
    if status != 206:
        raise SourceError(words)
    content_range = CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if not content_range or int(content_range[1]) != offset:
        raise AttemptError(f"asked from byte {offset:,} on, the server sends another part", restart=True)
    return offset, None if content_range[2] == "*" else int(content_range[2])


def _refuse_page(head: bytes) -> None:
    if head.startswith(LFS_POINTER):
        raise SourceError(
            "a Git-LFS pointer came, not the file it stands for (on GitHub, that one is at "
            "https://media.githubusercontent.com/media/OWNER/REPOSITORY/BRANCH/PATH)"
        )
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"<"):
        raise SourceError(f"an HTML or XML page came, not the file; it begins {text[:60]!r}")


@contextmanager
def _part_file(path: Path) -> Iterator[io.FileIO]:
    """Open a file for reading and appending; remove it at the end if it is empty."""
    with io.FileIO(path, "a+", opener=opened) as file:
        try:
            yield file
        finally:
            if not _size(file):
                path.unlink(missing_ok=True)


def _size(file: io.FileIO) -> int:
    return os.fstat(file.fileno()).st_size


def _fault(file: io.FileIO, target: Path, download: Download) -> str | None:
    """Say what is wrong with a whole file that has arrived."""
    if download.bytes and _size(file) != download.bytes:
        return f"has {_size(file):,} bytes, expected {download.bytes:,}"
    file.seek(0)
    if download.sha256 and (sha256 := hashlib.file_digest(file, "sha256").hexdigest()) != download.sha256:
        return f"has the SHA-256 {sha256}, expected {download.sha256}"
    return _content_fault(Path(file.name), target, download) if download.content_sha256 else None


def _content_fault(path: Path, target: Path, download: Download) -> str | None:
    """Say what is wrong with the table inside. If the file itself is the right one, the registry is wrong."""
    digest = hashlib.sha256()
    try:
        for chunk in unpacked(path, target.name):
            digest.update(chunk)
    except StudyError as error:
        if download.sha256:
            raise
        return f"cannot be unpacked ({error})"
    if digest.hexdigest() == download.content_sha256:
        return None
    fault = f"holds a table with the SHA-256 {digest.hexdigest()}, expected {download.content_sha256}"
    if download.sha256:
        raise StudyError(
            f"{target}: the file that came has the SHA-256 it should have, but {fault}. One of the two in the registry "
            "is wrong: correct or remove content_sha256. The file is kept; nothing will be downloaded again."
        )
    return fault


def _put_in_place(file: io.FileIO, target: Path, fault: str | None) -> None:
    """See that a right file is on the disk and give it its name; set a wrong one aside and raise SourceError."""
    path, wrong = Path(file.name), _beside(target, "wrong")
    if fault:
        path.replace(wrong)
        raise SourceError(f"what came {fault}: it is another file or version; set aside as {wrong}")
    os.fsync(file.fileno())
    path.replace(target)
    _remove(target, LEFTOVERS)


def _refuse_obstacles(target: Path) -> None:
    """Never write through a link nor wait for a pipe; a link in the place of the file itself is replaced."""
    for path in [*_leftovers(target, LEFTOVERS), target]:
        kind = what_lies_at(path)
        if kind and (path != target or kind == "a folder"):
            raise StudyError(f"{path}: is {kind}, where a file of the download goes. Remove it and run again.")


def _advice(target: Path) -> str:
    size = sum(path.stat().st_size for path in _leftovers(target, ARRIVED))
    again = f" {_mb(size)} have arrived and are kept: a rerun goes on from there." if size else ""
    return (
        f"Try again later, or put the file into {target.parent} by hand. A table that the study can do without is left "
        f"out with `urls: []` under its name in registry.{target.parent.name}.download.{again}"
    )


def _write_failure(target: Path, download: Download, error: OSError) -> str:
    where = f"{target.parent}: {target.name} cannot be written"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        size = f" The whole file has {_mb(download.bytes)}." if download.bytes else ""
        return (
            f"{where}: the disk is full or your share of it is ({error.strerror}).{size} "
            "Make room and run again: the download goes on where it stopped."
        )
    return f"{where}: {error.strerror or error}. Check that the folder is yours to write to."


def _beside(target: Path, suffix: str) -> Path:
    return target.with_name(f".{target.name}.{suffix}")


def _leftovers(target: Path, suffixes: str) -> list[Path]:
    pattern = re.compile(rf"{re.escape(f'.{target.name}.')}({suffixes})")
    return sorted(path for path in target.parent.iterdir() if pattern.fullmatch(path.name))


def _remove(target: Path, suffixes: str) -> None:
    for path in _leftovers(target, suffixes):
        path.unlink()


def _with_progress(
    chunks: Iterator[bytes], size: int, total: int | None, say: Callable[[str], None]
) -> Iterator[bytes]:
    """Say when another tenth has arrived, or after half a minute; at most once a second."""
    last_size, last_time = size, time.monotonic()
    for chunk in chunks:
        yield chunk
        size += len(chunk)
        seconds, arrived = time.monotonic() - last_time, size - last_size
        if seconds >= 30 or (seconds >= 1 and arrived >= (total or 10**9) / 10):
            share = f" of {_mb(total)} ({100 * size // total}%)" if total else ""
            say(f"{_mb(size)}{share}, {_mb(arrived / seconds)}/s")
            last_size, last_time = size, time.monotonic()


def _mb(size: float) -> str:
    return f"{size / 10**6:,.1f} MB"
