"""The look of the charts: to be read on a white and on a dark page."""

import subprocess
import sys
from pathlib import Path

import pytest
from ttf.charts.theme import (
    CATEGORY_COLOURS,
    DARK_PAGE,
    INK,
    ON_COLOUR,
    ON_DARK,
    ORDER_COLOURS,
    OUTCOME_COLOURS,
    dark_style,
)

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colour", sorted({*OUTCOME_COLOURS.values(), *CATEGORY_COLOURS, *ORDER_COLOURS}))
def test_what_is_drawn_stands_out_from_a_dark_page(colour):
    assert contrast(ON_DARK.get(colour, colour), DARK_PAGE) >= 3


def test_words_are_read_on_both_pages():
    assert contrast(INK, "#FFFFFF") >= 7
    assert contrast(ON_DARK[INK], DARK_PAGE) >= 7
    # A text on a bar does not turn white with the page.
    assert ON_COLOUR not in ON_DARK
    assert min(contrast(ON_COLOUR, colour) for colour in OUTCOME_COLOURS.values()) >= 4.5


def test_colours_stay_apart_on_a_dark_page():
    for colours in (CATEGORY_COLOURS, ORDER_COLOURS, tuple(OUTCOME_COLOURS.values())):
        assert len({ON_DARK.get(colour, colour) for colour in colours}) == len(colours)


def test_paper_is_light():
    style = dark_style()
    assert style.count("@media") == style.count("@media screen") == 2


def test_the_report_is_written_without_altair():
    # It takes as long to import as all else that the rule does.
    asked = "import sys, ttf.report.source; sys.exit('altair' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asked], cwd=SCRIPTS).returncode == 0
