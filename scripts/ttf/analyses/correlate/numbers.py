"""The numbers of failure shares, of run times by GPU type and of correlations."""

import polars as pl

from ttf.inputs import Inputs
from ttf.numbers.metrics import FEWEST_ENDED, Metrics


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
        if rows.height < 2:
            continue
        for end, row in (("lowest", rows.row(0, named=True)), ("highest", rows.row(-1, named=True))):
            metrics.put(f"failure_share.{feature}.{end}.value", row["value"], "label", source, row["ended"])
            for name in ("failure_share", "ci_low", "ci_high"):
                metrics.put(f"failure_share.{feature}.{end}.{name}", row[name], "share", source, row["ended"])


def of_run_times(metrics: Metrics, groups: pl.DataFrame) -> None:
    """Mean run time by GPU type, for success and failure: the longest and the shortest mean of FEWEST_ENDED or more."""
    source = "tables/runtime_by_group.csv"
    types = groups.filter((pl.col("feature") == "gpu_type") & pl.col("cutoff_s").is_null())
    for outcome_set in ("success", "failure"):
        rows = types.filter((pl.col("outcome_set") == outcome_set) & (pl.col("jobs") >= FEWEST_ENDED))
        rows = rows.sort("runtime_mean_s", maintain_order=True)
        if rows.height < 2:
            continue
        for end, row in (("shortest", rows.row(0, named=True)), ("longest", rows.row(-1, named=True))):
            key = f"runtime_by_gpu_type.{outcome_set}.{end}"
            metrics.put(f"{key}.value", row["value"], "label", source, row["jobs"])
            metrics.put(f"{key}.runtime_mean_s", row["runtime_mean_s"], "s", source, row["jobs"])


def of_correlations(metrics: Metrics, correlations: pl.DataFrame) -> None:
    """Without cut-off, per outcome set and feature: Pearson over group means and Spearman over jobs."""
    source = "tables/correlations.csv"
    chosen = correlations.filter(
        pl.col("cutoff_s").is_null()
        & (
            ((pl.col("unit") == "group_mean") & (pl.col("method") == "pearson"))
            | ((pl.col("unit") == "job") & (pl.col("method") == "spearman"))
        )
    )
    for row in chosen.iter_rows(named=True):
        if row["estimate"] is not None:
            key = f"correlations.{row['outcome_set']}.{row['feature']}.{row['unit']}"
            for name in ("estimate", "ci_low", "ci_high", "p_value", "p_adjusted"):
                metrics.put(f"{key}.{name}", row[name], "r" if "p_" not in name else "p", source, row["n"])
            metrics.put(f"{key}.reject", row["reject"], "truth", source, row["n"])
