"""The site: the pages, every table and chart as a file, and an index of them. Any host of static files serves it."""

import re
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import PurePosixPath
from urllib.parse import quote

from ttf.engine.provenance import seal
from ttf.page.publication_record import Publication
from ttf.page.publish.files import Published

RUN_REPORT = "snakemake-report.html"
# Where the workflow's description links to (workflow/report/workflow.rst); the page lies beside it on the site.
PAGE_OF_STUDY = re.compile(r"\.\./results/studies/[\w-]+/report/index\.html")

_SAID = {"source": "Source", "licence": "Licence", "citation": "Please cite"}


def index_of(files: Iterable[Published], about: Publication) -> str:
    """The body of the page of files: each with its size and what it is, the formats of one chart in one row."""
    by_folder: dict[str, list[Published]] = {}
    for file in files:
        by_folder.setdefault(file.path.partition("/")[0] if "/" in file.path else "", []).append(file)
    sections = [_section(folder, found, about) for folder, found in sorted(by_folder.items())]
    return f"<p>{escape(about.description)}</p>\n{''.join(sections)}"


def readme_of(about: Publication, own: str = "") -> str:
    """README.md of the site; of the results in the archive, where the files of the study lie in the folder `own`."""
    report = f"{own}report/" if own else ""
    lines = [f"# {_plain(about.title)}", "", _plain(about.description), ""]
    lines += [
        "| where | what |",
        "|---|---|",
        *_pages_of(report, len(about.traces)),
        *([] if own else ["| `files.html` | every file here with its size and what it is |"]),
        *([] if own else ["| `tables.html` | what every column of every table is |"]),
        *([] if own else ["| `search.html` | a search over all pages |"]),
        "| `<trace>/tables/*.csv` | estimates with n and intervals; units in the column names (`_s`: seconds) |",
        f"| `<trace>/figures/` | charts: Vega-Lite with the rows drawn, SVG{'' if own else ', PNG'} |",
        "| `<trace>/metrics.json` | every number of the report's text: value, unit, n, source |",
        f"| `{own}scorecard.csv` | published findings beside what these traces give |",
        f"| `{own}config.yaml` | the configuration of the run |",
        "",
        "Raw records and tables with a row per job are not here. "
        + (
            "Users, accounts and nodes have pseudonyms, and what people wrote is left out."
            if about.pseudonyms
            else "Users, accounts and nodes are named as in the traces."
        ),
        "In tables, a text that a spreadsheet would take for a formula has an apostrophe before it.",
        f"`{seal.NAME}` lists the files with their SHA-256; `make verify FOLDER=` of the workflow checks them.",
        "",
        "## Traces",
        "",
    ]
    for name, entry in about.traces.items():
        synthetic = (
            " **Synthetic: no finding from it says anything about a real cluster.**" if entry["synthetic"] else ""
        )
        lines.append(f"- **{name}**: {_plain(entry.get('title', 'no title in the registry'))}.{synthetic}")
        lines += [f"  {word}: {_plain(entry[key])}." for key, word in _SAID.items() if entry.get(key)]
    creators = "; ".join(creator.name for creator in about.creators)
    lines += ["", f"By {_plain(creators)}, version {_plain(about.version)}, licence {_plain(about.license)}."]
    return "\n".join(lines) + "\n"


def _pages_of(report: str, traces: int) -> list[str]:
    page, paper = ("index", "report") if traces == 1 else ("<trace>", "<trace>")
    compared = [] if traces == 1 else [f"| `{report}index.html` | the comparison of the traces |"]
    return [
        *compared,
        f"| `{report}{page}.html` | the report, one page that needs no network |",
        f"| `{report}{paper}.pdf` | the same on paper |",
    ]


def _section(folder: str, files: list[Published], about: Publication) -> str:
    entry = about.traces.get(folder)
    title = folder if entry else {"": "The whole study", "comparison": "Comparison of the traces"}.get(folder, folder)
    text = f'<h2 id="folder-{quote(folder)}">{escape(title)}</h2>\n'
    if entry:
        text += _about_trace(entry)
    charts: dict[str, list[Published]] = {}
    for file in files:
        in_figures = PurePosixPath(file.path).parent.name == "figures"
        charts.setdefault(file.path.split(".")[0] if in_figures else file.path, []).append(file)
    rows = "".join(_row(same) for same in charts.values())
    head = '<tr><th class="l">File and size</th><th class="l">What it is</th></tr>'
    return f'{text}<div class="scroll"><table>\n{head}\n{rows}</table></div>\n'


def _about_trace(entry: Mapping) -> str:
    text = f"<p>{escape(entry.get('title', ''))}</p>\n" if entry.get("title") else ""
    if entry["synthetic"]:
        text += '<p class="synthetic">Synthetic: no finding from it says anything about a real cluster.</p>\n'
    said = [f'<p class="what">{word}: {escape(entry[key])}</p>\n' for key, word in _SAID.items() if entry.get(key)]
    return text + "".join(said)


def _row(files: list[Published]) -> str:
    """One row for a file, or for the formats of one chart."""
    first = files[0]
    links = [
        f'<a href="{quote(file.path)}">{escape(PurePosixPath(file.path).name)}</a> '
        f'<span class="size">{size_in_words(len(file.content))}</span>'
        for file in files
    ]
    # The picture for slides is made of the drawing when the site is.
    drawings = [file.path for file in files if file.path.endswith(".svg")]
    links += [f'<a href="{quote(path[:-3])}png">{escape(PurePosixPath(path).stem)}.png</a>' for path in drawings]
    what = escape(first.name)
    if first.what:
        what += f'<br><span class="what">{escape(first.what)}</span>'
    return f'<tr><td class="l">{"<br>".join(links)}</td><td class="l">{what}</td></tr>\n'


def size_in_words(size: int) -> str:
    """1.2 MB, of 1,000 kB."""
    for unit, scale in (("MB", 1_000_000), ("kB", 1_000)):
        if size >= scale:
            return f"{size / scale:,.1f} {unit}"
    return f"{size} B"


def _plain(text: str) -> str:
    """A text on one line of Markdown in which no character means anything but itself."""
    flat = escape(" ".join(str(text).split()), quote=False)
    return "".join(f"\\{sign}" if sign in "\\`*_[]|#$" else sign for sign in flat)
