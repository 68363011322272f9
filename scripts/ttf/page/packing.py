"""The charts of the page, and the program that draws them anew, in little room.

Charts: columns for rows, and what several charts say alike once. The files under figures/ stay as they are. The page
unpacks as `unpacked` does here. Both are base64 of deflated text, which the page inflates when it is first asked for.
"""

import base64
import json
import zlib
from collections import Counter
from collections.abc import Mapping

# What stands for something else: no key of Vega-Lite or of a row begins like that.
SHARED, ROWS, RUNS, AMONG = "$shared", "$rows", "$runs", "$among"
# A reference takes so many characters itself.
SHORTEST_SHARED = 24
# What is left of a number: more than can be seen, and enough for a tooltip.
DIGITS = 5
# The program knows the first; the page has the look once for all charts, and the title above the drawing.
OF_THE_PAGE = ("$schema", "config", "title")


def packed(charts: Mapping[str, dict]) -> dict:
    """`shared` and `charts`: the Vega-Lite specifications by name, without title and look."""
    light = {name: _light(spec) for name, spec in charts.items()}
    times: Counter[str] = Counter()
    for spec in light.values():
        _count(spec, times)
    sharing = _Sharing(times)
    return {"charts": {name: sharing.inside(spec) for name, spec in light.items()}, "shared": sharing.parts}


def unpacked(node: object, shared: list) -> object:
    """What was packed, as the page unpacks it."""
    if isinstance(node, list):
        return [unpacked(value, shared) for value in node]
    if not isinstance(node, dict):
        return node
    if SHARED in node:
        return unpacked(shared[node[SHARED]], shared)
    if RUNS in node:
        runs = unpacked(node[RUNS], shared)
        return [value for value, times in zip(runs[::2], runs[1::2], strict=True) for _ in range(times)]
    if AMONG in node:
        values = unpacked(node[AMONG], shared)
        return [values[at] for at in unpacked(node["at"], shared)]
    if ROWS in node:
        columns = unpacked(node["columns"], shared)
        return [
            {name: column[row] for name, column in columns.items() if column[row] is not None}
            for row in range(node[ROWS])
        ]
    return {name: unpacked(value, shared) for name, value in node.items()}


def as_json(value: object) -> str:
    """JSON for a script element of the page."""
    # A "<" can stand only inside a string of the JSON: escaped, nothing in it can end the script or mean a shortcode.
    return _json(value).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def deflated(text: str) -> str:
    """A text as base64 of what deflate makes of it: less than half as long."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")


# json.dumps would make one for each of some hundred thousand values.
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode


def _light(spec: dict) -> dict:
    light = {name: value for name, value in spec.items() if name not in OF_THE_PAGE}
    if "datasets" in light:
        light["datasets"] = {name: _columns(rows) for name, rows in light["datasets"].items()}
    return light


def _columns(rows: list[dict]) -> dict:
    """Rows by column. A blank and a value that is not there are the same to a chart, and come back as not there."""
    names = sorted({name for row in rows for name in row})
    return {ROWS: len(rows), "columns": {name: _column([_rounded(row.get(name)) for row in rows]) for name in names}}


def _column(values: list) -> list | dict:
    """The shortest of three: as it is, by runs of the same value, or by places in the list of its values."""
    # In JSON 1, 1.0 and true are three things.
    texts = [_json(value) for value in values]
    runs: list = []
    for text, value, before in zip(texts, values, [None, *texts], strict=False):
        if text == before:
            runs[-1] += 1
        else:
            runs += [value, 1]
    distinct = dict(zip(texts, values, strict=True))
    place = {text: at for at, text in enumerate(distinct)}
    among = {AMONG: list(distinct.values()), "at": [place[text] for text in texts]}
    return min([values, {RUNS: runs}, among], key=lambda way: len(_json(way)))


def _rounded(value: object) -> object:
    if not isinstance(value, float):
        return value
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def _count(node: object, times: Counter[str]) -> None:
    """How often each part occurs; the parts of a part once, however often that occurs."""
    if not isinstance(node, (dict, list)):
        return
    text = _json(node)
    times[text] += 1
    if times[text] == 1:
        for value in node.values() if isinstance(node, dict) else node:
            _count(value, times)


class _Sharing:
    """Parts that occur more than once, in the order in which they are first met."""

    def __init__(self, times: Counter[str]):
        self.times, self.places, self.parts = times, {}, []

    def inside(self, node: object) -> object:
        """The node with its parts replaced by references."""
        if isinstance(node, dict):
            return {name: self._reference(value) for name, value in node.items()}
        return [self._reference(value) for value in node] if isinstance(node, list) else node

    def _reference(self, node: object) -> object:
        if not isinstance(node, (dict, list)):
            return node
        text = _json(node)
        if self.times[text] < 2 or len(text) < SHORTEST_SHARED:
            return self.inside(node)
        if text not in self.places:
            part = self.inside(node)
            self.places[text] = len(self.parts)
            self.parts.append(part)
        return {SHARED: self.places[text]}
