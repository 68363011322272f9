"""Raw files: every packing gives the same text, and any damage gives one message."""

import gzip
import io
import lzma
import os
import random
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st
from ttf.engine.errors import StudyError
from ttf.raw import raw_files
from ttf.raw.raw_files import count_lines, read_line_blocks

TEXT = "".join(f"job{n},{n * n},Terminated\n" for n in range(40)).encode()
PAGE = b"\xef\xbb\xbf\r\n <!DOCTYPE html>\n<html><title>404 Not Found</title></html>\n"


def archive(*members, **kinds):
    """Build a tar of (name, content) members; kinds maps a name to the type of a member without content."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, type_ in kinds.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = type_, "/etc/passwd"
            tar.addfile(info)
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def zstd(text, checksum=True):
    return zstandard.ZstdCompressor(write_checksum=checksum).compress(text)


PACK = {
    ".csv": bytes,
    ".csv.gz": gzip.compress,
    ".csv.xz": lzma.compress,
    ".csv.zst": zstd,
    ".tar.gz": lambda text: gzip.compress(archive(("pai_job_table.csv", text))),
    ".tgz": lambda text: gzip.compress(archive(("./data/table.csv", text))),
}
COMPRESSED = [ending for ending in PACK if ending not in (".csv", ".tgz")]


def write(folder, ending, content):
    path = folder / f"table{ending}"
    path.write_bytes(content)
    return path


def read(path, block_bytes=None):
    return b"".join(read_line_blocks(path, block_bytes))


def error_of(path):
    with pytest.raises(StudyError) as error:
        read(path)
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize("block_bytes", [50, None])
def test_every_packing_gives_the_same_text(tmp_path, ending, block_bytes):
    path = write(tmp_path, ending, PACK[ending](TEXT))
    blocks = list(read_line_blocks(path, block_bytes))
    assert b"".join(blocks) == TEXT
    assert all(block.endswith(b"\n") for block in blocks)


@pytest.mark.parametrize("ending", COMPRESSED)
def test_cut_short_anywhere(tmp_path, ending):
    packed = PACK[ending](TEXT)
    for cut in range(1, len(packed)):
        assert "damaged or cut short" in error_of(write(tmp_path, ending, packed[:cut])), cut


@pytest.mark.parametrize("ending", COMPRESSED)
def test_a_large_file_cut_short(tmp_path, ending):
    """Larger than the buffers, so that whole blocks come before the damage."""
    numbers = random.Random(1)
    packed = PACK[ending](b"".join(b"%d,b\n" % numbers.getrandbits(400) for _ in range(11_000)))
    assert len(packed) > 500_000
    for cut in (len(packed) // 3, len(packed) - 1):
        assert "damaged or cut short" in error_of(write(tmp_path, ending, packed[:cut])), cut


@pytest.mark.parametrize("ending", COMPRESSED)
def test_a_flipped_bit_is_an_error_or_harmless(tmp_path, ending):
    packed = PACK[ending](TEXT)
    noticed = 0
    for index in range(len(packed)):
        damaged = bytearray(packed)
        damaged[index] ^= 1 << index % 8
        try:
            assert read(write(tmp_path, ending, damaged)) == TEXT, index
        except StudyError:
            noticed += 1
    assert noticed > len(packed) / 2


def test_a_damaged_tar_in_valid_gzip(tmp_path):
    """The gzip checksums hold, so only tarfile checks the damaged headers."""
    plain = archive(("table.csv", TEXT))
    # Any byte of a field between the name and its prefix, which are text of any kind.
    for index in (*range(0, 100, 10), *range(100, 345), *range(345, 600, 10)):
        for value in (0, 0xFF, ord("9")):
            damaged = bytearray(plain)
            damaged[index] = value
            header = bytes(damaged[:148]) + b" " * 8 + bytes(damaged[156:512])
            damaged[148:156] = b"%06o\0 " % sum(header)  # a sum that fits, so that the header is believed
            path = write(tmp_path, ".tar.gz", gzip.compress(bytes(damaged), 1))
            try:
                read(path)
            except StudyError as error:
                assert str(error).startswith(f"{path}: ")


@pytest.mark.parametrize("ending", PACK)
def test_empty(tmp_path, ending):
    assert "the file is empty" in error_of(write(tmp_path, ending, b""))


@pytest.mark.parametrize("ending", PACK)
def test_a_web_page_under_any_name(tmp_path, ending):
    message = error_of(write(tmp_path, ending, PAGE))
    assert "HTML" in message
    assert "Fetch the file again" in message
    if ending != ".csv":
        assert "the bytes are not" in message


@pytest.mark.parametrize(
    ("ending", "content", "message"),
    [
        *((ending, TEXT, "give it the ending .csv") for ending in COMPRESSED),
        (".csv", gzip.compress(TEXT), "the bytes are gzip"),
        (".csv", lzma.compress(TEXT), "the bytes are xz"),
        (".csv", zstd(TEXT), "the bytes are zstd"),
        (".csv", archive(("table.csv", TEXT)), "tar archive"),
        (".csv.gz", PACK[".tar.gz"](TEXT), "tar archive"),
        (".tar.gz", gzip.compress(TEXT), "no tar archive"),
    ],
)
def test_a_name_that_is_not_that_of_the_packing(tmp_path, ending, content, message):
    assert message in error_of(write(tmp_path, ending, content))


def test_archive_with_folder_and_macos_file(tmp_path):
    tar = archive(("._table.csv", b"junk"), ("data/table.csv", TEXT), ("data/._x", b"more"), data=tarfile.DIRTYPE)
    assert read(write(tmp_path, ".tar.gz", gzip.compress(tar))) == TEXT


@pytest.mark.parametrize(
    ("tar", "message"),
    [
        (archive(("a.csv", TEXT), ("b.csv", TEXT)), "'a.csv' and 'b.csv'"),
        (archive(), "holds no file"),
        (archive(link=tarfile.SYMTYPE), "'link' in the archive is no plain file"),
        (archive(pipe=tarfile.FIFOTYPE), "'pipe' in the archive is no plain file"),
    ],
)
def test_archive_without_exactly_one_table(tmp_path, tar, message):
    assert message in error_of(write(tmp_path, ".tar.gz", gzip.compress(tar)))


@pytest.mark.parametrize("ending", [".csv.gz", ".csv.xz", ".csv.zst"])
def test_several_streams_in_one_file(tmp_path, ending):
    assert read(write(tmp_path, ending, PACK[ending](TEXT) + PACK[ending](TEXT))) == TEXT * 2
    cut = (PACK[ending](TEXT) + PACK[ending](TEXT))[:-5]
    assert "damaged" in error_of(write(tmp_path, ending, cut))


def test_zstd_with_a_skippable_frame_first(tmp_path):
    skippable = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"abcd"
    assert read(write(tmp_path, ".csv.zst", skippable + zstd(TEXT))) == TEXT


def test_a_missing_file_and_a_folder(tmp_path):
    assert "No such file" in error_of(tmp_path / "absent.csv")
    assert "No such file" in error_of(tmp_path / "absent.csv.gz")
    (tmp_path / "folder.csv").mkdir()
    assert "cannot be read" in error_of(tmp_path / "folder.csv")


@pytest.mark.parametrize("ending", [".csv", ".csv.zst"])
@pytest.mark.parametrize("first", [b"", b"a,b\n"])
def test_a_line_without_end(tmp_path, monkeypatch, ending, first):
    monkeypatch.setattr(raw_files, "MAX_LINE_BYTES", 10_000)
    monkeypatch.setattr(raw_files, "BLOCK_BYTES", 3_000)
    assert "a line longer than 10,000 bytes" in error_of(write(tmp_path, ending, PACK[ending](first + b"a" * 20_000)))


def test_line_ends(tmp_path):
    assert read(write(tmp_path, ".csv", b"a\r\nb\rc\r\r\nd\n\r\n\ne")) == b"a\nb\rc\r\nd\n\n\ne\n"
    assert read(write(tmp_path, ".csv", b"a\r\nb\r\n")) == b"a\nb\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"a|b|c\r1|2|3\r4|5|6\r", 1),
        (b"a|b|c\n1|2|3\n4|5|6\r7|8|9\r1|2|3\n", 3),
        (b"a|b|c\r\n1|2|3\r\n4|5|6\r7|8|9\r\n", 3),
    ],
)
def test_lines_that_end_in_cr_have_a_message(tmp_path, text, line):
    with pytest.raises(StudyError, match=rf"table\.csv: line {line}: its lines end in CR, .* Convert the file "):
        read(write(tmp_path, ".csv", text))
    with pytest.raises(StudyError, match="its lines end in CR"):
        read(write(tmp_path, ".csv.gz", gzip.compress(text)))


def test_a_cr_within_a_text_ends_no_line(tmp_path):
    text = b"a|b|c\n1|two\rlines|3\n4|5|6\r\r\n"
    assert read(write(tmp_path, ".csv", text)) == b"a|b|c\n1|two\rlines|3\n4|5|6\r\n"


@pytest.mark.parametrize("text", [b"a\0,\0b\0\n\0", b"\0a\0,\0b\0\n"])
def test_utf_16_without_its_mark(tmp_path, text):
    with pytest.raises(StudyError, match="the text is UTF-16"):
        read(write(tmp_path, ".csv", text))


@pytest.mark.parametrize("ending", COMPRESSED)
def test_a_file_that_unpacks_to_far_more_than_a_table_does(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(raw_files, "UNPACKING_FLOOR_BYTES", 1_000_000)
    path = write(tmp_path, ending, PACK[ending](b"\n" * 8_000_000))
    with pytest.raises(StudyError, match=r"table.*: its [\d,]+ bytes unpack to more than 200 times as many: "):
        for _ in raw_files.read_unpacked(path):
            pass


@pytest.mark.parametrize("change", ["shrinks", "grows", "vanishes"])
def test_a_file_that_changes_while_it_is_read(tmp_path, change):
    path = write(tmp_path, ".csv", b"a,b\n" * 100_000)
    blocks = read_line_blocks(path, 100_000)
    next(blocks)
    if change == "vanishes":
        path.unlink()
    else:
        os.truncate(path, {"shrinks": 200_000, "grows": 500_000}[change])
    with pytest.raises(StudyError, match=r"csv: (the file changed while it was read|cannot be read: No such file)"):
        list(blocks)


@pytest.mark.parametrize("length", [5_000, 1 << 20])
def test_a_block_has_only_so_many_lines(tmp_path, monkeypatch, length):
    monkeypatch.setattr(raw_files, "MOST_LINES", 100)
    text = b"x" * length + b"\n" * 1_000 + b"y" * length + b"\nz\n"
    blocks = list(read_line_blocks(write(tmp_path, ".csv", text)))
    assert b"".join(blocks) == text
    assert max(block.count(b"\n") for block in blocks) <= 100
    assert all(block.endswith(b"\n") for block in blocks)


@pytest.mark.parametrize("size", [30, 1 << 20])
def test_lines_of_small_and_large_blocks_are_counted(size):
    block = random.Random(size).randbytes(size)
    assert count_lines(block) == block.count(b"\n")


@given(body=st.binary(max_size=300), ending=st.sampled_from(list(PACK)), block_bytes=st.integers(1, 400))
@example(body=b"\r\n\n\r", ending=".csv", block_bytes=1)
@example(body=b"\0", ending=".csv", block_bytes=1)
def test_any_bytes_in_blocks_of_any_size(tmp_path_factory, body, ending, block_bytes):
    text = b"a" + body
    path = write(Path(tmp_path_factory.getbasetemp()), ending, PACK[ending](text))
    try:
        blocks = list(read_line_blocks(path, block_bytes))
    except StudyError as error:
        assert ("lines end in CR" in str(error) and b"\r" in body) or ("UTF-16" in str(error) and body[:1] == b"\0")
        return
    assert b"".join(blocks) == (text if text.endswith(b"\n") else text + b"\n").replace(b"\r\n", b"\n")
    assert all(block.endswith(b"\n") for block in blocks)


# A file of an archive that holds several -----------------------------------------------------------------


def member_error(archive_, member):
    with pytest.raises(StudyError) as error:
        read(archive_ / member)
    assert str(error.value).startswith(f"{archive_}: ")
    return str(error.value)


def zipped(*members, kind=stat.S_IFREG):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive_:
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.external_attr = (kind | 0o644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive_.writestr(info, content)
    return buffer.getvalue()


def tarred(*members):
    return gzip.compress(archive(*members))


MEMBERS = [("all/Earth/log.csv", b"earth\n"), ("all/Venus/log.csv", TEXT), ("all/Venus/._log.csv", b"x"), ("n", b"n\n")]


@pytest.mark.parametrize(("ending", "pack"), [(".tar.gz", tarred), (".tgz", tarred), (".zip", zipped)])
def test_a_file_of_an_archive(tmp_path, ending, pack):
    """A member is found by the end of its path; nothing is written next to the archive."""
    path = write(tmp_path, ending, pack(*MEMBERS))
    assert read(path / "Venus/log.csv") == TEXT
    assert read(path / "all/Venus/log.csv") == TEXT
    assert read(path / "n") == b"n\n"
    assert "holds 'all/Earth/log.csv' and 'all/Venus/log.csv'" in member_error(path, "log.csv")
    assert "the archive has no 'us/log.csv'; it holds 'all/Earth/log.csv'" in member_error(path, "us/log.csv")
    assert "expected one table" in error_of(path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_zip_of_one_table(tmp_path):
    assert read(write(tmp_path, ".zip", zipped(("../../escaped.csv", TEXT)))) == TEXT
    assert "holds no file" in error_of(write(tmp_path, ".zip", zipped(("folder/", b""))))
    assert "the name says plain text. Give it the ending .zip" in error_of(write(tmp_path, ".csv", zipped(("a", TEXT))))


def test_a_link_of_an_archive_is_no_table(tmp_path):
    path = write(tmp_path, ".zip", zipped(("log.csv", b"/etc/passwd"), kind=stat.S_IFLNK))
    assert "'log.csv' in the archive is no plain file" in member_error(path, "log.csv")
    path = write(tmp_path, ".tar.gz", gzip.compress(archive(("n.csv", TEXT), link=tarfile.SYMTYPE)))
    assert "'link' in the archive is no plain file" in member_error(path, "link")
    assert read(path / "n.csv") == TEXT


def test_a_damaged_zip(tmp_path):
    content = zipped(("log.csv", TEXT), ("other.csv", TEXT * 50))
    for cut in (0, 3, 30, len(content) // 2, len(content) - 1):
        assert member_error(write(tmp_path, ".zip", content[:cut]), "log.csv")
    index = content.index(b"log.csv") + 12
    changed = content[:index] + bytes([content[index] ^ 0x10]) + content[index + 1 :]
    assert "damaged" in member_error(write(tmp_path, ".zip", changed), "log.csv")
    # The flag of encryption, in the entry and in the directory at the end.
    locked = bytearray(content)
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(mark) + offset] |= 1
    assert "is encrypted" in member_error(write(tmp_path, ".zip", bytes(locked)), "log.csv")


def test_other_members_may_be_long_but_not_unlimited(tmp_path, monkeypatch):
    monkeypatch.setattr(raw_files, "MAX_MEMBER_HEADER_BYTES", 3_000_000)
    path = write(tmp_path, ".tar.gz", tarred(("long", b"0\n" * 4_000_000), ("log.csv", TEXT)))
    assert read(path / "log.csv") == TEXT
    monkeypatch.setattr(raw_files, "MOST_BYTES", 6_000_000)
    assert "unpacks to more than 6,000,000 bytes" in member_error(path, "log.csv")
    path = write(tmp_path, ".zip", zipped(("log.csv", b"0\n" * 4_000_000)))
    assert "unpacks to more than 6,000,000 bytes" in member_error(path, "log.csv")


def test_a_tar_cut_behind_the_table_is_damaged(tmp_path):
    content = tarred(("log.csv", TEXT), ("other", random.Random(0).randbytes(100_000)))
    assert "damaged or cut short" in member_error(write(tmp_path, ".tar.gz", content[:50_000]), "log.csv")
