"""Features of a job: its requests, size and GPU type, and measured use where a trace has it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import polars as pl


@dataclass(frozen=True)
class Feature:
    """One feature of a job.

    name: as in the results tables, such as `gpu_request`. column: its column in the jobs table. per_unit: integer units
    of the column per displayed unit (10 milli-GPU are 1 % of a GPU, 1024 MiB are 1 GiB). kind: `text` has groups
    without an order. `request` is grouped by its exact integer. `measured` is grouped by whole displayed units, because
    otherwise nearly every value would be its own group.
    """

    name: str
    column: str
    per_unit: int
    kind: Literal["text", "request", "measured"]

    @property
    def is_numeric(self) -> bool:
        return self.kind != "text"

    def group_key(self) -> pl.Expr:
        """Return the grouping value of a job: String for text, else Int64; null where the job has no value.

        Measured values are rounded half up in integers: (2 v + d) // 2 d.
        """
        column = pl.col(self.column)
        if self.kind == "text":
            return column.cast(pl.String)
        if self.kind == "measured":
            return (2 * column.cast(pl.Int64) + self.per_unit) // (2 * self.per_unit)
        return column.cast(pl.Int64)

    def labels(self, keys: Iterable[int | str]) -> pl.Series:
        """Return group keys in displayed units as text: shortest round trip, integers without ".0"."""
        texts = [_quotient_text(int(key), self.per_unit) if self.kind == "request" else str(key) for key in keys]
        return pl.Series("value", texts, dtype=pl.String)


def _quotient_text(integer: int, divisor: int) -> str:
    whole, remainder = divmod(integer, divisor)
    return str(whole) if remainder == 0 else repr(integer / divisor)


# In the order of the results tables.
FEATURES = (
    Feature("gpu_type", "gpu_type", 1, "text"),
    Feature("gpu_request", "gpu_milli", 10, "request"),
    Feature("cpu_request", "cpu_milli", 10, "request"),
    Feature("memory_request", "mem_mib", 1024, "request"),
    Feature("size", "size", 1, "request"),
    Feature("gpu_utilisation", "gpu_used_milli", 10, "measured"),
    Feature("cpu_usage", "cpu_used_milli", 10, "measured"),
    Feature("memory_usage", "mem_used_mib", 1024, "measured"),
)


def select_features(jobs: pl.DataFrame | pl.LazyFrame) -> list[Feature]:
    """Return the features for which this jobs table has a column, in the order of the results tables.

    GPU type, requests and size are columns of every jobs table; columns of nulls stay, so that the tables report
    missing data. Measured use is included where the trace's format has the column.
    """
    return [feature for feature in FEATURES if feature.column in jobs.collect_schema()]


def correlation_row(
    table: pl.DataFrame, outcome_set: str, feature: str, cutoff: int | None, unit: str, method: str
) -> dict | None:
    """Return the matching row of correlations.csv, or None."""
    has_cutoff = pl.col("cutoff_s").eq_missing(cutoff)
    matches = table.filter(has_cutoff, outcome_set=outcome_set, feature=feature, unit=unit, method=method)
    return matches.row(0, named=True) if matches.height else None
