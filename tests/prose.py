"""What must not stand in the prose of a report, whatever the trace."""

import html
import re

# Of a page: what is no prose, and the tags that end a piece of it.
_NO_PROSE = re.compile(r"<(script|style|table|pre)\b.*?</\1>", re.DOTALL)
_INLINE = re.compile(r"</?(?:a|abbr|b|bdi|cite|code|data|em|i|q|span|strong|sub|sup)\b[^>]*>")
_MANY = "jobs|tasks|pods|attempts|failures|nodes|GPUs|users|machines|rows|lives|runs|days|hours|columns|checks"
# A pattern, and what it would be a sign of.
_SLIPS = {
    r"\b(?:nan|None(?! of)|inf|undefined|0 of 0)\b": "a number that is none",
    rf"(?<![\w,.–-])1 (?:{_MANY})\b(?!-)": "one of many",
    r"\bof (?:those )?0\b(?![.,]\d| (?:s|%|GPU))": "a part of nothing",
    r"  +,| ,(?! )|\(\s*\)|\(;|\( |,\s*\.|(?<!\.)\.\.(?!\.)|;\s*\.": "a clause left out",
    r"(?<!\w)[.:;,] [a-z]\w* <<|<%|%>|<<|>>": "a template",
    r"\b(\w+) \1\b(?<!that that)(?<!had had)": "a word twice",
}


def slips(text: str) -> list[str]:
    """Each slip in a piece of prose (Markdown or plain text), with what is around it."""
    flat = " ".join(text.split())
    return [
        f"{what}: ...{flat[max(found.start() - 40, 0) : found.end() + 40]}..."
        for pattern, what in _SLIPS.items()
        for found in re.finditer(pattern, flat)
    ]


def faults_of_page(page: str) -> list[str]:
    """The slips of an HTML page; numbers that are none, in its tables too; prose that became a block of code."""
    text = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    blocks = re.findall(r"<pre(?! class=\"(?:bibtex|sh)\").*", text)
    nothing = re.findall(r".{,40}\b(?:nan|None(?! of)|inf|undefined|0 of 0)\b.{,40}", text)
    return [*blocks, *nothing, *slips(prose_of(page))]


def prose_of(page: str) -> str:
    """The sentences and headings of an HTML page, `§` between them; no tables, which repeat words and have blanks."""
    pieces = re.sub(r"<[^>]+>", " § ", _INLINE.sub("", _NO_PROSE.sub(" § ", page)))
    return html.unescape(pieces)
