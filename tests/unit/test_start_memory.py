"""What a start remembers of texts for the next one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from study import helpers, memory, yaml_files
from study.memory import Memory, remember_in
from study.messages import ConfigError
from study.yaml_files import Document, load_yaml

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_folder", None)
    monkeypatch.setattr(memory.atexit, "register", lambda *_: None)
    remember_in(tmp_path / "memory")
    return tmp_path / "memory"


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "program.py"
    file.write_text("the first version")
    return str(file)


def asked(memory, content=b"text", gives=None, is_one=lambda _: True):
    """(what it gives, how often it was worked out)."""
    times = []

    def work_out():
        times.append(1)
        return ["worked out"] if gives is None else gives

    return memory.of(content, work_out, is_one), len(times)


def left(folder, program, **given):
    """A memory of another start: what one leaves that has been asked once."""
    first = Memory("kind", program)
    found = asked(first, **given)
    first._write(folder)
    return found


def test_what_one_start_has_worked_out_the_next_one_knows(folder, program):
    assert left(folder, program) == (["worked out"], 1)
    later = Memory("kind", program)
    assert asked(later) == (["worked out"], 0)
    assert asked(later, b"another text") == (["worked out"], 1)
    assert asked(Memory("another kind", program)) == (["worked out"], 1)


def test_another_version_of_the_program_knows_nothing(folder, program):
    left(folder, program)
    Path(program).write_text("the second version")
    assert asked(Memory("kind", program)) == (["worked out"], 1)


def test_what_is_done_to_a_value_is_not_remembered(folder, program):
    first = Memory("kind", program)
    asked(first)[0].append("more")
    first._write(folder)
    assert asked(Memory("kind", program)) == (["worked out"], 0)


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", object()])
def test_what_json_cannot_hold_is_given_and_not_remembered(folder, program, value):
    assert left(folder, program, gives=value) == (value, 1)
    assert asked(Memory("kind", program), gives=value) == (value, 1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        '"text"',
        "{}",
        '{"version": VERSION}',
        '{"version": VERSION, "known": null}',
        '{"version": VERSION, "known": [1]}',
        '{"version": VERSION, "known": {DIGEST: 5}}',
        '{"version": VERSION, "known": {DIGEST: null}}',
        '{"version": VERSION, "known": {DIGEST: "{"}}',
        '{"version": VERSION, "known": {DIGEST: ["worked", "out"]}}',
        "[" * 100_000,
        "\x80",
    ],
)
def test_a_damaged_one_is_as_good_as_none_and_is_put_right(folder, program, text):
    left(folder, program)
    file = folder / "kind.json"
    version, digest = json.loads(file.read_text())["version"], next(iter(json.loads(file.read_text())["known"]))
    damaged = text.replace("VERSION", json.dumps(version)).replace("DIGEST", json.dumps(digest))
    file.write_bytes(damaged.encode("latin-1"))
    assert left(folder, program) == (["worked out"], 1)
    assert asked(Memory("kind", program)) == (["worked out"], 0)


def test_one_that_is_too_large_is_not_read(folder, program, monkeypatch):
    left(folder, program)
    monkeypatch.setattr(memory, "_LARGEST", 10)
    assert asked(Memory("kind", program)) == (["worked out"], 1)


def test_what_cannot_be_what_is_asked_for_is_worked_out(folder, program):
    left(folder, program, gives="another kind of value")
    later = Memory("kind", program)
    assert asked(later, is_one=lambda found: isinstance(found, list)) == (["worked out"], 1)


def test_nothing_is_run(folder, program, tmp_path):
    """A pickle, and a text that Python would run."""
    left(folder, program)
    for content in (b"cos\nsystem\n(S'touch ran'\ntR.", b"__import__('os').system('touch ran')"):
        (folder / "kind.json").write_bytes(content)
        assert asked(Memory("kind", program)) == (["worked out"], 1)
    assert not [*tmp_path.rglob("ran")]


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path, program, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(memory, "_folder", tmp_path / "file")
    assert left(tmp_path / "file", program) == (["worked out"], 1)
    assert left(tmp_path / "file" / "below", program) == (["worked out"], 1)


def test_a_full_disk_leaves_no_half(folder, program, monkeypatch):
    left(folder, program)
    before = (folder / "kind.json").read_bytes()

    def full(kept, file):
        file.write("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(memory.json, "dump", full)
    left(folder, program, content=b"another text")
    assert [(file.name, file.read_bytes()) for file in folder.iterdir()] == [("kind.json", before)]


def test_of_more_than_are_kept_those_used_last(folder, program, monkeypatch):
    monkeypatch.setattr(memory, "_MOST", 3)
    for content in (b"1", b"2", b"3", b"4"):
        left(folder, program, content=content)
    later = Memory("kind", program)
    assert [asked(later, content)[1] for content in (b"1", b"2", b"3", b"4")] == [1, 1, 1, 0]


def test_processes_at_the_same_time(tmp_path):
    """Each reads and writes the same file, again and again; what is read is whole."""
    code = f"""
import sys; sys.path[:0] = [{str(ROOT / "workflow")!r}, {str(ROOT / "scripts")!r}]
from pathlib import Path
from study.memory import Memory, remember_in
folder = Path({str(tmp_path)!r})
remember_in(folder)
for time in range(40):
    one = Memory("kind", {__file__!r})
    for number in range(time, time + 50):
        assert one.of(b"%d" % number, lambda: [number] * 99, lambda _: True) == [number] * 99
    one._write(folder)
"""
    runs = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) for _ in range(4)]
    assert [(run.communicate(timeout=60)[1], run.returncode) for run in runs] == [(b"", 0)] * 4
    assert [file.name for file in tmp_path.iterdir()] == ["kind.json"]
    assert len(json.loads((tmp_path / "kind.json").read_text())["known"]) >= 50


# What is remembered -------------------------------------------------------------------------------------


@pytest.fixture
def documents(folder, monkeypatch):
    def anew():
        monkeypatch.setattr(yaml_files, "_DOCUMENTS", Memory("documents", yaml_files.__file__))

    monkeypatch.setattr(yaml_files, "_MUCH", 0)
    anew()
    return anew


def test_a_document_is_the_same_when_it_is_remembered(documents, folder, tmp_path):
    file = tmp_path / "claims.yaml"
    file.write_text("a: {b: [1, 2.5, true, null, x]}\n2020: no\nc: &c {d: e}\nf: {<<: *c}\n")
    first = load_yaml(file)
    yaml_files._DOCUMENTS._write(folder)
    documents()
    again = load_yaml(file)
    assert isinstance(again, Document)
    assert again == first
    assert [again.place(path) for path in [("a", "b", 1), ("f", "d"), ("2020",), ("x",)]] == [
        first.place(path) for path in [("a", "b", 1), ("f", "d"), ("2020",), ("x",)]
    ]


def test_an_edited_document_is_read_anew(documents, folder, tmp_path):
    file = tmp_path / "claims.yaml"
    file.write_text("a: 1\n")
    assert load_yaml(file) == {"a": 1}
    yaml_files._DOCUMENTS._write(folder)
    before = file.stat()
    file.write_text("a: 2\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    documents()
    assert load_yaml(file) == {"a": 2}, "as long and as old, but another text"


def test_a_wrong_document_is_wrong_at_each_start(documents, folder, tmp_path):
    file = tmp_path / "claims.yaml"
    file.write_text("a: 1\na: 2\n")
    for _ in range(2):
        with pytest.raises(ConfigError, match="line 2, column 1: the key a stands twice"):
            load_yaml(file)
        yaml_files._DOCUMENTS._write(folder)
        documents()


@pytest.mark.parametrize(
    "found",
    [
        "text",
        [["ttf.a"]],
        [["ttf.a", "x", 0, "1"]],
        [[1, "x", 0, 1]],
        [["/etc/passwd", "", 0, 1]],
        [["ttf/../../etc.passwd", "", 0, 1]],
        [["ttf.a", "b/../c", 0, 1]],
    ],
)
def test_what_no_module_can_import_is_not_believed(found):
    assert not helpers._are_imports(found)


@pytest.mark.parametrize("found", [[], [["ttf.a", "x", 0, 1]], [["ttf.a", "*", 0, 1]], [["os", "", 0, 3]]])
def test_what_a_module_may_import(found):
    assert helpers._are_imports(found)


def test_the_modules_of_every_script_are_the_same_when_they_are_remembered(folder, monkeypatch):
    cached = (helpers.helpers, helpers._imported, helpers._content)

    def modules():
        for function in cached:
            function.cache_clear()
        return {script.name: helpers.helpers(script) for script in (ROOT / "scripts").glob("*.py")}

    monkeypatch.setattr(helpers, "_MEMORY", Memory("imports", helpers.__file__))
    first = modules()
    helpers._MEMORY._write(folder)
    monkeypatch.setattr(helpers, "_MEMORY", Memory("imports", helpers.__file__))
    monkeypatch.setattr(helpers.ast, "parse", None)
    assert modules() == first
    for function in cached:
        function.cache_clear()
