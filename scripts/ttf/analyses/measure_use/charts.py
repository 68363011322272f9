"""How busy GPUs and hosts were, as ranges of readings by the minute."""

import altair as alt
import polars as pl

from ttf.charts.axes import percent_axis
from ttf.charts.encodings import coloured, side_notes, tips
from ttf.charts.figure import Figure, Study, chart_of, figure, nothing_to_draw
from ttf.charts.text import count, percent
from ttf.charts.theme import ACCENT, INK, OUTCOME_COLOURS

SHARES = ("p25_share", "p50_share", "p75_share", "p90_share", "p95_share")
EVERY = "all together"
COLOURS = {name: OUTCOME_COLOURS[name] for name in ("success", "failure", "cancelled")} | {EVERY: INK}
RESOURCES = {"cpu": "CPU", "memory": "memory"}
MINUTES = {"all": "all minutes", "held": "GPU held"}
# A mean is named in a title only if at least so many jobs stand behind it.
FEWEST = 10
SUBTITLE = "Bar: the middle half. Line: median. Diamond: mean. Filled circle: 90th percentile; open circle: 95th."
POOLED = (
    "The minutes of a job hang together, so that these are ranges of what was measured, and no interval of an estimate."
)


def gpu_use(given, study: Study) -> Figure:
    """GPU use by job size and outcome."""
    known = given["gpu_use"].filter(pl.col("n") > 0, pl.col("servers").is_null())
    if not known.height:
        what = f"GPU use by the {study.unit}'s GPUs and outcome"
        return nothing_to_draw(what, f"no GPU that a {study.unit} held has a reading")
    known = known.with_columns(
        row=_sizes(pl.col("job_gpus"), study), kind=pl.col("outcome").replace({"all": EVERY}), note=pl.lit(None)
    )
    everything = known.filter(pl.col("job_gpus") == "all", pl.col("outcome") == "all").row(0, named=True)
    title = (
        f"GPUs that {study.units} held were {percent(everything['mean_share'])} busy on average, "
        f"idle {percent(everything['zero_share'])} of the time"
    )
    return _ranges(
        known,
        "GPU use",
        "kind",
        study,
        title=title,
        caption=f"Readings by GPU and minute of the GPUs that {study.units} held, pooled: a {study.unit} counts by its "
        f"GPUs and minutes; n = {everything['n']:,} readings. The outcome is how the {study.unit} ended, whatever "
        f"its attempt did. {POOLED}",
        alt_text=f"Ranges of GPU use for {count(known.height, 'kind')} of {study.units}. {title}.",
    )


def gpu_use_by_servers(given, study: Study) -> Figure:
    """GPU use of jobs with 8 and 16 GPUs by the servers that they were spread over."""
    known = given["gpu_use"].filter(pl.col("n") > 0, pl.col("servers").is_not_null())
    known = known.unique(["job_gpus", "servers"], keep="last", maintain_order=True)
    known = known.sort(pl.col("job_gpus").cast(pl.Int64), "servers")
    if not known.height:
        return nothing_to_draw(
            "GPU use by number of servers", f"no {study.unit} with 8 or 16 GPUs has readings on whole servers"
        )
    names = [f"{row['job_gpus']} GPUs on {count(row['servers'], 'server')}" for row in known.iter_rows(named=True)]
    notes = [f"{row['n']:,} ({count(row['jobs'], study.unit)})" for row in known.iter_rows(named=True)]
    known = known.with_columns(row=pl.Series(names), note=pl.Series(notes))
    wide = known.filter(pl.col("job_gpus") == "16", pl.col("jobs") >= FEWEST)
    named = wide if wide.height else known.sort("jobs", descending=True, maintain_order=True).head(1)
    first, last = named.row(0, named=True), named.row(-1, named=True)
    title = f"{first['row']} were used {percent(first['mean_share'])} on average" + (
        f", on {last['servers']} servers {percent(last['mean_share'])}" if named.height > 1 else ""
    )
    return _ranges(
        known,
        "GPU use",
        None,
        study,
        title=title,
        caption=f"Readings by GPU and minute of {study.units} with exactly 8 or 16 GPUs, by the servers of the attempt "
        "that held them; 8 GPUs on 1 server and 16 on 2 have them to themselves. Beside "
        f"each row its readings and {study.units}. {POOLED}",
        alt_text=f"Ranges of GPU use for {count(known.height, 'spread')}. {title}.",
    )


def host_use(given, study: Study) -> Figure:
    """CPU and memory use of the machines."""
    known = given["host_use"].filter(pl.col("n") > 0)
    if not known.height:
        return nothing_to_draw("CPU and memory in use", "no machine has a reading of CPU or memory")
    resource, minutes = pl.col("resource").replace_strict(RESOURCES), pl.col("machine_minutes").replace_strict(MINUTES)
    notes = pl.Series([f"n = {n:,}" for n in known["n"]])
    known = known.with_columns(row=pl.format("{}, {}", resource, minutes), note=notes)
    medians = [
        f"{percent(row['p50_share'])} of {'the CPU' if row['resource'] == 'cpu' else 'memory'}"
        for row in known.unique("resource", keep="last", maintain_order=True).iter_rows(named=True)
    ]
    held = (known["machine_minutes"] == "held").any()
    title = f"In the median {' and '.join(medians)} was in use" + (" while a GPU was held" if held else "")
    return _ranges(
        known,
        "Share in use",
        None,
        study,
        title=title,
        caption=f"Readings by machine and minute: of all, idle ones among them, and of those at which a {study.unit} "
        f"held a GPU of the machine. Memory in use counts the page cache. n: readings. {POOLED}",
        alt_text=f"Ranges of use for {count(known.height, 'kind')} of readings. {title}.",
    )


def _sizes(job_gpus: pl.Expr, study: Study) -> pl.Expr:
    gpus = pl.concat_str(job_gpus, pl.when(job_gpus == "1").then(pl.lit(" GPU")).otherwise(pl.lit(" GPUs")))
    return pl.when(job_gpus == "all").then(pl.lit(f"all {study.units}")).otherwise(gpus)


def _ranges(table: pl.DataFrame, name: str, kind: str | None, study: Study, **words: str) -> Figure:
    """The figure of a row for each `row`, and within it one for each `kind`; words: of `figure`."""
    rows = table["row"].unique(maintain_order=True).to_list()
    base = chart_of("ranges").encode(
        y=alt.Y("row:N", title=None, sort=rows),
        tooltip=[
            *tips(row="of"),
            *tips(**({kind: "outcome"} if kind else {})),
            *tips(form=".1%", **{share: f"{share[1:3]} % at most" for share in SHARES}),
            *tips(form=".1%", mean_share="mean", zero_share="nought"),
            *tips(form=",", n="readings"),
        ],
    )
    constant = {} if kind else {"color": ACCENT}
    if kind:
        present = {name: colour for name, colour in COLOURS.items() if name in set(table[kind])}
        legend = {"title": f"How the {study.unit} ended", "orient": "bottom", "symbolType": "square"}
        offset = alt.YOffset(f"{kind}:N", sort=list(present))
        base = base.encode(yOffset=offset, color=coloured(kind, present, **legend))
    size = 6 if kind else 10
    axis = percent_axis(name, values=[0, 0.2, 0.4, 0.6, 0.8, 1])
    x = alt.X("p25_share:Q", scale=alt.Scale(domain=[0, 1]), axis=axis)
    marks = (
        base.mark_bar(height=size, opacity=0.35, **constant).encode(x=x, x2="p75_share:Q")
        + base.mark_tick(thickness=3, size=size + 3, **constant).encode(x="p50_share:Q")
        + base.mark_point(shape="diamond", filled=True, size=3 * size, **constant).encode(x="mean_share:Q")
        + base.mark_point(shape="circle", filled=True, size=3 * size, **constant).encode(x="p90_share:Q")
        + base.mark_point(shape="circle", filled=False, size=3 * size, **constant).encode(x="p95_share:Q")
    )
    if kind:
        chart = marks.properties(width=520, height=alt.Step(9))
    else:
        chart = (marks + side_notes(base, 508, baseline="middle")).properties(width=500, height=alt.Step(28))
    columns = ["row", "note", "n", "mean_share", "zero_share", *SHARES, *([kind] if kind else [])]
    return figure(chart, {"ranges": table.select(columns).to_dicts()}, study, subtitle=SUBTITLE, **words)


CHARTS = {"gpu_use": gpu_use, "gpu_use_by_servers": gpu_use_by_servers, "host_use": host_use}
