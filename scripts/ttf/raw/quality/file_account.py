"""List the files that a trace was read from, and the other files in its folders."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence

import polars as pl

from ttf.raw.raw_contracts import RAW_FILES

_TOGETHER = "several files are read as one table"


def raw_files(
    entries: Sequence[Mapping[str, str]], account: pl.DataFrame, by_part: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Return a row per file (RAW_FILES) from entries {file, table, part} if it is read, or {file, reason} if not.

    account: ROW_ACCOUNT. by_part: ROW_ACCOUNT_BY_PART if the trace is in parts; otherwise the parts are blank. A file
    name that is not valid UTF-8 is escaped.
    """
    row_counts = {("", table): n for table, n in account.select("table", "rows_read").iter_rows()}
    if by_part is not None:
        row_counts |= {(part, table): n for part, table, n in by_part.select("part", "table", "rows_read").iter_rows()}
    file_counts = Counter((entry["part"], entry["table"]) for entry in entries if "table" in entry)
    rows = []
    for entry in entries:
        key = (entry.get("part", ""), entry.get("table", ""))
        rows_read = row_counts.get(key) if file_counts[key] == 1 else None
        reason = entry.get("reason") or (_TOGETHER if rows_read is None else None)
        name = os.fsencode(entry["file"]).decode("utf-8", "backslashreplace")
        rows.append({"file": name, "table": entry.get("table"), "rows_read": rows_read, "reason": reason})
    return RAW_FILES.conform(pl.DataFrame(rows, schema=RAW_FILES.schema))
