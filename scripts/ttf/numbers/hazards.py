"""The numbers of competing ends, of comparisons between strata, of hazard ratios and of delayed entry."""

from collections.abc import Mapping

import polars as pl

from ttf.numbers.metrics import Metrics

SIGNIFICANCE = 0.05
MOMENTS = (("1h", 3_600), ("1d", 86_400), ("1y", 31_536_000))


def of_hazards(metrics: Metrics, tables: Mapping[str, pl.DataFrame]) -> None:
    """What the analysis `hazards` gives to the prose, from its tables."""
    _of_incidence(metrics, tables["incidence_at"])
    _of_logrank(metrics, tables["logrank"])
    _of_cox(metrics, tables["cox"])
    _of_delayed_entry(metrics, tables["survival_summary_delayed_entry"], tables["mttf_delayed_entry"])


def _of_incidence(metrics: Metrics, table: pl.DataFrame) -> None:
    """Over all lives, how many have ended how by an hour, a day, a year, where the lives reach so far.

    Of ends that some lives came to at a time nobody wrote also between what their incidence lies with these, by age.
    """
    source, moments = "tables/incidence_at.csv", {moment: name for name, moment in MOMENTS}
    for row in table.filter(pl.col("incidence").is_not_null()).iter_rows(named=True):
        key = f"incidence.{row['event']}"
        if row["time_s"] in moments:
            for column in ("incidence", "ci_low", "ci_high"):
                metrics.put(f"{key}.{moments[row['time_s']]}.{column}", row[column], "share", source, row["n"])
        if row["without_end"]:
            metrics.put(f"{key}.without_end", row["without_end"], "lives", source, row["n"] + row["without_end"])
            for name in ("incidence", "incidence_low", "incidence_high"):
                metrics.put(f"{key}.{row['time_s']}s.{name}", row[name], "share", source, row["n"])


def _of_logrank(metrics: Metrics, logrank: pl.DataFrame) -> None:
    """Per stratification: the test of all its strata, and how many pairs differ beyond chance."""
    source = "tables/logrank.csv"
    mine = logrank.filter(pl.col("event") == "failure")
    for row in mine.filter(pl.col("kind") == "overall").iter_rows(named=True):
        key = f"logrank.{row['stratum_by']}"
        metrics.put(f"{key}.strata", row["strata"], "strata", source, row["n"])
        for name, unit in (("statistic", "chi-squared"), ("df", "1"), ("p_value", "p"), ("p_adjusted", "p")):
            metrics.put(f"{key}.{name}", row[name], unit, source, row["n"])
        pairs = mine.filter((pl.col("kind") == "pairwise") & (pl.col("stratum_by") == row["stratum_by"]))
        tested = pairs.filter(pl.col("p_adjusted").is_not_null())
        apart = tested.filter(pl.col("p_adjusted") < SIGNIFICANCE).height
        metrics.put(f"{key}.pairs", tested.height, "pairs", source, row["n"])
        metrics.put(f"{key}.pairs_apart", apart, "pairs", source, tested.height)


def _of_cox(metrics: Metrics, cox: pl.DataFrame) -> None:
    """The ratio per doubling of the job, and of its GPUs; how many differ from 1, and whether they are proportional."""
    source = "tables/cox.csv"
    mine = cox.filter(pl.col("event") == "failure")
    whole = mine.filter(pl.col("covariate") == "all").row(0, named=True)
    metrics.put("cox.n", whole["n"], "lives", source)
    metrics.put("cox.events", whole["events"], "failures", source, whole["n"])
    metrics.put("cox.reason", whole["reason"], "label", source)
    metrics.put("cox.proportionality_p", whole["proportionality_p"], "p", source, whole["events"])
    metrics.put("cox.proportionality_df", whole["proportionality_df"], "1", source, whole["events"])
    estimated = mine.filter(pl.col("hazard_ratio").is_not_null() & (pl.col("covariate") != "job_size"))
    metrics.put("cox.ratios", estimated.height, "ratios", source, whole["n"])
    clear = estimated.filter(pl.col("p_adjusted") < SIGNIFICANCE)
    metrics.put("cox.clear", clear.height, "ratios", source, estimated.height)
    changing = estimated.filter(pl.col("proportionality_p") < SIGNIFICANCE)["covariate"].n_unique()
    metrics.put("cox.covariates", estimated["covariate"].n_unique(), "covariates", source)
    metrics.put("cox.changing", changing, "covariates", source, whole["events"])
    doubling = estimated.filter((pl.col("covariate") == "gpu_count") & (pl.col("level") == "per doubling"))
    for row in doubling.iter_rows(named=True):
        for name in ("hazard_ratio", "ci_low", "ci_high", "p_adjusted", "proportionality_p"):
            metrics.put(f"cox.gpus.{name}", row[name], "p" if "_p" in name else "ratio", source, row["n"])
    # Where nodes are in the model too, the ratio of the GPUs is that on as many nodes, and not of a larger job.
    together = mine.filter(pl.col("covariate") == "job_size")
    for row in (together if together.height else doubling).iter_rows(named=True):
        for name in ("hazard_ratio", "ci_low", "ci_high"):
            metrics.put(f"cox.job.{name}", row[name], "ratio", source, row["n"])
        metrics.put("cox.job.of", "GPUs and nodes" if together.height else "GPUs", "label", source, row["n"])


def _of_delayed_entry(metrics: Metrics, summary: pl.DataFrame, mttf: pl.DataFrame) -> None:
    """Over all lives: how many came under watch late, and what the estimates are when they count from then on."""
    source = "tables/survival_summary_delayed_entry.csv"
    overall = (pl.col("event") == "failure") & (pl.col("stratum_by") == "all")
    for row in summary.filter(overall).iter_rows(named=True):
        metrics.put("delayed_entry.n", row["n"], "lives", source)
        metrics.put("delayed_entry.late", row["entered_late"], "lives", source, row["n"])
        for name in ("median_s", "median_ci_low_s", "median_ci_high_s", "restricted_mean_s", "restricted_mean_se_s"):
            metrics.put(f"delayed_entry.{name}", row[name], "s", source, row["n"])
    source = "tables/mttf_delayed_entry.csv"
    for row in mttf.filter(overall & (pl.col("confidence") == 0.95)).iter_rows(named=True):
        metrics.put("delayed_entry.events", row["events"], "failures", source, row["n"])
        for name in ("exposure_s", "mttf_s", "ci_low_s", "ci_high_s"):
            metrics.put(f"delayed_entry.{name}", row[name], "s", source, row["n"])
