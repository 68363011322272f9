"""Tables of the report: what stands in heads and cells."""

import re

import polars as pl
from ttf.report import words
from ttf.report.tables import Interval, html_table

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


def cells(html: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)
    return [[text.replace("\u00a0", " ") for text in re.findall(r"<t[hd][^>]*>([^<]*)", row)] for row in rows]


def test_units_stand_in_the_head_and_intervals_beside_the_estimate():
    assert cells(html_table(FRAME, COLUMNS, "t")) == [
        ["GPUs", "Mean (h)", "Share (%)", "Wait"],
        ["8", "2.00 (1.00 to 4.00)", "12.5", "5.00 s"],
        ["1,024", "10.0 (from 5.00)", "50.0", "10.0 days"],
        ["&lt;b&gt;", "≥ 0.500", "–", "1.05 min"],
    ]


def test_the_first_column_heads_the_rows():
    html = html_table(FRAME.with_columns(of=pl.lit("all")), COLUMNS, "t", group="of")
    assert html.count('<th scope="row" class="l">') == FRAME.height
    assert html.count('scope="rowgroup">all') == 1
    assert html.count('scope="col"') == len(COLUMNS)


def test_an_interval_of_one_unit_names_it_once():
    assert words.interval("2 h", "1 h", "3 h").replace("\u00a0", " ") == "2 h (1 h to 3 h)"
    texts = [words.duration(hours * 3600) for hours in (2, 1, 3)]
    assert words.interval(*texts).replace("\u00a0", " ") == "2.00 h (1.00 to 3.00)"
    assert words.interval(None, None, None) is None
