"""Mean time to failure by job size, the failure rate of a node, the projection, and the 1/N law."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from memory_tables import compute_metrics
from memory_tables import one_row as select_row
from scipy import stats
from ttf.analyses.scaling.measure_sizes import MTTF_BY_GPUS, NODE_FAILURE_RATE, charts
from ttf.analyses.scaling.measure_sizes.sizes import (
    NO_GPU_JOB,
    SUMS_SCHEMA,
    mttf_by_gpus,
    node_failure_rate,
    node_gpus,
    select_component_runs,
    select_job_runs,
    size_law,
    sums_by_nodes,
)
from ttf.display.charts.figure import Study
from ttf.records.durations import count_nodes
from ttf.stats.large_runs.projection import ProjectionLimit

UNLIMITED = ProjectionLimit(16_384, 131_072, "it goes no further", "larger runs")
DAY = 86_400
AGREES, REJECTED, TOO_FEW = "agrees", "rejected", "too few failures to tell"
DURATIONS = {"gpu_count": pl.Int64, "nodes": pl.Int64, "duration_s": pl.Int64, "event": pl.String}


def make_durations(*rows):
    """Make one duration per (gpu_count, duration_s, event)."""
    return pl.DataFrame([(gpus, 1, duration, event) for gpus, duration, event in rows], schema=DURATIONS, orient="row")


def sums(*rows):
    return pl.DataFrame(rows, schema=SUMS_SCHEMA, orient="row")


def draw_chart(by_gpus, rate, study):
    return charts.CHARTS["mttf_by_gpus"]({"mttf_by_gpus": by_gpus, "node_failure_rate": rate}, study)


# --- by hand


def test_sums_are_of_gpu_jobs_by_whole_nodes():
    table = sums_by_nodes(
        select_job_runs(
            make_durations(
                (1, 10, "infra_failure"),
                (8, 20, None),
                (9, 30, None),
                (16, 40, "infra_failure"),
                (17, None, "infra_failure"),  # no known time
                (0, 50, "infra_failure"),  # no GPU
            ),
            8,
        )
    )
    assert table.schema == pl.Schema(SUMS_SCHEMA)
    assert table.rows() == [(1, 2, 1, 30), (2, 2, 1, 70)]


def test_buckets_double_and_hold_every_job():
    totals = sums((1, 5, 2, 1000), (3, 1, 0, 500), (4, 2, 1, 300), (5, 1, 1, 0), (33, 1, 1, 70))
    rate = node_failure_rate(totals, "state", 8, "trace", 0, UNLIMITED)
    table = mttf_by_gpus(totals, rate, 8)
    MTTF_BY_GPUS.check(table)
    assert table.select("gpus_low", "gpus_high").rows()[:5] == [(1, 8), (9, 16), (17, 32), (33, 64), (65, 128)]
    assert (table["gpus_low"][1:] - table["gpus_high"][:-1]).unique().to_list() == [1]
    assert table["jobs"].sum() == 10
    cells = ["jobs", "failures", "exposure_s", "mttf_s", "gpus_mean", "reason"]
    assert [table.filter(gpus_high=high).select(cells).row(0) for high in (16, 32, 64, 512, 1024)] == [
        (0, None, None, None, None, "no job of this size"),
        (3, 1, 800, 800.0, 8 * (3 * 500 + 4 * 300) / 800, None),
        (1, 1, 0, None, None, "no exposure: every job lasted 0 s"),
        (1, 1, 70, 70, 264, None),
        (0, None, None, None, None, "larger than any job of the trace"),
    ]


def test_the_measured_interval_is_garwoods_at_90_percent():
    totals = sums((1, 9, 4, 7000), (2, 3, 0, 900))
    table = mttf_by_gpus(totals, node_failure_rate(totals, "state", 8, "trace", 0, UNLIMITED), 8)
    row = select_row(table, gpus_high=8)
    assert row["confidence"] == 0.9
    assert row["ci_low_s"] == pytest.approx(2 * 7000 / stats.chi2.ppf(0.95, 10), rel=1e-12)
    assert row["ci_high_s"] == pytest.approx(2 * 7000 / stats.chi2.ppf(0.05, 8), rel=1e-12)
    unseen = select_row(table, gpus_high=16)
    assert (unseen["mttf_s"], unseen["ci_high_s"], unseen["reason"]) == (None, None, "no failures: lower bound only")
    assert unseen["ci_low_s"] == pytest.approx(900 / -math.log(0.1), rel=1e-12)


def test_rate_of_a_node_by_hand():
    totals = sums((1, 50, 40, 40 * DAY), (20, 100, 30, 15 * DAY), (32, 7, 2, 10 * DAY))
    table = node_failure_rate(totals, "state", 8, "trace", 128, UNLIMITED)
    NODE_FAILURE_RATE.check(table)
    assert table["confidence"].to_list() == [0.9, 0.95]
    row = select_row(table, confidence=0.9)
    assert (row["above_gpus"], row["jobs"], row["failures"], row["node_days"]) == (128, 107, 32, 620.0)
    assert row["failures_per_node_day"] == 32 / 620
    low, high = stats.chi2.ppf(0.05, 64) / 2 / 620, stats.chi2.ppf(0.95, 66) / 2 / 620
    assert (row["ci_low_per_node_day"], row["ci_high_per_node_day"]) == pytest.approx((low, high), rel=1e-12)
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((1000 * low, 1000 * high), rel=1e-12)


@pytest.mark.parametrize(
    ("failures", "above_gpus", "expected", "reason"),
    [
        # failures at 1, 2, 8, 17 nodes
        ((100, 100, 100, 30), 128, 30, None),
        ((100, 100, 20, 10), 56, 30, "10 failures above 128 GPUs: the largest sizes that hold 30 failures instead"),
        ((100, 0, 20, 9), 0, 129, "9 failures above 128 GPUs, so all sizes count"),
        ((9, 9, 9, 2), 0, 29, "2 failures above 128 GPUs: every size, as the trace has fewer than 30 failures in all"),
    ],
)
def test_few_failures_take_the_largest_sizes_with_thirty(failures, above_gpus, expected, reason):
    totals = sums(*((nodes, 500, count, DAY) for nodes, count in zip((1, 2, 8, 17), failures, strict=True)))
    row = select_row(node_failure_rate(totals, "proxy", 8, "trace", 128, UNLIMITED), confidence=0.9)
    assert (row["above_gpus"], row["failures"], row["reason"]) == (above_gpus, expected, reason)


def test_no_failure_and_no_exposure():
    row = select_row(node_failure_rate(sums((2, 3, 0, 5 * DAY)), "state", 8, "trace", 0, UNLIMITED), confidence=0.9)
    assert (row["failures_per_node_day"], row["ci_low_per_node_day"]) == (0, 0)
    assert row["ci_high_per_node_day"] == pytest.approx(-math.log(0.1) / 10, rel=1e-12)
    assert row["reason"]
    for rows, reason in (((), NO_GPU_JOB), (((1, 40, 40, 0),), "no exposure: every job lasted 0 s")):
        assert set(node_failure_rate(sums(*rows), "proxy", 8, "default", 128, UNLIMITED)["reason"]) == {reason}


def test_components_count_by_their_own_nodes():
    totals = sums_by_nodes(select_component_runs(make_durations((None, DAY, "infra_failure"), (None, 3 * DAY, None))))
    table = node_failure_rate(totals, "component", None, None, None, UNLIMITED)
    assert select_row(table, confidence=0.9)["failures_per_node_day"] == 0.25
    assert table["above_gpus"].to_list() == [None, None]
    row = mttf_by_gpus(totals, table, None).row(0, named=True)
    assert (row["gpus_high"], row["jobs"], row["reason"]) == (None, 0, "no duration has a GPU")


@pytest.mark.parametrize(
    ("gpus", "configured", "expected"),
    [
        ([8, 8, 0, None], None, (8, "trace")),
        ([2] * 9 + [8] * 3, None, (8, "trace")),  # 24 GPUs against 18
        ([2] * 4 + [8], None, (8, "trace")),  # as many of each: the larger
        ([2] * 9 + [8], None, (2, "trace")),
        ([0, None], None, (8, "default")),
        ([4], 16, (16, "config")),
    ],
)
def test_gpus_per_node_are_those_with_most_gpus(gpus, configured, expected):
    nodes = pl.DataFrame({"gpu_count": gpus}, schema={"gpu_count": pl.Int64})
    assert node_gpus(nodes, configured, new_runs((64, None, 1))) == expected


def new_runs(*runs):
    """Make runs of (GPUs, nodes, days)."""
    rows = [(gpus, nodes, days * DAY, "infra_failure") for gpus, nodes, days in runs]
    schema = {"gpu_count": pl.Int64, "nodes": pl.Int64, "duration_s": pl.Int64, "event": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([(1, 1, 99), (16, 2, 1), (8, 8, 1)], (8, "jobs")),  # runs that share a node do not show its size
        ([(6, 2, 4), (16, 2, 1)], (3, "jobs")),  # by GPU time
        ([(1, 1, 9), (4, 1, 1)], (4, "jobs")),  # no run on several nodes: the most GPUs on one
        ([(7, 3, 1)], (3, "jobs")),  # rounded up
        ([(8, 1, 1), (8, None, 1), (8, None, 1)], (8, "default")),  # most are not recorded
        ([(8, 0, 1), (0, 4, 1)], (8, "default")),
        ([], (8, "default")),
    ],
)
def test_gpus_per_node_come_from_recorded_nodes(runs, expected):
    assert node_gpus(pl.DataFrame({"gpu_count": []}, schema={"gpu_count": pl.Int64}), None, new_runs(*runs)) == expected


@pytest.mark.parametrize(("origin", "expected"), [("jobs", [4, 1, 2]), ("config", [1, 1, 2]), (None, [1, 1, 2])])
def test_nodes_not_recorded_are_rounded_up(origin, expected):
    runs = new_runs((4, 4, 1), (4, None, 1), (9, 0, 1))
    assert runs.select(count_nodes(8, origin)).to_series().to_list() == expected
    assert sums_by_nodes(select_job_runs(runs, 8, origin))["nodes"].to_list() == sorted({*expected})
    assert runs.select(count_nodes(None)).to_series().to_list() == [4, None, 0]


# --- published references


@pytest.mark.parametrize(
    ("gpus", "hours"),
    [(8, 153.8 * 24), (1024, 28.8), (131_072, 0.225)],
)
def test_projections_of_6_5_failures_per_1000_node_days(gpus, hours):
    totals = sums((100, 1000, 65, 100 * DAY))
    rate = node_failure_rate(totals, "state", 8, "config", 128, UNLIMITED)
    assert select_row(rate, confidence=0.9)["failures_per_1000_node_days"] == 6.5
    row = select_row(mttf_by_gpus(totals, rate, 8), gpus_high=gpus)
    assert row["projected_mttf_s"] / 3600 == pytest.approx(hours, rel=2.5e-3)
    assert row["projected_low_s"] < row["projected_mttf_s"] < row["projected_high_s"]


# --- the 1/N law


@pytest.mark.parametrize(
    "rows",
    [
        [(1, 5, 9, 900), (2, 5, 3, 500), (5, 5, 12, 700), (40, 2, 20, 90)],
        # The fit converges in so few steps that the weights before the last one are not yet exact.
        [(1, 30, 30, 5_000_000), (2, 25, 25, 4_000_000), (4, 8, 8, 2_000_000)],
    ],
)
def test_the_slope_is_the_maximum_of_the_likelihood(rows):
    nodes, _, failures, exposure = np.array(rows).T
    best = sm.Poisson(failures, sm.add_constant(np.log(nodes)), exposure=exposure).fit(
        disp=0, tol=1e-14, method="newton"
    )
    row = select_row(size_law(sums(*rows), "state"), model="poisson")
    assert row["slope"] == pytest.approx(-best.params[1], abs=1e-6)
    error = best.bse[1]
    assert row["slope_se"] == pytest.approx(error, rel=1e-10)
    assert row["ci_high"] - row["ci_low"] == pytest.approx(2 * 1.959963984540054 * error, rel=1e-5)
    assert row["p_value"] == pytest.approx(2 * stats.norm.sf(abs(row["slope"] + 1) / error), rel=1e-4)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], NO_GPU_JOB),
        ([(3, 4, 2, 10), (4, 1, 3, 0)], "one size only"),
        ([(1, 1, 0, 10), (2, 1, 0, 10)], "no failures"),
        ([(1, 1, 5, 10), (2, 1, 0, 10)], "all failures are of the smallest size, so the slope has no finite estimate"),
        ([(1, 1, 0, 10), (2, 1, 4, 10)], "all failures are of the largest size, so the slope has no finite estimate"),
    ],
)
def test_a_slope_without_an_estimate_is_blank(rows, reason):
    table = size_law(sums(*rows), "state")
    assert table["reason"].to_list() == [reason] * 2
    assert table["slope"].null_count() == 2
    assert table["verdict"].to_list() == [TOO_FEW if reason == "no failures" else None] * 2


def test_few_failures_give_no_dispersion():
    poisson, quasi = size_law(sums((1, 9, 2, 90), (2, 9, 3, 90), (4, 2, 1, 9)), "state").iter_rows(named=True)
    assert poisson["slope"] is not None and poisson["dispersion"] is None
    assert quasi["slope"] is None and quasi["reason"]
    assert poisson["verdict"] == quasi["verdict"] == TOO_FEW


def test_failures_in_clusters_widen_the_interval():
    rows = [(nodes, 10, count, 10**6) for nodes, count in ((1, 40), (2, 5), (4, 90), (8, 20), (16, 300))]
    poisson, quasi = size_law(sums(*rows), "state").iter_rows(named=True)
    assert poisson["slope"] == quasi["slope"]
    assert quasi["dispersion"] > 10
    assert quasi["slope_se"] == pytest.approx(poisson["slope_se"] * quasi["dispersion"] ** 0.5)
    # The dispersion is an estimate, so its quantiles are Student's; those of the Poisson error are normal.
    for row, distribution in ((quasi, stats.t(quasi["df"])), (poisson, stats.norm)):
        assert row["ci_high"] - row["slope"] == pytest.approx(distribution.ppf(0.975) * row["slope_se"], rel=1e-9)
        assert row["p_value"] == pytest.approx(2 * distribution.sf(abs(row["slope"] + 1) / row["slope_se"]), rel=1e-9)
    effect = (quasi["detectable_high"] + 1) / quasi["slope_se"]
    assert stats.nct.sf(stats.t.ppf(0.975, quasi["df"]), quasi["df"], effect) == pytest.approx(0.8, abs=1e-6)


def simulate_laws(nodes, failures, slope, dispersion, count, seed):
    """Yield tables of the law for simulated sizes with equal shares of the expected failures under the law."""
    rng = np.random.default_rng(seed)
    exposure = 10**9 // nodes
    mean = failures * (shares := exposure * nodes ** -float(slope)) / shares.sum()
    for _ in range(count):
        cluster_mean = rng.gamma(mean / (dispersion - 1), dispersion - 1) if dispersion > 1 else mean
        counts = rng.poisson(cluster_mean)
        totals = sums(*zip(nodes.tolist(), counts.tolist(), counts.tolist(), exposure.tolist(), strict=True))
        yield size_law(totals, "state")


@pytest.mark.parametrize("dispersion", [1, 4])
@pytest.mark.parametrize("sizes", [3, 8])
def test_a_true_law_is_rejected_in_at_most_one_of_twenty_runs(sizes, dispersion):
    tables = list(simulate_laws(2 ** np.arange(sizes), 300, -1, dispersion, 150, sizes))
    rejected = [(table["p_value"][1] or 1) < 0.05 for table in tables]
    assert sum(rejected) <= 150 * 0.05 + 3 * (150 * 0.05 * 0.95) ** 0.5
    verdicts = [table["verdict"][0] for table in tables]
    assert [verdict == REJECTED for verdict in verdicts] == rejected
    # Three sizes leave one degree of freedom, which is too few for a verdict.
    assert verdicts.count(AGREES) > 120 or sizes == 3


@pytest.mark.parametrize(("failures", "sizes"), [(10, 8), (30, 2), (30, 5)])
def test_few_failures_independent_of_size_do_not_agree_with_the_law(failures, sizes):
    tables = simulate_laws(2 ** np.arange(sizes), failures, 0, 1, 100, failures + sizes)
    verdicts = [table["verdict"][0] for table in tables]
    assert verdicts.count(AGREES) <= 2
    assert verdicts.count(TOO_FEW) > 80


def test_many_failures_that_do_not_depend_on_size_reject_the_law():
    tables = simulate_laws(2 ** np.arange(6), 500, 0, 2, 50, 0)
    assert [table["verdict"][0] for table in tables].count(REJECTED) >= 48


SIZE = st.tuples(st.integers(1, 20_000), st.integers(1, 5), st.integers(0, 40), st.integers(0, 10**9))


@given(st.lists(SIZE, max_size=8, unique_by=lambda row: row[0]), st.sampled_from([1, 4, 6, 8]), st.integers(0, 300))
def test_any_sums_give_finite_tables_with_a_reason_for_every_blank(rows, gpus_per_node, above):
    totals = sums(*rows).sort("nodes")
    rate = node_failure_rate(totals, "proxy", gpus_per_node, "trace", above, UNLIMITED)
    table, law = mttf_by_gpus(totals, rate, gpus_per_node), size_law(totals, "proxy")
    for frame in (rate, table, law):
        assert frame.select(pl.selectors.float()).unpivot()["value"].drop_nulls().is_finite().all()
    assert table["jobs"].sum() == totals["jobs"].sum()
    assert table.filter(pl.col("mttf_s").is_null() & pl.col("reason").is_null()).is_empty()
    assert law.filter(pl.col("slope").is_null() & pl.col("reason").is_null()).is_empty()
    assert rate.filter(pl.col("failures_per_node_day").is_null() & pl.col("reason").is_null()).is_empty()
    size_numbers(table, rate, law)


# --- simulation


def test_a_simulated_cluster_is_covered_and_has_slope_minus_one():
    rng = np.random.default_rng(20251)
    rate_per_day = 6.5e-3
    covered = {0.9: 0, 0.95: 0}
    slopes, projected, rounds = [], 0, 150
    for _ in range(rounds):
        nodes = 2 ** rng.integers(0, 9, 1200)
        limit = rng.exponential(2.0, 1200)
        failure = rng.exponential(1 / (rate_per_day * nodes))
        days = np.minimum(limit, failure)
        totals = sums_by_nodes(
            select_job_runs(
                pl.DataFrame(
                    {
                        "gpu_count": 8 * nodes,
                        "duration_s": (days * DAY).astype(np.int64),
                        "event": ["infra_failure" if failed else None for failed in failure < limit],
                    },
                    schema={"gpu_count": pl.Int64, "duration_s": pl.Int64, "event": pl.String},
                ),
                8,
            )
        )
        rate = node_failure_rate(totals, "state", 8, "trace", 128, UNLIMITED)
        for row in rate.iter_rows(named=True):
            assert row["above_gpus"] == 128
            covered[row["confidence"]] += row["ci_low_per_node_day"] <= rate_per_day <= row["ci_high_per_node_day"]
        row = select_row(mttf_by_gpus(totals, rate, 8), gpus_high=131_072)
        projected += row["projected_low_s"] <= DAY / (16_384 * rate_per_day) <= row["projected_high_s"]
        law = select_row(size_law(totals, "state"), model="poisson")
        slopes.append((law["slope"], law["ci_low"] <= -1 <= law["ci_high"]))
    # The coverage is at most three standard errors below the nominal level; an exact interval may cover more.
    for confidence, count in covered.items():
        assert count / rounds >= confidence - 3 * (confidence * (1 - confidence) / rounds) ** 0.5
    assert projected == covered[0.9]
    values = np.array([slope for slope, _ in slopes])
    assert abs(values.mean() + 1) < 4 * values.std() / rounds**0.5 + 0.01
    assert abs(np.mean([covers for _, covers in slopes]) - 0.95) <= 3 * (0.95 * 0.05 / rounds) ** 0.5


# --- tables, numbers, chart


def size_numbers(by_gpus, rate, law):
    return compute_metrics("measure_sizes", {"mttf_by_gpus": by_gpus, "node_failure_rate": rate, "size_law": law})


ROWS = ((1, 90, 40, 90 * DAY), (4, 50, 60, 40 * DAY), (64, 20, 35, 3 * DAY), (128, 1, 0, DAY))


def make_tables(basis="state", rows=ROWS, limit=UNLIMITED):
    totals = sums(*rows)
    rate = node_failure_rate(totals, basis, 8, "trace", 128, limit)
    return mttf_by_gpus(totals, rate, 8), rate, size_law(totals, basis)


def test_numbers():
    metrics = size_numbers(*make_tables(limit=replace(UNLIMITED, largest_run=125)))
    # It is not 1,024 GPUs, the upper bound of its bucket.
    assert metrics["sizes.largest_run.gpus"]["value"] == 1000
    low, high = (metrics[f"sizes.law.detectable_{end}"]["value"] for end in ("low", "high"))
    assert (low + high, high) == pytest.approx((-2, make_tables()[2]["detectable_high"][1]))
    assert "sizes.rate.ci_high" not in size_numbers(*make_tables(rows=[]))


@pytest.mark.parametrize("basis", ["state", "proxy"])
def test_the_chart_names_the_kind_of_failures_and_shades_what_is_projected(basis):
    by_gpus, rate, _ = make_tables(basis)
    figure = draw_chart(by_gpus, rate, Study("job"))
    assert ("any cause" in figure.title) == (basis == "proxy")
    assert len(figure.datasets["measured"]) == 4
    assert len(figure.datasets["projected"]) == by_gpus.height
    largest = max(row["gpus"] for row in figure.datasets["measured"])
    assert largest < figure.datasets["beyond"][0]["from"] < 2 * largest, "shaded beyond the largest run"
    assert any("mttf" not in row for row in figure.datasets["measured"]), "a size without failures has only a bound"
    figure.spec(validate=True)
    by_gpus, rate, _ = make_tables(limit=ProjectionLimit(128, 0, "it cannot be told", "more"))
    figure = draw_chart(by_gpus, rate, Study("job"))
    assert figure.datasets["projected"] == figure.datasets["beyond"] == []
    draw_chart(*make_tables(rows=[])[:2], Study("job")).spec()
