"""What becomes of the correlations of study 1 at job level."""

import polars as pl

from ttf.analyses.ask_again.compute import NOT_TOLD, SIGNIFICANT_BEFORE, SIGNIFICANT_TWICE
from ttf.inputs import Inputs
from ttf.numbers.metrics import Metrics


def numbers(metrics: Metrics, given: Inputs) -> None:
    """How many of its correlations are significant, still so at job level, flip or are found; failure rates."""
    table, source = given["study1"], "tables/study1.csv"
    asked = table.filter(question="correlation")
    compared = asked.filter(pl.col("verdict") != "not computable")
    metrics.put("study1.correlations", asked.height, "correlations", source)
    metrics.put("study1.compared", compared.height, "correlations", source)
    for name in ("weaker", "flips", "lost", "found"):
        count = (compared["verdict_clustered"] == name).sum()
        metrics.put(f"study1.{name}", count, "correlations", source, compared.height)
    of_verdicts = {
        "significant": ("verdict", SIGNIFICANT_BEFORE),
        "still": ("verdict_clustered", SIGNIFICANT_TWICE),
        "still_if_independent": ("verdict", SIGNIFICANT_TWICE),
        "found_if_independent": ("verdict", ("found",)),
        "untold": ("verdict_clustered", (NOT_TOLD,)),
    }
    for name, (column, verdicts) in of_verdicts.items():
        count = compared[column].is_in(verdicts).sum()
        metrics.put(f"study1.{name}", count, "correlations", source, compared.height)
    rates = asked.filter(pl.col("rate_p_adjusted_clustered").is_not_null())
    metrics.put("study1.rates", rates.height, "requests", source)
    metrics.put("study1.rates_differ", rates["rate_reject_clustered"].sum(), "requests", source, rates.height)
    means = table.filter(question="mean_run_time", outcome="failure")
    ratios = means.filter(pl.col("asked_estimate").is_not_null() & (pl.col("study_estimate") > 0))
    if ratios.height:
        times = ratios["asked_estimate"] / ratios["study_estimate"]
        metrics.put("study1.mttf.lowest_ratio", times.min(), "times", source, ratios.height)
        metrics.put("study1.mttf.highest_ratio", times.max(), "times", source, ratios.height)
