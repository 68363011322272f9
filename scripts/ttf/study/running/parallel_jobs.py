"""The number of jobs that share the work on a trace's large tables, fixed when the DAG is built."""

from pathlib import Path

from ttf.study.trace_files import get_disk_path

# Assumed size of an embedded sample, whether its files exist yet or not: that of the largest.
EMBEDDED_BYTES = 50_000_000


def count_shares(entry: dict, files: dict[str, list[str]], scatter: dict) -> int:
    """Return the number of jobs that share the work: `jobs` of scatter above `above_mb` of raw files, else 1."""
    return scatter["jobs"] if _measure_bytes(entry, files) > scatter["above_mb"] * 1_000_000 else 1


def _measure_bytes(entry: dict, files: dict[str, list[str]]) -> int:
    """Return the bytes of the raw files on disk; for a missing file those that the registry announces."""
    if entry.get("embedded"):
        return EMBEDDED_BYTES
    announced = {
        get_disk_path(path): entry.get("download", {}).get(table, {}).get("bytes", 0)
        for table, paths in files.items()
        for path in paths
    }
    return sum(Path(file).stat().st_size if Path(file).exists() else size for file, size in announced.items())
