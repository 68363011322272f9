"""Nodes with excess outages among InfiniteHBD's 400 servers: none exceeds the spread of ordinary ones."""

import pytest
from memory_tables import compute_metrics
from outage_traces import infinitehbd
from ttf.analyses.outages.list_drains.compute import compute
from ttf.records.inputs import Inputs


def test_on_faults_of_a_real_cluster(shared_data, tmp_path):
    if not (shared_data / "infinitehbd").is_dir():
        pytest.skip("the faults of InfiniteHBD are not beside the checkout")
    outages, _, exposure = infinitehbd(shared_data / "infinitehbd")
    for name, frame in (("outages", outages), ("exposure", exposure)):
        frame.write_parquet(tmp_path / f"{name}.parquet")
    files = {name: str(tmp_path / f"{name}.parquet") for name in ("outages", "exposure")}
    settings = {"false_discovery": 0.05, "checkpoint_interval_s": 3600, "has_jobs": False, "prices": {}}
    tables = compute(Inputs(files, {}, settings))
    nodes, summary = tables["drain_list"], compute_metrics("list_drains", tables)
    # The node with the most outages has nine times those expected, but ordinary servers differ that much.
    assert nodes.height == 400 and nodes["outages"][0] == 14 and not nodes["listed"].any()
    assert 0.6 < summary["drains.ordinary_cv"]["value"] < 1
    assert tables["drains"] == {"exclude.txt": ""}
    assert summary["drains.listed"]["value"] == 0
