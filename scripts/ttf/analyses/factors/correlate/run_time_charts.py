"""Charts of mean run time by requests and measured use: a panel per feature, a point per distinct value."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import altair as alt
import polars as pl

from ttf.display.charts.axes import log_axis, log_domain, log_scale, log_time_position, time_axis, time_domain
from ttf.display.charts.encodings import pick_columns, tooltips
from ttf.display.charts.figure import Figure, Study, empty_figure, make_chart, make_figure
from ttf.display.charts.text import FEATURE_NAMES
from ttf.display.charts.theme import INK, OUTCOME_COLOURS
from ttf.display.metrics import FEWEST_ENDED
from ttf.engine.words import capitalise, coefficient, join_list, plural
from ttf.records.inputs import Inputs
from ttf.stats.job_features import correlation_row

REQUESTS = ("gpu_request", "cpu_request", "memory_request", "size")
MEASURED = ("gpu_utilisation", "cpu_usage", "memory_usage")

# `not_success` is in the table only: it serves a published study, and mixes running with failed jobs.
SHOWN_SETS = ("success", "failure")
COLOURS = alt.Scale(domain=list(SHOWN_SETS), range=[OUTCOME_COLOURS[name] for name in SHOWN_SETS])
# Means of few jobs are drawn hollow, because a few long runs can move them far.
IS_SMALL = alt.FieldLTPredicate("jobs", lt=FEWEST_ENDED)

MOST_POINTS = 1_000  # in a chart
MOST_GROUPS = 300  # of a feature
BINS = 60

# Name of the axis, and number of the table's units in one unit of the axis.
_AXES = {
    "gpu_request": ("GPUs", 100),
    "cpu_request": ("CPU cores", 100),
    "memory_request": ("GiB", 1),
    "size": ("instances", 1),
    "gpu_utilisation": ("GPUs in use", 100),
    "cpu_usage": ("CPU cores in use", 100),
    "memory_usage": ("GiB in use", 1),
}
_FEW_TICKS_S = (1, 60, 3_600, 86_400, 8_640_000, 864_000_000)
KEYS = ("outcome_set", "feature")


@dataclass(frozen=True)
class Points:
    """Points to draw.

    rows: outcome_set, feature, value (float), jobs, mean_s, median_s. zeros: number of groups at 0, which a logarithmic
    axis cannot show. merged: features whose groups are merged into bins.
    """

    rows: list[dict]
    zeros: int
    merged: list[str]


def hollow_note(rows: Sequence[dict], study: Study) -> str:
    """Return the note on means that are drawn hollow, empty if there are none."""
    if all(row["jobs"] >= FEWEST_ENDED for row in rows):
        return ""
    return f"; hollow: fewer than {FEWEST_ENDED} {study.units}"


def make_points(groups: pl.DataFrame) -> Points:
    """Make points of the groups in runtime_by_group.csv (numeric features only).

    A feature with more groups than fit in a panel has them merged into 60 bins of equal width on the logarithmic axis,
    at job-weighted means; a bin has no median.
    """
    numbers = groups.with_columns(value=pl.col("value").cast(pl.Float64))
    positive = numbers.filter(pl.col("value") > 0)
    most_groups = min(MOST_GROUPS, MOST_POINTS // max(1, positive.select(KEYS).n_unique()))
    rows: list[dict] = []
    merged = []
    for (feature,), feature_groups in positive.group_by("feature", maintain_order=True):
        if (feature_groups.group_by(KEYS).len()["len"] > most_groups).any():
            merged.append(str(feature))
            feature_groups = _merge_into_bins(feature_groups)
        rows += feature_groups.rename({"runtime_mean_s": "mean_s", "runtime_median_s": "median_s"}).to_dicts()
    return Points(rows, numbers.height - positive.height, merged)


def _merge_into_bins(groups: pl.DataFrame) -> pl.DataFrame:
    value, jobs = pl.col("value"), pl.col("jobs")
    log = value.log()
    index = ((log - log.min()) / (log.max() - log.min()) * BINS).floor().clip(upper_bound=BINS - 1)

    def weighted_mean(name: str) -> pl.Expr:
        return (pl.col(name) * jobs).sum() / jobs.sum()

    bins = groups.group_by(*KEYS, bin=index, maintain_order=True).agg(
        # The mean stays within its values despite rounding.
        weighted_mean("value").clip(value.min(), value.max()),
        jobs.sum(),
        weighted_mean("runtime_mean_s"),
        pl.when(pl.len() == 1).then(pl.col("runtime_median_s").first()),
    )
    return bins.drop("bin")


def draw_run_times(inputs: Inputs, study: Study, *, features: Sequence[str], title: str, empty_reason: str) -> Figure:
    """Draw a panel for each feature with a correlation of group means, and note the correlations by outcome."""
    groups, correlations = inputs["runtime_by_group"], inputs["correlations"]
    points = make_points(
        groups.filter(
            pl.col("cutoff_s").is_null() & pl.col("outcome_set").is_in(SHOWN_SETS) & pl.col("feature").is_in(features)
        )
    )
    panel_rows = {
        name: rows
        for name in features
        if any(_find_row(correlations, outcome, name, "group_mean", "pearson") is not None for outcome in SHOWN_SETS)
        and (rows := [_make_chart_row(row) for row in points.rows if row["feature"] == name])
    }
    if not panel_rows:
        return empty_figure(title, empty_reason)
    rows = [row for rows in panel_rows.values() for row in rows]
    notes = {name: _make_note_rows(correlations, name) for name in panel_rows}
    # Requests that are multiples of each other share a panel.
    shown = [name for index, name in enumerate(notes) if notes[name] not in list(notes.values())[:index]]
    datasets = {name: panel_rows[name] for name in shown} | {f"{name}_notes": notes[name] for name in shown}
    panels = [_draw_panel(name, panel_rows[name], rows, len(shown), study) for name in shown]
    chart = alt.concat(*panels, columns=1 if study.narrow else 2, spacing={"row": 24, "column": 28})
    jobs = max(sum(row["jobs"] for row in feature_rows) for feature_rows in panel_rows.values())
    caption = f"n = {plural(jobs, study.unit)}{hollow_note(rows, study)}"
    if points.zeros:
        caption += f"; {plural(points.zeros, 'group')} at 0 not drawn"
    if points.merged:
        caption += f"; neighbouring values of {join_list([FEATURE_NAMES[name] for name in points.merged])} merged"
    if duplicates := [FEATURE_NAMES[name] for name in notes if name not in shown]:
        caption += f"; {join_list(duplicates)}: alike"
    names = join_list([FEATURE_NAMES[name] for name in shown])
    return make_figure(
        chart.resolve_scale(x="independent", y="independent", size="shared", color="shared").properties(
            padding={"left": 8, "right": 12, "top": 5, "bottom": 5}
        ),
        datasets,
        study,
        title=title,
        subtitle=f"r of group means (published method, our data); ρ over {study.units}; adjusted p, clustered for ρ",
        caption=caption,
        alt_text=f"Scatter plots of mean run time against {names}, with correlations for success and failure.",
    )


def _make_chart_row(row: dict) -> dict:
    _, per = _AXES[row["feature"]]
    position = {"value": row["value"] / per, "y": log_time_position(row["mean_s"])}
    return pick_columns(row, "jobs", "mean_s", "median_s", outcome="outcome_set") | position


def _find_row(correlations: pl.DataFrame, outcome: str, feature: str, unit: str, method: str) -> dict | None:
    row = correlation_row(correlations, outcome, feature, None, unit, method)
    return row if row and row["estimate"] is not None else None


def _make_note_rows(correlations: pl.DataFrame, feature: str) -> list[dict]:
    """Return a row per outcome with the feature's correlations over group means and over jobs, as texts."""
    return [
        {
            "outcome": outcome,
            "means": _format_r("r", _find_row(correlations, outcome, feature, "group_mean", "pearson"), "p_adjusted"),
            "over_jobs": _format_r(
                "ρ", _find_row(correlations, outcome, feature, "job", "spearman"), "p_adjusted_clustered"
            ),
        }
        for outcome in SHOWN_SETS
    ]


def _format_r(name: str, row: dict | None, p_column: str) -> str:
    """Format a correlation with n and p, such as "r 0.31, n 1,200, p <0.001". p_column: the column of p."""
    if row is None:
        return ""
    text = f"{name} {coefficient(row['estimate'])}, n {row['n']:,}"
    if row[p_column] is None:
        return f"{text}, no p"
    return f"{text}, p {'<0.001' if row[p_column] < 0.001 else f'{row[p_column]:.2g}'}"


def _draw_panel(
    feature: str, rows: list[dict], all_rows: list[dict], n_panels: int, study: Study
) -> alt.LayerChart | alt.FacetChart:
    width, height = (254, 110) if study.narrow else (272, 110) if n_panels > 1 else (600, 170)
    unit, _ = _AXES[feature]
    base = make_chart(feature)
    domain = log_domain([row["value"] for row in rows])
    axis = time_axis("Mean run time", _FEW_TICKS_S, grid=True)
    values = log_axis(domain, capitalise(unit), grid=False, labelOverlap=True)
    tooltip = [*tooltips("outcome"), *tooltips(form=",.6~g", value=unit), *tooltips(form=",", jobs="n")]
    tooltip += tooltips(form=",.1f", mean_s="mean run time (s)", median_s="median run time (s)")
    dots = base.mark_circle(opacity=0.7).encode(
        x=alt.X("value:Q", scale=log_scale(domain), axis=values),
        y=alt.Y("y:Q", scale=log_scale(time_domain([row["y"] for row in all_rows], 2)), axis=axis),
        color=alt.Color("outcome:N", scale=COLOURS, legend=None),
        stroke=alt.Stroke("outcome:N", scale=COLOURS, legend=None),
        strokeWidth=alt.value(1),
        fillOpacity=alt.condition(IS_SMALL, alt.value(0), alt.value(1)),
        size=alt.Size("jobs:Q", scale=alt.Scale(type="sqrt", range=[14, 160], zero=False), legend=None),
        tooltip=tooltip,
    )
    title = alt.TitleParams(capitalise(FEATURE_NAMES[feature]), fontSize=12, offset=4, anchor="start", frame="group")
    return alt.layer(dots, *_draw_notes(feature)).properties(width=width, height=height, title=title)


def _draw_notes(feature: str) -> list[alt.Chart]:
    notes = make_chart(f"{feature}_notes")
    y = alt.Y("outcome:N", scale=alt.Scale(domain=list(SHOWN_SETS), range=[-36, -6]), axis=None)
    notes_text = notes.mark_text(align="left", fontSize=11, color=INK).encode(y=y)
    outcome = notes.mark_text(align="left", fontSize=11, fontWeight="bold").encode(
        x=alt.value(-50), y=y, text="outcome:N", color=alt.Color("outcome:N", scale=COLOURS, legend=None)
    )
    columns = {"means:N": 6, "over_jobs:N": 138}
    return [outcome, *(notes_text.encode(x=alt.value(x), text=text) for text, x in columns.items())]


factors_of_run_time = partial(
    draw_run_times,
    features=REQUESTS,
    title="Mean run time by request",
    empty_reason="fewer than three values of a request occur among what succeeded or failed",
)
runtime_by_measured_use = partial(
    draw_run_times,
    features=MEASURED,
    title="Mean run time by measured use",
    empty_reason="no measured use has three values among what succeeded or failed",
)
