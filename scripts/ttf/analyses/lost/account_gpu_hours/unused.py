"""GPU time that no attempt used: down, out of service, or free, while jobs waited or not.

All of it is whole numbers. A quantity over time is a step function: the seconds at which it changes, ascending, and
its value from each on.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from ttf.analyses.lost.account_gpu_hours import ABOVE, DOWN, FREE, FREE_WAITED, MAINTENANCE, NOT_WATCHED
from ttf.analyses.queue.reconstruct_occupancy.holdings import GPU, Holdings
from ttf.records.jobs import whole_gpus
from ttf.records.outages.outage_records import of_nodes
from ttf.stats.basics.order import distinct, first_of_each, order_by, running

# So much of the time is accounted for by itself.
WINDOW_S = 7 * 86_400
_LONG_BEFORE = np.iinfo(np.int64).min
# Why a server cannot be used; where several hold, the first.
AWAY = (DOWN, MAINTENANCE, NOT_WATCHED)


@dataclass(frozen=True)
class Steps:
    """A step function of the time, 0 before its first second."""

    times_s: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, times_s: np.ndarray, changes: np.ndarray) -> "Steps":
        return cls(*running(np.asarray(times_s, np.int64), np.asarray(changes, np.int64)))

    def at(self, times_s: np.ndarray) -> np.ndarray:
        """The value from each of these seconds on."""
        return np.append(0, self.values)[np.searchsorted(self.times_s, times_s, side="right")]


# Seconds, in any order, and how much more there is from each on.
Changes = tuple[np.ndarray, np.ndarray]
NOTHING = np.zeros(0, np.int64), np.zeros(0, np.int64)


def changes_of(from_s: pl.Series, until_s: pl.Series, milli: pl.Series) -> Changes:
    """Of so many milli-GPU, each from one second to below another."""
    milli = milli.to_numpy()
    return np.concatenate([from_s.to_numpy(), until_s.to_numpy()]), np.append(milli, -milli)


def waiting(jobs: pl.LazyFrame) -> Changes | None:
    """Milli-GPU that waiting jobs request: from when they may start to their first start; None where no one knows.

    What never started waits until it was cancelled, or to the end of the trace.
    """
    there = jobs.collect_schema()
    begun = pl.max_horizontal("submit_s", "eligible_s") if "eligible_s" in there else pl.col("submit_s")
    gave_up = pl.when(pl.col("outcome") != "running").then("end_s")
    to_the_end = pl.when(pl.col("outcome") == "waiting").then("trace_end_s")
    waits = jobs.filter(whole_gpus() > 0, pl.col("submit_s").is_not_null()).select(
        begun=begun,
        until=pl.coalesce("start_s", gave_up, to_the_end),
        milli=pl.col("gpu_milli") * pl.col("size"),
    )
    waits = waits.drop_nulls().collect(engine="streaming")
    if waits.is_empty():
        return None
    waits = waits.filter(pl.col("begun") < pl.col("until"))
    return changes_of(waits["begun"], waits["until"], waits["milli"])


@dataclass(frozen=True)
class Away:
    """capacity_milli: of all servers; changes: of AWAY, milli-GPU that are in no use; unsized: servers on which no GPU

    is known, as no table says, and none was in use.
    """

    capacity_milli: int
    changes: Sequence[Changes]
    unsized: int


def intervals(outages: pl.DataFrame, exposure: pl.DataFrame | None, begin_s: int, end_s: int) -> pl.DataFrame:
    """node, kind (the place in AWAY), start_s, end_s: when servers were away, within the window; may overlap.

    Outages of servers count, not those of their parts.
    """
    kind = pl.when("planned").then(AWAY.index(MAINTENANCE)).otherwise(AWAY.index(DOWN))
    parts = [of_nodes(outages).select("node", start_s="start_s", end_s="seen_until_s", kind=kind.cast(pl.Int8))]
    if exposure is not None:
        watched = of_nodes(exposure).sort("node", "from_s")
        so_far = pl.col("until_s").cum_max().over("node")
        gaps = [
            watched.select("node", start_s=so_far.shift(1).over("node").fill_null(begin_s), end_s="from_s"),
            watched.group_by("node").agg(start_s=pl.col("until_s").max(), end_s=pl.lit(end_s)),
        ]
        parts += [gap.with_columns(kind=pl.lit(AWAY.index(NOT_WATCHED), pl.Int8)) for gap in gaps]
    inside = {name: pl.col(name).cast(pl.Int64).clip(begin_s, end_s) for name in ("start_s", "end_s")}
    every = pl.concat([part.select("node", "kind", **inside) for part in parts])
    return every.filter(pl.col("start_s") < pl.col("end_s")).sort("node", "kind", "start_s", "end_s")


def away(held: Holdings, spans: pl.DataFrame, watched: pl.Series) -> Away:
    """What servers hold, and what of it was away. held: what was in use of each; spans: `intervals`; watched: names of

    servers that there are besides those that the table of nodes or placements name.
    """
    number, others = (
        names.select(held.names.of(pl.col("node")).cast(pl.Int64)).to_series().to_numpy()
        for names in (spans, watched.to_frame("node"))
    )
    kind, start, end = (spans[name].to_numpy() for name in ("kind", "start_s", "end_s"))
    parts, last = held.by_server.parts, max(number.max(initial=-1), others.max(initial=-1))
    capacity = np.append(held.known_milli, np.zeros(max(0, last + 1 - held.known_milli.size), np.int64))
    found = [([], []) for _ in AWAY]
    for part in range(parts):
        mine = number % parts == part
        node, _, since, until, gpu, *_ = held.by_server.read(part)
        of_part = (number[mine] // parts, kind[mine], start[mine], end[mine])
        for (times, milli), changes in zip(
            found, _swept((node // parts, since, until, gpu), of_part, capacity[part::parts]), strict=True
        ):
            times.append(changes[0])
            milli.append(changes[1])
    changes = [(np.concatenate(times), np.concatenate(milli)) for times, milli in found]
    return Away(int(capacity.sum()), changes, int((capacity[others] == 0).sum()))


def _swept(
    holding: Sequence[np.ndarray], spans: Sequence[np.ndarray], capacity_milli: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """(seconds, change in what is away and in no use) of each of AWAY, over some servers.

    holding: server, start, end, milli-GPU of placements; spans: server, kind, start, end. capacity_milli: of each
    server; written to: where it is 0 it becomes the most that was in use at once, rounded up to whole GPUs.
    """
    node, start, end, gpu = holding
    away_node, kind, from_s, to_s = spans
    nodes = np.concatenate([node, node, away_node, away_node])
    if not nodes.size:
        return [(np.zeros(0, np.int64), np.zeros(0, np.int64)) for _ in AWAY]
    times = np.concatenate([start, end, from_s, to_s])
    order = order_by(nodes, times)
    nodes, times = nodes[order], times[order]
    last = np.append(first_of_each(nodes, times)[1:], order.size) - 1

    def from_each_on(*parts: np.ndarray) -> np.ndarray:
        return np.cumsum(np.concatenate(parts)[order])[last]

    held, gone = np.zeros(2 * node.size, np.int64), np.zeros(2 * away_node.size, np.int64)
    used = from_each_on(gpu, -gpu, gone)
    node_at, time_at = nodes[last], times[last]
    first = first_of_each(node_at)
    server, highest = node_at[first], -(-np.maximum.reduceat(used, first) // GPU) * GPU
    capacity_milli[server] = np.where(capacity_milli[server] > 0, capacity_milli[server], highest)
    rest = np.maximum(capacity_milli[node_at] - used, 0)
    found = []
    for place in range(len(AWAY)):
        of_kind = (kind == place).astype(np.int64)
        is_away = from_each_on(held, of_kind, -of_kind) > 0
        value = rest * is_away
        # What is away for one reason is not for the next as well. At the end of a server nothing is.
        rest = rest * ~is_away
        change = np.diff(value, prepend=0)
        found.append((time_at[change != 0], change[change != 0]))
    return found


def account_by_windows(
    used: Changes,
    capacity_milli: int,
    away_milli: Sequence[Changes],
    waits: Changes | None,
    edges_s: Sequence[int],
    window_s: int = WINDOW_S,
) -> dict[str, list[int]]:
    """`account_of` of what is in use, away and waited for, each window of the time by itself.

    What a window is told are the changes in it, and what there was at its beginning.
    """
    every = [used, *away_milli, *([] if waits is None else [waits])]
    # What was before the first edge is as if it were at it.
    inside = [(np.clip(times, edges_s[0], edges_s[-1]), change) for times, change in every]
    places = [(times - edges_s[0]) // window_s for times, _ in inside]
    # A window begins only where something changes in it.
    first = distinct(np.zeros(1, np.int64), *places)
    parts = zip(*(_in_windows(place, *of, first) for place, of in zip(places, inside, strict=True)), strict=True)
    begins = (edges_s[0] + first * window_s).tolist()
    sums = defaultdict(lambda: [0] * (len(edges_s) - 1))
    for (begin, end), of_window in zip(pairwise([*begins, edges_s[-1]]), parts, strict=True):
        if begin == end:
            continue
        edges = [begin, *(edge for edge in edges_s if begin < edge < end), end]
        in_use, *others = (Steps.of(*changes) for changes in of_window)
        waited = None if waits is None else others.pop()
        for name, values in account_of(in_use, capacity_milli, others, waited, edges).items():
            for month, value in enumerate(values, start=bisect_right(edges_s, begin) - 1):
                sums[name][month] += value
    return dict(sums)


def _in_windows(place: np.ndarray, times: np.ndarray, changes: np.ndarray, first: np.ndarray) -> Iterator[Changes]:
    """The changes in each window, before them what there is when it begins."""
    # As few bits as they need: these are sorted fastest.
    order = np.argsort(place.astype(np.min_scalar_type(int(first[-1]))), kind="stable")
    place, times, changes = place[order], times[order], changes[order]
    level = 0
    for begin, end in pairwise([0, *np.searchsorted(place, first, side="right").tolist()]):
        yield np.append(_LONG_BEFORE, times[begin:end]), np.append(level, changes[begin:end])
        level += int(changes[begin:end].sum())


def account_of(
    used: Steps, capacity_milli: int, away_milli: Sequence[Steps], waits: Steps | None, edges_s: Sequence[int]
) -> dict[str, list[int]]:
    """Milli-GPU seconds of each category that is no attempt's, in each month: from one edge to the next.

    Together with what is used they are the capacity times the time: what is used above what is there is ABOVE, not
    above 0. Of free GPUs as many as waiting jobs request are FREE_WAITED, the others FREE, as all are where `waits` is
    None: a job that waits for ever counts with its own GPUs alone.
    """
    edges = np.asarray(edges_s, np.int64)
    changes = [of.times_s for of in (used, *away_milli, *([] if waits is None else [waits]))]
    times = distinct(edges, *(of[(edges[0] < of) & (of < edges[-1])] for of in changes))
    seconds, begins = np.diff(times), times[:-1]
    month = np.searchsorted(edges, begins, side="right") - 1
    gone = [of.at(begins) for of in away_milli]
    rest = capacity_milli - sum(gone) - used.at(begins)
    free = np.maximum(rest, 0)
    waited = np.minimum(free, 0 if waits is None else waits.at(begins))
    milli = dict(zip(AWAY, gone, strict=True)) | {FREE_WAITED: waited, FREE: free - waited}
    milli[ABOVE] = np.minimum(rest, 0)
    first = np.flatnonzero(np.diff(month, prepend=-1))
    return {name: np.add.reduceat(value * seconds, first).tolist() for name, value in milli.items()}
