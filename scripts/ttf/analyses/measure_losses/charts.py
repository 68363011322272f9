"""What failures cost by size of the run, how far they come from a few users, and what would have saved some of it."""

import altair as alt
import polars as pl

from ttf.analyses.measure_losses.what_if import NO_CERTAIN_RETRY, NO_RETRY, TRIAL
from ttf.charts.axes import percent_axis
from ttf.charts.encodings import coloured, tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.text import capital, count, duration, gpu_hours, gpus_label, listed, percent, plural, significant
from ttf.charts.theme import CATEGORY_COLOURS, FAINT, INK, OUTCOME_COLOURS
from ttf.runs import PROXY

_FIRST, _SECOND = "by failures", "by preemptions (upper bound)"
_INFRA, _OTHER = "runs that ended in an infra failure", "other failed runs"
_PROXIED = "failed runs"
_HOURS = ",.6~g"
_FAILED_COLOURS = (OUTCOME_COLOURS["failure"], "#E8A87C")
_WHAT_IF_WIDTH = 470
_SAVED, _COST, _NET = "saved", "cost of the trials", "net"


def lost_work(given, study: Study) -> Figure:
    """GPU hours lost since the last checkpoint, and in failed runs as a whole, by size of the run."""
    by_gpus, what = given["lost_work"], "GPU hours lost to failures by size"
    if not by_gpus["failed_runs"].sum() and not by_gpus["infra_failures"].sum():
        return nothing_to_draw(what, f"no {study.unit} has run and failed")
    if not by_gpus["failed_gpu_hours"].sum() and not by_gpus["first_order_gpu_hours"].sum():
        return nothing_to_draw(what, "no failed run asked for a GPU and has a known run time")
    shown = by_gpus.filter(pl.col("gpus_high") > 0)
    proxy = shown["infra_basis"][0] == PROXY
    preemption = shown["second_order_gpu_hours"].sum() > 0
    lost = {_FIRST: ("first_order_gpu_hours", "infra_failures")}
    if preemption:
        lost[_SECOND] = ("second_order_gpu_hours", "preemptions")
    failed = {_INFRA: ("infra_gpu_hours", "infra_failures"), _OTHER: ("other_gpu_hours", "other_runs")}
    if proxy:
        failed = {_PROXIED: ("failed_gpu_hours", "failed_runs")}
    order = [gpus_label(*ends) for ends in shown.select("gpus_low", "gpus_high").iter_rows()]
    panels, datasets = [], {}
    for name, heading, parts, colours in (
        ("lost", "Lost since the last checkpoint", lost, CATEGORY_COLOURS),
        ("failed", "Whole GPU time of failed runs", failed, _FAILED_COLOURS),
    ):
        rows = _parts(shown, parts)
        if any(row["hours"] for row in rows):
            panels.append(_stacked(name, heading, list(parts), colours, order))
            datasets[name] = rows
    interval = duration(shown["checkpoint_interval_s"][0])
    runs, failures = by_gpus["runs"].sum(), by_gpus["infra_failures"].sum() - by_gpus["infra_without_time"].sum()
    caption = (
        f"Lost: the smaller of the run time and half of {interval}, times GPUs, over "
        f"{count(failures, 'failure' if proxy else 'infra failure')} with a known run time"
        f"{' (a proxy: the trace does not tell infra failures from others)' if proxy else ''}; "
        f"n = {count(runs, 'run')}, {by_gpus['failed_runs'].sum():,} failed. GPUs of a run: a share of one counts as 1."
    )
    if preemption:
        caption += f" {count(by_gpus['preemptions'].sum(), 'run')} preempted."
    if unseen := by_gpus["failed_without_time"].sum():
        add = "adds" if unseen == 1 else "add"
        caption += f" {count(unseen, 'failed run')} without a known run time {add} nothing."
    title = _lost_title(shown, proxy)
    return figure(
        alt.hconcat(*panels, spacing=26).resolve_scale(color="independent"),
        datasets,
        study,
        title=title,
        subtitle="GPU hours by GPUs of the run: the work to be done again, and all that failed runs took.",
        caption=caption,
        alt_text=f"Bars of GPU hours by number of GPUs. {title}.",
    )


def _parts(sizes: pl.DataFrame, parts: dict[str, tuple[str, str]]) -> list[dict]:
    """A row per size and part, with its place in the stack; part -> the columns of its hours and of what it counts."""
    # An infra failure may end a run that the trace does not count as failed: nothing is drawn below zero.
    sizes = sizes.with_columns(
        other_gpu_hours=(pl.col("failed_gpu_hours") - pl.col("infra_gpu_hours")).clip(0),
        other_runs=(pl.col("failed_runs") - pl.col("infra_failures")).clip(0),
    )
    return [
        {"gpus": gpus_label(row["gpus_low"], row["gpus_high"]), "runs": row["runs"], "part": part, "place": place}
        | {"hours": row[hours], "count": row[of]}
        for row in sizes.iter_rows(named=True)
        for place, (part, (hours, of)) in enumerate(parts.items())
    ]


def _stacked(dataset: str, heading: str, parts: list[str], colours: tuple, order: list[str]) -> alt.Chart:
    legend = {"title": None, "orient": "bottom", "direction": "vertical", "labelLimit": 330} if len(parts) > 1 else {}
    return (
        chart_of(dataset)
        .mark_bar()
        .encode(
            x=alt.X("gpus:O", sort=order, title="GPUs of the run", axis=alt.Axis(labelAngle=-40)),
            y=alt.Y("hours:Q", title="GPU hours", axis=alt.Axis(format=_HOURS, tickCount=5)),
            color=coloured("part", dict(zip(parts, colours, strict=False)), **legend),
            order="place:Q",
            tooltip=[
                *tips(gpus="GPUs"),
                *tips("part"),
                *tips(form=",.1f", hours="GPU hours"),
                *tips(form=",", count="of them", runs="runs of this size"),
            ],
        )
        .properties(width=280, height=240, title=alt.TitleParams(heading, fontSize=12, offset=6, anchor="start"))
    )


def _lost_title(shown: pl.DataFrame, proxy: bool) -> str:
    hours, lost = shown["gpu_hours"].sum(), shown["first_order_gpu_hours"].sum()
    took = f"Failed runs took {percent(shown['failed_gpu_hours'].sum() / hours)} of the GPU time"
    if not lost:
        return f"{took}; no work was lost {'since checkpoints' if proxy else 'to infra failures'}"
    most = shown.sort("first_order_gpu_hours", descending=True, maintain_order=True).row(0, named=True)
    label = gpus_label(most["gpus_low"], most["gpus_high"])
    lost_words = gpu_hours(lost)
    lost_words = f"by proxy, {lost_words} were lost" if proxy else f"infra failures lost {lost_words}"
    return (
        f"{took}; {lost_words} since checkpoints, "
        f"{percent(most['first_order_gpu_hours'] / lost)} of it in runs of {label} GPU{'' if label == '1' else 's'}"
    )


def failure_concentration(given, study: Study) -> Figure:
    """The share of failures that comes from the most active users (or accounts)."""
    top, what = given["failure_concentration"], "Failures by user"
    if not top.height:
        return nothing_to_draw(what, f"the trace names no owner of a {study.unit} that ended")
    if not top["failures"].sum():
        return nothing_to_draw(what, f"no {study.unit} failed")
    owner_by = "user" if "user" in top["owner_by"] else top["owner_by"][0]
    mine = top.filter(pl.col("owner_by") == owner_by)
    owners = mine["owners"][0]
    if owners < 2:
        return nothing_to_draw(what, f"the trace has one {owner_by} only")
    of_jobs = f"{study.units} of the most active"
    of_failures, of_most = "failures of the most active", "failures of those with the most failures"
    colours = {of_jobs: CATEGORY_COLOURS[0], of_failures: OUTCOME_COLOURS["failure"], of_most: FAINT}
    rows = []
    curves = {"ended": {of_jobs: "ended_share", of_failures: "failures_share"}, "failures": {of_most: "failures_share"}}
    for row in mine.iter_rows(named=True):
        at = {"top": row["owners_in_top"] / owners, "owners": row["owners_in_top"]}
        rows += [at | {"curve": name, "share": row[share]} for name, share in curves[row["ranked_by"]].items()]
    # Few owners make several rows alike: one point for each.
    rows = list({(row["curve"], row["owners"]): row for row in rows}.values())
    rows += [{"curve": name, "top": 0, "owners": 0, "share": 0} for name in colours]
    lines = (
        chart_of("curves")
        .mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=28))
        .encode(
            x=alt.X(
                "top:Q",
                scale=alt.Scale(type="sqrt", domain=[0, 1]),
                axis=percent_axis(
                    f"Share of the {plural(owner_by)} (root scale)", values=[0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1]
                ),
            ),
            y=alt.Y("share:Q", scale=alt.Scale(domain=[0, 1]), axis=percent_axis("Share of all")),
            color=coloured("curve", colours, title=None, symbolType="stroke", labelLimit=250),
            strokeDash=alt.StrokeDash("curve:N", scale=alt.Scale(domain=list(colours), range=[[1, 0], [1, 0], [4, 3]])),
            order="top:Q",
            tooltip=[*tips("curve"), *tips(form=",", owners=plural(owner_by)), *tips("share", form=".1%")],
        )
    )
    tenth = mine.filter(ranked_by="ended", top_share=0.1).row(0, named=True)
    n = count(tenth["owners_in_top"], owner_by)
    # All of them: the last row.
    ended, failures = mine["ended"].max(), mine["failures"].max()
    title = (
        f"The {n if tenth['owners_in_top'] > 1 else owner_by} with the most {study.units} (of {owners:,}) "
        f"had {percent(tenth['ended_share'])} of the {study.units} that ended and {percent(tenth['failures_share'])} "
        "of the failures"
    )
    return figure(
        lines.properties(width=420, height=290),
        {"curves": rows},
        study,
        title=title,
        subtitle=f"Share of {study.units} and of failures that comes from so many of the {plural(owner_by)}.",
        caption=(
            f"{capital(plural(owner_by))} with a {study.unit} that ended: n = {owners:,}; {count(ended, study.unit)}, "
            f"{count(failures, 'failure')}. Solid: {plural(owner_by)} by the number of their ended {study.units}; "
            "dashed: by their failures, a choice that looks at what it counts."
        ),
        alt_text=f"Three rising curves from 0 to 100 %. {title}.",
    )


def what_if(given, study: Study) -> Figure:
    """GPU hours that two pieces of advice would have saved, and what the trials would have cost."""
    what = "What would have saved GPU time"
    known = given["what_if"].filter(pl.col("net_gpu_hours").is_not_null())
    moved = known.filter((pl.col("saved_gpu_hours") > 0) | (pl.col("cost_gpu_hours") > 0))
    if not moved.height:
        return nothing_to_draw(what, f"no {study.unit} has run on several GPUs, or again after a failure")
    rows, nets = [], []
    for row in known.iter_rows(named=True):
        about = {"scenario": _scenario(row), "affected": row["affected"], "n": row["n"]}
        rows.append(about | {"part": _SAVED, "hours": row["saved_gpu_hours"]})
        rows.append(about | {"part": _COST, "hours": -row["cost_gpu_hours"]})
        nets.append(about | {"part": _NET, "hours": row["net_gpu_hours"], "label": _signed(row["net_gpu_hours"])})
    order = [row["scenario"] for row in nets]
    colours = {_SAVED: OUTCOME_COLOURS["success"], _COST: OUTCOME_COLOURS["failure"], _NET: INK}
    colour = coloured("part", colours, title=None, orient="top", symbolType="square")
    # No title of the axis would stand beside such labels.
    scenario = alt.Y("scenario:N", sort=order, title=None, axis=alt.Axis(labelLimit=230))
    tooltip = [
        *tips("scenario", "part"),
        *tips(form=",.1f", hours="GPU hours"),
        *tips(form=",", affected=f"{study.units} that it would have caught", n=f"of {study.units}"),
    ]
    hours = alt.X("hours:Q", title="GPU hours", axis=alt.Axis(format=_HOURS, tickCount=7))
    bars = chart_of("parts").mark_bar(height=15).encode(x=hours, y=scenario, color=colour, tooltip=tooltip)
    base = chart_of("nets").encode(x=hours, y=scenario, tooltip=tooltip)
    dots = base.mark_point(filled=True, size=60, shape="diamond", opacity=1).encode(color=colour)
    # Beside the plot, where a number meets neither a bar nor a name, however narrow the page.
    texts = base.mark_text(align="left", fontSize=10.5, color=INK).encode(
        x=alt.value(_WHAT_IF_WIDTH + 8), text="label:N"
    )
    zero = chart_of("zero").mark_rule(color=FAINT).encode(x="hours:Q")
    title = _what_if_title(max(nets, key=lambda net: net["hours"]), known)
    return figure(
        alt.layer(bars, zero, dots, texts).properties(width=_WHAT_IF_WIDTH, height=alt.Step(30)),
        {"parts": rows, "nets": nets, "zero": [{"hours": 0}]},
        study,
        title=title,
        subtitle="GPU hours saved, what the trials would have cost, and the net of both (diamond, and at the right).",
        caption=_what_if_caption(known, study),
        alt_text=f"Bars of GPU hours saved and spent for {listed(order)}. {title}.",
    )


def _scenario(row: dict) -> str:
    names = {NO_RETRY: "no second run after a failure", NO_CERTAIN_RETRY: "none after a deterministic failure"}
    return names.get(row["scenario"]) or f"first {duration(row['trial_s'])} on one GPU"


def _signed(hours: float) -> str:
    return f"{'+' if hours > 0 else '−' if hours < 0 else ''}{significant(abs(hours))}"


def _what_if_title(best: dict, known: pl.DataFrame) -> str:
    if best["hours"] <= 0:
        return "None of the what-ifs would have saved GPU time: the trials would have cost more than they caught"
    share = known.filter(pl.col("net_gpu_hours") == known["net_gpu_hours"].max())["net_share"][0]
    saved = f"{gpu_hours(best['hours'])}, {percent(share)} of all"
    return f"“{capital(best['scenario'])}” would have saved {saved}"


def _what_if_caption(known: pl.DataFrame, study: Study) -> str:
    caption = []
    for row in known.filter(scenario=TRIAL).head(1).iter_rows(named=True):
        caption.append(
            f"Trials: {count(row['n'], study.unit)} of more than one GPU; taken for granted that a failure would "
            "have shown on one GPU at the same time, so what is saved is an upper bound."
        )
    for row in known.filter(scenario=NO_RETRY).iter_rows(named=True):
        later = "none of them succeeded later."
        if lost := row["given_up"]:
            later = f"{lost:,} of them succeeded later, and would not have: their GPU time is not counted as saved."
        caption.append(f"Retries: {count(row['n'], study.unit)} with a failed run; {later}")
    return " ".join(caption)


CHARTS = {"lost_work": lost_work, "failure_concentration": failure_concentration, "what_if": what_if}
