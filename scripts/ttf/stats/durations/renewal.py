"""Units that fail and are repaired, over and over: time between outages, time to repair, share of the time up.

Every estimate is a ratio of sums over the units of a stratum. Its spread is that of the units' influences on it, each
over 1 - h (`ttf.stats.clustered`); a few long outages carry most of a sum of down time, so that quantiles are Student's
with as many degrees of freedom as influences matter, (sum i^2)^2 / sum i^4 (the effective number that Kish 1965 has for
weights, of the squared influences). `docs/coverage.md` shows how often the intervals cover.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from scipy.special import fdtri

from ttf.stats.clustered import FEWEST, Clusters, Limits, too_few
from ttf.stats.durations.mttf import SECONDS_A_DAY, poisson_limits

CONFIDENCE = 0.95
# To which restricted means of repair are taken, where a repair is seen to last longer.
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
# How an interval of the availability was made.
BY_UNIT, EXPONENTIAL = "clustered", "exponential up and down times"


def mean_between(clusters: Clusters, time: np.ndarray, outages: np.ndarray, by_influence: bool = True) -> Limits:
    """The interval by stratum of time over outages, on the log scale; time and outages: of each cluster."""
    return clusters.ratio(time, outages, CONFIDENCE, both=True, by_influence=by_influence)


def mean_repair(clusters: Clusters, down: np.ndarray, repairs: np.ndarray) -> Limits:
    """The interval by stratum of down time over repairs, on the log scale; down and repairs: of each unit.

    Both also of outages under way when the watch began: what is not seen of these offsets what is not seen of those
    open at its end. Without them the interval of repairs of log SD 2 in docs/coverage.md covers 0.88 and not 0.95.
    """
    return clusters.ratio(down, repairs, CONFIDENCE, by_influence=True)


def availability(clusters: Clusters, down: np.ndarray, exposure: np.ndarray) -> Limits:
    """The interval by stratum of 1 - sum(down) / sum(exposure), on the logit scale; down, exposure: of each unit."""
    return clusters.proportion(exposure - down, exposure, CONFIDENCE, by_influence=True)


def exponential_availability(up: float, down: float, cycles: int) -> tuple[float, float]:
    """The 95 % interval of the availability where up and down times are exponential, of so many cycles, 1 or more.

    1 / (1 + r F) with r = down / up and F the quantiles with 2 n and 2 n degrees (Trivedi, Probability and Statistics
    with Reliability, Queuing and Computer Science Applications, 2nd ed., ch. 10).
    """
    quantile = fdtri(2 * cycles, 2 * cycles, (1 + CONFIDENCE) / 2)
    return up / (up + down * quantile), up / (up + down / quantile)


def repair_times(seconds: np.ndarray, ended: np.ndarray) -> dict:
    """Of times down (whole seconds; ended, or still open and so censored): n, open, median_s, p90_s, restricted_mean_s
    and its horizon_s, and reasons, a list of why any lacks.

    Kaplan-Meier; the median and the 90th percentile are the first times at which fewer than .5, .1 are still down, or
    midway to it from where exactly as many are (as in R's survival: the median of values none of which is censored).
    The horizon is HORIZON_S, or the longest time seen where that is shorter.
    """
    found = {"n": seconds.size, "open": int(seconds.size - ended.sum()), "reasons": []}
    if not seconds.size:
        return found
    if not (ended.any() or seconds.any()):
        return found | {"reasons": ["no one wrote when outages ended"]}
    # Sorted together, in a third of the time that it takes to find an order.
    packed = np.sort(2 * seconds + ended)
    at, first = np.unique(packed >> 1, return_index=True)
    repaired, at_risk = np.add.reduceat(packed & 1, first), seconds.size - first
    still = np.cumprod(1 - repaired / at_risk)
    for name, share in (("median_s", 0.5), ("p90_s", 0.1)):
        reached = np.flatnonzero((still <= share + ROUNDING) & (repaired > 0))[:2]
        if reached.size:
            ends = reached if abs(still[reached[0]] - share) <= ROUNDING else reached[:1]
            found[name] = float(at[ends].mean())
        else:
            found["reasons"].append(f"more than {share:.0%} are still down at the longest time seen")
    horizon = min(HORIZON_S, int(at[-1]))
    within = at < horizon
    steps = np.diff(np.concatenate(([0], at[within], [horizon])))
    mean = math.fsum(np.concatenate(([1.0], still[within])) * steps)
    return found | {"horizon_s": horizon, "restricted_mean_s": mean}


def estimates(units: pl.DataFrame, by: Sequence[str], unit: str, block: str, of_groups: bool = False) -> Iterator[dict]:
    """A row for each stratum, in order, with *by, the sums, and what `_rates` and `_repair` say, and a list of reasons.

    units: a row for each unit of a stratum, and each run of blocks of time that are alike, sorted by stratum: *by, unit
    (a number), block and blocks (`ttf.records.clusters.runs_of_steps`; blank where a row is the whole of a unit), and
    for each of these blocks exposure_s (all blank where nobody knows it), down_s, outages, under_way, repairs, records
    (Int64). unit, block: what a unit is called, and a block. of_groups: whether units are groups of them, so that the
    interval of time between outages is that of the mean time to failure of their lives.
    """
    strata = units.select(by).unique(maintain_order=True)
    place = units.select(by).join(strata.with_row_index("place"), on=by, how="left", maintain_order="left")["place"]
    watched = units["exposure_s"].null_count() == 0
    members = units["exposure_s" if watched else "repairs"].to_numpy().astype(float)
    in_time = [units[name].to_numpy() for name in ("block", "blocks")] if units["block"].count() else []
    place, unit_number = (values.to_numpy().astype(np.int64) for values in (place, units["unit"]))
    clusters = Clusters(place, members, strata.height, unit_number, *in_time)
    columns = ("exposure_s", "down_s", "outages", "under_way", "repairs", "records")
    exposure, down, outages, _, repairs, records = (units[name].to_numpy().astype(float) for name in columns)
    limits = {
        "mtbf": mean_between(clusters, exposure, outages, not of_groups),
        "mttf": mean_between(clusters, exposure - down, outages, not of_groups),
        "mttr": mean_repair(clusters, down, repairs),
        "availability": availability(clusters, down, exposure),
        "records": mean_between(clusters, 1000 * SECONDS_A_DAY * records, exposure, not of_groups),
    }
    count = pl.col("unit").n_unique().cast(pl.Int64).alias("units")
    sums = units.group_by(by, maintain_order=True).agg(count, (pl.col(columns) * pl.col("blocks").fill_null(1)).sum())
    for number, row in enumerate(sums.iter_rows(named=True)):
        of = {name: tuple(_known(end[number]) for end in ends[:2]) for name, ends in limits.items()}
        effective = float(clusters.effective[number])
        by_both = f"{unit} and {block}" if clusters.counts_blocks[number] else unit
        row |= {"cluster_by": by_both, "clusters": effective, "reasons": []}
        if effective < FEWEST:
            row["reasons"].append(too_few(effective, unit))
        if not watched:
            row |= dict.fromkeys(("units", "exposure_s"))
            row["reasons"].append(NOT_WATCHED)
        elif not row["exposure_s"]:
            row["reasons"].append(NO_EXPOSURE)
        else:
            _rates(row, of)
        _repair(row, of["mttr"])
        yield row


def _rates(row: dict, of: dict[str, tuple]) -> None:
    """Adds mtbf_s, mttf_s, records_per_1000_unit_days and availability with their intervals."""
    up, enough = row["exposure_s"] - row["down_s"], row["clusters"] >= FEWEST
    for name, time in (("mtbf", row["exposure_s"]), ("mttf", up)):
        low, high = _garwood(row["outages"])
        row[f"{name}_ci_low_s"] = time / high
        if row["outages"]:
            row[f"{name}_s"], row[f"{name}_ci_high_s"] = time / row["outages"], time / low
            _clustered(row, of[name], f"{name}_ci_{{}}_clustered_s", "time between outages" if enough else None)
    if not row["outages"]:
        row["reasons"].append(NO_OUTAGE)
    days = row["exposure_s"] / (1000 * SECONDS_A_DAY)
    low, high = _garwood(row["records"])
    row["records_per_1000_unit_days"], row["records_ci_high"] = row["records"] / days, high / days
    if row["records"]:
        row["records_ci_low"] = low / days
        _clustered(row, of["records"], "records_ci_{}_clustered", "rate of records" if enough else None)
    if row["outages"] and not row["repairs"] and not row["down_s"]:
        row["reasons"].append("no outage is seen to last: no availability")
        return
    row["availability"] = up / row["exposure_s"]
    ends, method = of["availability"], BY_UNIT
    if not enough and (cycles := min(row["outages"], row["repairs"])) and row["down_s"]:
        ends, method = exponential_availability(up, row["down_s"], cycles), EXPONENTIAL
    if row["down_s"] in (0, row["exposure_s"]):
        row["reasons"].append(NO_DOWN if up else "never up: no interval of the availability")
    elif _clustered(row, ends, "availability_ci_{}", "availability" if enough else None):
        row["availability_method"] = method


def _repair(row: dict, ends: tuple) -> None:
    """Adds mttr_s with its interval."""
    if not row["repairs"]:
        row["reasons"].append(NO_REPAIR)
        return
    row["mttr_s"] = row["down_s"] / row["repairs"]
    if not row["down_s"]:
        row["reasons"].append(NO_TIME)
    else:
        _clustered(row, ends, "mttr_ci_{}_s", "mean repair" if row["clusters"] >= FEWEST else None)


def _clustered(row: dict, ends: tuple, names: str, what: str | None) -> bool:
    """Adds both ends, or why they lack; what: None where that is said already."""
    known = None not in ends
    if known:
        row |= {names.format(end): value for end, value in zip(("low", "high"), ends, strict=True)}
    elif what:
        row["reasons"].append(ONE_UNIT.format(what))
    return known


def _garwood(events: int) -> tuple[float, float]:
    return tuple(float(limit) for limit in poisson_limits(np.int64(events), CONFIDENCE))


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
