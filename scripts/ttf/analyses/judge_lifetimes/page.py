"""The tables of lifetime models and of what they say of the failure rate."""

from collections.abc import Callable
from functools import partial

import polars as pl

from ttf.analyses.fit_mttf import LIFETIME_MODELS
from ttf.analyses.judge_lifetimes import LIFETIME_VERDICT
from ttf.report import words
from ttf.report.tables import Interval, Shown, texts
from ttf.report.trace import Trace, largest_strata, strata_in_words


def tables(trace: Trace) -> dict[str, Shown]:
    models = trace.table("lifetime_models").filter(pl.col("converged"), event="failure")
    models = largest_strata(models.filter(pl.col("stratum_by") != "gpu_count"))
    verdict = trace.table("lifetime_verdict").filter(pl.col("verdict").is_not_null(), event="failure")
    return {"verdict": _verdict(largest_strata(verdict)), "models": _models(models)}


def _models(models: pl.DataFrame) -> Shown:
    scale = texts(models, ("scale_s", "scale_se_s"), partial(_with_error, worded=words.duration))
    models = models.with_columns(
        shape_words=texts(models, ("shape", "shape_se"), _with_error),
        # As far out of sight as the median.
        scale_words=pl.when(pl.col("median_s").is_not_null()).then(scale),
        sigma_words=texts(models, ("sigma", "sigma_se"), _with_error),
        stratum=pl.when(pl.col("stratum_by") == "all")
        .then(pl.lit("All"))
        .otherwise(pl.concat_str(strata_in_words(models)["stratum_by"], pl.lit(": "), "stratum")),
    )
    columns = dict.fromkeys(("model", "n", "events")) | {
        "shape_words": ("Shape", str),
        "scale_words": ("Scale", str),
        "sigma_words": ("σ", str),
        "mean_s": None,
        "median_s": None,
        "aic": ("AIC", words.count),
    }
    return Shown(models, columns, LIFETIME_MODELS, "stratum")


def _verdict(verdict: pl.DataFrame) -> Shown:
    columns = dict.fromkeys(("stratum", "events", "verdict")) | {
        "shape": Interval(low="shape_ci_low", high="shape_ci_high"),
        "young_mttf_s": None,
        "old_mttf_s": None,
        "largest_gap": ("Largest gap", _points),
        "at_s": None,
        "misleads": ("A constant one misleads", lambda value: "yes" if value else "no"),
    }
    return Shown(strata_in_words(verdict), columns, LIFETIME_VERDICT, "stratum_by")


def _points(share: float) -> str:
    """A difference of two shares in percentage points, with its sign."""
    return f"{'+' if share > 0 else ''}{words.number(100 * share, 2)}"


def _with_error(value: float, spread: float | None, worded: Callable[[float], str] = words.number) -> str:
    return worded(value) + (f" ({worded(spread)})" if spread is not None else "")
