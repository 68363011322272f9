"""Claims about RSC, and all of Helios, Acme and Philly: each quantity on a dozen rows.

The tables come from several trace formats, so a function per table builds the fewest rows that cover all claims.
"""

import polars as pl
from memory_tables import outcome_table
from plan_inputs import make_rate
from tested_claims import check_computed, claims_of
from trace_losses import loss_sums
from ttf.analyses.large_runs.measure_ettr.compute import measured_table
from ttf.analyses.lost.measure_losses.lost_work import lost_work
from ttf.analyses.nodes.find_lemon_nodes import LEMON_NODES
from ttf.analyses.nodes.find_lemon_nodes.compute import lemon_effect
from ttf.analyses.outcomes.describe_states.compute import build_size_mix, build_states, summarise_cluster
from ttf.analyses.scaling.measure_sizes.sizes import SUMS_SCHEMA, mttf_by_gpus, node_failure_rate
from ttf.page.replication.findings import claim_datasets
from ttf.page.replication.scorecard import scorecard
from ttf.records.infra import infra_durations
from ttf.records.jobs import JOB_COLUMNS
from ttf.records.runs import RUN_COLUMNS, add_previous_runs
from ttf.stats.large_runs.plans import Habits
from ttf.stats.large_runs.projection import ProjectionLimit

RSC_CLAIMS = claims_of(__file__)
# Without a trace only what is printed can be computed.
WITHOUT_TRACE = scorecard(RSC_CLAIMS, {}, lambda *_: None)
PRINTED = set(WITHOUT_TRACE.drop_nulls("computed")["id"])
OF_TRACES = [claim for claim in RSC_CLAIMS if claim["id"] not in PRINTED]
DAY = 86_400
STATES = {"COMPLETED": "success", "FAILED": "failure", "NODE_FAIL": "failure", "CANCELLED": "cancelled"}

# (state, GPUs, run time in hours), submitted 6 h apart with a wait of 0, 1, 2 ... min.
JOBS = [
    ("COMPLETED", 1, 1),
    ("COMPLETED", 1, 3),
    ("COMPLETED", 8, 2),
    ("COMPLETED", 0, 5),
    ("FAILED", 2, 4),
    ("FAILED", 1, 1),
    ("NODE_FAIL", 256, 2),
    ("PREEMPTED", 4096, 1),
    ("REQUEUED", 16, 1),
    ("TIMEOUT", 4, 10),
    ("OUT_OF_MEMORY", 1, 1),
    ("CANCELLED", 512, 1),
]


def jobs() -> pl.DataFrame:
    rows = [
        {
            "trace": "micro",
            "job_id": f"j{i}",
            "status_raw": state,
            "outcome": STATES.get(state, "failure"),
            "gpu_milli": 1000 * gpus,
            "size": 1,
            "submit_s": 21_600 * i,
            "start_s": 21_600 * i + 60 * i,
            "end_s": 21_600 * i + 60 * i + 3600 * hours,
            "queue_s": 60 * i,
            "runtime_s": 3600 * hours,
            "nodes": 1,
            "trace_end_s": 10**7,
        }
        for i, (state, gpus, hours) in enumerate(JOBS)
    ]
    return pl.DataFrame([{name: row.get(name) for name in JOB_COLUMNS} for row in rows], schema=JOB_COLUMNS)


def attempts() -> pl.DataFrame:
    """One attempt per job."""
    frame = jobs()
    return frame.select(
        "job_id",
        "start_s",
        "end_s",
        "runtime_s",
        "outcome",
        "gpu_milli",
        "nodes",
        attempt=pl.lit(0),
        state="status_raw",
    )


def losses() -> pl.DataFrame:
    """A node failure loses 30 min of 2 GPUs; its restart preempts 3 GPUs that had run for an hour."""
    hour = {"runtime_s": 3600, "outcome": "failure", "basis": "state"}
    nothing = {"failed": False, "infra": False, "preempted": False, "timed_out": False}
    rows = [
        hour | nothing | {"job": 0, "attempt": 0, "start_s": 0, "end_s": 3600, "gpu_milli": 2000, "infra": True},
        hour | nothing | {"job": 0, "attempt": 1, "start_s": 4000, "end_s": 7600, "gpu_milli": 2000},
        hour | nothing | {"job": 1, "attempt": 0, "start_s": 300, "end_s": 3900, "gpu_milli": 3000, "preempted": True},
    ]
    rows = [row | {"node_list": ["n1"]} for row in rows]
    runs = pl.LazyFrame([{name: row.get(name) for name in RUN_COLUMNS} for row in rows], schema=RUN_COLUMNS)
    return lost_work(loss_sums(add_previous_runs(runs), 3600, 300))


def node_flags() -> pl.DataFrame:
    """Eight nodes, two of them with excess failures."""
    rows = [
        {
            "node": f"n{i}",
            "fleet": "A",
            "basis": "state",
            "lemon": i < 2,
            "failures": 5 if i < 2 else 1,
            "exposure_s": DAY,
        }
        for i in range(8)
    ]
    return LEMON_NODES.frame(rows)


def job_runs() -> pl.DataFrame:
    """Two runs of 4,096 GPUs."""
    return pl.DataFrame(
        {
            "gpus": [4096, 4096],
            "nodes": [512, 512],
            "attempts": [2, 1],
            "interruptions": [1, 0],
            "runtime_s": [100_000, 90_000],
            "queue_s": [0, 0],
            "ettr": [0.97, 0.99],
            "ettr_if_all_interrupted": [0.9, 0.98],
        }
    )


def tables() -> dict[str, pl.DataFrame]:
    frame = jobs()
    # Runs of 1 node, 128 and 64: 4, 40 and 2 failures in 8, 50 and 30 days.
    rows = [(1, 9, 4, 8 * DAY), (64, 5, 2, 30 * DAY), (128, 9, 40, 50 * DAY)]
    sums = pl.DataFrame(rows, schema=SUMS_SCHEMA, orient="row")
    rate = node_failure_rate(sums, "state", 8, "trace", 128, ProjectionLimit(512, 2048, "", ""))
    flagged_nodes = node_flags()
    effect = lemon_effect(flagged_nodes, flagged_nodes, flagged_nodes)
    return {
        "states": build_states(frame, infra_durations(frame, attempts(), {"states": ["NODE_FAIL"]}), True),
        "size_mix": build_size_mix(frame),
        "cluster_summary": summarise_cluster(frame),
        "outcomes": outcome_table(frame),
        "outcomes_gpu": outcome_table(frame.filter(pl.col("gpu_milli") > 0)),
        "node_failure_rate": rate,
        "mttf_by_gpus": mttf_by_gpus(sums, rate, 8),
        "lost_work": losses(),
        "lemon_effect": effect,
        "ettr_measured": measured_table(job_runs(), make_rate(1e-3, 1e-3, 1e-3, 8), Habits(3600, 0, 300, 0, DAY)),
    }


def test_the_quantity_of_each_claim():
    """RSC-1 and RSC-2, the clusters of Helios, and Seren and Kalos are each this dozen."""
    frames = tables()
    rows = [
        scorecard([claim], {name: [name] for name in claim_datasets(claim)}, lambda _, table: frames[table])
        for claim in OF_TRACES
    ]
    check_computed("rsc", pl.concat(rows))
