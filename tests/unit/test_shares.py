"""Failure shares and Wilson's interval."""

import numpy as np
import polars as pl
import pytest
from statsmodels.stats.proportion import proportion_confint, proportions_ztest
from ttf.analyses.factors.correlate import FAILURE_SHARE
from ttf.analyses.factors.correlate.compute import failure_share
from ttf.stats.clustered import UNCLUSTERED
from ttf.stats.differences import compare_shares
from ttf.stats.shares import wilson_interval


def test_wilson_by_hand_at_zero_and_one():
    # 0 of n: the upper limit is z^2 / (n + z^2).
    low, high = wilson_interval(np.array([0, 10, 0]), np.array([10, 10, 0]))
    z2 = 1.959963984540054**2
    assert low[0] == 0 and high[0] == pytest.approx(z2 / (10 + z2))
    assert high[1] == 1 and low[1] == pytest.approx(1 - z2 / (10 + z2))
    assert np.isnan(low[2]) and np.isnan(high[2])


def test_wilson_and_the_test_of_two_shares_are_those_of_statsmodels():
    rng = np.random.default_rng(1)
    trials = rng.integers(200, 100_000, 300)
    successes = rng.integers(1, trials)
    for limit, expected in zip(
        wilson_interval(successes, trials), proportion_confint(successes, trials, method="wilson"), strict=True
    ):
        assert limit == pytest.approx(expected, rel=1e-14)
    for n_before, n_after in trials.reshape(-1, 2).tolist():
        before, after = rng.binomial([n_before, n_after], [0.3, 0.31]).tolist()
        p_value = compare_shares(before, n_before, after, n_after)["p_value"]
        assert p_value == pytest.approx(proportions_ztest([after, before], [n_after, n_before])[1], rel=1e-12)


def jobs() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "outcome": ["success", "failure", "failure", "running", "success", "cancelled", "failure"],
            "gpu_type": ["T4", "T4", "P100", "V100", "T4", None, "P100"],
            "gpu_milli": [1000, 1000, 500, None, 2000, 0, 500],
            "cpu_milli": [None] * 7,
            "mem_mib": [1024] * 7,
            "size": [10, 9, 9, 10, 10, 9, 9],
        },
        schema_overrides={"cpu_milli": pl.Int64},
    )


def test_failure_share_by_hand():
    table = failure_share(jobs())
    FAILURE_SHARE.check(table)
    rows = table.select("feature", "value", "jobs", "ended", "failures", "failure_share").rows()
    assert rows == [
        ("gpu_type", "P100", 2, 2, 2, 1.0),
        ("gpu_type", "T4", 3, 3, 1, 1 / 3),
        ("gpu_type", "V100", 1, 0, 0, None),
        ("gpu_request", "0", 1, 0, 0, None),
        ("gpu_request", "50", 2, 2, 2, 1.0),
        ("gpu_request", "100", 2, 2, 1, 0.5),
        ("gpu_request", "200", 1, 1, 0, 0.0),
        ("memory_request", "1", 7, 5, 3, 0.6),
        ("size", "9", 4, 3, 3, 1.0),  # numbers ascend as numbers
        ("size", "10", 3, 2, 0, 0.0),
    ]
    blank = table.filter(pl.col("failure_share").is_null())
    assert blank["reason"].to_list() == ["no job with this value ended"] * 2
    assert blank["ci_low"].null_count() == blank["ci_high"].null_count() == 2
    assert table.drop_nulls("failure_share")["reason"].to_list() == [UNCLUSTERED] * 8
