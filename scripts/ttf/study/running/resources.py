"""The memory and the time that a job requests, from measurements (workflow/resources.yaml).

They matter only if a scheduler runs the jobs, or if a limit is given.
"""

import math
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from ttf.analyses.declaration import Analysis
from ttf.raw.raw_files import ARCHIVES, PACKED
from ttf.study.trace_files import get_disk_path

_UNPACKED_RATIO = 8  # size of a table relative to its packed file


def measure_gb(paths: Iterable[str]) -> float:
    """Return the unpacked size of raw tables in 10^9 bytes; missing files count as zero."""
    # Measured again for each job, as new files may have arrived.
    return sum(map(_measure_unpacked_bytes, {get_disk_path(path) for path in paths})) / 1e9


def _measure_unpacked_bytes(path: str) -> int:
    try:
        status = Path(path).stat()
    except OSError:
        return 0
    is_packed = path.lower().endswith((*PACKED, *ARCHIVES))
    return status.st_size * (_UNPACKED_RATIO if is_packed else 1) if stat.S_ISREG(status.st_mode) else 0


def estimate_memory_mb(resources: dict, rule: str, trace_format: str | None, raw_gb: float, attempt: int) -> int:
    """Return the memory to request, in MB of 10^6 bytes, for Snakemake and the script; it grows with each attempt.

    resources: resources.yaml. A rule without costs uses those of `other`, an unknown format the highest slope.
    """
    costs = resources["rules"].get(rule, resources["other"])
    slopes = costs.get("mb_per_gb", {})
    slope = slopes.get(trace_format, max(slopes.values(), default=0))
    return math.ceil((resources["snakemake_mb"] + costs["base_mb"] + slope * raw_gb) * attempt)


def add_analysis_costs(resources: dict, analyses: Mapping[str, Analysis]) -> dict:
    """Return resources.yaml with the costs that analyses declare."""
    cost_by_name = {
        name: {"base_mb": declaration.memory_mb, "mb_per_gb": declaration.mb_per_gb}
        for name, declaration in analyses.items()
    }
    return resources | {"rules": resources["rules"] | cost_by_name}


def estimate_runtime_min(resources: dict, raw_gb: float, attempt: int) -> int:
    """Return the time to request, in minutes: far above all measurements, as machines differ."""
    return math.ceil((resources["minutes"]["base"] + resources["minutes"]["per_gb"] * raw_gb) * attempt)


def read_benchmark(benchmark: Path) -> tuple[float, float]:
    """Return (MB, minutes) of a Snakemake benchmark file, each the maximum over repeats."""
    header, *lines = [line.split("\t") for line in benchmark.read_text(encoding="utf-8").splitlines()]
    rows = [dict(zip(header, line, strict=True)) for line in lines]
    # A job of a few milliseconds has no value. Snakemake reports memory in MiB.
    memory_mb = [float(row["max_rss"]) * 1.048576 for row in rows if row["max_rss"] not in ("-", "NA")]
    return max(memory_mb, default=0.0), max(float(row["s"]) for row in rows) / 60


def parse_benchmark_path(benchmark: Path, folder: Path) -> tuple[str | None, str]:
    """Return (trace, rule) of benchmarks/TRACE/RULE.tsv, TRACE/RULE/PART.tsv or (no trace) studies/NAME/RULE.tsv."""
    trace, rule, *_ = benchmark.relative_to(folder).with_suffix("").parts
    return (None, benchmark.stem) if trace == "studies" else (trace, rule)
