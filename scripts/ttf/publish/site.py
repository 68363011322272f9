"""The site: the page, every table and chart as a file, and an index of them. Any host of static files serves it."""

import re
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import PurePosixPath
from urllib.parse import quote

from ttf.publish.about import Publication
from ttf.publish.files import Published, with_files_at

RUN_REPORT = "snakemake-report.html"
# Where the workflow's description links to (workflow/report/workflow.rst); the page lies beside it on the site.
PAGE_OF_STUDY = re.compile(r"\.\./results/studies/[\w-]+/report/index\.html")

_SAID = {"source": "Source", "licence": "Licence", "citation": "Please cite"}

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; }
td, p { overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
th, td { text-align: left; vertical-align: top; padding: 0.35rem 0.6rem 0.35rem 0; border-bottom: 1px solid #8886; }
td:first-child { width: 40%; }
.size { white-space: nowrap; opacity: 0.75; }
.synthetic { border-left: 0.3rem solid #d55e00; padding: 0.3rem 0.8rem; }
.what { opacity: 0.75; font-size: 0.85rem; }
"""


def with_links(page: str, about: Publication, run_report: bool, pages: bool = False) -> str:
    """The page of the study with a description for search engines, and links to the other files of the site."""
    head = f'\n  <meta name="description" content="{escape(about.description)}">'
    links = '<a href="files.html">All tables and charts of this page as files</a>'
    links += ' · <a href="tables.html">What their columns are</a>'
    links += ' · <a href="report.pdf">The report as a PDF</a>'
    if run_report:
        links += f' · <a href="{RUN_REPORT}">How it was run: rules, their code and their run times</a>'
    # On the site the page is in the folder that has those of the traces.
    page = with_files_at(page, "")
    if pages:
        links += ' · <a href="pages/index.html">A page for each trace and theme, with search</a>'
    before, title, after = page.partition("</title>")
    start, body_end, rest = after.rpartition("</body>")
    return f'{before}{title}{head}{start}<nav class="published"><p>{links}</p></nav>\n{body_end}{rest}'


def index_of(files: Iterable[Published], about: Publication) -> str:
    """files.html: every file with its size and what it is, the formats of one chart in one row."""
    by_folder: dict[str, list[Published]] = {}
    for file in files:
        by_folder.setdefault(file.path.partition("/")[0] if "/" in file.path else "", []).append(file)
    sections = [_section(folder, found, about) for folder, found in sorted(by_folder.items())]
    return page_of("Files", about, f"<p>{escape(about.description)}</p>\n{''.join(sections)}")


def page_of(subject: str, about: Publication, body: str) -> str:
    """A page of the site beside the report."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{subject}: {escape(about.title)}</title>
<meta name="description" content="{subject}. {escape(about.description)}">
<style>{_STYLE}</style>
</head>
<body>
<p><a href="index.html">The report</a></p>
<h1>{escape(about.title)}</h1>
{body}</body>
</html>
"""


def readme_of(about: Publication, own: str = "") -> str:
    """README.md of the site; of the results in the archive, where the files of the study lie in the folder `own`."""
    report = f"{own}report/" if own else ""
    lines = [f"# {_plain(about.title)}", "", _plain(about.description), ""]
    lines += [
        "| where | what |",
        "|---|---|",
        f"| `{report}index.html` | the report, one page that needs no network |",
        f"| `{report}report.pdf` | the same on paper |",
        *([] if own else ["| `files.html` | every file here with its size and what it is |"]),
        *([] if own else ["| `tables.html` | what every column of every table is |"]),
        "| `<trace>/tables/*.csv` | estimates with n and intervals; units in the column names (`_s`: seconds) |",
        f"| `<trace>/figures/` | charts: Vega-Lite with the rows drawn, SVG{'' if own else ', PNG'} |",
        "| `<trace>/metrics.json` | every number of the report's text: value, unit, n, source |",
        f"| `{own}scorecard.csv` | published findings beside what these traces give |",
        f"| `{own}config.yaml` | the configuration of the run |",
        "",
        "Raw records and tables with a row per job are not here. Tables of users, accounts and nodes name them as the",
        "trace does: look at your own before you publish them.",
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


def _section(folder: str, files: list[Published], about: Publication) -> str:
    entry = about.traces.get(folder)
    title = folder if entry else {"": "The whole study", "comparison": "Comparison of the traces"}.get(folder, folder)
    text = f'<h2 id="{quote(folder) or "study"}">{escape(title)}</h2>\n'
    if entry:
        text += _about_trace(entry)
    charts: dict[str, list[Published]] = {}
    for file in files:
        in_figures = PurePosixPath(file.path).parent.name == "figures"
        charts.setdefault(file.path.split(".")[0] if in_figures else file.path, []).append(file)
    rows = "".join(_row(same) for same in charts.values())
    return f"{text}<table>\n<tr><th>File and size</th><th>What it is</th></tr>\n{rows}</table>\n"


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
    what = escape(first.name)
    if first.what:
        what += f'<br><span class="what">{escape(first.what)}</span>'
    return f"<tr><td>{'<br>'.join(links)}</td><td>{what}</td></tr>\n"


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
