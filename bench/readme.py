"""What was measured, bench/measured.json, as the section of README.md between two marks and as a chart of growth.

usage: readme.py
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
MEASURED = ROOT / "bench" / "measured.json"
README = ROOT / "README.md"
CHART = ROOT / "docs" / "gallery" / "growth.svg"
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
SECTION = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)


def write() -> None:
    """Put tables and chart where they belong."""
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    text = README.read_text(encoding="utf-8")
    README.write_text(SECTION.sub(lambda _: section(measured), text), encoding="utf-8")
    if "growth" in measured:
        CHART.write_text(growth_chart(measured["growth"]), encoding="utf-8")


def section(measured: dict) -> str:
    """The text of the section, its marks included; what has not been measured is left out."""
    parts = [goals(measured)] if measured else []
    parts += [make(measured[name]) for name, make in PARTS.items() if name in measured]
    return "\n\n".join([BEGIN, *parts, END])


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown; the first column is text, the others are numbers."""
    lines = [heads, ["---", *["--:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def goals(measured: dict) -> str:
    """What was aimed at beside what was measured."""
    rows = [
        (what, f"{limit:g}", f"{value:.2f}", "yes" if value <= limit else "**no**")
        for what, limit, value in _goals(measured)
    ]
    return table(("goal", "at most", "measured", "met"), rows)


def _goals(measured: dict) -> Iterator[tuple[str, float, float]]:
    """(what, limit, value) of each goal that was measured."""
    if "full_size" in measured:
        full = measured["full_size"]["sizes"][-1]
        jobs, study, pandas, duckdb = (full[name]["seconds"] for name in ("jobs", "study", "pandas", "duckdb"))
        yield "raw CSV → jobs.parquet at full size, of pandas' time", 0.2, jobs / pandas
        yield "the same, of DuckDB's time", 2.0, jobs / duckdb
        yield "whole study at full size, of pandas' time to read, group and merge", 1.2, study / pandas
        yield "largest process of the whole study, GB", 1.5, full["study"]["gigabytes"]
    if "reruns" in measured:
        for name, limit in (("one sample", 30), ("nothing to do", 2), ("a changed key", 10), ("a changed chart", 10)):
            what = (
                "from nothing"
                if name == "one sample"
                else f"with {name}"
                if name == "nothing to do"
                else f"after {name}"
            )
            yield f"study of the PAI sample {what}, s", limit, measured["reruns"][name]["seconds"]
    if "many_traces" in measured:
        yield "graph of the jobs of 50 traces, s", 3, measured["many_traces"]["graph_seconds"]
    if "growth" in measured:
        sizes = {row["times"]: row for row in measured["growth"]["sizes"]}
        once, tenfold = sizes[1]["jobs"], sizes[10]["jobs"]
        yield (
            "raw CSV → jobs.parquet, memory at 10 times, of that at full size",
            1.2,
            (tenfold["gigabytes"] / once["gigabytes"]),
        )
        yield "the same, time a task", 1.2, tenfold["seconds"] / once["seconds"] / 10
        yield "largest process of the whole study at 10 times the full size, GB", 1.5, sizes[10]["study"]["gigabytes"]


def full_size(found: dict) -> str:
    """The PAI trace beside pandas and DuckDB, and where the time of the whole study goes."""
    rows = []
    for size in found["sizes"]:
        for name, what in (("jobs", "raw CSV → jobs.parquet"), ("study", "whole study → report")):
            ours, pandas, duckdb = (size[side] for side in (name, "pandas", "duckdb"))
            rows.append(
                (
                    f"{size['tasks']:,} tasks, {what}",
                    *(f"{side['seconds']:.1f}" for side in (ours, pandas, duckdb)),
                    f"{ours['seconds'] / pandas['seconds']:.2f}",
                    f"{ours['seconds'] / duckdb['seconds']:.2f}",
                    *(f"{side['gigabytes']:.2f}" for side in (ours, pandas, duckdb)),
                )
            )
    heads = (
        "",
        "study, s",
        "pandas, s",
        "DuckDB, s",
        "of pandas",
        "of DuckDB",
        "study, GB",
        "pandas, GB",
        "DuckDB, GB",
    )
    longest = table(
        ("rule", "s", "CPU, s", "GB"),
        [
            (f"`{row['rule']}`", f"{row['seconds']:.1f}", f"{row['cpu_seconds']:.1f}", f"{row['gigabytes']:.2f}")
            for row in found["profile"]
        ],
    )
    return "\n\n".join(
        (
            "**A trace like PAI 2020.** [pandas](bench/peers/pandas_notebook.py) does what the notebooks on this trace "
            "do: it reads the instance and the task table, groups, merges and takes five group means. "
            "[DuckDB](bench/peers/duckdb_jobs.py) makes the job table of three raw tables, as the study does, and "
            "checks no row; both come to the same run times. The whole study reads all seven tables and does all that "
            "this page tells of.",
            table(heads, rows),
            "Medians of whole processes, start-up included, in turn after a warm-up; memory of the largest single "
            f"process. {found['machine']}.",
            "Where the whole study of the larger trace spends its time:",
            longest,
        )
    )


def formats(found: dict) -> str:
    """Slurm dump and Philly job log beside their peers."""
    rows = []
    for name, what, peer in (
        ("slurm", "Slurm dump, {rows:,} records, {megabytes:.0f} MB", "pandas_sacct.py"),
        ("philly", "Philly job log, {rows:,} jobs, {megabytes:.0f} MB", "philly_notebook.py"),
    ):
        ours, theirs = found[name]["study"], found[name]["peer"]
        rows.append(
            (
                f"{what.format(**found[name])}; peer: [{peer}](bench/peers/{peer})",
                f"{ours['seconds']:.1f}",
                f"{theirs['seconds']:.1f}",
                f"{ours['seconds'] / theirs['seconds']:.2f}",
                f"{ours['gigabytes']:.2f}",
                f"{theirs['gigabytes']:.2f}",
            )
        )
    heads = ("", "study, s", "peer, s", "ratio", "study, GB", "peer, GB")
    return "\n\n".join(
        (
            "**Other formats**, read, checked and turned into jobs and attempts, beside plain pandas and plain Python.",
            table(heads, rows),
            f"As above. {found['machine']}.",
        )
    )


def lifetimes(found: dict) -> str:
    """Kaplan-Meier and the four models beside lifelines and SciPy."""
    peers = dict(found["peers"])
    survival = peers.pop("Kaplan-Meier")
    rows = [
        (what, f"{ours:.2f}", f"{theirs:.1f}", f"{ours / theirs:.3f}")
        for what, ours, theirs in (
            ("Kaplan-Meier with intervals", found["study"]["survival"], survival),
            ("four lifetime models", found["study"]["models"], sum(peers.values())),
        )
    ]
    each = ", ".join(f"{name} {took:.1f} s" for name, took in peers.items())
    return "\n\n".join(
        (
            f"**{found['lives']:,} right-censored lives** beside lifelines and, for gamma, SciPy, with their defaults.",
            table(("", "study, s", "peers, s", "ratio"), rows),
            f"Ours: medians. Peers, once: {each}. No fit of ours is less likely than the peer's. {found['machine']}.",
        )
    )


def reruns(found: dict) -> str:
    """First runs and runs after a change."""
    rows = [(what, *_times(found[name])) for name, what in REPORTED_RUNS.items() if name in found]
    return _part("**Runs of the embedded samples.**", ("", "s", "CPU, s"), rows, found)


def _times(cost: dict) -> tuple[str, str]:
    return f"{cost['seconds']:.1f}", f"{cost['cpu_seconds']:.1f}"


def _part(intro: str, heads: Sequence[str], rows: Sequence[Sequence[str]], found: dict) -> str:
    return "\n\n".join((intro, table(heads, rows), f"Once each. {found['machine']}."))


REPORTED_RUNS = {
    "three samples": "the three samples from nothing, with their making",
    "one sample": "study of the PAI sample from nothing",
    "nothing to do": "the same again, with nothing to do",
    "a changed key": "the same after a changed key, `ettr.restart_s`",
    "a changed chart": "the same after a changed chart, the survival curves",
}


def many_traces(found: dict) -> str:
    """A study of many small traces, and what of it is the work of its jobs."""
    run, jobs = found["run"], found["jobs"]
    steps = {
        "plan": f"the plan of {found['planned']} traces (dry run)",
        "bare": "a bare plan of as many jobs and products, which is Snakemake itself",
        "study": f"a whole study of {run} traces",
        "again": "the same again, with nothing to do",
    }
    rows = [(what, *_times(found[name])) for name, what in steps.items() if name in found]
    rows.insert(1, ("of which the graph of their jobs, median of three", f"{found['graph_seconds']:.1f}", ""))
    rows.insert(-1, (f"of which its {jobs['count']} jobs, one after another", *_times(jobs)))
    intro = (
        f"**Many traces**, each of {found['tasks']:,} tasks, in one study. Of a plan the rest is the start of "
        "Snakemake, and what it says of the jobs."
    )
    return _part(intro, ("", "s", "CPU, s"), rows, found)


def growth(found: dict) -> str:
    """Time and memory by size of the trace."""
    rows = []
    for size in found["sizes"]:
        jobs, study = size["jobs"], size.get("study")
        rows.append(
            (
                f"{size['times']:g} times: {size['tasks']:,} tasks, {size['megabytes'] / 1000:.1f} GB of CSV",
                f"{jobs['seconds']:.1f}",
                f"{jobs['gigabytes']:.2f}",
                f"{study['seconds']:.0f}" if study else "",
                f"{study['gigabytes']:.2f}" if study else "",
            )
        )
    heads = ("", "jobs.parquet, s", "GB", "whole study, s", "GB")
    return "\n\n".join(
        (
            "**Growth.** A trace larger than the full size is given in parts of that size.",
            f"![Time and memory by the size of the trace, on logarithmic axes](docs/gallery/{CHART.name})",
            table(heads, rows),
            "Once each, jobs.parquet up to the full size the medians of three; memory of the largest single process. "
            f"{found['machine']}.",
        )
    )


PARTS = {
    "full_size": full_size,
    "formats": formats,
    "lifetimes": lifetimes,
    "reruns": reruns,
    "many_traces": many_traces,
    "growth": growth,
}


def growth_chart(found: dict) -> str:
    """Time and memory by the number of tasks, both axes logarithmic, as SVG."""
    sys.path.insert(0, str(ROOT / "scripts"))
    import altair as alt
    import ttf.charts.figure  # noqa: F401 registers the look of every chart
    import vl_convert
    from ttf.charts.theme import CATEGORY_COLOURS

    points = [
        {"tasks": size["tasks"], "what": what, "value": size[name][key], "measure": measure}
        for size in found["sizes"]
        for name, what in (("jobs", "raw CSV → jobs.parquet"), ("study", "whole study → report"))
        if name in size
        for key, measure in (("seconds", "wall time, s"), ("gigabytes", "largest process, GB"))
    ]

    colours = CATEGORY_COLOURS[:2]

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
                scale=alt.Scale(range=colours),
                legend=alt.Legend(orient="top", direction="vertical"),
            ),
        )
        return (base.mark_line() + base.mark_point(filled=True, size=50)).properties(width=300, height=240)

    chart = panel("wall time, s") | panel("largest process, GB")
    return vl_convert.vegalite_to_svg(chart.to_dict())


if __name__ == "__main__":
    write()
