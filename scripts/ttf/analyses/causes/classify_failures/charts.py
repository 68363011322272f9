"""Chart of the reasons of failed attempts: their shares of attempts and of GPU time."""

import polars as pl

from ttf.analyses.causes.classify_failures.compute import NO_RULE, failure_kind
from ttf.display.charts.encodings import pick_columns
from ttf.display.charts.figure import Figure, Study, empty_figure, make_figure
from ttf.display.charts.share_panels import add_percentages, describe_shares, draw_share_panels
from ttf.display.charts.text import make_labels
from ttf.display.charts.theme import CANCELLED, FAILURE, INFRA, THIRD
from ttf.engine.words import capitalise, plural
from ttf.records.inputs import Inputs

MOST_BARS = 8
NO_REASON = "No reason recorded"
_COLOURS = {"limit": THIRD, "infra": INFRA, "none": CANCELLED, "other": FAILURE}
_MEASURES = {"trials_share": "failed attempts", "rtf_x_demand_share": "their GPU time"}
_NAMES_WIDTH = 170


def failed_attempts_by_reason(inputs: Inputs, study: Study) -> Figure:
    """Draw a bar per reason: its share of failed attempts and, if known, of their GPU time, which ranks the reasons."""
    title = "Failed attempts by reason"
    reasons = inputs["taxonomy"].filter(pl.col("by") == "reason")
    if not reasons.height:
        return empty_figure(title, "no attempt failed")
    measures = {name: label for name, label in _MEASURES.items() if reasons[name].count()}
    shown_reasons = _rank_reasons(reasons)
    names = make_labels([row["reason"] for row in shown_reasons])
    rows = [
        {"reason": names[row["reason"]]}
        | pick_columns(row, "kind", "trials")
        | {name: row[name] or 0 for name in measures}
        for row in shown_reasons
    ]
    rows = add_percentages(rows, measures)
    attempts = int(reasons["trials"].sum())
    time_phrase = " and of their GPU time" if len(measures) > 1 else ""
    infra_note = "; violet: infrastructure" if any(row["kind"] == "infra" for row in rows) else ""
    return make_figure(
        draw_share_panels("reason", rows, measures, _COLOURS, study, _NAMES_WIDTH, bold_names=True),
        {"reasons": rows},
        study,
        title=title,
        subtitle=f"Share of failed attempts{time_phrase}{infra_note}",
        caption=f"n = {plural(attempts, 'failed attempt')}",
        alt_text=f"Bars of the share of failed attempts{time_phrase}: {describe_shares('reason', rows, measures)}.",
    )


def _rank_reasons(reasons: pl.DataFrame) -> list[dict]:
    """Return the chart's rows, a reason each, by GPU time, then attempts, descending; beyond MOST_BARS as one row."""
    kinds = [failure_kind(*row) for row in reasons.select("reason", "domain").iter_rows()]
    reasons = reasons.select(
        pl.when(reason=NO_RULE).then(pl.lit(NO_REASON)).otherwise("reason").alias("reason"),
        *("trials", *_MEASURES),
        kind=pl.Series(kinds, dtype=pl.String),
    )
    ranked = reasons.sort(
        pl.col("rtf_x_demand_share").fill_null(0), "trials", "reason", descending=[True, True, False]
    ).to_dicts()
    if len(ranked) <= MOST_BARS:
        return [row | {"reason": capitalise(row["reason"])} for row in ranked]
    unrecorded = [row for row in ranked if row["kind"] == "none"]
    recorded = [row for row in ranked if row["kind"] != "none"]
    shown_recorded, merged = recorded[: MOST_BARS - 1 - len(unrecorded)], recorded[MOST_BARS - 1 - len(unrecorded) :]
    merged_sums = {name: sum(row[name] or 0 for row in merged) for name in ("trials", *_MEASURES)}
    shown = sorted([*shown_recorded, *unrecorded], key=ranked.index)
    merged_row = {"reason": plural(len(merged), "other reason"), "kind": "other"} | merged_sums
    return [row | {"reason": capitalise(row["reason"])} for row in [*shown, merged_row]]


CHARTS = {"failed_attempts_by_reason": failed_attempts_by_reason}
