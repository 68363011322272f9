"""The site: the pages, every table and chart as a file, and an index. Any static file host can serve it."""

from collections.abc import Iterable, Mapping
from html import escape
from pathlib import PurePosixPath
from urllib.parse import quote

from ttf.engine.provenance import seal
from ttf.page.publication_record import Publication
from ttf.page.publish.files import PackedFile

_LABELS = {"source": "Source", "licence": "Licence", "citation": "Please cite"}


def file_index(files: Iterable[PackedFile], publication: Publication) -> str:
    """Return the body of the page of files: name, size and description; one row for all formats of a chart."""
    files_by_folder: dict[str, list[PackedFile]] = {}
    for file in files:
        files_by_folder.setdefault(file.path.partition("/")[0] if "/" in file.path else "", []).append(file)
    sections = [_section(folder, folder_files, publication) for folder, folder_files in sorted(files_by_folder.items())]
    return f"<p>{escape(publication.description)}</p>\n{''.join(sections)}"


def make_readme(publication: Publication, study_folder: str = "") -> str:
    """Return README.md of the site, or of the archive, where the study's files lie in `study_folder`."""
    lines = [f"# {_escape_markdown(publication.title)}", "", _escape_markdown(publication.description), ""]
    lines += [
        "| where | what |",
        "|---|---|",
        *_readme_page_rows(f"{study_folder}report/" if study_folder else "", len(publication.traces)),
        *([] if study_folder else ["| `files.html` | every file here with its size and description |"]),
        "| `<trace>/tables/*.csv` | estimates with n and intervals; units in the column names (`_s`: seconds) |",
        f"| `<trace>/figures/` | charts: Vega-Lite with the rows drawn, SVG, {'' if study_folder else 'PNG, '}PDF |",
        "| `<trace>/metrics.json` | every number of the report's text: value, unit, n, source |",
        f"| `{study_folder}scorecard.csv` | published findings compared with these traces |",
        f"| `{study_folder}config.yaml` | the configuration of the run |",
        "",
        "Raw records and tables with a row per job are not here. "
        + (
            "Users, accounts and nodes have pseudonyms, and texts that people wrote are left out."
            if publication.has_pseudonyms
            else "Users, accounts and nodes are named as in the traces."
        ),
        "In tables, an apostrophe precedes each text that a spreadsheet would evaluate as a formula.",
        f"`{seal.NAME}` lists the files with their SHA-256; `ttf verify FOLDER` of the workflow checks them.",
        "",
        "## Traces",
        "",
    ]
    for name, entry in publication.traces.items():
        synthetic = (
            " **Synthetic: no finding from it says anything about a real cluster.**" if entry["synthetic"] else ""
        )
        lines.append(f"- **{name}**: {_escape_markdown(entry.get('title', 'no title in the registry'))}.{synthetic}")
        lines += [f"  {word}: {_escape_markdown(entry[key])}." for key, word in _LABELS.items() if entry.get(key)]
    creators = "; ".join(creator.name for creator in publication.creators)
    version, licence = _escape_markdown(publication.version), _escape_markdown(publication.license)
    lines += ["", f"By {_escape_markdown(creators)}, version {version}, licence {licence}."]
    return "\n".join(lines) + "\n"


def _readme_page_rows(report: str, traces: int) -> list[str]:
    """Return the rows of README.md on the pages of the report; report: prefix of their paths."""
    page, pdf = ("index", "report") if traces == 1 else ("<trace>", "<trace>")
    comparison = [] if traces == 1 else [f"| `{report}index.html` | the comparison of the traces |"]
    return [
        *comparison,
        f"| `{report}{page}.html` | the report, one page that needs no network |",
        f"| `{report}{pdf}.pdf` | the report as a PDF |",
    ]


def _section(folder: str, files: list[PackedFile], publication: Publication) -> str:
    entry = publication.traces.get(folder)
    title = folder or "The whole study"
    text = f'<h2 id="folder-{quote(folder)}">{escape(title)}</h2>\n'
    if entry:
        text += _trace_paragraphs(entry)
    charts: dict[str, list[PackedFile]] = {}
    for file in files:
        is_figure = PurePosixPath(file.path).parent.name == "figures"
        charts.setdefault(file.path.split(".")[0] if is_figure else file.path, []).append(file)
    rows = "".join(_file_row(formats) for formats in charts.values())
    head = '<tr><th class="l">File and size</th><th class="l">Description</th></tr>'
    return f'{text}<div class="scroll"><table>\n{head}\n{rows}</table></div>\n'


def _trace_paragraphs(entry: Mapping) -> str:
    text = f"<p>{escape(entry.get('title', ''))}</p>\n" if entry.get("title") else ""
    if entry["synthetic"]:
        text += '<p class="synthetic">Synthetic: no finding from it says anything about a real cluster.</p>\n'
    labelled = [(label, escape(entry[key])) for key, label in _LABELS.items() if entry.get(key)]
    return text + "".join(f'<p class="what">{label}: {value}</p>\n' for label, value in labelled)


def _file_row(files: list[PackedFile]) -> str:
    """Return one row for a file, or for the formats of one chart."""
    first = files[0]
    links = [
        f'<a href="{quote(file.path)}">{escape(PurePosixPath(file.path).name)}</a> '
        f'<span class="size">{format_size(len(file.content))}</span>'
        for file in files
    ]
    # The site gets a PNG and a PDF of each SVG.
    drawings = [file.path for file in files if file.path.endswith(".svg")]
    links += [
        f'<a href="{quote(path[:-3])}{kind}">{escape(PurePosixPath(path).stem)}.{kind}</a>'
        for path in drawings
        for kind in ("png", "pdf")
    ]
    description = escape(first.name)
    if first.description:
        description += f'<br><span class="what">{escape(first.description)}</span>'
    return f'<tr><td class="l">{"<br>".join(links)}</td><td class="l">{description}</td></tr>\n'


def format_size(size: int) -> str:
    """Format a size in decimal units: 1.2 MB."""
    for unit, scale in (("MB", 1_000_000), ("kB", 1_000)):
        if size >= scale:
            return f"{size / scale:,.1f} {unit}"
    return f"{size} B"


def _escape_markdown(text: str) -> str:
    line = escape(" ".join(str(text).split()), quote=False)
    return "".join(f"\\{char}" if char in "\\`*_[]|#$" else char for char in line)
