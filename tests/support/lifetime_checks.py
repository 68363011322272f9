"""Check the lifetime verdict against libraries that the study does not use for it."""

import math

import numpy as np
import polars as pl
import pytest
from scipy import stats
from ttf.engine.columns import STRATUM
from ttf.stats.durations.survival import survival_tables

DURATIONS = {"duration_s": pl.Int64, "event": pl.String}


def make_durations(rows: list[tuple]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=DURATIONS, orient="row")


def check_verdict(row: dict, durations: np.ndarray, failed: np.ndarray) -> None:
    """Check a row of lifetime_verdict: the gap by SciPy's ecdf, the halves of the exposure by direct sums."""
    import lifelines

    times = np.where(durations == 0, 0.5, durations.astype(float))
    mean = times.sum() / failed.sum()
    curve = stats.ecdf(stats.CensoredData.right_censored(durations, ~failed)).sf
    ages = np.unique(durations[failed])
    ages = ages[[int((durations >= age).sum()) >= 30 for age in ages]]
    gaps = np.exp(-ages / mean) - curve.evaluate(ages)
    widest = np.argmax(np.abs(gaps))
    assert row["largest_gap"] == pytest.approx(gaps[widest], abs=1e-9)
    assert row["at_s"] == ages[widest]
    assert row["km_survival"] == pytest.approx(curve.evaluate(ages[widest]), abs=1e-9)
    weibull = lifelines.WeibullFitter().fit(times, failed).log_likelihood_
    statistic = 2 * (weibull - lifelines.ExponentialFitter().fit(times, failed).log_likelihood_)
    if stats.chi2.sf(statistic, 1) < 1e-300:  # too small to be turned into a statistic again
        assert row["p_value"] < 1e-299
    else:
        assert stats.chi2.isf(row["p_value"], 1) == pytest.approx(statistic, rel=1e-3, abs=1e-3)
    half, age = int(durations.sum()) / 2, row["split_age_s"]
    assert np.minimum(durations, age).sum() <= half < np.minimum(durations, age + 1).sum()
    young = int((failed & (durations <= age)).sum())
    assert (row["young_events"], row["old_events"]) == (young, int(failed.sum()) - young)
    ratio = young / max(int(failed.sum()) - young, 1e-9)
    harm = abs(gaps[widest]) >= 0.05 or not 0.5 < ratio < 2
    assert row["misleads"] == bool(harm and stats.chi2.sf(statistic, 1) < 0.01)
    if row["mttf_ratio"] is not None:
        assert math.isclose(row["mttf_ratio"], ratio, rel_tol=1e-12)


def kaplan_meier(durations: pl.DataFrame, event: str) -> pl.DataFrame:
    """Return the curve of all durations, without the stratum column."""
    return survival_tables(durations, event, ["all"])[0].drop(STRATUM)
