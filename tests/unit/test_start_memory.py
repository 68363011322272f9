"""What a start remembers of texts for the next one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from study import documents, helpers, memory
from study.claims import load_claims
from study.memory import remember_in, remembered
from study.messages import ConfigError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def start(tmp_path, monkeypatch):
    """End this start, and begin another one."""
    monkeypatch.setattr(memory.atexit, "register", lambda *_: None)

    def begin(file=tmp_path / "memory" / "memory.json"):
        if memory._file:
            memory._write()
        for name, value in (("_file", None), ("_stored", {}), ("_used", {})):
            monkeypatch.setattr(memory, name, value)
        remember_in(file)
        return file

    monkeypatch.setattr(memory, "_file", None)
    begin()
    return begin


def asked(*texts, gives=("worked", "out")):
    """(what it gives, how often it was worked out)."""
    times = []
    return remembered(lambda: times.append(1) or list(gives), *texts), len(times)


def test_what_one_start_has_worked_out_the_next_one_knows(start):
    value, times = asked(b"program", b"text")
    value.append("more")
    assert (times, asked(b"program", b"text")) == (1, (["worked", "out"], 0))
    start()
    assert asked(b"program", b"text") == (["worked", "out"], 0)
    assert asked(b"program", b"another text")[1] == asked(b"another program", b"text")[1] == 1
    assert remembered(lambda: {1}, b"no JSON") == {1}


@pytest.mark.parametrize(
    "text", ["", "{", "null", "5", "[1]", '"text"', "[" * 100_000, "\x80", "cos\nsystem\n(S'touch ran'\ntR."]
)
def test_a_damaged_one_is_as_good_as_none_and_is_put_right(start, text):
    asked(b"text")
    file = start()
    file.write_bytes(text.encode("latin-1"))
    start()
    assert asked(b"text") == (["worked", "out"], 1)
    assert asked(b"text")[1] == (start() and asked(b"text")[1]) == 0


def test_a_folder_that_cannot_be_written_stops_nothing_and_leaves_no_half(start, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    start(tmp_path / "file" / "below" / "memory.json")
    assert asked(b"text")[1] == 1
    file = start()
    asked(b"text")
    start()
    before = file.read_bytes()
    asked(b"another text")

    def full(path, *_, **__):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    memory._write()
    assert [(path.name, path.read_bytes()) for path in file.parent.iterdir()] == [(file.name, before)]


def test_of_more_than_are_kept_those_used_last(start, monkeypatch):
    monkeypatch.setattr(memory, "_MOST", 3)
    for text in (b"1", b"2", b"3", b"4"):
        asked(text)
        start()
    assert [asked(text)[1] for text in (b"1", b"2", b"3", b"4")] == [1, 1, 1, 0]


def test_processes_at_the_same_time(tmp_path):
    """Each reads and writes the same file; what is read is whole."""
    file = tmp_path / "memory.json"
    code = f"""
import sys; sys.path[:0] = [{str(ROOT / "workflow")!r}, {str(ROOT / "scripts")!r}]
from pathlib import Path
from study import memory
for time in range(40):
    memory.remember_in(Path({str(file)!r}))
    for number in range(time, time + 50):
        assert memory.remembered(lambda: [number] * 99, b"%d" % number) == [number] * 99
    memory._write()
"""
    runs = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) for _ in range(4)]
    assert [(run.communicate(timeout=60)[1], run.returncode) for run in runs] == [(b"", 0)] * 4
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    assert len(json.loads(file.read_text())) >= 50


# What is remembered -------------------------------------------------------------------------------------


def test_findings_are_read_once_and_refused_at_each_start(start, tmp_path, monkeypatch):
    first = load_claims(ROOT / "config/claims.yaml")
    file = tmp_path / "claims.yaml"
    file.write_text("sources: {a: b}\nclaims: [{id: x}]\n")
    said = []
    for _ in range(2):
        start()
        with pytest.raises(ConfigError) as error:
            load_claims(file)
        said.append(str(error.value))
    assert said[0] == said[1] and "claims.yaml: line 2, column 10: claims.x.trace: is missing" in said[0]
    monkeypatch.setattr(documents, "load_yaml", None)
    assert load_claims(ROOT / "config/claims.yaml") == first


def test_the_modules_of_every_script_are_the_same_when_they_are_remembered(start, monkeypatch):
    cached = (helpers.helpers, helpers._imported, helpers._content)

    def modules():
        for function in cached:
            function.cache_clear()
        return {script.name: helpers.helpers(script) for script in (ROOT / "scripts").glob("*.py")}

    first = modules()
    start()
    monkeypatch.setattr(helpers.ast, "parse", None)
    assert modules() == first
    for function in cached:
        function.cache_clear()
