"""Annual failure rate of drives as Backblaze defines it: 100 x failures / (drive-days / 365)."""

import polars as pl

from ttf.analyses.time_to_failure.annual_failure_rate import AFR
from ttf.records.clusters import CLUSTER_COLUMNS, durations_by_block
from ttf.records.inputs import Inputs
from ttf.stats.clustered import add_limits, build_clusters, join_clustered, sum_by_cluster
from ttf.stats.durations.mttf import SECONDS_A_DAY, poisson_limits
from ttf.stats.durations.strata import sum_by_stratum

CONFIDENCE = 0.95
# Seconds in a year of drive-days.
YEAR_S = 365 * SECONDS_A_DAY
_FAILED = (pl.col("event") == "failure").fill_null(False)
_SUMS = {"failures": _FAILED.sum().cast(pl.Int64), "at_risk_s": pl.col("duration_s").sum()}


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    """Return the table of the analysis: afr."""
    model_column = inputs.settings.by
    durations = inputs.scan("durations", ["unit_id", "start_s", "duration_s", "event", model_column, *CLUSTER_COLUMNS])
    return {"afr": failure_rate_table(durations, model_column, inputs.settings.block_days)}


def failure_rate_table(durations: pl.LazyFrame, model_column: str, block_days: int | None = None) -> pl.DataFrame:
    """Build AFR: a row for all drives, then one for each value of the column of models."""
    overall, model_rates = (
        annual_failure_rates(durations, stratum_by, block_days) for stratum_by in ("all", model_column)
    )
    has_no_failure = model_rates["failures"] == 0
    overall = overall.with_columns(models=pl.lit(model_rates.height), without_failure=pl.lit(has_no_failure.sum()))
    model_rates = model_rates.with_columns(models=pl.lit(1), without_failure=has_no_failure)
    return AFR.conform(pl.concat([overall, model_rates], how="vertical_relaxed"))


def annual_failure_rates(durations: pl.LazyFrame, stratum_by: str, block_days: int | None = None) -> pl.DataFrame:
    """Estimate the annual failure rate for each value of a column, or for `all`, sorted: columns of AFR.

    durations: durations of drives: unit_id, duration_s (Int64 s of whole days, known), event, the column,
    CLUSTER_COLUMNS. The interval is Garwood's; without a failure its upper bound is one-sided. A stratum that is a
    single cluster has no clustered interval, because a drive mostly fails only once.
    """
    rates = sum_by_stratum(durations, stratum_by, drives=pl.col("unit_id").n_unique().cast(pl.Int64), **_SUMS)
    rates = rates.with_columns(stratum_by=pl.lit(stratum_by), stratum=pl.col("stratum").cast(pl.String))
    per_year = 100 * YEAR_S / rates["at_risk_s"].to_numpy().astype(float)
    failures = rates["failures"].to_numpy()
    low, high = poisson_limits(failures, CONFIDENCE)
    has_failure = pl.col("failures") > 0
    rates = rates.with_columns(
        drive_days=pl.col("at_risk_s") // SECONDS_A_DAY,
        afr=pl.Series(failures * per_year),
        ci_low=pl.when(has_failure).then(pl.Series(low * per_year)),
        ci_high=pl.Series(high * per_year),
        reason=pl.when(~has_failure).then(pl.lit("no failure: upper bound only")),
    )
    return join_clustered(rates, _clustered_rates(durations_by_block(durations, block_days), stratum_by), ["stratum"])


def _clustered_rates(durations: pl.LazyFrame, stratum_by: str) -> pl.DataFrame:
    """Return the clustered interval of each stratum's annual failure rate, in percent."""
    label = pl.lit("all") if stratum_by == "all" else pl.col(stratum_by).cast(pl.String)
    sums = sum_by_cluster(durations.with_columns(stratum=label), ["stratum"], False, **_SUMS, durations=pl.len())
    # As for MTTF, durations that are split into blocks of time are weighted by their time at risk.
    weight = "at_risk_s" if "is_last" in durations.collect_schema() else "durations"
    strata, cluster_sums, clusters = build_clusters(sums, ["stratum"], weight)
    failures, at_risk_s = (cluster_sums[name].to_numpy().astype(float) for name in _SUMS)
    return add_limits(strata, *clusters.ratio(100 * YEAR_S * failures, at_risk_s, CONFIDENCE, has_mean_leverage=True))
