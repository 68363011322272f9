"""Which units were watched, and when, where no file of the trace holds it: by the registry's nodes and window_days."""

from collections.abc import Mapping

import polars as pl

from ttf.engine.errors import StudyError

DAY = 86_400


def watched(units: pl.DataFrame, meaning: Mapping, first_s: int, last_s: int) -> pl.DataFrame:
    """A row per unit, by name: the columns of `units`, from_s and until_s (s on the trace's clock).

    units: unit_id and what is known of its place, of the units that the tables name; as often as they do. meaning:
    `nodes`, how many there were, of which those that the tables do not name are called unseen-1, unseen-2 ...; and
    `window_days`, [from, to], in place of first_s and last_s.
    Raises StudyError for fewer nodes than are named, and for a window without any time in it.
    """
    named = units.drop_nulls("unit_id").unique("unit_id", keep="first", maintain_order=True).sort("unit_id")
    unseen = meaning["nodes"] - named.height
    if unseen < 0:
        raise StudyError(
            f"registry: nodes: {meaning['nodes']:,} nodes were watched, but the tables name {named.height:,}. Say how "
            "many there were, and see whether one node stands under two names."
        )
    if "window_days" in meaning:
        first_s, last_s = (round(day * DAY) for day in meaning["window_days"])
    if first_s >= last_s:
        raise StudyError(
            "registry: window_days: without it nodes are watched up to the last event, which leaves no time here. "
            "Say from which day to which they were watched."
        )
    names = pl.DataFrame({"unit_id": [f"unseen-{number}" for number in range(1, unseen + 1)]}, schema=["unit_id"])
    names = names.cast(pl.String)
    return pl.concat([named, names], how="diagonal").with_columns(from_s=pl.lit(first_s), until_s=pl.lit(last_s))
