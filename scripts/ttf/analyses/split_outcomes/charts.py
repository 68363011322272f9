"""How jobs ended: shares by outcome, and how long the jobs of each outcome ran."""

import altair as alt
import polars as pl

from ttf.charts.axes import log_time, on_log_time, percent_axis
from ttf.charts.encodings import coloured, labelled_bars, picked, tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.text import capital, count, duration, gpu_hours, listed, percent
from ttf.charts.theme import OUTCOME_COLOURS
from ttf.inputs import Inputs

_DID = {
    "success": "succeeded",
    "cancelled": "were cancelled",
    "unknown": "ended with no result recorded",
    "running": "are running",
    "waiting": "are waiting",
}


def outcome_shares(given: Inputs, study: Study) -> Figure:
    """Share of jobs and share of GPU time by outcome."""
    outcomes = given["outcomes"]
    total = outcomes["jobs"].sum()
    if not total:
        return nothing_to_draw("Shares by outcome", f"the trace has no {study.unit}")
    has_time = outcomes["gpu_hours_share"].count() > 0
    measures = {f"share of {study.units}": "jobs_share"}
    measures |= {"share of GPU time": "gpu_hours_share"} if has_time else {}
    rows = [
        {"measure": measure, "label": percent(row[column])} | picked(row, "outcome", "jobs", "gpu_hours", share=column)
        for row in outcomes.iter_rows(named=True)
        for measure, column in measures.items()
        if row[column] is not None
    ]
    base = chart_of("shares").encode(
        # Room for the label beside a bar of 100 %.
        x=alt.X("share:Q", scale=alt.Scale(domain=[0, 1.12]), axis=percent_axis(values=[0, 0.25, 0.5, 0.75, 1])),
        y=alt.Y("outcome:N", title=None, sort=list(OUTCOME_COLOURS)),
        tooltip=[
            *tips("outcome", label="share"),
            *tips(form=",", jobs=study.units),
            *tips(form=",.1f", gpu_hours="GPU hours"),
        ],
    )
    width = 285 if has_time else 560
    bars = labelled_bars(base, 22, coloured("outcome", OUTCOME_COLOURS), 11)
    panels = alt.Column("measure:N", sort=list(measures), title=None, header=alt.Header(labelFontWeight="bold"))
    by_outcome = {row["outcome"]: row for row in outcomes.iter_rows(named=True)}
    caption = f"n = {count(total, study.unit)}"
    if has_time:
        caption += (
            f", {gpu_hours(outcomes['gpu_hours'].sum(), 4)}. GPU time is GPUs asked for times the time a "
            f"{study.unit} was seen to run (a running {study.unit}: so far)."
        )
        if "unknown" in by_outcome:
            caption += " Unknown: ended, result not recorded."
        started = outcomes.filter(pl.col("outcome") != "waiting")
        if unseen := started["jobs"].sum() - started["n"].sum():
            verb = "adds" if unseen == 1 else "add"
            caption += f" {count(unseen, study.unit)} without a known run time {verb} no GPU time."
    else:
        caption += ". No GPU time was seen."

    def spoken(column: str) -> str:
        return listed([f"{name} {percent(row[column])}" for name, row in by_outcome.items()])

    alt_text = f"Bars of the share of {study.units} by outcome: {spoken('jobs_share')}."
    if has_time:
        alt_text += f" Of GPU time: {spoken('gpu_hours_share')}."
    return figure(
        bars.properties(width=width, height=30 * outcomes.height).facet(column=panels, spacing=24),
        {"shares": rows},
        study,
        title=_shares_title(by_outcome, study),
        subtitle=f"Every {study.unit} of the trace by its outcome" + (", and its GPU time." if has_time else "."),
        caption=caption,
        alt_text=alt_text,
    )


def _shares_title(by_outcome: dict, study: Study) -> str:
    failure = by_outcome.get("failure", {"jobs": 0, "jobs_share": 0.0, "gpu_hours_share": None})
    if not failure["jobs"]:
        most = max(by_outcome.values(), key=lambda row: row["jobs"])
        return f"No {study.unit} failed; {percent(most['jobs_share'])} {_DID[most['outcome']]}"
    if failure["jobs_share"] == 1:
        return f"Every {study.unit} ended in failure"
    title = f"{percent(failure['jobs_share'])} of {study.units} ended in failure"
    if failure["gpu_hours_share"] is not None and failure["n"]:
        they = "they" if failure["n"] == failure["jobs"] else "those with a known run time"
        title += f"; {they} took {percent(failure['gpu_hours_share'])} of the GPU time"
    return capital(title)


def runtime_distribution(given: Inputs, study: Study) -> Figure:
    """The share of each outcome's jobs that ran at most so long."""
    quantiles, outcomes = given["runtime_quantiles"], given["outcomes"]
    if not quantiles.height:
        return nothing_to_draw("Run times by outcome", f"no {study.unit} has a known run time")
    # Of equal run times the highest share is the curve, and the first row where it rises from; those between only
    # repeat its vertical line.
    step = pl.struct("outcome", "runtime_s")
    drawn = quantiles.filter((pl.col("share") == 0) | (step != step.shift(-1)).fill_null(True))
    drawn = drawn.with_columns(pl.col("runtime_s").cast(pl.Float64))
    rows = [row | {"x": on_log_time(row["runtime_s"])} for row in drawn.iter_rows(named=True)]
    present = {name: colour for name, colour in OUTCOME_COLOURS.items() if name in set(quantiles["outcome"])}
    axis = percent_axis(f"Share of {study.units} of the outcome")
    lines = (
        chart_of("quantiles")
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=log_time([row["x"] for row in rows], "Run time (logarithmic)"),
            y=alt.Y("share:Q", scale=alt.Scale(domain=[0, 1]), axis=axis),
            color=coloured("outcome", present, title="outcome", symbolType="stroke"),
        )
    )
    points = lines.mark_point(opacity=0, size=50).encode(
        tooltip=[
            *tips("outcome"),
            *tips(form=",", runtime_s="run time (s)"),
            *tips(form=".1%", share="share with at most this run time"),
            *tips(form=",", n="n"),
        ]
    )
    known = dict(quantiles.select("outcome", "n").unique(maintain_order=True).iter_rows())
    totals = dict(outcomes.select("outcome", "jobs").iter_rows())
    of = {name: "" if known[name] == totals.get(name, known[name]) else f" of {totals[name]:,}" for name in present}
    parts = [f"{name} {known[name]:,}{of[name]}" for name in present]
    caption = (
        f"{study.units.capitalize()} with a known run time: {listed(parts)}. Empirical distribution at 201 quantiles "
        "(nearest rank) of each outcome. Run times of 0 s stand at 1 s."
    )
    if "running" in present:
        caption += f" A running {study.unit} counts with the time observed so far."
    if "unknown" in present:
        caption += " Unknown: ended, result not recorded."
    title = _medians_title(dict(outcomes.select("outcome", "runtime_median_s").iter_rows()), study)
    return figure(
        (lines + points).properties(width=590, height=300),
        {"quantiles": rows},
        study,
        title=title,
        subtitle=f"Share of {study.units} of each outcome that ran at most so long.",
        caption=caption,
        alt_text=f"Cumulative curves of run time by outcome on a logarithmic time axis. {title}.",
    )


def _medians_title(medians: dict[str, float | None], study: Study) -> str:
    done = {"failure": "failed", "success": "successful"}
    known = {word: medians[name] for name, word in done.items() if medians.get(name) is not None}
    if not known:
        return f"No {study.unit} that succeeded or failed has a known run time"
    first, *others = [f"{word} {study.units} ended within {duration(median)}" for word, median in known.items()]
    more = [other.replace(f" {study.units} ended", " ones") for other in others]
    return f"Half of the {first}" + "".join(f", half of the {other}" for other in more)


CHARTS = {"outcome_shares": outcome_shares, "runtime_distribution": runtime_distribution}
