"""Chart of all GPU hours by category, each bar starting where the one above ends."""

import altair as alt
import polars as pl

from ttf.analyses.lost import account_gpu_hours as category
from ttf.analyses.lost.account_gpu_hours import UNUSED
from ttf.analyses.lost.account_gpu_hours.category_labels import LABELS
from ttf.display.charts.axes import percent_axis
from ttf.display.charts.encodings import colour_by, tooltips
from ttf.display.charts.figure import Figure, Study, empty_figure, fit_width, make_chart, make_figure
from ttf.display.charts.theme import CANCELLED, FAILURE, INFRA, INK, SUCCESS, THIRD
from ttf.engine import words
from ttf.engine.words import gpu_hours, join_list
from ttf.records.inputs import Inputs

_KINDS = {"productive": SUCCESS, "failed": FAILURE, "infrastructure": INFRA, "other use": THIRD, "not used": CANCELLED}
_KIND_BY_CATEGORY = {
    category.PRODUCTIVE: "productive",
    **dict.fromkeys((category.FAILED, category.FAILED_UNRECORDED, category.TIME_LIMIT), "failed"),
    **dict.fromkeys((category.INFRA_KEPT, category.INFRA_LOST, category.DOWN), "infrastructure"),
}


def gpu_hours_account(inputs: Inputs, study: Study) -> Figure:
    """Draw each category of GPU hours as a step from 0 to all of them."""
    title = "Where the GPU hours went"
    ledger = inputs["ledger"].filter(scope_by="all")
    positive_rows = ledger.filter(pl.col("gpu_hours") > 0)
    if not positive_rows.height:
        return empty_figure(title, "no GPU time is known")
    hours = ledger["gpu_hours"]
    total, above = float(hours.sum()), float(hours.clip(upper_bound=0).sum())
    rows, start = [], 0.0
    for row in positive_rows.iter_rows(named=True):
        name, share = row["category"], row["share"]
        kind = _KIND_BY_CATEGORY.get(name, "not used" if name in UNUSED else "other use")
        rows.append({"category": LABELS[name], "kind": kind, "from": start, "to": start + share})
        rows[-1] |= {"label": words.share(share), "hours": row["gpu_hours"], "key": f"ledger.{name}.share"}
        start += share
    is_full = positive_rows["category"].is_in(UNUSED).any()
    whole = "all GPU hours of the window" if is_full else "the GPU hours used: how many GPUs there are is not known"
    present = {kind: colour for kind, colour in _KINDS.items() if any(row["kind"] == kind for row in rows)}
    scale = alt.Scale(domain=[0, max(1, start) * 1.12])
    y = alt.Y("category:N", sort=None, title=None, axis=alt.Axis(labelLimit=260, domain=False, ticks=False))
    base = make_chart("parts")
    bars = base.mark_bar(height=15).encode(
        x=alt.X("from:Q", scale=scale, axis=percent_axis(f"Share of {whole}", values=[0, 0.25, 0.5, 0.75, 1])),
        x2="to:Q",
        y=y,
        color=colour_by("kind", present, alt.Legend(title=None, orient="bottom", columns=5)),
        tooltip=[*tooltips("category"), *tooltips(form=",.0f", hours="GPU-hours")],
    )
    texts = base.mark_text(align="left", dx=5, fontSize=12, color=INK).encode(x="to:Q", y=y, text="label:N")
    beyond = f". The bars reach beyond 100%: {gpu_hours(-above)} are used above capacity" if above else ""
    alt_rows = join_list([f"{row['category']}: {row['label']}" for row in rows])
    return make_figure(
        fit_width(bars + texts, study, 22 * len(rows) + 70),
        {"parts": rows},
        study,
        title=title,
        subtitle=f"Each category as a share of {whole}",
        caption=f"n = {gpu_hours(total)}{beyond}",
        alt_text=f"Bars, each beginning where the one above ends; {alt_rows}.",
    )


CHARTS = {"gpu_hours_account": gpu_hours_account}
