"""Durations counted by stratum, which every survival estimator reads, against counting rows one by one."""

from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ttf.stats.durations import survival
from ttf.stats.durations.strata import CountedDurations, sum_by_stratum
from ttf.stats.durations.survival import survival_tables

DURATIONS = {
    "duration_s": pl.Int64,
    "event": pl.String,
    "entry_s": pl.Int64,
    "gpu_count": pl.Int64,
    "account": pl.String,
}
EVENTS = ("failure", "success")
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(0, 6),
        st.sampled_from([*EVENTS, "cancelled", None]),
        st.integers(0, 6),
        st.none() | st.sampled_from([1, 2, 10]),
        st.sampled_from(["b", "a", "", "é"]),
    ),
    max_size=30,
)


def make_durations(rows: list[tuple]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=DURATIONS, orient="row")


def count_rows(rows: list[tuple], index: int | None, delayed: bool) -> dict:
    """Count per stratum the ends at each age, those by each event, and the ages of late entry."""
    strata = {"all": []} if index is None else {row[index]: [] for row in rows if row[index] is not None}
    for row in rows:
        stratum = "all" if index is None else row[index]
        if stratum is not None and row[0] is not None and (not delayed or row[2] == 0 or row[0] > row[2]):
            strata[stratum].append(row)
    return {
        str(stratum): (
            Counter(row[0] for row in strata[stratum]),
            [Counter(row[0] for row in strata[stratum] if row[1] == event) for event in EVENTS],
            sorted(row[2] for row in strata[stratum] if delayed and row[2]),
        )
        for stratum in sorted(strata)
    }


@given(ROWS, st.booleans())
def test_counts_are_those_of_counting_one_by_one(rows, delayed):
    counted = CountedDurations(make_durations(rows), EVENTS)
    for stratum_by, index in {"all": None, "gpu_count": 3, "account": 4}.items():
        for _ in range(2):  # the second time from the cache
            counts = {}
            for label, times in counted.times(stratum_by, delayed):
                seconds = times[0].seconds.tolist()
                ended = Counter(dict(zip(seconds, times[0].ended.tolist(), strict=True)))
                assert seconds == sorted(ended) and all(ended.values())
                hits = [+Counter(dict(zip(seconds, event_times.events.tolist(), strict=True))) for event_times in times]
                counts[label] = ended, hits, times[0].late.tolist()
            expected = count_rows(rows, index, delayed)
            assert counts == expected
            assert list(counts) == list(expected)


def test_a_file_gives_the_tables_of_a_frame(tmp_path):
    durations = make_durations([(i % 7, EVENTS[i % 2], i % 3, i % 5, "b") for i in range(100)])
    durations.write_parquet(tmp_path / "durations.parquet", row_group_size=9)
    scanned = pl.scan_parquet(tmp_path / "durations.parquet")
    for strata in (["all"], ["gpu_count", "account"]):
        actual, expected = (survival_tables(x, "failure", strata, delayed_entry=True) for x in (scanned, durations))
        assert all(a.equals(b) for a, b in zip(actual, expected, strict=True))


def test_curves_come_a_few_strata_at_a_time(monkeypatch):
    durations = make_durations([(i % 7, EVENTS[i % 2], 0, i % 5, "b") for i in range(100)])
    expected = survival_tables(durations, "failure", ["all", "gpu_count"])
    monkeypatch.setattr(survival, "BLOCK_ROWS", 10)
    blocks = list(survival.survival_blocks(durations, "failure", ["all", "gpu_count"]))
    assert [curves.height for curves, _ in blocks] == [14, 14, 14]
    assert pl.concat(curves for curves, _ in blocks).equals(expected[0])
    assert pl.concat(summary for _, summary in blocks).equals(expected[1])


def test_a_negative_duration_is_refused():
    with pytest.raises(ValueError, match="negative"):
        sum_by_stratum(make_durations([(-1, None, 0, 1, "a")]), "gpu_count", durations=pl.len())
