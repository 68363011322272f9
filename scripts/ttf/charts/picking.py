"""One GPU type picked, and seen in every chart that tells them apart: the parameter `picked_gpu_type`."""

from collections.abc import Mapping
from dataclasses import dataclass

# A parameter of the chart; the page sets it in all charts of a trace at once. Blank: none is picked.
PICKED = "picked_gpu_type"
FADED = 0.2
# How opaque Vega-Lite draws these where a mark does not say.
_POINTS = {"point", "circle", "square", "tick"}


@dataclass(frozen=True)
class Picks:
    """Where a chart has its GPU types.

    datasets, field: the rows and what holds the type in each; values: label of a type -> what stands in the field.
    """

    datasets: tuple[str, ...]
    field: str
    values: Mapping[str, str]


def with_picking(spec: dict, picks: Picks) -> dict:
    """The chart with the parameter: while a type is picked, marks of the others fade. Its types stand in usermeta."""
    faded = _faded(spec, picks, None)
    return faded | {
        "params": [*spec.get("params", []), {"name": PICKED, "value": ""}],
        "usermeta": {"gpu_types": dict(picks.values)},
    }


def _faded(view: dict, picks: Picks, data: str | None) -> dict:
    """The view with the marks of its rows; `data`: the name of what it is drawn from, where it does not say."""
    data = view.get("data", {}).get("name", data)
    parts = {
        name: [_faded(part, picks, data) for part in view[name]]
        for name in ("layer", "concat", "hconcat", "vconcat")
        if name in view
    }
    if "mark" not in view or data not in picks.datasets:
        return view | parts
    mark = view["mark"] if isinstance(view["mark"], dict) else {"type": view["mark"]}
    opacity = mark.get("opacity", 0.7 if mark["type"] in _POINTS else 1)
    condition = {
        # The name of the field is ours; what is picked is a value, never part of an expression.
        "test": f"{PICKED} === '' || datum['{picks.field}'] === {PICKED}",
        "value": opacity,
    }
    fading = {"condition": condition, "value": round(opacity * FADED, 4)}
    return view | {"encoding": view.get("encoding", {}) | {"opacity": fading}}
