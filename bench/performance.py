"""What was measured, bench/measured.json, as the section of docs/performance.md between two marks and as a chart."""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
MEASURED = ROOT / "bench" / "measured.json"
PAGE = ROOT / "docs" / "performance.md"
CHART = ROOT / "docs" / "gallery" / "growth.svg"
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
SECTION = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
# Rules named as those that take the most time.
LONGEST = 6


def read() -> dict:
    return json.loads(MEASURED.read_text(encoding="utf-8"))


def write(measured: dict) -> None:
    """Put what was measured, tables and chart where they belong; a line of measured.json for each section."""
    lines = (f"{json.dumps(name)}: {json.dumps(found, sort_keys=True)}" for name, found in sorted(measured.items()))
    MEASURED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(SECTION.sub(lambda _: section(measured), text), encoding="utf-8")
    if "growth" in measured:
        CHART.write_text(growth_chart(measured["growth"]), encoding="utf-8")


def section(measured: dict) -> str:
    """The text of the section, its marks included; what has not been measured is left out."""
    parts = [goals(measured)] if measured else []
    parts += [make(measured[name]) for name, make in PARTS.items() if name in measured]
    return "\n\n".join([BEGIN, *parts, END])


def table(heads: str, rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown, its heads parted by |; the first column is text, the others are numbers."""
    lines = [heads, f"| --- |{' --: |' * (heads.count('|') - 2)}", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines)


def goals(measured: dict) -> str:
    """What was aimed at, and what was measured."""
    rows = [
        (what, f"{limit:g}", f"{value:.2f}", "yes" if value <= limit else "**no**")
        for what, limit, value in _goals(measured)
    ]
    return table("| goal | at most | measured | met |", rows)


def _goals(measured: dict) -> Iterator[tuple[str, float, float]]:
    """(what, limit, value) of each goal that was measured."""
    if "full_size" in measured:
        full = measured["full_size"]["sizes"][-1]
        jobs, study, pandas, duckdb = (full[name]["seconds"] for name in ("jobs", "study", "pandas", "duckdb"))
        yield "raw CSV → jobs.parquet at full size, of pandas' time", 0.42, jobs / pandas
        yield "the same, of DuckDB's time", 1.7, jobs / duckdb
        yield "whole study at full size, of pandas' time to read, group and merge", 2.5, study / pandas
        yield "the same, s of processor time", 70, full["study"]["cpu_seconds"]
        yield "largest process of the whole study, GB", 1.0, full["study"]["gigabytes"]
    for name, (what, limit) in RUNS.items() if "reruns" in measured else ():
        yield f"{what}, s", limit, measured["reruns"][name]["seconds"]
    if "many_traces" in measured:
        yield "graph of the jobs of 50 traces, s", 3.3, measured["many_traces"]["graph_seconds"]
    for name, (what, limit) in BROWSED.items() if "page" in measured else ():
        yield f"page of the Slurm sample, {what}", limit, measured["page"][name]
    if "outages" in measured:
        merge, rooms = (measured["outages"][name] for name in ("merge", "rooms"))
        seconds = merge["cpu_seconds"] + rooms["cpu_seconds"]
        yield "a million records of outages merged and tabulated, s of processor time", 10, seconds
        yield "the same, GB", 1, max(merge["gigabytes"], rooms["gigabytes"])
        bursts, simulated = (measured["outages"][name] for name in ("bursts", "simulate"))
        yield "their bursts and the nodes down at once, s of processor time", 30, bursts["cpu_seconds"]
        yield "a year of 10,000 nodes simulated 1,000 times, s", 20, simulated["seconds"]
    if "risk" in measured:
        alone, both = measured["risk"]["room"], measured["risk"]["challenger"]
        yield "failure risk of 1,261,050 jobs, s of processor time", 40, alone["cpu_seconds"]
        yield "the same with gradient boosting", 90, both["cpu_seconds"]
        yield "the same, GB", 1.5, both["gigabytes"]
    if "monday" in measured:
        found = measured["monday"]
        weeks = found["weeks"]
        share = _of_cpu(found["all"]["monday"], found["all"]["nothing"])
        yield f"week {weeks + 1} of {found['jobs']:,} jobs, of the processor time of {weeks} from nothing", 0.42, share
        yield "the same, s of processor time", 160, found["all"]["monday"]["cpu_seconds"]
        yield f"what it costs beyond a week of few jobs, of that after {weeks // 2}", 1.5, _growth_of_monday(found)
    if "growth" in measured:
        sizes = {row["times"]: row for row in measured["growth"]["sizes"]}
        once, tenfold = sizes[1]["jobs"], sizes[10]["jobs"]
        memory = tenfold["gigabytes"] / once["gigabytes"]
        yield "raw CSV → jobs.parquet, memory at 10 times, of that at full size", 1.2, memory
        yield "the same, time a task", 1.2, tenfold["seconds"] / once["seconds"] / 10
        yield "largest process of the whole study at 10 times the full size, GB", 1.5, sizes[10]["study"]["gigabytes"]


BROWSED = {
    "first_paint_s": ("first paint in Chromium, s", 0.5),
    "longest_task_s": ("longest task at load, s", 0.2),
    "megabytes": ("MB", 1.6),
}
RUNS = {
    "three samples": ("study of the three samples from nothing", 29),
    "one sample": ("study of the PAI sample from nothing", 12),
    "nothing to do": ("the same with nothing to do", 1.3),
    "a changed key": ("the same after a changed key", 10),
    "a changed chart": ("the same after a changed chart", 10),
}


def _seconds(*costs: dict) -> list[str]:
    return [f"{cost['seconds']:.1f}" for cost in costs]


def _gigabytes(*costs: dict) -> list[str]:
    return [f"{cost['gigabytes']:.2f}" for cost in costs]


def full_size(found: dict) -> str:
    """The PAI trace in the study, in pandas and in DuckDB, and where the time of the whole study goes."""
    rows = []
    for size in found["sizes"]:
        for name, what in (("jobs", "raw CSV → jobs.parquet"), ("study", "whole study → report")):
            sides = [size[side] for side in (name, "pandas", "duckdb")]
            ratios = [f"{sides[0]['seconds'] / side['seconds']:.2f}" for side in sides[1:]]
            rows.append((f"{size['tasks']:,} tasks, {what}", *_seconds(*sides), *ratios, *_gigabytes(*sides)))
    heads = "|  | study, s | pandas, s | DuckDB, s | of pandas | of DuckDB | study, GB | pandas, GB | DuckDB, GB |"
    longest = (f"`{row['rule']}` {row['cpu_seconds']:.1f} s" for row in found["profile"][:LONGEST])
    return f"""\
**A trace like PAI 2020.** [pandas](../bench/peers/pandas_notebook.py) does what the notebooks on this trace do: it \
reads the instance and the task table, groups, merges and takes five group means. \
[DuckDB](../bench/peers/duckdb_jobs.py) makes the job table of three raw tables, as the study does, and checks no row; \
both come to the same run times. The whole study reads all seven tables and makes the whole report.

{table(heads, rows)}

Medians of whole processes, start-up included, in turn after a warm-up; memory of the largest single process. \
The rules of the larger study that take most processor time: {", ".join(longest)}. {found["machine"]}."""


def formats(found: dict) -> str:
    """A Slurm dump and a Philly job log in the study and in what people use for them."""
    rows = []
    for name, what, peer in (
        ("slurm", "Slurm dump, {rows:,} records, {megabytes:.0f} MB", "pandas_sacct.py"),
        ("philly", "Philly job log, {rows:,} jobs, {megabytes:.0f} MB", "philly_notebook.py"),
    ):
        sides = ours, theirs = found[name]["study"], found[name]["peer"]
        what = f"{what.format(**found[name])}; peer: [{peer}](../bench/peers/{peer})"
        rows.append((what, *_seconds(*sides), f"{ours['seconds'] / theirs['seconds']:.2f}", *_gigabytes(*sides)))
    return f"""\
**Other formats**, read, checked and turned into jobs and attempts; peers: plain pandas and plain Python.

{table("|  | study, s | peer, s | ratio | study, GB | peer, GB |", rows)}

As above. {found["machine"]}."""


def lifetimes(found: dict) -> str:
    """Kaplan-Meier and the four models, and the time of lifelines and SciPy."""
    peers, ours = dict(found["peers"]), found["study"]
    survival = peers.pop("Kaplan-Meier")
    each = ", ".join(f"{name} {took:.1f} s" for name, took in peers.items())
    return f"""\
**{found["lives"]:,} right-censored durations**: Kaplan-Meier with intervals {ours["survival"]:.2f} s, lifelines \
{survival:.1f} s; four lifetime models {ours["models"]:.2f} s, lifelines and SciPy (gamma) with their defaults \
{sum(peers.values()):.1f} s ({each}). Ours: medians; peers: once. No fit of ours is less likely than the peer's. \
{found["machine"]}."""


def many_traces(found: dict) -> str:
    """A study of many small traces, and what of it is the work of its jobs."""
    plan, bare, study, again, jobs = _seconds(*(found[name] for name in ("plan", "bare", "study", "again", "jobs")))
    return f"""\
**Many traces**, each of {found["tasks"]:,} tasks, in one study. The plan of {found["planned"]} (dry run) takes \
{plan} s, of which the graph of their jobs {found["graph_seconds"]:.1f} s (median of three); a bare plan of as many \
jobs and products, which is Snakemake itself, {bare} s. A whole study of {found["run"]} takes {study} s, its \
{found["jobs"]["count"]} jobs one after another {jobs} s, the same again with nothing to do {again} s. \
{found["machine"]}."""


def outages(found: dict) -> str:
    """Outages of a large fleet: merging them, and what is made of them."""
    merge, rooms, bursts, simulated = (
        f"{found[name]['cpu_seconds']:.1f} s of processor time and {found[name]['gigabytes']:.2f} GB"
        for name in ("merge", "rooms", "bursts", "simulate")
    )
    return f"""\
**Outages.** {found["records"]:,} records of {found["units"]:,} nodes, read and merged: {merge}; repairs, \
availability, causes, growth and the mean cumulative function: {rooms}; nodes down at once, spares, and bursts in the \
fleet and its groups against 20 permutations and shifts each: {bursts}. A year of {found["nodes"]:,} nodes simulated \
{found["replicates"]:,} times: {simulated}. {found["machine"]}."""


def risk(found: dict) -> str:
    """The failure risk of a large trace, and its logistic regression against scikit-learn's."""
    ours, peer = (found[side]["seconds"] - found["start"]["seconds"] for side in ("ours", "peer"))
    costs = (
        f"{found[name]['cpu_seconds']:.0f} s of processor time and {found[name]['gigabytes']:.2f} GB"
        for name in ("room", "challenger")
    )
    alone, both = costs
    return f"""\
**Failure risk** of {found["jobs"]:,} jobs, features, training and evaluation at three origins: {alone}; with \
scikit-learn's gradient boosting {both}. The logistic regression of the last origin takes {ours:.1f} s, that of \
scikit-learn on the same design {peer:.1f} s (ratio {ours / peer:.2f}), reading it left out; both on one thread. \
{found["machine"]}."""


def monday(found: dict) -> str:
    """The price of a week more."""
    rows = [
        (f"{weeks} weeks of {jobs:,} jobs", *_seconds(found[name]["nothing"], found[name]["monday"]), f"{cpu:.2f}")
        for name, weeks, jobs in (
            ("half", found["weeks"] // 2, found["jobs"]),
            ("all", found["weeks"], found["jobs"]),
        )
        for cpu in [_of_cpu(found[name]["monday"], found[name]["nothing"])]
    ]
    fixed = found["few"]["monday"]
    longest = (f"`{row['rule']}` {row['cpu_seconds']:.1f} s" for row in found["profile"][:LONGEST])
    return f"""\
**A week more** of one's own Slurm accounting, dumped weekly, with jobs that run, wait or are requeued over the border.

{table("|  | from nothing, s | the week after, s | of the processor time |", rows)}

With weeks of a few jobs the week after takes {fixed["cpu_seconds"]:.0f} s of processor time, which is the price of \
any study of so many weeks; what the week costs beyond it at {found["weeks"]} weeks is {_growth_of_monday(found):.2f} \
times that at {found["weeks"] // 2}. The rules that take most processor time then: {", ".join(longest)}. Once each. \
{found["machine"]}."""


def _of_cpu(one: dict, other: dict) -> float:
    return one["cpu_seconds"] / other["cpu_seconds"]


def _growth_of_monday(found: dict) -> float:
    fixed, half, whole = (found[name]["monday"]["cpu_seconds"] for name in ("few", "half", "all"))
    return (whole - fixed) / (half - fixed)


def growth(found: dict) -> str:
    """Time and memory by size of the trace."""
    rows = [
        (
            f"{size['times']:g} times: {size['tasks']:,} tasks, {size['megabytes'] / 1000:.1f} GB of CSV",
            *(*_seconds(size["jobs"]), *_gigabytes(size["jobs"]), *_seconds(size["study"]), *_gigabytes(size["study"])),
        )
        for size in found["sizes"]
    ]
    return f"""\
**Growth.** A trace larger than the full size is given in parts of that size.

![Time and memory by the size of the trace, on logarithmic axes](gallery/{CHART.name})

{table("|  | jobs.parquet, s | GB | whole study, s | GB |", rows)}

Once each, jobs.parquet up to the full size the medians of three; memory of the largest single process. \
{found["machine"]}."""


PARTS = {part.__name__: part for part in (full_size, formats, lifetimes, many_traces, outages, risk, monday, growth)}


def growth_chart(found: dict) -> str:
    """Time and memory by the number of tasks, both axes logarithmic, as SVG."""
    sys.path.insert(0, str(ROOT / "scripts"))
    import altair as alt
    import ttf.display.charts.figure  # noqa: F401 registers the look of every chart
    import vl_convert
    from ttf.display.charts.theme import CATEGORY_COLOURS

    points = [
        {"tasks": size["tasks"], "what": what, "value": size[name][key], "measure": measure}
        for size in found["sizes"]
        for name, what in (("jobs", "raw CSV → jobs.parquet"), ("study", "whole study → report"))
        for key, measure in (("seconds", "wall time, s"), ("gigabytes", "largest process, GB"))
    ]

    def axis(name: str, title: str, numbers: str) -> dict:
        log = alt.Scale(type="log", nice=False, padding=12)
        return {"shorthand": f"{name}:Q", "scale": log, "title": title, "axis": alt.Axis(format=numbers, tickCount=5)}

    def panel(measure: str) -> alt.LayerChart:
        base = alt.Chart(alt.Data(values=[point for point in points if point["measure"] == measure])).encode(
            alt.X(**axis("tasks", "tasks", "~s")),
            alt.Y(**axis("value", measure, "~r")),
            alt.Color(
                "what:N",
                title=None,
                scale=alt.Scale(range=CATEGORY_COLOURS[:2]),
                legend=alt.Legend(orient="top", direction="vertical"),
            ),
        )
        return (base.mark_line() + base.mark_point(filled=True, size=50)).properties(width=300, height=240)

    chart = panel("wall time, s") | panel("largest process, GB")
    return vl_convert.vegalite_to_svg(chart.to_dict())


if __name__ == "__main__":
    write(read())
