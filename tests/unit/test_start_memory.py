"""The cache of results that one start leaves for the next."""

import subprocess
import sys
from pathlib import Path

import pytest
from ttf.study.configuration import documents
from ttf.study.configuration.claims import load_claims
from ttf.study.configuration.messages import ConfigError
from ttf.study.running import start_cache
from ttf.study.running.start_cache import load_or_compute

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def cache_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(start_cache, "_folder", None)
    start_cache.use_cache_folder(tmp_path / "memory")
    return start_cache._folder


def test_the_folder_of_the_bytecode_is_used_if_it_is_writable(cache_folder, tmp_path):
    start_cache.use_cache_folder(tmp_path / "other")
    assert start_cache._folder == cache_folder


def remember(*texts, result=("worked", "out")):
    """Return the result and how often it was computed."""
    calls = []
    return load_or_compute(lambda: calls.append(1) or list(result), *texts), len(calls)


def test_a_result_of_one_start_is_cached_for_the_next(cache_folder):
    assert remember(b"program", b"text") == (["worked", "out"], 1)
    assert remember(b"program", b"text") == (["worked", "out"], 0)
    assert remember(b"program", b"another text")[1] == remember(b"another program", b"text")[1] == 1
    assert load_or_compute(lambda: {1}, b"no JSON") == {1}


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\x80", "cos\nsystem\n(S'touch ran'\ntR."])
def test_a_damaged_file_is_recomputed_and_replaced(cache_folder, text):
    remember(b"text")
    (file,) = cache_folder.iterdir()
    file.write_bytes(text.encode("latin-1"))
    assert [remember(b"text")[1] for _ in range(2)] == [1, 0]


def test_an_unwritable_folder_is_no_error_and_leaves_no_partial_file(cache_folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(start_cache, "_folder", tmp_path / "file" / "below")
    assert remember(b"text")[1] == 1
    monkeypatch.setattr(start_cache, "_folder", cache_folder)

    def full(path, *_, **__):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    assert remember(b"text")[1] == 1
    assert [*cache_folder.iterdir()] == []


def test_the_cache_retains_the_last_written(cache_folder, monkeypatch):
    monkeypatch.setattr(start_cache, "_MOST", 3)
    for text in (b"1", b"2", b"3", b"4"):
        remember(text)
    assert [remember(text)[1] for text in (b"4", b"3", b"2", b"1")] == [0, 0, 0, 1]


def test_processes_at_the_same_time(tmp_path):
    """The processes read and write the same files, and no read is partial."""
    code = f"""
import sys; sys.path[:0] = [{str(ROOT / "scripts")!r}]
from pathlib import Path
from ttf.study.running import start_cache
start_cache._folder = Path({str(tmp_path)!r})
for number in [*range(50)] * 5:
    assert start_cache.load_or_compute(lambda: [number] * 99, b"%d" % number) == [number] * 99
"""
    runs = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) for _ in range(4)]
    assert [(run.communicate(timeout=60)[1], run.returncode) for run in runs] == [(b"", 0)] * 4


def test_valid_findings_are_read_once_and_bad_ones_refused_each_time(cache_folder, tmp_path, monkeypatch):
    claims = load_claims(ROOT / "config/claims.yaml")
    file = tmp_path / "claims.yaml"
    file.write_text("sources: {a: b}\nclaims: [{id: x}]\n")
    messages = []
    for _ in range(2):
        with pytest.raises(ConfigError) as error:
            load_claims(file)
        messages.append(str(error.value))
    assert (
        messages[0] == messages[1] and "claims.yaml: line 2, column 10: claims.x.statement: is missing" in messages[0]
    )
    monkeypatch.setattr(documents, "load_yaml", None)
    assert load_claims(ROOT / "config/claims.yaml") == claims
