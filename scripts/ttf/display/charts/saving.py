"""Charts to files: as Vega-Lite JSON, and as SVG under their title; main charts also for a phone, without it."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ttf.display.charts.glyphs import SPELLED, lacks, spelled, with_room, without_room
from ttf.display.charts.theme import FAINT, FONT, INK
from ttf.engine.process.fonts import hide_system_fonts

if TYPE_CHECKING:
    from ttf.display.charts.figure import Figure

_TAG = re.compile(r'<\w+(?: [\w:-]+="[^"]*")+')
_ID = re.compile(r'(?<= )((?:id="|(?:clip-path|fill|stroke)="url\(#))(clip|gradient_)(\d+)')
_SIZE = re.compile(r'<svg [^>]*?\bwidth="([\d.]+)" height="([\d.]+)"')
# px: the margin of a heading, and of its title and its subtitle the size, the line, and a character's share of it.
_MARGIN, _TITLE, _SUBTITLE = 5, (14, 18, 0.58), (12, 16, 0.52)


def picture_of(spec: str) -> str:
    """The Vega-Lite specification (JSON) as SVG, under its title."""
    spec = json.loads(spec)
    heading = spec.get("title", {})
    return headed(drawing_of(spec), heading.get("text", []), heading.get("subtitle", []))


def drawing_of(spec: Mapping) -> str:
    """The chart alone, without title and ground, as SVG. No chart may load anything, so no address is allowed."""
    import vl_convert

    alone = {name: value for name, value in spec.items() if name != "title"}
    config = spec.get("config", {}) | {"background": None}
    measured = with_room(json.dumps(alone | {"config": config}, ensure_ascii=False))
    return renumbered(without_room(vl_convert.vegalite_to_svg(measured, allowed_base_urls=[]))) + "\n"


def still(picture: Path) -> str:
    """A picture for where no browser draws it: from the chart beside it, its characters without a font spelled out."""
    if not lacks(svg := picture.read_text(encoding="utf-8")):
        return svg
    hide_system_fonts()
    spec = json.loads(picture.with_suffix(".vl.json").read_text(encoding="utf-8"))
    spec = json.loads(spelled(json.dumps(spec, ensure_ascii=False)))
    heading = spec.get("title", {})
    told = heading.get("subtitle", [])
    told = [told] if isinstance(told, str) else told
    return headed(drawing_of(spec), heading.get("text", []), [*told, SPELLED])


def headed(drawing: str, title: Sequence[str] | str, subtitle: Sequence[str] | str) -> str:
    """The drawing on white, below the lines of its title and its subtitle; `ttf.display.charts.inline.bare` gives it
    back."""
    width, height = map(float, _SIZE.match(drawing).groups())
    texts, y = [], _MARGIN
    for lines, (size, line, share), style in (
        (title, _TITLE, f'font-weight="bold" fill="{INK}"'),
        (subtitle, _SUBTITLE, f'fill="{FAINT}"'),
    ):
        for text in [lines] if isinstance(lines, str) else lines:
            y += line
            width = max(width, 2 * _MARGIN + round(len(with_room(text)) * size * share))
            texts.append(
                f'<text x="{_MARGIN}" y="{y - 4}" font-family="{FONT}" font-size="{size}px" {style}>'
                f"{escape(text, quote=False)}</text>"
            )
    above = y + _MARGIN if texts else 0
    box = f'width="{width:g}" height="{height + above:g}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} viewBox="0 0 {width:g} {height + above:g}">'
        f'<rect {box} fill="white"/>{"".join(texts)}'
        f"{drawing.strip().replace('<svg ', f'<svg y={chr(34)}{above:g}{chr(34)} ', 1)}</svg>\n"
    )


def renumbered(svg: str) -> str:
    """The picture with its clip paths and gradients numbered from 0 in the order in which they first appear.

    The library counts them up over all pictures of a process. Texts of the picture are left as they are.
    """
    numbers: dict[str, int] = {}

    def renamed(at: re.Match) -> str:
        return f"{at[1]}{at[2]}{numbers.setdefault(at[2] + at[3], len(numbers))}"

    return _TAG.sub(lambda tag: _ID.sub(renamed, tag[0]), svg)


@contextmanager
def _painter() -> Iterator[TextIO]:
    """A process that is told of specifications (a file for each, and that of its picture) and draws them.

    It draws while the next charts are put together: the library keeps its process to itself while it is at work.
    """
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-m", "ttf.display.charts.saving"]
    # Into a file: what nobody reads from a pipe would stop it one day.
    with tempfile.TemporaryFile("w+") as said:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=said, text=True, env=environment) as child:
            with suppress(BrokenPipeError):  # it has ended, and said why
                yield child.stdin
            child.communicate()
        if child.returncode:
            said.seek(0)
            raise RuntimeError(f"a chart cannot be drawn: {said.read()}")


def paint(orders: Iterable[str]) -> None:
    """Draw pictures: a line of `orders` is a specification, the file of its picture and whether it has its title."""
    for spec, svg, titled in map(json.loads, orders):
        Path(svg).write_text(picture_of(spec) if titled else drawing_of(json.loads(spec)), encoding="utf-8")


def save_charts(
    drawn: Iterable[tuple[str, "Figure", "Figure | None"]],
    tables: Mapping[str, Sequence[str]],
    specs: Iterable[str],
    svgs: Iterable[str],
    narrow: Iterable[str],
    index: str,
) -> int:
    """Write each chart, and `index`: name -> its words, why it is empty (or null), files of its tables, whether narrow.

    drawn: the charts by name, in the order of `specs` and `svgs`, and of main charts, in the order of `narrow`, the one
    for a phone. tables: chart -> the files, under the folder of its trace, that its numbers stand in. Returns how many
    have something to draw. Raises RuntimeError for a picture that cannot be drawn.
    """
    about, narrow = {}, iter(narrow)
    with _painter() as orders:
        for (name, figure, small), file, svg in zip(drawn, specs, svgs, strict=True):
            spec = _json(figure.spec())
            Path(file).write_text(spec + "\n", encoding="utf-8")
            print(json.dumps([spec, str(svg), True]), file=orders, flush=True)
            if small:
                print(json.dumps([_json(small.spec()), str(next(narrow)), False]), file=orders, flush=True)
            words = {part: getattr(figure, part) for part in ("title", "subtitle", "caption", "alt", "empty")}
            about[name] = words | {"tables": list(tables[name]), "narrow": small is not None}
    Path(index).write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return sum(entry["empty"] is None for entry in about.values())


def _json(spec: Mapping) -> str:
    return json.dumps(spec, sort_keys=True, separators=(",", ":"))


if __name__ == "__main__":
    paint(sys.stdin)
