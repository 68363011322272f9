"""Page tables of the lifetime models and of the verdict on the hazard."""

import polars as pl

from ttf.analyses.time_to_failure.fit_mttf import LIFETIME_MODELS
from ttf.analyses.time_to_failure.judge_lifetimes import LIFETIME_VERDICT
from ttf.display.report_tables import Interval, PageTable
from ttf.display.report_trace import Trace, label_strata, select_largest_strata
from ttf.engine import words


def tables(trace: Trace) -> dict[str, PageTable]:
    """Return the verdicts on the hazard and the lifetime models, of all units and of the largest strata."""
    models = trace.table("lifetime_models").filter(pl.col("converged"), event="failure")
    models = select_largest_strata(models.filter(pl.col("stratum_by") != "gpu_count"))
    verdict = trace.table("lifetime_verdict").filter(pl.col("verdict").is_not_null(), event="failure")
    return {"verdict": _verdict_table(select_largest_strata(verdict)), "models": _models_table(models)}


def _models_table(models: pl.DataFrame) -> PageTable:
    models = models.with_columns(
        # Extrapolated like the median.
        scale_s=pl.when(pl.col("median_s").is_not_null()).then("scale_s"),
        stratum=pl.when(pl.col("stratum_by") == "all")
        .then(pl.lit("All"))
        .otherwise(pl.concat_str(label_strata(models)["stratum_by"], pl.lit(": "), "stratum")),
    )
    columns = dict.fromkeys(("model", "n", "events", "shape", "scale_s", "sigma", "mean_s", "median_s"))
    return PageTable(models, columns | {"aic": ("AIC", words.count)}, LIFETIME_MODELS, "stratum")


def _verdict_table(verdict: pl.DataFrame) -> PageTable:
    columns = dict.fromkeys(("stratum", "events", "verdict_within")) | {
        "shape_within": Interval(low="shape_within_ci_low", high="shape_within_ci_high"),
        "shape": Interval("Shape over all", low="shape_ci_low_clustered", high="shape_ci_high_clustered"),
        "young_mttf_s": None,
        "old_mttf_s": None,
        "largest_gap": ("Largest gap", lambda share: f"{'+' if share > 0 else ''}{words.number(100 * share, 2)}"),
        "at_s": None,
        "misleads_clustered": ("A single MTTF misleads", lambda value: "yes" if value else "no"),
    }
    return PageTable(label_strata(verdict), columns, LIFETIME_VERDICT, "stratum_by")
