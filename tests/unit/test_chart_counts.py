"""A thinned table of cumulative incidence counts all durations."""

import numpy as np
import polars as pl
from ttf.analyses.factors.estimate_hazards.incidence_tables import cumulative_incidence


def durations_of(*groups: tuple[str | None, list[int | None]]) -> pl.DataFrame:
    rows = [(seconds, event) for event, durations in groups for seconds in durations]
    return pl.DataFrame(rows, schema={"duration_s": pl.Int64, "event": pl.String}, orient="row")


def test_a_thinned_table_counts_each_end_up_to_each_age():
    # Successes at many times, failures at two: a thinned table keeps most failures and few successes.
    draws = np.ceil(np.random.default_rng(1).lognormal(7, 2, 3700)).astype(int).tolist()
    failures, cancelled = [*draws[:2] * 150, *[None] * 41], [*draws[3000:], *[None] * 7]
    durations = durations_of(
        ("failure", failures), ("success", draws[:3000]), ("cancelled", cancelled), (None, [9, None])
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
