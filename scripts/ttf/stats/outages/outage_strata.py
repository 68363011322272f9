"""Strata of outages: all units or one group; all outages or only unplanned ones."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from ttf.stats.outages.units_down import list_spans

ALL, UNPLANNED = "all", "unplanned"
# Number of groups, by units, that have rows of their own.
MOST_GROUPS = 30
OUTAGE_COLUMNS_READ = ("unit_id", "start_s", "end_s", "seen_until_s", "planned")
EXPOSURE_COLUMNS_READ = ("unit_id", "group", "from_s", "until_s")


@dataclass(frozen=True)
class Part:
    """names: the cells stratum_by, stratum and outages; exposure: of its units; spans: of `list_spans`."""

    names: dict[str, str]
    exposure: pl.DataFrame
    spans: pl.DataFrame

    @property
    def began(self) -> int:
        """Return the number of outages that began while their unit was watched."""
        return int(self.spans["inside"].sum())


def split_parts(outages: pl.DataFrame, exposure: pl.DataFrame) -> Iterator[Part]:
    """Yield all units, then each group by name if there are several; each with all, then with unplanned outages.

    Unplanned ones have a part only if some are planned. outages: OUTAGE_COLUMNS_READ. exposure: EXPOSURE_COLUMNS_READ.
    """
    group_sizes = exposure.drop_nulls("group").group_by("group").agg(units=pl.col("unit_id").n_unique())
    largest = group_sizes.sort("units", "group", descending=[True, False])["group"].head(MOST_GROUPS).sort()
    strata = [(ALL, ALL, exposure)]
    if len(largest) > 1:
        strata += [("group", group, exposure.filter(group=group)) for group in largest]
    for stratum_by, stratum, watched in strata:
        names = {"stratum_by": stratum_by, "stratum": stratum}
        selected = outages.join(watched.select("unit_id").unique(), on="unit_id", how="semi")
        yield Part(names | {"outages": ALL}, watched, list_spans(selected, watched))
        if selected["planned"].any():
            yield Part(
                names | {"outages": UNPLANNED}, watched, list_spans(selected.filter(~pl.col("planned")), watched)
            )
