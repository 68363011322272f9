"""Questions of study 1 ("Analyzing ML Training Tasks"), answered by its method and at job level with censoring.

The study correlates means: one point per distinct request at the mean run time of its jobs, with Pearson's r. It calls
every job failed that did not succeed, running and waiting ones included. Some figures leave out long runs. At job
level: jobs instead of group means, real failures only, rank correlations with adjusted p, and failures per hour of run
time, in which jobs that did not fail count with the time they ran (right-censoring).
"""

import math
from typing import Any

import numpy as np
import polars as pl
from scipy.special import betaincinv

from ttf.analyses.replication.repeat_study import CUTOFFS, STUDY1, STUDY1_SUMMARY, STUDY_SETS
from ttf.display.charts.text import FEATURE_NAMES, FEATURE_UNITS
from ttf.engine.counts import ValueCounts, count_rows, distinct_texts, text_codes
from ttf.engine.words import capitalise, coefficient, duration, number, plural_noun, remove_no_break_spaces
from ttf.records.clusters import JOB_CLUSTER_COLUMNS
from ttf.records.inputs import Inputs
from ttf.records.jobs import Frame, observed_s
from ttf.stats.basics.holm import holm
from ttf.stats.basics.median import median_interval
from ttf.stats.basics.p_value import raise_to_smallest
from ttf.stats.clustered import (
    CLUSTERED,
    UNCLUSTERED,
    Clusters,
    add_limits,
    clustered_medians,
    jackknife_influences,
    sum_by_cluster,
)
from ttf.stats.job_features import FEATURES, Feature, correlation_row

# The study has five features: the GPU type and these.
NUMERIC = ("gpu_request", "cpu_request", "memory_request", "size")
# A correlation is much weaker if it is below half the other; few jobs dominate a mean that is twice the median.
HALF = 0.5
TWICE = 2
CONFIDENCE = 0.95
# Verdicts for which the correlation is significant by the published method and at job level.
SIGNIFICANT_BOTH = ("kept", "weaker", "stronger", "flips")
SIGNIFICANT_PUBLISHED = (*SIGNIFICANT_BOTH, "lost")
UNTESTED = "not told"

_JOBS = [
    "outcome",
    "runtime_s",
    "start_s",
    "trace_end_s",
    *(feature.column for feature in FEATURES),
    *JOB_CLUSTER_COLUMNS,
]


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    """Return the tables of the analysis: study1 and study1_summary."""
    tables = inputs["correlations"], inputs["runtime_by_group"], inputs["mttf"]
    units, significance = plural_noun(inputs.settings.unit), inputs.settings.significance
    table = repeat_study(inputs.scan("jobs", _JOBS), *tables, units, significance)
    return {"study1": table, "study1_summary": summarise_verdicts(table)}


def summarise_verdicts(study1: pl.DataFrame) -> pl.DataFrame:
    """Summarise STUDY1 as the one row of STUDY1_SUMMARY."""
    correlations = study1.filter(question="correlation")
    computable = correlations.filter(pl.col("verdict") != "not computable")
    verdicts_by_cell = {
        "significant": ("verdict", SIGNIFICANT_PUBLISHED),
        "still_significant": ("verdict_clustered", SIGNIFICANT_BOTH),
        "still_significant_if_independent": ("verdict", SIGNIFICANT_BOTH),
        "newly_significant": ("verdict_clustered", ("found",)),
        "newly_significant_if_independent": ("verdict", ("found",)),
        "untested": ("verdict_clustered", (UNTESTED,)),
    } | {name: ("verdict_clustered", (name,)) for name in ("weaker", "flips")}
    row: dict[str, object]
    row = {name: computable[column].is_in(values).sum() for name, (column, values) in verdicts_by_cell.items()}
    rates = correlations.drop_nulls("rate_p_adjusted_clustered")
    mean_run_times = study1.filter(pl.col("study_estimate") > 0, question="mean_run_time", outcome="failure")
    ratios = mean_run_times.select(pl.col("asked_estimate") / pl.col("study_estimate")).to_series().drop_nulls()
    row |= {"compared": computable.height, "rates": rates.height, "rates_differ": rates["rate_reject_clustered"].sum()}
    row |= {"gpu_types": ratios.len(), "lowest_ratio": ratios.min(), "highest_ratio": ratios.max()}
    return STUDY1_SUMMARY.frame([row])


def repeat_study(
    jobs: Frame,
    correlations: pl.DataFrame,
    runtime_by_group: pl.DataFrame,
    mttf: pl.DataFrame,
    units: str,
    significance: float = 0.05,
) -> pl.DataFrame:
    """Answer each question of the study in a row of STUDY1. units: plural name of the jobs, such as "pods".

    study_*: by its method, with its definition of failure (study_set). asked_*: rank correlation over jobs of
    that outcome; per GPU type the median run time of successes and the right-censored mean time to failure. rate_*:
    from `rate_ratio`. verdict: r against the correlation over jobs. Clustered values need jobs with CLUSTER_COLUMNS.
    """
    rates = _estimate_rate_ratios(jobs, mttf)
    figures = [*((outcome, feature, None) for outcome in STUDY_SETS for feature in NUMERIC), *CUTOFFS]
    rows = [_correlation_row(correlations, *figure, rates, units, significance) for figure in figures]
    rows += _mean_rows(jobs, runtime_by_group, mttf, units)
    return STUDY1.frame(rows)


# Correlations ------------------------------------------------------------------------------------------------


def _correlation_row(
    table: pl.DataFrame,
    outcome: str,
    feature: str,
    cutoff: int | None,
    rates: dict[str, dict],
    units: str,
    significance: float,
) -> dict:
    """Return the STUDY1 row of a figure: a feature's correlation with run time, over means and over jobs."""
    r_row = correlation_row(table, STUDY_SETS[outcome], feature, cutoff, "group_mean", "pearson")
    rho_row = correlation_row(table, outcome, feature, None, "job", "spearman")
    row: dict[str, Any]
    row = {"question": "correlation" if cutoff is None else "cut_off", "outcome": outcome, "feature": feature}
    row["cutoff_s"] = cutoff
    columns = ("estimate", "ci_low", "ci_high", "n")
    for prefix, estimate in (("study", r_row), ("asked", rho_row)):
        if estimate:
            row |= {f"{prefix}_{name}": estimate[name] for name in columns} | {f"{prefix}_p": estimate["p_value"]}
    if rho_row:
        row |= {f"asked_{name}": rho_row[name] for name in (*CLUSTERED, "p_adjusted_clustered")}
    row["verdict"], _, _ = _compare_estimates(r_row, rho_row, cutoff, units, significance)
    verdict, clause, reason = _compare_estimates(r_row, rho_row, cutoff, units, significance, "p_adjusted_clustered")
    clauses, reasons = [clause], [reason]
    if rho_row and rho_row["p_value"] is not None and rho_row["p_clustered"] is None:
        reasons.append(rho_row["reason"])
    if cutoff is not None and (share := _excluded_share(table, STUDY_SETS[outcome], feature, cutoff)) is not None:
        clauses.append(f"its cut-off left out the longest {100 * share:.1f}% of the runs, which are what is explained")
    if outcome == "failure" and cutoff is None:
        row |= rates[feature]
        if (adjusted_p := rates[feature]["rate_p_adjusted_clustered"]) is not None:
            row["rate_reject_clustered"] = adjusted_p < significance
        clauses.append(_format_rate_clause(rates[feature], feature, units, significance))
        reasons.append(rates[feature].get("reason"))
    sentence = capitalise("; ".join(clauses)) + "."
    joined = "; ".join(dict.fromkeys(filter(None, reasons))) or None
    return row | {"verdict_clustered": verdict, "change": sentence, "reason": joined}


def _excluded_share(table: pl.DataFrame, outcome_set: str, feature: str, cutoff: int) -> float | None:
    """Return the share of jobs that ran longer than the cut-off; None if a correlation is missing."""
    full, short = (correlation_row(table, outcome_set, feature, limit, "job", "spearman") for limit in (None, cutoff))
    return 1 - short["n"] / full["n"] if full and short and full["n"] else None


def _compare_estimates(
    r_row: dict | None, rho_row: dict | None, cutoff: int | None, units: str, significance: float, p: str = "p_adjusted"
) -> tuple[str, str, str | None]:
    """Return (verdict, clause of the sentence, reason if not computable); p: column of the p-value over jobs."""
    if r_row is None:
        reason = f"no correlation with a cut-off of {cutoff:,} s was requested (correlation.cutoffs_s)"
        return "not computable", f"not computable: {reason}", reason
    if r_row["estimate"] is None:
        return "not computable", f"not computable by the published method: {r_row['reason']}", r_row["reason"]
    if rho_row is None or rho_row["estimate"] is None:
        reason = rho_row["reason"] if rho_row else "there is no correlation over jobs"
        return "not computable", f"not computable over {units}: {reason}", reason
    r, rho = r_row["estimate"], rho_row["estimate"]
    numbers = f"(r = {coefficient(r)} over {r_row['n']:,} means, ρ = {coefficient(rho)} over {rho_row['n']:,} {units})"
    if rho_row[p] is None:
        return UNTESTED, f"over {units} it cannot be tested, for want of clusters {numbers}", None
    is_r_significant, is_rho_significant = r_row["p_value"] < significance, rho_row[p] < significance
    if is_r_significant and not is_rho_significant:
        return "lost", f"no longer significant {numbers}", None
    if is_rho_significant and not is_r_significant:
        return "found", f"significant over {units} alone {numbers}", None
    if not is_rho_significant:
        return "neither", f"no trend either way {numbers}", None
    if (r > 0) != (rho > 0):
        return "flips", f"the sign flips {numbers}", None
    if abs(rho) < HALF * abs(r):
        return "weaker", f"the sign stays, but the correlation is much weaker {numbers}", None
    if abs(r) < HALF * abs(rho):
        return "stronger", f"the sign stays, and the correlation is much stronger {numbers}", None
    return "kept", f"sign and significance stay {numbers}", None


# Failure rates -----------------------------------------------------------------------------------------------


def _estimate_rate_ratios(jobs: Frame, mttf: pl.DataFrame) -> dict[str, dict]:
    """Return `rate_ratio` by numeric feature, with p-values adjusted by Holm's method; none if MTTF is withheld."""
    withheld = mttf.filter(pl.col("mttf_low_s").is_not_null(), stratum_by="all", event="failure")["reason"].to_list()
    feature_by_name = {feature.name: feature for feature in FEATURES}
    rates = {name: rate_ratio(jobs, feature_by_name[name]) for name in NUMERIC if not withheld}
    rates = rates or {name: {"reason": withheld[0]} for name in NUMERIC}
    adjusted = holm([rate.get("rate_p_clustered") for rate in rates.values()])
    for rate, adjusted_p in zip(rates.values(), adjusted, strict=True):
        rate["rate_p_adjusted_clustered"] = adjusted_p
    return rates


def rate_ratio(jobs: Frame, feature: Feature) -> dict:
    """Estimate the ratio of the failure rates above and below a value of the feature.

    The value (split_value) splits the jobs that ran as evenly as their values allow. A job counts with its observed
    time, and as a failure if it failed after a known time; success, cancellation and still running are right-censored.
    Given the failures k of both parts, those above are binomial with k and pi = T2 rho / (T2 rho + T1), with T the run
    times and rho the ratio of the rates. Clopper-Pearson's 95 % interval of pi gives that of rho (one-sided if one part
    has no failure). Each part is assumed to have a constant rate. The clustered interval is symmetric about log rho.
    Without a ratio, `reason` says why.
    """
    observed_jobs = (
        jobs.lazy()
        .filter(pl.col("outcome") != "waiting")
        .with_columns(key=feature.group_key(), time=observed_s(), failed=pl.col("outcome") == "failure")
        .drop_nulls(["key", "time"])
    )
    groups = (
        observed_jobs.group_by("key")
        .agg(n=pl.len().cast(pl.Int64), time=pl.col("time").sum(), failures=pl.col("failed").sum())
        .sort("key")
        .collect(engine="streaming")
    )
    if groups.height < 2:
        cause = "no job that ran has a value" if not groups.height else "every job that ran has the same value"
        return {"reason": f"{cause} of {feature.name}"}
    cumulative_n = groups["n"].cum_sum().to_numpy()[:-1]
    split_index = int(np.argmin(np.abs(2 * cumulative_n - groups["n"].sum())))
    low, high = groups.head(split_index + 1), groups.tail(groups.height - split_index - 1)
    t_low, t_high, k_low, k_high = (int(part[name].sum()) for name in ("time", "failures") for part in (low, high))
    row = {"split_value": feature.labels([low["key"][-1]])[0], "rate_failures": k_low + k_high}
    if k_low + k_high == 0:
        return row | {"reason": "no job failed after a known time"}
    if not t_low or not t_high:
        return row | {"reason": "one half ran for 0 s"}
    # If one half has no failure, the interval is one-sided with all of the error.
    error = (1 - CONFIDENCE) / (2 if k_low and k_high else 1)
    time_ratio = t_low / t_high
    pi_low = float(betaincinv(k_high, k_low + 1, error)) if k_high else 0.0
    pi_high = float(betaincinv(k_high + 1, k_low, 1 - error)) if k_low else 1.0
    row["rate_ci_low"] = pi_low / (1 - pi_low) * time_ratio
    row["rate_ci_high"] = pi_high / (1 - pi_high) * time_ratio if pi_high < 1 else None
    if not k_low:
        return row | {"reason": "no failure at or below the split: lower limit of the ratio only"}
    row["rate_ratio"] = k_high * t_low / (k_low * t_high)
    if not k_high:
        return row
    clustered_cells = _clustered_rate_ratio(observed_jobs, low["key"][-1], math.log(row["rate_ratio"]))
    row["reason"] = clustered_cells.pop("why_not")
    return row | {f"rate_{name}": value for name, value in clustered_cells.items()}


def _clustered_rate_ratio(observed_jobs: pl.LazyFrame, split: int, log_ratio: float) -> dict:
    """Return the clustered cells of the ratio of the rates above and up to a value of `key`, or `why_not`.

    The influence of a cluster on the logarithm of a rate is its share of the failures less that of the time, over 1 - h
    with h the mean of the two shares. The influence on the ratio is the difference of two of these. The part with fewer
    effective clusters gives the degrees of freedom.
    """
    parts = {"high": pl.col("key") > split, "low": pl.col("key") <= split}
    values = {"n": pl.lit(1, dtype=pl.Int64), "time": pl.col("time"), "failures": pl.col("failed").cast(pl.Int64)}
    aggregates = {
        f"{name}_{part}": (value * side).sum() for part, side in parts.items() for name, value in values.items()
    }
    sums = sum_by_cluster(observed_jobs.drop("block", strict=False), [], True, None, **aggregates)
    if not sums.height:
        return {"why_not": UNCLUSTERED}
    influence, part_clusters = np.zeros(sums.height), []
    for part, sign in (("high", 1), ("low", -1)):
        n, time, failures = (sums[f"{name}_{part}"].to_numpy().astype(float) for name in values)
        clusters = Clusters.in_one_stratum(n)
        failure_shares, time_shares = clusters.share(failures), clusters.share(time)
        influence += sign * jackknife_influences(failure_shares - time_shares, (failure_shares + time_shares) / 2)
        part_clusters.append(clusters)
    fewest = min(part_clusters, key=lambda clusters: clusters.effective.item())
    se = np.sqrt((influence**2).sum(keepdims=True))
    margin = se * fewest.student(CONFIDENCE)
    with np.errstate(over="ignore"):
        bounds = np.exp(log_ratio - margin), np.exp(log_ratio + margin)
    cells = add_limits(sums.select("cluster_by").head(1), *bounds, fewest.effective).row(0, named=True)
    # If all clusters have the same rate, there is no spread and no test.
    is_tested = se.item() > 0 and not cells["why_not"]
    p = raise_to_smallest(fewest.p_value(log_ratio / se).item())[0] if is_tested else None
    return cells | {"p_clustered": p}


def _format_rate_clause(rate: dict, feature: str, units: str, significance: float) -> str:
    if "rate_ci_low" not in rate:
        return f"failure rates cannot be compared: {rate['reason']}"
    unit = "instance" if (feature, rate["split_value"]) == ("size", "1") else FEATURE_UNITS[feature]
    condition = f"a {FEATURE_NAMES[feature]} above {float(rate['split_value']):,.4g} {unit}"
    if rate.get("rate_ratio") is None:
        low = number(rate["rate_ci_low"])
        return f"with {condition} {units} fail at least {low} times as often per hour of run time (lower limit)"
    ratio = f"{number(rate['rate_ratio'])} times as often per hour of run time"
    p = rate["rate_p_adjusted_clustered"]
    if p is None:
        return f"with {condition} {units} fail {ratio}, which cannot be tested, for want of clusters"
    low, high = (number(rate[f"rate_ci_{bound}_clustered"]) for bound in ("low", "high"))
    return f"with {condition} {units} fail {ratio} ({low} to {high}){', not significant' if p >= significance else ''}"


# Means by GPU type -------------------------------------------------------------------------------------------


def _mean_rows(jobs: Frame, runtime_by_group: pl.DataFrame, mttf: pl.DataFrame, units: str) -> list[dict]:
    """Return the STUDY1 rows on run time by GPU type: the published mean, and the median or the MTTF over jobs."""
    group_means = runtime_by_group.filter(pl.col("cutoff_s").is_null(), feature="gpu_type")
    gpu_types = distinct_texts(jobs, "gpu_type")
    succeeded = jobs.filter((pl.col("outcome") == "success") & (pl.col("runtime_s") >= 0))
    run_times = count_rows(succeeded, type=text_codes("gpu_type", gpu_types), time=pl.col("runtime_s"))
    times_by_type = {
        name: ValueCounts.from_frame(run_times.filter(type=index), "time") for index, name in enumerate(gpu_types)
    }
    clustered = clustered_medians(succeeded, "gpu_type", "runtime_s", times_by_type)
    clustered_by_type = clustered.rows_by_key("gpu_type", named=True, unique=True)
    rows = []
    for outcome, study_set in STUDY_SETS.items():
        for mean in group_means.filter(outcome_set=study_set).iter_rows(named=True):
            row = {"question": "mean_run_time", "outcome": outcome, "feature": "gpu_type", "value": mean["value"]}
            row |= {"study_estimate": mean["runtime_mean_s"], "study_n": mean["jobs"]}
            if outcome == "success":
                cells = clustered_by_type.get(mean["value"])
                rows.append(row | _median_cells(times_by_type[mean["value"]], mean, units, cells))
            else:
                rows.append(row | _mttf_cells(mttf, mean, units))
    return rows


def _median_cells(run_times: ValueCounts, mean: dict, units: str, clustered: dict | None) -> dict:
    """Return cells of the median of successes; mean: the published row; clustered: `clustered_medians`."""
    low, high = median_interval(run_times.size, run_times.at)
    cells = dict(clustered or {"why_not": UNCLUSTERED})
    why_not = cells.pop("why_not") if low is not None else None
    row = {
        "asked_estimate": mean["runtime_median_s"],
        "asked_ci_low": low,
        "asked_ci_high": high,
        "asked_n": run_times.size,
        "reason": why_not if low is not None else "fewer than 6 run times: no interval of the median",
    } | {f"asked_{name}": cells[name] for name in CLUSTERED if name in cells}
    median_s = mean["runtime_median_s"]
    if median_s <= 0:
        return row | {"change": f"Half of these {units} took no time at all."}
    ratio = mean["runtime_mean_s"] / median_s
    median_text = remove_no_break_spaces(duration(median_s))
    sentence = f"Half of these {units} took at most {median_text}; the mean is {number(ratio)} times as long"
    return row | {"change": sentence + (", made by the few that ran long." if ratio >= TWICE else ".")}


def _mttf_cells(mttf: pl.DataFrame, mean: dict, units: str) -> dict:
    """Return cells of the censored mean time to failure; mean: the published row, whose `value` is the GPU type."""
    row: dict[str, Any] = {}
    mttf_rows = mttf.filter(event="failure", stratum_by="gpu_type", stratum=mean["value"], confidence=CONFIDENCE)
    estimate: dict[str, Any] = next(
        mttf_rows.iter_rows(named=True), {"mttf_s": None, "reason": "no job at risk has this type"}
    )
    if mttf_rows.height:
        row |= {"asked_estimate": estimate["mttf_s"], "asked_n": estimate["events"]}
        row |= {"asked_ci_low": estimate["ci_low_s"], "asked_ci_high": estimate["ci_high_s"]}
        row |= {f"asked_{name}": estimate.get(name if name in estimate else f"{name}_s") for name in CLUSTERED}
    if estimate["mttf_s"] is None:
        reason = estimate["reason"] or "no failures"
        return row | {"change": f"Not computable: {reason}.", "reason": reason}
    has_clustered = row["asked_ci_low_clustered"] is not None
    low, high = (row[f"asked_ci_{bound}{'_clustered' * has_clustered}"] for bound in ("low", "high"))
    if not has_clustered:
        row["reason"] = estimate["reason"]
    independence_note = "" if has_clustered else f" if {units} were independent"
    mttf_text = remove_no_break_spaces(
        f"{duration(estimate['mttf_s'])} ({duration(low)} to {duration(high)}{independence_note})"
    )
    if mean["runtime_mean_s"] <= 0:
        return row | {"change": f"A failure comes once in {mttf_text} of run time."}
    ratio = estimate["mttf_s"] / mean["runtime_mean_s"]
    return row | {"change": f"A failure comes once in {mttf_text} of run time: {number(ratio)} times the mean."}
