"""The common job record: what every format's raw tables are turned into, and everything after reads."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import polars as pl

from ttf.engine.size_unit import CORE, GPU, JOB, NODE, UNITS, SizeUnit
from ttf.records.record_contracts import JOBS, NODES, PLACEMENTS, SIZE_UNIT

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)

# unknown: it ended, and with which result is not recorded.
OUTCOMES = ("success", "failure", "cancelled", "unknown", "running", "waiting")
# Slurm's words for a run that its time limit or its deadline ended.
TIME_LIMITS = ("TIMEOUT", "DEADLINE")

NODE_COLUMNS, PLACEMENT_COLUMNS = NODES.schema, PLACEMENTS.schema
# What a format gives; what jobs have in common follows from it (`ttf.records.clusters`).
JOB_COLUMNS = {name: kind for name, kind in JOBS.schema.items() if not name.startswith(("cluster", "group", "block"))}

# Share of the jobs that have to have a size in a unit for it to be used.
FEWEST_WITH_SIZE = {GPU: 0.01, NODE: 0.5, CORE: 0.5, JOB: 0.0}

# First and last number of whole GPUs of the job, None: without end; ATC'19 tells these sizes apart.
GPU_BUCKETS = {"1": (1, 1), "2-4": (2, 4), "5-8": (5, 8), ">8": (9, None)}


def conform(frame: Frame, columns: Mapping[str, type[pl.DataType]]) -> Frame:
    """The frame with `columns` first, in order and type (blank where the format has none), its extras after them."""
    extras = [name for name in frame.collect_schema().names() if name not in columns]
    frame = with_blanks(frame, columns)
    return frame.select(*(pl.col(name).cast(dtype) for name, dtype in columns.items()), *extras)


def with_blanks(frame: Frame, columns: Mapping[str, type[pl.DataType]]) -> Frame:
    """The frame with these columns, blank where it has none of the name."""
    given = frame.collect_schema()
    return frame.with_columns(pl.lit(None, dtype).alias(name) for name, dtype in columns.items() if name not in given)


def join_reasons(reasons: Mapping[str, pl.Expr]) -> pl.Expr:
    """The reasons that hold, with semicolons between them; blank where none does. reasons: text -> whether it holds."""
    texts = (pl.when(holds).then(pl.lit(text)) for text, holds in reasons.items())
    return pl.concat_str(*texts, separator="; ", ignore_nulls=True).replace("", None)


def choose_text(texts: Mapping[str, pl.Expr]) -> pl.Expr:
    """The first text that holds; blank where none does. texts: text -> whether it holds."""
    return pl.coalesce(pl.when(holds).then(pl.lit(text)) for text, holds in texts.items())


def as_placements(parts: pl.LazyFrame) -> pl.LazyFrame:
    """The parts with PLACEMENT_COLUMNS and no others, blank where they have none; the rows in their order.

    Where the parts do not bring them: runtime_s is end_s - start_s, blank if the end is before the start; own_outcome
    is whether the attempt is on one machine.
    """
    run_s = pl.col("end_s") - pl.col("start_s")
    derived = {
        "runtime_s": pl.when(run_s >= 0).then(run_s),
        "own_outcome": (pl.col("nodes") == 1).fill_null(False),
    }
    given = parts.collect_schema().names()
    parts = parts.with_columns(**{name: value for name, value in derived.items() if name not in given})
    return conform(parts, PLACEMENT_COLUMNS).select(list(PLACEMENT_COLUMNS))


def with_parts(jobs: pl.LazyFrame, parts: Sequence[str]) -> pl.LazyFrame:
    """The jobs with `part`, the part of the trace that each one's (first) row stands in, in place of `file`.

    jobs: with `file`, the place of that row's file among its table's files, of which each part has one. parts: the
    parts' names in their order; of a trace without parts there are none, and no column `part`.
    """
    if not parts:
        return jobs.drop("file")
    # A join streams; replacing the number by its name would hold every row at once.
    names = pl.LazyFrame({"file": range(len(parts)), "part": parts}, schema={"file": pl.Int32, "part": pl.String})
    return jobs.join(names, on="file", how="left", maintain_order="left").drop("file")


def nodes(raw: Mapping[str, pl.LazyFrame], table: str) -> pl.DataFrame:
    """One row per node, in file order; no rows where the trace comes without its table of nodes."""
    if table not in raw:
        return pl.DataFrame(schema=NODE_COLUMNS)
    return conform(raw[table].select(NODE_COLUMNS.keys()).collect(), NODE_COLUMNS)


def outcome_of(status: str, outcomes: Mapping[str, str]) -> pl.Expr:
    """The outcome of a raw status column by the format's own words.

    A word that only a person's own schema lets in says nothing to us of how the job ended: unknown.
    """
    return pl.col(status).replace_strict(outcomes, default="unknown", return_dtype=pl.String)


def status_word(status: str, is_phrase: bool) -> pl.Expr:
    """The word in this column that gives the outcome: of a phrase the first one."""
    return pl.col(status).str.extract(r"^\s*(\S+)") if is_phrase else pl.col(status).str.strip_chars()


def at_time_limit(status: str) -> pl.Expr:
    """Whether the status word in this column says that a time limit ended the run; false where there is none."""
    return pl.col(status).is_in(TIME_LIMITS).fill_null(False)


def ended_unrecorded(outcome: pl.Expr, end_s: pl.Expr, trace_end_s: pl.Expr) -> pl.Expr:
    """The outcome; `unknown` where the status says that a job runs of which an end before the trace's end is written.

    Such a status was last written while the job ran: it has ended since, and nobody wrote how. A job that reaches the
    trace's end may have gone on. Only for formats whose end of a running job is an end, not when it was last seen.
    """
    return pl.when((outcome == "running") & (end_s < trace_end_s)).then(pl.lit("unknown")).otherwise(outcome)


def came_twice(column: str, zone: str) -> pl.Expr:
    """Whether a moment (seconds since 1970) is in an hour that the zone's clocks showed twice; false where blank."""
    wall = pl.from_epoch(column, time_unit="s").dt.convert_time_zone(zone).dt.replace_time_zone(None)
    first, second = (wall.dt.replace_time_zone(zone, ambiguous=which) for which in ("earliest", "latest"))
    return (first != second).fill_null(False)


def last_moment(tables: Iterable[pl.LazyFrame]) -> int | None:
    """The last start or end in any of the tables; None where there is none."""
    last = pl.max_horizontal(pl.col("start_s").max(), pl.col("end_s").max())
    moments = (table.select(last).collect(engine="streaming").item() for table in tables)
    return max((moment for moment in moments if moment is not None), default=None)


def observed_s() -> pl.Expr:
    """How long a job has been seen to run, in seconds.

    The run time; for a running job without a written end, the time from its start to the trace's end. Blank for a job
    that never started and for one that ended at a time nobody wrote down.
    """
    running = pl.col("outcome") == "running"
    return pl.coalesce("runtime_s", pl.when(running).then(pl.col("trace_end_s") - pl.col("start_s")))


def whole_gpus() -> pl.Expr:
    """GPUs of the whole job, rounded up, so that a share of one counts as 1."""
    return (pl.col("gpu_milli") * pl.col("size") + 999) // 1000


def doubling(gpus: pl.Expr) -> pl.Expr:
    """The most GPUs of the bucket 1, 2, 3 to 4, 5 to 8 ... that a number of GPUs is in; 0 for none and unknown."""
    # The next power of two, by the bits of the number before.
    power = pl.lit(2, dtype=pl.Int64).pow(64 - (gpus - 1).bitwise_leading_zeros())
    return pl.when(gpus > 0).then(power).otherwise(0)


def gpu_bucket(gpus: pl.Expr) -> pl.Expr:
    """The place in GPU_BUCKETS of a whole number of GPUs (Int16); null for none and for unknown."""
    later = [(gpus >= low).cast(pl.Int16) for low, _ in list(GPU_BUCKETS.values())[1:]]
    return pl.when(gpus >= 1).then(pl.sum_horizontal(later)).cast(pl.Int16)


def gpus_of(bucket: str) -> str:
    """A bucket of GPU_BUCKETS in words: 1 GPU, 2–4 GPUs, more than 8 GPUs."""
    return "1 GPU" if bucket == "1" else f"{bucket.replace('>', 'more than ').replace('-', '–')} GPUs"


def size_units(jobs: Frame) -> pl.DataFrame:
    """How many of the jobs that started have a size in each unit, and which unit is used: SIZE_UNIT.

    That of the first unit in which enough jobs have a size. A trace is one of GPUs where one job in a hundred requests
    them: those of a few others are told in nodes with all the rest.
    """
    gpus = pl.col("gpu_milli") * pl.col("size")
    has = (gpus > 0, pl.col("nodes") > 0, pl.col("cpu_milli") > 0)
    started = jobs.lazy().filter(pl.col("outcome") != "waiting")
    counts = started.select(*(sized.sum().alias(unit) for unit, sized in zip(UNITS, has, strict=False)), every=pl.len())
    *_, every = jobs_with = counts.collect(engine="streaming").row(0)
    shares = [count / every if every else None for count in jobs_with]
    enough = [share is None or share >= FEWEST_WITH_SIZE[unit] for unit, share in zip(UNITS, shares, strict=True)]
    used = enough.index(True)
    return SIZE_UNIT.frame(
        {"unit": str(unit), "jobs": count, "jobs_share": share, "used": place == used}
        for place, (unit, count, share) in enumerate(zip(UNITS, jobs_with, shares, strict=True))
    )


def size_milli(unit: SizeUnit, columns: Sequence[str]) -> pl.Expr:
    """The size of a whole job, attempt or life of these columns in thousandths of the unit; blank where none is known.

    Requests of an attempt or a life are of all of it, those of a job, which has a `size`, of an instance.
    """
    instances = pl.col("size").fill_null(1) if "size" in columns else 1
    milli = {GPU: "gpu_milli", CORE: "cpu_milli"}.get(unit)
    if milli:
        return pl.col(milli) * instances if milli in columns else pl.lit(None, pl.Int64)
    return 1000 * pl.col("nodes") if unit == NODE else pl.lit(1000, pl.Int64)


def in_size_unit(rows: pl.LazyFrame, unit: SizeUnit) -> pl.LazyFrame:
    """Jobs, attempts or lives with this unit in place of GPUs in gpu_milli and gpu_count, of all instances of a job."""
    there, milli = rows.collect_schema().names(), pl.col("gpu_milli")
    rows = rows.with_columns(gpu_milli=size_milli(unit, there))
    sized = {"gpu_count": ((milli + 999) // 1000).fill_null(0), "size": pl.lit(1, pl.Int64)}
    return rows.with_columns(**{name: value for name, value in sized.items() if name in there})


def gpu_seconds_milli() -> pl.Expr:
    """GPU time seen, in milli-GPU seconds: share of a GPU per instance x instances x time observed.

    128 bits wide: summed over a large cluster's years it would not fit 64.
    """
    return pl.col("gpu_milli").cast(pl.Int128) * pl.col("size") * observed_s()
