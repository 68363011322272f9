"""Pictures for papers: their fonts are in the file, complete, and the same each time."""

import base64
import io
import re
import xml.etree.ElementTree as ET

import pytest
from fontTools.ttLib import TTFont
from ttf.engine.process.fonts import hide_system_fonts
from ttf.page.publish.embedded_fonts import embed_fonts, render_pdf

FAMILY = "Liberation Sans, Arial, sans-serif"
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="40">'
    f'<text font-family="{FAMILY}" font-weight="bold" y="10">Office hours</text>'
    f'<text font-family="{FAMILY}" y="30">≤ 95% &amp; final \u5f20<tspan> µs</tspan></text></svg>'
)
FACE = re.compile(r'@font-face\{font-family:"Liberation Sans";([^{}]*?)src:url\(data:font/ttf;base64,([\w+/=]+)\)\}')


@pytest.fixture(autouse=True)
def bundled_fonts(monkeypatch):
    # Its end restores the variable: a browser of later tests needs the system's fonts.
    monkeypatch.setenv("FONTCONFIG_FILE", "")
    hide_system_fonts()


def read_fonts(svg):
    """Return style -> font, with its checksums verified."""
    return {
        style: TTFont(io.BytesIO(base64.b64decode(data)), checkChecksums=2, lazy=False)
        for style, data in FACE.findall(svg)
    }


def test_a_picture_carries_the_glyphs_of_its_texts():
    fonts = read_fonts(embed_fonts(SVG))
    characters = {style: {*map(chr, font.getBestCmap())} - {" "} for style, font in fonts.items()}
    assert characters == {"": {*"≤95%&finalµs"}, "font-weight:bold;": {*"Officehours"}}
    for font in fonts.values():
        shapes, metrics = font["glyf"], font["hmtx"]
        for code, glyph in font.getBestCmap().items():
            assert metrics[glyph][0] > 0
            assert chr(code) == " " or shapes[glyph].numberOfContours, chr(code)
        assert font["OS/2"].sTypoAscender == font["hhea"].ascent


def test_the_picture_itself_is_unchanged_and_the_same_each_time():
    embedded = embed_fonts(SVG)
    assert embedded == embed_fonts(SVG)
    assert re.sub("<style>.*?</style>", "", embedded) == SVG
    assert ET.fromstring(embedded).tag.endswith("svg")
    textless = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9"/></svg>'
    assert embed_fonts(textless) == textless


def test_a_pdf_has_its_fonts_and_no_date():
    pdfs = {render_pdf(SVG.replace("\u5f20", "")) for _ in range(2)}
    (pdf,) = pdfs
    assert pdf.startswith(b"%PDF-")
    fonts = re.findall(rb"/FontName/\w+\+([\w-]+)|/FontName /\w+\+([\w-]+)", pdf)
    assert {first or second for first, second in fonts} == {b"LiberationSans", b"LiberationSans-Bold"}
    assert pdf.count(b"/FontFile2") == 2
    assert not re.search(rb"/CreationDate \(D:(?!1970)", pdf)
