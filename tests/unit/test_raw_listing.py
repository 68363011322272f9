"""Which raw files a trace has."""

from pathlib import Path

import pytest
import yaml
from of_formats import FORMATS
from study.config import ConfigError
from study.raw_tables import ARCHIVES, PACKINGS, on_disk, parts_of, raw_tables, to_fetch

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


def listed(folder, **entry):
    return raw_tables("t1", {"format": "pai2020", "folder": folder} | entry, FORMATS)


def refused(folder, **entry):
    with pytest.raises(ConfigError) as error:
        listed(folder, **entry)
    message = str(error.value)
    assert message.startswith(f"registry.t1.folder: {folder}: ")
    return message


@pytest.mark.parametrize("ending", [*(f".csv{packing}" for packing in PACKINGS), *PACKINGS, *ARCHIVES])
def test_every_ending(folder, ending):
    path = folder(*(name + ending for name in REQUIRED))
    assert list(listed(path).values()) == [[f"{path}/{name}{ending}"] for name in REQUIRED]


def test_optional_tables_and_the_order_of_the_format(folder):
    path = folder("pai_sensor_table.csv.zst", *(f"{name}.csv" for name in reversed(REQUIRED)), "README.md")
    assert list(listed(path)) == ["job", "task", "instance", "sensor"]


def test_the_folder_as_it_was_typed(folder, monkeypatch):
    path = folder(*(f"{name}.csv" for name in REQUIRED))
    monkeypatch.chdir(Path(path).parent)
    assert listed("mine")["job"] == ["mine/pai_job_table.csv"]
    assert listed("./mine/")["job"] == ["./mine/pai_job_table.csv"]


def test_no_folder(tmp_path):
    message = refused(str(tmp_path / "absent"), source="https://example.org/trace")
    assert "there is no such folder" in message
    assert "Name the folder that holds pai_job_table.csv, pai_task_table.csv, pai_instance_table.csv" in message
    assert "https://example.org/trace" in message
    (tmp_path / "file").touch()
    assert "there is no such folder" in refused(str(tmp_path / "file"))


def test_a_required_table_is_missing(folder):
    message = refused(folder("pai_job_table.csv", "pai_task_tabel.csv", "pai_instance_table.csv"))
    assert "the table task is missing: expected pai_task_table.csv (also packed: .gz, .zst" in message
    assert "The folder holds: pai_instance_table.csv, pai_job_table.csv, pai_task_tabel.csv." in message


def test_an_empty_and_a_full_folder(folder, tmp_path):
    assert "The folder holds: nothing." in refused(folder())
    for number in range(20):
        (tmp_path / "mine" / f"f{number:02}").touch()
    assert "f11 and 8 more." in refused(str(tmp_path / "mine"))


def test_two_files_for_one_table(folder):
    message = refused(folder(*(f"{name}.csv" for name in REQUIRED), "pai_task_table.tar.gz"))
    assert "the table task is there more than once: pai_task_table.csv, pai_task_table.tar.gz" in message
    assert "registry.t1.files.task" in message


def test_a_named_file(folder):
    path = folder(*(f"{name}.csv" for name in REQUIRED), "pai_task_table.csv.gz", "odd.csv")
    assert listed(path, files={"task": "odd.csv"})["task"] == [f"{path}/odd.csv"]
    message = refused(path, files={"sensor": "gone.csv", "task": "odd.csv"})
    assert "the table sensor is missing: expected gone.csv." in message


def test_what_the_entry_names_as_something_else_is_no_table(folder):
    path = folder("a.txt", "b.txt", "health_events.csv")
    entry = {"format": "sacct", "health_events": f"{path}/../mine/health_events.csv"}
    assert listed(path, **entry) == {"record": [f"{path}/a.txt", f"{path}/b.txt"]}
    assert len(listed(path, format="sacct", health_events="elsewhere/health_events.csv")["record"]) == 3


def test_tables_that_have_a_key_of_their_own(folder, tmp_path):
    path = folder("a.txt", "nodes.txt")
    (tmp_path / "nodes.txt").touch()
    entry = {"format": "sacct", "folder": path, "node_events": f"{path}/nodes.txt"}
    assert listed(**entry) == {"record": [f"{path}/a.txt"], "node_event": [f"{path}/nodes.txt"]}
    assert parts_of("t1", entry, FORMATS) == {
        "a.txt": {"record": f"{path}/a.txt"},
        "nodes.txt": {"node_event": f"{path}/nodes.txt"},
    }
    assert parts_of("t1", entry | {"files": {"record": "a.txt"}}, FORMATS) == {}
    for wrong, message in (
        ({"node_events": [f"{path}/gone.txt"]}, r"registry\.t1\.node_events: .*gone\.txt: there is no such file"),
        ({"node_events": [f"{path}/nodes.txt", str(tmp_path / "nodes.txt")]}, "two files are called nodes.txt"),
        ({"files": {"node_event": "nodes.txt"}}, r"registry\.t1\.files\.node_event: .* node_events"),
    ):
        with pytest.raises(ConfigError, match=message):
            parts_of("t1", entry | wrong, FORMATS)


def test_a_folder_is_no_table(folder, tmp_path):
    path = folder("pai_job_table.csv", "pai_instance_table.csv")
    (tmp_path / "mine" / "pai_task_table.csv").mkdir()
    assert "the table task is missing" in refused(path)


def test_a_generated_trace_needs_no_files():
    tables = raw_tables("demo", {"format": "pai2020", "generate": {"tasks": 10}}, FORMATS)
    assert tables["job"] == ["data/demo/pai_job_table.csv"]
    assert list(tables) == list(FORMATS["pai2020"]["tables"])


# Tables in one archive ------------------------------------------------------------------------------------

MEMBERS = {
    name: {"urls": ["https://example.org/all.tar.gz"], "bytes": 9, "member": f"x/{name}"} for name in ("pods", "nodes")
}


def openb(folder, **entry):
    return {"format": "openb", "folder": str(folder), "download": MEMBERS} | entry


def test_tables_of_one_archive_are_downloaded_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    entry = openb("data/t")
    files = raw_tables("t", entry, FORMATS)
    assert files == {"pods": ["data/t/all.tar.gz/x/pods"], "nodes": ["data/t/all.tar.gz/x/nodes"]}
    assert {on_disk(path) for (path,) in files.values()} == {"data/t/all.tar.gz"}
    assert to_fetch("t", entry, files) == {"all.tar.gz": {"urls": ["https://example.org/all.tar.gz"], "bytes": 9}}
    (tmp_path / "data/t").mkdir(parents=True)
    (tmp_path / "data/t/all.tar.gz").touch()
    assert raw_tables("t", entry, FORMATS) == files
    assert to_fetch("t", entry, files) == {}
    # What has been unpacked by hand is used before the archive.
    (tmp_path / "data/t/openb_pod_list_default.csv").touch()
    assert raw_tables("t", entry, FORMATS)["pods"] == ["data/t/openb_pod_list_default.csv"]


def test_an_archive_put_into_a_folder_of_ones_own(folder):
    path = folder("all.tar.gz")
    assert raw_tables("t", openb(path), FORMATS)["nodes"] == [f"{path}/all.tar.gz/x/nodes"]
    by_hand = {"pods": {"urls": [], "archive": "data.zip", "member": "pods.csv"}}
    with pytest.raises(ConfigError, match="the table pods is missing"):
        raw_tables("t", openb(path, download=by_hand), FORMATS)
    (Path(path) / "data.zip").touch()
    assert raw_tables("t", openb(path, download=by_hand), FORMATS) == {"pods": [f"{path}/data.zip/pods.csv"]}


def test_what_to_fetch_by_hand_and_where_to_put_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    registry = yaml.safe_load((ROOT / "config/traces.yaml").read_text())
    with pytest.raises(ConfigError) as error:
        raw_tables("helios_venus", registry["helios_venus"], FORMATS)
    assert (
        "HeliosData, data.zip, folder Venus. Put them (data.zip as it is, or unpacked) into data/helios_venus."
        in str(error.value)
    )
    with pytest.raises(ConfigError, match=r"trace_seren\.csv\. Put them into data/acme_seren\."):
        raw_tables("acme_seren", registry["acme_seren"], FORMATS)
    assert set(raw_tables("philly", registry["philly"], FORMATS)) == set(FORMATS["philly"]["tables"])


def test_a_folder_with_the_name_of_an_archive_is_a_folder(tmp_path):
    (tmp_path / "a.zip").mkdir()
    assert on_disk(f"{tmp_path}/a.zip/b.csv") == f"{tmp_path}/a.zip/b.csv"
    assert on_disk(f"{tmp_path}/c.zip/d/b.csv") == f"{tmp_path}/c.zip"


def test_a_checksum_of_the_content_goes_with_one_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    download = {"pods": MEMBERS["pods"] | {"content_sha256": "0" * 64}}
    with pytest.raises(ConfigError, match=r"download\.pods: content_sha256 is of the one table in an archive"):
        raw_tables("t", openb("data/t", download=download), FORMATS)
