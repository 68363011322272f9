"""The failure rate of a node over time, with its interval, and by cause where the trace tells causes apart."""

import math
from collections.abc import Mapping

import altair as alt
import polars as pl

from ttf.analyses.measure_sizes.over_time import CONFIDENCE, EVERY
from ttf.charts.encodings import coloured, picked, tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.text import capital, labels, significant
from ttf.charts.theme import ACCENT, CATEGORY_COLOURS, FAINT

# Windows of one line, which overlap: so many show its course.
MOST_POINTS = 60
MOST_POINTS_BY_CAUSE = 30
# The highest window is so many times the middle one: the axis is one of square roots.
STEEP = 8
_WIDTH = 620
# What the failures are, by the basis of the table.
BASES = {
    "state": "infrastructure failures, by the status of each run",
    "event": "infrastructure failures, by status and failed health checks",
    "proxy": "every failure, users' errors among them, as a proxy",
    "component": "failures of the components themselves",
}


def failure_rate_over_time(given: Mapping[str, pl.DataFrame], study: Study) -> Figure:
    """The rate as a line with a band; below it a line for each cause or domain."""
    over_time = given["failure_rate_over_time"]
    what = "Failure rate over time"
    every = over_time.filter((pl.col("by") == EVERY) & pl.col("ci_high").is_not_null())
    if not every.height:
        return nothing_to_draw(what, over_time["reason"][0] or "no node was at work")
    calendar = "day" not in (every["window"][0] or "").split(" ")[0]
    rows = [_row(row, calendar) for row in _thinned(every, MOST_POINTS).iter_rows(named=True)]
    middle = every["failures_per_1000_node_days"].median()
    # A few windows far above the others would press these flat on a plain axis; a logarithmic one has no place for 0.
    scale = alt.Scale(type="sqrt" if max(row["rate"] for row in rows) > STEEP * middle else "linear", zero=True)
    panels, datasets = [_rate(rows, calendar, scale)], {"rate": rows}
    causes = over_time.filter((pl.col("by") != EVERY) & pl.col("ci_high").is_not_null())
    if causes.height:
        names = labels(causes["cause"].unique(maintain_order=True))
        by_cause = [
            {"cause": names[row["cause"]]} | _row(row, calendar)
            for part in causes.partition_by("cause", maintain_order=True)
            for row in _thinned(part, MOST_POINTS_BY_CAUSE).iter_rows(named=True)
        ]
        # Pages stay small: the day says which window it is.
        by_cause = [{name: row[name] for name in row if name not in ("window", "low", "high")} for row in by_cause]
        panels.append(_by_cause(by_cause, list(names.values()), causes["by"][0], calendar, scale))
        datasets["causes"] = by_cause
    basis, days = every["basis"][0], every["window_days"][0]
    length = "1 day" if days == 1 else f"{days} days"
    title = _title(every, basis)
    failed = BASES.get(basis, "failures")
    caption = (
        f"Failures ({failed}) over node-days at work in rolling windows of {length}, every run's time split over its "
        f"days; exact Poisson (Garwood) {100 * CONFIDENCE:.0f} % intervals. Windows that overlap share failures."
    )
    if study.unit == "node" or basis == "component":
        caption += f" Every {study.unit} in service is at work."
    else:
        caption += f" {capital(study.units)} of every size that asked for a GPU."
    if causes.height:
        caption += f" Below: by {causes['by'][0]}; their rates add up to that above."
    chart = alt.vconcat(*panels, spacing=16) if len(panels) > 1 else panels[0]
    return figure(
        chart,
        datasets,
        study,
        title=title,
        subtitle=f"Line: failures per 1000 node-days in the {length} up to each day; band: 90 % interval. "
        f"Counted: {failed}.",
        caption=caption,
        alt_text=f"A line over time with a band. {title}.",
    )


def _thinned(windows: pl.DataFrame, most: int) -> pl.DataFrame:
    """At most about `most` of the windows, evenly; the last among them, the lowest and the highest."""
    step = max(1, math.ceil(windows.height / most))
    ranked = windows.sort("failures_per_1000_node_days", "to_day")
    even = windows.reverse().gather_every(step)
    return pl.concat([even, ranked.head(1), ranked.tail(1)]).unique("to_day").sort("to_day")


def _row(row: dict, calendar: bool) -> dict:
    # Midnight after the last day would be read as the day that follows.
    at = {"date": f"{row['window'][-10:]}"} if calendar else {"day": row["to_day"] + 1}
    return at | picked(row, "window", "failures", rate="failures_per_1000_node_days", low="ci_low", high="ci_high")


def _x(calendar: bool, title: str | None) -> alt.X:
    if calendar:
        # As the title has them: Vega names days of the week, or months.
        axis = alt.Axis(format="%Y-%m-%d", tickCount=6, labelSeparation=8)
        return alt.X("date:T", title=title and "Last day of the window (UTC)", scale=alt.Scale(type="utc"), axis=axis)
    return alt.X(
        "day:Q", title=title and "Last day of the window, from the trace's first start", axis=alt.Axis(tickMinStep=1)
    )


_TOOLTIP = (*tips(form=",.4~g", rate="failures per 1000 node-days"), *tips("failures", form=","))


def _titled(title: str, scale: alt.Scale) -> str:
    return f"{title} (square root)" if scale.type == "sqrt" else title


def _rate(rows: list[dict], calendar: bool, scale: alt.Scale) -> alt.LayerChart:
    base = chart_of("rate").encode(x=_x(calendar, "last day"))
    y = alt.Y("rate:Q", title=_titled("Failures per 1000 node-days", scale), scale=scale)
    limits = tips(form=",.4~g", low="90 % from", high="to")
    layers = [
        base.mark_area(opacity=0.18, color=ACCENT).encode(y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_line(strokeWidth=2, color=ACCENT, point={"size": 12, "color": ACCENT}).encode(
            y=y, tooltip=[*tips("window"), *_TOOLTIP, *limits]
        ),
    ]
    if len(rows) == 1:
        # A band of one window has no width.
        layers[0] = base.mark_rule(color=ACCENT).encode(y=alt.Y("low:Q"), y2="high:Q")
    return alt.layer(*layers).properties(width=_WIDTH, height=240)


def _by_cause(rows: list[dict], names: list[str], by: str, calendar: bool, scale: alt.Scale) -> alt.Chart:
    colours = dict(zip(names, [*CATEGORY_COLOURS, FAINT], strict=False))
    return (
        chart_of("causes")
        .mark_line(strokeWidth=1.8, point={"size": 12} if len(rows) <= 2 * len(names) else False)
        .encode(
            x=_x(calendar, "last day"),
            y=alt.Y("rate:Q", title=_titled(f"By {by}", scale), scale=scale),
            color=coloured("cause", colours, title=None, orient="bottom", columns=4, labelLimit=160),
            tooltip=[*tips(cause=by), *_TOOLTIP],
        )
        .properties(width=_WIDTH, height=170)
    )


def _title(every: pl.DataFrame, basis: str) -> str:
    what = {"proxy": "Failures of any kind (a proxy)", "component": "Failures"}.get(basis, "Infrastructure failures")
    if not every["failures"].sum():
        return f"{what} per 1000 node-days: none in any window"
    if every.height == 1:
        rate, window = every["failures_per_1000_node_days"][0], every["window"][0]
        return f"{what} per 1000 node-days: {significant(rate)} in the one window of the trace, {window}"
    ranked = every.sort("failures_per_1000_node_days", "to_day")
    low, high = ranked.row(0, named=True), ranked.row(-1, named=True)
    rates = [significant(row["failures_per_1000_node_days"]) for row in (low, high)]
    apart = low["ci_high"] < high["ci_low"]
    verdict = "" if apart else ", no further apart than chance may bring them"
    return f"{what} per 1000 node-days: from {rates[0]} ({low['window']}) to {rates[1]} ({high['window']}){verdict}"
