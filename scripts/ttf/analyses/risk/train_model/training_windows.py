"""The windows of a trace's submissions, one after the other, after each of which a model is trained."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from ttf.analyses.shared.risk.training_jobs import Population
from ttf.records.windows import WINDOW_S

ALL = "all"
# Longer names of files are cut; the number of the window stands first.
LONGEST_FILE = 80


@dataclass(frozen=True)
class Window:
    """rows: the places of its jobs, ascending; end_s: the moment at which its model is made: what is known later has no
    part in it. is_all: the only window, whose model knows every end that the trace tells.
    """

    name: str
    rows: np.ndarray
    end_s: int
    is_all: bool = False

    @property
    def model(self) -> str:
        """The name of its model, and of the file: `week_1`, `part_2_2025-b.txt`."""
        return re.sub(r"[^A-Za-z0-9.-]+", "_", self.name)[:LONGEST_FILE]


def windows_of(jobs: Population, windows: Mapping[str, str], parts: Sequence[str]) -> list[Window]:
    """As the registry entry asks (`windows.by`), named as drift names them; without that the parts, else one window.

    A window without a job is left out. It ends where the next begins, or the trace does; a part with the last
    submission until then.
    """
    last_s = _last_s(jobs)
    by = windows.get("by") or ("part" if len(parts) > 1 else None)
    if by is None:
        return [Window(ALL, np.arange(len(jobs)), last_s + 1, is_all=True)]
    return list(_of_parts(jobs, parts) if by == "part" else _of_time(jobs, by, last_s))


def _of_time(jobs: Population, by: str, last_s: int) -> Iterator[Window]:
    if not len(jobs):
        return
    first = int(jobs.submit_s[0])
    number = (jobs.submit_s - first) // WINDOW_S[by]
    for place in np.unique(number).tolist():
        end_s = min(first + (place + 1) * WINDOW_S[by], last_s + 1)
        yield Window(f"{by} {place + 1}", np.flatnonzero(number == place), end_s)


def _of_parts(jobs: Population, parts: Sequence[str]) -> Iterator[Window]:
    places = {part: place for place, part in enumerate(parts)}
    part = jobs.jobs["part"].cast(pl.String).replace_strict(places, default=-1, return_dtype=pl.Int64).to_numpy()
    end_s = 0
    for name, place in places.items():
        rows = np.flatnonzero(part == place)
        if len(rows):
            # Parts need not be one after the other in time.
            end_s = max(end_s, int(jobs.submit_s[rows[-1]]) + 1)
            yield Window(f"part {place + 1}: {name}", rows, end_s)


def _last_s(jobs: Population) -> int:
    """The last moment that the trace tells of."""
    end_s = jobs.jobs["trace_end_s"].max() if "trace_end_s" in jobs.jobs.columns else None
    submit_s = int(jobs.submit_s[-1]) if len(jobs) else 0
    return max(submit_s, end_s or 0)
