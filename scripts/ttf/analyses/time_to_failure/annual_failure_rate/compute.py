"""The annual failure rate of drives, as Backblaze defines it: 100 x failures / (drive-days / 365)."""

import polars as pl

from ttf.analyses.time_to_failure.annual_failure_rate import AFR
from ttf.records.clusters import CLUSTER_COLUMNS, lives_by_block
from ttf.records.inputs import Inputs
from ttf.stats.clustered import beside, by_cluster, in_strata, with_limits
from ttf.stats.durations.mttf import SECONDS_A_DAY, poisson_limits
from ttf.stats.durations.strata import by_stratum

CONFIDENCE = 0.95
# Seconds at risk in which a failure is 1 % a year.
YEAR_S = 365 * SECONDS_A_DAY
_FAILED = (pl.col("event") == "failure").fill_null(False)
_SUMS = {"failures": _FAILED.sum().cast(pl.Int64), "at_risk_s": pl.col("duration_s").sum()}


def compute(given: Inputs) -> dict[str, pl.DataFrame]:
    by = given.settings.by
    lives = given.scan("lives", ["unit_id", "start_s", "duration_s", "event", by, *CLUSTER_COLUMNS])
    return {"afr": rates_of_all_and_models(lives, by, given.settings.block_days)}


def rates_of_all_and_models(lives: pl.LazyFrame, model: str, block_days: int | None = None) -> pl.DataFrame:
    """AFR: a row for all drives, then one for each value of the column `model`."""
    of_all, by_model = (annual_failure_rates(lives, stratum_by, block_days) for stratum_by in ("all", model))
    has_none = by_model["failures"] == 0
    of_all = of_all.with_columns(models=pl.lit(by_model.height), without_failure=pl.lit(has_none.sum()))
    return AFR.typed(
        pl.concat([of_all, by_model.with_columns(models=pl.lit(1), without_failure=has_none)], how="vertical_relaxed")
    )


def annual_failure_rates(lives: pl.LazyFrame, stratum_by: str, block_days: int | None = None) -> pl.DataFrame:
    """AFR of each value of a column of the lives, or of `all`, sorted.

    lives: unit_id, duration_s (Int64 s of whole days, known), event, the column, and those of `ttf.records.clusters`.
    The interval is Garwood's of the failures; without a failure its upper end is a one-sided bound. The clustered one
    is by what the lives are clustered by; a stratum that is one such cluster has none, as a drive mostly fails but
    once.
    """
    found = by_stratum(lives, stratum_by, drives=pl.col("unit_id").n_unique().cast(pl.Int64), **_SUMS)
    found = found.with_columns(stratum_by=pl.lit(stratum_by), stratum=pl.col("stratum").cast(pl.String))
    per_year = 100 * YEAR_S / found["at_risk_s"].to_numpy().astype(float)
    failures = found["failures"].to_numpy()
    low, high = poisson_limits(failures, CONFIDENCE)
    some = pl.col("failures") > 0
    none = pl.when(~some).then(pl.lit("no failure: upper bound only"))
    rates = found.with_columns(
        drive_days=pl.col("at_risk_s") // SECONDS_A_DAY,
        afr=pl.Series(failures * per_year),
        ci_low=pl.when(some).then(pl.Series(low * per_year)),
        ci_high=pl.Series(high * per_year),
        reason=none,
    )
    return beside(rates, _clustered(lives_by_block(lives, block_days), stratum_by), ["stratum"])


def _clustered(lives: pl.LazyFrame, stratum_by: str) -> pl.DataFrame:
    label = pl.lit("all") if stratum_by == "all" else pl.col(stratum_by).cast(pl.String)
    sums = by_cluster(lives.with_columns(stratum=label), ["stratum"], False, **_SUMS, lives=pl.len())
    # As of a mean time to failure: lives that are divided into blocks of time count by it.
    members = "at_risk_s" if "is_last" in lives.collect_schema() else "lives"
    strata, rows, clusters = in_strata(sums, ["stratum"], members)
    failures, at_risk_s = (rows[name].to_numpy().astype(float) for name in _SUMS)
    return with_limits(strata, *clusters.ratio(100 * YEAR_S * failures, at_risk_s, CONFIDENCE, both=True))
