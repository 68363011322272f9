"""Columns that tables of several analyses share. Estimators that several use give their frames the types by these."""

from collections.abc import Callable, Mapping

from ttf.engine.contract import REASON, Column, count, name, number, reason, seconds, share, whole_seconds, words

# With fewer effective clusters no interval is given: two or three say next to nothing of how others would differ.
FEWEST_CLUSTERS = 4
# With fewer weeks nothing is said of how others would differ.
FEWEST_BLOCKS = 8

# What the lives of units that are repaired are called: curves of them count gaps, and not units.
GAP = "gap between outages"

# Windows and what is named after them: all, all before, days; a part is named after its file.
WINDOWS = r"all|all before|[\d\W]+"


def ends(kind: Callable[..., Column], of: str, blank: str | None, prefix: str = "") -> dict[str, Column]:
    """The columns of the ends of a 95% CI; kind: a column of shares, numbers or seconds."""
    return {
        f"{prefix}ci_low": kind("95% from", f"Lower end of {of}.", blank),
        f"{prefix}ci_high": kind("95% to", f"Upper end of {of}.", blank),
    }


# Where the column `reason` has other things to say.
NO_CLUSTERS = f"the trace names nothing that fails alike, or there are fewer than {FEWEST_CLUSTERS} effective clusters"


def clustered(kind: Callable[..., Column], suffix: str = "", blank: str = REASON) -> dict[str, Column]:
    """The columns of an interval that holds when clusters differ (`ttf.stats.clustered`), beside the exact ones."""
    return {
        "cluster_by": words("Clustered by", "What fails alike: user or system, and week where these count.", blank),
        "clusters": number("Effective clusters", "Kish's number of them; with weeks, of both spreads together.", blank),
        f"ci_low_clustered{suffix}": kind("from, clustered", "Lower end that holds when clusters differ.", blank),
        f"ci_high_clustered{suffix}": kind("to, clustered", "Upper end of it.", blank),
    }


CLUSTERED = clustered(share)
STRATUM = {
    "event": words("Event", "What ends a life here: failure, infra_failure or one cause; other ends are censoring."),
    "stratum_by": words("Strata", "What those at risk are divided by; all: they are not."),
    "stratum": name("Stratum", "The value that those of the row have of it.", by="stratum_by", sorted=True),
}
COUNTED = {
    "n": count("n", "Jobs or units at risk, of known duration.", unit="lives"),
    "events": count("Failures", "Those of them that the event ended.", unit="failures"),
}
BASIS = words("Basis", "Why an end counts as one by infrastructure: state, event, proxy or component.", "no life ran")

AT_AGE = {
    "time_s": whole_seconds("Age", "Time since the start of the life."),
    "at_risk": count("At risk", "Under watch, and not ended before that age.", unit="lives"),
    "events": count("Events", "Those that the event ended at that age.", unit="lives"),
}
CENSORED = count("Censored", "Those that ended otherwise, or were last seen, at that age.", unit="lives")
CURVES = {
    **STRATUM,
    **AT_AGE,
    "censored": CENSORED,
    "survival": share("Survival", "Kaplan-Meier estimate of the share that lasts longer.", REASON),
    **ends(share, "its log-log interval", REASON),
    **CLUSTERED,
    "reason": reason(),
}
_SUMMARY = {
    **STRATUM,
    **COUNTED,
    "median_s": whole_seconds("Median", "First age with survival at 0.5 or below.", REASON),
    "median_ci_low_s": whole_seconds("95% from", "Age at which the lower end of survival is first 0.5.", REASON),
    "median_ci_high_s": whole_seconds("95% to", "Age at which the upper end of survival is first 0.5.", REASON),
    "cluster_by": CLUSTERED["cluster_by"],
    "clusters": CLUSTERED["clusters"],
    "median_ci_low_clustered_s": whole_seconds(
        "95% from, clustered", "By limits that hold when clusters differ.", REASON
    ),
    "median_ci_high_clustered_s": whole_seconds(
        "95% to, clustered", "By limits that hold when clusters differ.", REASON
    ),
    "horizon_s": whole_seconds("Horizon", "Age to which the restricted mean is taken, one for all strata.", REASON),
    "restricted_mean_s": seconds("Restricted mean", "Mean time to failure up to the horizon.", REASON),
    "restricted_mean_se_s": seconds("Standard error", "Of the restricted mean.", REASON),
    "restricted_mean_se_clustered_s": seconds("Standard error, clustered", "That holds when clusters differ.", REASON),
}
SUMMARY = {**_SUMMARY, "reason": reason()}
SUMMARY_DELAYED_ENTRY = {
    **_SUMMARY,
    "entered_late": count("entered late", "Those of n that came under watch after their start.", unit="lives"),
    "reason": reason(),
}
MTTF = {
    **STRATUM,
    **COUNTED,
    "exposure_s": whole_seconds("Time at risk", "Sum of the n durations."),
    "mttf_s": seconds("Mean time to failure", "Time at risk over failures.", REASON),
    "confidence": number("Confidence", "Of the interval."),
    "ci_low_s": seconds("from", "Lower end of Garwood's interval; without a failure a one-sided bound.", REASON),
    "ci_high_s": seconds("to", "Upper end of Garwood's interval.", REASON),
    **clustered(seconds, "_s"),
    "gpu_days": number("GPU-days", "Time at risk times GPUs of those that requested any.", REASON, "GPU-days"),
    "failures_per_1000_gpu_days": number("Failures per 1000 GPU-days", "Over gpu_days.", REASON, "per 1000 days"),
    "node_days": number("Node-days", "Of those of them whose nodes are known.", REASON, "node-days"),
    "failures_per_1000_node_days": number(
        "Failures per 1000 node-days", "Over node_days.", REASON, "per 1000 node-days"
    ),
    "reason": reason(),
}


def wilson(blank: str | None = None) -> dict[str, Column]:
    """The ends of Wilson's interval of a share."""
    return ends(share, "Wilson's 95% CI", blank)


def top_owners(ranked_by: str) -> dict[str, Column]:
    """Which of the owners a row is of. ranked_by: what may put them in order."""
    return {
        "owner_by": words("By", "user or account."),
        "ranked_by": words("Ranked by", ranked_by),
        "top_share": share("Top", "So many of the owners, rounded up to whole ones."),
        "owners": count("Owners", "Owners in all.", unit="owners"),
        "owners_in_top": count("of them", "Owners that the row is of.", unit="owners", n="owners"),
    }


def percentiles(
    column: Callable[..., Column], suffix: str, sentences: Mapping[int, str], blank: str | None = None
) -> dict[str, Column]:
    """Columns such as p25_s, of a kind (`ttf.engine.contract.seconds`); sentences: percentage -> what the column
    holds."""
    headings = {percent: "Median" if percent == 50 else f"{percent}%" for percent in sentences}
    return {f"p{p}{suffix}": column(headings[p], sentence, blank) for p, sentence in sentences.items()}
