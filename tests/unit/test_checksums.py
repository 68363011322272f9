"""Checksums of a run (workflow/study/checksums.py)."""

import asyncio
import os
from types import SimpleNamespace

from study.checksums import _once


def test_a_file_is_read_again_only_once_it_was_written_to(tmp_path):
    read = []

    async def take(file, threshold=None, algorithm=None):
        read.append(file.file)
        return f"{algorithm}:{(tmp_path / file.file).read_text()}"

    checksum = _once(take)

    def of(name, **more):
        return asyncio.run(checksum(SimpleNamespace(file=str(tmp_path / name), is_storage=False), 100, **more))

    (tmp_path / "a").write_text("1")
    before = (tmp_path / "a").stat()
    assert [of("a"), of("a"), of("a", algorithm="md5")] == ["None:1", "None:1", "md5:1"]
    assert len(read) == 2
    # As long, and said to be as old.
    (tmp_path / "a").write_text("2")
    os.utime(tmp_path / "a", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert of("a") == "None:2"


def test_what_is_not_there_and_what_lies_in_a_store_is_snakemakes_own_affair(tmp_path):
    asked = []

    async def take(file, *_):
        asked.append(file.file)

    checksum = _once(take)
    (tmp_path / "stored").write_text("1")
    for name, is_storage in (("gone", False), ("stored", True)):
        for _ in range(2):
            asyncio.run(checksum(SimpleNamespace(file=str(tmp_path / name), is_storage=is_storage), 100))
    assert len(asked) == 4
