"""Errors per 1,000 GPU-days by code, in all and by month, with intervals clustered by node and week."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from ttf.analyses.causes.judge_node_errors.log_records import LogRecords, label_months
from ttf.records.clusters import DAY_S, block_name
from ttf.stats.clustered import Clusters, add_limits
from ttf.stats.durations.mttf import poisson_limits

CONFIDENCE = 0.95
NO_GPUS = "the GPUs of a watched node are unknown: no rate per GPU-day"
_CELL = ["unit", "block", "month"]


class ErrorRates:
    """Watched time in cells of node, week and month, and the rates of codes over it."""

    def __init__(self, records: LogRecords, block_days: int, clock: str | None) -> None:
        month = label_months("day", clock) if clock else pl.lit("")
        days = records.days.join(records.nodes.select("unit", "gpus"), on="unit", how="left")
        days = days.with_columns(block=pl.col("day") // block_days, month=month)
        seconds = {"node_s": pl.col("node_s").sum(), "gpu_s": (pl.col("node_s") * pl.col("gpus").fill_null(0)).sum()}
        self.cells = days.group_by(_CELL).agg(**seconds).sort(_CELL)
        self.has_gpus, self.block_name = not days["gpus"].has_nulls(), block_name(block_days)
        errors = records.errors.with_columns(day=pl.col("time_s") // DAY_S)
        errors = errors.with_columns(block=pl.col("day") // block_days, month=month)
        self.errors = errors.group_by("code", *_CELL).agg(errors=pl.len().cast(pl.Int64))

    def describe_code(self, code: str, month: str | None = None) -> dict:
        """Return errors, gpu_days, node_days, the rate and its intervals, cluster_by, clusters and a reason."""
        cells = self.cells if month is None else self.cells.filter(month=month)
        cells = cells.join(self.errors.filter(code=code), on=_CELL, how="left", maintain_order="left")
        errors = cells["errors"].fill_null(0).to_numpy().astype(float)
        node_days, gpu_s = cells["node_s"].sum() / DAY_S, cells["gpu_s"].to_numpy().astype(float)
        n, row = int(errors.sum()), {"node_days": node_days, "errors": int(errors.sum())}
        if not self.has_gpus or gpu_s.sum() < DAY_S:
            return row | {"reason": NO_GPUS}
        gpu_days = gpu_s.sum() / DAY_S
        low, high = (float(limit) * 1000 / gpu_days for limit in poisson_limits(n, CONFIDENCE))
        rate = {"errors_per_1000_gpu_days": n * 1000 / gpu_days, "rate_ci_low": low, "rate_ci_high": high}
        has_time = gpu_s > 0
        numbers = (cells[name].to_numpy()[has_time].astype(np.int64) for name in ("unit", "block"))
        strata = np.zeros(int(has_time.sum()), np.int64)
        clusters = Clusters(strata, gpu_s[has_time], 1, *numbers)
        limits = clusters.ratio(errors[has_time] * 1000 * DAY_S, gpu_s[has_time], CONFIDENCE)
        interval = add_limits(pl.DataFrame({"cluster_by": ["node"]}), *limits).row(0, named=True)
        cluster_by = f"node and {self.block_name}" if clusters.counts_blocks[0] else "node"
        reason = interval.pop("why_not")
        return row | rate | interval | {"gpu_days": gpu_days, "cluster_by": cluster_by, "reason": reason}

    def describe_months(self, codes: list[str]) -> Iterator[dict]:
        """Yield a row for each code and month, in their order; none if the trace has no calendar."""
        months = self.cells["month"].unique().sort().to_list()
        for code in codes:
            for month in months if months != [""] else ():
                yield {"code": code, "month": month} | self.describe_code(code, month)
