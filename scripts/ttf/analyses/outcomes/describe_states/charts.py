"""Chart of jobs and GPU time by size."""

import altair as alt
import polars as pl

from ttf.display.charts.axes import percent_axis
from ttf.display.charts.encodings import colour_by, pick_columns, tooltips
from ttf.display.charts.figure import Figure, Study, empty_figure, fit_width, make_chart, make_figure
from ttf.display.charts.theme import ACCENT, AXIS
from ttf.engine.words import capitalise, gpus_label, plural
from ttf.records.inputs import Inputs


def draw_size_mix(inputs: Inputs, study: Study) -> Figure:
    """Draw the share of jobs and of GPU time by number of GPUs."""
    mix = inputs["size_mix"]
    sized = mix.filter(pl.col("gpus_high") > 0)
    title = f"{capitalise(study.units)} and GPU time by GPUs requested"
    if not sized.height:
        return empty_figure(title, f"no {study.unit} requested a GPU")
    time_measure = {study.size.worded("GPU time"): "gpu_hours"}
    measures = {study.units: "jobs"} | (time_measure if sized["gpu_hours_share"].count() else {})
    order = [gpus_label(low, high) for low, high in sized.select("gpus_low", "gpus_high").iter_rows()]
    rows = [
        {"gpus": gpus, "measure": measure}
        | pick_columns(row, share=f"{column}_share", up_to=f"{column}_up_to_share", n="jobs")
        for gpus, row in zip(order, sized.iter_rows(named=True), strict=True)
        for measure, column in measures.items()
    ]
    tooltip = [*tooltips(gpus="GPUs", measure="share of"), *tooltips("share", form=".2%", up_to="up to this size")]
    colours = dict(zip(measures, (ACCENT, AXIS), strict=False))
    bars = make_chart("sizes").encode(
        x=alt.X("gpus:N", sort=order, title="GPUs requested", axis=alt.Axis(labelAngle=0, labelOverlap="greedy")),
        xOffset=alt.XOffset("measure:N", sort=list(measures)),
        y=alt.Y("share:Q", axis=percent_axis(tickCount=5), scale=alt.Scale(zero=True)),
        color=colour_by("measure", colours, alt.Legend(title=None, orient="bottom")),
        tooltip=[*tooltip, *tooltips(form=",", n=study.units)],
    )
    caption = f"n = {plural(sized['n'][0], study.unit)} with a GPU; a share of a GPU counts as 1."
    jobs_without_gpu = mix.filter(pl.col("gpus_high") == 0)["jobs"].sum()
    if jobs_without_gpu:
        caption += f" {capitalise(plural(jobs_without_gpu, study.unit))} without a GPU are left out."
    return make_figure(
        fit_width(bars.mark_bar(), study, 260),
        {"sizes": rows},
        study,
        title=title,
        subtitle=f"Share of the {study.units} with a GPU, and of all GPU time",
        caption=caption,
        alt_text=f"Paired bars for {plural(sized.height, 'size')}.",
    )


CHARTS = {"size_mix": draw_size_mix}
