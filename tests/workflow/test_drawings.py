"""The drawings of a finished study: in the colours of the page alone, so that they turn dark with it, and as wide."""

import json
import re

from ttf.display.charts.inline import bare, inline
from ttf.display.charts.theme import LIGHT, NARROW, WIDE

_PAINT = re.compile(r' (?:fill|stroke|stop-color)="([^"]*)"')


def test_every_drawing_fits_the_page(finished_study):
    strange, wide = {}, {}
    for index in sorted(finished_study.folder.glob("results/**/figures/index.json")):
        for name, about in json.loads(index.read_text(encoding="utf-8")).items():
            for ending, most in (("svg", WIDE), *([("narrow.svg", NARROW)] if about["narrow"] else [])):
                if about["empty"]:
                    continue
                svg = (index.parent / f"{name}.{ending}").read_text(encoding="utf-8")
                element = inline(bare(svg), name, about["title"], about["alt"])
                found = {paint for paint in _PAINT.findall(element) if not paint.startswith("url(#")}
                if others := found - {"none", *LIGHT.values()}:
                    strange[f"{name}.{ending}"] = others
                if (width := float(re.search(r' width="(\d+)"', element)[1])) > most:
                    wide[f"{name}.{ending}"] = width
    assert (strange, wide) == ({}, {})
