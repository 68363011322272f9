"""Shares and their intervals."""

import numpy as np
import polars as pl
from scipy.special import ndtri


def wilson_interval(successes: np.ndarray | float, trials: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's 95 % interval of binomial shares.

    Parameters
    ----------
    successes, trials : arrays of one shape, or numbers

    Returns
    -------
    (low, high), each of that shape; NaN without trials

    References
    ----------
    Wilson (1927), J. Am. Stat. Assoc. 22

    Examples
    --------
    >>> low, high = wilson_interval(1, 10)
    >>> round(float(low), 4), round(float(high), 4)
    (0.0179, 0.4042)
    """
    # The last digit differs from that of ttf.stats.basics.normal.Z_95; intervals keep the digits of statsmodels.
    successes, trials, z = np.asarray(successes), np.asarray(trials), -float(ndtri(0.025))
    with np.errstate(invalid="ignore", divide="ignore"):
        share, scale = successes / trials, 1 + z**2 / trials
        center = (share + z**2 / (2 * trials)) / scale
        half = z * np.sqrt(share * (1 - share) / trials + z**2 / (4.0 * trials**2)) / scale
    # Limits at the ends are exactly 0 and 1, despite rounding.
    has_trials = trials > 0
    low = np.where(has_trials & (successes == 0), 0.0, np.maximum(center - half, 0))
    return low, np.where(has_trials & (successes == trials), 1.0, np.minimum(center + half, 1))


def divide(part: float, whole: float) -> float | None:
    """Return a share with one rounding, as Python divides integers of any size; None for an empty whole."""
    return part / whole if whole else None


def add_wilson(name: str, successes: int, trials: int) -> dict[str, float]:
    """Return the cells `name`, ci_low and ci_high of a share with Wilson's 95 % interval; {} without trials."""
    if not trials:
        return {}
    low, high = wilson_interval(successes, trials)
    return {name: successes / trials, "ci_low": float(low), "ci_high": float(high)}


# Numbers of jobs that ended in success or failure, and of failures.
ENDED = {
    "ended": pl.col("outcome").is_in(["success", "failure"]).sum().cast(pl.Int64),
    "failures": (pl.col("outcome") == "failure").sum().cast(pl.Int64),
}


def failure_share_columns(counts: pl.DataFrame) -> dict[str, pl.Expr]:
    """Return failure_share of rows with `ended` and `failures`, and Wilson's 95 % interval; blank if none ended."""
    low, high = wilson_interval(counts["failures"].to_numpy(), counts["ended"].to_numpy())
    shares: dict[str, pl.Expr | pl.Series] = {
        "failure_share": pl.col("failures") / pl.col("ended"),
        "ci_low": pl.Series(low),
        "ci_high": pl.Series(high),
    }
    return {name: pl.when(pl.col("ended") > 0).then(share) for name, share in shares.items()}
