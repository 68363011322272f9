"""The sealed list of a folder's files: each change of the folder or of the list is reported in one line."""

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
    seal.write_list(published)
    assert seal.find_problems(published) == []
    return published


def reseal(folder, facts):
    """Seal other facts with a correct digest; return the problems."""
    (folder / seal.NAME).write_bytes(seal.seal_json(facts))
    return seal.find_problems(folder)


def test_the_same_files_have_the_same_list(folder):
    content = (folder / seal.NAME).read_bytes()
    for ending in seal.SIGNATURES:
        (folder / f"{seal.NAME}{ending}").write_text("of the list")
    seal.write_list(folder)
    assert (folder / seal.NAME).read_bytes() == content
    contents = [(path, (folder / path).read_bytes()) for path in seal.read_sealed(folder / seal.NAME)["files"]]
    assert seal.make_list(reversed(contents)) == content
    assert seal.count_files(folder) == len(TEXTS) + 1
    assert seal.find_problems(folder) == []


def test_a_change_a_loss_and_an_addition_have_a_line_each(folder):
    (folder / "index.html").write_text("<b>")
    (folder / "tables/a.csv").write_text("")
    (folder / "tables/b.csv").write_text("")
    (folder / "c\n.csv").unlink()
    assert seal.find_problems(folder) == [
        "'c\\n.csv': missing",
        "index.html: changed; its SHA-256 differs",
        "tables/a.csv: changed; it has 0 bytes instead of 4",
        "tables/b.csv: added; not in the list",
    ]


def test_each_kind_of_file_substitute_is_reported(folder, tmp_path):
    """No file outside the folder is read, and no read waits on a pipe."""
    for index, (name, text) in enumerate(TEXTS.items()):
        (folder / name).unlink()
        if index == 0:
            (tmp_path / "outside").write_text(text)
            (folder / name).symlink_to(tmp_path / "outside")
        elif index == 1:
            os.mkfifo(folder / name)
        elif index == 2:
            (folder / name).mkdir()
        elif index == 3:
            (folder / name).symlink_to(name)
        else:
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(folder / name))
    (folder / "more").symlink_to("/")
    assert seal.find_problems(folder) == [
        ".nojekyll: a link was put there",
        "'c\\n.csv': a socket was put there",
        "index.html: a link was put there",
        "more: a link was put there",
        "tables/a.csv: a pipe was put there",
        "tables/deeper/ä b.csv: missing",
    ]
    with pytest.raises(StudyError, match="only files can be published"):
        seal.write_list(folder)


def test_a_flipped_bit_of_the_list_is_reported(folder):
    content = (folder / seal.NAME).read_bytes()
    rng = random.Random(19)
    for index in [*range(90), *rng.sample(range(len(content)), 200)]:
        flipped = bytearray(content)
        flipped[index] ^= 1 << rng.randrange(8)
        (folder / seal.NAME).write_bytes(flipped)
        assert len(seal.find_problems(folder)) == 1, index


NOT_SEALED = [
    *(b"", b"[]", b"{}", b"null", b"1" * 5000, bytes(range(256)), b"[" * 100_000, b'{\n "files": {}\n}\n'),
    b'{\n "digest": "' + b"0" * 64 + b'",\n "files": {}\n}\n',
]


def test_a_file_that_is_no_sealed_list_is_refused(folder):
    for content in NOT_SEALED:
        (folder / seal.NAME).write_bytes(content)
        assert len(seal.find_problems(folder)) == 1, content[:40]


# Content that somebody may seal anew.
VALID = {"sha256": "0" * 64, "size": 1}
SEALED = [
    {"more": 1},
    *({"files": files} for files in ([VALID], None, {"a": "0" * 64}, {"a": {"sha256": "0" * 64}})),
    *({"files": {"a": VALID | {"size": size}}} for size in ("1", True, -1, 10**4000, 1.5)),
    *({"files": {"a": VALID | {"sha256": digest}}} for digest in ("00", [])),
    *({"files": {path: VALID}} for path in ("../a", "/etc/passwd", "a/../../b", "a//b", "./a", "a/", "", "a/.")),
]


def test_a_sealed_list_of_other_content_is_refused(folder):
    for facts in SEALED:
        [message] = reseal(folder, facts)
        assert "is not a list of files" in message, facts


@pytest.mark.parametrize(
    "text", ['"a": NaN', '"a": 1' + "0" * 5000, '"a": ' + "[" * 100_000, '"a": 1, "a": 1', '"a": ']
)
def test_json_of_no_writer_is_refused(folder, text):
    plain = f"{{\n {text}\n}}\n".encode()
    digest = seal.hashlib.sha256(plain).hexdigest()
    (folder / seal.NAME).write_bytes(b'{\n "digest": "' + digest.encode() + b'",\n' + plain[2:])
    assert len(seal.find_problems(folder)) == 1


def test_a_list_of_1_gb_is_not_read(folder):
    os.truncate(folder / seal.NAME, 10**9)
    [message] = seal.find_problems(folder)
    assert "is longer than" in message


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("index.html")])
def test_a_substitute_of_the_list_is_refused(folder, make):
    (folder / seal.NAME).unlink()
    make(folder / seal.NAME)
    [message] = seal.find_problems(folder)
    assert "not the file that was written" in message


def test_verify_needs_no_environment_for_a_folder(folder):
    """The exit code is 0 if all files match, 1 if one differs, and 2 if the list cannot be read."""

    def verify(path):
        command = [sys.executable, "-S", "-m", "ttf.commands.verify", path]
        process = subprocess.run(command, cwd=ROOT / "scripts", capture_output=True, text=True)
        assert "Traceback" not in process.stderr
        return process.returncode, process.stdout + process.stderr

    assert verify(folder) == (0, "6 files as they were published, none missing, none added.\n")
    for number in range(60):
        (folder / f"{number:02}").touch()
    code, output = verify(folder)
    assert (code, output.count("\n")) == (1, 39)
    assert output.endswith("and 22 more\n")
    (folder / seal.NAME).unlink()
    assert verify(folder) == (2, f"error: {folder}: there is no {seal.NAME} in it, the list of what was published.\n")
    assert verify(folder / "index.html")[0] == 2
