"""Nodes with excess outages among the 400 servers of InfiniteHBD, and how lists of them would have done."""

import pytest
from given_tables import metrics_of
from outage_traces import infinitehbd
from ttf.analyses.outages.rank_drains.compute import compute
from ttf.formats.sacct.hostlist import expand
from ttf.records.inputs import Inputs


def test_on_faults_of_a_real_cluster(shared_data, tmp_path):
    if not (shared_data / "infinitehbd").is_dir():
        pytest.skip("the faults of InfiniteHBD are not beside the checkout")
    outages, _, exposure = infinitehbd(shared_data / "infinitehbd")
    for name, frame in (("outages", outages), ("exposure", exposure)):
        frame.write_parquet(tmp_path / f"{name}.parquet")
    files = {name: str(tmp_path / f"{name}.parquet") for name in ("outages", "exposure")}
    settings = {"false_discovery": 0.05, "checkpoint_interval_s": 3600, "has_jobs": False}
    found = compute(Inputs(files, {}, settings))
    nodes, every = found["drain_list"], found["drain_backtest"].row(0, named=True)
    assert nodes.height == 400 and nodes["listed"].sum() == 3 and nodes["outages"][0] == 14
    assert len(expand(found["drains"]["exclude.txt"].strip().removeprefix("--exclude="))) == 3
    assert (every["listed"], every["failed"]) == (36, 4)
    assert every["ci_low_clustered"] > 1
    metrics = metrics_of("rank_drains", found)
    assert metrics["drains.listed"]["value"] == 3
