"""The numbers of competing ends, of comparisons between strata, of hazard ratios and of delayed entry."""

from collections.abc import Mapping

import polars as pl

from ttf.analyses.estimate_hazards import DOUBLING, JOB_SIZE
from ttf.numbers.metrics import Metrics

SIGNIFICANCE = 0.05
MOMENTS = {3_600: "1h", 86_400: "1d", 31_536_000: "1y"}


def numbers(metrics: Metrics, given: Mapping[str, pl.DataFrame]) -> None:
    _of_incidence(metrics, given["incidence_at"])
    _of_logrank(metrics, given["logrank"])
    _of_cox(metrics, given["cox"])
    _of_delayed_entry(metrics, given["survival_summary_delayed_entry"], given["mttf_delayed_entry"])


def _of_incidence(metrics: Metrics, table: pl.DataFrame) -> None:
    """Over all lives, how many have ended how by an hour, a day, a year, where the lives reach so far.

    Of ends that some lives came to at a time nobody wrote also between what their incidence lies with these, by age.
    """
    source = "tables/incidence_at.csv"
    at_moment = {"incidence": "share", "ci_low": "share", "ci_high": "share"}
    at_age = {"incidence": "share", "incidence_low": "share", "incidence_high": "share"}
    for row in table.filter(pl.col("incidence").is_not_null()).iter_rows(named=True):
        key = f"incidence.{row['event']}"
        if row["time_s"] in MOMENTS:
            metrics.put_row(f"{key}.{MOMENTS[row['time_s']]}", row, at_moment, source, row["n"])
        if row["without_end"]:
            metrics.put(f"{key}.without_end", row["without_end"], "lives", source, row["n"] + row["without_end"])
            metrics.put_row(f"{key}.{row['time_s']}s", row, at_age, source, row["n"])


def _of_logrank(metrics: Metrics, logrank: pl.DataFrame) -> None:
    """Per stratification: the test of all its strata, and how many pairs differ significantly."""
    source = "tables/logrank.csv"
    mine = logrank.filter(event="failure")
    for row in mine.filter(kind="overall").iter_rows(named=True):
        key = f"logrank.{row['stratum_by']}"
        units = {"strata": "strata", "statistic": "chi-squared", "df": "1", "p_value": "p", "p_adjusted": "p"}
        metrics.put_row(key, row, units, source, row["n"])
        tested = mine.filter(kind="pairwise", stratum_by=row["stratum_by"]).drop_nulls("p_adjusted")
        apart = tested.filter(pl.col("p_adjusted") < SIGNIFICANCE).height
        metrics.put(f"{key}.pairs", tested.height, "pairs", source, row["n"])
        metrics.put(f"{key}.pairs_apart", apart, "pairs", source, tested.height)


def _of_cox(metrics: Metrics, cox: pl.DataFrame) -> None:
    """The ratio per doubling of the job, and of its GPUs; how many differ from 1, and whether they are proportional."""
    source = "tables/cox.csv"
    mine = cox.filter(event="failure")
    whole = mine.filter(covariate="all").row(0, named=True)
    metrics.put("cox.n", whole["n"], "lives", source)
    metrics.put("cox.events", whole["events"], "failures", source, whole["n"])
    metrics.put("cox.reason", whole["reason"], "label", source)
    metrics.put_row("cox", whole, {"proportionality_p": "p", "proportionality_df": "1"}, source, whole["events"])
    estimated = mine.filter(pl.col("hazard_ratio").is_not_null() & (pl.col("covariate") != JOB_SIZE))
    metrics.put("cox.ratios", estimated.height, "ratios", source, whole["n"])
    clear = estimated.filter(pl.col("p_adjusted") < SIGNIFICANCE)
    metrics.put("cox.clear", clear.height, "ratios", source, estimated.height)
    changing = estimated.filter(pl.col("proportionality_p") < SIGNIFICANCE)["covariate"].n_unique()
    metrics.put("cox.covariates", estimated["covariate"].n_unique(), "covariates", source)
    metrics.put("cox.changing", changing, "covariates", source, whole["events"])
    doubling = estimated.filter(covariate="gpu_count", level=DOUBLING)
    ratio = {"hazard_ratio": "ratio", "ci_low": "ratio", "ci_high": "ratio"}
    for row in doubling.iter_rows(named=True):
        metrics.put_row("cox.gpus", row, ratio | {"p_adjusted": "p", "proportionality_p": "p"}, source, row["n"])
    # Where nodes are in the model too, the ratio of the GPUs is that on as many nodes, and not of a larger job.
    together = mine.filter(covariate=JOB_SIZE)
    for row in (together if together.height else doubling).iter_rows(named=True):
        metrics.put_row("cox.job", row, ratio, source, row["n"])
        metrics.put("cox.job.of", "GPUs and nodes" if together.height else "GPUs", "label", source, row["n"])


def _of_delayed_entry(metrics: Metrics, summary: pl.DataFrame, mttf: pl.DataFrame) -> None:
    """Over all lives: how many came under watch late, and what the estimates are when they count from then on."""
    source = "tables/survival_summary_delayed_entry.csv"
    for row in summary.filter(event="failure", stratum_by="all").iter_rows(named=True):
        metrics.put("delayed_entry.n", row["n"], "lives", source)
        metrics.put("delayed_entry.late", row["entered_late"], "lives", source, row["n"])
        times = ("median_s", "median_ci_low_s", "median_ci_high_s", "restricted_mean_s", "restricted_mean_se_s")
        metrics.put_row("delayed_entry", row, dict.fromkeys(times, "s"), source, row["n"])
    source = "tables/mttf_delayed_entry.csv"
    for row in mttf.filter(event="failure", stratum_by="all", confidence=0.95).iter_rows(named=True):
        times = ("exposure_s", "mttf_s", "ci_low_s", "ci_high_s")
        metrics.put_row("delayed_entry", row, {"events": "failures"} | dict.fromkeys(times, "s"), source, row["n"])
