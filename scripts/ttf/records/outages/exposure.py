"""Watched units and times, if no file of the trace has them: by the registry's nodes and window_days."""

from collections.abc import Mapping

import polars as pl

from ttf.engine.errors import StudyError

DAY = 86_400


def find_watched_units(units: pl.DataFrame, meaning: Mapping, first_s: int, last_s: int) -> pl.DataFrame:
    """Return a row per unit, by name: the columns of `units`, from_s and until_s (s on the trace's clock).

    units: unit_id and location of the units that the tables name; may repeat. meaning: `nodes`, the number of nodes, of
    which the tables may not name all: the others are called unseen-1, unseen-2 ...; and `window_days`, [from, to],
    which replaces first_s and last_s. Raises StudyError for fewer nodes than the tables name, and for an empty window.
    """
    units = units.drop_nulls("unit_id").unique("unit_id", keep="first", maintain_order=True).sort("unit_id")
    n_unseen = meaning["nodes"] - units.height
    if n_unseen < 0:
        raise StudyError(
            f"registry: nodes: {meaning['nodes']:,} nodes were watched, but the tables name {units.height:,}. Correct "
            "the number, and check whether one node has two names."
        )
    if "window_days" in meaning:
        first_s, last_s = (round(day * DAY) for day in meaning["window_days"])
    if first_s >= last_s:
        raise StudyError(
            "registry: window_days: without it the watch ends at the last event, which leaves no time here. "
            "Give the first and the last day of the watch."
        )
    unseen = [f"unseen-{number}" for number in range(1, n_unseen + 1)]
    names = pl.DataFrame({"unit_id": unseen}, schema={"unit_id": pl.String})
    return pl.concat([units, names], how="diagonal").with_columns(from_s=pl.lit(first_s), until_s=pl.lit(last_s))
