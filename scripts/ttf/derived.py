"""What a format's code gives, written as the common tables of a trace."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from ttf.agreement import runtime_agreement
from ttf.formats.protocol import Format, Source
from ttf.jobs import nodes, with_parts
from ttf.partitions import partitions_of, read_results, results_of
from ttf.stages import ATTEMPTS, JOBS, NODES, PLACEMENTS, RUNTIME_AGREEMENT
from ttf.tables import write_product


def write_jobs(
    format_: Format, source: Source, trace: str, parts: Sequence[str], node_table: str | None, output
) -> str:
    """Write jobs, nodes and agreement (paths by these names); returns what is to be said of them.

    parts: as in `with_parts`. node_table: the raw table with a row per node, None where the format has none.
    """
    jobs = format_.jobs(source).lazy().with_columns(trace=pl.lit(trace))
    write_product(with_parts(jobs, parts), JOBS, output.jobs)
    write_product(format_.nodes(source) if format_.nodes else nodes(source.raw, node_table), NODES, output.nodes)
    written = pl.scan_parquet(output.jobs)
    write_product(runtime_agreement(written), RUNTIME_AGREEMENT, output.agreement)
    rows, timed = written.select(pl.len(), pl.col("runtime_s").count()).collect(engine="streaming").row(0)
    return f"{rows:,} jobs, {timed:,} with a run time"


def write_attempts(format_: Format, source: Source, trace: str, path: str | Path) -> str:
    """Write the attempts; returns what is to be said of them."""
    attempts = format_.attempts(source).select(pl.lit(trace).alias("trace"), pl.all())
    return f"{write_product(attempts, ATTEMPTS, path):,} attempts"


def write_placements(format_: Format, source: Source, trace: str, path: str | Path) -> str:
    """Write the placements; returns what is to be said of them."""
    write_product(format_.placements(source).with_columns(trace=pl.lit(trace)), PLACEMENTS, path)
    return f"{pl.scan_parquet(path).select(pl.len()).collect().item():,} placements"


def with_results(format_: Format, product: str, source: Source, shares: Sequence, rows: int, spilled: Path) -> Source:
    """The source with what is made of each partition for a product, of a format whose tables may be large.

    shares: folders with what was made of a share each; none: it is made here, of partitions of so many `rows`.
    """
    if product not in format_.by_partition:
        return source
    make = format_.by_partition[product]
    results = read_results(make, shares) or results_of(
        make, source.raw, partitions_of(source.raw.values(), rows, spilled)
    )
    return replace(source, results=results)
