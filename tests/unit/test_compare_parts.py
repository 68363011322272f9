"""The last part compared with earlier parts: part boundaries, counts per part, tests against closed forms."""

import runpy
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats
from ttf.analyses import load_contracts
from ttf.analyses.quality.compare_parts import ANALYSIS, CHANCE, CHANGED, TOO_FEW, TOO_FEW_WEEKS
from ttf.analyses.quality.compare_parts.calendar import ONE_PART, OVERLAP, Calendar, estimate_calendar
from ttf.analyses.quality.compare_parts.compute import build_changes, compute
from ttf.analyses.quality.compare_parts.news import NO_POWER, compare_suspects, count_failure_words, find_new_words
from ttf.analyses.quality.compare_parts.part_tests import (
    RARE,
    UNTESTED,
    compare_by_clusters,
    compare_by_parts,
    compare_sides,
    decide_verdict,
)
from ttf.analyses.quality.compare_parts.sums import Sums, sum_ended_jobs, sum_runs
from ttf.analyses.scaling.measure_sizes import NODE_FAILURE_RATE
from ttf.engine.storage.tables import write_csv
from ttf.records.inputs import Inputs
from ttf.stats.basics.holm import holm
from ttf.stats.basics.p_value import exact_p
from ttf.stats.clustered_differences import compare_means

SIMULATED = runpy.run_path(str(Path(__file__).parents[2] / "tools/docs" / "coverage_changes.py"))
DAY, WEEK = 86_400, 7 * 86_400
MONDAY = 1_735_776_000


def jobs_of(rows, **columns):
    """Jobs from (part, submission, start, end, outcome), times in days since MONDAY. End None: running."""
    frame = pl.DataFrame(rows, schema=["part", "submit_s", "start_s", "end_s", "outcome"], orient="row")
    times = {name: (MONDAY + pl.col(name) * DAY).cast(pl.Int64) for name in ("submit_s", "start_s", "end_s")}
    last_s = pl.max_horizontal(pl.col("end_s").max(), MONDAY + 14 * DAY)
    frame = frame.with_columns(**times).with_columns(trace_end_s=last_s, cluster=pl.int_range(pl.len()).cast(pl.UInt32))
    return frame.with_columns(**columns).lazy()


# Boundaries of parts -----------------------------------------------------------------------------------------


def test_boundaries_misplace_the_fewest_jobs():
    rows = [("a", day, day, day + 0.5, "success") for day in (0, 1, 2, 3, 4, 5, 6.6, 6.8)]
    rows += [("b", day, day, day + 0.5, "success") for day in range(7, 14)]
    # One job waited across the boundary and appears only in the second week.
    calendar = estimate_calendar(jobs_of([*rows * 4, ("b", 6.5, 8, 9, "success")]), ["a", "b", "empty"])
    assert calendar.names == ["a", "b"] and calendar.reason is None
    # The first part begins at its first end of a job.
    assert calendar.begins_s.tolist() == [MONDAY + DAY // 2, MONDAY + 7 * DAY]
    assert calendar.ends_s.tolist() == [MONDAY + 7 * DAY, MONDAY + 14 * DAY]
    assert calendar.follow_up_s == DAY


def test_overlapping_parts_have_no_boundaries():
    rows = [(part, day, day, day + 0.5, "success") for part in "ab" for day in range(14)]
    assert estimate_calendar(jobs_of(rows), ["a", "b"]).reason == OVERLAP
    swapped_rows = [("a", day, day, day + 0.5, "success") for day in range(7, 14)]
    swapped_rows += [("b", day, day, day + 0.5, "success") for day in range(7)]
    assert estimate_calendar(jobs_of(swapped_rows), ["a", "b"]).reason == OVERLAP
    assert estimate_calendar(jobs_of(swapped_rows), ["b", "a"]).reason is None
    assert estimate_calendar(jobs_of(swapped_rows[:7]), ["a", "b"]).reason == ONE_PART


# Counts per part --------------------------------------------------------------------------------------------

TWO_WEEKS = Calendar(["a", "b"], np.array([1, 1]), np.array([MONDAY, MONDAY + WEEK]), MONDAY + 2 * WEEK)


def test_only_jobs_with_full_follow_up_count():
    rows = [
        ("a", 1, 1, 1.5, "failure"),
        ("a", 1, 1, 2.5, "failure"),  # longer than the follow-up
        ("a", 6.5, 6.5, 6.6, "failure"),  # started too close to the end of its part
        ("a", 2, 2, 2.1, "success"),
        ("a", 2, 2, 2.1, "cancelled"),
        ("b", 8, 8, 8.5, "success"),
        ("b", 13.5, 13.5, 13.6, "failure"),
        ("b", 8, 8, None, "running"),
    ]
    sums = sum_ended_jobs(jobs_of(rows), TWO_WEEKS)
    assert sums.n.tolist() == [2, 1]
    assert sums.events.sum(axis=1).tolist() == [1, 0]


def durations_of(rows):
    """Durations from (start, duration, event, gpus, cluster), times in days since MONDAY."""
    frame = pl.DataFrame(rows, schema=["start_s", "duration_s", "event", "gpu_count", "cluster"], orient="row")
    return frame.select(
        start_s=(MONDAY + pl.col("start_s") * DAY).cast(pl.Int64),
        duration_s=(pl.col("duration_s") * DAY).cast(pl.Int64),
        event=pl.col("event").cast(pl.String),
        gpu_count="gpu_count",
        gpu_milli=pl.col("gpu_count") * 1000,
        cluster=pl.col("cluster").cast(pl.UInt32),
    ).lazy()


def time_sums(rows, failed, calendar=TWO_WEEKS, above=8):
    return sum_runs(durations_of(rows), pl.LazyFrame({"failed": failed}), calendar, above, 8)


def test_a_run_across_the_boundary_is_divided_and_fails_at_its_end():
    rate, lost = time_sums([(5, 4, "infra_failure", 16, 0), (1, 1, None, 8, 1)], [True, False])
    # Two nodes run for two days on each side; the small job does not enter the rate.
    assert rate.bottom.tolist() == [[4, 0], [4, 0]]
    assert rate.top.tolist() == [[0, 0], [1, 0]]
    assert rate.n.tolist() == [1, 1]
    # GPU time is divided too; its loss counts at the end.
    assert lost.bottom.tolist() == [[16 * 48, 8 * 24], [16 * 48, 0]]
    assert lost.top.tolist() == [[0, 0], [16 * 96, 0]]
    assert lost.n.tolist() == [2, 1]


# The tests ---------------------------------------------------------------------------------------------------


def make_sums(events, bottom):
    events, bottom = np.asarray(events, float), np.asarray(bottom, float)
    return Sums(events, events, bottom, bottom.sum(axis=1).astype(int))


def test_the_clustered_p_equals_that_of_measure_drift():
    rng = np.random.default_rng(0)
    n = rng.integers(5, 40, (2, 20))
    k = rng.binomial(n, 0.3)
    row, test = compare_sides(make_sums(k, n), is_share=True, is_count=False), compare_by_clusters(make_sums(k, n))
    assert test.p == row["p_clustered"] == compare_means(k[0], n[0], k[1], n[1])["p_clustered"]
    # The interval belongs to the same test: at confidence 1 - p it just includes 0.
    t = stats.t.isf(row["p_clustered"] / 2, row["clusters"] - 1) / stats.t.isf(0.025, row["clusters"] - 1)
    assert test.margin * t == pytest.approx(abs(row["difference"]))


def test_equal_parts_give_students_prediction_interval():
    ratios = np.array([0.2, 0.3, 0.25, 0.35, 0.5])
    test = compare_by_parts(make_sums(100 * ratios[:, None], np.full((5, 1), 100.0)))
    spread = ratios[:4].std(ddof=1) * np.sqrt(1 + 1 / 4)
    assert test.effective == pytest.approx(4)
    assert test.margin == pytest.approx(stats.t.ppf(0.975, 3) * spread)
    assert test.p == pytest.approx(2 * stats.t.sf((0.5 - ratios[:4].mean()) / spread, 3))
    assert not compare_by_parts(make_sums(ratios[1:, None], np.ones((4, 1)))).is_valid


def test_the_exact_p_is_twice_the_smaller_tail():
    for k, m, share in ((3, 9, 0.4), (10, 0, 0.3), (0, 6, 0.5), (5, 5, 0.5)):
        tails = stats.binom.cdf(m, k + m, share), stats.binom.sf(m - 1, k + m, share)
        assert exact_p(k, m, share) == pytest.approx(min(1, 2 * min(tails)))


def test_the_larger_p_value_counts():
    """All users change in the last part, but earlier parts differ among themselves by as much."""
    shares = np.array([0.2, 0.4, 0.2, 0.4, 0.2, 0.42])
    n = np.full((6, 30), 100.0)
    failed = np.random.default_rng(1).binomial(100, shares[:, None], (6, 30))
    row = compare_sides(make_sums(failed, n), is_share=True, is_count=False)
    assert row["p_clustered"] < 1e-6 < 0.05 < row["p_parts"] == row["p_value"]
    assert row["ci_low"] < 0 < row["ci_high"]


def test_the_detectable_ratio_exceeds_the_limit_by_its_error():
    ratios = np.array([0.2, 0.22, 0.21, 0.23, 0.19, 0.2])
    test = compare_by_parts(make_sums(100 * ratios[:, None], np.full((6, 1), 100.0)))
    limit, error = (stats.t.ppf(level, 4) * test.se / 0.21 for level in (1 - 0.05 / 5 / 2, 0.9))
    assert test.detectable_ratio(0.21) == pytest.approx((1 + limit) / (1 - error))
    assert test.detectable_ratio(0.01) == np.inf
    # A detectable share above 1 is impossible.
    high = make_sums(np.full((6, 30), 98) - np.arange(6)[:, None], np.full((6, 30), 100))
    assert compare_sides(high, True, False)["detectable_ratio"] is None


def test_too_little_data():
    assert compare_sides(make_sums([[2, 1], [1, 0]], [[50, 50], [50, 50]]), True, False)["reason"] == RARE
    single_user = compare_sides(make_sums([[30], [30]], [[100], [100]]), True, False)
    assert single_user["reason"] == UNTESTED and "p_value" not in single_user
    assert decide_verdict(single_user) == TOO_FEW_WEEKS and "ci_low" not in single_user
    assert "before" not in compare_sides(make_sums([[1], [0]], [[5], [0]]), True, False)
    assert not compare_by_clusters(make_sums([[30], [30]], [[100], [100]])).is_valid


def test_the_rate_and_the_ettr_have_one_verdict():
    values = {"before": 1.0, "after": 2.0, "difference": 1.0, "ci_low": 0.5, "ci_high": 1.5, "reason": None}
    counts = dict.fromkeys(("events_before", "events_after", "n_before", "n_after"), 9)
    p_values = {
        "failure_share": 0.02,
        "infra_rate": 0.001,
        "lost_time": 0.02,
        "suspect_nodes": 0.5,
        "failure_words": 1.0,
    }
    measured = {name: values | counts | {"p_value": p} for name, p in p_values.items()}
    measured["scheduled_ettr"] = values | counts
    table = build_changes(measured, TWO_WEEKS, "user")
    p_by_measure = dict(table.select("measure", "p_adjusted").iter_rows())
    assert [p_by_measure[name] for name in p_values] == holm(list(p_values.values()))
    assert p_by_measure["scheduled_ettr"] == p_by_measure["infra_rate"] == 0.005
    assert table.filter(verdict=CHANGED)["measure"].to_list() == ["infra_rate", "scheduled_ettr"]
    assert table.filter(verdict=CHANCE).height == 4
    del measured["infra_rate"]["p_value"]
    assert list(build_changes(measured, TWO_WEEKS, "user").filter(verdict=TOO_FEW)["measure"]) == [
        "infra_rate",
        "scheduled_ettr",
    ]


@pytest.mark.parametrize(("weeks_before", "week_sd"), [(1, 0.3), (5, 0.4)])
def test_at_most_five_percent_of_families_reject_without_change(weeks_before, week_sd):
    """Users differ in activity and failure rate, equally in all parts; weeks differ if there are enough of them."""
    share, _ = SIMULATED["false_changes"](weeks_before, week_sd, 0, 400, seed=weeks_before)
    # Three standard errors above 0.05.
    assert share < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


# New words and nodes--------------------------------------------------------------------------------------------


def failed_jobs(*rows):
    """Failed jobs from (part, user, exit code)."""
    frame = pl.DataFrame(rows, schema={"part": pl.String, "cluster": pl.UInt32, "exit_code": pl.String}, orient="row")
    job = pl.int_range(pl.len()).cast(pl.String)
    return frame.with_columns(job_id=job, task=pl.lit(None, pl.String), outcome=pl.lit("failure")).lazy()


def test_a_word_that_no_earlier_part_has():
    rows = [("a", user, "1:0") for user in (0, 1, 2) for _ in range(3)] + [("b", user, "1:0") for user in (0, 1, 2)]
    rows += [("b", 0, "137:0"), ("b", 0, "137:0"), ("b", 1, "137:0"), ("b", 9, "2:0")]
    words, row = find_new_words(*count_failure_words(failed_jobs(*rows), None, "b"), has_clusters=True)
    # The last part has half of the failures of user 0 and two of five of user 1. User 9 is new.
    assert words.select("word", "failures", "clusters").rows() == [("137:0", 3, 2), ("2:0", 1, 1)]
    assert words["chance"].to_list() == pytest.approx([3 / 6 * 2 / 5, 1])
    assert row["p_value"] == pytest.approx(3 * 0.2)
    assert (row["before"], row["after"], row["n_before"], row["n_after"], row["events_after"]) == (1, 3, 9, 7, 4)
    _, unclustered = find_new_words(*count_failure_words(failed_jobs(*rows), None, "b"), has_clusters=False)
    assert unclustered["p_value"] == pytest.approx(3 * (7 / 16) ** 3)


def test_a_class_is_new_if_no_other_job_has_it():
    jobs = failed_jobs(("a", 0, "1:0"), ("a", 1, "1:0"), ("b", 0, "1:0"), ("b", 1, "1:0"))
    reasons = pl.LazyFrame({"job_id": ["0", "2", "3"], "task": [None] * 3, "reason": ["OOM", "OOM", "NCCL"]})
    reasons = reasons.with_columns(pl.col("task").cast(pl.String))
    words, _ = find_new_words(*count_failure_words(jobs, reasons, "b"), has_clusters=True)
    assert words.select("kind", "word", "failures", "clusters").rows() == [("class", "NCCL", 1, 1)]


def node_table(**counts):
    """Nodes with these numbers of failures; 1 is expected, 5 and more are excess failures."""
    rows = [
        {"node": node, "q_value": 0.01, "lemon": counted >= 5, "counted": counted, "expected": 1.0}
        for node, counted in counts.items()
    ]
    return pl.DataFrame(rows)


def test_a_suspect_that_fails_more_often_is_new():
    all_parts, earlier = node_table(n1=20, n2=9, n3=12, n4=1), node_table(n1=10, n2=0, n3=12, n4=1)
    latest, latest_only = node_table(n1=12, n2=9, n3=9, n4=0), node_table(n1=10, n2=9, n4=0)
    nodes, gone, row = compare_suspects(all_parts, earlier, latest, latest_only)
    # All nine failures lie in the last half of the time: p = 1/512, times three nodes with excess failures.
    assert nodes.select("node", "counted_before", "counted", "expected").rows() == [("n2", 0, 9, 4.5)]
    assert nodes["q_value"].to_list() == pytest.approx([3 / 512]) and row["p_value"] == nodes["q_value"][0]
    assert (row["before"], row["after"], row["difference"]) == (2, 3, 1)
    assert gone.is_empty()
    _, gone, row = compare_suspects(all_parts, earlier, node_table(n1=4, n2=9, n4=0), latest_only)
    assert gone.rows() == [("n1", 10, 4), ("n3", 12, 0)] and (row["before"], row["after"]) == (2, 1)
    # A node absent from the last part does not fail more often in it.
    assert compare_suspects(node_table(n3=12), earlier, latest, latest_only)[2]["p_value"] == 1
    # Without a suspect and without the power to find one, nothing is said to be the same.
    calm = node_table(n1=1, n2=1).with_columns(detectable_ratio=pl.lit(12.0))
    blind = compare_suspects(calm, calm, calm, calm)[2]
    assert blind["reason"] == NO_POWER and "before" not in blind and decide_verdict(blind) == TOO_FEW
    assert compare_suspects(*[calm.with_columns(detectable_ratio=pl.lit(4.0))] * 4)[2]["p_value"] == 1
    untested = earlier.with_columns(q_value=pl.lit(None, pl.Float64))
    assert "p_value" not in compare_suspects(all_parts, untested, latest, latest_only)[2]


def test_nodes_that_always_fail_are_no_change():
    """More such nodes are found as data grow; comparing their counts rejects in 10 to 25 % of studies."""
    assert SIMULATED["false_suspects"](9, 0.05, 40, seed=3) <= 0.05


def test_the_detectable_ratio_is_found():
    assert SIMULATED["power"](8, 0.3, 200, seed=4)[0] >= 0.8


# A trace with one change ---------------------------------------------------------------------------


def study(folder):
    """Inputs of a synthetic trace of weeks; the last has other causes and exit codes, but as many failures."""
    rng, users, size = np.random.default_rng(11), 30, 15_000
    start, large, user = np.sort(rng.uniform(0, 35, size)), rng.random(size) < 0.1, rng.integers(0, users, size)
    is_last = start >= 28
    failed = rng.random(size) < 0.1 + 0.2 * user / users
    run = (0.001 + rng.exponential(1 / 24, size)) * np.where(large, 4, 1)
    code = np.where(is_last & (rng.random(size) < 0.2), "99:0", "1:0")
    # A larger share of failures of large jobs is infrastructure; failures and losses stay the same.
    infra = large & failed & (rng.random(size) < np.where(is_last, 0.9, 0.3))
    is_running = start + run >= 35
    ends = pl.Series(start + run).to_frame("end_s").select(pl.when(~pl.Series(is_running)).then("end_s")).to_series()
    parts = [f"week{day // 7:.0f}" for day in start]
    outcome = np.where(is_running, "running", np.where(failed, "failure", "success"))
    jobs = jobs_of(
        list(zip(parts, start, start, ends, outcome, strict=True)),
        job_id=pl.int_range(pl.len()).cast(pl.String),
        status_raw=pl.Series(np.where(failed, "FAILED", "COMPLETED")),
        exit_code=pl.Series(np.where(failed, code, "0:0")),
        task=pl.lit(None, pl.String),
        cluster=pl.Series(user, dtype=pl.UInt32),
        group=pl.Series(user, dtype=pl.UInt32),
        cluster_by=pl.lit("user"),
        group_by=pl.lit("user"),
    )
    event = np.where(infra & ~is_running, "infra_failure", None)
    gpus = np.where(large, 16, 8).tolist()
    rows = zip(start, np.minimum(run, 35 - start), event, gpus, user.tolist(), strict=True)
    durations = durations_of(list(rows)).with_columns(basis=pl.lit("state"))
    jobs.collect().write_parquet(folder / "jobs.parquet")
    durations.collect().write_parquet(folder / "durations_infra.parquet")
    rate = {"basis": "state", "above_gpus": 8, "node_gpus": 8, "confidence": 0.9, "ci_high": 9.0}
    counts = {"jobs": 1, "failures": 1, "node_days": 1.0, "largest_run_nodes": 2, "projects_to_nodes": 8}
    rate |= counts | {"no_projection": "", "needed": "", "reason": "made"}
    write_csv(NODE_FAILURE_RATE.frame([rate]), folder / "node_failure_rate.csv")
    names = {
        "jobs": "jobs.parquet",
        "durations_infra": "durations_infra.parquet",
        "node_failure_rate": "node_failure_rate.csv",
    }
    files = {name: folder / file for name, file in names.items()}
    settings = {"parts": [f"week{week}" for week in range(5)], "false_discovery": 0.05}
    return Inputs(files, load_contracts(["measure_sizes"]), settings, "made", str(folder / "out"))


def test_exactly_the_changed_measures_are_found(tmp_path):
    tables = compute(study(tmp_path))
    for table in ANALYSIS.tables:
        table.check(tables[table.name])
    verdicts = dict(tables["changes"].select("measure", "verdict").iter_rows())
    expected = {"failure_share": CHANCE, "infra_rate": CHANGED, "lost_time": CHANCE, "failure_words": CHANGED}
    # The trace names no node and no planned run.
    expected |= dict.fromkeys(("scheduled_ettr", "suspect_nodes"), TOO_FEW)
    assert verdicts == expected
    # The rate covers runs on more than one node.
    runs = pl.read_parquet(tmp_path / "durations_infra.parquet").filter(pl.col("gpu_count") > 8)
    n_after = (runs["start_s"] + runs["duration_s"] > MONDAY + 4 * WEEK).sum()
    assert tables["changes"].filter(measure="infra_rate")["n_after"].item() == n_after
    assert tables["new_failure_words"]["word"].to_list() == ["99:0"]
