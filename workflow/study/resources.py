"""What a job asks of the machine it is sent to: memory and time, by what was measured (workflow/resources.yaml).

On one machine nothing is held back by it: it counts where jobs are sent elsewhere, or a limit is given.
"""

import math
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from ttf.analyses.declaration import Analysis
from ttf.raw.raw_files import ARCHIVES, PACKED

from study.trace_files import on_disk

_UNPACKED = 8  # how much larger a table is than its packed file


def gigabytes(paths: Iterable[str]) -> float:
    """The size of raw tables in 10^9 bytes, unpacked; a file that is still to be made or downloaded counts as none."""
    # Asked again for each job, as a file may have come meanwhile.
    return sum(map(_unpacked, {on_disk(path) for path in paths})) / 1e9


def _unpacked(path: str) -> int:
    try:
        about = Path(path).stat()
    except OSError:
        return 0
    packed = path.lower().endswith((*PACKED, *ARCHIVES))
    return about.st_size * (_UNPACKED if packed else 1) if stat.S_ISREG(about.st_mode) else 0


def megabytes(measured: dict, rule: str, trace_format: str | None, raw_gb: float, attempt: int) -> int:
    """The memory to ask for, in MB of 10^6 bytes: Snakemake itself and the script; with each attempt as much again.

    `measured` is resources.yaml. A rule that is not in it asks for `other`, a format for the most of any.
    """
    of_rule = measured["rules"].get(rule, measured["other"])
    slopes = of_rule.get("mb_per_gb", {})
    slope = slopes.get(trace_format, max(slopes.values(), default=0))
    return math.ceil((measured["snakemake_mb"] + of_rule["base_mb"] + slope * raw_gb) * attempt)


def with_rooms(measured: dict, analyses: Mapping[str, Analysis]) -> dict:
    """`measured` with what the declarations of analyses say of themselves."""
    declared = {name: {"base_mb": about.memory_mb, "mb_per_gb": about.mb_per_gb} for name, about in analyses.items()}
    return measured | {"rules": measured["rules"] | declared}


def minutes(measured: dict, raw_gb: float, attempt: int) -> int:
    """The time to ask for, in minutes: far more than any rule was seen to take, as machines differ."""
    return math.ceil((measured["minutes"]["base"] + measured["minutes"]["per_gb"] * raw_gb) * attempt)


def used(benchmark: Path) -> tuple[float, float]:
    """(MB, minutes) of a benchmark file of Snakemake's, of the repeat that used most."""
    header, *rows = [line.split("\t") for line in benchmark.read_text(encoding="utf-8").splitlines()]
    rows = [dict(zip(header, row, strict=True)) for row in rows]
    # A job of a few milliseconds has no figure. Snakemake counts memory in MiB.
    rss = [float(row["max_rss"]) * 1.048576 for row in rows if row["max_rss"] not in ("-", "NA")]
    return max(rss, default=0.0), max(float(row["s"]) for row in rows) / 60


def rule_of_benchmark(benchmark: Path, folder: Path) -> tuple[str | None, str]:
    """(trace, rule) of benchmarks/TRACE/RULE.tsv, TRACE/RULE/PART.tsv, and studies/NAME/RULE.tsv, of no trace."""
    trace, rule, *_ = benchmark.relative_to(folder).with_suffix("").parts
    return (None, benchmark.stem) if trace == "studies" else (trace, rule)
