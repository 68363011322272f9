"""Claims about RSC, and all of Helios, Acme and Philly: each quantity on a dozen rows, worked out by hand.

The tables come from several trace formats, so a function per table builds the fewest rows that cover all claims.
"""

from pathlib import Path

import polars as pl
import pytest
from claims_tested import ELSEWHERE
from of_claims import CLAIMS
from plan_inputs import make_rate
from ttf.analyses.large_runs.measure_ettr.compute import measured_table
from ttf.analyses.lost.measure_losses.lost_work import lost_work
from ttf.analyses.nodes.find_lemon_nodes import LEMON_NODES
from ttf.analyses.nodes.find_lemon_nodes.compute import lemon_effect
from ttf.analyses.outcomes.describe_states.compute import build_size_mix, build_states, summarise_cluster
from ttf.analyses.outcomes.split_outcomes.compute import outcome_table
from ttf.analyses.scaling.measure_sizes.sizes import SUMS_SCHEMA, mttf_by_gpus, node_failure_rate
from ttf.page.replication.scorecard import claim_traces, scorecard
from ttf.records.infra import infra_durations
from ttf.records.jobs import JOB_COLUMNS
from ttf.records.runs import RUN_COLUMNS, add_previous_runs
from ttf.stats.large_runs.plans import Habits
from ttf.stats.large_runs.projection import ProjectionLimit
from whole_losses import loss_sums

ID_PREFIXES = tuple(prefix for prefix, file in ELSEWHERE.items() if file == Path(__file__).name)
RSC_CLAIMS = [claim for claim in CLAIMS if claim["id"].startswith(ID_PREFIXES) and "quantity" in claim]
# Without a trace only what is printed can be computed.
WITHOUT_TRACE = scorecard(RSC_CLAIMS, [], lambda *_: None)
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
TOTAL_GPU_HOURS = 1 + 3 + 16 + 8 + 1 + 512 + 4096 + 16 + 40 + 1 + 512  # 5206


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


TABLES = tables()


def expected_values() -> dict[str, float]:
    answers: dict[str, float] = {}
    # 42 failures in 64 x 30 + 128 x 50 = 8320 node-days.
    answers |= {f"rsc{n}-node-failure-rate": 42_000 / 8320 for n in (1, 2)}
    shares = dict.fromkeys(("preempted", "requeued", "timeout", "out-of-memory", "node-fail", "infra-jobs"), 1 / 12)
    answers |= {f"rsc1-{name}": share for name, share in (shares | {"completed": 4 / 12, "failed": 2 / 12}).items()}
    answers["rsc1-infra-gpu-time"] = 512 / TOTAL_GPU_HOURS
    for n in (1, 2):
        # 12 jobs in 11 x 6 h.
        answers[f"rsc{n}-jobs-per-day"] = 12 / 2.75
        # 11 requested GPUs: four requested one, three 2, 4 and 8.
        answers[f"rsc{n}-one-gpu-jobs"] = 4 / 11
        answers[f"rsc{n}-one-node-jobs"] = 7 / 11
        answers[f"rsc{n}-one-node-gpu-time"] = (6 + 16 + 8 + 40) / TOTAL_GPU_HOURS
        answers[f"rsc{n}-large-gpu-time"] = (512 + 4096 + 512) / TOTAL_GPU_HOURS
        answers[f"rsc{n}-lemons"] = 2
    answers |= {"rsc1-4096-jobs": 1 / 11, "rsc1-4096-gpu-time": 4096 / TOTAL_GPU_HOURS}
    # RSC-1 and RSC-2 are both this dozen.
    answers |= {"rsc1-jobs": 24, "rsc1-gpu-hours": 2 * TOTAL_GPU_HOURS, "rsc1-lemon-share": 2 / 8}
    answers |= {"rsc1-measured-mttf-8": 2, "rsc1-measured-mttf-1024": 24 * 50 / 40}
    # The first order lost 2 x 30 min, the second 3 x 30 min.
    answers["rsc1-second-order"] = 1.5 / 2.5
    answers["rsc1-measured-ettr-4096"] = 0.94
    # Each of the four Helios clusters, Seren and Kalos is this dozen: 4 successes (one without a GPU), 7 failures and
    # 1 cancelled.
    answers |= {"helios-all-jobs": 48, "helios-all-gpu-jobs": 44, "helios-all-cpu-jobs": 4}
    answers |= {"helios-all-success": 3 / 11, "helios-all-failure": 7 / 11, "helios-all-cancelled": 1 / 11}
    times = {"success": 20, "failure": TOTAL_GPU_HOURS - 20 - 512, "cancelled": 512}
    for outcome, hours in times.items():
        answers[f"helios-all-{outcome}-gpu-time"] = answers[f"philly-summary-{outcome}-gpu-time"] = (
            hours / TOTAL_GPU_HOURS
        )
    # Without the CPU job 27 h in 11 jobs; GPUs 4898 in all.
    answers |= {"helios-all-mean-run-time": 27 * 3600 / 11, "helios-all-longest-run": 36_000}
    answers |= {"helios-all-mean-gpus": 4898 / 11, "helios-all-most-gpus": 4096}
    answers |= {f"helios-summary-{cluster}-cpu-jobs": 1 for cluster in ("venus", "earth", "saturn", "uranus")}
    answers |= {"acme-summary-seren-jobs": 12, "acme-summary-kalos-jobs": 12}
    answers |= {"acme-both-jobs": 24, "acme-both-gpu-jobs": 22}
    answers |= {"philly-summary-jobs": 12, "philly-summary-mean-run-time": 32 * 300, "philly-summary-most-gpus": 4096}
    answers |= {"philly-summary-median-run-time": 1.5 * 3600, "philly-summary-longest-run": 36_000}
    answers |= {
        "philly-summary-mean-wait": 330,
        "philly-summary-median-wait": 330,
        "philly-summary-mean-gpus": 4898 / 11,
    }
    answers |= {"philly-summary-success": 4 / 12, "philly-summary-cancelled": 1 / 12, "philly-summary-failure": 7 / 12}
    return answers


ANSWERS = expected_values()


@pytest.mark.parametrize("claim", OF_TRACES, ids=lambda claim: claim["id"])
def test_the_quantity_of_each_claim(claim):
    (row,) = scorecard([claim], claim_traces(claim), lambda _, name: TABLES[name]).iter_rows(named=True)
    assert row["computed"] == pytest.approx(ANSWERS[claim["id"]], rel=1e-9), row


def test_every_claim_of_this_file_has_an_answer():
    assert {claim["id"] for claim in OF_TRACES} == set(ANSWERS)
