"""The common job record: the form that every format's raw tables are converted to."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import polars as pl

from ttf.engine.size_unit import CORE, GPU, JOB, NODE, UNITS, SizeUnit
from ttf.records.record_contracts import JOBS, NODES, PLACEMENTS, SIZE_UNIT, TIME_LIMITS

Rows = pl.DataFrame | pl.LazyFrame
# The type of a frame that a function returns as it gets it.
Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)
DataType: TypeAlias = pl.DataType | type[pl.DataType]

# unknown: it ended without a recorded result.
OUTCOMES = ("success", "failure", "cancelled", "unknown", "running", "waiting")

NODE_COLUMNS, PLACEMENT_COLUMNS = NODES.schema, PLACEMENTS.schema
# Columns of a format; the cluster columns are derived (`ttf.records.clusters`).
JOB_COLUMNS = {name: kind for name, kind in JOBS.schema.items() if not name.startswith(("cluster", "group", "block"))}

# Share of jobs that must have a size in a unit for the unit to be used.
FEWEST_WITH_SIZE = {GPU: 0.01, NODE: 0.5, CORE: 0.5, JOB: 0.0}

# First and last number of a job's whole GPUs, None: no upper limit; the sizes of ATC'19.
GPU_BUCKETS = {"1": (1, 1), "2-4": (2, 4), "5-8": (5, 8), ">8": (9, None)}


def conform(frame: Frame, columns: Mapping[str, DataType]) -> Frame:
    """Return the frame with `columns` first, in order and type (blank if missing), other columns after them."""
    extras = [name for name in frame.collect_schema().names() if name not in columns]
    frame = add_blank_columns(frame, columns)
    return frame.select(*(pl.col(name).cast(dtype) for name, dtype in columns.items()), *extras)


def add_blank_columns(frame: Frame, columns: Mapping[str, DataType]) -> Frame:
    """Add these columns as blanks where the frame has none of the name."""
    schema = frame.collect_schema()
    return frame.with_columns(pl.lit(None, dtype).alias(name) for name, dtype in columns.items() if name not in schema)


def join_reasons(reasons: Mapping[str, pl.Expr]) -> pl.Expr:
    """Join the texts that apply with semicolons; blank if none does. reasons: text -> condition."""
    texts = (pl.when(condition).then(pl.lit(text)) for text, condition in reasons.items())
    return pl.concat_str(*texts, separator="; ", ignore_nulls=True).replace("", None)


def choose_text(texts: Mapping[str, pl.Expr]) -> pl.Expr:
    """Return the first text that applies; blank if none does. texts: text -> condition."""
    return pl.coalesce(pl.when(condition).then(pl.lit(text)) for text, condition in texts.items())


def conform_placements(parts: pl.LazyFrame) -> pl.LazyFrame:
    """Return the parts with exactly PLACEMENT_COLUMNS, blank where missing; the order of rows stays.

    Missing columns are derived: runtime_s is end_s - start_s, blank if the end is before the start; own_outcome is
    whether the attempt is on one machine.
    """
    run_s = pl.col("end_s") - pl.col("start_s")
    derived = {
        "runtime_s": pl.when(run_s >= 0).then(run_s),
        "own_outcome": (pl.col("nodes") == 1).fill_null(False),
    }
    columns = parts.collect_schema().names()
    parts = parts.with_columns(**{name: value for name, value in derived.items() if name not in columns})
    return conform(parts, PLACEMENT_COLUMNS).select(list(PLACEMENT_COLUMNS))


def add_part_names(jobs: pl.LazyFrame, parts: Sequence[str]) -> pl.LazyFrame:
    """Replace `file` of the jobs by `part`, the part of the trace with each job's (first) row.

    jobs: with `file`, the index of that row's file among its table's files, one for each part. parts: names in that
    order; a trace without parts has none, and no column `part`.
    """
    if not parts:
        return jobs.drop("file")
    # A join streams; replacing the number by its name would hold all rows in memory.
    names = pl.LazyFrame({"file": range(len(parts)), "part": parts}, schema={"file": pl.Int32, "part": pl.String})
    return jobs.join(names, on="file", how="left", maintain_order="left").drop("file")


def read_nodes(raw: Mapping[str, pl.LazyFrame], table: str | None) -> pl.DataFrame:
    """Return one row per node, in file order; empty for a trace without its table of nodes."""
    if table is None or table not in raw:
        return pl.DataFrame(schema=NODE_COLUMNS)
    return conform(raw[table].select(NODE_COLUMNS.keys()).collect(), NODE_COLUMNS)


def map_outcome(status: str, outcomes: Mapping[str, str]) -> pl.Expr:
    """Return the outcome of a raw status column by the format's own words.

    `*` stands for all other words. Without it their meaning is unknown, and so is the outcome.
    """
    return pl.col(status).replace_strict(outcomes, default=outcomes.get("*", "unknown"), return_dtype=pl.String)


def status_word(status: str, is_phrase: bool) -> pl.Expr:
    """Return the word in this column that determines the outcome: the first one of a phrase."""
    return pl.col(status).str.extract(r"^\s*(\S+)") if is_phrase else pl.col(status).str.strip_chars()


def is_at_time_limit(status: str) -> pl.Expr:
    """Return whether the status word says that a time limit ended the run; false without a word."""
    return pl.col(status).is_in(TIME_LIMITS).fill_null(False)


def mark_unrecorded_ends(outcome: pl.Expr, end_s: pl.Expr, trace_end_s: pl.Expr) -> pl.Expr:
    """Return the outcome, or `unknown` if the status says running, but an end before the trace's end is recorded.

    Such a status was last written while the job ran; its result is not recorded. A job that reaches the trace's end may
    have continued. Only for formats whose end of a running job is an end, not when it was last seen.
    """
    return pl.when((outcome == "running") & (end_s < trace_end_s)).then(pl.lit("unknown")).otherwise(outcome)


def is_in_repeated_hour(column: str, zone: str) -> pl.Expr:
    """Return whether a moment (seconds since 1970) is in a repeated hour of the zone's clocks; false if blank."""
    wall = pl.from_epoch(column, time_unit="s").dt.convert_time_zone(zone).dt.replace_time_zone(None)
    first, second = (wall.dt.replace_time_zone(zone, ambiguous=choice) for choice in ("earliest", "latest"))
    return (first != second).fill_null(False)


def last_moment(tables: Iterable[pl.LazyFrame]) -> int | None:
    """Return the last start or end in any of the tables; None if there is none."""
    last = pl.max_horizontal(pl.col("start_s").max(), pl.col("end_s").max())
    moments = (table.select(last).collect(engine="streaming").item() for table in tables)
    return max((moment for moment in moments if moment is not None), default=None)


def observed_s() -> pl.Expr:
    """Return the observed run time of a job, in seconds.

    The run time; for a running job without a recorded end, the time from its start to the trace's end. Blank for a job
    that never started, and for one with an unknown end.
    """
    is_running = pl.col("outcome") == "running"
    return pl.coalesce("runtime_s", pl.when(is_running).then(pl.col("trace_end_s") - pl.col("start_s")))


def whole_gpus() -> pl.Expr:
    """Return the GPUs of the whole job, rounded up, so that a share of one counts as 1."""
    return (pl.col("gpu_milli") * pl.col("size") + 999) // 1000


def doubling_bucket(gpus: pl.Expr) -> pl.Expr:
    """Return the largest number of GPUs in the bucket 1, 2, 3 to 4, 5 to 8 ...; 0 for none and unknown."""
    # The next power of two, from the bits of the number minus one.
    power = pl.lit(2, dtype=pl.Int64).pow(64 - (gpus - 1).bitwise_leading_zeros())
    return pl.when(gpus > 0).then(power).otherwise(0)


def gpu_bucket(gpus: pl.Expr) -> pl.Expr:
    """Return the index in GPU_BUCKETS of a whole number of GPUs (Int16); null for none and unknown."""
    thresholds = [(gpus >= low).cast(pl.Int16) for low, _ in list(GPU_BUCKETS.values())[1:]]
    return pl.when(gpus >= 1).then(pl.sum_horizontal(thresholds)).cast(pl.Int16)


def bucket_label(bucket: str) -> str:
    """Return a bucket of GPU_BUCKETS in words: 1 GPU, 2–4 GPUs, more than 8 GPUs."""
    return "1 GPU" if bucket == "1" else f"{bucket.replace('>', 'more than ').replace('-', '–')} GPUs"


def size_units(jobs: Frame) -> pl.DataFrame:
    """Return SIZE_UNIT: the number of started jobs with a size in each unit, and the unit that is used.

    The used unit is the first in which enough jobs have a size. A trace counts GPUs if one job in a hundred requests
    them; with fewer, all jobs are measured in nodes.
    """
    gpus = pl.col("gpu_milli") * pl.col("size")
    has_size = (gpus > 0, pl.col("nodes") > 0, pl.col("cpu_milli") > 0)
    started = jobs.lazy().filter(pl.col("outcome") != "waiting")
    n_with_size = (condition.sum().alias(unit) for unit, condition in zip(UNITS, has_size, strict=False))
    counts = started.select(*n_with_size, total=pl.len())
    *_, total = n_sized = counts.collect(engine="streaming").row(0)
    shares = [count / total if total else None for count in n_sized]
    is_enough = [share is None or share >= FEWEST_WITH_SIZE[unit] for unit, share in zip(UNITS, shares, strict=True)]
    used = is_enough.index(True)
    return SIZE_UNIT.frame(
        {"unit": str(unit), "jobs": count, "jobs_share": share, "used": index == used}
        for index, (unit, count, share) in enumerate(zip(UNITS, n_sized, shares, strict=True))
    )


def size_milli(unit: SizeUnit, columns: Sequence[str]) -> pl.Expr:
    """Return the size of a whole job, attempt or duration in thousandths of the unit; blank if unknown.

    Requests of an attempt or a duration are for all of it; those of a job, which has a `size`, are per instance.
    """
    instances = pl.col("size").fill_null(1) if "size" in columns else 1
    milli = {GPU: "gpu_milli", CORE: "cpu_milli"}.get(unit)
    if milli:
        return pl.col(milli) * instances if milli in columns else pl.lit(None, pl.Int64)
    return 1000 * pl.col("nodes") if unit == NODE else pl.lit(1000, pl.Int64)


def convert_size_unit(rows: pl.LazyFrame, unit: SizeUnit) -> pl.LazyFrame:
    """Replace GPUs by this unit in gpu_milli and gpu_count of jobs, attempts or durations, over all instances."""
    columns, milli = rows.collect_schema().names(), pl.col("gpu_milli")
    rows = rows.with_columns(gpu_milli=size_milli(unit, columns))
    derived = {"gpu_count": ((milli + 999) // 1000).fill_null(0), "size": pl.lit(1, pl.Int64)}
    return rows.with_columns(**{name: value for name, value in derived.items() if name in columns})


def gpu_seconds_milli() -> pl.Expr:
    """Return the observed GPU time in milli-GPU seconds: share of a GPU per instance x instances x observed time.

    128 bits wide: the sum over years of a large cluster would not fit 64.
    """
    return pl.col("gpu_milli").cast(pl.Int128) * pl.col("size") * observed_s()
