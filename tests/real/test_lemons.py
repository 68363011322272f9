"""LANL's nodes with excess failures against independent computations from the durations."""

import math
from collections import defaultdict

import polars as pl
import pytest
from scipy import stats
from study_runs import check_out

DAY = 86_400


@pytest.fixture(scope="module")
def results(tmp_path_factory, shared_data):
    study = check_out(tmp_path_factory.mktemp("lemons") / "checkout")
    table = "results/lanl/tables/lemon_nodes.csv"
    lanl = {"lanl": {"folder": str(shared_data / "lanl")}}
    targets = ("--", table, "results/lanl/tables/lemon_effect.csv")
    study.snakemake(*targets, one_process=True, study=["lanl"], registry=lanl)
    return study.folder / "results/lanl"


@pytest.fixture(scope="module")
def nodes(results):
    return {row["node"]: row for row in pl.read_csv(results / "tables/lemon_nodes.csv", infer_schema=False).to_dicts()}


@pytest.fixture(scope="module")
def tallies_by_node(results):
    """Return [system, outages, outages a day or more after the last repair, seconds up] by node."""
    tallies = defaultdict(lambda: ["", 0, 0, 0])
    durations = pl.read_parquet(results / "durations.parquet")
    for row in durations.select("unit_id", "system", "duration_id", "duration_s", "event").iter_rows():
        node, system, number, seconds, event = row
        tally = tallies[node]
        tally[0] = system
        tally[1] += event == "failure"
        tally[2] += event == "failure" and not (seconds < DAY and number > 0)
        tally[3] += seconds
    return tallies


def test_counts_and_exposure(nodes, tallies_by_node):
    assert len(nodes) == len(tallies_by_node) == 5006
    for node, (system, outages, counts, seconds) in tallies_by_node.items():
        row = nodes[node]
        assert (row["fleet"], row["out_count"], row["counted"], row["exposure_s"]) == (
            system,
            str(outages),
            str(counts),
            str(seconds),
        )


def test_p_values_and_verdicts(nodes, tallies_by_node):
    fleets = defaultdict(lambda: [0, 0, 0])
    for system, _, counts, seconds in tallies_by_node.values():
        fleets[system] = [a + b for a, b in zip(fleets[system], (counts, seconds, 1), strict=True)]
    p = {}
    for node, (system, _, counts, seconds) in tallies_by_node.items():
        total, fleet_seconds, members = fleets[system]
        if members > 1 and total:
            p[node] = stats.binomtest(counts, total, seconds / fleet_seconds, alternative="greater").pvalue
    assert {node for node, row in nodes.items() if row["p_value"]} == set(p)
    for node, value in p.items():
        assert math.isclose(float(nodes[node]["p_value"]), value, rel_tol=1e-7), node
    # Second test, which allows for variation among ordinary nodes.
    cvs = {row["ordinary_cv"] for node, row in nodes.items() if node in p}
    shape = float(cvs.pop()) ** -2
    assert not cvs and 0.3 < shape**-0.5 < 1.5
    for node, p_node in p.items():
        mean = float(nodes[node]["ordinary_expected"])
        p[node] = max(p_node, stats.nbinom.sf(tallies_by_node[node][2] - 1, shape, shape / (shape + mean)))
        assert math.isclose(float(nodes[node]["p_spread"]), p[node], rel_tol=1e-7), node
    # Benjamini-Hochberg: the largest rank whose p-value is below its share of 5 %.
    ranked = sorted(p.values())
    largest_rank = max(rank for rank, value in enumerate(ranked, start=1) if value <= 0.05 * rank / len(ranked))
    lemons = {node for node, row in nodes.items() if row["lemon"] == "true"}
    assert lemons == {node for node, value in p.items() if value <= ranked[largest_rank - 1]}
    assert len(lemons) == 34
    # The front ends, which fail most according to Schroeder and Gibson (2006).
    assert {"18/0", "19/0", "20/0"} <= lemons


def test_the_effect_of_removing_lemons(results, nodes, tallies_by_node):
    effect = pl.read_csv(results / "tables/lemon_effect.csv")
    lemons = {node for node, row in nodes.items() if row["lemon"] == "true"}
    other_tallies = [tally for node, tally in tallies_by_node.items() if node not in lemons]
    same_window, split_window = effect.to_dicts()
    assert same_window["mttf_without_s"] == pytest.approx(
        sum(tally[3] for tally in other_tallies) / sum(tally[1] for tally in other_tallies)
    )
    assert same_window["failures"] == sum(tally[1] for tally in tallies_by_node.values()) == 23_324
    # Regression to the mean: nodes selected on the first half gain less on the second.
    assert 1 < split_window["mttf_ratio"] < same_window["mttf_ratio"]
