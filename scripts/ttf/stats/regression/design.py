"""Design matrix of a regression, written out a block of rows at a time."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

# Rows of the design that are written out at a time.
BLOCK = 1 << 14


@dataclass(frozen=True)
class Design:
    """n rows. numbers: (n, k); levels: for each category the codes (n,) and the number of levels, dummy-coded."""

    numbers: np.ndarray
    levels: tuple[tuple[np.ndarray, int], ...]

    @property
    def width(self) -> int:
        """Number of columns, including the intercept, which comes first."""
        return 1 + self.numbers.shape[1] + sum(size - 1 for _, size in self.levels)

    def __len__(self) -> int:
        return len(self.numbers)

    def rows(self, selection: slice | np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Write out the selected rows as a dense array, into `out` if given."""
        numbers = self.numbers[selection]
        block = np.empty((len(numbers), self.width)) if out is None else out[: len(numbers)]
        block[:, 0] = 1
        block[:, 1 + numbers.shape[1] :] = 0
        column = 1 + numbers.shape[1]
        block[:, 1:column] = numbers
        for codes, size in self.levels:
            selected_codes = codes[selection]
            rows = np.flatnonzero(selected_codes)
            block[rows, column + selected_codes[rows] - 1] = 1
            column += size - 1
        return block

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield (rows, dense block) of BLOCK rows at a time; each block overwrites the last."""
        buffer = np.empty((min(BLOCK, len(self)), self.width))
        for start in range(0, len(self), BLOCK):
            rows = slice(start, min(start + BLOCK, len(self)))
            yield rows, self.rows(rows, buffer)

    def dot(self, coefficients: np.ndarray) -> np.ndarray:
        """Return the design (n, p) times coefficients (p,) or (p, k)."""
        products = np.empty((len(self), *coefficients.shape[1:]))
        for rows, block in self.blocks():
            products[rows] = block @ coefficients
        return products

    def take(self, rows: slice | np.ndarray) -> "Design":
        """Return the design of some jobs; rows: a slice, row indices, or a boolean mask."""
        if isinstance(rows, np.ndarray) and rows.dtype == bool:
            rows = np.flatnonzero(rows)
        return Design(self.numbers[rows], tuple((codes[rows], size) for codes, size in self.levels))
