"""Shares and their intervals."""

import numpy as np
import polars as pl


def wilson_interval(successes: np.ndarray, trials: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(low, high) of Wilson's 95 % interval of binomial shares (1927); NaN where there are no trials."""
    # Here, as the import takes 0.65 s of processor time; the process that jobs are forked from does it once a run.
    from statsmodels.stats.proportion import proportion_confint

    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = proportion_confint(np.asarray(successes), np.asarray(trials), method="wilson")
    # At the ends the limits are exactly 0 and 1; rounding must not put them a hair off.
    has_trials = np.asarray(trials) > 0
    low = np.where(has_trials & (successes == 0), 0.0, low)
    return low, np.where(has_trials & (successes == trials), 1.0, high)


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
