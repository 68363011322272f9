"""The small charts of the tiles, 320 by 46: what each is made of, and its SVG.

Colours are tokens of the page; texts of a trace are escaped.
"""

import html
import math
from collections.abc import Callable, Mapping

import polars as pl

from ttf.analyses.time_to_failure.fit_mttf import AGES
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

MOST_POINTS = 60
WIDTH, HEIGHT = 320, 46
BAR, TEXT, LETTER = 16, 12, 6.5
_LEFT, _TOP, _BOTTOM = 2, 4, 38
# From this share without failure on labels stand below the curve.
HIGH = 0.7


def bar(*parts: tuple[str, float, str]) -> dict | None:
    """Label, share and colour of each part; parts of nothing are left out."""
    shown = [{"label": label, "share": share, "colour": colour} for label, share, colour in parts if share > 0]
    return {"kind": "bar", "parts": shown} if shown else None


def of_outcomes(m: Numbers) -> dict | None:
    failed = m["outcomes.failure_share"]
    limits = failed * m.value("outcomes.timeout_share", 0.0)
    return bar(
        ("failed", failed - limits, "c-failure"), ("time limit", limits, "c3"), ("succeeded", 1 - failed, "c-success")
    )


def of_failed_time(m: Numbers) -> dict | None:
    """The time of failed attempts by cause; where no cause is known the time of jobs by outcome."""
    if m.has("failed_time.infra.share"):
        limit, infra, other = (m[f"failed_time.{part}.share"] for part in ("limit", "infra", "other"))
        return bar(("time limit", limit, "c3"), ("infrastructure", infra, "c-infra"), ("other", other, "c-failure"))
    outcomes = ("failure", "success", "cancelled", "unknown", "running")
    by = {name: m.value(f"outcomes.{name}.gpu_hours_share", 0.0) for name in outcomes}
    return bar(
        ("failed", by["failure"], "c-failure"),
        ("succeeded", by["success"], "c-success"),
        ("no result", by["cancelled"] + by["unknown"], "c-cancelled"),
        ("running", by["running"], "c-open"),
    )


def over_time(m: Numbers, given: Mapping) -> dict | None:
    """The rate in rolling windows with its interval: [day, rate, low, high]."""
    name = "failure_rate_over_time"
    if name not in given or not m.has("sizes.over_time.last"):
        return None
    ends = [pl.coalesce(f"ci_{end}_clustered", f"ci_{end}") for end in ("low", "high")]
    windows = given[name].filter(pl.col("by") == "all").drop_nulls(["to_day", "failures_per_1000_node_days", "ci_high"])
    points = [list(map(float, row)) for row in windows.select("to_day", "failures_per_1000_node_days", *ends).rows()]
    if len(points) < 2:
        return None
    # The rate of the tile may be that of large jobs alone.
    of = ", all sizes" if m.value("sizes.rate.above_gpus", 0) else ""
    return {"kind": "line", "points": _thinned(points), "last": f"{words.number(m['sizes.over_time.last'])} last{of}"}


def fall(m: Numbers, given: Mapping) -> dict | None:
    """Mean time to failure by size, measured with its interval, and projected: on logarithmic axes."""
    if "mttf_by_gpus" not in given or not m.has("ettr.mttf_s"):
        return None
    sizes = given["mttf_by_gpus"]
    ends = [pl.coalesce(f"ci_{end}_clustered_s", f"ci_{end}_s") for end in ("low", "high")]
    seen = sizes.filter(pl.col("jobs") > 0).drop_nulls(["mttf_s"]).select("gpus_high", "mttf_s", *ends)
    target = m["ettr.assumed.size_of_the_run"]
    line = sizes.drop_nulls(["projected_mttf_s"]).filter(pl.col("gpus_high") <= max(target, 1))
    size = words.plural(target, "GPU")
    return {
        "kind": "fall",
        "points": [list(row) for row in seen.rows()],
        "line": [list(row) for row in line.select("gpus_high", "projected_mttf_s").rows()],
        "target": [target, m["ettr.mttf_s"], size],
    }


def wall_clock(m: Numbers) -> dict | None:
    if not m.has("ettr.wall.queued_s"):
        return None
    times = {name: m[f"ettr.wall.{name}_s"] for name in ("productive", "overhead", "queued")}
    total = sum(times.values())
    if not math.isfinite(total) or not total:
        return None
    said = {name: words.duration(value) for name, value in times.items()}
    return bar(
        (f"productive {said['productive']}", times["productive"] / total, "c-success"),
        (f"overhead {said['overhead']}", times["overhead"] / total, "c-failure"),
        (f"in the queue {said['queued']}", times["queued"] / total, "c-open"),
    )


def steps(m: Numbers, given: Mapping) -> dict | None:
    """The survival curve of all, and its value at two moments that it is named at."""
    name = "survival"
    if name not in given:
        return None
    curve = given[name].filter(event="failure", stratum_by="all").sort("time_s").select("time_s", "survival")
    points = [[float(time), float(value)] for time, value in curve.drop_nulls().rows()]
    if len(points) < 2:
        return None
    labels = []
    for key in [key for key in AGES if m.value(f"survival.{key}.survival", 1.0) < 0.9995][-2:]:
        moment, worded = AGES[key]
        value = m[f"survival.{key}.survival"]
        labels.append([moment, value, f"{words.share(value)} at {worded}"])
    return {"kind": "steps", "points": _thinned(points), "labels": labels}


def _thinned(points: list) -> list:
    """At most MOST_POINTS, the first and the last among them; spread evenly over their places."""
    if len(points) <= MOST_POINTS:
        return points
    step = (len(points) - 1) / (MOST_POINTS - 1)
    return [points[round(place * step)] for place in range(MOST_POINTS)]


def mini(about: Mapping | None, label: str = "") -> str:
    """The chart as an SVG element that `label` tells of; "" where there is none."""
    if not about:
        return ""
    inside = _KINDS[about["kind"]](about)
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="{words.attribute(label or _spoken(about))}">{inside}</svg>'
    )


def _spoken(about: Mapping) -> str:
    if about["kind"] == "bar":
        return ", ".join(f"{part['label']}: {words.share(part['share'])}" for part in about["parts"])
    if about["kind"] == "line":
        return f"failure rate over time, {about['last']}"
    if about["kind"] == "fall":
        return f"mean time to failure by size, to {about['target'][2]}"
    return "; ".join(["share without failure by age", *(text for *_, text in about["labels"])])


def _bar(about: Mapping) -> str:
    """Parts side by side; below them the labels that have room, the largest first; the last one ends with the bar."""
    drawn, at, places = [], 0.0, []
    for part in about["parts"]:
        width = part["share"] * WIDTH
        stroke = ";stroke:var(--c-open-line)" if part["colour"] == "c-open" else ""
        drawn.append(
            f'<rect x="{_c(at)}" y="2" width="{_c(max(width - 1, 0.6))}" height="{BAR}" rx="1.5" '
            f'style="fill:var(--{part["colour"]}){stroke}"/>'
        )
        places.append((part["share"], at, part["label"]))
        at += width
    taken: list[tuple[float, float]] = []
    for _, x, label in sorted(places, key=lambda place: -place[0]):
        wide = LETTER * len(label)
        x = WIDTH - wide if label == places[-1][2] and len(places) > 1 else min(x, WIDTH - wide)
        if x >= 0 and all(x + wide + 8 <= start or x >= end + 8 for start, end in taken):
            taken.append((x, x + wide))
            drawn.append(_text(x, 34, label))
    return "".join(drawn)


def _line(about: Mapping) -> str:
    points = about["points"]
    x = _scale([point[0] for point in points], _LEFT, WIDTH - LETTER * len(about["last"]) - 14)
    # An end of an interval that is far above every estimate would flatten them.
    most = min(max(point[3] for point in points), 2.5 * max(point[1] for point in points)) or 1.0
    y = _scale([0.0, most], _BOTTOM, _TOP)
    clipped = [(x(day), y(rate), y(min(low, most)), y(min(high, most))) for day, rate, low, high in points]
    band = [(at, low) for at, _, low, _ in clipped] + [(at, high) for at, _, _, high in reversed(clipped)]
    last, line = clipped[-1], "fill:none;stroke:var(--c-infra);stroke-width:1.8"
    return (
        f'<path d="{_path(band)}Z" style="fill:var(--c-infra);opacity:.16"/>'
        f'<path d="{_path([point[:2] for point in clipped])}" style="{line}"/>'
        f"{_dot(last[0], last[1], 'c-infra')}{_axis(last[0])}{_text(last[0] + 8, max(last[1] + 4, 12), about['last'])}"
    )


def _fall(about: Mapping) -> str:
    size, time, label = about["target"]
    measured = [point for point in about["points"] if point[0] <= size]
    sizes = [*(point[0] for point in measured), *(point[0] for point in about["line"]), size]
    times = [*(point[1] for point in measured), *(point[1] for point in about["line"]), time]
    x = _scale([math.log(max(value, 1)) for value in sizes], _LEFT + 4, WIDTH - LETTER * len(label) - 12)
    y = _scale([math.log(value) for value in times if value > 0], _BOTTOM - 4, _TOP + 2)

    def at(gpus: float, seconds: float) -> tuple[float, float]:
        return x(math.log(max(gpus, 1))), min(max(y(math.log(max(seconds, 1))), 1), _BOTTOM)

    drawn = []
    if len(about["line"]) > 1:
        line = _path([at(*point) for point in about["line"]])
        drawn.append(f'<path d="{line}" style="fill:none;stroke:var(--ink);stroke-width:1.8;stroke-dasharray:5 3"/>')
    for gpus, seconds, low, high in measured:
        left, top = at(gpus, seconds)
        if low and high:
            ends = (at(gpus, low)[1], at(gpus, high)[1])
            drawn.append(f'<path d="{_path([(left, ends[0]), (left, ends[1])])}" style="stroke:var(--c-infra)"/>')
        drawn.append(_dot(left, top, "c-infra"))
    end = at(size, time)
    drawn.append(f"{_axis(end[0])}{_text(end[0] + 6, min(end[1] + 4, _BOTTOM), label)}")
    return "".join(drawn)


def _steps(about: Mapping) -> str:
    """Against the logarithm of age: the moments that are named lie decades apart."""
    points = [(max(time, 1.0), value) for time, value in about["points"]]
    x = _scale([math.log(time) for time, _ in points], _LEFT, WIDTH - 74)
    y = _scale([0.0, 1.0], _BOTTOM, _TOP)
    path, before = [], points[0][1]
    for time, value in points:
        path += [(x(math.log(time)), y(before)), (x(math.log(time)), y(value))]
        before = value
    drawn = [f'<path d="{_path(path)}" style="fill:none;stroke:var(--c-failure);stroke-width:1.8"/>', _axis(WIDTH - 74)]
    beside = 0.0
    for time, value, label in about["labels"]:
        left, top = x(math.log(time)), y(value)
        # Where the curve is high, what stands above it would lie on it.
        beneath = value > HIGH
        at = top + 16 if beneath else max(top - 6, 11)
        # Two labels at one height stand one after the other.
        start = max(left - LETTER * len(label) if beneath else left + 4, beside)
        drawn += [_dot(left, top, "c-failure"), _text(min(start, WIDTH - LETTER * len(label)), at, label)]
        beside = start + LETTER * len(label) + 8
    return "".join(drawn)


def _scale(values: list[float], start: float, end: float) -> Callable[[float], float]:
    low, high = min(values), max(values)
    return lambda value: start + (end - start) * ((value - low) / (high - low) if high > low else 0.5)


def _path(points: list[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{_c(x)} {_c(y)}" for x, y in points)


def _dot(x: float, y: float, colour: str) -> str:
    return f'<circle cx="{_c(x)}" cy="{_c(y)}" r="3" style="fill:var(--{colour})"/>'


def _axis(until: float) -> str:
    return f'<path d="M0 {_BOTTOM + 2}L{_c(until)} {_BOTTOM + 2}" style="stroke:var(--axis)"/>'


def _text(x: float, y: float, text: str) -> str:
    style = f"font-size:{TEXT}px;fill:var(--ink-2)"
    return f'<text x="{_c(x)}" y="{_c(y)}" style="{style}">{html.escape(text, quote=False)}</text>'


def _c(value: float) -> str:
    """A coordinate with one decimal; no minus before a zero."""
    return f"{value + 0.0:.1f}".removesuffix(".0").replace("-0.0", "0")


_KINDS = {"bar": _bar, "line": _line, "fall": _fall, "steps": _steps}
