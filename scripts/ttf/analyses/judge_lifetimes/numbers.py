"""The numbers of the lifetime models' verdict: whether the failure rate changes with age, and what a mean hides."""

from collections.abc import Mapping

import polars as pl

from ttf.analyses.judge_lifetimes import FEWEST_FAILURES, MIXTURE
from ttf.numbers.metrics import Metrics

SOURCE = "tables/lifetime_verdict.csv"
# The words of verdict_within, and their keys.
VERDICTS = {"falls": "falls", "stays": "stays", "rises": "rises", "mixture": MIXTURE, "unclear": "unclear"}
UNITS = {
    **dict.fromkeys(("verdict", "cluster_by", "verdict_within", "within"), "label"),
    **dict.fromkeys(("shape", "shape_ci_low", "shape_ci_high", "mttf_ratio"), "1"),
    **dict.fromkeys(("shape_ci_low_clustered", "shape_ci_high_clustered", "frailty_variance"), "1"),
    "shape_within": "1",
    **{f"shape_within_ci_{end}_clustered": (f"shape_within_ci_{end}", "1") for end in ("low", "high")},
    "clusters": "clusters",
    "groups": "groups",
    "lr_statistic": "chi-squared",
    **dict.fromkeys(("p_value", "p_clustered"), "p"),
    **dict.fromkeys(("misleads", "misleads_clustered"), "truth"),
    **dict.fromkeys(("largest_gap", "km_survival", "exponential_survival"), "share"),
    **dict.fromkeys(("at_s", "split_age_s", "young_mttf_s", "old_mttf_s"), "s"),
    **dict.fromkeys(("events", "young_events", "old_events"), "failures"),
}


def numbers(metrics: Metrics, given: Mapping[str, pl.DataFrame]) -> None:
    """Over all lives; how many strata are judged how; of each kind the one in which a constant mean misleads most."""
    failures = given["lifetime_verdict"].filter(event="failure")
    for row in failures.filter(stratum_by="all").iter_rows(named=True):
        _put(metrics, "lifetimes", row)
    strata = failures.filter((pl.col("stratum_by") != "all") & pl.col("verdict").is_not_null())
    metrics.put("lifetimes.strata", strata.height, "strata", SOURCE)
    for key, word in VERDICTS.items():
        counted = strata.filter(verdict_within=word).height
        metrics.put(f"lifetimes.strata.{key}", counted, "strata", SOURCE, strata.height)
    for name in ("verdict_within", "misleads_clustered"):
        metrics.put(f"lifetimes.strata.no_{name}", strata[name].null_count(), "strata", SOURCE, strata.height)
    few = strata.filter(pl.col("events") < FEWEST_FAILURES).height
    metrics.put("lifetimes.strata.few", few, "strata", SOURCE, strata.height)
    wrong = strata.filter(pl.col("misleads_clustered") & pl.col("largest_gap").is_not_null())
    misleads = int(strata["misleads_clustered"].sum())
    metrics.put("lifetimes.strata.misleads", misleads, "strata", SOURCE, strata.height)
    by_gap = wrong.sort(pl.col("largest_gap").abs(), descending=True, maintain_order=True)
    for widest in by_gap.unique("stratum_by", keep="first", maintain_order=True).iter_rows(named=True):
        key = f"lifetimes.worst.{widest['stratum_by']}"
        metrics.put(f"{key}.stratum", widest["stratum"], "label", SOURCE)
        _put(metrics, key, widest)


def choose_shape(metrics: Mapping) -> tuple[str, str]:
    """The key of the Weibull shape that pages give, and of what it is: "within a user", or "" over all at risk."""
    if "lifetimes.shape_within" not in metrics:
        return "lifetimes.shape", ""
    return "lifetimes.shape_within", f"within a {metrics['lifetimes.within']}"


def _put(metrics: Metrics, key: str, row: dict) -> None:
    metrics.put(f"{key}.n", row["n"], "lives", SOURCE)
    metrics.put_row(key, row, UNITS, SOURCE, row["n"])
