"""Rows of integers on disk, partitioned, that are written in any order and read a part at a time."""

from pathlib import Path

import numpy as np

# Rows buffered in memory before they are written, sorted by part.
WAITING_ROWS = 1 << 19
_NARROW, _WIDE = np.dtype(np.int32), np.dtype(np.int64)


class Spill:
    """Rows of integer columns in a new file, partitioned into `parts`, numbered from 0."""

    def __init__(self, file: Path, parts: int, columns: int) -> None:
        file.touch(exist_ok=False)
        self.parts = parts
        self._file, self._columns = file, columns
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []
        # Per write: offset in the file, integer type, and the first row of each part, plus the end.
        self._written: list[tuple[int, np.dtype, np.ndarray]] = []

    def add(self, part: np.ndarray, *columns: np.ndarray) -> None:
        """Add rows: the part of each, and its values by column."""
        rows = np.empty((part.size, self._columns), _NARROW if all(map(_fits_narrow_type, columns)) else _WIDE)
        for index, column in enumerate(columns):
            rows[:, index] = column
        # For small integer types NumPy sorts stably by counting.
        self._waiting.append((part.astype(np.min_scalar_type(self.parts)), rows))
        if sum(part.size for part, _ in self._waiting) >= WAITING_ROWS:
            self._flush()

    def read(self, part: int) -> np.ndarray:
        """Return the rows of a part in no order: Int64 (columns, rows)."""
        if self._waiting:
            self._flush()
        rows = np.empty((self._columns, sum(int(start[part + 1] - start[part]) for *_, start in self._written)), _WIDE)
        n_read = 0
        with self._file.open("rb") as file:
            for offset, width, start in self._written:
                row_bytes = width.itemsize * self._columns
                file.seek(offset + int(start[part]) * row_bytes)
                chunk = np.frombuffer(file.read(int(start[part + 1] - start[part]) * row_bytes), width)
                chunk = chunk.reshape(-1, self._columns)
                rows[:, n_read : n_read + len(chunk)] = chunk.T
                n_read += len(chunk)
        return rows

    def _flush(self) -> None:
        part, rows = map(np.concatenate, zip(*self._waiting, strict=True))
        self._waiting = []
        first_rows = np.append(0, np.cumsum(np.bincount(part, minlength=self.parts)))
        with self._file.open("ab") as file:
            self._written.append((file.tell(), rows.dtype, first_rows))
            file.write(np.take(rows, np.argsort(part, kind="stable"), axis=0).data)


def _fits_narrow_type(column: np.ndarray) -> bool:
    limits = np.iinfo(_NARROW)
    return limits.min <= column.min(initial=0) and column.max(initial=0) <= limits.max
