"""Published values that tiles list beside their own, with an interval where the publication printed a count."""

from collections.abc import Iterable, Mapping

import polars as pl

from ttf.page.report_contracts import PUBLISHED_VALUES
from ttf.stats.durations.mttf import garwood_interval

# That of the tiles on the failure rate of a node and on the MTTF of a job.
CONFIDENCE = 0.9


def published_values(claims: Iterable[Mapping]) -> pl.DataFrame:
    """Return PUBLISHED_VALUES: a row for each tile that a claim names, in their order."""
    rows = [
        {name: claim[name] for name in ("id", "source", "year", "evidence")}
        | {"dataset": claim["of"]}
        | tile
        | _value_cells(tile, claim["published"])
        for claim in claims
        for tile in claim.get("tiles", ())
    ]
    return PUBLISHED_VALUES.frame(rows)


def _value_cells(tile: Mapping, published: float) -> dict[str, float | int | None]:
    """Return the value in the unit of the tile, and the interval of a count."""
    if "exposure_days" not in tile:
        return {"value": published / tile.get("per", 1)}
    days, events = tile["exposure_days"], round(published)
    # A count of at least 1 has both bounds.
    means = [days / events, *filter(None, garwood_interval(days, events, CONFIDENCE))]
    value, *bounds = (_convert_mean_days(tile["tile"], mean) for mean in means)
    return {"value": value, "ci_low": min(bounds), "ci_high": max(bounds), "events": events}


def _convert_mean_days(tile: str, mean_days: float) -> float:
    """Convert unit-days per failure to hours for the MTTF, else to failures per 1000 unit-days."""
    return 24 * mean_days if tile == "mttf" else 1000 / mean_days
