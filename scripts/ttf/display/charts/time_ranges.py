"""Times of several kinds of job as ranges of percentiles: a row for each kind on a logarithmic axis."""

from collections.abc import Mapping, Sequence

import altair as alt

from ttf.display.charts.axes import log_scale, on_log_time, time_axis, time_domain
from ttf.display.charts.encodings import coloured
from ttf.display.charts.figure import Figure, Study, chart_of, figure, fitted
from ttf.display.charts.theme import SUCCESS, THIRD

QUARTILES = ("p25_s", "p50_s", "p75_s", "p90_s", "p95_s")
SUBTITLE = "Bar: middle half; line: median; circles: 90th and 95th percentile"
_KIND_COLOURS = (SUCCESS, THIRD)


def placed(row: Mapping, label: str, kind: str = "", times: Sequence[str] = QUARTILES) -> dict:
    """A row of `ranges`: its percentiles (s) as they are and as they stand on the axis, and n."""
    about = {"label": label, "kind": kind, "n": row["n"]}
    return about | {time: row[time] for time in times} | {_at(time): on_log_time(row[time]) for time in times}


def ranges(
    rows: Sequence[Mapping],
    order: Sequence[str],
    study: Study,
    x: str,
    y: str,
    times: Sequence[str] = QUARTILES,
    subtitle: str = SUBTITLE,
    **words: object,
) -> Figure:
    """The figure of rows that `placed` made: one for each label, in `order`, and each kind of it.

    x, y: the titles of the axes. times: the percentiles, ascending. The last two are circles, the median is a line;
    from p25 on a bar reaches to p75, else a line from the median to the last. words: of `figure`.
    """
    scale = log_scale(time_domain([row[_at(time)] for row in rows for time in times], 1.3))
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    several = len(kinds) > 1
    title = alt.Axis(labelLimit=110 if study.narrow else 200, labelOverlap=False)
    base = chart_of("ranges").encode(y=alt.Y("label:N", title=y, sort=list(order), axis=title))
    colour = alt.value(SUCCESS)
    if several:
        base = base.encode(yOffset=alt.YOffset("kind:N", sort=kinds))
        colour = coloured("kind", dict(zip(kinds, _KIND_COLOURS, strict=False)), title=None, orient="top")
    painted = base.encode(color=colour)

    def at(time: str) -> alt.X:
        return alt.X(f"{_at(time)}:Q", scale=scale, axis=time_axis(x))

    if "p25_s" in times:
        span = painted.mark_bar(height=8 if several else 10, opacity=0.35).encode(x=at("p25_s"), x2="x75:Q")
    else:
        span = painted.mark_rule(opacity=0.5).encode(x=at("p50_s"), x2=f"{_at(times[-1])}:Q")
    marks = (
        span
        + painted.mark_tick(thickness=3, size=14 if several else 16).encode(x=at("p50_s"))
        + painted.mark_point(shape="circle", filled=True, size=45).encode(x=at(times[-2]))
        + painted.mark_point(shape="circle", filled=False, size=45).encode(x=at(times[-1]))
    )
    height = len({row["label"] for row in rows}) * (36 if several else 26) + (90 if several else 60)
    return figure(fitted(marks, study, height), {"ranges": rows}, study, subtitle=subtitle, **words)


def _at(time: str) -> str:
    return f"x{time[1:3]}"
