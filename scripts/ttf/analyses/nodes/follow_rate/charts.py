"""The failure rate of a node over time, of all causes, with its interval."""

import math
from collections.abc import Mapping

import altair as alt
import polars as pl

from ttf.analyses.nodes.follow_rate.over_time import EVERY
from ttf.display.charts.encodings import tips
from ttf.display.charts.figure import Figure, Study, chart_of, figure, fitted, nothing_to_draw
from ttf.display.charts.intervals import shown
from ttf.display.charts.theme import FAILURE, INFRA, INK
from ttf.engine.words import capital, clustering, number, plural

# Windows of one line, which overlap: so many show its course.
MOST_POINTS = 60
# The highest window is so many times the middle one: the axis is one of square roots.
STEEP = 8
# The axis ends at so many times the highest rate.
WIDEST = 2.5
# Of more days an axis names years.
YEARS = 700
# What fails, by the basis of the table.
FAILURES = {"proxy": "failures of any cause", "component": "failures"}
RATE = "failures_per_1000_node_days"
_TOOLTIP = (*tips("window"), *tips(form=",.4~g", rate="per 1,000 node-days"), *tips("failures", form=","))


def failure_rate_over_time(given: Mapping[str, pl.DataFrame], study: Study) -> Figure:
    """The rate of all causes as a line with a band, its highest and lowest window named."""
    over_time = given["failure_rate_over_time"]
    every = over_time.filter((pl.col("by") == EVERY) & pl.col("ci_high").is_not_null())
    basis = over_time["basis"].first()
    failures = FAILURES.get(basis, "infrastructure failures")
    what = f"{capital(failures)} per 1,000 node-days"
    if not every.height:
        return nothing_to_draw(what, over_time["reason"][0] or "no node was at work")
    banded = _banded(shown(every))
    rows = _rows(_thinned(banded, MOST_POINTS)).to_dicts()
    ends = _ends(rows)
    length = plural(every["window_days"][0], "day")
    independent = banded["independent"].all()
    by = "if independent" if independent else f"clustered by {clustering(banded['cluster_by'].drop_nulls().unique())}"
    said = ", ".join(f"{row['label']} ({row['window']})" for row in ends)
    colour = FAILURE if basis == "proxy" else INFRA
    return figure(
        fitted(_rate(rows, colour, _scale(rows)), study, 210),
        {"rate": rows, "ends": ends},
        study,
        title=what,
        subtitle=f"Rolling windows of {length} by last day, 90% CI {by}",
        caption=f"n = {plural(every.height, 'window')}",
        alt_text=f"{what}: a line over time with a band; lowest and highest: {said}.",
    )


def _banded(windows: pl.DataFrame) -> pl.DataFrame:
    """Windows of `shown`, without a band where only others have enough clusters for an interval."""
    if windows["independent"].all():
        return windows
    return windows.with_columns(pl.when("independent").then(RATE).otherwise(end).alias(end) for end in ("low", "high"))


def _thinned(windows: pl.DataFrame, most: int) -> pl.DataFrame:
    """At most about `most` of the windows, evenly; the last among them, the lowest and the highest."""
    step = max(1, math.ceil(windows.height / most))
    ranked = windows.sort(RATE, "to_day")
    even = windows.reverse().gather_every(step)
    return pl.concat([even, ranked.head(1), ranked.tail(1)]).unique("to_day").sort("to_day")


def _rows(windows: pl.DataFrame) -> pl.DataFrame:
    """Rows of a line; at: the last day as a date, or as a number of days where the trace has none."""
    calendar = "day" not in (windows["window"][0] or "").split(" ")[0]
    # Midnight after the last day would be read as the day that follows.
    at = {"date": pl.col("window").str.tail(10)} if calendar else {"day": pl.col("to_day") + 1}
    return windows.select("window", "failures", "to_day", **at, rate=RATE, low="low", high="high")


def _ends(rows: list[dict]) -> list[dict]:
    """The lowest and the highest window, as they are labelled."""
    ranked = sorted(rows, key=lambda row: (row["rate"], row["to_day"]))
    ends = [("lowest", ranked[0]), ("highest", ranked[-1])][-min(2, len(rows)) :]
    return [
        row | {"highest": end == "highest", "label": number(row["rate"])} | {"key": f"sizes.over_time.{end}.{RATE}"}
        for end, row in ends
    ]


def _scale(rows: list[dict]) -> alt.Scale:
    """Few windows far above the others press these flat on a plain axis; a logarithmic one has no place for 0."""
    rates = sorted(row["rate"] for row in rows)
    kind = "sqrt" if rates[-1] > STEEP * rates[len(rates) // 2] else "linear"
    # An interval of few clusters may be many times as wide as the line is high.
    top = min(max(row["high"] for row in rows), WIDEST * rates[-1]) or 1
    return alt.Scale(type=kind, domain=[0, top], nice=True)


def _x(rows: list[dict]) -> alt.X:
    if "date" not in rows[0]:
        axis = alt.Axis(tickMinStep=1, grid=False, tickCount=4)
        return alt.X("day:Q", title="Day of the trace", axis=axis)
    form = "%Y" if rows[-1]["to_day"] - rows[0]["to_day"] > YEARS else "%-d %b"
    axis = alt.Axis(format=form, tickCount=4, labelSeparation=8, grid=False)
    return alt.X("date:T", title=None, scale=alt.Scale(type="utc"), axis=axis)


def _rate(rows: list[dict], colour: str, scale: alt.Scale) -> alt.LayerChart:
    title = "square root scale" if scale.type == "sqrt" else None
    x, y = _x(rows), alt.Y("rate:Q", title=title, scale=scale)
    base = chart_of("rate").encode(x=x)
    # A band of one window has no width.
    band = base.mark_rule(color=colour) if len(rows) == 1 else base.mark_area(opacity=0.18, color=colour, clip=True)
    line = base.mark_line(strokeWidth=2, color=colour).encode(y=y, tooltip=list(_TOOLTIP))
    ends = chart_of("ends").encode(x=x, y=y)
    points = ends.mark_point(filled=True, size=60, opacity=1, color=colour)
    return alt.layer(band.encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"), line, points, *_texts(rows, ends))


def _texts(rows: list[dict], ends: alt.Chart) -> list[alt.Chart]:
    """The labels of the lowest and the highest window, which stay within the chart."""
    first, last, top = rows[0]["to_day"], rows[-1]["to_day"], max(row["rate"] for row in rows)
    texts = []
    for row in _ends(rows):
        place = (row["to_day"] - first) / max(last - first, 1)
        align = "left" if place < 0.05 else "right" if place > 0.95 else "center"
        below = not row["highest"] and row["rate"] > 0.3 * top
        mark = {"dy": 14 if below else -12, "align": align, "fontSize": 12, "fontWeight": "bold", "color": INK}
        named = ends.transform_filter(f"datum.highest === {str(row['highest']).lower()}")
        texts.append(named.mark_text(**mark).encode(text="label:N"))
    return texts


CHARTS = {"failure_rate_over_time": failure_rate_over_time}
