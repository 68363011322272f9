"""Nodes with excess outages among InfiniteHBD's 400 servers, and the backtest of drain lists."""

import pytest
from given_tables import compute_metrics
from outage_traces import infinitehbd
from ttf.analyses.nodes.find_lemon_nodes import LEMON_NODES
from ttf.analyses.nodes.list_drains.compute import exclude_option, list_nodes
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
    settings = {"false_discovery": 0.05, "checkpoint_interval_s": 3600, "has_jobs": False, "prices": {}}
    tables = compute(Inputs(files, {}, settings))
    nodes, backtest = tables["drain_list"], tables["drain_backtest"].row(0, named=True)
    assert nodes.height == 400 and nodes["listed"].sum() == 3 and nodes["outages"][0] == 14
    option = exclude_option(list_nodes(LEMON_NODES.frame([]), nodes))
    assert len(expand(option.strip().removeprefix("--exclude="))) == 3
    assert (backtest["listed"], backtest["failed"]) == (36, 4)
    assert backtest["ci_low_clustered"] > 1
    assert compute_metrics("rank_drains", tables)["drains.listed"]["value"] == 3
