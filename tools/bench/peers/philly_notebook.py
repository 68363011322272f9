"""A peer of the benchmark: Philly's job log in plain Python, with json, a class, lists and strptime.

Each attempt with its times, GPUs and servers, each job with its delay and run time, then medians by size and status.
It checks no record. usage: philly_notebook.py FILE
"""

import json
import statistics
import sys
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime


def moment(text: str | None) -> datetime | None:
    return None if text in (None, "", "None") else datetime.strptime(text, "%Y-%m-%d %H:%M:%S")


@dataclass
class Attempt:
    start: datetime | None
    end: datetime | None
    gpus: int
    servers: int


class Job:
    def __init__(self, record: dict) -> None:
        self.id, self.status, self.user = record["jobid"], record["status"], record["user"]
        self.virtual_cluster, self.submitted = record["vc"], moment(record["submitted_time"])
        self.attempts = [
            Attempt(
                moment(attempt["start_time"]),
                moment(attempt["end_time"]),
                sum(len(server["gpus"]) for server in attempt["detail"]),
                len(attempt["detail"]),
            )
            for attempt in record["attempts"]
        ]

    @property
    def run_s(self) -> float | None:
        ended = [attempt for attempt in self.attempts if attempt.start and attempt.end]
        return sum((attempt.end - attempt.start).total_seconds() for attempt in ended) if ended else None

    @property
    def queue_s(self) -> float | None:
        first = self.attempts[0].start if self.attempts else None
        return (first - self.submitted).total_seconds() if first else None


def main(path: str) -> None:
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 as a notebook does
        jobs = [Job(record) for record in json.load(file)]
    runs, delays = defaultdict(list), defaultdict(list)
    for job in jobs:
        size = job.attempts[0].gpus if job.attempts else 0
        if job.run_s is not None:
            runs[size, job.status].append(job.run_s)
        if job.queue_s is not None:
            delays[size].append(job.queue_s)
    for size, status in sorted(runs):
        print(size, status, len(runs[size, status]), statistics.median(runs[size, status]))
    for size in sorted(delays):
        print(size, len(delays[size]), statistics.median(delays[size]))
    print(len(jobs), sum(len(job.attempts) for job in jobs))


if __name__ == "__main__":
    main(sys.argv[1])
