"""The jobs that a risk is learnt from: what became of each, and from which moment on that was known."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
import polars as pl
import polars.selectors as cs

from ttf.engine.size_unit import GPU, SizeUnit
from ttf.records.clusters import READ_OF_JOBS, level_names
from ttf.records.jobs import observed_s, size_milli

# A recorded failure is held against all other ends.
ENDED = ("success", "failure", "cancelled", "unknown")
# An end that nobody wrote is taken to be known after this share of the ends of that outcome that were written by then.
LATE = 0.99
# How long that is, is reckoned anew after the first hour, and whenever the trace is older by a tenth.
FIRST_S, OLDER = 3600, 1.1
READ = (
    *("submit_s", "start_s", "end_s", "runtime_s", "outcome", "trace_end_s", "gpu_milli", "size"),
    *("user", "gpu_type", "part", *READ_OF_JOBS),
)
NEVER = np.iinfo(np.int64).max
EARLIER = "earlier"


@dataclass(frozen=True)
class Population:
    """Jobs in the order of submission, n of each array.

    jobs: their columns; ended, failed: truth values; known_s: when the end was known (NEVER of those that run or wait);
    started_s, ended_s: NEVER where it has not, or nobody wrote it; hours: of
    the run as far as it was seen, NaN where it is not known; running; gpus: GPUs of all instances (0 where no
    GPU was requested); cluster: number of what repeats, -1 where the trace names nothing; by: what that is.
    left_out: reason -> jobs that take no part.
    """

    jobs: pl.DataFrame
    ended: np.ndarray
    failed: np.ndarray
    running: np.ndarray
    submit_s: np.ndarray
    started_s: np.ndarray
    ended_s: np.ndarray
    known_s: np.ndarray
    hours: np.ndarray
    gpus: np.ndarray
    cluster: np.ndarray
    by: str | None
    left_out: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ended)

    def latest(self, most: int) -> "Population":
        """So many of them, submitted last, each as it was."""
        if len(self) <= most:
            return self
        values = {of.name: getattr(self, of.name) for of in fields(self)}
        by_job = {name: of[-most:] for name, of in values.items() if isinstance(of, pl.DataFrame | np.ndarray)}
        return replace(self, **by_job, left_out=self.left_out | {EARLIER: len(self) - most})

    def codes(self, column: str) -> np.ndarray | None:
        """The number of each job's value in a column, 0 for a blank; None where the trace has no such values."""
        if column not in self.jobs.columns or self.jobs[column].null_count() == len(self):
            return None
        return codes_of(self.jobs[column])


def codes_of(values: pl.Series) -> np.ndarray:
    """Numbers that tell values apart, 0 for a blank; no order is meant."""
    if values.dtype == pl.String:
        values = values.cast(pl.Categorical)
    number = values.to_physical() if values.dtype == pl.Categorical else values.rank("dense") - 1
    return (number.cast(pl.Int64) + 1).fill_null(0).to_numpy()


def population(jobs: pl.LazyFrame, columns: Sequence[str] = (), unit: SizeUnit = GPU) -> Population:
    """The jobs of a trace as far as a risk can be learnt from them. jobs: the common job record.

    columns: what of them is read besides READ; unit: in which `gpus` are told, whatever the columns hold. A job without
    a submission, or that ended before it, takes no part. The end of a job that ended at a time nobody wrote counts as
    known as long after its submission as 99 in 100 of its outcome took that had ended by then: later than that it
    hardly was, and earlier it may not be used.
    """
    there = jobs.collect_schema().names()
    wanted = [name for name in dict.fromkeys([*READ, *columns]) if name in there]
    # Texts by number: those of a million jobs would be most of the memory.
    milli = size_milli(unit, there)
    read = (
        jobs.select(wanted, seen_s=observed_s(), size_milli=milli)
        .with_columns(cs.string().cast(pl.Categorical))
        .collect()
    )
    ended_before = (read["end_s"] < read["submit_s"]).fill_null(False)
    left_out = {"no submission": read["submit_s"].null_count(), "ended before it was submitted": ended_before.sum()}
    # Each step is a copy of all jobs.
    kept = read if not any(left_out.values()) else read.filter(read["submit_s"].is_not_null() & ~ended_before)
    if not kept["submit_s"].is_sorted():
        kept = kept.sort("submit_s", maintain_order=True)
    del read
    outcome, submit_s = kept["outcome"].cast(pl.String), kept["submit_s"].to_numpy()
    ended, running = outcome.is_in(ENDED).to_numpy(), (outcome == "running").to_numpy()
    known = kept["end_s"].fill_null(NEVER).to_numpy().copy()
    for name in ENDED:
        of_it = (outcome == name).to_numpy()
        written, unwritten = (np.flatnonzero(of_it & (known < NEVER)), np.flatnonzero(of_it & (known == NEVER)))
        if len(unwritten):
            known[unwritten] = _known_late(submit_s[unwritten], submit_s[written], known[written])
    known = np.where(known == NEVER, kept["trace_end_s"].fill_null(NEVER).to_numpy(), known)
    hours = kept["seen_s"].cast(pl.Float64).to_numpy() / 3600
    gpus = kept["size_milli"].fill_null(0).to_numpy() / 1000
    by, group_by, _ = level_names(kept)
    cluster = np.full(kept.height, -1)
    if by is not None and kept.height:
        cluster = kept["cluster"].cast(pl.Int64).to_numpy()
        if cluster.max() == 0 and cluster.min() == 0:
            by, cluster = group_by, kept["group"].cast(pl.Int64).to_numpy()
    return Population(
        jobs=kept.drop("seen_s", "size_milli"),
        ended=ended,
        failed=(outcome == "failure").to_numpy(),
        running=running,
        submit_s=submit_s,
        started_s=kept["start_s"].fill_null(NEVER).to_numpy(),
        ended_s=kept["end_s"].fill_null(NEVER).to_numpy(),
        known_s=np.where(ended, known, NEVER),
        hours=hours,
        gpus=gpus,
        cluster=cluster,
        by=by,
        left_out={why: number for why, number in left_out.items() if number},
    )


def _known_late(submit_s: np.ndarray, of_others_s: np.ndarray, end_s: np.ndarray) -> np.ndarray:
    """When ends that nobody wrote are known, by the others of their outcome: submitted `of_others_s`, ended `end_s`.

    submit_s ascending. At no moment does it rest on an end that came later. NEVER where nothing tells.
    """
    known = np.full(len(submit_s), NEVER)
    order = np.argsort(end_s, kind="stable")
    ends, took = end_s[order], (end_s - of_others_s)[order]
    if not len(ends):
        return known
    first = min(int(of_others_s.min()), int(submit_s[0]))
    last = max(int(ends[-1]), int(submit_s[-1])) + 1
    steps = int(np.log(max(1.0, (last - first) / FIRST_S)) / np.log(OLDER)) + 2
    moments = first + (FIRST_S * OLDER ** np.arange(steps)).astype(np.int64)
    for moment, until in zip(moments, [*moments[1:], NEVER], strict=True):
        before = int(np.searchsorted(ends, moment))
        if not before:
            continue
        rank = int(np.ceil(LATE * (before - 1)))
        late = submit_s + int(np.partition(took[:before], rank)[rank])
        open_ = (known == NEVER) & (late < until)
        known[open_] = np.maximum(late[open_], moment)
    return known
