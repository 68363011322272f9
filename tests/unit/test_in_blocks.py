"""Runs made of blocks of jobs are those of the whole trace, and so are the tables that are put together from them."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_runs import trace_of
from polars.testing import assert_frame_equal
from ttf.analyses.lost.measure_losses import compute as losses
from ttf.analyses.lost.measure_losses import lost_work, owners, what_if
from ttf.records.infra import infra_lives
from ttf.records.runs import ended, in_blocks, runs, with_reasons

RULES = {"states": ["NODE_FAIL"]}
SIZES = st.integers(1, 9)
few = settings(deadline=None, max_examples=15)


TRACES = st.builds(trace_of, st.integers(0, 10_000), st.integers(0, 40), st.booleans())


def reasons_of(jobs: pl.DataFrame, attempts: pl.DataFrame | None) -> pl.DataFrame:
    """One of each failed attempt or job, whatever it says."""
    if attempts is None:
        failed = jobs.filter(outcome="failure").with_columns(attempt=pl.lit(0, pl.Int64))
    else:
        is_last = pl.col("attempt") == pl.col("attempt").max().over("job_id")
        failed = attempts.filter((pl.col("outcome") == "failure").fill_null(~is_last)).select("attempt")
    return failed.select("attempt", deterministic=pl.int_range(pl.len()) % 2 == 0)


def blocks_of(jobs, attempts, size, with_told=True):
    lives = infra_lives(jobs, attempts, RULES).select("event", "state", "basis").lazy()
    told = reasons_of(jobs, attempts).lazy() if with_told else None
    return list(in_blocks(jobs.lazy(), None if attempts is None else attempts.lazy(), lives, told, size))


def whole(jobs, attempts):
    lives = ended(infra_lives(jobs, attempts, RULES))
    if attempts is None:
        return runs(with_reasons(jobs, reasons_of(jobs, None)), None, lives).collect()
    tries = with_reasons(attempts, reasons_of(jobs, attempts))
    return runs(jobs, tries, lives).collect()


@few
@given(TRACES, SIZES)
def test_the_runs_of_blocks_are_those_of_the_trace(trace, size) -> None:
    found, first = [], 0
    for block in blocks_of(*trace, size):
        found.append(runs(*block).collect().with_columns(pl.col("job") + first))
        first += block.jobs.height
    assert first == trace[0].height
    assert_frame_equal(pl.concat(found), whole(*trace))


def test_lives_of_another_trace_are_refused() -> None:
    jobs, attempts = trace_of(2, 20, True)
    lives = infra_lives(jobs, attempts, RULES)
    for others in (lives.head(-1), pl.concat([lives, lives.tail(1)])):
        with pytest.raises(pl.exceptions.ShapeError):
            for block in in_blocks(jobs.lazy(), attempts.lazy(), others.lazy(), None, 6):
                runs(*block).collect()


@few
@given(TRACES, SIZES)
def test_losses_put_together_from_blocks_are_those_of_the_trace(trace, size) -> None:
    told = (3600, 0, [60, 600])

    def tables(size):
        parts = [losses.sum_block(*block, *told) for block in blocks_of(*trace, size)]
        sums = lost_work.loss_sums(parts, 300)
        return [
            lost_work.lost_work(sums),
            lost_work.lost_work_by_month(sums, 0, 20_000),
            owners.concentration(owners.owner_counts(parts)),
            what_if.what_if(pl.concat(part["what_if"] for part in parts), told[-1]),
            pl.concat(part["times"] for part in parts).sort(pl.all()),
        ]

    for table, whole_table in zip(tables(size), tables(1000), strict=True):
        assert_frame_equal(table, whole_table)
