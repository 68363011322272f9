"""Lemons among LANL's nodes, against rates worked out here from the lives by another route."""

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
def counted(results):
    """Node -> [system, outages, those a day or more after the repair before, seconds in service and working]."""
    found = defaultdict(lambda: ["", 0, 0, 0])
    lives = pl.read_parquet(results / "lives.parquet")
    for row in lives.select("unit_id", "system", "life_id", "duration_s", "event").iter_rows():
        node, system, number, seconds, event = row
        tally = found[node]
        tally[0] = system
        tally[1] += event == "failure"
        tally[2] += event == "failure" and not (seconds < DAY and number > 0)
        tally[3] += seconds
    return found


def test_counts_and_exposure(nodes, counted):
    assert len(nodes) == len(counted) == 5006
    for node, (system, outages, counts, seconds) in counted.items():
        row = nodes[node]
        assert (row["fleet"], row["out_count"], row["counted"], row["exposure_s"]) == (
            system,
            str(outages),
            str(counts),
            str(seconds),
        )


def test_p_values_and_verdicts(nodes, counted):
    fleets = defaultdict(lambda: [0, 0, 0])
    for system, _, counts, seconds in counted.values():
        fleets[system] = [a + b for a, b in zip(fleets[system], (counts, seconds, 1), strict=True)]
    p = {}
    for node, (system, _, counts, seconds) in counted.items():
        total, whole, members = fleets[system]
        if members > 1 and total:
            p[node] = stats.binomtest(counts, total, seconds / whole, alternative="greater").pvalue
    assert {node for node, row in nodes.items() if row["p_value"]} == set(p)
    for node, value in p.items():
        assert math.isclose(float(nodes[node]["p_value"]), value, rel_tol=1e-7), node
    # Against ordinary nodes, which differ, too.
    cvs = {row["ordinary_cv"] for node, row in nodes.items() if node in p}
    shape = float(cvs.pop()) ** -2
    assert not cvs and 0.3 < shape**-0.5 < 1.5
    for node in p:
        mean = float(nodes[node]["ordinary_expected"])
        p[node] = max(p[node], stats.nbinom.sf(counted[node][2] - 1, shape, shape / (shape + mean)))
        assert math.isclose(float(nodes[node]["p_spread"]), p[node], rel_tol=1e-7), node
    # Benjamini and Hochberg by hand: the largest rank whose p-value is below its share of 5 %.
    ranked = sorted(p.values())
    last = max(rank for rank, value in enumerate(ranked, start=1) if value <= 0.05 * rank / len(ranked))
    lemons = {node for node, row in nodes.items() if row["lemon"] == "true"}
    assert lemons == {node for node, value in p.items() if value <= ranked[last - 1]}
    assert len(lemons) == 61
    # The front ends, of which Schroeder and Gibson (2006) tell that they fail most.
    assert {"18/0", "19/0", "20/0"} <= lemons


def test_what_pulling_them_brings(results, nodes, counted):
    effect = pl.read_csv(results / "tables/lemon_effect.csv")
    lemons = {node for node, row in nodes.items() if row["lemon"] == "true"}
    rest = [tally for node, tally in counted.items() if node not in lemons]
    same, split = effect.to_dicts()
    assert same["mttf_without_s"] == pytest.approx(sum(tally[3] for tally in rest) / sum(tally[1] for tally in rest))
    assert same["failures"] == sum(tally[1] for tally in counted.values()) == 23_324
    # Regression to the mean: what was picked on the first half brings less on the second.
    assert 1 < split["mttf_ratio"] < same["mttf_ratio"]
