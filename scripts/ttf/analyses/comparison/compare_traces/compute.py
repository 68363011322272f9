"""Compare traces: the GPU jobs of each, with the job as the unit, and the time to failure of components.

A comparison between sources is fair only over the same kind of job, population in the same way. So only jobs that
requested a GPU count, with one outcome per job whatever its attempts, and one meaning of failure (the outcome of the
common job record, in which a time-out or a lost node is a failure). What a trace or its format does not record is
blank, with a reason, and never 0.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import polars as pl

from ttf.analyses.comparison.compare_traces import ANALYSIS, FAILURE_SHARE
from ttf.analyses.comparison.compare_traces.trace_labels import NO_OUTCOME, RUN_ENDS
from ttf.engine.storage.tables import scan_columns
from ttf.records.clusters import CLUSTER_COLUMNS, JOB_CLUSTER_COLUMNS
from ttf.records.inputs import Inputs
from ttf.records.jobs import GPU_BUCKETS, OUTCOMES, Rows, gpu_bucket, gpu_seconds_milli, is_at_time_limit, whole_gpus
from ttf.stats.clustered import CLUSTERED, clustered_shares, join_clustered
from ttf.stats.durations.mttf import mean_time_to_failure
from ttf.stats.shares import ENDED, add_wilson

# Columns of jobs.parquet and durations.parquet.
JOBS_READ = ["outcome", "status_raw", "start_s", "queue_s", "runtime_s", "gpu_milli", "size", "trace_end_s"]
DURATIONS_READ = ["duration_s", "event", "gpu_count", "gpu_milli", "nodes"]

QUANTILES = {"p05": 5, "p25": 25, "median": 50, "p75": 75, "p90": 90, "p95": 95}
CONFIDENCES = (0.9, 0.95)
SIZES = {"all": (None, None)} | GPU_BUCKETS


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    rows: dict[str, list[dict]] = {table.name: [] for table in ANALYSIS.tables}
    jobs_files, durations_files = iter(inputs.files.get("jobs", ())), iter(inputs.files.get("durations", ()))
    for trace, options in inputs.settings.about.items():
        subject = Subject(trace, **options)
        durations, jobs, clustered = None, None, None
        if subject.durations:
            durations = scan_columns(next(durations_files), [*DURATIONS_READ, *CLUSTER_COLUMNS])
        if subject.gives == "jobs":
            file = next(jobs_files)
            jobs = scan_columns(file, JOBS_READ).collect()
            clustered = scan_columns(file, [*JOBS_READ, *JOB_CLUSTER_COLUMNS])
        for name, trace_rows in compare_trace(subject, jobs, durations, clustered).items():
            rows[name] += trace_rows
    return {table.name: table.frame(rows[table.name]) for table in ANALYSIS.tables}


@dataclass(frozen=True)
class Subject:
    """A trace of the comparison.

    unit: name of a job or a component. gives: jobs, durations or outages, as its format declares. durations: whether it
    has durations, which needs to know the units at risk. outcomes: those of its format; None if unknown.
    """

    trace: str
    unit: str = "job"
    gives: str = "jobs"
    durations: bool = True
    synthetic: bool = False
    outcomes: Collection[str] | None = None

    @property
    def columns(self) -> dict[str, str | bool]:
        """Return the first cells of the trace's rows: trace, synthetic and unit."""
        return {"trace": self.trace, "synthetic": self.synthetic, "unit": self.unit}


def compare_trace(
    subject: Subject, jobs: pl.DataFrame | None, durations: Rows | None, clustered: Rows | None = None
) -> dict[str, list[dict]]:
    """Return the rows of one trace by table. jobs, durations: None if it has none; clustered: jobs with clusters."""
    row = subject.columns | {"gives": subject.gives}
    reason = None if jobs is None else explain_no_gpu_jobs(jobs)
    rows = {"compared_mttf": [] if durations is None else compare_durations(subject, durations, reason)}
    if jobs is None:
        return rows | {"compared_traces": [row]}
    rows |= {"compared_traces": [row | count_jobs(jobs)]}
    return rows | compare_jobs(subject, jobs, jobs if clustered is None else clustered)


def compare_jobs(subject: Subject, jobs: pl.DataFrame, clustered: Rows) -> dict[str, list[dict]]:
    """Return the rows of one trace of jobs by table: outcomes, run_times, queueing and failure_share.

    jobs: the columns JOBS_READ, seconds and milli-GPU; clustered: these with CLUSTER_COLUMNS, not held in memory.
    A job counts if it requested a GPU (gpu_milli above 0). Its GPUs are its share x its size, in whole GPUs rounded up.
    A job of unknown size counts under `all` only.
    """
    reason = explain_no_gpu_jobs(jobs)
    gpu_jobs = jobs.filter(pl.col("gpu_milli") > 0).select(
        "outcome", "queue_s", "runtime_s", gpu_milli_s=gpu_seconds_milli(), gpus_low=_lowest_gpus(whole_gpus())
    )
    no_queue = reason or (None if jobs["queue_s"].count() else "the trace has no queueing delay")
    rows_by_table = {
        "compared_outcomes": _outcome_rows(subject, gpu_jobs, reason, OUTCOMES, _summarise_shares),
        "compared_run_times": _outcome_rows(subject, gpu_jobs, reason, RUN_ENDS, _summarise_run_times),
        "compared_queueing": _size_rows(gpu_jobs, no_queue, _summarise_queueing),
        "compared_failure_share": _add_clustered_limits(_size_rows(gpu_jobs, reason, _count_failures), clustered),
    }
    return {name: [subject.columns | row for row in table_rows] for name, table_rows in rows_by_table.items()}


def compare_durations(subject: Subject, durations: Rows, reason: str | None = None) -> list[dict]:
    """Return the rows of one trace in mttf: exposure over failures with exact intervals, a row per confidence.

    durations: the columns DURATIONS_READ. For jobs: those with a GPU, under `all` and by number of GPUs. For
    components: every duration, under `all`. reason: why no job of the trace can count, if so. Failures without an end
    are in no estimate; with many of them the true mean is shorter.
    """
    is_jobs, population = subject.gives == "jobs", durations.lazy()
    if is_jobs:
        population = population.filter(pl.col("gpu_count") > 0).with_columns(gpus_low=_lowest_gpus(pl.col("gpu_count")))
    else:
        population = population.with_columns(gpus_low=pl.lit(None, dtype=pl.Int64))
    table = mean_time_to_failure(population, "failure", ["all", "gpus_low"] if is_jobs else ["all"], CONFIDENCES)
    estimates = {(row["stratum"], row["confidence"]): row for row in table.iter_rows(named=True)}
    endless_failures = population.filter((pl.col("event") == "failure") & pl.col("duration_s").is_null())
    without_end = endless_failures.select("gpus_low").collect(engine="streaming")["gpus_low"]
    rows = []
    for gpus, (low, _) in SIZES.items() if is_jobs else [("all", (None, None))]:
        for confidence in CONFIDENCES:
            row = dict(estimates.get((gpus if low is None else str(low), confidence), {"n": 0}))
            row["without_end"] = without_end.len() if low is None else int((without_end == low).sum())
            if reason:
                row = {"reason": reason}
            elif not row["n"] and low is not None:
                row["reason"] = "no known duration with so many GPUs"
            rows.append(row | _gpu_cells(gpus) | {"confidence": confidence, "gives": subject.gives} | subject.columns)
    return rows


def explain_no_gpu_jobs(jobs: pl.DataFrame) -> str | None:
    """Return why the trace has no GPU jobs to compare, or None if it has some."""
    if not jobs.height:
        return "the trace has no job"
    if not jobs["gpu_milli"].count():
        return "the trace does not say whether a job requested a GPU"
    return None if (jobs["gpu_milli"] > 0).any() else "no job of the trace requested a GPU"


def count_jobs(jobs: pl.DataFrame) -> dict[str, int]:
    """Count the jobs of a trace: all, with a GPU, without a known request, with a GPU and failed at a time limit."""
    has_gpu = (pl.col("gpu_milli") > 0).fill_null(False)
    is_timeout = (pl.col("outcome") == "failure") & is_at_time_limit("status_raw")
    counts = jobs.select(
        jobs=pl.len(),
        gpu_jobs=has_gpu.sum(),
        blank_request=pl.col("gpu_milli").null_count(),
        timeouts=(has_gpu & is_timeout).sum(),
    )
    return counts.row(0, named=True)


def _lowest_gpus(gpus: pl.Expr) -> pl.Expr:
    """Return the lowest number of GPUs in the bucket of a number of GPUs; null if 0 or unknown."""
    low_by_bucket = {bucket: low for bucket, (low, _) in enumerate(GPU_BUCKETS.values())}
    return gpu_bucket(gpus).replace_strict(low_by_bucket, return_dtype=pl.Int64)


def _gpu_cells(gpus: str) -> dict:
    """Return the cells gpus, gpus_low and gpus_high of a bucket of SIZES."""
    low, high = SIZES[gpus]
    return {"gpus": gpus, "gpus_low": low, "gpus_high": high}


def _explain_missing_outcome(subject: Subject, jobs: pl.DataFrame, outcome: str) -> str | None:
    # If no job has the outcome unknown, every job has its result.
    if outcome == "unknown" or (jobs["outcome"] == outcome).any():
        return None
    if subject.outcomes is None:
        return f"no GPU job is {outcome}, and the format does not say whether it could tell"
    return None if outcome in subject.outcomes else f"{NO_OUTCOME}{outcome}"


def _outcome_rows(
    subject: Subject, jobs: pl.DataFrame, reason: str | None, outcomes: Sequence[str], summarise: Callable[..., dict]
) -> list[dict]:
    """Return a row per outcome: what `summarise(its jobs, all jobs)` returns, or the reason why there can be none."""
    rows = []
    for outcome in outcomes:
        row = {"outcome": outcome, "reason": reason or _explain_missing_outcome(subject, jobs, outcome)}
        if not row["reason"]:
            group = jobs.filter(outcome=outcome)
            row |= {"jobs": group.height} | summarise(group, jobs)
        rows.append(row)
    return rows


def _summarise_shares(group: pl.DataFrame, jobs: pl.DataFrame) -> dict:
    cells = {"jobs_share": group.height / jobs.height, "n": group["gpu_milli_s"].count()}
    group_milli_s, total_milli_s = (int(rows["gpu_milli_s"].sum()) for rows in (group, jobs))
    if not total_milli_s:
        return cells | {"reason": "no GPU time was seen"}
    if group.height and not cells["n"] and group["outcome"][0] != "waiting":
        return cells | {"reason": "no GPU job of this outcome has a known run time"}
    return cells | {"gpu_hours": group_milli_s / 3_600_000, "gpu_hours_share": group_milli_s / total_milli_s}


def _summarise_run_times(group: pl.DataFrame, _jobs: pl.DataFrame) -> dict:
    cells = _distribution(group["runtime_s"], "runtime")
    reason = "no GPU job of this outcome" + (" has a known run time" if group.height else "")
    return cells if cells["n"] else cells | {"reason": reason}


def _size_rows(
    jobs: pl.DataFrame, reason: str | None, summarise: Callable[[pl.DataFrame], tuple[dict, str | None]]
) -> list[dict]:
    """Return a row for all jobs and per bucket of GPUs with (cells, what these jobs lack or None) from `summarise`."""
    rows = []
    for gpus, (low, _) in SIZES.items():
        row = _gpu_cells(gpus) | {"reason": reason}
        rows.append(row)
        if reason:
            continue
        group = jobs if low is None else jobs.filter(gpus_low=low)
        cells, missing = summarise(group)
        row |= {"jobs": group.height} | cells
        if missing:
            condition = "" if low is None else " with so many GPUs"
            row["reason"] = f"no GPU job{condition}" + (f" {missing}" if group.height else "")
    return rows


def _summarise_queueing(jobs: pl.DataFrame) -> tuple[dict, str | None]:
    cells = _distribution(jobs["queue_s"], "queue")
    return cells, None if cells["n"] else "has a known queueing delay"


def _add_clustered_limits(share_rows: list[dict], clustered: Rows) -> list[dict]:
    gpu_jobs = clustered.lazy().filter(pl.col("gpu_milli") > 0).with_columns(gpus_low=_lowest_gpus(whole_gpus()))
    overall = clustered_shares(gpu_jobs, [], ENDED["failures"], ENDED["ended"]).with_columns(gpus_low=None)
    by_size = clustered_shares(gpu_jobs.drop_nulls("gpus_low"), ["gpus_low"], ENDED["failures"], ENDED["ended"])
    shares = pl.concat([overall.select(by_size.columns).cast(by_size.schema), by_size])
    exact = FAILURE_SHARE.frame(share_rows).drop(CLUSTERED, "trace", "synthetic", "unit")
    return join_clustered(exact, shares, ["gpus_low"]).to_dicts()


def _count_failures(jobs: pl.DataFrame) -> tuple[dict, str | None]:
    failures = int((jobs["outcome"] == "failure").sum())
    ended = failures + int((jobs["outcome"] == "success").sum())
    cells = {"ended": ended, "failures": failures}
    return cells | add_wilson("failure_share", failures, ended), None if ended else "ended in success or failure"


def _distribution(seconds: pl.Series, prefix: str) -> dict:
    """Return n, `<prefix>_mean_s` and quantiles such as `<prefix>_p90_s` of whole seconds, without nulls.

    A quantile is a time that occurs: the one whose rank is nearest to 1 + (n - 1) q, the higher of two, as in
    runtime_quantiles.csv.
    """
    values = seconds.drop_nulls().sort()
    if not values.len():
        return {"n": 0}
    last = values.len() - 1
    quantiles = {f"{prefix}_{name}_s": values[(last * q + 50) // 100] for name, q in QUANTILES.items()}
    return {"n": values.len(), f"{prefix}_mean_s": int(values.sum()) / values.len()} | quantiles
