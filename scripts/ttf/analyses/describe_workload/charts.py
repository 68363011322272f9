"""Run times and delays by kind of job, requests against use, submissions, roles, and the load of the machines."""

from functools import partial

import altair as alt
import polars as pl

from ttf.analyses.describe_workload.population import WEEKDAYS
from ttf.analyses.describe_workload.workload import MOST_ACCOUNTS
from ttf.charts.axes import percent_axis
from ttf.charts.encodings import coloured, picked, side_notes, tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.intervals import DASHED, by_what, shown
from ttf.charts.text import capital, count, duration, labels, percent, significant
from ttf.charts.theme import ACCENT, FAINT, OUTCOME_COLOURS
from ttf.charts.time_ranges import WIDTH, placed, ranges
from ttf.inputs import Inputs
from ttf.jobs import gpus_of

MOST_GROUPS = 20
# A median is named in a title only if at least so many jobs stand behind it.
FEWEST = 30
WHAT = {"runtime_s": ("Run time", "run time"), "queue_s": ("Queueing delay", "delay")}
RESOURCES = {"cpu": "CPU", "gpu": "GPU", "memory": "memory"}
BY = {"gpus": "GPUs of the {}", "gpu_type": "GPU type", "gpu_request": "GPU request", "account": "account"}
MOST_ROLES = 24
MOST_KINDS = 12
# What of the machines is drawn, and its axis.
LOADS = {"cpu": "CPU use (%)", "gpu": "GPU use (%)", "workers": "workers at a time"}


def time_ranges(given: Inputs, study: Study, quantity: str, group_by: str) -> Figure:
    """Quartiles, median, 90th and 95th percentile of a time by kind of job, all outcomes together."""
    name, short = WHAT[quantity]
    by = BY[group_by].format(study.unit)
    known = given["percentiles"].filter(quantity=quantity, outcome_set="all", group_by=group_by)
    if not known.height:
        return nothing_to_draw(f"{name} by {by}", f"no {study.unit} with a known {short} has a value there")
    if group_by in ("gpu_type", "account") and known.height == 1:
        return nothing_to_draw(f"{name} by {by}", f"all {study.units} with a known {short} have one {by}")
    # Buckets keep their order; others stand by size of the group.
    drawn = known if group_by in ("gpus", "gpu_request") else known.sort("n", descending=True, maintain_order=True)
    drawn = drawn.head(MOST_GROUPS)
    names = labels(drawn["group"])
    rows = [placed(row, names[row["group"]]) for row in drawn.iter_rows(named=True)]
    title = _title(drawn, names, name, group_by, study)
    caption = (
        f"{name} of the {study.units} of each kind, whatever their outcome; n = "
        f"{count(drawn['n'].sum(), study.unit)} with a known {short}, beside each row its own."
    )
    if known.height > drawn.height:
        caption += f" The {MOST_GROUPS} largest kinds; {count(known.height - drawn.height, 'smaller one')} left out."
    if group_by == "account" and drawn.height == MOST_ACCOUNTS:
        # The table has no more of them, so how many are left out is not known here.
        caption += f" The {MOST_ACCOUNTS} accounts with the most {study.units}."
    if drawn["p25_s"].min() < 1:
        caption += " Times below 1 s stand at 1 s."
    return ranges(
        rows,
        list(names.values()),
        study,
        name,
        capital(by),
        study.units,
        title=title,
        caption=caption,
        alt_text=f"Ranges on a logarithmic time axis, a row for each of {count(len(rows), 'kind')}. {title}.",
    )


def _title(drawn: pl.DataFrame, names: dict[str, str], name: str, group_by: str, study: Study) -> str:
    """The lowest and the highest median, or the one there is."""
    large = drawn.filter(pl.col("n") >= FEWEST)
    named = large if large.height else drawn
    (low, lowest), (high, highest) = named.sort("p50_s", maintain_order=True)[[0, -1]].select("group", "p50_s").rows()
    if lowest == highest:
        return f"Median {name.lower()}: {duration(lowest)}, whatever the {BY[group_by].format(study.unit)}"

    def of(group: str) -> str:
        label = names[group]
        kinds = {"gpus": f"for {study.units} of {gpus_of(label)}", "gpu_type": f"on {label}"}
        kinds["gpu_request"] = f"for a request of {label.replace('share', 'a share')}"
        return kinds.get(group_by, f"for {label}")

    return f"Median {name.lower()}: {duration(lowest)} {of(low)}, {duration(highest)} {of(high)}"


def request_use(given: Inputs, study: Study) -> Figure:
    """Of each resource the share of jobs that asked for more than they used, and that used more."""
    known = given["request_use"].filter(pl.col("n") > 0)
    if not known.height:
        return nothing_to_draw("Asked for against used", f"the trace does not measure what its {study.units} use")
    kinds = {"asked for more than was used": "asked_more_share", "used more than was asked for": "used_more_share"}
    rows = [
        {"resource": RESOURCES[row["resource"]], "kind": kind, "place": place, "note": f"n = {row['n']:,}"}
        | picked(row, "n", share=column)
        for row in known.iter_rows(named=True)
        for place, (kind, column) in enumerate(kinds.items())
    ]
    base = chart_of("shares").encode(y=alt.Y("resource:N", title=None, sort=list(RESOURCES.values())))
    bars = base.mark_bar(height=16).encode(
        x=alt.X("share:Q", stack="zero", axis=percent_axis(f"Share of {study.units}"), scale=alt.Scale(domain=[0, 1])),
        color=coloured("kind", dict(zip(kinds, (ACCENT, "#E69F00"), strict=True)), title=None, orient="bottom"),
        order=alt.Order("place:Q"),
        tooltip=[*tips("resource", kind="what"), *tips("share", form=".2%"), *tips(form=",", n=study.units)],
    )
    most = known.sort("asked_more_share", descending=True, maintain_order=True).row(0, named=True)
    resource = RESOURCES[most["resource"]]
    title = f"{percent(most['asked_more_share'])} of {study.units} asked for more {resource} than they used on average"
    return figure(
        (bars + side_notes(base, WIDTH + 8, baseline="middle")).properties(width=WIDTH, height=alt.Step(30)),
        {"shares": rows},
        study,
        title=title,
        subtitle="Request per instance against mean measured use, by resource; what is left to 100 % is equal.",
        caption=f"{capital(study.units)} with a request and a measured use of the resource; n beside each bar. Use is "
        "the mean over the time that it was measured.",
        alt_text=f"Stacked bars of shares for {count(known.height, 'resource')}. {title}.",
    )


def submissions(given: Inputs, study: Study) -> Figure:
    """Submissions an hour by hour of the day, and by weekday."""
    table = given["submissions"]
    known = table.filter(pl.col("jobs_per_hour").is_not_null())
    if not known.height:
        reason = table["reason"][0] if table.height else "the trace has no times"
        return nothing_to_draw("Submissions by hour and weekday", reason)
    zone = labels([known["zone"][0]])[known["zone"][0]]
    sort = {"sort": [day[:3] for day in WEEKDAYS]}
    axes = {"hour": (f"Hour of the day ({zone})", 440, {}), "weekday": ("Weekday", 190, sort)}
    rows, panels = {}, []
    for by, (what, width, order) in axes.items():
        rows[by] = [
            {"value": int(row["value"]) if by == "hour" else row["value"][:3]}
            | picked(row, "jobs", rate="jobs_per_hour", hours="clock_hours")
            for row in known.filter(by=by).iter_rows(named=True)
        ]
        overlap = {"labelOverlap": True} if by == "hour" else {}
        bars = chart_of(by).mark_bar(color=ACCENT, opacity=0.8)
        bars = bars.encode(
            x=alt.X("value:O", title=what, axis=alt.Axis(labelAngle=0, **overlap), **order),
            y=alt.Y("rate:Q", title=f"{study.units} an hour" if by == "hour" else None),
            tooltip=[
                alt.Tooltip("value:O", title=by),
                *tips(form=",.3~r", rate=f"{study.units} an hour"),
                *tips(form=",", jobs=study.units, hours="such hours in the trace"),
            ],
        )
        panels.append(bars.properties(width=width, height=200))
    low, high = known.filter(by="hour").sort("jobs_per_hour", maintain_order=True)[[0, -1]].to_dicts()
    title = f"{capital(study.units)} by the hour in which they were submitted"
    if high["jobs_per_hour"] > low["jobs_per_hour"]:
        from_, least_from = (f"{row['value']} to {int(row['value']) + 1}" for row in (high, low))
        title = (
            f"{significant(high['jobs_per_hour'])} {study.units} an hour are submitted from {from_} o'clock, "
            f"{significant(low['jobs_per_hour'])} from {least_from}"
        )
    return figure(
        alt.hconcat(*panels, spacing=14).resolve_scale(y="shared"),
        rows,
        study,
        title=title,
        subtitle=f"Submissions for each such hour that the trace has, on the clock of {zone}.",
        caption=f"n = {count(known['n'][0], study.unit)} with a time of submission. Hours from that of the first "
        "submission to that of the last; days when nothing was recorded count as well.",
        alt_text=f"Bars of submissions an hour, by hour of the day and by weekday. {title}.",
    )


def roles(given: Inputs, study: Study) -> Figure:
    """How many jobs each role has, and how many of those that ended failed."""
    table = given["roles"]
    if not table.height:
        what = f"{capital(study.units)} by role"
        return nothing_to_draw(what, f"the trace does not tell roles of its {study.units} apart")
    drawn = shown(table.head(MOST_ROLES))
    names = labels(drawn["role"])
    rows = [
        {"role": names[row["role"]], "note": f"n = {row['jobs']:,}"}
        | picked(row, "jobs", "ended", "low", "high", "independent", share="jobs_share", failed="failure_share")
        for row in drawn.iter_rows(named=True)
    ]
    tooltip = [
        *tips("role"),
        *tips(form=",", jobs=study.units),
        *tips(form=".2%", share="share"),
        *tips(form=".1%", failed="failed"),
        *tips(form=",", ended="ended"),
    ]
    roles = {"title": None, "sort": list(names.values())}
    many, ended = (
        chart_of("roles").encode(y=alt.Y("role:N", **roles, **hidden), tooltip=tooltip)
        for hidden in ({}, {"axis": None})
    )
    shares = many.mark_bar(color=ACCENT, opacity=0.8).encode(
        x=alt.X("share:Q", axis=percent_axis(f"Share of {study.units}"))
    ) + many.mark_text(align="left", fontSize=10, dx=4, color=FAINT).encode(x="share:Q", text="note:N")
    colour = OUTCOME_COLOURS["failure"]
    failed = ended.mark_rule(strokeWidth=1.6, color=colour, opacity=0.6).encode(
        x=alt.X("low:Q", axis=percent_axis(f"Of ended {study.units}, failed"), scale=alt.Scale(domain=[0, 1])),
        x2="high:Q",
        strokeDash=DASHED,
    ) + ended.mark_circle(size=34, color=colour, opacity=1).encode(x="failed:Q")
    panels = [part.properties(width=width, height=alt.Step(18)) for part, width in ((shares, 330), (failed, 210))]
    first = drawn.row(0, named=True)
    title = f"{percent(first['jobs_share'])} of {study.units} are {names[first['role']]}"
    if first["failure_share"] is not None:
        title += f"; {percent(first['failure_share'])} of those that ended failed"
    caption = (
        f"n = {count(first['n'], study.unit)} with a role. Failures among successes and failures. {by_what(drawn)}"
    )
    if table.height > drawn.height:
        caption += f" The {MOST_ROLES} most frequent of {first['roles']:,} roles."
    return figure(
        alt.hconcat(*panels, spacing=14),
        {"roles": rows},
        study,
        title=title,
        subtitle="By role, the name that a task has within its job. Right: with the 95 % interval.",
        caption=caption,
        alt_text=f"Bars of the share of {count(len(rows), 'role')}, and of the failures in each. {title}.",
    )


def machine_load(given: Inputs, study: Study) -> Figure:
    """How busy machines are by GPU type: LOADS."""
    what = "Load of the machines"
    known = given["machine_load"].filter((pl.col("n") > 0) & pl.col("quantity").is_in(list(LOADS)))
    if not known.height:
        return nothing_to_draw(what, "the trace does not measure its machines")
    overall = {row["quantity"]: row for row in known.filter(group_by="all").iter_rows(named=True)}
    # Above 100 % the trace has added up the GPUs of a machine: then in GPUs, as 299 % would be misread.
    summed = "gpu" in overall and overall["gpu"]["p95"] > 100
    titles = LOADS | ({"gpu": "GPUs kept busy"} if summed else {})
    values = pl.col("mean", "p25", "p50", "p75", "p90")
    known = known.with_columns(pl.when(pl.lit(summed), quantity="gpu").then(values / 100).otherwise(values))
    names = labels(known["group"])
    kinds = known.filter(group_by="gpu_type")["group"].unique(maintain_order=True).head(MOST_KINDS)
    order = ["all", *kinds]
    scale = alt.Scale(domain=[names[kind] for kind in order])
    rows, panels = {}, []
    for quantity in (name for name in LOADS if name in overall):
        mine = known.filter(pl.col("quantity") == quantity, pl.col("group").is_in(order))
        rows[quantity] = mine.select(pl.col("group").replace(names).alias("kind"), "n", "nodes", values).to_dicts()
        base = chart_of(quantity).encode(
            y=alt.Y("kind:N", title=None, scale=scale, axis=None if panels else alt.Axis()),
            tooltip=[
                *tips(kind="GPU type"),
                *tips("mean", form=",.3~r", p50="median", p90="90 %"),
                *tips(form=",", n="rows", nodes="machines"),
            ],
        )
        x = alt.X("p25:Q", title=titles[quantity], scale=alt.Scale(zero=True))
        marks = (
            base.mark_bar(height=10, opacity=0.35, color=ACCENT).encode(x=x, x2="p75:Q")
            + base.mark_tick(thickness=3, size=16, color=ACCENT).encode(x="p50:Q")
            + base.mark_point(shape="circle", filled=True, size=45, color=ACCENT).encode(x="p90:Q")
            + base.mark_point(shape="diamond", filled=False, size=45, color="#222222").encode(x="mean:Q")
        )
        panels.append(marks.properties(width=200, height=alt.Step(24)))
    means = {of: significant(mean) for of, mean in known.filter(group_by="all").select("quantity", "mean").rows()}
    said = [f"CPU use {means['cpu']} %"] if "cpu" in means else []
    if "gpu" in means:
        said.append(f"as much GPU use as {means['gpu']} whole GPUs" if summed else f"GPU use {means['gpu']} %")
    title = f"Machines on average, by the time measured: {' and '.join(said)}" if said else what
    unsaid = "Whether the use of GPUs is of one GPU or of the machine's together, the trace does not say."
    added = "Of GPUs the trace has above 100 %, so their use is taken as added up over a machine: 100 % are one."
    return figure(
        alt.hconcat(*panels, spacing=14),
        rows,
        study,
        title=title,
        subtitle="By GPU type. Bar: the middle half. Line: median. Circle: 90th percentile. Diamond: mean.",
        caption=f"n = {count(max(row['n'] for row in overall.values()), 'row')}, each the mean over one instance's "
        "life, weighed by how long that was; a machine with several instances at a time is measured several times "
        f"over. {added if summed else unsaid}",
        alt_text=f"Ranges of {count(len(rows), 'quantity')} by GPU type. {title}.",
    )


CHARTS = {
    "runtime_by_gpus": partial(time_ranges, quantity="runtime_s", group_by="gpus"),
    **{
        f"queue_by_{group_by}": partial(time_ranges, quantity="queue_s", group_by=group_by)
        for group_by in ("gpus", "gpu_type", "gpu_request", "account")
    },
    "request_use": request_use,
    "submissions": submissions,
    "roles": roles,
    "machine_load": machine_load,
}
