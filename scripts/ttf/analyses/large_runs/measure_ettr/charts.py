"""Measured effective training time ratio, by size of the run."""

import altair as alt

from ttf.display.charts.axes import percent_axis
from ttf.display.charts.figure import Figure, Study, empty_figure, fit_width, make_chart, make_figure
from ttf.display.charts.intervals import add_bounds, clustering_note, draw_intervals
from ttf.display.charts.theme import INK, SUCCESS
from ttf.engine.words import gpus_label, plural
from ttf.records.inputs import Inputs

_LINE = 26


def ettr_measured(inputs: Inputs, study: Study) -> Figure:
    """Draw the mean ratio of the runs of each size with its interval, and what the model expects of these runs."""
    measured, title = inputs["ettr_measured"], "Measured wall-clock ETTR of long runs by size"
    if not measured.height:
        return empty_figure(title, "no run lasted long enough")
    measured, rows = add_bounds(measured), []
    names = ("ettr_mean", "low", "high", "independent", "expected_ettr")
    for row in measured.iter_rows(named=True):
        size = gpus_label(row["gpus_low"], row["gpus_high"])
        point = {"size": f"{size} (n = {row['runs']:,})", "runs": row["runs"]}
        rows.append(point | {name: row[name] for name in names if row[name] is not None})
    has_model = any("expected_ettr" in row for row in rows)
    scale = alt.Scale(domain=[0, 1])
    axis = percent_axis("Wall-clock ETTR, mean over runs", values=[0, 0.25, 0.5, 0.75, 1])
    x = alt.X("ettr_mean:Q", scale=scale, axis=axis)
    base = make_chart("runs").encode(y=alt.Y("size:N", sort=[row["size"] for row in rows], title="GPUs of the run"))
    interval_base, low = base.transform_filter("isValid(datum.low)"), alt.X("low:Q", scale=scale)
    layers = [
        draw_intervals(interval_base, low, strokeWidth=1.5, color=SUCCESS),
        base.mark_point(filled=True, size=60, color=SUCCESS, opacity=1).encode(x=x),
    ]
    if has_model:
        diamonds = base.transform_filter("isValid(datum.expected_ettr)")
        diamonds = diamonds.mark_point(shape="diamond", size=80, filled=False, strokeWidth=1.8, color=INK)
        layers.append(diamonds.encode(x=alt.X("expected_ettr:Q", scale=scale)))
    return make_figure(
        fit_width(alt.layer(*layers), study, 60 + _LINE * len(rows)),
        {"runs": rows},
        study,
        title=title,
        subtitle="Mean over runs with 95% CI" + ("; diamonds: expected by the exact model" if has_model else ""),
        caption=f"n = {plural(int(measured['runs'].sum()), 'run')}. {clustering_note(measured, 'runs')}".strip(),
        alt_text="Points with intervals by number of GPUs on an axis from 0 to 100%: the measured ETTR.",
    )


CHARTS = {"ettr_measured": ettr_measured}
