"""Join the attempts in training logs with the attempts of jobs: by the job's id, else by time and GPUs."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from ttf.raw.training_logs.line_clocks import SECOND_US
from ttf.records.training_runs import Attempt

# A log may begin before the start of its job, and end after its end, by the clocks of two machines.
SLACK_US = 60 * SECOND_US


@dataclass(frozen=True)
class Join:
    """counts: columns of TRAINING_SUMMARY about the join; unjoined: rows of TRAINING_UNJOINED. None without jobs."""

    counts: dict[str, object] = field(default_factory=dict)
    unjoined: list[dict] = field(default_factory=list)


def join_jobs(logs: Mapping[str, Sequence[Attempt]], attempts: pl.DataFrame, jobs: pl.DataFrame) -> Join:
    """Give the attempts in logs the state, times and GPUs of the attempts of jobs, and count how they were joined.

    logs: name of a log -> its attempts. If a log, or its name, has the id of a job, its attempts are those of the job
    at that time. Otherwise they are of the only job with attempts that contain all of them.
    """
    records = _list_records(attempts, jobs)
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


def _list_records(attempts: pl.DataFrame, jobs: pl.DataFrame) -> list[dict]:
    """Return a row per attempt of a job that has started: its times in microseconds, state, GPUs and queue."""
    columns = {name: name if name in jobs.columns else None for name in ("user", "submit_s", "job_id_shown")}
    owners = jobs.select("job_id", **{name: pl.col(name) if name in jobs.columns else pl.lit(None) for name in columns})
    rows = attempts.with_row_index("row").filter(pl.col("start_s").is_not_null())
    state = [name for name in ("status_raw", "state", "state_raw") if name in rows.columns]
    rows = rows.select(
        "row",
        "job_id",
        "start_s",
        "end_s",
        "outcome",
        gpus=pl.col("gpu_milli") // 1000,
        state=pl.coalesce(*state, "outcome") if state else pl.col("outcome"),
        previous_s=pl.col("end_s").shift(1).over("job_id"),
        queued_from_s=pl.col("eligible_s") if "eligible_s" in rows.columns else pl.lit(None, pl.Int64),
    )
    rows = rows.join(owners, on="job_id", how="left", maintain_order="left")
    # A requeued attempt waits from the end of the one before it, unless its own wait is recorded.
    rows = rows.with_columns(submit_s=pl.coalesce("queued_from_s", "previous_s", "submit_s"), shown="job_id_shown")
    times = {name: pl.col(f"{name}_s") * SECOND_US for name in ("start", "end", "submit")}
    return rows.select("row", "job_id", "shown", "user", "state", "outcome", "gpus", **times).to_dicts()


def _contains(record: Mapping, attempt: Attempt) -> bool:
    """Return whether the log lies within the attempt of a job, and begins near its start."""
    end = record["end"] if record["end"] is not None else attempt.end_us
    is_within = record["start"] - SLACK_US <= attempt.start_us and attempt.end_us <= end + SLACK_US
    return is_within and bool(record["gpus"]) and attempt.start_us - record["start"] <= 30 * SLACK_US


def _apply(attempt: Attempt, record: Mapping) -> None:
    attempt.job, attempt.gpus, attempt.has_records = record["job_id"], record["gpus"] or attempt.gpus, True
    # A step before the start of the job shows that two clocks differ.
    is_before = bool(attempt.times_us) and attempt.times_us[0] < record["start"]
    attempt.start_us = min(attempt.start_us, record["start"]) if is_before else record["start"]
    attempt.queued_us = max(0, record["start"] - record["submit"]) if record["submit"] is not None else 0
    if record["end"] is not None:
        attempt.end_us, attempt.state = max(attempt.end_us, record["end"]), record["state"]
