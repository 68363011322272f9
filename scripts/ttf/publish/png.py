"""Charts as PNG, for slides and documents."""

import struct
import zlib
from collections.abc import Iterator

_HEAD = b"\x89PNG\r\n\x1a\n"


def png_of(svg: str) -> bytes:
    """The picture at twice its size in pixels; nothing in it may load anything (see rule render_figures)."""
    import vl_convert

    return smaller(vl_convert.svg_to_png(svg, scale=2))


def smaller(png: bytes) -> bytes:
    """The same picture in about a third of the bytes: the converter is quick and compresses little."""
    parts = list(_chunks(png))
    pixels = zlib.compress(zlib.decompress(b"".join(data for name, data in parts if name == b"IDAT")), 9)
    first = next(i for i, (name, _) in enumerate(parts) if name == b"IDAT")
    kept = [part for part in parts if part[0] != b"IDAT"]
    return _HEAD + b"".join(_chunk(*part) for part in [*kept[:first], (b"IDAT", pixels), *kept[first:]])


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_HEAD)
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += length + 12


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
