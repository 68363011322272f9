"""Write docs/reliability.md: cases, shortcomings and date."""

from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from faults.verdict import LONGEST_S, MOST_BYTES, MOST_LINES, Verdict

# Kind -> description of its cases.
WORDS = {
    "input": "Mutated inputs: bytes, lines, cells, encodings, packings, what lies beside the tables; all formats",
    "edge": "First rows of good tables, and edges of what is good, through every analysis",
    "configuration": "Mutated configurations: syntax, types, extremes, encodings, aliases",
    "stop": "Kills and signals at a moment that is drawn, then the same command again",
    "disk": "Full disks, read-only folders, limits",
    "surroundings": "Locales, zones, threads, fonts, processors, paths: the same bytes",
    "tampering": "Tampering with finished results, to be told by `ttf verify`",
}
_TEXT = """\
# Reliability

Every input and every fault must give a right answer, or one clear message. `make test-faults` checks this with seeded
cases and writes this page; `make test` has a few of them. A case passes if

- every row of every file is kept or excluded with a reason (independent code counts again), and every file is read or
  named as left out;
- a refusal has one message of at most {lines} lines without a traceback;
- the run ends within {seconds} s, in at most {gigabytes:.1f} GB of memory (the input is below 50 MB);
- after a kill or a signal the same command gives the bytes of an undisturbed run, and no process is left behind;
- a tampered result is reported.

No check can see that a number became another number. Packed files (gzip, xz, Zstandard, zip) are checked by their
checksums, as are Parquet files with page checksums (Spark writes them). A CSV, or a Parquet file without page checksums
(Polars, DuckDB, pyarrow by default), cannot show a changed byte: compare such a file with a published checksum.

Measured on {when}, seeds {seeds}:

| what was tried | cases | went through | refused | fell short | longest, s of processor time | largest, MB |
|---|---:|---:|---:|---:|---:|---:|
"""


def write(page: Path, verdicts: Sequence[Verdict], seeds: Sequence[int]) -> None:
    """Write the page."""
    text = _TEXT.format(
        lines=MOST_LINES,
        seconds=LONGEST_S,
        gigabytes=MOST_BYTES / 10**9,
        when=date.today().isoformat(),
        seeds=", ".join(map(str, seeds)),
    )
    kinds = [kind for kind in WORDS if any(verdict.kind == kind for verdict in verdicts)]
    text += "".join(_row(WORDS[kind], [verdict for verdict in verdicts if verdict.kind == kind]) for kind in kinds)
    page.write_text(text + _row("All", verdicts) + _shortcomings(verdicts), encoding="utf-8")


def _row(label: str, verdicts: Sequence[Verdict]) -> str:
    answers: Counter = Counter()
    for verdict in verdicts:
        answers["fault" if verdict.shortcoming else verdict.answer] += verdict.tried
    longest = max((verdict.seconds for verdict in verdicts), default=0)
    largest = max((verdict.peak_bytes for verdict in verdicts), default=0) / 10**6
    counts = f"{answers.total():,} | {answers['accepted']:,} | {answers['refused']:,} | {answers['fault']:,}"
    return f"| {label} | {counts} | {longest:.1f} | {largest or '':{',.0f' if largest else ''}} |\n"


def _shortcomings(verdicts: Sequence[Verdict]) -> str:
    short = [verdict for verdict in verdicts if verdict.shortcoming]
    if not short:
        return "\nNothing fell short.\n"
    lines = "".join(f"- {verdict.kind}: {verdict.name}: {verdict.shortcoming}\n" for verdict in short)
    return f"\nWhat fell short:\n\n{lines}"
