"""Pictures for papers: as PDF, and as SVG that carries its fonts.

vl-convert has its fonts inside its binary. A PDF that it makes holds the glyphs of the texts as a TrueType font, which
needs only a map of characters (cmap) and metrics (OS/2) to be a font for others. The licence (OFL) permits embedding.
"""

import base64
import re
import struct
import tempfile
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Mapping
from pathlib import Path

from ttf.display.charts.theme import FONT
from ttf.engine.extras import require_extra

_PAGE = '#set page(width: auto, height: auto, margin: 0pt)\n#image("picture.svg")\n'
_SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">'
_FAMILY = FONT.split(",")[0]
_FONT_NAME = re.compile(rb"/BaseFont /\w+\+" + _FAMILY.replace(" ", "").encode() + rb"(-Bold)?(-?Italic)?\s")
_OBJECT = re.compile(rb"^(\d+) 0 obj\n(.*?)\s(stream\n|endobj)", re.DOTALL | re.MULTILINE)
_CHARACTER = re.compile(rb"<([0-9A-F]{4})> <([0-9A-F]{4})>\n")


def render_pdf(svg: str) -> bytes:
    """Render an SVG to PDF with embedded fonts, by Typst: vl-convert numbers the fonts of a PDF at random."""
    require_extra("pdf")
    import typst

    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for number, font in enumerate(extract_fonts(svg).values()):
            (work / f"{number}.ttf").write_bytes(font)
        (work / "picture.svg").write_text(svg, encoding="utf-8")
        (work / "picture.typ").write_text(_PAGE, encoding="utf-8")
        return typst.compile(work / "picture.typ", root=work, font_paths=[work], ignore_system_fonts=True, timestamp=0)


def embed_fonts(svg: str) -> str:
    """Return the picture with the glyphs of its texts as fonts; other characters keep the fonts of the reader."""
    faces = "".join(
        f'@font-face{{font-family:"{_FAMILY}";{style}src:url(data:font/ttf;base64,{base64.b64encode(font).decode()})}}'
        for style, font in extract_fonts(svg).items()
    )
    return svg.replace(">", f"><style>{faces}</style>", 1) if faces else svg


def extract_fonts(svg: str) -> dict[str, bytes]:
    """Return style, as CSS, -> TrueType font with the glyphs of the picture's texts, of the charts' family."""
    import vl_convert

    texts = {
        (element.get("font-weight", "normal"), element.get("font-style", "normal"), ord(character))
        for element in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
        for character in "".join(element.itertext())
    }
    # Characters apart: two together may have one glyph, such as fi. A space by itself would be left out.
    sample = "".join(
        f'<text font-family="{_FAMILY}" font-weight="{weight}" font-style="{style}">&#{code}; &#{code};</text>'
        for weight, style, code in sorted(texts)
        if code < 0x10000
    )
    objects = _read_objects(vl_convert.svg_to_pdf(f"{_SVG}{sample}</svg>"))

    def follow(number: int, *keys: str) -> tuple[bytes, bytes]:
        """Return the object to which these keys lead from the object `number`."""
        for key in keys:
            reference = re.search(rf"/{key} \[?(\d+) 0 R".encode(), objects[number][0])
            number = int(reference[1]) if reference else number
        return objects[number]

    fonts = {}
    for number, (entry, _) in objects.items():
        if b"/Type0" in entry and (name := _FONT_NAME.search(entry)):
            _, outlines = follow(number, "DescendantFonts", "FontDescriptor", "FontFile2")
            _, names = follow(number, "ToUnicode")
            glyph_by_code = {int(code, 16): int(glyph, 16) for glyph, code in _CHARACTER.findall(names)}
            style = ("font-weight:bold;" if name[1] else "") + ("font-style:italic;" if name[2] else "")
            glyph_by_code = {code: glyph for code, glyph in glyph_by_code.items() if glyph}
            fonts[style] = _add_tables(outlines, glyph_by_code, is_bold=bool(name[1]))
    return dict(sorted(fonts.items()))


def _read_objects(pdf: bytes) -> dict[int, tuple[bytes, bytes]]:
    """Return number -> dictionary and unpacked stream of each object."""
    objects, offset = {}, 0
    while match := _OBJECT.search(pdf, offset):
        number, entry, end = match.groups()
        offset, content = match.end(), b""
        if end != b"endobj" and (length := re.search(rb"/Length (\d+)", entry)):
            content = pdf[offset : offset + int(length[1])]
            offset += len(content)
        objects[int(number)] = entry, zlib.decompress(content) if b"/FlateDecode" in entry else content
    return objects


def _add_tables(font: bytes, glyph_by_code: Mapping[int, int], is_bold: bool) -> bytes:
    """Return the TrueType font with a map of characters and metrics, its tables in the order of their names."""
    tables = {}
    for index in range(struct.unpack_from(">H", font, 4)[0]):
        tag, _, offset, length = struct.unpack_from(">4s3I", font, 12 + 16 * index)
        tables[tag] = font[offset : offset + length]
    tables[b"head"] = tables[b"head"][:8] + bytes(4) + tables[b"head"][12:]  # the checksum of the font before
    groups = b"".join(struct.pack(">3I", code, code, glyph) for code, glyph in sorted(glyph_by_code.items()))
    header = struct.pack(">2H2HI2H3I", 0, 1, 3, 10, 12, 12, 0, 16 + len(groups), 0, len(groups) // 12)
    ascent, descent = struct.unpack_from(">2h", tables[b"hhea"], 4)
    # Version 1, of normal width, installable; programs do without the rest.
    weight, style = (700, 0x20) if is_bold else (400, 0x40)
    heights = ascent, descent, 0, ascent, -descent
    metrics = struct.pack(">H2x3H52x3H3h2H8x", 1, weight, 5, 0, style, 0x20, 0xFFFF, *heights)
    tables |= {b"cmap": header + groups, b"OS/2": metrics}
    power = len(tables).bit_length() - 1
    head = struct.pack(">I4H", 0x10000, len(tables), 16 << power, power, 16 * (len(tables) - (1 << power)))
    offset, directory, contents = 12 + 16 * len(tables), b"", b""
    for tag, table in sorted(tables.items()):
        padded = table + bytes(-len(table) % 4)
        checksum = sum(struct.unpack(f">{len(padded) // 4}I", padded)) & 0xFFFFFFFF
        directory += struct.pack(">4s3I", tag, checksum, offset + len(contents), len(table))
        contents += padded
    return head + directory + contents
