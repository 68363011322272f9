"""The report as a Quarto website: a page per trace and theme, with search, out of the .qmd of the one page."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from ttf.errors import StudyError
from ttf.publish.files import with_files_at
from ttf.report.render import FAULT, LEFT_THERE

_INCLUDE = re.compile(r"^\{\{< include _(\S+)\.qmd >\}\}$")
_HEADING = re.compile(r"^(#+) (.*?) \{#([\w-]+)[^}]*\}$")
_DIV = re.compile(r"^:::+ *\{#([\w-]+)[^}]*\}$")
_REFERENCE = re.compile(r"(?<![\w&#;@])@((fig|tbl|sec)-[\w-]*\w)")
_WORDS = {"fig": "the chart", "tbl": "the table"}
_REFERENCES = "sec-references"
# What a chapter of a synthetic trace begins with.
_CALLOUT = re.compile(r"^::: \{\.callout-warning\}\n.*?^:::$", re.MULTILINE | re.DOTALL)


@dataclass
class Page:
    """One page: its path without the ending, its title (Markdown), and its lines with whether each is prose."""

    path: str
    title: str
    level: int
    trace: str = ""
    lines: list[tuple[str, bool]] = field(default_factory=list)


def sources(texts: Mapping[str, str], title: str) -> dict[str, str]:
    """The files of a Quarto project: relative path -> text. `texts` are the .qmd of the one page by their names.

    The first page has what stands before the first chapter, and that chapter; each trace has a page and one for each
    theme; other chapters have a page each. Sections have no numbers here, so that references to them and to what is on
    another page are links in words.
    """
    pages = _pages(texts)
    titles, where = _anchors(pages)
    project = {
        "project": {"type": "website", "output-dir": "_site", "resources": ["vega.js", "charts.js"]},
        "website": {
            "title": title,
            "search": True,
            "page-navigation": True,
            "navbar": {"left": [_entry(page) for page in pages if not page.trace]},
            "sidebar": {"style": "docked", "contents": _contents(pages)},
        },
        "format": {
            "html": {
                "theme": {"light": "cosmo", "dark": "darkly"},
                "toc": True,
                "html-math-method": "mathml",
                "html-table-processing": "none",
                "number-sections": False,
            }
        },
        "lang": "en",
    }
    files = {"_quarto.yml": yaml.safe_dump(project, sort_keys=False, allow_unicode=True)}
    return files | {f"{page.path}.qmd": _text(page, titles, where) for page in pages}


def header_below(header: str) -> str:
    """What stands in the head of a page that lies a folder deeper."""
    return re.sub(r'<script src="(\w+\.js)"', r'<script src="../\1"', header)


def rendered(quarto: str, project: Path) -> Path:
    """Let Quarto render the project; returns the folder of the site. What it only warns of is an error."""
    done = subprocess.run([quarto, "render"], cwd=project, capture_output=True, text=True, check=False)
    faults = FAULT.findall(done.stderr)
    for page in sorted((project / "_site").rglob("*.html")):
        faults += [f"{page.name}: {left}" for left in LEFT_THERE.findall(page.read_text(encoding="utf-8"))]
    if done.returncode or faults:
        shown = "\n".join(faults) or done.stderr.strip()
        raise StudyError(f"Quarto could not render the site:\n{shown}")
    return project / "_site"


def write(texts: Mapping[str, str], title: str, extra: Mapping[str, Path], folder: Path) -> int:
    """Write the project to `folder` with `extra`, files by name (header.html among them); returns its pages."""
    files = sources(texts, title)
    files["header-below.html"] = header_below(extra["header.html"].read_text(encoding="utf-8"))
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    for name, file in extra.items():
        shutil.copyfile(file, folder / name)
    return sum(path.endswith(".qmd") for path in files)


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Lines of a .qmd, and of each whether it is prose: neither a raw block nor code."""
    fenced = False
    for line in text.splitlines():
        fence = line.startswith("```")
        yield line, not (fenced or fence)
        fenced = fenced != fence


def _pages(texts: Mapping[str, str]) -> list[Page]:
    body = re.sub(r"\A---\n.*?\n---\n", "", texts["report.qmd"], flags=re.DOTALL)
    pages = [Page("index", "", 1)]
    for line, prose in _lines(body):
        included = _INCLUDE.match(line) if prose else None
        heading = _HEADING.match(line) if prose else None
        if included:
            pages += _pages_of_trace(included[1], texts[f"_{included[1]}.qmd"])
        elif heading and heading[1] == "#":
            if not pages[0].title:
                pages[0].title = heading[2]
                pages[0].lines.append((f"[]{{#{heading[3]}}}", True))
                continue
            pages.append(Page(heading[3].removeprefix("sec-"), heading[2], 1))
            pages[-1].lines.append((f"[]{{#{heading[3]}}}", True))
        else:
            pages[-1].lines.append((line, prose))
    # Each page has the references it cites at its end.
    return [page for page in pages if page.path != _REFERENCES.removeprefix("sec-")]


def _pages_of_trace(trace: str, text: str) -> list[Page]:
    # Quarto leaves out folders that begin with an underscore.
    folder = f"trace-{trace}" if trace.startswith("_") else trace
    pages: list[Page] = []
    for line, prose in _lines(text):
        heading = _HEADING.match(line) if prose else None
        if heading and len(heading[1]) <= 2:
            level = len(heading[1])
            name = "index" if level == 1 else re.sub(r"^sec-t\d+-", "", heading[3])
            pages.append(Page(f"{folder}/{name}", heading[2], level, trace))
            pages[-1].lines.append((f"[]{{#{heading[3]}}}", True))
        else:
            pages[-1].lines.append((line, prose))
    chapter = pages[0]
    warning = _CALLOUT.search("\n".join(line for line, _ in chapter.lines))
    for page in pages[1:]:
        # Who comes to a page from a search reads there too that its trace is synthetic.
        page.lines[1:1] = [(line, True) for line in ("", *warning[0].split("\n"), "")] if warning else []
        chapter.lines.append((f"- [{page.title}]({page.path.rpartition('/')[2]}.qmd)", True))
    return pages


def _anchors(pages: list[Page]) -> tuple[dict[str, str], dict[str, Page]]:
    """Of every id its words, for sections, and its page."""
    titles, where = {}, {}
    for page in pages:
        for line, prose in page.lines:
            if not prose:
                continue
            if line.startswith("[]{#"):
                name, words = line[4:-1], page.title
            elif heading := _HEADING.match(line):
                name, words = heading[3], heading[2]
            elif div := _DIV.match(line):
                name, words = div[1], _WORDS.get(div[1][:3], "")
            else:
                continue
            titles[name], where[name] = words, page
    return titles, where


def _text(page: Page, titles: Mapping[str, str], where: Mapping[str, Page]) -> str:
    up = "../" * page.path.count("/")
    about = {
        "title": page.title,
        "engine": "markdown",
        "bibliography": f"{up}references.bib",
        "include-in-header": f"{up}header-below.html" if up else "header.html",
        "include-after-body": f"{up}footer.html",
    }

    def link(match: re.Match) -> str:
        name, kind = match[1], match[2]
        if name not in where:
            raise StudyError(f"the report refers to @{name}, which is not in it")
        if where[name] is page and kind != "sec":
            return match[0]
        at = "" if where[name] is page else f"{up}{where[name].path}.qmd"
        words = f"“{titles[name]}”" if kind == "sec" else f"{titles[name]} in “{where[name].title}”"
        return f"[{words}]({at}#{name})"

    lines = []
    for line, prose in page.lines:
        if prose:
            # A page's title is its first heading, those of its sections follow from the second.
            heading = _HEADING.match(line)
            if heading and page.level == 2:
                line = line[1:]
            line = line if heading else _REFERENCE.sub(link, line)
        else:
            # The folders of the traces are beside that of the pages.
            line = with_files_at(line, f"../{up}")
        lines.append(line)
    front = "\n".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in about.items())
    return f"---\n{front}\n---\n\n" + "\n".join(lines).strip() + "\n"


def _entry(page: Page) -> dict[str, str]:
    return {"text": page.title, "href": f"{page.path}.qmd"}


def _contents(pages: list[Page]) -> list:
    contents: list = []
    for page in pages:
        if not page.trace:
            contents.append(_entry(page))
        elif page.level == 1:
            contents.append({"section": page.title, "href": f"{page.path}.qmd", "contents": []})
        else:
            contents[-1]["contents"].append(_entry(page))
    return contents
