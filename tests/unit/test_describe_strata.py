"""The first numbers by account, partition, GPU type and size: by hand, against all-job tables and on the page."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_numbers import ABOUT
from made_numbers import numbers as numbers_of
from made_runs import add_job_rows, make_trace
from memory_tables import outcomes_by_gpus
from polars.testing import assert_frame_equal
from trace_losses import loss_sums, make_runs
from ttf.analyses.lost.measure_losses.lost_work import lost_work
from ttf.analyses.outcomes.describe_strata import STRATA
from ttf.analyses.outcomes.describe_strata.compute import add_shares, build_strata
from ttf.analyses.outcomes.describe_strata.page import MAX_STRATA, select_eligible
from ttf.display.brief_model import Brief, Tile
from ttf.page.brief.stratum_tiles import KEY_BY_TILE, MOST_BYTES, strata_json
from ttf.page.report.templates import macros
from ttf.records.clusters import CLUSTER_COLUMNS, add_clusters, block_columns
from ttf.records.infra import EVENT, infra_durations
from ttf.records.jobs import JOB_COLUMNS, conform
from ttf.stats.clustered import CLUSTERED, clustered_shares
from ttf.stats.durations.mttf import mean_time_to_failure

REPORT = Path(__file__).parents[2] / "report"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DAY_S = 86_400
RULES = {"states": ["NODE_FAIL"]}


def jobs_from_rows(rows: list[tuple]) -> pl.DataFrame:
    """Jobs from (user, account, partition, status, gpus, run time). A blank run time means waiting."""
    names = ("user", "account", "partition", "status_raw", "gpus", "runtime_s")
    dtypes = [*[pl.String] * 4, pl.Int64, pl.Int64]
    frame = pl.DataFrame(rows, schema=dict(zip(names, dtypes, strict=True)), orient="row").with_row_index("at")
    started = pl.col("runtime_s").is_not_null()
    failed = ~pl.col("status_raw").is_in(["COMPLETED", "PENDING"])
    outcome = pl.when(failed).then(pl.lit("failure")).otherwise(pl.lit("success"))
    return add_clusters(
        conform(
            frame.select(
                *names[:4],
                "runtime_s",
                trace=pl.lit("made"),
                job_id=pl.format("job{}", "at"),
                submit_s=pl.lit(0),
                start_s=pl.when(started).then(0),
                end_s="runtime_s",
                outcome=pl.when(started).then(outcome).otherwise(pl.lit("waiting")),
                gpu_milli=1000 * pl.col("gpus"),
                size=pl.lit(1),
                trace_end_s=pl.lit(10**7),
            ),
            JOB_COLUMNS,
        )
    )


def attempts_of(jobs: pl.DataFrame) -> pl.DataFrame:
    """One attempt per started job, and for every third job a second attempt ended by a node failure."""
    started = jobs.filter(pl.col("start_s").is_not_null())
    names = ("job_id", "start_s", "end_s", "runtime_s", "outcome", "gpu_milli", "nodes")
    first_attempts = started.select(*names, "status_raw", attempt=pl.lit(0, pl.Int64))
    second_attempts = first_attempts.gather_every(3).with_columns(
        attempt=pl.lit(1, pl.Int64), outcome=pl.lit("failure"), status_raw=pl.lit("NODE_FAIL")
    )
    lists = {"node_list": pl.lit(None, pl.List(pl.String)), "failed_node": pl.lit(None, pl.String)}
    attempts = pl.concat([first_attempts, second_attempts]).rename({"status_raw": "state"}).with_columns(**lists)
    return add_job_rows(jobs, attempts.sort(pl.col("job_id").str.slice(3).cast(pl.Int64), "attempt"))


def table_of(jobs: pl.DataFrame, attempts: pl.DataFrame | None = None, **options) -> pl.DataFrame:
    durations = infra_durations(jobs, attempts, RULES).lazy()
    attempt_frame = None if attempts is None else attempts.lazy()
    table = build_strata(jobs.lazy(), attempt_frame, durations, (8, None), **options)
    STRATA.check(table)
    return table


@settings(max_examples=4)
@given(st.integers(0, 10_000), st.booleans(), st.integers(3, 40))
def test_blocks_of_jobs_give_the_same_table(seed, has_attempts, size):
    assert_frame_equal(
        table_of(*make_trace(seed, 60, has_attempts), size=size), table_of(*make_trace(seed, 60, has_attempts))
    )


def row_of(table: pl.DataFrame, column: str, stratum: str) -> dict:
    return table.filter(stratum_by=column, stratum=stratum).row(0, named=True)


def random_jobs(jobs: int = 600, seed: int = 1) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    user, status = draw.integers(0, 12, jobs), ["COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "PENDING"]
    gpus, times = 2 ** draw.integers(0, 6, jobs) + draw.integers(0, 2, jobs), draw.integers(0, 10**5, jobs)
    word = draw.choice(status, jobs, p=[0.6, 0.2, 0.05, 0.1, 0.05])
    return jobs_from_rows(
        [
            (f"u{u}", f"a{u % 3}", f"p{i % 2}", label, int(size), None if label == "PENDING" else int(time))
            for i, (u, label, size, time) in enumerate(zip(user, word, gpus, times, strict=True))
        ]
    )


def test_strata_by_hand():
    table = table_of(
        jobs_from_rows(
            [
                ("u", "a", "x", "COMPLETED", 8, DAY_S),
                ("u", "a", "x", "NODE_FAIL", 16, DAY_S),
                ("v", "a", "y", "TIMEOUT", 1, 3_600),
                ("v", None, "y", "FAILED", 2, 7_200),
                ("v", "b", "y", "PENDING", 1, None),
                # The loss of a job without GPUs is no failure of a node with GPUs.
                ("w", "b", "y", "NODE_FAIL", 0, DAY_S),
            ]
        )
    )
    assert table.select("stratum_by", "stratum", "jobs").rows() == [
        *[("all", "all", 6), ("account", "a", 3), ("account", "b", 2), ("partition", "x", 2), ("partition", "y", 4)],
        *[("gpus", "0", 1), ("gpus", "1", 2), ("gpus", "2", 1), ("gpus", "5-8", 1), ("gpus", "9-16", 1)],
    ]
    a = row_of(table, "account", "a")
    assert (a["ended"], a["failures"], a["timeouts"], a["failure_share"]) == (3, 2, 1, 2 / 3)
    assert (a["gpu_hours"], a["failed_gpu_hours"]) == pytest.approx((577, 385))
    assert (a["infra_gpu_hours"], a["failed_gpu_hours_share"]) == pytest.approx((384, 385 / 577))
    # One node of 8 GPUs and two more for a day each, and one for an hour.
    assert (a["infra_failures"], a["node_days"]) == pytest.approx((1, 3 + 1 / 24))
    assert a["failures_per_1000_node_days"] == pytest.approx(1000 / (3 + 1 / 24))
    assert (a["failures_with_runtime"], a["failure_median_s"]) == (2, (3_600 + DAY_S) / 2)
    b = row_of(table, "account", "b")
    assert (b["failures"], b["infra_failures"], b["node_days"], b["failures_per_1000_node_days"]) == (1, 0, 0, None)


@pytest.mark.parametrize("has_attempts", [False, True])
def test_strata_agree_with_outcomes_losses_and_mean_times(has_attempts):
    jobs = random_jobs()
    attempts = attempts_of(jobs) if has_attempts else None
    table, durations = table_of(jobs, attempts), infra_durations(jobs, attempts, RULES)
    sizes = table.filter(stratum_by="gpus")
    shared = ("jobs", "ended", "failures", "failure_share", "ci_low", "ci_high", "cluster_by", "ci_low_clustered")
    gpu_table = outcomes_by_gpus(jobs)
    assert_frame_equal(sizes.select(shared), gpu_table.select(shared))
    assert sizes["stratum"].to_list() == [
        str(high) if low == high else f"{low}-{high}" for low, high in gpu_table.select("gpus_low", "gpus_high").rows()
    ]
    losses = lost_work(loss_sums(make_runs(jobs, attempts, durations), 3_600, 60))
    for name in ("gpu_hours", "failed_gpu_hours", "infra_gpu_hours", "failed_without_time"):
        assert sizes[name].to_list() == pytest.approx(losses[name].to_list())
    # With whole nodes of 8 GPUs the rate equals that of the table of mean times.
    whole_nodes = durations.with_columns(nodes=(pl.col("gpu_count") + 7) // 8)
    times = mean_time_to_failure(whole_nodes, EVENT, ["account"], [0.95])
    accounts = table.filter(stratum_by="account")
    assert accounts["infra_failures"].to_list() == times["events"].to_list()
    rate = "failures_per_1000_node_days"
    assert list(accounts[rate]) == pytest.approx(list(times[rate]))
    all_jobs = row_of(table, "all", "all")
    assert all_jobs["failure_median_s"] == jobs.filter(outcome="failure")["runtime_s"].median()
    assert all_jobs["median_ci_low_clustered_s"] < all_jobs["failure_median_s"] < all_jobs["median_ci_high_clustered_s"]


_JOB = st.tuples(
    *(st.sampled_from(["u", "v", "w"]), st.sampled_from(["a", "b", "c"]), st.sampled_from(["x", "y"])),
    st.sampled_from(["COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL"]),
    *(st.integers(0, 70), st.integers(0, 10**6)),
)


@settings(max_examples=6)
@given(st.lists(_JOB, min_size=1, max_size=40))
def test_strata_of_one_column_add_up_to_all_jobs(rows):
    table = table_of(jobs_from_rows(rows))
    names = ["jobs", "ended", "failures", "timeouts", "gpu_hours", "failed_gpu_hours", "infra_failures", "node_days"]
    totals = table.filter(stratum_by="all").select(names).row(0)
    for _, group in table.group_by("stratum_by"):
        assert group.select(pl.col(names).sum()).row(0) == pytest.approx(totals)


# ---- on the page ----


def strata(count: int = 3, name="project{}".format, **changes) -> pl.DataFrame:
    """All jobs and `count` accounts of decreasing size."""
    row = {"ended": 6_000, "failures": 1_800, "failures_with_runtime": 1_800, "timeouts": 0, "basis": "event"}
    row |= {"failure_share": 0.3, "ci_low": 0.25, "ci_high": 0.35}
    row |= {"gpu_hours": 2e6, "failed_gpu_hours": 5e5, "failed_gpu_hours_share": 0.25}
    row["failed_without_time"] = 0
    row |= {"infra_gpu_hours": 2e5, "infra_failures": 40, "node_days": 5e3, "failures_per_1000_node_days": 8.0}
    row |= {"rate_ci_low": 6.0, "rate_ci_high": 10.5}
    row |= {"failure_median_s": 822.0, "median_ci_low_s": 700.0, "median_ci_high_s": 900.0}
    all_jobs = row | {"stratum_by": "all", "stratum": "all", "jobs": 10**6}
    rows = [row | {"stratum_by": "account", "stratum": name(n), "jobs": 10**4 - n} | changes for n in range(count)]
    return add_shares(STRATA.frame([all_jobs, *rows]).with_columns(timeout_gpu_hours=1e5))


def tiles_of(table: pl.DataFrame, m=None, tiles=tuple(KEY_BY_TILE)) -> dict:
    text = strata_json(table, tiles, m or numbers_of(), ABOUT)
    return json.loads(text)["groups"]["Account"]["project0"]


def test_failed_gpu_time_has_the_interval_of_users_and_weeks():
    """Compare with shares of GPU time clustered by user and by the week in which jobs end."""
    week = 7 * DAY_S
    draw = np.random.default_rng(3)
    jobs = random_jobs(900).with_columns(user=pl.format("u{}", pl.Series(draw.integers(0, 25, 900))))
    jobs = jobs.drop(CLUSTER_COLUMNS).with_columns(end_s=pl.Series(draw.integers(0, 10 * week, 900)))
    jobs = add_clusters(jobs.with_columns(start_s=pl.col("end_s") - pl.col("runtime_s"), trace_end_s=10 * week))
    jobs = jobs.with_columns(**block_columns(7))
    row = row_of(table_of(jobs), "all", "all")
    gpu = pl.col("gpu_milli") * pl.col("runtime_s")
    lost = gpu.filter(pl.col("outcome") == "failure").sum()
    share_row = clustered_shares(jobs.filter(pl.col("runtime_s") > 0), [], lost, gpu.sum()).row(0, named=True)
    for name in CLUSTERED:
        expected = share_row[name] if name == "cluster_by" else pytest.approx(share_row[name])
        assert row[f"failed_gpu_{name}"] == expected
    assert share_row["cluster_by"] == "user and week"
    assert row["failed_gpu_ci_low_clustered"] < row["failed_gpu_hours_share"] < row["failed_gpu_ci_high_clustered"]


def test_rules_apply_to_a_stratum():
    timeless = tiles_of(strata(failed_without_time=7))["failed_gpu_time"]["interval"]
    assert timeless == "7 failed attempts lack a run time and count as 0"
    few_tile = tiles_of(strata(infra_failures=9))["node_rate"]
    assert (few_tile["state"], few_tile["badge"]) == ("few", "few events")
    zero_tile = tiles_of(strata(infra_failures=0, failures_per_1000_node_days=0.0, rate_ci_low=0.0))["node_rate"]
    assert (zero_tile["value"], zero_tile["badge"]) == ("< 10.5", "upper bound")
    assert "0 failures" in zero_tile["interval"]
    assert tiles_of(strata(jobs=200_000))["failure_rate"]["badge"] == "3.0% ended"
    assert tiles_of(strata(timeouts=1_000))["when"]["badge"] == "time limit"
    blank_tile = tiles_of(strata(failures_per_1000_node_days=None, rate_ci_low=None, rate_ci_high=None))["node_rate"]
    assert blank_tile["state"] == "withheld"


def test_rules_of_the_trace_apply_to_its_strata():
    proxy = tiles_of(strata(basis="proxy"), numbers_of(sizes__basis=("proxy", "label")))
    assert proxy["node_rate"]["badge"] == "any failure"
    assert "Infrastructure" not in json.dumps(proxy)
    assert "when" not in tiles_of(strata(), numbers_of(without_end__share=0.06))
    assert set(tiles_of(strata(), tiles=("failure_rate", "mttf", "ettr"))) == {"failure_rate"}


def test_small_strata_cannot_be_chosen():
    assert strata_json(strata(jobs=29), KEY_BY_TILE, numbers_of(), ABOUT) is None
    assert strata_json(strata(failures=9), KEY_BY_TILE, numbers_of(), ABOUT) is None
    assert strata_json(strata(), ("mttf", "ettr"), numbers_of(), ABOUT) is None


@pytest.mark.parametrize("sign", ["</script><b>\u202e\U0001f525", "\u2028\u0085```\\\"'{{<"])
def test_two_thousand_accounts_with_hostile_names(sign):
    table = strata(2_000, lambda number: sign * 40 + str(number))
    text = strata_json(table, KEY_BY_TILE, numbers_of(), ABOUT)
    assert len(text.encode()) <= MOST_BYTES
    assert "<" not in text
    assert len(text.splitlines()) == 1
    names = list(json.loads(text)["groups"]["Account"])
    assert len(names) == len(set(names)) <= MAX_STRATA
    assert len(names) >= 10
    assert all(len(name) <= 46 for name in names)
    # The largest accounts with enough jobs.
    assert select_eligible(table)["jobs"].to_list() == [10**4 - number for number in range(MAX_STRATA)]


@pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed: make test-tools")
def test_a_stratum_is_chosen_by_the_keyboard():
    from playwright.sync_api import sync_playwright

    tiles = [Tile(name, name, "shown", f"{name} of all") for name in KEY_BY_TILE]
    brief = Brief("", (), "A", (), ("First.",), tuple(tiles))
    overview = macros(REPORT).overview(SimpleNamespace(title="Made", synthetic=False, pseudonyms=False), brief, {})
    text = strata_json(strata(2, lambda number: f"<b>{number}</b>"), KEY_BY_TILE, numbers_of(), ABOUT)
    scripts = "".join(file.read_text(encoding="utf-8") for file in sorted((REPORT / "page").glob("*.js")))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_context(offline=True).new_page()
        data = f'<script type="application/json" id="strata">{text}</script>'
        page.set_content(f"<!DOCTYPE html><title>Page</title><main>{overview}{data}</main>")
        initial_text = page.inner_text(".tiles")
        page.add_script_tag(content=scripts)
        assert page.locator("#stratum option").all_inner_texts() == ["all jobs", "<b>0</b>", "<b>1</b>"]
        page.focus("#stratum")
        page.keyboard.press("ArrowDown")
        rate = page.locator('[data-tile="failure_rate"]')
        assert rate.locator(".value").inner_text() == "30.0% of ended jobs"
        assert "Account <b>0</b>" in page.inner_text("#said")
        page.keyboard.press("ArrowUp")
        assert page.inner_text(".tiles") == initial_text
        browser.close()
