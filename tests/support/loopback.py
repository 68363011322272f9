"""A web server on loopback with configurable faults: `Site`, and its habits, one for each answer."""

import contextlib
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

PAGE = b"\xef\xbb\xbf\r\n<!DOCTYPE html>\n<html><title>Not here</title></html>\n"


class Site:
    """Server on loopback. `files`: content by path; `habits`: handlers of successive answers by path."""

    def __init__(self):
        self.files: dict[str, bytes] = {}
        self.habits: dict[str, list] = {}
        self.etag: dict[str, str] = {}
        self.asked: list[tuple[str, str | None, str | None]] = []
        self.over = threading.Event()  # ends stalled answers when the test is over
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                path = urlsplit(self.path).path
                site.asked.append((path, self.headers["Range"], self.headers["If-Range"]))
                habits = site.habits.get(path, [])
                habit = habits.pop(0) if len(habits) > 1 else (habits[0] if habits else send_file)
                self.close_connection = True
                with contextlib.suppress(ConnectionError):
                    habit(self, site, path)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def stop(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def ranges(self, path):
        return [range_ for request_path, range_, _ in self.asked if request_path == path]


def send(handler, status, headers, body=b""):
    handler.send_response(status)
    handler.send_header("Connection", "close")
    for name, value in headers.items():
        handler.send_header(name, str(value))
    handler.end_headers()
    handler.wfile.write(body)
    handler.wfile.flush()


def send_file(handler, site, path, upto=None, ranges=True, after_send=None):
    """Send the file or the requested range; `upto`: the most bytes of the body that are sent."""
    if path not in site.files:
        send(handler, 404, {"Content-Length": len(PAGE), "Content-Type": "text/html"}, PAGE)
        return
    content, etag = site.files[path], site.etag.get(path)
    headers = {"ETag": etag} if etag else {}
    requested_range, held_etag = handler.headers["Range"], handler.headers["If-Range"]
    start = (
        int(requested_range.removeprefix("bytes=").rstrip("-"))
        if requested_range and ranges and held_etag in (None, etag)
        else 0
    )
    if start and start >= len(content):
        send(handler, 416, headers | {"Content-Range": f"bytes */{len(content)}", "Content-Length": 0})
        return
    body = content[start:]
    headers["Content-Length"] = len(body)
    if start:
        headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
    send(handler, 206 if start else 200, headers, body[:upto])
    if after_send:
        after_send(handler, site)


def truncate(upto, **options):
    return lambda handler, site, path: send_file(handler, site, path, upto, **options)


def stall(handler, site):
    site.over.wait(20)


def reset(handler, site):
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def repeat_forever(piece, prefix=b"", pause_s=0.0):
    """Send the piece repeatedly until the client disconnects or the test is over."""

    def answer(handler, site, path):
        handler.wfile.write(prefix)
        while not site.over.wait(pause_s):
            handler.wfile.write(piece)
            handler.wfile.flush()

    return answer


def hang_up(handler, site, path):
    handler.connection.shutdown(socket.SHUT_RDWR)


def status(code, **headers):
    return lambda handler, site, path: send(
        handler, code, {name.replace("_", "-"): value for name, value in headers.items()} | {"Content-Length": 0}
    )


def body(content, length=True, **headers):
    def answer(handler, site, path):
        send(handler, 200, headers | ({"Content-Length": len(content)} if length else {}), content)

    return answer


def chunked(content, end=True):
    def answer(handler, site, path):
        chunks = (content[i : i + 999] for i in range(0, 9990, 999))
        pieces = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
        send(handler, 200, {"Transfer-Encoding": "chunked"}, pieces + (b"0\r\n\r\n" if end else b""))

    return answer
