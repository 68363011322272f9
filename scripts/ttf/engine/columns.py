"""Columns that tables of several analyses share; shared estimators give their frames these types."""

from collections.abc import Callable, Mapping

from ttf.engine.contract import REASON, Column, count, name, number, reason, seconds, share, whole_seconds, words

# With fewer effective clusters there is no interval: two or three say almost nothing about how others differ.
FEWEST_CLUSTERS = 4
# With fewer weeks the variance between weeks is not estimated.
FEWEST_BLOCKS = 8

# Name of the durations of repaired units: their curves count gaps, not units.
GAP = "gap between outages"

# Names of windows: all, all before, days; a part has the name of its file.
WINDOWS = r"all|all before|[\d\W]+"


def interval_columns(
    kind: Callable[..., Column], interval: str, blank: str | None, prefix: str = ""
) -> dict[str, Column]:
    """Return the columns of the limits of a 95% CI; kind: function for a column of shares, numbers or seconds."""
    return {
        f"{prefix}ci_low": kind("95% from", f"Lower bound of {interval}.", blank),
        f"{prefix}ci_high": kind("95% to", f"Upper bound of {interval}.", blank),
    }


# For tables whose column `reason` has other texts.
NO_CLUSTERS = f"the trace has no clusters, or fewer than {FEWEST_CLUSTERS} effective ones"


def clustered_columns(kind: Callable[..., Column], suffix: str = "", blank: str = REASON) -> dict[str, Column]:
    """Return the columns of a clustered interval (`ttf.stats.clustered`), besides the exact one."""
    return {
        "cluster_by": words("Clustered by", "Kind of clusters, such as user and week.", blank),
        "clusters": number("Effective clusters", "Kish's effective number of clusters.", blank),
        f"ci_low_clustered{suffix}": kind("from, clustered", "Lower bound of the clustered interval.", blank),
        f"ci_high_clustered{suffix}": kind("to, clustered", "Upper bound of the clustered interval.", blank),
    }


CLUSTERED = clustered_columns(share)
STRATUM = {
    "event": words("Event", "The event: failure, infra_failure or one cause; other ends are censored."),
    "stratum_by": words("Strata", "How durations are grouped; all is one group."),
    "stratum": name("Stratum", "Value of the stratification.", by="stratum_by", sorted=True),
}
COUNTED = {
    "n": count("n", "Jobs or units at risk with a known duration.", unit="durations"),
    "events": count("Failures", "Durations that ended with the event.", unit="failures"),
}
BASIS = words("Basis", "Rule that attributes ends to infrastructure: state, event, proxy or component.", "none ran")

AT_AGE = {
    "time_s": whole_seconds("Age", "Time since the start."),
    "at_risk": count("At risk", "Durations still at risk at that age.", unit="durations"),
    "events": count("Events", "Durations that ended with the event at that age.", unit="durations"),
}
CENSORED = count("Censored", "Durations censored at that age.", unit="durations")
CURVES = {
    **STRATUM,
    **AT_AGE,
    "censored": CENSORED,
    "survival": share("Survival", "Kaplan-Meier estimate of survival beyond that age.", REASON),
    **interval_columns(share, "the log-log interval", REASON),
    **CLUSTERED,
    "reason": reason(),
}
_SUMMARY = {
    **STRATUM,
    **COUNTED,
    "median_s": whole_seconds("Median", "First age with survival at 0.5 or below.", REASON),
    "median_ci_low_s": whole_seconds("95% from", "Age at which the lower bound of survival first reaches 0.5.", REASON),
    "median_ci_high_s": whole_seconds("95% to", "Age at which the upper bound of survival first reaches 0.5.", REASON),
    "cluster_by": CLUSTERED["cluster_by"],
    "clusters": CLUSTERED["clusters"],
    "median_ci_low_clustered_s": whole_seconds("95% from, clustered", "Lower bound of the clustered interval.", REASON),
    "median_ci_high_clustered_s": whole_seconds("95% to, clustered", "Upper bound of the clustered interval.", REASON),
    "horizon_s": whole_seconds("Horizon", "Age at which the restricted mean stops; the same for all strata.", REASON),
    "restricted_mean_s": seconds("Restricted mean", "Mean time to failure, restricted to the horizon.", REASON),
    "restricted_mean_se_s": seconds("Standard error", "Standard error of the restricted mean.", REASON),
    "restricted_mean_se_clustered_s": seconds(
        "Standard error, clustered", "Clustered standard error of the restricted mean.", REASON
    ),
}
SUMMARY = {**_SUMMARY, "reason": reason()}
SUMMARY_DELAYED_ENTRY = {
    **_SUMMARY,
    "entered_late": count("entered late", "Durations that began before observation did.", unit="durations"),
    "reason": reason(),
}
_MOST_END = "at least 95% of the failures have an end, or there is none"
MTTF = {
    **STRATUM,
    **COUNTED,
    "exposure_s": whole_seconds("Time at risk", "Sum of the n durations."),
    "mttf_s": seconds("Mean time to failure", "Time at risk divided by failures.", REASON),
    "confidence": number("Confidence", "Confidence level of the interval."),
    "ci_low_s": seconds("from", "Lower bound of Garwood's interval; one-sided if there is no failure.", REASON),
    "ci_high_s": seconds("to", "Upper bound of Garwood's interval.", REASON),
    **clustered_columns(seconds, "_s"),
    "gpu_days": number("GPU-days", "Time at risk times GPUs, of jobs that requested GPUs.", REASON, "GPU-days"),
    "failures_per_1000_gpu_days": number(
        "Failures per 1000 GPU-days", "Failures divided by GPU-days.", REASON, "per 1000 days"
    ),
    "node_days": number("Node-days", "Time at risk times nodes, of jobs with known nodes.", REASON, "node-days"),
    "failures_per_1000_node_days": number(
        "Failures per 1000 node-days", "Failures divided by node-days.", REASON, "per 1000 node-days"
    ),
    "reason": reason(),
    "mttf_low_s": seconds("At least", "Lower bound if more than 5% of the failures have no recorded end.", _MOST_END),
    "mttf_high_s": seconds("at most", "Upper bound if more than 5% of the failures have no recorded end.", _MOST_END),
}


def wilson_columns(blank: str | None = None) -> dict[str, Column]:
    """Return the limits of Wilson's interval of a share."""
    return interval_columns(share, "Wilson's 95% CI", blank)


def detectable_ratio_column(blank: str, n: str = "") -> Column:
    return number("Detectable ratio", "Smallest rate ratio that the test detects with 80% power.", blank, n=n)


def owner_columns(ranked_by: str) -> dict[str, Column]:
    """Return the columns of the owners of a row. ranked_by: what may order them."""
    return {
        "owner_by": words("By", "user or account."),
        "ranked_by": words("Ranked by", ranked_by),
        "top_share": share("Top", "Share of the users or accounts, rounded up to whole ones."),
        "owners": count("Owners", "Number of all users or accounts.", unit="owners"),
        "owners_in_top": count("of them", "Users or accounts in the top share.", unit="owners", n="owners"),
    }


def percentile_columns(
    column: Callable[..., Column], suffix: str, sentences: Mapping[int, str], blank: str | None = None
) -> dict[str, Column]:
    """Return columns such as p25_s, made by `column` (as `contract.seconds`). sentences: percentage -> description."""
    headings = {percent: "Median" if percent == 50 else f"{percent}%" for percent in sentences}
    return {f"p{p}{suffix}": column(headings[p], sentence, blank) for p, sentence in sentences.items()}
