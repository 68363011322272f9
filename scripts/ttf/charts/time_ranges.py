"""Times of several kinds of job as ranges of percentiles: a row for each kind on a logarithmic axis."""

from collections.abc import Mapping, Sequence

import altair as alt

from ttf.charts.axes import on_log_time, time_axis, time_domain
from ttf.charts.figure import chart_of
from ttf.charts.theme import ACCENT, FAINT

QUARTILES = ("p25_s", "p50_s", "p75_s", "p90_s", "p95_s")
SUBTITLE = "Bar: the middle half. Line: median. Filled circle: 90th percentile; open circle: 95th."
WIDTH = 490
_KIND_COLOURS = (ACCENT, "#E69F00")


def placed(row: Mapping, label: str, kind: str = "", times: Sequence[str] = QUARTILES) -> dict:
    """A row of `ranges`: its percentiles (s) as they are and as they stand on the axis, and n."""
    about = {"label": label, "kind": kind, "n": row["n"], "note": f"n = {row['n']:,}"}
    return about | {time: row[time] for time in times} | {_at(time): on_log_time(row[time]) for time in times}


def ranges(
    rows: Sequence[Mapping], order: Sequence[str], x: str, y: str, units: str = "n", times: Sequence[str] = QUARTILES
) -> alt.LayerChart:
    """The chart of the dataset `ranges`, rows that `placed` made: one for each label, in `order`, and each kind of it.

    x, y: the titles of the axes; units: what n counts. times: the percentiles, ascending. The last two are circles, the
    median is a line; from p25 on a bar reaches to p75, else a line from the median to the last.
    """
    every = [row[_at(time)] for row in rows for time in times]
    scale = alt.Scale(type="log", domain=time_domain(every, 1.3), nice=False)
    axis = time_axis(f"{x} (logarithmic)")
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    several = len(kinds) > 1
    base = chart_of("ranges").encode(
        y=alt.Y("label:N", title=y, sort=list(order), axis=alt.Axis(labelLimit=200)),
        tooltip=[
            alt.Tooltip("label:N", title=y),
            *(alt.Tooltip(f"{time}:Q", title=f"{time[1:3]} % at most (s)", format=",.1f") for time in times),
            alt.Tooltip("n:Q", title=units, format=","),
        ],
    )
    colour = alt.value(ACCENT)
    if several:
        base = base.encode(yOffset=alt.YOffset("kind:N", sort=kinds))
        colour = alt.Color(
            "kind:N",
            scale=alt.Scale(domain=kinds, range=list(_KIND_COLOURS[: len(kinds)])),
            legend=alt.Legend(title=None, orient="bottom"),
        )
    coloured = base.encode(color=colour)

    def at(time: str) -> alt.X:
        return alt.X(f"{_at(time)}:Q", scale=scale, axis=axis)

    if "p25_s" in times:
        span = coloured.mark_bar(height=8 if several else 10, opacity=0.35).encode(x=at("p25_s"), x2="x75:Q")
    else:
        span = coloured.mark_rule(opacity=0.5).encode(x=at("p50_s"), x2=f"{_at(times[-1])}:Q")
    return (
        span
        + coloured.mark_tick(thickness=3, size=14 if several else 16).encode(x=at("p50_s"))
        + coloured.mark_point(shape="circle", filled=True, size=45).encode(x=at(times[-2]))
        + coloured.mark_point(shape="circle", filled=False, size=45).encode(x=at(times[-1]))
        + base.mark_text(align="left", fontSize=10, baseline="middle", color=FAINT).encode(
            x=alt.value(WIDTH + 8), text="note:N"
        )
    ).properties(width=WIDTH, height=alt.Step(16 if several else 24))


def _at(time: str) -> str:
    return f"x{time[1:3]}"
