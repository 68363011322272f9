"""The sealed list of a folder's files: whatever was done to the folder or to the list is told, in one line each."""

import os
import random
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from ttf.engine.errors import StudyError
from ttf.engine.provenance import seal

ROOT = Path(__file__).resolve().parents[2]
TEXTS = {"index.html": "<p>", "tables/a.csv": "n\n1\n", "tables/deeper/ä b.csv": "", ".nojekyll": "", "c\n.csv": "x"}


@pytest.fixture
def folder(tmp_path):
    published = tmp_path / "site"
    for name, text in TEXTS.items():
        (published / name).parent.mkdir(parents=True, exist_ok=True)
        (published / name).write_text(text)
    (published / os.fsdecode(b"\xff.csv")).write_text("bytes that are no text")
    seal.seal(published)
    assert seal.problems(published) == []
    return published


def resealed(folder, facts):
    """A list that somebody wrote with its digest."""
    (folder / seal.NAME).write_bytes(seal.sealed(facts))
    return seal.problems(folder)


def test_the_same_files_have_the_same_list(folder):
    before = (folder / seal.NAME).read_bytes()
    for ending in seal.SIGNATURES:
        (folder / f"{seal.NAME}{ending}").write_text("of the list")
    seal.seal(folder)
    assert (folder / seal.NAME).read_bytes() == before
    contents = [(path, (folder / path).read_bytes()) for path in seal.unsealed(folder / seal.NAME)["files"]]
    assert seal.list_of(reversed(contents)) == before
    assert seal.count(folder) == len(TEXTS) + 1
    assert seal.problems(folder) == []


def test_a_change_a_loss_and_an_addition_have_a_line_each(folder):
    (folder / "index.html").write_text("<b>")
    (folder / "tables/a.csv").write_text("")
    (folder / "tables/b.csv").write_text("")
    (folder / "c\n.csv").unlink()
    assert seal.problems(folder) == [
        "'c\\n.csv': missing",
        "index.html: changed; its SHA-256 differs",
        "tables/a.csv: changed; it has 0 bytes instead of 4",
        "tables/b.csv: added; not in the list",
    ]


def test_what_is_put_in_the_place_of_a_file(folder, tmp_path):
    """Nothing outside the folder is read, and nothing waits for the other end of a pipe."""
    for place, (name, text) in enumerate(TEXTS.items()):
        (folder / name).unlink()
        if place == 0:
            (tmp_path / "outside").write_text(text)
            (folder / name).symlink_to(tmp_path / "outside")
        elif place == 1:
            os.mkfifo(folder / name)
        elif place == 2:
            (folder / name).mkdir()
        elif place == 3:
            (folder / name).symlink_to(name)
        else:
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(str(folder / name))
    (folder / "more").symlink_to("/")
    assert seal.problems(folder) == [
        ".nojekyll: a link was put there",
        "'c\\n.csv': a socket was put there",
        "index.html: a link was put there",
        "more: a link was put there",
        "tables/a.csv: a pipe was put there",
        "tables/deeper/ä b.csv: missing",
    ]
    with pytest.raises(StudyError, match="only files can be published"):
        seal.seal(folder)


def test_a_flipped_bit_of_the_list_is_told_wherever_it_is(folder):
    content = (folder / seal.NAME).read_bytes()
    seed = random.Random(19)
    for place in [*range(90), *seed.sample(range(len(content)), 200)]:
        flipped = bytearray(content)
        flipped[place] ^= 1 << seed.randrange(8)
        (folder / seal.NAME).write_bytes(flipped)
        assert len(seal.problems(folder)) == 1, place


NOT_SEALED = {
    "empty": b"",
    "a list": b"[]",
    "an object": b"{}",
    "null": b"null",
    "a number": b"1" * 5000,
    "no text": bytes(range(256)),
    "deep": b"[" * 100_000,
    "without a digest": b'{\n "files": {}\n}\n',
    "another digest": b'{\n "digest": "' + b"0" * 64 + b'",\n "files": {}\n}\n',
}


@pytest.mark.parametrize("what", NOT_SEALED)
def test_no_sealed_list(folder, what):
    (folder / seal.NAME).write_bytes(NOT_SEALED[what])
    assert len(seal.problems(folder)) == 1


# What somebody may write who seals it anew.
FINE = {"sha256": "0" * 64, "size": 1}
SEALED = {
    "nothing about files": {"more": 1},
    "files as a list": {"files": [FINE]},
    "files as null": {"files": None},
    "a text": {"files": {"a": "0" * 64}},
    "no size": {"files": {"a": {"sha256": "0" * 64}}},
    "a size that is no number": {"files": {"a": FINE | {"size": "1"}}},
    "a size that is a truth": {"files": {"a": FINE | {"size": True}}},
    "a negative size": {"files": {"a": FINE | {"size": -1}}},
    "a huge size": {"files": {"a": FINE | {"size": 10**4000}}},
    "a part of a size": {"files": {"a": FINE | {"size": 1.5}}},
    "a short digest": {"files": {"a": FINE | {"sha256": "00"}}},
    "a digest that is a list": {"files": {"a": FINE | {"sha256": []}}},
    **{
        f"path {path!r}": {"files": {path: FINE}}
        for path in ("../a", "/etc/passwd", "//a", "a/../../b", "a//b", "./a", "a/", "", ".", "..", "a/.")
    },
}


@pytest.mark.parametrize("what", SEALED)
def test_a_sealed_list_of_something_else(folder, what):
    [said] = resealed(folder, SEALED[what])
    assert "is not a list of files" in said


@pytest.mark.parametrize(
    "text", ['"a": NaN', '"a": 1' + "0" * 5000, '"a": ' + "[" * 100_000, '"a": 1, "a": 1', '"a": ']
)
def test_json_that_no_writer_gives(folder, text):
    plain = f"{{\n {text}\n}}\n".encode()
    digest = seal.hashlib.sha256(plain).hexdigest()
    (folder / seal.NAME).write_bytes(b'{\n "digest": "' + digest.encode() + b'",\n' + plain[2:])
    assert len(seal.problems(folder)) == 1


def test_a_list_of_1_gb_is_not_read(folder):
    os.truncate(folder / seal.NAME, 10**9)
    [said] = seal.problems(folder)
    assert "is longer than" in said


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("index.html")])
def test_something_else_in_the_place_of_the_list(folder, make):
    (folder / seal.NAME).unlink()
    make(folder / seal.NAME)
    [said] = seal.problems(folder)
    assert "not the file that was written" in said


def test_verify_needs_no_environment_for_a_folder(folder):
    """Its exit code: 0 where all is as published, 1 where not, 2 where it cannot be told."""

    def verify(path):
        command = [sys.executable, "-E", "-S", ROOT / "scripts/verify_results.py", "--folder", path]
        done = subprocess.run(command, capture_output=True, text=True)
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout + done.stderr

    assert verify(folder) == (0, "6 files as they were published, none missing, none added.\n")
    for number in range(60):
        (folder / f"{number:02}").touch()
    code, said = verify(folder)
    assert (code, said.count("\n")) == (1, 39)
    assert said.endswith("and 22 more\n")
    (folder / seal.NAME).unlink()
    assert verify(folder) == (2, f"{folder}: there is no {seal.NAME} in it, the list of what was published.\n")
    assert verify(folder / "index.html")[0] == 2
