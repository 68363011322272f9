"""Charts as pictures for papers and slides; none loads anything from a network."""

import re
import tempfile
from pathlib import Path

from ttf.engine.extras import require_extra

_PAGE = '#set page(width: auto, height: auto, margin: 0pt)\n#image("picture.svg")\n'
_FONT_FAMILY = re.compile(r'font-family="[^"]*"')
_FONT_SIZE = re.compile(r'font-size="([\d.]+)px"')
# A font that Typst bundles. It is narrower than that of the charts, so chart texts are enlarged.
_FONT, _FONT_SCALE = "Libertinus Serif", 1.08


def set_font(svg: str) -> str:
    """Set the texts of a drawing in the font of PDFs, so that the bytes do not depend on installed fonts."""
    svg = _FONT_FAMILY.sub(f'font-family="{_FONT}"', svg)
    return _FONT_SIZE.sub(lambda match: f'font-size="{float(match[1]) * _FONT_SCALE:.4g}px"', svg)


def render_pdf(svg: str) -> bytes:
    """Render an SVG to PDF by Typst, with embedded fonts: vl-convert numbers the fonts of a PDF at random."""
    require_extra("pdf")
    import typst

    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        (work / "picture.svg").write_text(set_font(svg), encoding="utf-8")
        (work / "picture.typ").write_text(_PAGE, encoding="utf-8")
        return typst.compile(work / "picture.typ", root=work, ignore_system_fonts=True, timestamp=0)


def render_png(svg: str) -> bytes:
    """Render an SVG to PNG at twice its size."""
    import vl_convert

    return vl_convert.svg_to_png(svg, scale=2)
