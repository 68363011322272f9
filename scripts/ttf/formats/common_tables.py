"""What a format's code gives, written as the common tables of a trace."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from ttf.engine.storage.on_disk import scan_parquet
from ttf.engine.storage.partitions import partitions_of, read_results, results_of
from ttf.engine.storage.tables import stream_parquet, write_product
from ttf.formats.protocol import Format, Source
from ttf.records.clusters import block_columns, with_clusters
from ttf.records.infra import with_infra_failures
from ttf.records.jobs import nodes, size_units, with_parts
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
    spilled: Path,
    output,
) -> str:
    """Write jobs, nodes, agreement and size_unit (paths by these names); returns what is to be said of them.

    parts: as in `with_parts`. node_table: the raw table with a row per node, None where the format has none.
    block_days: see `block_columns`. spilled: a folder for a while.
    """
    jobs = with_parts(format_.jobs(source).lazy().with_columns(trace=pl.lit(trace)), parts)
    # What repeats is looked up several times: worked out once, they are read from the disk.
    if not format_.jobs_on_disk:
        stream_parquet(jobs, spilled / "jobs.parquet")
        jobs = scan_parquet(spilled / "jobs.parquet")
    jobs = without_equal_times(jobs)
    write_product(with_clusters(jobs).with_columns(**block_columns(block_days)), JOBS, output.jobs)
    write_product(format_.nodes(source) if format_.nodes else nodes(source.raw, node_table), NODES, output.nodes)
    written = scan_parquet(output.jobs)
    write_product(runtime_agreement(written), RUNTIME_AGREEMENT, output.agreement)
    write_product(size_units(written), SIZE_UNIT, output.size_unit)
    rows, timed = written.select(pl.len(), pl.col("runtime_s").count()).collect(engine="streaming").row(0)
    return f"{rows:,} jobs, {timed:,} with a run time"


def without_equal_times(jobs: pl.LazyFrame) -> pl.LazyFrame:
    """The jobs, without queueing delays if every one of them is 0: then one moment was written down for both times."""
    longest = jobs.select(pl.col("queue_s").max()).collect(engine="streaming").item()
    return jobs.with_columns(queue_s=pl.lit(None, pl.Int64)) if longest == 0 else jobs


def write_attempts(
    format_: Format, source: Source, trace: str, path: str | Path, rules: Mapping, events: pl.DataFrame | None
) -> str:
    """Write the attempts; returns what is to be said of them. rules, events: of `ttf.records.infra.infra_lives`."""
    # Whether a run ended in an infra failure is a matter of that run and the events.
    told = format_.attempts(source).lazy()
    told = told.map_batches(lambda runs: with_infra_failures(runs, rules, events), streamable=True)
    told = told.select(pl.lit(trace).alias("trace"), pl.all())
    write_product(told, ATTEMPTS, path)
    return f"{height(path):,} attempts"


def write_placements(format_: Format, source: Source, trace: str, path: str | Path) -> str:
    """Write the placements; returns what is to be said of them."""
    write_product(format_.placements(source).with_columns(trace=pl.lit(trace)), PLACEMENTS, path)
    return f"{height(path):,} placements"


def height(path: str | Path) -> int:
    """The rows of a Parquet file."""
    return scan_parquet(path).select(pl.len()).collect().item()


def with_results(format_: Format, source: Source, shares: Sequence, rows: int, spilled: Path) -> Source:
    """The source with what is made of each partition for the jobs, of a format whose tables may be large.

    shares: folders with what was made of a share each; none: it is made here, of partitions of so many `rows`.
    """
    make = format_.by_partition
    if make is None:
        return source
    results = read_results(make, shares) or results_of(
        make, source.raw, partitions_of(source.raw.values(), rows, spilled)
    )
    return replace(source, results=results)


def runtime_agreement(jobs: pl.LazyFrame) -> pl.DataFrame:
    """Start, end and run time of successful jobs: how often the two sources agree and by how much they differ.

    Only jobs whose times come from their instances and whose own record has both times. Difference = the instances'
    time - the record's, seconds. Columns: time, n, equal, equal_share, difference_*_s, difference_mean_s, reason.
    """
    has_both = {"runtime_from", "task_start_s", "task_end_s"} <= set(jobs.collect_schema().names())
    compared = (
        jobs.filter(
            (pl.col("outcome") == "success")
            & (pl.col("runtime_from") == "instance")
            & pl.col("task_start_s").is_not_null()
            & pl.col("task_end_s").is_not_null()
        )
        if has_both
        else pl.LazyFrame(schema=dict.fromkeys(("start_s", "end_s", "task_start_s", "task_end_s"), pl.Int64))
    )
    start = pl.col("start_s") - pl.col("task_start_s")
    end = pl.col("end_s") - pl.col("task_end_s")
    times = {"start": start, "end": end, "runtime": end - start}
    # Millions of jobs differ by some thousand whole numbers of seconds.
    counted = [compared.group_by(difference=difference).len("jobs").sort("difference") for difference in times.values()]
    found = zip(times, pl.collect_all(counted, engine="streaming"), strict=True)
    rows = [{"time": time} | _agreement(differences) for time, differences in found]
    return RUNTIME_AGREEMENT.frame(rows)


def _agreement(differences: pl.DataFrame) -> dict[str, int | float | str | None]:
    """The columns of a time from its differences, ascending, and the number of jobs with each."""
    n = differences["jobs"].sum()
    if not n:
        return {"n": 0, "equal": 0, "reason": "no successful job has its times from two sources"}
    equal = differences.filter(pl.col("difference") == 0)["jobs"].sum()
    up_to = differences["jobs"].cum_sum()
    return (
        {"n": n, "equal": equal, "equal_share": equal / n}
        # The nearest rank.
        | {
            name: float(differences["difference"][up_to.search_sorted(math.floor((n - 1) * q + 0.5), side="right")])
            for name, q in QUANTILES.items()
        }
        | {"difference_mean_s": (differences["difference"] * differences["jobs"]).sum() / n, "reason": None}
    )
