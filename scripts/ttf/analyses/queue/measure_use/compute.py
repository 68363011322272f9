"""GPU and host activity in Philly's telemetry, by the jobs that held the GPUs.

Readings are pooled, one per GPU (or machine) and minute: a job weighs by the minutes and GPUs it held, so long jobs
weigh most. The rules are those of the trace's own notebook, unless noted. Readings are whole thousandths of a percent
and are counted by value, so their order does not matter.
"""

from collections.abc import Iterator

import numpy as np
import polars as pl

from ttf.analyses.queue.measure_use import GPU_USE, HOST_USE
from ttf.engine.storage.on_disk import scan_parquet
from ttf.formats.philly.derive import held_gpus
from ttf.formats.philly.gpu_use import CHUNK_ROWS, MINUTE_S, combine_key, match_readings, sort_intervals
from ttf.records.inputs import Inputs
from ttf.stats.shares import divide

# Values of a reading: 0 to 100 % in thousandths of a percent.
VALUES = 100_001
PERCENTS = (25, 50, 75, 90, 95)


# Job sizes (GPUs) with rows of their own; the larger two also by number of servers of an attempt.
SIZES = (1, 4, 8, 16)
SERVERS = {8: (1,), 16: (2, 4, 8)}
GPUS_PER_SERVER = 8
OUTCOMES = ("success", "failure", "cancelled")
# Most readings that are looked up together, for several intervals.
_READINGS_AT_ONCE = 1_000_000


def summarise_readings(counts: np.ndarray) -> dict:
    """Return the columns USE; counts[v]: number of readings of v thousandths of a percent. Without readings only n, 0.

    A percentile is linear between ranks, from rank 0 (smallest) to n - 1 (largest), as in NumPy.
    """
    n = int(counts.sum())
    if not n:
        return {"n": 0}
    cumulative = np.cumsum(counts)

    def percentile(percent: int) -> float:
        rank, remainder = divmod((n - 1) * percent, 100)
        low, high = (int(np.searchsorted(cumulative, i, side="right")) for i in (rank, min(rank + 1, n - 1)))
        return (low * (100 - remainder) + high * remainder) / (100 * (VALUES - 1))

    return {
        "n": n,
        "mean_share": int(np.dot(counts, np.arange(counts.size, dtype=np.int64))) / (n * (VALUES - 1)),
        "zero_share": int(counts[0]) / n,
        **{f"p{percent}_share": percentile(percent) for percent in PERCENTS},
    }


def gpu_use_by_kind(
    allocations: pl.DataFrame, telemetry: pl.LazyFrame | None, chunk_rows: int = CHUNK_ROWS
) -> pl.DataFrame:
    """Return GPU activity by job size and outcome, by servers, and on dedicated servers (GPU_USE).

    allocations: `ttf.formats.philly.derive.held_gpus`. telemetry: the table gpu_util, or None. Attempts with a missing
    time do not count in coverage_share. Dedicated attempts have no more servers than they need at 8 GPUs a server.
    """
    if telemetry is None:
        row = {"job_gpus": "all", "outcome": "all", "n": 0, "reason": "the trace has no GPU telemetry"}
        return GPU_USE.frame([row])
    allocations, machines = sort_intervals(allocations)
    size = pl.when(pl.col("gpus").is_in(SIZES)).then("gpus").otherwise(0)
    row_servers = pl.coalesce(
        pl.when(pl.col("gpus") == gpus, pl.col("servers").is_in(servers)).then("servers")
        for gpus, servers in SERVERS.items()
    )
    allocations = allocations.with_columns(size=size, servers=row_servers.fill_null(0))
    kinds = (
        allocations.select("size", "outcome", "servers")
        .unique()
        .sort("size", "outcome", "servers")
        .with_row_index("kind")
    )
    allocations = allocations.join(
        kinds, on=["size", "outcome", "servers"], how="left", nulls_equal=True, maintain_order="left"
    )
    counts, readings = _count_readings(allocations, machines, telemetry, kinds.height, chunk_rows)
    start, end = pl.col("start_s"), pl.col("end_s")
    first_s, last_s = telemetry.select(first_s=pl.col("time_s").min(), last_s=pl.col("time_s").max()).collect().row(0)
    in_span = _whole_minutes(start.clip(first_s // MINUTE_S * MINUTE_S), end.clip(None, last_s + 1))
    allocations = allocations.with_columns(readings=readings, minutes=_whole_minutes(start, end), in_span=in_span)
    return GPU_USE.frame(
        names | _summarise_kinds(allocations, kinds, counts, is_chosen) for names, is_chosen in _iterate_row_filters()
    )


def _iterate_row_filters() -> Iterator[tuple[dict, pl.Expr]]:
    """Yield the key cells of each row of GPU_USE, and the condition on size, outcome and servers that it selects by."""
    is_any = pl.lit(True)
    sizes = {str(gpus): pl.col("size") == gpus for gpus in SIZES} | {"all": is_any}
    outcomes = {name: pl.col("outcome") == name for name in OUTCOMES} | {"all": is_any}
    for job_gpus, is_size in sizes.items():
        for outcome, is_outcome in outcomes.items():
            yield {"job_gpus": job_gpus, "outcome": outcome}, is_size & is_outcome
    shared = [(16, servers, None) for servers in SERVERS[16]]
    dedicated = [(gpus, gpus // GPUS_PER_SERVER, True) for gpus in SERVERS]
    for gpus, servers, is_dedicated in [*shared, *dedicated]:
        names = {"job_gpus": str(gpus), "outcome": "all", "servers": servers, "dedicated": is_dedicated}
        yield names, (pl.col("size") == gpus) & (pl.col("servers") == servers)


def _summarise_kinds(allocations: pl.DataFrame, kinds: pl.DataFrame, counts: np.ndarray, is_chosen: pl.Expr) -> dict:
    """Summarise readings and jobs of the chosen kinds of GPU allocations; counts: kinds by thousandths of a percent."""
    chosen_kinds = kinds.filter(is_chosen.fill_null(False))["kind"]
    rows = allocations.filter(pl.col("kind").is_in(chosen_kinds.implode()))
    use = summarise_readings(counts[chosen_kinds.to_numpy()].sum(axis=0))
    minutes, in_span = int(rows["minutes"].sum()), int(rows["in_span"].sum())
    reason = None if use["n"] else "no GPU of such a job has a reading" if rows.height else "no such job held a GPU"
    return use | {
        "jobs": rows.filter(pl.col("readings") > 0)["owner"].n_unique(),
        "coverage_share": divide(use["n"], minutes),
        "coverage_in_span_share": divide(use["n"], in_span),
        "reason": reason,
    }


def _count_readings(
    allocations: pl.DataFrame, machines: pl.DataFrame, telemetry: pl.LazyFrame, kinds: int, chunk_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return (readings by kind and value, readings by row of `allocations`)."""
    counts, readings = np.zeros(kinds * VALUES, np.int64), np.zeros(allocations.height, np.int64)
    kind = allocations["kind"].cast(pl.Int64).to_numpy()
    for rows, values, first, last in match_readings(allocations, machines, telemetry, chunk_rows):
        # A blank reading is one past the last value, and is dropped.
        filled = values.fill_null(VALUES).to_numpy()
        lengths = last - first
        cumulative = np.cumsum(lengths)
        for part in np.split(np.arange(rows.size), np.flatnonzero(np.diff(cumulative // _READINGS_AT_ONCE)) + 1):
            length = lengths[part]
            offset = np.cumsum(length) - length
            reading = filled[np.arange(length.sum()) + np.repeat(first[part] - offset, length)]
            owner = np.repeat(rows[part], length)[reading < VALUES]
            counts += np.bincount(kind[owner] * VALUES + reading[reading < VALUES], minlength=counts.size)
            readings += np.bincount(owner, minlength=readings.size)
    return counts.reshape(kinds, VALUES), readings


def _whole_minutes(start: pl.Expr, end: pl.Expr) -> pl.Expr:
    """Return the number of whole minutes from `start` to before `end`."""
    return ((end - start + MINUTE_S - 1) // MINUTE_S).clip(0)


def host_use(
    allocations: pl.DataFrame, cpu: pl.LazyFrame | None, memory: pl.LazyFrame | None, chunk_rows: int = CHUNK_ROWS
) -> pl.DataFrame:
    """Return CPU and memory use over machine-minutes (HOST_USE): over all, and over those with a GPU held.

    allocations: `held_gpus`; cpu, memory: the tables cpu_util and mem_util, or None. A machine-minute is `held` from
    the minute in which an attempt with both times starts to before its end, on a machine of which it holds a GPU.
    """
    held_machines = _HeldMachines(allocations)
    # Memory is rounded to the nearest thousandth of a percent.
    used_kb = pl.col("mem_total_kb") - pl.col("mem_free_kb")
    used_mpct = (2 * (VALUES - 1) * used_kb + pl.col("mem_total_kb")) // (2 * pl.col("mem_total_kb"))
    rows = []
    for resource, table, value in (("cpu", cpu, pl.col("cpu_mpct")), ("memory", memory, used_mpct)):
        if table is None:
            row = {"resource": resource, "machine_minutes": "all", "n": 0}
            rows.append(row | {"reason": "the trace has no telemetry of it"})
            continue
        counts = np.zeros((2, VALUES), np.int64)
        for offset in range(0, table.select(pl.len()).collect().item(), chunk_rows):
            readings = held_machines.mark_held(table.slice(offset, chunk_rows).select("time_s", "machine", value=value))
            mpct, is_held = readings["value"].to_numpy(), readings["is_held"].to_numpy()
            in_range = (mpct >= 0) & (mpct < VALUES)
            for index, selected in enumerate((in_range, in_range & is_held)):
                counts[index] += np.bincount(mpct[selected], minlength=VALUES)
        for index, name in enumerate(("all", "held")):
            row = {"resource": resource, "machine_minutes": name} | summarise_readings(counts[index])
            rows.append(row | {"reason": None if row["n"] else "no reading"})
    return HOST_USE.frame(rows)


class _HeldMachines:
    """Whether any attempt held a GPU of a machine in a given minute."""

    def __init__(self, allocations: pl.DataFrame):
        allocations, self.machines = sort_intervals(allocations)
        allocations = allocations.select("code", "start_s", "end_s").unique()
        code, start, end = (allocations[name].to_numpy() for name in ("code", "start_s", "end_s"))
        self.starts, self.ends = np.sort(combine_key(code, start)), np.sort(combine_key(code, end))

    def mark_held(self, rows: pl.LazyFrame) -> pl.DataFrame:
        """Return value, is_held of those rows (time_s, machine, value) that have a value."""
        readings = rows.drop_nulls("value").join(self.machines.lazy(), on="machine", how="left").collect()
        # If as many intervals began as ended, none is open on this machine; earlier machines cancel out.
        keys = combine_key(readings["code"].fill_null(-1).to_numpy(), readings["time_s"].to_numpy())
        is_open = np.searchsorted(self.starts, keys, side="right") - np.searchsorted(self.ends, keys, side="right")
        return readings.select("value", is_held=is_open > 0)


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    tables = {name: scan_parquet(inputs.path("raw") / f"{name}.parquet") for name in inputs.settings.tables}
    allocations = held_gpus(tables, {"outcomes": inputs.settings.outcomes})
    return {
        "gpu_use": gpu_use_by_kind(allocations, tables.get("gpu_util")),
        "host_use": host_use(allocations, tables.get("cpu_util"), tables.get("mem_util")),
    }
