"""MTTF by job size, and the failure rate of a node."""

import polars as pl

from ttf.analyses.scaling.measure_sizes import sizes
from ttf.records.clusters import CLUSTER_COLUMNS, durations_by_block
from ttf.records.durations import find_strata
from ttf.records.infra import EVENT
from ttf.records.inputs import Inputs
from ttf.stats.durations.mttf import mean_time_to_failure
from ttf.stats.durations.survival import survival_summary
from ttf.stats.large_runs.projection import projection_limit

DURATIONS = ("basis", "event", "cause", "start_s", "duration_s", "gpu_count", "gpu_milli", "nodes", *CLUSTER_COLUMNS)


def compute(inputs: Inputs) -> dict:
    """Return the tables of the analysis: MTTF by size, rate of a node, 1/N law, and survival by stratum."""
    settings = inputs.settings
    durations = inputs.scan("durations_infra", [*DURATIONS, *settings.strata])
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
    law = sizes.size_law(sums, basis, clusters)
    rate = sizes.node_failure_rate(
        sums, basis, gpus_per_node, source, above_gpus, projection_limit(sums, law), clusters
    )
    # Failures that only logs or health events would reveal are not counted.
    is_bound = basis == "state" and not settings.has_logs
    rate = rate.with_columns(bound=pl.lit("lower" if is_bound else None, pl.String))
    strata = find_strata(durations, settings.strata)
    # Basis on which an event counts as infrastructure; with proxy every failure does.
    ground = pl.lit(basis, pl.String).alias("basis")
    return {
        "mttf_by_gpus": sizes.mttf_by_gpus(sums, rate, gpus_per_node, clusters),
        "node_failure_rate": rate,
        "size_law": law,
        "survival_summary_infra": survival_summary(durations, EVENT, strata).with_columns(ground),
        "mttf_infra": mean_time_to_failure(durations, EVENT, strata, block_days=settings.block_days).with_columns(
            ground
        ),
    }
