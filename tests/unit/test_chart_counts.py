"""Counts in captions, legends and titles cover all durations and jobs, even if the drawn tables are thinned."""

import numpy as np
import polars as pl
from ttf.analyses.factors.estimate_hazards.incidence import cumulative_incidence


def durations_of(*groups: tuple[str | None, list[int | None]]) -> pl.DataFrame:
    rows = [(seconds, event) for event, durations in groups for seconds in durations]
    return pl.DataFrame(rows, schema={"duration_s": pl.Int64, "event": pl.String}, orient="row")


def times(seed: int, count: int, distinct: int | None = None) -> list[int]:
    rng = np.random.default_rng(seed)
    draws = np.ceil(rng.lognormal(7, 2, count)).astype(int)
    return [int(draws[k % distinct]) if distinct else int(draws[k]) for k in range(count)]


# Successes at many times, failures at two: a thinned table keeps most failures and few successes.
MIXED = durations_of(
    ("failure", times(1, 300, 2)), ("success", times(2, 3000)), ("cancelled", times(3, 700)), (None, [9])
)


def test_a_thinned_table_counts_each_end_up_to_each_age():
    durations = pl.concat(
        [MIXED, durations_of(("failure", [None] * 41), ("cancelled", [None] * 7), (None, [None] * 5))]
    )
    events = ["failure", "success", "cancelled"]
    full, thinned = (cumulative_incidence(durations, events, ["all"], max_steps) for max_steps in (None, 7))
    timed = durations.drop_nulls("duration_s")
    for row in thinned.iter_rows(named=True):
        assert row["events_so_far"] == timed.filter(pl.col("duration_s") <= row["time_s"], event=row["event"]).height
    assert dict(thinned.select("event", "without_time").iter_rows()) == {"failure": 41, "success": 0, "cancelled": 7}
    # Without thinning the running count is the cumulative sum.
    for _, curve in full.group_by("event"):
        assert curve["events"].cum_sum().to_list() == curve["events_so_far"].to_list()
    untimed = cumulative_incidence(durations_of(("failure", [None, None])), ["failure"], ["all"])
    assert untimed.select("events", "events_so_far", "without_time").row(0) == (0, 0, 2)
