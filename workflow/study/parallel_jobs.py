"""How many jobs share the work on a trace's large tables: known when the DAG is built, the same in every run."""

from pathlib import Path

from study.trace_files import on_disk

# Of an embedded sample, whether its raw files are there yet or not: the largest has so many.
EMBEDDED_BYTES = 50_000_000


def shares_of(entry: dict, files: dict[str, list[str]], scatter: dict) -> int:
    """The number of shares by the configuration's `scatter`, for a trace of this registry entry and these raw files."""
    return scatter["jobs"] if _size(entry, files) > scatter["above_mb"] * 1_000_000 else 1


def _size(entry: dict, files: dict[str, list[str]]) -> int:
    """Bytes of the raw files as they lie on the disk; of one that is not there yet what the registry says of it."""
    if entry.get("embedded"):
        return EMBEDDED_BYTES
    announced = {
        on_disk(path): entry.get("download", {}).get(table, {}).get("bytes", 0)
        for table, paths in files.items()
        for path in paths
    }
    return sum(Path(file).stat().st_size if Path(file).exists() else size for file, size in announced.items())
