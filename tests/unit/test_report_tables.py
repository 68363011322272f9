"""Tables of the report: their headings and cells."""

import re

import polars as pl
import pytest
from ttf.display.report_tables import Interval, Mean, PageTable
from ttf.engine import words
from ttf.engine.contract import count, seconds, share, table, text

FRAME = pl.DataFrame(
    {
        "group": ["8", "1,024", "<b>"],
        "mttf_s": [7_200.0, 36_000.0, None],
        "low_s": [3_600.0, 18_000.0, 1_800.0],
        "high_s": [14_400.0, None, None],
        "share": [0.125, 0.5, None],
        "far_s": [5.0, 864_000.0, 63.0],
    }
)
COLUMNS = {
    "group": ("GPUs", None),
    "mttf_s": Interval("Mean", words.duration, "low_s", "high_s"),
    "share": ("Share", words.share),
    "far_s": ("Wait", words.duration),
}


NO_CONTRACT = table("runs", "A kind of runs.")


def cells(html: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)
    return [[text.replace("\u00a0", " ") for text in re.findall(r"<t[hd][^>]*>([^<]*)", row)] for row in rows]


def test_units_are_in_the_heading_and_intervals_follow_the_estimate():
    assert cells(PageTable(FRAME, COLUMNS, NO_CONTRACT).html("t")) == [
        ["GPUs", "Mean (h)", "Share", "Wait"],
        ["8", "2 (1–4)", "12.5%", "5 s"],
        ["1,024", "10 (from 5)", "50.0%", "10 days"],
        ["&lt;b&gt;", "≥ 0.500", "–", "1.05 min"],
    ]


def test_a_mean_of_few_is_marked_and_the_head_says_what_the_mark_is():
    frame = pl.DataFrame({"of": ["a", "b", "c"], "n": [29, 30, 0], "mean_s": [60.0, 120.0, None]})
    columns = {"of": ("Of", None), "mean_s": Mean("Mean", words.duration, "n")}
    assert cells(PageTable(frame, columns, NO_CONTRACT).html("t")) == [
        ["Of", "Mean (min), *: n &lt; 30"],
        *(["a", "1*"], ["b", "2"], ["c", "–"]),
    ]
    assert cells(PageTable(frame.slice(1), columns, NO_CONTRACT).html("t"))[0] == ["Of", "Mean (min)"]


def test_heading_and_wording_follow_from_the_contract():
    contract = table(
        "runs",
        "A kind of runs.",
        kind=text("Kind", "Its name."),
        n=count("Runs", "All of them."),
        failed_share=share("Failed", "Share of n."),
        mean_s=seconds("Mean", "Mean time."),
        low_s=seconds("Low", "Lower end."),
        high_s=seconds("High", "Upper end."),
    )
    row = {"kind": "small", "n": 1200, "failed_share": 0.25, "mean_s": 120.0, "low_s": 60.0, "high_s": 180.0}
    frame = contract.frame([row])
    columns = {"kind": "Size", "n": None, "failed_share": None, "mean_s": Interval(low="low_s", high="high_s")}
    expected = [["Size", "Runs", "Failed", "Mean (min)"], ["small", "1,200", "25.0%", "2 (1–3)"]]
    assert cells(PageTable(frame, columns, contract).html("t")) == expected
    columns |= {"mean_s": Interval("Mean", words.duration, "low_s", "high_s"), "n": ("Runs", words.count)}
    assert cells(PageTable(frame, columns, contract).html("t")) == expected
    plain = cells(PageTable(frame, ["kind", "n"], contract).html("t"))
    assert plain == [["Kind", "Runs"], ["small", "1,200"]]


def test_the_first_column_heads_the_rows():
    html = PageTable(FRAME.with_columns(of=pl.lit("all")), COLUMNS, NO_CONTRACT, "of").html("t")
    assert html.count('<th scope="row" class="l">') == FRAME.height
    assert html.count('scope="rowgroup">all') == 1
    assert html.count('scope="col"') == len(COLUMNS)


def test_cells_keep_the_exact_value_and_headings_the_name_of_their_column():
    """The CSV export reads these values; a hostile name is escaped."""
    frame = pl.DataFrame(
        {"a": ["x", "y"], "share": [1 / 3, None], '"><b>': [True, False], "n": [1_200, 0], "of": ["v", "u"]}
    )
    columns = {"a": ("A", None), "share": ("Share", words.share), '"><b>': ("So", None), "n": ("n", words.count)}
    frame = frame.with_columns(pl.col('"><b>').cast(pl.String))
    html = PageTable(frame, columns, NO_CONTRACT, "of").html('a"><b>')
    assert f'<td data-v="{1 / 3!r}">33.3%</td>' in html and '<td data-v="1200">1,200</td>' in html
    assert "<td>–</td>" in html and html.count("data-v=") == 3, "nothing exact about a blank and a text"
    assert re.findall(r'<th scope="col" data-name="([^"]*)"', html) == ["a", "share", "&quot;&gt;&lt;b&gt;", "n"]
    assert "<b>" not in html
    assert html.startswith('<div class="scroll" tabindex="0" role="region" aria-label="Table a&quot;&gt;&lt;b&gt;">')


def test_an_interval_of_times_has_the_unit_of_its_estimate():
    assert words.time_range(145_000, 173_000, 158_000).replace("\u00a0", " ") == "40.3–48.1 h"
    assert words.time_range(145_000, 173_000).replace("\u00a0", " ") == "40.3–48.1 h"
    assert words.time_range(2, 9_000_000, 158_000).replace("\u00a0", " ") == "2 s–104 days", "0.000556 h reads badly"
    assert words.in_common_unit(0, 0, 30) == ["0\u00a0s", "30\u00a0s"]
    wide = pl.DataFrame({"of": ["a", "b"], "m": [5.0, 260_000.0], "l": [3.0, 91_440.0], "h": [9.0, 528_000.0]})
    columns = {"of": ("Of", None), "m": Interval("Time", words.duration, "l", "h")}
    assert cells(PageTable(wide, columns, NO_CONTRACT).html("t"))[1:] == [
        ["a", "5 s (3–9)"],
        ["b", "3.01 days (1.06–6.11)"],
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (words.share(-0.0000001), "0.0%"),
        (words.share(0.0000001), "<0.001%"),
        (words.points(-0.0001), "0.0"),
        (words.coefficient(-0.001), "0.00"),
        (words.number(-1e-6), "−1.00 × 10⁻⁶"),
        (words.duration(86_400), "24\u00a0h"),
        (words.duration(1160 * 86_400), "3.18\u00a0years"),
        (words.plural_noun("gap between outages"), "gaps between outages"),
    ],
)
def test_no_text_is_minus_zero_and_a_time_has_one_unit(text, expected):
    assert text == expected
