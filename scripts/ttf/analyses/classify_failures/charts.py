"""Why attempts failed: the share of each reason in the failed attempts, and in their GPU time."""

import altair as alt
import polars as pl

from ttf.analyses.classify_failures.compute import NO_RULE, kind_of
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.text import capital, count, labels, listed, percent
from ttf.charts.theme import CANCELLED, FAILURE, INFRA, INK, THIRD
from ttf.inputs import Inputs

MOST_BARS = 8
NO_REASON = "No reason recorded"
_COLOURS = {"limit": THIRD, "infra": INFRA, "none": CANCELLED, "other": FAILURE}
_MEASURES = {"trials_share": "failed attempts", "rtf_x_demand_share": "their GPU time"}
# Of a row of bars, of the names beside them and of the words at their ends, in px.
_STEP, _NAMES, _NAMES_NARROW, _LABEL = 27, 170, 136, 40


def failed_attempts_by_reason(given: Inputs, study: Study) -> Figure:
    """Bars of reasons in one or two panels, those with the most GPU time first."""
    what = "Failed attempts by reason"
    every = given["taxonomy"].filter(pl.col("by") == "reason")
    if not every.height:
        return nothing_to_draw(what, "no attempt failed")
    measures = {name: words for name, words in _MEASURES.items() if every[name].count()}
    reasons = _of_most_time(every)
    named = labels([row["reason"] for row in reasons])
    rows = [
        {"reason": named[row["reason"]], "kind": row["kind"], "trials": row["trials"]}
        | {name: row[name] or 0 for name in measures}
        | {f"{name}_label": percent(row[name] or 0) for name in measures}
        for row in reasons
    ]
    order = [row["reason"] for row in rows]
    names = _NAMES_NARROW if study.narrow else _NAMES
    width = (study.width - names - _LABEL * len(measures) - 16 * (len(measures) - 1)) // len(measures)
    most = max(row[name] for row in rows for name in measures) or 1
    panels = []
    for place, (name, words) in enumerate(measures.items()):
        axis = None
        if place == 0:
            style = {"labelFontWeight": "bold", "labelColor": INK, "domain": False, "ticks": False, "labelPadding": 8}
            axis = alt.Axis(**style, minExtent=names, maxExtent=names, labelLimit=names - 10)
        base = chart_of("reasons").encode(
            x=alt.X(f"{name}:Q", scale=alt.Scale(domain=[0, most], nice=False), axis=None),
            y=alt.Y("reason:N", sort=order, title=None, axis=axis),
        )
        colour = alt.Color("kind:N", scale=alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values())), legend=None)
        bars = base.mark_bar(height=17, cornerRadius=1).encode(color=colour)
        shares = base.mark_text(align="left", dx=5, fontSize=12, color=INK).encode(text=f"{name}_label:N")
        heading = alt.TitleParams(words, fontSize=12, fontWeight="normal", anchor="start", frame="group", offset=6)
        panels.append((bars + shares).properties(width=width, height=_STEP * len(rows), title=heading))
    trials = int(every["trials"].sum())
    of_time = " and of their GPU time" if len(measures) > 1 else ""
    infra = "; violet: infrastructure" if any(row["kind"] == "infra" for row in rows) else ""
    spoken = [f"{row['reason']} {' and '.join(row[f'{name}_label'] for name in measures)}" for row in rows]
    return figure(
        alt.hconcat(*panels, spacing=16 + _LABEL, bounds="flush"),
        {"reasons": rows},
        study,
        title=what,
        subtitle=f"Share of failed attempts{of_time}{infra}",
        caption=f"n = {count(trials, 'failed attempt')}",
        alt_text=f"Bars of the share of failed attempts{of_time}: {listed(spoken)}.",
    )


def _of_most_time(every: pl.DataFrame) -> list[dict]:
    """The reasons with the most GPU time, or without any the commonest; the others together, in at most MOST_BARS."""
    kinds = [kind_of(*row) for row in every.select("reason", "domain").iter_rows()]
    every = every.select(
        pl.when(reason=NO_RULE).then(pl.lit(NO_REASON)).otherwise("reason").alias("reason"),
        *("trials", *_MEASURES),
        kind=pl.Series(kinds, dtype=pl.String),
    )
    ranked = every.sort(
        pl.col("rtf_x_demand_share").fill_null(0), "trials", "reason", descending=[True, True, False]
    ).to_dicts()
    if len(ranked) <= MOST_BARS:
        return [row | {"reason": capital(row["reason"])} for row in ranked]
    none = [row for row in ranked if row["kind"] == "none"]
    known = [row for row in ranked if row["kind"] != "none"]
    kept, rest = known[: MOST_BARS - 1 - len(none)], known[MOST_BARS - 1 - len(none) :]
    together = {name: sum(row[name] or 0 for row in rest) for name in ("trials", *_MEASURES)}
    shown = sorted([*kept, *none], key=ranked.index)
    other = {"reason": count(len(rest), "other reason"), "kind": "other"} | together
    return [row | {"reason": capital(row["reason"])} for row in [*shown, other]]


CHARTS = {"failed_attempts_by_reason": failed_attempts_by_reason}
