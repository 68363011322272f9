"""Units that fail and are repaired repeatedly: time between outages, time to repair, availability.

Every estimate is a ratio of sums over the units of a stratum. Its variance is the sum of the units' squared influences,
each divided by 1 - h (`ttf.stats.clustered`). A few long outages make most of the down time, so Student's degrees of
freedom are the effective number of influences, (sum i^2)^2 / sum i^4 (Kish 1965 for weights, with squared influences as
weights). `docs/coverage.md` reports the coverage.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from scipy.special import fdtri

from ttf.stats.clustered import FEWEST, Clusters, Limits, float_columns, number_strata, too_few_reason
from ttf.stats.durations.mttf import SECONDS_A_DAY, garwood_interval, poisson_limits

CONFIDENCE = 0.95
# Horizon of restricted mean repairs if a repair lasts longer.
HORIZON_S = 30 * SECONDS_A_DAY
NOT_WATCHED = "no one knows how many units were watched: no rates and no availability"
NO_EXPOSURE = "the units were watched for no time"
NO_OUTAGE = "no outage: lower bounds only"
NO_DOWN = "no time down: no interval of the availability"
NO_REPAIR = "no repair has ended: no mean"
NO_TIME = "every repair ended in the second of its start: no interval of the mean repair"
ONE_UNIT = "one unit makes nearly all of the spread: no clustered interval of the {}"
# Products of many factors reach a half only up to rounding.
ROUNDING = 1e-10
# Methods of the interval of availability.
BY_UNIT, EXPONENTIAL = "clustered", "exponential up and down times"


def mtbf_limits(clusters: Clusters, time: np.ndarray, outages: np.ndarray, by_influence: bool = True) -> Limits:
    """Return the interval by stratum of time over outages (both by cluster), on the log scale."""
    return clusters.ratio(time, outages, CONFIDENCE, has_mean_leverage=True, by_influence=by_influence)


def mttr_limits(clusters: Clusters, down: np.ndarray, repairs: np.ndarray) -> Limits:
    """Return the interval by stratum of down time over repairs (both by unit), on the log scale.

    Both include outages under way at the start of the watch: their unseen part offsets the unseen part of those open at
    its end. Without them the interval of repairs of log SD 2 in docs/coverage.md covers 0.88 and not 0.95.
    """
    return clusters.ratio(down, repairs, CONFIDENCE, by_influence=True)


def availability_limits(clusters: Clusters, down: np.ndarray, exposure: np.ndarray) -> Limits:
    """Return the interval by stratum of 1 - sum(down) / sum(exposure), both by unit, on the logit scale."""
    return clusters.proportion(exposure - down, exposure, CONFIDENCE, by_influence=True)


def exponential_availability(up: float, down: float, cycles: int) -> tuple[float, float]:
    """Return the 95 % interval of the availability for exponential up and down times.

    Parameters
    ----------
    up, down : total times, in one unit
    cycles : number of up and down times, at least one

    Returns
    -------
    (low, high), between 0 and 1

    Notes
    -----
    1 / (1 + r F) with r = down / up and F the quantiles with 2 n and 2 n degrees (Trivedi, Probability and Statistics
    with Reliability, Queuing and Computer Science Applications, 2nd ed., ch. 10).

    Examples
    --------
    >>> [round(float(limit), 4) for limit in exponential_availability(90.0, 10.0, 10)]
    [0.785, 0.9569]
    """
    quantile = fdtri(2 * cycles, 2 * cycles, (1 + CONFIDENCE) / 2)
    return up / (up + down * quantile), up / (up + down / quantile)


def repair_times(seconds: np.ndarray, ended: np.ndarray) -> dict:
    """Summarise times down by Kaplan and Meier's estimate.

    Parameters
    ----------
    seconds : (n,) whole seconds down
    ended : (n,) boolean, whether the outage ended; open ones are censored

    Returns
    -------
    n, open, median_s, p90_s, restricted_mean_s, its horizon_s, longest_share, and reasons for missing values.
    longest_share: share of the time down in the longest tenth of the outages (rounded down), if any.

    Notes
    -----
    The median and the 90th percentile are the first times at which fewer than .5, .1 are still down. If exactly as many
    are down at a time, the midpoint to the next counts (as in R's survival: the usual median of uncensored values). The
    horizon is HORIZON_S, or the longest observed time if shorter.

    Examples
    --------
    >>> repair_times(np.array([10, 20, 30, 40]), np.ones(4, bool))["median_s"]
    25.0
    """
    reasons: list[str] = []
    columns = {"n": seconds.size, "open": int(seconds.size - ended.sum()), "reasons": reasons}
    if not seconds.size:
        return columns
    if not (ended.any() or seconds.any()):
        return columns | {"reasons": ["no one wrote when outages ended"]}
    # Sorting packed values takes a third of the time of an argsort.
    packed = np.sort(2 * seconds + ended)
    times, first_rows = np.unique(packed >> 1, return_index=True)
    n_repaired, at_risk = np.add.reduceat(packed & 1, first_rows), seconds.size - first_rows
    down_share = np.cumprod(1 - n_repaired / at_risk)
    for name, share in (("median_s", 0.5), ("p90_s", 0.1)):
        crossings = np.flatnonzero((down_share <= share + ROUNDING) & (n_repaired > 0))[:2]
        if crossings.size:
            indices = crossings if abs(down_share[crossings[0]] - share) <= ROUNDING else crossings[:1]
            columns[name] = float(times[indices].mean())
        else:
            reasons.append(f"more than {share:.0%} are still down at the longest time seen")
    horizon = min(HORIZON_S, int(times[-1]))
    before_horizon = times < horizon
    steps = np.diff(np.concatenate(([0], times[before_horizon], [horizon])))
    mean = math.fsum(np.concatenate(([1.0], down_share[before_horizon])) * steps)
    if (longest := seconds.size // 10) and seconds.any():
        columns["longest_share"] = int((packed[-longest:] >> 1).sum()) / int(seconds.sum())
    return columns | {"horizon_s": horizon, "restricted_mean_s": mean}


def estimate_strata(
    units: pl.DataFrame, keys: Sequence[str], unit: str, block: str, is_grouped: bool = False
) -> Iterator[dict]:
    """Yield a row for each stratum, in order, with *keys, sums, rates, repair times and a list of reasons.

    Parameters
    ----------
    units: a row for each unit and run of equal blocks of time, sorted by stratum
        *keys, unit (a number), block and blocks (`ttf.records.clusters.sum_step_runs`; blank if the row is a whole
        unit), and for each of these blocks exposure_s (all blank if unknown), down_s, outages, under_way, repairs,
        records (Int64).
    keys: columns that form the strata
    unit, block: names of a unit and of a block
    is_grouped: whether units are groups of units, so that their interval of time between outages is that of their MTTF
    """
    strata, stratum = number_strata(units, keys)
    has_exposure = units["exposure_s"].null_count() == 0
    columns = ("exposure_s", "down_s", "outages", "under_way", "repairs", "records")
    exposure, down, outages, _, repairs, records = float_columns(units, *columns)
    members, unit_number = exposure if has_exposure else repairs, units["unit"].to_numpy().astype(np.int64)
    block_columns = [units[name].to_numpy() for name in ("block", "blocks")] if units["block"].count() else []
    clusters = Clusters(stratum, members, strata.height, unit_number, *block_columns)
    limits = {
        "mtbf": mtbf_limits(clusters, exposure, outages, not is_grouped),
        "mttf": mtbf_limits(clusters, exposure - down, outages, not is_grouped),
        "mttr": mttr_limits(clusters, down, repairs),
        "availability": availability_limits(clusters, down, exposure),
        "records": mtbf_limits(clusters, 1000 * SECONDS_A_DAY * records, exposure, not is_grouped),
    }
    count = pl.col("unit").n_unique().cast(pl.Int64).alias("units")
    sums = units.group_by(keys, maintain_order=True).agg(count, (pl.col(columns) * pl.col("blocks").fill_null(1)).sum())
    for number, row in enumerate(sums.iter_rows(named=True)):
        intervals = {
            name: tuple(_none_if_infinite(bound[number]) for bound in bounds[:2]) for name, bounds in limits.items()
        }
        n_effective = float(clusters.effective[number])
        cluster_by = f"{unit} and {block}" if clusters.counts_blocks[number] else unit
        row |= {"cluster_by": cluster_by, "clusters": n_effective, "reasons": []}
        if n_effective < FEWEST:
            row["reasons"].append(too_few_reason(n_effective, unit))
        if not has_exposure:
            row |= dict.fromkeys(("units", "exposure_s"))
            row["reasons"].append(NOT_WATCHED)
        elif not row["exposure_s"]:
            row["reasons"].append(NO_EXPOSURE)
        else:
            _add_rates_and_availability(row, intervals)
        _add_mttr(row, intervals["mttr"])
        yield row


def _add_rates_and_availability(row: dict, limits: dict[str, tuple]) -> None:
    up, is_enough = row["exposure_s"] - row["down_s"], row["clusters"] >= FEWEST
    for name, time_s in (("mtbf", row["exposure_s"]), ("mttf", up)):
        row[f"{name}_ci_low_s"], high_s = garwood_interval(time_s, row["outages"], CONFIDENCE)
        if row["outages"]:
            row[f"{name}_s"], row[f"{name}_ci_high_s"] = time_s / row["outages"], high_s
            quantity = "time between outages" if is_enough else None
            _add_interval(row, limits[name], f"{name}_ci_{{}}_clustered_s", quantity)
    if not row["outages"]:
        row["reasons"].append(NO_OUTAGE)
    days = row["exposure_s"] / (1000 * SECONDS_A_DAY)
    low, high = (float(limit) for limit in poisson_limits(row["records"], CONFIDENCE))
    row["records_per_1000_unit_days"], row["records_ci_high"] = row["records"] / days, high / days
    if row["records"]:
        row["records_ci_low"] = low / days
        _add_interval(row, limits["records"], "records_ci_{}_clustered", "rate of records" if is_enough else None)
    if row["outages"] and not row["repairs"] and not row["down_s"]:
        row["reasons"].append("no outage is seen to last: no availability")
        return
    row["availability"] = up / row["exposure_s"]
    bounds, method = limits["availability"], BY_UNIT
    if not is_enough and (cycles := min(row["outages"], row["repairs"])) and row["down_s"]:
        bounds, method = exponential_availability(up, row["down_s"], cycles), EXPONENTIAL
    if row["down_s"] in (0, row["exposure_s"]):
        row["reasons"].append(NO_DOWN if up else "never up: no interval of the availability")
    elif _add_interval(row, bounds, "availability_ci_{}", "availability" if is_enough else None):
        row["availability_method"] = method


def _add_mttr(row: dict, bounds: tuple) -> None:
    if not row["repairs"]:
        row["reasons"].append(NO_REPAIR)
        return
    row["mttr_s"] = row["down_s"] / row["repairs"]
    if not row["down_s"]:
        row["reasons"].append(NO_TIME)
    else:
        _add_interval(row, bounds, "mttr_ci_{}_s", "mean repair" if row["clusters"] >= FEWEST else None)


def _add_interval(row: dict, bounds: tuple, names: str, quantity: str | None) -> bool:
    """Add both bounds or, for a `quantity`, the reason why they are missing; return whether they are known."""
    is_known = None not in bounds
    if is_known:
        row |= {names.format(side): value for side, value in zip(("low", "high"), bounds, strict=True)}
    elif quantity:
        row["reasons"].append(ONE_UNIT.format(quantity))
    return is_known


def _none_if_infinite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
