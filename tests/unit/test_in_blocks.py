"""Runs and loss tables combined from blocks of jobs equal those of the whole trace."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import make_trace
from polars.testing import assert_frame_equal
from ttf.analyses.lost.measure_losses import compute as losses
from ttf.analyses.lost.measure_losses import lost_work, owners, what_if
from ttf.records.infra import infra_durations
from ttf.records.runs import USER, build_runs, iterate_blocks

RULES = {"states": ["NODE_FAIL"]}
SIZES = st.integers(1, 9)


TRACES = st.builds(make_trace, st.integers(0, 10_000), st.integers(0, 40), st.booleans())


def failure_reasons(jobs: pl.DataFrame, attempts: pl.DataFrame | None) -> pl.DataFrame:
    """Give every failed attempt or job a reason."""
    if attempts is None:
        failed = jobs.filter(outcome="failure").with_columns(attempt=pl.lit(0, pl.Int64))
    else:
        is_last = pl.col("attempt") == pl.col("attempt").max().over("job_id")
        failed = attempts.filter((pl.col("outcome") == "failure").fill_null(~is_last)).select("attempt")
    number = pl.int_range(pl.len())
    domain = pl.when(number % 3 == 0).then(pl.lit(USER)).otherwise(pl.lit("hardware"))
    return failed.select("attempt", deterministic=number % 2 == 0, domain=domain)


def split_blocks(jobs, attempts, size):
    durations = infra_durations(jobs, attempts, RULES).select("event", "state", "basis").lazy()
    reasons = failure_reasons(jobs, attempts).lazy()
    return list(iterate_blocks(jobs.lazy(), None if attempts is None else attempts.lazy(), durations, reasons, size))


def test_durations_of_another_trace_are_an_error():
    jobs, attempts = make_trace(2, 20, True)
    durations = infra_durations(jobs, attempts, RULES)
    for other_durations in (durations.head(-1), pl.concat([durations, durations.tail(1)])):
        with pytest.raises(pl.exceptions.ShapeError):
            for block in iterate_blocks(jobs.lazy(), attempts.lazy(), other_durations.lazy(), None, 6):
                build_runs(*block).collect()


@given(TRACES, SIZES)
def test_losses_combined_from_blocks_equal_those_of_the_trace(trace, size):
    options = (3600, 0, [60, 600])

    def tables(size):
        parts = [losses.sum_block(*block, *options) for block in split_blocks(*trace, size)]
        sums = lost_work.loss_sums(parts, 300)
        return [
            lost_work.lost_work(sums),
            lost_work.lost_work_by_month(sums, 0, 20_000),
            owners.concentration(owners.owner_counts(parts)),
            what_if.what_if(pl.concat(part["what_if"] for part in parts), options[-1]),
            pl.concat(part["times"] for part in parts).sort(pl.all()),
        ]

    for table, whole_table in zip(tables(size), tables(1000), strict=True):
        assert_frame_equal(table, whole_table)
