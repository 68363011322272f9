"""The numbers of failure shares, of run times by GPU type and of correlations."""

import polars as pl

from ttf.inputs import Inputs
from ttf.numbers.metrics import FEWEST_ENDED, Metrics, ends, ends_of

_SHARE = {"value": "label", "failure_share": "share"} | ends("share")
_CORRELATION = {"estimate": "r", "p_value": "p", "p_adjusted": "p", "reject": "truth"} | ends("r")
_CORRELATION |= {"p_clustered": "p", "p_adjusted_clustered": "p", "reject_clustered": "truth"}


def numbers(metrics: Metrics, given: Inputs) -> None:
    of_failure_share(metrics, given["failure_share"])
    of_run_times(metrics, given["runtime_by_group"])
    of_correlations(metrics, given["correlations"])


def of_failure_share(metrics: Metrics, shares: pl.DataFrame) -> None:
    """Per feature, the values with the highest and the lowest failure share (FEWEST_ENDED jobs or more ended)."""
    source = "tables/failure_share.csv"
    counted = shares.filter(pl.col("ended") >= FEWEST_ENDED).sort("failure_share", maintain_order=True)
    for (feature,), rows in counted.group_by(["feature"], maintain_order=True):
        metrics.put(f"failure_share.{feature}.values", rows.height, "values", source)
        for end, row in ends_of(rows, "lowest", "highest"):
            metrics.put_row(f"failure_share.{feature}.{end}", row, _SHARE, source, row["ended"])


def of_run_times(metrics: Metrics, groups: pl.DataFrame) -> None:
    """Mean run time by GPU type, for success and failure: the longest and the shortest mean of FEWEST_ENDED or more."""
    source = "tables/runtime_by_group.csv"
    types = groups.filter((pl.col("feature") == "gpu_type") & pl.col("cutoff_s").is_null())
    for outcome_set in ("success", "failure"):
        rows = types.filter((pl.col("outcome_set") == outcome_set) & (pl.col("jobs") >= FEWEST_ENDED))
        for end, row in ends_of(rows.sort("runtime_mean_s", maintain_order=True), "shortest", "longest"):
            units = {"value": "label", "runtime_mean_s": "s"}
            metrics.put_row(f"runtime_by_gpu_type.{outcome_set}.{end}", row, units, source, row["jobs"])


def of_correlations(metrics: Metrics, correlations: pl.DataFrame) -> None:
    source = "tables/correlations.csv"
    known = correlations.filter(pl.col("cutoff_s").is_null() & pl.col("estimate").is_not_null())
    for row in known.iter_rows(named=True):
        if (row["unit"], row["method"]) in (("group_mean", "pearson"), ("job", "spearman")):
            key = f"correlations.{row['outcome_set']}.{row['feature']}.{row['unit']}"
            metrics.put_row(key, row, _CORRELATION, source, row["n"])
