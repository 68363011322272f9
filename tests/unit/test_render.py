"""The page from its source: by Quarto where it is on the PATH, else by Pandoc; a reference to nothing is an error."""

import os
from pathlib import Path

import pytest
from ttf.errors import StudyError
from ttf.report.render import render

REPORT = Path(__file__).resolve().parents[2] / "report"
# Stands in for Quarto, which no package index carries: takes the arguments it takes, and warns as it warns.
QUARTO = """#!/bin/sh
if [ "$1" = --version ]; then echo 1.10.18; exit 0; fi
[ "$1 $2 $3 $4 $5 $6" = "render report.qmd --to html --output index.html" ] || exit 2
{ cat report.qmd; cat footer.html; } > index.html
if grep -q '@fig-absent' report.qmd; then echo 'WARNING (x): Unable to resolve crossref @fig-absent' >&2; fi
"""


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    for name in ("header.html", "footer.html", "references.bib"):
        (folder / name).write_bytes((REPORT / name).read_bytes())
    (folder / "vega.js").write_text("var vegaEmbed = 1;")

    def write(text):
        (folder / "report.qmd").write_text("---\ntitle: T\nbibliography: references.bib\n---\n\n" + text)
        return folder

    return write


def rendered(folder, tmp_path):
    page = tmp_path / "index.html"
    name = render(folder, page, REPORT / "pandoc.lua", REPORT / "pandoc.css")
    return name, page.read_text()


@pytest.fixture
def no_quarto(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)


FIGURE = "::: {#fig-a}\n\n```{=html}\n<div>drawn</div>\n```\n\nA caption.\n\n:::\n"


@pytest.mark.usefixtures("no_quarto")
def test_pandoc_numbers_figures_and_sections_and_links_to_them(source, tmp_path):
    name, page = rendered(source(f"# One {{#sec-one}}\n\nSee @fig-a, @sec-one and @kaplan1958.\n\n{FIGURE}"), tmp_path)
    assert name == "Pandoc 3.9"
    assert '<a href="#fig-a">Figure 1</a>' in page
    assert '<a href="#sec-one">Section 1</a>' in page
    assert "Figure 1: A caption." in page.replace("\n", " ")
    assert "Kaplan" in page
    assert 'Page rendered by <span class="renderer">Pandoc 3.9</span>' in page


@pytest.mark.usefixtures("no_quarto")
@pytest.mark.parametrize(
    "text", ["See @fig-absent.", "See @tbl-absent.", "See @nobody1900.", "{{< include absent.qmd >}}\n"]
)
def test_pandoc_refuses_a_reference_to_nothing(source, tmp_path, text):
    with pytest.raises((StudyError, FileNotFoundError)):
        rendered(source(text), tmp_path)
    assert not (tmp_path / "index.html").exists()


@pytest.fixture
def quarto(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "quarto"
    program.parent.mkdir()
    program.write_text(QUARTO)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.usefixtures("quarto")
def test_quarto_is_taken_where_it_is_on_the_path(source, tmp_path):
    name, page = rendered(source("All well."), tmp_path)
    assert name == "Quarto 1.10.18"
    assert 'Page rendered by <span class="renderer">Quarto 1.10.18</span>' in page


@pytest.mark.usefixtures("quarto")
@pytest.mark.parametrize("text", ["See @fig-absent.", "Left: ?@tbl-absent"])
def test_what_quarto_only_warns_of_is_an_error(source, tmp_path, text):
    with pytest.raises(StudyError, match="absent"):
        rendered(source(text), tmp_path)
    assert not (tmp_path / "index.html").exists()
