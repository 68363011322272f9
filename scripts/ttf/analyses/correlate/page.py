"""The table of correlations, and what the section says of features."""

import polars as pl

from ttf.analyses.correlate import CORRELATIONS
from ttf.report import words
from ttf.report.blocks import Numbers
from ttf.report.tables import Shown
from ttf.report.trace import Trace

# What the features are called in a sentence.
FEATURE_WORDS = {
    "gpu_type": "GPU type",
    "gpu_request": "GPU request",
    "cpu_request": "CPU request",
    "memory_request": "memory request",
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
    """What the templates name beside tables and charts."""

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
        "verdicts": {outcome: _verdicts(metrics, outcome, trace.about["unit"]) for outcome in ("success", "failure")},
    }


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
        significant.append(f"{sentence}.")
    if others:
        significant.append(f"No correlation that could be told from chance: {'; '.join(others)}.")
    return [words.markdown(sentence) for sentence in significant]


def _side_by_side(table: pl.DataFrame) -> pl.DataFrame:
    """A row per outcome set and feature: Pearson over group means beside Spearman over jobs, in words."""
    rows: dict[tuple, dict] = {}
    chosen = table.filter(pl.col("cutoff_s").is_null() & pl.col("outcome_set").is_in(["success", "failure"]))
    for row in chosen.iter_rows(named=True):
        if (row["unit"], row["method"]) not in (("group_mean", "pearson"), ("job", "spearman")):
            continue
        key = (row["outcome_set"], row["feature"])
        cells = rows.setdefault(key, {"outcome_set": row["outcome_set"], "feature": FEATURE_WORDS[row["feature"]]})
        unit = row["unit"]
        cells[f"{unit}_n"] = row["n"]
        if row["estimate"] is not None:
            text = words.coefficient(row["estimate"]) + ("*" if row["reject"] else "")
            if row["ci_low"] is not None:
                text += f" [{words.coefficient(row['ci_low'])}, {words.coefficient(row['ci_high'])}]"
            cells[unit] = text
        if row["p_adjusted"] is not None:
            cells[f"{unit}_p"] = words.p_value(row["p_adjusted"]).removeprefix("= ")
    schema = dict.fromkeys(("outcome_set", "feature"), pl.String)
    for unit in ("group_mean", "job"):
        schema |= {unit: pl.String, f"{unit}_n": pl.Int64, f"{unit}_p": pl.String}
    # A feature without any estimate has no row.
    return pl.DataFrame([cells for cells in rows.values() if "group_mean" in cells or "job" in cells], schema=schema)
