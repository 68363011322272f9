"""Effective training time as measured, against the size of a run."""

import altair as alt

from ttf.charts.axes import percent_axis
from ttf.charts.encodings import tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.intervals import DASHED, by_what, shown
from ttf.charts.text import count, percent
from ttf.charts.theme import ACCENT, FAINT
from ttf.inputs import Inputs

_WIDTH_WITH_NOTES = 540


def ettr_measured(given: Inputs, study: Study) -> Figure:
    """The mean ratio of the job runs of each size with its interval, beside what the model expects of the same runs."""
    measured, rows = given["ettr_measured"], []
    if not measured.height:
        return nothing_to_draw("Measured effective training time", "no job run lasted long enough")
    measured = shown(measured)
    names = ("ettr_mean", "low", "high", "independent", "expected_ettr")
    for row in measured.iter_rows(named=True):
        label = f"{row['gpus_low']:,} to {row['gpus_high']:,}" if row["gpus_low"] < row["gpus_high"] else None
        drawn = {"size": label or f"{row['gpus_high']:,}", "runs": row["runs"], "note": f"n = {row['runs']:,}"}
        rows.append(drawn | {name: row[name] for name in names if row[name] is not None})
    runs = measured["runs"].sum()
    mean = float((measured["ettr_mean"] * measured["runs"]).sum() / runs)
    title = f"In {count(runs, 'long job run')}, {percent(mean)} of the time was work that lasts, in the mean"
    missing = sum("expected_ettr" not in row for row in rows)
    caption = f"Mean over job runs with its 95 % interval; {count(runs, 'run')}. {by_what(measured, 'runs')}"
    caption += "" if missing == len(rows) else " Diamonds: what the exact model expects of the same runs."
    y = alt.Y("size:N", sort=[row["size"] for row in rows], title="GPUs of the run")
    scale = alt.Scale(domain=[0, 1])
    x = alt.X("ettr_mean:Q", scale=scale, axis=percent_axis("Effective training time, mean over runs"))
    tooltip = [
        *tips(size="GPUs"),
        *tips("runs", form=","),
        *tips(form=".1%", ettr_mean="measured", expected_ettr="expected"),
    ]
    base = chart_of("runs").encode(y=y, tooltip=tooltip)
    with_interval = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.5, color=ACCENT)
    rules = with_interval.encode(x=alt.X("low:Q", scale=scale), x2="high", strokeDash=DASHED)
    dots = base.mark_point(filled=True, size=60, color=ACCENT, opacity=1).encode(x=x)
    expected = (
        base.transform_filter("isValid(datum.expected_ettr)")
        .mark_point(shape="diamond", size=80, filled=False, strokeWidth=1.8, color="#D55E00")
        .encode(x=alt.X("expected_ettr:Q", scale=scale))
    )
    notes = base.mark_text(align="left", dx=8, fontSize=11, color=FAINT)
    notes = notes.encode(x=alt.value(_WIDTH_WITH_NOTES), text="note:N")
    chart = alt.layer(rules, dots, expected, notes).properties(width=_WIDTH_WITH_NOTES, height=alt.Step(26))
    return figure(
        chart,
        {"runs": rows},
        study,
        title=title,
        subtitle="Points: measured, with 95 % interval"
        + ("." if missing == len(rows) else "; diamonds: expected of the same runs."),
        caption=caption,
        alt_text=f"Points with intervals by number of GPUs on an axis from 0 to 100 %. {title}.",
    )


CHARTS = {"ettr_measured": ettr_measured}
