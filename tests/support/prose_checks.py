"""Patterns that the prose of a report must not contain."""

import html
import re

# Elements of a page that are not prose, and tags that do not end a piece of prose.
_NO_PROSE = re.compile(r"<(script|style|table|pre)\b.*?</\1>", re.DOTALL)
_INLINE = re.compile(r"</?(?:a|abbr|b|bdi|cite|code|data|em|i|q|span|strong|sub|sup)\b[^>]*>")
_MANY = "jobs|tasks|pods|attempts|failures|nodes|GPUs|users|machines|rows|durations|runs|days|hours|columns|checks"
# Pattern -> the fault that it indicates.
_SLIPS = {
    r"\b(?:nan|None(?! of)|inf|undefined|0 of 0)\b": "a number that is none",
    rf"(?<![\w,.–-])1 (?:{_MANY})\b(?!-)": "one of many",
    r"\bof (?:those )?0\b(?![.,]\d| (?:s|%|GPU))": "a part of nothing",
    r"  +,| ,(?! )|\(\s*\)|\(;|\( |,\s*\.|(?<!\.)\.\.(?!\.)|;\s*\.": "a clause left out",
    r"(?<!\w)[.:;,] [a-z]\w* <<|<%|%>|<<|>>": "a template",
    r"\b(\w+) \1\b(?<!that that)(?<!had had)": "a word twice",
}


def find_slips(text: str) -> list[str]:
    """Return each slip in prose (Markdown or plain text) with its context."""
    flat = " ".join(text.split())
    return [
        f"{fault}: ...{flat[max(match.start() - 40, 0) : match.end() + 40]}..."
        for pattern, fault in _SLIPS.items()
        for match in re.finditer(pattern, flat)
    ]


def faults_of_page(page: str) -> list[str]:
    text = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    blocks = re.findall(r"<pre(?! class=\"(?:bibtex|sh)\").*", text)
    nothing = re.findall(r".{,40}\b(?:nan|None(?! of)|inf|undefined|0 of 0)\b.{,40}", text)
    return [*blocks, *nothing, *find_slips(extract_prose(page))]


def extract_prose(page: str) -> str:
    """Return sentences and headings of an HTML page, separated by `§`; tables repeat words, so omit them."""
    pieces = re.sub(r"<[^>]+>", " § ", _INLINE.sub("", _NO_PROSE.sub(" § ", page)))
    return html.unescape(pieces)
