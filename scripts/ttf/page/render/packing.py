"""Compressed charts for the page, and the program that redraws them.

Data are stored by column, which deflates better: 57 kB for 40 charts, against 77 kB by row. Both parts are base64 of
deflated text, which the page inflates on first use.
"""

import base64
import json
import zlib
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from ttf.engine.storage.plain_files import replace_file

# Significant digits of a number: more than a drawing shows, and enough for a tooltip.
DIGITS = 5
# The program knows the schema; the page holds one config for all charts, and the titles.
PAGE_FIELDS = ("$schema", "config", "title")


def pack_charts(charts: Mapping[str, Mapping]) -> dict[str, dict]:
    """Return Vega-Lite specifications by name, without title and config, with data by column."""
    packed = {}
    for chart, spec in charts.items():
        packed[chart] = {name: value for name, value in spec.items() if name not in PAGE_FIELDS}
        if "datasets" in spec:
            packed[chart]["datasets"] = {name: _columns(rows) for name, rows in spec["datasets"].items()}
    return packed


def to_json(value: object) -> str:
    """Return JSON that is safe in a script element of the page."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    # JSON has "<" only in strings; escaped, it can neither end the script nor start a shortcode.
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def deflate(text: str) -> str:
    """Return the deflated text as base64: less than half as long."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")


def chart_program(folder: Path) -> str:
    """Return the program that draws charts, from the cache in `folder` or bundled anew and cached there.

    The folder belongs to the environment, whose packages fix the program. Bundling takes 1.4 s of processor time.
    """
    path = folder / f"vega-{version('vl-convert-python')}.js"
    with suppress(OSError):
        return path.read_bytes().decode()
    import vl_convert

    program = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # the stubs know no default of `snippet`
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(path, program)
    return program


def _columns(rows: list[dict]) -> dict:
    """Return the number of rows, and the columns; a chart treats null and missing values the same."""
    names = sorted({name for row in rows for name in row})
    return {"rows": len(rows), "columns": {name: [_round_number(row.get(name)) for row in rows] for name in names}}


def _round_number(value: object) -> object:
    if not isinstance(value, float):
        return value
    rounded = float(f"{value:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
