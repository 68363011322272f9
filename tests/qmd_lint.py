"""Check requirements of .qmd files about which Quarto only warns, without Quarto."""

import re
from pathlib import Path

_INCLUDE = re.compile(r"^\{\{< include (\S+) >\}\}$", re.MULTILINE)
_RAW = re.compile(r"^```\{=(\w+)\}\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)
_ATTRIBUTES = re.compile(r"^(?:#+ .*|:::+ *)\{#([\w-]+)[^}\n]*\}$", re.MULTILINE)
_REFERENCE = re.compile(r"(?<![\w&#;@])@((?:fig|tbl|sec)-[\w-]*\w)")
_FENCE = re.compile(r"^:::+(.*)$", re.MULTILINE)
_TAG = re.compile(r"<(/?)([a-zA-Z][\w-]*)((?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>")
_SCRIPT = re.compile(r"(<(script|style)\b[^>]*>).*?</\2>", re.DOTALL)
_ID = re.compile(r"\sid=\"([^\"]*)\"")
_VOID = {"br", "col", "hr", "img", "input", "link", "meta", "wbr"}


def include_files(source: Path) -> str:
    """Return report.qmd with its included files; a missing file raises an error."""
    return _INCLUDE.sub(lambda match: (source.parent / match[1]).read_text(), source.read_text())


def faults(text: str) -> list[str]:
    """Return messages about the faults of a .qmd without includes."""
    messages = []
    raw = _RAW.findall(text)
    prose = _RAW.sub("\n", text)
    html = [_SCRIPT.sub(lambda match: f"{match[1]}</{match[2]}>", content) for kind, content in raw if kind == "html"]
    ids = _ATTRIBUTES.findall(prose) + [name for block in html for name in _ID.findall(block)]
    messages += [f"id {name} twice" for name in sorted({name for name in ids if ids.count(name) > 1})]
    messages += [f"reference to {name}, which is nowhere" for name in _REFERENCE.findall(prose) if name not in ids]
    messages += [f"line begins with {line}" for line in re.findall(r"^\(?@(?:sec|fig|tbl)-[\w-]+", prose, re.MULTILINE)]
    if prose.count("```") % 2:
        messages.append("a code fence is not closed")
    depth = 0
    for attributes in _FENCE.findall(prose):
        depth += 1 if attributes.strip() else -1
        if depth < 0:
            break
    if depth:
        messages.append("fenced divs are not balanced")
    # A div that is referred to has its caption as last paragraph.
    for name, content in re.findall(r"^::: \{#((?:fig|tbl)-[\w-]+)\}\n(.*?)^:::$", text, re.MULTILINE | re.DOTALL):
        paragraphs = [part.strip() for part in _RAW.sub("", content).split("\n\n") if part.strip()]
        if len([part for part in paragraphs if not part.startswith("|")]) != 1 or paragraphs[-1].startswith("|"):
            messages.append(f"{name} has no caption of one paragraph")
        if name.startswith("fig-") and "```{=typst}" not in content:
            messages.append(f"{name} has no picture for the PDF")
    for block in html:
        messages += _unclosed(block)
    return messages


def _unclosed(html: str) -> list[str]:
    open_tags = []
    for closing, name, attributes in _TAG.findall(html):
        name = name.lower()
        if name in _VOID or attributes.endswith("/"):
            continue
        if not closing:
            open_tags.append(name)
        elif not open_tags or open_tags.pop() != name:
            return [f"</{name}> closes nothing, in: {html[:80]}"]
    return [f"<{name}> is not closed, in: {html[:80]}" for name in open_tags]
