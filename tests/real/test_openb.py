"""Every analysis of the openb trace against independent computations from the raw CSV."""

import csv
import json
import math
from collections import defaultdict
from statistics import fmean, median

import numpy as np
import polars as pl
import pytest
from lifetime_checks import check_verdict
from memory_tables import one_row
from scipy import stats
from statsmodels.duration.survfunc import CumIncidenceRight

HOUR_MILLI = 3_600_000
OUTCOMES = {"Succeeded": "success", "Failed": "failure", "Running": "running", "Pending": "waiting"}


@pytest.fixture(scope="module")
def openb(results):
    return results / "openb"


@pytest.fixture(scope="module")
def pods(shared_data):
    """Return the raw rows as plain Python numbers."""
    with (shared_data / "openb" / "openb_pod_list_default.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    trace_end = max(int(row[name]) for row in rows for name in row if name.endswith("_time") and row[name])
    for row in rows:
        is_scheduled = row["scheduled_time"] != ""
        # A pod deleted before the trace's end no longer runs.
        is_deleted = row["pod_phase"] == "Running" and row["deletion_time"] and int(row["deletion_time"]) < trace_end
        row["outcome"] = "unknown" if is_deleted else OUTCOMES[row["pod_phase"]]
        row["runtime"] = int(row["deletion_time"]) - int(row["scheduled_time"]) if is_scheduled else None
        row["gpu_percent"] = int(row["num_gpu"]) * int(row["gpu_milli"]) / 10
    return rows


@pytest.fixture(scope="module")
def times(pods):
    scheduled_pods = [row for row in pods if row["runtime"] is not None]
    return np.array([row["runtime"] for row in scheduled_pods]), np.array(
        [row["pod_phase"] == "Failed" for row in scheduled_pods]
    )


def table(folder, name):
    return pl.read_csv(folder / "tables" / f"{name}.csv", infer_schema_length=None)


def test_every_row_is_accounted_for(openb):
    account = pl.read_csv(openb / "quality" / "row_account.csv")
    assert account.rows() == [("pods", 8152, 8152, 0), ("nodes", 1523, 1523, 0)]


def test_counts_and_gpu_time_by_outcome(openb, pods):
    jobs, gpu = defaultdict(int), defaultdict(int)
    for row in pods:
        jobs[row["outcome"]] += 1
        gpu[row["outcome"]] += int(row["num_gpu"]) * int(row["gpu_milli"]) * (row["runtime"] or 0)
    outcomes = table(openb, "outcomes")
    assert dict(outcomes.select("outcome", "jobs").iter_rows()) == dict(jobs)
    assert dict(jobs) == {"unknown": 5159, "running": 34, "failure": 1870, "waiting": 897, "success": 192}
    # No phase of a pod means a time limit.
    assert outcomes["at_time_limit"].null_count() == 5
    for outcome, hours in outcomes.select("outcome", "gpu_hours").iter_rows():
        assert math.isclose(hours, gpu[outcome] / HOUR_MILLI, rel_tol=1e-12)
    for outcome in jobs:
        actual = outcomes.row(by_predicate=pl.col("outcome") == outcome, named=True)
        runtimes = [row["runtime"] for row in pods if row["outcome"] == outcome and row["runtime"] is not None]
        if runtimes:
            assert math.isclose(actual["runtime_mean_s"], fmean(runtimes), rel_tol=1e-12)
            assert actual["runtime_median_s"] == median(runtimes)
            assert math.isclose(actual["runtime_p90_s"], float(np.quantile(runtimes, 0.9)), rel_tol=1e-12)


OUTCOME_SETS = {"success": {"Succeeded"}, "failure": {"Failed"}, "not_success": {"Failed", "Running", "Pending"}}
FEATURES = {
    "gpu_request": lambda row: row["gpu_percent"],
    "cpu_request": lambda row: int(row["cpu_milli"]) / 10,
    "memory_request": lambda row: int(row["memory_mib"]) / 1024,
}


@pytest.mark.parametrize("outcome_set", OUTCOME_SETS)
@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("cutoff", [None, 20_000, 50_000, 100_000])
def test_group_means_and_their_correlation(openb, pods, outcome_set, feature, cutoff):
    groups = defaultdict(list)
    for row in pods:
        runtime = row["runtime"]
        if row["pod_phase"] in OUTCOME_SETS[outcome_set] and runtime is not None and (not cutoff or runtime < cutoff):
            groups[FEATURES[feature](row)].append(runtime)
    chosen = (
        (pl.col("outcome_set") == outcome_set)
        & (pl.col("feature") == feature)
        & (pl.col("cutoff_s").is_null() if cutoff is None else pl.col("cutoff_s") == cutoff)
    )
    actual = table(openb, "runtime_by_group").filter(chosen)
    assert {float(value): jobs for value, jobs in actual.select("value", "jobs").iter_rows()} == {
        value: len(runtimes) for value, runtimes in groups.items()
    }
    for value, mean, middle in actual.select("value", "runtime_mean_s", "runtime_median_s").iter_rows():
        assert math.isclose(mean, fmean(groups[float(value)]), rel_tol=1e-12)
        assert middle == median(groups[float(value)])
    x, y = zip(*((value, fmean(runtimes)) for value, runtimes in sorted(groups.items())), strict=True)
    for method, test in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr), ("kendall", stats.kendalltau)):
        row = one_row(table(openb, "correlations").filter(chosen), unit="group_mean", method=method)
        expected = test(x, y)
        assert row["n"] == len(groups)
        assert math.isclose(row["estimate"], expected.statistic, rel_tol=1e-9, abs_tol=1e-12)
        # SciPy gives p = 0 for a perfect correlation; the table never does.
        assert math.isclose(row["p_value"], expected.pvalue, rel_tol=1e-6, abs_tol=1e-300)


def test_mean_time_to_failure_by_job_size(openb, pods, shared_data):
    with (shared_data / "openb" / "openb_node_list_all_node.csv").open(newline="") as file:
        gpus = [int(row["gpu"]) for row in csv.DictReader(file)]
    # Most GPUs of the cluster are in nodes of eight, and no pod requests more: each pod has one node.
    held = {size: size * gpus.count(size) for size in set(gpus)}
    assert max(held, key=held.get) == 8
    gpu_pods = [row for row in pods if row["runtime"] is not None and row["gpu_percent"] > 0]
    assert max(row["gpu_percent"] for row in gpu_pods) == 800
    exposure = sum(row["runtime"] for row in gpu_pods)
    failures = sum(row["pod_phase"] == "Failed" for row in gpu_pods)
    first_class, *larger_classes = table(openb, "mttf_by_gpus").iter_rows(named=True)
    assert (first_class["gpus_low"], first_class["gpus_high"], first_class["basis"]) == (1, 8, "proxy")
    assert [first_class[name] for name in ("jobs", "failures", "exposure_s")] == [len(gpu_pods), failures, exposure]
    assert math.isclose(first_class["ci_low_s"], 2 * exposure / stats.chi2.ppf(0.95, 2 * failures + 2), rel_tol=1e-9)
    assert math.isclose(first_class["ci_high_s"], 2 * exposure / stats.chi2.ppf(0.05, 2 * failures), rel_tol=1e-9)
    assert larger_classes[-1]["gpus_high"] == 131_072
    # User failures are the proxy, and every pod has one node, so nothing is projected.
    assert {
        row[f"projected_{name}"] for row in (first_class, *larger_classes) for name in ("mttf_s", "low_s", "high_s")
    } == {None}
    rate = table(openb, "node_failure_rate").row(0, named=True)
    assert (rate["above_gpus"], rate["node_gpus"], rate["confidence"]) == (0, 8, 0.9)
    assert math.isclose(rate["failures_per_node_day"], failures * 86_400 / exposure, rel_tol=1e-12)
    assert table(openb, "size_law")["reason"].to_list() == ["one size only"] * 3
    infra = table(openb, "mttf_infra").row(0, named=True)
    assert (infra["event"], infra["n"], infra["events"]) == ("infra_failure", 7255, 1870)
    assert table(openb, "survival_summary_infra").row(0, named=True)["events"] == 1870


def duration_table(durations, entries, failed):
    ages = np.unique(durations[failed])
    return {
        int(age): (int(((entries < age) & (durations >= age)).sum()), int((durations[failed] == age).sum()))
        for age in ages
    }


def test_delayed_entry(openb, pods):
    """Pods that started before the file's first deletion enter late; compare with and without delayed entry."""
    scheduled_pods = [row for row in pods if row["runtime"] is not None]
    start_s = np.array([int(row["scheduled_time"]) for row in scheduled_pods])
    end_s = np.array([int(row["deletion_time"]) for row in scheduled_pods])
    failed = np.array([row["pod_phase"] == "Failed" for row in scheduled_pods])
    first_deletion_s = end_s.min()
    entries, durations = np.maximum(first_deletion_s - start_s, 0), end_s - start_s
    assert ((entries > 0).sum(), (entries == durations).sum()) == (33, 1)
    is_observed = (entries == 0) | (durations > entries)
    # A pod observed from its start is also at risk at 0 s.
    table = duration_table(durations[is_observed], np.where(entries > 0, entries, -1)[is_observed], failed[is_observed])
    survival = np.cumprod([1 - events / risk_count for risk_count, events in table.values()])
    summary = table_row(openb, "survival_summary_delayed_entry")
    assert (summary["n"], summary["events"], summary["entered_late"]) == (7254, 1870, 32)
    assert summary["median_s"] == list(table)[int(np.argmax(survival <= 0.5))]
    steps = [0, *table, int(durations.max())]
    mean_s = math.fsum(np.diff(steps) * np.array([1, *survival]))
    assert math.isclose(summary["restricted_mean_s"], mean_s, rel_tol=1e-9)
    assert summary["median_s"] < table_row(openb, "survival_summary")["median_s"]
    exposure = int((durations - entries).sum())
    delayed_entry_row = table_row(openb, "mttf_delayed_entry")
    assert [delayed_entry_row[name] for name in ("n", "events", "exposure_s")] == [7254, 1870, exposure]
    assert math.isclose(delayed_entry_row["mttf_s"], exposure / 1870, rel_tol=1e-12)
    # Thirty-two pods hold almost half of all the time without delayed entry.
    assert delayed_entry_row["exposure_s"] < 0.55 * table_row(openb, "mttf")["exposure_s"]


def table_row(folder, name):
    rows = table(folder, name).filter(stratum_by="all")
    return rows.row(-1, named=True)


def test_cumulative_incidence(openb, pods):
    scheduled_pods = [row for row in pods if row["runtime"] is not None]
    durations = np.array([row["runtime"] for row in scheduled_pods])
    names = ("failure", "success", "unknown")
    ends = np.array([1 + names.index(row["outcome"]) if row["outcome"] in names else 0 for row in scheduled_pods])
    with np.errstate(divide="ignore", invalid="ignore"):
        reference = CumIncidenceRight(durations, ends)
    actual = table(openb, "cumulative_incidence").filter(stratum_by="all")
    assert actual["event"].unique(maintain_order=True).to_list() == list(names)
    for end, incidence, se in zip(names, reference.cinc, reference.cinc_se, strict=True):
        curve = actual.filter(event=end).filter(pl.col("time_s") >= reference.times[0])
        indices = np.searchsorted(reference.times, curve["time_s"])
        assert np.abs(curve["incidence"].to_numpy() - incidence[indices]).max() < 1e-9
        has_se = np.isfinite(se[indices])
        assert np.abs(curve["se"].to_numpy() - se[indices])[has_se].max() < 1e-9
    # Deletions compete with failure; with deletions censored it would be 47.6 %.
    incidence_row = table(openb, "incidence_at").filter(event="failure", time_s=86_400)
    (value,) = {*incidence_row.select("incidence", "incidence_low", "incidence_high").row(0)}
    at_a_day = reference.cinc[0][np.searchsorted(reference.times, 86_400, side="right") - 1]
    assert abs(value - 0.2574) <= 1e-4 and abs(value - at_a_day) < 1e-9


def test_the_verdict_on_lifetimes(openb, times):
    durations, failed = times
    row = one_row(table(openb, "lifetime_verdict"), event="failure", stratum_by="all")
    check_verdict(row, durations, failed)


def test_nothing_is_planned_from_user_failures_of_pods_of_one_gpu(openb, pods):
    """A plan for 1,024 GPUs from these failures would give 2.4 % and 63,600 interruptions."""
    gpu = [row for row in pods if row["runtime"] is not None and int(row["num_gpu"]) > 0]
    waits = [int(row["scheduled_time"]) - int(row["creation_time"]) for row in gpu]
    for name in ("ettr", "ettr_outlook", "mitigations"):
        planned = table(openb, name)
        computed = [column for column in planned.columns if "ettr" in column or "saved" in column or "mttf" in column]
        assert computed and planned.select(pl.col(computed).count()).sum_horizontal().item() == 0
        assert planned["reason"].unique().to_list() == ["infrastructure failures are not distinguished from others"]
    assert set(table(openb, "ettr")["queue_s"]) == {sum(waits) / len(waits)}
    metrics = json.loads((openb / "metrics.json").read_text())
    assert "ettr.withheld" in metrics and "ettr.by" not in metrics
    assert not [key for key in metrics if key.startswith(("ettr.estimate", "ettr.low", "ettr.high", "sizes.projected"))]


def test_intervals_hold_when_profiles_differ(openb):
    """Expected values are computed by hand: pods of one profile are one cluster."""
    row = one_row(table(openb, "mttf"), stratum_by="all", confidence=0.95)
    assert row["cluster_by"] == "request profile"
    assert row["clusters"] == pytest.approx(19.6, abs=0.05)
    assert row["ci_low_clustered_s"] == pytest.approx(5.7 * 3600, rel=0.01)
    assert row["ci_high_clustered_s"] == pytest.approx(171 * 3600, rel=0.01)
    clustered, exact = (row[f"ci_high{suffix}_s"] - row[f"ci_low{suffix}_s"] for suffix in ("_clustered", ""))
    assert clustered > 20 * exact
    incidence_row = one_row(table(openb, "incidence_at"), event="failure", time_s=86_400)
    assert incidence_row["ci_low_clustered"] == pytest.approx(0.05, abs=0.005)
    assert 0.5 < incidence_row["ci_high_clustered"] < 0.56
    # One profile has half of the ended pods, so the share has no interval.
    metrics = json.loads((openb / "metrics.json").read_text())
    assert "outcomes.failure_share_low_clustered" not in metrics
    assert metrics["outcomes.clusters"]["value"] < 4
