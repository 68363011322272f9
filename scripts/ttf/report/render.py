"""The page and the PDF from their .qmd source: by Quarto where it can be had, else by Pandoc (and Typst)."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path

import yaml

from ttf.errors import StudyError

_INCLUDE = re.compile(r"^\{\{< include (\S+) >\}\}$", re.MULTILINE)
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_RENDERER = re.compile(r'(<span class="renderer">)[^<]*(</span>)')
# What Quarto says of a fault in the source, and exits with 0; what it leaves where a reference stood.
FAULT = re.compile(
    r"^.*(?:Unable to resolve|not found|Validation of YAML|[Dd]uplicate|string was found in the document).*$",
    re.MULTILINE,
)
LEFT_THERE = re.compile(r"\?@(?:fig|tbl|sec)-[\w-]+|\?(?:meta|var):[\w.-]+|quarto-unresolved-ref")
# Of the YAML under format: typst, what Pandoc's own template of Typst takes.
_OF_PANDOC = ("papersize", "margin", "fontsize", "section-numbering")
# The PDF bears a date only if it is given one.
_NO_DATE = {"SOURCE_DATE_EPOCH": "0"}
_FONT_FAMILY = re.compile(r'font-family="[^"]*"')
_FONT_SIZE = re.compile(r'font-size="([\d.]+)px"')
# The font of the PDF is that much narrower than the one the charts are drawn for, and small where that is not.
_FONT, _LARGER = "Libertinus Serif", 1.08
# Room (px) at the side of a chart for lines that are wider all the same.
_SIDE = 24
_SVG_WIDTH = re.compile(r'(<svg [^>]*?\bwidth=")([\d.]+)("[^>]*?viewBox="0 0 )([\d.]+)')


def render(source: Path, page: Path, lua_filter: Path, style: Path) -> str:
    """Render the folder `source` (report.qmd and what it needs) to the one file `page`; return the renderer's name.

    Raises StudyError where the renderer fails or leaves a reference unresolved; `page` is written whole or not
    at all.
    """
    quarto = shutil.which("quarto")
    with _copy_of(source) as work:
        renderer = _renderer(quarto)
        footer = work / "footer.html"
        text = _RENDERER.sub(lambda match: match[1] + renderer + match[2], footer.read_text(encoding="utf-8"))
        footer.write_text(text, encoding="utf-8")
        if quarto:
            made = _by_quarto(quarto, work, "html", "index.html")
        else:
            made = _by_pandoc(work, lua_filter.resolve(), style.resolve())
        _put(made, page)
    return renderer


def render_pdf(source: Path, charts: Iterable[Path], pdf: Path, lua_filter: Path) -> str:
    """Render the folder `source` to a PDF with the SVG files `charts`, results/<trace>/figures/<name>.svg.

    The same bytes every time: no date, no fonts but those Typst carries. Raises as `render` does.
    """
    quarto = shutil.which("quarto")
    with _copy_of(source) as work:
        for chart in charts:
            copy = work / "figures" / chart.parents[1].name / chart.name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(in_font_of_pdf(chart.read_text(encoding="utf-8")), encoding="utf-8")
        made = _by_quarto(quarto, work, "typst", "report.pdf") if quarto else _by_typst(work, lua_filter.resolve())
        _put(made, pdf)
    return _renderer(quarto) + ("" if quarto else " and Typst")


def in_font_of_pdf(svg: str) -> str:
    """A chart with its texts in the font of the PDF: whichever fonts a machine has, the bytes are the same."""
    svg = _FONT_FAMILY.sub(f'font-family="{_FONT}"', svg)
    svg = _FONT_SIZE.sub(lambda match: f'font-size="{float(match[1]) * _LARGER:.4g}px"', svg)
    return _SVG_WIDTH.sub(lambda at: f"{at[1]}{float(at[2]) + _SIDE:g}{at[3]}{float(at[4]) + _SIDE:g}", svg, count=1)


@contextmanager
def _copy_of(source: Path):
    """The files of the folder in a folder that may be written to."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for file in source.iterdir():
            if file.is_file():
                shutil.copyfile(file, work / file.name)
        yield work


def _put(made: Path, product: Path) -> None:
    half = product.with_suffix(".half")
    shutil.copyfile(made, half)
    half.replace(product)


def _by_quarto(quarto: str, work: Path, to: str, output: str) -> Path:
    # Flags go after the file: the other order renders nothing and exits with 0.
    faults = FAULT.findall(_run([quarto, "render", "report.qmd", "--to", to, "--output", output], work))
    # A PDF cannot be searched for what is left of a reference, the Typst it was made from can.
    text = work / ("report.typ" if to == "typst" else output)
    if text.exists():
        faults += LEFT_THERE.findall(text.read_text(encoding="utf-8"))
    if faults:
        raise StudyError("the report refers to something that is not in it:\n" + "\n".join(faults))
    return work / output


def _whole(work: Path) -> str:
    """report.qmd with its includes, which Pandoc knows nothing of."""
    report = (work / "report.qmd").read_text(encoding="utf-8")
    text = _INCLUDE.sub(lambda match: (work / match[1]).read_text(encoding="utf-8"), report)
    (work / "whole.qmd").write_text(text, encoding="utf-8")
    return text


def _by_pandoc(work: Path, lua_filter: Path, style: Path) -> Path:
    _whole(work)
    shutil.copyfile(style, work / "pandoc.css")
    footer = work / "footer.html"
    footer.write_text(f"</main>\n{footer.read_text(encoding='utf-8')}", encoding="utf-8")
    command = [_pandoc(), "whole.qmd", "-f", "markdown", "-t", "html5", "-s", "-o", "index.html"]
    command += ["--toc", "--toc-depth=2", "--number-sections", "--mathml", "--embed-resources"]
    command += [f"--lua-filter={lua_filter}", "--citeproc", "--css=pandoc.css"]
    command += ["--include-in-header=header.html", "--include-after-body=footer.html", "--fail-if-warnings"]
    _run(command, work)
    return work / "index.html"


def _by_typst(work: Path, lua_filter: Path) -> Path:
    import typst

    about = yaml.safe_load(_FRONT_MATTER.match(_whole(work))[1])["format"]["typst"]
    settings = {key: about[key] for key in _OF_PANDOC if key in about}
    (work / "settings.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    command = [_pandoc(), "whole.qmd", "-f", "markdown", "-t", "typst", "-s", "-o", "report.typ"]
    command += ["--metadata-file=settings.yaml", f"--lua-filter={lua_filter}"]
    command += [f"--lua-filter={name}" for name in about.get("filters", [])]
    command += ["--citeproc", f"--include-in-header={about['include-in-header']}", "--fail-if-warnings"]
    _run(command, work)
    try:
        typst.compile(
            work / "report.typ",
            output=work / "report.pdf",
            root=work,
            ignore_system_fonts=True,
            timestamp=0,
            # No packages, so no network.
            package_path=work / "none",
            package_cache_path=work / "none",
        )
    except typst.TypstError as error:
        raise StudyError(f"Typst could not render the report:\n{error}") from None
    return work / "report.pdf"


def _run(command: list[str], work: Path) -> str:
    environment = os.environ | _NO_DATE
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise StudyError(f"{Path(command[0]).name} could not render the report:\n{done.stderr.strip()}")
    return done.stderr


def _pandoc() -> str:
    import pypandoc

    return pypandoc.get_pandoc_path()


def _renderer(quarto: str | None) -> str:
    """Name and version: of Quarto where it is there, else of Pandoc, which names itself."""
    command = [quarto or _pandoc(), "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return f"Quarto {said}" if quarto else said.splitlines()[0].capitalize()
