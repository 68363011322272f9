"""Mean time to failure: exposure over failures, with right-censoring and the exact Poisson interval."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl
from scipy.special import gammainccinv, gammaincinv

from ttf.engine.columns import MTTF
from ttf.engine.contract import make_frame
from ttf.records.clusters import durations_by_block
from ttf.records.jobs import Frame
from ttf.stats.clustered import add_limits, build_clusters, float_columns, join_clustered, sum_by_cluster
from ttf.stats.durations.strata import ALL, NO_DURATION, sum_by_stratum, sum_equal_durations

SECONDS_A_DAY = 86_400
MILLI = 1000
# A rate per 1000 days from less than one day would be thousands of times the observed count.
NO_GPU_DAY = "less than one GPU-day: no rate per GPU-day"
NO_NODE_DAY = "less than one node-day: no rate per node-day"
# User failures per assumed node would be meaningless.
NO_NODES = "neither nodes nor causes of failures are recorded"


def poisson_limits(failures: np.ndarray | int, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the exact limits of the expected number of failures for an observed number.

    Parameters
    ----------
    failures : a number, or an array of any shape
    confidence : between 0 and 1

    Returns
    -------
    (low, high), each of the shape of `failures`

    Notes
    -----
    chi2(a/2; 2k) / 2 and chi2(1 - a/2; 2k + 2) / 2, with k failures and a = 1 - confidence (Garwood 1936). Without
    failures the lower limit is 0, and the upper limit is the one-sided bound -ln(a) at that confidence (3.0 at 95 %:
    Hanley & Lippman-Hand 1983). Where about three failures are expected, intervals and bounds together cover slightly
    less than stated: at least 93.8 % for 95, and 87.0 % for 90.

    Examples
    --------
    >>> [limit.round(3) for limit in poisson_limits(np.array([0, 1, 10]), 0.95)]
    [array([0.   , 0.025, 4.795]), array([ 2.996,  5.572, 18.39 ])]
    """
    tail = (1 - confidence) / 2
    # Half a chi-squared quantile with 2k degrees of freedom is a gamma quantile of shape k.
    low = np.where(failures > 0, gammaincinv(failures, tail), 0.0)
    return low, gammainccinv(failures + 1, np.where(failures > 0, tail, 1 - confidence))


def garwood_interval(exposure_s: float, failures: int, confidence: float) -> tuple[float, float | None]:
    """Return the exact interval of a mean time to failure: T over the `poisson_limits`, with T the exposure.

    Parameters
    ----------
    exposure_s : T, in s
    failures : number of failures
    confidence : between 0 and 1

    Returns
    -------
    (low, high) in s. Without failures there is no upper limit (None), and the lower limit, T / -ln(1 - confidence), is
    a one-sided bound.

    Raises
    ------
    ValueError
        Unless 0 < confidence < 1 and failures >= 0.

    References
    ----------
    Garwood (1936), Biometrika 28

    Examples
    --------
    >>> low, high = garwood_interval(1000.0, 10, 0.95)
    >>> round(low, 1), round(high, 1)
    (54.4, 208.5)
    >>> round(garwood_interval(1000.0, 0, 0.95)[0], 1)
    333.8
    """
    if not 0 < confidence < 1 or failures < 0:
        raise ValueError(f"no interval for {failures} failures at confidence {confidence}")
    low, high = (float(limit) for limit in poisson_limits(failures, confidence))
    return exposure_s / high, exposure_s / low if failures else None


def mean_time_to_failure(
    durations: Frame,
    event: str,
    strata: Sequence[str],
    confidences: Sequence[float] = (0.9, 0.95),
    block_days: int | None = None,
) -> pl.DataFrame:
    """Return the mean time to the event by stratum, a row per confidence.

    exposure_s is the exact sum of the durations, mttf_s = exposure_s / events, with `garwood_interval`. GPU-days,
    node-days and the rates count only durations that requested a GPU, events and time alike. The node rate counts those
    of them with known nodes (all durations, if gpu_milli is blank in all). Missing values are blank, with a reason; so
    is a rate from less than one GPU-day or node-day. With the columns of `ttf.records.clusters` there is a clustered
    interval (`Clusters.ratio`). Raises ValueError for a stratification without a column, a negative duration, or a
    confidence outside (0, 1).

    Parameters
    ----------
    durations: frame, a row per duration
        duration_s (Int64 s; nulls are excluded), event, gpu_milli (of the whole duration) and nodes (both nullable),
        and a column per stratification (`all` needs none). Durations without `event` are censored.
    event, strata, confidences: event that counts, stratifications, and confidence levels
    block_days: length of the blocks into which durations with start_s are split (`durations_by_block`); None: one block

    Examples
    --------
    >>> durations = pl.DataFrame({"duration_s": [60, 40], "event": ["failure", None], "gpu_milli": 1000, "nodes": 1})
    >>> mean_time_to_failure(durations, "failure", ["all"], [0.95])["mttf_s"].item()
    100.0
    """
    sum_expressions, columns = _sum_expressions(durations, event), [name for name in strata if name != ALL]
    parts = durations_by_block(durations, block_days)
    # A column `cluster` without cluster_by belongs to the trace: Slurm's name of a whole cluster.
    schema = parts.lazy().collect_schema()
    levels = [name for name in ("cluster", "block") if "cluster_by" in schema and name in schema]
    sums_by_stratum = sum_equal_durations(
        durations, columns, *(levels if parts is durations else []), **sum_expressions
    )
    part_sums = {name: sum_expressions[name] for name in ("n", "events", "exposure_s")}
    sums_by_part = sums_by_stratum if parts is durations else sum_equal_durations(parts, columns, *levels, **part_sums)
    rows: list[dict] = []
    limits: list[pl.DataFrame] = []
    for stratum_by in strata:
        strata_sums = sum_by_stratum(
            sums_by_stratum, stratum_by, **{name: pl.col(name).sum() for name in sum_expressions}
        )
        for sums in strata_sums.with_columns(pl.col("stratum").cast(pl.String)).iter_rows(named=True):
            shared = {"event": event, "stratum_by": stratum_by, **sums}
            rates, rate_reasons = _rate_cells_and_reasons(sums)
            for confidence in confidences:
                mean, mean_reasons = _mean_cells_and_reasons(sums, event, confidence)
                reason = "; ".join(mean_reasons + rate_reasons) or None
                rows.append(shared | mean | rates | {"confidence": confidence, "reason": reason})
        limits += _clustered_intervals(parts, sums_by_part if levels else None, stratum_by, part_sums, confidences)
    exact = make_frame({name: column for name, column in MTTF.items() if "cluster" not in name}, rows)
    keys = ["stratum_by", "stratum", "confidence"]
    clustered = pl.concat(limits).rename({f"ci_{side}_clustered": f"ci_{side}_clustered_s" for side in ("low", "high")})
    return join_clustered(exact, clustered, keys, "ci_high_s", "ci_low_clustered_s").select(list(MTTF))


def _clustered_intervals(
    durations: Frame,
    sums_by_part: pl.DataFrame | None,
    stratum_by: str,
    sum_expressions: Mapping[str, pl.Expr],
    confidences: Sequence[float],
) -> Iterator[pl.DataFrame]:
    """Yield the clustered intervals of each confidence, with stratum_by, stratum and confidence.

    sums_by_part: `sum_equal_durations` of the parts in blocks; None if the trace has no clusters.
    """
    keys, label = ([], pl.lit(ALL)) if stratum_by == ALL else ([stratum_by], pl.col(stratum_by).cast(pl.String))
    # A filter before the sums would make `sum_by_cluster` read the durations once more.
    sums = sum_by_cluster(durations, keys, True, sums_by_part, **sum_expressions)
    sums = sums.with_columns(stratum=label).drop_nulls("stratum")
    # Parts of durations count by their time.
    members = "exposure_s" if "is_last" in durations.lazy().collect_schema() else "n"
    strata, counted, clusters = build_clusters(sums, ["stratum"], members)
    exposure, events = float_columns(counted, "exposure_s", "events")
    for confidence in confidences:
        limits = clusters.ratio(exposure, events, confidence, has_mean_leverage=True)
        yield add_limits(strata, *limits).with_columns(stratum_by=pl.lit(stratum_by), confidence=pl.lit(confidence))


def _sum_expressions(durations: Frame, event: str) -> dict[str, pl.Expr]:
    """Return the sums of a stratum by name: durations, events and time, of all, of those with GPUs and with nodes."""
    has_duration = pl.col("duration_s").is_not_null()
    is_event = has_duration & (pl.col("event") == event).fill_null(False)
    has_gpu = (has_duration & (pl.col("gpu_milli") > 0)).fill_null(False)
    # For a trace of machines (gpu_milli blank in every row) node-days are those of all durations.
    n_gpu_requests = durations.lazy().select(pl.col("gpu_milli").count()).collect(engine="streaming").item()
    has_node = (has_gpu if n_gpu_requests else has_duration) & (pl.col("nodes") > 0).fill_null(False)
    # Seconds times milli-GPU over years of a large cluster do not fit 64 bits.
    duration_s = pl.col("duration_s").cast(pl.Int128)
    return {
        "n": has_duration.sum(),
        "events": is_event.sum(),
        "exposure_s": pl.col("duration_s").cast(pl.Int64).sum(),
        "gpu_durations": has_gpu.sum(),
        "gpu_events": (is_event & has_gpu).sum(),
        "gpu_milli_s": pl.when(has_gpu).then(duration_s * pl.col("gpu_milli")).sum(),
        "node_durations": has_node.sum(),
        "node_events": (is_event & has_node).sum(),
        "node_s": pl.when(has_node).then(duration_s * pl.col("nodes")).sum(),
    }


def _mean_cells_and_reasons(sums: dict, event: str, confidence: float) -> tuple[dict, list[str]]:
    exposure, events = sums["exposure_s"], sums["events"]
    if sums["n"] == 0:
        return {}, [NO_DURATION]
    if exposure == 0:
        return {}, ["no exposure: every duration lasted 0 s"]
    low, high = garwood_interval(exposure, events, confidence)
    if events == 0:
        event_words = "no failures" if event == "failure" else f"no {event}"
        return {"ci_low_s": low}, [f"{event_words}: lower bound only"]
    return {"mttf_s": exposure / events, "ci_low_s": low, "ci_high_s": high}, []


def _rate_cells_and_reasons(sums: dict) -> tuple[dict, list[str]]:
    has_gpus = sums["gpu_durations"] > 0
    reasons = [] if has_gpus or not sums["n"] else ["none requested a GPU"]
    rates = {}
    if has_gpus:
        # Python divides integers of any size with one rounding.
        rates["gpu_days"] = sums["gpu_milli_s"] / (MILLI * SECONDS_A_DAY)
        if sums["gpu_milli_s"] == 0:
            reasons.append("those that requested a GPU lasted 0 s")
        elif sums["gpu_milli_s"] < MILLI * SECONDS_A_DAY:
            reasons.append(NO_GPU_DAY)
        else:
            per_day = sums["gpu_events"] * 1000 * MILLI * SECONDS_A_DAY
            rates["failures_per_1000_gpu_days"] = per_day / sums["gpu_milli_s"]
        if sums["node_durations"] == 0:
            reasons.append("none that requested a GPU has its nodes written")
    if sums["node_s"] > 0 or (has_gpus and sums["node_durations"]):
        rates["node_days"] = sums["node_s"] / SECONDS_A_DAY
    if sums["node_s"] >= SECONDS_A_DAY:
        rates["failures_per_1000_node_days"] = sums["node_events"] * 1000 * SECONDS_A_DAY / sums["node_s"]
    elif sums["node_s"] > 0:
        reasons.append(NO_NODE_DAY)
    elif sums["node_durations"] and sums["gpu_milli_s"] > 0:
        reasons.append("those that requested a GPU and have their nodes written lasted 0 s")
    return rates, reasons
