"""Plans at every size, mitigations, what the paper states, and job runs as they were measured."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_runs import trace_of
from plan_inputs import DAY, HABITS, RATE, SIZES, TOO_LARGE, a_rate, rates_of, target_numbers
from polars.testing import assert_frame_equal
from ttf.analyses.large_runs.measure_ettr import ETTR_MEASURED
from ttf.analyses.large_runs.measure_ettr.compute import job_runs, measured_table
from ttf.analyses.large_runs.plan_ettr import ETTR_ASSUMPTIONS
from ttf.analyses.large_runs.plan_ettr.compute import ONE_WAIT, assumptions, mitigation_table, plan_tables, queue_of
from ttf.display.metrics import Metrics
from ttf.engine.errors import StudyError
from ttf.page.replication.ettr_reference import reference_table
from ttf.page.report_contracts import ETTR_REFERENCE
from ttf.records.clusters import with_levels
from ttf.records.infra import infra_lives
from ttf.stats.clustered import Clusters
from ttf.stats.large_runs.ettr import Plan, ettr_renewal, expected_scheduled_s, expected_wall_s
from ttf.stats.large_runs.plans import Habits, NodeRate, node_rate, target_size


def test_a_row_is_what_the_formulas_give() -> None:
    ettr, outlook = plan_tables(RATE, HABITS, SIZES, 200, 1)
    chosen = {"gpus": 1000, "rate": "high", "checkpoint_interval_s": 3600.0}
    row, ahead = (table.filter(**chosen).row(0, named=True) for table in (ettr, outlook))
    assert row["nodes"] == 125
    assert row["failure_rate_per_node_day"] == 8.2e-3
    assert row["mttf_s"] == pytest.approx(DAY / (125 * 8.2e-3), rel=1e-12)
    plan = Plan(125 * 8.2e-3 / DAY, 3600, 300, 300, 600, 14 * DAY)
    assert row["ettr_renewal"] == pytest.approx(ettr_renewal(plan), rel=1e-12)
    assert abs(row["ettr_simulated"] - row["ettr_renewal"]) < 4 * row["ettr_simulated_se"]
    assert ahead["expected_wall_s"] == pytest.approx(expected_wall_s(plan), rel=1e-12)
    assert ahead["simulated_runs"] == 200
    assert ahead["simulated_wall_p05_s"] < ahead["expected_wall_s"] < ahead["simulated_wall_p95_s"]
    assert ahead["ettr_at_optimum"] > row["ettr_renewal"]
    assert row["reason"] is None


def test_every_row_agrees_with_its_simulation() -> None:
    ettr, _ = plan_tables(RATE, HABITS, SIZES, 1000, 2025)
    checked = ettr.drop_nulls("ettr_simulated_se")
    assert checked.height > 20
    off = (checked["ettr_simulated"] - checked["ettr_renewal"]).abs() / checked["ettr_simulated_se"]
    assert off.max() < 4


def test_where_the_approximations_fail_the_row_says_so() -> None:
    ettr, _ = plan_tables(RATE, HABITS[:1], SIZES, 100, 1)
    lost = ettr.select(1 / pl.col("mttf_s") * (300 + 1800)).to_series()
    assert ettr["approximation_valid"].to_list() == (lost <= 0.3).to_list()
    beyond = ettr.filter(~pl.col("approximation_valid"))
    assert beyond["reason"].str.contains("above 0.3: the approximations").all()
    undefined = ettr.filter(lost >= 1)
    assert undefined.height and undefined["ettr_combined"].null_count() == undefined.height
    assert undefined["reason"].str.contains("do not exist").all()
    assert undefined["ettr_renewal"].null_count() == 0


def test_without_a_rate_rows_are_blank_and_say_why() -> None:
    ettr, outlook = plan_tables(a_rate(None, None, None, None, "no job that asked for a GPU"), HABITS, SIZES, 10, 1)
    for table in (ettr, outlook):
        assert table["reason"].unique().to_list() == ["no job that asked for a GPU"]
        assert table["nodes"].unique().sort().to_list() == SIZES
        assert table["rate"].unique().to_list() == ["estimate"]
    assert ettr["ettr_renewal"].null_count() == ettr.height


def test_without_failures_there_is_still_an_upper_limit() -> None:
    ettr, outlook = plan_tables(a_rate(0.0, 0.0, 1e-3, 8), HABITS[:1], [8, 1024], 50, 1)
    calm = ettr.filter(rate="estimate")
    assert calm["mttf_s"].null_count() == 2
    assert calm["reason"].to_list() == ["no failures at this rate"] * 2
    assert calm["ettr_simulated"].to_list() == pytest.approx(calm["ettr_renewal"].to_list(), rel=1e-12)
    assert outlook.filter(rate="high")["expected_interruptions"].min() > 0


def test_a_run_that_never_ends() -> None:
    ettr, outlook = plan_tables(a_rate(50.0, 40.0, 60.0, 8), HABITS[:1], [131_072], 50, 1)
    row = ettr.row(0, named=True)
    assert row["ettr_renewal"] == 0
    assert "would not end" in row["reason"] and "too many interruptions" in row["reason"]
    assert outlook["expected_wall_s"].null_count() == 3
    assert mitigation_table(a_rate(50.0, 40.0, 60.0, 8), HABITS[0], [131_072])["reason"].drop_nulls().len()


def test_sizes_of_machines_without_gpus_are_nodes() -> None:
    rate = replace(RATE, node_gpus=None)
    ettr, _ = plan_tables(rate, HABITS[:1], [128], 50, 1)
    assert ettr["gpus"].null_count() == 3 and ettr["nodes"].to_list() == [128] * 3
    gained = mitigation_table(rate, HABITS[0], [128])
    assert gained["gpu_hours_saved_per_productive_week"].null_count() == gained.height
    assert gained["node_hours_saved_per_productive_week"].null_count() == 0


def test_free_writes_have_no_best_interval() -> None:
    ettr, _ = plan_tables(RATE, HABITS[1:], [1024], 50, 1)
    assert ettr["optimal_interval_s"].null_count() == 3
    assert ettr["reason"][0] == "writes are free: the shorter the interval, the better"


def test_the_seed_decides_and_nothing_else() -> None:
    one, again, other = (plan_tables(RATE, HABITS, SIZES, 50, seed)[0] for seed in (1, 1, 2))
    assert one.equals(again)
    assert not one.equals(other)
    simulated = ["ettr_simulated", "ettr_simulated_se", "reason"]
    assert one.drop(simulated).equals(other.drop(simulated))


def test_mitigations_by_hand() -> None:
    table = mitigation_table(RATE, HABITS[0], [1024])
    plan = Plan(128 * 6.5e-3 / DAY, 3600, 300, 300, 600, 14 * DAY)
    assert table["ettr_before"].unique().to_list() == pytest.approx([ettr_renewal(plan)])
    after = {row["mitigation"]: row for row in table.iter_rows(named=True)}
    assert len(after) == 5
    halved = replace(plan, restart_s=150)
    row = after["start-up time halved"]
    assert row["ettr_after"] == pytest.approx(ettr_renewal(halved))
    saved = (expected_scheduled_s(plan) - expected_scheduled_s(halved)) / (14 * DAY) * 7 * 24 * 128
    assert row["node_hours_saved_per_productive_week"] == pytest.approx(saved)
    assert row["gpu_hours_saved_per_productive_week"] == pytest.approx(8 * saved)
    # To wait for less holds no node for less long, but is done sooner.
    queued = after["queue time halved"]
    assert queued["node_hours_saved_per_productive_week"] == 0 and queued["ettr_after"] > queued["ettr_before"]
    assert after["failure rate halved"]["failure_rate_per_node_day"] == pytest.approx(3.25e-3)


@given(st.floats(1e-5, 1.0), st.sampled_from([8, 1024, 16_384]), st.integers(0, 900), st.integers(60, 20_000))
def test_no_mitigation_harms(rate: float, gpus: int, write: int, interval: int) -> None:
    table = mitigation_table(a_rate(rate, rate, rate, 8), Habits(interval, write, 300, 600, 14 * DAY), [gpus])
    table = table.filter(pl.col("mitigation") != "best checkpoint interval")
    assert (table["ettr_after"] >= table["ettr_before"] * (1 - 1e-12)).all()


# What goes in ---------------------------------------------------------------------------------------------


BY_GPUS = pl.DataFrame(
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


def test_the_rate_is_that_of_the_90_per_cent_row_and_of_sizes_with_ten_failures() -> None:
    measured = {(1, 8): (5e5, 6e5, 4e5), (9, 16): (2e5, 8e5, 5e4)}
    assert node_rate(rates_of(RATE, failures=41), BY_GPUS) == replace(RATE, measured=measured)
    assert node_rate(rates_of(RATE, basis="proxy"), BY_GPUS).measured == {}
    wide = node_rate(rates_of(RATE, ci_low_clustered=1.0, ci_high_clustered=20.0), BY_GPUS)
    assert (wide.low, wide.high) == (1e-3, 2e-2)
    assert node_rate(rates_of(a_rate(None, None, None, 8, "why")), BY_GPUS).reason == "why"


RUNS = pl.DataFrame(
    [
        # unit_id, life_id, submit_s, start_s, event, gpu_milli
        ("a", 0, 0, 10, "infra_failure", 8000),
        ("a", 1, 100, 700, "infra_failure", 8000),
        ("a", 2, 800, 1000, None, 8000),
        ("b", 0, 0, 40, None, 8000),
        ("b", 1, 50, 9050, None, 8000),
        ("c", 0, 5, 3, None, 1000),
        ("d", 0, 0, 7000, None, 0),
    ],
    schema=["unit_id", "life_id", "submit_s", "start_s", "event", "gpu_milli"],
    orient="row",
)


def many(runs: pl.DataFrame, times: int) -> pl.DataFrame:
    """The runs so many times, as those of other jobs."""
    return pl.concat(runs.with_columns(pl.col("unit_id") + str(time)) for time in range(times))


def test_the_wait_planned_with_is_a_mean_of_restarts_else_of_submissions() -> None:
    restarts = queue_of(many(RUNS, 5), None)
    assert (restarts["value"], restarts["n"], restarts["median_s"]) == (400, 10, 400)
    assert restarts["source"] == "the trace, mean of attempts requeued after an infrastructure failure"
    # Of fewer than ten, all requeued attempts; of fewer of these, the submissions. A wait below 0 is not known.
    requeued = queue_of(many(RUNS, 4), None)
    assert (requeued["value"], requeued["n"]) == ((600 + 200 + 9000) / 3, 12)
    submitted = queue_of(RUNS, None)
    assert (submitted["value"], submitted["n"], submitted["median_s"]) == (25, 2, 25)
    assert submitted["source"] == "the trace, mean of submissions"
    assert queue_of(RUNS.with_columns(gpu_milli=0), None)["n"] == 3, "none has a GPU: all count"
    assert queue_of(RUNS, 7) == {"value": 7, "source": "configuration"}
    equal = RUNS.with_columns(submit_s="start_s")  # one column that serves as both
    for nothing in (RUNS.clear(), RUNS.with_columns(submit_s=pl.lit(None, pl.Int64)), equal):
        assert queue_of(nothing, None) == {"value": 0, "source": "the trace knows no waits: none assumed"}


def test_a_mean_of_skewed_waits_is_what_the_simulation_of_single_waits_comes_to() -> None:
    """Runs that draw each of their waits come to the ratio planned with their mean, and not to that with the median."""
    rng = np.random.default_rng(5)
    waits = rng.lognormal(6, 2, 4000)
    frame = pl.DataFrame({"start_s": waits.astype(int)}).with_columns(
        unit_id=pl.lit("x"), life_id=0, submit_s=0, event=pl.lit(None, pl.String), gpu_milli=8000
    )
    found = queue_of(frame, None)
    plan = Plan(2 / DAY, 3600, 300, 300, found["value"], 14 * DAY)
    stops = rng.poisson(2 / DAY * expected_scheduled_s(plan), 3000)
    wall = expected_scheduled_s(plan) + np.array([rng.choice(waits, 1 + n).sum() for n in stops])
    assert plan.productive_s / wall.mean() == pytest.approx(ettr_renewal(plan), rel=0.02)
    assert ettr_renewal(replace(plan, queue_s=found["median_s"])) > 1.03 * ettr_renewal(plan)


# What is withheld ----------------------------------------------------------------------------------------


def test_beyond_its_reach_a_rate_gives_no_plan() -> None:
    rate = replace(RATE, projects_to=16, measured={(1, 8): (5e5, 6e5, 4e5), (129, 256): (4e4, 5e4, 3e4)})
    ettr, outlook = plan_tables(rate, HABITS[:1], [8, 64, 256, 1024], 50, 1)
    for table in (ettr, outlook):
        assert table.filter(rate="estimate", gpus=64)["reason"].item() is None
        withheld = table.filter(pl.col("gpus") > 128, rate="estimate")
        assert withheld["reason"].to_list() == [TOO_LARGE] * 2
        kept = ["gpus", "nodes", "checkpoint_interval_s", "checkpoint_write_s", "restart_s", "queue_s"]
        assert {name for name in withheld.columns if withheld[name].count()} - {"productive_s", "rate", "reason"} == {
            *kept
        }
        assert table.filter(gpus=1024).height == 1
        assert table.filter(gpus=8)["rate"].to_list() == [
            *("estimate", "low", "high", "measured_rate", "measured_rate_low", "measured_rate_high")
        ]
    measured = ettr.filter(gpus=256, rate="measured_rate").row(0, named=True)
    assert measured["mttf_s"] == pytest.approx(4e4)
    plan = Plan(1 / 4e4, 3600, 300, 300, 600, 14 * DAY)
    assert measured["ettr_renewal"] == pytest.approx(ettr_renewal(plan))
    ahead = outlook.filter(gpus=256, rate="measured_rate").row(0, named=True)
    assert ahead["scheduled_share"] == pytest.approx(14 * DAY / expected_scheduled_s(plan))
    assert ahead["scheduled_share"] == pytest.approx(ettr_renewal(replace(plan, queue_s=0)))
    gains = mitigation_table(rate, HABITS[0], [8, 256, 1024])
    assert gains.filter(gpus=256)["ettr_before"].unique().to_list() == [pytest.approx(ettr_renewal(plan))]
    assert gains.filter(gpus=1024)["reason"].to_list() == [TOO_LARGE]


def test_the_advice_names_what_raises_the_ratio_and_what_saves_time_apart() -> None:
    """Where a cluster is full, to wait for less helps most and saves no GPU-hour."""
    full = replace(HABITS[0], queue_s=5 * DAY)
    metrics = numbers_of(RATE, full)
    assert metrics["ettr.mitigation.name"]["value"] in ("queue time halved", "failure rate halved")
    assert metrics["ettr.saving.name"]["value"] != "queue time halved" and metrics["ettr.saving.gpu_hours"]["value"] > 0
    assert metrics["ettr.estimate.scheduled_share"]["value"] > 3 * metrics["ettr.estimate.ettr"]["value"]
    assert metrics["ettr.by"]["value"] == "estimate" and "ettr.withheld" not in metrics


def numbers_of(rate: NodeRate, habit: Habits, by_gpus: pl.DataFrame | None = None) -> Metrics:
    """The numbers of a run of 1,024 GPUs."""
    ettr, outlook = plan_tables(rate, [habit], [1024], 50, 1)
    rates = rates_of(rate)
    columns = {"gpus_low": pl.Int64, "gpus_high": pl.Int64, "jobs": pl.Int64, "failures": pl.Int64}
    none = pl.DataFrame(
        schema=columns | dict.fromkeys(("expected_failures", "p_clustered", "ci_low_clustered_s"), pl.Float64)
    )
    tables = {
        "ettr": ettr,
        "ettr_outlook": outlook,
        "mitigations": mitigation_table(rate, habit, [1024]),
        "ettr_assumptions": assumptions(rates, habit, {"value": habit.queue_s, "source": "x", "n": 9}, 1024),
        "node_failure_rate": rates,
        "mttf_by_gpus": none if by_gpus is None else by_gpus,
    }
    return target_numbers(tables)


def test_numbers_of_a_run_that_cannot_be_estimated_are_a_reason() -> None:
    withheld = numbers_of(replace(RATE, projects_to=0), HABITS[0])
    assert withheld["ettr.withheld"]["value"] == TOO_LARGE and withheld["ettr.needed"]["value"] == "larger runs"
    values = ("ettr.by", "ettr.estimate", "ettr.low", "ettr.high", "ettr.mttf_s", "ettr.mitigation", "ettr.saving")
    assert not [key for key in withheld if key.startswith(values)]


def test_numbers_of_a_size_that_was_measured() -> None:
    bucket = pl.DataFrame(
        {"gpus_low": [513], "gpus_high": [1024], "jobs": [50], "failures": [30]}
        | {"expected_failures": [70.0], "p_clustered": [1e-4], "ci_low_clustered_s": [5e4]}
    )
    rate = replace(RATE, projects_to=0, measured={(513, 1024): (1e5, 2e5, 5e4)})
    found = numbers_of(rate, HABITS[0], bucket)
    assert found["ettr.by"]["value"] == "measured_rate" and found["ettr.withheld"]["value"] == TOO_LARGE
    assert found["ettr.measured_rate.ettr"]["n"] == 30 and found["ettr.mttf_s"]["value"] == pytest.approx(1e5)
    assert (found["sizes.check.observed"]["value"], found["sizes.check.expected"]["value"]) == (30, 70)
    assert found["ettr.measured_rate_low.ettr"]["value"] > found["ettr.measured_rate_high.ettr"]["value"]
    assert "ettr.measured_rate.ettr_ci_low_clustered" in found


def waits_of(hours: list[float], users: list[int] | None = None) -> pl.DataFrame:
    """Attempts that waited so long to start again, of users where these are told."""
    waits = [round(3600 * wait) for wait in hours]
    rows = pl.DataFrame({"start_s": waits}).with_columns(
        unit_id=pl.int_range(pl.len()).cast(pl.String),
        life_id=1,
        submit_s=0,
        event=pl.lit(None, pl.String),
        gpu_milli=1,
    )
    return rows if users is None else with_levels(rows.with_columns(user=pl.Series(users)), {"user": ["user"]})


def test_the_error_of_the_mean_wait_is_by_user() -> None:
    rng = np.random.default_rng(2)
    hours, users = np.exp(rng.normal(size=60)), rng.integers(0, 12, 60)
    found = queue_of(waits_of(hours.tolist(), users.tolist()), None)
    n, total = np.bincount(users).astype(float), np.bincount(users, weights=np.round(3600 * hours))
    clusters = Clusters(np.zeros(n.size, np.int64), n, 1)
    low, high, _ = clusters.ratio(total, n, 0.9, by_influence=True)
    assert (found["low"], found["high"]) == pytest.approx((low[0], high[0]))
    assert found["longest"] == pytest.approx(np.sort(hours)[-3:].sum() / hours.sum(), rel=1e-3)
    # Of three users nobody knows how others wait: as if each wait were a user's own.
    few = queue_of(waits_of(hours.tolist(), (users % 3).tolist()), None)
    nobody = queue_of(waits_of(hours.tolist()), None)
    assert (few["low"], few["high"]) == (nobody["low"], nobody["high"])
    assert nobody["low"] < nobody["value"] < nobody["high"]


def test_a_few_long_waits_leave_no_interval() -> None:
    short = queue_of(waits_of([1.0] * 26 + [9.0, 9.0, 9.0]), None)
    assert short["reason"] == "three of 29 waits hold 51% of the time waited: no interval of the ETTR"
    assert "low" not in short and short["value"] > 0
    assert "reason" not in queue_of(waits_of([1.0 + at % 2 for at in range(29)]), None)
    assert queue_of(waits_of([1.0] * 40 + [5000.0]), None)["reason"] == ONE_WAIT
    ettr, _ = plan_tables(RATE, HABITS[:1], [1024], 50, 1, short)
    row = ettr.filter(rate="estimate").row(0, named=True)
    assert row["ettr_ci_low"] is None and row["reason"] == short["reason"]


def test_the_interval_of_the_ettr_has_both_errors() -> None:
    ettr, _ = plan_tables(RATE, HABITS[:1], [1024], 50, 1, {"value": 600, "low": 300, "high": 90_000})
    at = {row["rate"]: row["ettr_renewal"] for row in ettr.iter_rows(named=True)}
    per_s = 128 * RATE.estimate / DAY
    short, long = (float(ettr_renewal(replace(HABITS[0], queue_s=queue).plan(per_s))) for queue in (300, 90_000))
    row, estimate = ettr.filter(rate="estimate").row(0, named=True), at["estimate"]
    assert row["ettr_ci_low"] == pytest.approx(estimate - math.hypot(estimate - at["high"], estimate - long))
    assert row["ettr_ci_high"] == pytest.approx(estimate + math.hypot(at["low"] - estimate, short - estimate))
    # Waits that are configured have no error.
    known, _ = plan_tables(RATE, HABITS[:1], [1024], 50, 1, {"value": 600, "source": "configuration"})
    row = known.filter(rate="estimate").row(0, named=True)
    assert (row["ettr_ci_low"], row["ettr_ci_high"]) == pytest.approx((at["high"], at["low"]))
    assert known.filter(pl.col("rate") != "estimate")["ettr_ci_low"].null_count() == 2


def test_assumptions_name_where_they_are_from() -> None:
    queue = {"value": 33.0, "source": "the trace, mean of submissions", "n": 3, "median_s": 10.0}
    found = assumptions(rates_of(RATE), HABITS[0], queue, 1024)
    rows = {row["assumption"]: row for row in found.iter_rows(named=True)}
    assert rows["failure rate"]["amount"] == 6.5
    assert rows["failure rate"]["source"] == "state"
    assert rows["failure rate"]["n"] == 40
    assert rows["queue"]["amount"] == 33 and rows["queue"]["source"] == "the trace, mean of submissions"
    assert rows["queue, median"]["amount"] == 10 and rows["queue, median"]["n"] == 3
    assert rows["size of the run"]["unit"] == "GPUs"
    unknown = assumptions(rates_of(a_rate(None, None, None, None, "why")), HABITS[0], {"value": 0, "source": "x"}, 8)
    blank = unknown.filter(assumption="failure rate").row(0, named=True)
    assert blank["amount"] is None and blank["reason"] == "why"
    for table in (found, unknown):
        ETTR_ASSUMPTIONS.check(table)


# What the paper states ------------------------------------------------------------------------------------


def test_statements_of_the_paper_and_which_are_not_reproduced() -> None:
    table = reference_table()
    ETTR_REFERENCE.check(table)
    not_so = table.filter(~pl.col("reproduced"))
    assert not_so["statement"].to_list() == [
        "100,000 GPUs at the rate of RSC-2, one in 21 minutes",
        "mean time to failure of 8 GPUs on RSC-1",
        "mean time to failure of 1,024 GPUs on RSC-1",
        "mean time to failure of 4,096 GPUs on RSC-1",
    ]
    computed = dict(table.select("statement", "computed").iter_rows())
    assert computed["all of RSC-1, a checkpoint an hour"] == pytest.approx(0.684, abs=5e-4)
    assert computed["all of RSC-1, one in 5 minutes"] == pytest.approx(0.932, abs=5e-4)
    assert computed["half of RSC-1, one in 30 minutes"] == pytest.approx(0.906, abs=1e-3)
    assert computed["12,000 GPUs reach it with a write of 10 s"] == pytest.approx(0.921, abs=1e-3)
    assert computed["12,000 GPUs reach it at one failure per 1000 node-days"] == pytest.approx(0.898, abs=1e-3)
    assert computed["mean time to failure of 1,024 GPUs on RSC-1"] == pytest.approx(28.8, abs=0.1)


# Measured job runs ----------------------------------------------------------------------------------------

ATTEMPTS = pl.DataFrame(
    [
        # unit_id, life_id, submit_s, start_s, duration_s, gpu_count, nodes, event
        ("a", 0, 0, 100, 7200, 16, 2, "infra_failure"),
        ("a", 1, 7300, 7500, 3600, 16, 2, None),
        ("b", 0, 0, 50, 500, 8, 1, "infra_failure"),
        ("c", 0, 0, 0, 4000, 8, 1, None),
        ("d", 0, 0, 0, 9000, 0, 1, None),
        ("e", 0, 0, 0, None, 8, 1, None),
    ],
    schema=["unit_id", "life_id", "submit_s", "start_s", "duration_s", "gpu_count", "nodes", "event"],
    orient="row",
)
JOBS = pl.DataFrame({"job_id": list("abcde"), "user": ["u", "v", "v", "w", None], "name": ["x", "y", "y", None, None]})
HABIT = Habits(3600, 360, 300, 0, DAY)


def test_a_measured_run_by_hand() -> None:
    runs = job_runs(ATTEMPTS.lazy(), JOBS.lazy(), ["job_id"], 0, HABIT)
    a, b, c = sorted(runs.iter_rows(named=True), key=lambda row: -row["runtime_s"])[:1] + [
        next(row for row in runs.iter_rows(named=True) if row["runtime_s"] == seconds) for seconds in (500, 4000)
    ]
    assert runs.height == 3, "a job without GPUs and one of unknown length are left out"
    # Two start-ups and half an interval; of the rest, a tenth of the work is writing.
    assert a["ettr"] == pytest.approx((10_800 - 600 - 1800) / 1.1 / (10_800 + 300))
    assert (a["attempts"], a["interruptions"], a["queue_s"]) == (2, 1, 300)
    assert a["ettr_if_all_interrupted"] == pytest.approx((10_800 - 600 - 3600) / 1.1 / 11_100)
    # A start-up and half an interval would be more than all of it.
    assert b["ettr"] == 0 and b["interruptions"] == 1
    assert c["ettr"] == pytest.approx(3700 / 1.1 / 4000)
    assert job_runs(ATTEMPTS.lazy(), JOBS.lazy(), ["job_id"], 4001, HABIT).height == 1


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10_000), st.integers(1, 40), st.booleans(), st.integers(0, 4_000))
def test_short_runs_are_left_out_before_or_after(seed, n, with_attempts, at_least_s) -> None:
    jobs, attempts = trace_of(seed, n, with_attempts)
    lives = infra_lives(jobs, attempts, {"states": ["NODE_FAIL"]}).lazy()
    every, long = (job_runs(lives, jobs.lazy(), ["job_id"], seconds, HABIT) for seconds in (0, at_least_s))
    assert_frame_equal(long, every.filter(pl.col("runtime_s") >= at_least_s))


def test_runs_are_what_the_key_says() -> None:
    runs = job_runs(ATTEMPTS.lazy(), JOBS.lazy(), ["user", "name"], 0, HABIT)
    both = runs.filter(pl.col("attempts") == 2).sort("runtime_s")
    assert both["runtime_s"].to_list() == [4500, 10_800]
    # The jobs c and b are one run: c was interrupted, as b follows, and infrastructure ended b.
    assert both["interruptions"].to_list() == [2, 1]
    with pytest.raises(StudyError, match="run_key: the jobs of this trace have no column job_name; expected"):
        job_runs(ATTEMPTS.lazy(), JOBS.lazy(), ["user", "job_name"], 0, HABIT)


def test_unknown_values_are_not_the_same() -> None:
    attempts = ATTEMPTS.with_columns(gpu_count=8, duration_s=pl.col("duration_s").fill_null(1000))
    runs = job_runs(attempts.lazy(), JOBS.lazy(), ["name"], 0, HABIT)
    assert runs.height == 4, "d and e have no name, and are two runs"


def test_the_table_of_measured_runs() -> None:
    runs = job_runs(ATTEMPTS.lazy(), JOBS.lazy(), ["job_id"], 0, HABIT)
    table = measured_table(runs, RATE, HABIT)
    ETTR_MEASURED.check(table)
    assert table.select("gpus_low", "gpus_high", "runs").rows() == [(5, 8, 2), (9, 16, 1)]
    few, one = table.iter_rows(named=True)
    assert few["ci_low"] == 0 and few["ci_high"] == 1, "two runs say next to nothing"
    assert one["ci_low"] is None and one["reason"] == "one run: no interval"
    assert 0 < one["expected_ettr"] < 1
    unknown = measured_table(runs, a_rate(None, None, None, 8, "why"), HABIT)
    assert unknown["expected_ettr"].null_count() == 2
    assert unknown["reason"].str.contains("why").all()
    assert measured_table(runs.clear(), RATE, HABIT).height == 0


def test_simulated_runs_measure_as_expected() -> None:
    # Runs that the model makes, taken for a trace's: what is measured is what is expected, but for the arithmetic that
    # takes half an interval for every loss.
    rng = np.random.default_rng(7)
    habit, queue, nodes = Habits(3600, 0, 300, 0, 20 * 3600), 600, 64
    rate = 6.5e-3 * 4
    rows = []
    for run in range(400):
        clock, done = 0, 0
        for attempt in range(1000):
            start = clock + queue
            left = 300 + 20 * 3600 - done
            fails = rng.exponential(DAY / (nodes * rate))
            runs_for = round(min(fails, left))
            rows.append(
                (f"r{run}", attempt, clock, start, runs_for, 512, nodes, "infra_failure" if fails < left else None)
            )
            clock = start + runs_for
            if fails >= left:
                break
            done += max(runs_for - 300, 0) // 3600 * 3600
    attempts = pl.DataFrame(rows, schema=ATTEMPTS.schema, orient="row")
    jobs = pl.DataFrame({"job_id": sorted(set(attempts["unit_id"]))})
    table = measured_table(
        job_runs(attempts.lazy(), jobs.lazy(), ["job_id"], 0, habit), a_rate(rate, rate, rate, 8), habit
    )
    row = table.row(0, named=True)
    assert row["runs"] == 400
    assert row["ettr_mean"] == pytest.approx(row["expected_ettr"], abs=0.01)
    assert math.isclose(row["interruptions"] / 400, nodes * rate / DAY * 20 * 3600, rel_tol=0.15)


@pytest.mark.parametrize(
    ("asked", "basis", "nodes", "node_gpus", "size"),
    [
        ("auto", "state", 32, 8, 1024),
        ("auto", "state", 31, 8, 248),
        ("auto", "proxy", 0, 8, 1024),  # no size is known
        ("auto", "component", 1, None, 1024),
        (512, "state", 1, 8, 512),
    ],
)
def test_the_size_answered_for_is_one_that_the_trace_can_tell_of(asked, basis, nodes, node_gpus, size):
    row = {"basis": basis, "largest_run_nodes": nodes, "node_gpus": node_gpus}
    assert target_size(row, asked) == size
