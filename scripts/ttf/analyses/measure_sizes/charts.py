"""Mean time to failure against job size: what was measured, and what the failure rate of a node projects."""

from collections.abc import Mapping

import altair as alt
import polars as pl

from ttf.analyses.measure_sizes.over_time_chart import BASES, failure_rate_over_time
from ttf.analyses.measure_sizes.sizes import NO_GPU_JOB
from ttf.charts.axes import TIME_TICKS_S, log_domain, log_scale, time_axis
from ttf.charts.encodings import picked, tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.text import count, duration, significant
from ttf.charts.theme import ACCENT, FAINT
from ttf.stats.projection import FEWEST_MEASURED

PROJECTED = "#D55E00"
# A large machine may fail more often than once a second.
TICKS_S = (0.001, 0.01, 0.1, *TIME_TICKS_S)
# A size that the title names, where the projection goes as far.
NAMED_GPUS = 1024


def mttf_by_gpus(given: Mapping[str, pl.DataFrame], study: Study) -> Figure:
    """Measured points with 90 % intervals and the projection with its band; r_f from `node_failure_rate`."""
    by_gpus, rate = given["mttf_by_gpus"], given["node_failure_rate"]
    what = "Mean time to failure by number of GPUs"
    measured = by_gpus.filter(pl.col("ci_low_s").is_not_null() & (pl.col("ci_low_s") > 0))
    if not measured.height:
        return nothing_to_draw(what, by_gpus["reason"].first() if by_gpus.height == 1 else NO_GPU_JOB)
    if measured.height == 1 and not by_gpus["projected_mttf_s"].count():
        return nothing_to_draw(what, "runs of one size, and no projection to others")
    basis = by_gpus["basis"][0]
    points = [_point(row) for row in measured.iter_rows(named=True)]
    largest_run = max(row["gpus"] for row in points)
    line = [_projected(row, largest_run) for row in by_gpus.iter_rows(named=True) if row["projected_mttf_s"]]
    of_rate = rate.row(0, named=True)
    title = _title(by_gpus, basis)
    n, failures = measured["jobs"].sum(), measured["failures"].sum()
    is_jobs = of_rate["above_gpus"] is not None
    lives = count(n, "run" if is_jobs else "life")
    caption = (
        f"Time at risk per failure ({BASES[basis]}), exact Poisson (Garwood) 90 % intervals; n = {lives}, "
        f"{count(failures, 'failure')}. "
        + (f"GPUs rounded up to whole nodes of {of_rate['node_gpus']}. " if is_jobs else "")
    )
    if line:
        rate_of_node, low, high = (
            significant(of_rate[name]) for name in ("failures_per_1000_node_days", "ci_low", "ci_high")
        )
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
    failures = count(rate["failures"], "failure")
    if rate["above_gpus"] is None:
        return f"all {study.units} ({failures})"
    of_size = (
        f"{study.units} of more than {rate['above_gpus']:,} GPUs"
        if rate["above_gpus"]
        else f"{study.units} of all sizes"
    )
    return f"{of_size} ({failures})"


def _point(row: dict) -> dict:
    point = {"gpus": row["gpus_mean"], "sizes": _gpus(row), "runs": row["jobs"], "failures": row["failures"]}
    point |= {"low": row["ci_low_s"], "from": duration(row["ci_low_s"])}
    if row["mttf_s"] is None:
        return point
    return point | {
        "mttf": row["mttf_s"],
        "high": row["ci_high_s"],
        "shown": duration(row["mttf_s"]),
        "to": duration(row["ci_high_s"]),
    }


def _projected(row: dict, largest_run: float) -> dict:
    times = picked(row, gpus="gpus_high", low="projected_low_s", mttf="projected_mttf_s", high="projected_high_s")
    shown = {name: duration(times[of]) for name, of in (("from", "low"), ("shown", "mttf"), ("to", "high"))}
    return times | shown | {"beyond": row["gpus_low"] > largest_run}


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
        x=x,
        tooltip=[*tips(form=",", gpus="GPUs"), *tips(shown="projected mean time to failure"), *limits],
    )
    measured = chart_of("measured").encode(
        x=x,
        tooltip=[*tips(sizes="GPUs", shown="mean time to failure"), *limits, *tips("runs", "failures", form=",")],
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
        seen.mark_rule(strokeWidth=2, color=ACCENT).encode(y=y("low"), y2="high:Q"),
        seen.mark_point(filled=True, size=65, color=ACCENT, opacity=1).encode(y=y("mttf")),
    ]
    if any("mttf" not in row for row in points):
        unseen = measured.transform_filter("!isValid(datum.mttf)")
        layers.append(
            unseen.mark_point(shape="triangle-up", size=80, filled=False, strokeWidth=1.5, color=FAINT).encode(
                y=y("low")
            )
        )
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
