"""Findings on attempts of Philly: a few jobs per virtual cluster and size, computed in plain Python."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from claims_tested import ELSEWHERE
from of_claims import CLAIMS as SHIPPED
from ttf.analyses.queue.describe_attempts.compute import build_tables, summarise_block
from ttf.page.replication.scorecard import scorecard
from ttf.records.clusters import add_clusters, level_names
from ttf.records.jobs import JOB_COLUMNS, conform

ID_PREFIXES = tuple(prefix for prefix, file in ELSEWHERE.items() if file == Path(__file__).name)
CLAIMS = [claim for claim in SHIPPED if claim["id"].startswith(ID_PREFIXES) and "quantity" in claim]
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


def expected_values() -> dict[str, float]:
    answers = {}
    for vc in VCS:
        for name in GPUS:
            waits = [w for job in JOBS if (job["vc"], job["size"]) == (vc, name) for w in job["waits"] if w > 0]
            assert len(waits) == 3
            answers[f"philly-delay-{vc}-{name}-p50"] = sorted(waits)[1] / 60
            answers[f"philly-delay-{vc}-{name}-10-min"] = sum(wait <= 600 for wait in waits) / 3
    window_jobs = [job for job in JOBS if WINDOW[0] <= job["submit"] < WINDOW[1]]
    # Every attempt runs an hour, so GPU hours are GPUs x attempts.
    hours = dict.fromkeys(OUTCOMES, 0)
    for job in window_jobs:
        hours[job["outcome"]] += job["gpus"] * len(job["spans"])
    answers["philly-window-jobs"] = len(window_jobs)
    words = {
        "success": ("passed", "completed"),
        "cancelled": ("killed", "cancelled"),
        "failure": ("unsuccessful", "failed"),
    }
    for outcome, (word, hu2021_word) in words.items():
        n = sum(job["outcome"] == outcome for job in window_jobs)
        answers[f"philly-window-{word}"] = n
        answers[f"philly-window-{word}-share"] = n / len(window_jobs)
        answers[f"philly-window-{word}-gpu-time"] = hours[outcome] / sum(hours.values())
        answers[f"philly-window-hu2021-{hu2021_word}-gpu-time"] = hours[outcome] / sum(hours.values())
    # (outcome, GPUs, job) of every attempt. An attempt followed by another counts as failed.
    attempts = [
        ("failure" if k < len(job["spans"]) - 1 else job["outcome"], job["gpus"], number)
        for number, job in enumerate(JOBS)
        for k in range(len(job["spans"]))
    ]
    answers["philly-attempts-count"] = len(attempts)
    answers["philly-attempts-gpu-hours"] = sum(gpus for _, gpus, _ in attempts)
    for outcome, (_, word) in words.items():
        gpu_counts = [gpus for attempt_outcome, gpus, _ in attempts if attempt_outcome == outcome]
        answers[f"philly-attempts-{word}"] = len(gpu_counts) / len(attempts)
        answers[f"philly-attempts-{word}-gpu-time"] = sum(gpu_counts) / sum(gpus for _, gpus, _ in attempts)
    waits = [wait for job in JOBS for wait in job["waits"]]
    answers["philly-attempts-wait-mean"] = np.mean(waits)
    answers["philly-attempts-wait-p50"] = np.median(waits)
    failed = [(gpus, job) for outcome, gpus, job in attempts if outcome == "failure"]
    answers["philly-trials-per-job"] = len(failed) / len({job for _, job in failed})
    for name, sizes in (("1", (1,)), ("2-4", (3,)), ("above-4", (8, 16))):
        answers[f"philly-trials-{name}"] = sum(gpus in sizes for gpus, _ in failed) / len(failed)
    return answers


TABLES, ANSWERS = tables(), expected_values()


def test_each_finding_reads_its_own_quantity():
    table = scorecard([claim | {"trace": "micro"} for claim in CLAIMS], ["micro"], lambda _, name: TABLES[name])
    computed = dict(table.select("id", "computed").iter_rows())
    assert computed == pytest.approx({name: ANSWERS[name] for name in computed}, rel=1e-9)
    assert len(computed) == 72 + 13 + 10 + 4


def test_the_answers_differ():
    """Equal answers could hide that two claims read the same quantity."""
    medians = [answer for name, answer in ANSWERS.items() if name.endswith("-p50") and "-delay-" in name]
    assert len(set(medians)) == len(medians) == 44
