"""Chart of the share of time with at least so many units down, observed and for independent units."""

from collections.abc import Mapping

import altair as alt
import polars as pl

from ttf.display.charts.axes import log_scale
from ttf.display.charts.encodings import colour_by, tooltips
from ttf.display.charts.figure import Figure, Study, empty_figure, fit_width, make_chart, make_figure
from ttf.display.charts.theme import CANCELLED, FAILURE
from ttf.engine.words import plural
from ttf.stats.outages.outage_strata import ALL

# Rarer states are random variation.
RAREST = 1e-4
OBSERVED, INDEPENDENT = "observed", "binomial: independent"
COLOURS = {OBSERVED: FAILURE, INDEPENDENT: CANCELLED}


def units_down(inputs: Mapping[str, pl.DataFrame], study: Study) -> Figure:
    """Draw the share of the time with at least so many units down, observed and if units were independent."""
    all_units = inputs["units_down"].filter(stratum_by=ALL, outages=ALL)
    title = "Units down at once"
    if not all_units["down"].count():
        return empty_figure(title, all_units["reason"][0])
    rows = [
        {"kind": kind, "down": down, "share": share}
        for kind, column in ((OBSERVED, "cumulative"), (INDEPENDENT, "binomial_cumulative"))
        for down, share in all_units.select(pl.col("down"), 1 - pl.col(column).shift(fill_value=0)).iter_rows()
        if share >= RAREST
    ]
    axis = alt.Axis(values=[RAREST, 0.001, 0.01, 0.1, 1], format="~%")
    tooltip = [
        *tooltips("kind"),
        *tooltips(form=",", down="units down or more"),
        *tooltips(form=".3~%", share="time"),
    ]
    lines = make_chart("down").encode(
        x=alt.X("down:Q", title="Units down", axis=alt.Axis(tickMinStep=1, grid=False)),
        y=alt.Y("share:Q", title="Share of the time", scale=log_scale([RAREST, 1]), axis=axis),
        color=colour_by("kind", COLOURS, alt.Legend(title=None, orient="bottom")),
        tooltip=tooltip,
    )
    lines = lines.mark_line(interpolate="step-before", strokeWidth=2, point={"size": 14})
    mean = all_units["units"][0]
    units = f"{mean:,.4g} {inputs['availability']['unit'][0]}{'s' * (mean != 1)}"
    needed = inputs["spares"].filter(stratum_by=ALL, outages=ALL, p=0.99).row(0, named=True)
    summary = f"99% of the time at most {needed['spares_observed']} down; binomial {needed['spares_binomial']}"
    return make_figure(
        fit_width(lines, study, 230),
        {"down": rows},
        study,
        title=f"{title}: share of the time with at least this many",
        subtitle="Observed, and expected for independent units",
        caption=f"n = {plural(all_units['n'][0], 'outage')}, {units} watched.",
        alt_text=f"Two falling step lines; {summary}.",
    )


CHARTS = {"units_down": units_down}
