"""Cost of failures by size of the run, and how concentrated they are among few users."""

import altair as alt
import polars as pl

from ttf.display.charts.axes import percent_axis
from ttf.display.charts.encodings import colour_by, tooltips
from ttf.display.charts.figure import Figure, Study, empty_figure, fit_width, make_chart, make_figure
from ttf.display.charts.theme import ACCENT, FAILURE, FAINT, INFRA, INK, OPEN, OPEN_LINE
from ttf.engine import words
from ttf.engine.words import gpus_label, join_list, plural, plural_noun
from ttf.records.infra import PROXY
from ttf.records.inputs import Inputs

_INFRA, _OTHER, _FAILED, _NOT_FAILED = "failed: infrastructure", "failed: other", "failed, cause unknown", "not failed"
_COLOURS = {_INFRA: INFRA, _OTHER: FAILURE, _FAILED: FAILURE, _NOT_FAILED: OPEN}


def gpu_hours_by_size(inputs: Inputs, study: Study) -> Figure:
    """Draw GPU-hours of runs by size: failed by infrastructure, failed otherwise, and not failed."""
    title = "GPU-hours by job size"
    sizes = inputs["lost_work"].filter((pl.col("gpus_high") > 0) & (pl.col("gpu_hours") > 0))
    if not sizes["failed_runs"].sum() and not sizes["infra_failures"].sum():
        return empty_figure(title, f"no {study.unit} that failed has GPU time")
    # Infrastructure may end a run that the trace does not count as failed; no bar may be negative.
    has_cause = sizes["infra_basis"][0] != PROXY
    infra = pl.col("infra_gpu_hours") if has_cause else pl.lit(0.0)
    failed = pl.max_horizontal("failed_gpu_hours", infra)
    parts = {
        _INFRA: infra,
        (_OTHER if has_cause else _FAILED): failed - infra,
        _NOT_FAILED: pl.col("gpu_hours") - failed,
    }
    rows, totals = [], []
    for row in sizes.with_columns(failed=failed, **parts).iter_rows(named=True):
        gpus, bar_end = gpus_label(row["gpus_low"], row["gpus_high"]), 0.0
        for part in parts:
            if row[part] > 0:
                rows.append({"gpus": gpus, "part": part, "from": bar_end, "to": bar_end + row[part]})
                bar_end += row[part]
        share = words.share(row["failed"] / row["gpu_hours"])
        totals.append({"gpus": gpus, "hours": row["gpu_hours"], "label": share})
    drawn_parts = [part for part in parts if any(row["part"] == part for row in rows)]
    colours = [_COLOURS[part] for part in drawn_parts]
    strokes = [OPEN_LINE if part == _NOT_FAILED else _COLOURS[part] for part in drawn_parts]
    legend = alt.Legend(title=None, orient="bottom", symbolType="square", symbolStrokeWidth=1, labelFontSize=12)
    legend.columns = 2 if study.narrow else alt.Undefined
    most_hours = max(row["hours"] for row in totals)
    axis = alt.Axis(title="GPU-hours", grid=False, tickCount=4, format=".2~s" if study.narrow else ",.6~g")
    # Room for the label next to the longest bar.
    scale = alt.Scale(domain=[0, most_hours * (1.36 if study.narrow else 1.14)], nice=False)
    names = alt.Axis(domain=False, ticks=False, labelPadding=8, labelFontWeight="bold", labelColor=INK)
    y = alt.Y("gpus:N", sort=[row["gpus"] for row in totals], title="GPUs", axis=names)
    bars = make_chart("parts").encode(
        x=alt.X("from:Q", scale=scale, axis=axis),
        x2="to:Q",
        y=y,
        fill=alt.Fill("part:N", scale=alt.Scale(domain=drawn_parts, range=colours), legend=legend),
        stroke=alt.Stroke("part:N", scale=alt.Scale(domain=drawn_parts, range=strokes)),
    )
    bars = bars.mark_bar(height=15, strokeWidth=1)
    texts = make_chart("ends").encode(x="hours:Q", y=y, text="label:N")
    texts = texts.mark_text(align="left", dx=6, fontSize=12, color=INK)
    infra_note = " (by infrastructure or other cause)" if has_cause else ""
    size_texts = join_list([f"{row['gpus']}: {row['label']} failed" for row in totals])
    return make_figure(
        fit_width(bars + texts, study, 22 * len(totals) + 70),
        {"parts": rows, "ends": totals},
        study,
        title=title,
        subtitle=f"Failed attempts{infra_note} and all other attempts",
        caption=f"n = {plural(int(inputs['lost_work']['runs'].sum()), 'attempt')}",
        alt_text=f"Bars of GPU-hours by GPUs; {size_texts}.",
    )


def failure_concentration(inputs: Inputs, study: Study) -> Figure:
    """Draw the share of failures of the most active users, or accounts."""
    top, title = inputs["failure_concentration"], "Failures by user"
    if not top.height:
        return empty_figure(title, f"the trace names no owner of a {study.unit} that ended")
    if not top["failures"].sum():
        return empty_figure(title, f"no {study.unit} failed")
    owner_by = "user" if "user" in top["owner_by"] else top["owner_by"][0]
    ranking = top.filter(pl.col("owner_by") == owner_by)
    owners = ranking["owners"][0]
    if owners < 2:
        return empty_figure(title, f"the trace has one {owner_by} only")
    jobs = f"{study.units} of the most active"
    failed, ranked = "failures of the most active", "failures of those with the most failures"
    colours = {jobs: ACCENT, failed: FAILURE, ranked: FAINT}
    rows = []
    curves = {"ended": {jobs: "ended_share", failed: "failures_share"}, "failures": {ranked: "failures_share"}}
    for row in ranking.iter_rows(named=True):
        point = {"top": row["owners_in_top"] / owners, "owners": row["owners_in_top"]}
        rows += [point | {"curve": name, "share": row[share]} for name, share in curves[row["ranked_by"]].items()]
    # With few owners several rows are equal: draw each point once.
    rows = list({(row["curve"], row["owners"]): row for row in rows}.values())
    rows += [{"curve": name, "top": 0, "owners": 0, "share": 0} for name in colours]
    ticks = [0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1]
    axis = percent_axis(f"Share of the {plural_noun(owner_by)} (root scale)", values=ticks)
    legend = alt.Legend(title=None, orient="bottom", direction="vertical", symbolType="stroke", labelLimit=300)
    lines = make_chart("curves").encode(
        x=alt.X("top:Q", scale=alt.Scale(type="sqrt", domain=[0, 1]), axis=axis),
        y=alt.Y("share:Q", scale=alt.Scale(domain=[0, 1]), axis=percent_axis("Share of all")),
        color=colour_by("curve", colours, legend),
        strokeDash=alt.StrokeDash("curve:N", scale=alt.Scale(domain=list(colours), range=[[1, 0], [1, 0], [4, 3]])),
        order="top:Q",
        tooltip=[*tooltips("curve"), *tooltips(form=",", owners=plural_noun(owner_by)), *tooltips("share", form=".1%")],
    )
    lines = lines.mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=28))
    # The last row holds all owners.
    ended, failures = ranking.select(pl.max("ended", "failures")).row(0)
    tenth = ranking.filter(ranked_by="ended", top_share=0.1).row(0, named=True)
    return make_figure(
        fit_width(lines, study, 300),
        {"curves": rows},
        study,
        title=f"Failures of the most active {plural_noun(owner_by)}",
        subtitle=f"Share of ended {study.units} and of failures of the most active {plural_noun(owner_by)}",
        caption=(
            f"n = {plural(owners, owner_by)}, {plural(ended, f'ended {study.unit}')}, {plural(failures, 'failure')}. "
            "The dashed line ranks them by failures."
        ),
        alt_text=(
            f"Three rising curves from 0% to 100%. The most active {plural(tenth['owners_in_top'], owner_by)}: "
            f"{words.share(tenth['ended_share'])} of {study.units}, {words.share(tenth['failures_share'])} of failures."
        ),
    )


CHARTS = {"gpu_hours_by_size": gpu_hours_by_size, "failure_concentration": failure_concentration}
