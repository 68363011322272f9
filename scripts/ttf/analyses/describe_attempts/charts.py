"""Delays of first and later attempts, by account and by nodes; retries, the unsuccessful and run time to failure."""

from functools import partial

import altair as alt
import polars as pl

from ttf.analyses.describe_attempts.delays import ALL, FIRST, LATER
from ttf.analyses.describe_attempts.retries import PROXY
from ttf.charts.axes import percent_axis
from ttf.charts.encodings import coloured, picked, tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.intervals import DASHED, by_what, shown
from ttf.charts.text import capital, count, duration, labels, listed, percent, significant
from ttf.charts.theme import ACCENT, FAINT, ORDER_COLOURS, OUTCOME_COLOURS
from ttf.charts.time_ranges import WIDTH, placed, ranges
from ttf.inputs import Inputs
from ttf.jobs import GPU_BUCKETS, gpus_of

# A row is drawn, and a number named in a title, only if so many delays, jobs or attempts stand behind it.
FEWEST = 10
FEWEST_NAMED = 30
MOST_ACCOUNTS = 12
MOST_NODES = 12
_RETRY = " A retry is an attempt after the first."
_BY_PROXY = " By proxy: an attempt that was followed by another counts as failed, whatever ended it."
KINDS = {FIRST: "first attempt", LATER: "later attempt"}

SIZE_COLOURS = {gpus_of(bucket): ORDER_COLOURS[place] for bucket, place in zip(GPU_BUCKETS, (0, 2, 3, 5), strict=True)}


def delay_first_later(given: Inputs, study: Study) -> Figure:
    """Ranges of queueing delay by size of the job, first attempts beside later ones."""
    known = _known_delays(given, ALL, *KINDS)
    if not known.height:
        return nothing_to_draw("Queueing delay of first and later attempts", "no delay is known")
    sizes = known.filter(pl.col("gpu_bucket") != ALL)
    drawn = sizes if sizes.height else known
    names = {bucket: gpus_of(bucket) for bucket in GPU_BUCKETS} | {ALL: f"all {study.units}"}
    rows = [placed(row, names[row["gpu_bucket"]], KINDS[row["which"]]) for row in drawn.iter_rows(named=True)]
    whole = {row["which"]: row for row in known.filter(pl.col("gpu_bucket") == ALL).iter_rows(named=True)}
    medians = [f"{duration(row['p50_s'])} before a {KINDS[which]}" for which, row in whole.items()]
    title = f"Median queueing delay: {listed(medians)}"
    caption = (
        "Delay of an attempt: from the submission to the start of the first one, from the end of one to the start of "
        f"the next. n = {sum(row['n'] for row in whole.values()):,} known delays, beside each row its own."
    )
    if zeros := sum(row["zeros"] for row in whole.values()):
        caption += f" {count(zeros, 'delay')} of 0 s among them; below 1 s they stand at 1 s."
    if negative := sum(row["negative"] for row in whole.values()):
        caption += f" {count(negative, 'negative one')} left out."
    return ranges(
        rows,
        list(names.values()),
        study,
        "Queueing delay",
        f"GPUs of the {study.unit}",
        title=title,
        caption=caption,
        alt_text=f"Ranges on a logarithmic time axis by {study.unit} size, first and later attempts. {title}.",
    )


def _known_delays(given: Inputs, group_by: str, *which: str) -> pl.DataFrame:
    chosen = given["delays"].filter(group_by=group_by, zeros_kept=True)
    return chosen.filter(pl.col("which").is_in(which), pl.col("n") > 0)


def long_delays_by_account(given: Inputs, study: Study) -> Figure:
    """Share of delays above 10 minutes by account and size of the job, all attempts together."""
    what = "Long delays by account"
    known = _known_delays(given, "account", "every")
    if not known.height:
        return nothing_to_draw(what, f"no {study.unit} with a known delay has an account")
    accounts = known["group"].unique(maintain_order=True)
    shown = accounts.head(MOST_ACCOUNTS)
    names = labels(shown)
    known = known.filter(pl.col("group").is_in(shown.implode())).with_columns(long=1 - pl.col("within_600_s_share"))
    sizes = known.filter(pl.col("gpu_bucket") != ALL, pl.col("n") >= FEWEST)
    whole = known.filter(pl.col("gpu_bucket") == ALL, pl.col("n") >= FEWEST_NAMED)
    if not sizes.height:
        return nothing_to_draw(what, f"no account has {FEWEST} delays of {study.units} of one size")
    rows = [
        {"account": names[row["group"]], "gpus": gpus_of(row["gpu_bucket"]), "share": row["long"], "n": row["n"]}
        for row in sizes.iter_rows(named=True)
    ]
    present = [name for name in SIZE_COLOURS if any(row["gpus"] == name for row in rows)]
    axis = percent_axis("Attempts that waited longer than 10 min", tickCount=6)
    points = chart_of("points").mark_point(filled=True, size=70, opacity=0.85)
    points = points.encode(
        x=alt.X("share:Q", axis=axis, scale=alt.Scale(zero=True)),
        y=alt.Y("account:N", title="Account", sort=list(names.values())),
        color=coloured("gpus", {name: SIZE_COLOURS[name] for name in present}, title=None, orient="bottom"),
        shape=alt.Shape("gpus:N", scale=alt.Scale(domain=present)),
        tooltip=[*tips("account", gpus="size"), *tips("share", form=".1%"), *tips(form=",", n="attempts")],
    )
    title = "Attempts that waited longer than 10 min, by account"
    if whole.height:
        ends = whole.sort("within_600_s_share", maintain_order=True)[[0, -1]].select("group", "long").iter_rows()
        (most, share), (least, least_share) = ((names[group], percent(share)) for group, share in ends)
        title = f"{capital(share)} of the attempts in {most} waited longer than 10 min, {least_share} in {least}"
        if share == least_share:
            title = f"In each account {share} of the attempts waited longer than 10 min"
    caption = (
        f"First and later attempts together, by the GPUs of their {study.unit}; a point stands for at least {FEWEST} "
        f"attempts. The accounts with the most {study.units}."
    )
    if accounts.len() > shown.len():
        caption += f" {count(accounts.len() - shown.len(), 'more account')} in the table only."
    return figure(
        points.properties(width=WIDTH, height=alt.Step(24)),
        {"points": rows},
        study,
        title=title,
        subtitle="Share of queueing delays above 10 minutes, by account and size.",
        caption=caption,
        alt_text=f"Points for {count(shown.len(), 'account')} and up to four sizes. {title}.",
    )


def delay_by_nodes(given: Inputs, study: Study) -> Figure:
    """Ranges of the delay of first attempts by the nodes they got, of large jobs."""
    known = given["delay_by_nodes"].filter(pl.col("n") >= FEWEST)
    if not known.height:
        why = f"fewer than {FEWEST} {study.units} of 5 GPUs or more waited for one number of nodes"
        return nothing_to_draw("Queueing delay by number of nodes", why)
    drawn = known.sort("n", descending=True, maintain_order=True).head(MOST_NODES).sort("gpu_bucket", "nodes")
    rows = [
        placed(row, f"{gpus_of(row['gpu_bucket'])} on {count(row['nodes'], 'node')}")
        for row in drawn.sort(pl.col("gpu_bucket") == ">8", "nodes").iter_rows(named=True)
    ]
    named = [row for row in rows if row["n"] >= FEWEST_NAMED] or rows
    low, high = (end(named, key=lambda row: row["p90_s"]) for end in (min, max))
    title = f"Nine of ten {study.units} of {low['label']} waited at most {duration(low['p90_s'])}"
    if low is not high:
        title += f", of {high['label']} {duration(high['p90_s'])}"
    caption = f"First attempts of {study.units} of 5 GPUs and more; n beside each row, at least {FEWEST}."
    if known.height > drawn.height:
        caption += f" The {MOST_NODES} largest groups; the others are in the table only."
    return ranges(
        rows,
        [row["label"] for row in rows],
        study,
        "Queueing delay",
        "GPUs and nodes",
        title=title,
        caption=caption,
        alt_text=f"Ranges on a logarithmic time axis for {count(len(rows), 'group')}. {title}.",
    )


def by_gpus(given: Inputs, study: Study, *, estimate: str) -> Figure:
    """Mean retries, or the share of unsuccessful jobs, by GPUs of the job with 95 % intervals."""
    table, is_share = given["retries"], estimate == "unsuccessful_share"
    what = f"Unsuccessful {study.units} by GPUs" if is_share else f"Retries by GPUs of the {study.unit}"
    prefix = "" if is_share else "retries_"
    known = shown(table, prefix=prefix).filter((pl.col("group_by") == "gpu_count") & pl.col("low").is_not_null())
    if not known.height:
        return nothing_to_draw(what, f"no {study.unit} with GPUs ended after an attempt")
    rows = [
        {"gpus": int(row["group"]), "note": f"{row['n']:,}"}
        | picked(row, "n", "low", "high", "independent", value=estimate)
        for row in known.iter_rows(named=True)
    ]
    form = ".1%" if is_share else ".3f"
    name = f"Unsuccessful {study.units}" if is_share else f"Mean retries of a {study.unit}"
    axis = percent_axis(name) if is_share else alt.Axis(title=f"Retries of a {study.unit}, mean")
    y = alt.Y("low:Q", axis=axis, scale=alt.Scale(zero=True, nice=True))
    colour = OUTCOME_COLOURS["failure"] if is_share else ACCENT
    base = chart_of("points").encode(
        x=alt.X("gpus:O", title=f"GPUs of the {study.unit}", axis=alt.Axis(labelAngle=0)),
        tooltip=[
            alt.Tooltip("gpus:O", title="GPUs"),
            *tips(form=form, value="estimate", low="from", high="to"),
            *tips(form=",", n=study.units),
        ],
    )
    marks = (
        base.mark_rule(strokeWidth=2, color=colour).encode(y=y, y2="high:Q", strokeDash=DASHED)
        + base.mark_point(filled=True, size=60, color=colour).encode(y=alt.Y("value:Q"))
        + base.mark_text(fontSize=10, color=FAINT, dy=-8).encode(y=alt.Y("high:Q"), text="note:N")
    )
    named = [row for row in rows if row["n"] >= FEWEST_NAMED] or rows
    first, last = named[0], named[-1]

    def worded(row: dict) -> str:
        value = percent(row["value"]) if is_share else significant(row["value"], 2)
        return f"{value} with {count(row['gpus'], 'GPU')}"

    title = f"{name}: {worded(first)}" + (f", {worded(last)}" if first is not last else "")
    whole = table.filter(group_by="all").row(0, named=True)
    return figure(
        marks.properties(width=560, height=210),
        {"points": rows},
        study,
        title=title,
        subtitle=f"{capital(study.units)} with a power of two of GPUs; above each point their number.",
        caption=f"{capital(study.units)} that ended after at least one attempt, cancelled ones among them (all sizes: "
        f"{whole['n']:,}). {by_what(known, study.units)}"
        + ("" if is_share else " A retry is an attempt after the first."),
        alt_text=f"Points with intervals for {count(len(rows), 'number')} of GPUs. {title}.",
    )


def runtime_to_failure(given: Inputs, study: Study) -> Figure:
    """Median, 90th and 95th percentile of the run time of failed attempts, by GPUs of the job."""
    table = given["runtime_to_failure"]
    proxy = PROXY in table["basis"]
    what = f"Run time to failure{' (by proxy)' if proxy else ''}"
    known = table.filter(pl.col("n") > 0)
    if not known.height:
        return nothing_to_draw(what, "no attempt failed after a known run time")
    names = {ALL: f"all {study.units}"} | {bucket: gpus_of(bucket) for bucket in GPU_BUCKETS}
    times = ("p50_s", "p90_s", "p95_s")
    rows = [placed(row, names[row["gpu_bucket"]], times=times) for row in known.iter_rows(named=True)]
    whole = known.row(0, named=True)
    title = (
        f"{what}: half of the failed attempts ended within {duration(whole['p50_s'])}, one in ten ran "
        f"{duration(whole['p90_s'])} or longer"
    )
    return ranges(
        rows,
        list(names.values()),
        study,
        "Run time to failure",
        f"GPUs of the {study.unit}",
        times=times,
        title=title,
        subtitle="Line: median. Filled circle: 90th percentile; open circle: 95th.",
        caption=f"Run time of attempts that failed, n beside each row.{_BY_PROXY if proxy else ''}",
        alt_text=f"Ranges on a logarithmic time axis for {count(len(rows), 'group')}. {title}.",
    )


CHARTS = {
    "delay_first_later": delay_first_later,
    "long_delays_by_account": long_delays_by_account,
    "delay_by_nodes": delay_by_nodes,
    "retries_by_gpus": partial(by_gpus, estimate="retries_mean"),
    "unsuccessful_by_gpus": partial(by_gpus, estimate="unsuccessful_share"),
    "runtime_to_failure": runtime_to_failure,
}
