"""Correlations and group means agree with SciPy and figures by hand, also at the edges."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_tables import correlations, runtime_by_group
from scipy import stats
from ttf.analyses.factors.correlate import CORRELATIONS
from ttf.analyses.factors.correlate.clustered_correlations import NO_MEAN_CLUSTERS
from ttf.stats.basics.holm import holm
from ttf.stats.basics.p_value import SMALLEST_P
from ttf.stats.clustered import UNCLUSTERED

SCHEMA = {
    "outcome": pl.String,
    "runtime_s": pl.Int64,
    "gpu_type": pl.String,
    "gpu_milli": pl.Int64,
    "cpu_milli": pl.Int64,
    "mem_mib": pl.Int64,
    "size": pl.Int64,
    "gpu_used_milli": pl.Int64,
}


def simulated(n: int = 600, seed: int = 7) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    cpu = rng.integers(1, 12, n)
    frame = {
        "outcome": rng.choice(["success", "failure", "cancelled"], n, p=[0.5, 0.3, 0.2]).tolist(),
        "runtime_s": rng.integers(0, 60, n) * cpu + rng.integers(0, 40, n),
        "gpu_type": rng.choice(["T4", "V100"], n).tolist(),
        "gpu_milli": rng.choice([0, 250, 500, 1000], n),
        "cpu_milli": cpu * 1000,
        "mem_mib": rng.integers(1, 40, n) * 512,
        "size": rng.integers(1, 15, n),
        "gpu_used_milli": rng.integers(0, 300, n),
    }
    missing = pl.Series(rng.random(n) < 0.1)
    return (
        pl.DataFrame(frame)
        .cast(SCHEMA)
        .with_columns(
            mem_mib=pl.when(~missing).then("mem_mib"),
            runtime_s=pl.when(missing.reverse()).then(None).otherwise("runtime_s"),
        )
    )


def jobs_of(runtimes: list, sizes: list, outcome: str = "success") -> pl.DataFrame:
    return pl.DataFrame(
        {"outcome": [outcome] * len(sizes), "runtime_s": runtimes, "size": sizes},
        schema={"outcome": pl.String, "runtime_s": pl.Int64, "size": pl.Int64},
    )


def row(table: pl.DataFrame, **criteria: object) -> dict:
    for name, value in ({"outcome_set": "success"} | criteria).items():
        table = table.filter(pl.col(name).eq_missing(pl.lit(value)))
    return table.row(0, named=True)


SETS = {
    "success": pl.col("outcome") == "success",
    "failure": pl.col("outcome") == "failure",
    "not_success": pl.col("outcome") != "success",
}
COLUMNS = {
    "gpu_request": (pl.col("gpu_milli"), pl.col("gpu_milli")),
    "cpu_request": (pl.col("cpu_milli"), pl.col("cpu_milli")),
    "memory_request": (pl.col("mem_mib"), pl.col("mem_mib")),
    "size": (pl.col("size"), pl.col("size")),
    "gpu_utilisation": (pl.col("gpu_used_milli"), (pl.col("gpu_used_milli") + 5) // 10),
}


def test_estimates_and_p_agree_with_scipy():
    jobs = simulated()
    table = correlations(jobs, [None, 300])
    CORRELATIONS.check(table)
    assert table.height == 3 * 5 * 2 * 5
    for actual in table.iter_rows(named=True):
        exact, grouped = COLUMNS[actual["feature"]]
        subset = jobs.filter(SETS[actual["outcome_set"]] & pl.col("runtime_s").is_not_null())
        if actual["cutoff_s"] is not None:
            subset = subset.filter(pl.col("runtime_s") < actual["cutoff_s"])
        points = subset.select(x=exact, g=grouped, y="runtime_s").drop_nulls("x")
        if actual["unit"] == "group_mean":
            points = points.group_by("g").agg(pl.col("y").mean()).sort("g").select(x="g", y="y")
        x, y = points["x"].to_numpy(), points["y"].to_numpy()
        method = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
        expected = method[actual["method"]](x, y)
        assert actual["n"] == len(x)
        assert actual["estimate"] == pytest.approx(expected.statistic, rel=1e-9, abs=1e-12)
        assert actual["p_value"] == pytest.approx(max(expected.pvalue, SMALLEST_P), rel=1e-8, abs=0)
        if actual["n"] > 4 and abs(actual["estimate"]) < 1:
            assert actual["reason"] == (NO_MEAN_CLUSTERS if actual["unit"] == "group_mean" else UNCLUSTERED)
            assert actual["ci_low"] < actual["estimate"] < actual["ci_high"]
        if actual["method"] == "pearson" and actual["n"] > 3:
            limits = expected.confidence_interval(0.95)
            assert (actual["ci_low"], actual["ci_high"]) == pytest.approx(tuple(limits), rel=1e-9)


def test_holm_is_over_the_features_of_one_family():
    jobs = simulated().with_columns(size=pl.lit(4))  # constant, so blank and not in the family
    table = correlations(jobs, [None])
    for _, family in table.group_by("outcome_set", "unit", "method"):
        tested = family.drop_nulls("p_value")
        assert tested.height == 4
        assert tested["p_adjusted"].to_list() == pytest.approx(holm(tested["p_value"].to_list()), rel=1e-12)
        assert tested["reject"].to_list() == [p < 0.05 for p in tested["p_adjusted"]]
        blank = family.filter(pl.col("p_value").is_null()).row(0, named=True)
        assert blank["p_adjusted"] is None and blank["reject"] is None and blank["reason"]


def test_intervals_by_hand():
    sizes, runtimes = [1, 2, 3, 4, 5, 6, 7], [2, 1, 4, 3, 7, 5, 6]
    table = correlations(jobs_of(runtimes, sizes), [None])
    z = 1.959963984540054
    spearman = row(table, unit="job", method="spearman")
    rho = spearman["estimate"]
    half = z * math.sqrt((1 + rho**2 / 2) / 4)
    expected = (math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half))
    assert (spearman["ci_low"], spearman["ci_high"]) == pytest.approx(expected)
    kendall = row(table, unit="group_mean", method="kendall")
    half = z * math.sqrt(0.437 / 3)
    expected = (
        math.tanh(math.atanh(kendall["estimate"]) - half),
        math.tanh(math.atanh(kendall["estimate"]) + half),
    )
    assert (kendall["ci_low"], kendall["ci_high"]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("runtimes", "sizes", "unit", "reason"),
    [
        ([1, 2], [1, 2], "job", "fewer than 3 points"),
        ([1, 2, 3], [4, 4, 4], "job", "every value of size is the same"),
        ([5, 5, 5], [1, 2, 3], "job", "every run time is the same"),
        ([5, 4, 6, 5], [1, 2, 2, 3], "group_mean", "every mean run time is the same"),
        ([1, 2, 3], [None, None, None], "group_mean", "fewer than 3 points"),
    ],
)
def test_blank_with_a_reason(runtimes, sizes, unit, reason):
    table = correlations(jobs_of(runtimes, sizes), [None])
    CORRELATIONS.check(table)
    table = table.filter(pl.col("unit") == unit)
    rows = table.filter(pl.col("outcome_set") == "success")
    assert rows["reason"].unique().to_list() == [reason]
    for name in ("estimate", "ci_low", "ci_high", "p_value", "p_adjusted", "reject"):
        assert rows[name].null_count() == rows.height
    assert rows["n"].null_count() == 0


def test_a_perfect_correlation_has_no_zero_p():
    table = correlations(jobs_of([30, 20, 10, 5], [1, 2, 3, 4]), [None])
    spearman = row(table, unit="job", method="spearman")
    assert (spearman["estimate"], spearman["p_value"]) == (-1.0, SMALLEST_P)
    assert spearman["ci_low"] is None and "perfect" in spearman["reason"]
    kendall = row(table, unit="group_mean", method="kendall")
    assert kendall["estimate"] == -1.0 and kendall["p_value"] == pytest.approx(2 / 24)
    assert kendall["reason"]


def test_estimates_are_exact_for_large_run_times():
    # Run times that differ in the last of 14 digits: sums of squares in doubles lose every digit of r.
    base = 10**13
    pearson = row(correlations(jobs_of([base, base + 1, base + 3], [1, 2, 3]), [None]), method="pearson")
    assert pearson["estimate"] == pytest.approx(stats.pearsonr([0, 1, 3], [1, 2, 3]).statistic, rel=1e-14)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["success", "failure", "running"]),
            st.none() | st.integers(0, 50),
            st.none() | st.integers(0, 4),
        ),
        max_size=30,
    ),
    st.randoms(),
)
def test_row_order_does_not_matter(rows, random):
    schema = {"outcome": pl.String, "runtime_s": pl.Int64, "size": pl.Int64}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    shuffled = list(rows)
    random.shuffle(shuffled)
    reordered = pl.DataFrame(shuffled, schema=schema, orient="row")
    for table in (correlations, runtime_by_group):
        assert table(frame, [None, 25]).write_csv() == table(reordered, [None, 25]).write_csv()


RUN_TIMES = """\
success,gpu_type,,P100,1,3.00,3.00
success,gpu_type,,T4,4,34.25,15.00
success,gpu_type,50,P100,1,3.00,3.00
success,gpu_type,50,T4,3,12.33,10.00
success,size,,2,4,30.00,8.50
success,size,,10,1,20.00,20.00
success,size,50,2,3,6.67,7.00
success,size,50,10,1,20.00,20.00
failure,size,,2,1,4.00,4.00
failure,size,50,2,1,4.00,4.00
not_success,gpu_type,,T4,1,9.00,9.00
not_success,gpu_type,50,T4,1,9.00,9.00
not_success,size,,2,2,6.50,6.50
not_success,size,50,2,2,6.50,6.50
"""


def test_runtime_by_group_by_hand():
    jobs = pl.DataFrame(
        {
            "outcome": ["success"] * 5 + ["failure", "running"],
            "runtime_s": [10, 20, 3, 7, 100, 4, 9],
            "gpu_type": ["T4", "T4", "P100", "T4", "T4", None, "T4"],
            "size": [2, 10, 2, 2, 2, 2, 2],
        }
    )
    assert runtime_by_group(jobs, [50, None]).write_csv(include_header=False, float_precision=2) == RUN_TIMES
