"""The numbers of GPU and host use: all GPU minutes and by outcome, what is measured of them, 16 GPUs, hosts."""

import polars as pl

from ttf.analyses.queue.measure_use import GPU_USE, HOST_USE
from ttf.display.metrics import cells

_MEASURED, _ALL, _SPREAD = pl.col("n") > 0, pl.col("servers").is_null(), pl.col("dedicated").is_null()
_SHARES = "mean_share p50_share zero_share coverage_share coverage_in_span_share"
NUMBERS = [
    cells(GPU_USE, "use.gpu.{outcome}", f"jobs {_SHARES}", _MEASURED, _ALL, job_gpus="all"),
    cells(GPU_USE, "use.gpu.servers.{servers}", "mean_share", _MEASURED, _SPREAD, not_blank="servers"),
    cells(HOST_USE, "use.{resource}.{machine_minutes}", "mean_share p50_share", _MEASURED),
]
