"""Every analysis of the openb trace, against facts worked out here from the raw CSV by another route."""

import csv
import json
import math
from collections import defaultdict
from statistics import fmean, median

import numpy as np
import polars as pl
import pytest
from lifetime_checks import check_verdict
from scipy import stats
from statsmodels.duration.survfunc import CumIncidenceRight
from study_runs import check_out

HOUR_MILLI = 3_600_000
OUTCOMES = {"Succeeded": "success", "Failed": "failure", "Running": "running", "Pending": "waiting"}


@pytest.fixture(scope="module")
def openb(tmp_path_factory, shared_data):
    """The folder of the results on the real openb trace, without charts and page (test_four_traces.py)."""
    study = check_out(tmp_path_factory.mktemp("openb") / "checkout")
    registry = {"openb": {"format": "openb", "folder": str(shared_data / "openb")}}
    study.snakemake("--", "results/openb/metrics.json", one_process=True, study=["openb"], registry=registry)
    return study.folder / "results" / "openb"


@pytest.fixture(scope="module")
def pods(shared_data):
    """The raw rows as plain Python numbers."""
    with (shared_data / "openb" / "openb_pod_list_default.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    last = max(int(row[name]) for row in rows for name in row if name.endswith("_time") and row[name])
    for row in rows:
        started = row["scheduled_time"] != ""
        # A pod that was deleted before the trace's end no longer runs.
        gone = row["pod_phase"] == "Running" and row["deletion_time"] != "" and int(row["deletion_time"]) < last
        row["outcome"] = "unknown" if gone else OUTCOMES[row["pod_phase"]]
        row["runtime"] = int(row["deletion_time"]) - int(row["scheduled_time"]) if started else None
        row["gpu_percent"] = int(row["num_gpu"]) * int(row["gpu_milli"]) / 10
    return rows


@pytest.fixture(scope="module")
def times(pods):
    """(durations, failed) of the pods that were scheduled."""
    started = [row for row in pods if row["runtime"] is not None]
    return np.array([row["runtime"] for row in started]), np.array([row["pod_phase"] == "Failed" for row in started])


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
    # No phase of a pod says that its time was up.
    assert outcomes["at_time_limit"].null_count() == 5
    for outcome, hours in outcomes.select("outcome", "gpu_hours").iter_rows():
        assert math.isclose(hours, gpu[outcome] / HOUR_MILLI, rel_tol=1e-12)
    for outcome in jobs:
        ours = outcomes.row(by_predicate=pl.col("outcome") == outcome, named=True)
        runtimes = [row["runtime"] for row in pods if row["outcome"] == outcome and row["runtime"] is not None]
        if runtimes:
            assert math.isclose(ours["runtime_mean_s"], fmean(runtimes), rel_tol=1e-12)
            assert ours["runtime_median_s"] == median(runtimes)
            assert math.isclose(ours["runtime_p90_s"], float(np.quantile(runtimes, 0.9)), rel_tol=1e-12)


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
    ours = table(openb, "runtime_by_group").filter(chosen)
    assert {float(value): jobs for value, jobs in ours.select("value", "jobs").iter_rows()} == {
        value: len(runtimes) for value, runtimes in groups.items()
    }
    for value, mean, middle in ours.select("value", "runtime_mean_s", "runtime_median_s").iter_rows():
        assert math.isclose(mean, fmean(groups[float(value)]), rel_tol=1e-12)
        assert middle == median(groups[float(value)])
    x, y = zip(*((value, fmean(runtimes)) for value, runtimes in sorted(groups.items())), strict=True)
    for method, test in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr), ("kendall", stats.kendalltau)):
        row = table(openb, "correlations").row(
            by_predicate=chosen & (pl.col("unit") == "group_mean") & (pl.col("method") == method), named=True
        )
        expected = test(x, y)
        assert row["n"] == len(groups)
        assert math.isclose(row["estimate"], expected.statistic, rel_tol=1e-9, abs_tol=1e-12)
        # SciPy gives p = 0 for a perfect correlation; the table never does.
        assert math.isclose(row["p_value"], expected.pvalue, rel_tol=1e-6, abs_tol=1e-300)


def test_metrics_agree_with_the_raw_file(openb, times):
    metrics = json.loads((openb / "metrics.json").read_text())
    durations, failed = times
    assert metrics["outcomes.ended"]["value"] == 1870 + 192
    assert math.isclose(metrics["mttf.mttf_s"]["value"], durations.sum() / failed.sum(), rel_tol=1e-12)
    assert metrics["data.gpus"]["value"] == 6212


def test_mean_time_to_failure_by_job_size(openb, pods, shared_data):
    with (shared_data / "openb" / "openb_node_list_all_node.csv").open(newline="") as file:
        gpus = [int(row["gpu"]) for row in csv.DictReader(file)]
    # Most GPUs of the cluster are in nodes of eight, and no pod asks for more: each is of one node.
    held = {size: size * gpus.count(size) for size in set(gpus)}
    assert max(held, key=held.get) == 8
    gpu_pods = [row for row in pods if row["runtime"] is not None and row["gpu_percent"] > 0]
    assert max(row["gpu_percent"] for row in gpu_pods) == 800
    exposure = sum(row["runtime"] for row in gpu_pods)
    failures = sum(row["pod_phase"] == "Failed" for row in gpu_pods)
    first, *others = table(openb, "mttf_by_gpus").iter_rows(named=True)
    assert (first["gpus_low"], first["gpus_high"], first["basis"]) == (1, 8, "proxy")
    assert (first["jobs"], first["failures"], first["exposure_s"]) == (len(gpu_pods), failures, exposure)
    assert math.isclose(first["ci_low_s"], 2 * exposure / stats.chi2.ppf(0.95, 2 * failures + 2), rel_tol=1e-9)
    assert math.isclose(first["ci_high_s"], 2 * exposure / stats.chi2.ppf(0.05, 2 * failures), rel_tol=1e-9)
    assert others[-1]["gpus_high"] == 131_072
    # Failures of users stand for those of machines, and no pod has a second node: nothing is projected.
    assert {row[f"projected_{name}"] for row in (first, *others) for name in ("mttf_s", "low_s", "high_s")} == {None}
    rate = table(openb, "node_failure_rate").row(0, named=True)
    assert (rate["above_gpus"], rate["node_gpus"], rate["confidence"]) == (0, 8, 0.9)
    assert math.isclose(rate["failures_per_node_day"], failures * 86_400 / exposure, rel_tol=1e-12)
    assert table(openb, "size_law")["reason"].to_list() == ["one size only"] * 3
    infra = table(openb, "mttf_infra").row(0, named=True)
    assert (infra["event"], infra["n"], infra["events"]) == ("infra_failure", 7255, 1870)
    assert table(openb, "survival_summary_infra").row(0, named=True)["events"] == 1870


def life_table(durations, entries, failed):
    """age -> (at risk, failures) at every age of a failure, counted one life after the other."""
    ages = np.unique(durations[failed])
    return {
        int(age): (int(((entries < age) & (durations >= age)).sum()), int((durations[failed] == age).sum()))
        for age in ages
    }


def test_delayed_entry(openb, pods):
    """Pods from before the first deletion of the file are there because they lasted: with and without counting so."""
    started = [row for row in pods if row["runtime"] is not None]
    began = np.array([int(row["scheduled_time"]) for row in started])
    ended = np.array([int(row["deletion_time"]) for row in started])
    failed = np.array([row["pod_phase"] == "Failed" for row in started])
    first = ended.min()
    entries, durations = np.maximum(first - began, 0), ended - began
    assert ((entries > 0).sum(), (entries == durations).sum()) == (33, 1)
    watched = (entries == 0) | (durations > entries)
    # A pod watched from its start is at risk at 0 s also.
    table = life_table(durations[watched], np.where(entries > 0, entries, -1)[watched], failed[watched])
    survival = np.cumprod([1 - events / at_risk for at_risk, events in table.values()])
    summary = table_row(openb, "survival_summary_delayed_entry")
    assert (summary["n"], summary["events"], summary["entered_late"]) == (7254, 1870, 32)
    assert summary["median_s"] == list(table)[int(np.argmax(survival <= 0.5))]
    steps = [0, *table, int(durations.max())]
    assert math.isclose(
        summary["restricted_mean_s"], math.fsum(np.diff(steps) * np.array([1, *survival])), rel_tol=1e-9
    )
    assert summary["median_s"] < table_row(openb, "survival_summary")["median_s"]
    exposure = int((durations - entries).sum())
    late = table_row(openb, "mttf_delayed_entry")
    assert (late["n"], late["events"], late["exposure_s"]) == (7254, 1870, exposure)
    assert math.isclose(late["mttf_s"], exposure / 1870, rel_tol=1e-12)
    # Thirty-two pods hold almost half of all the time without delayed entry.
    assert late["exposure_s"] < 0.55 * table_row(openb, "mttf")["exposure_s"]


def table_row(folder, name):
    """The row of all lives (of two, the one at 95 %)."""
    rows = table(folder, name).filter(stratum_by="all")
    return rows.row(-1, named=True)


def test_cumulative_incidence(openb, pods):
    started = [row for row in pods if row["runtime"] is not None]
    durations = np.array([row["runtime"] for row in started])
    names = ("failure", "success", "unknown")
    ends = np.array([1 + names.index(row["outcome"]) if row["outcome"] in names else 0 for row in started])
    with np.errstate(divide="ignore", invalid="ignore"):
        reference = CumIncidenceRight(durations, ends)
    found = table(openb, "cumulative_incidence").filter(stratum_by="all")
    assert found["event"].unique(maintain_order=True).to_list() == list(names)
    for end, incidence, se in zip(names, reference.cinc, reference.cinc_se, strict=True):
        curve = found.filter(event=end).filter(pl.col("time_s") >= reference.times[0])
        places = np.searchsorted(reference.times, curve["time_s"])
        assert np.abs(curve["incidence"].to_numpy() - incidence[places]).max() < 1e-9
        known = np.isfinite(se[places])
        assert np.abs(curve["se"].to_numpy() - se[places])[known].max() < 1e-9
    # Deletions compete with failure: were they censored, it would be 47.6 %.
    failed = found.filter(pl.col("event") == "failure", pl.col("time_s") <= 86_400)
    assert abs(failed["incidence"][-1] - 0.2574) <= 1e-4
    at = table(openb, "incidence_at").filter(event="failure", time_s=86_400)
    assert at.select("incidence", "incidence_low", "incidence_high").row(0) == (failed["incidence"][-1],) * 3


def test_the_verdict_on_lifetimes(openb, times):
    durations, failed = times
    everything = (pl.col("event") == "failure") & (pl.col("stratum_by") == "all")
    check_verdict(table(openb, "lifetime_verdict").row(by_predicate=everything, named=True), durations, failed)


def test_nothing_is_planned_from_user_failures_of_pods_of_one_gpu(openb, pods):
    """A run of 1,024 GPUs was told 2.4 % and 63,600 interruptions from these."""
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
    """As worked out by hand: pods of one profile are one cluster."""
    row = table(openb, "mttf").row(
        by_predicate=(pl.col("stratum_by") == "all") & (pl.col("confidence") == 0.95), named=True
    )
    assert row["cluster_by"] == "request profile"
    assert row["clusters"] == pytest.approx(19.6, abs=0.05)
    assert row["ci_low_clustered_s"] == pytest.approx(5.7 * 3600, rel=0.01)
    assert row["ci_high_clustered_s"] == pytest.approx(171 * 3600, rel=0.01)
    clustered, exact = (row[f"ci_high{of}_s"] - row[f"ci_low{of}_s"] for of in ("_clustered", ""))
    assert clustered > 20 * exact
    at_one_day = table(openb, "incidence_at").row(
        by_predicate=(pl.col("event") == "failure") & (pl.col("time_s") == 86_400), named=True
    )
    assert at_one_day["ci_low_clustered"] == pytest.approx(0.05, abs=0.005)
    assert 0.5 < at_one_day["ci_high_clustered"] < 0.56
    # One profile has half of those with a result: no interval of their share, and the page says so.
    metrics = json.loads((openb / "metrics.json").read_text())
    assert "outcomes.failure_share_low_clustered" not in metrics
    assert metrics["outcomes.clusters"]["value"] < 4
