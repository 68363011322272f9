"""The table of correlations, and what the section says of features."""

import polars as pl

from ttf.analyses.correlate import CORRELATIONS
from ttf.charts.text import FEATURE_NAMES
from ttf.report import words
from ttf.report.numbers import Numbers
from ttf.report.tables import Shown, texts
from ttf.report.trace import Trace

# What the features are called in a sentence.
FEATURE_WORDS = FEATURE_NAMES | {
    "size": "number of instances",
    "gpu_utilisation": "measured GPU utilisation",
    "cpu_usage": "measured CPU use",
    "memory_usage": "measured memory use",
}
FEATURE_UNITS = {
    "gpu_request": " % of a GPU",
    "cpu_request": " % of a core",
    "memory_request": " GiB",
    "gpu_utilisation": " % of a GPU",
    "cpu_usage": " % of a core",
    "memory_usage": " GiB",
}


def tables(trace: Trace) -> dict[str, Shown]:
    correlations = _side_by_side(trace.table("correlations"))
    columns = {
        "feature": ("Feature", None),
        "group_mean": ("r of group means", str),
        "group_mean_n": ("n", words.count),
        "group_mean_p": ("adjusted p", str),
        "job": (f"ρ over {trace.about['unit']}s", str),
        "job_n": ("n", words.count),
        "job_p": ("adjusted p", str),
    }
    return {"correlations": Shown(correlations, columns, CORRELATIONS, "outcome_set")}


def context(trace: Trace, metrics: Numbers) -> dict:

    def value_of(feature: str, value: str) -> str:
        return words.label(words.grouped(value) + FEATURE_UNITS.get(feature, ""))

    cutoffs = trace.table("correlations")["cutoff_s"].drop_nulls().unique().sort()
    return {
        "cutoffs": ", ".join(words.count(cutoff) + " s" for cutoff in cutoffs) or "none",
        "features": [
            (name, feature)
            for name, feature in FEATURE_WORDS.items()
            if metrics.has(f"failure_share.{name}.highest.value")
        ],
        "value_of": value_of,
        "headline": _headline(metrics),
        "verdicts": {outcome: _verdicts(metrics, outcome, trace.about["unit"]) for outcome in ("success", "failure")},
    }


def _headline(metrics: Numbers) -> tuple[str, str] | None:
    """(feature in words, key of its correlation over jobs) of which the section says what independence would make."""
    keys = {name: f"correlations.success.{feature}.job" for feature, name in FEATURE_WORDS.items()}
    return next(((name, key) for name, key in keys.items() if metrics.has(f"{key}.ci_low")), None)


def _verdicts(metrics: Numbers, outcome: str, unit: str) -> list[str]:
    """What the correlations say: a sentence for each feature that goes with the mean run time, one for all others."""
    significant, others = [], []
    for feature, name in FEATURE_WORDS.items():
        means, jobs = (f"correlations.{outcome}.{feature}.{kind}" for kind in ("group_mean", "job"))
        if not metrics.has(f"{means}.estimate"):
            continue
        r = metrics[f"{means}.estimate"]
        figures = f"r = {words.coefficient(r)}, n = {words.count(metrics.n(f'{means}.estimate'))} values"
        if metrics.has(f"{means}.p_adjusted"):
            figures += f", adjusted p {words.p_value(metrics[f'{means}.p_adjusted'])}"
        if not metrics.value(f"{means}.reject", False):
            others.append(f"{name} ({figures})")
            continue
        sentence = f"The mean run time {'rises' if r > 0 else 'falls'} with the {name} ({figures})"
        if metrics.has(f"{jobs}.estimate"):
            rho = metrics[f"{jobs}.estimate"]
            sentence += (
                f"; {unit} by {unit} there is {words.strength(rho)} rank correlation "
                f"(ρ = {words.coefficient(rho)}, n = {words.count(metrics.n(f'{jobs}.estimate'))})"
            )
            by = metrics.value(f"{jobs}.cluster_by", "cluster")
            if not metrics.has(f"{jobs}.reject_clustered"):
                sentence += f", of which cannot be told whether {unit}s of one {by} make it"
            elif not metrics[f"{jobs}.reject_clustered"]:
                sentence += f", no more than {by}s that differ would make"
        significant.append(f"{sentence}.")
    if others:
        significant.append(f"No correlation that could be told from chance: {'; '.join(others)}.")
    return [words.markdown(sentence) for sentence in significant]


def _side_by_side(table: pl.DataFrame) -> pl.DataFrame:
    """A row per outcome set and feature: Pearson over group means beside Spearman over jobs, in words."""
    chosen = table.filter(pl.col("cutoff_s").is_null() & pl.col("outcome_set").is_in(["success", "failure"]))
    keys, of_units = ["outcome_set", "feature"], []
    # Group means are of no cluster.
    for unit, method, of in (("group_mean", "pearson", ""), ("job", "spearman", "_clustered")):
        part = chosen.filter(unit=unit, method=method)
        columns = ("estimate", f"reject{of}", f"ci_low{of}", f"ci_high{of}")
        estimates = texts(part, columns, _coefficient).alias(unit)
        p_values = texts(part, (f"p_adjusted{of}",), lambda p: words.p_value(p).removeprefix("= ")).alias(f"{unit}_p")
        of_units.append(part.select(*keys, estimates, pl.col("n").alias(f"{unit}_n"), p_values))
    found = of_units[0].join(of_units[1], on=keys, how="left", maintain_order="left")
    # A feature without any estimate has no row.
    found = found.filter(pl.any_horizontal(pl.col("group_mean", "job").is_not_null()))
    return found.with_columns(pl.col("feature").replace_strict(FEATURE_WORDS))


def _coefficient(estimate: float, reject: bool | None, low: float | None, high: float | None) -> str:
    text = words.coefficient(estimate) + ("*" if reject else "")
    return text if low is None else f"{text} [{words.coefficient(low)}, {words.coefficient(high)}]"
