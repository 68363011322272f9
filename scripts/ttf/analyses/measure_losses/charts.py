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
    lost, failed = [], []
    for row in shown.iter_rows(named=True):
        about = {"gpus": gpus_label(row["gpus_low"], row["gpus_high"]), "runs": row["runs"]}
        lost.append(about | {"part": _FIRST, "hours": row["first_order_gpu_hours"], "count": row["infra_failures"]})
        if preemption:
            lost.append(about | {"part": _SECOND, "hours": row["second_order_gpu_hours"], "count": row["preemptions"]})
        if proxy:
            failed.append(about | {"part": _PROXIED, "hours": row["failed_gpu_hours"], "count": row["failed_runs"]})
            continue
        infra = {"part": _INFRA, "hours": row["infra_gpu_hours"], "count": row["infra_failures"]}
        # An infra failure may end a run that the trace does not count as failed: nothing is drawn below zero.
        rest = max(row["failed_gpu_hours"] - row["infra_gpu_hours"], 0.0)
        other = {"part": _OTHER, "hours": rest, "count": max(row["failed_runs"] - row["infra_failures"], 0)}
        failed += [about | infra, about | other]
    order = [row["gpus"] for row in failed if row["part"] in (_PROXIED, _INFRA)]
    parts = [_FIRST, _SECOND] if preemption else [_FIRST]
    panels, datasets = [], {}
    if any(row["hours"] for row in lost):
        panels.append(_stacked("lost", "Lost since the last checkpoint", parts, CATEGORY_COLOURS, order))
        datasets["lost"] = _placed(lost, parts)
    if any(row["hours"] for row in failed):
        of_runs = [_PROXIED] if proxy else [_INFRA, _OTHER]
        panels.append(_stacked("failed", "Whole GPU time of failed runs", of_runs, _FAILED_COLOURS, order))
        datasets["failed"] = _placed(failed, of_runs)
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
        caption += (
            f" {count(unseen, 'failed run')} without a known run time {'adds' if unseen == 1 else 'add'} nothing."
        )
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


def _placed(rows: list[dict], parts: list[str]) -> list[dict]:
    """The rows with the place of their part in a stack, from the bottom."""
    return [row | {"place": parts.index(row["part"])} for row in rows]


def _stacked(dataset: str, heading: str, parts: list[str], colours: tuple, order: list[str]) -> alt.Chart:
    scale = alt.Scale(domain=parts, range=list(colours[: len(parts)]))
    legend = alt.Legend(title=None, orient="bottom", direction="vertical", labelLimit=330) if len(parts) > 1 else None
    return (
        chart_of(dataset)
        .mark_bar()
        .encode(
            x=alt.X("gpus:O", sort=order, title="GPUs of the run", axis=alt.Axis(labelAngle=-40)),
            y=alt.Y("hours:Q", title="GPU hours", axis=alt.Axis(format=_HOURS, tickCount=5)),
            color=alt.Color("part:N", scale=scale, legend=legend),
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
    rows = []
    for row in mine.iter_rows(named=True):
        at = {"top": row["owners_in_top"] / owners, "owners": row["owners_in_top"]}
        if row["ranked_by"] == "ended":
            rows.append(at | {"curve": of_jobs, "share": row["ended_share"]})
            rows.append(at | {"curve": of_failures, "share": row["failures_share"]})
        else:
            rows.append(at | {"curve": of_most, "share": row["failures_share"]})
    # Few owners make several rows alike: one point for each.
    rows = list({(row["curve"], row["owners"]): row for row in rows}.values())
    rows += [{"curve": name, "top": 0, "owners": 0, "share": 0} for name in (of_jobs, of_failures, of_most)]
    scale = alt.Scale(
        domain=[of_jobs, of_failures, of_most], range=[CATEGORY_COLOURS[0], OUTCOME_COLOURS["failure"], FAINT]
    )
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
            color=alt.Color("curve:N", scale=scale, legend=alt.Legend(title=None, symbolType="stroke", labelLimit=250)),
            strokeDash=alt.StrokeDash(
                "curve:N", scale=alt.Scale(domain=[of_jobs, of_failures, of_most], range=[[1, 0], [1, 0], [4, 3]])
            ),
            order="top:Q",
            tooltip=[*tips("curve"), *tips(form=",", owners=plural(owner_by)), *tips("share", form=".1%")],
        )
    )
    tenth = mine.filter((pl.col("ranked_by") == "ended") & (pl.col("top_share") == 0.1)).row(0, named=True)
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
    best = max(nets, key=lambda net: net["hours"])
    return figure(
        alt.layer(bars, zero, dots, texts).properties(width=_WHAT_IF_WIDTH, height=alt.Step(30)),
        {"parts": rows, "nets": nets, "zero": [{"hours": 0}]},
        study,
        title=_what_if_title(best, known),
        subtitle="GPU hours saved, what the trials would have cost, and the net of both (diamond, and at the right).",
        caption=_what_if_caption(known, study),
        alt_text=f"Bars of GPU hours saved and spent for {listed(order)}. {_what_if_title(best, known)}.",
    )


def _scenario(row: dict) -> str:
    if row["scenario"] == TRIAL:
        return f"first {duration(row['trial_s'])} on one GPU"
    return {NO_RETRY: "no second run after a failure", NO_CERTAIN_RETRY: "none after a deterministic failure"}[
        row["scenario"]
    ]


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
    trials = known.filter(pl.col("scenario") == TRIAL)
    if trials.height:
        caption.append(
            f"Trials: {count(trials['n'][0], study.unit)} of more than one GPU; taken for granted that a failure would "
            "have shown on one GPU at the same time, so what is saved is an upper bound."
        )
    retries = known.filter(pl.col("scenario") == NO_RETRY)
    if retries.height:
        row = retries.row(0, named=True)
        later = "none of them succeeded later."
        if row["given_up"]:
            later = (
                f"{row['given_up']:,} of them succeeded later, and would not have: their GPU time is not counted as "
                "saved."
            )
        caption.append(f"Retries: {count(row['n'], study.unit)} with a failed run; {later}")
    return " ".join(caption)


CHARTS = {"lost_work": lost_work, "failure_concentration": failure_concentration, "what_if": what_if}
