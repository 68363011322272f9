"""Parts of a page: numbers with keys, intervals and rows, blocks of hostile text, citation, frame, paper."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from html_pages import ParsedPage
from ttf.analyses.declaration import Analysis
from ttf.analyses.sections import THEMES
from ttf.display.brief_model import Action, Brief, Fact, Tile
from ttf.display.phrases import quote_trace_text, to_markdown
from ttf.display.section_head import Callout, Head, Key, Line
from ttf.display.trace_numbers import Numbers, find_interval
from ttf.engine.contract import share, table
from ttf.page.publication_record import Creator, Publication, describe
from ttf.page.report import all_numbers
from ttf.page.report.blocks import count_blocks, raw_block
from ttf.page.report.citation import make_citation
from ttf.page.report.paper import write_pdf
from ttf.page.report.templates import environment, macros
from ttf.page.report.trace_page import Entry, Frame, TracePage

REPORT = Path(__file__).resolve().parents[2] / "report"
HOSTILE = "<script>x</script>\"'& {a.b|1} `[a](b)` ${y}"
SHARES = table("shares", "A row for each user.", failure_share=share("Failed", "Failures of those that ended."))


def numbers(**values) -> Numbers:
    """Make metrics from values or (value, unit); two underscores in a keyword become a dot in the key."""
    metrics = {}
    for key, value in values.items():
        value, unit = value if isinstance(value, tuple) else (value, "jobs")
        metric = {"value": value, "unit": unit, "n": 1_200, "source": "tables/shares.csv"}
        metrics[key.replace("__", ".")] = metric | {"column": key.rpartition("__")[2]}
    return Numbers(metrics)


M = numbers(
    a__failure_share=(1 / 3, "share"),
    a__failure_share_low=(0.3, "share"),
    a__failure_share_high=(0.4, "share"),
    a__failure_share_low_clustered=(0.2, "share"),
    a__failure_share_high_clustered=(0.5, "share"),
    a__cluster_by=("user", "label"),
    b__mttf_s=(7_200.0, "s"),
    b__ci_low_s=(3_600.0, "s"),
    c__jobs=1_250,
    c__name=(HOSTILE, "label"),
)


def test_numbers_of_a_template_become_handles():
    handle = '<data data-key="c.jobs">1,250</data>'
    assert to_markdown("Of [c.jobs job], [c.jobs was|were] lost [@a; @b.c].", M) == (
        f"Of {handle} jobs, {handle} were lost [@a; @b.c]."
    )
    interval = M.interval("a.failure_share")
    assert interval == "95% CI {a.failure_share_low_clustered|20.0}–{a.failure_share_high_clustered|50.0%} by user only"
    assert 'a.failure_share_low_clustered">20.0</data>–' in to_markdown(interval, M)
    block = raw_block("<td>[c.jobs] {c.jobs|2}</td>")
    assert to_markdown(f"{block}[c.jobs:number]", M) == block + handle, "a table may hold any text of a trace"
    assert "<script" not in to_markdown("[c.name]", M)
    with pytest.raises(KeyError):
        to_markdown("[c.nodes]", M)


def test_the_interval_of_a_number_is_the_clustered_one_if_it_exists():
    assert find_interval(M, "a.failure_share") == (0.2, 0.5, "user")
    unclustered = Numbers({key: value for key, value in M.items() if "clustered" not in key})
    assert find_interval(unclustered, "a.failure_share") == (0.3, 0.4, "")
    assert find_interval(M, "b.mttf_s") == (3_600.0, None, ""), "open above"
    assert find_interval(M, "a.failure_share_low") is None and find_interval(M, "c.name") is None
    shifted = M | numbers(b__mttf_s=(60.0, "s"))
    assert find_interval(shifted, "b.mttf_s") is None, "an interval that excludes the number belongs to another number"


def test_every_number_has_a_row_and_each_description_occurs_once():
    meanings = {"a.failure_share": "Failures of those that ended.", "c.jobs": "Jobs.", "a.cluster_by": "Jobs."}
    defined = Numbers({key: M.get(key) and cell | {"definition": meanings.get(key)} for key, cell in M.items()})
    rows, descriptions = all_numbers.rows(defined)
    assert [row.key for row in rows] == list(M)
    first = rows[0]
    assert (first.words, first.exact, first.n, first.low, first.high) == ("33.3%", repr(1 / 3), "1,200", "0.2", "0.5")
    assert descriptions == ["Failures of those that ended.", "Jobs."]
    doc = ParsedPage(macros(REPORT).all_numbers(rows, descriptions))
    table_rows = [values for tag, values in doc.attributes if tag == "tr"]
    assert "script" not in doc.tags and HOSTILE in doc.text
    interval = {"data-low": "0.2", "data-high": "0.5", "data-ci": "clustered by user"}
    assert table_rows[1] == interval | {"id": "m:a.failure_share", "data-v": repr(1 / 3), "data-description": "0"}


def test_hostile_text_is_escaped_in_every_block():
    hostile, theme = quote_trace_text(HOSTILE), THEMES["outcomes"]
    tile = Tile("t", hostile, "withheld", hostile, means=hostile, needed=hostile, link="outcomes")
    action = Action(hostile, hostile, hostile, hostile, "model", "outcomes", HOSTILE)
    brief = Brief(hostile, (Fact("Jobs", hostile),), "B", (hostile,), (hostile,), (tile,))
    full_brief = Brief(hostile, (), "B", (), (), (), hostile, (action,), (hostile,))
    head = Head(hostile, (), (Key(hostile, hostile),), (hostile,), Callout("care", hostile))
    texts = {"title": HOSTILE, "subtitle": HOSTILE, "caption": HOSTILE}
    frame = Frame(
        HOSTILE, True, "1", make_citation(WORK, HOSTILE, "", "t"), top=[{"anchor": "overview", "title": "Overview"}]
    )
    page_macros = macros(REPORT)
    blocks = {
        "overview": page_macros.overview(frame, brief, {"outcomes": theme}),
        "others": page_macros.overview(frame, Brief("", (), "B", (), (), (tile,)), {}, {"t": [hostile]}),
        "actions": page_macros.actions(full_brief, {"outcomes": theme}),
        "head": page_macros.head(theme, head, []),
        "figure": page_macros.figure(HOSTILE, texts, {}),
        "nothing": page_macros.nothing([Line(hostile, hostile)], []),
        "opening": page_macros.opening(frame),
        "closing": page_macros.closing(frame),
        "more": page_macros.more_pages("Study", [Entry(HOSTILE, "a.html")]),
    }
    for name, html in blocks.items():
        assert "script" not in ParsedPage(html).tags and "data" not in ParsedPage(html).tags, name
        assert "<script>x" in ParsedPage(html).text, name
    assert ("i", {"hidden": None, "data-file": HOSTILE}) in ParsedPage(page_macros.file_mark(HOSTILE)).attributes
    assert not page_macros.actions(brief, {}).strip(), "a brief without actions has no section"


def test_a_block_of_html_has_no_blank_line_that_would_end_it():
    assert raw_block("<p>\n\n \na</p>\n") == "\n\n```{=html}\n<p>\na</p>\n```\n\n"
    assert count_blocks('<table data-name="a"><figure class="figure" id="b"><table><table data-name="c">') == (2, 1)


AUTHORS = [Creator("Doe, J."), Creator("A {lab}", person=False)]
WORK = Publication("T", "d", AUTHORS, "MIT", "1.2", [], "", "w", "", authors=AUTHORS)


CFF = "{title: W, version: '1.2', license: MIT, abstract: a, authors: [{name: Maintainers}]}"
SETTINGS = {
    "creators": [{"name": "Roe, Ann"}, {"name": "Ops & {Co}"}],
    "title": "Our $2025",
    "date": "2025-01-31",
    "doi": "10.5281/zenodo.1234567",
}


def test_a_citation_has_author_year_version_own_title_and_doi_of_the_configuration():
    citation = make_citation(describe(CFF, SETTINGS, {}), "A trace", "May 2024", "t")
    assert citation.line == (
        "Roe, Ann; Ops & {Co}. Our $2025 (May 2024). Time to Failure report, version 1.2, 2025. "
        "https://doi.org/10.5281/zenodo.1234567"
    )
    assert citation.bibtex == (
        "@misc{ttft,\n  author = {Roe, Ann and {Ops \\& \\{Co\\}}},\n  title = {{Our \\$2025 (May 2024)}},\n"
        "  year = {2025},\n  note = {Time to Failure report, version 1.2},\n  doi = {10.5281/zenodo.1234567}\n}\n"
    )
    one_of_several = make_citation(describe(CFF, SETTINGS, {}), "A\ntrace", "", "t", is_whole_study=False)
    assert "Our \\$2025: A trace" in one_of_several.bibtex


def test_nobody_is_cited_as_author_whom_the_configuration_does_not_name():
    citation = make_citation(describe(CFF, {"year": "2026"}, {}), "A trace", "", "t")
    assert citation.line == "A trace. Time to Failure report, version 1.2, 2026."
    assert "author" not in citation.bibtex and not citation.has_author


def test_a_citation_leads_to_the_results_else_to_the_code_of_the_citation_file():
    with_code = CFF.replace("abstract", "repository-code: 'https://code.example', abstract")
    for settings, address in (({}, "https://code.example"), ({"url": "https://our.example"}, "https://our.example")):
        citation = make_citation(describe(with_code, settings, {}), "A trace", "", "t")
        assert citation.line.endswith(f"version 1.2. {address}") and f"url = {{{address}}}" in citation.bibtex
    assert "http" not in "".join(map(str, vars(make_citation(describe(CFF, {}, {}), "A trace", "", "t")).values()))


def test_the_print_footer_escapes_any_title():
    style = Frame('a"</style>\n}', False, "1", make_citation(WORK, "a", "", "a")).print_footer()
    assert style.count("</style>") == 1 and style.count('"') == 4


def test_a_missing_number_in_a_template_is_an_error():
    jinja = environment(REPORT)
    with pytest.raises(Exception, match="gone"):
        jinja.from_string("<< gone >>").render()
    html = jinja.from_string('<< m["c.name"] | label >>').render(m=M)
    assert html.startswith("<bdi>") and "script>" not in html


class AnalysisPage:
    """A minimal page.py of an analysis."""

    def __init__(self, section_head):
        self.head = lambda trace, m: section_head


@pytest.fixture
def a_page(monkeypatch, tmp_path):
    """Return a function that opens the page of a trace without products; section 1 has two analyses by rank."""

    def open_page(first=None, second=None, **brief):
        pages = {"split_outcomes": AnalysisPage(first), "describe_attempts": AnalysisPage(second)}
        trace_brief = Brief(HOSTILE, (), "B", (HOSTILE,), ("First.", HOSTILE), (), period="1 May", **brief)
        trace = SimpleNamespace(
            name="t",
            title=HOSTILE,
            analyses=list(pages),
            info={"unit": "job", "subject": "job"},
            metrics=M,
            brief=trace_brief,
            figures={},
            folder=tmp_path,
            contracts={},
        )
        analyses = {name: Analysis("Why?", "outcomes") for name in pages}
        monkeypatch.setattr("ttf.page.report.trace_page._page_module", pages.get)
        monkeypatch.setattr("ttf.page.report.trace_page.load_analyses", lambda folders: analyses)
        monkeypatch.setattr("ttf.page.report.trace_page.quality_tables.tables", lambda trace: {})
        monkeypatch.setattr("ttf.page.report.trace_page.quality_lines.lines", lambda trace, m: [])
        frame = Frame(HOSTILE, True, "1.2", make_citation(WORK, HOSTILE, "", "t"))
        return TracePage(environment(REPORT), REPORT, trace, frame)

    return open_page


def test_the_first_analysis_with_a_head_leads_its_section(a_page):
    head = Head("Claim")
    page = a_page(head, Head("Other"))
    assert page.heads == {"outcomes": head} and page.lines == []
    page = a_page(Line("Outcomes", "none"), None)
    assert page.heads == {} and page.lines == [Line("Outcomes", "none")]
    page._set_contents()
    assert [entry.href for entry in page.frame.groups[0][1]] == ["#nothing"]
    page = a_page(None, head)
    page._set_contents()
    assert [(entry.href, entry.number) for entry in page.frame.groups[0][1]] == [("#outcomes", "1")]


def test_paper_is_reproducible_and_escapes_hostile_text(a_page, tmp_path):
    hostile = quote_trace_text('#panic("x") ' + HOSTILE)
    page = a_page(Head(hostile, (), (Key(hostile, hostile),), (hostile,), Callout("care", hostile)))
    page.lines = [Line(hostile, hostile)]
    pdfs = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        pdfs.append(write_pdf(page, WORK, REPORT, tmp_path / name).read_bytes())
    assert pdfs[0].startswith(b"%PDF-") and pdfs[0] == pdfs[1]
