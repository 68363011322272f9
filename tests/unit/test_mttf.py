"""Mean time to failure: the exact interval, its coverage, rates and missing ends."""

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_tables import compute_metrics
from scipy import stats
from ttf.analyses.time_to_failure.fit_mttf import FAILURES_WITHOUT_END, MTTF
from ttf.analyses.time_to_failure.fit_mttf.compute import far_groups
from ttf.engine.columns import STRATUM
from ttf.records.clusters import add_levels
from ttf.stats.clustered import UNCLUSTERED
from ttf.stats.durations.missing_ends import MOST_WITHOUT_END, failures_without_end, withhold_without_ends
from ttf.stats.durations.mttf import garwood_interval, mean_time_to_failure

SCHEMA = {
    "duration_s": pl.Int64,
    "event": pl.String,
    "gpu_milli": pl.Int64,
    "nodes": pl.Int64,
    "gpu_count": pl.Int64,
    "duration_max_s": pl.Int64,
}
DURATION = st.tuples(
    st.none() | st.integers(0, 10**6),
    st.sampled_from(["failure", "success", None]),
    st.none() | st.integers(0, 8000),
    st.none() | st.integers(0, 4),
    st.none() | st.integers(0, 3),
    st.none() | st.integers(0, 10**6),
)


def make_durations(*rows: tuple) -> pl.DataFrame:
    padded = [row + (None,) * (len(SCHEMA) - len(row)) for row in rows]
    return pl.DataFrame(padded, schema=SCHEMA, orient="row")


def first_row(table: pl.DataFrame, **conditions: object) -> dict:
    return table.filter(**conditions).row(0, named=True)


def test_mttf_by_hand():
    day = 86_400
    durations = make_durations(
        (3 * day, "failure", 8000, 1),
        (day, None, 16_000, 2),
        (day, "failure", 500, None),  # unknown nodes: not in the node rate
        (5 * day, "failure", 0, 1),  # no GPU: in neither rate
        (None, "failure", 8000, 1),
    )
    table = mean_time_to_failure(durations, "failure", ["all"])
    MTTF.check(table)
    assert table["confidence"].to_list() == [0.9, 0.95]
    row = first_row(table, confidence=0.95)
    assert (row["n"], row["events"], row["exposure_s"]) == (4, 3, 10 * day)
    assert row["mttf_s"] == 10 * day / 3
    assert row["ci_low_s"] == pytest.approx(20 * day / stats.chi2.ppf(0.975, 8), rel=1e-12)
    assert row["ci_high_s"] == pytest.approx(20 * day / stats.chi2.ppf(0.025, 6), rel=1e-12)
    assert row["gpu_days"] == 40.5
    assert row["failures_per_1000_gpu_days"] == pytest.approx(2000 / 40.5)
    assert row["node_days"] == 5
    assert row["failures_per_1000_node_days"] == 200
    assert row["reason"] == UNCLUSTERED


@pytest.mark.parametrize("confidence", [0.9, 0.95])
@pytest.mark.parametrize("failures", [1, 2, 17, 1000, 300_000])
def test_garwood_bounds_are_poisson_tails(failures, confidence):
    low, high = garwood_interval(1.0, failures, confidence)
    tail = (1 - confidence) / 2
    assert stats.poisson.cdf(failures, 1 / low) == pytest.approx(tail, rel=1e-6)
    assert stats.poisson.sf(failures - 1, 1 / high) == pytest.approx(tail, rel=1e-6)


@pytest.mark.parametrize(("event", "reason"), [("failure", "no failures"), ("dbe", "no dbe")])
def test_no_failures_give_a_lower_bound(event, reason):
    table = mean_time_to_failure(make_durations((100_000, "success", 1000, 1), (50_000, None, 1000, 1)), event, ["all"])
    row = first_row(table, confidence=0.95)
    assert row["mttf_s"] is None and row["ci_high_s"] is None
    assert row["ci_low_s"] == pytest.approx(150_000 / -math.log(0.05), rel=1e-12)
    assert row["reason"] == f"{reason}: lower bound only"
    assert row["failures_per_1000_gpu_days"] == 0


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([(0, "failure", 1000, 1)], "no exposure: every duration lasted 0 s; those that requested a GPU lasted 0 s"),
        ([(None, "failure", 1000, 1)], "no known duration"),
        ([], "no known duration"),
        ([(9, "failure", 0, 1)], f"none requested a GPU; {UNCLUSTERED}"),
        ([(9, "failure", None, None)], f"none requested a GPU; {UNCLUSTERED}"),
        ([(86_400, "failure", 1000, None)], f"none that requested a GPU has its nodes written; {UNCLUSTERED}"),
        ([(86_399, "failure", 2000, 1)], f"less than one node-day: no rate per node-day; {UNCLUSTERED}"),
    ],
)
def test_blank_rates_have_a_reason(rows, reason):
    table = mean_time_to_failure(make_durations(*rows), "failure", ["all"])
    assert table["reason"].to_list() == [reason] * 2
    assert table["failures_per_1000_node_days"].null_count() == 2


def test_sums_beyond_64_bits_are_exact():
    durations = pl.concat([make_durations((2**50, "failure", 2**20, 1))] * 3)
    row = first_row(mean_time_to_failure(durations, "failure", ["all"]), confidence=0.9)
    assert row["gpu_days"] == 3 * 2**70 / 86_400_000


@given(st.lists(st.tuples(DURATION, st.integers(0, 5)), min_size=1, max_size=40))
def test_several_stratifications_equal_separate_ones(rows):
    durations = add_levels(
        make_durations(*(values for values, _ in rows)).with_columns(user=pl.Series(user for _, user in rows)),
        {"user": ["user"], "profile": ["user", "gpu_count"]},
    )
    strata = ["all", "gpu_count", "nodes"]
    for estimate in (mean_time_to_failure, failures_without_end):
        separate = [estimate(durations, "failure", [stratum_by]) for stratum_by in strata]
        assert estimate(durations, "failure", strata).equals(pl.concat(separate))


@given(st.lists(DURATION, max_size=20), st.randoms())
def test_row_order_does_not_matter_and_nothing_is_nan(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    for estimate in (mean_time_to_failure, failures_without_end):
        table = estimate(make_durations(*rows), "failure", ["all", "gpu_count"])
        assert table.equals(estimate(make_durations(*shuffled), "failure", ["all", "gpu_count"]))
        assert table.select(pl.selectors.float()).unpivot()["value"].drop_nulls().is_finite().all()
        blank = table.filter(pl.any_horizontal(pl.selectors.float().is_null()))
        assert blank["reason"].null_count() == 0


def test_failures_without_end_by_hand():
    durations = make_durations(
        (100, "failure", None, None, 1, 500),
        (200, "failure", None, None, 1, None),
        (300, None, None, None, 1, 900),  # not a failure: only its duration counts
        (None, None, None, None, 1, 900),  # not a failure and no duration: does not count
        (None, "failure", None, None, 1, 700),
        (None, "failure", None, None, 1, None),  # cannot be placed in the high bound
        (40, None, None, None, 2),
        (None, "failure", None, None, 3, 50),
    )
    table = failures_without_end(durations, "failure", ["all", "gpu_count"])
    FAILURES_WITHOUT_END.check(table)
    assert table.rows() == [
        ("all", "all", 5, 3, 0.6, None, 640 / 5, 1390 / 5, "60.0% of the failures have no recorded end"),
        ("gpu_count", "1", 4, 2, 0.5, None, 150.0, 325.0, "50.0% of the failures have no recorded end"),
        ("gpu_count", "2", 0, 0, None, None, None, None, "no failures"),
        ("gpu_count", "3", 1, 1, 1.0, None, 0.0, 50.0, "100.0% of the failures have no recorded end"),
    ]


@given(st.lists(DURATION, min_size=1, max_size=60), st.lists(st.integers(1, 3), max_size=6))
def test_a_mean_is_withheld_where_ends_are_missing(rows, untimed):
    """A stratum keeps its mean up to the limit; above, it keeps counts and time at risk, and has a range."""
    durations = make_durations(*rows, *((None, "failure", None, None, gpus, 10**6) for gpus in untimed))
    strata = ["all", "gpu_count"]
    plain, ends = mean_time_to_failure(durations, "failure", strata), failures_without_end(durations, "failure", strata)
    shown = withhold_without_ends(plain, MTTF.columns, ends)
    MTTF.check(shown)
    counts = [*STRATUM, "n", "events", "exposure_s", "confidence", "gpu_days", "node_days"]
    assert shown.select(counts).equals(plain.select(counts))
    rows = shown.join(ends, on=["stratum_by", "stratum"], suffix="_by_hand", maintain_order="left")
    for row, before in zip(rows.iter_rows(named=True), plain.iter_rows(named=True), strict=True):
        if (row["share_without_end"] or 0) <= MOST_WITHOUT_END:
            assert {name: row[name] for name in MTTF.columns} == before
        else:
            assert row["mttf_s"] is row["ci_low_s"] is row["failures_per_1000_node_days"] is None
            assert row["mttf_low_s"] == row["mttf_low_s_by_hand"] <= row["mttf_high_s"]


def test_very_different_groups_are_reported_instead_of_their_mean():
    """Old GPUs wear out and few new ones fail. The share by a year is the last step of the curve before it."""
    rates = {"old": (900, 300, 0.2, 2.0e8, 1.9e8, 2.1e8), "new": (500, 12, 0.01, 4e9, 2e9, 8e9)}
    mttf = pl.DataFrame(
        [("failure", "batch", name, *row, 0.95) for name, row in rates.items()],
        schema=[
            *("event", "stratum_by", "stratum", "n", "events", "failures_per_1000_node_days", "mttf_s"),
            *("ci_low_clustered_s", "ci_high_clustered_s", "confidence"),
        ],
        orient="row",
    )
    steps = [(1.5, 600, 0.9), (2.9, 300, 0.7), (3.1, 200, 0.65), (4.5, 20, 0.5)]
    curve = pl.DataFrame(
        [("failure", "batch", "old", int(year * 31_536_000), at_risk, share) for year, at_risk, share in steps],
        schema=["event", "stratum_by", "stratum", "time_s", "at_risk", "survival"],
        orient="row",
    )
    metrics = compute_metrics("fit_mttf", {"far_groups": far_groups(mttf, curve, ["batch"])})
    assert metrics["groups.highest.years"]["value"] == 3
    assert metrics["groups.highest.failed_share"]["value"] == pytest.approx(0.3)
    similar = mttf.with_columns(ci_low_clustered_s=pl.lit(1.9e8))
    assert far_groups(similar, curve, ["batch"]).is_empty()
