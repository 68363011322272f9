"""Several traces side by side: the GPU jobs of each, on one unit, the job; of components, how long they last.

A comparison between sources is fair only over the same kind of job, counted the same way. So here: jobs that asked for
a GPU, one outcome per job whatever its attempts, and one meaning of failure (the outcome of the common job record, in
which a time-out or a lost node is a failure). What a trace or its format cannot say is blank, with a reason: never 0.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import polars as pl

from ttf.analyses.comparison.compare_traces import ANALYSIS, FAILURE_SHARE
from ttf.analyses.comparison.compare_traces.trace_labels import ENDS, NO_OUTCOME
from ttf.engine.storage.tables import scan_columns
from ttf.records.clusters import CLUSTER_COLUMNS, READ_OF_JOBS
from ttf.records.inputs import Inputs
from ttf.records.jobs import GPU_BUCKETS, OUTCOMES, Frame, at_time_limit, gpu_bucket, gpu_seconds_milli, whole_gpus
from ttf.stats.clustered import CLUSTERED, beside, clustered_shares
from ttf.stats.durations.mttf import mean_time_to_failure
from ttf.stats.shares import ENDED, with_wilson

# All that is read of jobs.parquet and lives.parquet.
JOBS_READ = ["outcome", "status_raw", "start_s", "queue_s", "runtime_s", "gpu_milli", "size", "trace_end_s"]
LIVES_READ = ["duration_s", "event", "gpu_count", "gpu_milli", "nodes"]

QUANTILES = {"p05": 5, "p25": 25, "median": 50, "p75": 75, "p90": 90, "p95": 95}
CONFIDENCES = (0.9, 0.95)
SIZES = {"all": (None, None)} | GPU_BUCKETS


def compute(given: Inputs) -> dict[str, pl.DataFrame]:
    rows = {table.name: [] for table in ANALYSIS.tables}
    jobs_files, lives_files = iter(given.files.get("jobs", ())), iter(given.files.get("lives", ()))
    for trace, about in given.settings.about.items():
        subject = Subject(trace, **about)
        lives, jobs, alike = None, None, None
        if subject.lives:
            lives = scan_columns(next(lives_files), [*LIVES_READ, *CLUSTER_COLUMNS])
        if subject.gives == "jobs":
            file = next(jobs_files)
            jobs, alike = scan_columns(file, JOBS_READ).collect(), scan_columns(file, [*JOBS_READ, *READ_OF_JOBS])
        for name, of_trace in compared(subject, jobs, lives, alike).items():
            rows[name] += of_trace
    return {table.name: table.frame(rows[table.name]) for table in ANALYSIS.tables}


@dataclass(frozen=True)
class Subject:
    """One trace of the comparison.

    unit: what a job, or the component that lives, is called. gives: jobs, lives or outages, as its format declares.
    lives: whether it has any: not where nobody knows which units were watched.
    outcomes: those that the trace's format distinguishes; None where the format does not say.
    """

    trace: str
    unit: str = "job"
    gives: str = "jobs"
    lives: bool = True
    synthetic: bool = False
    outcomes: Collection[str] | None = None

    @property
    def columns(self) -> dict[str, str | bool]:
        return {"trace": self.trace, "synthetic": self.synthetic, "unit": self.unit}


def compared(
    subject: Subject, jobs: pl.DataFrame | None, lives: Frame | None, alike: Frame | None = None
) -> dict[str, list[dict]]:
    """A trace's rows in each table: jobs and alike (with CLUSTER_COLUMNS) None of components, lives where none."""
    row = subject.columns | {"gives": subject.gives}
    if jobs is None:
        return {"compared_traces": [row], "compared_mttf": [] if lives is None else compared_lives(subject, lives)}
    found = {"compared_traces": [row | population(jobs)]} | compared_jobs(
        subject, jobs, jobs if alike is None else alike
    )
    return found | {"compared_mttf": compared_lives(subject, lives, no_gpu_jobs(jobs))}


def compared_jobs(subject: Subject, jobs: pl.DataFrame, alike: Frame) -> dict[str, list[dict]]:
    """The rows of one trace of jobs in outcomes, run_times, queueing and failure_share.

    jobs: the columns JOBS_READ, seconds and milli-GPU; alike: these with CLUSTER_COLUMNS, not held. A job counts if it
    asked for a GPU (gpu_milli above 0); its GPUs are its share x its size, in whole GPUs rounded up. One whose size is
    unknown counts under `all` only.
    """
    reason = no_gpu_jobs(jobs)
    mine = jobs.filter(pl.col("gpu_milli") > 0).select(
        "outcome", "queue_s", "runtime_s", gpu_milli_s=gpu_seconds_milli(), gpus_low=_bucket(whole_gpus())
    )
    no_queue = reason or (None if jobs["queue_s"].count() else "the trace has no queueing delay")
    rows = {
        "compared_outcomes": _by_outcome(subject, mine, reason, OUTCOMES, _shares),
        "compared_run_times": _by_outcome(subject, mine, reason, ENDS, _run_times),
        "compared_queueing": _by_gpus(mine, no_queue, _queueing),
        "compared_failure_share": _with_clustered(_by_gpus(mine, reason, _failure_share), alike),
    }
    return {name: [subject.columns | row for row in of] for name, of in rows.items()}


def compared_lives(subject: Subject, lives: Frame, reason: str | None = None) -> list[dict]:
    """The rows of one trace in mttf: exposure over failures with exact intervals, a row per confidence.

    lives: the columns LIVES_READ. Of jobs, those with a GPU, `all` and by number of GPUs; of components, every life
    under `all`. reason: why no job of the trace can be said to have asked for a GPU, if so. Failures without an end are
    in no estimate: with many of them the true mean is shorter.
    """
    of_jobs, lives = subject.gives == "jobs", lives.lazy()
    if of_jobs:
        lives = lives.filter(pl.col("gpu_count") > 0).with_columns(gpus_low=_bucket(pl.col("gpu_count")))
    else:
        lives = lives.with_columns(gpus_low=pl.lit(None, dtype=pl.Int64))
    table = mean_time_to_failure(lives, "failure", ["all", "gpus_low"] if of_jobs else ["all"], CONFIDENCES)
    found = {(row["stratum"], row["confidence"]): row for row in table.iter_rows(named=True)}
    lost = lives.filter((pl.col("event") == "failure") & pl.col("duration_s").is_null())
    lost = lost.select("gpus_low").collect(engine="streaming")["gpus_low"]
    rows = []
    for gpus, (low, _) in SIZES.items() if of_jobs else [("all", (None, None))]:
        for confidence in CONFIDENCES:
            row = dict(found.get((gpus if low is None else str(low), confidence), {"n": 0}))
            row["without_end"] = lost.len() if low is None else int((lost == low).sum())
            if reason:
                row = {"reason": reason}
            elif not row["n"] and low is not None:
                row["reason"] = "no life with so many GPUs and a known duration"
            rows.append(row | _gpus(gpus) | {"confidence": confidence, "gives": subject.gives} | subject.columns)
    return rows


def no_gpu_jobs(jobs: pl.DataFrame) -> str | None:
    """Why the trace has no GPU jobs to compare, if it has none."""
    if not jobs.height:
        return "the trace has no job"
    if not jobs["gpu_milli"].count():
        return "the trace does not say whether a job requested a GPU"
    return None if (jobs["gpu_milli"] > 0).any() else "no job of the trace requested a GPU"


def population(jobs: pl.DataFrame) -> dict[str, int]:
    """How many jobs a trace has, asked for a GPU, do not say, and failed at a time limit (of those with a GPU)."""
    asked = (pl.col("gpu_milli") > 0).fill_null(False)
    at_limit = (pl.col("outcome") == "failure") & at_time_limit("status_raw")
    counted = jobs.select(
        jobs=pl.len(),
        gpu_jobs=asked.sum(),
        blank_request=pl.col("gpu_milli").null_count(),
        timeouts=(asked & at_limit).sum(),
    )
    return counted.row(0, named=True)


def _bucket(gpus: pl.Expr) -> pl.Expr:
    """The first number of GPUs of the bucket that a number of GPUs falls into; null for none and for unknown."""
    lows = {place: low for place, (low, _) in enumerate(GPU_BUCKETS.values())}
    return gpu_bucket(gpus).replace_strict(lows, return_dtype=pl.Int64)


def _gpus(gpus: str) -> dict:
    low, high = SIZES[gpus]
    return {"gpus": gpus, "gpus_low": low, "gpus_high": high}


def _why_absent(subject: Subject, jobs: pl.DataFrame, outcome: str) -> str | None:
    """Why the absence of an outcome says nothing, if so."""
    # That no result is lacking, a trace shows by having them all.
    if outcome == "unknown" or (jobs["outcome"] == outcome).any():
        return None
    if subject.outcomes is None:
        return f"no GPU job is {outcome}, and the format does not say whether it could tell"
    return None if outcome in subject.outcomes else f"{NO_OUTCOME}{outcome}"


def _by_outcome(
    subject: Subject, jobs: pl.DataFrame, reason: str | None, outcomes: Sequence[str], of: Callable[..., dict]
) -> list[dict]:
    """A row for each outcome: what `of` finds in its jobs, or the reason why there can be none."""
    rows = []
    for outcome in outcomes:
        row = {"outcome": outcome, "reason": reason or _why_absent(subject, jobs, outcome)}
        if not row["reason"]:
            group = jobs.filter(outcome=outcome)
            row |= {"jobs": group.height} | of(group, jobs)
        rows.append(row)
    return rows


def _shares(group: pl.DataFrame, jobs: pl.DataFrame) -> dict:
    found = {"jobs_share": group.height / jobs.height, "n": group["gpu_milli_s"].count()}
    gpu, gpu_all = group["gpu_milli_s"].sum(), jobs["gpu_milli_s"].sum()
    if not gpu_all:
        return found | {"reason": "no GPU time was seen"}
    if group.height and not found["n"] and group["outcome"][0] != "waiting":
        return found | {"reason": "no GPU job of this outcome has a known run time"}
    return found | {"gpu_hours": gpu / 3_600_000, "gpu_hours_share": gpu / gpu_all}


def _run_times(group: pl.DataFrame, _jobs: pl.DataFrame) -> dict:
    found = _distribution(group["runtime_s"], "runtime")
    why = "no GPU job of this outcome" + (" has a known run time" if group.height else "")
    return found if found["n"] else found | {"reason": why}


def _by_gpus(
    jobs: pl.DataFrame, reason: str | None, of: Callable[[pl.DataFrame], tuple[dict, str | None]]
) -> list[dict]:
    """A row for all jobs and for each bucket: what `of` finds in them, and what none of them has, if so."""
    rows = []
    for gpus, (low, _) in SIZES.items():
        row = _gpus(gpus) | {"reason": reason}
        rows.append(row)
        if reason:
            continue
        group = jobs if low is None else jobs.filter(gpus_low=low)
        found, lacking = of(group)
        row |= {"jobs": group.height} | found
        if lacking:
            so_many = "" if low is None else " with so many GPUs"
            row["reason"] = f"no GPU job{so_many}" + (f" {lacking}" if group.height else "")
    return rows


def _queueing(jobs: pl.DataFrame) -> tuple[dict, str | None]:
    found = _distribution(jobs["queue_s"], "queue")
    return found, None if found["n"] else "has a known queueing delay"


def _with_clustered(rows: list[dict], alike: Frame) -> list[dict]:
    """The rows of `_by_gpus` with the clustered intervals of their shares."""
    mine = alike.lazy().filter(pl.col("gpu_milli") > 0).with_columns(gpus_low=_bucket(whole_gpus()))
    every = clustered_shares(mine, [], ENDED["failures"], ENDED["ended"]).with_columns(gpus_low=None)
    sized = clustered_shares(mine.drop_nulls("gpus_low"), ["gpus_low"], ENDED["failures"], ENDED["ended"])
    found = pl.concat([every.select(sized.columns).cast(sized.schema), sized])
    exact = FAILURE_SHARE.frame(rows).drop(CLUSTERED, "trace", "synthetic", "unit")
    return beside(exact, found, ["gpus_low"]).to_dicts()


def _failure_share(jobs: pl.DataFrame) -> tuple[dict, str | None]:
    failures = int((jobs["outcome"] == "failure").sum())
    ended = failures + int((jobs["outcome"] == "success").sum())
    found = {"ended": ended, "failures": failures}
    return found | with_wilson("failure_share", failures, ended), None if ended else "ended in success or failure"


def _distribution(seconds: pl.Series, prefix: str) -> dict:
    """n, mean and quantiles of some whole seconds (null: unknown, excluded).

    A quantile is a time that occurs: the one whose rank is nearest to 1 + (n - 1) q, the higher of two, as in
    runtime_quantiles.csv.
    """
    known = seconds.drop_nulls().sort()
    if not known.len():
        return {"n": 0}
    last = known.len() - 1
    quantiles = {f"{prefix}_{name}_s": known[(last * q + 50) // 100] for name, q in QUANTILES.items()}
    return {"n": known.len(), f"{prefix}_mean_s": known.sum() / known.len()} | quantiles
