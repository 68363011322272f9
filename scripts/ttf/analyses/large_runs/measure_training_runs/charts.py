"""Where the time of each training run goes, as one bar per run."""

import altair as alt
import polars as pl

from ttf.display.charts.axes import percent_axis
from ttf.display.charts.encodings import colour_by, tooltips
from ttf.display.charts.figure import Figure, Study, empty_figure, fit_width, make_chart, make_figure
from ttf.display.charts.theme import CANCELLED, FAILURE, FOURTH, INFRA, OPEN, SUCCESS, THIRD
from ttf.engine.words import plural
from ttf.records.inputs import Inputs

MOST_RUNS = 20
_KINDS = {
    "productive": ("productive", SUCCESS),
    "evaluation": ("evaluation, save, load", FOURTH),
    "checkpoint": ("evaluation, save, load", FOURTH),
    "restore": ("evaluation, save, load", FOURTH),
    "start_up": ("start-up", THIRD),
    "slow": ("slow, stalled", INFRA),
    "stalled": ("slow, stalled", INFRA),
    "lost": ("lost, detection", FAILURE),
    "detection": ("lost, detection", FAILURE),
    "queued": ("queued, down, shutdown", CANCELLED),
    "down": ("queued, down, shutdown", CANCELLED),
    "shutdown": ("queued, down, shutdown", CANCELLED),
    "unknown": ("unknown", OPEN),
}


def training_time(inputs: Inputs, study: Study) -> Figure:
    title = "Where the time of training runs goes"
    runs = inputs["training_runs"].drop_nulls("wall_s").sort("wall_s", descending=True, maintain_order=True)
    if not runs.height:
        return empty_figure(title, "no wall time is known")
    shown = runs["run"].head(MOST_RUNS).to_list()
    times = inputs["training_time"].filter(pl.col("attempt").is_null(), pl.col("run").is_in(shown), pl.col("share") > 0)
    rows = []
    for run in shown:
        parts = {row["time_class"]: row for row in times.filter(run=run).iter_rows(named=True)}
        start = 0.0
        for label, (kind, _) in _KINDS.items():
            if label in parts:
                end = start + parts[label]["share"]
                rows.append({"run": run, "kind": kind, "class": label.replace("_", "-"), "from": start, "to": end})
                rows[-1] |= {"share": parts[label]["share"]}
                start = end
    present = {kind: colour for kind, colour in _KINDS.values() if any(row["kind"] == kind for row in rows)}
    bars = (
        make_chart("parts")
        .mark_bar(height=15)
        .encode(
            x=alt.X("from:Q", scale=alt.Scale(domain=[0, 1]), axis=percent_axis("Share of the wall time")),
            x2="to:Q",
            y=alt.Y("run:N", sort=shown, title=None, axis=alt.Axis(labelLimit=200, domain=False, ticks=False)),
            color=colour_by("kind", present, alt.Legend(title=None, orient="bottom", columns=2 if study.narrow else 4)),
            tooltip=[*tooltips("run", "class"), *tooltips(form=".1%", share="Share")],
        )
    )
    others = f" The longest {MOST_RUNS} of {runs.height:,}." if runs.height > MOST_RUNS else ""
    return make_figure(
        fit_width(bars, study, 22 * len(shown) + 80),
        {"parts": rows},
        study,
        title=title,
        subtitle="Each second of a run is in one class",
        caption=f"n = {plural(runs.height, 'run')}.{others}",
        alt_text="A bar for each run, divided into classes of time that add up to 100%.",
    )


CHARTS = {"training_time": training_time}
