"""Outages and exposure for tests: of real traces, read without the study's code, and made-up ones."""

import json
from collections import defaultdict
from pathlib import Path

import polars as pl
from ttf.records.outages.outage_causes import apply_rules
from ttf.records.outages.outage_records import build_exposure, merge_records

DAY = 86_400


def infinitehbd_records(folder: Path) -> pl.DataFrame:
    """Read the faults of fault_trace.json; each start pairs with the next end of the same node and type."""
    open_starts, rows = defaultdict(list), []
    for event in json.loads((folder / "fault_trace.json").read_text()):
        kind = event["fault_type"]
        key = (event["node_id"], kind["Level"], kind["Class"], kind["Desc"])
        time_s = round(event["event_time"] * DAY)
        if event["event_type"] == "fault_start":
            open_starts[key].append(time_s)
        else:
            rows.append((*key, open_starts[key].pop(0), time_s))
    columns = ["unit_id", "level", "class", "cause", "start_s", "end_s"]
    return pl.DataFrame(rows, schema=columns, orient="row").with_columns(node="unit_id")


def infinitehbd(folder: Path, nodes: int = 400, days: float = 348.9798) -> tuple[pl.DataFrame, ...]:
    """Return (outages, records, exposure) of all nodes of the trace, observed from 0 to `days`."""
    records = infinitehbd_records(folder)
    recorded_units = records["unit_id"].unique().sort().to_list()
    names = recorded_units + [f"unseen-{number}" for number in range(1, nodes - len(recorded_units) + 1)]
    exposure = build_exposure("t", pl.DataFrame({"unit_id": names, "from_s": 0, "until_s": round(days * DAY)}))
    return *merge_records("t", apply_rules(records, []), exposure), exposure


def make_outages(
    intervals: dict[str, list[tuple[int, int | None]]], until_s: int, **columns
) -> tuple[pl.DataFrame, ...]:
    """Return (outages, records, exposure) of units with these (start, end) outages, observed to until_s."""
    rows = [(unit, *interval) for unit, unit_intervals in intervals.items() for interval in unit_intervals]
    records = pl.DataFrame(rows, schema={"unit_id": pl.String, "start_s": pl.Int64, "end_s": pl.Int64}, orient="row")
    units = pl.DataFrame({"unit_id": list(intervals), "from_s": 0, "until_s": until_s})
    exposure = build_exposure("t", units.with_columns(**columns))
    return *merge_records("t", apply_rules(records.with_columns(**columns), []), exposure), exposure
