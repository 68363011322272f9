"""The colours of the charts, which must be readable on a light and on a dark page."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from ttf.display.charts.theme import (
    CATEGORY_COLOURS,
    FAINT,
    INFRA,
    INK,
    LIGHT,
    ON_DARK_BAR,
    ON_LIGHT,
    OPEN,
    ORDER_COLOURS,
    OUTCOME_COLOURS,
    SUNKEN,
    TOKENS,
    tokens_style,
)

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
DARK = dict(TOKENS.values())
SURFACES = {"light": "#ffffff", "dark": TOKENS["surface"][1]}


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    levels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = [level / 12.92 if level <= 0.04045 else ((level + 0.055) / 1.055) ** 2.4 for level in levels]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(colour: str, background: str) -> float:
    low, high = sorted((luminance(colour), luminance(background)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colour", sorted(set(CATEGORY_COLOURS)))
def test_marks_stand_out_on_both_pages(colour):
    assert contrast(colour, SURFACES["light"]) >= 3
    assert contrast(DARK[colour], SURFACES["dark"]) >= 3


@pytest.mark.parametrize("name", ["ink", "ink-2", "ink-3", "accent", "warn-ink", "stop-ink"])
def test_texts_are_readable_on_both_pages(name):
    background = {"warn-ink": "warn-bg", "stop-ink": "stop-bg"}.get(name, "sunken")
    for mode in (0, 1):
        for surface in ("surface", "bg", background):
            assert contrast(TOKENS[name][mode], TOKENS[surface][mode]) >= 4.5, surface


def test_texts_on_bars_are_readable():
    for bar in {*OUTCOME_COLOURS.values(), INFRA} - {OPEN}:
        assert max(contrast(text, bar) for text in (ON_LIGHT, ON_DARK_BAR)) >= 4.5
        assert max(contrast(DARK[text], DARK[bar]) for text in (ON_LIGHT, ON_DARK_BAR)) >= 4.5
    # The colour of open jobs is dark on a dark page, so its text is bright.
    assert min(contrast(INK, OPEN), contrast(DARK[INK], DARK[OPEN])) >= 4.5


def test_a_colour_is_one_token_and_colours_are_distinct():
    # A drawing identifies a token by its light colour.
    assert len(set(LIGHT.values())) == len(LIGHT)
    assert len(DARK.values()) == len(set(DARK.values()))
    outcomes = {OUTCOME_COLOURS[name] for name in ("success", "failure", "cancelled", "unknown", "running")}
    assert len(outcomes) == 5
    for mode, colours in ((0, ORDER_COLOURS), (1, [DARK[colour] for colour in ORDER_COLOURS])):
        luminances = [luminance(colour) for colour in colours]
        assert luminances == sorted(luminances, reverse=mode == 0)


def test_every_token_replaces_its_colour_and_paper_is_light():
    style = tokens_style()
    mapped = dict(re.findall(r'svg \[fill="(#\w+)"\]\{fill:var\(--([\w-]+)\)\}', style))
    assert mapped == {light: name for name, light in LIGHT.items()}
    assert {INK, FAINT, SUNKEN} <= set(mapped)
    assert style.count("@media") == style.count("@media screen") == 2


def test_the_report_is_written_without_altair():
    # Importing altair takes as long as the rest of the rule.
    program = "import sys, ttf.page.report.trace_page, ttf.page.report.comparison; sys.exit('altair' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=SCRIPTS).returncode == 0
