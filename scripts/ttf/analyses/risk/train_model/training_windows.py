"""Split the submissions of a trace into consecutive windows; a model is trained after each."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from ttf.analyses.shared.risk.training_jobs import Population
from ttf.records.windows import WINDOW_S

ALL = "all"
# Longer file names are cut; the window number comes first.
LONGEST_FILE = 80


@dataclass(frozen=True)
class Window:
    """rows: indices of its jobs, ascending; end_s: when its model is made, from what is known by then.

    is_all: the only window; its model knows every recorded end.
    """

    name: str
    rows: np.ndarray
    end_s: int
    is_all: bool = False

    @property
    def model_name(self) -> str:
        """Name of its model and file: `week_1`, `part_2_2025-b.txt`."""
        return re.sub(r"[^A-Za-z0-9.-]+", "_", self.name)[:LONGEST_FILE]


def split_windows(jobs: Population, windows: Mapping[str, str], parts: Sequence[str]) -> list[Window]:
    """Return a window per `windows.by` of the registry entry (week, ...), else per part, else one; named as for drift.

    Windows without jobs are omitted. A window ends where the next begins or where the trace ends; a part ends with its
    last submission.
    """
    last_s = _trace_end_s(jobs)
    unit = windows.get("by") or ("part" if len(parts) > 1 else None)
    if unit is None:
        return [Window(ALL, np.arange(len(jobs)), last_s + 1, is_all=True)]
    return list(_split_by_part(jobs, parts) if unit == "part" else _split_by_time(jobs, unit, last_s))


def _split_by_time(jobs: Population, unit: str, last_s: int) -> Iterator[Window]:
    if not len(jobs):
        return
    first_s = int(jobs.submit_s[0])
    window_index = (jobs.submit_s - first_s) // WINDOW_S[unit]
    for index in np.unique(window_index).tolist():
        end_s = min(first_s + (index + 1) * WINDOW_S[unit], last_s + 1)
        yield Window(f"{unit} {index + 1}", np.flatnonzero(window_index == index), end_s)


def _split_by_part(jobs: Population, parts: Sequence[str]) -> Iterator[Window]:
    indices = {number: index for index, number in enumerate(parts)}
    number = jobs.jobs["part"].cast(pl.String).replace_strict(indices, default=-1, return_dtype=pl.Int64).to_numpy()
    end_s = 0
    for name, index in indices.items():
        rows = np.flatnonzero(number == index)
        if len(rows):
            # Parts may overlap in time.
            end_s = max(end_s, int(jobs.submit_s[rows[-1]]) + 1)
            yield Window(f"part {index + 1}: {name}", rows, end_s)


def _trace_end_s(jobs: Population) -> int:
    end_s = jobs.jobs.select(pl.col("trace_end_s").max()).item() if "trace_end_s" in jobs.jobs.columns else None
    submit_s = int(jobs.submit_s[-1]) if len(jobs) else 0
    return max(submit_s, end_s or 0)
