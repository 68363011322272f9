"""Which share of the ended jobs failed, by each value of each feature."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from ttf.stats.counts import Rows
from ttf.stats.features import Feature, features_of
from ttf.stats.normal import two_sided_z

SHARE_SCHEMA = {
    "feature": pl.String,
    "value": pl.String,
    "jobs": pl.Int64,
    "ended": pl.Int64,
    "failures": pl.Int64,
    "failure_share": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "reason": pl.String,
}


def wilson_interval(
    successes: np.ndarray, trials: np.ndarray, confidence: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    """The score interval of a binomial share (Wilson 1927, without continuity correction).

    successes, trials: integer arrays of one shape. Returns (low, high), float arrays of that shape, within
    [0, 1]; NaN where there are no trials (a caller writes those as blank).
    Raises ValueError where successes are negative or exceed the trials, or the confidence is not in (0, 1).
    """
    # Not statsmodels' proportion_confint: its import costs 1.5 s; the tests compare the two.
    k = np.asarray(successes, dtype=np.float64)
    n = np.asarray(trials, dtype=np.float64)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, not {confidence}")
    if np.any(k < 0) or np.any(k > n):
        raise ValueError("successes must lie between 0 and the trials")
    z = two_sided_z(confidence)
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = (k + z * z / 2) / (n + z * z)
        half = z * np.sqrt(k * (n - k) / n + z * z / 4) / (n + z * z)
        # At the ends the limits are exactly 0 and 1; rounding must not put them a hair off.
        low = np.where(k == 0, 0.0, centre - half)
        high = np.where(k == n, 1.0, centre + half)
    nothing = n == 0
    return np.where(nothing, np.nan, low), np.where(nothing, np.nan, high)


def failure_share(jobs: Rows, features: Sequence[Feature] | None = None) -> pl.DataFrame:
    """Failures among the ended jobs (success or failure), a row per feature and value.

    jobs: `outcome` and the features' columns. features: those to report, in that order; by default all that
    the table has. Jobs without the value form no group. Values ascend, numbers as numbers.
    failure_share is a fraction, its interval Wilson's at 95 %; both are blank, with a reason, where no job
    with the value ended. Raises polars' ColumnNotFoundError when a column is missing.
    """
    chosen = features_of(jobs) if features is None else features
    parts = [_share_of(jobs, feature) for feature in chosen]
    return pl.concat([pl.DataFrame(schema=SHARE_SCHEMA), *parts])


def _share_of(jobs: Rows, feature: Feature) -> pl.DataFrame:
    counts = (
        jobs.lazy()
        .select(feature.group_key().alias("key"), "outcome")
        .drop_nulls("key")
        .group_by("key")
        .agg(
            jobs=pl.len().cast(pl.Int64),
            ended=pl.col("outcome").is_in(["success", "failure"]).sum().cast(pl.Int64),
            failures=(pl.col("outcome") == "failure").sum().cast(pl.Int64),
        )
        .collect(engine="streaming")
        .sort("key")
    )
    low, high = wilson_interval(counts["failures"].to_numpy(), counts["ended"].to_numpy())
    ended = pl.col("ended") > 0
    return counts.select(
        feature=pl.lit(feature.name),
        value=feature.labels(counts["key"]),
        jobs="jobs",
        ended="ended",
        failures="failures",
        failure_share=pl.when(ended).then(pl.col("failures") / pl.col("ended")),
        ci_low=pl.when(ended).then(pl.Series(low)),
        ci_high=pl.when(ended).then(pl.Series(high)),
        reason=pl.when(~ended).then(pl.lit("no job with this value ended")),
    )
