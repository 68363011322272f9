"""Recognise the format of a folder from its files alone, and report headers that ingest would refuse."""

import functools
import gzip
import io
import json
import lzma
import os
import tarfile
import zipfile
from pathlib import Path

import polars as pl
import pytest
import yaml
import zstandard
from format_tables import FILES, FORMATS
from hypothesis import given
from hypothesis import strategies as st
from samples.pack import write_tables
from ttf.engine.errors import StudyError
from ttf.formats.protocol import load_schemas_and_readers
from ttf.raw.raw_tables import LINES
from ttf.study.configuration.config import DEFAULTS, resolve
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.yaml_files import load_yaml, parse_yaml
from ttf.study.recognition.first_lines import MOST_BYTES, build_layouts, find_wrong_headers
from ttf.study.recognition.format_declarations import read_schema_text
from ttf.study.recognition.recognise import find_keyed_files, format_configuration, recognise
from ttf.study.study import Study
from ttf.study.trace_files import LOG_KEYS

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = load_yaml(ROOT / "config" / "traces.yaml")
EAGLE = REGISTRY["eagle"]
# A registry entry that reads a trace of each format.
ENTRIES = {name: {"format": name} for name in FORMATS} | {"table": {key: EAGLE[key] for key in EAGLE if key != "files"}}
OUTAGES_MAPPING = {"unit": "unit", "start": "start", "end": "end"}
ENTRIES["outages"] = {"format": "outages", "mapping": OUTAGES_MAPPING, "times": {"format": "epoch"}}
# Logs of nodes have no header.
LAYOUTS = {name: build_layouts(ENTRIES[name], FORMATS[name]) for name in FORMATS if name not in LOG_KEYS}
SMALL = {"pai2020": 1000, "philly": 300, "sacct": 300}
HELIOS = LAYOUTS["helios"]["log"]


def header(layout, without=(), instead=()):
    """Return the first line of a table: its column names, some left out or renamed."""
    names = [dict(instead).get(column.name, column.name) for column in layout.columns if column.name not in without]
    return layout.delimiter.join(names)


def content(layout, **changes):
    """Build a table of two lines from its declaration."""
    if layout.json:
        return json.dumps([dict.fromkeys(header(layout, **changes).split(","))] * 2)
    return f"{header(layout, **changes)}\n{layout.delimiter * (len(layout.columns) - 1)}\n"


def file_name(name, table):
    spec = FORMATS[name]["tables"][table]
    if "beside" in spec:
        return "logs of nodes" if spec["required"] else f"{table}.txt"
    return f"made{spec['every'][0]}" if "every" in spec else spec["file"] + ("" if spec.get("json") else ".csv")


def write(folder, name, tables=None):
    """Write the declared tables of a format; of acme only one of its two."""
    folder.mkdir(parents=True, exist_ok=True)
    for table in tables or (["kalos"] if name == "acme" else LAYOUTS[name]):
        (folder / file_name(name, table)).write_text(content(LAYOUTS[name][table]))
    return folder


def load_trace(recognised):
    """Load the study of the configuration text; return its trace."""
    document = parse_yaml(format_configuration(recognised), "my.yaml")
    study = Study([("config.yaml", load_yaml(DEFAULTS)), ("my.yaml", document)])
    (trace,) = study.traces.values()
    assert trace.name == recognised.name
    assert trace.entry == resolve([("my.yaml", document)], REGISTRY)["registry"][trace.name]
    assert trace.entry.items() >= {key: recognised.entry[key] for key in ("format", "folder")}.items()
    return trace


def error_of(data):
    with pytest.raises(ConfigError) as error:
        recognise(data)
    message = str(error.value)
    assert ": " in message.splitlines()[0]
    assert message.isprintable() or all(line.isprintable() for line in message.split("\n"))
    return message


# What is recognised -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, declaration in FORMATS.items() if "sample" in declaration])
def test_a_sample(name, tmp_path):
    folder = tmp_path / "trace"
    folder.mkdir()
    write_tables(name, SMALL[name], 2025, folder)
    match = recognise(folder)
    assert (match.format, match.name) == (name, "trace")
    files = FORMATS[name]["sample"]["files"]
    others = {key: names for key, names in files.items() if key not in LAYOUTS[name]}
    extra_keys = {
        key: f"{folder}/{names}" if isinstance(names, str) else [f"{folder}/{file}" for file in names]
        for key, names in others.items()
    }
    for table, spec in FORMATS[name]["tables"].items():
        if "beside" in spec:
            extra_keys[spec["beside"]] = [f"{folder}/{file}" for file in files[table]]
    assert match.entry == {"format": name, "folder": str(folder)} | extra_keys
    expected = {table: [names] if isinstance(names, str) else names for table, names in files.items()}
    raw_files = load_trace(match).raw_files
    actual = {table: [Path(file).name for file in raw_files[table]] for table in LAYOUTS[name]}
    assert actual == {table: expected[table] for table in LAYOUTS[name]}
    assert not find_wrong_headers("trace", match.entry, raw_files, FORMATS[name])


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_header_of_a_declaration(name, tmp_path):
    folder = write(tmp_path / "trace", name)
    (folder / "README.md").write_text("About it")
    (folder / "more").mkdir()
    match = recognise(folder)
    assert match.format == name
    assert match.entry.items() >= {"format": name, "folder": str(folder)}.items()
    assert "files" not in match.entry
    tables = FORMATS[name]["tables"]
    tables_read = list(load_trace(match).raw_files)
    core = next((table for table in tables_read if tables[table]["required"]), tables_read[0])
    assert match.explanation.startswith(name)
    assert f"the table {core}" in match.explanation


def test_a_mapping_of_the_registry_makes_a_table_known(tmp_path):
    match = recognise(write(tmp_path / "mine", "table"))
    assert match.entry["mapping"] == EAGLE["mapping"]
    assert not {"title", "source", "citation", "note", "files"} & match.entry.keys()
    assert "mapped as eagle" in format_configuration(match)


def write_fleet(folder, rows="unit,start,end,cause,rank\n", units="unit,from,until,gpus\n"):
    folder.mkdir()
    (folder / "tickets.csv").write_text(rows)
    (folder / "nodes.csv").write_text(units)
    return folder


def test_outages_and_their_units_are_known_by_their_columns(tmp_path):
    folder = write_fleet(tmp_path / "fleet")
    for data in (folder, folder / "tickets.csv"):
        match = recognise(data)
        assert match.entry["units"] == [f"{folder}/nodes.csv"]
        assert match.entry["mapping"] == OUTAGES_MAPPING | {"cause": "cause"}
        trace = load_trace(match)
        assert trace.raw_files == {"units": [f"{folder}/nodes.csv"], "rows": [f"{folder}/tickets.csv"]}
        assert trace.has_exposure and not trace.may_have_exposure and trace.unread_entries == {}
    (folder / "more.csv").write_text("unit,start,end\n")
    assert recognise(folder).entry["mapping"] == OUTAGES_MAPPING
    (folder / "nodes.csv").unlink()
    assert "units" not in recognise(folder).entry


def test_a_mapping_and_a_folder_find_the_units(tmp_path):
    folder = write_fleet(tmp_path / "fleet", rows="host,down\n")
    entry = {"format": "outages", "mapping": {"unit": "host", "start": {"column": "down"}}}
    units = {"units": [f"{folder}/nodes.csv"]}
    assert find_keyed_files(folder, entry) == find_keyed_files(folder / "tickets.csv", entry) == units
    assert find_keyed_files(folder, entry | {"units": "other.csv"}) == {}
    (folder / "tickets.csv").write_text("unit,from,until,why\n")  # outages in the columns of units
    entry["mapping"] = {"unit": "unit", "start": "from", "cause": "why"}
    assert find_keyed_files(folder, entry) == units
    for odd in ({"format": "outages", "mapping": [1]}, {"format": "pai2020"}, {"format": []}, {}):
        assert find_keyed_files(folder, odd).keys() <= {"units"}


def test_a_parquet_file(tmp_path):
    names = header(LAYOUTS["table"]["rows"]).split(",")
    pl.DataFrame({name: ["1"] for name in names}).write_parquet(tmp_path / "jobs.parquet")
    assert recognise(tmp_path).format == "table"
    pl.DataFrame({name: ["1"] for name in names[1:]}).write_parquet(tmp_path / "jobs.parquet")
    assert f"jobs.parquet: the header row has no column {names[0]}" in error_of(tmp_path)


def tar_of(name, text):
    with io.BytesIO() as file:
        with tarfile.open(fileobj=file, mode="w:gz") as archive:
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))
        return file.getvalue()


def zip_of(name, text):
    with io.BytesIO() as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, text)
        return file.getvalue()


PACKED = {
    ".csv.gz": lambda _, text: gzip.compress(text),
    ".csv.xz": lambda _, text: lzma.compress(text),
    ".csv.zst": lambda _, text: zstandard.compress(text),
    ".tar.gz": tar_of,
    ".tgz": tar_of,
    ".zip": zip_of,
    "": lambda _, text: text,
}


@pytest.mark.parametrize("ending", PACKED)
@pytest.mark.parametrize("name", ["philly", "openb"])
def test_packed(name, ending, tmp_path):
    for table in LAYOUTS[name]:
        stem = FORMATS[name]["tables"][table]["file"]
        text = content(LAYOUTS[name][table]).encode()
        (tmp_path / f"{stem}{ending}").write_bytes(PACKED[ending](stem, text))
    assert recognise(tmp_path).format == name


@pytest.mark.parametrize(("name", "table", "ending"), [("sacct", "record", ".txt"), ("backblaze", "days", ".csv")])
def test_files_packed_or_many(name, table, ending, tmp_path):
    text = content(LAYOUTS[name][table])
    for month in range(1, 5):
        (tmp_path / f"2025-{month}{ending}").write_text(text)
    (tmp_path / f"2025-5{ending}.gz").write_bytes(gzip.compress(text.encode()))
    match = recognise(tmp_path)
    assert match.format == name
    assert "files" not in match.entry
    assert "as all 5 files" in match.explanation
    assert len(load_trace(match).parts) == 5


@pytest.mark.parametrize(("name", "table"), [("helios", "log"), ("acme", "kalos")])
def test_a_table_by_another_name(name, table, tmp_path):
    """Its header identifies it among other files; acme's two tables by the number of known names."""
    (tmp_path / "mine.dat").write_text(content(LAYOUTS[name][table]))
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    match = recognise(tmp_path)
    assert (match.format, match.entry["files"]) == (name, {table: "mine.dat"})
    assert load_trace(match).raw_files == {table: [f"{tmp_path}/mine.dat"]}


def test_one_dump_among_other_files(tmp_path):
    (tmp_path / "about.txt").write_text("About it\n")
    (tmp_path / "README.txt").write_text("About it\n")
    (tmp_path / "dump").write_text(content(LAYOUTS["sacct"]["record"]))
    assert recognise(tmp_path).entry["files"] == {"record": "dump"}
    (tmp_path / "dump").rename(tmp_path / "dump.txt")
    assert recognise(tmp_path).entry["files"] == {"record": "dump.txt"}


def test_a_file_in_place_of_a_folder(tmp_path):
    """The file is the table, whatever else is there; the other tables come from its folder."""
    folder = write(tmp_path / "mine", "openb")
    match = recognise(folder / "openb_pod_list_default.csv")
    assert match.entry == {"format": "openb", "folder": str(folder)}
    (folder / "openb_pod_list_gpuspec33.csv").write_text(content(LAYOUTS["openb"]["pods"]))
    match = recognise(folder / "openb_pod_list_gpuspec33.csv")
    assert match.entry["files"] == {"pods": "openb_pod_list_gpuspec33.csv"}
    assert list(load_trace(match).raw_files) == ["pods", "nodes"]
    write(folder, "titan")
    assert recognise(folder / "gc_full.csv").format == "titan"
    write(folder, "sacct")
    assert recognise(folder / "made.txt").entry["files"] == {"record": "made.txt"}
    (folder / "README.md").write_text("About it")
    assert "README.md is not one of its tables" in error_of(folder / "README.md")


def test_the_folder_as_it_was_typed(tmp_path, monkeypatch):
    write(tmp_path / "some traces" / "titan, 2019", "titan")
    monkeypatch.chdir(tmp_path / "some traces")
    match = recognise(Path("titan, 2019"))
    assert (match.name, match.entry["folder"]) == ("titan_2019", "titan, 2019")
    load_trace(match)
    monkeypatch.chdir("titan, 2019")
    match = recognise(Path())
    assert (match.name, match.entry["folder"]) == ("titan_2019", ".")
    load_trace(match)


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("2020", "2020"),
        ("no", "no"),
        ("studies", "my_studies"),
        ("sample", "my_sample"),
        ("openb", "my_openb"),  # a trace of another format
        ("alibaba-ssd", "alibaba-ssd"),  # alibaba_ssd is a trace of another format
        ("Jürgens Läufe", "J_rgens_L_ufe"),
        ("???", "data"),
        ("x" * 200, "x" * 60),
    ],
)
def test_a_legal_name_that_is_free(folder, name, tmp_path):
    match = recognise(write(tmp_path / folder, "titan"))
    assert match.name == name
    load_trace(match)


def test_a_name_of_the_registry_whose_files_are_others(tmp_path):
    write(tmp_path / "eagle", "table")
    match = recognise(tmp_path / "eagle")
    assert match.name == "my_eagle"
    assert load_trace(match).raw_files == {"rows": [f"{tmp_path}/eagle/made.csv"]}
    (tmp_path / "eagle" / "made.csv").rename(tmp_path / "eagle" / EAGLE["files"]["rows"])
    assert recognise(tmp_path / "eagle").name == "eagle"


# What is refused ----------------------------------------------------------------------------------------


def test_no_folder(tmp_path):
    assert "there is no such folder or file" in error_of(tmp_path / "absent")
    assert "there is no such folder" in error_of(Path("x" * 5_000)) or "cannot be read" in error_of(Path("x" * 5_000))
    (tmp_path / "two\nlines").mkdir()
    assert "rename the folder" in error_of(tmp_path / "two\nlines")
    assert "neither a folder nor a plain file" in error_of(Path("/dev/null"))


def test_an_empty_folder_and_one_of_folders(tmp_path):
    assert "the folder contains no file. Name the folder" in error_of(tmp_path)
    write(tmp_path / "titan", "titan")
    assert "the folder contains no file, only: titan. Name the folder" in error_of(tmp_path)


def test_nothing_but_pipes_and_dangling_links(tmp_path):
    os.mkfifo(tmp_path / "cluster_log.csv")
    (tmp_path / "gc_full.csv").symlink_to("absent")
    (tmp_path / "loop").symlink_to("loop")
    assert "contains no file, only: cluster_log.csv, gc_full.csv, loop" in error_of(tmp_path)
    (tmp_path / "README").write_text("x")
    assert "the folder (README) matches no format" in error_of(tmp_path)
    assert "neither a folder nor a plain file" in error_of(tmp_path / "cluster_log.csv")


def test_a_readme_alone(tmp_path):
    (tmp_path / "README.md").write_text("# About\n\nNothing here.\n")
    message = error_of(tmp_path)
    assert "the folder (README.md) matches no format, not even approximately." in message
    assert f"The formats are {', '.join(FORMATS)}." in message


BYTES = {
    "the text is UTF-16": bytes(range(256)) * 300,
    "the bytes are gzip": b"\x1f\x8b" + b"\xff" * 100,
    "this is Parquet under another name": b"PAR1" + b"\xff" * 100 + b"PAR1",
    "this is an HTML or XML page": b"<html><body>404</body></html>",
    "line 1 has more than 65,534 characters": b"x" * 300_000,
    "the file is empty": b"",
    "JSON in which no list of jobs is found": b'[{"a": ' + b"1" * 50_000 + b"}]",
}


@pytest.mark.parametrize("reason", BYTES)
def test_bytes_that_are_no_table(reason, tmp_path):
    names = ["a.csv", "b.parquet", "c.csv.gz", "d.zip", "e.tar.gz", "f.zst", "g.json", "h.txt", "i.xz", "j"]
    for name in names:
        (tmp_path / name).write_bytes(BYTES[reason])
    assert f"{tmp_path}/a.csv: {reason}" in error_of(tmp_path).replace("line 1: ", "")
    for name in names:
        message = error_of(tmp_path / name)
        assert f"{tmp_path}/{name}: " in message
        assert "matches no format" not in message
    # By the name of a table: it cannot be read as one.
    (tmp_path / "cluster_log.csv.gz").write_bytes(BYTES[reason])
    assert "helios: cluster_log.csv.gz: " in error_of(tmp_path)


def test_a_renamed_column(tmp_path):
    write(tmp_path, "helios")
    (tmp_path / "cluster_log.csv").write_text(content(HELIOS, instead={"submit_time": "submitted_time"}))
    message = error_of(tmp_path)
    assert "helios: cluster_log.csv: the header row has no column submit_time (did you mean submitted_time?)" in message

    (tmp_path / "cluster_log.csv").rename(tmp_path / "mine.csv")
    assert "expected cluster_log.csv; most similar is mine.csv: the header row " in error_of(tmp_path)
    for mark in "|;\t":
        (tmp_path / "cluster_log.csv").write_text(content(HELIOS).replace(",", mark))
        assert f"It is one field: {mark!r} stands where ',' is expected." in error_of(tmp_path)


def test_a_required_table_is_missing(tmp_path):
    write(tmp_path, "pai2020", ["job", "task"])
    assert "  pai2020: the table instance is missing, expected pai_instance_table.csv." in error_of(tmp_path)
    (tmp_path / "pai_instance_table.csv").write_text("1,2,3\n")
    assert "pai_instance_table.csv: has 3 columns in its first line; expected 9." in error_of(tmp_path)


def test_an_optional_table_with_another_header(tmp_path):
    """Ingest would refuse it by its name."""
    write(tmp_path, "openb")
    (tmp_path / "openb_node_list_all_node.csv").write_text("a,b\n1,2\n")
    assert "openb: openb_node_list_all_node.csv: the header row has no columns sn, cpu_milli" in error_of(tmp_path)


def test_two_formats_at_once(tmp_path):
    write(tmp_path, "openb")
    write(tmp_path, "titan")
    message = error_of(tmp_path)
    assert "more than one format fits:\n  openb: openb_pod_list_default.csv has the columns name" in message
    assert "\n  titan: gc_full.csv has the columns SN" in message
    assert "registry: {mine: {format: openb, folder: " in message


def test_two_traces_of_a_format_at_once(tmp_path):
    write(tmp_path, "acme", ["seren", "kalos"])
    assert "acme: trace_seren.csv and trace_kalos.csv are separate traces" in error_of(tmp_path)


def test_two_files_for_one_table(tmp_path):
    write(tmp_path, "titan")
    (tmp_path / "gc_full.csv.gz").write_bytes(gzip.compress((tmp_path / "gc_full.csv").read_bytes()))
    assert "the table stays has several files: gc_full.csv, gc_full.csv.gz; keep one of them." in error_of(tmp_path)
    for name in ("gc_full.csv", "gc_full.csv.gz"):
        (tmp_path / name).rename(tmp_path / f"my_{name}")
    assert "each of my_gc_full.csv, my_gc_full.csv.gz could be the table stays" in error_of(tmp_path)


def test_other_files_among_dumps(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(content(LAYOUTS["sacct"]["record"]))
    for name in ("about.txt", "README.txt"):
        (tmp_path / name).write_text("About it\n")
    assert "sacct: the table record would include other files: about.txt. Move them" in error_of(tmp_path)
    assert recognise(tmp_path / "a.txt").entry["files"] == {"record": "a.txt"}


def test_a_published_archive(tmp_path):
    (tmp_path / "trace-data.tar.gz").write_bytes(tar_of("trace-data/cluster_job_log", b"[]"))
    message = error_of(tmp_path)
    assert "\ntrace-data.tar.gz is the archive of the trace philly: unpack it, or run" in message
    document = {"study": ["philly"], "registry": {"philly": {"folder": str(tmp_path)}}}
    (trace,) = Study([("config.yaml", load_yaml(DEFAULTS)), ("my.yaml", document)]).traces.values()
    assert trace.raw_files["job_log"] == [f"{tmp_path}/trace-data.tar.gz/cluster_job_log"]


def test_hostile_names(tmp_path):
    for name in ["\x1b[31mred", "two\nlines.csv", "{x}.csv", "$(touch x).txt", "a" * 250, "-rf", "`x`", "'\"\\"]:
        (tmp_path / name).write_text(content(HELIOS)[5:])
    (tmp_path / os.fsdecode(b"\xff\xfe.csv")).write_text("a,b\n")
    assert "matches no format" in error_of(tmp_path)
    (tmp_path / "{x}.csv").write_text(content(HELIOS))
    assert "{x}.csv: its name has a character that is not supported; rename it." in error_of(tmp_path)


def test_a_line_longer_than_is_read(tmp_path):
    (tmp_path / "cluster_log.csv").write_text(header(HELIOS) + ",x" * MOST_BYTES)
    assert "cluster_log.csv: cannot be read as a table." in error_of(tmp_path)
    assert not find_wrong_headers("t", {}, {"log": [f"{tmp_path}/cluster_log.csv"]}, FORMATS["helios"])


NAMES = st.sampled_from(
    [f"{stem}{ending}" for stem in ("cluster_log", "cluster_job_log", "pai_job_table", "mine") for ending in PACKED]
    + [
        "mine.txt",
        "mine.parquet",
        "mine.json",
        "trace_seren.csv",
        "gc_full.csv",
        "health_events.csv",
        "openb_pod_list_default",
    ]
)
WORDS = [column.name for layouts in LAYOUTS.values() for layout in layouts.values() for column in layout.columns]
HEADERS = st.builds(
    lambda words, mark, end: (mark.join(words) + end).encode(errors="replace"),
    st.lists(st.sampled_from(WORDS) | st.text(max_size=5), max_size=30),
    st.sampled_from([",", "|", ";", "\t", " ", '","', "\r", "\0"]),
    st.sampled_from(["", "\n", "\r\n", "\n1,2\n", '"\n']),
)
STARTS = st.sampled_from(
    [b"", b"\xef\xbb\xbf", b"\x1f\x8b\x08", b"PK\x03\x04", b"PAR1", b"\x28\xb5\x2f\xfd", b"[{", b"[[", b"<"]
)


@given(st.dictionaries(NAMES, st.tuples(STARTS, st.binary(max_size=200) | HEADERS), max_size=4), st.booleans())
def test_any_file_is_recognised_or_refused(tmp_path_factory, files, is_packed):
    folder = tmp_path_factory.mktemp("hostile")
    for name, (start, body) in files.items():
        ending = next(ending for ending in PACKED if name.endswith(ending))
        (folder / name).write_bytes(PACKED[ending]("x", start + body) if is_packed else start + body)
    for data in [folder, *(folder / name for name in files)]:
        try:
            match = recognise(data)
        except ConfigError as error:
            assert "/" in str(error).splitlines()[0]
        else:
            load_trace(match)


# Wrong headers ------------------------------------------------------------------------------------------


@functools.cache
def load_format(name):
    """Return the schemas and readers of a format, with the mapping of its entry."""
    entry = {key: ENTRIES[name][key] for key in ("mapping", "times", "outcomes", "quoted") if key in ENTRIES[name]}
    return load_schemas_and_readers(
        FORMATS[name].get("reader"), entry, None if entry else read_schema_text(FILES[name])
    )


def ingest_message(name, table, file):
    """Return ingest's message about a file's header, or None."""
    schemas, readers = load_format(name)
    try:
        list(readers.get(table, LINES).rows(Path(file), schemas[table]))
    except StudyError as error:
        return str(error)
    return None


TABLES = [(name, table) for name, layouts in LAYOUTS.items() for table in layouts]


@pytest.mark.parametrize(("name", "table"), TABLES)
def test_the_header_check_agrees_with_ingest(name, table, tmp_path):
    """Check a valid header, and one without each of its columns in turn."""
    layout, file = LAYOUTS[name][table], tmp_path / file_name(name, table)
    for left_out in [None, *(column.name for column in layout.columns)]:
        file.write_text(content(layout, without=[left_out]))
        texts = find_wrong_headers("mine", ENTRIES[name], {table: [str(file)]}, FORMATS[name])
        message = ingest_message(name, table, file)
        assert bool(texts) == (message is not None and "has no column" in message), (left_out, texts, message)
        if texts:
            assert len(texts) == 1
            assert f"registry.mine: {file}: the header row has no column {left_out}" in texts[0]
            mapped = "mapping" in ENTRIES[name]
            remedy = "Rename the columns, or check" if table == "units" else "Correct registry.mine.mapping"
            assert (remedy if mapped else "registry.mine.schema") in texts[0]


def test_a_schema_of_its_own(tmp_path):
    document = yaml.safe_load(read_schema_text(FILES["helios"]))
    (state,) = [column for column in document["tables"]["log"]["columns"] if column["name"] == "state"]
    state["also"] = ["status"]
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(document))
    (tmp_path / "log.csv").write_text(content(HELIOS, instead={"state": "status"}))
    entry = {"format": "helios", "schema": str(tmp_path / "own.yaml")}
    assert not find_wrong_headers("mine", entry, {"log": [f"{tmp_path}/log.csv"]}, FORMATS["helios"])


def test_a_column_that_stands_twice(tmp_path):
    (tmp_path / "cluster_log.csv").write_text(f"{header(HELIOS)},user\n")
    (message,) = find_wrong_headers("mine", {}, {"log": [f"{tmp_path}/cluster_log.csv"]}, FORMATS["helios"])
    assert "the header row names user more than once" in message
    assert "names user more than once" in ingest_message("helios", "log", tmp_path / "cluster_log.csv")


def test_in_archives(tmp_path):
    text = content(HELIOS, without=["vc"]).encode()
    (tmp_path / "a.zip").write_bytes(zip_of("Venus/cluster_log.csv", text))
    (tmp_path / "a.tar.gz").write_bytes(tar_of("Venus/cluster_log.csv", text))
    for path, is_reported in {
        "a.zip": True,
        "a.zip/Venus/cluster_log.csv": True,
        "a.zip/Earth/cluster_log.csv": False,
        "a.tar.gz": True,
        "a.tar.gz/Venus/cluster_log.csv": False,  # the check would have to read other members first
    }.items():
        assert (
            bool(find_wrong_headers("mine", {}, {"log": [f"{tmp_path}/{path}"]}, FORMATS["helios"])) is is_reported
        ), path
