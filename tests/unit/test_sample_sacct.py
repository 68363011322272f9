"""The synthetic Slurm accounting: the study finds its configured rate of failures and its planted lemons."""

import numpy as np
import polars as pl
import pytest
from given_tables import ingested as ingested_beside
from of_formats import derive_table, raw_schemas
from samples.sacct import sample
from samples.sacct.sample_cluster import NODE_GPUS
from ttf.analyses.nodes.find_lemon_nodes.compute import lemon_nodes
from ttf.analyses.nodes.find_lemon_nodes.node_runs import last_window, split_window
from ttf.analyses.scaling.measure_sizes.sizes import node_failure_rate, select_job_runs, sums_by_nodes
from ttf.engine.storage.partitions import Partitions
from ttf.formats.sacct import read as sacct_reader
from ttf.raw.extra_table_reader import health_events
from ttf.raw.ingest import ingest
from ttf.records.infra import EVENT, infra_durations
from ttf.stats.large_runs.projection import ProjectionLimit

JOBS = 4_000
HAZARD = sample.Hazard()
RULES = {"states": ["NODE_FAIL"], "events": {"severities": ["high"]}}


def simulate(seed: int, jobs: int = JOBS, hazard: sample.Hazard = HAZARD):
    plan, nodes = sample.plan(jobs, seed), sample.node_count(jobs)
    failures, _ = sample.node_failures(np.random.default_rng([seed, 1]), nodes, hazard)
    return plan, sample.simulate_runs(plan, nodes, failures), nodes


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slurm")
    return folder, sample.write_sample(folder / "new", JOBS)


@pytest.fixture(scope="module")
def ingested(output):
    """Jobs, attempts and infrastructure durations as the study makes them; the row account."""
    folder, _ = output
    schemas = raw_schemas("sacct")
    (folder / "raw").mkdir()
    files = [folder / "new" / sample.FILES[name] for name in ("record_a", "record_b")]
    account, _ = ingest({"record": files}, schemas, folder / "raw", 0.0, sacct_reader.READERS)
    raw = {"record": pl.scan_parquet(folder / "raw/record.parquet")}
    jobs = derive_table("sacct", "jobs", raw).with_columns(trace=pl.lit("t"))
    attempts = derive_table("sacct", "attempts", raw)
    ingested_beside("health_event", folder / "new/health_events.csv", folder / "raw")
    events = health_events(folder / "raw")
    return jobs, attempts, infra_durations(jobs, attempts, RULES, events), account


# ---- the configured rate comes out ----


def test_the_study_finds_every_failure_that_ended_a_run(ingested):
    _, runs, _ = simulate(seed=2025)
    durations = ingested[2]
    assert set(durations["basis"]) == {"event"}
    assert (durations["event"] == EVENT).sum() == sum(run.failed_node is not None for run in runs)
    table = node_failure_rate(
        sums_by_nodes(select_job_runs(durations, NODE_GPUS)),
        "event",
        NODE_GPUS,
        "default",
        128,
        ProjectionLimit(64, 256, "", ""),
    )
    for row in table.to_dicts():
        assert row["ci_low"] < HAZARD.failures_per_1000_node_days < row["ci_high"]


def test_only_planted_lemons_are_flagged(output, ingested, tmp_path):
    """The other nodes differ too, the worst from the best by a factor of ten, and none is flagged.

    With 68 failures not every planted node is flagged, but the shrunken rates rank all of them first.
    """
    raw = {"record": pl.scan_parquet(output[0] / "raw/record.parquet")}
    placements = derive_table("sacct", "placements", raw).lazy()
    window = last_window(placements, 365)
    rates = lemon_nodes(placements, ingested[2].lazy(), [window, *split_window(window)], 0.05, Partitions(tmp_path))[0]
    planted_nodes = {sample.node_name(node) for node in HAZARD.lemons(sample.node_count(JOBS)).tolist()}
    flagged_nodes = set(rates.filter("lemon")["node"])
    assert flagged_nodes and flagged_nodes <= planted_nodes
    ranked_rates = rates.sort("posterior_rate_ratio", descending=True)
    assert set(ranked_rates["node"][: len(planted_nodes)]) == planted_nodes
