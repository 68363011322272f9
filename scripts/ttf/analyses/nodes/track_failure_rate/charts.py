"""Failure rate per node-day over time, of all causes, with its interval."""

import math
from collections.abc import Mapping

import altair as alt
import polars as pl

from ttf.analyses.nodes.track_failure_rate.over_time import ALL
from ttf.display.charts.encodings import Align, bold_labels, tooltips
from ttf.display.charts.figure import Figure, Study, empty_figure, fit_width, make_chart, make_figure
from ttf.display.charts.intervals import add_bounds
from ttf.display.charts.theme import FAILURE, INFRA
from ttf.engine.words import capitalise, clustering_words, number, plural

# Windows overlap, so this number of them is enough to draw the line.
MOST_POINTS = 60
# If the highest window exceeds the median by this factor, the axis has a square-root scale.
STEEP = 8
# The axis ends at most at this multiple of the highest rate.
WIDEST = 2.5
# If the trace has more days, the axis labels years.
MOST_DATE_DAYS = 700
# Words for failures, by the basis of the table.
FAILURES = {"proxy": "failures of any cause", "component": "failures"}
RATE = "failures_per_1000_node_days"
_TOOLTIP = (*tooltips("window"), *tooltips(form=",.4~g", rate="per 1,000 node-days"), *tooltips("failures", form=","))


def failure_rate_over_time(inputs: Mapping[str, pl.DataFrame], study: Study) -> Figure:
    """Draw the rate of all causes as a line with a band, with its highest and lowest window labelled."""
    over_time = inputs["failure_rate_over_time"]
    total_windows = over_time.filter((pl.col("by") == ALL) & pl.col("ci_high").is_not_null())
    basis = over_time["basis"][0]
    title = f"{capitalise(FAILURES.get(basis, 'infrastructure failures'))} per 1,000 node-days"
    if not total_windows.height:
        return empty_figure(title, over_time["reason"][0] or "no node was at work")
    windows = _remove_unclustered_bands(add_bounds(total_windows))
    rows = _make_line_rows(_thin_windows(windows, MOST_POINTS)).to_dicts()
    extremes = _extreme_point_rows(rows)
    length = plural(total_windows["window_days"][0], "day")
    independent = windows["independent"].all()
    cluster_names = windows["cluster_by"].drop_nulls().unique()
    interval_note = "if independent" if independent else f"clustered by {clustering_words(cluster_names)}"
    extreme_words = ", ".join(f"{row['label']} ({row['window']})" for row in extremes)
    return make_figure(
        fit_width(_draw_rate_layers(rows, FAILURE if basis == "proxy" else INFRA), study, 210),
        {"rate": rows, "ends": extremes},
        study,
        title=title,
        subtitle=f"Rolling windows of {length} by last day, 90% CI {interval_note}",
        caption=f"n = {plural(total_windows.height, 'window')}",
        alt_text=f"{title}: a line over time with a band; lowest and highest: {extreme_words}.",
    )


def _remove_unclustered_bands(windows: pl.DataFrame) -> pl.DataFrame:
    """Remove the band of windows with too few clusters if other windows have enough for a clustered interval."""
    if windows["independent"].all():
        return windows
    bounds = (pl.when("independent").then(RATE).otherwise(bound).alias(bound) for bound in ("low", "high"))
    return windows.with_columns(bounds)


def _thin_windows(windows: pl.DataFrame, limit: int) -> pl.DataFrame:
    step = max(1, math.ceil(windows.height / limit))
    ranked = windows.sort(RATE, "to_day")
    selected = windows.reverse().gather_every(step)
    return pl.concat([selected, ranked.head(1), ranked.tail(1)]).unique("to_day").sort("to_day")


def _make_line_rows(windows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the line, by the last day as a date, or as a number of days if the trace has no dates."""
    has_dates = "day" not in (windows["window"][0] or "").split(" ")[0]
    # Midnight after the last day would be labelled as the following day.
    day_column = {"date": pl.col("window").str.tail(10)} if has_dates else {"day": pl.col("to_day") + 1}
    return windows.select("window", "failures", "to_day", **day_column, rate=RATE, low="low", high="high")


def _extreme_point_rows(rows: list[dict]) -> list[dict]:
    ranked = sorted(rows, key=lambda row: (row["rate"], row["to_day"]))
    extremes = [("lowest", ranked[0]), ("highest", ranked[-1])][-min(2, len(rows)) :]
    return [
        row | {"highest": name == "highest", "label": number(row["rate"]), "key": f"sizes.over_time.{name}.{RATE}"}
        for name, row in extremes
    ]


def _choose_rate_scale(rows: list[dict]) -> alt.Scale:
    """Use a square-root scale if a few windows far above the others would flatten them; a log scale cannot show 0."""
    rates = sorted(row["rate"] for row in rows)
    # The interval of few clusters can be many times as high as the line.
    top = min(max(row["high"] for row in rows), WIDEST * rates[-1]) or 1
    is_steep = rates[-1] > STEEP * rates[len(rates) // 2]
    return alt.Scale(type="sqrt" if is_steep else "linear", domain=[0, top], nice=True)


def _time_channel(rows: list[dict]) -> alt.X:
    if "date" not in rows[0]:
        axis = alt.Axis(tickMinStep=1, grid=False, tickCount=4)
        return alt.X("day:Q", title="Day of the trace", axis=axis)
    form = "%Y" if rows[-1]["to_day"] - rows[0]["to_day"] > MOST_DATE_DAYS else "%-d %b"
    axis = alt.Axis(format=form, tickCount=4, labelSeparation=8, grid=False)
    return alt.X("date:T", title=None, scale=alt.Scale(type="utc"), axis=axis)


def _draw_rate_layers(rows: list[dict], colour: str) -> alt.TopLevelMixin:
    scale = _choose_rate_scale(rows)
    x, y = (
        _time_channel(rows),
        alt.Y("rate:Q", title="square root scale" if scale.type == "sqrt" else None, scale=scale),
    )
    base = make_chart("rate").encode(x=x)
    # A band of one window has no width.
    band = base.mark_rule(color=colour) if len(rows) == 1 else base.mark_area(opacity=0.18, color=colour, clip=True)
    line = base.mark_line(strokeWidth=2, color=colour).encode(y=y, tooltip=list(_TOOLTIP))
    extremes = make_chart("ends").encode(x=x, y=y)
    points = extremes.mark_point(filled=True, size=60, opacity=1, color=colour)
    band = band.encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
    return alt.layer(band, line, points, *_draw_extreme_labels(rows, extremes))


def _draw_extreme_labels(rows: list[dict], extremes: alt.Chart) -> list[alt.Chart]:
    first, last, top = rows[0]["to_day"], rows[-1]["to_day"], max(row["rate"] for row in rows)
    texts = []
    for row in _extreme_point_rows(rows):
        position = (row["to_day"] - first) / max(last - first, 1)
        align: Align = "left" if position < 0.05 else "right" if position > 0.95 else "center"
        is_below = not row["highest"] and row["rate"] > 0.3 * top
        extreme = extremes.transform_filter(f"datum.highest === {str(row['highest']).lower()}")
        texts.append(bold_labels(extreme, align, dy=14 if is_below else -12))
    return texts


CHARTS = {"failure_rate_over_time": failure_rate_over_time}
