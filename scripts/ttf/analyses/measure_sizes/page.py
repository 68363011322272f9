"""The table of mean time to failure by job size."""

import polars as pl

from ttf.analyses.measure_sizes import MTTF_BY_GPUS
from ttf.report import words
from ttf.report.tables import Interval, Shown
from ttf.report.trace import Trace


def tables(trace: Trace) -> dict[str, Shown]:
    """Measured beside projected, a row per bucket; none where the units hold no GPU or none was at risk."""
    known = pl.col("ci_low_s").is_not_null() | pl.col("projected_mttf_s").is_not_null()
    by_gpus = trace.table("mttf_by_gpus").filter(known)
    sizes = [
        words.count(high) if low == high else f"{words.count(low)} to {words.count(high)}"
        for low, high in by_gpus.select("gpus_low", "gpus_high").iter_rows()
    ]
    columns = {
        "gpus": ("GPUs", None),
        "jobs": "Runs" if trace.has_jobs else "Lives",
        "failures": None,
        "mttf_s": Interval(low="ci_low_clustered_s", high="ci_high_clustered_s"),
        "projected_mttf_s": Interval(low="projected_low_s", high="projected_high_s"),
    }
    if not by_gpus["projected_mttf_s"].count():
        del columns["projected_mttf_s"]
    return {"sizes": Shown(by_gpus.with_columns(gpus=pl.Series(sizes, dtype=pl.String)), columns, MTTF_BY_GPUS)}
