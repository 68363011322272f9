"""Mean time to failure by job size: buckets of whole nodes, failure rate of a node, its projection, the 1/N law.

After Kokolis et al. (HPCA 2025): a job of N nodes fails N times as often as one node. With r_f failures per node-day,
its mean time to failure is 1 / (N r_f). `size_law` tests whether the data agree.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import nctdtrinc, stdtr, stdtrit, xlogy

from ttf.analyses.scaling.measure_sizes import MTTF_BY_GPUS, NODE_FAILURE_RATE, SIZE_LAW, clustered_sizes
from ttf.records.durations import count_nodes
from ttf.records.infra import EVENT, PROXY
from ttf.records.jobs import Frame
from ttf.stats.basics.newton import maximise
from ttf.stats.basics.p_value import exact_p
from ttf.stats.clustered import sum_by_cluster
from ttf.stats.durations.mttf import NO_NODE_DAY, NO_NODES, SECONDS_A_DAY, garwood_interval
from ttf.stats.large_runs.plans import rate_interval
from ttf.stats.large_runs.projection import ProjectionLimit, buckets

# GPUs of a node if neither the trace nor the configuration gives them.
USUAL_NODE_GPUS = 8
LARGEST_PROJECTED_GPUS = 131_072
# This number of failures gives a rate to within a third either way (90% interval).
FEWEST_FAILURES = 30
# Fewest fitted failures of a cell for chi-squared to hold (Cochran 1954).
FEWEST_FITTED = 5
CONFIDENCES = (0.9, 0.95)
EXPECTED_SLOPE = -1.0
# Slope if failures do not depend on size. Data that could not have detected it do not support -1.
NO_DEPENDENCE = 0.0
POWER = 0.8
AGREES, REJECTED, TOO_FEW = "agrees", "rejected", "too few failures to tell"

SUMS_SCHEMA = {"nodes": pl.Int64, "jobs": pl.Int64, "failures": pl.Int64, "exposure_s": pl.Int64}
NO_GPU_JOB = "no job whose nodes are known ran for a known time"
NO_FAILURES = "no failures"


def node_gpus(nodes: pl.DataFrame, configured: int | None, durations: Frame) -> tuple[int, str]:
    """Return (GPUs of a node, their source: config, trace, jobs or default).

    nodes: gpu_count (Int64, may be null); durations: gpu_count, nodes and duration_s of infra durations. If nodes
    differ, the size that holds the most GPUs of the cluster counts; of equals, the larger one.
    """
    if configured is not None:
        return configured, "config"
    sizes = (
        nodes.filter(pl.col("gpu_count") > 0)
        .group_by("gpu_count")
        .agg(total=pl.col("gpu_count").sum())
        .sort("total", "gpu_count", descending=True)
    )
    if sizes.height:
        return sizes["gpu_count"][0], "trace"
    gpus_per_node = infer_gpus_per_node(durations)
    return (gpus_per_node, "jobs") if gpus_per_node else (USUAL_NODE_GPUS, "default")


def infer_gpus_per_node(durations: Frame) -> int | None:
    """Return GPUs per node, rounded up, of the runs on several nodes with the most GPU time.

    Without any: the most GPUs of a run on one node. None if fewer than half of the runs with a GPU have recorded nodes.
    """
    runs = durations.lazy().filter((pl.col("gpu_count") > 0) & pl.col("duration_s").is_not_null())
    groups = (
        runs.group_by("gpu_count", "nodes")
        .agg(runs=pl.len(), gpu_s=(pl.col("gpu_count").cast(pl.Int128) * pl.col("duration_s")).sum())
        .with_columns(
            gpus_per_node=(pl.col("gpu_count") + pl.col("nodes") - 1) // pl.when(pl.col("nodes") > 0).then("nodes")
        )
        .collect(engine="streaming")
    )
    recorded = groups.drop_nulls("gpus_per_node")
    if not recorded.height or 2 * recorded["runs"].sum() < groups["runs"].sum():
        return None
    multi_node = recorded.filter(pl.col("nodes") > 1).group_by("gpus_per_node").agg(pl.col("gpu_s").sum())
    multi_node = multi_node.sort("gpu_s", "gpus_per_node", descending=True)
    return (
        multi_node["gpus_per_node"][0] if multi_node.height else recorded.select(pl.col("gpus_per_node").max()).item()
    )


def select_job_runs(durations: Frame, gpus_per_node: int, node_gpus_from: str | None = None) -> pl.LazyFrame:
    """Return the infra durations of jobs that have a GPU and a known time, with `nodes` by `count_nodes`."""
    selected = durations.lazy().filter((pl.col("gpu_count") > 0) & pl.col("duration_s").is_not_null())
    return selected.with_columns(nodes=count_nodes(gpus_per_node, node_gpus_from))


def select_component_runs(durations: Frame) -> pl.LazyFrame:
    """Return the infra durations of components that are nodes, or part of one each, by their own number of nodes."""
    return durations.lazy().filter((pl.col("nodes") > 0) & pl.col("duration_s").is_not_null())


_SUM_EXPRESSIONS = {
    "jobs": pl.len().cast(pl.Int64),
    "failures": (pl.col("event") == EVENT).fill_null(False).sum().cast(pl.Int64),
    "exposure_s": pl.col("duration_s").sum(),
}


def sums_by_nodes(runs: Frame) -> pl.DataFrame:
    """Return SUMS_SCHEMA, a row per number of nodes, ascending: jobs, infra failures and exposure (exact integers).

    runs: of `select_job_runs` or `select_component_runs`.
    """
    summed = runs.lazy().group_by("nodes").agg(**_SUM_EXPRESSIONS).collect(engine="streaming")
    return summed.select(pl.col(name).cast(dtype) for name, dtype in SUMS_SCHEMA.items()).sort("nodes")


def sums_by_cluster(runs: Frame) -> pl.DataFrame:
    """Return `sums_by_nodes` of each cluster (`ttf.records.clusters`), with cluster_by and cluster if any."""
    return sum_by_cluster(runs, ["nodes"], False, **_SUM_EXPRESSIONS)


def choose_sizes(sums: pl.DataFrame, gpus_per_node: int, above_gpus: int) -> tuple[int, str | None]:
    """Return (GPUs above which a job counts for the rate of a node, the reason if it is not the requested number).

    sums: see `sums_by_nodes`. If fewer than FEWEST_FAILURES are above the requested size, the next smaller sizes are
    added until there are that many; if the whole trace has fewer, every size counts (0).
    """
    sizes = sums.filter(pl.col("exposure_s") > 0).sort("nodes", descending=True)
    sizes = sizes.with_columns(failures_up=pl.col("failures").cum_sum())
    failures_above = sizes.filter(pl.col("nodes") * gpus_per_node > above_gpus)["failures"].sum()
    if failures_above >= FEWEST_FAILURES:
        return above_gpus, None
    reason = f"{failures_above or 'no'} failure{'' if failures_above == 1 else 's'} above {above_gpus} GPUs"
    candidates = sizes.filter(pl.col("failures_up") >= FEWEST_FAILURES).head(1)
    if not candidates.height:
        return 0, f"{reason}: every size, as the trace has fewer than {FEWEST_FAILURES} failures in all"
    smallest = candidates["nodes"].item()
    if smallest == 1:
        return 0, f"{reason}, so all sizes count"
    return (smallest - 1) * gpus_per_node, f"{reason}: the largest sizes that hold {FEWEST_FAILURES} failures instead"


def node_failure_rate(
    sums: pl.DataFrame,
    basis: str,
    gpus_per_node: int | None,
    node_gpus_from: str | None,
    above_gpus: int | None,
    reach: ProjectionLimit,
    clusters: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return the failures of a node in a day at work, NODE_FAILURE_RATE, a row per confidence of CONFIDENCES.

    sums: see `sums_by_nodes`; clusters: `sums_by_cluster`; above_gpus None: every duration counts. r_f = failures / sum
    of nodes x days over the jobs above `above_gpus` (see `choose_sizes`), with Garwood's exact interval. Without a
    failure the rate is 0 and ci_high a one-sided upper bound. With less than one node-day there is no rate.
    """
    shared: dict = {"basis": basis, "node_gpus": gpus_per_node, "node_gpus_from": node_gpus_from}
    shared |= {"largest_run_nodes": reach.largest_run, "projects_to_nodes": reach.nodes}
    # In whole nodes: the bucket of this size may end far above it.
    shared["largest_run_gpus"] = (gpus_per_node or 0) * (reach.largest_run or 0) or None
    shared |= {"no_projection": reach.reason, "needed": reach.needed}
    reason = None
    if above_gpus is not None:
        above_gpus, reason = choose_sizes(sums, gpus_per_node, above_gpus)
        is_larger = pl.col("nodes") * gpus_per_node > above_gpus
        sums, clusters = sums.filter(is_larger), None if clusters is None else clusters.filter(is_larger)
    rows = sums.to_dicts()
    jobs, failures = (sum(row[name] for row in rows) for name in ("jobs", "failures"))
    node_s = sum(row["nodes"] * row["exposure_s"] for row in rows)
    shared |= {"above_gpus": above_gpus, "jobs": jobs, "failures": failures, "node_days": node_s / SECONDS_A_DAY}
    rates = []
    for confidence in CONFIDENCES:
        row = shared | {"confidence": confidence}
        if node_s == 0:
            rates.append(row | {"reason": NO_GPU_JOB if jobs == 0 else "no exposure: every job lasted 0 s"})
            continue
        if node_s < SECONDS_A_DAY:
            rates.append(row | {"reason": NO_NODE_DAY})
            continue
        if basis == PROXY and node_gpus_from == "default":
            rates.append(row | {"reason": NO_NODES})
            continue
        low_s, high_s = garwood_interval(node_s, failures, confidence)
        per_day = {
            "failures_per_node_day": failures * SECONDS_A_DAY / node_s,
            "ci_low_per_node_day": SECONDS_A_DAY / high_s if high_s else 0.0,
            "ci_high_per_node_day": SECONDS_A_DAY / low_s,
        }
        row |= per_day | {
            "failures_per_1000_node_days": 1000 * per_day["failures_per_node_day"],
            "ci_low": 1000 * per_day["ci_low_per_node_day"],
            "ci_high": 1000 * per_day["ci_high_per_node_day"],
        }
        row["days_per_failure"] = 1000 / row["failures_per_1000_node_days"] if failures else None
        no_failures = None if failures else "no failures: upper limit only"
        row |= _ci_cells(clustered_sizes.interval(clusters, "failures", "node_s", confidence), 1000 * SECONDS_A_DAY)
        rates.append(row | {"reason": "; ".join(filter(None, [no_failures, reason])) or None})
    return NODE_FAILURE_RATE.frame(rates)


def _ci_cells(interval: Mapping, factor: float = 1, suffix: str = "") -> dict:
    """Return the cells of a clustered interval, bounds times `factor`; suffix: added to the names of the bounds."""
    bounds = {name: interval[name] * factor for name in ("ci_low_clustered", "ci_high_clustered") if interval.get(name)}
    shared = {name: interval.get(name) for name in ("cluster_by", "clusters")}
    return shared | {f"{name}{suffix}": value for name, value in bounds.items()}


def projected_mttf_s(nodes: int, rate: Mapping) -> dict[str, float]:
    """Return projected_mttf_s, 1 / (nodes x r_f), and its bounds, from a row of `node_failure_rate`.

    Bounds: of the clustered interval, else the exact one. Empty for a rate of 0 or blank, and beyond projects_to_nodes.
    """
    if not rate["failures_per_node_day"] or nodes > rate["projects_to_nodes"]:
        return {}
    low, high = rate_interval(rate)
    rate_by_name = {"mttf_s": rate["failures_per_node_day"], "low_s": high, "high_s": low}
    return {f"projected_{name}": SECONDS_A_DAY / (nodes * per_day) for name, per_day in rate_by_name.items()}


def mttf_by_gpus(
    sums: pl.DataFrame, rate: pl.DataFrame, gpus_per_node: int | None, clusters: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Return measured and projected mean time to failure by size, MTTF_BY_GPUS, at the first of CONFIDENCES.

    sums: see `sums_by_nodes`; rate: `node_failure_rate`; clusters: `sums_by_cluster`. Buckets of whole nodes double in
    width (1, 2, 3 to 4, 5 to 8 nodes ...). Rows go on to LARGEST_PROJECTED_GPUS; the measured part of a size without
    runs is blank. projected_*: 1 / (nodes x r_f) at gpus_high, up to the projection limit (`projection_limit`).
    expected_failures: at the failure rate of a node in all other sizes. p_value: given all failures, those of a bucket
    are binomial with its share of the node-days; twice the smaller tail. If the units hold no GPUs (gpus_per_node
    None), one row of blanks gives the reason.
    """
    confidence = CONFIDENCES[0]
    rate_row = rate.row(by_predicate=pl.col("confidence") == confidence, named=True)
    shared = {"confidence": confidence, "basis": rate_row["basis"]}
    if gpus_per_node is None:
        reason = "no duration has a GPU" if rate_row["basis"] == "component" else NO_GPU_JOB
        return MTTF_BY_GPUS.frame([shared | {"jobs": 0, "failures": 0, "reason": reason}])
    largest_run = sums.select(pl.col("nodes").max()).item() or 0
    all_sizes = sums.to_dicts()
    rows = []
    for low, high in buckets(max(largest_run, -(-LARGEST_PROJECTED_GPUS // gpus_per_node))):
        bucket = [row for row in all_sizes if low <= row["nodes"] <= high]
        row = shared | {"gpus_low": (low - 1) * gpus_per_node + 1, "gpus_high": high * gpus_per_node}
        row |= _measure(bucket, gpus_per_node, confidence, is_larger=low > largest_run) | _compare_bucket(
            bucket, all_sizes
        )
        if clusters is not None and row["jobs"]:
            sized = clusters.filter(pl.col("nodes").is_between(low, high))
            row |= _ci_cells(clustered_sizes.interval(sized, "exposure_s", "failures", confidence), suffix="_s")
            row["p_clustered"] = clustered_sizes.compare_with_other_sizes(clusters, low, high)
        reasons = [row.get("reason"), rate_row["no_projection"] if high > rate_row["projects_to_nodes"] else None]
        row["reason"] = "; ".join(filter(None, reasons)) or None
        rows.append(row | projected_mttf_s(high, rate_row))
    return MTTF_BY_GPUS.frame(rows)


def _measure(bucket: list[dict], gpus_per_node: int, confidence: float, is_larger: bool) -> dict:
    """Return cells of the runs of a bucket: jobs, failures, exposure, MTTF with exact interval, or why none."""
    jobs, failures, exposure = (sum(row[name] for row in bucket) for name in ("jobs", "failures", "exposure_s"))
    if not jobs:
        return {"jobs": 0, "reason": "larger than any job of the trace" if is_larger else "no job of this size"}
    cells = {"jobs": jobs, "failures": failures, "exposure_s": exposure}
    if not exposure:
        return cells | {"reason": "no exposure: every job lasted 0 s"}
    low, high = garwood_interval(exposure, failures, confidence)
    cells |= {
        "ci_low_s": low,
        "ci_high_s": high,
        "gpus_mean": gpus_per_node * sum(row["nodes"] * row["exposure_s"] for row in bucket) / exposure,
    }
    if not failures:
        return cells | {"reason": "no failures: lower bound only"}
    return cells | {"mttf_s": exposure / failures}


def _compare_bucket(bucket: list[dict], all_sizes: list[dict]) -> dict[str, float]:
    """Compare a bucket's failures with the rate of all other sizes; empty without failures, or exposure of either."""
    node_s, all_s = (sum(row["nodes"] * row["exposure_s"] for row in rows) for rows in (bucket, all_sizes))
    failures, total = (sum(row["failures"] for row in rows) for rows in (bucket, all_sizes))
    if not total or node_s in (0, all_s):
        return {}
    expected = (total - failures) * node_s / (all_s - node_s)
    return {"expected_failures": expected, "p_value": exact_p(total - failures, failures, node_s / all_s)}


def size_law(
    sums: pl.DataFrame, basis: str, clusters: pl.DataFrame | None = None, confidence: float = 0.95
) -> pl.DataFrame:
    """Fit the mean time to failure by size: its slope on logarithmic axes, SIZE_LAW, a row per model.

    sums: see `sums_by_nodes`; clusters: `sums_by_cluster`. Poisson regression of the failures at each size on log
    nodes, with log exposure as offset. The slope is that of the mean time to failure, the negative of the rate's.
    p_value: Wald test of -1, the law 1/N. Goodness of fit compares observed and fitted failures in pools of
    neighbouring sizes with FEWEST_FITTED or more fitted failures each, because smaller cells do not follow chi-squared.

    Models: `poisson` has normal quantiles. `quasi_poisson` widens the errors by the square root of the dispersion if
    above 1 (McCullagh & Nelder 1989), to allow for clustered failures; as the dispersion is an estimate, its quantiles
    are Student's with df. With fewer than three pools it is blank. `clustered` has the errors of
    `clustered_sizes.clustered_slope`.

    detectable_difference: distance from -1 at which the test rejects the law with probability POWER (noncentral t).
    verdict, on all rows that of `clustered`, or of `quasi_poisson` without clusters: `rejected` if the interval
    excludes -1; `agrees` if it does not, and a slope of 0 (failures independent of size) would have been rejected with
    that power; else `too few failures to tell`, also without a dispersion or a failure.
    """
    sums = sums.filter(pl.col("exposure_s") > 0)
    shared: dict = {"basis": basis, "confidence": confidence}
    shared |= {"sizes": sums.height, "jobs": sums["jobs"].sum(), "failures": sums["failures"].sum()}
    poisson: dict = {}
    quasi: dict = {}
    no_slope = _no_slope_reason(sums)
    if not no_slope:
        fit = poisson_line(*(sums[name].to_numpy() for name in ("failures", "nodes", "exposure_s")))
        shared["converged"] = fit.converged
        no_slope = None if fit.converged else "the Poisson regression did not converge"
    if no_slope:
        shared |= {"reason": no_slope, "verdict": TOO_FEW if no_slope == NO_FAILURES else None}
    else:
        shared |= _fit_cells(sums["failures"].to_numpy(), fit.fitted)
        dispersion = shared["dispersion"]
        poisson = _slope_cells(-fit.slope, fit.slope_se, math.inf, confidence)
        if dispersion is None:
            quasi = {"reason": "too few sizes with failures enough to tell their dispersion"}
        else:
            quasi = _slope_cells(-fit.slope, fit.slope_se * max(dispersion, 1.0) ** 0.5, shared["df"], confidence)
        shared["verdict"] = _choose_verdict(quasi, confidence)
    rows = [shared | {"model": "poisson"} | poisson, shared | {"model": "quasi_poisson"} | quasi]
    if clusters is not None and clusters.height:
        clustered = {"reason": no_slope} if no_slope else _clustered_cells(fit, sums, clusters, confidence)
        verdict = shared["verdict"] if no_slope else _choose_verdict(clustered, confidence)
        rows = [row | {"verdict": verdict} for row in (*rows, shared | {"model": "clustered"} | clustered)]
    return SIZE_LAW.frame(rows)


def _clustered_cells(fit: "PoissonLine", sums: pl.DataFrame, clusters: pl.DataFrame, confidence: float) -> dict:
    """Return the cells of the slope with `clustered_sizes.clustered_slope`, or the reason why there are none."""
    slope = clustered_sizes.clustered_slope(clusters, dict(zip(sums["nodes"], fit.fitted.tolist(), strict=True)))
    cells = {name: slope.get(name) for name in ("cluster_by", "clusters")}
    if "why_not" in slope:
        return cells | {"reason": slope["why_not"]}
    return cells | _slope_cells(-fit.slope, slope["slope_se"], slope["df"], confidence)


def _choose_verdict(cells: Mapping, confidence: float) -> str:
    if "slope" not in cells:
        return TOO_FEW
    if cells["p_value"] < 1 - confidence:
        return REJECTED
    return AGREES if cells["detectable_difference"] <= abs(NO_DEPENDENCE - EXPECTED_SLOPE) else TOO_FEW


@dataclass(frozen=True)
class PoissonLine:
    """Regression of failure rates on log nodes. fitted: the failures expected at each size."""

    slope: float
    slope_se: float
    fitted: np.ndarray
    converged: bool


def poisson_line(failures: np.ndarray, nodes: np.ndarray, exposure_s: np.ndarray) -> PoissonLine:
    """Fit log failures per second as a line in log nodes, by maximum likelihood: a Poisson regression.

    Arrays of equal length, one element per size: exposure above 0, some failures, at least two different nodes.
    """
    design = np.column_stack([np.ones(nodes.size), np.log(nodes)])

    def likelihood(line: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        log_rate = design @ line
        fitted = exposure_s * np.exp(log_rate)
        level = float(failures @ log_rate - fitted.sum())
        return level, design.T @ (failures - fitted), -(design.T * fitted) @ design, fitted

    same_rate = np.array([np.log(failures.sum() / exposure_s.sum()), 0.0])
    line, converged = maximise(likelihood, same_rate)
    *_, curvature, fitted = likelihood(line)
    return PoissonLine(float(line[1]), float(np.sqrt(np.linalg.inv(-curvature)[1, 1])), fitted, converged)


def _slope_cells(slope: float, se: float, df: float, confidence: float) -> dict[str, float]:
    """Return slope, error, interval, p-value of 1/N, detectable slopes. df: infinite if the error is not estimated."""
    quantile = float(stdtrit(df, (1 + confidence) / 2))
    detectable = float(nctdtrinc(df, 1 - POWER, quantile)) * se
    return {
        "slope": slope,
        "slope_se": se,
        "ci_low": slope - quantile * se,
        "ci_high": slope + quantile * se,
        "p_value": 2 * float(stdtr(df, -abs(slope - EXPECTED_SLOPE) / se)),
        "detectable_difference": detectable,
        "detectable_low": EXPECTED_SLOPE - detectable,
        "detectable_high": EXPECTED_SLOPE + detectable,
    }


def _fit_cells(failures: np.ndarray, fitted: np.ndarray) -> dict[str, float | int | None]:
    """Return deviance, df and dispersion over pools of neighbours; a small remainder joins the last pool."""
    observed, expected = [0.0], [0.0]
    for count, mean in zip(failures, fitted, strict=True):
        if expected[-1] >= FEWEST_FITTED:
            observed.append(0.0)
            expected.append(0.0)
        observed[-1] += count
        expected[-1] += mean
    if len(observed) > 1 and expected[-1] < FEWEST_FITTED:
        observed[-2:], expected[-2:] = [sum(observed[-2:])], [sum(expected[-2:])]
    df = len(observed) - 2
    if df < 1:
        return {"deviance": None, "df": None, "dispersion": None}
    o, e = np.array(observed), np.array(expected)
    deviance = 2 * float(np.sum(xlogy(o, o / e) - (o - e)))
    return {"deviance": deviance, "df": df, "dispersion": float(np.sum((o - e) ** 2 / e)) / df}


def _no_slope_reason(sums: pl.DataFrame) -> str | None:
    failed = sums.filter(pl.col("failures") > 0)["nodes"]
    if sums.height < 2:
        return "one size only" if sums.height else NO_GPU_JOB
    if not failed.len():
        return NO_FAILURES
    if failed.len() == 1 and failed.item() in (sums["nodes"].min(), sums["nodes"].max()):
        end = "smallest" if failed.item() == sums["nodes"].min() else "largest"
        return f"all failures are of the {end} size, so the slope has no finite estimate"
    return None
