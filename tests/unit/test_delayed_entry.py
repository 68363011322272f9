"""Delayed entry: durations observed from an age above 0, analysed with and without their entry."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.duration.survfunc import SurvfuncRight
from ttf.analyses.factors.estimate_hazards import SURVIVAL_SUMMARY_DELAYED_ENTRY
from ttf.stats.durations.mttf import mean_time_to_failure
from ttf.stats.durations.strata import durations_since_entry
from ttf.stats.durations.survival import survival_tables

DURATIONS = {"duration_s": pl.Int64, "entry_s": pl.Int64, "event": pl.String}


def durations_of(rows):
    return pl.DataFrame(rows, schema=DURATIONS, orient="row")


def truncated(n=500, seed=4):
    """Durations observed from a random age; those that end before it are missing."""
    rng = np.random.default_rng(seed)
    time = np.ceil(rng.weibull(0.7, n) * 100).astype(np.int64)
    entry = np.where(rng.random(n) < 0.5, 0, rng.integers(1, 100, n))
    observed = time > entry
    failed = rng.random(n) < 0.7
    event = np.where(failed, "failure", "success")
    return pl.DataFrame({"duration_s": time, "entry_s": entry, "event": event}).filter(pl.Series(observed))


def test_kaplan_meier_against_statsmodels():
    durations = truncated()
    time, entry = durations["duration_s"].to_numpy(), durations["entry_s"].to_numpy()
    status = (durations["event"] == "failure").to_numpy().astype(int)
    reference = SurvfuncRight(time, status, entry=entry)
    curves, summary = survival_tables(durations, "failure", ["all"], delayed_entry=True)
    actual = curves.filter(pl.col("events") > 0)
    assert actual["time_s"].to_list() == reference.surv_times.tolist()
    assert actual["at_risk"].to_list() == reference.n_risk.tolist()
    assert actual["survival"].to_list() == pytest.approx(reference.surv_prob.tolist(), abs=1e-9)
    SURVIVAL_SUMMARY_DELAYED_ENTRY.check(summary)
    row = summary.row(0, named=True)
    assert (row["n"], row["events"], row["entered_late"]) == (durations.height, status.sum(), (entry > 0).sum())
    assert row["median_s"] == reference.quantile(0.5)


def test_all_end_before_later_entries():
    curves, summary = survival_tables(
        durations_of([(2, 0, "failure"), (9, 5, "failure"), (10, 5, None)]), "failure", ["all"], delayed_entry=True
    )
    assert curves.select("time_s", "at_risk", "survival").rows() == [(0, 1, 1), (2, 1, 0), (9, 2, 0), (10, 1, 0)]
    assert curves["ci_low"].to_list() == [1, None, None, None]
    assert "all under watch had ended at 2 s, before 2 came under watch" in summary["reason"].item()


def test_no_duration_is_observed_from_zero():
    curves, summary = survival_tables(durations_of([(9, 5, "failure"), (10, 5, None)]), "failure", ["all"], True)
    assert curves.select("time_s", "at_risk", "survival").rows() == [(0, 0, 1), (9, 2, 0.5), (10, 1, 0.5)]
    assert summary["restricted_mean_s"].item() == pytest.approx(9.5)


def test_mean_time_to_failure_counts_observed_time():
    durations = truncated().with_columns(gpu_milli=1000, nodes=1)
    row = mean_time_to_failure(durations_since_entry(durations), "failure", ["all"], [0.95]).row(0, named=True)
    exposure = int((durations["duration_s"] - durations["entry_s"]).sum())
    failures = int((durations["event"] == "failure").sum())
    assert (row["n"], row["events"], row["exposure_s"]) == (durations.height, failures, exposure)
    assert row["mttf_s"] == pytest.approx(exposure / failures, rel=1e-12)
    assert row["ci_low_s"] == pytest.approx(2 * exposure / stats.chi2.ppf(0.975, 2 * failures + 2), rel=1e-9)


@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(0, 20), st.just(0) | st.integers(0, 20), st.sampled_from(["failure", "success"])
        ),
        max_size=30,
    )
)
def test_properties(rows):
    durations = durations_of(rows)
    curves, summary = survival_tables(durations, "failure", ["all"], delayed_entry=True)
    counted = [row for row in rows if row[0] is not None and (row[1] == 0 or row[0] > row[1])]
    assert summary["n"].item() == len(counted)
    assert curves["events"].sum() + curves["censored"].sum() == len(counted)
    assert (curves["at_risk"] >= curves["events"] + curves["censored"]).all()
    if counted:
        assert (curves["survival"].diff().drop_nulls() <= 0).all() and (curves["survival"] >= 0).all()
    entry_zero = durations.with_columns(entry_s=pl.lit(0, pl.Int64))
    plain, _ = survival_tables(entry_zero, "failure", ["all"])
    entered, _ = survival_tables(entry_zero, "failure", ["all"], delayed_entry=True)
    assert plain.drop("reason").equals(entered.drop("reason"))
