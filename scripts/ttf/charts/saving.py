"""Charts to files: one way for every rule that draws."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import vl_convert

from ttf.charts import theme  # noqa: F401  (registers the look of the charts)
from ttf.charts.figure import Figure


def save_charts(drawn: Mapping[str, Figure], specs: Iterable[str], svgs: Iterable[str], index: str) -> int:
    """Write each chart as Vega-Lite JSON and SVG, and `index`: name -> title, caption, alt, why it is empty (or null).

    The charts are drawn in the order of `specs`, once per process: the ids of clip paths count up with every chart. No
    chart may load anything, so no address is allowed. Returns how many have something to draw.
    """
    about = {}
    for spec_file, svg_file in zip(specs, svgs, strict=True):
        name = Path(spec_file).name.removesuffix(".vl.json")
        figure = drawn[name]
        spec = json.dumps(figure.spec(), sort_keys=True, separators=(",", ":"))
        Path(spec_file).write_text(spec + "\n", encoding="utf-8")
        svg = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
        Path(svg_file).write_text(svg + "\n", encoding="utf-8")
        about[name] = {"title": figure.title, "caption": figure.caption, "alt": figure.alt, "empty": figure.empty}
    Path(index).write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return sum(entry["empty"] is None for entry in about.values())
