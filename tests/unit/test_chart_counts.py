"""Counts in captions, legends and titles are those of all lives and jobs, also where the tables drawn are cut short."""

import re

import numpy as np
import polars as pl
import pytest
from ttf.analyses.factors.estimate_hazards.charts import MOST_ENDS
from ttf.analyses.factors.estimate_hazards.charts import cumulative_incidence as incidence_chart
from ttf.analyses.factors.estimate_hazards.incidence import cumulative_incidence
from ttf.analyses.queue.describe_workload.charts import roles as roles_chart
from ttf.analyses.queue.describe_workload.population import roles
from ttf.analyses.time_to_failure.fit_mttf.charts import survival_by_stratum
from ttf.display.charts.figure import Study
from ttf.stats.durations.survival import survival_tables, thin

PODS = Study("pod", synthetic=False)


def lives_of(*groups: tuple[str | None, list[int | None]]) -> pl.DataFrame:
    rows = [(seconds, event) for event, durations in groups for seconds in durations]
    return pl.DataFrame(rows, schema={"duration_s": pl.Int64, "event": pl.String}, orient="row")


def times(seed: int, count: int, distinct: int | None = None) -> list[int]:
    rng = np.random.default_rng(seed)
    found = np.ceil(rng.lognormal(7, 2, count)).astype(int)
    return [int(found[k % distinct]) if distinct else int(found[k]) for k in range(count)]


# Successes at many times, failures at few: a thinned table has most of the failures and few of the successes.
TURNED = lives_of(("failure", times(1, 300, 2)), ("success", times(2, 3000)), ("cancelled", times(3, 700)), (None, [9]))
CASES = {
    "order turns": (TURNED, 50),
    "whole": (TURNED, 100_000),
    "two steps": (TURNED, 2),
    "of unknown duration": (
        pl.concat([TURNED, lives_of(("failure", [None] * 41), ("cancelled", [None] * 7), (None, [None] * 5))]),
        30,
    ),
    "one end": (lives_of(("failure", times(4, 1200)), (None, times(5, 90))), 20),
    "more ends than colours": (lives_of(*((f"cause {chr(97 + k)}", times(k, 400 - 37 * k)) for k in range(9))), 12),
}


def integers(text: str) -> set[int]:
    return {int(number.replace(",", "")) for number in re.findall(r"(?<![\d.,])\d[\d,]*(?![\d.]*\d)", text)}


def counted(texts: dict[str, int]) -> str:
    parts = [f"{name} {number:,}" for name, number in texts.items()]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


@pytest.mark.parametrize("case", CASES)
def test_the_counts_of_the_incidence_chart_are_those_of_the_lives(case):
    lives, max_steps = CASES[case]
    ends = lives["event"].drop_nulls().unique(maintain_order=True).to_list()
    lives = lives.with_columns(duration_max_s=pl.lit(None, pl.Int64))
    figure = incidence_chart({"cumulative_incidence": cumulative_incidence(lives, ends, ["all"], max_steps)}, PODS)
    known = lives.drop_nulls("duration_s")
    by_end = {end: known.filter(event=end).height for end in ends}
    unknown = {end: lives.filter(pl.col("duration_s").is_null(), event=end).height for end in ends}
    largest = sorted(ends, key=lambda end: -by_end[end])[:MOST_ENDS]
    drawn = {end: by_end[end] for end in ends if end in largest}
    parts = ", ".join(f"{end} {number:,}" for end, number in drawn.items())
    assert f"n = {known.height:,} at risk: {parts}. What" in figure.caption
    rows = figure.datasets["incidence"]
    assert {row["s"] for row in rows} == {f"{end} ({number:,})" for end, number in drawn.items()}
    told = {known.height, *drawn.values(), 95}
    if lost := {end: number for end, number in unknown.items() if number}:
        assert f"Of unknown duration, left out: {counted(lost)}." in figure.caption
        told |= set(lost.values())
    if len(ends) > MOST_ENDS:
        told |= {len(ends) - MOST_ENDS, known.height - sum(drawn.values())}
    assert integers(figure.caption) == told


def test_the_table_counts_each_end_up_to_each_age_however_few_rows_it_has():
    lives, _ = CASES["of unknown duration"]
    ends = ["failure", "success", "cancelled"]
    whole, cut = (cumulative_incidence(lives, ends, ["all"], most) for most in (None, 7))
    known = lives.drop_nulls("duration_s")
    for row in cut.iter_rows(named=True):
        assert row["events_so_far"] == known.filter(pl.col("duration_s") <= row["time_s"], event=row["event"]).height
    assert dict(cut.select("event", "without_time").iter_rows()) == {"failure": 41, "success": 0, "cancelled": 7}
    # Without thinning the running count is the sum of the counts.
    for _, curve in whole.group_by("event"):
        assert curve["events"].cum_sum().to_list() == curve["events_so_far"].to_list()
    none = cumulative_incidence(lives_of(("failure", [None, None])), ["failure"], ["all"])
    assert none.select("events", "events_so_far", "without_time").row(0) == (0, 0, 2)


def test_the_counts_of_the_survival_chart_are_those_of_the_lives():
    lives = TURNED.with_columns(batch=pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.lit("a")).otherwise(pl.lit("b")))
    curves, summary = survival_tables(lives, "failure", ["all", "batch"])
    caption = survival_by_stratum({"survival": thin(curves, 20), "survival_summary": summary}, PODS, "batch").caption
    assert f"n = {TURNED.height:,} pods, 300 failures." in caption
    assert integers(caption) <= {TURNED.height, 300, 95}


def test_the_caption_of_roles_counts_all_roles():
    jobs = pl.DataFrame({"task": [f"role {k:03d}" for k in range(130)], "outcome": "failure"})
    table = roles(jobs)
    assert table.height == 100
    assert "The 24 most frequent of 130 roles." in roles_chart({"roles": table}, PODS).caption
