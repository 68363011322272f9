"""Whether the numbers of a finished trace are the cells that they name."""

import json
from pathlib import Path

import polars as pl
from ttf.engine.size_unit import UNITS


def wrong_cells(folder: Path) -> list[str]:
    """A line for each number of metrics.json that differs from its cell in a table of the folder."""
    tables, faults = {}, []
    brief = folder / "brief.json"
    grades = json.loads(brief.read_text()) if brief.is_file() else {}
    for key, about in json.loads((folder / "metrics.json").read_text()).items():
        source, column, line = about["source"], about["column"], about["line"]
        if source == "brief.json":
            is_same = column != "grade" or grades["grade"] == about["value"]
        else:
            if source not in tables:
                tables[source] = pl.read_csv(folder / source, infer_schema=False)
            cell = tables[source][column][line - 2]
            is_same = _is_same(cell, about["value"])
        if not is_same:
            faults.append(f"{key}: {about['value']!r} is not {column} in line {line} of {source}")
    return faults


def _is_same(cell: str | None, value: object) -> bool:
    if cell is None or isinstance(value, str):
        # A table says gpu_count in the unit of its trace.
        return cell in {unit.named(str(value)) for unit in UNITS}
    return cell == str(value).lower() if isinstance(value, bool) else float(cell) == value
