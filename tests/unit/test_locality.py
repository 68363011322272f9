"""GPU time that jobs on the fewest nodes would have saved."""

import polars as pl
import pytest
from ttf.analyses.lost.measure_losses import LOCALITY
from ttf.analyses.lost.measure_losses.locality import JOB_COLUMNS, NO_PAIR, NO_SAVING, NO_USE, locality

HOUR = 3600
# (GPU type, milli-GPUs of an instance, instances, run time in s, nodes, used milli-GPUs of an instance)
LARGE = [
    ("A", 8000, 2, 2 * HOUR, 2, 4000),
    # At a quarter and at an eighth, where half is expected.
    ("A", 16000, 1, 4 * HOUR, 3, 4000),
    ("A", 8000, 2, 3 * HOUR, 5, 1000),
]
# Two of 4 GPUs, the one on more nodes with more use.
SMALL = [("B", 4000, 1, HOUR, 1, 1000), ("B", 4000, 1, HOUR, 2, 2000)]
# Another type, another size, one GPU, no run time, no nodes, no use.
ALONE = [("B", 8000, 2, HOUR, 9, 100), ("A", 4000, 1, HOUR, 4, 100), ("A", 1000, 1, HOUR, 1, 100)]
ALONE += [("A", 8000, 2, None, 4, 100), ("A", 8000, 2, HOUR, None, 100), ("A", 8000, 2, HOUR, 4, None)]


def saved(rows: list[tuple]) -> dict[str, tuple]:
    schema = dict.fromkeys(JOB_COLUMNS, pl.Int64) | {"gpu_type": pl.String}
    table = locality(pl.LazyFrame(rows, schema=schema, orient="row"))
    LOCALITY.check(table)
    return {bucket: cells for bucket, *cells in table.iter_rows()}


def test_work_takes_the_time_that_it_takes_on_the_fewest_nodes():
    rows = saved([*LARGE, *SMALL, *ALONE])
    # 112 GPU-hours on more nodes did 22 of 56 expected; 144 in all.
    assert rows[">8"] == [3, 2, pytest.approx(112 * 34 / 56), pytest.approx(112 * 34 / 56 / 144), None]
    assert rows["2-4"] == [2, 1, None, None, NO_SAVING]
    # With the 4 GPU-hours of work 2 where 1 is expected.
    assert rows["all"] == [5, 3, pytest.approx(116 * 33 / 57), pytest.approx(116 * 33 / 57 / 152), None]
    assert rows["5-8"] == [0, 0, None, None, NO_PAIR]


def test_what_records_cannot_tell_has_a_reason():
    assert saved(ALONE) == {key: [0, 0, None, None, NO_PAIR] for key in ("all", "2-4", "5-8", ">8")}
    without_use = locality(pl.LazyFrame(schema=JOB_COLUMNS).drop("gpu_used_milli"))
    LOCALITY.check(without_use)
    assert without_use.select("gpu_bucket", "n", "reason").row(0) == ("all", None, NO_USE)
