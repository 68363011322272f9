"""The agreement of two sources of one time matches figures worked out by hand."""

import polars as pl
from ttf.formats.common_tables import compare_runtimes

NAMES = ("outcome", "runtime_from", "start_s", "end_s", "task_start_s", "task_end_s")
SCHEMA = dict(zip(NAMES, (pl.String, pl.String, *[pl.Int64] * 4), strict=True))


def agreement(*rows):
    return compare_runtimes(pl.LazyFrame(rows, schema=SCHEMA, orient="row")).rows(named=True)


def job_row(start, end, task_start, task_end):
    return ("success", "instance", start, end, task_start, task_end)


def test_four_jobs():
    rows = agreement(
        job_row(10, 100, 10, 100),
        job_row(12, 100, 10, 100),  # starts 2 s late, so it lasts 2 s less
        job_row(14, 104, 10, 100),
        job_row(10, 99, 10, 100),
        ("failure", "instance", 10, 99, 0, 0),
        ("success", "task", 10, 99, 10, 99),
        ("success", "instance", 10, 99, None, 99),
        ("success", "instance", 10, 99, 10, None),
        ("success", None, None, None, None, None),
    )
    start, end, runtime = rows
    assert (start["time"], start["n"], start["equal"], start["equal_share"]) == ("start", 4, 2, 0.5)
    assert [row["difference_mean_s"] for row in rows] == [1.5, 0.75, -0.75]
    assert [row["equal"] for row in rows] == [2, 2, 2]
    # Nearest rank: of 0, 0, 2, 4 and of -1, 0, 0, 4 and of -2, -1, 0, 0.
    assert (start["difference_p01_s"], start["difference_p99_s"]) == (0.0, 4.0)
    assert (end["difference_p05_s"], end["difference_median_s"], end["difference_p95_s"]) == (-1.0, 0.0, 4.0)
    assert (runtime["difference_p01_s"], runtime["difference_p99_s"]) == (-2.0, 0.0)
    assert [row["reason"] for row in rows] == [None] * 3


def test_nothing_to_compare():
    for rows in (
        agreement(),
        agreement(("failure", "instance", 1, 2, 1, 2)),
        agreement(("waiting", None, None, None, None, None)),
        compare_runtimes(pl.LazyFrame({"outcome": ["success"]})).rows(named=True),
    ):
        assert [(row["time"], row["n"], row["equal"], row["equal_share"]) for row in rows] == [
            (time, 0, 0, None) for time in ("start", "end", "runtime")
        ]
        assert all(row["reason"] and row["difference_mean_s"] is None for row in rows)
