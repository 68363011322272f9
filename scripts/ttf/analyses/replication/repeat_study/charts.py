"""Chart of study 1: its correlations by the published method, next to those at job level."""

import altair as alt
import polars as pl

from ttf.analyses.replication.repeat_study import JOBS
from ttf.display.charts.encodings import colour_by, pick_columns, tooltips
from ttf.display.charts.figure import Figure, Study, empty_figure, make_chart, make_figure
from ttf.display.charts.intervals import add_bounds, clustering_note, draw_intervals
from ttf.display.charts.text import FEATURE_NAMES
from ttf.display.charts.theme import ACCENT, FAINT, THIRD
from ttf.engine.words import capitalise
from ttf.records.inputs import Inputs

_PUBLISHED = "published method, our data: r of group means"


def compare_correlations(inputs: Inputs, study: Study) -> Figure:
    """Draw the correlation of each feature with run time, by both methods and outcome."""
    title = "Correlation with run time: published method on our data, and job level"
    is_estimated = pl.col("study_estimate").is_not_null() | pl.col("asked_estimate").is_not_null()
    estimates = add_bounds(inputs["study1"].filter(is_estimated, question="correlation"), prefix="asked_")
    if not estimates.height:
        return empty_figure(title, f"no correlation of {study.units} can be computed")
    job_level = f"job level: rank correlation over {study.units}"
    rows: dict[str, list[dict]] = {}
    for row in estimates.iter_rows(named=True):
        for method, prefix in ((_PUBLISHED, "study"), (job_level, "asked")):
            if row[f"{prefix}_estimate"] is not None:
                point = {"feature": FEATURE_NAMES[row["feature"]], "kind": method}
                point |= pick_columns(row, estimate=f"{prefix}_estimate", n=f"{prefix}_n")
                if prefix == "study":  # group means have no clusters
                    point |= pick_columns(row, low="study_ci_low", high="study_ci_high") | {"independent": False}
                else:
                    point |= pick_columns(row, "low", "high", "independent")
                rows.setdefault(row["outcome"], []).append(point)
    features = [FEATURE_NAMES[name] for name in estimates["feature"].unique(maintain_order=True)]
    return make_figure(
        alt.hconcat(*(_draw_panel(outcome, features, job_level) for outcome in rows), spacing=16),
        rows,
        study,
        title=title,
        subtitle=f"r of group means; rank correlation over {study.units}; 95% CI",
        caption=clustering_note(estimates.rename({"asked_cluster_by": "cluster_by"}), study.units)
        + " n in study1.csv.",
        alt_text="Pairs of points with intervals, by request and outcome.",
    )


def _draw_panel(outcome: str, features: list[str], job_level_label: str) -> alt.LayerChart:
    y = alt.Y("feature:N", title=None, scale=alt.Scale(domain=features))
    colours = {_PUBLISHED: THIRD, job_level_label: ACCENT}
    colour = colour_by("kind", colours, alt.Legend(title=None, orient="bottom", columns=1, labelLimit=420))
    offset = alt.YOffset("kind:N", scale=alt.Scale(domain=[_PUBLISHED, job_level_label]))
    tooltip = [*tooltips("feature", kind="how"), *tooltips("estimate", form=".3f", low="95% from", high="95% to")]
    tooltip += tooltips(form=",", n="points")
    base = make_chart(outcome).encode(y=y, yOffset=offset, color=colour, tooltip=tooltip)
    title = f"{capitalise(JOBS[outcome])}: correlation"
    x = alt.X("low:Q", scale=alt.Scale(domain=[-1, 1]), title=title, axis=alt.Axis(values=[-1, -0.5, 0, 0.5, 1]))
    zero_line = make_chart(outcome).mark_rule(color=FAINT, strokeDash=[3, 3]).encode(x=alt.datum(0))
    points = base.mark_circle(size=55, opacity=1).encode(x="estimate:Q")
    return (zero_line + (draw_intervals(base, x, strokeWidth=1.8) + points)).properties(width=250, height=alt.Step(17))


CHARTS = {"study1_correlations": compare_correlations}
