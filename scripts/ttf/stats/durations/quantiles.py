"""Quantiles of durations that may be censored, with intervals, by the Kaplan-Meier curve of each stratum."""

import polars as pl

from ttf.stats.durations.strata import Durations
from ttf.stats.durations.survival import survival_tables

# Products of factors reach an exact share only up to rounding.
TOLERANCE = 1e-10
INDEPENDENT = "independent jobs"


def survival_quantiles(durations: Durations, event: str, stratum_by: str, share: float) -> pl.DataFrame:
    """Return the duration within which a share of each stratum has the event, a row per stratum.

    Parameters
    ----------
    durations: see `ttf.stats.durations.strata.CountedDurations`
    event: the event; all other ends are censored
    stratum_by: column of the strata
    share: between 0 and 1

    Returns
    -------
    pl.DataFrame
        stratum; n, events; quantile, the first duration with survival at most 1 - share, and low, high: where the 95%
        limits of survival first reach it (Brookmeyer & Crowley 1982). interval_by: the clusters, or INDEPENDENT if
        they are too few: then the limits are Greenwood's on the log-log scale. What the curve does not reach is blank.

    """
    rest = 1 - share + TOLERANCE

    def crossing_s(curve: pl.Expr) -> pl.Expr:
        """Return the first time at which the curve is at most `rest`."""
        return pl.col("time_s").filter(curve <= rest).first()

    def limit_s(name: str) -> pl.Expr:
        return pl.when(has_clusters).then(crossing_s(pl.col(f"{name}_clustered"))).otherwise(crossing_s(pl.col(name)))

    has_clusters = pl.col("ci_low_clustered").is_not_null().any()
    curves, _ = survival_tables(durations, event, [stratum_by])
    return curves.group_by("stratum", maintain_order=True).agg(
        n=pl.col("at_risk").first(),
        events=pl.col("events").sum(),
        quantile=crossing_s(pl.col("survival")),
        low=limit_s("ci_low"),
        high=limit_s("ci_high"),
        interval_by=pl.when(has_clusters).then(pl.col("cluster_by").first()).otherwise(pl.lit(INDEPENDENT)),
    )
