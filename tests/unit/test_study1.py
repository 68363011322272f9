"""Study 1 asked twice: by its recipe and well; failure rates above and below a request; what the sentences say."""

import polars as pl
import pytest
from given_tables import correlations, runtime_by_group
from given_tables import one_row as row
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest
from ttf.analyses.replication.ask_again import STUDY1, STUDY1_SUMMARY
from ttf.analyses.replication.ask_again.compute import _compare_estimates, rate_ratio, repeat_study, summarise_verdicts
from ttf.records.jobs import JOB_COLUMNS
from ttf.records.lives import lives_of_jobs
from ttf.stats.basics.median import median_interval
from ttf.stats.durations.mttf import mean_time_to_failure
from ttf.stats.job_features import FEATURES

GPU = next(feature for feature in FEATURES if feature.name == "gpu_request")
TRACE_END_S = 1000


def jobs(*rows):
    """rows: (outcome, run time, GPU type, GPU request in % of one); started at 0."""
    given = pl.DataFrame(
        [(outcome, time, kind, None if gpu is None else gpu * 10) for outcome, time, kind, gpu in rows],
        schema={name: JOB_COLUMNS[name] for name in ("outcome", "runtime_s", "gpu_type", "gpu_milli")},
        orient="row",
    )
    blank = {name: pl.lit(None, dtype=kind) for name, kind in JOB_COLUMNS.items() if name not in given.columns}
    blank |= {name: pl.lit(value, dtype=pl.Int64) for name, value in (("start_s", 0), ("trace_end_s", TRACE_END_S))}
    blank |= {"size": pl.col("gpu_milli") // 100 + 1, "cpu_milli": pl.col("gpu_milli"), "job_id": pl.lit("j")}
    return given.with_columns(**blank).select(*JOB_COLUMNS)


SIX = jobs(
    ("success", 100, "T4", 25),
    ("failure", 200, "T4", 25),
    ("running", None, "T4", 50),  # seen for 1000 s
    ("failure", 50, "V100", 100),
    ("failure", 150, "V100", 200),
    ("failure", None, "V100", 200),  # nobody wrote its end down
    ("waiting", None, None, 100),
)


def again(frame, cutoffs=(None, 20_000, 50_000, 100_000)):
    lives = lives_of_jobs(frame)
    strata = ["all", "gpu_type"] if lives["gpu_type"].count() else ["all"]
    return repeat_study(
        frame,
        correlations(frame, list(cutoffs)),
        runtime_by_group(frame, list(cutoffs)),
        mean_time_to_failure(lives, "failure", strata),
        "pods",
    )


def test_the_rate_above_a_request_by_hand():
    found = rate_ratio(SIX, GPU)
    # Two jobs of five are at or below 25 %, three at or below 50 %: as even, and the first is taken. Below run 300 s
    # and one fails; above 1000 + 50 + 150 s and two do.
    assert (found["split_value"], found["rate_failures"]) == ("25", 3)
    low, high = 300, 1200
    failures = 1, 2
    assert found["rate_ratio"] == pytest.approx(failures[1] / high / (failures[0] / low))
    exact = binomtest(failures[1], 3, high / (low + high))
    interval = exact.proportion_ci(0.95, "exact")
    assert found["rate_ci_low"] == pytest.approx(interval.low / (1 - interval.low) * low / high)
    assert found["rate_ci_high"] == pytest.approx(interval.high / (1 - interval.high) * low / high)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 500), st.sampled_from([25, 50, 100])), min_size=1, max_size=30))
def test_the_rate_is_that_of_a_plain_count(rows):
    found = rate_ratio(
        jobs(*(("failure" if failed else "success", time, None, gpu) for failed, time, gpu in rows)), GPU
    )
    values = sorted({gpu for _, _, gpu in rows})
    if len(values) < 2:
        assert "same value" in found["reason"]
        return
    split = min(values[:-1], key=lambda value: abs(2 * sum(gpu <= value for *_, gpu in rows) - len(rows)))
    assert found["split_value"] == str(split)
    above, below = [r for r in rows if r[2] > split], [r for r in rows if r[2] <= split]
    (k_low, t_low), (k_high, t_high) = ((sum(r[0] for r in p), sum(r[1] for r in p)) for p in (below, above))
    assert found["rate_failures"] == k_low + k_high
    if k_low + k_high == 0:
        assert found["reason"] == "no job failed after a known time"
        return
    pi = t_high / (t_low + t_high)
    tails = binom.cdf(k_high, k_low + k_high, pi), binom.sf(k_high - 1, k_low + k_high, pi)
    assert found["rate_p"] == pytest.approx(min(1, 2 * min(tails)))
    if k_low:
        assert found["rate_ratio"] == pytest.approx((k_high / t_high) / (k_low / t_low))
        assert found["rate_ci_low"] <= found["rate_ratio"] * (1 + 1e-9)
        assert found["rate_ratio"] <= found["rate_ci_high"] * (1 + 1e-9)
    else:
        assert (found.get("rate_ratio"), found["rate_ci_high"]) == (None, None)
    # Failures on one side only: the one limit there is has all of the 5 %.
    if not k_low:
        least = 0.05 ** (1 / k_high)
        assert found["rate_ci_low"] == pytest.approx(least / (1 - least) * t_low / t_high)
    if not k_high:
        most = 1 - 0.05 ** (1 / k_low)
        assert found["rate_ci_high"] == pytest.approx(most / (1 - most) * t_low / t_high)


@pytest.mark.parametrize("n", [1, 5, 6, 7, 20, 101, 5000])
def test_the_interval_of_a_median_is_that_of_the_binomial(n):
    low, high = median_interval(n, lambda rank: rank + 1)
    ranks = [rank for rank in range(1, n // 2 + 1) if binom.cdf(rank - 1, n, 0.5) <= 0.025]
    assert (low, high) == ((ranks[-1], n + 1 - ranks[-1]) if ranks else (None, None))


def test_no_interval_of_nobody():
    assert median_interval(0, [].__getitem__) == (None, None)


def found(estimate, p, n=9, reason=None):
    return {"estimate": estimate, "p_value": p, "p_adjusted": p, "n": n, "reason": reason}


@pytest.mark.parametrize(
    ("study", "asked", "verdict", "said"),
    [
        (found(0.5, 0.01), found(0.4, 0.01), "kept", "sign and significance stay (r = 0.50 over 9 means, ρ = 0.40"),
        (found(0.5, 0.01), found(-0.4, 0.01), "flips", "the sign flips"),
        (found(0.5, 0.01), found(0.1, 0.01), "weaker", "much weaker"),
        (found(0.1, 0.01), found(0.5, 0.01), "stronger", "much stronger"),
        (found(0.5, 0.01), found(0.4, 0.9), "lost", "no longer significant"),
        (found(0.5, 0.9), found(-0.4, 0.01), "found", "significant over pods alone"),
        (found(0.5, 0.9), found(-0.4, 0.9), "neither", "no trend either way (r = 0.50 over 9 means, ρ = −0.40"),
        (found(None, None, 2, "fewer than 3 points"), found(0, 1), "not computable", "fewer than 3 points"),
        (found(0.5, 0.9), found(None, None, 2, "fewer than 3 points"), "not computable", "over pods: fewer than"),
        (None, found(0, 1), "not computable", "no correlation with a cut-off of 20,000 s"),
    ],
)
def test_what_changes_is_said(study, asked, verdict, said):
    got, clause, reason = _compare_estimates(study, asked, 20_000, "pods", 0.05)
    assert got == verdict
    assert said in clause
    assert (reason is not None) == (verdict == "not computable")


def test_every_question_stands_once():
    table = again(SIX)
    STUDY1.check(table)
    assert table["question"].value_counts().sort("question").rows() == [
        ("correlation", 8), ("cut_off", 4), ("mean_run_time", 3),
    ]  # fmt: skip
    assert table["change"].null_count() == 0
    assert table["change"].str.ends_with(".").all()
    success = row(table, question="mean_run_time", outcome="success")
    assert (success["value"], success["study_estimate"], success["asked_estimate"]) == ("T4", 100, 100)
    failure = row(table, question="mean_run_time", outcome="failure", value="T4")
    # The study: the mean of what did not succeed. Asked well: 100 + 200 + 1000 s of run time and one failure.
    assert (failure["study_estimate"], failure["asked_estimate"], failure["asked_n"]) == (200, 1300, 1)
    assert "6.50 times the mean" in failure["change"]
    summary = summarise_verdicts(table)
    STUDY1_SUMMARY.check(summary)
    assert summary["gpu_types"].item() == 2 and summary["highest_ratio"].item() == 6.5
    assert summary["compared"].item() == (table.filter(question="correlation")["verdict"] != "not computable").sum()


def test_the_study_pools_what_did_not_succeed():
    rows = [("running", 10 * gpu, "T4", gpu) for gpu in (10, 20, 30, 40)]
    rows += [("failure", 500 - gpu, "T4", gpu) for gpu in (10, 20, 30, 40)]
    pooled = row(again(jobs(*rows)), question="correlation", outcome="failure", feature="gpu_request")
    # The means of 100 and 490, 200 and 480 ... rise; the failures alone fall.
    assert pooled["study_estimate"] == pytest.approx(1)
    assert pooled["asked_estimate"] == pytest.approx(-1)
    assert (pooled["study_n"], pooled["asked_n"]) == (4, 4)


def test_a_cut_off_that_was_not_asked_for_is_not_computable():
    table = again(SIX, cutoffs=(None,)).filter(pl.col("question") == "cut_off")
    assert set(table["verdict"]) == {"not computable"}
    assert table["reason"].str.contains("correlation.cutoffs_s", literal=True).all()
