"""Times of several kinds of jobs as percentile ranges: a row for each kind on a logarithmic axis."""

from collections.abc import Mapping, Sequence

import altair as alt

from ttf.display.charts.axes import log_scale, log_time_position, time_axis, time_domain
from ttf.display.charts.encodings import colour_by, pick_columns
from ttf.display.charts.figure import Figure, Study, fit_width, make_chart, make_figure
from ttf.display.charts.theme import SUCCESS, THIRD

QUARTILES = ("p25_s", "p50_s", "p75_s", "p90_s", "p95_s")
SUBTITLE = "Bar: middle half; line: median; circles: 90th and 95th percentile"
_KIND_COLOURS = (SUCCESS, THIRD)


def make_range_row(row: Mapping, label: str, kind: str = "", times: Sequence[str] = QUARTILES) -> dict:
    """Return a row for `draw_ranges`: its percentiles (s), their positions on the axis, and n."""
    positions = {_position_field(time): log_time_position(row[time]) for time in times}
    return {"label": label, "kind": kind} | pick_columns(row, "n", *times) | positions


def draw_ranges(
    rows: Sequence[Mapping],
    order: Sequence[str],
    study: Study,
    x: str,
    y: str,
    times: Sequence[str] = QUARTILES,
    subtitle: str = SUBTITLE,
    **words: str,
) -> Figure:
    """Return the figure of rows of `make_range_row`: one for each label, in `order`, and each kind of it.

    x, y: titles of the axes. times: ascending percentiles. The last two are circles, the median is a line. If p25 is
    among them, a bar reaches from it to p75, else a line from the median to the last. words: of `make_figure`.
    """
    scale = log_scale(time_domain([row[_position_field(time)] for row in rows for time in times], 1.3))
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    has_kinds = len(kinds) > 1
    title = alt.Axis(labelLimit=110 if study.narrow else 200, labelOverlap=False)
    base = make_chart("ranges").encode(y=alt.Y("label:N", title=y, sort=list(order), axis=title))
    tinted = base.encode(color=alt.value(SUCCESS))
    if has_kinds:
        legend, colours = alt.Legend(title=None, orient="top"), dict(zip(kinds, _KIND_COLOURS, strict=False))
        tinted = base.encode(yOffset=alt.YOffset("kind:N", sort=kinds), color=colour_by("kind", colours, legend))

    def encode_time(time: str) -> alt.X:
        return alt.X(f"{_position_field(time)}:Q", scale=scale, axis=time_axis(x))

    if "p25_s" in times:
        bars = tinted.mark_bar(height=8 if has_kinds else 10, opacity=0.35).encode(x=encode_time("p25_s"), x2="x75:Q")
    else:
        bars = tinted.mark_rule(opacity=0.5).encode(x=encode_time("p50_s"), x2=f"{_position_field(times[-1])}:Q")
    marks = (
        bars
        + tinted.mark_tick(thickness=3, size=14 if has_kinds else 16).encode(x=encode_time("p50_s"))
        + tinted.mark_point(shape="circle", filled=True, size=45).encode(x=encode_time(times[-2]))
        + tinted.mark_point(shape="circle", filled=False, size=45).encode(x=encode_time(times[-1]))
    )
    height = len({row["label"] for row in rows}) * (36 if has_kinds else 26) + (90 if has_kinds else 60)
    return make_figure(fit_width(marks, study, height), {"ranges": rows}, study, subtitle=subtitle, **words)


def _position_field(time: str) -> str:
    """Return the field with the position of a percentile on the axis: x25 for p25_s."""
    return f"x{time[1:3]}"
