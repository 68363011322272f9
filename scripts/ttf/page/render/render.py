"""A page from its .qmd: by Quarto where it can be had, else by Pandoc; both fill the same template."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from ttf.engine.errors import StudyError
from ttf.engine.process.machine import refused_in

# What a page is made of besides its .qmd, in the same folder.
BESIDE = ("page.html", "references.bib")
_RENDERER = '<span class="renderer">hand</span>'
# Quarto passes Pandoc's warnings on as information: at level WARN it drops them.
_LOG_LEVEL = {"QUARTO_LOG_LEVEL": "INFO"}
# At the start of a line: Quarto indents what it prints of the page's own metadata.
_PROBLEM = re.compile(r"^(?:\[?WARN|\(W\)|ERROR)", re.MULTILINE | re.IGNORECASE)
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
# What a browser has to see within the first bytes, so that it neither guesses an encoding nor draws as of old.
_BEGINS, _CHARSET, _WITHIN = "<!DOCTYPE html>", 'charset="utf-8"', 1024


def render(source: Path, page: Path) -> str:
    """Render `source`, a .qmd with BESIDE in its folder, to the one file `page`; return the renderer's name.

    Raises StudyError where the renderer fails or warns of anything; `page` is written whole or not at all.
    """
    quarto = shutil.which("quarto")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for file in (source, *(source.with_name(name) for name in BESIDE)):
            shutil.copyfile(file, work / file.name)
        command = [quarto, "render", source.name, "--to", "html"] if quarto else _of_pandoc(source.name)
        _run([*command, "--output", "made.html"], work)
        name = renderer()
        text = (
            (work / "made.html").read_text(encoding="utf-8").replace(_RENDERER, f'<span class="renderer">{name}</span>')
        )
    _check(text)
    half = page.with_suffix(".half")
    half.write_text(text, encoding="utf-8")
    half.replace(page)
    return name


def renderer() -> str:
    """Name and version of what renders pages here: Quarto if it is on the PATH, else Pandoc."""
    quarto = shutil.which("quarto")
    done = subprocess.run([quarto or _pandoc(), "--version"], capture_output=True, text=True, check=False)
    version = done.stdout.strip()
    if done.returncode or not version:
        raise StudyError(f"{quarto or 'Pandoc'} does not tell its version:\n{done.stderr.strip()}")
    return f"Quarto {version}" if quarto else version.splitlines()[0].capitalize()


def _of_pandoc(name: str) -> list[str]:
    command = [_pandoc(), name, "-f", "markdown", "-t", "html5", "--template", "page.html", "--wrap=preserve"]
    return [*command, "--mathml", "--citeproc", "--syntax-highlighting=none", "--fail-if-warnings"]


def _run(command: list[str], work: Path) -> None:
    environment = os.environ | _LOG_LEVEL
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False, env=environment)
    log = _COLOUR.sub("", done.stderr).strip()
    # Quarto warns of an unknown citation, an open div or an id that stands twice, and exits with 0.
    problem = _PROBLEM.search(log)
    if done.returncode or problem:
        message = log[problem.start() :] if problem else log
        raise StudyError(refused_in(log, [work]) or f"{Path(command[0]).name} could not render the page:\n{message}")


def _check(text: str) -> None:
    if not text.startswith(_BEGINS) or _CHARSET not in text[:_WITHIN]:
        raise StudyError(
            f"the page does not begin with {_BEGINS}, or has no {_CHARSET} in its first {_WITHIN} bytes:\n{text[:200]}"
        )


def _pandoc() -> str:
    import pypandoc

    return pypandoc.get_pandoc_path()
