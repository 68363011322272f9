"""The rules that withhold or qualify statements, each on synthetic numbers."""

import pytest
from filled_texts import filled
from made_numbers import ABOUT, numbers, plain, proxy
from ttf.display import statement_rules
from ttf.display.brief_model import WITHHELD
from ttf.page.brief.actions import actions
from ttf.page.brief.bottom_line import bottom_line
from ttf.page.brief.grade import grade_data
from ttf.page.brief.tiles import CANNOT, tiles
from ttf.page.checks.thresholds import describe_number

actions, bottom_line, grade_data, tiles = map(filled, (actions, bottom_line, grade_data, tiles))


def tile(m, name):
    return next(item for item in tiles(m, {}, ABOUT) if item.name == name)


def test_a_complete_trace_withholds_nothing():
    m = numbers()
    assert [item.name for item in tiles(m, {}, ABOUT)] == [
        *("failure_rate", "failed_gpu_time", "node_rate", "mttf", "ettr", "when")
    ]
    assert {item.state for item in tiles(m, {}, ABOUT)} == {"shown"}
    assert statement_rules.find_withheld_reasons(m) is None and statement_rules.list_withheld(m) == {}
    key = "lost_work__failed_gpu_hours_share_ci_{}_clustered"
    lost = numbers(**{key.format("low"): (0.4, "share"), key.format("high"): (0.55, "share")})
    assert plain(tile(lost, "failed_gpu_time").interval) == "95% CI 40.0–55.0% · n = 42,613 attempts"
    # The share of the scheduled time comes first, because waits may fill most of the wall clock.
    assert plain(tile(m, "ettr").unit) == "of scheduled time"
    assert plain(tile(m, "ettr").means).startswith("Each start queues 8.56 days; the wall-clock ETTR is 7.6%.")
    assert plain(bottom_line(m, ABOUT)[1]).endswith("and to be productive 89.5% of its scheduled time.")


def test_r1_unknown_causes_count_any_failure_and_withhold_large_runs():
    m = proxy()
    assert statement_rules.r1_cause_unknown(m)
    rate = tile(m, "node_rate")
    assert (rate.title, rate.badge, plain(rate.value)) == ("Failure rate per node", "any failure", "9.28")
    for name in ("mttf", "ettr"):
        assert (tile(m, name).state, tile(m, name).value) == ("withheld", CANNOT)
    assert "every failure would count as infrastructure" in tile(m, "mttf").means
    assert tile(m, "mttf").needed == "Needed: states that name infrastructure failures."
    reason_by_key = statement_rules.list_withheld(m)
    assert {"ettr.estimate.wall_clock_ettr", "ettr.assumed.failure_rate"} <= reason_by_key.keys()
    assert reason_by_key.keys().isdisjoint(m) and "every failure would count" in reason_by_key["ettr.mttf_s"]


def test_a_rate_that_its_table_withholds_has_the_reason_of_the_table():
    m = numbers("sizes.rate.f", "sizes.rate.ci", sizes__rate__reason=("neither nodes nor causes are recorded", "label"))
    rate_tile = tile(m, "node_rate")
    assert (rate_tile.state, plain(rate_tile.means)) == ("withheld", "Neither nodes nor causes are recorded.")


def test_r12_few_gpu_jobs_give_no_tile_headline_or_grade_a():
    m = numbers(data__gpu_jobs=(4, "jobs"), data__jobs=(1_000, "jobs"))
    assert statement_rules.r12_few_gpus(m) and not statement_rules.r12_few_gpus(numbers(data__gpu_jobs=(0, "jobs")))
    assert "failed_gpu_time" not in [item.name for item in tiles(m, {}, ABOUT)]
    assert plain(" ".join(bottom_line(m, ABOUT))) == "31.8% of ended jobs failed. 4 of 1,000 jobs have GPUs."
    assert [plain(reason) for reason in grade_data(m)[1]] == ["4 of 1,000 jobs have GPUs"]
    assert actions(m, "job") == ((), (), (), "")
    assert not statement_rules.r12_few_gpus(numbers(data__gpu_jobs=(60, "jobs"), data__jobs=(1_000, "jobs")))
    m["data.size_unit"] = {"value": "node", "unit": "label", "n": None, "source": "x"}
    assert not statement_rules.r12_few_gpus(m), "node time is that of all jobs"


def test_r2_scaling_untested_and_no_size_measured():
    m = numbers("ettr.by", sizes__law__reason=("one size only", "label"))
    assert statement_rules.r2_scaling_untested(m)
    assert "cannot be tested (one size only)" in tile(m, "mttf").means
    measured = numbers(sizes__law__reason=("one size only", "label"))
    assert not statement_rules.r2_scaling_untested(measured) and tile(measured, "mttf").state == "shown"


def test_r3_scaling_rejected_leaves_measurements_at_that_size():
    m = numbers("ettr.by", sizes__law__verdict="rejected")
    assert statement_rules.r3_scaling_rejected(m) and tile(m, "mttf").state == "withheld"
    measured = numbers(
        sizes__law__verdict="rejected",
        ettr__by="measured_rate",
        ettr__measured_rate__wall_clock_ettr=(0.18, "share"),
        ettr__measured_rate__interruptions=(6.0, "interruptions"),
        ettr__measured_rate__queue_s=(739_584, "s"),
    )
    assert not statement_rules.r3_scaling_rejected(measured)
    assert "at this size" in plain(tile(measured, "mttf").interval)
    assert plain(tile(measured, "ettr").value) == "18.0%"


def test_r4_up_to_four_times_the_largest_run_is_a_projection_and_more_is_withheld():
    projected = tile(numbers(sizes__largest_run__gpus=256), "mttf")
    assert (projected.state, projected.badge) == ("shown", "projection")
    m = numbers("ettr.by", sizes__largest_run__gpus=255)
    assert statement_rules.r4_too_far(m)
    assert "1,024 GPUs is more than 4 times the largest run" in tile(m, "mttf").means


def test_r5_measured_differs_gives_both():
    m = numbers(
        sizes__check__p_value=(0.01, "p"),
        sizes__check__observed=(4, "failures"),
        sizes__check__expected=(11.6, "failures"),
        ettr__measured_rate__mttf_s=(211_320.0, "s"),
        ettr__measured_rate__scheduled_ettr=(0.93, "share"),
    )
    mttf, ettr = tile(m, "mttf"), tile(m, "ettr")
    assert mttf.badge == ettr.badge == "measured differs"
    assert plain(mttf.means) == "4 failures observed, 11.6 expected; the observed MTTF is 2.45 days."
    assert "With the measured MTTF it is 93.0% of scheduled time." in plain(ettr.means)
    assert not statement_rules.r5_measured_differs(numbers(sizes__check__p_value=(0.06, "p")))


def test_r13_long_runs_that_differ_from_the_model_are_shown():
    cells = {"scheduled_ettr": 0.71, "ci_low_clustered": 0.64, "ci_high_clustered": 0.77, "queue_s": 36_000.0}
    cells |= {"expected_low": 0.88, "expected_high": 0.91, "runs": 35, "gpus_low": 513, "gpus_high": 1024}
    units = {"queue_s": "s", "runs": "runs", "gpus_low": "GPUs", "gpus_high": "GPUs"}
    keyed = {f"ettr__measured_target__{name}": (value, units.get(name, "share")) for name, value in cells.items()}
    m = numbers(**keyed, ettr__measured_target__differs=(True, "truth"))
    ettr = tile(m, "ettr")
    assert (plain(ettr.value), ettr.unit, ettr.badge, ettr.mini) == ("71.0%", "of scheduled time", "measured", None)
    assert plain(ettr.interval) == "95% CI 64.0–77.0% · 35 runs of 513–1,024 GPUs"
    assert plain(ettr.means).startswith("The model expects 88.0–91.0% of these runs.")
    assert plain(bottom_line(m, ABOUT)[1]).endswith("and to be productive 71.0% of its scheduled time.")
    assert tile(numbers(**keyed, ettr__measured_target__differs=(False, "truth")), "ettr").badge == ""


def test_r14_rates_from_states_alone_are_bounds():
    m = numbers(sizes__basis=("state", "label"), sizes__rate__bound=("lower", "label"))
    statement_rules.mark_bounds(m)
    rate, mttf, ettr = (tile(m, name) for name in ("node_rate", "mttf", "ettr"))
    assert (plain(rate.value), rate.badge) == ("at least 9.28", "lower bound")
    assert "node_logs" in rate.means and "health_events" in rate.means
    assert (plain(mttf.value), mttf.badge) == ("≤ 20.2", "at best")
    assert (plain(ettr.value), ettr.badge) == ("at most 89.5%", "at best")
    assert "at least every 20.2" in plain(" ".join(bottom_line(m, ABOUT)))
    cells = {key: m.cell(key) for key in m}
    assert describe_number(cells, "sizes.rate.failures_per_1000_node_days").startswith("at least 9.28")
    # Bounds of an interval, counts and shares of jobs are no bounds.
    assert {key for key in m if "bound" in m.cell(key)}.isdisjoint({"sizes.rate.ci_low", "outcomes.failure_share"})
    # Health events or logs tell the rest: nothing is marked.
    complete = numbers()
    statement_rules.mark_bounds(complete)
    assert complete == numbers()


def test_r6_many_failures_without_an_end_make_a_range():
    m = numbers(
        without_end__share=0.377,
        without_end__without_end=1541,
        without_end__failures=4072,
        mttf__range__low_s=(677_376.0, "s"),
        mttf__range__high_s=(1_667_520.0, "s"),
    )
    when_tile = tile(m, "when")
    assert (plain(when_tile.value), when_tile.badge) == ("7.84–19.3 days", "range")
    assert plain(when_tile.interval) == "1,541 of 4,072 failures have no recorded end"


def test_r9_few_ended_jobs_get_a_badge():
    m = numbers(outcomes__ended_share=0.2529)
    assert {plain(tile(m, name).badge) for name in ("failure_rate", "failed_gpu_time", "when")} == {"25.3% ended"}


def test_r7_no_failure_is_an_upper_bound():
    m = numbers(sizes__rate__failures=0, sizes__rate__failures_per_1000_node_days=0.0, sizes__rate__ci_high=1.4)
    rate_tile = tile(m, "node_rate")
    assert (plain(rate_tile.value), rate_tile.badge) == ("< 1.40", "upper bound")
    assert plain(rate_tile.interval) == "95% confidence · 0 failures in 8,620 node-days"


@pytest.mark.parametrize(("failures", "state", "badge"), [(9, "few", "few events"), (10, "shown", "")])
def test_r8_fewer_than_ten_failures_are_grey(failures, state, badge):
    rate_tile = tile(numbers(sizes__rate__failures=failures), "node_rate")
    assert (rate_tile.state, rate_tile.badge) == (state, badge)


def test_r10_a_step_of_a_time_limit_is_no_failure():
    step = {"survival__steps__time_s": (86_400, "s"), "survival__steps__drop": (0.08, "share")}
    step |= {"survival__steps__time_limits": (312, "durations"), "survival__steps__is_limit": (True, "truth")}
    m = numbers(**step, survival__limits__1__time_s=(86_400, "s"))
    # The median failed job ran for 13.7 minutes, so the limit of 24 hours gets no badge.
    assert (plain(tile(m, "when").value), tile(m, "when").badge) == ("13.7", "")
    assert plain(tile(m, "when").means).startswith("312 jobs hit their time limit at 24 h")
    m = numbers(**step, survival__limits__1__time_s=(m["outcomes.failure.runtime_median_s"], "s"))
    assert tile(m, "when").badge == "time limit" and "The median equals a time limit" in plain(tile(m, "when").means)
    no_limit = numbers(**step | {"survival__steps__is_limit": (False, "truth")})
    assert "time limit" not in plain(tile(no_limit, "when").means) and tile(no_limit, "when").badge == ""


@pytest.mark.parametrize("assumed", [True, False])
def test_the_tile_reports_an_assumed_node_for_any_rate(assumed):
    m = numbers(sizes__rate__failures=0)
    m["sizes.node_gpus_from"] = {"value": "default" if assumed else "jobs", "unit": "label", "n": None, "source": "x"}
    m["sizes.node_gpus"] = {"value": 8, "unit": "GPUs", "n": None, "source": "x"}
    estimates = [item for item in tiles(m, {}, ABOUT) if item.name in ("node_rate", "mttf") and item.state != WITHHELD]
    assert estimates and all(("Assumes 8 GPUs per node." in plain(item.means)) is assumed for item in estimates)


@pytest.mark.parametrize(
    ("target", "verdict"), [(0.05, "missed"), (0.3, "missed, but the interval includes it"), (0.4, "met")]
)
def test_a_target_is_met_or_missed(target, verdict):
    trace_facts = ABOUT | {"targets": {"failure_rate": target}}
    rate_tile = next(item for item in tiles(numbers(), {}, trace_facts) if item.name == "failure_rate")
    assert rate_tile.target == f"target {100 * target:.1f}%: {verdict}"
    assert all(item.target == "" for item in tiles(numbers(), {}, ABOUT))


@pytest.mark.parametrize(
    ("name", "target_value", "bound_keys"),
    [
        ("node_rate", 9.0, [f"sizes.rate.ci_{bound}{{}}" for bound in ("low", "high")]),
        ("mttf", 19.0, ["ettr.mttf_low_s", "ettr.mttf_high_s"]),
    ],
)
def test_a_target_without_an_interval_is_compared_with_the_estimate(name, target_value, bound_keys):
    targets = {{"mttf": "mttf_h"}.get(name, name): target_value}

    def target(m):
        return next(item for item in tiles(m, {}, ABOUT | {"targets": targets}) if item.name == name).target

    assert target(numbers()).endswith("but the interval includes it")
    for bound in bound_keys:
        missing = {bound.format(suffix) for suffix in ("", "_clustered")} & set(numbers())
        assert target(numbers(*missing)).endswith("by the estimate, which has no interval")
