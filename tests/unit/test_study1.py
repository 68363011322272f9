"""Study 1 repeated by its recipe and by better methods; failure rates by request; the verdicts."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_tables import correlations, runtime_by_group
from memory_tables import one_row as select_row
from scipy.stats import binom, binomtest
from ttf.analyses.replication.repeat_study import STUDY1, STUDY1_SUMMARY
from ttf.analyses.replication.repeat_study.compute import (
    _compare_estimates,
    rate_ratio,
    repeat_study,
    summarise_verdicts,
)
from ttf.records.durations import durations_of_jobs
from ttf.records.jobs import JOB_COLUMNS, conform
from ttf.stats.basics.median import median_interval
from ttf.stats.durations.mttf import mean_time_to_failure
from ttf.stats.job_features import FEATURES

GPU = next(feature for feature in FEATURES if feature.name == "gpu_request")
TRACE_END_S = 1000


def make_jobs(*rows):
    """Make jobs of (outcome, run time, GPU type, GPU request in %) that start at 0."""
    names = ("outcome", "runtime_s", "gpu_type", "gpu_milli")
    frame = pl.DataFrame(rows, schema={name: JOB_COLUMNS[name] for name in names}, orient="row")
    gpu = {"size": pl.col("gpu_milli") // 10 + 1, "cpu_milli": pl.col("gpu_milli") * 10}
    frame = frame.with_columns(**gpu, gpu_milli=pl.col("gpu_milli") * 10, job_id=pl.lit("j"))
    return conform(frame.with_columns(start_s=0, trace_end_s=TRACE_END_S), JOB_COLUMNS)


SIX = make_jobs(
    ("success", 100, "T4", 25),
    ("failure", 200, "T4", 25),
    ("running", None, "T4", 50),  # seen for 1000 s
    ("failure", 50, "V100", 100),
    ("failure", 150, "V100", 200),
    ("failure", None, "V100", 200),  # its end is not recorded
    ("waiting", None, None, 100),
)


def repeat(frame, cutoffs=(None, 20_000, 50_000, 100_000)):
    durations = durations_of_jobs(frame)
    strata = ["all", "gpu_type"] if durations["gpu_type"].count() else ["all"]
    return repeat_study(
        frame,
        correlations(frame, list(cutoffs)),
        runtime_by_group(frame, list(cutoffs)),
        mean_time_to_failure(durations, "failure", strata),
        "pods",
    )


def test_the_rate_above_a_request_by_hand():
    ratio = rate_ratio(SIX, GPU)
    # Two of five jobs are at or below 25 %, three at or below 50 %: a tie, so the first value splits. Below, jobs run
    # for 300 s and one fails; above, they run for 1000 + 50 + 150 s and two fail.
    assert (ratio["split_value"], ratio["rate_failures"]) == ("25", 3)
    low, high = 300, 1200
    failures = 1, 2
    assert ratio["rate_ratio"] == pytest.approx(failures[1] / high / (failures[0] / low))
    exact = binomtest(failures[1], 3, high / (low + high))
    interval = exact.proportion_ci(0.95, "exact")
    assert ratio["rate_ci_low"] == pytest.approx(interval.low / (1 - interval.low) * low / high)
    assert ratio["rate_ci_high"] == pytest.approx(interval.high / (1 - interval.high) * low / high)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 500), st.sampled_from([25, 50, 100])), min_size=1, max_size=30))
def test_the_rate_equals_a_plain_count(rows):
    ratio = rate_ratio(
        make_jobs(*(("failure" if failed else "success", time, None, gpu) for failed, time, gpu in rows)), GPU
    )
    values = sorted({gpu for _, _, gpu in rows})
    if len(values) < 2:
        assert "same value" in ratio["reason"]
        return
    split = min(values[:-1], key=lambda value: abs(2 * sum(gpu <= value for *_, gpu in rows) - len(rows)))
    assert ratio["split_value"] == str(split)
    above, below = [r for r in rows if r[2] > split], [r for r in rows if r[2] <= split]
    (k_low, t_low), (k_high, t_high) = ((sum(r[0] for r in p), sum(r[1] for r in p)) for p in (below, above))
    assert ratio["rate_failures"] == k_low + k_high
    if k_low + k_high == 0:
        assert ratio["reason"] == "no job failed after a known time"
        return
    if k_low:
        assert ratio["rate_ratio"] == pytest.approx((k_high / t_high) / (k_low / t_low))
        assert ratio["rate_ci_low"] <= ratio["rate_ratio"] * (1 + 1e-9)
        assert ratio["rate_ratio"] <= ratio["rate_ci_high"] * (1 + 1e-9)
    else:
        assert (ratio.get("rate_ratio"), ratio["rate_ci_high"]) == (None, None)
    # With failures on one side only, the single limit takes all of the 5 %.
    if not k_low:
        share_low = 0.05 ** (1 / k_high)
        assert ratio["rate_ci_low"] == pytest.approx(share_low / (1 - share_low) * t_low / t_high)
    if not k_high:
        share_high = 1 - 0.05 ** (1 / k_low)
        assert ratio["rate_ci_high"] == pytest.approx(share_high / (1 - share_high) * t_low / t_high)


@pytest.mark.parametrize("n", [1, 5, 6, 7, 20, 101, 5000])
def test_the_interval_of_a_median_is_that_of_the_binomial(n):
    low, high = median_interval(n, lambda rank: rank + 1)
    ranks = [rank for rank in range(1, n // 2 + 1) if binom.cdf(rank - 1, n, 0.5) <= 0.025]
    assert (low, high) == ((ranks[-1], n + 1 - ranks[-1]) if ranks else (None, None))


def trend(estimate, p, n=9, reason=None):
    return {"estimate": estimate, "p_value": p, "p_adjusted": p, "n": n, "reason": reason}


@pytest.mark.parametrize(
    ("study", "repeated", "verdict", "expected"),
    [
        (trend(0.5, 0.01), trend(0.4, 0.01), "kept", "sign and significance stay (r = 0.50 over 9 means, ρ = 0.40"),
        (trend(0.5, 0.01), trend(-0.4, 0.01), "flips", "the sign flips"),
        (trend(0.5, 0.01), trend(0.1, 0.01), "weaker", ""),
        (trend(0.1, 0.01), trend(0.5, 0.01), "stronger", ""),
        (trend(0.5, 0.01), trend(0.4, 0.9), "lost", "no longer significant"),
        (trend(0.5, 0.9), trend(-0.4, 0.01), "found", "significant over pods alone"),
        (trend(0.5, 0.9), trend(-0.4, 0.9), "neither", "no trend either way (r = 0.50 over 9 means, ρ = −0.40"),
        (trend(0.5, 0.9), trend(None, None, 2, "fewer than 3 points"), "not computable", "over pods: fewer than"),
        (None, trend(0, 1), "not computable", "no correlation with a cut-off of 20,000 s"),
    ],
)
def test_each_change_has_its_verdict(study, repeated, verdict, expected):
    actual, clause, reason = _compare_estimates(study, repeated, 20_000, "pods", 0.05)
    assert actual == verdict
    assert expected in clause
    assert (reason is not None) == (verdict == "not computable")


def test_every_question_has_its_rows():
    table = repeat(SIX)
    STUDY1.check(table)
    assert table["question"].value_counts().sort("question").rows() == [
        ("correlation", 8), ("cut_off", 4), ("mean_run_time", 3),
    ]  # fmt: skip
    assert table["change"].null_count() == 0
    assert table["change"].str.ends_with(".").all()
    success = select_row(table, question="mean_run_time", outcome="success")
    assert (success["value"], success["study_estimate"], success["asked_estimate"]) == ("T4", 100, 100)
    failure = select_row(table, question="mean_run_time", outcome="failure", value="T4")
    # The study takes the mean of all jobs without success. Better: 1300 s of run time and one failure.
    assert (failure["study_estimate"], failure["asked_estimate"], failure["asked_n"]) == (200, 1300, 1)
    assert "6.50 times the mean" in failure["change"]
    summary = summarise_verdicts(table)
    STUDY1_SUMMARY.check(summary)
    assert summary["gpu_types"].item() == 2 and summary["highest_ratio"].item() == 6.5
    assert summary["compared"].item() == (table.filter(question="correlation")["verdict"] != "not computable").sum()


def test_the_study_pools_all_jobs_without_success():
    rows = [("running", 10 * gpu, "T4", gpu) for gpu in (10, 20, 30, 40)]
    rows += [("failure", 500 - gpu, "T4", gpu) for gpu in (10, 20, 30, 40)]
    pooled = select_row(repeat(make_jobs(*rows)), question="correlation", outcome="failure", feature="gpu_request")
    # The means of 100 and 490, 200 and 480 ... rise; the failures alone fall.
    assert pooled["study_estimate"] == pytest.approx(1)
    assert pooled["asked_estimate"] == pytest.approx(-1)
    assert (pooled["study_n"], pooled["asked_n"]) == (4, 4)


def test_an_unconfigured_cut_off_is_not_computable():
    table = repeat(SIX, cutoffs=(None,)).filter(pl.col("question") == "cut_off")
    assert set(table["verdict"]) == {"not computable"}
    assert table["reason"].str.contains("correlation.cutoffs_s", literal=True).all()
