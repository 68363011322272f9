"""The numbers of mean time to failure by job size."""

import polars as pl

from ttf.analyses.scaling.measure_sizes import MTTF_BY_GPUS, NODE_FAILURE_RATE, SIZE_LAW
from ttf.display.metrics import CI, CI_S, CLUSTERS, FEWEST_FAILURES, cells

# Sizes that the text names, up to the projection limit.
NAMED_GPUS = (1024, 16_384, 131_072)
# Without a failure there is only an upper bound, at 95 %.
_CONFIDENCE = pl.col("confidence") == pl.when(pl.col("failures").sum() > 0).then(0.9).otherwise(0.95)
_NODE = "basis node_gpus node_gpus_from projects_to_nodes no_projection needed"
_MEASURED = f"failures mttf_s {CI_S}"
_PROJECTED = "gpus=gpus_high mttf_s=projected_mttf_s low_s=projected_low_s high_s=projected_high_s"
_IS_LARGEST = pl.col("gpus_high") == pl.col("gpus_high").filter(pl.col("jobs") > 0).last()
_LAW = "slope ci_low ci_high dispersion detectable_low detectable_high sizes failures"
_HAS_SLOPE = pl.col("slope").is_not_null()


def _is_bucket_of(gpus: int) -> pl.Expr:
    """Return whether a row is the bucket that holds jobs of this many GPUs."""
    return pl.col("gpus_high") == pl.col("gpus_high").filter(pl.col("gpus_high") >= gpus).min()


NUMBERS = [
    cells(NODE_FAILURE_RATE, "sizes", _NODE, _CONFIDENCE, n="jobs"),
    cells(NODE_FAILURE_RATE, "sizes", "largest_run.gpus=largest_run_gpus rate.runs=jobs", _CONFIDENCE, n=""),
    cells(
        NODE_FAILURE_RATE,
        "sizes.rate",
        f"bound failures above_gpus node_days days_per_failure reason failures_per_1000_node_days {CI}",
        _CONFIDENCE,
        n="jobs",
    ),
    cells(
        MTTF_BY_GPUS,
        "sizes",
        f"gpus_low gpus_high {_MEASURED}",
        pl.col("failures") >= FEWEST_FAILURES,
        n="jobs",
        sort="gpus_high",
        ends="smallest largest",
    ),
    cells(MTTF_BY_GPUS, "sizes.measured.{gpus_high}", _MEASURED, pl.col("failures") > 0, n="jobs"),
    cells(MTTF_BY_GPUS, "sizes.projected.{gpus_high}", _PROJECTED, _IS_LARGEST, not_blank="projected_mttf_s"),
    *(
        cells(MTTF_BY_GPUS, f"sizes.projected.{gpus}", _PROJECTED, _is_bucket_of(gpus), not_blank="projected_mttf_s")
        for gpus in NAMED_GPUS
    ),
    cells(SIZE_LAW, "sizes.law", "verdict", n="failures", take=1),
    cells(SIZE_LAW, "sizes.law", "reason", ~_HAS_SLOPE.any(), n="jobs", take=1),
    cells(SIZE_LAW, "sizes.law", f"{_LAW} {CLUSTERS}", _HAS_SLOPE, n="jobs", take=-1),
    cells(
        SIZE_LAW,
        "sizes.law",
        "no_clusters=reason",
        ~_HAS_SLOPE & _HAS_SLOPE.any(),
        n="failures",
        take=-1,
        model="clustered",
    ),
    cells(SIZE_LAW, "sizes.law.independent", "ci_low ci_high", n="failures", model="quasi_poisson"),
]
