"""What the small charts of the tiles are made of: ttf.page.minis draws them. Colours are names of tokens."""

import math
from collections.abc import Mapping

import polars as pl

from ttf import words
from ttf.analyses.fit_mttf import AGES
from ttf.page.numbers import Numbers

MOST_POINTS = 60


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
        shown = words.share(value) if value > 0.99 else f"{100 * value:.0f}%"
        labels.append([moment, value, f"{shown} at {worded}"])
    return {"kind": "steps", "points": _thinned(points), "labels": labels}


def _thinned(points: list) -> list:
    """At most MOST_POINTS, the first and the last among them; spread evenly over their places."""
    if len(points) <= MOST_POINTS:
        return points
    step = (len(points) - 1) / (MOST_POINTS - 1)
    return [points[round(place * step)] for place in range(MOST_POINTS)]
