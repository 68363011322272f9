"""The last part against those before: when parts begin, what counts where, tests by closed forms and by simulation."""

import runpy
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats
from ttf.analyses import contracts_of
from ttf.analyses.nodes.find_lemon_nodes.excess import benjamini_hochberg
from ttf.analyses.quality.compare_parts import ANALYSIS, CHANCE, CHANGED, TOO_FEW, TOO_FEW_WEEKS
from ttf.analyses.quality.compare_parts.calendar import ONE_PART, OVERLAP, Calendar, estimate_calendar
from ttf.analyses.quality.compare_parts.compute import build_changes, compute
from ttf.analyses.quality.compare_parts.news import count_failure_words, find_new_words, suspects
from ttf.analyses.quality.compare_parts.part_tests import (
    RARE,
    UNTESTED,
    compare_by_clusters,
    compare_by_parts,
    compared,
    decide_verdict,
    exact_p,
)
from ttf.analyses.quality.compare_parts.sums import Sums, sum_ended_jobs, sum_runs
from ttf.analyses.quality.measure_drift.window_tests import compare_means
from ttf.analyses.scaling.measure_sizes import NODE_FAILURE_RATE
from ttf.engine.storage.tables import write_csv
from ttf.records.inputs import Inputs
from ttf.stats.basics.holm import holm

SIMULATED = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "coverage_changes.py"))
DAY, WEEK = 86_400, 7 * 86_400
MONDAY = 1_735_776_000


def jobs_of(rows, **more):
    """(part, submission, start, end, outcome) by the day from MONDAY on; end None: running."""
    frame = pl.DataFrame(rows, schema=["part", "submit_s", "start_s", "end_s", "outcome"], orient="row")
    times = {name: (MONDAY + pl.col(name) * DAY).cast(pl.Int64) for name in ("submit_s", "start_s", "end_s")}
    end = pl.max_horizontal(pl.col("end_s").max(), MONDAY + 14 * DAY)
    frame = frame.with_columns(**times).with_columns(trace_end_s=end, cluster=pl.int_range(pl.len()).cast(pl.UInt32))
    return frame.with_columns(**more).lazy()


# When a part begins ------------------------------------------------------------------------------------------


def test_a_part_begins_where_the_fewest_jobs_are_on_the_wrong_side():
    rows = [("a", day, day, day + 0.5, "success") for day in (0, 1, 2, 3, 4, 5, 6.6, 6.8)]
    rows += [("b", day, day, day + 0.5, "success") for day in range(7, 14)]
    # One waited over the border, and is in the records of the second week only.
    found = estimate_calendar(jobs_of([*rows * 4, ("b", 6.5, 8, 9, "success")]), ["a", "b", "empty"])
    assert found.names == ["a", "b"] and found.reason is None
    # The first begins with the first end.
    assert found.begins_s.tolist() == [MONDAY + DAY // 2, MONDAY + 7 * DAY]
    assert found.ends_s.tolist() == [MONDAY + 7 * DAY, MONDAY + 14 * DAY]
    assert found.follow_up_s == DAY


def test_parts_that_do_not_follow_each_other_have_no_beginning():
    rows = [(part, day, day, day + 0.5, "success") for part in "ab" for day in range(14)]
    assert estimate_calendar(jobs_of(rows), ["a", "b"]).reason == OVERLAP
    in_turn = [("a", day, day, day + 0.5, "success") for day in range(7, 14)]
    in_turn += [("b", day, day, day + 0.5, "success") for day in range(7)]
    assert estimate_calendar(jobs_of(in_turn), ["a", "b"]).reason == OVERLAP
    assert estimate_calendar(jobs_of(in_turn), ["b", "a"]).reason is None
    assert estimate_calendar(jobs_of(in_turn[:7]), ["a", "b"]).reason == ONE_PART


# What counts where ------------------------------------------------------------------------------------------

TWO_WEEKS = Calendar(["a", "b"], np.array([1, 1]), np.array([MONDAY, MONDAY + WEEK]), MONDAY + 2 * WEEK)


def test_jobs_count_that_were_followed_as_long_on_both_sides():
    rows = [
        ("a", 1, 1, 1.5, "failure"),
        ("a", 1, 1, 2.5, "failure"),  # longer than the follow-up
        ("a", 6.5, 6.5, 6.6, "failure"),  # started too near to the end of its part
        ("a", 2, 2, 2.1, "success"),
        ("a", 2, 2, 2.1, "cancelled"),
        ("b", 8, 8, 8.5, "success"),
        ("b", 13.5, 13.5, 13.6, "failure"),
        ("b", 8, 8, None, "running"),
    ]
    found = sum_ended_jobs(jobs_of(rows), TWO_WEEKS)
    assert found.n.tolist() == [2, 1]
    assert found.events.sum(axis=1).tolist() == [1, 0]


def test_censoring_leaves_the_share_as_it_is():
    """Failures take days, successes hours: of the jobs of the last part that have ended far fewer failed."""
    rng, size = np.random.default_rng(5), 20_000
    failed = rng.random(size) < 0.3
    start = rng.uniform(0, 14, size)
    end = start + np.where(failed, rng.exponential(2, size), rng.exponential(0.1, size))
    rows = {
        "part": np.where(start < 7, "a", "b"),
        "start_s": (MONDAY + start * DAY).astype(int),
        "end_s": (MONDAY + end * DAY).astype(int),
        "outcome": np.where(end > 14, "running", np.where(failed, "failure", "success")),
        "cluster": np.arange(size) % 50,
    }
    jobs = pl.DataFrame(rows).with_columns(end_s=pl.when(pl.col("outcome") != "running").then("end_s"))
    ended = jobs.filter(pl.col("outcome") != "running")
    naive = ended.group_by("part").agg((pl.col("outcome") == "failure").mean()).sort("part")["outcome"]
    found = compared(sum_ended_jobs(jobs.lazy(), TWO_WEEKS), is_share=True, is_count=False)
    assert naive[1] - naive[0] < -0.03
    assert abs(found["difference"]) < 0.015 and found["p_clustered"] > 0.05


def lives_of(rows):
    """(start, duration, event, gpus, cluster), in days from MONDAY on."""
    frame = pl.DataFrame(rows, schema=["start_s", "duration_s", "event", "gpu_count", "cluster"], orient="row")
    return frame.select(
        start_s=(MONDAY + pl.col("start_s") * DAY).cast(pl.Int64),
        duration_s=(pl.col("duration_s") * DAY).cast(pl.Int64),
        event=pl.col("event").cast(pl.String),
        gpu_count="gpu_count",
        gpu_milli=pl.col("gpu_count") * 1000,
        cluster=pl.col("cluster").cast(pl.UInt32),
    ).lazy()


def of_time(rows, failed, calendar=TWO_WEEKS, above=8):
    return sum_runs(lives_of(rows), pl.LazyFrame({"failed": failed}), calendar, above, 8)


def test_a_run_over_the_border_is_divided_and_fails_where_it_ends():
    rate, lost = of_time([(5, 4, "infra_failure", 16, 0), (1, 1, None, 8, 1)], [True, False])
    # Two nodes for two days on each side; the small job has no say in the rate.
    assert rate.bottom.tolist() == [[4, 0], [4, 0]]
    assert rate.top.tolist() == [[0, 0], [1, 0]]
    assert rate.n.tolist() == [1, 1]
    # Of GPU time too; what was lost is lost at the end.
    assert lost.bottom.tolist() == [[16 * 48, 8 * 24], [16 * 48, 0]]
    assert lost.top.tolist() == [[0, 0], [16 * 96, 0]]
    assert lost.n.tolist() == [2, 1]


def test_an_end_at_the_border_is_of_the_part_before_and_what_was_before_all_is_cut_off():
    rate, _ = of_time(
        [(6, 1, "infra_failure", 16, 0), (-3, 4, None, 16, 0), (-3, 2, "infra_failure", 16, 0)], [True] * 3
    )
    assert rate.top.tolist() == [[1], [0]]
    assert rate.bottom.tolist() == [[2 * (1 + 1)], [0]]


def test_time_in_many_parts_is_what_a_loop_adds_up():
    rng = np.random.default_rng(2)
    begins = MONDAY + np.cumsum([0, *rng.integers(1, 9, 5)]) * DAY
    end_s = int(begins[-1]) + 3 * DAY
    calendar = Calendar(list("abcdef"), np.ones(6, int), begins, end_s)
    start, length = rng.uniform(-3, 40, 300), rng.exponential(6, 300)
    gpus, cluster = rng.choice([4, 16, 64], 300), rng.integers(0, 4, 300)
    rows = [(*row[:2], None, *map(int, row[2:])) for row in zip(start, length, gpus, cluster, strict=True)]
    lives = lives_of(rows).collect()
    rate, lost = of_time(rows, [False] * 300, calendar)
    node_s, gpu_s = np.zeros((6, 4)), np.zeros((6, 4))
    for start_s, duration_s, gpu_count, whose in lives.select(
        "start_s", "duration_s", "gpu_count", "cluster"
    ).iter_rows():
        for part, (low, high) in enumerate(zip(calendar.begins_s, calendar.ends_s, strict=True)):
            within = max(0, min(start_s + duration_s, high) - max(start_s, low))
            gpu_s[part, whose] += within * gpu_count
            node_s[part, whose] += within * (gpu_count // 8 if gpu_count > 8 else 0)
    assert lost.bottom == pytest.approx(gpu_s / 3600, abs=1e-6)
    assert rate.bottom == pytest.approx(node_s / DAY, abs=1e-9)


# The tests ---------------------------------------------------------------------------------------------------


def made(events, bottom):
    events, bottom = np.asarray(events, float), np.asarray(bottom, float)
    return Sums(events, events, bottom, bottom.sum(axis=1).astype(int))


def test_the_clustered_p_is_that_of_drift():
    rng = np.random.default_rng(0)
    n = rng.integers(5, 40, (2, 20))
    k = rng.binomial(n, 0.3)
    row, test = compared(made(k, n), is_share=True, is_count=False), compare_by_clusters(made(k, n))
    assert test.p == row["p_clustered"] == compare_means(k[0], n[0], k[1], n[1])["p_clustered"]
    # The interval is that of the same test: it just holds 0 at a confidence of 1 - p.
    t = stats.t.isf(row["p_clustered"] / 2, row["clusters"] - 1) / stats.t.isf(0.025, row["clusters"] - 1)
    assert test.margin * t == pytest.approx(abs(row["difference"]))


def test_equal_parts_give_students_prediction_interval():
    ratios = np.array([0.2, 0.3, 0.25, 0.35, 0.5])
    found = compare_by_parts(made(100 * ratios[:, None], np.full((5, 1), 100.0)))
    spread = ratios[:4].std(ddof=1) * np.sqrt(1 + 1 / 4)
    assert found.effective == pytest.approx(4)
    assert found.margin == pytest.approx(stats.t.ppf(0.975, 3) * spread)
    assert found.p == pytest.approx(2 * stats.t.sf((0.5 - ratios[:4].mean()) / spread, 3))
    assert not compare_by_parts(made(ratios[1:, None], np.ones((4, 1)))).is_valid


def test_the_exact_p_is_twice_the_smaller_tail():
    for before, after, share in ((3, 9, 0.4), (10, 0, 0.3), (0, 6, 0.5), (5, 5, 0.5)):
        tails = stats.binom.cdf(after, before + after, share), stats.binom.sf(after - 1, before + after, share)
        assert exact_p(before, after, share) == pytest.approx(min(1, 2 * min(tails)))


def test_the_doubtful_test_counts():
    """Users agree that the last part differs; parts differ among themselves by as much."""
    shares = np.array([0.2, 0.4, 0.2, 0.4, 0.2, 0.42])
    n = np.full((6, 30), 100.0)
    failed = np.random.default_rng(1).binomial(100, shares[:, None], (6, 30))
    row = compared(made(failed, n), is_share=True, is_count=False)
    assert row["p_clustered"] < 1e-6 < 0.05 < row["p_parts"] == row["p_value"]
    assert row["ci_low"] < 0 < row["ci_high"]


def test_the_detectable_ratio_is_past_the_limit_by_its_own_error():
    ratios = np.array([0.2, 0.22, 0.21, 0.23, 0.19, 0.2])
    test = compare_by_parts(made(100 * ratios[:, None], np.full((6, 1), 100.0)))
    limit, error = (stats.t.ppf(level, 4) * test.se / 0.21 for level in (1 - 0.05 / 5 / 2, 0.9))
    assert test.detectable_ratio(0.21) == pytest.approx((1 + limit) / (1 - error))
    assert test.detectable_ratio(0.01) == np.inf
    # A share that would be above 1 is no change that could be.
    always = compared(made(np.full((6, 30), 98) - np.arange(6)[:, None], np.full((6, 30), 100)), True, False)
    assert always["p_value"] > 0 and always["detectable_ratio"] is None


def test_too_few_to_tell():
    assert compared(made([[2, 1], [1, 0]], [[50, 50], [50, 50]]), True, False)["reason"] == RARE
    one_user = compared(made([[30], [30]], [[100], [100]]), True, False)
    assert one_user["reason"] == UNTESTED and "p_value" not in one_user
    assert decide_verdict(one_user) == TOO_FEW_WEEKS and "ci_low" not in one_user
    assert "before" not in compared(made([[1], [0]], [[5], [0]]), True, False)
    assert not compare_by_clusters(made([[30], [30]], [[100], [100]])).is_valid


def test_the_rate_and_what_follows_of_it_have_one_verdict():
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
    measured["ettr"] = values | counts
    table = build_changes(measured, TWO_WEEKS, "user")
    found = dict(table.select("measure", "p_adjusted").iter_rows())
    assert [found[name] for name in p_values] == holm(list(p_values.values()))
    assert found["ettr"] == found["infra_rate"] == 0.005
    assert table.filter(verdict=CHANGED)["measure"].to_list() == ["infra_rate", "ettr"]
    assert table.filter(verdict=CHANCE).height == 4
    del measured["infra_rate"]["p_value"]
    assert build_changes(measured, TWO_WEEKS, "user").filter(verdict=TOO_FEW)["measure"].to_list() == [
        "infra_rate",
        "ettr",
    ]


@pytest.mark.parametrize(("parts", "week_sd"), [(2, 0.3), (5, 0.3), (6, 0.0), (6, 0.4)])
def test_nothing_changed_is_called_a_change_in_one_family_of_twenty_at_most(parts, week_sd):
    """Users differ in what they do and how often they fail, the same in all parts; weeks differ too, where there are

    enough of them to see it.
    """
    rng, studies, wrong = np.random.default_rng(parts), 400, 0
    for _ in range(studies):
        active, prone = rng.lognormal(0, 1, 40), rng.beta(1.5, 4, 40)
        week = rng.normal(0, week_sd, (parts, 1))
        n = rng.poisson(active / active.sum() * 1500 * rng.gamma(3, 1 / 3, (parts, 40))).astype(float)
        odds = np.log(prone / (1 - prone)) + week + rng.normal(0, 0.3, (parts, 40))
        failed = rng.binomial(n.astype(int), 1 / (1 + np.exp(-odds))).astype(float)
        days = active / active.sum() * 100 * rng.gamma(2, 1 / 2, (parts, 40))
        hits = rng.poisson(days * 0.2 * rng.gamma(2, 1 / 2, 40) * np.exp(week)).astype(float)
        hours = n * rng.lognormal(0, 1, (parts, 40))
        lost = hours * failed / np.maximum(n, 1) * rng.lognormal(0, 0.5, (parts, 40))
        rows = [
            compared(made(failed, n), is_share=True, is_count=False),
            compared(made(hits, days), is_share=False, is_count=True),
            compared(Sums(failed, lost, hours, n.sum(axis=1).astype(int)), is_share=False, is_count=False),
        ]
        adjusted = holm([row.get("p_value") for row in rows])
        wrong += any(p is not None and p < 0.05 for p in adjusted)
    # Three standard errors above 0.05.
    assert wrong / studies < 0.05 + 3 * np.sqrt(0.05 * 0.95 / studies)


# What is new -------------------------------------------------------------------------------------------------


def failed_jobs(*rows):
    """(part, user, exit code), a failed job each."""
    frame = pl.DataFrame(rows, schema={"part": pl.String, "cluster": pl.UInt32, "exit_code": pl.String}, orient="row")
    job = pl.int_range(pl.len()).cast(pl.String)
    return frame.with_columns(job_id=job, task=pl.lit(None, pl.String), outcome=pl.lit("failure")).lazy()


def test_a_word_that_no_earlier_part_has():
    rows = [("a", user, "1:0") for user in (0, 1, 2) for _ in range(3)] + [("b", user, "1:0") for user in (0, 1, 2)]
    rows += [("b", 0, "137:0"), ("b", 0, "137:0"), ("b", 1, "137:0"), ("b", 9, "2:0")]
    found, row = find_new_words(*count_failure_words(failed_jobs(*rows), None, "b"), has_clusters=True)
    # Of the failures of user 0 half are of the last part, of those of user 1 two of five; user 9 is new.
    assert found.select("word", "failures", "clusters").rows() == [("137:0", 3, 2), ("2:0", 1, 1)]
    assert found["chance"].to_list() == pytest.approx([3 / 6 * 2 / 5, 1])
    assert row["p_value"] == pytest.approx(3 * 0.2)
    assert (row["before"], row["after"], row["n_before"], row["n_after"], row["events_after"]) == (1, 3, 9, 7, 4)
    _, apart = find_new_words(*count_failure_words(failed_jobs(*rows), None, "b"), has_clusters=False)
    assert apart["p_value"] == pytest.approx(3 * (7 / 16) ** 3)


def test_a_class_is_new_where_no_other_job_has_it():
    jobs = failed_jobs(("a", 0, "1:0"), ("a", 1, "1:0"), ("b", 0, "1:0"), ("b", 1, "1:0"))
    reasons = pl.LazyFrame({"job_id": ["0", "2", "3"], "task": [None] * 3, "reason": ["OOM", "OOM", "NCCL"]})
    reasons = reasons.with_columns(pl.col("task").cast(pl.String))
    found, _ = find_new_words(*count_failure_words(jobs, reasons, "b"), has_clusters=True)
    assert found.select("kind", "word", "failures", "clusters").rows() == [("class", "NCCL", 1, 1)]


def test_rare_words_that_come_by_chance_are_no_change():
    rng, wrong, studies = np.random.default_rng(7), 0, 300
    for _ in range(studies):
        size = 400
        user, part = rng.integers(0, 20, size), np.where(rng.random(size) < 0.5, "a", "b")
        code = np.minimum(rng.zipf(1.6, size), 60)
        jobs = pl.DataFrame({"part": part, "cluster": user, "exit_code": code}).with_columns(
            pl.col("exit_code").cast(pl.String),
            job_id=pl.lit("x"),
            task=pl.lit(None, pl.String),
            outcome=pl.lit("failure"),
        )
        _, row = find_new_words(*count_failure_words(jobs.lazy(), None, "b"), has_clusters=True)
        wrong += row["p_value"] < 0.05
    assert wrong / studies < 0.05


def lemons_of(**counts):
    """Nodes with so many failures where 1 is expected; those of 5 and more have excess failures."""
    rows = [
        {"node": node, "q_value": 0.01, "lemon": counted >= 5, "counted": counted, "expected": 1.0}
        for node, counted in counts.items()
    ]
    return pl.DataFrame(rows)


def test_a_suspect_is_new_that_fails_more_often_than_before():
    both, before = lemons_of(n1=20, n2=9, n3=12, n4=1), lemons_of(n1=10, n2=0, n3=12, n4=1)
    after, last = lemons_of(n1=12, n2=9, n3=9, n4=0), lemons_of(n1=10, n2=9, n4=0)
    found, row = suspects(both, before, after, last)
    # Of nine failures all in the half of the time that is the last: one of 512, times three nodes with excess failures.
    assert found.select("node", "counted_before", "counted", "expected").rows() == [("n2", 0, 9, 4.5)]
    assert found["q_value"].to_list() == pytest.approx([3 / 512]) and row["p_value"] == found["q_value"][0]
    assert (row["before"], row["after"], row["difference"]) == (2, 3, 1)
    # A node that was not there in the last part fails no more often in it.
    assert suspects(lemons_of(n3=12), before, after, last)[1]["p_value"] == 1
    untested = before.with_columns(q_value=pl.lit(None, pl.Float64))
    assert "p_value" not in suspects(both, untested, after, last)[1]


@pytest.mark.parametrize(("weeks", "per_week"), [(2, 0.2), (9, 0.05)])
def test_lemons_that_always_fail_are_no_change(weeks, per_week):
    """More of them are found as more is seen; the former comparison said in a tenth to a quarter that they changed."""
    assert SIMULATED["false_suspects"](weeks, per_week, 60, seed=3) <= 0.05


def test_the_detectable_ratio_is_found():
    assert SIMULATED["power"](8, 0.3, 200, seed=4)[0] >= 0.8


def test_the_smallest_q_is_the_p_of_simes():
    p_values = np.array([0.03, 0.5, 0.011, 0.9])
    simes = min(4 * p / rank for rank, p in enumerate(sorted(p_values), 1))
    assert benjamini_hochberg(p_values).min() == pytest.approx(simes)


# A trace in which one thing changed ---------------------------------------------------------------------------


def study(folder, changed=None, parts=5):
    """The tables of a made trace of weeks; changed: what differs in the last of them."""
    rng, each, users = np.random.default_rng(11), 3000, 30
    size = parts * each
    start = np.sort(rng.uniform(0, parts * WEEK, size)).astype(int)
    is_last = start >= (parts - 1) * WEEK
    large = rng.random(size) < 0.1
    user = rng.integers(0, users, size)
    share = 0.1 + 0.2 * user / users
    # Only jobs without a GPU fail more: no GPU time is lost.
    failed = rng.random(size) < np.where(is_last & ~large & (changed == "failure_share"), share + 0.2, share)
    run = rng.exponential(3600, size).astype(int) + 60
    run = np.where(large, 4 * run, run)
    code = np.where(is_last & (changed == "failure_words") & (rng.random(size) < 0.2), "99:0", "1:0")
    infra = large & failed & (rng.random(size) < 0.5)
    if changed == "infra_rate":
        # More of the failures of large jobs are of infrastructure; as many fail, and lose as much.
        infra = large & failed & (rng.random(size) < np.where(is_last, 0.9, 0.3))
    end = start + run
    over = end >= parts * WEEK
    jobs = pl.DataFrame(
        {
            "job_id": np.arange(size).astype(str),
            "part": [f"week{week}" for week in start // WEEK],
            "submit_s": MONDAY + start,
            "start_s": MONDAY + start,
            "end_s": MONDAY + end,
            "outcome": np.where(over, "running", np.where(failed, "failure", "success")),
            "status_raw": np.where(failed, "FAILED", "COMPLETED"),
            "exit_code": np.where(failed, code, "0:0"),
            "cluster": user,
        }
    ).with_columns(
        pl.col("cluster").cast(pl.UInt32),
        end_s=pl.when(pl.col("outcome") != "running").then("end_s"),
        task=pl.lit(None, pl.String),
        trace_end_s=pl.lit(MONDAY + parts * WEEK),
        cluster_by=pl.lit("user"),
        group_by=pl.lit("user"),
        group="cluster",
    )
    lives = jobs.select(
        "start_s",
        "cluster",
        duration_s=pl.min_horizontal(pl.Series(run), pl.lit(parts * WEEK) - pl.Series(start)),
        event=pl.when(pl.Series(infra & ~over)).then(pl.lit("infra_failure")),
        gpu_count=pl.Series(np.where(large, 16, 0)),
        gpu_milli=pl.Series(np.where(large, 16_000, 0)),
        basis=pl.lit("state"),
    )
    jobs.write_parquet(folder / "jobs.parquet")
    lives.write_parquet(folder / "lives_infra.parquet")
    rate = {"basis": "state", "above_gpus": 8, "node_gpus": 8, "confidence": 0.9}
    counts = {"jobs": 1, "failures": 1, "node_days": 1.0, "largest_run_nodes": 2, "projects_to_nodes": 8}
    rate |= counts | {"no_projection": "", "needed": "", "reason": "made"}
    write_csv(NODE_FAILURE_RATE.frame([rate]), folder / "node_failure_rate.csv")
    names = {"jobs": "jobs.parquet", "lives_infra": "lives_infra.parquet", "node_failure_rate": "node_failure_rate.csv"}
    files = {name: folder / file for name, file in names.items()}
    settings = {"parts": [f"week{week}" for week in range(parts)], "false_discovery": 0.05}
    return Inputs(files, contracts_of(["measure_sizes"]), settings, "made", str(folder / "out"))


@pytest.mark.parametrize("changed", [None, "failure_share", "infra_rate", "failure_words"])
def test_one_thing_changed_and_the_others_did_not(tmp_path, changed):
    found = compute(study(tmp_path, changed))
    for table in ANALYSIS.tables:
        table.check(found[table.name])
    verdicts = dict(found["changes"].select("measure", "verdict").iter_rows())
    expected = dict.fromkeys(("failure_share", "infra_rate", "lost_time", "failure_words"), CHANCE)
    # No node is named, and nothing says which run is planned.
    expected |= dict.fromkeys(("ettr", "suspect_nodes"), TOO_FEW)
    assert verdicts == expected | ({changed: CHANGED} if changed else {})
    assert found["new_failure_words"]["word"].to_list() == (["99:0"] if changed == "failure_words" else [])


def test_one_part_gives_empty_tables(tmp_path):
    assert {name: table.height for name, table in compute(study(tmp_path, parts=1)).items()} == {
        table.name: 0 for table in ANALYSIS.tables
    }
