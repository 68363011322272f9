"""What was made of blocks of rows is used again where nothing that it rests on has changed, and only there."""

import hashlib
import hmac
import json
import os
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from snakemake.iocontainers import Params
from ttf.kept import DIGESTS, Kept, digest_of
from ttf.on_disk import scan_parquet
from ttf.provenance.key import KEY as KEY_OF_STUDY
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
    blocks = [kept.of_frames([block], by_user, *told)["sums"] for block in blocks_of(jobs, 8)]
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


KEY = bytes(range(32))


def keyed(folder, jobs, key=KEY):
    """As `summed`, sealed with a key."""
    before, kept = len(CALLS), Kept(folder, ("code 1",), lambda: key)
    return pl.concat([kept.of_frames([block], by_user)["sums"] for block in blocks_of(jobs, 8)]), len(CALLS) - before


def poison(result, key=None):
    """Other cells in a result, with the digests that they have, sealed with a key if there is one."""
    file, told = result / "0.parquet", json.loads((result / DIGESTS).read_bytes())
    pl.read_parquet(file).with_columns(pl.col("s") * 2).write_parquet(file)
    told["frames"]["sums"] = hashlib.sha256(file.read_bytes()).hexdigest()
    if key is not None:
        text = f"kept\0{result.name}\0{json.dumps(told['frames'])}".encode()
        told["seal"] = hmac.new(key, text, "sha256").hexdigest()
    (result / DIGESTS).write_text(json.dumps(told))


def moved_from_another(result):
    other = next(path for path in result.parent.iterdir() if path != result)
    for name in ("0.parquet", DIGESTS):
        (result / name).write_bytes((other / name).read_bytes())


@pytest.mark.parametrize("harm", [poison, lambda result: poison(result, b"another"), moved_from_another])
def test_a_result_that_somebody_without_the_key_wrote_is_made_anew(tmp_path, jobs, harm):
    folder = tmp_path / "kept"
    first, _ = keyed(folder, jobs)
    assert keyed(folder, jobs)[1] == 0
    harm(sorted(folder.iterdir())[0])
    again, looked_at = keyed(folder, jobs)
    assert looked_at == 1 and again.equals(first)
    assert keyed(folder, jobs)[1] == 0
    assert keyed(folder, jobs, b"another")[1] == 3


def test_with_the_key_a_seal_can_be_written(tmp_path, jobs):
    """So the tests above try what the code would believe."""
    first, _ = keyed(tmp_path, jobs)
    poison(sorted(tmp_path.iterdir())[0], KEY)
    again, looked_at = keyed(tmp_path, jobs)
    assert looked_at == 0 and not again.equals(first)


NO_DIGESTS = [b"{}", b"[]", b"null", b"", b'{"frames": {}, "seal": ""}', b'{"frames": []}', b"[" * 100_000, b"\xff"]


@pytest.mark.parametrize("text", NO_DIGESTS)
def test_digests_that_are_none_are_survived(tmp_path, jobs, text):
    first, _ = keyed(tmp_path, jobs)
    for file in tmp_path.glob(f"*/{DIGESTS}"):
        file.write_bytes(text)
    again, looked_at = keyed(tmp_path, jobs)
    assert looked_at == 3 and again.equals(first)
    assert keyed(tmp_path, jobs)[1] == 0


@pytest.mark.parametrize("name", [DIGESTS, "0.parquet"])
def test_a_pipe_in_the_place_of_a_file_holds_nothing_up(tmp_path, jobs, name):
    first, _ = keyed(tmp_path, jobs)
    for file in tmp_path.glob(f"*/{name}"):
        file.unlink()
        os.mkfifo(file)
    again, looked_at = keyed(tmp_path, jobs)
    assert looked_at == 3 and again.equals(first)


def test_a_rule_seals_with_the_key_of_the_study(tmp_path, jobs, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rule = SimpleNamespace(params=Params(["code"]), wildcards=SimpleNamespace(trace="mine"), rule="count")
    kept = Kept.of_rule(rule)
    assert not KEY_OF_STUDY.exists(), "made for the first result"
    kept.of_frames([jobs.collect()], by_user)
    (result,) = Path(".snakemake/kept/mine/count").iterdir()
    assert len(KEY_OF_STUDY.read_bytes()) == 32
    poison(result, b"")
    Kept.of_rule(rule).of_frames([jobs.collect()], by_user)
    assert len(CALLS) == 2
    KEY_OF_STUDY.unlink()
    KEY_OF_STUDY.mkdir()
    Kept.of_rule(rule).of_frames([jobs.collect()], by_user)
    assert len(CALLS) == 3, "without a key nothing is used"


def test_where_nothing_can_be_kept_nothing_is_lost(tmp_path, jobs):
    folder = tmp_path / "kept"
    folder.write_text("a file in its place")
    found, looked_at = summed(folder, jobs)
    assert looked_at == 3 and found.equals(summed(None, jobs)[0])
