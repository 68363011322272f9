"""The numbers of the lifetime models' verdict: whether the failure rate changes with age, and what a mean hides."""

from collections.abc import Mapping

import polars as pl

from ttf.analyses.judge_lifetimes import FEWEST_FAILURES
from ttf.numbers.metrics import Metrics

SOURCE = "tables/lifetime_verdict.csv"
UNITS = {
    "verdict": "label",
    **dict.fromkeys(("shape", "shape_ci_low", "shape_ci_high", "mttf_ratio"), "1"),
    "lr_statistic": "chi-squared",
    "p_value": "p",
    "misleads": "truth",
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
    for word in ("falls", "stays", "rises", "unclear"):
        metrics.put(f"lifetimes.strata.{word}", strata.filter(verdict=word).height, "strata", SOURCE, strata.height)
    few = strata.filter(pl.col("events") < FEWEST_FAILURES).height
    metrics.put("lifetimes.strata.few", few, "strata", SOURCE, strata.height)
    wrong = strata.filter(pl.col("misleads") & pl.col("largest_gap").is_not_null())
    metrics.put("lifetimes.strata.misleads", int(strata["misleads"].sum()), "strata", SOURCE, strata.height)
    by_gap = wrong.sort(pl.col("largest_gap").abs(), descending=True, maintain_order=True)
    for widest in by_gap.unique("stratum_by", keep="first", maintain_order=True).iter_rows(named=True):
        key = f"lifetimes.worst.{widest['stratum_by']}"
        metrics.put(f"{key}.stratum", widest["stratum"], "label", SOURCE)
        _put(metrics, key, widest)


def _put(metrics: Metrics, key: str, row: dict) -> None:
    metrics.put(f"{key}.n", row["n"], "lives", SOURCE)
    metrics.put_row(key, row, UNITS, SOURCE, row["n"])
