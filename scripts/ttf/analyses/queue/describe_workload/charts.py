"""Waits by kind of job, requests against use, and failures by role."""

import altair as alt
import polars as pl

from ttf.display.charts.axes import percent_axis
from ttf.display.charts.encodings import colour_by, pick_columns, side_notes
from ttf.display.charts.figure import Figure, Study, empty_figure, make_chart, make_figure
from ttf.display.charts.intervals import add_bounds, clustering_note, draw_intervals
from ttf.display.charts.text import make_labels
from ttf.display.charts.theme import FAILURE, FAINT, SUCCESS, THIRD
from ttf.display.charts.time_ranges import draw_ranges, make_range_row
from ttf.engine.words import capitalise, plural
from ttf.records.inputs import Inputs

RESOURCES = {"cpu": "CPU", "gpu": "GPU", "memory": "memory"}
MOST_ROLES = 24
_WIDTH = 490


def queue_by_gpus(inputs: Inputs, study: Study) -> Figure:
    """Draw quartiles, median, 90th and 95th percentile of the wait by size of the job, over all outcomes."""
    title = "Wait from submission to start by job size"
    waits = inputs["percentiles"].filter(quantity="queue_s", outcome_set="all", group_by="gpus")
    if not waits.height:
        return empty_figure(title, f"no {study.unit} with a known wait has a value there")
    names = make_labels(waits["group"])
    rows = [
        make_range_row(row, f"{names[row['group']].replace('-', '–')} (n = {row['n']:,})")
        for row in waits.iter_rows(named=True)
    ]
    return draw_ranges(
        rows,
        [row["label"] for row in rows],
        study,
        "Wait",
        f"GPUs of the {study.unit}",
        title=title,
        caption=f"n = {plural(waits['n'].sum(), study.unit)} with a known wait; waits below 1 s are drawn at 1 s",
        alt_text=f"Ranges on a logarithmic time axis, a row for each of {plural(len(rows), 'kind')}.",
    )


def request_use(inputs: Inputs, study: Study) -> Figure:
    """Draw, for each resource, the share of jobs that requested more than they used and the share that used more."""
    resources = inputs["request_use"].filter(pl.col("n") > 0)
    title = "Requested against used resources"
    if not resources.height:
        return empty_figure(title, f"the trace does not measure what its {study.units} use")
    column_by_kind = {"requested more than used": "requested_more_share", "used more than requested": "used_more_share"}
    rows = [
        {"resource": RESOURCES[row["resource"]], "kind": kind, "place": index, "note": f"n = {row['n']:,}"}
        | pick_columns(row, "n", share=column)
        for row in resources.iter_rows(named=True)
        for index, (kind, column) in enumerate(column_by_kind.items())
    ]
    colours = dict(zip(column_by_kind, (SUCCESS, THIRD), strict=True))
    base = make_chart("shares").encode(y=alt.Y("resource:N", title=None, sort=list(RESOURCES.values())))
    bars = base.mark_bar(height=16).encode(
        x=alt.X("share:Q", stack="zero", axis=percent_axis(f"Share of {study.units}"), scale=alt.Scale(domain=[0, 1])),
        color=colour_by("kind", colours, alt.Legend(title=None, orient="top")),
        order=alt.Order("place:Q"),
    )
    return make_figure(
        (bars + side_notes(base, _WIDTH + 8, baseline="middle")).properties(width=_WIDTH, height=alt.Step(30)),
        {"shares": rows},
        study,
        title=title,
        subtitle="Request per instance against mean measured use; the rest used what they requested",
        caption=f"{capitalise(study.units)} with a request and a measured use; n beside each bar.",
        alt_text=f"Stacked bars of shares for {plural(resources.height, 'resource')}.",
    )


def roles(inputs: Inputs, study: Study) -> Figure:
    """Draw the share of jobs in each role, and the share of its ended jobs that failed."""
    table = inputs["roles"]
    if not table.height:
        title = f"{capitalise(study.units)} by role"
        return empty_figure(title, f"the trace does not tell roles of its {study.units} apart")
    shown_roles = add_bounds(table.head(MOST_ROLES))
    names = make_labels(shown_roles["role"])
    rows = [
        {"role": names[row["role"]], "note": f"n = {row['jobs']:,}"}
        | pick_columns(row, "jobs", "ended", "low", "high", "independent", share="jobs_share", failed="failure_share")
        for row in shown_roles.iter_rows(named=True)
    ]
    labels = list(names.values())
    jobs_base = make_chart("roles").encode(y=alt.Y("role:N", title=None, sort=labels))
    failures_base = make_chart("roles").encode(y=alt.Y("role:N", title=None, sort=labels, axis=None))
    shares = jobs_base.mark_bar(color=SUCCESS, opacity=0.8).encode(
        x=alt.X("share:Q", axis=percent_axis(f"Share of {study.units}"))
    ) + jobs_base.mark_text(align="left", fontSize=10, dx=4, color=FAINT).encode(x="share:Q", text="note:N")
    failure_axis = alt.X("low:Q", axis=percent_axis(f"Of ended {study.units}, failed"), scale=alt.Scale(domain=[0, 1]))
    failures = draw_intervals(failures_base, failure_axis, strokeWidth=1.6, color=FAILURE, opacity=0.6)
    failures += failures_base.mark_circle(size=34, color=FAILURE, opacity=1).encode(x="failed:Q")
    panels = [panel.properties(width=width, height=alt.Step(18)) for panel, width in ((shares, 330), (failures, 210))]
    caption = f"n = {plural(shown_roles['n'][0], study.unit)} with a role. {clustering_note(shown_roles)}"
    if table.height > shown_roles.height:
        caption += f" The {MOST_ROLES} most frequent of {shown_roles['roles'][0]:,} roles."
    return make_figure(
        alt.hconcat(*panels, spacing=14),
        {"roles": rows},
        study,
        title=f"{capitalise(study.units)} and failures by role",
        subtitle=f"Share of {study.units}; share of ended ones that failed, with 95% CI",
        caption=caption,
        alt_text=f"Bars of the share of {plural(len(rows), 'role')}, and of the failures in each.",
    )


CHARTS = {"queue_by_gpus": queue_by_gpus, "request_use": request_use, "roles": roles}
