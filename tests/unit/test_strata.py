"""Lives counted by stratum and duration: what every survival estimator reads, against counting them one by one."""

from collections import Counter

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ttf.engine.storage.tables import blocks
from ttf.stats.durations import survival
from ttf.stats.durations.strata import CountedLives, by_stratum, times_by_stratum
from ttf.stats.durations.survival import survival_tables

LIVES = {"duration_s": pl.Int64, "event": pl.String, "entry_s": pl.Int64, "gpu_count": pl.Int64, "account": pl.String}
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


def lives_of(rows: list[tuple]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=LIVES, orient="row")


def one_by_one(rows: list[tuple], place: int | None, delayed: bool) -> dict:
    """Per stratum: how many ended at each age, how many of them by each event, and the ages of late entry."""
    strata = {"all": []} if place is None else {row[place]: [] for row in rows if row[place] is not None}
    for row in rows:
        stratum = "all" if place is None else row[place]
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
@settings(deadline=None)
def test_counts_are_those_of_counting_one_by_one(rows: list[tuple], delayed: bool) -> None:
    counted = CountedLives(lives_of(rows), EVENTS)
    for stratum_by, place in {"all": None, "gpu_count": 3, "account": 4}.items():
        for _ in range(2):  # the second time from what was kept
            found = {}
            for label, times in counted.times(stratum_by, delayed):
                seconds = times[0].seconds.tolist()
                ended = Counter(dict(zip(seconds, times[0].ended.tolist(), strict=True)))
                assert seconds == sorted(ended) and all(ended.values())
                hits = [+Counter(dict(zip(seconds, of.events.tolist(), strict=True))) for of in times]
                found[label] = ended, hits, times[0].late.tolist()
            expected = one_by_one(rows, place, delayed)
            assert found == expected
            assert list(found) == list(expected)


def test_a_file_is_read_as_a_frame_is(tmp_path) -> None:
    lives = lives_of([(at % 7, EVENTS[at % 2], at % 3, at % 5, "b") for at in range(100)])
    lives.write_parquet(tmp_path / "lives.parquet", row_group_size=9)
    scanned = pl.scan_parquet(tmp_path / "lives.parquet")
    for strata in (["all"], ["gpu_count", "account"]):
        of_file, of_frame = (survival_tables(of, "failure", strata, delayed_entry=True) for of in (scanned, lives))
        assert all(one.equals(other) for one, other in zip(of_file, of_frame, strict=True))


def test_curves_come_a_few_strata_at_a_time(monkeypatch) -> None:
    lives = lives_of([(at % 7, EVENTS[at % 2], 0, at % 5, "b") for at in range(100)])
    whole = survival_tables(lives, "failure", ["all", "gpu_count"])
    monkeypatch.setattr(survival, "BLOCK_ROWS", 10)
    blocks = list(survival.survival_blocks(lives, "failure", ["all", "gpu_count"]))
    assert [curves.height for curves, _ in blocks] == [14, 14, 14]
    assert pl.concat(curves for curves, _ in blocks).equals(whole[0])
    assert pl.concat(summary for _, summary in blocks).equals(whole[1])


def test_sums_without_lives() -> None:
    nobody = lives_of([])
    sums = {"lives": pl.len(), "time": pl.col("duration_s").sum()}
    assert by_stratum(nobody, "all", **sums).rows() == [("all", 0, 0)]
    assert by_stratum(nobody, "account", **sums).is_empty()
    ((label, times),) = times_by_stratum(nobody, "failure", "all")
    assert (label, times.lives, times.failures, times.exposure_s) == ("all", 0, 0, 0)


def test_a_negative_duration_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        by_stratum(lives_of([(-1, None, 0, 1, "a")]), "gpu_count", lives=pl.len())


def test_curves_are_read_one_by_one(monkeypatch) -> None:
    lives = lives_of([(at % 7, EVENTS[at % 2], 0, at % 5, "b") for at in range(100)])
    curves, _ = survival_tables(lives, "failure", ["all", "gpu_count"])
    for rows in (1, 10, 1000):
        monkeypatch.setattr(survival, "blocks", lambda table, rows=rows: blocks(table, rows))
        found = list(survival.curve_by_curve(curves.lazy()))
        assert [key[2] for key, _ in found] == ["all", "0", "1", "2", "3", "4"]
        assert pl.concat(rows for _, rows in found).equals(curves)
