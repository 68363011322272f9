"""The account of all GPU hours, from the whole to its parts."""

import altair as alt
import polars as pl

from ttf.analyses.lost import account_gpu_hours as category
from ttf.analyses.lost.account_gpu_hours import UNUSED
from ttf.analyses.lost.account_gpu_hours.category_labels import LABELS
from ttf.display.charts.axes import percent_axis
from ttf.display.charts.encodings import coloured, tips
from ttf.display.charts.figure import Figure, Study, chart_of, figure, fitted, nothing_to_draw
from ttf.display.charts.theme import CANCELLED, FAILURE, INFRA, INK, SUCCESS, THIRD
from ttf.engine import words
from ttf.engine.words import gpu_hours, listed
from ttf.records.inputs import Inputs

_KINDS = {"productive": SUCCESS, "failed": FAILURE, "infrastructure": INFRA, "other use": THIRD, "not used": CANCELLED}
_KIND_OF = {
    category.PRODUCTIVE: "productive",
    **dict.fromkeys((category.FAILED, category.FAILED_UNRECORDED, category.TIME_LIMIT), "failed"),
    **dict.fromkeys((category.INFRA_KEPT, category.INFRA_LOST, category.DOWN), "infrastructure"),
}


def gpu_hours_account(given: Inputs, study: Study) -> Figure:
    """Each category of GPU hours as a step from 0 to all of them."""
    what = "Where the GPU hours went"
    every = given["ledger"].filter(scope_by="all")
    known = every.filter(pl.col("gpu_hours") > 0)
    if not known.height:
        return nothing_to_draw(what, "no GPU time is known")
    total, above = every["gpu_hours"].sum(), every["gpu_hours"].clip(upper_bound=0).sum()
    rows, at = [], 0.0
    for row in known.iter_rows(named=True):
        of, share = row["category"], row["share"]
        kind = _KIND_OF.get(of, "not used" if of in UNUSED else "other use")
        rows.append({"category": LABELS[of], "kind": kind, "from": at, "to": at + share, "label": words.share(share)})
        rows[-1] |= {"hours": row["gpu_hours"], "key": f"ledger.{of}.share"}
        at += share
    is_all = known["category"].is_in(UNUSED).any()
    whole = "all GPU hours of the window" if is_all else "the GPU hours used: how many GPUs there are is not known"
    present = {kind: colour for kind, colour in _KINDS.items() if any(row["kind"] == kind for row in rows)}
    scale = alt.Scale(domain=[0, max(1, at) * 1.12])
    y = alt.Y("category:N", sort=None, title=None, axis=alt.Axis(labelLimit=260, domain=False, ticks=False))
    base = chart_of("parts")
    bars = base.mark_bar(height=15).encode(
        x=alt.X("from:Q", scale=scale, axis=percent_axis(f"Share of {whole}", values=[0, 0.25, 0.5, 0.75, 1])),
        x2="to:Q",
        y=y,
        color=coloured("kind", present, title=None, orient="bottom", columns=5),
        tooltip=[*tips("category"), *tips(form=",.0f", hours="GPU-hours")],
    )
    texts = base.mark_text(align="left", dx=5, fontSize=12, color=INK).encode(x="to:Q", y=y, text="label:N")
    beyond = f". The bars reach beyond 100%: {gpu_hours(-above)} are used above capacity" if above else ""
    spoken = listed([f"{row['category']}: {row['label']}" for row in rows])
    return figure(
        fitted(bars + texts, study, 22 * len(rows) + 70),
        {"parts": rows},
        study,
        title=what,
        subtitle=f"Each category as a share of {whole}",
        caption=f"n = {gpu_hours(total)}{beyond}",
        alt_text=f"Bars, each beginning where the one above ends; {spoken}.",
    )


CHARTS = {"gpu_hours_account": gpu_hours_account}
