"""Findings on attempts of Philly: a few jobs per virtual cluster and size, compared with a snapshot."""

import polars as pl
from tested_claims import check_computed, claims_of
from ttf.analyses.queue.describe_attempts.compute import build_tables, summarise_block
from ttf.page.replication.scorecard import scorecard
from ttf.records.clusters import add_clusters, level_names
from ttf.records.jobs import JOB_COLUMNS, conform

CLAIMS = claims_of(__file__)
VCS = [
    "11cb48",
    "6214e9",
    "6c71a0",
    "b436b2",
    "ee9e8c",
    "103959",
    "0e4a51",
    "2869ce",
    "7f04ca",
    "e13805",
    "ed69ec",
    "51b7ef",
]
OUTCOMES = ("success", "failure", "cancelled")
RUN_S = 3600
WINDOW = (100, 200)


def tables() -> dict[str, pl.DataFrame]:
    """Three jobs of each virtual cluster and size. The first does not wait and the last runs twice.

    Waits differ by a multiple of a prime, so no two groups share a wait.
    """
    jobs, attempts = [], []
    for vc_index, vc in enumerate(VCS):
        for size_index, gpus in enumerate((1, 3, 8, 16)):
            wait = 113 * (4 * vc_index + size_index)
            for number, waits in enumerate(([0], [wait + 5], [wait + 61, wait + 307])):
                submit_s = end_s = 10 * (vc_index + size_index * 7 + number)
                outcome = OUTCOMES[(vc_index + size_index + number) % 3]
                common = {"job": len(jobs), "job_id": f"j{len(jobs)}", "gpu_milli": 1000 * gpus}
                job = {"user": "u", "account": vc, "submit_s": submit_s, "size": 1, "attempts": len(waits)}
                jobs.append(common | job | {"start_s": submit_s + waits[0], "outcome": outcome})
                for attempt, delay in enumerate(waits):
                    start_s, end_s = end_s + delay, end_s + delay + RUN_S
                    run = {"attempt": attempt, "start_s": start_s, "end_s": end_s, "runtime_s": RUN_S, "nodes": 1}
                    attempts.append(common | run | {"outcome": outcome if delay == waits[-1] else None})
    frame = add_clusters(conform(pl.DataFrame(jobs).drop("job"), JOB_COLUMNS))
    return build_tables([summarise_block(frame, pl.DataFrame(attempts), level_names(frame), WINDOW)], WINDOW)


def test_the_quantity_of_each_claim():
    frames = tables()
    micro_claims = [claim | {"of": "micro"} for claim in CLAIMS]
    check_computed("queueing", scorecard(micro_claims, {"micro": ["micro"]}, lambda _, table: frames[table]))
