"""What a page is made of: numbers with keys, intervals and rows, blocks of hostile text, citation, frame, paper."""

from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest
from ttf.analyses.declaration import Analysis
from ttf.analyses.sections import THEMES
from ttf.display.brief_model import Action, Brief, Fact, Tile
from ttf.display.phrases import of_trace
from ttf.display.section_head import Callout, Head, Key, Line
from ttf.display.trace_numbers import Numbers, handled, interval_about
from ttf.engine import words
from ttf.engine.contract import share, table
from ttf.page.publication_record import Creator, Publication
from ttf.page.render.template import template
from ttf.page.report import all_numbers
from ttf.page.report.blocks import counted, macros, raw
from ttf.page.report.citation import cited
from ttf.page.report.paper import paper
from ttf.page.report.trace_page import Entry, Frame, TracePage, environment

REPORT = Path(__file__).resolve().parents[2] / "report"
HOSTILE = "<script>x</script>\"'& {a.b|1} `[a](b)` ${y}"
SHARES = table("shares", "A row for each user.", failure_share=share("Failed", "Failures of those that ended."))


def of(**given) -> Numbers:
    """Metrics by key, dots written as two underscores: the value, and its unit where it is no count."""
    made = {}
    for key, value in given.items():
        value, unit = value if isinstance(value, tuple) else (value, "jobs")
        about = {"value": value, "unit": unit, "n": 1_200, "source": "tables/shares.csv"}
        made[key.replace("__", ".")] = about | {"column": key.rpartition("__")[2]}
    return Numbers(made)


M = of(
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


class Seen(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.rows, self.text = [], [], ""
        self.feed(str(text))

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append(dict(attrs))

    def handle_data(self, data):
        self.text += data


def test_a_number_keeps_its_key_until_it_is_reckoned_with():
    worded = handled(words.count)
    assert worded(M["c.jobs"]) == '<data data-key="c.jobs">1,250</data>'
    assert worded(M["c.jobs"] + 1) == "1,251" and worded(1_250) == "1,250"
    assert handled(words.share)(M["a.failure_share"]) == '<data data-key="a.failure_share">33.3%</data>'
    with pytest.raises(KeyError):
        M["c.nodes"]


def test_the_interval_of_a_number_is_the_clustered_one_of_its_unit():
    assert interval_about(M, "a.failure_share") == (0.2, 0.5, "user")
    without = Numbers({key: value for key, value in M.items() if "clustered" not in key})
    assert interval_about(without, "a.failure_share") == (0.3, 0.4, "")
    assert interval_about(M, "b.mttf_s") == (3_600.0, None, ""), "open above"
    assert interval_about(M, "a.failure_share_low") is None and interval_about(M, "c.name") is None
    beyond = M | of(b__mttf_s=(60.0, "s"))
    assert interval_about(beyond, "b.mttf_s") is None, "an interval that lies elsewhere is of another number"


def test_every_number_has_a_row_and_what_it_is_once():
    rows, descriptions = all_numbers.rows(M, [SHARES])
    assert [row.key for row in rows] == list(M)
    first = rows[0]
    assert (first.words, first.exact, first.n, first.low, first.high) == ("33.3%", repr(1 / 3), "1,200", "0.2", "0.5")
    assert first.ci == "clustered by user" and descriptions[first.description_index] == "Failures of those that ended."
    assert descriptions == ["Failures of those that ended.", "A row for each user."]
    html = macros(REPORT).all_numbers(rows, descriptions)
    seen = Seen(html)
    assert "script" not in seen.tags and HOSTILE in seen.text
    assert seen.rows[1] == {"id": "m:a.failure_share", "data-v": repr(1 / 3), "data-low": "0.2", "data-high": "0.5"} | {
        "data-ci": "clustered by user",
        "data-description": "0",
    }
    assert "data-high" not in next(row for row in seen.rows if row.get("id") == "m:b.mttf_s")


def test_hostile_text_is_text_in_every_block():
    of_stranger, theme = of_trace(HOSTILE), THEMES["outcomes"]
    tile = Tile("t", of_stranger, "withheld", of_stranger, means=of_stranger, needed=of_stranger, link="outcomes")
    action = Action(of_stranger, of_stranger, of_stranger, of_stranger, "model", "outcomes")
    brief = Brief(of_stranger, (Fact("Jobs", of_stranger),), "B", (of_stranger,), (of_stranger,), (tile,))
    full = Brief(of_stranger, (), "B", (), (), (), of_stranger, (action,), (of_stranger,))
    head = Head(of_stranger, (), (Key(of_stranger, of_stranger),), (of_stranger,), Callout("care", of_stranger))
    about = {"title": HOSTILE, "subtitle": HOSTILE, "caption": HOSTILE}
    frame = Frame(HOSTILE, True, "1", cited(ABOUT, HOSTILE, "", "t"), top=[{"anchor": "overview", "title": "Overview"}])
    own = macros(REPORT)
    blocks = {
        "overview": own.overview(frame, brief, {"outcomes": theme}),
        "actions": own.actions(full, {"outcomes": theme}),
        "head": own.head(theme, head, []),
        "figure": own.figure(HOSTILE, about, {}),
        "nothing": own.nothing([Line(of_stranger, of_stranger)], []),
        "opening": own.opening(frame),
        "closing": own.closing(frame),
        "more": own.more_pages("Study", [Entry(HOSTILE, "a.html")]),
    }
    for name, html in blocks.items():
        assert "script" not in Seen(html).tags and "data" not in Seen(html).tags, name
        assert "<script>x" in Seen(html).text, name
    assert not own.actions(brief, {}).strip(), "without actions no section"


def test_a_block_of_html_has_no_blank_line_that_would_end_it():
    assert raw("<p>\n\n \na</p>\n") == "\n\n```{=html}\n<p>\na</p>\n```\n\n"
    assert counted('<table data-name="a"><figure class="figure" id="b"><table><table data-name="c">') == (2, 1)


ABOUT = Publication("T", "d", [Creator("Doe, J."), Creator("A {lab}", person=False)], "MIT", "1.2", [], "", "w", "")


def test_a_citation_is_one_line_and_balanced_bibtex():
    citation = cited(ABOUT, "A\n$100 & 50% {x}", "1 to 2 May", "my-trace")
    assert citation.bibtex.startswith("@misc{ttfmytrace,\n  author = {Doe, J. and {A \\{lab\\}}},\n")
    assert "A \\$100 \\& 50\\% \\{x\\} (1 to 2 May)" in citation.bibtex
    assert citation.bibtex.count("{") == citation.bibtex.count("}")
    assert "url" not in citation.bibtex


def test_the_foot_of_print_holds_any_title():
    style = Frame('a"</style>\n}', False, "1", cited(ABOUT, "a", "", "a")).print_footer()
    assert style.count("</style>") == 1 and style.count('"') == 4


def test_templates_miss_no_number_in_silence():
    jinja = environment(REPORT)
    with pytest.raises(Exception, match="gone"):
        jinja.from_string("<< gone >>").render()
    shown = jinja.from_string('<< m["c.jobs"] | count >> << m["c.name"] | label >>').render(m=M)
    assert shown.startswith('<data data-key="c.jobs">1,250</data> <bdi>') and "script>" not in shown


def test_the_template_is_whole_and_free_of_the_network():
    made = template(REPORT, "dmVnYQ==")
    assert made.count('<script type="text/plain" id="vega-program">dmVnYQ==') == 1
    assert "<!-- style -->" not in made and "<!-- vega -->" not in made and "<!-- script -->" not in made
    assert 'src="http' not in made and "@import" not in made and "url(http" not in made


class Room:
    """A page.py in little."""

    def __init__(self, found):
        self.head = lambda trace, m: found


@pytest.fixture
def a_page(monkeypatch, tmp_path):
    """Opens the page of a trace without products, with what two rooms of section 1 say, the first by rank first."""

    def opened(first=None, second=None, **brief):
        of_rooms = {"split_outcomes": Room(first), "describe_attempts": Room(second)}
        shown = Brief(HOSTILE, (), "B", (HOSTILE,), ("First.", HOSTILE), (), period="1 May", **brief)
        trace = SimpleNamespace(
            name="t",
            title=HOSTILE,
            analyses=list(of_rooms),
            about={"unit": "job", "life": "job"},
            metrics=M,
            brief=shown,
            figures={},
            folder=tmp_path,
            contracts={},
        )
        declared = {name: Analysis("Why?", "outcomes") for name in of_rooms}
        monkeypatch.setattr("ttf.page.report.trace_page._page_module", of_rooms.get)
        monkeypatch.setattr("ttf.page.report.trace_page.rooms", lambda folders: declared)
        monkeypatch.setattr("ttf.page.report.trace_page.quality_tables.tables", lambda trace: {})
        monkeypatch.setattr("ttf.page.report.trace_page.quality_lines.lines", lambda trace, m: [])
        frame = Frame(HOSTILE, True, "1.2", cited(ABOUT, HOSTILE, "", "t"))
        return TracePage(environment(REPORT), REPORT, trace, frame)

    return opened


def test_the_first_room_with_a_head_leads_and_none_leaves_no_section(a_page):
    head = Head("Claim")
    assert a_page(None, head).heads == {"outcomes": head}
    page = a_page(head, Head("Other"))
    assert page.heads == {"outcomes": head} and page.lines == []
    page = a_page(Line("Outcomes", "none"), None)
    assert page.heads == {} and page.lines == [Line("Outcomes", "none")]
    page._list_contents(True)
    assert [entry.href for entry in page.frame.groups[0][1]] == ["#nothing"]
    page = a_page(None, head)
    page._list_contents(False)
    assert [(entry.href, entry.number) for entry in page.frame.groups[0][1]] == [("#outcomes", "1")]


def test_paper_is_the_same_each_time_and_takes_hostile_text_as_text(a_page, tmp_path):
    stranger = of_trace('#panic("x") ' + HOSTILE)
    page = a_page(Head(stranger, (), (Key(stranger, stranger),), (stranger,), Callout("care", stranger)))
    page.lines = [Line(stranger, stranger)]
    made = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        made.append(paper(page, ABOUT, REPORT, tmp_path / name).read_bytes())
    assert made[0].startswith(b"%PDF-") and made[0] == made[1]


def test_a_room_without_a_page_stands_as_its_contract_says(a_page, monkeypatch):
    page = a_page(Head("Claim"), None)
    given = {"shares": SHARES.frame([{"failure_share": 1 / 3}])}
    page.trace.analyses, page.trace.table = ["weekdays"], given.__getitem__
    monkeypatch.setattr(
        "ttf.page.report.trace_page.contracts_of", lambda names: {name: SHARES for name in given if [*names]}
    )
    html = page._tables()["shares"].html("shares")
    assert "Failed</th>" in html and "33.3%" in html
    given["shares"] = SHARES.frame([])
    assert page._tables() == {}, "not there without rows"
