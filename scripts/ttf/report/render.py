"""The page from its .qmd source: by Quarto where it can be had, else by Pandoc."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from ttf.errors import StudyError

_INCLUDE = re.compile(r"^\{\{< include (\S+) >\}\}$", re.MULTILINE)
_LEFT_ON_THE_PAGE = re.compile(r"\?@(?:fig|tbl|sec)-[\w-]+")
_RENDERER = re.compile(r'(<span class="renderer">)[^<]*(</span>)')


def render(source: Path, page: Path, lua_filter: Path, style: Path) -> str:
    """Render the folder `source` (report.qmd and what it needs) to the one file `page`; return the renderer's name.

    Raises StudyError where the renderer fails or leaves a reference unresolved; `page` is written whole or not at all.
    """
    quarto = shutil.which("quarto")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for file in source.iterdir():
            if file.is_file():
                shutil.copyfile(file, work / file.name)
        renderer = f"Quarto {_version(quarto, '--version')}" if quarto else _pandoc_name()
        footer = work / "footer.html"
        footer.write_text(
            _RENDERER.sub(lambda match: match[1] + renderer + match[2], footer.read_text(encoding="utf-8")),
            encoding="utf-8",
        )
        made = _by_quarto(quarto, work) if quarto else _by_pandoc(work, lua_filter.resolve(), style.resolve())
        half = page.with_suffix(".half")
        shutil.copyfile(made, half)
        half.replace(page)
    return renderer


def _by_quarto(quarto: str, work: Path) -> Path:
    # Flags go after the file: the other order renders nothing and exits with 0.
    done = _run([quarto, "render", "report.qmd", "--to", "html", "--output", "index.html"], work)
    # Quarto warns of a reference to nothing, leaves ?@fig-... on the page, and exits with 0.
    page = work / "index.html"
    unresolved = [line for line in done.splitlines() if "Unable to resolve" in line or "not found" in line]
    unresolved += _LEFT_ON_THE_PAGE.findall(page.read_text(encoding="utf-8"))
    if unresolved:
        raise StudyError("the report refers to something that is not in it:\n" + "\n".join(unresolved))
    return page


def _by_pandoc(work: Path, lua_filter: Path, style: Path) -> Path:
    text = _INCLUDE.sub(
        lambda match: (work / match[1]).read_text(encoding="utf-8"), (work / "report.qmd").read_text(encoding="utf-8")
    )
    (work / "whole.qmd").write_text(text, encoding="utf-8")
    shutil.copyfile(style, work / "pandoc.css")
    command = [_pandoc(), "whole.qmd", "-f", "markdown", "-t", "html5", "-s", "-o", "index.html"]
    command += ["--toc", "--toc-depth=2", "--number-sections", "--mathml", "--embed-resources"]
    command += [f"--lua-filter={lua_filter}", "--citeproc", "--css=pandoc.css"]
    command += ["--include-in-header=header.html", "--include-after-body=footer.html", "--fail-if-warnings"]
    _run(command, work)
    return work / "index.html"


def _run(command: list[str], work: Path) -> str:
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    if done.returncode:
        raise StudyError(f"{Path(command[0]).name} could not render the report:\n{done.stderr.strip()}")
    return done.stderr


def _pandoc() -> str:
    import pypandoc

    return pypandoc.get_pandoc_path()


def _pandoc_name() -> str:
    first = _version(_pandoc(), "--version").splitlines()[0]
    return first[0].upper() + first[1:]


def _version(program: str, flag: str) -> str:
    return subprocess.run([program, flag], capture_output=True, text=True, check=True).stdout.strip()
