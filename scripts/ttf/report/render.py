"""A page from its .qmd: by Quarto where it can be had, else by Pandoc; both fill the same template."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from ttf.errors import StudyError
from ttf.machine import refused_in

# What a page is made of besides its .qmd, in the same folder.
BESIDE = ("page.html", "references.bib")
_RENDERER = '<span class="renderer">hand</span>'
_QUIET = {"NO_COLOR": "1", "QUARTO_LOG_LEVEL": "WARN"}
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
    """Name and version of what renders pages here: of Quarto where it is there, else of Pandoc, which names itself."""
    quarto = shutil.which("quarto")
    command = [quarto or _pandoc(), "--version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return f"Quarto {said}" if quarto else said.splitlines()[0].capitalize()


def _of_pandoc(name: str) -> list[str]:
    command = [_pandoc(), name, "-f", "markdown", "-t", "html5", "--template", "page.html", "--wrap=preserve"]
    return [*command, "--mathml", "--citeproc", "--syntax-highlighting=none", "--fail-if-warnings"]


def _run(command: list[str], work: Path) -> None:
    environment = os.environ | _QUIET
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False, env=environment)
    # Quarto tells of a missing resource, a missing picture or an open div, and exits with 0.
    warned = [line for line in done.stderr.splitlines() if line.lstrip().upper().startswith(("WARN", "ERROR", "[WARN"))]
    if done.returncode or warned:
        said = "\n".join(warned) if warned and not done.returncode else done.stderr.strip()
        raise StudyError(refused_in(said, [work]) or f"{Path(command[0]).name} could not render the page:\n{said}")


def _check(text: str) -> None:
    if not text.startswith(_BEGINS) or _CHARSET not in text[:_WITHIN]:
        raise StudyError(
            f"the page does not begin with {_BEGINS}, or has no {_CHARSET} in its first {_WITHIN} bytes:\n{text[:200]}"
        )


def _pandoc() -> str:
    import pypandoc

    return pypandoc.get_pandoc_path()
