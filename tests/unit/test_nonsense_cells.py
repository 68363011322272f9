"""An invalid cell is an anomaly with its column, code and count, in every format and column.

Free-text columns accept anything. All others have a type, a list of words, a pattern, or a rule of their reader.
"""

import json
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from format_tables import FILES, FORMATS
from ttf.formats.protocol import load_schemas_and_readers
from ttf.raw.extra_table_reader import SCHEMAS
from ttf.raw.implausible_cells import BLANKED
from ttf.raw.ingest import anomalies, ingest
from ttf.study.recognition.format_declarations import read_schema_text

MOMENT = datetime(2005, 1, 3, tzinfo=UTC)
# Valid values of columns with a pattern or a rule of their reader.
VALID = {
    "JobID": "{n}_1",
    "JobIDRaw": "{n}",
    "State": "CANCELLED by 1000",
    "ExitCode": "0:9",
    "DerivedExitCode": "1:0",
    "ReqMem": "4Gc",
    "ReqTRES": "billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=1.50G,node=1,license/x=NONE",
    "AllocTRES": "cpu=8,gres/gpu:1g.5gb=4,mem=64G,energy=18446744073709551614",
    "NodeList": "n[001-003,7],gpu{n}",
    "StateRaw": "0x202",
    "location": "c0-12c2s{n}n3",
    "node prod": "Apr-97",
    "node decom": "5-Apr",
    "loss": "-1.5e-3",
}
CODES = {
    "not_a_number",
    "out_of_range",
    "not_a_time",
    "implausible_time",
    "not_a_duration",
    "unknown_value",
    "wrong_form",
    "wrong_type",
    *BLANKED,
}
# Text columns with a rule of their reader.
READER_COLUMNS = {"ReqMem", "ReqTRES", "AllocTRES", "NodeList", "loss"}
# Invalid values of a type or of a named column.
NONSENSE = {
    "count": ["2.5", "0x1F", "-3", "99999999999999", "nonsense", "nan"],
    "seconds": ["x", "true", "-5", "1.5", "99999999999999"],
    "number": ["nonsense", "0x1F", "inf", "1;5"],
    "clock": ["x", "true", "-5", "1:2:3:4", "٣:00:00", "5"],
    "time": ["nonsense", "2005-13-01", "yesterday", "-1"],
    "text": ["no such thing", "?"],
    "ReqMem": ["garbage", "64Gxyz", "-5G", "99999999999999T"],
    "ReqTRES": ["garbage", "cpu=1.5K", "cpu=8,mem=a lot", "gres/gpu=99999999999999", "cpu=8,", "=5"],
    "AllocTRES": ["garbage", "gres/gpu:a100=-4", "cpu"],
    "NodeList": ["n[1-", "n[3-1]", "n[1-999999999]", "n1,,n2", "n[a]"],
    "State": ["EXPLODED", "CANCELLED by root", "FAILED twice"],
}
REGISTRY = {
    "table": {
        "mapping": {"job_id": "j", "task": "k", "user": "u", "account": "a", "submit": "s", "start": "b", "end": "e"}
        | {"runtime": "r", "status": "o", "gpu_type": "m", "gpus": "g", "cpus": "c", "memory": "mb", "size": "z"}
        | {"nodes": "n", "reason": "w", "exit_code": "x"},
        "times": {"format": "epoch"},
        "outcomes": {"success": ["ok"], "failure": ["bad"]},
    },
    "outages": {
        "mapping": {"unit": "u", "start": "b", "end": "e", "duration": "d", "level": "l", "planned": "p"},
        "times": {"format": "%Y-%m-%d %H:%M:%S"},
    },
}
# Free-text columns of the format with the most kinds of columns.
FREE_IN_SACCT = {"Cluster", "User", "Account", "Partition", "QOS", "FailedNode", "Reason", "Flags"}


def iterate_formats():
    """Yield each format with its raw tables and their readers."""
    for name, declaration in FORMATS.items():
        if name in ("node_logs", "training_logs"):  # lines without columns; test_log_forms, test_training_time
            continue
        entry = REGISTRY.get(name, {})
        schema = "" if entry else read_schema_text(FILES[name])
        yield name, *load_schemas_and_readers(declaration.get("reader"), entry, schema)


def is_free_text(column):
    return column.type == "text" and not (column.values or column.pattern or column.name in READER_COLUMNS)


def valid_cell(column, n):
    if column.name in VALID:
        return VALID[column.name].format(n=n)
    if column.values:
        return column.values[0]
    if column.type == "time":
        moment = MOMENT + timedelta(days=n)
        return str(int(moment.timestamp())) if column.formats[0] == "epoch" else moment.strftime(column.formats[0])
    return {"text": f"{column.as_}{n}", "clock": "1-00:00:05", "seconds": "7"}.get(column.type, "1")


def write(path, schema, rows):
    """Write rows of cells to a file in the table's layout."""
    names = [column.name for column in schema.columns]
    if schema.name == "job_log":
        records = [dict(zip(names, row, strict=True)) | {"attempts": []} for row in rows]
        path.write_text(json.dumps(records))
    elif schema.name == "events":
        records = [dict(zip(names, row, strict=True)) for row in rows]
        for record in records:
            record["fault_type"] = {name: record.pop(name) for name in ("Level", "Class", "Desc")}
        # Numbers have no quotes, so a text in their place has the wrong type.
        path.write_text(json.dumps(records).replace('"event_time": "1"', '"event_time": 1'))
    else:
        lines = ([names] if schema.header else []) + rows
        path.write_text("".join(schema.delimiter.join(line) + "\n" for line in lines))


FORMAT_TABLES = {name: (schemas, readers) for name, schemas, readers in iterate_formats()}
CASES = [
    (name, table)
    for name, (schemas, _) in FORMAT_TABLES.items()
    for table in schemas
    if table not in SCHEMAS or name == "table"
]


@pytest.mark.parametrize(("format_", "table"), CASES)
def test_each_invalid_cell_is_counted(tmp_path, format_, table):
    schemas, readers = FORMAT_TABLES[format_]
    nonsense = {}
    for column in schemas[table].columns:
        if column.is_read and not is_free_text(column):
            texts = NONSENSE.get(column.name, NONSENSE[column.type])
            # A column that is not stored has no limit.
            nonsense[column.name] = [text for text in texts if column.keep or not text.endswith("9" * 9)]
    invalid = [(name, text) for name, texts in nonsense.items() for text in texts]
    files, names = {}, [column.name for column in schemas[table].columns]
    for owner in dict.fromkeys([*(schemas[table].belongs_to or ())[:1], table]):
        rows = [[valid_cell(column, n) for column in schemas[owner].columns] for n in range(2 + len(invalid))]
        if owner == table:
            for row, (name, text) in zip(rows, invalid, strict=False):
                row[names.index(name)] = text
        files[owner] = [tmp_path / f"{owner}.csv"]
        write(files[owner][0], schemas[owner], rows)
    (tmp_path / "raw").mkdir()
    account, quarantine = ingest(files, schemas, tmp_path / "raw", 1.0, readers)
    # An implausible cell is blank, and its row is kept.
    n_blanked = quarantine["reason"].is_in(BLANKED).sum()
    assert account.row(-1) == (table, len(rows), 2 + n_blanked, len(invalid) - n_blanked)
    anomaly_table = anomalies(quarantine, account)
    assert set(anomaly_table["table"]) <= {table} and set(anomaly_table["code"]) <= CODES
    counts = anomaly_table.group_by("column").agg(pl.col("rows").sum())
    assert dict(counts.rows()) == {name: len(texts) for name, texts in nonsense.items()}


def test_free_text_columns_of_sacct():
    schemas, _ = FORMAT_TABLES["sacct"]
    assert {column.name for column in schemas["record"].columns if is_free_text(column)} == FREE_IN_SACCT
