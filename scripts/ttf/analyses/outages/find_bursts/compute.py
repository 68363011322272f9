"""Outages near each other in time and location compared with chance, and outages soon after a repair."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from ttf.analyses.outages.find_bursts import AGAIN_AFTER_REPAIR, BURSTS, OUTAGE_COUNTS
from ttf.records.clusters import number_keys
from ttf.records.inputs import Inputs
from ttf.stats.clustered import Clusters, add_limits
from ttf.stats.outages.nearness import (
    NEVER,
    jitter_times,
    longest_chain,
    nearest_gaps,
    permute_times,
    replicate_count,
    shift_times,
    sorted_nearest_gaps,
)
from ttf.stats.outages.units_down import list_spans

HOUR_S, DAY_S, WEEK_S = 3600, 86_400, 604_800
WINDOWS_S = (60, 1800, HOUR_S, DAY_S, WEEK_S, 30 * DAY_S)
AFTER_REPAIR_S = (HOUR_S, DAY_S, WEEK_S)
PERIODS_S = (HOUR_S, DAY_S, WEEK_S)
LOCATION_COLUMNS = ("node", "rack", "group", "kind")
READ_OF_OUTAGES = ("unit_id", *LOCATION_COLUMNS, "start_s", "end_s", "seen_until_s", "planned", "counted")
READ_OF_EXPOSURE = ("unit_id", "node", "rack", "group", "from_s", "until_s")
NO_OUTAGE = "no unplanned outage began while its unit was watched"
UNDEFINED_NULLS = {
    "unit": "an outage is a member of its own: nothing to shift",
    "fleet": "one place: nothing changes where times are exchanged",
}
DRIFTS = "the window is longer than the jitter: bursts are not told from a rate that drifts"
NOT_WATCHED = "the trace does not say which units were watched"


@dataclass(frozen=True)
class Events:
    """Outages by location: Int64 arrays with a row per outage.

    location, member, kind: number of the location, of its member (unit or node), and of the kind of outage, from 0.
    time_s: start. from_s, until_s: when the units of the location were observed.
    """

    location: np.ndarray
    member: np.ndarray
    kind: np.ndarray
    time_s: np.ndarray
    from_s: np.ndarray
    until_s: np.ndarray


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    outages = inputs.read("outages", READ_OF_OUTAGES).filter(~pl.col("planned"))
    exposure = inputs.read("exposure", READ_OF_EXPOSURE) if "exposure" in inputs else None
    counted_outages = outages.filter("counted").sort("start_s", "unit_id")
    seed, simulations, jitter_s = inputs.settings.seed, inputs.settings.simulations, inputs.settings.jitter_s
    bursts = (
        row
        for level, events in _events_by_location(counted_outages, exposure)
        for row in burst_rows(level, events, np.random.default_rng(seed), simulations, jitter_s)
    )
    return {
        "bursts": BURSTS.frame(bursts),
        "again_after_repair": again_after_repair(outages, exposure),
        "outage_counts": outage_counts(counted_outages, exposure),
    }


def _events_by_location(outages: pl.DataFrame, exposure: pl.DataFrame | None) -> Iterator[tuple[str, Events | str]]:
    """Yield unit, node, rack, group and fleet, each with its events, or the reason why it has none."""
    node, row_number = pl.coalesce("node", "unit_id"), pl.int_range(pl.len())
    exprs_by_level = {
        "unit": (pl.col("unit_id"), row_number),
        "node": (node, pl.col("unit_id")),
        "rack": (pl.col("rack"), node),
        "group": (pl.col("group"), node),
        "fleet": (pl.lit("all"), node),
    }
    for level, (location, member) in exprs_by_level.items():
        events = outages.with_columns(location=location, member=member).drop_nulls("location")
        n_places = events["location"].n_unique()
        if not outages.height:
            yield level, NO_OUTAGE
        elif not n_places:
            yield level, f"the trace does not say the {level}"
        elif level == "node" and n_places == events["unit_id"].n_unique():
            yield level, "no node has several units with outages"
        elif level in ("rack", "group") and n_places == 1:
            yield level, f"one {level} only: that is the fleet"
        else:
            yield level, _make_events(events, None if exposure is None else exposure.with_columns(location=location))


def _make_events(events: pl.DataFrame, exposure: pl.DataFrame | None) -> Events:
    """Return the outages of a level as arrays. Both tables have a location; without exposure, all time was observed."""
    if exposure is None:
        span = events.select("location", first=pl.col("start_s").min(), last=pl.col("start_s").max()).unique("location")
    else:
        span = exposure.group_by("location").agg(first=pl.col("from_s").min(), last=pl.col("until_s").max())
    spans = events.join(span, on="location", how="left", maintain_order="left").select("first", "last")
    keys = (["location"], ["location", "member"], ["kind"])
    location, member, kind = (number_keys(events.lazy(), names).to_numpy().astype(np.int64) for names in keys)
    time_s, first_s, last_s = events["start_s"].to_numpy(), spans["first"].to_numpy(), spans["last"].to_numpy()
    return Events(location, member, kind, time_s, first_s, last_s)


def burst_rows(level: str, events: Events | str, rng: np.random.Generator, draws: int, jitter_s: int) -> Iterator[dict]:
    """Yield a row of BURSTS for each of WINDOWS_S.

    level: unit, node, rack, group or fleet. events: outages by location, or the reason why there are none. draws:
    minimum number of simulations of each null hypothesis. jitter_s: largest time by which an outage is jittered.
    """
    if isinstance(events, str):
        yield from ({"location": level, "window_s": window, "n": 0, "reason": events} for window in WINDOWS_S)
        return
    location, member, time = events.location, events.member, events.time_s
    n = len(time)
    gaps, chain_gaps = nearest_gaps(location, member, time), nearest_gaps(location, np.arange(n), time)
    observed = events.from_s, events.until_s
    n_draws = replicate_count(n, draws)
    nulls = (
        # With one location exchanging times changes nothing; if each outage is a member, shifting changes nothing.
        None if level == "fleet" else permute_times(rng, time, events.kind, n_draws),
        None if level == "unit" else shift_times(rng, time, member, *observed, n_draws),
        jitter_times(rng, time, *observed, jitter_s, n_draws),
    )
    ranges = [_null_range(location, member, null) for null in nulls if null is not None]
    for index, window in enumerate(WINDOWS_S):
        is_near = gaps <= window
        clustered = _clustered_interval(is_near, *_outage_clusters(level, events, window))
        near = int(is_near.sum())
        is_testable = window <= jitter_s
        reasons = (UNDEFINED_NULLS.get(level), clustered.get("reason"), None if is_testable else DRIFTS)
        yield {
            "location": level,
            "window_s": window,
            "n": n,
            "near": near,
            "share": near / n,
            "chance": max(means[index] for means, _ in ranges),
            "is_burst": all(near / n > highs[index] for _, highs in ranges) if is_testable else None,
            "simulations": n_draws,
            "chain_share": int((chain_gaps <= window).sum()) / n,
            "longest_chain": longest_chain(location, time, window),
            **clustered,
            "reason": "; ".join(filter(None, reasons)) or None,
        }


def _null_range(
    location: np.ndarray, member: np.ndarray, simulations: Iterable[np.ndarray]
) -> tuple[list[float], list[float]]:
    """Return means and 97.5th percentiles of the shares at each of WINDOWS_S over the simulated times."""
    # Number members from 0 in each location.
    first_member = np.full(location.max() + 1, NEVER)
    np.minimum.at(first_member, location, member)
    gaps = (sorted_nearest_gaps(location, member - first_member[location], times) for times in simulations)
    shares = np.sort([[int((gap <= window).sum()) / len(gap) for window in WINDOWS_S] for gap in gaps], axis=0)
    high = shares[min(int(0.975 * len(shares)), len(shares) - 1)]
    return shares.mean(axis=0).tolist(), high.tolist()


def _outage_clusters(level: str, events: Events, window: int) -> tuple[np.ndarray, str]:
    """Return the cluster of each event and what it is: its location, or a period if there are few locations."""
    # One burst may contain a large part of all events of a location.
    if level in ("group", "fleet"):
        return (events.time_s - events.time_s.min()) // max(WEEK_S, window), "week" if window <= WEEK_S else "month"
    return events.location, level


def _clustered_interval(is_hit: np.ndarray, cluster: np.ndarray, cluster_by: str) -> dict:
    _, cluster = np.unique(cluster, return_inverse=True)
    sizes, hits = np.bincount(cluster).astype(float), np.bincount(cluster, weights=is_hit)
    clusters = Clusters.in_one_stratum(sizes)
    limits = add_limits(pl.DataFrame({"cluster_by": [cluster_by]}), *clusters.proportion(hits, sizes, 0.95))
    return limits.rename({"why_not": "reason"}).row(0, named=True)


def again_after_repair(outages: pl.DataFrame, exposure: pl.DataFrame | None) -> pl.DataFrame:
    """Count outages soon after a repair (AGAIN_AFTER_REPAIR).

    expected_own: a unit has k outages in its time up u, one of which was just repaired. If the other k - 1 are uniform,
    none falls in the next h with probability (1 - h / u)^(k - 1). expected_own is 1 less the mean over the repairs.
    """
    if exposure is None:
        return AGAIN_AFTER_REPAIR.frame({"within_s": within_s, "reason": NOT_WATCHED} for within_s in AFTER_REPAIR_S)
    spans = list_spans(outages, exposure).sort("unit", "start_s")
    watched_s = int((exposure["until_s"] - exposure["from_s"]).sum())
    n_outages, down_s = int(spans["inside"].sum()), int((spans["end_s"] - spans["start_s"]).sum())
    repairs = spans.with_columns(
        observed_s=pl.col("until_s") - pl.col("end_s"),
        next_s=pl.col("start_s").shift(-1).over("unit") - pl.col("end_s"),
        other_outages=pl.col("inside").sum().over("unit").cast(pl.Int64) - pl.col("inside").cast(pl.Int64),
        unit_down_s=(pl.col("end_s") - pl.col("start_s")).sum().over("unit"),
    ).filter("repaired")
    units = exposure.group_by("unit_id").agg(watched_s=(pl.col("until_s") - pl.col("from_s")).sum()).sort("unit_id")
    up_s = units["watched_s"].to_numpy()[repairs["unit"].to_numpy()] - repairs["unit_down_s"].to_numpy()
    repairs = repairs.with_columns(up_s=up_s)
    rows = []
    for within_s in AFTER_REPAIR_S:
        observed_repairs = repairs.filter(pl.col("observed_s") >= max(within_s, 1))
        if not observed_repairs.height:
            reason = "no unit was watched for so long after a repair"
            rows.append({"within_s": within_s, "repairs": 0, "again": 0, "reason": reason})
            continue
        is_again = (observed_repairs["next_s"] <= within_s).fill_null(False).to_numpy()
        up_s, k = observed_repairs["up_s"].to_numpy(), observed_repairs["other_outages"].to_numpy()
        p_none = np.maximum(1 - within_s / up_s, 0) ** k
        rows.append(
            {
                "within_s": within_s,
                "repairs": observed_repairs.height,
                "again": int(is_again.sum()),
                "observed": int(is_again.sum()) / observed_repairs.height,
                "expected_fleet": float(-np.expm1(-within_s * n_outages / (watched_s - down_s))),
                "expected_own": float(1 - p_none.mean()),
                **_clustered_interval(is_again, observed_repairs["unit"].to_numpy(), "unit"),
            }
        )
    return AGAIN_AFTER_REPAIR.frame(rows)


def outage_counts(outages: pl.DataFrame, exposure: pl.DataFrame | None) -> pl.DataFrame:
    """Count outages per period (OUTAGE_COUNTS) over the observed time, else from the first outage to the last."""
    if not outages.height:
        return OUTAGE_COUNTS.frame({"period_s": period, "reason": NO_OUTAGE} for period in PERIODS_S)
    times = outages["start_s"].to_numpy()
    first, last = int(times.min()), int(times.max())
    if exposure is not None:
        first, last = exposure.select(pl.col("from_s").min(), pl.col("until_s").max()).row(0)
    rows = []
    for period in PERIODS_S:
        periods = (last - first) // period
        period_index = (times - first) // period
        counts = np.bincount(period_index[period_index < periods], minlength=periods)
        n = int(counts.sum())
        row: dict[str, float | str] = {"period_s": period, "periods": periods, "n": n}
        if periods < 2 or not n:
            rows.append(row | {"reason": "fewer than two such periods" if periods < 2 else "no outage began in them"})
            continue
        variance = (int((counts**2).sum()) - n * n / periods) / (periods - 1)
        moments = {"mean": n / periods, "dispersion": variance * periods / n}
        rows.append(row | moments | {"most": int(counts.max())})
    return OUTAGE_COUNTS.frame(rows)
