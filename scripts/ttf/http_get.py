"""One request for a file over HTTP, from any byte of it on; what can go wrong, by kind and in plain words."""

import http
import http.client
import io
import re
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message

CHUNK_BYTES = 256 * 1024
MOST_REDIRECTS = 5
LONGEST_RETRY_AFTER_S = 60

_REDIRECTS = (301, 302, 303, 307, 308)
_BUSY = (408, 425, 429, 500, 502, 503, 504)
# A length of more digits is none: a petabyte has 16.
_LENGTH = re.compile(r"[0-9]{1,15}")
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,15})-([0-9]{1,15})/([0-9]{1,15}|\*)")


class Refused(Exception):
    """This address does not give the file, and asking again would not help."""


class Broken(Exception):
    """The attempt failed on the way; another may not. `anew`: what has arrived is of no use to it; `slow`: it did get
    further, but too slowly to count.
    """

    def __init__(self, text: str, anew: bool = False, wait_s: int = 0, slow: bool = False):
        super().__init__(text)
        self.anew = anew
        self.wait_s = wait_s
        self.slow = slow


@dataclass(frozen=True)
class Answer:
    """What a server sends: the file from byte `start` on.

    total: bytes of the whole file, where the server says it; validator: identifies this version of the file in a
    later request (a strong ETag, else the date of its last change).
    """

    start: int
    total: int | None
    validator: str | None
    chunks: Iterator[bytes]


class TooSlow(OSError):
    """Less of a file came in a while than must."""


class Pace:
    """How fast a file comes: at least `least_bytes_s` a second, over every `window_s` seconds from the request on.

    Whatever a server sends instead of it (headers, announcements, ends of chunks without end) does not count.
    """

    def __init__(self, window_s: float, least_bytes_s: float, clock: Callable[[], float] = time.monotonic):
        self._window_s, self._least_bytes_s, self._clock = window_s, least_bytes_s, clock
        self._since, self._come = clock(), 0

    def add(self, size: int) -> None:
        """So many bytes of the file have come."""
        self._come += size

    def check(self) -> None:
        """Raises TooSlow."""
        seconds = self._clock() - self._since
        if seconds < self._window_s:
            return
        if self._come < self._least_bytes_s * seconds:
            raise TooSlow(
                0, f"{self._come:,} bytes came in {seconds:.3g} s, of {self._least_bytes_s:,.0f} a second that must"
            )
        self._since, self._come = self._clock(), 0


class _PacedSocket(io.RawIOBase):
    """A socket that is read no longer than the pace of the file holds."""

    def __init__(self, socket_io: io.RawIOBase, pace: Pace):
        self._socket_io, self._pace = socket_io, pace

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int | None:
        size = self._socket_io.readinto(buffer)
        if size:
            self._pace.check()
        return size

    def close(self) -> None:
        self._socket_io.close()
        super().close()


class _Handler(urllib.request.AbstractHTTPHandler):
    """Reads answers, from their first line on, at a pace."""

    stall_s: float
    least_bytes_s: float

    def do_open(self, http_class: Callable, request: urllib.request.Request, **given: object) -> object:
        def answer(*arguments: object, **more: object) -> http.client.HTTPResponse:
            response = http.client.HTTPResponse(*arguments, **more)
            response.pace = Pace(self.stall_s, self.least_bytes_s)
            response.fp = io.BufferedReader(_PacedSocket(response.fp.detach(), response.pace))
            return response

        def connection(*arguments: object, **more: object) -> http.client.HTTPConnection:
            made = http_class(*arguments, **more)
            made.response_class = answer
            return made

        return super().do_open(connection, request, **given)


class _Http(_Handler, urllib.request.HTTPHandler):
    pass


class _Https(_Handler, urllib.request.HTTPSHandler):
    pass


@contextmanager
def ask(
    url: str, offset: int = 0, validator: str | None = None, stall_s: float = 30, least_bytes_s: float = 1000
) -> Iterator[Answer]:
    """Ask for the file at `url` from byte `offset` on, if it still is the version of `validator`.

    The server may send all of it nevertheless: see `Answer.start`. Raises Refused and Broken, also while the chunks are
    read: Broken if no data come for `stall_s` seconds, or in so many seconds less than `least_bytes_s` a second.
    """
    headers = {"User-Agent": "time-to-failure", "Accept": "*/*", "Accept-Encoding": "identity"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
        if validator:
            headers["If-Range"] = validator
    response = _open(url, headers, stall_s, least_bytes_s)
    with response:
        start, total = _extent(response, offset)
        yield Answer(start, total, _validator(response.headers), _chunks(response, stall_s))


def checked(url: str, above: str = "") -> str:
    """The address, if it is one of HTTP. An unprotected one is not followed from a protected one (`above`)."""
    scheme = urllib.parse.urlsplit(url).scheme
    if scheme not in ("http", "https"):
        raise Refused(f"{_shown(url)} is no address of http or https")
    if above.startswith("https:") and scheme == "http":
        raise Refused(f"redirects from https to http: {_shown(url)}")
    return url


def _open(url: str, headers: dict[str, str], stall_s: float, least_bytes_s: float) -> http.client.HTTPResponse:
    """The server's answer after redirects, if it is a good one."""
    # Only what is needed: the usual opener also knows file:, ftp: and data:. Proxies come from the environment.
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        http_ := _Http(),
        https := _Https(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
    ):
        opener.add_handler(handler)
    for handler in (http_, https):
        handler.stall_s, handler.least_bytes_s = stall_s, least_bytes_s
    for _ in range(MOST_REDIRECTS + 1):
        try:
            return opener.open(urllib.request.Request(checked(url), headers=headers), timeout=stall_s)
        except urllib.error.HTTPError as error:
            with error:
                if error.code not in _REDIRECTS or not error.headers.get("Location"):
                    raise _bad_status(error) from None
                url = _redirected(url, error.headers["Location"])
        except (OSError, http.client.HTTPException) as error:
            raise _trouble(error, stall_s) from None
        except ValueError:
            raise Refused(f"{_shown(url)} is no address that can be asked") from None
    raise Refused(f"redirects more than {MOST_REDIRECTS} times")


def _redirected(url: str, location: str) -> str:
    try:
        target = urllib.parse.urljoin(url, location)
        return checked(urllib.parse.quote(target, safe="%/:=&?~#+!$,;'@()*[]"), above=url)
    except ValueError:
        raise Refused(f"redirects to {_shown(location)}, which is no address") from None


def _bad_status(error: urllib.error.HTTPError) -> Refused | Broken:
    code = error.code
    # The server's own words for the number are not to be trusted on a terminal.
    words = f"HTTP {code}" + (f" {http.HTTPStatus(code).phrase}" if code in list(http.HTTPStatus) else "")
    if code == 416:
        return Broken("the server's file is not longer than what had arrived", anew=True)
    if code not in _BUSY:
        return Refused(words)
    after = error.headers.get("Retry-After", "")
    wait_s = int(after) if re.fullmatch(r"[0-9]{1,9}", after) else 0
    return Broken(words, wait_s=min(wait_s, LONGEST_RETRY_AFTER_S))


def _trouble(error: Exception, stall_s: float) -> Refused | Broken:
    """What a failed connection means."""
    reason = getattr(error, "reason", None)
    reason = reason if isinstance(reason, OSError) else error
    if isinstance(reason, ssl.SSLCertVerificationError):
        return Refused(f"the server's certificate is not accepted ({reason.verify_message})")
    if isinstance(reason, TooSlow):
        return Broken(f"too slow: {reason.strerror}", slow=True)
    if isinstance(reason, TimeoutError):
        return Broken(f"no data for {stall_s:g} s")
    if isinstance(reason, socket.gaierror):
        return Broken("the server's name is not known here; is there a network?")
    if isinstance(reason, http.client.InvalidURL):
        return Refused("is no address that can be asked")
    if isinstance(reason, OSError) and reason.strerror:
        return Broken(reason.strerror)
    return Broken("the server ended the connection or answered in no known way")


def _extent(response: http.client.HTTPResponse, offset: int) -> tuple[int, int | None]:
    """Which byte of the file the body begins with, and how many the whole file has. Raises Refused for no sense."""
    stated = {text.strip() for text in response.headers.get_all("Content-Length", [])}
    if response.chunked:
        stated = set()
    if len(stated) > 1 or not all(map(_LENGTH.fullmatch, stated)):
        raise Refused(f"the server gives {_shown(', '.join(sorted(stated)))} as the length of what it sends")
    length = int(stated.pop()) if stated else None
    if response.status == 200:
        return 0, length
    given = response.headers.get("Content-Range", "").strip()
    found = _CONTENT_RANGE.fullmatch(given)
    if response.status != 206 or not found:
        raise Refused(f"HTTP {response.status}: an answer without the file")
    start, end = int(found[1]), int(found[2])
    total = None if found[3] == "*" else int(found[3])
    if start != offset:
        raise Broken(f"asked from byte {offset:,} on, the server sends from {start:,} on", anew=True)
    if start > end or (total is not None and end >= total) or length not in (None, end - start + 1):
        sent = "" if length is None else f" with {length:,} bytes"
        raise Refused(f"the server contradicts itself: it sends {_shown(given)}{sent}")
    return offset, total


def _validator(headers: Message) -> str | None:
    """A weak ETag (W/...) does not promise the same bytes."""
    etag = headers.get("ETag", "")
    return etag if etag.startswith('"') else headers.get("Last-Modified")


def _chunks(response: http.client.HTTPResponse, stall_s: float) -> Iterator[bytes]:
    while True:
        try:
            chunk = response.read1(CHUNK_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise _trouble(error, stall_s) from None
        if not chunk:
            return
        response.pace.add(len(chunk))
        yield chunk


def _shown(url: str) -> str:
    """An address that a server gave: on one line, in ASCII, not longer than a line."""
    text = ascii(url)
    return text if len(text) <= 120 else f"{text[:117]}..."
