"""Charts to files: as Vega-Lite JSON for the page, as pictures for print and for other pages."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ttf.charts.figure import Figure
from ttf.charts.picture import picture_of


def save_charts(
    drawn: Mapping[str, Figure],
    tables: Mapping[str, Sequence[str]],
    specs: Iterable[str],
    svgs: Iterable[str],
    index: str,
) -> int:
    """Write each chart, and `index`: name -> title, caption, alt, why it is empty (or null), files of its tables.

    The charts in the order of `specs` and `svgs`. tables: chart -> the files, under the folder of its trace, that its
    numbers stand in. Returns how many have something to draw.
    """
    about = {}
    for (name, figure), file, svg in zip(drawn.items(), specs, svgs, strict=True):
        spec = json.dumps(figure.spec(), sort_keys=True, separators=(",", ":"))
        Path(file).write_text(spec + "\n", encoding="utf-8")
        Path(svg).write_text(picture_of(spec), encoding="utf-8")
        words = {"title": figure.title, "caption": figure.caption, "alt": figure.alt, "empty": figure.empty}
        about[name] = words | {"tables": list(tables[name])}
    Path(index).write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return sum(entry["empty"] is None for entry in about.values())
