"""MTTF by job size, and the failure rate of a node."""

import polars as pl

from ttf.analyses.scaling.measure_sizes import ANALYSIS, sizes
from ttf.records.clusters import CLUSTER_COLUMNS, durations_by_block
from ttf.records.durations import find_strata
from ttf.records.infra import EVENT
from ttf.records.inputs import Inputs
from ttf.stats.durations.missing_ends import failures_without_end, withhold_without_ends
from ttf.stats.durations.mttf import mean_time_to_failure
from ttf.stats.durations.survival import survival_summary
from ttf.stats.large_runs.projection import projection_limit

DURATIONS = ("basis", "event", "cause", "start_s", "duration_s", "duration_max_s", "gpu_count", "gpu_milli", "nodes")


def compute(inputs: Inputs) -> dict:
    """Return the tables of the analysis: MTTF by size, rate of a node, 1/N law, and survival by stratum."""
    settings = inputs.settings
    durations = inputs.scan("durations_infra", [*DURATIONS, *CLUSTER_COLUMNS, *settings.strata])
    basis = durations.head(1).select(pl.col("basis").first()).collect().item()
    if not inputs.unit.has_nodes:
        runs, gpus_per_node, source, above_gpus = durations.clear(), None, None, None
    elif settings.gives == "jobs":
        gpus_per_node, source = sizes.node_gpus(inputs.read("nodes"), settings.node_gpus, durations)
        runs, above_gpus = sizes.select_job_runs(durations, gpus_per_node, source), settings.above_gpus
    else:
        # A component is a node or is part of one; one of LANL's nodes has no GPU.
        gpus_per_node = durations.select(pl.col("gpu_count").max()).collect(engine="streaming").item()
        runs, above_gpus = sizes.select_component_runs(durations), None
        source = gpus_per_node and "trace"
    sums, clusters = sizes.sums_by_nodes(runs), sizes.sums_by_cluster(durations_by_block(runs, settings.block_days))
    strata, tables = find_strata(durations, settings.strata), {table.name: table for table in ANALYSIS.tables}
    ends = failures_without_end(durations, EVENT, strata)

    def withhold(frame: pl.DataFrame, name: str) -> pl.DataFrame:
        return withhold_without_ends(frame, tables[name].columns, ends)

    law = withhold(sizes.size_law(sums, basis, clusters), "size_law")
    limit = projection_limit(sums, law)
    rate = sizes.node_failure_rate(sums, basis, gpus_per_node, source, above_gpus, limit, clusters)
    # Failures that only logs or health events would reveal are not counted.
    is_bound = basis == "state" and not settings.has_logs
    rate = withhold(rate.with_columns(bound=pl.lit("lower" if is_bound else None, pl.String)), "node_failure_rate")
    summary = survival_summary(durations, EVENT, strata)
    mttf = mean_time_to_failure(durations, EVENT, strata, block_days=settings.block_days)
    # Basis on which an event counts as infrastructure; with proxy every failure does.
    ground = pl.lit(basis, pl.String).alias("basis")
    return {
        "mttf_by_gpus": withhold(sizes.mttf_by_gpus(sums, rate, gpus_per_node, clusters), "mttf_by_gpus"),
        "node_failure_rate": rate,
        "size_law": law,
        "survival_summary_infra": withhold(summary.with_columns(ground), "survival_summary_infra"),
        "mttf_infra": withhold(mttf.with_columns(ground), "mttf_infra"),
    }
