"""Mean time to failure: exposure over failures, with right-censoring and the exact Poisson interval."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl
from scipy.special import gammainccinv, gammaincinv

from ttf.engine.columns import MTTF
from ttf.engine.contract import frame_of
from ttf.records.clusters import lives_by_block
from ttf.records.jobs import Frame
from ttf.stats.clustered import beside, by_cluster, in_strata, with_limits
from ttf.stats.durations.strata import ALL, NO_LIFE, alike, by_stratum

SECONDS_A_DAY = 86_400
MILLI = 1000
# A rate per 1000 days from less than one day is thousands of times what was seen.
NO_GPU_DAY = "less than one GPU-day: no rate per GPU-day"
NO_NODE_DAY = "less than one node-day: no rate per node-day"


def poisson_limits(failures: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """The exact limits of the expected number of failures, given how many there were (arrays of one length).

    chi2(a/2; 2k) / 2 and chi2(1 - a/2; 2k + 2) / 2, with k the failures and a = 1 - confidence (Garwood 1936). Without
    failures there is no lower limit (0), and a is not shared with it: the upper limit is the one-sided bound -ln(a) at
    that confidence (3.0 at 95 %: Hanley & Lippman-Hand 1983). Where about three failures are expected, intervals and
    bounds taken together cover a little less than stated: 93.8 % in place of 95, 87.0 % in place of 90 at the least.
    """
    tail = (1 - confidence) / 2
    # Half a chi-squared quantile with 2k degrees of freedom is a gamma quantile of shape k.
    low = np.where(failures > 0, gammaincinv(failures, tail), 0.0)
    return low, gammainccinv(failures + 1, np.where(failures > 0, tail, 1 - confidence))


def garwood_interval(exposure_s: float, failures: int, confidence: float) -> tuple[float, float | None]:
    """The exact interval (s) of a mean time to failure: T over the `poisson_limits`, with T the exposure.

    Without failures there is no upper limit (None), and the lower one, T / -ln(1 - confidence), is a one-sided bound.
    Raises ValueError unless 0 < confidence < 1 and failures >= 0.
    """
    if not 0 < confidence < 1 or failures < 0:
        raise ValueError(f"no interval for {failures} failures at confidence {confidence}")
    low, high = (float(limit) for limit in poisson_limits(np.int64(failures), confidence))
    return exposure_s / high, exposure_s / low if failures else None


def mean_time_to_failure(
    lives: Frame,
    event: str,
    strata: Sequence[str],
    confidences: Sequence[float] = (0.9, 0.95),
    block_days: int | None = None,
) -> pl.DataFrame:
    """Mean time to the event by stratum, a row per confidence.

    lives: duration_s (Int64 s; null is excluded), event, gpu_milli (of the whole life) and nodes (both may
    be null), and a column per stratification (`all` needs none). Lives that did not end by `event` are
    censored: their time counts, their end does not.

    exposure_s is the exact sum of the durations, mttf_s = exposure_s / events, its interval that of `garwood_interval`.
    GPU-days, node-days and the rates count only the lives that asked for a GPU, events and time alike; the node rate
    only those of them whose nodes are known (where gpu_milli is blank in every life: of all lives). What cannot be
    given is blank, with a reason; so is a rate from less than one GPU-day or node-day. Where the lives have the columns
    of `ttf.records.clusters`, the clustered interval stands beside the exact one (`Clusters.ratio`). block_days: for
    it, lives that have start_s are divided into blocks of so many days (`lives_by_block`); None: each is in one block.
    Raises ValueError when a stratification has no column, a duration is negative, or a confidence lies
    outside (0, 1).
    """
    sums_of, columns = _sums(lives, event), [name for name in strata if name != ALL]
    parts = lives_by_block(lives, block_days)
    # A column `cluster` by itself is a trace's own: Slurm's name of a whole cluster.
    there = parts.lazy().collect_schema()
    levels = [name for name in ("cluster", "block") if "cluster_by" in there and name in there]
    summed = alike(lives, columns, *(levels if parts is lives else []), **sums_of)
    of_parts = {name: sums_of[name] for name in ("n", "events", "exposure_s")}
    by_part = summed if parts is lives else alike(parts, columns, *levels, **of_parts)
    rows, found = [], []
    for stratum_by in strata:
        in_order = by_stratum(summed, stratum_by, **{name: pl.col(name).sum() for name in sums_of})
        for sums in in_order.with_columns(pl.col("stratum").cast(pl.String)).iter_rows(named=True):
            shared = {"event": event, "stratum_by": stratum_by, **sums}
            rates, rate_reasons = _rates(sums)
            for confidence in confidences:
                mean, mean_reasons = _mean(sums, event, confidence)
                reason = "; ".join(mean_reasons + rate_reasons) or None
                rows.append(shared | mean | rates | {"confidence": confidence, "reason": reason})
        found += _clustered(parts, by_part if levels else None, stratum_by, of_parts, confidences)
    exact = frame_of({name: column for name, column in MTTF.items() if "cluster" not in name}, rows)
    keys = ["stratum_by", "stratum", "confidence"]
    of_clusters = pl.concat(found).rename({f"ci_{end}_clustered": f"ci_{end}_clustered_s" for end in ("low", "high")})
    return beside(exact, of_clusters, keys, "ci_high_s", "ci_low_clustered_s").select(list(MTTF))


def _clustered(
    lives: Frame,
    summed: pl.DataFrame | None,
    stratum_by: str,
    sums_of: Mapping[str, pl.Expr],
    confidences: Sequence[float],
) -> Iterator[pl.DataFrame]:
    """The intervals that hold when clusters differ, a frame per confidence with stratum_by, stratum, confidence.

    summed: `alike` lives of one cluster; None where nothing names clusters.
    """
    labels = pl.lit(ALL) if stratum_by == ALL else pl.col(stratum_by).cast(pl.String)
    labelled = [
        None if frame is None else frame.lazy().with_columns(stratum=labels).drop_nulls("stratum")
        for frame in (lives, summed)
    ]
    sums = by_cluster(labelled[0], ["stratum"], summed=labelled[1], **sums_of)
    # Parts of lives count by their time.
    members = "exposure_s" if "is_last" in lives.lazy().collect_schema() else "n"
    strata, rows, clusters = in_strata(sums, ["stratum"], members)
    exposure, events = (rows[name].to_numpy().astype(float) for name in ("exposure_s", "events"))
    for confidence in confidences:
        limits = clusters.ratio(exposure, events, confidence, both=True)
        yield with_limits(strata, *limits).with_columns(stratum_by=pl.lit(stratum_by), confidence=pl.lit(confidence))


def _sums(lives: Frame, event: str) -> dict[str, pl.Expr]:
    """Counts and exact sums of some of the lives, by their names."""
    known = pl.col("duration_s").is_not_null()
    hit = known & (pl.col("event") == event).fill_null(False)
    with_gpu = (known & (pl.col("gpu_milli") > 0)).fill_null(False)
    # Where GPUs are not in question (blank in every life: a trace of machines), node-days are those of all lives.
    of_gpus = lives.lazy().select(pl.col("gpu_milli").count()).collect(engine="streaming").item()
    with_node = (with_gpu if of_gpus else known) & (pl.col("nodes") > 0).fill_null(False)
    # Seconds times milli-GPU of a large cluster's years do not fit 64 bits.
    wide = pl.col("duration_s").cast(pl.Int128)
    return {
        "n": known.sum(),
        "events": hit.sum(),
        "exposure_s": pl.col("duration_s").cast(pl.Int64).sum(),
        "gpu_lives": with_gpu.sum(),
        "gpu_events": (hit & with_gpu).sum(),
        "gpu_milli_s": pl.when(with_gpu).then(wide * pl.col("gpu_milli")).sum(),
        "node_lives": with_node.sum(),
        "node_events": (hit & with_node).sum(),
        "node_s": pl.when(with_node).then(wide * pl.col("nodes")).sum(),
    }


def _mean(sums: dict, event: str, confidence: float) -> tuple[dict, list[str]]:
    exposure, events = sums["exposure_s"], sums["events"]
    if sums["n"] == 0:
        return {}, [NO_LIFE]
    if exposure == 0:
        return {}, ["no exposure: every life lasted 0 s"]
    low, high = garwood_interval(exposure, events, confidence)
    if events == 0:
        none = "no failures" if event == "failure" else f"no {event}"
        return {"ci_low_s": low}, [f"{none}: lower bound only"]
    return {"mttf_s": exposure / events, "ci_low_s": low, "ci_high_s": high}, []


def _rates(sums: dict) -> tuple[dict, list[str]]:
    of_gpus = sums["gpu_lives"] > 0
    reasons = [] if of_gpus or not sums["n"] else ["none requested a GPU"]
    rates = {}
    if of_gpus:
        # Integers of any size are divided with one rounding.
        rates["gpu_days"] = sums["gpu_milli_s"] / (MILLI * SECONDS_A_DAY)
        if sums["gpu_milli_s"] == 0:
            reasons.append("those that requested a GPU lasted 0 s")
        elif sums["gpu_milli_s"] < MILLI * SECONDS_A_DAY:
            reasons.append(NO_GPU_DAY)
        else:
            per_day = sums["gpu_events"] * 1000 * MILLI * SECONDS_A_DAY
            rates["failures_per_1000_gpu_days"] = per_day / sums["gpu_milli_s"]
        if sums["node_lives"] == 0:
            reasons.append("none that requested a GPU has its nodes written")
    if sums["node_s"] > 0 or (of_gpus and sums["node_lives"]):
        rates["node_days"] = sums["node_s"] / SECONDS_A_DAY
    if sums["node_s"] >= SECONDS_A_DAY:
        rates["failures_per_1000_node_days"] = sums["node_events"] * 1000 * SECONDS_A_DAY / sums["node_s"]
    elif sums["node_s"] > 0:
        reasons.append(NO_NODE_DAY)
    elif sums["node_lives"] and sums["gpu_milli_s"] > 0:
        reasons.append("those that requested a GPU and have their nodes written lasted 0 s")
    return rates, reasons
