"""The GPU-hour ledger against values by hand and counts per second; its categories always add up."""

import random
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pytest
from filled_texts import filled
from hypothesis import given, settings
from hypothesis import strategies as st
from made_placements import complete_placements, make_jobs, make_nodes, make_placements
from made_runs import make_run_rows, make_trace
from memory_tables import compute_metrics
from polars.testing import assert_frame_equal
from ttf.analyses.lost import account_gpu_hours as category
from ttf.analyses.lost.account_gpu_hours import LEDGER, UNUSED, USED
from ttf.analyses.lost.account_gpu_hours.category_labels import LABELS
from ttf.analyses.lost.account_gpu_hours.charts import gpu_hours_account
from ttf.analyses.lost.account_gpu_hours.compute import compute, sum_block
from ttf.analyses.lost.account_gpu_hours.ledger_rows import (
    NO_CAPACITY,
    build_ledger,
    category_notes,
    list_categories,
    name_unused,
    summarise_ledger,
)
from ttf.analyses.lost.account_gpu_hours.spent import merge_sums, sum_gpu_time, with_known_time
from ttf.analyses.lost.account_gpu_hours.unused import (
    UNAVAILABLE_KINDS,
    Steps,
    account_in_windows,
    measure_unavailable,
    split_unused,
    unavailable_intervals,
)
from ttf.analyses.lost.measure_losses.page import list_productive_keys
from ttf.analyses.queue.reconstruct_occupancy import OCCUPANCY_BASIS
from ttf.display import phrases
from ttf.display.charts.figure import Study
from ttf.display.trace_numbers import Numbers
from ttf.records.gpu_allocations import load_gpu_allocations
from ttf.records.infra import infra_durations
from ttf.records.inputs import Inputs
from ttf.records.months import Months
from ttf.records.record_contracts import EXPOSURE, OUTAGES
from ttf.records.runs import GPU_HOUR, gpu_allocations, iterate_blocks

list_productive_keys = filled(list_productive_keys)

HOUR, DAY = 3600, 86_400
SETTINGS = {"checkpoint_interval_s": 2 * HOUR, "restart_s": 300, "owners": 2, "prices": {}}


def make_runs(*rows: dict, basis="state") -> pl.LazyFrame:
    """Make runs; unset columns are those of a successful run on one GPU from 0 for an hour."""
    runs = make_run_rows(rows, runtime_s=HOUR, outcome="success", basis=basis)
    partition = pl.Series("partition", [row.get("partition") for row in rows], pl.String)
    return with_known_time(runs.with_columns(partition))


def hours(sums: pl.DataFrame, *keys: str) -> dict:
    totals = sums.group_by("category", *keys).agg(pl.col("milli_s").sum())
    return {key[0] if not keys else key[:-1]: key[-1] / GPU_HOUR for key in totals.iter_rows()}


def test_categories_of_used_gpu_time_by_hand():
    runs = make_runs(
        {"gpu_milli": 8000},
        {"outcome": "failure", "infra": True, "runtime_s": 3 * HOUR, "gpu_milli": 4000},  # loses the last hour
        {"outcome": "failure", "infra": True, "runtime_s": 1800, "again": True},  # loses all of it, without a restart
        {"outcome": "failure", "timed_out": True},
        {"outcome": "failure"},
        {"outcome": "cancelled", "preempted": True},
        {"outcome": "cancelled"},
        {"outcome": "running"},
        {"outcome": None},
        {"again": True, "runtime_s": HOUR},
        {"runtime_s": None},
        {"gpu_milli": 0},
    )
    sums = sum_gpu_time(runs, Months(0, 3 * HOUR), 2 * HOUR, 300)
    assert hours(sums) == {
        category.PRODUCTIVE: 8 + 55 / 60,
        category.INFRA_KEPT: 8,
        category.INFRA_LOST: 4.5,
        category.TIME_LIMIT: 1,
        category.FAILED: 1,
        category.PREEMPTED: 1,
        category.CANCELLED: 1,
        category.RUNNING: 1,
        category.UNKNOWN: 1,
        category.RESTART: 5 / 60,
    }
    assert dict(sums.select("category", "begins").iter_rows())[category.INFRA_LOST] == 2
    proxy = make_runs({"outcome": "failure", "infra": True}, basis="proxy")
    assert hours(sum_gpu_time(proxy, Months(0, HOUR), 2 * HOUR, 300)) == {category.FAILED_UNRECORDED: 1}
    assert category.INFRA_LOST not in list_categories("proxy", {})


def test_months_divide_the_time_of_runs():
    new_year = 1_735_689_600
    months = Months(new_year - DAY, new_year + 32 * DAY)
    assert months.month_names == ["2024-12", "2025-01", "2025-02"]
    assert months.edges_s == [new_year - DAY, new_year, new_year + 31 * DAY, new_year + 32 * DAY]
    runs = make_runs({"start_s": new_year - HOUR, "runtime_s": 31 * DAY + 2 * HOUR, "gpu_milli": 2000})
    sums = merge_sums([sum_gpu_time(runs, months, HOUR, 0)])
    assert hours(sums, "month") == {("productive", 0): 2, ("productive", 1): 2 * 24 * 31, ("productive", 2): 2}
    assert sums["attempts"].to_list() == [1, 1, 1] and sums["begins"].to_list() == [1, 0, 0]
    assert Months(500, 500 + 30 * DAY).month_names == ["days 1 to 28", "days 29 to 56"]


TIMES = st.integers(0, 24)
SPAN = st.tuples(TIMES, TIMES).map(sorted)


@given(
    st.lists(st.tuples(SPAN, st.integers(1, 3), st.sampled_from("abc"))),
    st.lists(st.tuples(SPAN, st.booleans(), st.sampled_from("abcd"))),
    st.lists(st.tuples(SPAN, st.sampled_from("abd")), unique_by=lambda row: row[1]),
)
def test_unavailable_gpu_time_matches_a_count_by_second(gpu_use, outages, observed):
    rows = [(f"j{n}", node, *span, 1000 * gpus) for n, (span, gpus, node) in enumerate(gpu_use)]
    nodes = make_nodes(a=4, d=2)  # b and c have no entry: their capacity is the most GPUs in use at once
    capacity = {"a": 4, "d": 2} | {
        node: max(sum(g for (s, e), g, n in gpu_use if n == node and s <= t < e) for t in range(25)) for node in "bc"
    }
    down = pl.DataFrame(
        [{"unit_id": n, "node": n, "start_s": s, "seen_until_s": e, "planned": p} for (s, e), p, n in outages],
        schema={name: OUTAGES.schema[name] for name in ("unit_id", "node", "start_s", "seen_until_s", "planned")},
    )
    exposure = pl.DataFrame(
        [{"unit_id": n, "node": n, "from_s": s, "until_s": e} for (s, e), n in observed],
        schema={name: EXPOSURE.schema[name] for name in ("unit_id", "node", "from_s", "until_s")},
    )
    with TemporaryDirectory() as folder:
        frames = make_placements(rows).lazy(), make_jobs([]).lazy(), nodes
        result = measure_unavailable(
            load_gpu_allocations(*frames, None, Path(folder))[0],
            unavailable_intervals(down, exposure, 0, 24),
            pl.Series([*"abcd", "e"]),
        )
    assert result.capacity_milli == 1000 * sum(capacity.values())
    assert result.unsized == 1 + sum(not capacity[node] for node in "bc")
    expected = np.zeros((len(UNAVAILABLE_KINDS), 24), int)
    for node, gpus in capacity.items():
        for t in range(24):
            unused = max(gpus - sum(g for (s, e), g, n in gpu_use if n == node and s <= t < e), 0)
            kinds = [0 if not p else 1 for (s, e), p, n in outages if n == node and s <= t < e]
            kinds += [2 for (s, e), n in observed if n == node and not s <= t < e]
            if kinds:
                expected[min(kinds), t] += 1000 * unused
    assert [Steps.from_changes(*step).values_at(np.arange(24)).tolist() for step in result.changes] == expected.tolist()


def steps(seed: random.Random, limit: int, size: int) -> Steps:
    times = np.array([seed.randrange(-5, 60) for _ in range(size)])
    return Steps(np.unique(times), np.array([seed.randrange(limit) for _ in np.unique(times)]))


@given(st.integers(0, 10**6), st.integers(0, 12), st.booleans(), st.integers(1, 60))
def test_the_ledger_adds_up_in_every_month_and_by_windows_of_any_length(seed, size, has_waits, window_s):
    seed = random.Random(seed)
    used, unavailable = steps(seed, 9000, size), [steps(seed, 1000, size) for _ in UNAVAILABLE_KINDS]
    waits = steps(seed, 5000, size) if has_waits else None
    edges = sorted({0, 50, *(seed.randrange(1, 50) for _ in range(3))})
    unused = split_unused(used, 6000, unavailable, waits, edges)
    for month, (begin, end) in enumerate(pairwise(edges)):
        times = np.arange(begin, end)
        assert sum(values[month] for values in unused.values()) + used.values_at(times).sum() == 6000 * (end - begin)
        free = np.maximum(6000 - used.values_at(times) - sum(curve.values_at(times) for curve in unavailable), 0)
        waited = 0 if waits is None else np.minimum(waits.values_at(times), free)
        assert unused[category.FREE_WAITED][month] == np.sum(waited)
        assert unused[category.ABOVE_CAPACITY][month] <= 0
    curves = [used, *unavailable, *([waits] if has_waits else [])]
    first, *others = [(curve.times_s, np.diff(curve.values, prepend=0)) for curve in curves]
    waited = others.pop() if has_waits else None
    assert account_in_windows(first, 6000, others, waited, edges, window_s) == unused


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.integers(0, 40), st.booleans(), st.integers(1, 9))
def test_blocks_of_jobs_give_the_same_sums(seed, n, with_attempts, size):
    jobs, attempts = make_trace(seed, n, with_attempts)
    durations = infra_durations(jobs, attempts, {"states": ["NODE_FAIL"]}).lazy()

    def sums(size: int) -> pl.DataFrame:
        blocks = iterate_blocks(jobs.lazy(), None if attempts is None else attempts.lazy(), durations, None, size)
        return merge_sums(sum_block(*block, 0, 2 * HOUR, 300) for block in blocks)

    whole, gpu_use = sums(1000), gpu_allocations(jobs.lazy(), None if attempts is None else attempts.lazy())
    assert_frame_equal(sums(size), whole)
    assert (
        whole["milli_s"].sum() == gpu_use.select(pl.col("gpu_milli").dot(pl.col("until_s") - pl.col("start_s"))).item()
    )


def test_indistinguishable_categories_are_merged_under_one_name():
    unused = {name: [1] for name in (*UNAVAILABLE_KINDS, category.FREE_WAITED, category.FREE, category.ABOVE_CAPACITY)}
    assert set(name_unused(unused, True, True)) == set(unused)
    assert set(name_unused(unused, False, True)) == {category.IDLE_WAITED, category.IDLE, category.ABOVE_CAPACITY}
    assert set(name_unused(unused, True, False)) == {*UNAVAILABLE_KINDS, category.NOT_IN_USE, category.ABOVE_CAPACITY}
    assert set(name_unused(unused, False, False)) == {category.NOT_IN_USE, category.ABOVE_CAPACITY}
    assert {*USED, *UNUSED, category.ABOVE_CAPACITY} == set(LABELS)


SUMS = pl.DataFrame(
    [
        ("productive", "x", None, 0, 6 * GPU_HOUR, 2, 2),
        ("productive", "y", None, 0, 1 * GPU_HOUR, 1, 1),
        ("failed", "z", None, 1, 2 * GPU_HOUR, 1, 1),
        ("failed", None, None, 1, 1 * GPU_HOUR, 1, 1),
    ],
    schema={
        **dict.fromkeys(("category", "account", "partition"), pl.String),
        "month": pl.Int64,
        "milli_s": pl.Int128,
        "attempts": pl.Int64,
        "begins": pl.Int64,
    },
    orient="row",
)
UNUSED_BY_MONTH = {category.FREE: [3 * GPU_HOUR, 0], category.DOWN: [0, 7 * GPU_HOUR], category.ABOVE_CAPACITY: [0, 0]}


def example_ledger(prices=None, unused=UNUSED_BY_MONTH) -> pl.DataFrame:
    notes = category_notes(HOUR, 300, True, 3)
    table = build_ledger(SUMS, unused, ["1", "2"], "state", notes, prices or {}, 1)
    LEDGER.check(table)
    return table


def test_the_scopes_of_the_ledger():
    table = example_ledger()
    totals = table.group_by("scope_by", "scope", maintain_order=True).agg(pl.col("gpu_hours", "share").sum())
    assert totals.rows() == [
        ("all", "all", 20.0, 1.0),
        ("account", "x", 6.0, 1.0),
        ("account", "other", 3.0, 1.0),
        ("account", None, 1.0, 1.0),
        ("month", "1", 10.0, 1.0),
        ("month", "2", 10.0, 1.0),
    ]
    total = table.filter(scope_by="all")
    assert total.filter(category="productive").select("attempts", "share").row(0) == (3, 0.35)
    assert "left out: 3" in total.filter(category="down")["note"].item()
    assert category.ABOVE_CAPACITY not in total["category"] and category.PREEMPTED in total["category"]
    used_only = example_ledger(unused={})
    assert used_only.filter(scope_by="all")["share"].sum() == 1 and NO_CAPACITY in used_only["reason"][0]
    assert set(used_only["category"]) <= set(USED)


def test_cost_energy_and_emissions_of_gpu_hours():
    reasons = example_ledger({"price_per_gpu_hour": 2.0})["reason"]
    assert reasons[0] == "not set: ledger.gpu_power_w, ledger.co2_kg_per_kwh"
    prices = {"price_per_gpu_hour": 2.5, "currency": "EUR", "gpu_power_w": 400, "idle_power_w": 100, "pue": 1.5}
    table = example_ledger(prices | {"co2_kg_per_kwh": 0.5}).filter(scope_by="all")
    cost_by_category = {row[0]: row[1:] for row in table.select("category", "cost", "kwh", "co2_kg").iter_rows()}
    assert cost_by_category["productive"] == pytest.approx((17.5, 7 * 0.6, 7 * 0.3))
    assert cost_by_category["down"] == pytest.approx((17.5, 7 * 0.15, 7 * 0.075))
    assert table["reason"].null_count() == table.height and set(table["currency"]) == {"EUR"}


def write_inputs(tmp_path: Path, **frames: pl.DataFrame) -> Inputs:
    for name, frame in frames.items():
        frame.write_parquet(tmp_path / f"{name}.parquet")
    files = {name: str(tmp_path / f"{name}.parquet") for name in frames}
    return Inputs(files, {"occupancy_basis": OCCUPANCY_BASIS}, SETTINGS, "t", str(tmp_path / "ledger.csv"))


def test_the_ledger_of_a_trace_with_an_outage_and_waiting(tmp_path):
    """Two servers of two GPUs for four hours: b is down for an hour while a job waits, and later free."""
    jobs = make_jobs(
        [
            ("1", "x", 0, 0, 4 * HOUR, 2000),
            ("2", "y", 0, 0, HOUR, 2000),
            ("3", "y", HOUR, 2 * HOUR, 3 * HOUR, 1000),
        ],
        end=4 * HOUR,
    ).with_columns(runtime_s=pl.col("end_s") - pl.col("start_s"))
    placements = make_placements(
        [("1", "a", 0, 4 * HOUR, 2000), ("2", "b", 0, HOUR, 2000), ("3", "b", 2 * HOUR, 3 * HOUR, 1000)]
    )
    placements, *_ = complete_placements(placements, jobs)
    outage = {"trace": "t", "unit_id": "b", "node": "b", "start_s": HOUR, "end_s": 2 * HOUR, "seen_until_s": 2 * HOUR}
    outage |= {"duration_s": HOUR, "planned": False, "counted": True, "records": 1}
    exposure = [{"trace": "t", "unit_id": node, "node": node, "from_s": 0, "until_s": 4 * HOUR} for node in "ab"]
    frames = {
        "jobs": jobs,
        "durations_infra": infra_durations(jobs, None, {}),
        "placements": placements,
        "nodes": make_nodes(),
        "outages": OUTAGES.frame([outage]),
        "exposure": EXPOSURE.frame(exposure),
    }
    tables = compute(write_inputs(tmp_path, **frames))
    table, summary = tables["ledger"], tables["ledger_summary"]
    LEDGER.check(table)
    total = table.filter(pl.col("scope_by") == "all", pl.col("gpu_hours") != 0)
    assert dict(total.select("category", "gpu_hours").iter_rows()) == {"productive": 11, "down": 2, "free": 3}
    assert table.filter(scope_by="account").select("scope", "gpu_hours").rows() == [("x", 8.0), ("y", 3.0)]
    assert summary.rows() == [(11, None, 16)]
    chart = gpu_hours_account({"ledger": table}, Study())
    assert [row["to"] for row in chart.datasets["parts"]] == [11 / 16, 13 / 16, 1]
    chart.spec(validate=True)
    # Without a number of GPUs, only used time is counted.
    for name in ("outages", "exposure", "nodes", "placements"):
        (tmp_path / f"{name}.parquet").unlink()
    used = compute(write_inputs(tmp_path, jobs=jobs, durations_infra=frames["durations_infra"]))["ledger"]
    assert used.filter(scope_by="all")["gpu_hours"].sum() == 11 and "used time only" in used["reason"][0]


def test_the_page_gives_the_productive_share_if_records_fit_the_capacity():
    def key(above_hours: float, **hours: float) -> list:
        milli = {category.FREE: [2 * GPU_HOUR, 0], category.ABOVE_CAPACITY: [0, round(-above_hours * GPU_HOUR)]}
        table = example_ledger(unused=milli)
        metrics = compute_metrics("account_gpu_hours", {"ledger": table, "ledger_summary": summarise_ledger(table)})
        for name, value in hours.items():
            metrics[f"ledger.{name}.gpu_hours"] |= {"value": value}
        return list_productive_keys(Numbers(metrics))

    assert [(phrases.strip_markup(fact.value), phrases.strip_markup(fact.note)) for fact in key(0)] == [
        ("58.3%", "of capacity, 12.0 GPU-h")
    ]
    assert len(key(0.5)) == 1 and key(2) == []
    # In openb, nine tenths of GPU time are pods without a known end, so 0.018% of capacity would mislead.
    assert len(key(0, running=4.9)) == 1 and key(0, running=2.6, unknown=2.6) == []
    assert list_productive_keys(Numbers({})) == []
