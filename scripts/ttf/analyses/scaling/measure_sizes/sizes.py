"""Mean time to failure by job size: buckets of whole nodes, the failure rate of a node, its projection, the 1/N law.

After Kokolis et al. (HPCA 2025): a job of N nodes fails N times as often as a node does, so that with a rate of r_f
failures per node-day its mean time to failure is 1 / (N r_f). Whether the data agree is what `size_law` tests.
"""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import bdtr, bdtrc, nctdtrinc, stdtr, stdtrit, xlogy

from ttf.analyses.scaling.measure_sizes import MTTF_BY_GPUS, NODE_FAILURE_RATE, SIZE_LAW, clustered_sizes
from ttf.records.infra import EVENT
from ttf.records.jobs import Frame
from ttf.records.lives import nodes_at_work
from ttf.stats.clustered import by_cluster
from ttf.stats.durations.mttf import NO_NODE_DAY, SECONDS_A_DAY, garwood_interval
from ttf.stats.large_runs.plans import interval_of_rate
from ttf.stats.large_runs.projection import Reach, buckets

# What a node holds where neither the trace nor the configuration says.
USUAL_NODE_GPUS = 8
LARGEST_PROJECTED_GPUS = 131_072
# So many failures give a rate to within a third either way (90% interval).
FEWEST_FAILURES = 30
# Of a cell that chi-squared is to hold for (Cochran 1954).
FEWEST_FITTED = 5
CONFIDENCES = (0.9, 0.95)
EXPECTED_SLOPE = -1.0
# The slope of failures that do not depend on size at all: data that could not have detected it are no support of -1.
NO_DEPENDENCE = 0.0
POWER = 0.8
AGREES, REJECTED, TOO_FEW = "agrees", "rejected", "too few failures to tell"

SUMS_SCHEMA = {"nodes": pl.Int64, "jobs": pl.Int64, "failures": pl.Int64, "exposure_s": pl.Int64}
NO_GPU_JOB = "no job whose nodes are known ran for a known time"
NO_FAILURES = "no failures"


def node_gpus(nodes: pl.DataFrame, configured: int | None, lives: Frame) -> tuple[int, str]:
    """(GPUs of a node, where that is from: config, trace, jobs or default).

    nodes: gpu_count (Int64, may be null); lives: gpu_count, nodes and duration_s of infra lives. Where nodes differ,
    the size that holds the most GPUs of the cluster counts, the larger one of equals.
    """
    if configured is not None:
        return configured, "config"
    sizes = (
        nodes.filter(pl.col("gpu_count") > 0)
        .group_by("gpu_count")
        .agg(held=pl.col("gpu_count").sum())
        .sort("held", "gpu_count", descending=True)
    )
    if sizes.height:
        return sizes["gpu_count"][0], "trace"
    gpus_a_node = gpus_a_node_of_runs(lives)
    return (gpus_a_node, "jobs") if gpus_a_node else (USUAL_NODE_GPUS, "default")


def gpus_a_node_of_runs(lives: Frame) -> int | None:
    """GPUs a node, rounded up, in which runs on several nodes spend the most GPU time; without any, the most GPUs of a

    run on one node. None where fewer than half of the runs with a GPU have their nodes recorded.
    """
    runs = lives.lazy().filter((pl.col("gpu_count") > 0) & pl.col("duration_s").is_not_null())
    held = (
        runs.group_by("gpu_count", "nodes")
        .agg(runs=pl.len(), gpu_s=(pl.col("gpu_count").cast(pl.Int128) * pl.col("duration_s")).sum())
        .with_columns(
            gpus_a_node=(pl.col("gpu_count") + pl.col("nodes") - 1) // pl.when(pl.col("nodes") > 0).then("nodes")
        )
        .collect(engine="streaming")
    )
    recorded = held.drop_nulls("gpus_a_node")
    if not recorded.height or 2 * recorded["runs"].sum() < held["runs"].sum():
        return None
    several = recorded.filter(pl.col("nodes") > 1).group_by("gpus_a_node").agg(pl.col("gpu_s").sum())
    several = several.sort("gpu_s", "gpus_a_node", descending=True)
    return several["gpus_a_node"][0] if several.height else recorded["gpus_a_node"].max()


def of_jobs(lives: Frame, gpus_a_node: int, came_from: str | None = None) -> pl.LazyFrame:
    """The infra lives of jobs that count: with a GPU and a known time; nodes: of `nodes_at_work`."""
    counting = lives.lazy().filter((pl.col("gpu_count") > 0) & pl.col("duration_s").is_not_null())
    return counting.with_columns(nodes=nodes_at_work(gpus_a_node, came_from))


def of_components(lives: Frame) -> pl.LazyFrame:
    """Those of components that are nodes, or stand in one each: by the lives' own number of nodes."""
    return lives.lazy().filter((pl.col("nodes") > 0) & pl.col("duration_s").is_not_null())


_SUMS = {
    "jobs": pl.len().cast(pl.Int64),
    "failures": (pl.col("event") == EVENT).fill_null(False).sum().cast(pl.Int64),
    "exposure_s": pl.col("duration_s").sum(),
}


def sums_by_nodes(runs: Frame) -> pl.DataFrame:
    """SUMS_SCHEMA, a row per number of nodes, ascending: jobs, infra failures and exposure (exact integers).

    runs: of `of_jobs` or `of_components`.
    """
    summed = runs.lazy().group_by("nodes").agg(**_SUMS).collect(engine="streaming")
    return summed.select(pl.col(name).cast(dtype) for name, dtype in SUMS_SCHEMA.items()).sort("nodes")


def sums_by_cluster(runs: Frame) -> pl.DataFrame:
    """The same of each cluster (`ttf.records.clusters`): with cluster_by and cluster after nodes; no rows without
    clusters."""
    return by_cluster(runs, ["nodes"], divided=False, **_SUMS)


def largest_sizes(sums: pl.DataFrame, gpus_a_node: int, above_gpus: int) -> tuple[int, str | None]:
    """(GPUs above which a job counts for the rate of a node, why these): the size asked for, if it has failures enough.

    sums: see `sums_by_nodes`. Where fewer than FEWEST_FAILURES are above it, the largest sizes that hold as many: the
    next smaller size is taken in until they do; where the whole trace has fewer, every size (0).
    """
    sizes = sums.filter(pl.col("exposure_s") > 0).sort("nodes", descending=True)
    sizes = sizes.with_columns(reached=pl.col("failures").cum_sum())
    above = sizes.filter(pl.col("nodes") * gpus_a_node > above_gpus)["failures"].sum()
    if above >= FEWEST_FAILURES:
        return above_gpus, None
    few = f"{above or 'no'} failure{'' if above == 1 else 's'} above {above_gpus} GPUs"
    enough = sizes.filter(pl.col("reached") >= FEWEST_FAILURES).head(1)
    if not enough.height:
        return 0, f"{few}: every size, as the trace has fewer than {FEWEST_FAILURES} failures in all"
    smallest = enough["nodes"].item()
    if smallest == 1:
        return 0, f"{few}: every size instead"
    return (smallest - 1) * gpus_a_node, f"{few}: the largest sizes that hold {FEWEST_FAILURES} failures instead"


def node_failure_rate(
    sums: pl.DataFrame,
    basis: str,
    gpus_a_node: int | None,
    came_from: str | None,
    above_gpus: int | None,
    reach: Reach,
    clusters: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """The failures of a node in a day at work, NODE_FAILURE_RATE, a row per confidence of CONFIDENCES.

    sums: see `sums_by_nodes`; above_gpus None: every life counts. clusters: `sums_by_cluster`. r_f = failures /
    sum of nodes x days over the jobs above `above_gpus` (see `largest_sizes`), with Garwood's exact interval. Without a
    failure the rate is 0 and ci_high the one-sided upper bound; of less than one node-day there is no rate.
    """
    shared: dict = {"basis": basis, "node_gpus": gpus_a_node, "node_gpus_from": came_from}
    shared |= {"largest_run_nodes": reach.largest_run, "projects_to_nodes": reach.nodes}
    # Of whole nodes: a bucket of sizes may end far above it.
    shared["largest_run_gpus"] = (gpus_a_node or 0) * (reach.largest_run or 0) or None
    shared |= {"no_projection": reach.reason, "needed": reach.needed}
    reason = None
    if above_gpus is not None:
        above_gpus, reason = largest_sizes(sums, gpus_a_node, above_gpus)
        larger = pl.col("nodes") * gpus_a_node > above_gpus
        sums, clusters = sums.filter(larger), None if clusters is None else clusters.filter(larger)
    rows = sums.to_dicts()
    jobs, failures = (sum(row[name] for row in rows) for name in ("jobs", "failures"))
    node_s = sum(row["nodes"] * row["exposure_s"] for row in rows)
    shared |= {"above_gpus": above_gpus, "jobs": jobs, "failures": failures, "node_days": node_s / SECONDS_A_DAY}
    found = []
    for confidence in CONFIDENCES:
        row = shared | {"confidence": confidence}
        if node_s == 0:
            found.append(row | {"reason": NO_GPU_JOB if jobs == 0 else "no exposure: every job lasted 0 s"})
            continue
        if node_s < SECONDS_A_DAY:
            found.append(row | {"reason": NO_NODE_DAY})
            continue
        low_s, high_s = garwood_interval(node_s, failures, confidence)
        a_day = {
            "failures_per_node_day": failures * SECONDS_A_DAY / node_s,
            "ci_low_per_node_day": SECONDS_A_DAY / high_s if high_s else 0.0,
            "ci_high_per_node_day": SECONDS_A_DAY / low_s,
        }
        row |= a_day | {
            "failures_per_1000_node_days": 1000 * a_day["failures_per_node_day"],
            "ci_low": 1000 * a_day["ci_low_per_node_day"],
            "ci_high": 1000 * a_day["ci_high_per_node_day"],
        }
        row["days_a_failure"] = 1000 / row["failures_per_1000_node_days"] if failures else None
        none = None if failures else "no failures: upper limit only"
        row |= _clustered(clustered_sizes.limits(clusters, "failures", "node_s", confidence), 1000 * SECONDS_A_DAY)
        found.append(row | {"reason": "; ".join(filter(None, [none, reason])) or None})
    return NODE_FAILURE_RATE.frame(found)


def _clustered(found: Mapping, times: float = 1, suffix: str = "") -> dict:
    """The cells of a clustered interval, of `differing.limits`, in the unit of the row."""
    ends = {name: found[name] * times for name in ("ci_low_clustered", "ci_high_clustered") if found.get(name)}
    shared = {name: found.get(name) for name in ("cluster_by", "clusters")}
    return shared | {f"{name}{suffix}": value for name, value in ends.items()}


def projected_mttf_s(nodes: int, rate: Mapping[str, float | None]) -> dict[str, float]:
    """1 / (nodes x r_f) in seconds with its limits, from a row of `node_failure_rate`: of the clustered interval, else
    of the exact one.

    Nothing where the rate is 0 or blank, and beyond the row's projects_to_nodes (`reach_of`).
    """
    if not rate["failures_per_node_day"] or nodes > rate["projects_to_nodes"]:
        return {}
    low, high = interval_of_rate(rate)
    named = {"mttf_s": rate["failures_per_node_day"], "low_s": high, "high_s": low}
    return {f"projected_{name}": SECONDS_A_DAY / (nodes * per_day) for name, per_day in named.items()}


def mttf_by_gpus(
    sums: pl.DataFrame, rate: pl.DataFrame, gpus_a_node: int | None, clusters: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Measured and projected mean time to failure by size, MTTF_BY_GPUS, at the first of CONFIDENCES.

    sums: see `sums_by_nodes`; rate: what `node_failure_rate` gives; clusters: `sums_by_cluster`. Buckets of whole
    nodes, each twice as wide as the one before: 1, 2, 3 to 4, 5 to 8 nodes ...; projected_*: 1 / (nodes x r_f) at
    gpus_high, as far as `reach_of` lets it go; rows go on to LARGEST_PROJECTED_GPUS. A size that nobody ran has blanks
    for the measured part. expected_failures: at the failure rate of a node in all other sizes; p_value: given all
    failures, those of a bucket are binomial by its share of the node-days; twice the smaller tail. Where the units hold
    no GPUs (gpus_a_node None) there is one row, of blanks and the reason.
    """
    confidence = CONFIDENCES[0]
    row_of_rate = rate.row(by_predicate=pl.col("confidence") == confidence, named=True)
    shared = {"confidence": confidence, "basis": row_of_rate["basis"]}
    if gpus_a_node is None:
        why = "no life has a GPU" if row_of_rate["basis"] == "component" else NO_GPU_JOB
        rows = [shared | {"jobs": 0, "failures": 0, "reason": why}]
        return MTTF_BY_GPUS.frame(rows)
    largest_run = sums["nodes"].max() or 0
    every = sums.to_dicts()
    rows = []
    for low, high in buckets(max(largest_run, -(-LARGEST_PROJECTED_GPUS // gpus_a_node))):
        inside = [row for row in every if low <= row["nodes"] <= high]
        row = shared | {"gpus_low": (low - 1) * gpus_a_node + 1, "gpus_high": high * gpus_a_node}
        row |= _measured(inside, gpus_a_node, confidence, beyond=low > largest_run) | _held_against(inside, every)
        if clusters is not None and row["jobs"]:
            of_size = clusters.filter(pl.col("nodes").is_between(low, high))
            row |= _clustered(clustered_sizes.limits(of_size, "exposure_s", "failures", confidence), suffix="_s")
            row["p_clustered"] = clustered_sizes.against_the_others(clusters, low, high)
        reasons = [row.get("reason"), row_of_rate["no_projection"] if high > row_of_rate["projects_to_nodes"] else None]
        row["reason"] = "; ".join(filter(None, reasons)) or None
        rows.append(row | projected_mttf_s(high, row_of_rate))
    return MTTF_BY_GPUS.frame(rows)


def _measured(inside: list[dict], gpus_a_node: int, confidence: float, beyond: bool) -> dict:
    jobs, failures, exposure = (sum(row[name] for row in inside) for name in ("jobs", "failures", "exposure_s"))
    if not jobs:
        why = "larger than any job of the trace" if beyond else "no job of this size"
        return {"jobs": 0, "reason": why}
    counted = {"jobs": jobs, "failures": failures, "exposure_s": exposure}
    if not exposure:
        return counted | {"reason": "no exposure: every job lasted 0 s"}
    low, high = garwood_interval(exposure, failures, confidence)
    counted |= {
        "ci_low_s": low,
        "ci_high_s": high,
        "gpus_mean": gpus_a_node * sum(row["nodes"] * row["exposure_s"] for row in inside) / exposure,
    }
    if not failures:
        return counted | {"reason": "no failures: lower bound only"}
    return counted | {"mttf_s": exposure / failures}


def _held_against(inside: list[dict], every: list[dict]) -> dict[str, float]:
    """expected_failures and p_value of a bucket; nothing without a failure anywhere, or exposure inside or outside."""
    node_s, all_s = (sum(row["nodes"] * row["exposure_s"] for row in rows) for rows in (inside, every))
    failures, total = (sum(row["failures"] for row in rows) for rows in (inside, every))
    if not total or node_s in (0, all_s):
        return {}
    share = node_s / all_s
    above = bdtrc(failures - 1, total, share) if failures else 1.0
    return {
        "expected_failures": (total - failures) * node_s / (all_s - node_s),
        "p_value": min(1.0, 2 * float(min(bdtr(failures, total, share), above))),
    }


def size_law(
    sums: pl.DataFrame, basis: str, clusters: pl.DataFrame | None = None, confidence: float = 0.95
) -> pl.DataFrame:
    """How the mean time to failure goes with size: its slope on logarithmic axes, SIZE_LAW, a row per model.

    sums: see `sums_by_nodes`; clusters: `sums_by_cluster`. Poisson regression of the failures at each size on log
    nodes, with log exposure as offset; the slope is that of the mean time to failure, the negative of the rate's.
    p_value: Wald test of -1, the law 1/N. How well a straight line fits: failures seen and fitted over pools of
    neighbouring sizes with FEWEST_FITTED or more fitted failures each (smaller cells do not follow chi-squared). The
    model `quasi_poisson` widens the errors by the square root of the dispersion where it is above 1 (McCullagh & Nelder
    1989), as failures that come in clusters ask for; the dispersion being an estimate, its quantiles are Student's of
    df, those of `poisson` normal. With fewer than three pools there is none, and the row is blank. The model
    `clustered` has the errors of `differing.slope_of_clusters`.

    detectable_difference: how far from -1 a slope must lie for the test to reject the law with a probability of POWER
    (noncentral t). verdict, on all rows that of `clustered`, or of `quasi_poisson` where the trace names no
    clusters: `rejected` where its interval excludes -1; `agrees`
    where it does not, though a slope of 0 (failures that do not depend on size) would have been rejected with that
    power; else `too few failures to tell`, as also without a dispersion or a failure.
    """
    sums = sums.filter(pl.col("exposure_s") > 0)
    shared = {"basis": basis, "sizes": sums.height, "jobs": sums["jobs"].sum(), "failures": sums["failures"].sum()}
    shared |= {"confidence": confidence, "expected_slope": EXPECTED_SLOPE}
    why = _no_slope(sums)
    if not why:
        fit = poisson_line(*(sums[name].to_numpy() for name in ("failures", "nodes", "exposure_s")))
        shared["converged"] = fit.converged
        why = None if fit.converged else "the Poisson regression did not converge"
    if why:
        shared |= {"reason": why, "verdict": TOO_FEW if why == NO_FAILURES else None}
        poisson = quasi = {}
    else:
        shared |= _goodness(sums["failures"].to_numpy(), fit.fitted)
        dispersion = shared["dispersion"]
        poisson = _line(-fit.slope, fit.slope_se, math.inf, confidence)
        if dispersion is None:
            quasi = {"reason": "too few sizes with failures enough to tell their dispersion"}
        else:
            quasi = _line(-fit.slope, fit.slope_se * max(dispersion, 1.0) ** 0.5, shared["df"], confidence)
        shared["verdict"] = _verdict(quasi, confidence)
    rows = [shared | {"model": "poisson"} | poisson, shared | {"model": "quasi_poisson"} | quasi]
    if clusters is not None and clusters.height:
        line = {"reason": why} if why else _clustered_line(fit, sums, clusters, confidence)
        verdict = shared["verdict"] if why else _verdict(line, confidence)
        rows = [row | {"verdict": verdict} for row in (*rows, shared | {"model": "clustered"} | line)]
    return SIZE_LAW.frame(rows)


def _clustered_line(fit: "PoissonLine", sums: pl.DataFrame, clusters: pl.DataFrame, confidence: float) -> dict:
    found = clustered_sizes.slope_of_clusters(clusters, dict(zip(sums["nodes"], fit.fitted.tolist(), strict=True)))
    about = {name: found.get(name) for name in ("cluster_by", "clusters")}
    if "why_not" in found:
        return about | {"reason": found["why_not"]}
    return about | _line(-fit.slope, found["slope_se"], found["df"], confidence)


def _verdict(line: Mapping[str, float], confidence: float) -> str:
    """What a row with a line says of the law, or that it has none."""
    if "slope" not in line:
        return TOO_FEW
    if line["p_value"] < 1 - confidence:
        return REJECTED
    return AGREES if line["detectable_difference"] <= abs(NO_DEPENDENCE - EXPECTED_SLOPE) else TOO_FEW


@dataclass(frozen=True)
class PoissonLine:
    """The regression of failure rates on log nodes. fitted: the failures expected at each size."""

    slope: float
    slope_se: float
    fitted: np.ndarray
    converged: bool


def poisson_line(failures: np.ndarray, nodes: np.ndarray, exposure_s: np.ndarray) -> PoissonLine:
    """Log failures per second as a line in log nodes, by maximum likelihood: a Poisson regression.

    Arrays of one length, a size each: exposure above 0, some failures, nodes that are not all alike.
    """
    # Imported here: see `ttf.stats.shares.wilson_interval`.
    from statsmodels.genmod.families import Poisson
    from statsmodels.genmod.generalized_linear_model import GLM

    design = np.column_stack([np.ones(nodes.size), np.log(nodes)])
    model = GLM(failures, design, family=Poisson(), offset=np.log(exposure_s))
    # Two sizes leave no residuals, of which it warns.
    with warnings.catch_warnings(action="ignore"):
        # The errors are of the weights before the last step, which by the deviance may still be a long one.
        fit = model.fit(tol=1e-12, tol_criterion="params")
    return PoissonLine(float(fit.params[1]), float(fit.bse[1]), fit.fittedvalues, bool(fit.converged))


def _deviance(failures: np.ndarray, fitted: np.ndarray) -> float:
    return 2 * float(np.sum(xlogy(failures, failures / fitted) - (failures - fitted)))


def _line(slope: float, error: float, df: float, confidence: float) -> dict[str, float]:
    """df: of the error; infinite where it is no estimate."""
    widest = float(stdtrit(df, (1 + confidence) / 2))
    detectable = float(nctdtrinc(df, 1 - POWER, widest)) * error
    return {
        "slope": slope,
        "slope_se": error,
        "ci_low": slope - widest * error,
        "ci_high": slope + widest * error,
        "p_value": 2 * float(stdtr(df, -abs(slope - EXPECTED_SLOPE) / error)),
        "detectable_difference": detectable,
        "detectable_low": EXPECTED_SLOPE - detectable,
        "detectable_high": EXPECTED_SLOPE + detectable,
    }


def _goodness(failures: np.ndarray, fitted: np.ndarray) -> dict[str, float | int | None]:
    """deviance, df and dispersion over pools of neighbours; of what remains at the end, the last pool has it too."""
    seen, expected = [0.0], [0.0]
    for observed, mean in zip(failures, fitted, strict=True):
        if expected[-1] >= FEWEST_FITTED:
            seen.append(0.0)
            expected.append(0.0)
        seen[-1] += observed
        expected[-1] += mean
    if len(seen) > 1 and expected[-1] < FEWEST_FITTED:
        seen[-2:], expected[-2:] = [sum(seen[-2:])], [sum(expected[-2:])]
    df = len(seen) - 2
    if df < 1:
        return {"deviance": None, "df": None, "dispersion": None}
    o, e = np.array(seen), np.array(expected)
    return {"deviance": _deviance(o, e), "df": df, "dispersion": float(np.sum((o - e) ** 2 / e)) / df}


def _no_slope(sums: pl.DataFrame) -> str | None:
    """Why there is no slope to be estimated, if there is none."""
    failed = sums.filter(pl.col("failures") > 0)["nodes"]
    if sums.height < 2:
        return "one size only" if sums.height else NO_GPU_JOB
    if not failed.len():
        return NO_FAILURES
    if failed.len() == 1 and failed.item() in (sums["nodes"].min(), sums["nodes"].max()):
        end = "smallest" if failed.item() == sums["nodes"].min() else "largest"
        return f"all failures are of the {end} size, so the slope has no finite estimate"
    return None
