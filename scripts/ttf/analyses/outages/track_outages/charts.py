"""Mean cumulative function of all units: a straight line if the rate is constant."""

import altair as alt
import polars as pl

from ttf.display.charts.encodings import tooltips
from ttf.display.charts.figure import Figure, Study, empty_figure, fit_width, make_chart, make_figure
from ttf.display.charts.theme import FAINT, INFRA
from ttf.engine.words import plural
from ttf.records.inputs import Inputs
from ttf.stats.durations.survival import thin_arrays

MOST_POINTS = 200
DAY_S = 86_400


def mcf(inputs: Inputs, study: Study) -> Figure:
    """Draw the curve with its band, and the straight line to the same end."""
    title = "Faults of a unit so far, on average"
    curve = inputs["mcf"].filter(stratum_by="all")
    if curve.height < 2:
        return empty_figure(title, "fewer than two faults began while units were watched")
    total_row = inputs["growth"].filter(stratum_by="all").row(0, named=True)
    columns = {name: curve[name].to_numpy() for name in ("time_s", "at_risk", "mcf", "ci_low", "ci_high")}
    steps = pl.DataFrame(thin_arrays(columns | {"events": curve["at_risk"].to_numpy()}, MOST_POINTS))
    low, high = (pl.col(bound).fill_nan(None) for bound in ("ci_low", "ci_high"))
    rows = steps.select(day=pl.col("time_s") / DAY_S, units="at_risk", mean="mcf", low=low, high=high).to_dicts()
    line_points = [{"day": 0, "mean": 0}, {"day": rows[-1]["day"], "mean": rows[-1]["mean"]}]
    x = alt.X("day:Q", title="Days since observation of the first unit began", axis=alt.Axis(grid=False, tickCount=6))
    y = alt.Y("mean:Q", title=None)
    base = make_chart("curve").encode(x=x)
    tooltip = [*tooltips(form=",.1f", day="day"), *tooltips(form=",.3~g", mean="faults", low="95% from", high="95% to")]
    tooltip += tooltips(form=",", units="units watched")
    layers = [
        base.mark_area(interpolate="step-after", opacity=0.18, color=INFRA).encode(y=alt.Y("low:Q"), y2="high:Q"),
        make_chart("constant").mark_line(color=FAINT, strokeDash=[4, 4]).encode(x=x, y=y),
        base.mark_line(interpolate="step-after", strokeWidth=2, color=INFRA).encode(y=y, tooltip=tooltip),
    ]
    return make_figure(
        fit_width(alt.layer(*layers), study, 240),
        {"curve": rows, "constant": line_points},
        study,
        title=title,
        subtitle="Mean cumulative function, 95% CI that allows units to differ; dashed: a constant rate",
        caption=f"n = {plural(total_row['n'], 'fault')}",
        alt_text=f"A rising line with a band, beside a straight one: {rows[-1]['mean']:.3g} faults at the end.",
    )


CHARTS = {"mcf": mcf}
