"""What Philly's telemetry says of GPUs and hosts: how busy they were, by the jobs that held them.

A pool of readings, one per GPU (or machine) and minute, whoever's they are: a job counts by the minutes and GPUs it
held, so that long jobs weigh most. These are the rules of the trace's own notebook, except where it is said. Readings
are whole thousandths of a percent and are counted by value, so that their order does not matter.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl

from ttf.analyses.queue.measure_use import GPU_USE, HOST_USE
from ttf.engine.storage.on_disk import scan_parquet
from ttf.formats.philly.derive import held_gpus
from ttf.formats.philly.gpu_use import CHUNK_ROWS, MINUTE_S, by_gpu_and_start, key_of, pieces
from ttf.records.inputs import Inputs
from ttf.stats.shares import part_of

# Values of a reading: 0 to 100 % in thousandths of a percent.
VALUES = 100_001
PERCENTS = (25, 50, 75, 90, 95)


# Jobs with exactly so many GPUs have rows of their own, those of the larger two also by the servers of an attempt.
SIZES = (1, 4, 8, 16)
SERVERS = {8: (1,), 16: (2, 4, 8)}
GPUS_PER_SERVER = 8
OUTCOMES = ("success", "failure", "cancelled")
# Readings of several intervals are looked up together, until they are so many.
_READINGS_AT_ONCE = 1_000_000


def of_counts(counts: np.ndarray) -> dict[str, float]:
    """The columns USE of readings of which counts[v] are v thousandths of a percent; n 0 alone where none is.

    A percentile is linear between ranks, rank 0 the smallest and rank n - 1 the largest, as in NumPy.
    """
    n = int(counts.sum())
    if not n:
        return {"n": 0}
    below = np.cumsum(counts)

    def percentile(percent: int) -> float:
        rank, rest = divmod((n - 1) * percent, 100)
        low, high = (int(np.searchsorted(below, place, side="right")) for place in (rank, min(rank + 1, n - 1)))
        return (low * (100 - rest) + high * rest) / (100 * (VALUES - 1))

    total = int(np.dot(counts, np.arange(counts.size, dtype=np.int64)))
    return {
        "n": n,
        "mean_share": total / (n * (VALUES - 1)),
        "zero_share": int(counts[0]) / n,
        **{f"p{percent}_share": percentile(percent) for percent in PERCENTS},
    }


def gpu_use_by_kind(held: pl.DataFrame, telemetry: pl.LazyFrame | None, chunk_rows: int = CHUNK_ROWS) -> pl.DataFrame:
    """GPU use by job size and outcome, by servers, and on dedicated servers (GPU_USE).

    held: `ttf.formats.philly.derive.held_gpus`. telemetry: the table gpu_util, or None. dedicated: only attempts on as
    few servers as hold the GPUs at 8 a server. coverage_share: readings over the GPU minutes that attempts with both
    times held; in_span: over those from the first to the last minute of the telemetry.
    """
    if telemetry is None:
        row = {"job_gpus": "all", "outcome": "all", "n": 0, "reason": "the trace has no GPU telemetry"}
        return GPU_USE.frame([row])
    held, machines = by_gpu_and_start(held)
    size = pl.when(pl.col("gpus").is_in(SIZES)).then("gpus").otherwise(0)
    named = pl.coalesce(
        pl.when(pl.col("gpus") == gpus, pl.col("servers").is_in(servers)).then("servers")
        for gpus, servers in SERVERS.items()
    )
    held = held.with_columns(size=size, servers=named.fill_null(0))
    kinds = held.select("size", "outcome", "servers").unique().sort("size", "outcome", "servers").with_row_index("kind")
    held = held.join(kinds, on=["size", "outcome", "servers"], how="left", nulls_equal=True, maintain_order="left")
    counts, readings = _counts(held, machines, telemetry, kinds.height, chunk_rows)
    start, end = pl.col("start_s"), pl.col("end_s")
    first, last = telemetry.select(first=pl.col("time_s").min(), last=pl.col("time_s").max()).collect().row(0)
    in_span = _minutes(start.clip(first // MINUTE_S * MINUTE_S), end.clip(None, last + 1))
    held = held.with_columns(readings=readings, minutes=_minutes(start, end), in_span=in_span)
    return GPU_USE.frame(named | _about(held, kinds, counts, chosen) for named, chosen in _asked())


def _asked() -> Iterator[tuple[dict, pl.Expr]]:
    """The rows of the table: what they are called, and which kinds of attempts are in them."""
    everything = pl.lit(True)
    sizes = {str(gpus): pl.col("size") == gpus for gpus in SIZES} | {"all": everything}
    outcomes = {name: pl.col("outcome") == name for name in OUTCOMES} | {"all": everything}
    for job_gpus, of_size in sizes.items():
        for outcome, of_outcome in outcomes.items():
            yield {"job_gpus": job_gpus, "outcome": outcome}, of_size & of_outcome
    spread = [(16, servers, {}) for servers in SERVERS[16]]
    dedicated = [(gpus, gpus // GPUS_PER_SERVER, {"dedicated": True}) for gpus in SERVERS]
    for gpus, servers, more in [*spread, *dedicated]:
        named = {"job_gpus": str(gpus), "outcome": "all", "servers": servers} | more
        yield named, (pl.col("size") == gpus) & (pl.col("servers") == servers)


def _about(held: pl.DataFrame, kinds: pl.DataFrame, counts: np.ndarray, chosen: pl.Expr) -> dict:
    mine = kinds.filter(chosen.fill_null(False))["kind"]
    rows = held.filter(pl.col("kind").is_in(mine.implode()))
    use = of_counts(counts[mine.to_numpy()].sum(axis=0))
    minutes, in_span = int(rows["minutes"].sum()), int(rows["in_span"].sum())
    reason = None if use["n"] else "no GPU of such a job has a reading" if rows.height else "no such job held a GPU"
    return use | {
        "jobs": rows.filter(pl.col("readings") > 0)["owner"].n_unique(),
        "held_gpu_minutes": minutes,
        "coverage_share": part_of(use["n"], minutes),
        "held_gpu_minutes_in_span": in_span,
        "coverage_in_span_share": part_of(use["n"], in_span),
        "reason": reason,
    }


def _counts(
    held: pl.DataFrame, machines: pl.DataFrame, telemetry: pl.LazyFrame, kinds: int, chunk_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """(readings by kind and value, readings by row of `held`)."""
    counts, readings = np.zeros(kinds * VALUES, np.int64), np.zeros(held.height, np.int64)
    kind = held["kind"].cast(pl.Int64).to_numpy()
    for mine, values, first, last in pieces(held, machines, telemetry, chunk_rows):
        # A blank reading is one past the last value, and is dropped.
        values = values.fill_null(VALUES).to_numpy()
        lengths = last - first
        ends = np.cumsum(lengths)
        for some in np.split(np.arange(mine.size), np.flatnonzero(np.diff(ends // _READINGS_AT_ONCE)) + 1):
            length = lengths[some]
            before = np.cumsum(length) - length
            found = values[np.arange(length.sum()) + np.repeat(first[some] - before, length)]
            owner = np.repeat(mine[some], length)[found < VALUES]
            counts += np.bincount(kind[owner] * VALUES + found[found < VALUES], minlength=counts.size)
            readings += np.bincount(owner, minlength=readings.size)
    return counts.reshape(kinds, VALUES), readings


def _minutes(start: pl.Expr, end: pl.Expr) -> pl.Expr:
    """Whole minutes from one on, `start`, to before `end`."""
    return ((end - start + MINUTE_S - 1) // MINUTE_S).clip(0)


def host_use(
    held: pl.DataFrame, cpu: pl.LazyFrame | None, memory: pl.LazyFrame | None, chunk_rows: int = CHUNK_ROWS
) -> pl.DataFrame:
    """CPU and memory in use over machine-minutes (HOST_USE): over all, and over those with a GPU held.

    held: of `held_gpus`; cpu, memory: the tables cpu_util and mem_util, or None. `held`: from the minute an attempt
    with both times starts in to before its end, on a machine of which it holds a GPU.
    """
    busy = _Busy(held)
    # Memory to the nearest thousandth of a percent.
    used = pl.col("mem_total_kb") - pl.col("mem_free_kb")
    part = (2 * (VALUES - 1) * used + pl.col("mem_total_kb")) // (2 * pl.col("mem_total_kb"))
    rows = []
    for resource, table, value in (("cpu", cpu, pl.col("cpu_mpct")), ("memory", memory, part)):
        if table is None:
            row = {"resource": resource, "machine_minutes": "all", "n": 0}
            rows.append(row | {"reason": "the trace has no telemetry of it"})
            continue
        counts, beyond = np.zeros((2, VALUES), np.int64), np.zeros(2, np.int64)
        height = table.select(pl.len()).collect().item()
        for offset in range(0, height, chunk_rows):
            found = busy.of(table.slice(offset, chunk_rows).select("time_s", "machine", value=value))
            value_, is_busy = found["value"].to_numpy(), found["busy"].to_numpy()
            inside = (value_ >= 0) & (value_ < VALUES)
            for place, chosen in enumerate((inside, inside & is_busy)):
                counts[place] += np.bincount(value_[chosen], minlength=VALUES)
            beyond += (~inside).sum(), (~inside & is_busy).sum()
        for place, name in enumerate(("all", "held")):
            row = {"resource": resource, "machine_minutes": name} | of_counts(counts[place])
            rows.append(row | {"out_of_range": int(beyond[place]), "reason": None if row["n"] else "no reading"})
    return HOST_USE.frame(rows)


class _Busy:
    """Whether anybody held a GPU of a machine in a minute."""

    def __init__(self, held: pl.DataFrame):
        held, self.machines = by_gpu_and_start(held)
        held = held.select("code", "start_s", "end_s").unique()
        code, start, end = (held[name].to_numpy() for name in ("code", "start_s", "end_s"))
        self.starts, self.ends = np.sort(key_of(code, start)), np.sort(key_of(code, end))

    def of(self, rows: pl.LazyFrame) -> pl.DataFrame:
        """value, busy of the rows (time_s, machine, value) that have a value."""
        found = rows.drop_nulls("value").join(self.machines.lazy(), on="machine", how="left").collect()
        # As many intervals began as ended before: on this machine none is open, whatever came on those before it.
        keys = key_of(found["code"].fill_null(-1).to_numpy(), found["time_s"].to_numpy())
        is_open = np.searchsorted(self.starts, keys, side="right") - np.searchsorted(self.ends, keys, side="right")
        return found.select("value", busy=is_open > 0)


def compute(given: Inputs) -> dict:
    raw = {name: scan_parquet(given.path("raw") / f"{name}.parquet") for name in given.settings.tables}
    held = held_gpus(raw)
    return {
        "gpu_use": gpu_use_by_kind(held, raw.get("gpu_util")),
        "host_use": host_use(held, raw.get("cpu_util"), raw.get("mem_util")),
    }
