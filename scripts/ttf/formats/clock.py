"""Wall clocks: the hour that they show twice when they are set back."""

import polars as pl


def came_twice(column: str, zone: str) -> pl.Expr:
    """Whether a moment (seconds since 1970) is in an hour that the zone's clocks showed twice; false where blank."""
    wall = pl.from_epoch(column, time_unit="s").dt.convert_time_zone(zone).dt.replace_time_zone(None)
    first, second = (wall.dt.replace_time_zone(zone, ambiguous=which) for which in ("earliest", "latest"))
    return (first != second).fill_null(False)
