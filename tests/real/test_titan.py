"""Titan's lives against its publishers' own summary, and against facts worked out here by another route."""

import csv
import math
from collections import defaultdict

import numpy as np
import pytest
from of_formats import table_of, typed
from plan_inputs import HABITS
from ttf.analyses.large_runs.plan_ettr.compute import plan_tables
from ttf.analyses.scaling.measure_sizes.sizes import (
    mttf_by_gpus,
    node_failure_rate,
    select_component_runs,
    sums_by_nodes,
)
from ttf.analyses.time_to_failure.fit_mttf.lifetimes import lifetime_models
from ttf.analyses.time_to_failure.judge_lifetimes.compute import lifetime_verdict
from ttf.records.infra import infra_lives_of_components
from ttf.stats.durations.survival import survival_tables
from ttf.stats.large_runs.plans import node_rate
from ttf.stats.large_runs.projection import Reach


@pytest.fixture(scope="module")
def folder(shared_data):
    if not (shared_data / "titan").is_dir():
        pytest.skip("the Titan data are not beside the checkout")
    return shared_data / "titan"


@pytest.fixture(scope="module")
def done(folder, tmp_path_factory):
    """(row account, raw tables) as the study ingests them."""
    raw, account, _ = typed("titan", tmp_path_factory.mktemp("titan"), 0, stays=[folder / "gc_full.csv"])
    return account, raw


@pytest.fixture(scope="module")
def lives(done):
    return table_of("titan", "lives", done[1])


@pytest.fixture(scope="module")
def rows(folder):
    with (folder / "gc_full.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def summary(folder):
    with (folder / "gc_summary_loc.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def by_batch(rows):
    """Batch -> (durations, failed) of its GPUs, from the raw rows."""
    time, first, out, events = defaultdict(int), {}, set(), defaultdict(list)
    for row in rows:
        serial = row["SN"]
        if row["insert"]:
            time[serial] += int(row["duration"])
            first[serial] = min(first.get(serial, row["insert"]), row["insert"])
        if row["out"] == "TRUE":
            out.add(serial)
        if row["event"]:
            events[serial].append(row["event"])
    batches = {"new": ([], []), "old": ([], [])}
    for serial, seconds in time.items():
        durations, failed = batches["new" if first[serial] > "2016-01-01" else "old"]
        durations.append(seconds)
        failed.append(serial in out and serial in events)
    return {batch: (np.array(durations), np.array(failed)) for batch, (durations, failed) in batches.items()}


def test_every_row_is_kept(done):
    assert done[0].rows() == [("stays", 37_343, 37_343, 0)]


def test_known_numbers(rows, lives):
    events = defaultdict(int)
    for row in rows:
        events[row["SN"]] += row["event"] != ""
    assert sum(row["insert"] == "" for row in rows) == 1158
    assert sum(count > 1 for count in events.values()) == 551
    assert lives.height == lives["unit_id"].n_unique() == 30_207
    assert lives["event"].count() == 5089
    assert (lives["dbe"].sum(), lives["otb"].sum(), lives.filter("dbe", "otb").height) == (3871, 1486, 268)
    assert dict(lives["batch"].value_counts().rows()) == {"new": 11_370, "old": 18_837}
    assert dict(lives["cage"].value_counts().rows()) == {0: 7017, 1: 10_398, 2: 12_792}


def test_every_gpu_is_as_in_the_publishers_summary(lives, summary):
    expected = {
        row["SN"]: (
            int(row["time"]),
            "failure" if row["dead"] == "TRUE" else None,
            row["dead_dbe"] == "TRUE",
            row["dead_otb"] == "TRUE",
            row["batch"],
            *(int(row[part]) for part in ("col", "row", "cage", "slot", "node")),
        )
        for row in summary
    }
    columns = ["duration_s", "event", "dbe", "otb", "batch", "column", "row", "cage", "slot", "node"]
    found = {serial: tuple(values) for serial, *values in lives.select("unit_id", *columns).iter_rows()}
    assert len(expected) == 30_207
    assert found == expected


def test_no_gpu_held_two_locations_equally_long(rows):
    held = defaultdict(lambda: defaultdict(int))
    for row in rows:
        if row["insert"]:
            held[row["SN"]][row["location"]] += int(row["duration"])
    assert not any(sorted(times.values())[-2:].count(max(times.values())) > 1 for times in held.values())


def test_failure_rate_of_a_node_and_its_projection(lives, by_batch):
    infra = infra_lives_of_components(lives, ["dbe", "otb"])
    assert infra.select("unit_id", "duration_s", "batch").equals(lives.select("unit_id", "duration_s", "batch"))
    told = sums_by_nodes(select_component_runs(infra))
    table = node_failure_rate(told, "component", 1, "trace", None, Reach(1, 1, "one size only", "more sizes"))
    row = table.row(0, named=True)
    days = sum(int(durations.sum()) for durations, _ in by_batch.values()) / 86_400
    failures = sum(int(failed.sum()) for _, failed in by_batch.values())
    assert (row["jobs"], row["failures"]) == (30_207, failures)
    assert math.isclose(row["failures_per_node_day"], failures / days, rel_tol=1e-12)
    by_gpus = mttf_by_gpus(told, table, 1)
    # No life is of several GPUs: whether failures add up cannot be tested, and nothing is projected.
    assert by_gpus["projected_mttf_s"].to_list() == [by_gpus["mttf_s"][0]] + [None] * (by_gpus.height - 1)
    assert by_gpus["failures"].to_list() == [5089] + [None] * (by_gpus.height - 1)
    rate = node_rate(table, by_gpus)
    assert plan_tables(rate, HABITS[:1], [1024], 200, 1)[0]["ettr_renewal"].to_list() == [None]


@pytest.fixture(scope="module")
def judged(lives):
    """(lifetime models, verdict) by batch and cage."""
    strata = ["batch", "cage"]
    models = lifetime_models(lives, "failure", strata)
    return models, lifetime_verdict(models, survival_tables(lives, "failure", strata)[0])


def test_a_constant_failure_rate_misleads_for_the_old_batch(judged, by_batch):
    rows = {row["stratum"]: row for row in judged[1].filter(stratum_by="batch").iter_rows(named=True)}
    old, new = rows["old"], rows["new"]
    assert old["verdict"] == "rises" and old["misleads"] is True
    assert new["misleads"] is False
    # In the second half of its service the old batch failed some thirty times as often as in the first.
    durations, failed = by_batch["old"]
    after = (failed & (durations > old["split_age_s"])).sum() / (failed & (durations <= old["split_age_s"])).sum()
    assert 25 < after < 32
    assert old["young_mttf_s"] / old["old_mttf_s"] == pytest.approx(after)
    # After two years 1 % had failed; the constant rate has 13 % failed by then.
    assert 1 - old["km_survival"] < 0.0105 and 1 - old["exponential_survival"] > 0.129
