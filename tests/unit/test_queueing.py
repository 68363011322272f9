"""Queueing delays of attempts, overtaking, retries, run time to failure and outcomes in a window, on a few jobs."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_tables import one_row as row
from sacct_story import EXPECTED, FIXTURES, derive_tables
from ttf.analyses.queue import describe_attempts as contracts
from ttf.analyses.queue.describe_attempts.charts import CHARTS
from ttf.analyses.queue.describe_attempts.compute import build_tables, compute, summarise_block
from ttf.analyses.queue.describe_attempts.delays import (
    BUCKETS,
    NO_DELAY,
    build_out_of_order,
    compute_waits,
    order_attempts,
)
from ttf.display.charts.figure import Study
from ttf.engine import exact_sums
from ttf.records.clusters import add_clusters, level_names
from ttf.records.infra import INFRA_COLUMNS
from ttf.records.inputs import Inputs
from ttf.records.jobs import JOB_COLUMNS, conform

ATTEMPT = {
    "job": pl.UInt32,
    "job_id": pl.String,
    "attempt": pl.Int64,
    "start_s": pl.Int64,
    "end_s": pl.Int64,
    "runtime_s": pl.Int64,
    "outcome": pl.String,
    "gpu_milli": pl.Int64,
    "nodes": pl.Int64,
}


def make_trace(*rows: dict) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Make (jobs, attempts); a row has outcome, submit, gpus, account, user and tries (start, end, outcome, nodes)."""
    jobs, attempts = [], []
    for number, fields in enumerate(rows):
        tries = fields.get("tries", ())
        gpus = fields.get("gpus", 1)
        jobs.append(
            {
                "job_id": f"j{number}",
                "user": fields.get("user", "u"),
                "account": fields.get("account", "a"),
                "submit_s": fields.get("submit", 0),
                "start_s": next((start for start, *_ in tries if start is not None), None),
                "outcome": fields.get("outcome", "success"),
                "gpu_milli": None if gpus is None else 1000 * gpus,
                "size": 1,
                "attempts": fields.get("attempts", len([1 for start, *_ in tries if start is not None])),
            }
        )
        for attempt, (start, end, *rest) in enumerate(tries):
            outcome, nodes = (*rest, None, None)[:2] if rest else (None, None)
            runtime = None if start is None or end is None else end - start
            attempts.append((number, f"j{number}", attempt, start, end, runtime, outcome, None, nodes))
    schema = {name: kind for name, kind in JOB_COLUMNS.items() if jobs and name in jobs[0]}
    return conform(pl.DataFrame(jobs, schema=schema), JOB_COLUMNS), pl.DataFrame(attempts, schema=ATTEMPT, orient="row")


def waits(jobs, attempts):
    return compute_waits(order_attempts(jobs, attempts))


def tables_of(jobs, attempts, window=None):
    """Compute all tables from all rows at once."""
    jobs = add_clusters(jobs)
    return build_tables([summarise_block(jobs, attempts, level_names(jobs), window)], window) | {
        "out_of_order": build_out_of_order(jobs)
    }


# Delays -----------------------------------------------------------------------------------------------------


def test_a_first_attempt_that_the_dump_does_not_have_leaves_the_delay_unknown():
    # sacct without -D shows only the last run; Restarts counts the earlier ones.
    trace = make_trace(
        {"attempts": 3, "tries": [(500, 600)]},
        {"attempts": 2, "tries": [(7, 9), (10, 12)]},
        {"attempts": 4, "tries": [(7, 9), (11, 12)]},
    )
    assert waits(*trace)["delay_s"].to_list() == [None, 7, 1, None, 2]


def test_the_share_of_delays_at_180_s_and_beside_it():
    rows = [{"tries": [(delay, delay + 1)]} for delay in (138, 139, 169, 170, 180, 200, 201, 231, 232, 500)]
    table = tables_of(*make_trace(*rows))["delays"]
    delays = row(table, group_by="all", gpu_bucket="all", which="first", zeros_kept=True)
    assert (delays["step_180_s_share"], delays["beside_180_s_share"]) == (0.3, 0.2)


JOB = st.fixed_dictionaries(
    {
        "account": st.sampled_from(["a", "b", None]),
        "gpus": st.sampled_from([None, 0, 1, 2, 4, 5, 8, 9, 64]),
        "submit": st.integers(0, 50),
        "tries": st.lists(st.tuples(st.none() | st.integers(0, 400), st.none() | st.integers(0, 400)), max_size=3),
    }
)


def loop_over_delays(rows):
    for job in rows:
        eligible_s = job["submit"]
        for attempt, (start, end) in enumerate(job["tries"]):
            wait = None if start is None or eligible_s is None else start - eligible_s
            yield job["account"], job["gpus"], attempt, wait
            eligible_s = end


def in_bucket(gpus, name):
    low, high = {"all": (-1, 10**9), "1": (1, 1), "2-4": (2, 4), "5-8": (5, 8), ">8": (9, 10**9)}[name]
    return name == "all" or (gpus is not None and low <= gpus <= high)


@given(st.lists(JOB, max_size=12), st.randoms())
def test_delays_are_those_of_a_loop_over_attempts(rows, random):
    jobs, attempts = make_trace(*rows)
    table = tables_of(jobs, attempts)["delays"]
    shuffled = attempts.sample(fraction=1, shuffle=True, seed=random.randrange(99)) if attempts.height else attempts
    assert tables_of(jobs, shuffled)["delays"].equals(table)
    delays = list(loop_over_delays(rows))
    key_columns = ("group_by", "group", "gpu_bucket", "which", "zeros_kept")
    rows_by_key = {tuple(row[name] for name in key_columns): row for row in table.iter_rows(named=True)}
    n_rows = 0
    for group_by, groups in (("all", ["all"]), ("account", ["a", "b"])):
        for group in groups:
            for bucket in BUCKETS:
                for attempts in ("every", "first", "later"):
                    chosen = [
                        wait
                        for account, gpus, attempt, wait in delays
                        if (group_by == "all" or account == group)
                        and in_bucket(gpus, bucket)
                        and (attempts == "every" or (attempt == 0) == (attempts == "first"))
                    ]
                    if not chosen:
                        continue
                    for zeros_kept in (True, False):
                        n_rows += 1
                        actual = rows_by_key[group_by, group, bucket, attempts, zeros_kept]
                        chosen_waits = [w for w in chosen if w is not None and (w >= 0 if zeros_kept else w > 0)]
                        assert actual["n"] == len(chosen_waits)
                        assert actual["unknown"] == chosen.count(None)
                        assert actual["negative"] == len([w for w in chosen if w is not None and w < 0])
                        assert actual["zeros"] == chosen.count(0)
                        if chosen_waits:
                            assert actual["mean_s"] == pytest.approx(np.mean(chosen_waits))
                            assert actual["p90_s"] == pytest.approx(np.percentile(chosen_waits, 90))
                            assert actual["within_60_s_share"] == np.mean([w <= 60 for w in chosen_waits])
    assert n_rows == table.height


def test_only_the_busiest_accounts_have_rows_and_the_rest_counts_in_all():
    rows = [{"account": f"a{i:02}", "tries": [(1, 2)]} for i in range(25) for _ in range(25 - i)]
    jobs, attempts = make_trace(*rows)
    table = tables_of(jobs, attempts)["delays"]
    assert table.filter(pl.col("group_by") == "account")["group"].unique(maintain_order=True).to_list() == [
        f"a{i:02}" for i in range(20)
    ]
    assert row(table, group_by="all", gpu_bucket="1", which="first", zeros_kept=True)["n"] == len(rows)


def test_delay_by_nodes_of_first_attempts_of_large_jobs():
    rows = [
        {"gpus": 8, "tries": [(10, 20, None, 1), (99, 100, None, 3)]},
        {"gpus": 8, "tries": [(30, 40, None, 1)]},
        {"gpus": 5, "submit": 100, "tries": [(90, 91, None, 1)]},  # before its submission
        {"gpus": 5, "tries": [(7, 8, None, 4)]},
        {"gpus": 16, "tries": [(60, 70, None, 2)]},
        {"gpus": 16, "submit": None, "tries": [(60, 70, None, 5)]},
        {"gpus": 4, "tries": [(60, 70, None, 2)]},
        {"gpus": 9, "tries": [(60, 70)]},  # nodes unknown
    ]
    table = tables_of(*make_trace(*rows))["delay_by_nodes"]
    contracts.DELAY_BY_NODES.check(table)
    assert table.select("gpu_bucket", "nodes", "n", "negative", "unknown", "p50_s", "longest_s").rows() == [
        ("5-8", 1, 2, 1, 0, 20.0, 30),
        ("5-8", 4, 1, 0, 0, 7.0, 7),
        (">8", 2, 1, 0, 0, 60.0, 60),
        (">8", 5, 0, 0, 1, None, None),
    ]
    assert table["reason"].to_list() == [None, None, None, NO_DELAY]


def test_sums_and_percentiles_are_exact():
    large = np.array([2**62, 2**62, 2**62 + 1], dtype=np.int64)
    assert exact_sums.total(large) == 3 * 2**62 + 1
    assert exact_sums.total(large[:0]) == 0
    assert exact_sums.percentile(np.array([1, 3]), 50) == 2
    parts = {
        code: part.tolist() for code, part in exact_sums.split_by_code(np.array([1, 2, 3, 4]), np.array([1, -1, 0, 1]))
    }
    assert parts == {0: [3], 1: [1, 4]}
    assert list(exact_sums.split_by_code(np.empty(0), np.empty(0, dtype=int))) == []


@settings(max_examples=10)
@given(st.lists(JOB, min_size=1, max_size=8), st.integers(1, 9))
def test_blocks_of_any_size_give_the_same(tmp_path_factory, rows, size):
    folder, (jobs, attempts) = tmp_path_factory.mktemp("blocks"), make_trace(*rows)
    files = {"jobs": folder / "jobs.parquet", "attempts": folder / "attempts.parquet"}
    add_clusters(jobs).write_parquet(files["jobs"])
    attempts.write_parquet(files["attempts"])
    files["durations_infra"] = folder / "durations_infra.parquet"
    pl.DataFrame(schema=INFRA_COLUMNS).write_parquet(files["durations_infra"])
    whole = tables_of(jobs, attempts, window=(10, 30))
    tables = compute(Inputs(files, {}, {"window": [10, 30]}), size)
    for name, table in whole.items():
        assert table.equals(tables[name]), name


# Overtaking -------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 9), st.integers(0, 20)), max_size=20))
def test_out_of_order_is_what_comparing_all_pairs_gives(rows):
    rows = [(account, submit, submit + wait) for account, submit, wait in rows]
    jobs, _ = make_trace(*({"account": a, "submit": s, "tries": [(t, t + 1)]} for a, s, t in rows))
    table = build_out_of_order(jobs)
    if not rows:
        assert table.height == 0
        return
    for scope in ("account", "cluster"):
        chosen = [a for a in rows if scope == "cluster" or a[0] is not None]
        pairs = [[(b[0] == a[0] or scope == "cluster", b[1] - a[1], b[2] - a[2]) for b in chosen] for a in chosen]
        actual = row(table, scope=scope, gpu_bucket="all")
        assert actual["n"] == len(chosen)
        if not chosen:
            continue
        ahead = sum(any(same and s < 0 < t for same, s, t in items) for items in pairs)
        behind = sum(any(same and t < 0 < s for same, s, t in items) for items in pairs)
        assert (actual["out_of_order_share"], actual["overtaken_share"]) == (ahead / len(chosen), behind / len(chosen))


# Retries and failed attempts --------------------------------------------------------------------------------

RETRY_TRACE = make_trace(
    {"outcome": "success", "user": "u", "tries": [(0, 10), (20, 120, "success", 1)]},  # one retry
    {"outcome": "failure", "user": "u", "gpus": 2, "tries": [(0, 30), (50, 60), (70, 170, "failure", 1)]},
    {"outcome": "cancelled", "user": "v", "gpus": 2, "submit": 500, "tries": [(600, 640, "cancelled", 1)]},
    {"outcome": "failure", "user": "v", "gpus": 3, "submit": 500, "tries": [(600, None, "failure", 1)]},
    {"outcome": "failure", "user": None, "submit": 900},  # never tried
)


def test_retries_and_the_unsuccessful_by_gpus():
    table = tables_of(*RETRY_TRACE)["retries"]
    contracts.RETRIES.check(table)
    assert table.select("group_by", "group", "n", "retries", "failures").rows() == [
        ("all", "all", 4, 3, 2),
        ("gpus", "1", 1, 1, 0),
        ("gpus", "2-4", 3, 2, 2),
        ("gpu_count", "1", 1, 1, 0),
        ("gpu_count", "2", 2, 2, 1),
    ]
    overall = row(table, group_by="all")
    assert (overall["retries_mean"], overall["retried_share"], overall["unsuccessful_share"]) == (0.75, 0.5, 0.5)
    # 1, 2, 0, 0: variance 11 / 12.
    half = 1.959963984540054 * (11 / 12 / 4) ** 0.5
    assert overall["retries_ci_high"] == pytest.approx(0.75 + half)
    assert overall["retries_ci_low"] == 0
    assert overall["ci_low"] == pytest.approx(0.1500389, abs=1e-6)  # Wilson, 2 of 4
    assert row(table, group_by="gpus", group="1")["reason"]
    assert tables_of(RETRY_TRACE[0].head(0), RETRY_TRACE[1].head(0))["retries"].height == 0


def test_run_time_to_failure_by_proxy():
    table = tables_of(*RETRY_TRACE)["runtime_to_failure"]
    contracts.RUNTIME_TO_FAILURE.check(table)
    # 10 s of the job that then succeeded; 30, 10 and 100 s of the one that failed; one that has no end.
    overall = row(table, gpu_bucket="all")
    assert (overall["basis"], overall["trials"], overall["n"]) == ("proxy", 5, 4)
    assert (overall["mean_s"], overall["p50_s"]) == (37.5, 20)
    assert overall["gpu_hours"] == (10 + 2 * 140) / 3600
    row_2 = row(table, gpu_bucket="2-4")
    assert (row_2["trials_share"], row_2["rtf_share"], row_2["gpu_hours_share"]) == (0.8, 140 / 150, 280 / 290)
    assert row(table, gpu_bucket=">8")["reason"] == "no attempt failed"


def test_where_attempts_have_outcomes_only_failures_fail():
    jobs, attempts = make_trace(
        {"tries": [(0, 10, "cancelled"), (20, 30, "failure"), (40, 50, "success")]},
        {"outcome": "running", "tries": [(0, 10, "running")]},
    )
    tables = tables_of(jobs, attempts)
    overall = row(tables["runtime_to_failure"], gpu_bucket="all")
    assert (overall["basis"], overall["trials"]) == ("recorded", 1)
    table = tables["outcomes_window"]
    counts = {row["outcome"]: row["n"] for row in table.filter(pl.col("unit") == "attempt").iter_rows(named=True)}
    assert counts == {"success": 1, "failure": 1, "cancelled": 1, "running": 1}


def test_failed_attempts_of_one_job_and_of_one_user():
    table = tables_of(*RETRY_TRACE)["failed_attempts"]
    contracts.FAILED_ATTEMPTS.check(table)
    row_by_group = {name: row(table, group_by=name, at_least=2) for name in ("failed_job", "job", "user")}
    # Failed jobs with attempts: 3 and 1 failed attempts; the successful one had 1; users u 4 and v 1.
    assert [row_by_group[name]["n"] for name in row_by_group] == [2, 3, 2]
    assert [row_by_group[name]["groups"] for name in row_by_group] == [1, 1, 1]
    assert [row_by_group[name]["trials_mean"] for name in row_by_group] == [2, 5 / 3, 2.5]
    assert [row_by_group[name]["trials_share"] for name in row_by_group] == [3 / 4, 3 / 5, 4 / 5]
    assert row(table, group_by="user", at_least=10)["groups_share"] == 0
    no_failures = tables_of(RETRY_TRACE[0].head(0), RETRY_TRACE[1].head(0))["failed_attempts"]
    assert set(no_failures["reason"]) == {"no attempt failed"}


def test_on_the_accounting_of_a_real_slurm(tmp_path):
    _, jobs, attempts = derive_tables(FIXTURES / "real_readme.txt", folder=tmp_path / "raw")
    tables = tables_of(jobs, attempts)
    states = [state for _, states, *_ in EXPECTED.values() for state in states]
    failed = states.count("FAILED") + states.count("TIMEOUT") + states.count("NODE_FAIL")
    overall = row(tables["runtime_to_failure"], gpu_bucket="all")
    assert (overall["basis"], overall["trials"]) == ("recorded", failed)
    retried_jobs = [name for name, (outcome, runs, *_) in EXPECTED.items() if len(runs) > 1 and outcome != "running"]
    assert row(tables["retries"], group_by="all")["retries"] == len(retried_jobs) == 2
    counts = {
        attempts: row(tables["delays"], group_by="all", gpu_bucket="all", which=attempts, zeros_kept=True)
        for attempts in ("first", "later")
    }
    started = [runs for _, runs, *_ in EXPECTED.values() if runs]
    assert counts["first"]["n"] + counts["first"]["negative"] == len(started)
    assert counts["later"]["n"] == len(states) - len(started)


# Outcomes in a window ---------------------------------------------------------------------------------------


def test_outcomes_of_the_whole_trace_and_in_a_window():
    table = tables_of(*RETRY_TRACE, window=(500, 900))["outcomes_window"]
    contracts.OUTCOMES_WINDOW.check(table)
    job_rows = table.filter(pl.col("unit") == "job")
    assert job_rows.select("window", "outcome", "n", "without_end").rows() == [
        ("all", "success", 1, 0),
        ("all", "failure", 3, 1),
        ("all", "cancelled", 1, 0),
        ("window", "success", 0, 0),
        ("window", "failure", 1, 1),
        ("window", "cancelled", 1, 0),
    ]
    # GPU seconds of all attempts: 110; 2 x 140; 2 x 40.
    shares = [110 / 470, 280 / 470, 80 / 470, 0, 0, 1]
    assert job_rows["gpu_hours_share"].to_list() == pytest.approx(shares)
    attempts = row(table, unit="attempt", window="all", outcome="failure")
    assert (attempts["n"], attempts["n_share"], attempts["basis"]) == (5, 5 / 7, "proxy")
    inside = row(table, unit="attempt", window="window", outcome="failure")
    assert (inside["n"], inside["window_from_s"], inside["window_to_s"]) == (1, 500, 900)
    assert set(tables_of(*RETRY_TRACE)["outcomes_window"]["window"]) == {"all"}
    empty = tables_of(*RETRY_TRACE, window=(2000, 3000))["outcomes_window"].filter(pl.col("window") == "window")
    assert set(empty["reason"]) == {"no job is in it", "no attempt is in it"}


@given(st.lists(JOB, max_size=10))
def test_the_gpu_time_of_jobs_is_that_of_their_attempts(rows):
    rows = [job | {"tries": [(s, None if e is None else (s or 0) + e) for s, e in job["tries"]]} for job in rows]
    jobs, attempts = make_trace(*rows)
    table = tables_of(jobs, attempts)["outcomes_window"]
    hours = {unit: table.filter(pl.col("unit") == unit)["gpu_hours"].sum() for unit in ("job", "attempt")}
    assert hours["job"] == pytest.approx(hours["attempt"])
    assert table.filter(pl.col("unit") == "job")["n"].sum() == jobs.height
    assert table.filter(pl.col("unit") == "attempt")["n"].sum() == attempts["start_s"].count()


# Charts, numbers, words -------------------------------------------------------------------------------------


def test_a_cause_that_is_not_known_is_named_only_where_it_is_not():
    unknown = CHARTS["runtime_to_failure"](tables_of(*RETRY_TRACE), Study("job"))
    assert "Any failure, cause unknown" in unknown.caption
    recorded = make_trace({"outcome": "failure", "tries": [(0, 10, "failure", 1)]})
    assert CHARTS["runtime_to_failure"](tables_of(*recorded), Study("job")).caption == "n = 1 failed attempt."
