"""The hazard that lives have been through by an age: Nelson-Aalen."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from ttf.analyses.estimate_hazards import CUMULATIVE_HAZARD
from ttf.stats.normal import Z_95
from ttf.stats.strata import NO_LIFE, Lives, Times, stacked, times_by_stratum
from ttf.stats.survival import thinned

NO_EVENT_YET = "no event yet: the interval is not defined"


def cumulative_hazard(lives: Lives, event: str, strata: Sequence[str], max_steps: int | None = None) -> pl.DataFrame:
    """The Nelson-Aalen estimate (Nelson 1972; Aalen 1978) by stratum, a row per distinct duration.

    lives: duration_s (Int64 seconds; null is excluded), event (any other, or null, censors), a column per
    stratification (`all` needs none). Rows start at age 0 as those of `kaplan_meier` do; with max_steps, at most as
    many of each stratum as `ttf.stats.survival.thin` keeps. With d events among n at risk at an age, cumulative_hazard
    is the sum of d / n (expected events per life, a pure number), variance Aalen's sum of d / n^2; ci_low, ci_high:
    95 %, on the log scale, H exp(-+ z sqrt(variance) / H) (Klein & Moeschberger 2003, section 4.3); blank, with a
    reason, before the first event.
    Raises ValueError when a stratification has no column or a duration is negative.
    """
    curves = [
        ({"event": event, "stratum_by": stratum_by, "stratum": stratum}, thinned(_curve(times), max_steps))
        for stratum_by in strata
        for stratum, times in times_by_stratum(lives, event, stratum_by)
    ]
    if not curves:
        return CUMULATIVE_HAZARD.frame([])
    seen = pl.col("cumulative_hazard") > 0
    reason = pl.when(~seen).then(pl.lit(NO_EVENT_YET)).when(pl.col("cumulative_hazard").is_null()).then(pl.lit(NO_LIFE))
    table = stacked(curves).with_columns(pl.when(seen).then(pl.col("ci_low", "ci_high")), reason=reason)
    return CUMULATIVE_HAZARD.typed(table)


def _curve(times: Times) -> dict[str, np.ndarray]:
    times = times.from_zero()
    at_risk = times.at_risk(times.seconds)
    columns = {
        "time_s": times.seconds,
        "at_risk": at_risk,
        "events": times.events,
        "censored": times.ended - times.events,
    }
    if times.lives == 0:
        return columns | dict.fromkeys(("cumulative_hazard", "variance", "ci_low", "ci_high"), np.full(1, np.nan))
    hazard = np.cumsum(times.events / at_risk)
    variance = np.cumsum(times.events / at_risk / at_risk)
    spread = np.exp(Z_95 * np.sqrt(variance) / np.where(hazard > 0, hazard, 1))
    return columns | {
        "cumulative_hazard": hazard,
        "variance": variance,
        "ci_low": hazard / spread,
        "ci_high": hazard * spread,
    }
