"""Join the attempts in training logs with the attempts of jobs: by the job's id, else by time and GPUs."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from ttf.raw.training_logs.line_clocks import SECOND_US
from ttf.records.infra import find_first_outages
from ttf.records.jobs import DataType, add_blank_columns
from ttf.records.training_runs import Attempt

# A log may begin before the start of its job, and end after its end, by the clocks of two machines.
SLACK_US = 60 * SECOND_US


@dataclass(frozen=True)
class Join:
    """counts: columns of TRAINING_SUMMARY about the join; unjoined: rows of TRAINING_UNJOINED. None without jobs."""

    counts: dict[str, object] = field(default_factory=dict)
    unjoined: list[dict] = field(default_factory=list)


def join_jobs(logs: Mapping[str, Sequence[Attempt]], records: Sequence[dict]) -> Join:
    """Give the attempts in logs the times and GPUs of the attempts of jobs, and count how they were joined.

    logs: name of a log -> its attempts. records: `list_records`. If a log, or its name, has the id of a job, its
    attempts are those of the job at that time. Otherwise they are of the only job with attempts that contain all of
    them.
    """
    by_job: dict[str, list[dict]] = {}
    for record in records:
        by_job.setdefault(record["job_id"], []).append(record)
        if record["shown"] not in (None, record["job_id"]):
            by_job.setdefault(record["shown"], []).append(record)
    ways, joined, alone = set[str](), dict[int, dict](), list[str]()
    for name, log in logs.items():
        clocked = [attempt for attempt in log if attempt.has_clock]
        ids = [number for text in (*(a.job or "" for a in clocked), name) for number in re.findall("[0-9_]+", text)]
        # Numbers in a name may be anything: a job counts if it ran at that time.
        named = (n for n in ids if n in by_job and any(_find_record(attempt, by_job[n]) for attempt in clocked))
        job, way = next(named, None), "job id"
        if job is None:
            job, way = _find_job(clocked, by_job), "time and GPUs"
        matches = {index: _find_record(attempt, by_job.get(job or "", [])) for index, attempt in enumerate(clocked)}
        for index, match in matches.items():
            if match is not None and match["row"] not in joined:
                _apply(clocked[index], match)
                ways.add(way)
                joined[match["row"]] = match
        alone += [] if any(matches.values()) else [name]
    users, least = {record["user"] for record in joined.values()}, min((r["gpus"] for r in joined.values()), default=0)
    others = [r for r in records if r["row"] not in joined and r["user"] in users and r["gpus"] and r["gpus"] >= least]
    by = " or ".join(sorted(ways)) or None
    rows: list[dict] = [{"log": name} for name in alone]
    rows += [{"job": r["job_id"], "start_s": r["start"] // SECOND_US, "gpus": r["gpus"]} for r in others]
    return Join({"logs_without_job": len(alone), "jobs_without_log": len(others), "joined_by": by}, rows)


def _find_job(log: Sequence[Attempt], by_job: Mapping[str, Sequence[Mapping]]) -> str | None:
    """Return the only job whose attempts contain all attempts of a log, with as many GPUs as the log says."""
    gpus = next((attempt.gpus for attempt in log if attempt.gpus), None)
    jobs = {
        records[0]["job_id"]
        for records in by_job.values()
        if all(any(_contains(record, attempt) for record in records) for attempt in log)
        and (gpus is None or any(record["gpus"] == gpus for record in records))
    }
    return jobs.pop() if log and len(jobs) == 1 else None


def _find_record(attempt: Attempt, records: Sequence[dict]) -> dict | None:
    """Return the attempt of a job that overlaps one in a log the longest."""

    def overlap(record: Mapping) -> int:
        end = record["end"] if record["end"] is not None else attempt.end_us
        return min(attempt.end_us, end) - max(attempt.start_us, record["start"])

    near = [record for record in records if overlap(record) >= -SLACK_US]
    return max(near, key=overlap, default=None)


def list_records(
    durations: pl.DataFrame, attempts: pl.DataFrame, jobs: pl.DataFrame, outages: pl.DataFrame | None = None
) -> list[dict]:
    """Return a row per attempt of a job that has started: its times in microseconds, state, nodes and cause.

    durations: durations_infra; its cause is the code of an error in a node's log or of a health event, else the state.
    attempts: their outcome, node_list and eligible_s. jobs: job_id_shown. outages: node_event is the cause of the first
    one of the failed node near the end of the attempt.
    """
    columns: dict[str, DataType] = {"outcome": pl.String, "node_list": pl.List(pl.String), "eligible_s": pl.Int64}
    extra = add_blank_columns(attempts, columns).select(*columns).with_row_index("row").cast({"row": pl.Int64})
    shown = jobs.select("job_id", shown="job_id_shown" if "job_id_shown" in jobs.columns else "job_id")
    rows = durations.rename({"unit_id": "job_id", "attempt_id": "row"}).cast({"row": pl.Int64})
    rows = rows.join(extra, on="row", how="left", maintain_order="left")
    rows = rows.join(shown.unique("job_id"), on="job_id", how="left", maintain_order="left")
    # Slurm may hold a requeued job before it may start.
    queued_from_s = pl.coalesce("eligible_s", "submit_s")
    times = {"start": pl.col("start_s"), "end": pl.col("end_s"), "submit": queued_from_s}
    rows = rows.select(
        *("job_id", "row", "shown", "user", "start_s", "end_s", "cause", "failed_node"),
        nodes="node_list",
        gpus="gpu_count",
        state=pl.coalesce("state", "outcome"),
        **{name: time * SECOND_US for name, time in times.items()},
    )
    if outages is None:
        return rows.with_columns(node_event=pl.lit(None)).to_dicts()
    ends = rows.select("end_s", "failed_node", run="row")
    first = find_first_outages(ends, outages.select("node", time_s="start_s", node_event="cause")).drop("time_s")
    return rows.join(first, left_on="row", right_on="run", how="left", maintain_order="left").to_dicts()


def _contains(record: Mapping, attempt: Attempt) -> bool:
    """Return whether the log lies within the attempt of a job, and begins near its start."""
    end = record["end"] if record["end"] is not None else attempt.end_us
    is_within = record["start"] - SLACK_US <= attempt.start_us and attempt.end_us <= end + SLACK_US
    return is_within and bool(record["gpus"]) and attempt.start_us - record["start"] <= 30 * SLACK_US


def _apply(attempt: Attempt, record: Mapping) -> None:
    attempt.job, attempt.gpus, attempt.record = record["job_id"], record["gpus"] or attempt.gpus, record
    # A step before the start of the job shows that two clocks differ.
    is_before = bool(attempt.times_us) and attempt.times_us[0] < record["start"]
    attempt.start_us = min(attempt.start_us, record["start"]) if is_before else record["start"]
    attempt.queued_us = max(0, record["start"] - record["submit"]) if record["submit"] is not None else 0
    attempt.end_us = max(attempt.end_us, record["end"] or 0)
