"""What a start remembers of texts for the next one."""

import subprocess
import sys
from pathlib import Path

import pytest
from study import documents, start_cache
from study.claims import load_claims
from study.messages import ConfigError
from study.start_cache import remember_in, remembered

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(start_cache, "_folder", None)
    remember_in(tmp_path / "memory")
    return tmp_path / "memory"


def asked(*texts, gives=("worked", "out")):
    """(what it gives, how often it was worked out)."""
    times = []
    return remembered(lambda: times.append(1) or list(gives), *texts), len(times)


def test_what_one_start_has_worked_out_the_next_one_knows(folder):
    assert asked(b"program", b"text") == (["worked", "out"], 1)
    assert asked(b"program", b"text") == (["worked", "out"], 0)
    assert asked(b"program", b"another text")[1] == asked(b"another program", b"text")[1] == 1
    assert remembered(lambda: {1}, b"no JSON") == {1}


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "\x80", "cos\nsystem\n(S'touch ran'\ntR."])
def test_a_damaged_one_is_as_good_as_none_and_is_put_right(folder, text):
    asked(b"text")
    (file,) = folder.iterdir()
    file.write_bytes(text.encode("latin-1"))
    assert [asked(b"text")[1] for _ in range(2)] == [1, 0]


def test_a_folder_that_cannot_be_written_stops_nothing_and_leaves_no_half(folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    remember_in(tmp_path / "file" / "below")
    assert asked(b"text")[1] == 1
    remember_in(folder)

    def full(path, *_, **__):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    assert asked(b"text")[1] == 1
    assert [*folder.iterdir()] == []


def test_of_more_than_are_kept_those_written_last(folder, monkeypatch):
    monkeypatch.setattr(start_cache, "_MOST", 3)
    for text in (b"1", b"2", b"3", b"4"):
        asked(text)
    assert [asked(text)[1] for text in (b"4", b"3", b"2", b"1")] == [0, 0, 0, 1]


def test_processes_at_the_same_time(tmp_path):
    """Each reads and writes the same files; what is read is whole."""
    code = f"""
import sys; sys.path[:0] = [{str(ROOT / "workflow")!r}, {str(ROOT / "scripts")!r}]
from pathlib import Path
from study import start_cache
start_cache.remember_in(Path({str(tmp_path)!r}))
for number in [*range(50)] * 5:
    assert start_cache.remembered(lambda: [number] * 99, b"%d" % number) == [number] * 99
"""
    runs = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) for _ in range(4)]
    assert [(run.communicate(timeout=60)[1], run.returncode) for run in runs] == [(b"", 0)] * 4


def test_findings_are_read_once_and_refused_at_each_start(folder, tmp_path, monkeypatch):
    first = load_claims(ROOT / "config/claims.yaml")
    file = tmp_path / "claims.yaml"
    file.write_text("sources: {a: b}\nclaims: [{id: x}]\n")
    said = []
    for _ in range(2):
        with pytest.raises(ConfigError) as error:
            load_claims(file)
        said.append(str(error.value))
    assert said[0] == said[1] and "claims.yaml: line 2, column 10: claims.x.trace: is missing" in said[0]
    monkeypatch.setattr(documents, "load_yaml", None)
    assert load_claims(ROOT / "config/claims.yaml") == first
