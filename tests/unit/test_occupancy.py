"""Occupancy against a simulation by second and values by hand, with edge cases."""

import numpy as np
import polars as pl
import pytest
from drawn_figures import draw_svg
from hypothesis import given
from hypothesis import strategies as st
from made_placements import PLACED, compute_occupancy, make_jobs, make_nodes, make_placements
from memory_tables import TableInputs, compute_metrics
from memory_tables import one_row as row
from ttf.analyses.queue.reconstruct_occupancy.charts import gpus_in_use
from ttf.analyses.queue.reconstruct_occupancy.delay_causes import CAUSES
from ttf.display.charts.figure import Study
from ttf.engine.storage.spill import Spill
from ttf.records import gpu_allocations as holdings
from ttf.records.gpu_allocations import split_evenly

# Two servers of 4 GPUs. a: 4 GPUs of x from 0 to 10; b: 2 of y from 5 to 15; c: 1 of y from 10 to 20.
TWO_SERVERS = make_placements([("a", "x", 0, 10, 4000), ("b", "y", 5, 15, 2000), ("c", "y", 10, 20, 1000)])


def test_capacity_is_recorded_or_the_peak_use_and_use_above_it_is_cut_off():
    parts = make_placements(
        [("a", "x", 0, 10, 3000), ("b", "x", 5, 10, 2500), ("c", "y", 0, 10, 1500), ("d", "y", 9, 10, 1000)]
    )
    basis = compute_occupancy(parts, nodes=make_nodes(x=4, z=8, cpu_only=0))["occupancy_basis"].row(0, named=True)
    # x has 4 recorded GPUs, y 3 (2.5 rounded up), and z 8 but is never used.
    assert (basis["servers"], basis["servers_by_use"], basis["gpus"]) == (3, 1, 15)
    # x: 3 x 5 + 5.5 x 5 GPU-seconds, 1.5 x 5 above capacity; y: 1.5 x 10 + 1.
    assert basis["above_capacity_share"] == 7.5 / (15 + 27.5 + 16)


def test_placements_without_a_known_time():
    names = (*PLACED, "outcome")
    parts = make_placements(
        [
            ("a", "x", 0, None, 1000, "running"),
            ("b", "x", 0, None, 1000, None),
            ("c", "x", None, 5, 1000, "success"),
            ("d", "x", 7, 5, 1000, "success"),
            ("e", "x", 5, 5, 1000, "success"),  # no duration
            ("f", "x", 5, 6, 0, "success"),
            ("g", "x", 5, 6, None, "success"),
        ],
        names,
    )
    basis = compute_occupancy(parts, make_jobs([("a", None, 0, 0, None, 1000)], end=100))["occupancy_basis"].row(
        0, named=True
    )
    assert (basis["placements"], basis["left_out"], basis["end_s"]) == (5, 3, 100)


def test_no_gpu_was_allocated():
    tables = compute_occupancy(make_placements([]), nodes=make_nodes(x=8))
    for name in ("occupancy", "fragmentation", "load_over_time"):
        assert tables[name].height == 0
    assert set(tables["server_sharing"]["reason"]) == {"no attempt of this size"}
    assert tables["delay_causes"]["reason"].null_count() == 0
    reason = compute_metrics("reconstruct_occupancy", tables)["occupancy.reason"]["value"]
    assert reason == "no placement held a GPU for a known time"


def test_gpus_of_a_run_are_spread_over_its_nodes():
    names = ("job_id", "attempt", "node", "start_s", "end_s", "gpu_milli")
    parts = make_placements([("a", 0, n, 0, 9, None) for n in "wxyz"] + [("a", 1, "w", 9, 12, 2000)], names)
    attempts = pl.DataFrame(
        {"job": [0, 0, 1], "job_id": ["a", "a", "b"], "attempt": [0, 1, 0], "gpu_milli": [10_000, 2000, 1]}
    )
    index = np.arange(4)
    jobs = make_jobs([(name, None, 0, 0, 12, 1000) for name in "ab"])
    basis = compute_occupancy(parts, jobs, attempts=attempts)["occupancy_basis"].row(0, named=True)
    assert (basis["spread"], basis["placements"], basis["gpus"]) == (4, 5, 3 + 3 + 2 + 2)
    assert split_evenly(np.full(4, 1250), np.full(4, 4), index).tolist() == [313, 313, 312, 312]


def test_load_over_time_by_hand():
    jobs = make_jobs([("a", None, 0, 0, 10, 4000), ("b", None, 2, 5, 15, 2000), ("cpu", None, 0, 0, 20, 0)])
    long_trace = make_placements([("a", "x", 30, 90, 4000), ("b", "x", 100, 130, 2000)])
    table = compute_occupancy(long_trace, jobs)["load_over_time"]
    # The first step ends at the full minute.
    assert table["start_s"].to_list() == [30, 60, 120]
    assert table["time_s"].to_list() == [30, 60, 10]
    assert table["gpus_in_use_mean"].to_list() == [4.0, (4 * 30 + 2 * 20) / 60, 2.0]
    assert table["gpus_in_use_max"].to_list() == [4.0, 4.0, 2.0]
    assert table["gpus_in_use_share"].to_list() == [1.0, (4 * 30 + 2 * 20) / 240, 0.5]


def test_a_long_trace_has_few_steps():
    table = compute_occupancy(make_placements([("a", "x", 0, 10**9, 1000), ("b", "x", 5, 6, 1000)]))["load_over_time"]
    assert table.height <= 150
    assert table["time_s"].sum() == 10**9


# --- the proxy for causes of waiting

# Servers x and y of 4 GPUs. Account p never has more than 6 GPUs in use, q never more than 5.
ALLOCATIONS = [
    ("p1", "x", 0, 1000, 4000),
    ("p2", "y", 0, 400, 2000),
    ("q1", "y", 100, 500, 1000),
    ("q2", "x", 1000, 3000, 2000),
    ("q3", "y", 1200, 3000, 3000),
    ("p3", "x", 5000, 5100, 1000),
]
JOBS = [
    # These jobs did not wait, or too briefly.
    ("p1", "p", 0, 0, 1000, 4000),
    ("p2", "p", 0, 0, 400, 2000),
    ("q1", "q", 40, 100, 500, 1000),
    ("q2", "q", 1000, 1000, 3000, 2000),
    ("q3", "q", 1200, 1200, 3000, 3000),
]


def test_without_accounts_the_cause_is_blank():
    table = compute_occupancy(TWO_SERVERS, make_jobs([("a", None, 0, 100, 200, 1000)]))["delay_causes"]
    assert table["group"].to_list() == ["1", "2-4", "5-8", ">8", "all"]
    assert set(table["reason"]) == {"the trace names no account that a quota could belong to"}


# --- against a simulation by second

SPAN = 24
SERVERS = {"n0": 2, "n1": 4, "n2": None}
part = st.tuples(
    st.integers(0, 5),
    st.sampled_from(sorted(SERVERS)),
    st.integers(0, SPAN),
    st.integers(0, SPAN),
    st.sampled_from([0, 250, 500, 1000, 1500, 2000, 4000]),
)


@given(st.lists(part, min_size=1, max_size=14))
def test_agrees_with_a_simulation_by_second(rows):
    parts = [(f"j{job}", node, start, end, gpu) for job, node, start, end, gpu in rows]
    tables = compute_occupancy(
        make_placements(parts), nodes=make_nodes(**{name: gpus for name, gpus in SERVERS.items() if gpus})
    )
    allocations = [part for part in parts if part[4] > 0 and part[2] < part[3]]
    if not allocations:
        assert tables["occupancy"].height == 0
        return
    first_s = min(part[2] for part in allocations)
    in_use = {node: np.zeros(max(part[3] for part in allocations) - first_s, int) for node in SERVERS}
    for _, node, start, end, gpu in allocations:
        in_use[node][start - first_s : end - first_s] += gpu
    capacity = {"n0": 2000, "n1": 4000, "n2": -(-in_use["n2"].max() // 1000) * 1000}
    capacity = {node: milli for node, milli in capacity.items() if milli}
    limit = np.array([*capacity.values()])[:, None]
    used, total = np.minimum([in_use[node] for node in capacity], limit), limit.sum()
    load, free = used.sum(axis=0), limit - used
    tenth = np.minimum(load * 10 // total, 9)
    seconds = {f"{10 * k}-{10 * k + 10}%": tenth == k for k in range(10)} | {"all": tenth >= 0}
    for occupied in tables["occupancy"].iter_rows(named=True):
        at = seconds[occupied["load"]]
        n = at.sum()
        assert occupied["time_s"] == n
        if n:
            assert occupied["gpus_in_use_share"] == load[at].sum() / (total * n)
            assert occupied["servers_empty_share"] == (used[:, at] == 0).sum() / (len(capacity) * n)
            assert occupied["servers_full_share"] == (free[:, at] == 0).sum() / (len(capacity) * n)
            assert occupied["largest_free_gpus"] == (free[:, at].max(axis=0) // 1000).sum() / n
            assert occupied["free_gpus"] == free[:, at].sum() / (1000 * n)
    placeable = {str(level): free >= 1000 * level for level in (1, 2, 4, 8)} | {"whole server": used == 0}
    for occupied in tables["fragmentation"].iter_rows(named=True):
        at, fits = seconds[occupied["load"]], placeable[occupied["free_at_least"]]
        if at.any():
            assert occupied["placeable_time_share"] == fits[:, at].any(axis=0).sum() / at.sum()
            free_milli = free[:, at].sum()
            share = (free * fits)[:, at].sum() / free_milli if free_milli else None
            assert occupied["free_gpus_share"] == share
    # The first step of a minute has the whole span.
    assert tables["load_over_time"]["gpus_in_use_share"][0] == load.sum() / load.size / total
    # GPU time of attempts with several GPUs on servers without another attempt.
    gpus = {job: sum(part[4] for part in allocations if part[0] == job) for job, *_ in allocations}
    dedicated = multi_gpu = 0
    for job, node, start, end, gpu in allocations:
        is_shared = np.zeros(SPAN + 1, bool)
        for other, server, since, until, _ in allocations:
            is_shared[since:until] |= other != job and server == node
        dedicated += (gpus[job] > 1000) * gpu * (~is_shared[start:end]).sum()
        multi_gpu += (gpus[job] > 1000) * gpu * (end - start)
    sharing = row(tables["server_sharing"], group="all")
    assert sharing["dedicated_share"] == (dedicated / multi_gpu if multi_gpu else None)


@given(st.lists(part, min_size=1, max_size=12), st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=6))
def test_causes_agree_with_a_simulation(rows, waiting):
    """Simulate the moments at which jobs of two accounts start to wait."""
    parts = [(f"j{job}", node, start, end, gpu) for job, node, start, end, gpu in rows]
    allocations = [part for part in parts if part[4] > 0 and part[2] < part[3]]
    accounts = {f"j{job}": "even" if job % 2 == 0 else "odd" for job in range(6)}
    jobs = [(job, account, 0, 0, 9, 1000) for job, account in accounts.items()]
    jobs += [(f"w{k}", "even", t, t + 100, t + 110, gpus * 1000) for k, (t, gpus) in enumerate(waiting)]
    capacity = {"n0": 2000, "n1": 4000, "n2": 4000}
    nodes = make_nodes(n0=2, n1=4, n2=4)
    table = compute_occupancy(make_placements(parts), make_jobs(jobs), nodes)["delay_causes"]
    if not allocations:
        assert table["reason"].null_count() == 0
        return

    def in_use(second, node=None, account=None):
        active = [part for part in allocations if part[2] <= second < part[3]]
        return sum(part[4] for part in active if node in (None, part[1]) and account in (None, accounts[part[0]]))

    peak = max(in_use(second, account="even") for second in range(SPAN + 1))
    quota = max([peak, 1000, *(gpus * 1000 for _, gpus in waiting)])
    counts = dict.fromkeys(CAUSES, 0)
    for t, gpus in waiting:
        free = sorted((milli - min(in_use(t, node), milli) for node, milli in capacity.items()), reverse=True)
        # The fewest servers: 4 GPUs each and one with the remainder.
        needs = [4000] * (gpus // 4) + [gpus % 4 * 1000] * (gpus % 4 > 0)
        fits = len(needs) <= 3 and all(milli >= need for milli, need in zip(free, needs, strict=False))
        cause = "room" if fits else "fragmentation" if sum(free) >= gpus * 1000 else "full"
        counts["fair_share" if in_use(t, account="even") + gpus * 1000 > quota else cause] += 1
    causes = table.filter((pl.col("group") == "all") & pl.col("cause").is_not_null())
    assert dict(causes.select("cause", "jobs").iter_rows()) == (counts if waiting else {})


def test_order_of_rows_blocks_and_windows_do_not_matter(monkeypatch):
    """Memory never holds more than the placements of some servers and of part of the time."""
    rng = np.random.default_rng(3)
    n = 3000
    start = rng.integers(0, 50_000, n)
    frame = pl.DataFrame(
        {
            "job_id": [f"j{k}" for k in rng.integers(0, 900, n)],
            "node": [f"n{k}" for k in rng.integers(0, 40, n)],
            "start_s": start,
            "end_s": start + rng.integers(0, 4000, n),
            "gpu_milli": rng.choice([250, 500, 1000, 2000, 8000], n),
        }
    )
    jobs = make_jobs([(f"j{k}", f"u{k % 7}", 10 * k, 10 * k + k % 300, 10 * k + 500, 1000) for k in range(900)])
    tables = compute_occupancy(make_placements(frame, PLACED), jobs)
    for name, rows in (("BLOCK_ROWS", 70), ("WINDOW_ROWS", 90), ("SAMPLE", 5)):
        monkeypatch.setattr(holdings, name, rows)
    monkeypatch.setattr("ttf.engine.storage.spill.WAITING_ROWS", 50)
    lengths, read = [], Spill.read

    def read_and_record(self, part):
        lengths.append(read(self, part).shape[1])
        return read(self, part)

    monkeypatch.setattr(Spill, "read", read_and_record)
    shuffled = compute_occupancy(make_placements(frame.sample(fraction=1, shuffle=True, seed=1), PLACED), jobs)
    for name, table in tables.items():
        assert table.equals(shuffled[name]), name
    assert tables["delay_causes"].filter(pl.col("cause").is_not_null()).height >= 8
    assert len(lengths) > 100
    assert max(lengths) < 400


# --- charts and numbers from the tables


@pytest.mark.parametrize(("days", "clock"), [(12, None), (12, "UTC"), (400, "UTC")])
def test_the_chart_has_the_mean_of_each_day(days, clock):
    day = 86_400
    # One of two GPUs is in use for the first half of each day, from the second day on.
    origin = 20_000 * day if clock else 0
    starts = [origin + k * day for k in range(1, days + 1)]
    placements = make_placements([(f"j{start}", "x", start, start + day // 2, 1000) for start in starts])
    chart = gpus_in_use(TableInputs(compute_occupancy(placements, nodes=make_nodes(x=2)), clock=clock), Study("job"))
    shares = [row["share"] for row in chart.datasets["load"]]
    if days == 12:
        # The record covers half of the last day.
        assert shares == pytest.approx([0.25] * 11 + [0.5])
        first = chart.datasets["load"][0]["at"]
        assert first == pytest.approx((origin + 1.5 * day) * 1000 if clock else 0.5)
    assert max(shares) <= 0.5
    draw_svg(chart)


def test_numbers_of_occupancy():
    waited = [("w", "p", 10, 5000, 5100, 1000), ("v", "p", 1300, 5000, 5100, 3000)]
    # A job that is not yet eligible does not wait.
    jobs = make_jobs([*JOBS, *waited, ("u", "p", 10, 5000, 5100, 1000)])
    jobs = jobs.with_columns(eligible_s=pl.when(job_id="u").then(4950))
    busy = compute_occupancy(make_placements(ALLOCATIONS), jobs, make_nodes(x=4, y=4))
    metrics = compute_metrics("reconstruct_occupancy", busy)
    assert metrics["occupancy.gpus"]["value"] == 8
    assert "occupancy.causes.fair_share.jobs_share" not in metrics
    unrecognised = metrics["occupancy.causes.unrecognised.jobs_share"]
    assert (unrecognised["value"], unrecognised["unit"], unrecognised["n"]) == (0.5, "share", 2)
    assert metrics["occupancy.two_thirds.servers_empty_share"]["value"] == 0  # 5 of 8 from 1200 to 3000
