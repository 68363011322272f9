"""One request for a file over HTTP, from any byte of it on; what can go wrong, by kind and in plain words."""

import http
import http.client
import re
import socket
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message

CHUNK_BYTES = 256 * 1024
MOST_REDIRECTS = 5
LONGEST_RETRY_AFTER_S = 60

_REDIRECTS = (301, 302, 303, 307, 308)
_BUSY = (408, 425, 429, 500, 502, 503, 504)
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")


class Refused(Exception):
    """This address does not give the file, and asking again would not help."""


class Broken(Exception):
    """The attempt failed on the way; another may not. `anew`: what has arrived is of no use to it."""

    def __init__(self, text: str, anew: bool = False, wait_s: int = 0):
        super().__init__(text)
        self.anew = anew
        self.wait_s = wait_s


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


@contextmanager
def ask(url: str, offset: int = 0, validator: str | None = None, stall_s: float = 30) -> Iterator[Answer]:
    """Ask for the file at `url` from byte `offset` on, if it still is the version of `validator`.

    The server may send all of it nevertheless: see `Answer.start`. Raises Refused and Broken, also while the chunks are
    read: Broken if no data come for `stall_s` seconds.
    """
    headers = {"User-Agent": "time-to-failure", "Accept": "*/*", "Accept-Encoding": "identity"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
        if validator:
            headers["If-Range"] = validator
    response = _open(url, headers, stall_s)
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


def _open(url: str, headers: dict[str, str], stall_s: float) -> http.client.HTTPResponse:
    """The server's answer after redirects, if it is a good one."""
    # Only what is needed: the usual opener also knows file:, ftp: and data:. Proxies come from the environment.
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.HTTPDefaultErrorHandler,
    ):
        opener.add_handler(handler())
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
    """Which byte of the file the body begins with, and how many the whole file has."""
    if response.status == 200:
        return 0, response.length
    found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", "").strip())
    if response.status != 206 or not found:
        raise Refused(f"HTTP {response.status}: an answer without the file")
    start, _, total = found.groups()
    if int(start) != offset:
        raise Broken(f"asked from byte {offset:,} on, the server sends from {int(start):,} on", anew=True)
    return offset, None if total == "*" else int(total)


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
        yield chunk


def _shown(url: str) -> str:
    """An address that a server gave: on one line, in ASCII, not longer than a line."""
    text = ascii(url)
    return text if len(text) <= 120 else f"{text[:117]}..."
