"""The numbers of mean time to failure by job size."""

from collections.abc import Mapping

import polars as pl

from ttf.numbers.metrics import FEWEST_FAILURES, Metrics, ends, ends_of

# Sizes that the text names, as far as the projection goes.
NAMED_GPUS = (1024, 16_384, 131_072)
_PER_1000 = {"failures_per_1000_node_days": "failures per 1000 node days"} | ends("failures per 1000 node days")


def has_no_nodes(metrics: Mapping) -> bool:
    """Whether neither nodes nor causes are recorded: failures of users per assumed node would be a rate of nothing."""
    unknown = {"sizes.basis": "proxy", "sizes.node_gpus_from": "default"}
    return all(key in metrics and metrics[key] == value for key, value in unknown.items())


def numbers(metrics: Metrics, given: Mapping[str, pl.DataFrame]) -> None:
    of_sizes(metrics, given["mttf_by_gpus"], given["node_failure_rate"], given["size_law"])


def of_sizes(metrics: Metrics, by_gpus: pl.DataFrame, rate: pl.DataFrame, law: pl.DataFrame) -> None:
    """The failure rate of a node at 90 %, sizes measured, projections, and the slope of the 1/N law at 95 %."""
    source = "tables/node_failure_rate.csv"
    # Without a failure the upper bound is all there is to say: at 95 %.
    confidence = 0.9 if rate["failures"].sum() else 0.95
    row = rate.row(by_predicate=pl.col("confidence") == confidence, named=True)
    runs = row["jobs"]
    of_node = {"basis": "label", "node_gpus": "GPUs", "node_gpus_from": "label"}
    of_node |= {"projects_to_nodes": "nodes", "no_projection": "label", "needed": "label"}
    metrics.put_row("sizes", row, of_node, source, runs)
    metrics.put("sizes.rate.runs", runs, "attempts", source)
    if row["node_gpus"] and row["largest_run_nodes"]:
        # Of whole nodes: a bucket of sizes may end far above it.
        metrics.put("sizes.largest_run.gpus", row["largest_run_nodes"] * row["node_gpus"], "GPUs", source)
    of_rate = {"failures": "failures", "above_gpus": "GPUs", "node_days": "node days", "reason": "label"}
    metrics.put_row("sizes.rate", row, of_rate | _PER_1000, source, runs)
    _of_buckets(metrics, by_gpus)
    source = "tables/size_law.csv"
    fitted = law.filter(pl.col("slope").is_not_null()).tail(1)
    expected, apart = pl.col("expected_slope"), pl.col("detectable_difference")
    # The slopes nearest to the law's that the test would have detected, on either side.
    fitted = fitted.with_columns(detectable_low=expected - apart, detectable_high=expected + apart)
    slopes = ("slope", "ci_low", "ci_high", "dispersion", "deviance", "df", "detectable_low", "detectable_high")
    units = {"model": "label", "sizes": "sizes", "failures": "failures"} | dict.fromkeys(slopes, "1")
    units |= {"cluster_by": "label", "clusters": "clusters"}
    metrics.put_rows("sizes.law", fitted, units, source, "jobs")
    metrics.put("sizes.law.verdict", law["verdict"][0], "label", source, law["failures"][0])
    if fitted.height and (last := law.row(-1, named=True))["slope"] is None:
        metrics.put("sizes.law.no_clusters", last["reason"], "label", source, law["failures"][0])
    for row in law.filter((pl.col("model") == "quasi_poisson") & pl.col("slope").is_not_null()).iter_rows(named=True):
        metrics.put_row("sizes.law.independent", row, {"ci_low": "1", "ci_high": "1"}, source, row["failures"])
    if not fitted.height:
        metrics.put("sizes.law.reason", law["reason"][0], "label", source, law["jobs"][0])


def _of_buckets(metrics: Metrics, by_gpus: pl.DataFrame) -> None:
    source = "tables/mttf_by_gpus.csv"
    measured = by_gpus.filter(pl.col("failures") >= FEWEST_FAILURES).sort("gpus_high")
    units = {"gpus_low": "GPUs", "gpus_high": "GPUs", "failures": "failures"}
    units |= {"mttf_s": "s"} | ends("s", "_s")
    for end, row in ends_of(measured, "smallest", "largest"):
        metrics.put_row(f"sizes.{end}", row, units, source, row["jobs"])
    ran = by_gpus.filter(pl.col("jobs") > 0)
    units = {"failures": "failures", "mttf_s": "s"} | ends("s", "_s")
    for row in by_gpus.filter(pl.col("failures") > 0).iter_rows(named=True):
        metrics.put_row(f"sizes.measured.{row['gpus_high']}", row, units, source, row["jobs"])
    units = {"gpus": ("gpus_high", "GPUs")}
    units |= {name: (f"projected_{name}", "s") for name in ("mttf_s", "low_s", "high_s")}
    for gpus in sorted({*NAMED_GPUS, *ran["gpus_high"].drop_nulls().tail(1)}):
        bucket = by_gpus.filter(pl.col("gpus_high") >= gpus).sort("gpus_high").head(1)
        metrics.put_rows(f"sizes.projected.{gpus}", bucket.drop_nulls("projected_mttf_s"), units, source, None)
