"""Run times and queueing delays by kind of job as ranges, and what was asked for against what was used."""

import altair as alt
import polars as pl

from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw, percent_axis
from ttf.charts.picking import Picks
from ttf.charts.text import capital, count, duration, labels, percent
from ttf.charts.theme import ACCENT, FAINT
from ttf.charts.time_ranges import SUBTITLE, WIDTH, placed, ranges
from ttf.jobs import gpus_of
from ttf.stats.workload import MOST_ACCOUNTS

MOST_GROUPS = 20
# A median is named in a title only if at least so many jobs stand behind it.
FEWEST = 30
WHAT = {"runtime_s": ("Run time", "run time"), "queue_s": ("Queueing delay", "delay")}
RESOURCES = {"cpu": "CPU", "gpu": "GPU", "memory": "memory"}
BY = {"gpus": "GPUs of the {}", "gpu_type": "GPU type", "gpu_request": "GPU request", "account": "account"}
_REQUESTS = {"no GPU": "no GPU", "share of a GPU": "a share of a GPU", "whole GPUs": "whole GPUs"}


def time_ranges(table: pl.DataFrame, quantity: str, group_by: str, study: Study) -> Figure:
    """Quartiles, median, 90th and 95th percentile of a time by kind of job, all outcomes together.

    table: `ttf.stats.workload.percentiles`.
    """
    name, short = WHAT[quantity]
    what = f"{name} by {BY[group_by].format(study.unit)}"
    chosen = (pl.col("quantity") == quantity) & (pl.col("outcome_set") == "all")
    known = table.filter(chosen & (pl.col("group_by") == group_by))
    if not known.height:
        return nothing_to_draw(what, f"no {study.unit} with a known {short} has a value there")
    if group_by in ("gpu_type", "account") and known.height == 1:
        return nothing_to_draw(what, f"all {study.units} with a known {short} have one {BY[group_by]}")
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
    return figure(
        ranges(rows, list(names.values()), name, capital(BY[group_by].format(study.unit)), study.units),
        {"ranges": rows},
        study,
        title=title,
        subtitle=SUBTITLE,
        caption=caption,
        alt_text=f"Ranges on a logarithmic time axis, a row for each of {count(len(rows), 'kind')}. {title}.",
        picks=Picks(("ranges",), "label", {name: name for name in names.values()}) if group_by == "gpu_type" else None,
    )


def _title(drawn: pl.DataFrame, names: dict[str, str], name: str, group_by: str, study: Study) -> str:
    """The lowest and the highest median, or the one there is."""
    told = drawn.filter(pl.col("n") >= FEWEST)
    told = told if told.height else drawn
    low, high = (told.sort("p50_s", maintain_order=True).row(place, named=True) for place in (0, -1))

    def of(row: dict) -> str:
        group = names[row["group"]]
        return f"{duration(row['p50_s'])} " + (
            f"for {study.units} of {gpus_of(group)}"
            if group_by == "gpus"
            else f"on {group}"
            if group_by == "gpu_type"
            else f"for a request of {_REQUESTS[group]}"
            if group_by == "gpu_request"
            else f"for {group}"
        )

    if low["p50_s"] == high["p50_s"]:
        return f"Median {name.lower()}: {duration(low['p50_s'])}, whatever the {BY[group_by].format(study.unit)}"
    return f"Median {name.lower()}: {of(low)}, {of(high)}"


def request_use(table: pl.DataFrame, study: Study) -> Figure:
    """Of each resource the share of jobs that asked for more than they used, and that used more.

    table: `ttf.stats.workload.request_against_use`.
    """
    what = "Asked for against used"
    known = table.filter(pl.col("n") > 0)
    if not known.height:
        return nothing_to_draw(what, f"the trace does not measure what its {study.units} use")
    kinds = {"asked for more than was used": "asked_more_share", "used more than was asked for": "used_more_share"}
    rows = [
        {
            "resource": RESOURCES[row["resource"]],
            "kind": kind,
            "place": place,
            "share": row[column],
            "n": row["n"],
            "note": f"n = {row['n']:,}",
        }
        for row in known.iter_rows(named=True)
        for place, (kind, column) in enumerate(kinds.items())
    ]
    base = chart_of("shares").encode(y=alt.Y("resource:N", title=None, sort=list(RESOURCES.values())))
    bars = base.mark_bar(height=16).encode(
        x=alt.X("share:Q", stack="zero", axis=percent_axis(f"Share of {study.units}"), scale=alt.Scale(domain=[0, 1])),
        color=alt.Color(
            "kind:N",
            scale=alt.Scale(domain=list(kinds), range=[ACCENT, "#E69F00"]),
            legend=alt.Legend(title=None, orient="bottom"),
        ),
        order=alt.Order("place:Q"),
        tooltip=[
            alt.Tooltip("resource:N"),
            alt.Tooltip("kind:N", title="what"),
            alt.Tooltip("share:Q", format=".2%"),
            alt.Tooltip("n:Q", title=study.units, format=","),
        ],
    )
    notes = base.mark_text(align="left", fontSize=10, baseline="middle", color=FAINT).encode(
        x=alt.value(WIDTH + 8), text="note:N"
    )
    most = known.sort("asked_more_share", descending=True, maintain_order=True).row(0, named=True)
    resource = RESOURCES[most["resource"]]
    title = f"{percent(most['asked_more_share'])} of {study.units} asked for more {resource} than they used on average"
    return figure(
        (bars + notes).properties(width=WIDTH, height=alt.Step(30)),
        {"shares": rows},
        study,
        title=title,
        subtitle="Request per instance against mean measured use, by resource; what is left to 100 % is equal.",
        caption=(
            f"{capital(study.units)} with a request and a measured use of the resource; n beside each bar. Use is the "
            "mean over the time that it was measured."
        ),
        alt_text=f"Stacked bars of shares for {count(known.height, 'resource')}. {title}.",
    )


CHARTS = {
    "runtime_by_gpus": lambda tables, study: time_ranges(tables["percentiles"], "runtime_s", "gpus", study),
    "queue_by_gpus": lambda tables, study: time_ranges(tables["percentiles"], "queue_s", "gpus", study),
    "queue_by_gpu_type": lambda tables, study: time_ranges(tables["percentiles"], "queue_s", "gpu_type", study),
    "queue_by_gpu_request": lambda tables, study: time_ranges(tables["percentiles"], "queue_s", "gpu_request", study),
    "queue_by_account": lambda tables, study: time_ranges(tables["percentiles"], "queue_s", "account", study),
    "request_use": lambda tables, study: request_use(tables["request_use"], study),
}
