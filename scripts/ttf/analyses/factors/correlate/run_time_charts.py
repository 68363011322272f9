"""Mean run time against what jobs requested and what they used: a panel per feature, a point per distinct value."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import altair as alt
import polars as pl

from ttf.display.charts.axes import log_axis, log_domain, log_scale, on_log_time, time_axis, time_domain
from ttf.display.charts.encodings import picked, tips
from ttf.display.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.display.charts.text import FEATURE_NAMES
from ttf.display.charts.theme import INK, OUTCOME_COLOURS
from ttf.display.metrics import FEWEST_ENDED
from ttf.engine.words import capital, coefficient, listed, plural
from ttf.records.inputs import Inputs
from ttf.stats.job_features import correlation_row

REQUESTS = ("gpu_request", "cpu_request", "memory_request", "size")
MEASURED = ("gpu_utilisation", "cpu_usage", "memory_usage")

# `not_success` is left to the table: it is for comparison with a published study, and mixes what runs with what failed.
SETS = ("success", "failure")
COLOURS = alt.Scale(domain=list(SETS), range=[OUTCOME_COLOURS[name] for name in SETS])
# Of a row with its number of jobs: their mean is drawn hollow, as a few long runs among so few can move it far.
FEW = alt.FieldLTPredicate("jobs", lt=FEWEST_ENDED)

MOST_POINTS = 1_000  # in a chart
MOST_GROUPS = 300  # of a feature
BINS = 60

# On the axis: what the axis is called, and how many of the table's units make one of it.
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
    """Points to draw, and what the caption has to say about them.

    rows: outcome_set, feature, value (float), jobs, mean_s, median_s. zeros: groups that a logarithmic axis has no
    place for. merged: the features whose groups were merged into bins.
    """

    rows: list[dict]
    zeros: int
    merged: list[str]


def few_in_a_mean(rows: Sequence[dict], study: Study) -> str:
    """What the caption says of means that are drawn hollow, where there are any."""
    if all(row["jobs"] >= FEWEST_ENDED for row in rows):
        return ""
    return f"; hollow: fewer than {FEWEST_ENDED} {study.units}"


def points(groups: pl.DataFrame) -> Points:
    """The groups of runtime_by_group.csv (numeric features only) as points.

    A feature with more groups in a panel than fit has its groups merged into 60 bins of equal width on the
    logarithmic axis, at job-weighted means; a bin has no median.
    """
    numbers = groups.with_columns(value=pl.col("value").cast(pl.Float64))
    positive = numbers.filter(pl.col("value") > 0)
    panels = max(1, positive.select(KEYS).n_unique())
    most = min(MOST_GROUPS, MOST_POINTS // panels)
    rows: list[dict] = []
    merged = []
    for (feature,), part in positive.group_by("feature", maintain_order=True):
        if part.group_by(KEYS).len()["len"].max() > most:
            merged.append(str(feature))
            part = _binned(part)
        rows += part.rename({"runtime_mean_s": "mean_s", "runtime_median_s": "median_s"}).to_dicts()
    return Points(rows, numbers.height - positive.height, merged)


def _binned(part: pl.DataFrame) -> pl.DataFrame:
    value, jobs = pl.col("value"), pl.col("jobs")
    place = value.log()
    number = ((place - place.min()) / (place.max() - place.min()) * BINS).floor().clip(upper_bound=BINS - 1)

    def weighted(name: str) -> pl.Expr:
        return (pl.col(name) * jobs).sum() / jobs.sum()

    bins = part.group_by(*KEYS, bin=number, maintain_order=True).agg(
        # Rounding leaves a mean among its values.
        weighted("value").clip(value.min(), value.max()),
        jobs.sum(),
        weighted("runtime_mean_s"),
        pl.when(pl.len() == 1).then(pl.col("runtime_median_s").first()),
    )
    return bins.drop("bin")


def run_time_by(given: Inputs, study: Study, *, features: Sequence[str], what: str, lacking: str) -> Figure:
    """A panel for each feature of which group means correlate in any way, with both correlations of each outcome."""
    groups, correlations = given["runtime_by_group"], given["correlations"]
    ready = points(
        groups.filter(
            pl.col("cutoff_s").is_null() & pl.col("outcome_set").is_in(SETS) & pl.col("feature").is_in(features)
        )
    )
    by_feature = {
        name: [_drawn(row) for row in ready.rows if row["feature"] == name]
        for name in features
        if any(_r(correlations, outcome, name, "group_mean", "pearson") is not None for outcome in SETS)
    }
    by_feature = {name: rows for name, rows in by_feature.items() if rows}
    if not by_feature:
        return nothing_to_draw(what, lacking)
    rows = [row for rows in by_feature.values() for row in rows]
    notes = {name: _notes(correlations, name) for name in by_feature}
    # Requests that are multiples of each other have one panel.
    shown = [name for place, name in enumerate(notes) if notes[name] not in list(notes.values())[:place]]
    datasets = {name: by_feature[name] for name in shown} | {f"{name}_notes": notes[name] for name in shown}
    panels = [_panel(name, by_feature[name], rows, len(shown), study) for name in shown]
    chart = alt.concat(*panels, columns=1 if study.narrow else 2, spacing={"row": 24, "column": 28})
    jobs = max(sum(row["jobs"] for row in mine) for mine in by_feature.values())
    caption = f"n = {plural(jobs, study.unit)}{few_in_a_mean(rows, study)}"
    if ready.zeros:
        caption += f"; {plural(ready.zeros, 'group')} at 0 not drawn"
    if ready.merged:
        caption += f"; neighbouring values of {listed([FEATURE_NAMES[name] for name in ready.merged])} merged"
    if same := [FEATURE_NAMES[name] for name in notes if name not in shown]:
        caption += f"; {listed(same)}: alike"
    names = listed([FEATURE_NAMES[name] for name in shown])
    return figure(
        chart.resolve_scale(x="independent", y="independent", size="shared", color="shared").properties(
            padding={"left": 8, "right": 12, "top": 5, "bottom": 5}
        ),
        datasets,
        study,
        title=what,
        subtitle=f"r of group means, as published; ρ over {study.units}; adjusted p, of ρ clustered",
        caption=caption,
        alt_text=f"Scatter plots of mean run time against {names}, with correlations for success and failure.",
    )


def _drawn(row: dict) -> dict:
    _, per = _AXES[row["feature"]]
    y = on_log_time(row["mean_s"])
    return picked(row, "jobs", "mean_s", "median_s", outcome="outcome_set") | {"value": row["value"] / per, "y": y}


def _r(correlations: pl.DataFrame, outcome: str, feature: str, unit: str, method: str) -> dict | None:
    """The row of correlations.csv of these without a cut-off; None where nothing was estimated."""
    found = correlation_row(correlations, outcome, feature, None, unit, method)
    return found if found and found["estimate"] is not None else None


def _notes(correlations: pl.DataFrame, feature: str) -> list[dict]:
    """A line for each outcome: what it is, the correlation of group means, that over jobs."""
    return [
        {
            "outcome": outcome,
            "means": _worded("r", _r(correlations, outcome, feature, "group_mean", "pearson"), "p_adjusted"),
            "over_jobs": _worded("ρ", _r(correlations, outcome, feature, "job", "spearman"), "p_adjusted_clustered"),
        }
        for outcome in SETS
    ]


def _worded(name: str, found: dict | None, p: str) -> str:
    if found is None:
        return ""
    text = f"{name} {coefficient(found['estimate'])}, n {found['n']:,}"
    if found[p] is None:
        return f"{text}, no p"
    return f"{text}, p {'<0.001' if found[p] < 0.001 else f'{found[p]:.2g}'}"


def _panel(feature: str, rows: list[dict], every: list[dict], panels: int, study: Study) -> alt.LayerChart:
    width, height = (254, 110) if study.narrow else (272, 110) if panels > 1 else (600, 170)
    unit, _ = _AXES[feature]
    base = chart_of(feature)
    domain = log_domain([row["value"] for row in rows])
    axis = time_axis("Mean run time", _FEW_TICKS_S, grid=True)
    outcome = {"scale": COLOURS, "legend": None}
    values = log_axis(domain, capital(unit), grid=False, labelOverlap=True)
    tooltip = [*tips("outcome"), *tips(form=",.6~g", value=unit), *tips(form=",", jobs="n")]
    tooltip += tips(form=",.1f", mean_s="mean run time (s)", median_s="median run time (s)")
    dots = base.mark_circle(opacity=0.7).encode(
        x=alt.X("value:Q", scale=log_scale(domain), axis=values),
        y=alt.Y("y:Q", scale=log_scale(time_domain([row["y"] for row in every], 2)), axis=axis),
        color=alt.Color("outcome:N", **outcome),
        stroke=alt.Stroke("outcome:N", **outcome),
        strokeWidth=alt.value(1),
        fillOpacity=alt.condition(FEW, alt.value(0), alt.value(1)),
        size=alt.Size("jobs:Q", scale=alt.Scale(type="sqrt", range=[14, 160], zero=False), legend=None),
        tooltip=tooltip,
    )
    title = alt.TitleParams(capital(FEATURE_NAMES[feature]), fontSize=12, offset=4, anchor="start", frame="group")
    return alt.layer(dots, *_texts(feature)).properties(width=width, height=height, title=title)


def _texts(feature: str) -> list[alt.Chart]:
    """Above the plot, a line for each outcome: what it is, and its two correlations."""
    notes = chart_of(f"{feature}_notes")
    y = alt.Y("outcome:N", scale=alt.Scale(domain=list(SETS), range=[-36, -6]), axis=None)
    notes_text = notes.mark_text(align="left", fontSize=11, color=INK).encode(y=y)
    outcome = notes.mark_text(align="left", fontSize=11, fontWeight="bold").encode(
        x=alt.value(-50), y=y, text="outcome:N", color=alt.Color("outcome:N", scale=COLOURS, legend=None)
    )
    columns = {"means:N": 6, "over_jobs:N": 138}
    return [outcome, *(notes_text.encode(x=alt.value(x), text=text) for text, x in columns.items())]


factors_of_run_time = partial(
    run_time_by,
    features=REQUESTS,
    what="Mean run time by request",
    lacking="fewer than three values of a request occur among what succeeded or failed",
)
runtime_by_measured_use = partial(
    run_time_by,
    features=MEASURED,
    what="Mean run time by measured use",
    lacking="no measured use has three values among what succeeded or failed",
)
