"""Which files the rows of a trace were read from, and what else lay in its folders."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence

import polars as pl

from ttf.raw.raw_contracts import RAW_FILES

_TOGETHER = "several files are read as one table"


def raw_files(
    entries: Sequence[Mapping[str, str]], account: pl.DataFrame, by_part: pl.DataFrame | None = None
) -> pl.DataFrame:
    """A row for each entry (RAW_FILES): {file, table, part} of one that is read, {file, reason} of one left out.

    account: ROW_ACCOUNT; by_part: ROW_ACCOUNT_BY_PART of a trace in parts, else the part of each is blank. A name that
    is not valid UTF-8 is written out.
    """
    rows = {("", table): read for table, read in account.select("table", "rows_read").iter_rows()}
    if by_part is not None:
        rows |= {(part, table): read for part, table, read in by_part.select("part", "table", "rows_read").iter_rows()}
    files = Counter((entry["part"], entry["table"]) for entry in entries if "table" in entry)
    found = []
    for entry in entries:
        of_table = (entry.get("part"), entry.get("table"))
        read = rows.get(of_table) if files[of_table] == 1 else None
        reason = entry.get("reason") or (_TOGETHER if read is None else None)
        name = os.fsencode(entry["file"]).decode("utf-8", "backslashreplace")
        found.append({"file": name, "table": of_table[1], "rows_read": read, "reason": reason})
    return RAW_FILES.typed(pl.DataFrame(found, schema=RAW_FILES.schema))
