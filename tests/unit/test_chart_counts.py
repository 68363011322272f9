"""Counts in captions, legends and titles cover all durations and jobs, even if the drawn tables are thinned."""

import re

import numpy as np
import polars as pl
import pytest
from ttf.analyses.factors.estimate_hazards.charts import MOST_ENDS
from ttf.analyses.factors.estimate_hazards.charts import cumulative_incidence as incidence_chart
from ttf.analyses.factors.estimate_hazards.incidence import cumulative_incidence
from ttf.analyses.queue.describe_workload.charts import roles as roles_chart
from ttf.analyses.queue.describe_workload.population import count_roles
from ttf.analyses.time_to_failure.fit_mttf.charts import survival_by_stratum
from ttf.display.charts.figure import Study
from ttf.stats.durations.survival import survival_tables, thin_curves

PODS = Study("pod", synthetic=False)


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
CASES = {
    "order turns": (MIXED, 50),
    "whole": (MIXED, 100_000),
    "two steps": (MIXED, 2),
    "of unknown duration": (
        pl.concat([MIXED, durations_of(("failure", [None] * 41), ("cancelled", [None] * 7), (None, [None] * 5))]),
        30,
    ),
    "one end": (durations_of(("failure", times(4, 1200)), (None, times(5, 90))), 20),
    "more ends than colours": (durations_of(*((f"cause {chr(97 + k)}", times(k, 400 - 37 * k)) for k in range(9))), 12),
}


def integers(text: str) -> set[int]:
    return {int(number.replace(",", "")) for number in re.findall(r"(?<![\d.,])\d[\d,]*(?![\d.]*\d)", text)}


def join_counts(texts: dict[str, int]) -> str:
    parts = [f"{name} {number:,}" for name, number in texts.items()]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


@pytest.mark.parametrize("case", CASES)
def test_the_counts_of_the_incidence_chart_are_those_of_the_durations(case):
    durations, max_steps = CASES[case]
    events = durations["event"].drop_nulls().unique(maintain_order=True).to_list()
    durations = durations.with_columns(duration_max_s=pl.lit(None, pl.Int64))
    figure = incidence_chart(
        {"cumulative_incidence": cumulative_incidence(durations, events, ["all"], max_steps)}, PODS
    )
    timed = durations.drop_nulls("duration_s")
    count_by_event = {event: timed.filter(event=event).height for event in events}
    untimed = {event: durations.filter(pl.col("duration_s").is_null(), event=event).height for event in events}
    largest = sorted(events, key=lambda event: -count_by_event[event])[:MOST_ENDS]
    drawn_counts = {event: count_by_event[event] for event in events if event in largest}
    parts = ", ".join(f"{event} {number:,}" for event, number in drawn_counts.items())
    assert f"n = {timed.height:,} at risk: {parts}. Ends before" in figure.caption
    rows = figure.datasets["incidence"]
    assert {row["s"] for row in rows} == {f"{event} ({number:,})" for event, number in drawn_counts.items()}
    expected = {timed.height, *drawn_counts.values(), 95}
    if lost := {event: number for event, number in untimed.items() if number}:
        assert f"Excluded because of unknown duration: {join_counts(lost)}." in figure.caption
        expected |= set(lost.values())
    if len(events) > MOST_ENDS:
        expected |= {len(events) - MOST_ENDS, timed.height - sum(drawn_counts.values())}
    assert integers(figure.caption) == expected


def test_a_thinned_table_counts_each_end_up_to_each_age():
    durations, _ = CASES["of unknown duration"]
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


def test_the_counts_of_the_survival_chart_are_those_of_the_durations():
    durations = MIXED.with_columns(
        batch=pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.lit("a")).otherwise(pl.lit("b"))
    )
    curves, summary = survival_tables(durations, "failure", ["all", "batch"])
    caption = survival_by_stratum(
        {"survival": thin_curves(curves, 20), "survival_summary": summary}, PODS, "batch"
    ).caption
    assert f"n = {MIXED.height:,} pods, 300 failures." in caption
    assert integers(caption) <= {MIXED.height, 300, 95}


def test_the_caption_of_roles_counts_all_roles():
    jobs = pl.DataFrame({"task": [f"role {k:03d}" for k in range(130)], "outcome": "failure"})
    table = count_roles(jobs)
    assert table.height == 100
    assert "The 24 most frequent of 130 roles." in roles_chart({"roles": table}, PODS).caption
