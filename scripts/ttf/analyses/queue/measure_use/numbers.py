"""The numbers of GPU and host activity: all GPU minutes and by outcome, their coverage, 16 GPUs, hosts."""

import polars as pl

from ttf.analyses.queue.measure_use import GPU_USE, HOST_USE
from ttf.display.metrics import cells

_HAS_READINGS, _ANY_SERVERS, _ANY_SHARING = pl.col("n") > 0, pl.col("servers").is_null(), pl.col("dedicated").is_null()
_SHARES = "mean_share p50_share zero_share coverage_share coverage_in_span_share"
NUMBERS = [
    cells(GPU_USE, "use.gpu.{outcome}", f"jobs {_SHARES}", _HAS_READINGS, _ANY_SERVERS, job_gpus="all"),
    cells(GPU_USE, "use.gpu.servers.{servers}", "mean_share", _HAS_READINGS, _ANY_SHARING, not_blank="servers"),
    cells(HOST_USE, "use.{resource}.{machine_minutes}", "mean_share p50_share", _HAS_READINGS),
]
