"""Titan's lives against its publishers' own summary, and against facts worked out here by another route."""

import csv
import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from lifetime_checks import check_models, check_verdict
from of_formats import raw_schemas, table_of
from plan_inputs import HABITS, wall_by_first_steps
from scipy import stats
from statsmodels.duration.hazard_regression import PHReg
from statsmodels.duration.survfunc import CumIncidenceRight, survdiff
from ttf.analyses.estimate_hazards.hazard_ratios import hazard_ratios
from ttf.analyses.estimate_hazards.incidence import cumulative_incidence, exclusive_causes
from ttf.analyses.estimate_hazards.logrank import logrank
from ttf.analyses.fit_mttf.lifetimes import lifetime_models
from ttf.analyses.judge_lifetimes.compute import lifetime_verdict
from ttf.analyses.measure_sizes.sizes import mttf_by_gpus, node_failure_rate, of_components, sums_by_nodes
from ttf.analyses.plan_ettr.compute import plan_tables
from ttf.infra import infra_lives_of_components
from ttf.ingest import ingest
from ttf.stats.mttf import mean_time_to_failure
from ttf.stats.plans import node_rate
from ttf.stats.projection import Reach
from ttf.stats.survival import survival_tables

YEAR = 31_557_600


@pytest.fixture(scope="module")
def folder(shared_data):
    if not (shared_data / "titan").is_dir():
        pytest.skip("the Titan data are not beside the checkout")
    return shared_data / "titan"


@pytest.fixture(scope="module")
def done(folder, tmp_path_factory):
    """(row account, raw tables) as the study ingests them."""
    into = tmp_path_factory.mktemp("titan")
    schemas = raw_schemas("titan")
    account, _ = ingest({"stays": [folder / "gc_full.csv"]}, schemas, into, 0)
    return account, {"stays": pl.scan_parquet(into / "stays.parquet")}


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


@pytest.mark.parametrize("batch", ["new", "old"])
def test_kaplan_meier(lives, by_batch, batch):
    durations, failed = by_batch[batch]
    reference = stats.ecdf(stats.CensoredData.right_censored(durations, ~failed)).sf
    curve, summary = survival_tables(lives, "failure", ["batch"])
    curve = curve.filter(stratum=batch)
    assert np.abs(curve["survival"].to_numpy() - reference.evaluate(curve["time_s"].to_numpy())).max() < 1e-10
    n, events = summary.filter(stratum=batch).select("n", "events").row(0)
    assert (n, events) == (len(durations), failed.sum())
    # By hand, at whole years: the product over the failures up to then.
    for year in (1, 2, 3, 4, 5):
        survival, times = 1.0, np.unique(durations[failed & (durations <= year * YEAR)])
        for time in times:
            survival *= 1 - (failed & (durations == time)).sum() / (durations >= time).sum()
        found = curve.filter(pl.col("time_s") <= year * YEAR)["survival"][-1]
        assert math.isclose(found, survival, rel_tol=1e-10)


@pytest.mark.parametrize("batch", ["new", "old"])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_mean_time_to_failure(lives, by_batch, batch, confidence):
    durations, failed = by_batch[batch]
    exposure, failures, tail = int(durations.sum()), int(failed.sum()), (1 - confidence) / 2
    row = mean_time_to_failure(lives, "failure", ["batch"]).row(
        by_predicate=(pl.col("stratum") == batch) & (pl.col("confidence") == confidence), named=True
    )
    assert (row["n"], row["events"], row["exposure_s"]) == (len(durations), failures, exposure)
    assert math.isclose(row["mttf_s"], exposure / failures, rel_tol=1e-12)
    assert math.isclose(row["ci_low_s"], 2 * exposure / stats.chi2.ppf(1 - tail, 2 * failures + 2), rel_tol=1e-9)
    assert math.isclose(row["ci_high_s"], 2 * exposure / stats.chi2.ppf(tail, 2 * failures), rel_tol=1e-9)
    assert math.isclose(row["gpu_days"], exposure / 86_400, rel_tol=1e-12)
    assert math.isclose(row["failures_per_1000_gpu_days"], failures * 1000 * 86_400 / exposure, rel_tol=1e-12)


@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_failure_rate_of_a_node_and_its_projection(lives, by_batch, confidence):
    infra = infra_lives_of_components(lives, ["dbe", "otb"])
    assert infra.select("unit_id", "duration_s", "batch").equals(lives.select("unit_id", "duration_s", "batch"))
    told = sums_by_nodes(of_components(infra))
    table = node_failure_rate(told, "component", 1, "trace", None, Reach(1, 1, "one size only", "more sizes"))
    row = table.row(by_predicate=pl.col("confidence") == confidence, named=True)
    days = sum(int(durations.sum()) for durations, _ in by_batch.values()) / 86_400
    failures = sum(int(failed.sum()) for _, failed in by_batch.values())
    assert (row["jobs"], row["failures"]) == (30_207, failures)
    assert math.isclose(row["failures_per_node_day"], failures / days, rel_tol=1e-12)
    # The limits are the rates at which so many failures, or so few, are as rare as the tail.
    tail = (1 - confidence) / 2
    assert math.isclose(stats.poisson.cdf(failures, row["ci_high_per_node_day"] * days), tail, rel_tol=1e-6)
    assert math.isclose(stats.poisson.sf(failures - 1, row["ci_low_per_node_day"] * days), tail, rel_tol=1e-6)
    by_gpus = mttf_by_gpus(told, table, 1)
    # No life is of several GPUs: whether failures add up cannot be tested, and nothing is projected.
    assert by_gpus["projected_mttf_s"].to_list() == [by_gpus["mttf_s"][0]] + [None] * (by_gpus.height - 1)
    assert by_gpus["failures"].to_list() == [5089] + [None] * (by_gpus.height - 1)
    rate = node_rate(table, by_gpus)
    assert plan_tables(rate, HABITS[:1], [1024], 200, 1)[0]["ettr_renewal"].to_list() == [None]
    far = replace(rate, projects_to=1024)
    ettr = plan_tables(far, HABITS[:1], [1024], 200, 1)[0].filter(rate="estimate").row(0, named=True)
    wall = wall_by_first_steps(1024 * failures / (days * 86_400), HABITS[0])
    assert math.isclose(ettr["ettr_renewal"], HABITS[0].productive_s / wall, rel_tol=1e-9)


def test_logrank_by_batch(lives, by_batch):
    """Against SciPy's and statsmodels', computed here from the raw rows."""
    new, old = (stats.CensoredData.right_censored(time, ~failed) for time, failed in by_batch.values())
    expected = stats.logrank(new, old).statistic ** 2
    tests = logrank(lives, "failure", ["batch", "cage"])
    batch = tests.filter(stratum_by="batch")
    assert batch["kind"].to_list() == ["overall", "pairwise"]
    for row in batch.iter_rows(named=True):
        assert (row["n"], row["events"], row["df"]) == (30_207, 5089, 1)
        assert math.isclose(row["statistic"], expected, rel_tol=1e-9)
    by_cage = lives.drop_nulls("cage")
    failed = by_cage["event"].is_not_null().to_numpy().astype(int)
    statistic, _ = survdiff(by_cage["duration_s"].to_numpy(), failed, by_cage["cage"].to_numpy())
    assert math.isclose(tests.filter(stratum_by="cage", kind="overall")["statistic"].item(), statistic, rel_tol=1e-9)


def test_hazard_ratios_of_batch_and_cage(lives):
    table = hazard_ratios(lives, "failure", ["batch", "cage"]).drop_nulls("hazard_ratio")
    assert table["level"].to_list() == ["new", "1", "0"] and table["reference"].to_list() == ["old", "2", "2"]
    levels = {"new": pl.col("batch") == "new", "1": pl.col("cage") == 1, "0": pl.col("cage") == 0}
    design = lives.select(**levels)
    failed = lives["event"].is_not_null().to_numpy().astype(int)
    model = PHReg(lives["duration_s"].to_numpy(), design.cast(pl.Float64).to_numpy(), status=failed, ties="efron")
    reference = model.fit(tol=1e-12)
    assert np.allclose(table["log_hazard_ratio"].to_numpy(), reference.params, rtol=1e-7)
    assert np.allclose(table["se"].to_numpy(), reference.bse, rtol=1e-7)


def test_cumulative_incidence_of_exclusive_causes(lives, rows):
    """A GPU with both kinds of event is ended by both: three ends that exclude each other."""
    competing, ends = exclusive_causes(lives, ["dbe", "otb"])
    assert ends == ["dbe only", "otb only", "dbe and otb"]
    counts = dict(competing["event"].drop_nulls().value_counts().iter_rows())
    assert counts == {"dbe only": 3871 - 268, "otb only": 1486 - 268, "dbe and otb": 268}
    codes = {None: 0} | {end: code for code, end in enumerate(ends, 1)}
    with np.errstate(divide="ignore", invalid="ignore"):
        reference = CumIncidenceRight(
            competing["duration_s"].to_numpy(), np.array([codes[end] for end in competing["event"]])
        )
    curves = cumulative_incidence(competing, ends, ["all"]).filter(pl.col("time_s") >= reference.times[0])
    for code, end in enumerate(ends):
        curve = curves.filter(event=end)
        assert curve["time_s"].to_list() == reference.times.tolist()
        assert np.abs(curve["incidence"].to_numpy() - reference.cinc[code]).max() < 1e-9


@pytest.fixture(scope="module")
def by_cage(rows, summary):
    """Cage -> (durations, failed) of its GPUs, from the publishers' summary."""
    cages = defaultdict(lambda: ([], []))
    for row in summary:
        durations, failed = cages[row["cage"]]
        durations.append(int(row["time"]))
        failed.append(row["dead"] == "TRUE")
    return {cage: (np.array(durations), np.array(failed)) for cage, (durations, failed) in cages.items()}


@pytest.fixture(scope="module")
def judged(lives):
    """(lifetime models, verdict) by batch and cage."""
    strata = ["batch", "cage"]
    models = lifetime_models(lives, "failure", strata)
    return models, lifetime_verdict(models, survival_tables(lives, "failure", strata)[0])


@pytest.mark.parametrize(("kind", "stratum"), [("batch", "new"), ("batch", "old"), *(("cage", c) for c in "012")])
def test_lifetime_models_and_verdict(judged, by_batch, by_cage, kind, stratum):
    models, verdict = judged
    durations, failed = (by_batch if kind == "batch" else by_cage)[stratum]
    check_models(models.filter(stratum_by=kind, stratum=stratum), durations, failed)
    check_verdict(verdict.filter(stratum_by=kind, stratum=stratum).row(0, named=True), durations, failed)


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
