"""GPU activity, as ranges of readings by the minute."""

import altair as alt
import polars as pl

from ttf.display.charts.axes import percent_axis
from ttf.display.charts.encodings import colour_by
from ttf.display.charts.figure import Figure, Study, empty_figure, make_chart, make_figure
from ttf.display.charts.theme import INK, OUTCOME_COLOURS
from ttf.engine.words import plural
from ttf.records.inputs import Inputs

ALL_OUTCOMES = "all together"
COLOURS = {name: OUTCOME_COLOURS[name] for name in ("success", "failure", "cancelled")} | {ALL_OUTCOMES: INK}
_SHARES = ("p25_share", "p50_share", "p75_share", "p90_share", "p95_share")


def gpu_use(inputs: Inputs, study: Study) -> Figure:
    """Draw GPU activity by job size and outcome."""
    title = f"GPU activity by {study.unit} size and outcome"
    kinds = inputs["gpu_use"].filter(pl.col("n") > 0, pl.col("servers").is_null())
    if not kinds.height:
        return empty_figure(title, f"no GPU that a {study.unit} held has a reading")
    size = pl.concat_str("job_gpus", pl.when(job_gpus="1").then(pl.lit(" GPU")).otherwise(pl.lit(" GPUs")))
    kinds = kinds.with_columns(
        row=pl.when(job_gpus="all").then(pl.lit(f"all {study.units}")).otherwise(size),
        kind=pl.col("outcome").replace({"all": ALL_OUTCOMES}),
    )
    colours = {name: colour for name, colour in COLOURS.items() if name in set(kinds["kind"])}
    legend = alt.Legend(title=None, orient="top", symbolType="square")
    base = make_chart("ranges").encode(
        y=alt.Y("row:N", title=None, sort=kinds["row"].unique(maintain_order=True).to_list()),
        yOffset=alt.YOffset("kind:N", sort=list(colours)),
        color=colour_by("kind", colours, legend),
    )
    axis = percent_axis("GPU activity", values=[0, 0.25, 0.5, 0.75, 1])
    x = alt.X("p25_share:Q", scale=alt.Scale(domain=[0, 1]), axis=axis)
    marks = (
        base.mark_bar(height=6, opacity=0.35).encode(x=x, x2="p75_share:Q")
        + base.mark_tick(thickness=3, size=9).encode(x="p50_share:Q")
        + base.mark_point(shape="diamond", filled=True, size=18).encode(x="mean_share:Q")
        + base.mark_point(shape="circle", filled=True, size=18).encode(x="p90_share:Q")
        + base.mark_point(shape="circle", filled=False, size=18).encode(x="p95_share:Q")
    )
    n = kinds.filter(job_gpus="all", outcome="all")["n"].sum()
    return make_figure(
        marks.properties(width=520, height=alt.Step(9)),
        {"ranges": kinds.select("row", "kind", "n", "mean_share", "zero_share", *_SHARES).to_dicts()},
        study,
        title=title,
        subtitle="Bar: middle half; line: median; diamond: mean; circles: 90th and 95th percentile",
        caption=f"n = {plural(n, 'reading')}, one per GPU and minute, so larger and longer {study.units} weigh more.",
        alt_text=f"Ranges of GPU activity for {plural(kinds.height, 'kind')} of {study.units}.",
    )


CHARTS = {"gpu_use": gpu_use}
