"""Save charts as Vega-Lite JSON and as SVG with a title; main charts also for a phone, without a title."""

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
from typing import IO, TYPE_CHECKING

from ttf.display.charts.glyphs import SPELLED, add_spacing, has_missing_glyphs, remove_spacing, spell_missing_glyphs
from ttf.display.charts.theme import FAINT, FONT, INK
from ttf.engine.process.fonts import hide_system_fonts

if TYPE_CHECKING:
    from ttf.display.charts.figure import Figure

_TAG = re.compile(r'<\w+(?: [\w:-]+="[^"]*")+')
_ID = re.compile(r'(?<= )((?:id="|(?:clip-path|fill|stroke)="url\(#))(clip|gradient_)(\d+)')
_SIZE = re.compile(r'<svg [^>]*?\bwidth="([\d.]+)" height="([\d.]+)"')
# px: margin of a heading; for title and subtitle: font size, line height, and width of a character relative to the
# size.
_MARGIN, _TITLE, _SUBTITLE = 5, (14, 18, 0.58), (12, 16, 0.52)


def render_picture(spec: Mapping, *notes: str) -> str:
    """Return the Vega-Lite specification as SVG with its title, and with notes as further lines of the subtitle."""
    heading = spec.get("title", {})
    return add_heading(render_drawing(spec), heading.get("text", []), [*_lines(heading.get("subtitle", [])), *notes])


def render_drawing(spec: Mapping) -> str:
    """Return the chart as SVG without title and background. Charts may not load anything, so no URL is allowed."""
    import vl_convert

    untitled = {name: value for name, value in spec.items() if name != "title"}
    config = spec.get("config", {}) | {"background": None}
    spaced = add_spacing(json.dumps(untitled | {"config": config}, ensure_ascii=False))
    return renumber_ids(remove_spacing(vl_convert.vegalite_to_svg(spaced, allowed_base_urls=[]))) + "\n"


def static_picture(picture: Path) -> str:
    """Return a picture for programs other than browsers: drawn again, with characters without a glyph spelled out."""
    if not has_missing_glyphs(svg := picture.read_text(encoding="utf-8")):
        return svg
    hide_system_fonts()
    spec = json.loads(picture.with_suffix(".vl.json").read_text(encoding="utf-8"))
    spec = json.loads(spell_missing_glyphs(json.dumps(spec, ensure_ascii=False)))
    return render_picture(spec, SPELLED)


def _lines(text: Sequence[str] | str) -> Sequence[str]:
    return [text] if isinstance(text, str) else text


def add_heading(drawing: str, title: Sequence[str] | str, subtitle: Sequence[str] | str) -> str:
    """Return the drawing on white, below its title and subtitle; `inline.extract_drawing` reverses it."""
    width, height = map(float, _SIZE.findall(drawing)[0])
    texts, y = [], _MARGIN
    for lines, (size, line, share), style in (
        (title, _TITLE, f'font-weight="bold" fill="{INK}"'),
        (subtitle, _SUBTITLE, f'fill="{FAINT}"'),
    ):
        for text in _lines(lines):
            y += line
            width = max(width, 2 * _MARGIN + round(len(add_spacing(text)) * size * share))
            texts.append(
                f'<text x="{_MARGIN}" y="{y - 4}" font-family="{FONT}" font-size="{size}px" {style}>'
                f"{escape(text, quote=False)}</text>"
            )
    offset = y + _MARGIN if texts else 0
    box = f'width="{width:g}" height="{height + offset:g}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} viewBox="0 0 {width:g} {height + offset:g}">'
        f'<rect {box} fill="white"/>{"".join(texts)}'
        f"{drawing.strip().replace('<svg ', f'<svg y={chr(34)}{offset:g}{chr(34)} ', 1)}</svg>\n"
    )


def renumber_ids(svg: str) -> str:
    """Give numbers to the clip paths and gradients of a picture from 0, in order of appearance.

    The library counts them over all pictures of a process. Texts of the picture do not change.
    """
    numbers: dict[str, int] = {}

    def new_id(match: re.Match) -> str:
        return f"{match[1]}{match[2]}{numbers.setdefault(match[2] + match[3], len(numbers))}"

    return _TAG.sub(lambda tag: _ID.sub(new_id, tag[0]), svg)


@contextmanager
def _painter() -> Iterator[IO[str] | None]:
    """Start a process that draws the specifications written to its stdin, each with the file of its picture.

    It draws while the next charts are built: the library keeps its process busy.
    """
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-m", "ttf.display.charts.saving"]
    # stderr goes to a file: an unread pipe would block the process when full.
    with tempfile.TemporaryFile("w+") as messages:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=messages, text=True, env=environment) as child:
            with suppress(BrokenPipeError):  # it has ended with an error message
                yield child.stdin
            child.communicate()
        if child.returncode:
            messages.seek(0)
            raise RuntimeError(f"a chart cannot be drawn: {messages.read()}")


def draw_pictures(requests: Iterable[str]) -> None:
    """Draw a picture per request: a JSON list of a specification, the SVG file to write and whether to add a title."""
    for spec, svg, has_title in map(json.loads, requests):
        render = render_picture if has_title else render_drawing
        Path(svg).write_text(render(json.loads(spec)), encoding="utf-8")


def save_charts(
    drawn: Iterable[tuple[str, "Figure", "Figure | None"]],
    tables: Mapping[str, Sequence[str]],
    specs: Iterable[str],
    svgs: Iterable[str],
    narrow: Iterable[str],
    index: str,
) -> int:
    """Write each chart, and `index`: name -> texts, why it is empty (or null), files of its tables, whether narrow.

    Returns the number of charts with something to draw. Raises RuntimeError for a picture that cannot be drawn.

    Parameters
    ----------
    drawn: name, figure and, for main charts, figure for a phone
    tables: chart -> files with its numbers, under the folder of its trace
    specs, svgs, narrow: files of all charts and of those for a phone, in the order of `drawn`
    """
    entries, narrow = {}, iter(narrow)
    with _painter() as requests:
        for (name, figure, small), file, svg in zip(drawn, specs, svgs, strict=True):
            spec = _to_compact_json(figure.spec())
            Path(file).write_text(spec + "\n", encoding="utf-8")
            print(json.dumps([spec, str(svg), True]), file=requests, flush=True)
            if small:
                print(json.dumps([_to_compact_json(small.spec()), str(next(narrow)), False]), file=requests, flush=True)
            words = {part: getattr(figure, part) for part in ("title", "subtitle", "caption", "alt", "empty")}
            entries[name] = words | {"tables": list(tables[name]), "narrow": small is not None}
    Path(index).write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return sum(entry["empty"] is None for entry in entries.values())


def _to_compact_json(spec: Mapping) -> str:
    return json.dumps(spec, sort_keys=True, separators=(",", ":"))


if __name__ == "__main__":
    draw_pictures(sys.stdin)
