"""What becomes of the correlations of study 1 once they are asked well."""

import polars as pl

from ttf.inputs import Inputs
from ttf.numbers.metrics import Metrics


def numbers(metrics: Metrics, given: Inputs) -> None:
    """How many of its correlations are significant, still so when asked well, flip or are found; failure rates."""
    table, source = given["study1"], "tables/study1.csv"
    asked = table.filter(question="correlation")
    compared = asked.filter(pl.col("verdict") != "not computable")
    metrics.put("study1.correlations", asked.height, "correlations", source)
    metrics.put("study1.compared", compared.height, "correlations", source)
    still = (~compared["verdict"].is_in(["lost", "found", "neither"])).sum()
    counts = {name: (compared["verdict"] == name).sum() for name in ("weaker", "flips", "lost", "found")}
    for name, count in (counts | {"still": still, "significant": still + counts["lost"]}).items():
        metrics.put(f"study1.{name}", count, "correlations", source, compared.height)
    rates = asked.filter(pl.col("rate_p_adjusted").is_not_null())
    metrics.put("study1.rates", rates.height, "requests", source)
    metrics.put("study1.rates_differ", rates["rate_reject"].sum(), "requests", source, rates.height)
    means = table.filter(question="mean_run_time", outcome="failure")
    ratios = means.filter(pl.col("asked_estimate").is_not_null() & (pl.col("study_estimate") > 0))
    if ratios.height:
        times = ratios["asked_estimate"] / ratios["study_estimate"]
        metrics.put("study1.mttf.lowest_ratio", times.min(), "times", source, ratios.height)
        metrics.put("study1.mttf.highest_ratio", times.max(), "times", source, ratios.height)
