"""Epochs by which jobs reached their lowest loss, and near it, as distributions over jobs."""

import altair as alt

from ttf.analyses.replication.measure_epochs.compute import OUTCOMES
from ttf.display.charts.axes import percent_axis
from ttf.display.charts.encodings import colour_by, pick_columns, tooltips
from ttf.display.charts.figure import Figure, Study, empty_figure, make_chart, make_figure
from ttf.display.charts.intervals import add_bounds, clustering_note, draw_intervals
from ttf.display.charts.theme import OUTCOME_COLOURS
from ttf.engine.words import plural

PANELS = {"lowest": "lowest loss", "within_0.1_percent": "within 0.1% of the lowest"}


def epochs(inputs, study: Study) -> Figure:
    """Draw the share of jobs at their lowest loss, and of those within 0.1% of it, by share of their epochs."""
    table, summary = add_bounds(inputs["epochs"]), inputs["epochs_summary"]
    if not table.height:
        return empty_figure("Epochs to the lowest loss", f"no {study.unit} of the loss log has a loss that is a number")
    present = [name for name in OUTCOMES if name in set(table["outcome"])]
    colours = {name: OUTCOME_COLOURS[name] for name in present}
    base = make_chart("shares").encode(
        x=alt.X("x:Q", scale=alt.Scale(domain=[0, 1.02]), axis=percent_axis("Share of the epochs run")),
        color=colour_by("outcome", colours, alt.Legend(title=f"How the {study.unit} ended", orient="bottom")),
        tooltip=[
            *tooltips("outcome"),
            *tooltips(form=".0%", epochs_share="by this share of the epochs"),
            *tooltips(form=".1%", jobs_share=f"share of {study.units}"),
            *tooltips(form=",", n=study.units),
        ],
    )
    y = alt.Y("jobs_share:Q", scale=alt.Scale(domain=[0, 1]), axis=percent_axis(f"Share of {study.units}"))
    low = alt.Y("low:Q", scale=alt.Scale(domain=[0, 1]))
    panel = draw_intervals(base, low, opacity=0.5, strokeWidth=2) + base.mark_line(strokeWidth=2).encode(y=y)
    # Shifted: otherwise the intervals would hide each other.
    rows = [
        {"panel": PANELS[row["quantity"]], "x": row["epochs_share"] + 0.007 * (present.index(row["outcome"]) - 1)}
        | pick_columns(row, "outcome", "quantity", "epochs_share", "n", "jobs_share", "low", "high", "independent")
        for row in table.iter_rows(named=True)
    ]
    panels = alt.Facet("panel:N", title=None, sort=list(PANELS.values()))
    counts = ", ".join(f"{row['n']:,} {row['outcome']}" for row in summary.iter_rows(named=True) if row["n"])
    return make_figure(
        panel.properties(width=300, height=240).facet(facet=panels, columns=2),
        {"shares": rows},
        study,
        title=f"{study.units.capitalize()} at their lowest loss, by share of their epochs",
        subtitle="Share that had reached it; bars: 95% CI",
        caption=f"n = {counts}. {clustering_note(table, study.units)}",
        alt_text=f"Two panels with {plural(len(present), 'rising line')} each.",
    )


CHARTS = {"epochs": epochs}
