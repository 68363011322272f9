"""Findings on attempts of Philly: a few jobs per virtual cluster and size, compared with a snapshot."""

import polars as pl
from claims_tested import check_computed, claims_of
from ttf.analyses.queue.describe_attempts.compute import build_tables, summarise_block
from ttf.page.replication.scorecard import scorecard
from ttf.records.clusters import add_clusters, level_names
from ttf.records.jobs import JOB_COLUMNS, conform

CLAIMS = claims_of(__file__)
GPUS = {"1": 1, "2-4": 3, "5-8": 8, "above-8": 16}
VCS = ["11cb48", "6214e9", "6c71a0", "b436b2", "ee9e8c", "103959", "0e4a51", "2869ce", "7f04ca", "e13805", "ed69ec"]
OUTCOMES = ("success", "failure", "cancelled")
RUN_S = 3600
WINDOW = (100, 200)


def synthetic_jobs() -> list[dict]:
    """Three jobs of each virtual cluster and size. The first does not wait and the last runs twice.

    Waits differ by a multiple of a prime, so no two groups share a wait.
    """
    jobs = []
    for vc_index, vc in enumerate(VCS):
        for size_index, (name, gpus) in enumerate(GPUS.items()):
            wait = 113 * (4 * vc_index + size_index)
            for number, waits in enumerate(([0], [wait + 5], [wait + 61, wait + 307])):
                submit = 10 * (vc_index + size_index * 7 + number)
                spans, free_s = [], submit
                for delay in waits:
                    spans.append((free_s + delay, free_s + delay + RUN_S))
                    free_s = spans[-1][1]
                jobs.append(
                    {"vc": vc, "size": name, "gpus": gpus, "submit": submit, "waits": waits, "spans": spans}
                    | {"outcome": OUTCOMES[(vc_index + size_index + number) % 3]}
                )
    return jobs


JOBS = synthetic_jobs()


def tables() -> dict[str, pl.DataFrame]:
    jobs = conform(
        pl.DataFrame(
            [
                {"job_id": f"j{number}", "user": "u", "account": job["vc"], "submit_s": job["submit"], "size": 1}
                | {"start_s": job["spans"][0][0], "outcome": job["outcome"], "gpu_milli": 1000 * job["gpus"]}
                | {"attempts": len(job["spans"])}
                for number, job in enumerate(JOBS)
            ]
        ),
        JOB_COLUMNS,
    )
    attempts = pl.DataFrame(
        [
            {
                "job": number,
                "job_id": f"j{number}",
                "attempt": k,
                "start_s": start,
                "end_s": end_s,
                "runtime_s": end_s - start,
            }
            | {"outcome": job["outcome"] if k == len(job["spans"]) - 1 else None}
            | {"gpu_milli": 1000 * job["gpus"], "nodes": 1}
            for number, job in enumerate(JOBS)
            for k, (start, end_s) in enumerate(job["spans"])
        ]
    )
    jobs = add_clusters(jobs)
    return build_tables([summarise_block(jobs, attempts, level_names(jobs), WINDOW)], WINDOW)


def test_the_quantity_of_each_claim():
    frames = tables()
    micro_claims = [claim | {"trace": "micro"} for claim in CLAIMS]
    check_computed("queueing", scorecard(micro_claims, ["micro"], lambda _, table: frames[table]))
