"""Rows of whole numbers on the disk: they come in any order, and are worked on part by part."""

from pathlib import Path

import numpy as np

# Rows that wait in memory until they are written, sorted by part.
WAITING_ROWS = 1 << 19
_NARROW, _WIDE = np.dtype(np.int32), np.dtype(np.int64)


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
