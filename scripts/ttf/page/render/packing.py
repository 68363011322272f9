"""The charts of the page, and the program that draws them anew, in little room.

Rows stand as columns, in which deflate finds what repeats: 57 kB for 40 charts, against 77 kB as rows. The files under
figures/ stay as they are. Both are base64 of deflated text, which the page inflates when it is first asked for.
"""

import base64
import json
import os
import zlib
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

# What is left of a number: more than can be seen, and enough for a tooltip.
DIGITS = 5
# The program knows the first; the page has the look once for all charts, and the title above the drawing.
OF_THE_PAGE = ("$schema", "config", "title")


def packed(charts: Mapping[str, dict]) -> dict[str, dict]:
    """Vega-Lite specifications by name, without title and look, and with columns in place of rows."""
    return {name: _light(spec) for name, spec in charts.items()}


def as_json(value: object) -> str:
    """JSON for a script element of the page."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    # A "<" can stand only inside a string of the JSON: escaped, nothing in it can end the script or mean a shortcode.
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def deflated(text: str) -> str:
    """A text as base64 of what deflate makes of it: less than half as long."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")


def chart_program(folder: Path) -> str:
    """Read the program that draws charts from a file in `folder`; without one, make it and write it there if possible.

    The folder belongs to the environment, whose packages make the same program each time: 1.4 s of processor time.
    """
    path = folder / f"vega-{version('vl-convert-python')}.js"
    with suppress(OSError):
        return path.read_bytes().decode()
    import vl_convert

    program = vl_convert.javascript_bundle()
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        half = path.with_suffix(f".{os.getpid()}")
        half.write_bytes(program.encode())
        half.replace(path)
    return program


def _light(spec: dict) -> dict:
    light = {name: value for name, value in spec.items() if name not in OF_THE_PAGE}
    if "datasets" in light:
        light["datasets"] = {name: _columns(rows) for name, rows in light["datasets"].items()}
    return light


def _columns(rows: list[dict]) -> dict:
    """The number of rows, and their columns. A blank and a value that is not there are the same to a chart."""
    names = sorted({name for row in rows for name in row})
    return {"rows": len(rows), "columns": {name: [_rounded(row.get(name)) for row in rows] for name in names}}


def _rounded(value: object) -> object:
    if not isinstance(value, float):
        return value
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
