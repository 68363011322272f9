"""Times of several kinds of job as ranges of percentiles: a row for each kind on a logarithmic axis."""

from collections.abc import Mapping, Sequence

import altair as alt

from ttf.charts.axes import log_scale, on_log_time, time_axis, time_domain
from ttf.charts.encodings import coloured, side_notes, tips
from ttf.charts.figure import Figure, Study, chart_of, figure
from ttf.charts.theme import ACCENT, THIRD

QUARTILES = ("p25_s", "p50_s", "p75_s", "p90_s", "p95_s")
SUBTITLE = "Bar: the middle half. Line: median. Filled circle: 90th percentile; open circle: 95th."
# Of the plot alone, beside which labels and n stand: on a desk, and on a phone.
WIDTH, NARROW_WIDTH = 490, 170
_KIND_COLOURS = (ACCENT, THIRD)


def placed(row: Mapping, label: str, kind: str = "", times: Sequence[str] = QUARTILES) -> dict:
    """A row of `ranges`: its percentiles (s) as they are and as they stand on the axis, and n."""
    about = {"label": label, "kind": kind, "n": row["n"], "note": f"n = {row['n']:,}"}
    return about | {time: row[time] for time in times} | {_at(time): on_log_time(row[time]) for time in times}


def ranges(
    rows: Sequence[Mapping],
    order: Sequence[str],
    study: Study,
    x: str,
    y: str,
    units: str = "n",
    times: Sequence[str] = QUARTILES,
    subtitle: str = SUBTITLE,
    **words: object,
) -> Figure:
    """The figure of rows that `placed` made: one for each label, in `order`, and each kind of it.

    x, y: the titles of the axes; units: what n counts. times: the percentiles, ascending. The last two are circles, the
    median is a line; from p25 on a bar reaches to p75, else a line from the median to the last. words: of `figure`.
    """
    every = [row[_at(time)] for row in rows for time in times]
    scale = log_scale(time_domain(every, 1.3))
    width, label = (NARROW_WIDTH, 90) if study.narrow else (WIDTH, 200)
    axis = time_axis(f"{x} (logarithmic)")
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    several = len(kinds) > 1
    base = chart_of("ranges").encode(
        y=alt.Y("label:N", title=y, sort=list(order), axis=alt.Axis(labelLimit=label)),
        tooltip=[
            *tips(label=y),
            *tips(form=",.1f", **{time: f"{time[1:3]}% at most (s)" for time in times}),
            *tips(form=",", n=units),
        ],
    )
    colour = alt.value(ACCENT)
    if several:
        base = base.encode(yOffset=alt.YOffset("kind:N", sort=kinds))
        colour = coloured("kind", dict(zip(kinds, _KIND_COLOURS, strict=False)), title=None, orient="bottom")
    painted = base.encode(color=colour)

    def at(time: str) -> alt.X:
        return alt.X(f"{_at(time)}:Q", scale=scale, axis=axis)

    if "p25_s" in times:
        span = painted.mark_bar(height=8 if several else 10, opacity=0.35).encode(x=at("p25_s"), x2="x75:Q")
    else:
        span = painted.mark_rule(opacity=0.5).encode(x=at("p50_s"), x2=f"{_at(times[-1])}:Q")
    marks = (
        span
        + painted.mark_tick(thickness=3, size=14 if several else 16).encode(x=at("p50_s"))
        + painted.mark_point(shape="circle", filled=True, size=45).encode(x=at(times[-2]))
        + painted.mark_point(shape="circle", filled=False, size=45).encode(x=at(times[-1]))
        + side_notes(base, width + 8, baseline="middle")
    )
    chart = marks.properties(width=width, height=alt.Step(16 if several else 24))
    return figure(chart, {"ranges": rows}, study, subtitle=subtitle, **words)


def _at(time: str) -> str:
    return f"x{time[1:3]}"
