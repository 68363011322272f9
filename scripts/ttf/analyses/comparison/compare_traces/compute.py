"""Compare traces: copy cells from the tables of each trace, so that a quantity has one definition.

Nothing is estimated here. What a trace or its format does not record is blank, with a reason, and never 0. Sizes that
are not in GPUs cannot be compared with those that are.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import polars as pl

from ttf.analyses.comparison.compare_traces import ANALYSIS, READ, SIZES
from ttf.analyses.comparison.compare_traces.trace_labels import NO_OUTCOME, RUN_ENDS
from ttf.analyses.outcomes.split_outcomes import OUTCOMES as OUTCOMES_OF_TRACE
from ttf.engine.size_unit import GPU, SizeUnit
from ttf.engine.storage.tables import detect_unit, read_table
from ttf.records.inputs import Inputs
from ttf.records.jobs import GPU_BUCKETS, OUTCOMES

NO_WAIT, NO_TIME = "the trace has no queueing delay", "no job of this outcome has a known run time"


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    frames: dict[str, list[pl.DataFrame]] = {table.name: [] for table in ANALYSIS.tables}
    traces_by_table = inputs.settings.traces_by_table
    files = {
        source: dict(zip(traces_by_table[source.name], inputs.files.get(source.name, ()), strict=True))
        for source in READ
    }
    for trace, options in inputs.settings.about.items():
        tables = {
            source.name: read_table(file_by_trace[trace], source)
            for source, file_by_trace in files.items()
            if trace in file_by_trace
        }
        has_outcomes = trace in files[OUTCOMES_OF_TRACE]
        unit = detect_unit(files[OUTCOMES_OF_TRACE][trace], OUTCOMES_OF_TRACE) if has_outcomes else GPU
        for name, frame in compare_trace(Subject(trace, **options), tables, unit).items():
            frames[name].append(frame)
    return {table.name: pl.concat([table.frame([]), *frames[table.name]]) for table in ANALYSIS.tables}


@dataclass(frozen=True)
class Subject:
    """A trace of the comparison.

    unit: name of a job or a component. gives: jobs, or durations of components. outcomes: those of its format; None if
    unknown.
    """

    trace: str
    unit: str = "job"
    gives: str = "jobs"
    synthetic: bool = False
    outcomes: Collection[str] | None = None


def compare_trace(
    subject: Subject, tables: Mapping[str, pl.DataFrame], unit: SizeUnit = GPU
) -> dict[str, pl.DataFrame]:
    """Return the rows of one trace by table. tables: those of READ that it has; unit: of the sizes of its jobs."""
    rows: dict[str, list[dict]] = {"compared_traces": [{}]}
    if "mttf" in tables:
        rows["compared_mttf"] = _mttf_rows(tables)
    if subject.gives == "jobs":
        summary, ended = (tables[name].row(0, named=True) for name in ("jobs_summary", "ended_jobs"))
        rows |= {
            "compared_traces": [summary | ended],
            "compared_outcomes": _outcome_rows(subject, tables["outcomes"]),
            "compared_run_times": _run_time_rows(subject, tables),
            "compared_queueing": _queueing_rows(tables["percentiles"]),
            "compared_failure_share": _failure_share_rows(tables["outcomes_by_gpus"], ended),
        }
    facts = {name: getattr(subject, name) for name in ("trace", "synthetic", "unit", "gives")}
    contracts = {table.name: table for table in ANALYSIS.tables}
    frames = {
        name: contracts[name].frame(row | facts for row in table_rows if unit.is_gpu or _is_of_all_sizes(row))
        for name, table_rows in rows.items()
    }
    return frames if unit.is_gpu else {name: _blank_gpu_time(frame, unit) for name, frame in frames.items()}


def _is_of_all_sizes(row: Mapping) -> bool:
    return row.get("gpus_high") is None and row.get("gpus", "all") == "all"


def _blank_gpu_time(frame: pl.DataFrame, unit: SizeUnit) -> pl.DataFrame:
    """Blank GPU hours and shares of GPU time of a trace that is sized in another unit."""
    columns = [name for name in frame.columns if "gpu_" in name and name != "gpu_jobs"]
    if not columns:
        return frame
    reason = pl.concat_str("reason", pl.lit(f"the trace has sizes in {unit}s"), separator="; ", ignore_nulls=True)
    return frame.with_columns(pl.lit(None, pl.Float64).alias(name) for name in columns).with_columns(reason=reason)


def _explain_absence(subject: Subject, outcome: str) -> str:
    """Return why a trace has no job of this outcome."""
    if subject.outcomes is None:
        return f"no job is {outcome}, and the format does not say whether it could tell"
    return "no job of this outcome" if outcome in subject.outcomes else f"{NO_OUTCOME}{outcome}"


def _outcome_rows(subject: Subject, outcomes: pl.DataFrame) -> list[dict]:
    """Return a row for each outcome; the reason of the trace's table is about columns that are not compared."""
    row_by_outcome = {row["outcome"]: row for row in outcomes.iter_rows(named=True)}
    rows = []
    for outcome in OUTCOMES:
        row = row_by_outcome.get(outcome)
        if row is None or not row["jobs"]:
            rows.append({"outcome": outcome, "reason": _explain_absence(subject, outcome)})
        else:
            is_blank = None in (row["jobs_share"], row["gpu_hours_share"])
            rows.append(row | {"reason": row["reason"] if is_blank else None})
    return rows


def _run_time_rows(subject: Subject, tables: Mapping[str, pl.DataFrame]) -> list[dict]:
    """Return a row of run-time quantiles for each outcome of RUN_ENDS."""
    times = tables["percentiles"].filter(quantity="runtime_s", group_by="all")
    row_by_outcome = {row["outcome_set"]: row for row in times.iter_rows(named=True)}
    present = set(tables["outcomes"].filter(pl.col("jobs") > 0)["outcome"])
    return [
        {"outcome": outcome}
        | row_by_outcome.get(outcome, {"reason": NO_TIME if outcome in present else _explain_absence(subject, outcome)})
        for outcome in RUN_ENDS
    ]


def _queueing_rows(percentiles: pl.DataFrame) -> list[dict]:
    waits = percentiles.filter(quantity="queue_s", outcome_set="all")
    row_by_size = {
        row["group"]: row for row in waits.filter(pl.col("group_by").is_in(["all", "gpus"])).iter_rows(named=True)
    }
    if not row_by_size:
        return [{"gpus": "all", "reason": NO_WAIT}]
    return [{"gpus": gpus} | row_by_size[gpus] for gpus in ("all", *GPU_BUCKETS) if gpus in row_by_size]


def _failure_share_rows(by_size: pl.DataFrame, ended: dict) -> list[dict]:
    """Return the failure share of all jobs and of those of each size in SIZES."""
    bounds = {f"ci_{side}": f"failure_share_{side}" for side in ("low", "high", "low_clustered", "high_clustered")}
    overall = ended | {name: ended[column] for name, column in bounds.items()}
    if overall["ci_low_clustered"] is None:
        overall["reason"] = "no job ended" if not ended["ended"] else "too few clusters, or the trace has none"
    return [overall, *by_size.filter(pl.col("gpus_high").is_in(SIZES)).iter_rows(named=True)]


def _mttf_rows(tables: Mapping[str, pl.DataFrame]) -> list[dict]:
    """Return the MTTF of all units and of the jobs of each size in SIZES."""
    without_end = tables["failures_without_end"].select("stratum_by", "stratum", "without_end")
    sizes = [str(size) for size in SIZES]
    is_size = (pl.col("stratum_by") == "gpu_count") & pl.col("stratum").is_in(sizes)
    means = tables["mttf"].filter((pl.col("stratum_by") == "all") | is_size, event="failure")
    means = means.join(without_end, on=["stratum_by", "stratum"], how="left", maintain_order="left")
    gpus = pl.when(stratum_by="gpu_count").then(pl.col("stratum").cast(pl.Int64, strict=False))
    return means.with_columns(gpus_low=gpus, gpus_high=gpus).to_dicts()
