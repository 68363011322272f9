"""Outages near each other in time and place, against what chance makes of them; outages soon after a repair."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from ttf.analyses.outages.find_bursts import AGAIN_AFTER_REPAIR, BURSTS, OUTAGE_COUNTS
from ttf.analyses.shared.outages.nearness import (
    NEVER,
    by_chance,
    jittered,
    longest_chain,
    nearest,
    nearest_sorted,
    others_in_place,
    permuted,
    replicates,
    shifted,
)
from ttf.analyses.shared.outages.units_down import spans_of
from ttf.records.clusters import numbers_of
from ttf.records.inputs import Inputs
from ttf.stats.clustered import Clusters, with_limits

HOUR_S, DAY_S, WEEK_S = 3600, 86_400, 604_800
WINDOWS_S = (60, 1800, HOUR_S, DAY_S, WEEK_S, 30 * DAY_S)
AFTER_REPAIR_S = (HOUR_S, DAY_S, WEEK_S)
PERIODS_S = (HOUR_S, DAY_S, WEEK_S)
PLACES = ("node", "rack", "group", "kind")
READ_OF_OUTAGES = ("unit_id", *PLACES, "start_s", "end_s", "seen_until_s", "planned", "counted")
READ_OF_EXPOSURE = ("unit_id", "node", "rack", "group", "from_s", "until_s")
NO_OUTAGE = "no unplanned outage began while its unit was watched"
UNTOLD = {
    "unit": "an outage is a member of its own: nothing to shift",
    "fleet": "one place: nothing changes where times are exchanged",
}
DRIFTS = "the window is longer than the jitter: bursts are not told from a rate that drifts"
NOT_WATCHED = "the trace does not say which units were watched"


@dataclass(frozen=True)
class Events:
    """Outages by the place that others are looked for in. An Int64 each: numbers of place, of member of the place and
    of kind, from 0 on; start (s); between when the units of the place were watched (s)."""

    place: np.ndarray
    member: np.ndarray
    kind: np.ndarray
    time_s: np.ndarray
    from_s: np.ndarray
    until_s: np.ndarray


def compute(given: Inputs) -> dict[str, pl.DataFrame]:
    outages = given.read("outages", READ_OF_OUTAGES).filter(~pl.col("planned"))
    exposure = given.read("exposure", READ_OF_EXPOSURE) if "exposure" in given else None
    counted = outages.filter("counted").sort("start_s", "unit_id")
    seed, asked, jitter_s = given.settings.seed, given.settings.simulations, given.settings.jitter_s
    bursts = (
        row
        for within, events in _places(counted, exposure)
        for row in burst_rows(within, events, np.random.default_rng(seed), asked, jitter_s)
    )
    return {
        "bursts": BURSTS.frame(bursts),
        "again_after_repair": again_after_repair(outages, exposure),
        "outage_counts": outage_counts(counted, exposure),
    }


def _places(outages: pl.DataFrame, exposure: pl.DataFrame | None) -> Iterator[tuple[str, Events | str]]:
    """(unit, node, rack, group or fleet; its events, or why it has none)."""
    node, itself = pl.coalesce("node", "unit_id"), pl.int_range(pl.len())
    ways = {
        "unit": (pl.col("unit_id"), itself),
        "node": (node, pl.col("unit_id")),
        "rack": (pl.col("rack"), node),
        "group": (pl.col("group"), node),
        "fleet": (pl.lit("all"), node),
    }
    for within, (place, member) in ways.items():
        events = outages.with_columns(place=place, member=member).drop_nulls("place")
        places = events["place"].n_unique()
        if not outages.height:
            yield within, NO_OUTAGE
        elif not places:
            yield within, f"the trace does not say the {within}"
        elif within == "node" and places == events["unit_id"].n_unique():
            yield within, "no node has several units with outages"
        elif within in ("rack", "group") and places == 1:
            yield within, f"one {within} only: that is the fleet"
        else:
            yield within, _events(events, None if exposure is None else exposure.with_columns(place=place))


def _events(events: pl.DataFrame, exposure: pl.DataFrame | None) -> Events:
    """events: with place and member; exposure: with place, None where no one knows who was watched: all the while."""
    if exposure is None:
        span = events.select("place", first=pl.col("start_s").min(), last=pl.col("start_s").max()).unique("place")
    else:
        span = exposure.group_by("place").agg(first=pl.col("from_s").min(), last=pl.col("until_s").max())
    spans = events.join(span, on="place", how="left", maintain_order="left").select("first", "last")
    keys = (["place"], ["place", "member"], ["kind"])
    numbered = (numbers_of(events.lazy(), columns).to_numpy().astype(np.int64) for columns in keys)
    return Events(*numbered, events["start_s"].to_numpy(), *(spans[name].to_numpy() for name in ("first", "last")))


def burst_rows(
    within: str, events: Events | str, rng: np.random.Generator, asked: int, jitter_s: int
) -> Iterator[dict]:
    """A row of BURSTS for each of WINDOWS_S. events: those of the place, or why there are none."""
    if isinstance(events, str):
        yield from ({"within": within, "window_s": window, "n": 0, "reason": events} for window in WINDOWS_S)
        return
    place, member, time = events.place, events.member, events.time_s
    n, others = len(time), others_in_place(place, member)
    gap, in_chain = nearest(place, member, time), nearest(place, np.arange(n), time)
    times = replicates(n, asked)
    nulls = {
        # Where there is one place, exchanged times are the same; where a member is one outage, so are shifted ones.
        "null_permuted": None if within == "fleet" else permuted(rng, time, events.kind, times),
        "null_shifted": None if within == "unit" else shifted(rng, time, member, events.from_s, events.until_s, times),
        "null_jittered": jittered(rng, time, events.from_s, events.until_s, jitter_s, times),
    }
    ends = {name: _ends(place, member, null) for name, null in nulls.items() if null is not None}
    for number, window in enumerate(WINDOWS_S):
        near = gap <= window
        clustered = _clustered(near, *_clusters(within, events, window))
        share = int(near.sum()) / n
        told = window <= jitter_s
        reasons = (UNTOLD.get(within), clustered.get("reason"), None if told else DRIFTS)
        yield {
            "within": within,
            "window_s": window,
            "n": n,
            "near": int(near.sum()),
            "share": share,
            "null_uniform": float(by_chance(others, time, events.from_s, events.until_s, window).mean()),
            **{f"{name}{end}": shares[number] for name, found in ends.items() for end, shares in found.items()},
            "chance": max(found[""][number] for found in ends.values()),
            "is_burst": all(share > found["_high"][number] for found in ends.values()) if told else None,
            "simulations": times,
            "chain_share": int((in_chain <= window).sum()) / n,
            "longest_chain": longest_chain(place, time, window),
            **clustered,
            "reason": "; ".join(filter(None, reasons)) or None,
        }


def _ends(place: np.ndarray, member: np.ndarray, moved: Iterable[np.ndarray]) -> dict[str, list[float]]:
    """Mean, 2.5th and 97.5th percentile of the shares at each of WINDOWS_S over the times as moved about."""
    # Members counted anew in each place.
    fewest = np.full(place.max() + 1, NEVER)
    np.minimum.at(fewest, place, member)
    gaps = (nearest_sorted(place, member - fewest[place], times) for times in moved)
    shares = np.sort([[int((gap <= window).sum()) / len(gap) for window in WINDOWS_S] for gap in gaps], axis=0)
    low, high = (shares[min(int(share * len(shares)), len(shares) - 1)] for share in (0.025, 0.975))
    return {"": shares.mean(axis=0).tolist(), "_low": low.tolist(), "_high": high.tolist()}


def _clusters(within: str, events: Events, window: int) -> tuple[np.ndarray, str]:
    """(cluster of each event, what it is): its place; or where places are few the week (of longer windows as long a
    time) that it lies in, as one burst may hold a part of all."""
    if within in ("group", "fleet"):
        return (events.time_s - events.time_s.min()) // max(WEEK_S, window), "week" if window <= WEEK_S else "month"
    return events.place, within


def _clustered(hit: np.ndarray, cluster: np.ndarray, by: str) -> dict:
    """The columns of the clustered interval of a share, and why it lacks."""
    _, cluster = np.unique(cluster, return_inverse=True)
    whole, part = np.bincount(cluster).astype(float), np.bincount(cluster, weights=hit)
    clusters = Clusters(np.zeros(len(whole), np.int64), whole, 1)
    limits = with_limits(pl.DataFrame({"cluster_by": [by]}), *clusters.proportion(part, whole, 0.95))
    return limits.rename({"why_not": "reason"}).row(0, named=True)


def again_after_repair(outages: pl.DataFrame, exposure: pl.DataFrame | None) -> pl.DataFrame:
    """AGAIN_AFTER_REPAIR. expected_own: with k outages of the unit in its time up u, one of which was just repaired,
    the other k - 1 leave the next h free with (1 - h / u)^(k - 1) if they fell anywhere: the mean over the repairs."""
    if exposure is None:
        return AGAIN_AFTER_REPAIR.frame({"within_s": h, "reason": NOT_WATCHED} for h in AFTER_REPAIR_S)
    spans = spans_of(outages, exposure).sort("unit", "start_s")
    watched_s = (exposure["until_s"] - exposure["from_s"]).sum()
    began, down_s = spans["inside"].sum(), (spans["end_s"] - spans["start_s"]).sum()
    following = pl.col("start_s").shift(-1).over("unit")
    repairs = spans.with_columns(
        left_s=pl.col("until_s") - pl.col("end_s"),
        next_s=following - pl.col("end_s"),
        others=pl.col("inside").sum().over("unit").cast(pl.Int64) - pl.col("inside").cast(pl.Int64),
        unit_down_s=(pl.col("end_s") - pl.col("start_s")).sum().over("unit"),
    ).filter("repaired")
    units = exposure.group_by("unit_id").agg(watched_s=(pl.col("until_s") - pl.col("from_s")).sum()).sort("unit_id")
    up_s = units["watched_s"].to_numpy()[repairs["unit"].to_numpy()] - repairs["unit_down_s"].to_numpy()
    repairs = repairs.with_columns(up_s=up_s)
    rows = []
    for h in AFTER_REPAIR_S:
        mine = repairs.filter(pl.col("left_s") >= max(h, 1))
        if not mine.height:
            why = "no unit was watched for so long after a repair"
            rows.append({"within_s": h, "repairs": 0, "again": 0, "reason": why})
            continue
        again = (mine["next_s"] <= h).fill_null(False).to_numpy()
        free = np.maximum(1 - h / mine["up_s"].to_numpy(), 0) ** mine["others"].to_numpy()
        rows.append(
            {
                "within_s": h,
                "repairs": mine.height,
                "again": int(again.sum()),
                "observed": int(again.sum()) / mine.height,
                "expected_fleet": float(-np.expm1(-h * began / (watched_s - down_s))),
                "expected_own": float(1 - free.mean()),
                **_clustered(again, mine["unit"].to_numpy(), "unit"),
            }
        )
    return AGAIN_AFTER_REPAIR.frame(rows)


def outage_counts(outages: pl.DataFrame, exposure: pl.DataFrame | None) -> pl.DataFrame:
    """OUTAGE_COUNTS, while any unit was watched; where no one knows, from the first outage to the last."""
    if not outages.height:
        return OUTAGE_COUNTS.frame({"period_s": period, "reason": NO_OUTAGE} for period in PERIODS_S)
    times = outages["start_s"].to_numpy()
    first, last = (
        (times.min(), times.max()) if exposure is None else (exposure["from_s"].min(), exposure["until_s"].max())
    )
    rows = []
    for period in PERIODS_S:
        periods = int((last - first) // period)
        place = (times - first) // period
        counts = np.bincount(place[place < periods], minlength=periods)
        n = int(counts.sum())
        row = {"period_s": period, "periods": periods, "n": n}
        if periods < 2 or not n:
            rows.append(row | {"reason": "fewer than two such periods" if periods < 2 else "no outage began in them"})
            continue
        variance = (int((counts**2).sum()) - n * n / periods) / (periods - 1)
        told = {"mean": n / periods, "variance": variance, "dispersion": variance * periods / n}
        rows.append(row | told | {"most": int(counts.max())})
    return OUTAGE_COUNTS.frame(rows)
