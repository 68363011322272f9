import polars as pl

from ttf.analyses.measure_use.telemetry import gpu_use_by_kind, host_use
from ttf.formats.philly.derive import held_gpus
from ttf.inputs import Inputs


def compute(given: Inputs) -> dict:
    raw = {name: pl.scan_parquet(given.path("raw") / f"{name}.parquet") for name in given.settings.tables}
    held = held_gpus(raw)
    return {
        "gpu_use": gpu_use_by_kind(held, raw.get("gpu_util")),
        "host_use": host_use(held, raw.get("cpu_util"), raw.get("mem_util")),
    }
