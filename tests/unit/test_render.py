"""The page from its source: by Quarto where it is on the PATH, else by Pandoc; what either warns of is an error."""

from pathlib import Path

import pytest
from study_runs import write_quarto
from ttf.engine.errors import StudyError
from ttf.page.publication_record import Creator, Publication
from ttf.page.render.references import resolve_references
from ttf.page.render.render import _run_renderer, render, renderer_version
from ttf.page.render.template import template
from ttf.page.report.citation import make_citation
from ttf.page.report.trace_page import Frame

REPORT = Path(__file__).resolve().parents[2] / "report"
AUTHORS = [Creator("Doe, Jane"), Creator("A & B", person=False)]
ABOUT = Publication("T", "", AUTHORS, "MIT", "1.2", [], "", "W", "", authors=AUTHORS)
HOSTILE = '</title><script>x</script> *a* `b` $body$ "q"'


@pytest.fixture
def source(tmp_path):
    """Writes the .qmd of a page with this body, the template beside it."""

    def write(body: str, title: str = "A trace") -> Path:
        (tmp_path / "page.html").write_text(template(REPORT, "Vega$1"), encoding="utf-8")
        (tmp_path / "references.bib").write_bytes((REPORT / "references.bib").read_bytes())
        frame = Frame(title, False, "1.2", make_citation(ABOUT, title, "", "t"))
        file = tmp_path / "page.qmd"
        file.write_text(frame.front("What it says.") + body, encoding="utf-8")
        return file

    return write


def rendered(source: Path) -> tuple[str, str]:
    page = source.with_name("out.html")
    return render(source, page), page.read_text(encoding="utf-8")


@pytest.fixture
def quarto(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", write_quarto(tmp_path / "bin"))


FOOT = '\n```{=html}\n<p>by <span class="renderer">hand</span></p>\n```\n'


@pytest.mark.parametrize("by", ["pandoc", "quarto", "real_quarto"])
def test_a_page_begins_so_that_a_browser_reads_it_right(source, by, request):
    if by != "pandoc":
        request.getfixturevalue(by)
    name, page = rendered(source(f"Words.\n{FOOT}"))
    assert name == renderer_version()
    assert name == {"pandoc": "Pandoc 3.9", "quarto": "Quarto 1.10.18"}.get(by, name)
    assert page.startswith("<!DOCTYPE html>")
    assert '<meta charset="utf-8">' in page[:1024]
    assert f'<span class="renderer">{name}</span>' in page
    assert "Vega$1" in page or by == "quarto", "the stand-in leaves out what follows the body"


def test_pandoc_adds_nothing_to_the_page(source):
    _, page = rendered(source(f"One @kaplan1958.\n\n::: {{#refs}}\n:::\n{FOOT}", HOSTILE))
    assert "Kaplan" in page.partition("<body>")[2]
    assert "<script>x" not in page
    assert "<title>&lt;/title&gt;" in page
    assert "<em>a</em>" not in page
    assert not [sign for sign in ('<link rel="stylesheet', "@import", "src=") if sign in page.split("<body>")[0]]


def test_a_citation_of_nobody_is_an_error_and_writes_no_page(source):
    with pytest.raises(StudyError, match="nobody1900"):
        rendered(source("See @nobody1900."))
    assert not [*source("").parent.glob("out.*")]


WARNINGS = {
    "an open div": "::: open\n\nWords.",
    "a reference to nothing": "See @fig-nothing.",
    "a citation of nobody": "See @nobody1900.",
    "an id twice": "# One {#same}\n\n# Two {#same}",
    "metadata that are not there": "{{< meta nothing >}}",
    "a shortcode that is not there": "{{< nothing >}}",
    "contents of nothing": "{{< contents nothing >}}",
}


def assert_refused(source: Path):
    page = source.with_name("out.html")
    with pytest.raises(StudyError, match=r"could not render the page:\n\[?(WARN|\(W\))") as refused:
        render(source, page)
    assert "metadata" not in str(refused.value).splitlines(), "what is no warning is left out"
    assert not page.exists()


@pytest.mark.usefixtures("quarto")
@pytest.mark.parametrize("warning", [*WARNINGS][:1])
def test_what_quarto_only_warns_of_is_an_error(source, warning):
    assert_refused(source(WARNINGS[warning]))


@pytest.mark.usefixtures("real_quarto")
@pytest.mark.parametrize("warning", WARNINGS)
def test_what_the_real_quarto_only_warns_of_is_an_error(source, warning):
    assert_refused(source(WARNINGS[warning]))


@pytest.mark.usefixtures("quarto")
def test_a_page_without_its_first_line_is_an_error(source):
    file = source("Words.")
    file.with_name("page.html").write_text("<!doctype html>\n$body$", encoding="utf-8")
    with pytest.raises(StudyError, match="does not begin"):
        rendered(file)


def test_a_quarto_that_does_not_run_is_an_error(source, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", write_quarto(tmp_path / "bin"))
    (tmp_path / "bin" / "quarto").write_text("#!/bin/sh\necho no such program: deno >&2; exit 1\n")
    for attempt in (renderer_version, lambda: rendered(source("Words."))):
        with pytest.raises(StudyError, match="no such program: deno"):
            attempt()


def test_a_full_disk_as_pandoc_tells_it(tmp_path):
    message = "pandoc: made.html: withBinaryFile: resource exhausted (No space left on device)"
    with pytest.raises(StudyError, match=r"^/.*: the disk is full .*Make room"):
        _run_renderer(["sh", "-c", f"echo '{message}' >&2; exit 1"], tmp_path)


def test_references_become_links_and_headings_html_in_prose_alone():
    text = "### One & only {#sec-one}\n\nSee @tbl-a (@fig-b-c), @sec-one and [@kaplan1958].\n\n"
    text += "```{=html}\n<p>@tbl-x</p>\n```\n"
    made = resolve_references(text, {"tbl-a": "Table 1", "fig-b-c": "Figure 2"})
    assert '<h3 id="sec-one">One & only</h3>' in made
    assert "[Table\u00a01](#table-a) ([Figure\u00a02](#chart-b-c)), [there](#sec-one) and [@kaplan1958]" in made
    assert "<p>@tbl-x</p>" in made
    with pytest.raises(StudyError, match="@tbl-z"):
        resolve_references("See @tbl-z.", {})
