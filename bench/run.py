"""Time and peak memory of the study against a plain pandas script, on the same files in one run.

Both are whole processes, run in turn (A B A B ...) after a warm-up; the table gives medians, and the ratio of the
medians. Memory is the largest resident size of any one process. The measured table goes into README.md.
The formats sacct and philly are read beside pandas and json in a table of their own (formats.py).
usage: run.py [--tasks N ...] [--rounds N] [--keep FOLDER]
"""

import argparse
import importlib.metadata
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import formats

ROOT = Path(__file__).parents[1]
MARKS = ("<!-- bench: begin -->", "<!-- bench: end -->")
MARKS_OF_FORMATS = ("<!-- bench of formats: begin -->", "<!-- bench of formats: end -->")
FULL_SIZE = 1_261_050
# What is timed -> (product, folder of raw tables). The script reads two tables; jobs need a third, the whole study all.
TARGETS = {
    "raw CSV → jobs.parquet": ("results/bench/jobs.parquet", "required"),
    "whole study → report": ("results/report/index.html", "raw"),
}
REQUIRED = ("pai_job_table.csv", "pai_task_table.csv", "pai_instance_table.csv")


def measured(command: list[str], folder: Path) -> tuple[float, float]:
    """Wall time (s) and peak memory (GB) of a command and the processes it starts. Raises where it fails."""
    log = folder / "output.log"
    start = time.perf_counter()
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{log.read_text()[-3000:]}")
    return seconds, usage.ru_maxrss / 1e6


def snakemake(folder: Path, target: str, raw: str) -> list[str]:
    """The study in `folder` on all cores, up to one product, from the raw tables in the folder `raw`."""
    config = folder / f"{raw}.yaml"
    config.write_text(f"study: [bench]\nregistry:\n  bench: {{format: pai2020, folder: {raw}}}\n")
    return [
        *(sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile")),
        *("--workflow-profile", str(ROOT / "profiles" / "default"), "--configfile", str(config), "--", target),
    ]


def forget_products(folder: Path) -> None:
    for name in ("results", ".snakemake", "logs", "benchmarks"):
        shutil.rmtree(folder / name, ignore_errors=True)


def compare(tasks: int, rounds: int, folder: Path) -> list[tuple]:
    """Rows (tasks, what, our s, pandas s, ratio, our GB, pandas GB, ratio) for a sample of so many tasks."""
    folder.mkdir(parents=True, exist_ok=True)
    # The files lie in a folder of their own: making them is not part of the study.
    sys.path.insert(0, str(ROOT / "scripts"))
    from ttf.sample.pai2020 import write_sample

    raw = folder / "raw"
    if not raw.exists():
        print(f"making a sample of {tasks:,} tasks", file=sys.stderr)
        write_sample(raw, tasks)
    required = folder / "required"
    required.mkdir(exist_ok=True)
    for name in REQUIRED:
        (required / name).unlink(missing_ok=True)
        (required / name).symlink_to(raw / name)
    peer = [sys.executable, str(ROOT / "bench" / "pandas_study.py"), str(raw)]
    figures: dict[str, list] = {name: [] for name in ("pandas", *TARGETS)}
    for turn in range(rounds + 1):
        for name in figures:
            forget_products(folder)
            figure = measured(peer if name == "pandas" else snakemake(folder, *TARGETS[name]), folder)
            print(f"{tasks:,} tasks, {name}: {figure[0]:.1f} s, {figure[1]:.2f} GB", file=sys.stderr)
            if turn:  # the first round warms the disk cache and is not counted
                figures[name].append(figure)
    seconds = {name: statistics.median(figure[0] for figure in runs) for name, runs in figures.items()}
    memory = {name: statistics.median(figure[1] for figure in runs) for name, runs in figures.items()}
    rows = []
    for name in TARGETS:
        ours, theirs = (seconds[name], memory[name]), (seconds["pandas"], memory["pandas"])
        rows.append((tasks, name, ours[0], theirs[0], ours[0] / theirs[0], ours[1], theirs[1], ours[1] / theirs[1]))
    return rows


def as_markdown(rows: list[tuple], rounds: int) -> str:
    pandas_version = importlib.metadata.version("pandas")
    lines = [
        "| tasks | what | study, s | pandas, s | ratio | study, GB | pandas, GB | ratio |",
        "|--:|---|--:|--:|--:|--:|--:|--:|",
    ]
    for tasks, name, ours, theirs, ratio, our_memory, their_memory, memory_ratio in rows:
        lines.append(
            f"| {tasks:,} | {name} | {ours:.1f} | {theirs:.1f} | {ratio:.2f} "
            f"| {our_memory:.2f} | {their_memory:.2f} | {memory_ratio:.2f} |"
        )
    lines.append(
        f"\nMedians of {rounds} runs in turn with the peer's after a warm-up, whole processes with their start-up, "
        f"{os.cpu_count()} cores, Python {platform.python_version()}, pandas {pandas_version}. Memory: the largest "
        "single process. First row: from the job, task and instance tables; second: from all six."
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, nargs="*", default=[FULL_SIZE // 10, FULL_SIZE])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="keep the samples and the products in this folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.keep or Path(temporary)).resolve()
        rows = [row for tasks in arguments.tasks for row in compare(tasks, arguments.rounds, folder / f"{tasks}")]
        of_formats = formats.compare(measured, arguments.rounds, folder / "formats")
    if rows:
        write_down(as_markdown(rows, arguments.rounds), MARKS)
    write_down(formats.as_markdown(of_formats), MARKS_OF_FORMATS)


def write_down(table: str, marks: tuple[str, str]) -> None:
    """Print the table, and put it into the README between its marks."""
    print(table)
    readme = ROOT / "README.md"
    between = re.compile(f"{re.escape(marks[0])}.*?{re.escape(marks[1])}", re.DOTALL)
    text = readme.read_text(encoding="utf-8")
    readme.write_text(between.sub(lambda _: f"{marks[0]}\n{table}\n{marks[1]}", text), encoding="utf-8")


if __name__ == "__main__":
    main()
