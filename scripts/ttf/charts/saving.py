"""Charts to files: as Vega-Lite JSON for the page, as SVG for print and for other pages."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
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


@contextmanager
def _painter() -> Iterator[TextIO]:
    """A process that is told of specifications (a file for each, and that of its picture) and draws them.

    It draws while the next charts are put together: the library keeps its process to itself while it is at work.
    """
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "ttf.charts.saving"]
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
    """Draw the picture of each specification; a line of `orders` is the two files, in JSON."""
    for spec, svg in map(json.loads, orders):
        Path(svg).write_text(picture_of(Path(spec).read_text(encoding="utf-8").removesuffix("\n")), encoding="utf-8")


def save_charts(
    drawn: Iterable[tuple[str, "Figure"]],
    tables: Mapping[str, Sequence[str]],
    specs: Iterable[str],
    svgs: Iterable[str],
    index: str,
) -> int:
    """Write each chart, and `index`: name -> title, caption, alt, why it is empty (or null), files of its tables.

    drawn: the charts by name, in the order of `specs` and `svgs`. tables: chart -> the files, under the folder of its
    trace, that its numbers stand in. Returns how many have something to draw. Raises RuntimeError for a picture that
    cannot be drawn.
    """
    about = {}
    with _painter() as orders:
        for (name, figure), file, svg in zip(drawn, specs, svgs, strict=True):
            spec = json.dumps(figure.spec(), sort_keys=True, separators=(",", ":"))
            Path(file).write_text(spec + "\n", encoding="utf-8")
            print(json.dumps([str(file), str(svg)]), file=orders, flush=True)
            words = {"title": figure.title, "caption": figure.caption, "alt": figure.alt, "empty": figure.empty}
            about[name] = words | {"tables": list(tables[name])}
    Path(index).write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return sum(entry["empty"] is None for entry in about.values())


if __name__ == "__main__":
    paint(sys.stdin)
