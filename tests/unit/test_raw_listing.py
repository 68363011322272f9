"""Which raw files a trace has."""

import os
from pathlib import Path

import pytest
import yaml
from format_tables import FORMATS
from ttf.raw.raw_files import ARCHIVES, PACKED
from ttf.study.configuration.messages import ConfigError
from ttf.study.recognition.entries import cache_listings
from ttf.study.trace_files import find_downloads, find_parts, find_raw_tables, find_unread_entries, get_disk_path

ROOT = Path(__file__).resolve().parents[2]
REQUIRED = ("pai_job_table", "pai_task_table", "pai_instance_table")


@pytest.fixture
def folder(tmp_path):
    def make(*names):
        (tmp_path / "mine").mkdir()
        for name in names:
            (tmp_path / "mine" / name).touch()
        return str(tmp_path / "mine")

    return make


def list_tables(folder, **entry):
    return find_raw_tables("t1", {"format": "pai2020", "folder": folder} | entry, FORMATS)


def listing_error(folder, **entry):
    with pytest.raises(ConfigError) as error:
        list_tables(folder, **entry)
    message = str(error.value)
    assert message.startswith(f"registry.t1.folder: {folder}: ")
    return message


@pytest.mark.parametrize("ending", [f"{own}{packing}" for own in (".csv", "") for packing in ("", *PACKED, *ARCHIVES)])
def test_every_ending(folder, ending):
    path = folder(*(name + ending for name in REQUIRED))
    assert list(list_tables(path).values()) == [[f"{path}/{name}{ending}"] for name in REQUIRED]


def test_no_folder(tmp_path):
    message = listing_error(str(tmp_path / "absent"), source="https://example.org/trace")
    assert "there is no such folder" in message
    assert "Name the folder that holds pai_instance_table.csv" in message
    assert "https://example.org/trace" in message
    (tmp_path / "file").touch()
    assert "there is no such folder" in listing_error(str(tmp_path / "file"))


def test_a_required_table_is_missing(folder):
    message = listing_error(folder("pai_job_table.csv", "pai_task_table.csv", "pai_instance_tabel.csv"))
    assert "the table instance is missing: expected pai_instance_table.csv (also packed: .gz, .zst" in message
    assert "The folder holds: pai_instance_tabel.csv, pai_job_table.csv, pai_task_table.csv." in message


def test_a_named_file(folder):
    path = folder(*(f"{name}.csv" for name in REQUIRED), "pai_task_table.csv.gz", "odd.csv")
    assert list_tables(path, files={"task": "odd.csv"})["task"] == [f"{path}/odd.csv"]
    message = listing_error(path, files={"sensor": "gone.csv", "task": "odd.csv"})
    assert "the table sensor is missing: expected gone.csv." in message


def test_a_file_under_another_key_of_the_entry_is_no_table(folder):
    path = folder("a.txt", "b.txt", "health_events.csv")
    entry = {"format": "sacct", "health_events": f"{path}/../mine/health_events.csv"}
    assert list_tables(path, **entry) == {"record": [f"{path}/a.txt", f"{path}/b.txt"]}
    assert len(list_tables(path, format="sacct", health_events="elsewhere/health_events.csv")["record"]) == 3


def test_tables_that_have_a_key_of_their_own(folder, tmp_path):
    path = folder("a.txt", "nodes.txt")
    (tmp_path / "nodes.txt").touch()
    entry = {"format": "sacct", "folder": path, "node_events": f"{path}/nodes.txt"}
    assert list_tables(**entry) == {"record": [f"{path}/a.txt"], "node_event": [f"{path}/nodes.txt"]}
    assert find_parts("t1", entry, FORMATS) == {
        "a.txt": {"record": f"{path}/a.txt"},
        "nodes.txt": {"node_event": f"{path}/nodes.txt"},
    }
    assert find_parts("t1", entry | {"files": {"record": "a.txt"}}, FORMATS) == {}
    for change, message in (
        ({"node_events": [f"{path}/gone.txt"]}, r"registry\.t1\.node_events: .*gone\.txt: there is no such file"),
        ({"node_events": [f"{path}/nodes.txt", str(tmp_path / "nodes.txt")]}, "two files are called nodes.txt"),
        ({"files": {"node_event": "nodes.txt"}}, r"registry\.t1\.files\.node_event: .* node_events"),
    ):
        with pytest.raises(ConfigError, match=message):
            find_parts("t1", entry | change, FORMATS)


# Every entry is read, left out for a reason, or stops the run ------------------------------------------------


def list_left_out(folder, **entry):
    return find_unread_entries("t1", {"format": "pai2020", "folder": folder} | entry, FORMATS)


def make_unreadable(path, kind):
    """Make an entry of the folder that is no readable file."""
    if kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(path.with_name("nowhere"))


KINDS = ["a folder", "a pipe", "a link to nothing"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("format_", "names", "name", "table"),
    [
        ("sacct", ["2025-a.txt"], "2025-b.txt", "record"),
        ("table", ["a.csv"], "b.CSV.GZ", "rows"),
        ("pai2020", [f"{name}.csv" for name in REQUIRED], "pai_sensor_table.csv", "sensor"),
        ("openb", ["openb_pod_list_default.csv"], "openb_node_list_all_node", "nodes"),
    ],
)
def test_an_unreadable_entry_with_the_name_of_a_table_stops_the_run(
    folder, monkeypatch, kind, format_, names, name, table
):
    """They were left out without a word, the optional tables too."""
    path = folder(*names)
    monkeypatch.chdir(path)
    make_unreadable(Path(name), kind)
    assert f": {name} is {kind}; expected a file of the table {table}." in listing_error(path, format=format_)


@pytest.mark.parametrize("kind", KINDS)
def test_other_files_are_left_out_with_a_reason(folder, monkeypatch, kind):
    path = folder("a.txt", "notes.pdf", ".hidden", "README", "ReadMe.md", "readme.txt", "a.txt~")
    monkeypatch.chdir(path)
    make_unreadable(Path("old"), kind)
    assert list_tables(path, format="sacct") == {"record": [f"{path}/a.txt"]}
    reasons = list_left_out(path, format="sacct")
    text = "not a table of this format"
    assert reasons == {"a.txt~": text, "notes.pdf": text, "old": kind}
    assert list_left_out(path, format="sacct", files={"record": "readme.txt"})["a.txt"] == (
        "the table record is read from another file"
    )


@pytest.mark.parametrize(
    ("format_", "names"),
    [
        ("sacct", ["2025-a.txt", "2025-b.zip", "2025-c.tar.gz", "2025-d.tgz", "2025-e.txt.zip", "2025-f.TXT.GZ"]),
        ("table", ["EAGLE.CSV.XZ"]),
        ("outages", ["a.parquet", "b.Parquet", "c.csv.zst"]),
        ("backblaze", ["2013-04-10.csv", "2013-04-11.zip"]),
    ],
)
def test_the_packings_that_the_message_names_are_accepted(folder, format_, names):
    """An archive beside plain dumps was left out; alone it was refused, with a message that offers it."""
    path = folder(*names)
    (files,) = list_tables(path, format=format_).values()
    assert sorted(files) == sorted(f"{path}/{name}" for name in names)
    assert list_left_out(path, format=format_) == {}


@pytest.mark.parametrize(
    ("format_", "names", "unread"),
    [
        ("sacct", ["a.txt"], "b.txt.bz2"),
        ("outages", ["a.csv"], "b.parquet.gz"),
        ("pai2020", [f"{name}.csv" for name in REQUIRED], "pai_sensor_table.csv.bz2"),
    ],
)
def test_a_packing_that_is_not_read_stops_the_run(folder, format_, names, unread):
    message = listing_error(folder(*names, unread), format=format_)
    assert f": {unread} has the name of the table " in message
    assert "(also packed: .gz, .zst, .xz, .tar.gz, .tgz, .zip" in message


@pytest.mark.parametrize(
    "names",
    [("eagle.csv", "eagle.csv.gz"), ("eagle.csv", "eagle.zip"), ("eagle.CSV.zst", "eagle.CSV.XZ"), ("a.tgz", "a.zip")],
)
def test_one_table_in_two_packings_stops_the_run(folder, names):
    """Otherwise every row would count twice."""
    assert "are the same table in two packings. Keep one of them." in listing_error(folder(*names), format="table")


def test_one_file_by_two_names_stops_the_run(folder):
    path = folder("2025-01.txt", "2025-02.txt")
    (Path(path) / "newest.txt").symlink_to("2025-02.txt")
    assert "2025-02.txt and newest.txt are two names of one file." in listing_error(path, format="sacct")


def test_the_folders_of_a_trace_in_parts_are_listed_too(folder, tmp_path):
    for part in ("jan", "feb"):
        (tmp_path / part).mkdir()
        (tmp_path / part / "openb_pod_list_default.csv").touch()
    (tmp_path / "feb" / "notes.txt").touch()
    folders = [str(tmp_path / part) for part in ("jan", "feb")]
    assert list_left_out(folders, format="openb") == {"feb/notes.txt": "not a table of this format"}
    os.mkfifo(tmp_path / "feb" / "openb_node_list_all_node.csv")
    with pytest.raises(ConfigError, match=r"feb: openb_node_list_all_node\.csv is a pipe"):
        list_tables(folders, format="openb")


def test_a_file_added_during_planning_is_read_by_the_next_run(folder):
    path = folder("a.txt")
    with cache_listings():
        tables = list_tables(path, format="sacct")
        (Path(path) / "b.txt").touch()
        assert list_tables(path, format="sacct") == tables
    assert len(list_tables(path, format="sacct")["record"]) == 2


# Tables in one archive ------------------------------------------------------------------------------------

MEMBERS = {
    name: {"urls": ["https://example.org/all.tar.gz"], "bytes": 9, "member": f"x/{name}"} for name in ("pods", "nodes")
}


def openb(folder, **entry):
    return {"format": "openb", "folder": str(folder), "download": MEMBERS} | entry


def test_tables_of_one_archive_are_downloaded_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    entry = openb("data/t")
    files = find_raw_tables("t", entry, FORMATS)
    assert files == {"pods": ["data/t/all.tar.gz/x/pods"], "nodes": ["data/t/all.tar.gz/x/nodes"]}
    assert {get_disk_path(path) for (path,) in files.values()} == {"data/t/all.tar.gz"}
    assert find_downloads("t", entry, files) == {"all.tar.gz": {"urls": ["https://example.org/all.tar.gz"], "bytes": 9}}
    (tmp_path / "data/t").mkdir(parents=True)
    (tmp_path / "data/t/all.tar.gz").touch()
    assert find_raw_tables("t", entry, FORMATS) == files
    assert find_downloads("t", entry, files) == {}
    # A file that the user unpacked has priority over the archive.
    (tmp_path / "data/t/openb_pod_list_default.csv").touch()
    assert find_raw_tables("t", entry, FORMATS)["pods"] == ["data/t/openb_pod_list_default.csv"]


def test_an_archive_in_a_folder_of_the_user(folder):
    path = folder("all.tar.gz")
    assert find_raw_tables("t", openb(path), FORMATS)["nodes"] == [f"{path}/all.tar.gz/x/nodes"]
    by_hand = {"pods": {"urls": [], "archive": "data.zip", "member": "pods.csv"}}
    with pytest.raises(ConfigError, match="the table pods is missing"):
        find_raw_tables("t", openb(path, download=by_hand), FORMATS)
    (Path(path) / "data.zip").touch()
    assert find_raw_tables("t", openb(path, download=by_hand), FORMATS) == {"pods": [f"{path}/data.zip/pods.csv"]}


def test_what_to_fetch_by_hand_and_where_to_put_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    registry = yaml.safe_load((ROOT / "config/traces.yaml").read_text())
    by_hand = registry["helios_venus"] | {"download": {"log": {"urls": [], "archive": "data.zip", "member": "log.csv"}}}
    with pytest.raises(ConfigError) as error:
        find_raw_tables("helios_venus", by_hand, FORMATS)
    assert (
        "HeliosData, data.zip, folder Venus (commit 159f0ca). Put them (data.zip as it is, or unpacked) into "
        "data/helios_venus." in str(error.value)
    )
    with pytest.raises(ConfigError, match=r"NREL/eagle-jobs, .*\. Put them into data/eagle\."):
        find_raw_tables("eagle", registry["eagle"], FORMATS)
    assert set(find_raw_tables("philly", registry["philly"], FORMATS)) == set(FORMATS["philly"]["tables"])


def test_a_checksum_of_the_content_needs_an_archive_of_one_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    download = {"pods": MEMBERS["pods"] | {"content_sha256": "0" * 64}}
    with pytest.raises(ConfigError, match=r"download\.pods: content_sha256 works with an archive of one table"):
        find_raw_tables("t", openb("data/t", download=download), FORMATS)
