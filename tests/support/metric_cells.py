"""Check the numbers of a finished trace against the table cells that they reference."""

import json
from pathlib import Path

import polars as pl
from ttf.engine.size_unit import UNITS


def wrong_cells(folder: Path) -> list[str]:
    """Return a message for each number of metrics.json that differs from its cell in a table of the folder."""
    tables, faults = {}, []
    brief = folder / "brief.json"
    grades = json.loads(brief.read_text()) if brief.is_file() else {}
    for key, metric in json.loads((folder / "metrics.json").read_text()).items():
        source, column, line = metric["source"], metric["column"], metric["line"]
        if source == "brief.json":
            is_same = column != "grade" or grades["grade"] == metric["value"]
        else:
            if source not in tables:
                tables[source] = pl.read_csv(folder / source, infer_schema=False)
            cell = tables[source][column][line - 2]
            is_same = _is_same(cell, metric["value"])
        if not is_same:
            faults.append(f"{key}: {metric['value']!r} is not {column} in line {line} of {source}")
    return faults


def _is_same(cell: str | None, value: object) -> bool:
    if cell is None or isinstance(value, str):
        # A table renames gpu_count to the unit of its trace.
        return cell in {unit.named(str(value)) for unit in UNITS}
    return cell == str(value).lower() if isinstance(value, bool) else float(cell) == value
