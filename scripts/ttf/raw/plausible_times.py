"""The one rule for all formats on which times can be true: those from 1990 to 2100."""

import polars as pl

# 1990-01-01 and 2100-01-01. Others are placeholders (0001-01-01, 9999-12-31) or those of a clock that was never set.
EARLIEST_S, LATEST_S = 631_152_000, 4_102_444_800


def is_plausible_time(seconds: pl.Expr) -> pl.Expr:
    """Return whether seconds since 1970 are from 1990 to 2100; null stays null."""
    return seconds.is_between(EARLIEST_S, LATEST_S)
