"""Shares and their intervals."""

import numpy as np
import polars as pl

from ttf.stats.normal import two_sided_z


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


def part_of(part: int, whole: int) -> float | None:
    """A share with one rounding, as Python divides integers of any size; None of nothing."""
    return part / whole if whole else None


def with_wilson(name: str, successes: int, trials: int) -> dict[str, float]:
    """The cells `name`, ci_low and ci_high of a share with Wilson's interval at 95 %; none of no trials."""
    if not trials:
        return {}
    low, high = wilson_interval(successes, trials)
    return {name: successes / trials, "ci_low": float(low), "ci_high": float(high)}


# Of jobs: those that ended in success or failure, and the failures.
ENDED = {
    "ended": pl.col("outcome").is_in(["success", "failure"]).sum().cast(pl.Int64),
    "failures": (pl.col("outcome") == "failure").sum().cast(pl.Int64),
}


def failure_shares(counts: pl.DataFrame) -> dict[str, pl.Expr]:
    """failure_share of rows with `ended` and `failures`, and Wilson's interval at 95 %; blank where none ended."""
    low, high = wilson_interval(counts["failures"].to_numpy(), counts["ended"].to_numpy())
    shares = {
        "failure_share": pl.col("failures") / pl.col("ended"),
        "ci_low": pl.Series(low),
        "ci_high": pl.Series(high),
    }
    return {name: pl.when(pl.col("ended") > 0).then(share) for name, share in shares.items()}
