"""Chart of the log-loss of each window's model on the next window, and the decisions."""

import altair as alt
import polars as pl

from ttf.display.charts.encodings import colour_by, pick_columns, tooltips
from ttf.display.charts.figure import Figure, Study, empty_figure, fit_width, make_chart, make_figure
from ttf.display.charts.text import make_labels
from ttf.display.charts.theme import ACCENT, CANCELLED, INFRA, INK, THIRD
from ttf.engine.words import plural
from ttf.records.inputs import Inputs

MOST_WINDOWS, FEWEST_WINDOWS = 40, 2
# Column -> name, in the order of the legend; the last is drawn on top.
MODELS = {
    "log_loss_base_rate": "base rate",
    "log_loss_current": "model in use",
    "log_loss_cold": "trained from nothing",
    "log_loss_new": "new model",
}
COLOURS = dict(zip(MODELS.values(), (CANCELLED, INFRA, THIRD, ACCENT), strict=True))
PROMOTED, NOT_PROMOTED = "promoted", "not promoted"
TITLE = "Log-loss on the next window"


def model_lineage(inputs: Inputs, study: Study) -> Figure:
    """Draw a line for each of new model, model from nothing, model in use and base rate; decisions as points."""
    table = inputs["model_lineage"]
    tested = table.filter(pl.col("log_loss_new").is_not_null()).tail(MOST_WINDOWS)
    if tested.height < FEWEST_WINDOWS:
        return empty_figure(TITLE, f"fewer than {FEWEST_WINDOWS} models have been tested on a later window")
    names = make_labels(table["window"])
    windows = [names[window] for window in tested["window"]]
    rows, points = [], []
    for row in tested.iter_rows(named=True):
        cells = {"window": names[row["window"]], "tested_on": names[row["tested_on"]]} | pick_columns(row, n="n_test")
        losses = {name: row[column] for column, name in MODELS.items() if row[column] is not None}
        rows += [cells | {"model": name, "log_loss": loss} for name, loss in losses.items()]
        decision = PROMOTED if row["decision"] == PROMOTED else NOT_PROMOTED
        points.append(cells | {"decided": decision, "log_loss": row["log_loss_new"]} | pick_columns(row, "decision"))
    x = alt.X("window:N", sort=windows, title="Trained after", axis=alt.Axis(labelAngle=-60, labelLimit=140))
    y = alt.Y("log_loss:Q", title="Log-loss", scale=alt.Scale(zero=False))
    tooltip = tooltips("window", tested_on="tested on")
    tooltip += [*tooltips(form=",.3~g", log_loss="log-loss"), *tooltips(form=",", n="n")]
    colour = colour_by("model", COLOURS, alt.Legend(title=None, orient="bottom", columns=4), ordered=True)
    lines = make_chart("losses").encode(x=x, y=y, color=colour, tooltip=[*tooltips("model"), *tooltip])
    lines = lines.mark_line(strokeWidth=1.8, point={"size": 14})
    shapes = alt.Scale(domain=[PROMOTED, NOT_PROMOTED], range=["circle", "cross"])
    shape = alt.Shape("decided:N", scale=shapes, legend=alt.Legend(title=None, orient="bottom"))
    marks = make_chart("decisions").encode(x=x, y=y, shape=shape, tooltip=[*tooltips("decision"), *tooltip])
    marks = marks.mark_point(size=130, strokeWidth=1.8, color=INK)
    promoted = sum(point["decided"] == PROMOTED for point in points)
    caption = f"n = {plural(len(points), 'window')}, {promoted} promoted."
    if n_untested := table.height - tested.height:
        caption += f" {plural(n_untested, 'window')} without a test not drawn."
    return make_figure(
        fit_width(alt.layer(lines, marks), study, 260),
        {"losses": rows, "decisions": points},
        study,
        title=TITLE,
        subtitle=f"Mean over the {study.units} of the next window that ended; lower is better",
        caption=caption,
        alt_text=f"{TITLE}: lines of {', '.join(MODELS.values())}, over {plural(len(points), 'window')}.",
    )


CHARTS = {"model_lineage": model_lineage}
