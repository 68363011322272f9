"""Cells with an estimate that missing ends withhold: that of the failures with an end, under any name."""

import json
from pathlib import Path

import polars as pl
from ttf.analyses.factors.estimate_hazards.hazard_ratios import hazard_ratios
from ttf.records.durations import find_strata
from ttf.stats.durations.missing_ends import MOST_WITHOUT_END, failures_without_end
from ttf.stats.durations.mttf import mean_time_to_failure


def find_withheld_cells(folder: Path) -> tuple[set[str], list[tuple[str, str]]]:
    """Return the withheld estimates of a trace, and (file, column or key) of each cell that has one.

    folder: results of a trace in which most failures have no end.
    """
    durations = pl.read_parquet(folder / "durations.parquet")
    strata = find_strata(durations, ["gpu_type"])
    ends = failures_without_end(durations, "failure", strata).filter(pl.col("share_without_end") > MOST_WITHOUT_END)
    naive = mean_time_to_failure(durations, "failure", strata)
    naive = naive.join(ends, on=["stratum_by", "stratum"], how="semi").select("mttf_s", "failures_per_1000_node_days")
    ratios = hazard_ratios(durations, "failure", ["gpu_count", *strata[1:]])["hazard_ratio"]
    withheld = {f"{cell:.10g}" for column in (*naive, ratios) for cell in column.drop_nulls()} - {"0", "1"}
    tables = {path.name: pl.read_csv(path, infer_schema_length=None) for path in (folder / "tables").glob("*.csv")}
    columns = {(name, column): table[column] for name, table in tables.items() for column in table.columns}
    numbers = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    columns |= {("metrics.json", key): pl.Series([number["value"]]) for key, number in numbers.items()}
    floats = {name: cells.drop_nulls() for name, cells in columns.items() if cells.dtype == pl.Float64}
    return withheld, [name for name, cells in floats.items() if withheld & {f"{cell:.10g}" for cell in cells}]
