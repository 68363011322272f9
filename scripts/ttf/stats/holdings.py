"""GPUs held on servers, rebuilt from the placements of a trace, and how many of them are in use at any time.

A sweep over starts and ends: sorted by group and time, their running sum is what is in use of each group. All of it is
whole numbers (seconds, milli-GPU), so that the order of the rows plays no part.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from ttf.stats.names import places_of
from ttf.stats.order import last_of_each, order_by, sorted_rows

GPU = 1000  # milli-GPU
# Placements looked at together: whole servers, so that what they take is little and is used again for the next.
BLOCK_ROWS = 100_000


@dataclass(frozen=True)
class Holdings:
    """Every part of an attempt that held GPUs of a server for a known time, as arrays of one length.

    node: place in `nodes`; unit: the attempt's number; account: place in `accounts`, -1 for none; start < end, in
    seconds since first_s; gpu_milli > 0. Of the few bytes that they need: what is reckoned with is to be made Int64.
    length_s: from first_s to the last end. known_milli: what each server holds, 0 where no table says. counts:
    placements that hold a GPU, those of them without a known time (left out), and those whose GPUs are their attempt's,
    spread over its servers.
    """

    nodes: list[str]
    known_milli: np.ndarray
    accounts: list[str]
    first_s: int
    length_s: int
    node: np.ndarray
    unit: np.ndarray
    account: np.ndarray
    start: np.ndarray
    end: np.ndarray
    gpu_milli: np.ndarray
    counts: dict[str, int]

    def by_server(self) -> Iterator[np.ndarray]:
        """The rows, server by server: about BLOCK_ROWS at a time, of whole servers."""
        order = order_by(self.node)
        ends = np.cumsum(np.bincount(self.node, minlength=len(self.nodes)))
        first = 0
        while first < order.size:
            end = int(ends[np.searchsorted(ends, min(first + BLOCK_ROWS, order.size))])
            yield order[first:end]
            first = end


def holdings(
    placements: pl.LazyFrame, jobs: pl.LazyFrame, nodes: pl.DataFrame, attempts: pl.LazyFrame | None = None
) -> Holdings:
    """placements: PLACEMENT_COLUMNS; jobs, nodes: the common records; attempts: job_id, attempt, gpu_milli.

    A placement without an end counts to the trace's end if its outcome is `running`; otherwise nobody knows how long it
    held its GPUs, and it is left out, as is one without a start or with an end before it. One whose GPUs are blank gets
    its part of the attempt's GPUs (see `spread`); without `attempts` it holds none.
    """
    end_of_trace = jobs.select(pl.col("trace_end_s").max()).collect().item()
    names = ["job_id", "attempt", "attempt_id", "node", "start_s", "end_s", "gpu_milli", "outcome"]
    parts = placements.select(names).with_columns(spread=pl.lit(False))
    if attempts is not None:
        parts = pl.concat([parts.filter(pl.col("gpu_milli").is_not_null()), spread(parts, attempts)])
    running_to = pl.when(pl.col("outcome") == "running").then(pl.lit(end_of_trace, dtype=pl.Int64))
    parts = parts.filter(pl.col("gpu_milli") > 0).with_columns(end_s=pl.coalesce("end_s", running_to))
    is_known = (pl.col("start_s") <= pl.col("end_s")).fill_null(False)
    is_held = (pl.col("start_s") < pl.col("end_s")).fill_null(False) & pl.col("node").is_not_null()
    told = parts.select(
        placements=pl.len(),
        left_out=(~is_known).sum(),
        spread=pl.col("spread").sum(),
        first_s=pl.col("start_s").filter(is_held).min(),
        last_s=pl.col("end_s").filter(is_held).max(),
        most=pl.col("gpu_milli").filter(is_held).max(),
    )
    counts = told.collect(engine="streaming").row(0, named=True)
    first_s, last_s, most = (counts.pop(name) or 0 for name in ("first_s", "last_s", "most"))
    accounts = jobs.filter(pl.col("account").is_not_null()).select("job_id", "account")
    accounts = accounts.unique("job_id", keep="first", maintain_order=True).collect()
    account = pl.lit(None, dtype=pl.String)
    held = parts.filter(is_held)
    if accounts.height:
        held, account = held.join(accounts.lazy(), on="job_id", how="left", maintain_order="left"), pl.col("account")
    names_of_accounts = accounts["account"].unique().sort()
    frame = held.select(
        node=pl.col("node").cast(pl.Categorical),
        unit="attempt_id",
        account=account.cast(pl.Enum(names_of_accounts)).to_physical().cast(pl.Int32).fill_null(-1),
        start=(pl.col("start_s") - first_s).cast(_narrow(last_s - first_s)),
        end=(pl.col("end_s") - first_s).cast(_narrow(last_s - first_s)),
        gpu_milli=pl.col("gpu_milli").cast(_narrow(most)),
    ).collect(engine="streaming")
    # Of the machines that hold no GPU, none can be busy.
    known = nodes.filter(pl.col("gpu_count") > 0).select("node", milli=pl.col("gpu_count") * GPU)
    known = known.unique("node", keep="first", maintain_order=True)
    every, node = places_of(frame["node"], *known["node"])
    known = pl.DataFrame({"node": every}).join(known, on="node", how="left", maintain_order="left")
    return Holdings(
        every.to_list(),
        known["milli"].fill_null(0).to_numpy(),
        names_of_accounts.to_list(),
        first_s,
        last_s - first_s,
        node,
        *(frame[name].to_numpy() for name in ("unit", "account", "start", "end", "gpu_milli")),
        counts,
    )


def _narrow(most: int) -> type[pl.DataType]:
    """A type for whole numbers from 0 to `most`."""
    return pl.Int32 if most < 2**31 else pl.Int64


def spread(parts: pl.LazyFrame, attempts: pl.LazyFrame) -> pl.LazyFrame:
    """The parts whose GPUs are blank, with their attempt's GPUs in equal parts; of a rest the first ones have one more.

    Whole GPUs stay whole. Slurm's accounting says how many GPUs a run had in all, and not on which of its nodes.
    """
    of_attempt = ["job_id", "attempt"]
    total = attempts.filter(pl.col("gpu_milli") > 0).select(*of_attempt, total="gpu_milli")
    total = total.unique(of_attempt, keep="first", maintain_order=True)
    grain = pl.when(pl.col("total") % GPU == 0).then(GPU).otherwise(1)
    grains = pl.col("total") // grain
    place, of = pl.int_range(pl.len()).over(of_attempt), pl.len().cast(pl.Int64).over(of_attempt)
    share = (grains // of + (place < grains % of).cast(pl.Int64)) * grain
    return (
        parts.filter(pl.col("gpu_milli").is_null())
        .join(total, on=of_attempt, how="inner", maintain_order="left")
        .with_columns(gpu_milli=share.cast(pl.Int64), spread=pl.lit(True))
        .drop("total")
    )


@dataclass(frozen=True)
class Sweep:
    """What is in use of each group (a server, an account) after each moment that changes it, by group and time.

    key: group x width + (time - first_s), ascending, each once; in_use_milli: from that moment to the group's next, 0
    from a group's last on.
    """

    first_s: int
    width: int
    key: np.ndarray
    in_use_milli: np.ndarray

    def at(self, group: np.ndarray, time_s: np.ndarray) -> np.ndarray:
        """In use of each group at each time: of the second that begins then."""
        if not self.key.size:
            return np.zeros(time_s.size, np.int64)
        time = np.clip(time_s - self.first_s, -1, self.width - 1)
        place = np.searchsorted(self.key, group * self.width + time, side="right") - 1
        is_of_group = (place >= 0) & (time >= 0) & (self.key[place] // self.width == group)
        return np.where(is_of_group, self.in_use_milli[place], 0)

    def highest(self, groups: int) -> np.ndarray:
        """The most in use at once of each group, 0 of one that nothing is ever in use of."""
        group = self.key // self.width
        first = np.flatnonzero(np.diff(group, prepend=-1))
        found = np.zeros(groups, np.int64)
        if first.size:
            found[group[first]] = np.maximum.reduceat(self.in_use_milli, first)
        return found


def sweep(held: Holdings, group: np.ndarray) -> Sweep:
    """In use by group (of each holding; -1: in none)."""
    inside = group >= 0
    gpu = held.gpu_milli[inside].astype(np.int64)
    width = held.length_s + 1
    base = group[inside].astype(np.int64) * width
    key = np.concatenate([base + held.start[inside], base + held.end[inside]])
    return Sweep(held.first_s, width, *running(key, np.concatenate([gpu, -gpu])))


def running(key: np.ndarray, change: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct keys, ascending, and the sum of all changes up to each."""
    key, change = sorted_rows(key, change)
    last = last_of_each(key)
    return key[last], np.cumsum(change, out=change)[last]
