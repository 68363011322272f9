"""Names as whole numbers."""

import numpy as np
import polars as pl


def places_of(names: pl.Series, *others: str) -> tuple[pl.Series, np.ndarray]:
    """(every name of a Categorical series, and the others, sorted; the place there of each of the series, Int32).

    Raises ValueError where the series has blanks.
    """
    if names.null_count():
        raise ValueError(f"{names.name} has blanks")
    seen = names.unique()
    every = pl.concat([seen.cast(pl.String), pl.Series(others, dtype=pl.String)]).unique().sort()
    code = seen.to_physical().to_numpy()
    place_of = np.zeros(int(code.max(initial=0)) + 1, np.int32)
    place_of[code] = every.search_sorted(seen.cast(pl.String)).to_numpy()
    return every, place_of[names.to_physical().to_numpy()]


class Numbers:
    """Numbers of names, from 0 on: alike in all frames as long as this is there; the first names have the first."""

    def __init__(self, *first: str) -> None:
        self._dtype = pl.Categorical(pl.Categories.random())
        # Polars forgets them when nothing has them.
        self._held = pl.Series(first, dtype=pl.String).cast(self._dtype)

    def of(self, names: pl.Expr) -> pl.Expr:
        """The numbers of names."""
        return names.cast(self._dtype).to_physical()

    def named(self, numbers: pl.Series) -> pl.Series:
        """The names of numbers that `of` has given: Categorical."""
        return numbers.cat.to(self._dtype)
