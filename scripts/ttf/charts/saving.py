"""Charts to files: one way for every rule that draws."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from ttf.charts.figure import Figure


def save_charts(drawn: Mapping[str, Figure], specs: Iterable[str], index: str) -> int:
    """Write each chart as Vega-Lite JSON, and `index`: name -> title, caption, alt, why it is empty (or null).

    The charts in the order of `specs`. Returns how many have something to draw. As pictures: rule render_figures.
    """
    about = {}
    for file in specs:
        name = Path(file).name.removesuffix(".vl.json")
        figure = drawn[name]
        spec = json.dumps(figure.spec(), sort_keys=True, separators=(",", ":"))
        Path(file).write_text(spec + "\n", encoding="utf-8")
        about[name] = {"title": figure.title, "caption": figure.caption, "alt": figure.alt, "empty": figure.empty}
    Path(index).write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return sum(entry["empty"] is None for entry in about.values())
