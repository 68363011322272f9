"""Small charts of the tiles, 320 by 46 px: the data of each, and its SVG.

Colours are tokens of the page; texts of a trace are escaped.
"""

import html
import math
from collections.abc import Callable, Mapping

import polars as pl

from ttf.analyses.time_to_failure.fit_mttf import AGES
from ttf.display.metrics import Tables
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

MOST_POINTS = 60
WIDTH, HEIGHT = 320, 46
BAR, TEXT, LETTER = 16, 12, 6.5
_MARGIN_PX, _TOP, _BOTTOM = 2, 4, 38
# If more than this share survives, labels stand below the curve.
LABELS_BELOW_FROM = 0.7


def bar(*parts: tuple[str, float, str]) -> dict | None:
    """Return a bar chart of parts (label, share, colour), without empty parts."""
    visible = [{"label": label, "share": share, "colour": colour} for label, share, colour in parts if share > 0]
    return {"kind": "bar", "parts": visible} if visible else None


def outcome_bar(m: Numbers) -> dict | None:
    failed = m["outcomes.failure_share"]
    limits = failed * m.value("outcomes.timeout_share", 0.0)
    return bar(
        ("failed", failed - limits, "c-failure"), ("time limit", limits, "c3"), ("succeeded", 1 - failed, "c-success")
    )


def failed_time_bar(m: Numbers) -> dict | None:
    """Return a bar of failed GPU time by cause, or of GPU time by outcome if no cause is recorded."""
    if "failed_time.infra.share" in m:
        limit, infra, rest = (m[f"failed_time.{part}.share"] for part in ("limit", "infra", "other"))
        return bar(("time limit", limit, "c3"), ("infrastructure", infra, "c-infra"), ("other", rest, "c-failure"))
    outcomes = ("failure", "success", "cancelled", "unknown", "running")
    share_by_outcome = {name: m.value(f"outcomes.{name}.gpu_hours_share", 0.0) for name in outcomes}
    return bar(
        ("failed", share_by_outcome["failure"], "c-failure"),
        ("succeeded", share_by_outcome["success"], "c-success"),
        ("no result", share_by_outcome["cancelled"] + share_by_outcome["unknown"], "c-cancelled"),
        ("running", share_by_outcome["running"], "c-open"),
    )


def rate_line(m: Numbers, inputs: Tables) -> dict | None:
    """Return a line of the failure rate in rolling windows, as points [day, rate, low, high]."""
    name = "failure_rate_over_time"
    if name not in inputs or "sizes.over_time.last" not in m:
        return None
    bounds = [pl.coalesce(f"ci_{end}_clustered", f"ci_{end}") for end in ("low", "high")]
    windows = inputs[name].filter(by="all").drop_nulls(["to_day", "failures_per_1000_node_days", "ci_high"])
    points = [list(map(float, row)) for row in windows.select("to_day", "failures_per_1000_node_days", *bounds).rows()]
    if len(points) < 2:
        return None
    # The rate of the tile may cover large jobs only.
    scope = ", all sizes" if m.value("sizes.rate.above_gpus") else ""
    return {"kind": "line", "points": _thin(points), "last": f"{words.number(m['sizes.over_time.last'])} last{scope}"}


def mttf_curve(m: Numbers, inputs: Tables) -> dict | None:
    """Return a curve of MTTF by job size, measured with its interval and projected, for logarithmic axes."""
    if "mttf_by_gpus" not in inputs or "ettr.mttf_s" not in m:
        return None
    sizes = inputs["mttf_by_gpus"]
    bounds = [pl.coalesce(f"ci_{end}_clustered_s", f"ci_{end}_s") for end in ("low", "high")]
    measured = sizes.filter(pl.col("jobs") > 0).drop_nulls(["mttf_s"]).select("gpus_high", "mttf_s", *bounds)
    target = m["ettr.assumed.size_of_the_run"]
    line = sizes.drop_nulls(["projected_mttf_s"]).filter(pl.col("gpus_high") <= max(target, 1))
    return {
        "kind": "fall",
        "points": [list(row) for row in measured.rows()],
        "line": [list(row) for row in line.select("gpus_high", "projected_mttf_s").rows()],
        "target": [target, m["ettr.mttf_s"], words.plural(target, "GPU")],
    }


def scheduled_time_bar(m: Numbers) -> dict | None:
    """Return a bar of the productive time and the overhead of a run at the target size, if both are known."""
    if "ettr.wall.overhead_s" not in m:
        return None
    times = {name: m[f"ettr.wall.{name}_s"] for name in ("productive", "overhead")}
    total = sum(times.values())
    if not math.isfinite(total) or not total:
        return None
    return bar(
        (f"productive {words.duration(times['productive'])}", times["productive"] / total, "c-success"),
        (f"overhead {words.duration(times['overhead'])}", times["overhead"] / total, "c-failure"),
    )


def survival_steps(m: Numbers, inputs: Tables) -> dict | None:
    """Return the survival curve of all jobs, labelled at two ages."""
    if "survival" not in inputs:
        return None
    curve = inputs["survival"].filter(event="failure", stratum_by="all").sort("time_s").select("time_s", "survival")
    points = [[float(time), float(value)] for time, value in curve.drop_nulls().rows()]
    if len(points) < 2:
        return None
    labels = []
    for key in [key for key in AGES if m.value(f"survival.{key}.survival", 1.0) < 0.9995][-2:]:
        moment, age_text = AGES[key]
        value = m[f"survival.{key}.survival"]
        labels.append([moment, value, f"{words.share(value)} at {age_text}"])
    return {"kind": "steps", "points": _thin(points), "labels": labels}


def _thin(points: list) -> list:
    """Return at most MOST_POINTS points, evenly spaced by index, with the first and the last."""
    if len(points) <= MOST_POINTS:
        return points
    step = (len(points) - 1) / (MOST_POINTS - 1)
    return [points[round(index * step)] for index in range(MOST_POINTS)]


def draw_mini(chart: Mapping | None) -> str:
    """Return the chart as an SVG element with a text alternative, or "" without a chart."""
    if not chart:
        return ""
    content = _DRAW_BY_KIND[chart["kind"]](chart)
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="{words.attribute(_make_alt_text(chart))}">{content}</svg>'
    )


def _make_alt_text(chart: Mapping) -> str:
    if chart["kind"] == "bar":
        return ", ".join(f"{part['label']}: {words.share(part['share'])}" for part in chart["parts"])
    if chart["kind"] == "line":
        return f"failure rate over time, {chart['last']}"
    if chart["kind"] == "fall":
        return f"mean time to failure by size, to {chart['target'][2]}"
    return "; ".join(["share without failure by age", *(text for *_, text in chart["labels"])])


def _draw_bar(chart: Mapping) -> str:
    """Draw the parts side by side and the labels that fit below, the largest first; the last one is right-aligned."""
    elements, x_start, labels = [], 0.0, []
    for part in chart["parts"]:
        width = part["share"] * WIDTH
        stroke = ";stroke:var(--c-open-line)" if part["colour"] == "c-open" else ""
        elements.append(
            f'<rect x="{_px(x_start)}" y="2" width="{_px(max(width - 1, 0.6))}" height="{BAR}" rx="1.5" '
            f'style="fill:var(--{part["colour"]}){stroke}"/>'
        )
        labels.append((part["share"], x_start, part["label"]))
        x_start += width
    occupied: list[tuple[float, float]] = []
    for _, x, label in sorted(labels, key=lambda part: -part[0]):
        label_width = LETTER * len(label)
        x = WIDTH - label_width if label == labels[-1][2] and len(labels) > 1 else min(x, WIDTH - label_width)
        if x >= 0 and all(x + label_width + 8 <= start or x >= end + 8 for start, end in occupied):
            occupied.append((x, x + label_width))
            elements.append(_text(x, 34, label))
    return "".join(elements)


def _draw_line(chart: Mapping) -> str:
    points = chart["points"]
    x = _make_scale([point[0] for point in points], _MARGIN_PX, WIDTH - LETTER * len(chart["last"]) - 14)
    # One very wide interval would flatten all estimates.
    upper = min(max(point[3] for point in points), 2.5 * max(point[1] for point in points)) or 1.0
    y = _make_scale([0.0, upper], _BOTTOM, _TOP)
    clipped = [(x(day), y(rate), y(min(low, upper)), y(min(high, upper))) for day, rate, low, high in points]
    band = [(x_day, low) for x_day, _, low, _ in clipped] + [(x_day, high) for x_day, _, _, high in reversed(clipped)]
    last, line = clipped[-1], "fill:none;stroke:var(--c-infra);stroke-width:1.8"
    return (
        f'<path d="{_path_data(band)}Z" style="fill:var(--c-infra);opacity:.16"/>'
        f'<path d="{_path_data([point[:2] for point in clipped])}" style="{line}"/>'
        f"{_dot(last[0], last[1], 'c-infra')}{_axis(last[0])}{_text(last[0] + 8, max(last[1] + 4, 12), chart['last'])}"
    )


def _draw_mttf_curve(chart: Mapping) -> str:
    size, time, label = chart["target"]
    measured = [point for point in chart["points"] if point[0] <= size]
    sizes = [*(point[0] for point in measured), *(point[0] for point in chart["line"]), size]
    times = [*(point[1] for point in measured), *(point[1] for point in chart["line"]), time]
    x = _make_scale([math.log(max(value, 1)) for value in sizes], _MARGIN_PX + 4, WIDTH - LETTER * len(label) - 12)
    y = _make_scale([math.log(value) for value in times if value > 0], _BOTTOM - 4, _TOP + 2)

    def locate(gpus: float, seconds: float) -> tuple[float, float]:
        return x(math.log(max(gpus, 1))), min(max(y(math.log(max(seconds, 1))), 1), _BOTTOM)

    elements = []
    if len(chart["line"]) > 1:
        line = _path_data([locate(*point) for point in chart["line"]])
        elements.append(f'<path d="{line}" style="fill:none;stroke:var(--ink);stroke-width:1.8;stroke-dasharray:5 3"/>')
    for gpus, seconds, low, high in measured:
        x_px, top = locate(gpus, seconds)
        if low and high:
            path = _path_data([locate(gpus, low), locate(gpus, high)])
            elements.append(f'<path d="{path}" style="stroke:var(--c-infra)"/>')
        elements.append(_dot(x_px, top, "c-infra"))
    end = locate(size, time)
    elements.append(f"{_axis(end[0])}{_text(end[0] + 6, min(end[1] + 4, _BOTTOM), label)}")
    return "".join(elements)


def _draw_steps(chart: Mapping) -> str:
    """Draw survival against the logarithm of age, because the labelled ages lie decades apart."""
    points = [(max(time, 1.0), value) for time, value in chart["points"]]
    x = _make_scale([math.log(time) for time, _ in points], _MARGIN_PX, WIDTH - 74)
    y = _make_scale([0.0, 1.0], _BOTTOM, _TOP)
    path, previous = [], points[0][1]
    for time, value in points:
        path += [(x(math.log(time)), y(previous)), (x(math.log(time)), y(value))]
        previous = value
    line = f'<path d="{_path_data(path)}" style="fill:none;stroke:var(--c-failure);stroke-width:1.8"/>'
    elements = [line, _axis(WIDTH - 74)]
    free_from = 0.0
    for time, value, label in chart["labels"]:
        x_px, top = x(math.log(time)), y(value)
        # A label above a high curve would cover it.
        is_below = value > LABELS_BELOW_FROM
        label_y = top + 16 if is_below else max(top - 6, 11)
        # Labels at the same height must not overlap.
        start = max(x_px - LETTER * len(label) if is_below else x_px + 4, free_from)
        elements += [_dot(x_px, top, "c-failure"), _text(min(start, WIDTH - LETTER * len(label)), label_y, label)]
        free_from = start + LETTER * len(label) + 8
    return "".join(elements)


def _make_scale(values: list[float], start: float, end: float) -> Callable[[float], float]:
    low, high = min(values), max(values)
    return lambda value: start + (end - start) * ((value - low) / (high - low) if high > low else 0.5)


def _path_data(points: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{_px(x)} {_px(y)}" for x, y in points)


def _dot(x: float, y: float, colour: str) -> str:
    return f'<circle cx="{_px(x)}" cy="{_px(y)}" r="3" style="fill:var(--{colour})"/>'


def _axis(end_px: float) -> str:
    return f'<path d="M0 {_BOTTOM + 2}L{_px(end_px)} {_BOTTOM + 2}" style="stroke:var(--axis)"/>'


def _text(x: float, y: float, text: str) -> str:
    style = f"font-size:{TEXT}px;fill:var(--ink-2)"
    return f'<text x="{_px(x)}" y="{_px(y)}" style="{style}">{html.escape(text, quote=False)}</text>'


def _px(value: float) -> str:
    """Return a coordinate with one decimal, without a minus before zero."""
    return f"{value + 0.0:.1f}".removesuffix(".0").replace("-0.0", "0")


_DRAW_BY_KIND = {"bar": _draw_bar, "line": _draw_line, "fall": _draw_mttf_curve, "steps": _draw_steps}
