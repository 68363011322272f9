"""What was made of blocks of rows is used again where nothing that it rests on has changed, and only there."""

import polars as pl
import pytest
from ttf.kept import Kept, digest_of
from ttf.on_disk import scan_parquet
from ttf.tables import blocks as blocks_of

CALLS = []


def by_user(block: pl.DataFrame, least: int = 0) -> dict[str, pl.DataFrame]:
    CALLS.append(block.height)
    return {"sums": block.filter(pl.col("s") >= least).group_by("user", maintain_order=True).agg(pl.col("s").sum())}


@pytest.fixture
def jobs(tmp_path):
    CALLS.clear()
    frame = pl.DataFrame({"user": ["a", "b", None, "ü"] * 5, "s": range(20)})
    frame.write_parquet(tmp_path / "jobs.parquet")
    return scan_parquet(tmp_path / "jobs.parquet")


def summed(folder, jobs, *told, made_by=("code 1",)):
    """The sums of all blocks of eight rows, and how many blocks were looked at anew."""
    before, kept = len(CALLS), Kept(folder, made_by)
    blocks = [kept.of_frame(block, by_user, *told)["sums"] for block in blocks_of(jobs, 8)]
    kept.forget_others()
    return pl.concat(blocks), len(CALLS) - before


def test_a_block_is_looked_at_once(tmp_path, jobs):
    folder = tmp_path / "kept"
    first, looked_at = summed(folder, jobs)
    assert looked_at == 3
    again, looked_at = summed(folder, jobs)
    assert looked_at == 0
    assert again.equals(first) and again.schema == first.schema
    alone, looked_at = summed(None, jobs)
    assert looked_at == 3 and alone.equals(first)


def test_rows_at_the_end_cost_what_is_new(tmp_path, jobs):
    folder = tmp_path / "kept"
    summed(folder, jobs)
    longer = pl.concat([jobs.collect(), pl.DataFrame({"user": ["c"] * 9, "s": range(9)})])
    longer.write_parquet(tmp_path / "longer.parquet")
    found, looked_at = summed(folder, scan_parquet(tmp_path / "longer.parquet"))
    # The third block had four rows and has eight, and there is a fourth.
    assert looked_at == 2
    assert found.equals(summed(None, longer.lazy())[0])


@pytest.mark.parametrize("told, made_by", [((3,), ("code 1",)), ((), ("code 2",))])
def test_what_a_result_rests_on_tells_it_apart(tmp_path, jobs, told, made_by):
    folder = tmp_path / "kept"
    summed(folder, jobs)
    found, looked_at = summed(folder, jobs, *told, made_by=made_by)
    assert looked_at == 3
    assert found.equals(summed(None, jobs, *told)[0])
    # What this run did not use is gone.
    assert len(list(folder.iterdir())) == 3


def test_a_changed_value_and_a_changed_type_are_other_rows():
    frame = pl.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"], "c": [True, None, False]})
    assert digest_of(pl.concat([frame[:1], frame[1:]])) == digest_of(frame)
    assert digest_of(frame[1:]) == digest_of(pl.DataFrame({"a": [2, 3], "b": [None, "z"], "c": [None, False]}))
    assert digest_of(frame) != digest_of(pl.concat([frame, frame.clear(1)]))
    others = [frame.rename({"a": "d"}), frame.with_columns(pl.col("a").cast(pl.Int32)), frame.fill_null("")]
    assert len({digest_of(other) for other in [frame, *others]}) == 4


@pytest.mark.parametrize("harm", [lambda file: file.write_bytes(b""), lambda file: file.unlink()])
def test_what_was_damaged_is_made_anew(tmp_path, jobs, harm):
    folder = tmp_path / "kept"
    first, _ = summed(folder, jobs)
    for file in folder.glob("*/0.parquet"):
        harm(file)
    again, looked_at = summed(folder, jobs)
    assert looked_at == 3 and again.equals(first)
    assert summed(folder, jobs)[1] == 0


def test_a_result_that_was_edited_is_not_used(tmp_path, jobs):
    folder = tmp_path / "kept"
    first, _ = summed(folder, jobs)
    file = next(folder.glob("*/0.parquet"))
    content = bytearray(file.read_bytes())
    content[-20] ^= 1
    file.write_bytes(content)
    again, looked_at = summed(folder, jobs)
    assert looked_at == 1 and again.equals(first)


def test_where_nothing_can_be_kept_nothing_is_lost(tmp_path, jobs):
    folder = tmp_path / "kept"
    folder.write_text("a file in its place")
    found, looked_at = summed(folder, jobs)
    assert looked_at == 3 and found.equals(summed(None, jobs)[0])
