"""Epochs to the lowest loss: a few jobs worked out by hand, and against plain Python."""

import math

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from study.messages import ConfigError
from study.registry_options import file_beside
from ttf.analyses.replication.measure_epochs.compute import best_epochs, epochs_summary, epochs_table, match_jobs

LOSSES = {"job": pl.String, "epoch": pl.Int64, "loss": pl.Float64, "time_s": pl.Int64}
JOBS = {
    "job_id": pl.String,
    "outcome": pl.String,
    "start_s": pl.Int64,
    "gpu_milli": pl.Int64,
    "size": pl.Int64,
}


def log(**losses):
    """Epochs 1, 2 ... of each job, which end at 100, 200 ... s."""
    rows = [
        (job, place, loss, 100 * place) for job, values in losses.items() for place, loss in enumerate(values, start=1)
    ]
    return pl.DataFrame(rows, schema=LOSSES, orient="row")


def jobs(*rows):
    return pl.DataFrame([(*row, 1) for row in rows], schema=JOBS, orient="row")


def places(losses):
    return best_epochs(losses).select("job", "epochs", "lowest_at", "near_at").rows()


def test_an_epoch_that_was_run_again_counts_as_it_was_logged_last_and_epochs_go_by_number():
    rows = [("a", 3, 1.0, 300), ("a", 1, 9.0, 100), ("a", 2, 0.5, 200), ("a", 2, 4.0, 250), ("a", 7, 8.0, 700)]
    losses = pl.DataFrame(rows, schema=LOSSES, orient="row")
    assert best_epochs(losses).rows() == [("a", 4, 3, 3, 300, 700)]
    assert best_epochs(losses.reverse()).rows() == best_epochs(losses).rows()


def test_shares_of_jobs_and_of_time_by_outcome():
    losses = log(
        a=[4, 3, 2, 1],  # all epochs; nothing after
        b=[2, 1, 1, 1],  # half of the epochs; 200 s of 400 s after
        c=[1, 2],  # half; 100 of 200 s
        d=[5],
        e=[math.nan],
        f=[1, 2],
    )
    known = jobs(
        ("a", "success", 0, 1000),
        ("b", "success", 0, 3000),
        ("c", "cancelled", 0, None),
        ("d", "cancelled", 100, 1000),  # started no earlier than its epoch ended
        ("e", "failure", 0, 1000),
        ("g", "failure", 0, 1000),
    )
    best = match_jobs(losses, known)
    summary = {row["outcome"]: row for row in epochs_summary(best).iter_rows(named=True)}
    success = summary["success"]
    assert (success["n"], success["epochs"], success["needing_all"], success["needing_all_share"]) == (2, 8, 1, 0.5)
    assert (success["timed_jobs"], success["after_near_share_mean"]) == (2, 0.25)
    # 3 GPUs of b: 600 of 1,200 GPU s, and a's 400.
    assert success["after_near_gpu_time_share"] == 600 / 1600
    cancelled = summary["cancelled"]
    assert (cancelled["n"], cancelled["needing_all_share"], cancelled["timed_jobs"]) == (2, 0.5, 1)
    assert (cancelled["after_near_share_mean"], cancelled["after_near_gpu_time_share"]) == (0.5, None)
    assert (summary["failure"]["jobs_logged"], summary["failure"]["reason"]) == (1, "no loss of theirs is a number")
    assert summary["not_in_trace"]["jobs_logged"] == 1
    table = epochs_table(best)
    lowest = table.filter(pl.col("outcome") == "success", pl.col("quantity") == "lowest")
    assert lowest["epochs_share"].to_list() == [tenths / 10 for tenths in range(1, 11)]
    assert lowest["jobs"].to_list() == [0, 0, 0, 0, 1, 1, 1, 1, 1, 2]
    assert set(table["outcome"]) == {"success", "cancelled"}


def test_an_id_of_several_jobs_is_no_job():
    twice = jobs(("a", "success", 0, 1000), ("a", "failure", 0, 1000))
    assert epochs_summary(match_jobs(log(a=[1.0]), twice)).row(-1, named=True)["outcome"] == "not_in_trace"


values = st.one_of(st.sampled_from([0.0, -1.0, 1.0, 1.0009, math.nan, math.inf, -math.inf]), st.floats(-1e6, 1e6))


@given(st.lists(st.lists(values, min_size=1, max_size=12), min_size=1, max_size=5))
@settings(max_examples=40, deadline=None)
def test_places_against_plain_python(runs):
    losses = log(**{f"j{place}": run for place, run in enumerate(runs)})
    for place, (_, epochs, lowest_at, near_at) in enumerate(places(losses)):
        finite = [loss for loss in runs[place] if math.isfinite(loss)]
        assert epochs == len(runs[place])
        if not finite:
            assert lowest_at is near_at is None
            continue
        lowest = min(finite)
        assert lowest_at == runs[place].index(lowest) + 1
        near = [math.isfinite(loss) and loss <= lowest + 0.001 * abs(lowest) for loss in runs[place]]
        assert near_at == near.index(True) + 1 <= lowest_at


# The file ---------------------------------------------------------------------------------------------------


def test_the_loss_log_is_there_and_of_a_format_with_jobs(tmp_path):
    file = tmp_path / "l.csv"
    entry = {"format": "philly", "loss_log": str(file)}
    assert file_beside("loss_log", "t", {"format": "philly"}, {"gives": "jobs"}) is None
    with pytest.raises(ConfigError, match=r"^registry\.t\.loss_log: .*there is no such file"):
        file_beside("loss_log", "t", entry, {"gives": "jobs"})
    # That of an embedded sample is unpacked with its tables.
    assert file_beside("loss_log", "t", entry, {"gives": "jobs"}, [str(file)]) == str(file)
    file.touch()
    assert file_beside("loss_log", "t", entry, {"gives": "jobs"}) == str(file)
    with pytest.raises(ConfigError, match=r"losses are those of jobs, and the format titan has none\."):
        file_beside("loss_log", "t", entry | {"format": "titan"}, {"gives": "lives"})
