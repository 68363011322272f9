"""Axes of times, of shares and of anything logarithmic."""

import math
from collections.abc import Sequence
from typing import TypedDict, Unpack

import altair as alt
from altair.utils.schemapi import UndefinedType

# 1 s, 10 s, 1 min, 10 min, 1 h, 6 h, 1 d, 10 d, 100 d, 1,000 d, 10,000 d
TIME_TICKS_S = (1, 10, 60, 600, 3_600, 21_600, 86_400, 864_000, 8_640_000, 86_400_000, 864_000_000)
# A fixed expression: text from a trace never becomes part of one.
TIME_LABEL = (
    "datum.value < 60 ? datum.value + ' s' : datum.value < 3600 ? datum.value / 60 + ' min' : "
    "datum.value < 86400 ? datum.value / 3600 + ' h' : format(datum.value / 86400, ',') + ' d'"
)
PERCENT_LABEL = "format(100 * datum.value, ',.0f') + '%'"


class AxisOptions(TypedDict, total=False):
    """Further options of `alt.Axis`."""

    grid: bool
    labels: bool
    ticks: bool
    tickCount: int
    labelOverlap: bool


def log_time_position(seconds: float) -> float:
    """Return the position of a time on a logarithmic axis that begins at 1 s, where 0 s has none."""
    return max(1, seconds)


def time_domain(seconds: Sequence[float], headroom: float = 1.0) -> list[float]:
    """Return the range from the tick at or below the shortest time to the longest time, of positive width."""
    low = max(tick for tick in TIME_TICKS_S if tick == 1 or tick <= min(seconds))
    return [low, max(max(seconds) * headroom, 10 * low)]


def time_axis(title: str | None, values: Sequence[float] = TIME_TICKS_S, **options: Unpack[AxisOptions]) -> alt.Axis:
    options.setdefault("labelOverlap", True)
    return alt.Axis(values=list(values), labelExpr=TIME_LABEL, title=title, **options)


def percent_axis(
    title: str | None = None, values: Sequence[float] | UndefinedType = alt.Undefined, **options: Unpack[AxisOptions]
) -> alt.Axis:
    return alt.Axis(values=values, labelExpr=PERCENT_LABEL, title=title, labelSeparation=6, **options)


def log_domain(values: Sequence[float], low_factor: float = 1.3, high_factor: float = 1.3) -> list[float]:
    """Return the range of positive values, extended by these factors."""
    return [float(f"{min(values) / low_factor:.3g}"), float(f"{max(values) * high_factor:.3g}")]


def log_ticks(domain: Sequence[float]) -> list[float]:
    """Return powers of ten, and multiples of them for a short range."""
    low, high = math.floor(math.log10(domain[0])), math.ceil(math.log10(domain[1]))
    decades = math.log10(domain[1] / domain[0])
    steps = (1, 1.5, 2, 3, 4, 5, 7) if decades < 1 else (1, 2, 5) if decades < 2 else (1,)
    ticks = [float(f"{step}e{power}") for power in range(low, high + 1) for step in steps]
    return [tick for tick in ticks if domain[0] <= tick <= domain[1]]


def log_scale(domain: Sequence[float]) -> alt.Scale:
    return alt.Scale(type="log", domain=list(domain), nice=False)


def log_axis(domain: Sequence[float], title: str | None, **options: Unpack[AxisOptions]) -> alt.Axis:
    return alt.Axis(values=log_ticks(domain), format=",.6~g", title=title, **options)


def log_time_channel(seconds: Sequence[float], title: str, headroom: float = 1.0) -> alt.X:
    """Return the axis of the field x, in seconds of 1 or more."""
    return alt.X("x:Q", scale=log_scale(time_domain(seconds, headroom)), axis=time_axis(title))
