"""A full disk, a read-only disk or too many open files give one message without a traceback."""

import errno
import os
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from ttf.engine.process.entry import run_rule
from ttf.engine.process.machine import explain_error, explain_error_text
from ttf.study.running import disk
from ttf.study.running.disk import MachineError, check_free_space, check_writable

MEASURED = {"disk": {"base_mb": 20, "mb_per_gb": 1500}}


@contextmanager
def small_disk(folder: Path, options: str = "size=64k"):
    """Mount a file system of this size in the folder."""
    folder.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], capture_output=True, check=False)
    if mount.returncode:
        pytest.skip("to mount a small file system takes root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("name", ["ENOSPC", "EDQUOT", "EROFS", "EIO", "ENAMETOOLONG", "EMFILE"])
def test_each_system_error_names_the_file_and_the_remedy(tmp_path, name):
    number = getattr(errno, name)
    message = explain_error(OSError(number, os.strerror(number), f"{tmp_path}/x.csv"))
    assert message.startswith(f"{tmp_path}/x.csv: ")
    assert len(message.splitlines()) == 1
    assert ("MB are free" in message) == (number in (errno.ENOSPC, errno.EDQUOT))


def test_a_full_disk_is_detected_behind_an_unrelated_error(tmp_path, monkeypatch):
    """For example, the process that draws cannot write its message, or a page is half written."""
    monkeypatch.setattr("ttf.engine.process.entry.limit_libraries", lambda _: None)
    with small_disk(tmp_path / "disk") as folder:

        def draw(_):
            with suppress(OSError):
                (folder / "page.half").write_bytes(bytes(200_000))
            raise RuntimeError("a chart cannot be drawn: ")

        log = folder / "count.log"
        job = {"rule": "count", "threads": 1, "wildcards": SimpleNamespace(trace="mine"), "log": [str(log)]}
        with pytest.raises(SystemExit):
            run_rule(draw, SimpleNamespace(**job, output=[str(folder / "page.html")]))
        assert log.read_text().startswith(f"{folder}/page.html: the disk is full")
        assert [file.name for file in folder.iterdir()] == ["count.log"]


NO_MEMORY = (
    "there is not enough memory. Run fewer jobs at a time: ttf report --cores 1. Or allow more: ulimit -v unlimited."
)


def test_only_errors_of_the_machine_have_a_message():
    assert explain_error(MemoryError()) == explain_error(RuntimeError("can't start new thread")) == NO_MEMORY
    assert explain_error(ValueError("x")) is None
    assert explain_error(FileNotFoundError(errno.ENOENT, "none", "x")) is None
    value_error = ValueError("x")
    value_error.__context__ = PermissionError(errno.EACCES, "no", "y")
    assert explain_error(value_error) is None, "a handled error is no reason"


def test_a_full_disk_is_recognised_in_snakemakes_output():
    text = "Error recording metadata ([Errno 28] No space left on device). Please ensure write permissions"
    assert "the disk is full" in explain_error_text(text)
    assert explain_error_text("MissingInputException in rule fit") is None


@pytest.mark.parametrize("write", ["write_csv", "sink_parquet"])
def test_a_full_disk_reported_by_polars(tmp_path, monkeypatch, write):
    monkeypatch.setattr("ttf.engine.process.entry.limit_libraries", lambda _: None)
    frame = pl.DataFrame({"a": [str(n) * 9 for n in range(90_000)]})
    with small_disk(tmp_path / "disk") as folder:
        target = folder / "table"
        log = tmp_path / "count.log"
        job = SimpleNamespace(
            rule="count", threads=1, wildcards=SimpleNamespace(trace="mine"), log=[str(log)], output=[str(target)]
        )
        with pytest.raises(SystemExit):
            run_rule(lambda _: getattr(frame.lazy() if "sink" in write else frame, write)(target), job)
        assert log.read_text().startswith(f"{target}: the disk is full (0.0 MB are free). Make room")
        assert not target.exists(), "the log, the next job and the user need the space"


def test_read_only_folders_are_reported_before_the_first_job(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_writable()
    with (
        small_disk(tmp_path / "shut", "ro,size=64k"),
        pytest.raises(MachineError, match=r"^shut/logs: the disk is read-only"),
    ):
        check_writable(("results", "shut/logs"))


def test_too_little_space_is_reported_before_the_first_job(monkeypatch):
    monkeypatch.delenv(disk.OVERRIDE_VARIABLE, raising=False)
    monkeypatch.setattr(disk, "free_bytes", lambda _: 3_100_000_000)
    check_free_space({"mine": 2.0}, MEASURED)
    monkeypatch.setattr(disk, "free_bytes", lambda _: 1_000_000_000)
    check_free_space({}, MEASURED)
    with pytest.raises(MachineError, match=r"mine will take about 3,020 MB, and 1,000 MB are free.*TTF_ROOM=any ttf"):
        check_free_space({"mine": 2.0}, MEASURED)
    monkeypatch.setenv(disk.OVERRIDE_VARIABLE, "any")
    check_free_space({"mine": 2.0}, MEASURED)


def test_a_read_only_home_is_replaced_by_a_local_cache(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    disk.use_writable_cache()
    assert os.environ["XDG_CACHE_HOME"] == str(tmp_path / ".snakemake/cache")
