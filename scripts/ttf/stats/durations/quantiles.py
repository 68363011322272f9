"""Kaplan-Meier curves and quantiles of many strata at once, without intervals."""

from collections.abc import Sequence

import polars as pl

# Products of factors reach an exact share only up to rounding.
TOLERANCE = 1e-10


def kaplan_meier(durations: pl.DataFrame, strata: Sequence[str]) -> pl.DataFrame:
    """Return the product-limit estimate of survival by stratum.

    Parameters
    ----------
    durations : columns duration_s (integers), event (blank: censored) and the strata
    strata : names of the columns whose combinations are the strata

    Returns
    -------
    pl.DataFrame
        The strata; duration_s, ascending; at_risk, events and survival just after it. A row per distinct duration.

    References
    ----------
    Kaplan & Meier (1958), J. Am. Stat. Assoc. 53

    Examples
    --------
    >>> durations = pl.DataFrame({"gpu": ["T4"] * 3, "duration_s": [10, 20, 30], "event": ["failure", None, "failure"]})
    >>> kaplan_meier(durations, ["gpu"])["survival"].round(4).to_list()
    [0.6667, 0.6667, 0.0]
    """
    counts = durations.group_by(*strata, "duration_s").agg(n=pl.len(), events=pl.col("event").count())
    counts = counts.sort(*strata, "duration_s", nulls_last=True)
    at_risk = (pl.col("n").sum() - pl.col("n").cum_sum() + pl.col("n")).over(strata)
    survival = (1 - pl.col("events") / pl.col("at_risk")).cum_prod().over(strata)
    return counts.with_columns(at_risk=at_risk).select(*strata, "duration_s", "at_risk", "events", survival=survival)


def survival_quantiles(durations: pl.DataFrame, strata: Sequence[str], share: float) -> pl.DataFrame:
    """Return the duration within which a share of each stratum has the event.

    Parameters
    ----------
    durations, strata : see `kaplan_meier`
    share : between 0 and 1

    Returns
    -------
    pl.DataFrame
        The strata; n, events; quantile: the first duration with survival at most 1 - share, blank if none has.

    Examples
    --------
    >>> durations = pl.DataFrame({"gpu": ["T4"] * 3, "duration_s": [10, 20, 30], "event": ["failure", None, "failure"]})
    >>> survival_quantiles(durations, ["gpu"], 0.5)["quantile"].to_list()
    [30]
    """
    quantile = pl.col("duration_s").filter(pl.col("survival") <= 1 - share + TOLERANCE).first()
    curves = kaplan_meier(durations, strata).group_by(strata, maintain_order=True)
    return curves.agg(n=pl.col("at_risk").first(), events=pl.col("events").sum(), quantile=quantile)
