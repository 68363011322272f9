"""The synthetic Slurm accounting: the study finds its configured rate of failures and its planted lemons."""

import numpy as np
import polars as pl
import pytest
from format_tables import derive_table, raw_schemas
from memory_tables import ingested as ingested_beside
from samples.sacct import sample
from samples.sacct.sample_cluster import NODE_GPUS
from ttf.analyses.nodes.find_lemon_nodes.compute import lemon_nodes
from ttf.analyses.scaling.measure_sizes.sizes import node_failure_rate, select_job_runs, sums_by_nodes
from ttf.engine.storage.partitions import Partitions
from ttf.formats.sacct import read as sacct_reader
from ttf.raw.extra_table_reader import health_events
from ttf.raw.ingest import ingest
from ttf.records.infra import EVENT, infra_durations
from ttf.stats.large_runs.projection import ProjectionLimit
from ttf.stats.nodes.node_runs import last_window, split_window

JOBS = 4_000
HAZARD = sample.Hazard()
RULES = {"states": ["NODE_FAIL"], "events": {"severities": ["high"]}}


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slurm")
    sample.write_sample(folder, JOBS)
    files = [folder / sample.FILES[name] for name in ("record_a", "record_b")]
    ingest({"record": files}, raw_schemas("sacct"), folder, 0.0, sacct_reader.READERS)
    ingested_beside("health_event", folder / "health_events.csv", folder)
    return folder, {"record": pl.scan_parquet(folder / "record.parquet")}


@pytest.fixture(scope="module")
def durations(raw):
    """Infrastructure durations as the study makes them."""
    folder, records = raw
    jobs = derive_table("sacct", "jobs", records).with_columns(trace=pl.lit("t"))
    return infra_durations(jobs, derive_table("sacct", "attempts", records), RULES, health_events(folder))


def test_the_study_finds_every_failure_that_ended_a_run(durations):
    nodes = sample.node_count(JOBS)
    failures, _ = sample.node_failures(np.random.default_rng([2025, 1]), nodes, HAZARD)
    runs = sample.simulate_runs(sample.plan(JOBS, 2025), nodes, failures)
    assert set(durations["basis"]) == {"event"}
    assert (durations["event"] == EVENT).sum() == sum(run.failed_node is not None for run in runs)
    totals, limit = sums_by_nodes(select_job_runs(durations, NODE_GPUS)), ProjectionLimit(64, 256, "", "")
    table = node_failure_rate(totals, "event", NODE_GPUS, "default", 128, limit)
    for row in table.to_dicts():
        assert row["ci_low"] < HAZARD.failures_per_1000_node_days < row["ci_high"]


def test_only_planted_lemons_are_flagged(raw, durations, tmp_path):
    """The other nodes differ too, the worst from the best by a factor of ten, and none is flagged.

    With 68 failures not every planted node is flagged, but the shrunken rates rank all of them first.
    """
    placements = derive_table("sacct", "placements", raw[1]).lazy()
    window = last_window(placements, 365)
    rates = lemon_nodes(placements, durations.lazy(), [window, *split_window(window)], 0.05, Partitions(tmp_path))[0]
    planted_nodes = {sample.node_name(node) for node in HAZARD.lemons(sample.node_count(JOBS)).tolist()}
    flagged_nodes = set(rates.filter("lemon")["node"])
    assert flagged_nodes and flagged_nodes <= planted_nodes
    ranked_rates = rates.sort("posterior_rate_ratio", descending=True)
    assert set(ranked_rates["node"][: len(planted_nodes)]) == planted_nodes
