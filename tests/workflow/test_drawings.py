"""Drawings of a finished study fit the page's width and use only its colours, so dark mode applies."""

import json
import re

from ttf.display.charts.inline import extract_drawing, make_page_element
from ttf.display.charts.theme import LIGHT, NARROW, WIDE

_PAINT = re.compile(r' (?:fill|stroke|stop-color)="([^"]*)"')


def test_every_drawing_fits_the_page(finished_study):
    strange, wide = {}, {}
    for index in sorted(finished_study.folder.glob("results/**/figures/index.json")):
        for name, chart in json.loads(index.read_text(encoding="utf-8")).items():
            for suffix, max_width in (("svg", WIDE), *([("narrow.svg", NARROW)] if chart["narrow"] else [])):
                if chart["empty"]:
                    continue
                svg = (index.parent / f"{name}.{suffix}").read_text(encoding="utf-8")
                element = make_page_element(extract_drawing(svg), name, chart["title"], chart["alt"])
                colours = {paint for paint in _PAINT.findall(element) if not paint.startswith("url(#")}
                if foreign_colours := colours - {"none", *LIGHT.values()}:
                    strange[f"{name}.{suffix}"] = foreign_colours
                if (width := float(re.search(r' width="(\d+)"', element)[1])) > max_width:
                    wide[f"{name}.{suffix}"] = width
    assert (strange, wide) == ({}, {})
