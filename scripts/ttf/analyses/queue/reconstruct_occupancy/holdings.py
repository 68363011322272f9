"""GPUs held on servers, rebuilt from the placements of a trace: on the disk, for work on some servers at a time.

All of it is whole numbers (seconds, milli-GPU), so that the order of the rows plays no part.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from ttf.stats.basics.name_codes import Numbers

# Rows that wait in memory until they are written, sorted by part.
WAITING_ROWS = 1 << 19
_NARROW, _WIDE = np.dtype(np.int32), np.dtype(np.int64)


GPU = 1000  # milli-GPU
# So many placements are looked at together, about: all of some servers.
BLOCK_ROWS = 100_000
# So many starts and ends are looked at together, about: all of some time.
WINDOW_ROWS = 200_000
# One start and one end of so many say where the time is to be cut.
SAMPLE = 256


class Spill:
    """Rows of so many integer columns, each in one of `parts`, from 0 on, in a new file."""

    def __init__(self, file: Path, parts: int, columns: int) -> None:
        file.touch(exist_ok=False)
        self.parts = parts
        self._file, self._columns = file, columns
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        # Of each time that rows were written: where in the file, how wide their numbers are, and the first row of each
        # part and of one more.
        self._written: list[tuple[int, np.dtype, np.ndarray]] = []

    def add(self, part: np.ndarray, *columns: np.ndarray) -> None:
        """Rows: the part and the values of each."""
        rows = np.empty((part.size, self._columns), _NARROW if all(map(_is_narrow, columns)) else _WIDE)
        for place, column in enumerate(columns):
            rows[:, place] = column
        # Of numbers this short the stable order is counted, not compared.
        self._waiting.append((part.astype(np.min_scalar_type(self.parts)), rows))
        if sum(part.size for part, _ in self._waiting) >= WAITING_ROWS:
            self._write()

    def read(self, part: int) -> np.ndarray:
        """The rows of a part, in no order: Int64, columns x rows."""
        if self._waiting:
            self._write()
        found = np.empty((self._columns, sum(int(first[part + 1] - first[part]) for *_, first in self._written)), _WIDE)
        done = 0
        with self._file.open("rb") as file:
            for begin, width, first in self._written:
                row_bytes = width.itemsize * self._columns
                file.seek(begin + int(first[part]) * row_bytes)
                piece = np.frombuffer(file.read(int(first[part + 1] - first[part]) * row_bytes), width)
                piece = piece.reshape(-1, self._columns)
                found[:, done : done + len(piece)] = piece.T
                done += len(piece)
        return found

    def _write(self) -> None:
        part, rows = map(np.concatenate, zip(*self._waiting, strict=True))
        self._waiting = []
        first = np.append(0, np.cumsum(np.bincount(part, minlength=self.parts)))
        with self._file.open("ab") as file:
            self._written.append((file.tell(), rows.dtype, first))
            file.write(np.take(rows, np.argsort(part, kind="stable"), axis=0))


def _is_narrow(column: np.ndarray) -> bool:
    limits = np.iinfo(_NARROW)
    return limits.min <= column.min(initial=0) and column.max(initial=0) <= limits.max


@dataclass(frozen=True)
class Holdings:
    """Every part of an attempt that held GPUs of a server for a known time.

    by_server: server, attempt, start_s, end_s, gpu_milli of each, all of a server in one part, and where there are
    `accounts` the place there, -1 for none. start < end, gpu_milli > 0; servers and attempts are numbers. cuts_s: some
    of the starts and ends between the first start and the last end, ascending, that divide the time into windows with
    about as many of them in each. known_milli: what each server holds, 0 where no table says and for a number that no
    server has. names: of the servers' numbers. counts: of OCCUPANCY_BASIS.
    """

    by_server: Spill
    accounts: list[str]
    first_s: int
    last_s: int
    cuts_s: np.ndarray
    known_milli: np.ndarray
    names: Numbers
    counts: dict[str, int]

    @property
    def is_empty(self) -> bool:
        """Whether no placement held a GPU for a known time."""
        return self.first_s == self.last_s

    def window_of(self, time_s: np.ndarray) -> np.ndarray:
        """The window that each time is in; the first and the last reach on without end."""
        return np.searchsorted(self.cuts_s, time_s, side="right")


def holdings(
    placements: pl.LazyFrame, jobs: pl.LazyFrame, nodes: pl.DataFrame, attempts: pl.LazyFrame | None, folder: Path
) -> tuple[Holdings, np.ndarray]:
    """(what was held, milli-GPU of each attempt in all its parts).

    placements: PLACEMENT_COLUMNS; jobs, nodes: the common records; attempts: job, gpu_milli, None where jobs are
    attempts; folder: for what is spilled. attempt_id is the row of the attempt, or of the job where there are no
    attempts, so that nothing is joined by texts. A placement without an end counts to the trace's end if its outcome is
    `running`; otherwise nobody knows how long it held its GPUs, and it is excluded, as is one without a start or with
    an end before it. One whose GPUs are blank gets its part of the attempt's (see `spread`); without `attempts` it
    holds none.
    """
    # Of the machines that hold no GPU, none can be busy.
    known = nodes.filter(pl.col("gpu_count") > 0).unique("node", keep="first", maintain_order=True)
    numbers = Numbers(*known["node"])
    accounts, account_of = _accounts(jobs, attempts)
    shares = None if attempts is None else _Shares(placements, attempts)
    end_of_trace = jobs.select(pl.col("trace_end_s").max()).collect(engine="streaming").item()
    running_to = pl.when(pl.col("outcome") == "running").then(pl.lit(end_of_trace, dtype=pl.Int64))
    rows = placements.select(
        "attempt_id", "start_s", "gpu_milli", end_s=pl.coalesce("end_s", running_to), node=numbers.of(pl.col("node"))
    )
    most, last_attempt = placements.select(pl.len(), pl.col("attempt_id").max()).collect(engine="streaming").row(0)
    by_server = Spill(folder / "by_server", max(1, -(-most // BLOCK_ROWS)), 6 if accounts else 5)
    counts = dict.fromkeys(("placements", "left_out", "spread"), 0)
    attempt_milli = np.zeros(1 + (last_attempt or 0), np.int64)
    rows_held, servers, moments = 0, known.height, [np.zeros(0, np.int64)]
    first_s, last_s = [], []
    is_known = (pl.col("start_s") <= pl.col("end_s")).fill_null(False)
    is_held = (pl.col("start_s") < pl.col("end_s")).fill_null(False) & pl.col("node").is_not_null()
    # In their order: of a rest the first parts of an attempt have one more.
    for batch in rows.collect_batches(maintain_order=True, engine="streaming"):
        if shares is not None:
            batch = shares.given_to(batch)
        batch = batch.filter(pl.col("gpu_milli") > 0)
        counts["placements"] += batch.height
        counts["left_out"] += batch.select(~is_known).to_series().sum()
        counts["spread"] += batch["spread"].sum() if shares is not None else 0
        batch = batch.filter(is_held)
        if batch.is_empty():
            continue
        node, unit, start, end, gpu = (
            batch[name].to_numpy() for name in ("node", "attempt_id", "start_s", "end_s", "gpu_milli")
        )
        of_account = [account_of[unit]] if accounts else []
        by_server.add(node % by_server.parts, node, unit, start, end, gpu, *of_account)
        np.add.at(attempt_milli, unit, gpu)
        rows_held, servers = rows_held + batch.height, max(servers, 1 + int(node.max()))
        first_s.append(int(start.min()))
        last_s.append(int(end.max()))
        moments += [start[::SAMPLE].copy(), end[::SAMPLE].copy()]
    known_milli = np.zeros(servers, np.int64)
    known_milli[: known.height] = known["gpu_count"].to_numpy() * GPU
    first, last = min(first_s, default=0), max(last_s, default=0)
    held = Holdings(
        by_server,
        accounts,
        first,
        last,
        _cuts(np.concatenate(moments), first, last, -(-2 * rows_held // WINDOW_ROWS)),
        known_milli,
        numbers,
        counts,
    )
    return held, attempt_milli


def _accounts(jobs: pl.LazyFrame, attempts: pl.LazyFrame | None) -> tuple[list[str], np.ndarray]:
    """(accounts by name, the place there of that of each attempt_id, -1 for none)."""
    account = jobs.select("account").collect()["account"]
    names = account.drop_nulls().unique().sort()
    code = account.cast(pl.Enum(names)).to_physical().cast(pl.Int32)
    if attempts is not None:
        code = code.gather(attempts.select("job").collect()["job"])
    return names.to_list(), code.fill_null(-1).to_numpy()


def _cuts(moments: np.ndarray, first: int, last: int, windows: int) -> np.ndarray:
    """Of the moments those that divide them into about so many windows with equally many of them."""
    between = np.sort(moments[(first < moments) & (moments < last)])
    return np.unique(between[np.arange(1, windows) * between.size // windows]) if between.size else between


# Of their own width, numbers are added up many times as fast.
_ONE = np.int32(1)


class _Shares:
    """The GPUs of placements that do not say them, from those of their attempts; to be asked of all rows, in order."""

    def __init__(self, placements: pl.LazyFrame, attempts: pl.LazyFrame) -> None:
        self._total = attempts.select(pl.col("gpu_milli").fill_null(0)).collect()["gpu_milli"].to_numpy()
        self._parts, self._seen = np.zeros((2, self._total.size), np.int32)
        blank = placements.filter(pl.col("gpu_milli").is_null()).select("attempt_id")
        for batch in blank.collect_batches(maintain_order=False, engine="streaming"):
            np.add.at(self._parts, batch["attempt_id"].to_numpy(), _ONE)

    def given_to(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows with gpu_milli where their attempt has any, and `spread`: whether they did not say it."""
        is_blank = rows["gpu_milli"].is_null()
        attempt = rows["attempt_id"].filter(is_blank)
        before = attempt.to_frame().select(pl.int_range(pl.len()).over("attempt_id")).to_series().to_numpy()
        attempt = attempt.to_numpy()
        place = self._seen[attempt] + before
        np.add.at(self._seen, attempt, _ONE)
        gpu_milli = rows["gpu_milli"].fill_null(0).to_numpy().copy()
        gpu_milli[is_blank.to_numpy()] = spread(self._total[attempt], self._parts[attempt], place)
        return rows.with_columns(gpu_milli=pl.Series(gpu_milli), spread=is_blank)


def spread(total: np.ndarray, parts: np.ndarray, place: np.ndarray) -> np.ndarray:
    """GPUs in equal parts: that at this place, from 0 on; of a rest the first ones have one more.

    Whole GPUs stay whole. Slurm's accounting says how many GPUs a run had in all, and not on which of its nodes.
    """
    grain = np.where(total % GPU == 0, GPU, 1)
    share, rest = np.divmod(total // grain, parts)
    return (share + (place < rest)) * grain
