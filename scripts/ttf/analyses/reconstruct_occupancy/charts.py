"""The cluster over time and by load: GPUs in use, servers empty and full, and a proxy of why jobs waited."""

from collections.abc import Mapping

import altair as alt
import polars as pl

from ttf.analyses.reconstruct_occupancy.delay_causes import LONGEST_PLAIN_WAIT_S
from ttf.analyses.reconstruct_occupancy.occupancy import NOTHING_HELD, TWO_THIRDS
from ttf.charts.axes import percent_axis
from ttf.charts.encodings import coloured, picked, tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.text import DAY_S, HOUR_S, count, duration, percent
from ttf.charts.theme import ACCENT, CATEGORY_COLOURS, FAINT

CAUSES = {"full": "too few GPUs were free", "fragmentation": "enough GPUs were free, but scattered"}
_UNRECOGNISED = "cause not recognised"
_SERVERS = {"servers_full_share": "full", "servers_partly_share": "partly used", "servers_empty_share": "empty"}
_STATES = {"full": "#21918C", "partly used": "#B5DE2B", "empty": "#D9D9D9"}
_WIDTH = 560


def load_over_time(given, study: Study) -> Figure:
    """GPUs in use as a share of all, mean and highest of each step; jobs that run and wait below."""
    table = given["load_over_time"]
    if table.height < 2:
        few = "all of it lies within one step" if table.height else NOTHING_HELD
        return nothing_to_draw("GPUs in use over time", few)
    first, end_s = table["start_s"][0], table["start_s"][-1] + table["time_s"][-1]
    unit_s, unit = (DAY_S, "Days") if end_s - first >= 3 * DAY_S else (HOUR_S, "Hours")
    rows = [
        {"at": (row["start_s"] + row["time_s"] / 2 - first) / unit_s, "most": row["gpus_in_use_max"] / row["gpus"]}
        | picked(row, mean="gpus_in_use_share", running="running_mean", waiting="waiting_mean")
        for row in table.iter_rows(named=True)
    ]
    scale = alt.Scale(domain=[0, (end_s - first) / unit_s], nice=False)
    x = alt.X("at:Q", title=None, scale=scale)
    y = alt.Y("most:Q", axis=percent_axis("GPUs in use"), scale=alt.Scale(domain=[0, 1]))
    base = chart_of("load").encode(x=x)
    top = (
        base.mark_area(color=ACCENT, opacity=0.18).encode(y=y)
        + base.mark_line(strokeWidth=1.6, color=ACCENT).encode(y=alt.Y("mean:Q", axis=percent_axis("GPUs in use")))
    ).properties(width=_WIDTH, height=150)
    kinds = ["running", "waiting"]
    bottom = (
        base.transform_fold(kinds, as_=["what", "number"])
        .mark_line(strokeWidth=1.6)
        .encode(
            x=alt.X("at:Q", title=f"{unit} since the first GPU was held", scale=scale),
            y=alt.Y("number:Q", title=f"GPU {study.units}"),
            color=coloured("what", dict(zip(kinds, CATEGORY_COLOURS, strict=False)), title=None, orient="bottom"),
        )
        .properties(width=_WIDTH, height=110)
    )
    length_s, gpus = int(table["time_s"].sum()), table["gpus"][0]
    mean = (table["gpus_in_use_mean"] * table["time_s"]).to_list()
    share, most = sum(mean) / length_s / gpus, table["gpus_in_use_max"].max() / gpus
    title = f"On average {percent(share)} of {count(gpus, 'GPU')} in use, at most {percent(most)}"
    step = duration(table["time_s"].max())
    return figure(
        alt.vconcat(top, bottom, spacing=12),
        {"load": rows},
        study,
        title=title,
        subtitle=f"Steps of {step}. Above: mean (line) and highest (shade) share of the GPUs. Below: means.",
        caption=f"{count(table.height, 'step')} over {duration(length_s)}, from the placements; GPUs of all servers, "
        f"all the time. Running: from first start to last end; waiting: from submission to first start. Only "
        f"{study.units} that asked for a GPU.",
        alt_text=f"Lines over time: share of GPUs in use, and {study.units} running and waiting. {title}.",
    )


def servers_by_load(given, study: Study) -> Figure:
    """Servers empty, partly used and full at each tenth of the load."""
    known = given["occupancy"].filter((pl.col("load") != "all") & (pl.col("time_s") > 0))
    if not known.height:
        return nothing_to_draw("Servers by load", NOTHING_HELD)
    rows = [
        {"load": row["load"].replace("-", "–"), "state": state, "share": row[column], "note": duration(row["time_s"])}
        for row in known.iter_rows(named=True)
        for column, state in _SERVERS.items()
    ]
    named = known.filter(pl.col("load") == TWO_THIRDS)
    named = named if named.height else known.sort("time_s", descending=True, maintain_order=True).head(1)
    empty, load = named["servers_empty_share"].item(), named["load"].item()
    title = f"With {load.replace('-', '–')} of the GPUs in use, {percent(empty)} of the servers are empty"
    return figure(
        *_stacked(rows, "load", "GPUs in use", "Share of servers, mean over the time", _STATES),
        study,
        title=title,
        subtitle="Servers by the share of the cluster's GPUs in use; at the right, how long that was so.",
        caption="Means weighted by time. Full: all GPUs in use; empty: none. GPUs held by placements without a known "
        "end are not in it, and servers count from first to last.",
        alt_text=f"Stacked bars for {count(known.height, 'tenth')} of the load. {title}.",
    )


def delay_causes(given, study: Study) -> Figure:
    """A proxy of why jobs waited, by GPUs of the job."""
    table, what = given["delay_causes"], f"Why {study.units} waited (a proxy)"
    known = table.filter(pl.col("cause").is_not_null())
    if not known.height:
        said = table["reason"].drop_nulls()
        return nothing_to_draw(what, said[0] if said.len() else "nothing waited")
    known = known.with_columns(state=pl.col("cause").replace_strict(CAUSES, default=_UNRECOGNISED))
    known = known.group_by("group", "state", "started", "n", maintain_order=True).agg(pl.col("jobs").sum())
    drawn, every = (known.filter((pl.col("group") == "all") == is_all) for is_all in (False, True))
    colours = dict(zip((*CAUSES.values(), _UNRECOGNISED), ("#D55E00", "#E69F00", "#D9D9D9"), strict=True))
    rows = [
        picked(row, "group", "state") | {"share": row["jobs"] / row["n"], "note": f"n = {row['n']:,}"}
        for row in drawn.iter_rows(named=True)
    ]
    shares = {state: percent(jobs / n) for state, jobs, n in every.select("state", "jobs", "n").iter_rows()}
    title = (
        f"By a proxy, {shares[CAUSES['full']]} of the waits began with too few GPUs free, "
        f"{shares[CAUSES['fragmentation']]} with the free ones scattered"
    )
    return figure(
        *_stacked(rows, "group", f"GPUs of the {study.unit}", f"Share of {study.units} that waited", colours),
        study,
        title=title,
        subtitle="A proxy: what was in use when the wait began, not what the scheduler gave as its reason.",
        caption=f"{count(every['n'][0], study.unit)} that waited more than {LONGEST_PLAIN_WAIT_S} s for the first "
        f"start, of {every['started'][0]:,} that started. Waits for an account's share cannot be told from others, as "
        "no quotas are known: they are not recognised, or taken for scattered GPUs.",
        alt_text=f"Stacked bars of a proxy of causes by size. {title}.",
    )


def _stacked(
    rows: list[dict], column: str, title: str, share: str, colours: Mapping[str, str]
) -> tuple[alt.LayerChart, dict[str, list[dict]]]:
    """Bars of the shares of each state, in the order of the colours, and their rows."""
    rows = [row | {"place": list(colours).index(row["state"])} for row in rows]
    order = list(dict.fromkeys(row[column] for row in rows))
    base = chart_of("shares").encode(y=alt.Y(f"{column}:N", title=title, sort=order))
    bars = base.mark_bar(height=16).encode(
        x=alt.X("share:Q", stack="zero", axis=percent_axis(share, tickCount=5), scale=alt.Scale(domain=[0, 1])),
        color=coloured("state", colours, title=None, orient="bottom", columns=4, labelLimit=300),
        order=alt.Order("place:Q"),
        tooltip=[*tips(**{column: title}), *tips(state="what"), *tips("share", form=".2%"), *tips(note="of")],
    )
    notes = base.mark_text(align="left", fontSize=10, baseline="middle", color=FAINT).encode(
        x=alt.value(_WIDTH - 52), text=alt.Text("note:N", aggregate="min")
    )
    return (bars + notes).properties(width=_WIDTH - 60, height=alt.Step(24)), {"shares": rows}


CHARTS = {"load_over_time": load_over_time, "servers_by_load": servers_by_load, "delay_causes": delay_causes}
