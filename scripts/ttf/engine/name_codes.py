"""Numbers for names."""

import numpy as np
import polars as pl


def index_names(names: pl.Series, *extra_names: str) -> tuple[pl.Series, np.ndarray]:
    """Return all distinct names of a Categorical series and of `extra_names`, sorted, and their indices.

    The second array (Int32) has the index of each name of the series. Raises ValueError if the series has blanks.
    """
    if names.null_count():
        raise ValueError(f"{names.name} has blanks")
    distinct = names.unique()
    sorted_names = pl.concat([distinct.cast(pl.String), pl.Series(extra_names, dtype=pl.String)]).unique().sort()
    code = distinct.to_physical().to_numpy()
    index_by_code = np.zeros(int(code.max(initial=0)) + 1, np.int32)
    index_by_code[code] = sorted_names.search_sorted(distinct.cast(pl.String)).to_numpy()
    return sorted_names, index_by_code[names.to_physical().to_numpy()]


class NameNumbers:
    """Map names to numbers from 0 on, the same in all frames during the object's lifetime; `first_names` start at 0."""

    def __init__(self, *first_names: str) -> None:
        self._dtype = pl.Categorical(pl.Categories.random())
        # Polars drops categories that no series holds.
        self._first_categories = pl.Series(first_names, dtype=pl.String).cast(self._dtype)

    def encode(self, names: pl.Expr) -> pl.Expr:
        """Return the numbers of names."""
        return names.cast(self._dtype).to_physical()

    def decode(self, numbers: pl.Series) -> pl.Series:
        """Return the names (Categorical) of numbers that `encode` returned."""
        return numbers.cat.to(self._dtype)
