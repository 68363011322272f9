"""Run time by request: the head if no hazard ratio could be computed, and the table of correlations."""

import polars as pl

from ttf.analyses.factors.correlate import CORRELATIONS
from ttf.display.charts.text import FEATURE_NAMES
from ttf.display.report_tables import PageTable, format_rows, merge_collinear_rows
from ttf.display.report_trace import Trace
from ttf.display.run_time import NAMES, find_strongest_correlation, has_run_time_chart, list_correlation_keys
from ttf.display.section_head import Head, Key, Line
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

# Names of the features in a sentence.
FEATURE_WORDS = FEATURE_NAMES | {
    "size": "number of instances",
    "gpu_utilisation": "measured GPU utilisation",
    "cpu_usage": "measured CPU use",
    "memory_usage": "measured memory use",
}
FEATURE_UNITS = {
    "gpu_request": "% of a GPU",
    "cpu_request": "% of a core",
    "memory_request": " GiB",
    "gpu_utilisation": "% of a GPU",
    "cpu_usage": "% of a core",
    "memory_usage": " GiB",
}


def tables(trace: Trace) -> dict[str, PageTable]:
    correlations = _pair_correlations(trace.table("correlations"))
    columns = {
        "feature": ("Feature", None),
        "group_mean": ("r of group means", str),
        "group_mean_n": ("n", words.count),
        "group_mean_p": ("adjusted p", str),
        "job": (f"ρ over {trace.info['unit']}s", str),
        "job_n": ("n", words.count),
        "job_p": ("adjusted p", str),
    }
    return {"correlations": PageTable(correlations, columns, CORRELATIONS, "outcome_set")}


def context(trace: Trace, metrics: Numbers) -> dict:
    """Return for the template: features with a failure share, the formatter `label_value`, and the main correlation."""

    def label_value(feature: str, value: str) -> str:
        return words.label(words.group_thousands(value) + FEATURE_UNITS.get(feature, ""))

    return {
        "features": [
            (name, words.capitalise(feature))
            for name, feature in FEATURE_WORDS.items()
            if f"failure_share.{name}.highest.value" in metrics
        ],
        "label_value": label_value,
        "headline": _find_headline_correlation(metrics),
    }


def head(trace: Trace, m: Numbers) -> Head | None:
    """Return the clearest correlation of a request with run time, if no hazard ratio could be computed."""
    if not has_run_time_chart(m):
        return None
    key = find_strongest_correlation(m)
    if key is None:
        jobs = list_correlation_keys(m, "job")
        tested = [job for job in jobs if f"{job}.reject_clustered" in m]
        requests = "request" if len(tested) == len(jobs) else "request that can be tested"
        no_association = f"No {requests} is significantly associated with run time"
        no_test = "Too few clusters to test whether requests are associated with run time"
        return Head(no_association if tested else no_test, ("factors_of_run_time",), _make_correlation_keys(m))
    _, outcome, feature, _ = key.split(".")
    rho = m[f"{key}.estimate"]
    ended = {"success": "that succeeded", "failure": "that failed"}[outcome]
    verb = "rises" if rho > 0 else "falls"
    units = words.plural_noun(trace.info["unit"])
    claim = f"Run time {verb} with {NAMES[feature]} among {units} {ended} (ρ = [{key}.estimate:coefficient])"
    return Head(claim, ("factors_of_run_time",), _make_correlation_keys(m), details="correlations with run time")


def lines(trace: Trace, m: Numbers) -> list[Line]:
    """Return a line if group means, as in the published study, are not correlated."""
    means = list_correlation_keys(m, "group_mean")
    tested = [key for key in means if f"{key}.reject" in m]
    if not tested:
        units = words.plural_noun(trace.info["unit"])
        few_values = f"fewer than three values of a request among {units} that ended"
        reason = "no correlation of group means can be tested" if means else few_values
        return [Line("Request against mean run time", reason, "tables/correlations.csv", checked=False)]
    if any(m[f"{key}.reject"] for key in tested):
        return []
    strongest = max(tested, key=lambda key: abs(m[f"{key}.estimate"]))
    estimate = f"r = [{strongest}.estimate:coefficient], n = [{strongest}.estimate:n]"
    text = f"no significant correlation of group means ({estimate}"
    if f"{strongest}.p_adjusted" in m:
        text += f", adjusted p [{strongest}.p_adjusted:p_value]"
    return [Line("Request against mean run time", f"{text})", "tables/correlations.csv")]


def _make_correlation_keys(m: Numbers) -> tuple[Key, ...]:
    strongest = sorted(list_correlation_keys(m, "job"), key=lambda key: -abs(m[f"{key}.estimate"]))[:4]
    return tuple(
        Key(
            f"{words.capitalise(NAMES[key.split('.')[2]])}, {key.split('.')[1]}",
            f"ρ = [{key}.estimate:coefficient]",
            (f"[{key}.estimate:interval], " if f"{key}.ci_low" in m else "") + f"n = [{key}.estimate:n]",
        )
        for key in strongest
    )


def _find_headline_correlation(metrics: Numbers) -> tuple[str, str] | None:
    """Return (feature, metric key) of the first request with a clustered interval among successful jobs."""
    keys = {name: f"correlations.success.{feature}.job" for feature, name in FEATURE_WORDS.items()}
    return next(((name, key) for name, key in keys.items() if f"{key}.ci_low" in metrics), None)


def _pair_correlations(table: pl.DataFrame) -> pl.DataFrame:
    """Return a row per outcome set and feature: Pearson over group means next to Spearman over jobs, formatted."""
    correlations = table.filter(pl.col("cutoff_s").is_null() & pl.col("outcome_set").is_in(["success", "failure"]))
    keys, parts = ["outcome_set", "feature"], []
    # Group means have no clusters.
    for unit, method, suffix in (("group_mean", "pearson", ""), ("job", "spearman", "_clustered")):
        part = correlations.filter(unit=unit, method=method)
        columns = ("estimate", f"reject{suffix}", f"ci_low{suffix}", f"ci_high{suffix}")
        estimates = format_rows(part, columns, _format_coefficient).alias(unit)
        p_values = format_rows(part, (f"p_adjusted{suffix}",), words.plain_p_value).alias(f"{unit}_p")
        parts.append(part.select(*keys, estimates, pl.col("n").alias(f"{unit}_n"), p_values))
    rows = parts[0].join(parts[1], on=keys, how="left", maintain_order="left")
    # Features without an estimate are left out.
    rows = rows.filter(pl.any_horizontal(pl.col("group_mean", "job").is_not_null()))
    return merge_collinear_rows(rows.with_columns(pl.col("feature").replace_strict(FEATURE_WORDS)), "feature")


def _format_coefficient(estimate: float, reject: bool | None, low: float | None, high: float | None) -> str:
    text = words.coefficient(estimate) + ("*" if reject else "")
    return text if low is None or high is None else f"{text} [{words.coefficient(low)}, {words.coefficient(high)}]"
