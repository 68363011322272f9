"""Mean time to failure by job size, measured, and projected up to the projection limit."""

import math
from collections.abc import Mapping

import altair as alt
import polars as pl

from ttf.display.charts.axes import TIME_TICKS_S, log_domain, log_scale, time_axis
from ttf.display.charts.encodings import bold_labels, pick_columns, tooltips
from ttf.display.charts.figure import Figure, Study, empty_figure, fit_width, make_chart, make_figure
from ttf.display.charts.intervals import add_bounds, draw_bounds, draw_intervals
from ttf.display.charts.theme import AXIS, FAILURE, FAINT, INFRA, INK, SUNKEN
from ttf.engine.words import clustering_words, duration, gpus_label, plural
from ttf.stats.large_runs.projection import FEWEST_MEASURED

# Name of the failure, by the basis of the table.
FAILURE_LABELS = {"proxy": "failure of any cause", "component": "failure"}
# A large machine may fail more often than once a second.
TICKS_S = (0.001, 0.01, 0.1, *TIME_TICKS_S[:7], 604_800, 2_592_000, 15_552_000, 86_400_000, 864_000_000)
# Label of sizes larger than any run: the longest that fits.
SHADES = ("no job this large: projection only", "projection only", "projection", "")
# Size whose projection is labelled, or else the largest projected one.
NAMED_GPUS = 1024


def mttf_by_gpus(inputs: Mapping[str, pl.DataFrame], study: Study) -> Figure:
    """Draw measured points with 90% intervals and the projection with its band; shade sizes beyond any run."""
    sizes, rate = inputs["mttf_by_gpus"], inputs["node_failure_rate"].row(0, named=True)
    basis = sizes["basis"][0]
    failure = FAILURE_LABELS.get(basis, "infrastructure failure")
    title = f"Mean time to {failure} by GPUs of the {'job' if basis == 'component' else study.unit}"
    measured = sizes.filter(pl.col("ci_low_s") > 0)
    if not measured.height:
        return empty_figure(title, sizes["reason"][0] if sizes.height == 1 else rate["reason"])
    projected = sizes.filter(pl.col("projected_mttf_s").is_not_null()).sort("gpus_high")
    if measured.height == 1 and projected.height < 2:
        return empty_figure(title, "runs of one size, and no projection to others")
    intervals = add_bounds(measured, "_s")
    points = [_format_point(row) for row in intervals.iter_rows(named=True)]
    columns = {"gpus": "gpus_high", "low": "projected_low_s", "mttf": "projected_mttf_s", "high": "projected_high_s"}
    line = projected.select(**columns).to_dicts()
    labels = _list_labels(points, line)
    largest_measured = max(row["gpus"] for row in points)
    shade = [{"from": 2**0.5 * largest_measured}] if line and line[-1]["gpus"] > 1.5 * largest_measured else []
    line_note = "; dashed: 1/N projection" if line else "; no projection"
    n_text = plural(measured["jobs"].sum(), study.subject if basis == "component" else "attempt")
    label_texts = ", ".join(f"{row['label']} at {row['gpus']:,.0f} GPUs" for row in labels)
    cluster_names = intervals.filter(~pl.col("independent"))["cluster_by"].unique().sort().to_list()
    interval_note = f" clustered by {clustering_words(cluster_names)}" if cluster_names else " if independent"
    return make_figure(
        fit_width(_draw_layers(points, line, shade, rate["node_gpus"], basis, study), study, 270),
        {"measured": points, "projected": line, "named": labels, "beyond": shade},
        study,
        title=title,
        subtitle=f"Measured, 90% CI{interval_note}{line_note}",
        caption=f"n = {n_text}, {plural(measured['failures'].sum(), 'failure')}",
        alt_text=f"{title}: {plural(len(points), 'measured point')} with intervals on logarithmic axes"
        + (f", and a falling line; {label_texts}." if labels else "."),
    )


def _format_point(row: dict) -> dict:
    """Return the chart row of a bucket of sizes; without a failure it has only a lower bound."""
    point = {"sizes": gpus_label(row["gpus_low"], row["gpus_high"])}
    point |= pick_columns(row, "failures", gpus="gpus_mean", high_gpus="gpus_high", runs="jobs", low="low")
    if not row["mttf_s"]:
        return point
    return point | pick_columns(row, "independent", mttf="mttf_s", high="high")


def _list_labels(points: list[dict], line: list[dict]) -> list[dict]:
    """Return the label of the projection at NAMED_GPUS, or the largest size below, and of the measured value there."""
    labels, size = [], None
    if line:
        base = ([row for row in line if row["gpus"] <= NAMED_GPUS] or line[:1])[-1]
        size = base["gpus"]
        label = {"label": f"{duration(base['mttf'])} projected", "side": -1, "key": f"sizes.projected.{size}.mttf_s"}
        labels = [pick_columns(base, "gpus", "mttf") | label]
    measured = [row for row in points if "mttf" in row]
    labelled = [row for row in measured if row["high_gpus"] == size]
    labelled = labelled or [row for row in measured if row["failures"] >= FEWEST_MEASURED and not line][-1:]
    suffix = " measured" if line else ""
    return labels + [
        pick_columns(row, "gpus", "mttf")
        | {"label": duration(row["mttf"]) + suffix, "side": 1 if line else -1}
        | {"key": f"sizes.measured.{row['high_gpus']}.mttf_s"}
        for row in labelled
    ]


def _draw_layers(
    points: list[dict], line: list[dict], shade_rows: list[dict], gpus_per_node: int, basis: str, study: Study
) -> alt.TopLevelMixin:
    times = [row[name] for row in (*points, *line) for name in ("low", "mttf", "high") if name in row]
    gpus = [row["gpus"] for row in (*points, *line)]
    y_domain, x_domain = log_domain(times, 1.6, 1.6), log_domain([gpus_per_node, *gpus], 1.3, 1.3)
    step = 4 if study.narrow or x_domain[1] / x_domain[0] > 10_000 else 2
    ticks = [gpus_per_node * step**power for power in range(24) if gpus_per_node * step**power <= x_domain[1]]
    title = f"GPUs{', in whole nodes' if study.size.is_gpu else ''} (logarithmic)"
    x = alt.X("gpus:Q", scale=log_scale(x_domain), axis=alt.Axis(values=ticks, format=",", title=title, grid=False))
    ticks = [tick for tick in TICKS_S if y_domain[0] <= tick <= y_domain[1]]
    y = alt.Y("mttf:Q", scale=log_scale(y_domain), axis=time_axis(None, ticks))
    colour = FAILURE if basis == "proxy" else INFRA
    measured = make_chart("measured").encode(x=x)
    mttf_base = measured.transform_filter("isValid(datum.mttf)")
    low = alt.Y("low:Q", scale=log_scale(y_domain))
    projected = make_chart("projected").encode(x=x)
    labels = make_chart("named").encode(x=x, y=y)
    layers: list[alt.Chart] = []
    if shade_rows:
        shade_base = make_chart("beyond").encode(x=alt.X("from:Q", scale=log_scale(x_domain)))
        share = math.log(x_domain[1] / shade_rows[0]["from"]) / math.log(x_domain[1] / x_domain[0])
        shade = next(text for text in SHADES if 7 * len(text) < share * (study.width - 60) or text == SHADES[-1])
        corner = {"x": alt.value("width"), "y": alt.value(12)}
        layers = [
            shade_base.mark_rect(color=SUNKEN).encode(x2=alt.X2Value("width"), y=alt.value(0), y2=alt.value("height")),
            shade_base.mark_text(text=shade, align="right", dx=-6, fontSize=12, color=FAINT).encode(**corner),
        ]
    layers += [
        projected.mark_area(color=AXIS, opacity=0.3).encode(y=low, y2="high:Q"),
        projected.mark_line(color=INK, strokeDash=[5, 4], strokeWidth=1.5).encode(y=y),
        draw_intervals(mttf_base, low, strokeWidth=2, color=colour),
        mttf_base.mark_point(filled=True, size=65, color=colour, opacity=1).encode(
            y=y, tooltip=[*tooltips(sizes="GPUs"), *tooltips("runs", "failures", form=",")]
        ),
    ]
    if any("mttf" not in row for row in points):
        layers.append(draw_bounds(measured.transform_filter("!isValid(datum.mttf)"), "up", low))
    if not study.narrow:
        counts = mttf_base.mark_text(align="left", dx=7, dy=-9, fontSize=12, color=FAINT)
        layers.append(counts.encode(y=y, text=alt.Text("failures:Q", format=",")))
    layers += [
        bold_labels(labels.transform_filter("datum.side < 0"), "right", 14, -8),
        bold_labels(labels.transform_filter("datum.side > 0"), "left", 6, 8),
    ]
    return alt.layer(*layers)


CHARTS = {"mttf_by_gpus": mttf_by_gpus}
