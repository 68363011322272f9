"""Effective training time of planned runs: by size, exact, approximated and simulated; and the rate they can bear."""

from collections.abc import Mapping

import altair as alt
import polars as pl

from ttf.analyses.plan_ettr.planner import BASES, planner
from ttf.charts.axes import log_axis, log_domain, log_scale, percent_axis, time_axis
from ttf.charts.encodings import coloured, picked, tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.text import count, duration, percent, significant
from ttf.charts.theme import ACCENT, FAINT, INK, ORDER_COLOURS
from ttf.inputs import Inputs
from ttf.stats.ettr import APPROXIMATION_LIMIT
from ttf.stats.plans import ESTIMATE, habits_of, interval_of_rate, node_rate, rate_row, size_of_the_run

EXACT, INSIDE, BEYOND = "exact mean", "approximation", "approximation beyond its limit"
SIMULATED = "simulated"
COLOURS = {EXACT: ACCENT, INSIDE: "#D55E00", BEYOND: "#D55E00", SIMULATED: "#222222"}
DASHES = {EXACT: [1, 0], INSIDE: [6, 3], BEYOND: [1.5, 3], SIMULATED: [1, 0]}
WIDTH, HEIGHT = 640, 300
_TICKS_S = (60, 300, 900, 3600, 14_400, 57_600)
_PANEL_WIDTH, _PANEL_HEIGHT = 285, 270


def rate_words(rate: Mapping) -> str:
    """The failure rate of a node in words, with its interval, number of failures and basis."""
    low, high = (significant(1000 * end) for end in interval_of_rate(rate))
    by = f" clustered by {rate['cluster_by']}" if rate.get("ci_low_clustered") is not None else " if independent"
    return (
        f"{significant(rate['failures_per_1000_node_days'])} failures per 1000 node-days "
        f"(90 % interval {low} to {high}{by}, "
        f"{count(rate['failures'], 'failure')}; {BASES[rate['basis']]})"
    )


def ettr_by_gpus(given: Inputs, study: Study) -> Figure:
    """The ratio against the size at the first checkpoint interval of ettr.csv, with the band of the failure rate."""
    ettr, run_gpus = given["ettr"], size_of_the_run(given["ettr_assumptions"])
    known = ettr.filter(pl.col("ettr_renewal").is_not_null() & pl.col("rate").is_in(ESTIMATE))
    known = known.filter(pl.col("checkpoint_interval_s") == ettr["checkpoint_interval_s"].first())
    known = known.with_columns(size=pl.coalesce("gpus", "nodes"))
    estimate = known.filter(pl.col("rate") == ESTIMATE[0])
    if estimate.height < 2:
        why = ettr["reason"].drop_nulls().first() or "one size only"
        return nothing_to_draw("Effective training time by size", why)
    rate = rate_row(given["node_failure_rate"])
    unit = "node" if known["gpus"].null_count() else "GPU"
    # The run that is asked about, or the largest that there is a projection for.
    run_gpus = run_gpus if run_gpus in estimate["size"] else estimate["size"].max()
    rows = _lines(estimate)
    points = []
    for row in estimate.filter(pl.col("ettr_simulated").is_not_null()).iter_rows(named=True):
        mean, error = row["ettr_simulated"], row["ettr_simulated_se"]
        ends = {} if error is None else {"low": max(mean - 4 * error, 0), "high": min(mean + 4 * error, 1)}
        points.append({"size": row["size"], "ratio": mean, "series": SIMULATED} | ends)
    bounds = {row["rate"]: row for row in known.filter(size=run_gpus).iter_rows(named=True)}
    mine = bounds[ESTIMATE[0]]
    band = (
        known.filter(pl.col("rate") != ESTIMATE[0])
        .pivot("rate", index="size", values="ettr_renewal", aggregate_function="first")
        # The higher the failure rate, the lower the ratio.
        .select("size", low="high", high="low")
        .drop_nulls()
    )
    title = f"A run of {count(run_gpus, unit)} would make no headway at this failure rate"
    if mine["ettr_renewal"] >= 0.0005:
        title = f"In a run of {count(run_gpus, unit)}, {percent(mine['ettr_renewal'])} of the time is productive"
    plan = (
        f"A checkpoint after {duration(mine['checkpoint_interval_s'])} of work takes "
        f"{duration(mine['checkpoint_write_s'])}; start-up {duration(mine['restart_s'])}; queue "
        f"{duration(mine['queue_s'])}; {duration(mine['productive_s'])} of work."
    )
    subtitle = f"{plan} Band: at the ends of the interval of the failure rate."
    invalid = estimate.filter(~pl.col("approximation_valid"))["size"].to_list()
    caption = f"The failure rate of a node is {rate_words(rate)}. {plan} "
    caption += "Exact: the mean of the renewal model; points: simulated runs, with four standard errors either way. "
    caption += (
        f"From {count(invalid[0], unit)} on, failures take more than {APPROXIMATION_LIMIT:.0%} of the scheduled time, "
        "and the approximation fails."
        if invalid
        else "The approximation holds at every size shown."
    ).replace("30%", "30 %")
    return figure(
        _by_size(rows, points, band.to_dicts(), unit),
        {"lines": rows, "points": points, "band": band.to_dicts()},
        study,
        title=title,
        subtitle=subtitle,
        caption=caption,
        alt_text=f"Lines of the effective training time ratio falling with the number of {unit}s on a logarithmic "
        f"axis. {title}.",
    )


def _lines(estimate: pl.DataFrame) -> list[dict]:
    rows = [picked(row, "size", ratio="ettr_renewal") | {"series": EXACT} for row in estimate.iter_rows(named=True)]
    last = None
    for row in estimate.filter(pl.col("ettr_combined").is_not_null()).iter_rows(named=True):
        one = picked(row, "size", ratio="ettr_combined")
        if not row["approximation_valid"] and last is not None and last["series"] == INSIDE:
            # So that the dotted part begins where the dashed one ends.
            rows.append(last | {"series": BEYOND})
        last = one | {"series": INSIDE if row["approximation_valid"] else BEYOND}
        rows.append(last)
    return rows


def _by_size(rows: list[dict], points: list[dict], band: list[dict], unit: str) -> alt.LayerChart:
    sizes = sorted({row["size"] for row in rows})
    ticks = [size for size in sizes if size == 1 or size & (size - 1) == 0] or sizes
    axis = alt.Axis(values=ticks, format=",", title=f"{unit}s of the run (logarithmic)", labelOverlap=True)
    scale = alt.Scale(type="log", base=2, domain=log_domain(sizes, 1.15, 1.15), nice=False)
    x = alt.X("size:Q", scale=scale, axis=axis)
    y = alt.Y("ratio:Q", scale=alt.Scale(domain=[0, 1]), axis=percent_axis("Effective training time"))
    legend = alt.Legend(title=None, orient="bottom", columns=4, symbolType="stroke")
    colour = alt.Color("series:N", scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())), legend=legend)
    dash = alt.StrokeDash(
        "series:N", scale=alt.Scale(domain=list(COLOURS), range=[DASHES[name] for name in COLOURS]), legend=legend
    )
    tooltip = [
        *tips(series="which"),
        *tips(form=",", size=f"{unit}s"),
        *tips(form=".1%", ratio="effective training time"),
    ]
    lines = chart_of("lines").mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, strokeDash=dash, tooltip=tooltip)
    layers = [lines]
    if band:
        shade = chart_of("band").mark_area(color=ACCENT, opacity=0.15)
        layers.insert(0, shade.encode(x=x, y=alt.Y("low:Q"), y2="high:Q"))
    if points:
        base = chart_of("points").encode(x=x, color=colour, tooltip=tooltip)
        errors = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1).encode(y="low:Q", y2="high:Q")
        layers += [errors, base.mark_point(filled=True, size=35, opacity=1).encode(y=y)]
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)


def contour_chart(given: Inputs, study: Study) -> Figure:
    """ettr_contour.csv as a line for each ratio, a panel for each size.

    Dashed: the rate of the trace, where it may be projected to that size.
    """
    contour, habit = given["ettr_contour"], habits_of(given["ettr_assumptions"])
    rate = node_rate(given["node_failure_rate"], given["mttf_by_gpus"])
    known = contour.filter(pl.col("failures_per_1000_node_days").is_not_null())
    if not known.height:
        return nothing_to_draw("Failure rate that a run can bear", contour["reason"][0])
    unit = "GPUs" if known["gpus"].count() else "nodes"
    known = known.with_columns(size=pl.coalesce("gpus", "nodes"))
    levels = known["ettr"].unique().sort().to_list()
    names = [percent(level) for level in levels]
    rows = [
        {"level": names[levels.index(row["ettr"])], "every": duration(row["checkpoint_interval_s"])}
        | picked(row, "size", interval="checkpoint_interval_s", rate="failures_per_1000_node_days")
        for row in known.iter_rows(named=True)
    ]
    reached = {row["size"] for row in known.iter_rows(named=True) if rate.estimate and not rate.why_not(row["nodes"])}
    own = 1000 * rate.estimate if reached else None
    every_rate = [row["rate"] for row in rows] + ([own] if own else [])
    y_domain, x_domain = log_domain(every_rate, 1.5, 1.5), [50, 75_000]
    times = time_axis("Work between checkpoints (logarithmic)", _TICKS_S)
    x = alt.X("interval:Q", scale=log_scale(x_domain), axis=times)
    y_scale = log_scale(y_domain)
    colours = dict(zip(names, ORDER_COLOURS, strict=False))
    colour = coloured("level", colours, ordered=True, title="Effective training time", orient="bottom")
    panels = []
    for place, size in enumerate(known["size"].unique().sort()):
        title = "Failures per 1000 node-days (logarithmic)" if place == 0 else None
        y = alt.Y("rate:Q", scale=y_scale, axis=log_axis(y_domain, title))
        lines = (
            chart_of("contours")
            .transform_filter(f"datum.size == {int(size)}")
            .mark_line(strokeWidth=2)
            .encode(
                x=x,
                y=y,
                color=colour,
                tooltip=[
                    *tips(level="effective training time", every="a checkpoint every"),
                    *tips(form=",.3~g", rate="failures per 1000 node-days, at most"),
                ],
            )
        )
        layers = [lines]
        if size in reached:
            base = chart_of("own").encode(y=alt.Y("rate:Q", scale=y_scale))
            layers.append(base.mark_rule(color=FAINT, strokeDash=[5, 4]))
            layers.append(base.mark_point(filled=True, color=INK, size=60, opacity=1).encode(x=x))
        panels.append(alt.layer(*layers).properties(width=_PANEL_WIDTH, height=_PANEL_HEIGHT, title=f"{size:,} {unit}"))
    title = _contour_title(known, unit)
    habits = (
        f"A write of {duration(habit.write_s)}, a start-up of {duration(habit.restart_s)}, a wait of "
        f"{duration(habit.queue_s)} at each start, {duration(habit.productive_s)} of work."
    )
    dashed = (
        f"Dashed: the failure rate of a node in this trace ({significant(own)} per 1000 node-days); dot: at the "
        "configured interval."
        if own
        else "This trace gives no rate for runs as large."
    )
    datasets = {"contours": rows} | ({"own": [{"rate": own, "interval": float(habit.interval_s)}]} if own else {})
    return figure(
        alt.hconcat(*panels, spacing=24),
        datasets,
        study,
        title=title,
        subtitle=f"Lines: the highest failure rate that leaves so much of the time for work. {dashed}",
        caption=f"Model alone, by its exact mean. {habits} {dashed} A line ends where writing takes too much time.",
        alt_text=f"Contour lines over two logarithmic axes in {len(panels)} panels. {title}.",
    )


def _contour_title(known: pl.DataFrame, unit: str) -> str:
    """What the largest size may fail at for the middle of the ratios, at the interval that bears most."""
    largest = known.filter(pl.col("size") == pl.col("size").max())
    wanted = 0.9 if (largest["ettr"] == 0.9).any() else largest["ettr"].max()
    best = largest.filter(ettr=wanted).sort("failures_per_1000_node_days", "checkpoint_interval_s").row(-1, named=True)
    return (
        f"{percent(wanted)} effective time on {best['size']:,} {unit} needs a node to fail at most "
        f"{significant(best['failures_per_1000_node_days'])} times in 1000 days"
    )


CHARTS = {"ettr_by_gpus": ettr_by_gpus, "ettr_contour": contour_chart, "ettr_planner": planner}
