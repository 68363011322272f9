"""Why attempts failed: the share of each reason in the failed attempts, and in their GPU time."""

import polars as pl

from ttf.analyses.causes.classify_failures.compute import NO_RULE, kind_of
from ttf.display.charts.encodings import picked
from ttf.display.charts.figure import Figure, Study, figure, nothing_to_draw
from ttf.display.charts.share_panels import add_percentages, describe_shares, draw_share_panels
from ttf.display.charts.text import labels
from ttf.display.charts.theme import CANCELLED, FAILURE, INFRA, THIRD
from ttf.engine.words import capital, plural
from ttf.records.inputs import Inputs

MOST_BARS = 8
NO_REASON = "No reason recorded"
_COLOURS = {"limit": THIRD, "infra": INFRA, "none": CANCELLED, "other": FAILURE}
_MEASURES = {"trials_share": "failed attempts", "rtf_x_demand_share": "their GPU time"}
_NAMES_WIDTH = 170


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
        {"reason": named[row["reason"]]} | picked(row, "kind", "trials") | {name: row[name] or 0 for name in measures}
        for row in reasons
    ]
    rows = add_percentages(rows, measures)
    trials = int(every["trials"].sum())
    of_time = " and of their GPU time" if len(measures) > 1 else ""
    infra = "; violet: infrastructure" if any(row["kind"] == "infra" for row in rows) else ""
    return figure(
        draw_share_panels("reason", rows, measures, _COLOURS, study, _NAMES_WIDTH, labelFontWeight="bold"),
        {"reasons": rows},
        study,
        title=what,
        subtitle=f"Share of failed attempts{of_time}{infra}",
        caption=f"n = {plural(trials, 'failed attempt')}",
        alt_text=f"Bars of the share of failed attempts{of_time}: {describe_shares('reason', rows, measures)}.",
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
    other = {"reason": plural(len(rest), "other reason"), "kind": "other"} | together
    return [row | {"reason": capital(row["reason"])} for row in [*shown, other]]


CHARTS = {"failed_attempts_by_reason": failed_attempts_by_reason}
