"""Render a page from its .qmd by Quarto if it is installed, else by Pandoc, with the same template."""

import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from ttf.engine.errors import StudyError
from ttf.engine.process.machine import explain_error_text

# Files that rendering needs next to the .qmd.
RENDER_FILES = ("page.html", "references.bib")
_RENDERER = '<span class="renderer">hand</span>'
# Quarto passes Pandoc's warnings on as information: at level WARN it drops them.
_LOG_LEVEL = {"QUARTO_LOG_LEVEL": "INFO"}
# Only at the start of a line: Quarto indents the page's own metadata.
_PROBLEM = re.compile(r"^(?:\[?WARN|\(W\)|ERROR)", re.MULTILINE | re.IGNORECASE)
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
# Without these in the first bytes, a browser guesses the encoding or falls back to quirks mode.
_DOCTYPE, _CHARSET, _CHARSET_LIMIT = "<!DOCTYPE html>", 'charset="utf-8"', 1024


def render(source: Path, page: Path) -> str:
    """Render `source`, a .qmd with RENDER_FILES in its folder, to the file `page`; return the renderer's name.

    Raises StudyError if the renderer fails or warns. `page` is written whole or not at all.
    """
    quarto = shutil.which("quarto")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for file in (source, *(source.with_name(name) for name in RENDER_FILES)):
            shutil.copyfile(file, work / file.name)
        command = [quarto, "render", source.name, "--to", "html"] if quarto else _pandoc_command(source.name)
        _run_renderer([*command, "--output", "made.html"], work)
        name = renderer_version()
        text = (
            (work / "made.html").read_text(encoding="utf-8").replace(_RENDERER, f'<span class="renderer">{name}</span>')
        )
    _check_html_head(text)
    unfinished = page.with_suffix(".half")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(page)
    return name


def renderer_version() -> str:
    """Return name and version of the renderer: Quarto if it is on the PATH, else Pandoc."""
    quarto = shutil.which("quarto")
    process = subprocess.run([quarto or _find_pandoc(), "--version"], capture_output=True, text=True, check=False)
    version = process.stdout.strip()
    if process.returncode or not version:
        raise StudyError(f"{quarto or 'Pandoc'} does not print its version:\n{process.stderr.strip()}")
    return f"Quarto {version}" if quarto else version.splitlines()[0].capitalize()


def _pandoc_command(name: str) -> list[str]:
    command = [_find_pandoc(), name, "-f", "markdown", "-t", "html5", "--template", "page.html", "--wrap=preserve"]
    return [*command, "--mathml", "--citeproc", "--syntax-highlighting=none", "--fail-if-warnings"]


def _run_renderer(command: list[str], work: Path) -> None:
    process = subprocess.run(
        command, cwd=work, capture_output=True, text=True, check=False, env=os.environ | _LOG_LEVEL
    )
    log = _COLOUR.sub("", process.stderr).strip()
    # Quarto exits with 0 after warning of an unknown citation, an open div or a duplicate id.
    problem = _PROBLEM.search(log)
    if process.returncode or problem:
        message = log[problem.start() :] if problem else log
        raise StudyError(
            explain_error_text(log, [work]) or f"{Path(command[0]).name} could not render the page:\n{message}"
        )


def _check_html_head(text: str) -> None:
    if not text.startswith(_DOCTYPE) or _CHARSET not in text[:_CHARSET_LIMIT]:
        raise StudyError(
            f"the page does not begin with {_DOCTYPE}, or has no {_CHARSET} in its first "
            f"{_CHARSET_LIMIT} bytes:\n{text[:200]}"
        )


@cache
def _find_pandoc() -> str:
    import pypandoc

    return pypandoc.get_pandoc_path()
