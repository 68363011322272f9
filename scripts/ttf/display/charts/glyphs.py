"""Characters without a glyph in the fonts of pictures and PDF, which browsers do not draw.

vl-convert and Typst include fonts for Latin, Greek and Cyrillic; names may use any script.
"""

import re

# Glyphs of both fonts: accented letters, punctuation, currencies, arrows, some mathematics.
_GLYPHS = (
    "\0-\u036f\u0384-\u03ce\u03d0-\u04ff\u05d0-\u05ea\u1e00-\u1e9b\u1ea0-\u1ef9\u2000-\u200f\u2012-\u2022\u2026"
    "\u2028-\u2030\u2032-\u2034\u2039\u203a\u2060-\u206f\u20a0-\u20b5\u2116\u2122\u2126\u2190-\u2195\u2202\u2206\u220f"
    "\u2211\u2212\u2219\u221a\u221e\u2248\u2260\u2264\u2265\u2500\u2502\u2588\u25a0\u25a1\u25b2\u25bc\u25ca-\u25cc\u25cf"
)
_MISSING = re.compile(f"[^{_GLYPHS}]")
_MISSING_RUN = re.compile(f"[^{_GLYPHS}]+")
# Space added to a missing character's box when measuring: together nearly as wide as a Chinese character.
_SPACE = "\u2002"
_SPACED = re.compile(f"([^{_GLYPHS}]){_SPACE}")
SPELLED = "[U+ ...] are characters that this file has no font for, by their Unicode numbers."


def has_missing_glyphs(text: str) -> bool:
    return bool(_MISSING.search(text))


def spell_missing_glyphs(text: str) -> str:
    """Return the text with missing characters as their numbers: [U+5F20 U+4F1F]."""
    return _MISSING_RUN.sub(lambda run: f"[{' '.join(f'U+{ord(character):04X}' for character in run[0])}]", text)


def add_spacing(text: str) -> str:
    """Widen the text by a space after each character without a glyph: a browser's fonts may draw it wider."""
    return _MISSING.sub(rf"\g<0>{_SPACE}", text)


def remove_spacing(text: str) -> str:
    """Undo `add_spacing`."""
    return _SPACED.sub(r"\1", text)
