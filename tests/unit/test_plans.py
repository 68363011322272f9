"""Plans by job size, mitigations, statements of the paper, and measured job runs."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import make_trace
from plan_inputs import DAY, HABITS, RATE, SIZES, TOO_LARGE, make_rate, make_rate_table, target_numbers
from polars.testing import assert_frame_equal
from scipy import stats
from shipped_claims import CLAIMS
from ttf.analyses.large_runs.measure_ettr import ETTR_MEASURED, ETTR_MEASURED_TARGET
from ttf.analyses.large_runs.measure_ettr.compute import job_runs, measured_table, target_runs
from ttf.analyses.large_runs.plan_ettr.compute import ONE_WAIT, assumptions, mitigation_table, plan_tables, queue_of
from ttf.display.metrics import Metrics
from ttf.engine.errors import StudyError
from ttf.engine.size_unit import GPU, NODE
from ttf.page.replication.scorecard import compute_printed_ettr
from ttf.records.clusters import add_levels
from ttf.records.infra import infra_durations
from ttf.stats.large_runs.ettr import Plan, ettr_renewal, expected_scheduled_s, expected_wall_s
from ttf.stats.large_runs.plans import Habits, NodeRate, node_rate, target_size


def test_a_row_matches_the_formulas():
    ettr, outlook = plan_tables(RATE, HABITS, SIZES, 200, 1)
    selection = {"gpus": 1000, "rate": "high", "checkpoint_interval_s": 3600.0}
    row, outlook_row = (table.filter(**selection).row(0, named=True) for table in (ettr, outlook))
    assert row["mttf_s"] == pytest.approx(DAY / (125 * 8.2e-3), rel=1e-12)
    plan = Plan(125 * 8.2e-3 / DAY, 3600, 300, 300, 600, 14 * DAY)
    assert row["ettr_renewal"] == pytest.approx(ettr_renewal(plan), rel=1e-12)
    assert abs(row["ettr_simulated"] - row["ettr_renewal"]) < 4 * row["ettr_simulated_se"]
    assert outlook_row["expected_wall_s"] == pytest.approx(expected_wall_s(plan), rel=1e-12)
    assert outlook_row["simulated_wall_p05_s"] < outlook_row["expected_wall_s"] < outlook_row["simulated_wall_p95_s"]
    assert outlook_row["ettr_at_optimum"] > row["ettr_renewal"]
    assert row["reason"] is None


def test_every_row_agrees_with_its_simulation():
    ettr, _ = plan_tables(RATE, HABITS, SIZES, 1000, 2025)
    simulated = ettr.drop_nulls("ettr_simulated_se")
    assert simulated.height > 20
    standard_errors = (simulated["ettr_simulated"] - simulated["ettr_renewal"]).abs() / simulated["ettr_simulated_se"]
    assert standard_errors.max() < 4


def test_a_row_says_where_the_approximations_fail():
    ettr, _ = plan_tables(RATE, HABITS[:1], SIZES, 100, 1)
    lost_share = ettr.select(1 / pl.col("mttf_s") * (300 + 1800)).to_series()
    assert ettr["approximation_valid"].to_list() == (lost_share <= 0.3).to_list()
    invalid = ettr.filter(~pl.col("approximation_valid"))
    assert invalid["reason"].str.contains("above 0.3: the approximations").all()
    undefined = ettr.filter(lost_share >= 1)
    assert undefined.height and undefined["ettr_combined"].null_count() == undefined.height
    assert undefined["ettr_renewal"].null_count() == 0
    free_writes, _ = plan_tables(RATE, HABITS[1:], [1024], 50, 1)
    assert free_writes["optimal_interval_s"].null_count() == free_writes["reason"].count() == 3


def test_rows_without_a_rate_are_blank_with_a_reason():
    ettr, outlook = plan_tables(make_rate(None, None, None, None, "no job that asked for a GPU"), HABITS, SIZES, 10, 1)
    for table in (ettr, outlook):
        assert table["reason"].unique().to_list() == ["no job that asked for a GPU"]
        assert table["nodes"].unique().sort().to_list() == SIZES
    assert ettr["ettr_renewal"].null_count() == ettr.height


def test_without_failures_there_is_still_an_upper_limit():
    ettr, outlook = plan_tables(make_rate(0.0, 0.0, 1e-3, 8), HABITS[:1], [8, 1024], 50, 1)
    estimate = ettr.filter(rate="estimate")
    assert estimate["mttf_s"].null_count() == 2
    assert estimate["ettr_simulated"].to_list() == pytest.approx(estimate["ettr_renewal"].to_list(), rel=1e-12)
    assert outlook.filter(rate="high")["expected_interruptions"].min() > 0


def test_a_run_that_never_ends_has_a_reason():
    ettr, outlook = plan_tables(make_rate(50.0, 40.0, 60.0, 8), HABITS[:1], [131_072], 50, 1)
    row = ettr.row(0, named=True)
    assert row["ettr_renewal"] == 0
    assert row["reason"]
    assert outlook["expected_wall_s"].null_count() == 3
    assert mitigation_table(make_rate(50.0, 40.0, 60.0, 8), HABITS[0], [131_072])["reason"].drop_nulls().len()


def test_job_sizes_of_machines_without_gpus_are_nodes():
    rate = replace(RATE, node_gpus=None)
    ettr, _ = plan_tables(rate, HABITS[:1], [128], 50, 1)
    assert ettr["gpus"].null_count() == 3 and ettr["nodes"].to_list() == [128] * 3
    mitigations = mitigation_table(rate, HABITS[0], [128])
    assert mitigations["gpu_hours_saved_per_productive_week"].null_count() == mitigations.height
    assert mitigations["node_hours_saved_per_productive_week"].null_count() == 0


def test_only_the_seed_changes_the_simulation():
    first, repeated, other_seed = (plan_tables(RATE, HABITS, SIZES, 50, seed)[0] for seed in (1, 1, 2))
    assert first.equals(repeated)
    assert not first.equals(other_seed)
    simulated = ["ettr_simulated", "ettr_simulated_se", "reason"]
    assert first.drop(simulated).equals(other_seed.drop(simulated))


def test_mitigations_by_hand():
    table = mitigation_table(RATE, HABITS[0], [1024])
    plan = Plan(128 * 6.5e-3 / DAY, 3600, 300, 300, 600, 14 * DAY)
    assert table["ettr_before"].unique().to_list() == pytest.approx([ettr_renewal(plan)])
    row_by_mitigation = {row["mitigation"]: row for row in table.iter_rows(named=True)}
    halved = replace(plan, restart_s=150)
    row = row_by_mitigation["start-up time halved"]
    assert row["ettr_after"] == pytest.approx(ettr_renewal(halved))
    saved_node_hours = (expected_scheduled_s(plan) - expected_scheduled_s(halved)) / (14 * DAY) * 7 * 24 * 128
    assert row["node_hours_saved_per_productive_week"] == pytest.approx(saved_node_hours)
    assert row["gpu_hours_saved_per_productive_week"] == pytest.approx(8 * saved_node_hours)
    # A shorter wait frees no node time, but the job finishes sooner.
    queue_row = row_by_mitigation["queue time halved"]
    assert queue_row["node_hours_saved_per_productive_week"] == 0 and queue_row["ettr_after"] > queue_row["ettr_before"]


@given(st.floats(1e-5, 1.0), st.sampled_from([8, 1024, 16_384]), st.integers(0, 900), st.integers(60, 20_000))
def test_no_mitigation_harms(rate, gpus, write_s, interval_s):
    table = mitigation_table(make_rate(rate, rate, rate, 8), Habits(interval_s, write_s, 300, 600, 14 * DAY), [gpus])
    table = table.filter(pl.col("mitigation") != "best checkpoint interval")
    assert (table["ettr_after"] >= table["ettr_before"] * (1 - 1e-12)).all()


# Inputs ----------------------------------------------------------------------------------------------------


MTTF_BY_GPUS = pl.DataFrame(
    {
        "gpus_low": [1, 9, 17],
        "gpus_high": [8, 16, 32],
        "failures": [40, 10, 9],
        "mttf_s": [5e5, 2e5, 9e4],
        "ci_low_s": [4e5, 1e5, 4e4],
        "ci_high_s": [6e5, 4e5, 2e5],
        "ci_low_clustered_s": [None, 5e4, None],
        "ci_high_clustered_s": [None, 8e5, None],
    }
)


def test_the_node_rate_uses_the_90_percent_row_and_sizes_with_ten_failures():
    measured = {(1, 8): (5e5, 6e5, 4e5), (9, 16): (2e5, 8e5, 5e4)}
    assert node_rate(make_rate_table(RATE, failures=41), MTTF_BY_GPUS) == replace(RATE, measured=measured)
    assert node_rate(make_rate_table(RATE, basis="proxy"), MTTF_BY_GPUS).measured == {}
    clustered = node_rate(make_rate_table(RATE, ci_low_clustered=1.0, ci_high_clustered=20.0), MTTF_BY_GPUS)
    assert (clustered.low, clustered.high) == (1e-3, 2e-2)
    assert node_rate(make_rate_table(make_rate(None, None, None, 8, "why")), MTTF_BY_GPUS).reason == "why"


RUNS = pl.DataFrame(
    [
        # unit_id, duration_id, submit_s, start_s, event, gpu_milli
        ("a", 0, 0, 10, "infra_failure", 8000),
        ("a", 1, 100, 700, "infra_failure", 8000),
        ("a", 2, 800, 1000, None, 8000),
        ("b", 0, 0, 40, None, 8000),
        ("b", 1, 50, 9050, None, 8000),
        ("c", 0, 5, 3, None, 1000),
        ("d", 0, 0, 7000, None, 0),
    ],
    schema=["unit_id", "duration_id", "submit_s", "start_s", "event", "gpu_milli"],
    orient="row",
)


def repeat_runs(runs: pl.DataFrame, times: int) -> pl.DataFrame:
    """Repeat the runs `times` times, each time as other jobs."""
    return pl.concat(runs.with_columns(pl.col("unit_id") + str(copy)) for copy in range(times))


def test_the_planned_wait_is_the_mean_of_restarts_else_of_submissions():
    restarts = queue_of(repeat_runs(RUNS, 5), None)
    assert (restarts["value"], restarts["n"], restarts["median_s"]) == (400, 10, 400)
    assert restarts["source"] == "the trace, mean of attempts requeued after an infrastructure failure"
    # Below ten restarts all requeued attempts count; below ten of those, submissions. A negative wait is unknown.
    requeued = queue_of(repeat_runs(RUNS, 4), None)
    assert (requeued["value"], requeued["n"]) == ((600 + 200 + 9000) / 3, 12)
    submitted = queue_of(RUNS, None)
    assert (submitted["value"], submitted["n"], submitted["median_s"]) == (25, 2, 25)
    assert submitted["source"] == "the trace, mean of submissions"
    assert queue_of(RUNS.with_columns(gpu_milli=0), None)["n"] == 3, "none has a GPU: all count"
    assert queue_of(RUNS, 7) == {"value": 7, "source": "configuration"}
    without_waits = RUNS.with_columns(submit_s="start_s")  # one column is both
    for runs in (RUNS.clear(), RUNS.with_columns(submit_s=pl.lit(None, pl.Int64)), without_waits):
        assert queue_of(runs, None) == {"value": 0, "source": "the trace knows no waits: none assumed"}


def test_planning_with_the_mean_wait_matches_a_simulation_of_skewed_waits():
    """Runs that draw each wait reach the ratio planned with the mean wait, not with the median wait."""
    rng = np.random.default_rng(5)
    waits = rng.lognormal(6, 2, 4000)
    frame = pl.DataFrame({"start_s": waits.astype(int)}).with_columns(
        unit_id=pl.lit("x"), duration_id=0, submit_s=0, event=pl.lit(None, pl.String), gpu_milli=8000
    )
    queue = queue_of(frame, None)
    plan = Plan(2 / DAY, 3600, 300, 300, queue["value"], 14 * DAY)
    stops = rng.poisson(2 / DAY * expected_scheduled_s(plan), 3000)
    wall = expected_scheduled_s(plan) + np.array([rng.choice(waits, 1 + n).sum() for n in stops])
    assert plan.productive_s / wall.mean() == pytest.approx(ettr_renewal(plan), rel=0.02)
    assert ettr_renewal(replace(plan, queue_s=queue["median_s"])) > 1.03 * ettr_renewal(plan)


# Withheld plans -------------------------------------------------------------------------------------------


def test_a_rate_gives_no_plan_beyond_its_projection_limit():
    rate = replace(RATE, projects_to=16, measured={(1, 8): (5e5, 6e5, 4e5), (129, 256): (4e4, 5e4, 3e4)})
    ettr, outlook = plan_tables(rate, HABITS[:1], [8, 64, 256, 1024], 50, 1)
    inputs = {"gpus", "nodes", "checkpoint_interval_s", "checkpoint_write_s", "restart_s", "queue_s"}
    for table in (ettr, outlook):
        assert table.filter(rate="estimate", gpus=64)["reason"].item() is None
        withheld = table.filter(pl.col("gpus") > 128, rate="estimate")
        assert withheld["reason"].to_list() == [TOO_LARGE] * 2
        assert {name for name in withheld.columns if withheld[name].count()} <= inputs | {
            *("productive_s", "rate", "reason")
        }
        assert table.filter(gpus=8).height == 6 and table.filter(gpus=1024).height == 1
    measured = ettr.filter(gpus=256, rate="measured_rate").row(0, named=True)
    assert measured["mttf_s"] == pytest.approx(4e4)
    plan = Plan(1 / 4e4, 3600, 300, 300, 600, 14 * DAY)
    assert measured["ettr_renewal"] == pytest.approx(ettr_renewal(plan))
    outlook_row = outlook.filter(gpus=256, rate="measured_rate").row(0, named=True)
    assert outlook_row["scheduled_ettr"] == pytest.approx(ettr_renewal(replace(plan, queue_s=0)))
    mitigations = mitigation_table(rate, HABITS[0], [8, 256, 1024])
    assert mitigations.filter(gpus=256)["ettr_before"].unique().to_list() == [pytest.approx(ettr_renewal(plan))]
    assert mitigations.filter(gpus=1024)["reason"].to_list() == [TOO_LARGE]


def test_the_best_mitigation_for_the_ratio_and_for_gpu_hours_are_separate():
    """On a full cluster, shorter waits raise the ratio most and save no GPU-hour."""
    metrics = run_metrics(RATE, replace(HABITS[0], queue_s=5 * DAY))
    assert metrics["ettr.mitigation.name"]["value"] in ("queue time halved", "failure rate halved")
    assert metrics["ettr.estimate.scheduled_ettr"]["value"] > 3 * metrics["ettr.estimate.wall_clock_ettr"]["value"]


def run_metrics(rate: NodeRate, habits: Habits, mttf_by_gpus: pl.DataFrame | None = None) -> Metrics:
    """Return the metrics of a run of 1,024 GPUs."""
    ettr, outlook = plan_tables(rate, [habits], [1024], 50, 1)
    rates = make_rate_table(rate)
    columns = {"gpus_low": pl.Int64, "gpus_high": pl.Int64, "jobs": pl.Int64, "failures": pl.Int64}
    no_sizes = pl.DataFrame(
        schema=columns | dict.fromkeys(("expected_failures", "p_clustered", "ci_low_clustered_s"), pl.Float64)
    )
    tables = {
        "ettr": ettr,
        "ettr_outlook": outlook,
        "mitigations": mitigation_table(rate, habits, [1024]),
        "ettr_assumptions": assumptions(rates, habits, {"value": habits.queue_s, "source": "x", "n": 9}, 1024),
        "node_failure_rate": rates,
        "mttf_by_gpus": no_sizes if mttf_by_gpus is None else mttf_by_gpus,
    }
    return target_numbers(tables)


@pytest.mark.parametrize(("size_unit", "gpus"), [(GPU, [RATE.node_gpus]), (NODE, [])])
def test_gpus_of_a_node_are_assumed_only_where_sizes_are_in_gpus(size_unit, gpus):
    rows = assumptions(make_rate_table(RATE), HABITS[0], {"value": 0, "source": "x"}, 64, size_unit)
    assert rows.filter(assumption="GPUs of a node")["amount"].to_list() == gpus


def test_a_run_that_cannot_be_estimated_has_a_reason_instead_of_numbers():
    metrics = run_metrics(replace(RATE, projects_to=0), HABITS[0])
    assert metrics["ettr.withheld"]["value"] == TOO_LARGE and metrics["ettr.needed"]["value"] == "larger runs"
    values = ("ettr.by", "ettr.estimate", "ettr.low", "ettr.high", "ettr.mttf_s", "ettr.mitigation")
    assert not [key for key in metrics if key.startswith(values)]


def test_numbers_of_a_size_that_was_measured():
    bucket = pl.DataFrame(
        {"gpus_low": [513], "gpus_high": [1024], "jobs": [50], "failures": [30]}
        | {"expected_failures": [70.0], "p_clustered": [1e-4], "ci_low_clustered_s": [5e4]}
    )
    rate = replace(RATE, projects_to=0, measured={(513, 1024): (1e5, 2e5, 5e4)})
    metrics = run_metrics(rate, HABITS[0], bucket)
    assert metrics["ettr.by"]["value"] == "measured_rate" and metrics["ettr.withheld"]["value"] == TOO_LARGE
    assert metrics["ettr.measured_rate.wall_clock_ettr"]["n"] == 30 and metrics["ettr.mttf_s"][
        "value"
    ] == pytest.approx(1e5)
    assert (metrics["sizes.check.observed"]["value"], metrics["sizes.check.expected"]["value"]) == (30, 70)


def restart_waits(hours: list[float], users: list[int] | None = None) -> pl.DataFrame:
    """Build attempts that waited these hours before a restart, with users where given."""
    waits_s = [round(3600 * wait) for wait in hours]
    rows = pl.DataFrame({"start_s": waits_s}).with_columns(
        unit_id=pl.int_range(pl.len()).cast(pl.String),
        duration_id=1,
        submit_s=0,
        event=pl.lit(None, pl.String),
        gpu_milli=1,
    )
    return rows if users is None else add_levels(rows.with_columns(user=pl.Series(users)), {"user": ["user"]})


def test_the_error_of_the_mean_wait_is_clustered_by_user():
    rng = np.random.default_rng(2)
    hours, users = np.exp(rng.normal(size=60)), rng.integers(0, 12, 60)
    queue = queue_of(restart_waits(hours.tolist(), users.tolist()), None)
    assert queue["longest"] == pytest.approx(np.sort(hours)[-3:].sum() / hours.sum(), rel=1e-3)
    # With three users the error cannot be clustered: each wait counts as its own user.
    three_users = queue_of(restart_waits(hours.tolist(), (users % 3).tolist()), None)
    without_users = queue_of(restart_waits(hours.tolist()), None)
    assert (three_users["low"], three_users["high"]) == (without_users["low"], without_users["high"])
    assert without_users["low"] < without_users["value"] < without_users["high"]
    assert queue["high"] - queue["low"] != pytest.approx(without_users["high"] - without_users["low"])


def test_a_few_long_waits_leave_no_interval():
    short = queue_of(restart_waits([1.0] * 26 + [9.0, 9.0, 9.0]), None)
    assert short["reason"] == "three of 29 waits hold 51% of the time waited: no interval of the ETTR"
    assert "low" not in short and short["value"] > 0
    assert "reason" not in queue_of(restart_waits([1.0 + index % 2 for index in range(29)]), None)
    assert queue_of(restart_waits([1.0] * 40 + [5000.0]), None)["reason"] == ONE_WAIT
    ettr, _ = plan_tables(RATE, HABITS[:1], [1024], 50, 1, short)
    row = ettr.filter(rate="estimate").row(0, named=True)
    assert row["ettr_ci_low"] is None and row["reason"] == short["reason"]


def test_the_ettr_interval_combines_rate_and_wait_errors():
    ettr, _ = plan_tables(RATE, HABITS[:1], [1024], 50, 1, {"value": 600, "low": 300, "high": 90_000})
    ettr_by_rate = {row["rate"]: row["ettr_renewal"] for row in ettr.iter_rows(named=True)}
    per_s = 128 * RATE.estimate / DAY
    short, long = (float(ettr_renewal(replace(HABITS[0], queue_s=queue).plan(per_s))) for queue in (300, 90_000))
    row, estimate = ettr.filter(rate="estimate").row(0, named=True), ettr_by_rate["estimate"]
    assert row["ettr_ci_low"] == pytest.approx(estimate - math.hypot(estimate - ettr_by_rate["high"], estimate - long))
    assert row["ettr_ci_high"] == pytest.approx(estimate + math.hypot(ettr_by_rate["low"] - estimate, short - estimate))
    # Waits that are configured have no error.
    configured, _ = plan_tables(RATE, HABITS[:1], [1024], 50, 1, {"value": 600, "source": "configuration"})
    row = configured.filter(rate="estimate").row(0, named=True)
    assert (row["ettr_ci_low"], row["ettr_ci_high"]) == pytest.approx((ettr_by_rate["high"], ettr_by_rate["low"]))
    assert configured.filter(pl.col("rate") != "estimate")["ettr_ci_low"].null_count() == 2


# Statements of the paper ----------------------------------------------------------------------------------


def contradicted(**form: str) -> set[str]:
    """Return the claims that do not hold by `form`, or by the paper's own formula."""
    return {
        claim["id"]
        for claim in CLAIMS
        if "ettr" in claim.get("quantity", {})
        and abs(compute_printed_ettr(claim["quantity"]["ettr"] | form) - claim["published"]) > claim["tolerance"]
    }


def test_which_statements_of_the_paper_hold_by_its_formula_and_by_the_exact_model():
    assert contradicted() == {"rsc2-ettr-100000-21min"}
    assert contradicted(form="renewal") == {"rsc2-ettr-100000-21min", "rsc1-ettr-100000-7min"}


# Measured job runs ----------------------------------------------------------------------------------------

ATTEMPTS = pl.DataFrame(
    [
        # unit_id, duration_id, submit_s, start_s, duration_s, gpu_count, nodes, event
        ("a", 0, 0, 100, 7200, 16, 2, "infra_failure"),
        ("a", 1, 7300, 7500, 3600, 16, 2, None),
        ("b", 0, 0, 50, 500, 8, 1, "infra_failure"),
        ("c", 0, 0, 0, 4000, 8, 1, None),
        ("d", 0, 0, 0, 9000, 0, 1, None),
        ("e", 0, 0, 0, None, 8, 1, None),
    ],
    schema=["unit_id", "duration_id", "submit_s", "start_s", "duration_s", "gpu_count", "nodes", "event"],
    orient="row",
)
JOBS = pl.DataFrame({"job_id": list("abcde"), "user": ["u", "v", "v", "w", None], "name": ["x", "y", "y", None, None]})
RUN_HABITS = Habits(3600, 360, 300, 0, DAY)


def test_a_measured_run_by_hand():
    runs = job_runs(ATTEMPTS.lazy(), JOBS.lazy(), ["job_id"], 0, RUN_HABITS)
    # A job without GPUs and one of unknown length are left out.
    b, c, a = runs.sort("runtime_s").iter_rows(named=True)
    # Two start-ups and half an interval are lost; writing adds a tenth of the work to the rest.
    assert a["ettr"] == pytest.approx((10_800 - 600 - 1800) / 1.1 / (10_800 + 300))
    assert (a["attempts"], a["interruptions"], a["queue_s"]) == (2, 1, 300)
    assert a["ettr_if_all_interrupted"] == pytest.approx((10_800 - 600 - 3600) / 1.1 / 11_100)
    # A start-up and half an interval exceed the whole run.
    assert b["ettr"] == 0 and b["interruptions"] == 1
    assert c["ettr"] == pytest.approx(3700 / 1.1 / 4000)
    assert job_runs(ATTEMPTS.lazy(), JOBS.lazy(), ["job_id"], 4001, RUN_HABITS).height == 1


@given(st.integers(0, 10_000), st.integers(1, 40), st.booleans(), st.integers(0, 4_000))
def test_leaving_out_short_runs_first_or_last_is_the_same(seed, n, with_attempts, at_least_s):
    jobs, attempts = make_trace(seed, n, with_attempts)
    durations = infra_durations(jobs, attempts, {"states": ["NODE_FAIL"]}).lazy()
    runs, long_runs = (job_runs(durations, jobs.lazy(), ["job_id"], seconds, RUN_HABITS) for seconds in (0, at_least_s))
    assert_frame_equal(long_runs, runs.filter(pl.col("runtime_s") >= at_least_s))


def test_the_run_key_groups_attempts():
    runs = job_runs(ATTEMPTS.lazy(), JOBS.lazy(), ["user", "name"], 0, RUN_HABITS)
    two_attempt_runs = runs.filter(pl.col("attempts") == 2).sort("runtime_s")
    assert two_attempt_runs["runtime_s"].to_list() == [4500, 10_800]
    # Jobs c and b are one run: b follows c, so c was interrupted, and infrastructure ended b.
    assert two_attempt_runs["interruptions"].to_list() == [2, 1]
    with pytest.raises(StudyError, match="job_name"):
        job_runs(ATTEMPTS.lazy(), JOBS.lazy(), ["user", "job_name"], 0, RUN_HABITS)
    attempts = ATTEMPTS.with_columns(gpu_count=8, duration_s=pl.col("duration_s").fill_null(1000))
    assert job_runs(attempts.lazy(), JOBS.lazy(), ["name"], 0, RUN_HABITS).height == 4, "blank keys are separate"


def test_the_table_of_measured_runs():
    runs = job_runs(ATTEMPTS.lazy(), JOBS.lazy(), ["job_id"], 0, RUN_HABITS)
    table = measured_table(runs, RATE, RUN_HABITS)
    ETTR_MEASURED.check(table)
    assert table.select("gpus_low", "gpus_high", "runs", "ci_low", "ci_high").rows() == [
        (5, 8, 2, 0, 1),  # two runs say next to nothing
        (9, 16, 1, None, None),
    ]
    assert table["reason"].count() == 2
    without_rate = measured_table(runs, make_rate(None, None, None, 8, "why"), RUN_HABITS)
    assert without_rate["expected_ettr"].null_count() == 2
    assert without_rate["reason"].str.contains("why").all()


def simulate_job_runs(rate: float, habits: Habits, queue_s: int = 600, nodes: int = 64) -> pl.DataFrame:
    """Measure 400 simulated runs of 512 GPUs; rate: failures per node and day."""
    rng, rows = np.random.default_rng(7), []
    for run in range(400):
        clock_s, done_s = 0, 0
        for attempt in range(1000):
            start_s = clock_s + queue_s
            left_s = 300 + 20 * 3600 - done_s
            ttf_s = rng.exponential(DAY / (nodes * rate))
            run_s = round(min(ttf_s, left_s))
            rows.append(
                (f"r{run}", attempt, clock_s, start_s, run_s, 512, nodes, "infra_failure" if ttf_s < left_s else None)
            )
            clock_s = start_s + run_s
            if ttf_s >= left_s:
                break
            done_s += max(run_s - 300, 0) // 3600 * 3600
    attempts = pl.DataFrame(rows, schema=ATTEMPTS.schema, orient="row")
    jobs = pl.DataFrame({"job_id": sorted(set(attempts["unit_id"]))})
    return job_runs(attempts.lazy(), jobs.lazy(), ["job_id"], 0, habits)


LONG_RUNS = Habits(3600, 0, 300, 0, 20 * 3600)


def test_measured_ettr_of_simulated_runs_matches_the_expected_ettr():
    # Measuring simulated runs returns the expected ratio, up to the arithmetic that counts half an interval per loss.
    rate = 6.5e-3 * 4
    runs = simulate_job_runs(rate, LONG_RUNS)
    row = measured_table(runs, make_rate(rate, rate, rate, 8), LONG_RUNS).row(0, named=True)
    assert row["runs"] == 400
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(stats.ttest_1samp(runs["ettr"], 0).confidence_interval())
    assert row["ettr_mean"] == pytest.approx(row["expected_ettr"], abs=0.01)
    assert math.isclose(row["interruptions"] / 400, 64 * rate / DAY * 20 * 3600, rel_tol=0.15)


@pytest.mark.parametrize(("planned_rate", "differs"), [(0.026, False), (0.2, True), (0.002, True)])
def test_runs_of_the_target_size_differ_from_a_model_with_another_rate(planned_rate, differs):
    """The wait counts apart: runs that wait ten days between attempts keep the same share of their scheduled time."""
    users = {"cluster_by": "user", "group_by": "user", "block_by": "week", "block": 0}
    for queue_s in (600, 10 * DAY):
        runs = simulate_job_runs(0.026, LONG_RUNS, queue_s)
        runs = runs.with_columns(**{name: pl.lit(value) for name, value in users.items()})
        runs = runs.with_columns(cluster=pl.int_range(pl.len()) % 40).with_columns(group="cluster")
        rate = make_rate(planned_rate, 0.9 * planned_rate, 1.1 * planned_rate, 8)
        table = target_runs(runs, rate, LONG_RUNS, 400)
        ETTR_MEASURED_TARGET.check(table)
        row = table.row(0, named=True)
        assert (row["gpus_low"], row["gpus_high"], row["runs"]) == (257, 512, 400)
        assert row["expected_low"] < row["expected"] < row["expected_high"]
        assert row["differs"] == differs
        assert row["queue_s"] == pytest.approx(queue_s)
        if not differs:
            assert row["scheduled_ettr"] == pytest.approx(row["expected"], abs=0.01)
    assert target_runs(runs, rate, LONG_RUNS, 1024).is_empty()


def test_runs_of_the_target_size_are_judged_only_by_clustered_intervals():
    runs = simulate_job_runs(0.026, LONG_RUNS)
    row = target_runs(runs, make_rate(0.2, 0.18, 0.22, 8), LONG_RUNS, 512).row(0, named=True)
    assert row["differs"] is None and row["ci_low"] < row["scheduled_ettr"] < row["ci_high"]
    # Beyond the projection limit, the model is that of the rate measured at this size.
    rate = make_rate(0.2, 0.18, 0.22, 8, projects_to=1, measured={(257, 512): (1e5, 1.1e5, 0.9e5)})
    row = target_runs(runs, rate, LONG_RUNS, 512).row(0, named=True)
    assert row["expected_low"] < row["expected"] < row["expected_high"]
    # What the page withholds is not in the table.
    assert target_runs(runs, make_rate(0.2, 0.18, 0.22, 8, projects_to=1), LONG_RUNS, 512).is_empty()


@pytest.mark.parametrize(
    ("setting", "basis", "nodes", "node_gpus", "size"),
    [
        ("auto", "state", 32, 8, 1024),
        ("auto", "state", 31, 8, 248),
        ("auto", "proxy", 0, 8, 1024),  # unknown size
        ("auto", "component", 1, None, 1024),
        (512, "state", 1, 8, 512),
    ],
)
def test_the_target_size_fits_the_largest_run_of_the_trace(setting, basis, nodes, node_gpus, size):
    row = {"basis": basis, "largest_run_nodes": nodes, "node_gpus": node_gpus}
    assert target_size(row, setting) == size
