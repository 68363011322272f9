"""The hazard that lives have been through by an age: Nelson-Aalen."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from ttf.stats.strata import NO_LIFE, Times, times_by_stratum
from ttf.stats.survival import STRATUM_SCHEMA, Z_95

NO_EVENT_YET = "no event yet: the interval is not defined"

HAZARD_SCHEMA = {
    **STRATUM_SCHEMA,
    "time_s": pl.Int64,
    "at_risk": pl.Int64,
    "events": pl.Int64,
    "censored": pl.Int64,
    "cumulative_hazard": pl.Float64,
    "variance": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "reason": pl.String,
}


def cumulative_hazard(lives: pl.DataFrame, event: str, strata: Sequence[str]) -> pl.DataFrame:
    """The Nelson-Aalen estimate (Nelson 1972; Aalen 1978) by stratum, a row per distinct duration.

    lives: duration_s (Int64 seconds; null is left out), event (any other, or null, censors), a column per
    stratification (`all` needs none). Rows start at age 0 as those of `kaplan_meier` do; whole curves:
    `ttf.stats.survival.thin` cuts them. With d events among n at risk at an age, cumulative_hazard is the sum of d / n
    (expected events per life, a pure number), variance Aalen's sum of d / n^2; ci_low, ci_high: 95 %, on the log scale,
    H exp(-+ z sqrt(variance) / H) (Klein & Moeschberger 2003, section 4.3); blank, with a reason, before the first
    event.
    Raises ValueError when a stratification has no column or a duration is negative.
    """
    curves = [pl.DataFrame(schema=HAZARD_SCHEMA)]
    for stratum_by in strata:
        for stratum, times in times_by_stratum(lives, event, stratum_by):
            names = {"event": event, "stratum_by": stratum_by, "stratum": stratum}
            labels = [pl.lit(text, dtype=pl.String).alias(name) for name, text in names.items()]
            curves.append(
                _curve(times).with_columns(labels).select(pl.col(n).cast(t) for n, t in HAZARD_SCHEMA.items())
            )
    return pl.concat(curves)


def _curve(times: Times) -> pl.DataFrame:
    times = times.from_zero()
    at_risk = times.at_risk(times.seconds)
    columns = {
        "time_s": times.seconds,
        "at_risk": at_risk,
        "events": times.events,
        "censored": times.ended - times.events,
    }
    if times.lives == 0:
        blank = pl.lit(None, dtype=pl.Float64)
        names = ("cumulative_hazard", "variance", "ci_low", "ci_high")
        return pl.DataFrame(columns).with_columns(reason=pl.lit(NO_LIFE), **dict.fromkeys(names, blank))
    hazard = np.cumsum(times.events / at_risk)
    variance = np.cumsum(times.events / at_risk / at_risk)
    seen = hazard > 0
    spread = np.exp(Z_95 * np.sqrt(variance) / np.where(seen, hazard, 1))
    return pl.DataFrame(
        columns
        | {"cumulative_hazard": hazard, "variance": variance, "ci_low": hazard / spread, "ci_high": hazard * spread}
    ).with_columns(
        pl.when(pl.col("cumulative_hazard") > 0).then(pl.col("ci_low", "ci_high")),
        reason=pl.when(pl.col("cumulative_hazard") == 0).then(pl.lit(NO_EVENT_YET)),
    )
