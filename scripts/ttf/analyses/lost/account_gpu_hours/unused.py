"""GPU time that no attempt used: down, out of service, or free, while jobs waited or not.

All values are whole numbers. A quantity over time is a step function: the seconds at which it changes, ascending, and
its value from each of them on.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from ttf.analyses.lost.account_gpu_hours import ABOVE_CAPACITY, DOWN, FREE, FREE_WAITED, MAINTENANCE, NOT_WATCHED
from ttf.records.gpu_allocations import GPU, GpuAllocations
from ttf.records.jobs import whole_gpus
from ttf.records.outages.outage_records import select_nodes
from ttf.stats.basics.order import cumulate_changes, distinct_values, run_starts, sort_order

# Length of the windows that are accounted for one by one.
WINDOW_S = 7 * 86_400
_LONG_BEFORE = np.iinfo(np.int64).min
# Why a server cannot be used; if several reasons hold, the first counts.
UNAVAILABLE_KINDS = (DOWN, MAINTENANCE, NOT_WATCHED)


@dataclass(frozen=True)
class Steps:
    """A step function of time, 0 before its first second."""

    times_s: np.ndarray
    values: np.ndarray

    @classmethod
    def from_changes(cls, times_s: np.ndarray, changes: np.ndarray) -> "Steps":
        return cls(*cumulate_changes(np.asarray(times_s, np.int64), np.asarray(changes, np.int64)))

    def values_at(self, times_s: np.ndarray) -> np.ndarray:
        return np.append(0, self.values)[np.searchsorted(self.times_s, times_s, side="right")]


# Seconds, in any order, and the change at each.
Changes = tuple[np.ndarray, np.ndarray]
NO_CHANGES = np.zeros(0, np.int64), np.zeros(0, np.int64)


def usage_changes(from_s: pl.Series, until_s: pl.Series, milli: pl.Series) -> Changes:
    """Return the changes of milli-GPU in use: each interval adds its GPUs at `from_s` and frees them at `until_s`."""
    return np.concatenate([from_s.to_numpy(), until_s.to_numpy()]), np.append(milli.to_numpy(), -milli.to_numpy())


def waiting_gpus(jobs: pl.LazyFrame) -> Changes | None:
    """Return the changes in the milli-GPU that waiting jobs request; None if no job has the times.

    A job waits from when it may start to its first start. A job that never started waits until it is cancelled, or to
    the end of the trace.
    """
    columns = jobs.collect_schema()
    wait_from_s = pl.max_horizontal("submit_s", "eligible_s") if "eligible_s" in columns else pl.col("submit_s")
    cancelled_s = pl.when(pl.col("outcome") != "running").then("end_s")
    trace_end_s = pl.when(pl.col("outcome") == "waiting").then("trace_end_s")
    wait_rows = (
        jobs.filter(whole_gpus() > 0, pl.col("submit_s").is_not_null())
        .select(
            from_s=wait_from_s,
            until_s=pl.coalesce("start_s", cancelled_s, trace_end_s),
            milli=pl.col("gpu_milli") * pl.col("size"),
        )
        .drop_nulls()
        .collect(engine="streaming")
    )
    if wait_rows.is_empty():
        return None
    wait_rows = wait_rows.filter(pl.col("from_s") < pl.col("until_s"))
    return usage_changes(wait_rows["from_s"], wait_rows["until_s"], wait_rows["milli"])


@dataclass(frozen=True)
class Unavailable:
    """GPUs of the servers that nobody could use.

    capacity_milli: of all servers; changes: unused milli-GPU by kind, in the order of UNAVAILABLE_KINDS;
    unsized: number of servers without a known GPU, in tables or in use.
    """

    capacity_milli: int
    changes: Sequence[Changes]
    unsized: int


def unavailable_intervals(
    outages: pl.DataFrame, exposure: pl.DataFrame | None, begin_s: int, end_s: int
) -> pl.DataFrame:
    """Return node, kind (index in UNAVAILABLE_KINDS), start_s, end_s of when servers were unavailable.

    Intervals are clipped to the window and may overlap. Outages of whole servers count, those of their parts do not.
    """
    kind = pl.when("planned").then(UNAVAILABLE_KINDS.index(MAINTENANCE)).otherwise(UNAVAILABLE_KINDS.index(DOWN))
    parts = [select_nodes(outages).select("node", start_s="start_s", end_s="seen_until_s", kind=kind.cast(pl.Int8))]
    if exposure is not None:
        watched = select_nodes(exposure).sort("node", "from_s")
        latest_until_s = pl.col("until_s").cum_max().over("node")
        gaps = [
            watched.select("node", start_s=latest_until_s.shift(1).over("node").fill_null(begin_s), end_s="from_s"),
            watched.group_by("node").agg(start_s=pl.col("until_s").max(), end_s=pl.lit(end_s)),
        ]
        parts += [gap.with_columns(kind=pl.lit(UNAVAILABLE_KINDS.index(NOT_WATCHED), pl.Int8)) for gap in gaps]
    clipped_times = {name: pl.col(name).cast(pl.Int64).clip(begin_s, end_s) for name in ("start_s", "end_s")}
    all_intervals = pl.concat([part.select("node", "kind", **clipped_times) for part in parts])
    return all_intervals.filter(pl.col("start_s") < pl.col("end_s")).sort("node", "kind", "start_s", "end_s")


def measure_unavailable(allocations: GpuAllocations, spans: pl.DataFrame, watched: pl.Series) -> Unavailable:
    """Measure the capacity of the servers and what of it was unavailable.

    allocations: the GPUs in use on each server; spans: from `unavailable_intervals`; watched: names of further servers,
    beside those in the table of nodes or the placements.
    """
    span_servers, watched_servers = (
        names.select(allocations.names.encode(pl.col("node")).cast(pl.Int64)).to_series().to_numpy()
        for names in (spans, watched.to_frame("node"))
    )
    span_values = [spans[name].to_numpy() for name in ("kind", "start_s", "end_s")]
    n_parts, known_milli = allocations.by_server.parts, allocations.known_milli
    n_servers = 1 + max(span_servers.max(initial=-1), watched_servers.max(initial=-1))
    capacity = np.append(known_milli, np.zeros(max(0, n_servers - known_milli.size), np.int64))
    changes_by_part = []
    for part in range(n_parts):
        is_in_part = span_servers % n_parts == part
        node, _, start_s, end_s, gpu, *_ = allocations.by_server.read(part)
        part_spans = (span_servers[is_in_part] // n_parts, *(values[is_in_part] for values in span_values))
        part_allocations = (node // n_parts, start_s, end_s, gpu)
        changes_by_part.append(_sweep_servers(part_allocations, part_spans, capacity[part::n_parts]))
    kind_changes = (zip(*parts, strict=True) for parts in zip(*changes_by_part, strict=True))
    changes = [(np.concatenate(times), np.concatenate(milli)) for times, milli in kind_changes]
    return Unavailable(int(capacity.sum()), changes, int((capacity[watched_servers] == 0).sum()))


def _sweep_servers(
    allocations: Sequence[np.ndarray], spans: Sequence[np.ndarray], capacity_milli: np.ndarray
) -> list[Changes]:
    """Return, for each kind, the seconds and changes in milli-GPU that are unavailable and unused, of some servers.

    allocations: server, start, end, milli-GPU; spans: server, kind, start, end. `capacity_milli` of each server
    is updated in place: 0 becomes the most GPUs in use at once, rounded up to whole GPUs.
    """
    alloc_server, start, end, gpu = allocations
    span_server, kind, from_s, to_s = spans
    servers = np.concatenate([alloc_server, alloc_server, span_server, span_server])
    if not servers.size:
        return [NO_CHANGES for _ in UNAVAILABLE_KINDS]
    times = np.concatenate([start, end, from_s, to_s])
    order = sort_order(servers, times)
    servers, times = servers[order], times[order]
    last_of_time = np.append(run_starts(servers, times)[1:], order.size) - 1

    def running_total(*parts: np.ndarray) -> np.ndarray:
        return np.cumsum(np.concatenate(parts)[order])[last_of_time]

    no_allocation_change, no_span_change = (np.zeros(2 * ids.size, np.int64) for ids in (alloc_server, span_server))
    used = running_total(gpu, -gpu, no_span_change)
    server_at, time_at = servers[last_of_time], times[last_of_time]
    first_of_server = run_starts(server_at)
    server, highest = server_at[first_of_server], -(-np.maximum.reduceat(used, first_of_server) // GPU) * GPU
    capacity_milli[server] = np.where(capacity_milli[server] > 0, capacity_milli[server], highest)
    unused = np.maximum(capacity_milli[server_at] - used, 0)
    changes_by_kind = []
    for kind_index in range(len(UNAVAILABLE_KINDS)):
        kind_change = (kind == kind_index).astype(np.int64)
        is_unavailable = running_total(no_allocation_change, kind_change, -kind_change) > 0
        unavailable = unused * is_unavailable
        # A GPU that is unavailable for one reason does not count for the next.
        unused = unused * ~is_unavailable
        change = np.diff(unavailable, prepend=0)
        changes_by_kind.append((time_at[change != 0], change[change != 0]))
    return changes_by_kind


def account_in_windows(
    usage: Changes,
    capacity_milli: int,
    unavailable: Sequence[Changes],
    waiting_changes: Changes | None,
    edges_s: Sequence[int],
    window_s: int = WINDOW_S,
) -> dict[str, list[int]]:
    """Account for unused time as `split_unused`, one window of the time after another.

    Each window gets its own changes and the levels at its beginning.
    """
    all_changes = [usage, *unavailable, *([] if waiting_changes is None else [waiting_changes])]
    # Changes before the first edge count at the edge.
    clipped = [(np.clip(times, edges_s[0], edges_s[-1]), change) for times, change in all_changes]
    windows = [(times - edges_s[0]) // window_s for times, _ in clipped]
    # Only windows in which something changes are accounted for apart.
    nonempty = distinct_values(np.zeros(1, np.int64), *windows)
    parts = (_split_by_window(index, *part, nonempty) for index, part in zip(windows, clipped, strict=True))
    changes_by_window = zip(*parts, strict=True)
    window_starts_s = (edges_s[0] + nonempty * window_s).tolist()
    milli_s_by_category: dict[str, list[int]] = defaultdict(lambda: [0] * (len(edges_s) - 1))
    for (begin, end), window_changes in zip(pairwise([*window_starts_s, edges_s[-1]]), changes_by_window, strict=True):
        if begin == end:
            continue
        edges = [begin, *(edge for edge in edges_s if begin < edge < end), end]
        usage_steps, *unavailable_steps = (Steps.from_changes(*changes) for changes in window_changes)
        waiting_steps = None if waiting_changes is None else unavailable_steps.pop()
        for name, values in split_unused(usage_steps, capacity_milli, unavailable_steps, waiting_steps, edges).items():
            for month, value in enumerate(values, start=bisect_right(edges_s, begin) - 1):
                milli_s_by_category[name][month] += value
    return dict(milli_s_by_category)


def _split_by_window(
    windows: np.ndarray, times: np.ndarray, changes: np.ndarray, window_ids: np.ndarray
) -> Iterator[Changes]:
    """Yield the changes in each window, preceded by the level when it begins."""
    # The narrowest integers are sorted fastest.
    order = np.argsort(windows.astype(np.min_scalar_type(int(window_ids[-1]))), kind="stable")
    windows, times, changes = windows[order], times[order], changes[order]
    level = 0
    for begin, end in pairwise([0, *np.searchsorted(windows, window_ids, side="right").tolist()]):
        yield np.append(_LONG_BEFORE, times[begin:end]), np.append(level, changes[begin:end])
        level += int(changes[begin:end].sum())


def split_unused(
    usage: Steps, capacity_milli: int, unavailable: Sequence[Steps], waiting: Steps | None, edges_s: Sequence[int]
) -> dict[str, list[int]]:
    """Split unused time: milli-GPU seconds by category and month, a month lasting from one edge to the next.

    With the time used they add up to capacity times time: ABOVE_CAPACITY is 0 or below. As many free GPUs as waiting
    jobs request are FREE_WAITED, the rest FREE; all are FREE if `waiting` is None. A job that waits for ever counts
    with its own GPUs alone.
    """
    edges = np.asarray(edges_s, np.int64)
    change_times = [steps.times_s for steps in (usage, *unavailable, *([] if waiting is None else [waiting]))]
    times_s = distinct_values(edges, *(times[(edges[0] < times) & (times < edges[-1])] for times in change_times))
    seconds, starts_s = np.diff(times_s), times_s[:-1]
    month = np.searchsorted(edges, starts_s, side="right") - 1
    unavailable_values = [steps.values_at(starts_s) for steps in unavailable]
    unused = capacity_milli - sum(unavailable_values) - usage.values_at(starts_s)
    free = np.maximum(unused, 0)
    waited_for = np.minimum(free, 0 if waiting is None else waiting.values_at(starts_s))
    milli = dict(zip(UNAVAILABLE_KINDS, unavailable_values, strict=True))
    milli |= {FREE_WAITED: waited_for, FREE: free - waited_for, ABOVE_CAPACITY: np.minimum(unused, 0)}
    first_of_month = np.flatnonzero(np.diff(month, prepend=-1))
    return {name: np.add.reduceat(value * seconds, first_of_month).tolist() for name, value in milli.items()}
