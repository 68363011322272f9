"""The numbers of competing ends, of comparisons between strata, of hazard ratios and of delayed entry."""

from collections.abc import Mapping

import polars as pl

from ttf.analyses.estimate_hazards import DOUBLING, JOB_SIZE
from ttf.analyses.estimate_hazards.total import SIGNIFICANCE, strongest, total_ratios
from ttf.numbers.metrics import OLD_CLUSTERS, Metrics, ends

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
    at_moment = {"incidence": "share"} | ends("share")
    at_age = {"incidence": "share", "incidence_low": "share", "incidence_high": "share"}
    for row in table.filter(pl.col("incidence").is_not_null()).iter_rows(named=True):
        key = f"incidence.{row['event']}"
        if row["time_s"] in MOMENTS:
            metrics.put_row(f"{key}.{MOMENTS[row['time_s']]}", row, at_moment, source, row["n"])
        if row["without_end"]:
            metrics.put(f"{key}.without_end", row["without_end"], "lives", source, row["n"] + row["without_end"])
            metrics.put_row(f"{key}.{row['time_s']}s", row, at_age, source, row["n"])


def _of_logrank(metrics: Metrics, logrank: pl.DataFrame) -> None:
    """By stratification: the test of all its strata, and how many pairs differ significantly.

    pairs: those that have been tested; pairs_apart: of them those that differ though clusters may differ,
    pairs_untold those with too few clusters to tell, pairs_apart_if_independent those that differ if lives are
    independent.
    """
    source = "tables/logrank.csv"
    mine = logrank.filter(event="failure")
    for row in mine.filter(kind="overall").iter_rows(named=True):
        key = f"logrank.{row['stratum_by']}"
        units = {"strata": "strata", "statistic": "chi-squared", "df": "1", "p_value": "p", "p_adjusted": "p"}
        units |= {"p_clustered": "p", "p_adjusted_clustered": "p"} | OLD_CLUSTERS
        metrics.put_row(key, row, units, source, row["n"])
        tested = mine.filter(kind="pairwise", stratum_by=row["stratum_by"]).drop_nulls("p_adjusted")
        metrics.put(f"{key}.pairs", tested.height, "pairs", source, row["n"])
        _put_decisions(metrics, f"{key}.pairs_apart", f"{key}.pairs_untold", tested, "pairs", source)


def _put_decisions(metrics: Metrics, clear: str, untold: str, tested: pl.DataFrame, unit: str, source: str) -> None:
    """Of the rows tested how many are significant with clusters, if lives are independent, and how many untold."""
    for key, p in ((clear, "p_adjusted_clustered"), (f"{clear}_if_independent", "p_adjusted")):
        metrics.put(key, tested.filter(pl.col(p) < SIGNIFICANCE).height, unit, source, tested.height)
    metrics.put(untold, tested["p_adjusted_clustered"].null_count(), unit, source, tested.height)


def _of_cox(metrics: Metrics, cox: pl.DataFrame) -> None:
    """The ratio per doubling of the job, and of its GPUs; how many differ from 1, and whether they are proportional."""
    source = "tables/cox.csv"
    mine = cox.filter(event="failure")
    whole = mine.filter(covariate="all").row(0, named=True)
    metrics.put("cox.n", whole["n"], "lives", source)
    metrics.put("cox.events", whole["events"], "failures", source, whole["n"])
    metrics.put("cox.reason", whole["reason"], "label", source)
    units = {"proportionality_p": "p", "proportionality_df": "1"} | OLD_CLUSTERS
    metrics.put_row("cox", whole, units, source, whole["events"])
    estimated = mine.filter(pl.col("hazard_ratio").is_not_null() & (pl.col("covariate") != JOB_SIZE))
    metrics.put("cox.ratios", estimated.height, "ratios", source, whole["n"])
    _put_decisions(metrics, "cox.clear", "cox.untold", estimated, "ratios", source)
    changing = estimated.filter(pl.col("proportionality_p") < SIGNIFICANCE)["covariate"].n_unique()
    if not changing and estimated["proportionality_p"].null_count():
        changing = None  # that none changes is known of those tested alone
    metrics.put("cox.covariates", estimated["covariate"].n_unique(), "covariates", source)
    metrics.put("cox.changing", changing, "covariates", source, whole["events"])
    doubling = estimated.filter(covariate="gpu_count", level=DOUBLING)
    ratio = {"hazard_ratio": "ratio"} | ends("ratio")
    p_values = dict.fromkeys(("p_adjusted", "p_adjusted_clustered", "proportionality_p"), "p")
    for row in doubling.iter_rows(named=True):
        metrics.put_row("cox.gpus", row, ratio | p_values, source, row["n"])
    # Where nodes are in the model too, the ratio of the GPUs is that on as many nodes, and not of a larger job.
    together = mine.filter(covariate=JOB_SIZE)
    for row in (together if together.height else doubling).iter_rows(named=True):
        metrics.put_row("cox.job", row, ratio, source, row["n"])
        amounts = metrics.unit.named("GPUs and nodes" if together.height else "GPUs")
        metrics.put("cox.job.of", amounts, "label", source, row["n"])
    # What the section shows: of amounts that grow together one ratio.
    shown = total_ratios(cox)
    metrics.put("cox.total.ratios", shown.height, "ratios", source, whole["n"])
    metrics.put("cox.total.clear", int(shown["clear"].sum()), "ratios", source, shown.height)
    metrics.put("cox.total.untold", shown["p"].null_count(), "ratios", source, shown.height)
    if most := strongest(cox):
        names = dict.fromkeys(("covariate", "level", "reference"), "label")
        metrics.put_row("cox.strongest", most, names | ratio | {"p": "p", "events": "failures"}, source, most["n"])


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
