"""Chart of study 1: its correlations by the published method, next to those at job level."""

import altair as alt
import polars as pl

from ttf.analyses.replication.repeat_study import CUTOFFS, JOBS, STUDY_SETS
from ttf.display.charts.axes import log_axis, log_domain, log_scale, time_axis, time_domain
from ttf.display.charts.encodings import colour_by, pick_columns, tooltips
from ttf.display.charts.figure import Figure, Study, empty_figure, make_chart, make_figure
from ttf.display.charts.intervals import add_bounds, clustering_note, draw_intervals
from ttf.display.charts.text import FEATURE_NAMES, feature_title
from ttf.display.charts.theme import ACCENT, FAINT, THIRD
from ttf.engine.words import capitalise, coefficient, p_value
from ttf.records.inputs import Inputs
from ttf.stats.job_features import correlation_row

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


def draw_cutoffs(inputs: Inputs, study: Study) -> Figure:
    """Draw the mean run time of each group by its request, for the figures of the study that leave out long runs."""
    title = "Mean run time by request, with longer runs left out"
    panels, datasets = [], {}
    for outcome, feature, cutoff_s in CUTOFFS:
        outcome_set = STUDY_SETS[outcome]
        groups = inputs["runtime_by_group"].filter(outcome_set=outcome_set, feature=feature, cutoff_s=cutoff_s)
        groups = groups.with_columns(value=pl.col("value").cast(pl.Float64)).filter(pl.col("value") > 0)
        r = correlation_row(inputs["correlations"], outcome_set, feature, cutoff_s, "group_mean", "pearson")
        if groups.height and r and r["estimate"] is not None:
            name = f"{outcome}_{feature}"
            datasets[name] = groups.select("value", "jobs", y=pl.col("runtime_mean_s").clip(1)).to_dicts()
            note = f"below {cutoff_s:,} s: r {coefficient(r['estimate'])}, n {r['n']}, p {p_value(r['p_value'])}"
            panels.append(_draw_groups(name, datasets[name], f"{capitalise(outcome)}, {note}", feature))
    if not panels:
        return empty_figure(title, "no cut-off leaves three values of a request")
    return make_figure(
        alt.concat(*panels, columns=1 if study.narrow else 2, spacing={"row": 24, "column": 28}),
        datasets,
        study,
        title=title,
        subtitle="r of group means (published method, our data); p not adjusted; both axes logarithmic",
        caption=f"A point per distinct request. A failure is every {study.unit} that did not succeed.",
        alt_text="Scatter plots of mean run time against CPU and memory requests, for four cut-offs.",
    )


def _draw_groups(name: str, rows: list[dict], title: str, feature: str) -> alt.Chart:
    domain = log_domain([row["value"] for row in rows])
    x = alt.X("value:Q", scale=log_scale(domain), axis=log_axis(domain, feature_title(feature), labelOverlap=True))
    times = alt.Scale(type="log", domain=time_domain([row["y"] for row in rows], 2))
    tooltip = [*tooltips(form=",.6~g", value=feature_title(feature)), *tooltips(form=",", jobs="n")]
    base = make_chart(name).mark_circle(size=30, color=ACCENT, opacity=0.7)
    y = alt.Y("y:Q", scale=times, axis=time_axis("Mean run time", grid=True))
    return base.encode(x=x, y=y, tooltip=[*tooltip, *tooltips(form=",.1f", y="mean run time (s)")]).properties(
        width=254, height=110, title=alt.TitleParams(title, fontSize=11, offset=4, anchor="start", frame="group")
    )


CHARTS = {"study1_correlations": compare_correlations, "study1_cutoffs": draw_cutoffs}
