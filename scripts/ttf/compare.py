"""Several traces side by side: the GPU jobs of each, on one unit, the job; of components, how long they last.

A comparison between sources is fair only over the same kind of job, counted the same way. So here: jobs that asked for
a GPU, one outcome per job whatever its attempts, and one meaning of failure (the outcome of the common job record, in
which a time-out or a lost node is a failure). What a trace or its format cannot tell is blank, with a reason: never 0.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from ttf.jobs import GPU_BUCKETS, OUTCOMES, at_time_limit, gpu_bucket, gpu_seconds_milli, whole_gpus
from ttf.numbers.metrics import FEWEST_ENDED, FEWEST_FAILURES, Metrics
from ttf.stats.mttf import mean_time_to_failure
from ttf.stats.shares import wilson_interval

# All that is read of jobs.parquet and lives.parquet.
JOBS_READ = ["outcome", "status_raw", "start_s", "queue_s", "runtime_s", "gpu_milli", "size", "trace_end_s"]
LIVES_READ = ["duration_s", "event", "gpu_count", "gpu_milli", "nodes"]

ENDS = ("success", "failure", "cancelled")
QUANTILES = {"p05": 5, "p25": 25, "median": 50, "p75": 75, "p90": 90, "p95": 95}
CONFIDENCES = (0.9, 0.95)
LABEL_LENGTH = 26
# How a reason begins that lies in the trace or its format, not in one row.
_NO_OUTCOME = "the format has no outcome "
OF_THE_WHOLE = ("the format", "the trace", "no job of the trace", "no GPU job is")

_TRACE = {"trace": pl.String, "synthetic": pl.Boolean, "unit": pl.String}
_GPUS = {"gpus": pl.String, "gpus_low": pl.Int64, "gpus_high": pl.Int64}
SCHEMAS = {
    "outcomes": _TRACE
    | {"outcome": pl.String, "jobs": pl.Int64, "jobs_share": pl.Float64, "n": pl.Int64}
    | {"gpu_hours": pl.Float64, "gpu_hours_share": pl.Float64, "reason": pl.String},
    "run_times": _TRACE
    | {"outcome": pl.String, "jobs": pl.Int64, "n": pl.Int64, "runtime_mean_s": pl.Float64}
    | {f"runtime_{name}_s": pl.Int64 for name in QUANTILES}
    | {"reason": pl.String},
    "queueing": _TRACE
    | _GPUS
    | {"jobs": pl.Int64, "n": pl.Int64, "queue_mean_s": pl.Float64}
    | {f"queue_{name}_s": pl.Int64 for name in QUANTILES}
    | {"reason": pl.String},
    "failure_share": _TRACE
    | _GPUS
    | {"jobs": pl.Int64, "ended": pl.Int64, "failures": pl.Int64}
    | {"failure_share": pl.Float64, "ci_low": pl.Float64, "ci_high": pl.Float64, "reason": pl.String},
    "mttf": _TRACE
    | {"gives": pl.String}
    | _GPUS
    | {"n": pl.Int64, "events": pl.Int64, "without_end": pl.Int64, "exposure_s": pl.Int64}
    | {"mttf_s": pl.Float64, "confidence": pl.Float64}
    | {"ci_low_s": pl.Float64, "ci_high_s": pl.Float64, "gpu_days": pl.Float64}
    | {"failures_per_1000_gpu_days": pl.Float64, "node_days": pl.Float64}
    | {"failures_per_1000_node_days": pl.Float64, "reason": pl.String},
}


@dataclass(frozen=True)
class Subject:
    """One trace of the comparison.

    unit: what a job, or the component that lives, is called. gives: `jobs` or `lives`, as its format declares.
    outcomes: those the trace's format can tell; None where the format does not say.
    """

    trace: str
    unit: str = "job"
    gives: str = "jobs"
    synthetic: bool = False
    outcomes: Collection[str] | None = None

    @property
    def columns(self) -> dict[str, str | bool]:
        return {"trace": self.trace, "synthetic": self.synthetic, "unit": self.unit}


def compared_jobs(subject: Subject, jobs: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The rows of one trace of jobs in outcomes, run_times, queueing and failure_share (see SCHEMAS).

    jobs: the columns JOBS_READ, seconds and milli-GPU. A job counts if it asked for a GPU (gpu_milli above 0); its GPUs
    are its share x its size, in whole GPUs rounded up. One whose size is unknown counts under `all` only.
    """
    reason = no_gpu_jobs(jobs)
    mine = _gpu_jobs(jobs)
    has_queue = jobs["queue_s"].count() > 0
    rows = {
        "outcomes": _outcomes(subject, mine, reason),
        "run_times": _run_times(subject, mine, reason),
        "queueing": _queueing(mine, reason, has_queue),
        "failure_share": _failure_share(mine, reason),
    }
    return {name: _table(name, (subject.columns | row for row in of)) for name, of in rows.items()}


def compared_lives(subject: Subject, lives: pl.DataFrame, reason: str | None = None) -> pl.DataFrame:
    """The rows of one trace in mttf: exposure over failures with exact intervals, a row per confidence.

    lives: the columns LIVES_READ. Of jobs, those with a GPU, `all` and by number of GPUs; of components, every life
    under `all`. reason: why no job of the trace can be said to have asked for a GPU, if so. without_end: failures at a
    time nobody wrote down, which are in no estimate: with many of them the true mean is shorter.
    """
    of_jobs = subject.gives == "jobs"
    if of_jobs:
        lives = lives.filter(pl.col("gpu_count") > 0).with_columns(gpus_low=_bucket(pl.col("gpu_count")))
    table = mean_time_to_failure(lives, "failure", ["all", "gpus_low"] if of_jobs else ["all"], CONFIDENCES)
    found = {(row["stratum"], row["confidence"]): row for row in table.iter_rows(named=True)}
    rows = []
    for gpus, (low, _) in _all_and_buckets() if of_jobs else [("all", (None, None))]:
        for confidence in CONFIDENCES:
            row = dict(found.get((gpus if low is None else str(low), confidence), {"n": 0}))
            members = lives if low is None else lives.filter(pl.col("gpus_low") == low)
            lost = (members["event"] == "failure") & members["duration_s"].is_null()
            row["without_end"] = int(lost.sum())
            if reason:
                row = {"reason": reason}
            elif not row["n"] and low is not None:
                row["reason"] = "no life with so many GPUs and a known duration"
            rows.append(row | _gpus(gpus) | {"confidence": confidence, "gives": subject.gives} | subject.columns)
    return _table("mttf", rows)


def side_by_side(parts: Mapping[str, Sequence[pl.DataFrame]]) -> dict[str, pl.DataFrame]:
    """Every table of SCHEMAS, the traces' rows below each other in the order given; no row where no trace has any."""
    return {name: pl.concat([pl.DataFrame(schema=schema), *parts[name]]) for name, schema in SCHEMAS.items()}


def no_gpu_jobs(jobs: pl.DataFrame) -> str | None:
    """Why the trace has no GPU jobs to compare, if it has none."""
    if not jobs.height:
        return "the trace has no job"
    if not jobs["gpu_milli"].count():
        return "the trace does not say whether a job asked for a GPU"
    return None if (jobs["gpu_milli"] > 0).any() else "no job of the trace asked for a GPU"


def population(jobs: pl.DataFrame) -> dict[str, int]:
    """How many jobs a trace has, how many of them asked for a GPU, and of how many the request is blank.

    timeouts: failures of GPU jobs that a time limit ended.
    """
    asked = (pl.col("gpu_milli") > 0).fill_null(False)
    at_limit = (pl.col("outcome") == "failure") & at_time_limit("status_raw")
    counted = jobs.select(
        jobs=pl.len(),
        gpu_jobs=asked.sum(),
        blank_request=pl.col("gpu_milli").null_count(),
        timeouts=(asked & at_limit).sum(),
    )
    return counted.row(0, named=True)


def trace_labels(traces: Iterable[tuple[str, bool]]) -> dict[str, str]:
    """A label for each (trace, synthetic), by trace: short, different for different traces, and `(synthetic)` if so.

    Names are letters, digits, `_` and `-` (the registry's schema), but may be long; of a long one the middle goes.
    """
    unique: dict[str, str] = {}
    taken: set[str] = set()
    for name, synthetic in traces:
        if name in unique:
            continue
        half = (LABEL_LENGTH - 1) // 2
        label = short = name if len(name) <= LABEL_LENGTH else f"{name[:half]}…{name[-half:]}"
        number = 1
        while label in taken:
            number += 1
            label = f"{short} ({number})"
        taken.add(label)
        unique[name] = f"{label} (synthetic)" if synthetic else label
    return unique


def worth_comparing(rows: Sequence[dict]) -> list[dict]:
    """The rows of real traces where there are two or more of them; else all: a made-up trace shows nothing."""
    real = [row for row in rows if not row["synthetic"]]
    return real if len(real) > 1 else list(rows)


def reasons(table: pl.DataFrame) -> list[tuple[str, str]]:
    """(trace, reason) of the blanks in a table, each once, in its order; outcomes that a format lacks as one reason."""
    told = table.filter(pl.col("reason").is_not_null()).select("trace", "reason").unique(maintain_order=True).rows()
    absent: dict[str, list[str]] = {}
    for trace, reason in told:
        if reason.startswith(_NO_OUTCOME):
            absent.setdefault(trace, []).append(reason.removeprefix(_NO_OUTCOME))
    together = {trace: f"{_NO_OUTCOME}{' or '.join(outcomes)}" for trace, outcomes in absent.items()}
    return list(
        dict.fromkeys((trace, together[trace] if reason.startswith(_NO_OUTCOME) else reason) for trace, reason in told)
    )


def metrics_of(metrics: Metrics, traces: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> None:
    """The numbers of the comparison's prose.

    of.<trace>.<number> for each trace; range.<number>.<lowest|highest>.<trace|value> over the real traces with enough
    behind them (FEWEST_ENDED jobs, FEWEST_FAILURES failures), where there are two or more. Components are in no range.
    """
    kinds = Counter(traces["gives"])
    metrics.put("traces.jobs", kinds["jobs"], "traces", "")
    metrics.put("traces.components", kinds["lives"], "traces", "")
    metrics.put("traces.synthetic", int(traces["synthetic"].sum()), "traces", "")
    for row in traces.filter(gives="jobs").iter_rows(named=True):
        for name in ("jobs", "gpu_jobs", "blank_request", "timeouts"):
            metrics.put(f"of.{row['trace']}.{name}", row[name], "jobs", "jobs.parquet", row["jobs"])
    _put_outcomes(metrics, tables)
    _put_run_times(metrics, tables)
    _put_mttf(metrics, tables["mttf"])


# ---- the rows of one trace ----


def _gpu_jobs(jobs: pl.DataFrame) -> pl.DataFrame:
    return jobs.filter(pl.col("gpu_milli") > 0).select(
        "outcome", "queue_s", "runtime_s", gpu_milli_s=gpu_seconds_milli(), gpus_low=_bucket(whole_gpus())
    )


def _bucket(gpus: pl.Expr) -> pl.Expr:
    """The first number of GPUs of the bucket that a number of GPUs falls into; null for none and for unknown."""
    lows = {place: low for place, (low, _) in enumerate(GPU_BUCKETS.values())}
    return gpu_bucket(gpus).replace_strict(lows, return_dtype=pl.Int64)


def _all_and_buckets() -> list[tuple[str, tuple[int | None, int | None]]]:
    return [("all", (None, None)), *GPU_BUCKETS.items()]


def _gpus(gpus: str) -> dict:
    low, high = GPU_BUCKETS.get(gpus, (None, None))
    return {"gpus": gpus, "gpus_low": low, "gpus_high": high}


def _in_bucket(jobs: pl.DataFrame, low: int | None) -> pl.DataFrame:
    return jobs if low is None else jobs.filter(pl.col("gpus_low") == low)


def _outcomes(subject: Subject, jobs: pl.DataFrame, reason: str | None) -> list[dict]:
    gpu_all = jobs["gpu_milli_s"].sum()
    rows = []
    for outcome in OUTCOMES:
        row: dict = {"outcome": outcome, "reason": reason or _untold(subject, jobs, outcome)}
        rows.append(row)
        if row["reason"]:
            continue
        group = jobs.filter(pl.col("outcome") == outcome)
        seen = group["gpu_milli_s"].count()
        row |= {"jobs": group.height, "jobs_share": group.height / jobs.height, "n": seen}
        if not gpu_all:
            row["reason"] = "no GPU time was seen"
        elif group.height and not seen and outcome != "waiting":
            row["reason"] = "no GPU job of this outcome has a known run time"
        else:
            gpu = group["gpu_milli_s"].sum()
            row |= {"gpu_hours": gpu / 3_600_000, "gpu_hours_share": gpu / gpu_all}
    return rows


def _untold(subject: Subject, jobs: pl.DataFrame, outcome: str) -> str | None:
    """Why the absence of an outcome says nothing, if so."""
    # That no result is lacking, a trace tells by having them all.
    if outcome == "unknown" or (jobs["outcome"] == outcome).any():
        return None
    if subject.outcomes is None:
        return f"no GPU job is {outcome}, and the format does not say whether it could tell"
    return None if outcome in subject.outcomes else f"{_NO_OUTCOME}{outcome}"


def _run_times(subject: Subject, jobs: pl.DataFrame, reason: str | None) -> list[dict]:
    rows = []
    for outcome in ENDS:
        row: dict = {"outcome": outcome, "reason": reason or _untold(subject, jobs, outcome)}
        rows.append(row)
        if row["reason"]:
            continue
        group = jobs.filter(pl.col("outcome") == outcome)
        row |= {"jobs": group.height} | _distribution(group["runtime_s"], "runtime")
        if not row["n"]:
            row["reason"] = "no GPU job of this outcome" + (" has a known run time" if group.height else "")
    return rows


def _queueing(jobs: pl.DataFrame, reason: str | None, has_queue: bool) -> list[dict]:
    if not has_queue:
        reason = reason or "the trace has no queueing delay"
    rows = []
    for gpus, (low, _) in _all_and_buckets():
        row = _gpus(gpus) | {"reason": reason}
        rows.append(row)
        if reason:
            continue
        group = _in_bucket(jobs, low)
        row |= {"jobs": group.height} | _distribution(group["queue_s"], "queue")
        if not row["n"]:
            so_many = "" if low is None else " with so many GPUs"
            row["reason"] = f"no GPU job{so_many}" + (" has a known queueing delay" if group.height else "")
    return rows


def _failure_share(jobs: pl.DataFrame, reason: str | None) -> list[dict]:
    rows = []
    for gpus, (low, _) in _all_and_buckets():
        row = _gpus(gpus) | {"reason": reason}
        rows.append(row)
        if reason:
            continue
        group = _in_bucket(jobs, low)
        failures = int((group["outcome"] == "failure").sum())
        ended = failures + int((group["outcome"] == "success").sum())
        row |= {"jobs": group.height, "ended": ended, "failures": failures}
        if ended:
            (ci_low,), (ci_high,) = wilson_interval([failures], [ended])
            row |= {"failure_share": failures / ended, "ci_low": float(ci_low), "ci_high": float(ci_high)}
        else:
            so_many = "" if low is None else " with so many GPUs"
            row["reason"] = f"no GPU job{so_many}" + (" ended in success or failure" if group.height else "")
    return rows


def _distribution(seconds: pl.Series, prefix: str) -> dict:
    """n, mean and quantiles of some whole seconds (null: unknown, left out).

    A quantile is a time that occurs: the one whose rank is nearest to 1 + (n - 1) q, the higher of two, as in
    runtime_quantiles.csv.
    """
    known = seconds.drop_nulls().sort()
    if not known.len():
        return {"n": 0}
    last = known.len() - 1
    quantiles = {f"{prefix}_{name}_s": known[(last * q + 50) // 100] for name, q in QUANTILES.items()}
    return {"n": known.len(), f"{prefix}_mean_s": known.sum() / known.len()} | quantiles


def _table(name: str, rows: Iterable[Mapping]) -> pl.DataFrame:
    schema = SCHEMAS[name]
    return pl.DataFrame([{column: row.get(column) for column in schema} for row in rows], schema=schema)


# ---- the numbers of the prose ----


def _put_outcomes(metrics: Metrics, tables: Mapping[str, pl.DataFrame]) -> None:
    source = "outcomes.csv"
    behind = {}
    for name in ("jobs", "n"):
        sums = tables["outcomes"].group_by("trace", maintain_order=True).agg(pl.col(name).sum())
        behind[name] = dict(sums.iter_rows())
    for row in tables["outcomes"].iter_rows(named=True):
        key = f"of.{row['trace']}.{row['outcome']}"
        metrics.put(f"{key}.jobs_share", row["jobs_share"], "share", source, behind["jobs"][row["trace"]])
        metrics.put(f"{key}.gpu_hours_share", row["gpu_hours_share"], "share", source, behind["n"][row["trace"]])
    source = "failure_share.csv"
    overall = [row for row in tables["failure_share"].iter_rows(named=True) if row["gpus"] == "all"]
    for row in overall:
        key = f"of.{row['trace']}"
        metrics.put(f"{key}.ended", row["ended"], "jobs", source, row["jobs"])
        metrics.put(f"{key}.failures", row["failures"], "jobs", source, row["ended"])
        for name, column in (("", "failure_share"), ("_low", "ci_low"), ("_high", "ci_high")):
            metrics.put(f"{key}.failure_share{name}", row[column], "share", source, row["ended"])
    _put_range(metrics, "failure_share", overall, "failure_share", "ended", FEWEST_ENDED, "share", source)


def _put_run_times(metrics: Metrics, tables: Mapping[str, pl.DataFrame]) -> None:
    for outcome in ENDS:
        rows = [row for row in tables["run_times"].iter_rows(named=True) if row["outcome"] == outcome]
        for row in rows:
            for name in ("mean", "median", "p90"):
                column = f"runtime_{name}_s"
                metrics.put(f"of.{row['trace']}.{outcome}.{column}", row[column], "s", "run_times.csv", row["n"])
        name = f"{outcome}.runtime_median_s"
        _put_range(metrics, name, rows, "runtime_median_s", "n", FEWEST_ENDED, "s", "run_times.csv")
    rows = [row for row in tables["queueing"].iter_rows(named=True) if row["gpus"] == "all"]
    for row in rows:
        for name in ("mean", "median", "p90"):
            column = f"queue_{name}_s"
            metrics.put(f"of.{row['trace']}.{column}", row[column], "s", "queueing.csv", row["n"])
    _put_range(metrics, "queue_median_s", rows, "queue_median_s", "n", FEWEST_ENDED, "s", "queueing.csv")


def _put_mttf(metrics: Metrics, mttf: pl.DataFrame) -> None:
    source = "mttf.csv"
    rows = [row for row in mttf.iter_rows(named=True) if row["gpus"] == "all" and row["confidence"] == 0.95]
    for row in rows:
        key = f"of.{row['trace']}"
        metrics.put(f"{key}.mttf_lives", row["n"], "lives", source)
        metrics.put(f"{key}.mttf_events", row["events"], "failures", source, row["n"])
        metrics.put(f"{key}.mttf_without_end", row["without_end"], "failures", source)
        for name, column in (("mttf_s", "mttf_s"), ("mttf_low_s", "ci_low_s"), ("mttf_high_s", "ci_high_s")):
            metrics.put(f"{key}.{name}", row[column], "s", source, row["n"])
        for days in ("gpu_days", "node_days"):
            name = f"failures_per_1000_{days}"
            metrics.put(f"{key}.{name}", row[name], f"failures per 1000 {days.replace('_', ' ')}", source, row["n"])
    of_jobs = [row for row in rows if row["gives"] == "jobs"]
    _put_range(metrics, "mttf_s", of_jobs, "mttf_s", "events", FEWEST_FAILURES, "s", source)


def _put_range(
    metrics: Metrics, name: str, rows: Sequence[dict], column: str, n: str, fewest: int, unit: str, source: str
) -> None:
    told = [row for row in rows if row[column] is not None and row[n] >= fewest and not row["synthetic"]]
    if len(told) < 2:
        return
    metrics.put(f"range.{name}.traces", len(told), "traces", source)
    for end, row in (("lowest", min(told, key=lambda r: r[column])), ("highest", max(told, key=lambda r: r[column]))):
        metrics.put(f"range.{name}.{end}.trace", row["trace"], "label", source, row[n])
        metrics.put(f"range.{name}.{end}.value", row[column], unit, source, row[n])
