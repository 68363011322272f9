"""Titan's durations against its publishers' summary and against independent computations."""

import csv
import math
from collections import defaultdict

import numpy as np
import pytest
from format_tables import derive_table, ingest_tables
from plan_inputs import HABITS
from ttf.analyses.large_runs.plan_ettr.compute import plan_tables
from ttf.analyses.scaling.measure_sizes.sizes import (
    mttf_by_gpus,
    node_failure_rate,
    select_component_runs,
    sums_by_nodes,
)
from ttf.analyses.time_to_failure.fit_mttf.compute import lifetime_models
from ttf.analyses.time_to_failure.judge_lifetimes.compute import lifetime_verdict
from ttf.records.infra import infra_durations_of_components
from ttf.stats.durations.survival import survival_tables
from ttf.stats.large_runs.plans import node_rate
from ttf.stats.large_runs.projection import ProjectionLimit


@pytest.fixture(scope="module")
def folder(shared_data):
    if not (shared_data / "titan").is_dir():
        pytest.skip("the Titan data are not beside the checkout")
    return shared_data / "titan"


@pytest.fixture(scope="module")
def ingested(folder, tmp_path_factory):
    """Return (row account, raw tables) as the study ingests them."""
    raw, account, _ = ingest_tables("titan", tmp_path_factory.mktemp("titan"), 0, stays=[folder / "gc_full.csv"])
    return account, raw


@pytest.fixture(scope="module")
def durations(ingested):
    return derive_table("titan", "durations", ingested[1])


@pytest.fixture(scope="module")
def rows(folder):
    with (folder / "gc_full.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def summary(folder):
    with (folder / "gc_summary_loc.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def durations_by_batch(rows):
    """Return (durations, failed) of the GPUs by batch, from the raw rows."""
    time, first_insert, removed, events = defaultdict(int), {}, set(), defaultdict(list)
    for row in rows:
        serial = row["SN"]
        if row["insert"]:
            time[serial] += int(row["duration"])
            first_insert[serial] = min(first_insert.get(serial, row["insert"]), row["insert"])
        if row["out"] == "TRUE":
            removed.add(serial)
        if row["event"]:
            events[serial].append(row["event"])
    batches = {"new": ([], []), "old": ([], [])}
    for serial, seconds in time.items():
        durations, failed = batches["new" if first_insert[serial] > "2016-01-01" else "old"]
        durations.append(seconds)
        failed.append(serial in removed and serial in events)
    return {batch: (np.array(durations), np.array(failed)) for batch, (durations, failed) in batches.items()}


def test_every_row_is_kept(ingested):
    assert ingested[0].rows() == [("stays", 37_343, 37_343, 0)]


def test_known_numbers(rows, durations):
    events = defaultdict(int)
    for row in rows:
        events[row["SN"]] += row["event"] != ""
    assert sum(row["insert"] == "" for row in rows) == 1158
    assert sum(count > 1 for count in events.values()) == 551
    assert durations.height == durations["unit_id"].n_unique() == 30_207
    assert durations["event"].count() == 5089
    assert (durations["dbe"].sum(), durations["otb"].sum(), durations.filter("dbe", "otb").height) == (3871, 1486, 268)
    assert dict(durations["batch"].value_counts().rows()) == {"new": 11_370, "old": 18_837}
    assert dict(durations["cage"].value_counts().rows()) == {0: 7017, 1: 10_398, 2: 12_792}


def test_every_gpu_is_as_in_the_publishers_summary(durations, summary):
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
    actual = {serial: tuple(values) for serial, *values in durations.select("unit_id", *columns).iter_rows()}
    assert len(expected) == 30_207
    assert actual == expected


def test_failure_rate_of_a_node_and_its_projection(durations, durations_by_batch):
    infra = infra_durations_of_components(durations, ["dbe", "otb"])
    assert infra.select("unit_id", "duration_s", "batch").equals(durations.select("unit_id", "duration_s", "batch"))
    node_sums = sums_by_nodes(select_component_runs(infra))
    table = node_failure_rate(
        node_sums, "component", 1, "trace", None, ProjectionLimit(1, 1, "one size only", "more sizes")
    )
    row = table.row(0, named=True)
    days = sum(int(durations.sum()) for durations, _ in durations_by_batch.values()) / 86_400
    failures = sum(int(failed.sum()) for _, failed in durations_by_batch.values())
    assert (row["jobs"], row["failures"]) == (30_207, failures)
    assert math.isclose(row["failures_per_node_day"], failures / days, rel_tol=1e-12)
    mttf_table = mttf_by_gpus(node_sums, table, 1)
    # Each duration is of one GPU, so the scaling law cannot be tested and nothing is projected.
    assert mttf_table["projected_mttf_s"].to_list() == [mttf_table["mttf_s"][0]] + [None] * (mttf_table.height - 1)
    assert mttf_table["failures"].to_list() == [5089] + [None] * (mttf_table.height - 1)
    rate = node_rate(table, mttf_table)
    assert plan_tables(rate, HABITS[:1], [1024], 200, 1)[0]["ettr_renewal"].to_list() == [None]


@pytest.fixture(scope="module")
def verdicts(durations):
    strata = ["batch", "cage"]
    models = lifetime_models(durations, "failure", strata)
    return models, lifetime_verdict(models, survival_tables(durations, "failure", strata)[0])


def test_a_constant_failure_rate_misleads_for_the_old_batch(verdicts, durations_by_batch):
    rows = {row["stratum"]: row for row in verdicts[1].filter(stratum_by="batch").iter_rows(named=True)}
    old_batch, new_batch = rows["old"], rows["new"]
    assert old_batch["verdict"] == "rises" and old_batch["misleads"] is True
    assert new_batch["misleads"] is False
    # The old batch failed about thirty times as often in the second half of its service as in the first.
    durations, failed = durations_by_batch["old"]
    late_to_early_ratio = (failed & (durations > old_batch["split_age_s"])).sum() / (
        failed & (durations <= old_batch["split_age_s"])
    ).sum()
    assert 25 < late_to_early_ratio < 32
    assert old_batch["young_mttf_s"] / old_batch["old_mttf_s"] == pytest.approx(late_to_early_ratio)
    # After two years 1 % had failed; the constant rate has 13 % failed by then.
    assert 1 - old_batch["km_survival"] < 0.0105 and 1 - old_batch["exponential_survival"] > 0.129
