"""Downloads: for any behaviour of a server, the file is complete and checked, or a message says why not."""

import gzip
import hashlib
import io
import re
import resource
import shutil
import ssl
import subprocess
import tarfile
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from format_tables import FORMATS
from loopback import (
    PAGE,
    Site,
    body,
    chunked,
    hang_up,
    repeat_forever,
    reset,
    send_file,
    stall,
    status,
    truncate,
)
from ttf.engine.errors import StudyError
from ttf.raw import raw_files
from ttf.raw.fetch import Download, fetch
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.yaml_files import load_yaml
from ttf.study.trace_files import find_downloads, find_raw_tables, get_disk_path

ROOT = Path(__file__).resolve().parents[2]
TEXT = b"".join(b"job%d,%d,Terminated\n" % (n, n * n) for n in range(40_000))
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:2037\nsize 1055988361\n"


def sha256(content):
    return hashlib.sha256(content).hexdigest()


LENGTH, SHA256 = len(TEXT), sha256(TEXT)


def archive(text, name="table.csv"):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text))
    return gzip.compress(buffer.getvalue(), mtime=0)


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Site()
    server.files["/t.csv"] = TEXT
    yield server
    server.stop()


@pytest.fixture
def get(site, tmp_path):
    """Return a function that fetches paths or URLs to data/t.csv and records `messages` and `waits_s`."""

    def run(*paths, parts=None, name="t.csv", sha=SHA256, size=LENGTH, stall_s=5, tries=5, **options):
        def address(path):
            return path if ":" in path else site.url + path

        download = Download(
            [address(path) for path in paths or ("/t.csv",)],
            parts=parts and [address(path) for path in parts],
            bytes=size,
            sha256=sha,
            **options,
        )
        limits = {"stall_s": stall_s, "tries": tries, "sleep": run.waits_s.append}
        return fetch(run.folder / name, download, run.messages.append, **limits)

    run.folder, run.messages, run.waits_s = tmp_path / "data", [], []
    run.target = run.folder / "t.csv"
    return run


def refusal(get, *paths, **options):
    with pytest.raises(StudyError) as error:
        get(*paths, **options)
    message = str(error.value)
    assert message.startswith(f"{get.folder}")
    assert not get.target.exists()
    return message


def list_files(get):
    return sorted(path.name for path in get.folder.iterdir())


# Good servers and interrupted downloads ---------------------------------------------------------------------


def test_a_file(get, site):
    assert get().startswith("t.csv: 1.2 MB from 127.0.0.1:")
    assert get.target.read_bytes() == TEXT
    assert list_files(get) == ["t.csv"]
    assert site.asked == [("/t.csv", None, None)]
    assert get.waits_s == []


BREAKS = {
    "truncates": truncate(300_000),
    "stalls": truncate(300_000, after_send=stall),
    "resets": truncate(300_000, after_send=reset),
    "ends a chunked answer early": chunked(TEXT, end=False),
    "hangs up": hang_up,
    "sends a range that was not asked for": status(206, Content_Range="bytes 5-9/10"),
}


@pytest.mark.parametrize(
    ("habit", "etag", "checked"),
    [*((habit, '"v1"', False) for habit in BREAKS), ("truncates", None, True), ("truncates", None, False)],
)
def test_a_download_resumes_after_a_break(get, site, habit, etag, checked):
    site.etag["/t.csv"] = etag
    site.habits["/t.csv"] = [BREAKS[habit], BREAKS[habit], send_file]
    get(stall_s=0.5, sha=SHA256 if checked else None)
    assert get.target.read_bytes() == TEXT
    assert list_files(get) == ["t.csv"]
    assert len(get.waits_s) == 2
    if habit in ("truncates", "stalls"):
        # Without an ETag or a checksum, the rest may belong to another version.
        resumed = ["bytes=300000-", "bytes=600000-"] if etag or checked else [None, None]
        assert site.ranges("/t.csv") == [None, *resumed]
        assert {if_range for *_, if_range in site.asked[1:]} == {etag}


def test_a_version_that_changes_on_the_way(get, site):
    """With If-Range the server sends the new file from its start, as a server without ranges does."""
    new = TEXT[::-1]

    def send_new_version(handler, site, path):
        site.files[path], site.etag[path] = new, '"v2"'
        send_file(handler, site, path)

    site.etag["/t.csv"] = '"v1"'
    site.habits["/t.csv"] = [truncate(300_000), send_new_version]
    get(sha=None)
    assert get.target.read_bytes() == new


def test_breaks_with_progress_do_not_exhaust_the_tries(get, site):
    site.habits["/t.csv"] = [truncate(len(TEXT) // 20)]
    get(tries=2)
    assert get.target.read_bytes() == TEXT
    assert len(get.waits_s) == 20


def test_breaks_without_progress_exhaust_the_tries(get, site):
    site.habits["/t.csv"] = [truncate(300_000, ranges=False)]
    assert f"{site.url}/t.csv: " in refusal(get)
    assert len(get.waits_s) == 5


def test_a_server_may_ask_for_a_longer_wait_but_not_for_ever(get, site):
    site.habits["/t.csv"] = [status(429, Retry_After="7"), status(503, Retry_After="999999"), send_file]
    get()
    assert get.waits_s == [7, 60]


OK = b"HTTP/1.1 200 OK\r\n"
ENDLESS = {
    "a header, a byte at a time": repeat_forever(b"x", OK + b"X-More: ", 0.02),
    "chunks of a byte": repeat_forever(b"1\r\nj\r\n", OK + b"Transfer-Encoding: chunked\r\n\r\n", 0.02),
}


@pytest.mark.parametrize("case", ENDLESS)
def test_an_endless_answer_times_out_and_the_mirror_is_used(get, site, case):
    site.habits["/slow/t.csv"] = [ENDLESS[case]]
    start = time.monotonic()
    assert "/slow/t.csv: " in refusal(get, "/slow/t.csv", stall_s=0.3, tries=2)
    assert time.monotonic() - start < 15
    assert get("/slow/t.csv", "/t.csv", tries=1, stall_s=0.3)


# The next run -----------------------------------------------------------------------------------------------


def test_a_rerun_resumes_the_download(get, site):
    site.habits["/t.csv"] = [truncate(300_000, ranges=False)]
    refusal(get, tries=1)
    assert list_files(get) == [".t.csv.part"]
    site.habits.clear()
    site.asked.clear()
    get()
    assert site.ranges("/t.csv") == ["bytes=300000-"]
    assert get.target.read_bytes() == TEXT
    assert list_files(get) == ["t.csv"]


def test_a_partial_file_of_another_version_is_replaced(get, site):
    get.folder.mkdir()
    (get.folder / ".t.csv.part").write_bytes(b"x" * 1000)
    get()
    assert site.ranges("/t.csv") == ["bytes=1000-", None]
    assert get.target.read_bytes() == TEXT


# Wrong answers ----------------------------------------------------------------------------------------------


WRONG_ANSWERS = {
    "page": (body(PAGE, Content_Type="text/html"), "sent an HTML or XML page, not the file; it begins b'<!DOCTYPE"),
    "lfs pointer": (body(POINTER), "the server sent a Git-LFS pointer, not the file"),
    "not there": (status(404), "HTTP 404 Not Found"),
    "shorter": (body(TEXT[:-1]), f"the file there has {len(TEXT) - 1:,} bytes, expected {len(TEXT):,}"),
    "no end": (body(TEXT + b"x", length=False), f"sends more than the {len(TEXT):,} bytes expected"),
    "wrong": (body(TEXT[::-1]), f"SHA-256 {sha256(TEXT[::-1])}, expected {sha256(TEXT)}"),
}


@pytest.mark.parametrize("name", [".t.csv.part", ".t.csv.000.piece"])
def test_nothing_is_written_through_a_link(get, site, tmp_path, name):
    get.folder.mkdir()
    (tmp_path / "mine").write_bytes(b"mine")
    path = get.folder / name
    path.symlink_to(tmp_path / "mine")
    for sha in (SHA256, None):
        assert refusal(get, sha=sha).startswith(f"{path}: is a link, but the download needs this name. Remove it")
    assert (tmp_path / "mine").read_bytes() == b"mine"
    assert site.asked == []


@pytest.mark.parametrize("case", WRONG_ANSWERS)
def test_a_wrong_answer_is_named_and_the_mirror_is_used(get, site, case):
    habit, message_part = WRONG_ANSWERS[case]
    site.habits["/other/t.csv"] = [habit]
    message = refusal(get, "/other/t.csv")
    assert f"  {site.url}/other/t.csv: " in message
    assert message_part in message
    assert get.waits_s == []
    assert get("/other/t.csv", "/t.csv")
    assert get.target.read_bytes() == TEXT
    assert list_files(get) == ["t.csv"]


def test_all_addresses_are_named_and_the_rest_comes_from_the_mirror(get, site):
    site.habits["/a/t.csv"] = [truncate(300_000, ranges=False)]
    message = refusal(get, "/a/t.csv", "/b/t.csv", tries=2)
    assert [line.split(": ")[0] for line in message.splitlines()[1:3]] == [f"  {site.url}/{x}/t.csv" for x in "ab"]
    site.files["/a/t.csv"] = TEXT
    refusal(get, "/a/t.csv", tries=2)
    get("/a/t.csv", "/t.csv", tries=2)
    assert site.ranges("/t.csv") == ["bytes=300000-"]
    assert get.target.read_bytes() == TEXT


def test_a_wrong_file_is_quarantined_and_a_good_old_one_stays(get, site):
    get.folder.mkdir()
    get.target.write_bytes(b"old and good")
    site.habits["/t.csv"] = [body(TEXT[::-1])]
    with pytest.raises(StudyError, match=r"moved to .*/\.t\.csv\.wrong"):
        get()
    assert get.target.read_bytes() == b"old and good"
    assert (get.folder / ".t.csv.wrong").read_bytes() == TEXT[::-1]
    assert list_files(get) == [".t.csv.wrong", "t.csv"]
    site.habits.clear()
    get()
    assert list_files(get) == ["t.csv"]


def test_files_of_other_names_are_left_alone(get, site):
    """Partial files of data/t resemble those of data/t.csv."""
    get.folder.mkdir()
    names = [".t.csv.csv.part", ".t.csv.gz.wrong", ".tXcsv.part", ".t.csv.0001.piece", "t.csv.part"]
    for name in names:
        (get.folder / name).touch()
    get()
    assert list_files(get) == sorted([*names, "t.csv"])


# Addresses --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/circle", "redirects more than 5 times"),
        ("file:///etc/passwd", "'file:///etc/passwd' is no address of http or https"),
        ("http://127.0.0.1:port/t.csv", "not a valid address"),
    ],
)
def test_redirects_to_nowhere(get, site, location, expected):
    site.habits["/circle"] = [status(302, Location=location)]
    assert expected in refusal(get, "/circle")


@pytest.fixture
def secure(site, tmp_path):
    """Serve the site on https and return the file of its certificate."""
    files = ["-keyout", tmp_path / "key.pem", "-out", tmp_path / "cert.pem"]
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *files, *names]
    subprocess.run(make, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    site.server.socket = context.wrap_socket(site.server.socket, server_side=True)
    site.url = site.url.replace("http:", "https:")
    return tmp_path / "cert.pem"


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl, which makes the certificate, is missing")
def test_certificates_are_checked_and_https_never_becomes_http(get, site, secure, monkeypatch):
    assert "the server's certificate is not accepted (self" in refusal(get)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/not/there")
    monkeypatch.setenv("SSL_CERT_FILE", str(secure))
    site.habits["/t.csv"] = [status(302, Location=site.url.replace("https:", "http:") + "/t.csv"), send_file]
    assert f"redirects from https to http: '{site.url.replace('https:', 'http:')}/t.csv'" in refusal(get)
    get()
    assert get.target.read_bytes() == TEXT


def test_no_password_of_netrc_is_sent(get, site, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret")
    monkeypatch.setenv("NETRC", str(netrc))
    sent = []

    def answer(handler, site, path):
        sent.append(handler.headers["Authorization"])
        (send_file if path == "/t.csv" else status(302, Location="/t.csv"))(handler, site, path)

    site.habits = {path: [answer] for path in ("/moved/t.csv", "/t.csv")}
    get("/moved/t.csv")
    assert sent == [None, None]


def test_control_characters_of_a_server_are_not_shown(get, site):
    site.habits["/t.csv"] = [lambda handler, *_: handler.wfile.write(b"HTTP/1.1 404 \x1b[2Jgone\r\n\r\n")]
    assert "\x1b" not in refusal(get)
    site.habits["/t.csv"] = [status(302, Location="gopher:\x1b[2J")]
    assert "\x1b" not in refusal(get)


# Parts ------------------------------------------------------------------------------------------------------


@pytest.fixture
def part_urls(site):
    for start, ending in ((0, "aa"), (400_000, "ab"), (800_000, "ac")):
        site.files[f"/t.csv.part{ending}"] = TEXT[start : start + 400_000]
    return ["/t.csv.part*"]


def test_parts_are_joined_in_order(get, site, part_urls):
    assert "from 127.0.0.1" in get("/gone/t.csv", parts=part_urls)
    assert get.target.read_bytes() == TEXT
    assert list_files(get) == ["t.csv"]
    assert [path for path, *_ in site.asked] == ["/gone/t.csv", *(f"/t.csv.part{x}" for x in ("aa", "ab", "ac"))]


def test_parts_by_name_in_another_order_are_another_file(get, site, part_urls):
    names = [f"/t.csv.part{x}" for x in ("ab", "aa", "ac")]
    assert "(in parts): the download has the SHA-256" in refusal(get, "/gone/t.csv", parts=names)
    assert list_files(get) == [".t.csv.wrong"]


def test_complete_parts_are_not_requested_again(get, site, part_urls):
    site.habits["/t.csv.partab"] = [truncate(100, ranges=False)]
    assert "t.csv.partab" in refusal(get, "/gone/t.csv", parts=part_urls, tries=2)
    site.habits.clear()
    site.asked.clear()
    get("/gone/t.csv", parts=part_urls)
    assert [path for path, *_ in site.asked] == ["/gone/t.csv", "/t.csv.partab", "/t.csv.partac"]
    assert get.target.read_bytes() == TEXT


# Archive contents -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "packed"), [("t.csv.gz", gzip.compress(TEXT)), ("t.tar.gz", archive(TEXT)), ("t.csv", TEXT)]
)
def test_the_checksum_of_the_table_inside(get, site, name, packed):
    site.files[f"/{name}"] = packed
    facts = {"name": name, "sha": None, "size": None, "content_sha256": sha256(TEXT)}
    get(f"/{name}", **facts)
    assert (get.folder / name).read_bytes() == packed
    (get.folder / name).unlink()
    site.files[f"/{name}"] = gzip.compress(TEXT[:-1]) if name.endswith("v.gz") else TEXT[:-1]
    message = refusal(get, f"/{name}", **facts)
    assert "cannot be unpacked" in message if name == "t.tar.gz" else f"expected {sha256(TEXT)}" in message


def test_a_valid_archive_with_another_table_blames_the_registry(get, site):
    packed = archive(TEXT)
    site.files["/t.tar.gz"] = packed
    facts = {"name": "t.tar.gz", "sha": sha256(packed), "size": None}
    message = refusal(get, "/t.tar.gz", content_sha256="0" * 64, **facts)
    assert f"holds a table with the SHA-256 {sha256(TEXT)}, expected {'0' * 64}" in message
    site.asked.clear()
    get("/t.tar.gz", content_sha256=sha256(TEXT), **facts)
    assert site.asked == []
    assert list_files(get) == ["t.tar.gz"]


def test_names_and_links_in_an_archive_write_nothing(get, site, tmp_path):
    site.files["/t.tar.gz"] = archive(TEXT, "../../escaped.csv")
    get("/t.tar.gz", name="t.tar.gz", sha=None, size=None, content_sha256=sha256(TEXT))
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert list_files(get) == ["t.tar.gz"]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        info = tarfile.TarInfo("link")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(info)
    site.files["/l.tar.gz"] = buffer.getvalue()
    message = refusal(get, "/l.tar.gz", name="l.tar.gz", sha=None, size=None, content_sha256=sha256(TEXT))
    assert "is no plain file" in message


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tar.gz"])
def test_unpacking_is_limited(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(raw_files, "MOST_BYTES", 2_000_000)
    path = tmp_path / f"t{ending}"
    for lines, allowed in ((900_000, True), (1_100_000, False)):
        text = b"0\n" * lines
        path.write_bytes({".csv": bytes, ".csv.gz": gzip.compress, ".tar.gz": archive}[ending](text))
        if allowed:
            assert b"".join(raw_files.read_unpacked(path)) == text
        else:
            with pytest.raises(StudyError, match="unpacks to more than 2,000,000 bytes"):
                list(raw_files.read_unpacked(path))


def test_the_head_of_an_archive_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(raw_files, "MAX_MEMBER_HEADER_BYTES", 5_000_000)
    info = tarfile.TarInfo("head")
    info.type, info.size = tarfile.XHDTYPE, 20_000_000
    path = tmp_path / "t.tar.gz"
    path.write_bytes(gzip.compress(info.tobuf() + bytes(20_000_000), 1))
    with pytest.raises(StudyError, match="more than 5,000,000 bytes of the archive belong to no table"):
        list(raw_files.read_unpacked(path))
    table = b"0\n" * 4_000_000
    path.write_bytes(archive(table))
    assert b"".join(raw_files.read_unpacked(path)) == table, "a table may be longer than a head"


# The disk ---------------------------------------------------------------------------------------------------


def test_a_full_disk_is_reported_before_the_download(get, site, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1_000_000))
    message = refusal(get)
    assert "1.2 MB are missing and 1.0 MB are free" in message


def test_a_disk_that_fails_during_the_download(get, site):
    """A limit on the file size imitates the failure."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_001, limits[1]))
    try:
        message = refusal(get)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "t.csv cannot be written: File too large" in message
    get()
    assert site.ranges("/t.csv")[-1] == "bytes=300001-"
    assert get.target.read_bytes() == TEXT


# Which files are downloaded ---------------------------------------------------------------------------------


DOWNLOAD = {
    "pods": {"urls": ["https://a.b/x/openb_pod_list_default.csv.gz", "https://c.d/y"], "sha256": "0" * 64},
    "nodes": {"urls": ["https://a.b/x/all_nodes.csv"]},
}
ENTRY = {"format": "openb", "folder": "data/t1", "download": DOWNLOAD}


@pytest.fixture
def workdir(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def list_tables(**changes):
    entry = ENTRY | changes
    files = find_raw_tables("t1", entry, FORMATS)
    return {table: paths[0] for table, paths in files.items()}, find_downloads("t1", entry, files)


def test_present_files_are_used_packed_or_not(workdir):
    (workdir / "data/t1").mkdir(parents=True)
    (workdir / "data/t1/openb_pod_list_default.csv").touch()
    nodes = "data/t1/all_nodes.csv"
    assert list_tables() == (
        {"pods": "data/t1/openb_pod_list_default.csv", "nodes": nodes},
        {"all_nodes.csv": DOWNLOAD["nodes"]},
    )
    (workdir / nodes).touch()
    assert list_tables() == ({"pods": "data/t1/openb_pod_list_default.csv", "nodes": nodes}, {})


def test_nothing_is_downloaded_into_a_folder_of_the_user_s(workdir):
    with pytest.raises(ConfigError, match="no such folder"):
        list_tables(folder="elsewhere")
    (workdir / "elsewhere").mkdir()
    with pytest.raises(ConfigError, match="table pods is missing"):
        list_tables(folder="elsewhere")
    (workdir / "elsewhere/openb_pod_list_default.csv").touch()
    assert list_tables(folder="elsewhere") == ({"pods": "elsewhere/openb_pod_list_default.csv"}, {})


def test_two_tables_in_one_file(workdir):
    downloads = {"pods": DOWNLOAD["nodes"], "nodes": DOWNLOAD["nodes"]}
    path = "data/t1/all_nodes.csv"
    assert list_tables(download=downloads)[0] == {"pods": path, "nodes": path}
    downloads["nodes"] = {"urls": ["https://else.where/all_nodes.csv"]}
    with pytest.raises(ConfigError, match=r"registry\.t1\.download\.nodes: another table"):
        list_tables(download=downloads)


def test_parts_without_number_need_the_length(workdir):
    nodes = {"urls": ["https://a.b/n"], "parts": ["https://a.b/n.part*"]}
    with pytest.raises(ConfigError, match=r"registry\.t1\.download\.nodes\.parts: .* add bytes"):
        list_tables(download={"nodes": nodes})
    assert list_tables(download=DOWNLOAD | {"nodes": nodes | {"bytes": 9}})


def test_every_shipped_download_has_all_tables_and_a_fixed_address(workdir):
    for trace, entry in load_yaml(ROOT / "config/traces.yaml").items():
        if "download" in entry:
            files = find_raw_tables(trace, entry, FORMATS)
            names = {get_disk_path(path).split("/")[2] for [path] in files.values()}
            assert find_downloads(trace, entry, files).keys() == names
        for download in entry.get("download", {}).values():
            # A commit, so that the address always has the same file.
            assert download.get("sha256") or re.search("/[0-9a-f]{40}/", download["urls"][0]), trace


def test_the_table_in_the_lanl_archive_is_the_one_that_tests_read(shared_data):
    download = load_yaml(ROOT / "config/traces.yaml")["lanl"]["download"]["outages"]
    (table,) = (shared_data / "lanl").glob("*.csv")
    assert f"{table.name}.xz" == download["urls"][0].rpartition("/")[2]
    assert hashlib.sha256(table.read_bytes()).hexdigest() == download["content_sha256"]


@pytest.mark.parametrize(
    ("folder", "trace", "tables"),
    [("titan", "titan", ["stays"]), ("openb", "openb", ["pods", "nodes"])],
)
def test_the_shipped_checksums_are_those_of_the_real_files(shared_data, get, site, folder, trace, tables):
    downloads = load_yaml(ROOT / "config/traces.yaml")[trace]["download"]
    for table in tables:
        download = downloads[table]
        name = download["urls"][0].rpartition("/")[2]
        site.files[f"/{name}"] = (shared_data / folder / name).read_bytes()
        facts = {"size": download["bytes"], "sha": download["sha256"]}
        get(f"/{name}", name=name, content_sha256=download.get("content_sha256"), **facts)
        assert (get.folder / name).read_bytes() == site.files[f"/{name}"]
