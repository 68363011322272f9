"""What failures are for: the share of each reason in the failed attempts, in their time, and in their GPU time."""

import altair as alt
import polars as pl

from ttf.analyses.classify_failures.compute import NO_RULE
from ttf.charts.axes import percent_axis
from ttf.charts.encodings import coloured, labelled_bars, picked, tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.text import capital, count, labels, listed, percent

MOST_REASONS = 14
SEVERAL, NEITHER = "more than one domain", "unmatched, or others"
# Okabe & Ito 2008, one per domain.
_COLOURS = {
    "user program": "#E69F00",
    "system software": "#0072B2",
    "hardware": "#D55E00",
    SEVERAL: "#CC79A7",
    NEITHER: "#999999",
}
_MEASURES = {
    "trials_share": "share of trials",
    "rtf_total_share": "share of run time",
    "rtf_x_demand_share": "share of run time × GPUs",
}


def taxonomy(given, study: Study) -> Figure:
    """The rows of taxonomy.csv by reason: three panels, coloured by domain."""
    table = given["taxonomy"]
    every = table.filter(pl.col("by") == "reason")
    if not every.height:
        return nothing_to_draw("Reasons of failures", "no attempt failed")
    reasons = every.filter(pl.col("reason") != NO_RULE)
    largest = pl.max_horizontal(*_MEASURES).fill_null(0)
    kept = reasons.sort(largest, pl.col("trials"), descending=True, maintain_order=True).head(MOST_REASONS)
    drawn = [*reasons.join(kept, on="reason", how="semi", maintain_order="left").iter_rows(named=True)]
    rest = reasons.join(kept, on="reason", how="anti", maintain_order="left")
    if rest.height:
        # The shares of several reasons together, none where none of them has one.
        sums = {name: rest[name].sum() if rest[name].count() else None for name in (*_MEASURES, "trials")}
        drawn.append({"reason": count(rest.height, "other reason"), "domain": None} | sums)
    drawn += every.filter(pl.col("reason") == NO_RULE).iter_rows(named=True)
    shown = labels([row["reason"] for row in drawn])
    measures = [name for name in _MEASURES if every[name].count()]
    rows = [
        {"reason": shown[row["reason"]], "domains": row["domain"] or "not known", "domain": _colour(row["domain"])}
        | {"measure": _MEASURES[name], "label": percent(row[name])}
        | picked(row, "trials", share=name)
        for row in drawn
        for name in measures
        if row[name] is not None
    ]
    domains = {name: _COLOURS[name] for name in _COLOURS if name in {row["domain"] for row in rows}}
    # Room for the label beside the longest bar.
    scale = alt.Scale(domain=[0, 1.3 * max(row["share"] for row in rows)])
    base = chart_of("reasons").encode(
        x=alt.X("share:Q", scale=scale, axis=percent_axis(tickCount=3)),
        y=alt.Y("reason:N", title=None, sort=list(shown.values()), axis=alt.Axis(labelLimit=160)),
        tooltip=[*tips("reason", domains="domain", label="share"), *tips(form=",", trials="failed attempts")],
    )
    colour = coloured("domain", domains, title="domain", orient="bottom")
    bars = labelled_bars(base, 13, colour, 10, dx=3).properties(width=540 // len(measures) - 26, height=alt.Step(19))
    header = alt.Header(labelFontWeight="bold", labelFontSize=11, labelLimit=190)
    panels = alt.Column("measure:N", sort=[_MEASURES[name] for name in measures], title=None, header=header)
    trials, timed = int(every["trials"].sum()), int(every["n"].sum())
    caption = f"n = {count(trials, 'failed attempt')}, {timed:,} with a known run time. A trial is a failed attempt."
    if "rtf_x_demand_share" in measures:
        caption += " Run time × GPUs counts the attempts whose GPUs are known."
    title = _title(table, trials)
    spoken = [f"{shown[row['reason']]} {percent(row['trials_share'])}" for row in drawn[:5]]
    return figure(
        bars.facet(column=panels, spacing=28),
        {"reasons": rows},
        study,
        title=title,
        subtitle="Reasons by the rules of the taxonomy; the first that matches an attempt counts.",
        caption=caption,
        alt_text=f"Bars of the shares of reasons in the failed attempts: {listed(spoken)}. {title}.",
    )


def _colour(domain: str | None) -> str:
    if domain is None:
        return NEITHER
    return domain if domain in _COLOURS else SEVERAL


def _title(table: pl.DataFrame, trials: int) -> str:
    reasons = table.filter((pl.col("by") == "reason") & (pl.col("reason") != NO_RULE))
    if not reasons.height:
        return f"No rule matches any of {count(trials, 'failed attempt')}"
    first = reasons.row(0, named=True)
    equal = int((reasons["trials"] == first["trials"]).sum())
    if equal > 1:
        share = percent(first["trials_share"])
        return f"No single reason is the commonest: {equal} have {share} of failed attempts each"
    title = f"{capital(first['reason'])} is the commonest reason: {percent(first['trials_share'])} of failed attempts"
    if first["rtf_x_demand_share"] is not None:
        title += f", {percent(first['rtf_x_demand_share'])} of their GPU time"
    return title


CHARTS = {"taxonomy": taxonomy}
