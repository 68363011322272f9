"""Charts to files: as Vega-Lite JSON for the page, as SVG for print and for other pages."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ttf.charts.figure import Figure

_TAG = re.compile(r'<\w+(?: [\w:-]+="[^"]*")+')
_ID = re.compile(r'(?<= )((?:id="|(?:clip-path|fill|stroke)="url\(#))(clip|gradient_)(\d+)')


def picture_of(spec: str) -> str:
    """The Vega-Lite specification (JSON) as SVG. No chart may load anything, so no address is allowed."""
    import vl_convert

    return renumbered(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])) + "\n"


def renumbered(svg: str) -> str:
    """The picture with its clip paths and gradients numbered from 0 in the order in which they first appear.

    The library counts them up over all pictures of a process. Texts of the picture are left as they are.
    """
    numbers: dict[str, int] = {}

    def renamed(at: re.Match) -> str:
        return f"{at[1]}{at[2]}{numbers.setdefault(at[2] + at[3], len(numbers))}"

    return _TAG.sub(lambda tag: _ID.sub(renamed, tag[0]), svg)


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
