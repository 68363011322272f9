"""The numbers of lives: survival, mean time to failure, lifetime models."""

from collections.abc import Mapping, Sequence

import polars as pl

from ttf.analyses.fit_mttf import AGES, STEP
from ttf.charts.text import listed
from ttf.inputs import Inputs
from ttf.numbers.metrics import FEWEST_FAILURES, OLD_CLUSTERS, Metrics, ends, ends_of

# From these shares on, what is not known of the ends moves a mean time to failure more than chance does: of failures
# without an end, or jobs that ended with no result recorded; of the time at risk that is of jobs still running.
MOST_WITHOUT_END, MOST_RUNNING = 0.05, 0.5
# A step of the survival curve of which more of the failures are time limits is one of a limit.
MOSTLY = 0.5
# Whole intervals of mean times to failure so many times apart are of groups that one mean does not describe.
FAR_APART = 5
YEAR_S = 31_536_000
MOST_LIMITS = 3
_MEAN = {"mttf_s": "s"} | ends("s", "_s")
_SURVIVAL = {"survival": "share"} | ends("share")
_SUMMARY = (
    dict.fromkeys(("median_s", "median_ci_low_s", "median_ci_high_s", "horizon_s"), "s")
    | dict.fromkeys(("median_ci_low_clustered_s", "median_ci_high_clustered_s"), "s")
    | dict.fromkeys(("restricted_mean_s", "restricted_mean_se_s", "restricted_mean_se_clustered_s"), "s")
    | OLD_CLUSTERS
)


def numbers(metrics: Metrics, given: Inputs) -> None:
    if "jobs" not in given:
        of_lives(metrics, given.read("lives"))
    of_survival(metrics, given["survival_summary"], given["survival_at"])
    of_steps(metrics, given["survival_steps"])
    of_mttf(metrics, given["mttf"], given["failures_without_end"])
    of_models(metrics, given["lifetime_models"])
    if "jobs" not in given and metrics["lives.units"]["value"] == metrics["lives.lives"]["value"]:
        of_groups(metrics, given["mttf"], given["survival"], given.settings.strata[:1])


def of_groups(metrics: Metrics, mttf: pl.DataFrame, survival: pl.DataFrame, strata: Sequence[str]) -> None:
    """Of the first strata of components those with the highest and the lowest rate, where these are far apart.

    groups.highest.failed_share: by the last whole year at which a tenth was still at risk (Kaplan-Meier).
    """
    for by in strata:
        rates = mttf.filter(pl.col("events") >= FEWEST_FAILURES, confidence=0.95, event="failure", stratum_by=by)
        rates = rates.sort("failures_per_1000_node_days", "stratum").drop_nulls("ci_low_clustered_s")
        if rates.height < 2:
            continue
        low, high = rates.row(0, named=True), rates.row(-1, named=True)
        curve = survival.filter(event="failure", stratum_by=by, stratum=high["stratum"]).sort("time_s")
        enough = curve.filter(pl.col("at_risk") >= 0.1 * high["n"])
        years = (enough["time_s"].max() or 0) // YEAR_S
        if not years or low["ci_low_clustered_s"] < FAR_APART * high["ci_high_clustered_s"]:
            continue
        (at_year,) = curve.filter(pl.col("time_s") <= years * YEAR_S).tail(1).iter_rows(named=True)
        metrics.put("groups.by", by, "label", "tables/mttf.csv")
        for end, row in (("highest", high), ("lowest", low)):
            metrics.put(f"groups.{end}.name", row["stratum"], "label", "tables/mttf.csv", row["n"])
            metrics.put(f"groups.{end}.n", row["n"], "lives", "tables/mttf.csv")
            metrics.put(f"groups.{end}.events", row["events"], "failures", "tables/mttf.csv", row["n"])
        metrics.put("groups.highest.years", years, "years", "tables/survival.csv", high["n"])
        metrics.put("groups.highest.failed_share", 1 - at_year["survival"], "share", "tables/survival.csv", high["n"])


def of_lives(metrics: Metrics, lives: pl.DataFrame) -> None:
    """Of a component trace: units, lives, failures, and the time they took to repair where that was written down."""
    source, n = "lives.parquet", lives.height
    metrics.put("lives.units", lives["unit_id"].n_unique(), "units", source, n)
    metrics.put("lives.lives", n, "lives", source)
    metrics.put("lives.failures", int((lives["event"] == "failure").sum()), "failures", source, n)
    metrics.put("lives.exposure_s", int(lives["duration_s"].sum()), "s", source, n)
    if "repair_s" in lives.columns and (repairs := lives["repair_s"].drop_nulls()).len():
        mean = repairs.sum() / repairs.len()
        times = {"mean_s": mean, "median_s": repairs.median(), "p90_s": repairs.quantile(0.9, "linear")}
        for name, value in times.items():
            metrics.put(f"repair.{name}", value, "s", source, repairs.len())


def of_survival(metrics: Metrics, summary: pl.DataFrame, at_ages: pl.DataFrame) -> None:
    """Over all lives: median time to failure, restricted mean, share without failure at each of AGES."""
    source = "tables/survival_summary.csv"
    for row in summary.filter(event="failure", stratum_by="all").iter_rows(named=True):
        metrics.put("survival.n", row["n"], "lives", source)
        metrics.put("survival.events", row["events"], "failures", source, row["n"])
        metrics.put_row("survival", row, _SUMMARY, source, row["n"])
        for name, (age_s, _) in AGES.items():
            for at_age in at_ages.filter(time_s=age_s).iter_rows(named=True):
                metrics.put_row(f"survival.{name}", at_age, _SURVIVAL, "tables/survival_at.csv", row["n"])


def of_steps(metrics: Metrics, steps: pl.DataFrame) -> None:
    """The largest step of the survival curve; and the seconds of the steps that are mostly time limits, in their order.

    survival.steps.drop is a share of all jobs; timeout_share: of the failures at that second.
    """
    source = "tables/survival_steps.csv"
    steps = steps.with_columns(timeout_share=pl.col("time_limits") / pl.col("failures"))
    units = {"time_s": "s", "drop": "share", "failures": "failures", "timeout_share": "share"}
    for row in steps.sort("drop", descending=True).head(1).iter_rows(named=True):
        metrics.put_row("survival.steps", row, units, source, row["failures"])
    limits = steps.filter((pl.col("drop") > STEP) & (pl.col("timeout_share") > MOSTLY))
    limits = limits.sort("drop", descending=True).head(MOST_LIMITS)
    for number, row in enumerate(limits.sort("time_s").iter_rows(named=True), start=1):
        metrics.put_row(f"survival.limits.{number}", row, units, source, row["failures"])


def limit_keys(metrics: Mapping) -> list[str]:
    """The keys of the seconds at which time limits make steps, in their order."""
    keys = (f"survival.limits.{number}.time_s" for number in range(1, MOST_LIMITS + 1))
    return [key for key in keys if key in metrics]


def of_mttf(metrics: Metrics, mttf: pl.DataFrame, without_end: pl.DataFrame) -> None:
    """Mean time to failure over all lives and at the ends of the range of job sizes; what missing ends could change."""
    source = "tables/mttf.csv"
    at_95 = mttf.filter(confidence=0.95, event="failure")
    for row in at_95.filter(stratum_by="all").iter_rows(named=True):
        metrics.put("mttf.n", row["n"], "lives", source)
        metrics.put("mttf.events", row["events"], "failures", source, row["n"])
        rates = ("gpu_days", "failures_per_1000_gpu_days", "node_days", "failures_per_1000_node_days")
        units = {"exposure_s": "s"} | _MEAN | {name: name.replace("_", " ") for name in rates}
        metrics.put_row("mttf", row, units, source, row["n"])
    sizes = at_95.filter(pl.col("events") >= FEWEST_FAILURES, stratum_by="gpu_count")
    sizes = sizes.with_columns(gpus=pl.col("stratum").cast(pl.Int64)).filter(pl.col("gpus") > 0).sort("gpus")
    for end, row in ends_of(sizes, "smallest", "largest"):
        metrics.put_row(f"mttf.{end}", row, {"gpus": "GPUs", "events": "failures"} | _MEAN, source, row["n"])
    source = "tables/failures_without_end.csv"
    for row in without_end.filter(stratum_by="all").iter_rows(named=True):
        metrics.put("without_end.failures", row["failures"], "failures", source)
        metrics.put("without_end.without_end", row["without_end"], "failures", source, row["failures"])
        metrics.put("without_end.share", row["share_without_end"], "share", source, row["failures"])
        metrics.put_row("without_end", row, {"mttf_low_s": "s", "mttf_high_s": "s"}, source, row["failures"])


def of_mttf_range(metrics: Metrics) -> None:
    """Between what the mean time to failure lies where missing or censored ends decide it; from the other numbers.

    mttf.range.low_s and high_s (s): the lowest and the highest of what the data allow; mttf.range.why says which. More
    than MOST_WITHOUT_END of the failures have no end: they failed at once, or as late as they can have; the estimate
    from the others is no part of the range, as it leaves these failures out. More than MOST_RUNNING of the time at risk
    is of runs that still go on: without that time. More than MOST_WITHOUT_END of the jobs that ended have no result
    recorded: all of them failed. Delayed entry (left truncation) leads out of the estimate's interval: its estimate.
    """
    value = {name: about["value"] for name, about in metrics.items()}
    mean = value.get("mttf.mttf_s")
    found, why = [] if mean is None else [mean], []
    if (share := value.get("without_end.share", 0)) > MOST_WITHOUT_END:
        found = [value["without_end.mttf_low_s"], value["without_end.mttf_high_s"]]
        why.append(f"{share:.1%} of the failures have no written end")
    if found and (share := value.get("data.running_time_share", 0)) > MOST_RUNNING:
        found.append((1 - share) * min(found))
        why.append(f"{share:.1%} of the time at risk is of runs that still go on")
    unknown = value.get("outcomes.unknown.with_runtime", 0)
    if mean and unknown > MOST_WITHOUT_END * (value.get("outcomes.ended", 0) + unknown):
        found.append(value["mttf.exposure_s"] / (value["mttf.events"] + unknown))
        why.append(f"{unknown:,} ended with no result recorded")
    entered = value.get("delayed_entry.mttf_s")
    if mean and entered and not value["mttf.ci_low_s"] <= entered <= value["mttf.ci_high_s"]:
        found.append(entered)
        why.append("what ended before the record began is missing from it")
    if not why:
        return
    n = value.get("mttf.n")
    metrics.put("mttf.range.low_s", min(found), "s", "tables/mttf.csv", n)
    metrics.put("mttf.range.high_s", max(found), "s", "tables/mttf.csv", n)
    metrics.put("mttf.range.why", listed(why), "label", "tables/mttf.csv", n)


def of_models(metrics: Metrics, models: pl.DataFrame) -> None:
    """The Weibull over all lives, and the model of lowest AIC."""
    source = "tables/lifetime_models.csv"
    for row in models.filter(pl.col("converged"), event="failure", stratum_by="all").iter_rows(named=True):
        if row["best"]:
            metrics.put("models.best", row["model"], "label", source, row["n"])
        if row["model"] == "weibull":
            metrics.put_row("models.weibull", row, {"shape": "1", "scale_s": "s"}, source, row["n"])
