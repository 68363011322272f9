"""Run time by request: what stands open where no hazard ratio could be computed, and the table of correlations."""

import polars as pl

from ttf.analyses.factors.correlate import CORRELATIONS
from ttf.display.charts.text import FEATURE_NAMES
from ttf.display.phrases import with_numbers
from ttf.display.report_tables import Shown, texts
from ttf.display.report_trace import Trace
from ttf.display.run_time import NAMES, clearest, drawn, keys_of
from ttf.display.section_head import Head, Key, Line
from ttf.display.trace_numbers import Numbers
from ttf.engine import words

# What the features are called in a sentence.
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

    return {
        "features": [
            (name, words.capital(feature))
            for name, feature in FEATURE_WORDS.items()
            if metrics.has(f"failure_share.{name}.highest.value")
        ],
        "value_of": value_of,
        "headline": _headline(metrics),
    }


@with_numbers
def head(trace: Trace, m: Numbers) -> Head | None:
    """The clearest correlation of a request with run time: leads where no hazard ratio could be computed."""
    if not drawn(m):
        return None
    key = clearest(m)
    if key is None:
        jobs = keys_of(m, "job")
        tested = [job for job in jobs if m.has(f"{job}.reject_clustered")]
        which = "request" if len(tested) == len(jobs) else "request that can be tested"
        nothing = f"No {which} is significantly associated with run time"
        untold = "Too few clusters to test whether requests are associated with run time"
        return Head(nothing if tested else untold, ("factors_of_run_time",), _keys(m))
    _, outcome, feature, _ = key.split(".")
    rho = m[f"{key}.estimate"]
    of = {"success": "that succeeded", "failure": "that failed"}[outcome]
    moves = "rises" if rho > 0 else "falls"
    claim = f"Run time {moves} with {NAMES[feature]} among {words.many(trace.about['unit'])} {of} (ρ = {_rho(m, key)})"
    return Head(claim, ("factors_of_run_time",), _keys(m), details="correlations with run time")


@with_numbers
def lines(trace: Trace, m: Numbers) -> list[Line]:
    """Group means that do not correlate, as in the published study."""
    means = keys_of(m, "group_mean")
    if not means:
        why = f"fewer than three values of a request among {words.many(trace.about['unit'])} that ended"
        return [Line("Request against mean run time", why, "tables/correlations.csv", checked=False)]
    tested = [key for key in means if m.has(f"{key}.reject")]
    if not tested:
        why = "no correlation of group means can be tested"
        return [Line("Request against mean run time", why, "tables/correlations.csv", checked=False)]
    if any(m[f"{key}.reject"] for key in tested):
        return []
    most = max(tested, key=lambda key: abs(m[f"{key}.estimate"]))
    said = f"no significant correlation of group means (r = {_rho(m, most)}, n = {m.n(f'{most}.estimate'):,}"
    if m.has(f"{most}.p_adjusted"):
        said += f", adjusted p [{most}.p_adjusted:p_value]"
    return [Line("Request against mean run time", f"{said})", "tables/correlations.csv")]


def _keys(m: Numbers) -> tuple[Key, ...]:
    """Over jobs, the strongest four."""
    found = sorted(keys_of(m, "job"), key=lambda key: -abs(m[f"{key}.estimate"]))[:4]
    return tuple(
        Key(
            f"{words.capital(NAMES[key.split('.')[2]])}, {key.split('.')[1]}",
            f"ρ = {_rho(m, key)}",
            (f"{m.interval(f'{key}.ci_{{}}')}, " if m.has(f"{key}.ci_low") else "") + f"n = {m.n(f'{key}.estimate'):,}",
        )
        for key in found
    )


def _rho(m: Numbers, key: str) -> str:
    return f"[{key}.estimate:coefficient]"


def _headline(metrics: Numbers) -> tuple[str, str] | None:
    """(feature in words, key of its correlation over jobs) of which the section says what independence would make."""
    keys = {name: f"correlations.success.{feature}.job" for feature, name in FEATURE_WORDS.items()}
    return next(((name, key) for name, key in keys.items() if metrics.has(f"{key}.ci_low")), None)


def _side_by_side(table: pl.DataFrame) -> pl.DataFrame:
    """A row per outcome set and feature: Pearson over group means beside Spearman over jobs, in words."""
    chosen = table.filter(pl.col("cutoff_s").is_null() & pl.col("outcome_set").is_in(["success", "failure"]))
    keys, of_units = ["outcome_set", "feature"], []
    # Group means are of no cluster.
    for unit, method, of in (("group_mean", "pearson", ""), ("job", "spearman", "_clustered")):
        part = chosen.filter(unit=unit, method=method)
        columns = ("estimate", f"reject{of}", f"ci_low{of}", f"ci_high{of}")
        estimates = texts(part, columns, _coefficient).alias(unit)
        p_values = texts(part, (f"p_adjusted{of}",), words.plain_p_value).alias(f"{unit}_p")
        of_units.append(part.select(*keys, estimates, pl.col("n").alias(f"{unit}_n"), p_values))
    found = of_units[0].join(of_units[1], on=keys, how="left", maintain_order="left")
    # A feature without any estimate has no row.
    found = found.filter(pl.any_horizontal(pl.col("group_mean", "job").is_not_null()))
    return found.with_columns(pl.col("feature").replace_strict(FEATURE_WORDS))


def _coefficient(estimate: float, reject: bool | None, low: float | None, high: float | None) -> str:
    text = words.coefficient(estimate) + ("*" if reject else "")
    return text if low is None else f"{text} [{words.coefficient(low)}, {words.coefficient(high)}]"
