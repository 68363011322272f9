"""The share of the time with so many units down or more, observed and of independent units."""

from collections.abc import Mapping

import altair as alt
import polars as pl

from ttf.analyses.shared.outages.outage_strata import ALL
from ttf.display.charts.axes import log_scale
from ttf.display.charts.encodings import coloured, tips
from ttf.display.charts.figure import Figure, Study, chart_of, figure, fitted, nothing_to_draw
from ttf.display.charts.theme import CANCELLED, FAILURE
from ttf.engine.words import capital, plural

# What is rarer is chance.
RAREST = 1e-4
OBSERVED, INDEPENDENT = "observed", "binomial: independent"
COLOURS = {OBSERVED: FAILURE, INDEPENDENT: CANCELLED}


def units_down(given: Mapping[str, pl.DataFrame], study: Study) -> Figure:
    of_all = given["units_down"].filter(stratum_by=ALL, outages=ALL)
    what = f"{capital(study.units)} down at once"
    if not of_all["down"].count():
        return nothing_to_draw(what, of_all["reason"][0])
    rows = [
        {"kind": kind, "down": down, "share": share}
        for kind, column in ((OBSERVED, "cumulative"), (INDEPENDENT, "binomial_cumulative"))
        for down, share in of_all.select(pl.col("down"), 1 - pl.col(column).shift(fill_value=0)).iter_rows()
        if share >= RAREST
    ]
    axis = alt.Axis(values=[RAREST, 0.001, 0.01, 0.1, 1], format="~%")
    tooltip = [*tips("kind"), *tips(form=",", down=f"{study.units} down or more"), *tips(form=".3~%", share="time")]
    lines = chart_of("down").encode(
        x=alt.X("down:Q", title=f"{capital(study.units)} down", axis=alt.Axis(tickMinStep=1, grid=False)),
        y=alt.Y("share:Q", title="Share of the time", scale=log_scale([RAREST, 1]), axis=axis),
        color=coloured("kind", COLOURS, title=None, orient="bottom"),
        tooltip=tooltip,
    )
    lines = lines.mark_line(interpolate="step-before", strokeWidth=2, point={"size": 14})
    units = f"{of_all['units'][0]:,.4g} {study.unit if of_all['units'][0] == 1 else study.units}"
    needed = given["spares"].filter(stratum_by=ALL, outages=ALL, p=0.99).row(0, named=True)
    said = f"99% of the time at most {needed['spares_observed']} down; binomial {needed['spares_binomial']}"
    return figure(
        fitted(lines, study, 230),
        {"down": rows},
        study,
        title=f"{what}: share of the time with so many or more",
        subtitle="Observed, and of independent units that are each down as often",
        caption=f"n = {plural(of_all['n'][0], 'outage')}, {units} watched.",
        alt_text=f"Two falling step lines; {said}.",
    )


CHARTS = {"units_down": units_down}
