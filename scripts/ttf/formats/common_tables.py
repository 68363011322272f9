"""Write the rows that a format's code derives as the common tables of a trace."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from ttf.engine.storage.on_disk import scan_parquet
from ttf.engine.storage.partitions import choose_partitions, compute_results, read_results, spill_rows
from ttf.engine.storage.tables import write_product
from ttf.formats.protocol import Derive, Format, Source
from ttf.records.clusters import add_block_columns, add_clusters
from ttf.records.infra import add_infra_failure
from ttf.records.jobs import Rows, add_part_names, read_nodes, size_units
from ttf.records.record_contracts import ATTEMPTS, JOBS, NODES, PLACEMENTS, RUNTIME_AGREEMENT, SIZE_UNIT

QUANTILES = {"difference_p01_s": 0.01, "difference_p05_s": 0.05, "difference_median_s": 0.5}
QUANTILES |= {"difference_p95_s": 0.95, "difference_p99_s": 0.99}


def write_jobs(
    format_: Format,
    source: Source,
    trace: str,
    parts: Sequence[str],
    node_table: str | None,
    block_days: int,
    spill_folder: Path,
    output,
) -> str:
    """Write jobs, nodes, agreement and size_unit (`output` has a path for each); return a summary.

    parts: as in `add_part_names`. node_table: the raw table with a row per node, or None. block_days: see
    `add_block_columns`. spill_folder: a temporary folder.
    """
    jobs = add_part_names(_derive_table(format_.jobs, source).lazy().with_columns(trace=pl.lit(trace)), parts)
    # Write the jobs to the disk before several passes over them, rather than derive them in each.
    if not format_.jobs_on_disk:
        jobs = spill_rows(jobs, spill_folder / "jobs")
    jobs = drop_zero_queue_times(jobs)
    write_product(add_block_columns(add_clusters(jobs), block_days), JOBS, output.jobs)
    write_product(format_.nodes(source) if format_.nodes else read_nodes(source.raw, node_table), NODES, output.nodes)
    written_jobs = scan_parquet(output.jobs)
    write_product(compare_runtimes(written_jobs), RUNTIME_AGREEMENT, output.agreement)
    write_product(size_units(written_jobs), SIZE_UNIT, output.size_unit)
    n_jobs, n_timed = written_jobs.select(pl.len(), pl.col("runtime_s").count()).collect(engine="streaming").row(0)
    return f"{n_jobs:,} jobs, {n_timed:,} with a run time"


def _derive_table(function: Derive | None, source: Source) -> Rows:
    if function is None:
        raise NotImplementedError("the format has no such table")
    return function(source)


def drop_zero_queue_times(jobs: pl.LazyFrame) -> pl.LazyFrame:
    """Blank all queueing delays if every one is 0: then the trace recorded one moment as both times."""
    max_queue_s = jobs.select(pl.col("queue_s").max()).collect(engine="streaming").item()
    return jobs.with_columns(queue_s=pl.lit(None, pl.Int64)) if max_queue_s == 0 else jobs


def write_attempts(
    format_: Format, source: Source, trace: str, path: str | Path, rules: Mapping, events: pl.DataFrame | None
) -> str:
    """Write the attempts and return a summary. rules, events: see `ttf.records.infra.infra_durations`."""
    # Streamable: a row's infra failure depends on that row and the events alone.
    attempts = _derive_table(format_.attempts, source).lazy()
    attempts = attempts.map_batches(lambda runs: add_infra_failure(runs, rules, events), streamable=True)
    attempts = attempts.select(pl.lit(trace).alias("trace"), pl.all())
    write_product(attempts, ATTEMPTS, path)
    return f"{count_rows(path):,} attempts"


def write_placements(format_: Format, source: Source, trace: str, path: str | Path) -> str:
    """Write the placements and return a summary."""
    write_product(_derive_table(format_.placements, source).with_columns(trace=pl.lit(trace)), PLACEMENTS, path)
    return f"{count_rows(path):,} placements"


def count_rows(path: str | Path) -> int:
    return scan_parquet(path).select(pl.len()).collect().item()


def add_partition_results(
    format_: Format, source: Source, shares: Sequence, max_rows: int, spill_folder: Path
) -> Source:
    """Add the results of the partitions to the source of a format that derives its jobs by partition.

    shares: folders with the results of a share each. Without any, compute them here, in partitions of `max_rows`.
    """
    make = format_.by_partition
    if make is None:
        return source
    results = read_results(make, shares) or compute_results(
        make, source.raw, choose_partitions(source.raw.values(), max_rows, spill_folder)
    )
    return replace(source, results=results)


def compare_runtimes(jobs: pl.LazyFrame) -> pl.DataFrame:
    """Compare start, end and run time of successful jobs between their instances and their own record.

    Only jobs with times from their instances and both times in their own record. Difference = time of the instances -
    time of the record, in seconds. Columns: time, n, equal, equal_share, difference_*_s, difference_mean_s, reason.
    """
    has_both = {"runtime_from", "task_start_s", "task_end_s"} <= set(jobs.collect_schema().names())
    comparable = (
        jobs.filter(outcome="success", runtime_from="instance").drop_nulls(["task_start_s", "task_end_s"])
        if has_both
        else pl.LazyFrame(schema=dict.fromkeys(("start_s", "end_s", "task_start_s", "task_end_s"), pl.Int64))
    )
    start = pl.col("start_s") - pl.col("task_start_s")
    end = pl.col("end_s") - pl.col("task_end_s")
    times = {"start": start, "end": end, "runtime": end - start}
    # Count by difference: millions of jobs have some thousand different whole numbers of seconds.
    frequencies = [
        comparable.group_by(difference=difference).len("jobs").sort("difference") for difference in times.values()
    ]
    frequencies_by_time = zip(times, pl.collect_all(frequencies, engine="streaming"), strict=True)
    rows = [{"time": time, **_agreement_cells(differences)} for time, differences in frequencies_by_time]
    return RUNTIME_AGREEMENT.frame(rows)


def _agreement_cells(differences: pl.DataFrame) -> dict[str, int | float | str | None]:
    """Return the cells of RUNTIME_AGREEMENT for one time. differences: ascending, each with its number of jobs."""
    n = int(differences["jobs"].sum())
    if not n:
        return {"n": 0, "equal": 0, "reason": "no successful job has its times from two sources"}
    equal = int(differences.filter(pl.col("difference") == 0)["jobs"].sum())
    cumulative = differences["jobs"].cum_sum()
    nearest_ranks = {name: math.floor((n - 1) * q + 0.5) for name, q in QUANTILES.items()}
    return {
        "n": n,
        "equal": equal,
        "equal_share": equal / n,
        **{
            name: float(differences["difference"][cumulative.search_sorted(rank, side="right")])
            for name, rank in nearest_ranks.items()
        },
        "difference_mean_s": int((differences["difference"] * differences["jobs"]).sum()) / n,
    }
