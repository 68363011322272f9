"""Write tools/bench/measured.json into docs/performance.md, as the section between two marks."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
MEASURED = ROOT / "tools/bench" / "measured.json"
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
SECTION = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
# Number of slowest rules to name.
LONGEST = 6


def read() -> dict:
    return json.loads(MEASURED.read_text(encoding="utf-8"))


def write(measured: dict) -> None:
    """Write measured.json (one line per section) and the section of the page."""
    lines = (f"{json.dumps(name)}: {json.dumps(results, sort_keys=True)}" for name, results in sorted(measured.items()))
    MEASURED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(SECTION.sub(lambda _: section(measured), text), encoding="utf-8")


def section(measured: dict) -> str:
    """Return the text of the section with its marks; sections without measurements are absent."""
    parts = [goals(measured)] if measured else []
    parts += [make(measured[name]) for name, make in PARTS.items() if name in measured]
    return "\n\n".join([BEGIN, *parts, END])


def table(heads: str, rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; `heads` are separated by |; the first column is text, the others are numbers."""
    lines = [heads, f"| --- |{' --: |' * (heads.count('|') - 2)}", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines)


def goals(measured: dict) -> str:
    """Return the table of goals and measurements."""
    rows = [
        (goal, f"{limit:g}", f"{value:.2f}", "yes" if value <= limit else "**no**")
        for goal, limit, value in _goals(measured)
    ]
    return table("| goal | at most | measured | met |", rows)


def _goals(measured: dict) -> Iterator[tuple[str, float, float]]:
    """Yield (label, limit, value) of each measured goal."""
    if "full_size" in measured:
        full = measured["full_size"]["sizes"][-1]
        jobs, study, pandas, duckdb = (full[name]["seconds"] for name in ("jobs", "study", "pandas", "duckdb"))
        yield "raw CSV → jobs.parquet at full size, of pandas' time", 0.45, jobs / pandas
        yield "the same, of DuckDB's time", 1.4, jobs / duckdb
        yield "whole study at full size, of pandas' time to read, group and merge", 2.5, study / pandas
        yield "the same, s of processor time", 70, full["study"]["cpu_seconds"]
        yield "largest process of the whole study, GB", 1.0, full["study"]["gigabytes"]
    for name, (label, limit) in RUNS.items() if "reruns" in measured else ():
        yield f"{label}, s", limit, measured["reruns"][name]["seconds"]
    for name, (label, limit) in BROWSED.items() if "page" in measured else ():
        yield f"page of the Slurm sample, {label}", limit, measured["page"][name]
    if "monday" in measured:
        costs = measured["monday"]
        weeks, ratio = costs["weeks"], _cpu_ratio(costs["all"]["monday"], costs["all"]["nothing"])
        yield f"week {weeks + 1} of {costs['jobs']:,} jobs, of the processor time of {weeks} from nothing", 0.45, ratio
        yield "the same, s of processor time", 160, costs["all"]["monday"]["cpu_seconds"]
        yield f"its cost beyond a week of few jobs, of that after {weeks // 2} weeks", 1.5, _growth_of_week_cost(costs)


BROWSED = {
    "first_paint_s": ("first paint in Chromium, s", 0.5),
    "longest_task_s": ("longest task at load, s", 0.2),
    "megabytes": ("MB", 1.6),
}
RUNS = {
    "three samples": ("study of the three samples from nothing", 29),
    "one sample": ("study of the PAI sample from nothing", 7.5),
    "nothing to do": ("the same with nothing to do", 1.0),
    "a changed key": ("the same after a changed key", 10),
    "a changed chart": ("the same after a changed chart", 10),
}


def _seconds(*costs: dict) -> list[str]:
    return [f"{cost['seconds']:.1f}" for cost in costs]


def _gigabytes(*costs: dict) -> list[str]:
    return [f"{cost['gigabytes']:.2f}" for cost in costs]


def full_size(results: dict) -> str:
    """Compare the study with pandas and DuckDB on the PAI trace, and list its slowest rules."""
    rows = []
    for size in results["sizes"]:
        for name, label in (("jobs", "raw CSV → jobs.parquet"), ("study", "whole study → report")):
            sides = [size[side] for side in (name, "pandas", "duckdb")]
            ratios = [f"{sides[0]['seconds'] / side['seconds']:.2f}" for side in sides[1:]]
            rows.append((f"{size['tasks']:,} tasks, {label}", *_seconds(*sides), *ratios, *_gigabytes(*sides)))
    heads = "|  | study, s | pandas, s | DuckDB, s | of pandas | of DuckDB | study, GB | pandas, GB | DuckDB, GB |"
    longest = (f"`{row['rule']}` {row['cpu_seconds']:.1f} s" for row in results["profile"][:LONGEST])
    return f"""\
**A trace like PAI 2020.** [pandas](../tools/bench/peers/pandas_notebook.py) does the work of the notebooks on this \
trace. It reads the instance and the task table, groups, merges and takes five group means. \
[DuckDB](../tools/bench/peers/duckdb_jobs.py) makes the job table from three raw tables, as the study does, but checks \
no row. Both programs compute the same run times. The whole study reads all seven tables and makes the whole report.

{table(heads, rows)}

Times are medians of whole processes, run in turn after a warm-up. Memory is that of the largest process. \
The slowest rules of the larger study in processor time are {", ".join(longest)}. {results["machine"]}."""


def monday(results: dict) -> str:
    """Report the cost of an additional week."""
    rows = [
        (f"{weeks} weeks of {jobs:,} jobs", *_seconds(results[name]["nothing"], results[name]["monday"]), f"{cpu:.2f}")
        for name, weeks, jobs in (
            ("half", results["weeks"] // 2, results["jobs"]),
            ("all", results["weeks"], results["jobs"]),
        )
        for cpu in [_cpu_ratio(results[name]["monday"], results[name]["nothing"])]
    ]
    fixed = results["few"]["monday"]
    longest = (f"`{row['rule']}` {row['cpu_seconds']:.1f} s" for row in results["profile"][:LONGEST])
    return f"""\
**An additional week** of Slurm accounting, dumped weekly; some jobs run, wait or are requeued across weeks.

{table("|  | from nothing, s | next week, s | ratio of processor time |", rows)}

The fixed cost of a new week, with a few jobs per week, is {fixed["cpu_seconds"]:.0f} s of processor time. \
Beyond this cost, a new week after {results["weeks"]} weeks takes {_growth_of_week_cost(results):.2f} \
times as long as after {results["weeks"] // 2}. Its slowest rules in processor time are {", ".join(longest)}. \
Each was run once. \
{results["machine"]}."""


def _cpu_ratio(cost: dict, baseline: dict) -> float:
    return cost["cpu_seconds"] / baseline["cpu_seconds"]


def _growth_of_week_cost(results: dict) -> float:
    fixed, half, full = (results[name]["monday"]["cpu_seconds"] for name in ("few", "half", "all"))
    return (full - fixed) / (half - fixed)


PARTS = {part.__name__: part for part in (full_size, monday)}


if __name__ == "__main__":
    write(read())
