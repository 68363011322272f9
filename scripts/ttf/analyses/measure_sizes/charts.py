"""Mean time to failure against job size, measured and projected; the failure rate of a node over time and by cause."""

import math
from collections.abc import Mapping

import altair as alt
import polars as pl

from ttf.analyses.measure_sizes.over_time import CONFIDENCE, EVERY
from ttf.analyses.measure_sizes.sizes import NO_GPU_JOB
from ttf.charts.axes import TIME_TICKS_S, log_domain, log_scale, time_axis
from ttf.charts.encodings import coloured, picked, tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.intervals import DASHED, by_what, shown
from ttf.charts.text import capital, count, duration, labels, significant
from ttf.charts.theme import ACCENT, CATEGORY_COLOURS, FAINT
from ttf.stats.plans import interval_of_rate
from ttf.stats.projection import FEWEST_MEASURED

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


_TOOLTIP = (*tips(form=",.4~g", rate="failures per 1000 node-days"), *tips("failures", form=","))
PROJECTED = "#D55E00"
# A large machine may fail more often than once a second.
TICKS_S = (0.001, 0.01, 0.1, *TIME_TICKS_S)
# A size that the title names, where the projection goes as far.
NAMED_GPUS = 1024


def failure_rate_over_time(given: Mapping[str, pl.DataFrame], study: Study) -> Figure:
    """The rate as a line with a band; below it a line for each cause or domain."""
    over_time = given["failure_rate_over_time"]
    every = over_time.filter((pl.col("by") == EVERY) & pl.col("ci_high").is_not_null())
    if not every.height:
        return nothing_to_draw("Failure rate over time", over_time["reason"][0] or "no node was at work")
    calendar = "day" not in (every["window"][0] or "").split(" ")[0]
    every = _banded(shown(every))
    rows = _rows(_thinned(every, MOST_POINTS), calendar).to_dicts()
    middle = every["failures_per_1000_node_days"].median()
    # A few windows far above the others would press these flat on a plain axis; a logarithmic one has no place for 0.
    scale = alt.Scale(type="sqrt" if max(row["rate"] for row in rows) > STEEP * middle else "linear", zero=True)
    panels, datasets = [_rate(rows, calendar, scale)], {"rate": rows}
    causes = over_time.filter((pl.col("by") != EVERY) & pl.col("ci_high").is_not_null())
    if causes.height:
        names = labels(causes["cause"].unique(maintain_order=True))
        causes = shown(causes)
        parts = [_thinned(part, MOST_POINTS_BY_CAUSE) for part in causes.partition_by("cause", maintain_order=True)]
        # Pages stay small: the day says which window it is.
        lines = _rows(pl.concat(parts), calendar).drop("window", "low", "high")
        datasets["causes"] = lines.with_columns(pl.col("cause").replace(names)).to_dicts()
        panels.append(_by_cause(datasets["causes"], list(names.values()), causes["by"][0], calendar, scale))
    basis, length = every["basis"][0], count(every["window_days"][0], "day")
    title = _course(every, basis)
    failed = BASES.get(basis, "failures")
    caption = (
        f"Failures ({failed}) over node-days at work in rolling windows of {length}, every run's time split over its "
        f"days; {100 * CONFIDENCE:.0f} % intervals. {_clustered(every)} Windows that "
        "overlap share failures."
    )
    if study.unit == "node" or basis == "component":
        caption += f" Every {study.unit} in service is at work."
    else:
        caption += f" {capital(study.units)} of every size that asked for a GPU."
    if causes.height:
        caption += f" Below: by {causes['by'][0]}; their rates add up to that above."
    return figure(
        alt.vconcat(*panels, spacing=16) if len(panels) > 1 else panels[0],
        datasets,
        study,
        title=title,
        subtitle=f"Line: failures per 1000 node-days in the {length} up to each day; band: 90 % interval. "
        f"Counted: {failed}.",
        caption=caption,
        alt_text=f"A line over time with a band. {title}.",
    )


def _clustered(every: pl.DataFrame) -> str:
    told = every.filter(~pl.col("independent"))
    if told.height in (0, every.height):
        return by_what(every)
    return f"{by_what(told)} No band: too few clusters, or too much alike."


def _banded(windows: pl.DataFrame) -> pl.DataFrame:
    """Windows of `shown`, without a band where only others have enough clusters for an interval."""
    if windows["independent"].all():
        return windows
    rate = pl.col("failures_per_1000_node_days")
    return windows.with_columns(pl.when("independent").then(rate).otherwise(end).alias(end) for end in ("low", "high"))


def _thinned(windows: pl.DataFrame, most: int) -> pl.DataFrame:
    """At most about `most` of the windows, evenly; the last among them, the lowest and the highest."""
    step = max(1, math.ceil(windows.height / most))
    ranked = windows.sort("failures_per_1000_node_days", "to_day")
    even = windows.reverse().gather_every(step)
    return pl.concat([even, ranked.head(1), ranked.tail(1)]).unique("to_day").sort("to_day")


def _rows(windows: pl.DataFrame, calendar: bool) -> pl.DataFrame:
    # Midnight after the last day would be read as the day that follows.
    at = {"date": pl.col("window").str.tail(10)} if calendar else {"day": pl.col("to_day") + 1}
    cause = ["cause"] if windows["cause"].count() else []
    return windows.select(
        *cause, "window", "failures", **at, rate="failures_per_1000_node_days", low="low", high="high"
    )


def _x(calendar: bool) -> alt.X:
    if calendar:
        # As the title has them: Vega names days of the week, or months.
        axis = alt.Axis(format="%Y-%m-%d", tickCount=6, labelSeparation=8)
        return alt.X("date:T", title="Last day of the window (UTC)", scale=alt.Scale(type="utc"), axis=axis)
    title = "Last day of the window, from the trace's first start"
    return alt.X("day:Q", title=title, axis=alt.Axis(tickMinStep=1))


def _titled(title: str, scale: alt.Scale) -> str:
    return f"{title} (square root)" if scale.type == "sqrt" else title


def _rate(rows: list[dict], calendar: bool, scale: alt.Scale) -> alt.LayerChart:
    base = chart_of("rate").encode(x=_x(calendar))
    y = alt.Y("rate:Q", title=_titled("Failures per 1000 node-days", scale), scale=scale)
    limits = tips(form=",.4~g", low="90 % from", high="to")
    # A band of one window has no width.
    band = base.mark_rule(color=ACCENT) if len(rows) == 1 else base.mark_area(opacity=0.18, color=ACCENT)
    line = base.mark_line(strokeWidth=2, color=ACCENT, point={"size": 12, "color": ACCENT})
    line = line.encode(y=y, tooltip=[*tips("window"), *_TOOLTIP, *limits])
    return alt.layer(band.encode(y=alt.Y("low:Q"), y2="high:Q"), line).properties(width=_WIDTH, height=240)


def _by_cause(rows: list[dict], names: list[str], by: str, calendar: bool, scale: alt.Scale) -> alt.Chart:
    colours = dict(zip(names, [*CATEGORY_COLOURS, FAINT], strict=False))
    return (
        chart_of("causes")
        .mark_line(strokeWidth=1.8, point={"size": 12} if len(rows) <= 2 * len(names) else False)
        .encode(
            x=_x(calendar),
            y=alt.Y("rate:Q", title=_titled(f"By {by}", scale), scale=scale),
            color=coloured("cause", colours, title=None, orient="bottom", columns=4, labelLimit=160),
            tooltip=[*tips(cause=by), *_TOOLTIP],
        )
        .properties(width=_WIDTH, height=170)
    )


def _course(every: pl.DataFrame, basis: str) -> str:
    what = {"proxy": "Failures of any kind (a proxy)", "component": "Failures"}.get(basis, "Infrastructure failures")
    if not every["failures"].sum():
        return f"{what} per 1000 node-days: none in any window"
    if every.height == 1:
        rate, window = every["failures_per_1000_node_days"][0], every["window"][0]
        return f"{what} per 1000 node-days: {significant(rate)} in the one window of the trace, {window}"
    ranked = every.sort("failures_per_1000_node_days", "to_day")
    low, high = ranked.row(0, named=True), ranked.row(-1, named=True)
    rates = [significant(row["failures_per_1000_node_days"]) for row in (low, high)]
    verdict = "" if low["high"] < high["low"] else ", no further apart than chance may bring them"
    if every["cluster_by"].count() and (low["independent"] or high["independent"]):
        verdict = "; whether that is more than chance cannot be told"
    return f"{what} per 1000 node-days: from {rates[0]} ({low['window']}) to {rates[1]} ({high['window']}){verdict}"


def mttf_by_gpus(given: Mapping[str, pl.DataFrame], study: Study) -> Figure:
    """Measured points with 90 % intervals and the projection with its band; r_f from `node_failure_rate`."""
    by_gpus, rate = given["mttf_by_gpus"], given["node_failure_rate"]
    what = "Mean time to failure by number of GPUs"
    measured = by_gpus.filter(pl.col("ci_low_s") > 0)
    if not measured.height:
        return nothing_to_draw(what, by_gpus["reason"].first() if by_gpus.height == 1 else NO_GPU_JOB)
    if measured.height == 1 and not by_gpus["projected_mttf_s"].count():
        return nothing_to_draw(what, "runs of one size, and no projection to others")
    basis = by_gpus["basis"][0]
    points = [_point(row) for row in shown(measured, "_s").iter_rows(named=True)]
    largest_run = max(row["gpus"] for row in points)
    line = [_projected(row, largest_run) for row in by_gpus.iter_rows(named=True) if row["projected_mttf_s"]]
    of_rate = rate.row(0, named=True)
    title = _title(by_gpus, basis)
    is_jobs = of_rate["above_gpus"] is not None
    lives = count(measured["jobs"].sum(), "run" if is_jobs else "life")
    caption = (
        f"Time at risk per failure ({BASES[basis]}), 90 % intervals; n = {lives}, "
        f"{count(measured['failures'].sum(), 'failure')}. {by_what(shown(measured, '_s'))} "
        + (f"GPUs rounded up to whole nodes of {of_rate['node_gpus']}. " if is_jobs else "")
    )
    if line:
        rate_of_node = significant(of_rate["failures_per_1000_node_days"])
        low, high = (significant(1000 * end) for end in interval_of_rate(of_rate))
        caption += (
            f"Projection: 1 / (nodes × r_f) with r_f = {rate_of_node} failures per 1000 node-days (90 % interval {low} "
            f"to {high}), from {_from(of_rate, study)}; no further, as {of_rate['no_projection']}."
        )
    else:
        known = of_rate["failures_per_1000_node_days"] is not None
        caption += f"No projection: {of_rate['no_projection' if known else 'reason']}."
    if any("mttf" not in row for row in points):
        caption += " Triangle: no failure of this size, so there is a one-sided lower bound (90 %) only."
    subtitle = "Points: measured, with 90 % intervals"
    subtitle += "; line and band: projected from the failure rate of a node." if line else "; no projection."
    subtitle += f" Counted: {BASES[basis]}."
    return figure(
        _drawing(points, line, of_rate["node_gpus"]),
        {"measured": points, "projected": line},
        study,
        title=title,
        subtitle=subtitle,
        caption=caption,
        alt_text=f"Points and a falling line on logarithmic axes, time against GPUs, "
        f"{count(len(points), 'measured size')}. {title}.",
    )


def _from(rate: dict, study: Study) -> str:
    above = rate["above_gpus"]
    of_size = f"{study.units} of more than {above:,} GPUs" if above else f"{study.units} of all sizes"
    return f"{f'all {study.units}' if above is None else of_size} ({count(rate['failures'], 'failure')})"


def _point(row: dict) -> dict:
    point = {"sizes": _gpus(row)} | picked(row, "failures", gpus="gpus_mean", runs="jobs")
    if not row["mttf_s"]:
        return point | _in_words(picked(row, low="low"))
    return point | _in_words(picked(row, low="low", mttf="mttf_s", high="high")) | {"independent": row["independent"]}


def _projected(row: dict, largest_run: float) -> dict:
    times = picked(row, low="projected_low_s", mttf="projected_mttf_s", high="projected_high_s")
    return _in_words(times) | {"gpus": row["gpus_high"], "beyond": row["gpus_low"] > largest_run}


def _in_words(times: dict) -> dict:
    """Times as they are and, for the tooltip, in words."""
    shown = {"low": "from", "mttf": "shown", "high": "to"}
    return times | {shown[name]: duration(seconds) for name, seconds in times.items()}


def _drawing(points: list[dict], line: list[dict], gpus_a_node: int) -> alt.LayerChart:
    times = [row[name] for row in (*points, *line) for name in ("low", "mttf", "high") if name in row]
    gpus = [row["gpus"] for row in (*points, *line)]
    y_domain, x_domain = log_domain(times, 1.6, 1.6), log_domain([gpus_a_node, *gpus], 1.3, 1.3)
    ticks = [gpus_a_node * 4**power for power in range(12) if gpus_a_node * 4**power <= x_domain[1]]
    of_gpus = alt.Axis(values=ticks, format=",", title="GPUs (of whole nodes, logarithmic)")
    x = alt.X("gpus:Q", scale=log_scale(x_domain), axis=of_gpus)
    scale = log_scale(y_domain)
    axis = time_axis("Mean time to failure (logarithmic)", [tick for tick in TICKS_S if tick <= y_domain[1]])

    def y(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", scale=scale, axis=axis)

    limits = [alt.Tooltip("from:N", title="90 % from"), *tips(to="90 % to")]
    projected = chart_of("projected").encode(
        x=x, tooltip=[*tips(form=",", gpus="GPUs"), *tips(shown="projected mean time to failure"), *limits]
    )
    measured = chart_of("measured").encode(
        x=x, tooltip=[*tips(sizes="GPUs", shown="mean time to failure"), *limits, *tips("runs", "failures", form=",")]
    )
    seen = measured.transform_filter("isValid(datum.mttf)")
    layers = []
    if line:
        beyond = projected.transform_filter("datum.beyond")
        layers += [
            projected.mark_area(color=PROJECTED, opacity=0.16).encode(y=y("low"), y2="high:Q"),
            projected.mark_line(color=PROJECTED, strokeWidth=1.8).encode(y=y("mttf")),
            beyond.mark_point(color=PROJECTED, filled=False, size=34, strokeWidth=1.4).encode(y=y("mttf")),
        ]
    layers += [
        seen.mark_rule(strokeWidth=2, color=ACCENT).encode(y=y("low"), y2="high:Q", strokeDash=DASHED),
        seen.mark_point(filled=True, size=65, color=ACCENT, opacity=1).encode(y=y("mttf")),
    ]
    if any("mttf" not in row for row in points):
        unseen = measured.transform_filter("!isValid(datum.mttf)")
        triangle = {"shape": "triangle-up", "size": 80, "filled": False, "strokeWidth": 1.5, "color": FAINT}
        layers.append(unseen.mark_point(**triangle).encode(y=y("low")))
    return alt.layer(*layers).properties(width=640, height=360)


def _title(by_gpus: pl.DataFrame, basis: str) -> str:
    what = {"proxy": "any failure (cause unknown)", "component": "a failure"}.get(basis, "an infrastructure failure")
    known = by_gpus.filter(pl.col("projected_mttf_s").is_not_null()).sort("gpus_high")
    if known.height:
        wanted = known.filter(pl.col("gpus_high") >= NAMED_GPUS).head(1)
        shown = (wanted if wanted.height else known.tail(1)).row(0, named=True)
        run = by_gpus.filter(pl.col("jobs") > 0)["gpus_high"].max()
        beyond = f" (projected; the largest runs: {run:,})" if shown["gpus_high"] > run else ""
        time, gpus = duration(shown["projected_mttf_s"]), count(shown["gpus_high"], "GPU")
        return f"The mean time to {what} is {time} at {gpus}{beyond}"
    seen = by_gpus.filter(pl.col("failures") > 0)
    if not seen.height:
        return f"No failure seen: of the mean time to {what} only a lower limit is known"
    enough = seen.filter(pl.col("failures") >= FEWEST_MEASURED)
    seen = enough if enough.height else seen
    ends = [seen.row(0, named=True), seen.row(-1, named=True)][: seen.height]
    times = " and ".join(f"{duration(row['mttf_s'])} at {_gpus(row)}" for row in ends)
    return f"Measured mean time to {what}: {times} GPUs"


def _gpus(row: dict) -> str:
    return f"{row['gpus_low']:,}" + (f" to {row['gpus_high']:,}" if row["gpus_high"] > row["gpus_low"] else "")


CHARTS = {"mttf_by_gpus": mttf_by_gpus, "failure_rate_over_time": failure_rate_over_time}
