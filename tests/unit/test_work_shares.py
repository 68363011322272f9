"""Traces with large raw files are split into shares, equally before and after the files exist."""

from pathlib import Path

from ttf.study.running.parallel_jobs import count_shares

SCATTER = {"jobs": 16, "above_mb": 1}


def test_large_files_are_shared(tmp_path):
    files = {"task": [str(tmp_path / "task.csv")], "instance": [str(tmp_path / "instance.csv")]}
    entry = {"folder": str(tmp_path)}
    for size, shares in ((500_000, 1), (500_001, 16)):
        for (path,) in files.values():
            Path(path).write_bytes(bytes(size))
        assert count_shares(entry, files, SCATTER) == shares
        assert count_shares(entry, files, SCATTER | {"jobs": 1}) == 1
    assert count_shares(entry, files, SCATTER | {"above_mb": 0}) == 16


def test_a_download_counts_before_it_exists(tmp_path):
    path = tmp_path / "both.tar.gz"
    files = {"task": [f"{path}/task.csv"], "instance": [f"{path}/instance.csv"]}
    entry = {"folder": str(tmp_path), "download": {table: {"bytes": 1_000_001} for table in files}}
    assert count_shares(entry, files, SCATTER) == 16
    assert count_shares(entry, files, SCATTER | {"above_mb": 2}) == 1  # two tables share one archive
    path.write_bytes(b"")
    assert count_shares(entry, files, SCATTER) == 1


def test_an_embedded_sample_counts_the_same_before_and_after_it_is_unpacked(tmp_path):
    entry = {"embedded": True}
    path = tmp_path / "task.csv"
    assert count_shares(entry, {"task": [str(path)]}, SCATTER) == 16
    path.write_bytes(b"")
    assert count_shares(entry, {"task": [str(path)]}, SCATTER) == 16
