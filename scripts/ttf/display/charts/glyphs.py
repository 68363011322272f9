"""Characters that the fonts of the locked environment lack: of pictures and PDF, which no browser draws with its fonts.

vl-convert and Typst carry fonts for Latin, Greek and Cyrillic; names may be in any script.
"""

import re

# What the fonts of both have: letters with accents, marks of punctuation and of money, arrows, a little mathematics.
_DRAWN = (
    "\0-\u036f\u0384-\u03ce\u03d0-\u04ff\u05d0-\u05ea\u1e00-\u1e9b\u1ea0-\u1ef9\u2000-\u200f\u2012-\u2022\u2026"
    "\u2028-\u2030\u2032-\u2034\u2039\u203a\u2060-\u206f\u20a0-\u20b5\u2116\u2122\u2126\u2190-\u2195\u2202\u2206\u220f"
    "\u2211\u2212\u2219\u221a\u221e\u2248\u2260\u2264\u2265\u2500\u2502\u2588\u25a0\u25a1\u25b2\u25bc\u25ca-\u25cc\u25cf"
)
_LACKING = re.compile(f"[^{_DRAWN}]")
_RUN = re.compile(f"[^{_DRAWN}]+")
# What a lacking character is measured with beside its box: nearly as wide together as the sign of a Chinese word.
_ROOM = "\u2002"
_WITH_ROOM = re.compile(f"([^{_DRAWN}]){_ROOM}")
SPELLED = "[U+ ...] are characters that this file has no font for, by their Unicode numbers."


def lacks(text: str) -> bool:
    return bool(_LACKING.search(text))


def spelled(text: str) -> str:
    """The text with lacking characters as their numbers: [U+5F20 U+4F1F]."""
    return _RUN.sub(lambda run: f"[{' '.join(f'U+{ord(one):04X}' for one in run[0])}]", text)


def with_room(text: str) -> str:
    """The text as wide, by the fonts that lack some of its characters, as it may be by those of a browser."""
    return _LACKING.sub(rf"\g<0>{_ROOM}", text)


def without_room(text: str) -> str:
    return _WITH_ROOM.sub(r"\1", text)
