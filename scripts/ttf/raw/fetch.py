"""Download a raw table over HTTP: resume, try the mirrors, check the file, then move it into place.

Temporary files lie next to the target; their names begin with a dot. `.part` holds the bytes received so far, `.piece`
a complete part of a file that is published in parts, `.wrong` a file that failed its check. The target appears in one
step, complete and checked. Import this module in the download job only: requests takes 0.2 s to import.
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
from typing import Any, TypeAlias
from urllib.parse import urljoin, urlsplit

import requests
import tenacity
import urllib3
from requests.structures import CaseInsensitiveDict

from ttf.engine.errors import StudyError
from ttf.engine.storage.plain_files import describe_non_file, open_file
from ttf.engine.words import plural
from ttf.raw.raw_files import MOST_BYTES, read_unpacked

CHUNK_BYTES = 256 * 1024
MIN_BYTES_S = 1000
MAX_REDIRECTS = 5
MAX_WAIT_S = 60
BUSY_STATUSES = (408, 425, 429, 500, 502, 503, 504)
HEADERS = {
    "User-Agent": "time-to-failure",
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "Connection": "close",  # a server may close a kept connection just as a redirect is followed
}
CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,15})-[0-9]{1,15}/([0-9]{1,15}|\*)")
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1"
# Name suffixes of the temporary files of a download, as regular expressions.
PIECES = r"\d{3}\.piece"
RECEIVED = rf"((\d{{3}}|joined)\.)?part|{PIECES}"
LEFTOVERS = rf"wrong|{RECEIVED}"

# Receive the bytes at an address in a file; the others: their number if known, and the name in progress reports.
Receive: TypeAlias = Callable[[str, io.FileIO, int | None, str], None]


class SourceError(Exception):
    """An address does not provide the file, and another try would not help."""


class AttemptError(Exception):
    """The try failed, but another may succeed. `restart`: the next try cannot use the bytes received."""

    def __init__(self, text: str, restart: bool = False, wait_s: int = 0) -> None:
        super().__init__(text)
        self.restart, self.wait_s = restart, wait_s


@dataclass(frozen=True)
class Download:
    """A file of the registry: its addresses, the addresses of its parts (see part_urls), length and checksums if known.

    content_sha256 is the checksum of the unpacked table.
    """

    urls: list[str]
    parts: list[str] | None = None
    bytes: int | None = None
    sha256: str | None = None
    content_sha256: str | None = None


def fetch(target: Path, download: Download, report: Callable[[str], None], **limits: Any) -> str:
    """Download a file to `target`, replacing an older one in one step; return a short summary.

    A download that an earlier run began continues if a checksum can prove that it is the same file.
    `report` receives lines of progress; `limits`: stall_s, tries, sleep of _Transfer.
    Raises StudyError with a line for each address if none provides the file, and if the file cannot be written.
    """

    def transfer(url: str, file: io.FileIO, length: int | None, label: str) -> None:
        _Transfer(url, file, length, bool(download.sha256), lambda text: report(f"{label}: {text}"), **limits).run()

    problems = []
    sources: list[tuple[str, str, Callable[[Path, Download, Receive], None]]]
    sources = [(url, url, partial(_fetch_whole, url, report)) for url in download.urls]
    sources += [(url, f"{url} (in parts)", _fetch_parts) for url in (download.parts or [])[:1]]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _refuse_obstacles(target)
        for url, label, fetch_source in sources:
            if not download.sha256:
                _remove_leftovers(target, RECEIVED)  # without a checksum, the bytes may be of another version
            try:
                fetch_source(target, download, transfer)
            except SourceError as problem:
                problems.append(f"  {label}: {problem}")
            else:
                check = "SHA-256 as expected" if download.sha256 or download.content_sha256 else "no checksum known"
                return f"{target.name}: {_format_mb(target.stat().st_size)} from {url.split('/')[2]}, {check}"
    except OSError as error:
        raise StudyError(_format_write_error(target, download, error)) from None
    raise StudyError("\n".join([f"{target}: the download failed.", *problems, _advise_retry(target)]))


def part_urls(parts: list[str]) -> Iterator[str]:
    """Yield the addresses of the parts; a final * stands for the suffixes of split(1): aa, ab, ... zz."""
    suffixes = ["".join(letters) for letters in itertools.product(string.ascii_lowercase, repeat=2)]
    for url in parts:
        yield from (url[:-1] + suffix for suffix in suffixes) if url.endswith("*") else [url]


def _fetch_whole(url: str, report: Callable[[str], None], target: Path, download: Download, transfer: Receive) -> None:
    """Fetch the file from one address, check it and move it into place."""
    with _part_file(_hidden_sibling(target, "part")) as file:
        resumed = bool(_file_size(file))
        fault = _find_fault(file, target, download) if resumed else "has not arrived"
        if fault:
            transfer(url, file, download.bytes, target.name)
            fault = _find_fault(file, target, download)
        if fault and resumed:
            report(f"{target.name}: the bytes of an earlier run belong to another file; starting again")
            file.truncate(0)
            transfer(url, file, download.bytes, target.name)
            fault = _find_fault(file, target, download)
        _move_into_place(file, target, fault)


def _fetch_parts(target: Path, download: Download, transfer: Receive) -> None:
    """Fetch the parts, join them in order, check the file and move it into place."""
    size, pieces = 0, []
    for number, url in enumerate(part_urls(download.parts or [])):
        piece, name = _hidden_sibling(target, f"{number:03}.piece"), Path(url).name
        if not piece.exists():
            with _part_file(_hidden_sibling(target, f"{number:03}.part")) as file:
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
    with _part_file(_hidden_sibling(target, "joined.part")) as joined_file:
        joined_file.truncate(0)
        for piece in pieces:
            with io.FileIO(piece, opener=open_file) as file:
                shutil.copyfileobj(file, joined_file)
        fault = _find_fault(joined_file, target, download)
        if fault:
            _remove_leftovers(target, PIECES)
        _move_into_place(joined_file, target, fault)


@dataclass
class _Transfer:
    """Download the file at an address into `file`; retry as long as tries make progress."""

    url: str
    file: io.FileIO
    length: int | None
    has_checksum: bool  # a checksum will prove that the pieces belong together
    report: Callable[[str], None]
    # A try fails if fewer than MIN_BYTES_S * stall_s bytes arrive in stall_s seconds; with more it makes progress.
    # The address fails after `tries` tries in a row without progress.
    stall_s: float = 30
    tries: int = 5
    sleep: Callable[[float], None] = time.sleep
    version: str | None = None
    total: int | None = None
    attempts: int = 0

    def run(self) -> None:
        """Download the file, with retries; raise SourceError if the address fails."""
        if self.length and _file_size(self.file) > self.length:
            self.file.truncate(0)
        self.largest_size, self.stall_bytes = _file_size(self.file), MIN_BYTES_S * self.stall_s
        backoff = tenacity.wait_exponential_jitter(max=MAX_WAIT_S)
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(self._may_retry),
            after=self._prepare_next_try,
            wait=lambda state: max(backoff(state), self.problem.wait_s),
            stop=tenacity.stop_after_attempt(self.tries),
            before_sleep=lambda state: self.report(
                f"{self.problem}; at {_format_mb(_file_size(self.file))}, next try in {state.upcoming_sleep:.1f} s"
            ),
            sleep=self.sleep,
            reraise=True,
        )
        try:
            retrying(self._request_missing_bytes)
        except AttemptError as problem:
            raise SourceError(f"{problem} ({plural(self.attempts, 'try')})") from None

    def _may_retry(self, error: BaseException) -> bool:
        """Return whether another try may succeed after this error; keep the error as `problem`."""
        if isinstance(error, AttemptError):
            self.problem = error
        return isinstance(error, AttemptError)

    def _prepare_next_try(self, state: tenacity.RetryCallState) -> None:
        """Drop bytes that the next try cannot continue; a try with progress resets the count and the wait of tries."""
        self.attempts += 1
        if self.problem.restart or not (self.version or self.has_checksum):
            self.file.truncate(0)
        if _file_size(self.file) >= self.largest_size + self.stall_bytes:
            self.largest_size, state.attempt_number = _file_size(self.file), 0

    def _request_missing_bytes(self) -> None:
        offset = _file_size(self.file)
        if self.length and offset == self.length:
            return
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        headers |= {"If-Range": self.version} if offset and self.version else {}
        _check_url(self.url)
        # A socket's timeout restarts with every byte, so a server could send headers for ever, a byte at a time.
        signal.signal(signal.SIGALRM, _raise_timeout)
        signal.setitimer(signal.ITIMER_REAL, self.stall_s)
        try:
            with _Session() as session:
                # A short connect timeout leaves time for the server's other addresses, such as IPv4 after IPv6.
                timeout = (self.stall_s / 4, None)
                # Use the certificates of this machine: a company's proxy may have its own, which requests lacks.
                certificates = ssl.get_default_verify_paths()
                verify = certificates.cafile or certificates.capath or True
                with session.get(self.url, headers=headers, stream=True, timeout=timeout, verify=verify) as response:
                    self._receive(response, *_body_range(response, offset))
        except (requests.RequestException, urllib3.exceptions.HTTPError, TimeoutError, UnicodeError) as error:
            too_slow = f"fewer than {self.stall_bytes:,.0f} bytes arrived in {self.stall_s:g} s"
            raise _translate_error(error, too_slow) from None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _receive(self, response: requests.Response, start: int, total: int | None) -> None:
        """Append the body of a response, which begins with byte `start` of the file."""
        if start and total and self.total and total != self.total:
            old_total, self.total = self.total, None
            raise AttemptError(f"the file there has {total:,} bytes now, and had {old_total:,}", restart=True)
        etag = response.headers.get("ETag", "")
        # A weak ETag (W/...) does not promise the same bytes.
        self.version = etag if etag.startswith('"') else response.headers.get("Last-Modified")
        self.total = total or self.total
        response.raw.enforce_content_length = False  # our own message says how much is missing
        # Not decoded, whatever the Content-Encoding is: the checksum is that of the file on the server.
        first_bytes = b"" if start else response.raw.read(512, decode_content=False)
        _refuse_pointer_or_page(first_bytes)
        if self.length and total not in (None, self.length):
            raise SourceError(
                f"the file there has {total:,} bytes, expected {self.length:,}: it is another file or version"
            )
        expected, size = self.length or total, start
        if expected and expected > MOST_BYTES:
            raise SourceError(f"the server says {expected:,.3g} bytes; more than {MOST_BYTES:,} is no table")
        free = shutil.disk_usage(Path(self.file.name).parent).free
        if expected and expected - start > free:
            raise OSError(errno.ENOSPC, f"{_format_mb(expected - start)} are missing and {_format_mb(free)} are free")
        self.file.truncate(start)
        renewed_at = start
        chunks = itertools.chain(
            [first_bytes], iter(partial(response.raw.read1, CHUNK_BYTES, decode_content=False), b"")
        )
        for chunk in _report_progress(chunks, start, expected, self.report):
            size += len(chunk)
            if size >= renewed_at + self.stall_bytes:
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
    """Follow redirects to http and https only, never from https to http; send no password from ~/.netrc."""

    def __init__(self) -> None:
        super().__init__()
        self.headers, self.max_redirects = CaseInsensitiveDict(HEADERS), MAX_REDIRECTS
        self.auth = lambda request: request

    def rebuild_auth(self, prepared_request: requests.PreparedRequest, response: requests.Response) -> None:
        """Send no password with a redirected request either."""

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
    """Raise SourceError unless the address is http or https, and not http after a redirect from https."""
    try:
        scheme = urlsplit(urljoin(redirected_from, url)).scheme
    except ValueError:
        scheme = ""
    if scheme not in ("http", "https"):
        raise SourceError(f"{url!a:.120} is no address of http or https")
    if redirected_from.startswith("https:") and scheme == "http":
        raise SourceError(f"redirects from https to http: {url!a:.120}")


def _raise_timeout(*_: object) -> None:
    raise TimeoutError


def _translate_error(error: BaseException, timeout_message: str) -> SourceError | AttemptError:
    if isinstance(error, requests.TooManyRedirects):
        return SourceError(f"redirects more than {MAX_REDIRECTS} times")
    if isinstance(error, requests.exceptions.InvalidURL | UnicodeError):
        return SourceError("is not a valid address, or redirects to an invalid one")
    # The system's error is the cause of the library's error, or one of its arguments.
    while cause := error.__cause__ or next(
        (argument for argument in error.args if isinstance(argument, Exception)), None
    ):
        error = cause
    if isinstance(error, ssl.SSLCertVerificationError):
        return SourceError(f"the server's certificate is not accepted ({error.verify_message})")
    if isinstance(error, TimeoutError):
        return AttemptError(timeout_message)
    if isinstance(error, socket.gaierror):
        return AttemptError("the server's name is not known here; is there a network?")
    if isinstance(error, OSError) and error.strerror:
        return AttemptError(error.strerror)
    return AttemptError("the server ended the connection or sent an unknown response")


def _body_range(response: requests.Response, offset: int) -> tuple[int, int | None]:
    """Return the index in the file of the body's first byte, and the length of the whole file if it is stated."""
    status = response.status_code
    # Do not print the server's own reason phrase: it is untrusted on a terminal.
    description = f"HTTP {status} {responses.get(status, '')}".rstrip()
    if status == 416:
        raise AttemptError("the server's file is not longer than the bytes received", restart=True)
    if status in BUSY_STATUSES:
        delay = re.fullmatch(r"[0-9]{1,9}", response.headers.get("Retry-After", ""))
        raise AttemptError(description, wait_s=min(int(delay[0]), MAX_WAIT_S) if delay else 0)
    if status == 200:
        return 0, response.raw.length_remaining
    if status != 206:
        raise SourceError(description)
    content_range = CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if not content_range or int(content_range[1]) != offset:
        raise AttemptError(f"asked from byte {offset:,} on, the server sends another part", restart=True)
    return offset, None if content_range[2] == "*" else int(content_range[2])


def _refuse_pointer_or_page(first_bytes: bytes) -> None:
    if first_bytes.startswith(LFS_POINTER):
        raise SourceError(
            "the server sent a Git-LFS pointer, not the file (on GitHub, the file is at "
            "https://media.githubusercontent.com/media/OWNER/REPOSITORY/BRANCH/PATH)"
        )
    text = first_bytes.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"<"):
        raise SourceError(f"the server sent an HTML or XML page, not the file; it begins {text[:60]!r}")


@contextmanager
def _part_file(path: Path) -> Iterator[io.FileIO]:
    """Open a file for reading and appending; remove it at the end if it is empty."""
    with io.FileIO(path, "a+", opener=open_file) as file:
        try:
            yield file
        finally:
            if not _file_size(file):
                path.unlink(missing_ok=True)


def _file_size(file: io.FileIO) -> int:
    return os.fstat(file.fileno()).st_size


def _find_fault(file: io.FileIO, target: Path, download: Download) -> str | None:
    """Say how the length or a checksum of the download differs from the expected one; None if none does."""
    if download.bytes and _file_size(file) != download.bytes:
        return f"has {_file_size(file):,} bytes, expected {download.bytes:,}"
    file.seek(0)
    if download.sha256 and (sha256 := hashlib.file_digest(file, "sha256").hexdigest()) != download.sha256:
        return f"has the SHA-256 {sha256}, expected {download.sha256}"
    return _find_content_fault(Path(file.name), target, download) if download.content_sha256 else None


def _find_content_fault(path: Path, target: Path, download: Download) -> str | None:
    """Say how the unpacked table differs from content_sha256, or None; raise StudyError if only sha256 is right."""
    digest = hashlib.sha256()
    try:
        for chunk in read_unpacked(path, target.name):
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
            f"{target}: the file has the expected SHA-256, but {fault}. One of the two checksums in the registry "
            "is wrong: correct or remove content_sha256. The file is kept; nothing will be downloaded again."
        )
    return fault


def _move_into_place(file: io.FileIO, target: Path, fault: str | None) -> None:
    """Flush a correct file to the disk and give it its name; move a wrong one away and raise SourceError."""
    path, wrong_path = Path(file.name), _hidden_sibling(target, "wrong")
    if fault:
        path.replace(wrong_path)
        raise SourceError(f"the download {fault}: it is another file or version; moved to {wrong_path}")
    os.fsync(file.fileno())
    path.replace(target)
    _remove_leftovers(target, LEFTOVERS)


def _refuse_obstacles(target: Path) -> None:
    """Raise StudyError if a link, pipe or folder lies in the way; a link in place of the target itself is replaced."""
    for path in [*_list_leftovers(target, LEFTOVERS), target]:
        kind = describe_non_file(path)
        if kind and (path != target or kind == "a folder"):
            raise StudyError(f"{path}: is {kind}, but the download needs this name. Remove it and run again.")


def _advise_retry(target: Path) -> str:
    size = sum(path.stat().st_size for path in _list_leftovers(target, RECEIVED))
    resume_note = f" {_format_mb(size)} are kept: a rerun continues from there." if size else ""
    return (
        f"Try again later, or put the file into {target.parent} by hand. To omit an optional table, write `urls: []` "
        f"under its name in registry.{target.parent.name}.download.{resume_note}"
    )


def _format_write_error(target: Path, download: Download, error: OSError) -> str:
    prefix = f"{target.parent}: {target.name} cannot be written"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        size = f" The whole file has {_format_mb(download.bytes)}." if download.bytes else ""
        return (
            f"{prefix}: the disk is full or your quota is used up ({error.strerror}).{size} "
            "Make room and run again: the download continues where it stopped."
        )
    return f"{prefix}: {error.strerror or error}. Check that you may write to the folder."


def _hidden_sibling(target: Path, suffix: str) -> Path:
    return target.with_name(f".{target.name}.{suffix}")


def _list_leftovers(target: Path, suffix_pattern: str) -> list[Path]:
    pattern = re.compile(rf"{re.escape(f'.{target.name}.')}({suffix_pattern})")
    return sorted(path for path in target.parent.iterdir() if pattern.fullmatch(path.name))


def _remove_leftovers(target: Path, suffix_pattern: str) -> None:
    for path in _list_leftovers(target, suffix_pattern):
        path.unlink()


def _report_progress(
    chunks: Iterator[bytes], size: int, total: int | None, report: Callable[[str], None]
) -> Iterator[bytes]:
    """Yield the chunks; report each tenth of the file or every half minute. size: bytes before the first chunk."""
    last_size, last_time = size, time.monotonic()
    for chunk in chunks:
        yield chunk
        size += len(chunk)
        seconds, new_bytes = time.monotonic() - last_time, size - last_size
        if seconds >= 30 or (seconds >= 1 and new_bytes >= (total or 10**9) / 10):
            share = f" of {_format_mb(total)} ({100 * size // total}%)" if total else ""
            report(f"{_format_mb(size)}{share}, {_format_mb(new_bytes / seconds)}/s")
            last_size, last_time = size, time.monotonic()


def _format_mb(n_bytes: float) -> str:
    return f"{n_bytes / 10**6:,.1f} MB"
