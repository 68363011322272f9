"""Study 1 ("Analyzing ML Training Tasks") by question: as published, and beside it at job level, censored.

The study correlates means: one point per distinct request, its height the mean run time of all jobs with it, Pearson's
r; what did not succeed, running and waiting jobs included, it calls failed; some figures leave out long runs. Asked
well: jobs and not group means, real failures only, rank correlations with adjusted p, and of failure the rate per hour
of run time, in which jobs that did not fail count with the time they ran (right-censoring).
"""

import math

import numpy as np
import polars as pl
from scipy.special import bdtr, bdtrc, betaincinv

from ttf.analyses.replication.ask_again import STUDY1, STUDY1_SUMMARY
from ttf.display.charts.text import FEATURE_NAMES, FEATURE_UNITS
from ttf.engine.counts import Counted, code, counts, labels
from ttf.engine.words import capital, coefficient, duration, many, number, plain_spaces
from ttf.records.clusters import READ_OF_JOBS
from ttf.records.inputs import Inputs
from ttf.records.jobs import Frame, observed_s
from ttf.stats.basics.holm import holm
from ttf.stats.basics.median import median_interval
from ttf.stats.basics.p_value import never_zero
from ttf.stats.clustered import CLUSTERED, UNCLUSTERED, Clusters, by_cluster, clustered_median, jackknifed, with_limits
from ttf.stats.job_features import FEATURES, Feature, correlation_row

# Its five features are the GPU type and these.
NUMERIC = ("gpu_request", "cpu_request", "memory_request", "size")
# What it called success and failure -> the outcome set of our tables.
STUDY_SETS = {"success": "success", "failure": "not_success"}
# Its figures that leave out runs of so many seconds and more.
CUTOFFS = (
    ("success", "cpu_request", 20_000),
    ("success", "memory_request", 100_000),
    ("failure", "cpu_request", 50_000),
    ("failure", "memory_request", 20_000),
)
# A correlation is much weaker if it is below half the other; a mean is made by few if it is twice the median.
HALF = 0.5
TWICE = 2
CONFIDENCE = 0.95
# Verdicts in which the correlation is significant by the study's recipe and at job level.
SIGNIFICANT_TWICE = ("kept", "weaker", "stronger", "flips")
SIGNIFICANT_BEFORE = (*SIGNIFICANT_TWICE, "lost")
NOT_TOLD = "not told"

_JOBS = ["outcome", "runtime_s", "start_s", "trace_end_s", *(feature.column for feature in FEATURES), *READ_OF_JOBS]


def compute(given: Inputs) -> dict[str, pl.DataFrame]:
    tables = [given[name] for name in ("correlations", "runtime_by_group", "mttf")]
    units, significance = many(given.settings.unit), given.settings.significance
    table = ask_again(given.scan("jobs", _JOBS), *tables, units, significance)
    return {"study1": table, "study1_summary": summarise_verdicts(table)}


def summarise_verdicts(table: pl.DataFrame) -> pl.DataFrame:
    """The one row of STUDY1_SUMMARY. table: STUDY1."""
    correlations = table.filter(question="correlation")
    compared = correlations.filter(pl.col("verdict") != "not computable")
    verdicts = {
        "significant": ("verdict", SIGNIFICANT_BEFORE),
        "still": ("verdict_clustered", SIGNIFICANT_TWICE),
        "still_if_independent": ("verdict", SIGNIFICANT_TWICE),
        "found_if_independent": ("verdict", ("found",)),
        "untold": ("verdict_clustered", (NOT_TOLD,)),
    } | {name: ("verdict_clustered", (name,)) for name in ("weaker", "flips", "found")}
    row = {name: compared[column].is_in(words).sum() for name, (column, words) in verdicts.items()}
    rates = correlations.drop_nulls("rate_p_adjusted_clustered")
    means = table.filter(pl.col("study_estimate") > 0, question="mean_run_time", outcome="failure")
    ratios = means.select(pl.col("asked_estimate") / pl.col("study_estimate")).to_series().drop_nulls()
    row |= {"compared": compared.height, "rates": rates.height, "rates_differ": rates["rate_reject_clustered"].sum()}
    row |= {"gpu_types": ratios.len(), "lowest_ratio": ratios.min(), "highest_ratio": ratios.max()}
    return STUDY1_SUMMARY.frame([row])


def ask_again(
    jobs: Frame,
    correlations: pl.DataFrame,
    runtime_by_group: pl.DataFrame,
    mttf: pl.DataFrame,
    units: str,
    significance: float = 0.05,
) -> pl.DataFrame:
    """A row per question of the study, with STUDY1.

    jobs: the common job record. correlations, runtime_by_group, mttf: the tables of these names. units: what jobs are
    called, in the plural. study_*: as the study asked it, with its definition of failure (study_set). asked_*: the rank
    correlation over jobs of that outcome; of a GPU type the median run time of successes, with the interval of its
    order statistics, and of failure the mean time to failure with right-censoring. rate_*: see `rate_ratio`. verdict:
    of r against the correlation over jobs. What is clustered: of jobs with CLUSTER_COLUMNS; see `ttf.stats.clustered`.
    """
    rates = _rates(jobs)
    rows = [_correlation(correlations, o, f, None, rates, units, significance) for o in STUDY_SETS for f in NUMERIC]
    rows += [_correlation(correlations, *figure, rates, units, significance) for figure in CUTOFFS]
    rows += _means(jobs, runtime_by_group, mttf, units)
    return STUDY1.frame(rows)


# Correlations ------------------------------------------------------------------------------------------------


def _correlation(
    table: pl.DataFrame,
    outcome: str,
    feature: str,
    cutoff: int | None,
    rates: dict[str, dict],
    units: str,
    significance: float,
) -> dict:
    study = correlation_row(table, STUDY_SETS[outcome], feature, cutoff, "group_mean", "pearson")
    asked = correlation_row(table, outcome, feature, None, "job", "spearman")
    row = {"question": "correlation" if cutoff is None else "cut_off", "outcome": outcome, "feature": feature}
    row |= {"cutoff_s": cutoff, "study_set": STUDY_SETS[outcome], "study_measure": "pearson over group means"}
    row |= {"asked_set": outcome, "asked_measure": "spearman over jobs"}
    estimated = ("estimate", "ci_low", "ci_high", "n", "p_adjusted")
    for whose, found in (("study", study), ("asked", asked)):
        if found:
            row |= {f"{whose}_{name}": found[name] for name in estimated} | {f"{whose}_p": found["p_value"]}
    if asked:
        row |= {f"asked_{name}": asked[name] for name in (*CLUSTERED, "p_clustered", "p_adjusted_clustered")}
    row["verdict"], _, _ = _compared(study, asked, cutoff, units, significance)
    verdict, clause, reason = _compared(study, asked, cutoff, units, significance, "p_adjusted_clustered")
    lacks = asked["reason"] if asked and asked["p_value"] is not None and asked["p_clustered"] is None else None
    clauses, reasons = [clause], [reason, lacks]
    if cutoff is not None and (share := _left_out(table, STUDY_SETS[outcome], feature, cutoff)) is not None:
        clauses.append(f"its cut-off left out the longest {100 * share:.1f}% of the runs, which are what is explained")
    if outcome == "failure" and cutoff is None:
        row |= rates[feature]
        if rates[feature]["rate_p_adjusted"] is not None:
            row["rate_reject"] = rates[feature]["rate_p_adjusted"] < significance
        if rates[feature]["rate_p_adjusted_clustered"] is not None:
            row["rate_reject_clustered"] = rates[feature]["rate_p_adjusted_clustered"] < significance
        clauses.append(_rate_clause(rates[feature], feature, units, significance))
        reasons.append(rates[feature].get("reason"))
    sentence = capital("; ".join(clauses)) + "."
    said = "; ".join(dict.fromkeys(filter(None, reasons))) or None
    return row | {"verdict_clustered": verdict, "change": sentence, "reason": said}


def _left_out(table: pl.DataFrame, outcome_set: str, feature: str, cutoff: int) -> float | None:
    every, kept = (correlation_row(table, outcome_set, feature, below, "job", "spearman") for below in (None, cutoff))
    return 1 - kept["n"] / every["n"] if every and kept and every["n"] else None


def _compared(
    study: dict | None, asked: dict | None, cutoff: int | None, units: str, significance: float, p: str = "p_adjusted"
) -> tuple[str, str, str | None]:
    """(verdict, clause, reason) of the study's r against the rank correlation over jobs; p: its column to go by."""
    if study is None:
        why = f"no correlation with a cut-off of {cutoff:,} s was requested (correlation.cutoffs_s)"
        return "not computable", f"not computable: {why}", why
    if study["estimate"] is None:
        return "not computable", f"not computable as published: {study['reason']}", study["reason"]
    if asked is None or asked["estimate"] is None:
        why = asked["reason"] if asked else "there is no correlation over jobs"
        return "not computable", f"not computable over {units}: {why}", why
    r, rho = study["estimate"], asked["estimate"]
    numbers = f"(r = {coefficient(r)} over {study['n']:,} means, ρ = {coefficient(rho)} over {asked['n']:,} {units})"
    if asked[p] is None:
        return NOT_TOLD, f"over {units} it cannot be tested, for want of clusters {numbers}", None
    was, now = study["p_value"] < significance, asked[p] < significance
    if was and not now:
        return "lost", f"no longer significant {numbers}", None
    if now and not was:
        return "found", f"significant over {units} alone {numbers}", None
    if not now:
        return "neither", f"no trend either way {numbers}", None
    if (r > 0) != (rho > 0):
        return "flips", f"the sign flips {numbers}", None
    if abs(rho) < HALF * abs(r):
        return "weaker", f"the sign stays, but the correlation is much weaker {numbers}", None
    if abs(r) < HALF * abs(rho):
        return "stronger", f"the sign stays, and the correlation is much stronger {numbers}", None
    return "kept", f"sign and significance stay {numbers}", None


# Failure rates -----------------------------------------------------------------------------------------------


def _rates(jobs: Frame) -> dict[str, dict]:
    by_name = {feature.name: feature for feature in FEATURES}
    rates = {name: rate_ratio(jobs, by_name[name]) for name in NUMERIC}
    for p, adjusted in (("rate_p", "rate_p_adjusted"), ("rate_p_clustered", "rate_p_adjusted_clustered")):
        for rate, value in zip(rates.values(), holm([rate.get(p) for rate in rates.values()]), strict=True):
            rate[adjusted] = value
    return rates


def rate_ratio(jobs: Frame, feature: Feature) -> dict:
    """Failures per run time of the jobs above a value of the feature, over that of the jobs at or below it.

    The value (split_value) parts the jobs that ran as evenly as their values allow. A job counts with the time seen of
    it, and as a failure if it failed after a known time; success, cancellation and still running are right-censoring.
    Given the failures k of both parts, those above are binomial with k and pi = T2 rho / (T2 rho + T1), T the run
    times, rho the ratio of the rates: Clopper-Pearson's interval of pi gives that of rho at 95 % (one-sided where one
    part has no failure), and the two-sided p is twice the smaller tail under rho = 1. A failure rate that is constant
    within a part is assumed. Clustered: symmetric about log rho, see `_clustered_rate`.
    Where there is no ratio, the reason says why.
    """
    known = (
        jobs.lazy()
        .filter(pl.col("outcome") != "waiting")
        .with_columns(key=feature.group_key(), time=observed_s(), failed=pl.col("outcome") == "failure")
        .drop_nulls(["key", "time"])
    )
    groups = (
        known.group_by("key")
        .agg(n=pl.len().cast(pl.Int64), time=pl.col("time").sum(), failures=pl.col("failed").sum())
        .sort("key")
        .collect(engine="streaming")
    )
    if groups.height < 2:
        said = "no job that ran has a value" if not groups.height else "every job that ran has the same value"
        return {"reason": f"{said} of {feature.name}"}
    below = groups["n"].cum_sum().to_numpy()[:-1]
    place = int(np.argmin(np.abs(2 * below - groups["n"].sum())))
    low, high = groups.head(place + 1), groups.tail(groups.height - place - 1)
    t_low, t_high, k_low, k_high = (int(part[name].sum()) for name in ("time", "failures") for part in (low, high))
    row = {"split_value": feature.labels([low["key"][-1]])[0], "rate_failures": k_low + k_high}
    if k_low + k_high == 0:
        return row | {"reason": "no job failed after a known time"}
    if not t_low or not t_high:
        return row | {"reason": "one half ran for 0 s"}
    # Where one half has no failure there is one limit, which has all of the error.
    k, tail = k_low + k_high, (1 - CONFIDENCE) / (2 if k_low and k_high else 1)
    exposures = t_low / t_high
    lowest = float(betaincinv(k_high, k_low + 1, tail)) if k_high else 0.0
    highest = float(betaincinv(k_high + 1, k_low, 1 - tail)) if k_low else 1.0
    row["rate_ci_low"] = lowest / (1 - lowest) * exposures
    row["rate_ci_high"] = highest / (1 - highest) * exposures if highest < 1 else None
    pi = t_high / (t_low + t_high)
    at_least = float(bdtrc(k_high - 1, k, pi)) if k_high else 1.0
    row["rate_p"], _ = never_zero(min(1.0, 2 * min(float(bdtr(k_high, k, pi)), at_least)))
    if not k_low:
        return row | {"reason": "no failure at or below the split: lower limit of the ratio only"}
    row["rate_ratio"] = k_high * t_low / (k_low * t_high)
    if not k_high:
        return row
    clustered = _clustered_rate(known, low["key"][-1], math.log(row["rate_ratio"]))
    row["reason"] = clustered.pop("why_not")
    return row | {f"rate_{name}": value for name, value in clustered.items()}


def _clustered_rate(known: pl.LazyFrame, split: int, log_ratio: float) -> dict:
    """The cells about clusters of the ratio of the rates above and up to a value of `key`; why_not, if there are none.

    The influence of a cluster on the logarithm of a rate is its share of the failures less that of the time, over 1 - h
    with h the mean of both; that on the ratio is the difference of two. Of the two parts the one with fewer effective
    clusters gives the degrees of freedom.
    """
    parts = {"high": pl.col("key") > split, "low": pl.col("key") <= split}
    values = {"n": pl.lit(1, dtype=pl.Int64), "time": pl.col("time"), "failures": pl.col("failed").cast(pl.Int64)}
    sums = {f"{name}_{part}": (of * inside).sum() for part, inside in parts.items() for name, of in values.items()}
    found = by_cluster(known.drop("block", strict=False), [], **sums)
    if not found.height:
        return {"why_not": UNCLUSTERED}
    pulled, sides = np.zeros(found.height), []
    for part, sign in (("high", 1), ("low", -1)):
        n, time, failures = (found[f"{name}_{part}"].to_numpy().astype(float) for name in values)
        side = Clusters(np.zeros(n.size, np.int64), n, 1)
        of_failures, of_time = side.share(failures), side.share(time)
        pulled += sign * jackknifed(of_failures - of_time, (of_failures + of_time) / 2)
        sides.append(side)
    fewest = min(sides, key=lambda side: side.effective.item())
    se = np.sqrt((pulled**2).sum(keepdims=True))
    away = se * fewest.student(CONFIDENCE)
    with np.errstate(over="ignore"):
        limits = np.exp(log_ratio - away), np.exp(log_ratio + away)
    cells = with_limits(found.select("cluster_by").head(1), *limits, fewest.effective).row(0, named=True)
    # Where all clusters are alike there is no spread, and no test.
    tested = se.item() > 0 and not cells["why_not"]
    p = never_zero(fewest.p_value(log_ratio / se).item())[0] if tested else None
    return cells | {"p_clustered": p}


def _rate_clause(rate: dict, feature: str, units: str, significance: float) -> str:
    if "rate_p" not in rate:
        return f"failure rates cannot be compared: {rate['reason']}"
    unit = "instance" if (feature, rate["split_value"]) == ("size", "1") else FEATURE_UNITS[feature]
    where = f"a {FEATURE_NAMES[feature]} above {float(rate['split_value']):,.4g} {unit}"
    if rate.get("rate_ratio") is None:
        low = number(rate["rate_ci_low"])
        return f"with {where} {units} fail at least {low} times as often per hour of run time (lower limit)"
    ratio = f"{number(rate['rate_ratio'])} times as often per hour of run time"
    p = rate["rate_p_adjusted_clustered"]
    if p is None:
        return f"with {where} {units} fail {ratio}, which cannot be tested, for want of clusters"
    low, high = (number(rate[f"rate_ci_{end}_clustered"]) for end in ("low", "high"))
    return f"with {where} {units} fail {ratio} ({low} to {high}){', not significant' if p >= significance else ''}"


# Means by GPU type -------------------------------------------------------------------------------------------


def _means(jobs: Frame, runtime_by_group: pl.DataFrame, mttf: pl.DataFrame, units: str) -> list[dict]:
    means = runtime_by_group.filter(pl.col("cutoff_s").is_null(), feature="gpu_type")
    types = labels(jobs, "gpu_type")
    succeeded = jobs.filter((pl.col("outcome") == "success") & (pl.col("runtime_s") >= 0))
    times = counts(succeeded, type=code("gpu_type", types), time=pl.col("runtime_s"))
    rows = []
    for outcome, study_set in STUDY_SETS.items():
        for mean in means.filter(outcome_set=study_set).iter_rows(named=True):
            row = {"question": "mean_run_time", "outcome": outcome, "feature": "gpu_type", "value": mean["value"]}
            row |= {"study_set": study_set, "study_measure": "mean run time (s)", "asked_set": outcome}
            row |= {"study_estimate": mean["runtime_mean_s"], "study_n": mean["jobs"]}
            if outcome == "success":
                of_type = Counted.of(times.filter(pl.col("type") == types.index(mean["value"])), "time")
                found = clustered_median(succeeded.filter(gpu_type=mean["value"]), "runtime_s", of_type)
                rows.append(row | _median(of_type, mean, units, next(found.iter_rows(named=True), None)))
            else:
                rows.append(row | _time_to_failure(mttf, mean, units))
    return rows


def _median(times: Counted, mean: dict, units: str, clustered: dict | None) -> dict:
    low, high = median_interval(times.size, times.at)
    cells = dict(clustered or {"why_not": UNCLUSTERED})
    why_not = cells.pop("why_not") if low is not None else None
    row = {
        "asked_measure": "median run time (s)",
        "asked_estimate": mean["runtime_median_s"],
        "asked_ci_low": low,
        "asked_ci_high": high,
        "asked_n": times.size,
        "reason": why_not if low is not None else "fewer than 6 run times: no interval of the median",
    } | {f"asked_{name}": cells[name] for name in CLUSTERED if name in cells}
    middle = mean["runtime_median_s"]
    if middle <= 0:
        return row | {"change": f"Half of these {units} took no time at all."}
    ratio = mean["runtime_mean_s"] / middle
    half = plain_spaces(duration(middle))
    said = f"Half of these {units} took at most {half}; the mean is {number(ratio)} times as long"
    return row | {"change": said + (", made by the few that ran long." if ratio >= TWICE else ".")}


def _time_to_failure(mttf: pl.DataFrame, mean: dict, units: str) -> dict:
    row = {"asked_measure": "mean time to failure, censored (s)"}
    found = mttf.filter(event="failure", stratum_by="gpu_type", stratum=mean["value"], confidence=CONFIDENCE)
    life = next(found.iter_rows(named=True), {"mttf_s": None, "reason": "no job at risk has this type"})
    if found.height:
        row |= {"asked_estimate": life["mttf_s"], "asked_n": life["events"]}
        row |= {"asked_ci_low": life["ci_low_s"], "asked_ci_high": life["ci_high_s"]}
        row |= {f"asked_{name}": life.get(name if name in life else f"{name}_s") for name in CLUSTERED}
    if life["mttf_s"] is None:
        why = life["reason"] or "no failures"
        return row | {"change": f"Not computable: {why}.", "reason": why}
    clustered = row["asked_ci_low_clustered"] is not None
    low, high = (row[f"asked_ci_{end}_clustered" if clustered else f"asked_ci_{end}"] for end in ("low", "high"))
    if not clustered:
        row["reason"] = life["reason"]
    if_independent = "" if clustered else f" if {units} were independent"
    times = plain_spaces(f"{duration(life['mttf_s'])} ({duration(low)} to {duration(high)}{if_independent})")
    if mean["runtime_mean_s"] <= 0:
        return row | {"change": f"A failure comes once in {times} of run time."}
    ratio = life["mttf_s"] / mean["runtime_mean_s"]
    return row | {"change": f"A failure comes once in {times} of run time: {number(ratio)} times the mean."}
