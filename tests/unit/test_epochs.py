"""Epochs to the lowest loss: a few jobs worked out by hand, and a comparison with plain Python."""

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ttf.analyses.replication.measure_epochs.compute import best_epochs, epochs_summary, epochs_table, match_jobs
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.registry_options import find_option_file

LOSSES = {"job": pl.String, "epoch": pl.Int64, "loss": pl.Float64, "time_s": pl.Int64}
JOBS = {
    "job_id": pl.String,
    "outcome": pl.String,
    "start_s": pl.Int64,
    "gpu_milli": pl.Int64,
    "size": pl.Int64,
}


def loss_log(**losses):
    """Losses of epochs 1, 2 ... per job. The epochs end at 100, 200 ... s."""
    rows = [
        (job, epoch, loss, 100 * epoch) for job, series in losses.items() for epoch, loss in enumerate(series, start=1)
    ]
    return pl.DataFrame(rows, schema=LOSSES, orient="row")


def jobs(*rows):
    return pl.DataFrame([(*row, 1) for row in rows], schema=JOBS, orient="row")


def epoch_rows(losses):
    return best_epochs(losses).select("job", "epochs", "lowest_at", "near_at").rows()


def test_a_repeated_epoch_counts_as_logged_last():
    rows = [("a", 3, 1.0, 300), ("a", 1, 9.0, 100), ("a", 2, 0.5, 200), ("a", 2, 4.0, 250), ("a", 7, 8.0, 700)]
    losses = pl.DataFrame(rows, schema=LOSSES, orient="row")
    assert best_epochs(losses).rows() == [("a", 4, 3, 3, 300, 700)]
    assert best_epochs(losses.reverse()).rows() == best_epochs(losses).rows()


def test_shares_of_jobs_and_of_time_by_outcome():
    losses = loss_log(
        a=[4, 3, 2, 1],  # lowest at the last epoch
        b=[2, 1, 1, 1],  # half of the epochs, 200 of 400 s remain
        c=[1, 2],  # half, 100 of 200 s remain
        d=[5],
        e=[math.nan],
        f=[1, 2],
    )
    trace_jobs = jobs(
        ("a", "success", 0, 1000),
        ("b", "success", 0, 3000),
        ("c", "cancelled", 0, None),
        ("d", "cancelled", 100, 1000),  # starts when its epoch ends
        ("e", "failure", 0, 1000),
        ("g", "failure", 0, 1000),
    )
    best = match_jobs(losses, trace_jobs)
    summary = {row["outcome"]: row for row in epochs_summary(best).iter_rows(named=True)}
    success = summary["success"]
    assert (success["n"], success["epochs"], success["needing_all"], success["needing_all_share"]) == (2, 8, 1, 0.5)
    assert (success["timed_jobs"], success["after_near_share_mean"]) == (2, 0.25)
    # b: 600 of 1,200 GPU s on 3 GPUs; a: 0 of 400.
    assert success["after_near_gpu_time_share"] == 600 / 1600
    cancelled = summary["cancelled"]
    assert (cancelled["n"], cancelled["needing_all_share"], cancelled["timed_jobs"]) == (2, 0.5, 1)
    assert (summary["failure"]["jobs_logged"], summary["failure"]["reason"]) == (1, "no loss of theirs is a number")
    table = epochs_table(best)
    lowest = table.filter(pl.col("outcome") == "success", pl.col("quantity") == "lowest")
    assert lowest["epochs_share"].to_list() == [tenths / 10 for tenths in range(1, 11)]
    assert lowest["jobs"].to_list() == [0, 0, 0, 0, 1, 1, 1, 1, 1, 2]


LOSS_VALUES = st.one_of(st.sampled_from([0.0, -1.0, 1.0, 1.0009, math.nan, math.inf, -math.inf]), st.floats(-1e6, 1e6))


@given(st.lists(st.lists(LOSS_VALUES, min_size=1, max_size=12), min_size=1, max_size=5))
def test_best_epochs_against_plain_python(runs):
    losses = loss_log(**{f"j{index}": run for index, run in enumerate(runs)})
    for index, (_, epochs, lowest_at, near_at) in enumerate(epoch_rows(losses)):
        finite = [loss for loss in runs[index] if math.isfinite(loss)]
        assert epochs == len(runs[index])
        if not finite:
            assert lowest_at is near_at is None
            continue
        lowest = min(finite)
        assert lowest_at == runs[index].index(lowest) + 1
        near = [math.isfinite(loss) and loss <= lowest + 0.001 * abs(lowest) for loss in runs[index]]
        assert near_at == near.index(True) + 1 <= lowest_at


# The file ---------------------------------------------------------------------------------------------------


def test_the_loss_log_exists_and_needs_a_format_with_jobs(tmp_path):
    file = tmp_path / "l.csv"
    entry = {"format": "philly", "loss_log": str(file)}
    assert find_option_file("loss_log", "t", {"format": "philly"}, {"gives": "jobs"}) is None
    with pytest.raises(ConfigError, match=r"^registry\.t\.loss_log: .*there is no such file"):
        find_option_file("loss_log", "t", entry, {"gives": "jobs"})
    # The log of an embedded sample is unpacked with its tables.
    assert find_option_file("loss_log", "t", entry, {"gives": "jobs"}, [str(file)]) == str(file)
    file.touch()
    assert find_option_file("loss_log", "t", entry, {"gives": "jobs"}) == str(file)
    with pytest.raises(ConfigError, match=r"losses belong to jobs, and the format titan has no jobs\."):
        find_option_file("loss_log", "t", entry | {"format": "titan"}, {"gives": "durations"})
