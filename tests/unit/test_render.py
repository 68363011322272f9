"""The page from its source: by Quarto where it is on the PATH, else by Pandoc; a reference to nothing is an error."""

import html
import json
import os
from pathlib import Path

import pytest
import typst
import yaml
from ttf.errors import StudyError
from ttf.report import words
from ttf.report.blocks import chart_block
from ttf.report.render import in_font_of_pdf, render, render_pdf

REPORT = Path(__file__).resolve().parents[2] / "report"
FRONT_MATTER = (REPORT / "report.qmd").read_text().split("---\n")[1].replace("<<", "").replace(">>", "")
# Stands in for Quarto, which no package index carries: takes the arguments it takes, and warns as it warns.
QUARTO = """#!/bin/sh
if [ "$1" = --version ]; then echo 1.10.18; exit 0; fi
case "$*" in
  "render report.qmd --to html --output index.html") { cat report.qmd; cat footer.html; } > index.html ;;
  "render report.qmd --to typst --output report.pdf") cp report.qmd report.typ; cat figures/*/*.svg > report.pdf ;;
  *) exit 2 ;;
esac
if grep -q '@fig-absent' report.qmd; then echo 'WARNING (x): Unable to resolve crossref @fig-absent' >&2; fi
"""


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    for name in ("header.html", "footer.html", "references.bib", "pdf.typ", "tables.lua"):
        (folder / name).write_bytes((REPORT / name).read_bytes())
    (folder / "vega.js").write_text("var vegaEmbed = 1;")
    (folder / "charts.js").write_text("var packedCharts = 1;")

    settings = yaml.safe_load(FRONT_MATTER)["format"]

    def write(text):
        front = yaml.safe_dump({"title": "T", "bibliography": "references.bib", "format": settings})
        (folder / "report.qmd").write_text(f"---\n{front}---\n\n{text}")
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
    assert '<a href="#fig-a">Figure\u00a01</a>' in page
    assert '<a href="#sec-one">Section\u00a01</a>' in page
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
@pytest.mark.parametrize("text", ["See @fig-absent.", "Left: ?@tbl-absent", "?meta:absent"])
def test_what_quarto_only_warns_of_is_an_error(source, tmp_path, text):
    with pytest.raises(StudyError, match="absent"):
        rendered(source(text), tmp_path)
    with pytest.raises(StudyError, match="absent"):
        render_pdf(source(text), [], tmp_path / "report.pdf", REPORT / "pandoc.lua")
    assert not [*tmp_path.glob("index.*"), *tmp_path.glob("report.*")]


@pytest.mark.usefixtures("quarto")
def test_quarto_makes_the_pdf_with_the_charts_of_each_trace(source, tmp_path):
    name = render_pdf(source("All well."), [chart(tmp_path, "a"), chart(tmp_path, "b")], tmp_path / "report.pdf", LUA)
    assert name == "Quarto 1.10.18"
    assert (tmp_path / "report.pdf").read_text().count("Libertinus Serif") == 2


LUA = REPORT / "pandoc.lua"
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="700" height="300">'
    '<text y="20" font-family="&quot;DejaVu Sans&quot;, sans-serif" font-size="10px">A title</text></svg>'
)


def chart(folder, trace):
    path = folder / trace / "figures" / "share.svg"
    path.parent.mkdir(parents=True)
    path.write_text(SVG)
    return path


@pytest.fixture
def printed(source, tmp_path, no_quarto, monkeypatch):
    """Render to a PDF; returns its bytes and the Typst it was made from."""
    import typst

    said, compile_ = [], typst.compile

    def listen(path, **settings):
        said.append(Path(path).read_text())
        return compile_(path, **settings)

    monkeypatch.setattr("typst.compile", listen)

    def render_(text, *charts):
        pdf = tmp_path / "report.pdf"
        render_pdf(source(text), charts, pdf, LUA)
        return pdf.read_bytes(), said[-1]

    return render_


# As a trace might have them: for Typst, Markdown and HTML.
HOSTILE = '#read("/etc/passwd") ]) $x$ `a` @b <c> \\ "d" #panic()'
TABLE = """::: {#tbl-b}

```{=html}
<div><style>td { color: red; }</style><table><thead><tr>
<th class="l">Name</th><th>Jobs</th></tr></thead>
<tbody><tr><td class="l">%s</td><td>12</td></tr></tbody></table></div>
```

A table.

:::
"""


def test_pdf_has_charts_tables_and_numbers_and_the_same_bytes(printed, tmp_path):
    text = "# One {#sec-one}\n\nSee @fig-b, @tbl-b, @sec-one and @kaplan1958.\n\n"
    text += chart_block("b", {"caption": "A caption.", "alt": "Bars."}, "figures/a/share.svg") + "\n"
    text += TABLE % html.escape(HOSTILE)
    text += "\n::: {.callout-warning}\nSynthetic.\n:::\n"
    pdf, typ = printed(text, chart(tmp_path, "a"))
    assert pdf.startswith(b"%PDF-")
    assert printed(text, tmp_path / "a/figures/share.svg")[0] == pdf
    assert '#chart("figures/a/share.svg", "Bars.", of: 1)' in typ
    for reference in ("#link(<fig-b>)[Figure~1]", "#link(<tbl-b>)[Table~1]", "#link(<sec-one>)[Section~1]"):
        assert reference in typ.replace("\n", " ")
    assert "align: (left,right,)" in typ
    assert "table.header(" in typ
    assert "#boxed[" in typ
    assert "Kaplan" in typ


def test_text_of_a_trace_means_nothing_to_typst(printed, tmp_path):
    about = {"caption": HOSTILE, "alt": HOSTILE}
    block = chart_block("b", about, "figures/a/share.svg")
    _, typ = printed(f"{words.markdown(HOSTILE)}\n\n{block}\n{TABLE % html.escape(HOSTILE)}", chart(tmp_path, "a"))
    assert typ.count("\\#read") == 3  # in the text, the caption and the cell; the alternative has no # at all
    assert "#panic" not in typ.replace("\\#panic", "")


def test_no_pdf_where_a_reference_or_a_chart_is_missing(printed, tmp_path):
    with pytest.raises(StudyError, match="fig-absent"):
        printed("See @fig-absent.")
    with pytest.raises(StudyError, match="share"):
        printed(chart_block("b", {"caption": "A.", "alt": "B."}, "figures/a/share.svg"))
    assert not list(tmp_path.glob("report.*"))


def test_the_name_of_a_group_stands_above_its_rows_on_each_page_of_the_pdf(tmp_path):
    # Tables of three groups that begin at different heights; each name and each row tells its page.
    told = '#context [#metadata(("{}", {}, here().page())) <told>]'
    groups = [
        f"table.cell(colspan: 2)[{told.format(f'name{group}', '#at')}],"
        + "".join(f"[{told.format(f'row{group}', '#at')}], [1]," for _ in range(12))
        for group in range(3)
    ]
    table = f"#table(columns: 2, table.header([A], [B]), {''.join(groups)})".replace("#at", "at")
    source = tmp_path / "tables.typ"
    source.write_text(f"""{(REPORT / "pdf.typ").read_text()}
#for at in range(12) [#pagebreak() #v(400pt + at * 5pt) {table}]""")
    found = json.loads(typst.query(str(source), "<told>", field="value", ignore_system_fonts=True))
    pages = {(what, at): {page for name, where, page in found if (name, where) == (what, at)} for what, at, _ in found}
    assert len(pages) == 12 * 6
    assert any(len(of_rows) > 1 for of_rows in pages.values())
    for (what, at), of_rows in pages.items():
        if what.startswith("row"):
            assert pages[what.replace("row", "name"), at] == of_rows, (what, at)


def test_a_chart_in_the_pdf_has_letters_of_its_font_and_room_for_longer_words():
    # Widths in the chart stay: only what may be seen of it is wider.
    svg = in_font_of_pdf(
        '<svg class="marks" width="525" height="544" viewBox="0 0 525 544"><rect width="525" height="544"/>'
        '<text font-family="Arial" font-size="10px">x</text></svg>'
    )
    assert 'width="549" height="544" viewBox="0 0 549 544"' in svg
    assert '<rect width="525"' in svg
    assert 'font-family="Libertinus Serif" font-size="10.8px"' in svg
