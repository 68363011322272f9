"""Raw tables against their schema: every row is typed and accepted, or quarantined with its rule and text."""

import re
from pathlib import Path

import polars as pl
import pytest
from format_tables import FORMATS, raw_schemas
from hypothesis import example, given
from hypothesis import strategies as st
from study_runs import PODS_HEADER
from ttf.engine.errors import StudyError
from ttf.raw import raw_files, raw_tables
from ttf.raw.ingest import REASONS
from ttf.raw.raw_tables import (
    QUARANTINED_SCHEMA,
    raw_lines,
    read_block,
    read_raw_table,
    read_valid_block,
    table_schemas,
)

JOB = "j{n},i{n},u1,Terminated,100.0,200.0\n"
TASK = "j1,worker,2.0,Terminated,100.0,200.0,600.0,29.296875,50.0,T4"
POD = "p1,12000,16384,1,460,V100M16|V100M32,LS,Running,0,50,0"


@pytest.fixture
def table(tmp_path, schemas):
    """Read text as a table; return (accepted rows, quarantined rows)."""

    def read(text, name="task", format_="pai2020"):
        path = tmp_path / "table.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        schema = schemas[format_][name]
        blocks = list(read_raw_table(path, schema))
        rows = pl.concat([pl.DataFrame(schema=schema.dtypes), *(rows for rows, _ in blocks)])
        rejected = pl.concat([pl.DataFrame(schema=QUARANTINED_SCHEMA), *(rejected for _, rejected in blocks)])
        assert all(rows.schema == schema.dtypes and rejected.schema == QUARANTINED_SCHEMA for rows, rejected in blocks)
        return rows, rejected

    return read


def reasons(quarantined):
    return quarantined.select("line", "reason", "column").rows()


def task(**changes):
    names = ["job", "task", "inst_num", "status", "start", "end", "plan_cpu", "plan_mem", "plan_gpu", "gpu_type"]
    return ",".join((dict(zip(names, TASK.split(","), strict=True)) | changes).values())


def test_types_and_units_of_a_task(table):
    rows, rejected = table(TASK + "\n")
    assert rejected.is_empty()
    assert rows.row(0, named=True) == {
        "line": 1,
        "job_name": "j1",
        "task_name": "worker",
        "inst_num": 2,
        "status": "Terminated",
        "start_s": 100,
        "end_s": 200,
        "cpu_milli": 6000,
        "mem_mib": 30000,
        "gpu_milli": 500,
        "gpu_type": "T4",
    }


def test_blank_fields_are_null(table):
    rows, _ = table("j1,worker,,Waiting,,,,,,\n")
    assert [name for name, values in rows.to_dict(as_series=False).items() if values == [None]] == [
        *("inst_num", "start_s", "end_s", "cpu_milli", "mem_mib", "gpu_milli", "gpu_type")
    ]


def test_a_text_above_the_length_limit_is_quarantined(table):
    longest = raw_tables.MAX_FIELD_BYTES
    rows, rejected = table(TASK + "\n" + task(job="j" * longest) + "\n" + task(gpu_type="x" * (longest + 1)) + "\n")
    assert rows["line"].to_list() == [1, 2]
    assert reasons(rejected) == [(3, "field_too_long", "gpu_type")]
    assert len(rejected["text"][0]) == raw_tables.MAX_TEXT_SHOWN
    assert rejected["text"][0].startswith("a row of 131,131 bytes: j1,worker,")
    assert "longer than 131,072 bytes, the limit" in REASONS["field_too_long"]


def test_a_table_of_hardly_anything_but_blank_lines_is_refused(table, monkeypatch):
    monkeypatch.setattr(raw_tables, "MAX_BLANK_LINES", 1_000)
    assert table((TASK + "\n" * 9) * 200)[0].height == 200
    with pytest.raises(StudyError, match=r"table\.csv: more than 1,000 blank lines and 1 rows up to line [\d,]+: "):
        table(TASK + "\n" * 2_000)


@pytest.mark.parametrize("zero", ["0", "0.0", "-0.0", ""])
def test_a_zero_time_is_blank_in_pai(table, zero):
    rows, rejected = table(task(start="100", end=zero) + "\n" + task(start=zero, end="50") + "\n")
    assert rows.select("start_s", "end_s").rows() == [(100, None), (None, 50)]
    assert rejected.is_empty()


def test_a_zero_time_is_a_time_in_openb(table):
    rows, rejected = table(f"{PODS_HEADER}\n{POD}\n", "pods", "openb")
    assert rejected.is_empty()
    assert rows.select("submit_s", "end_s", "start_s").row(0) == (0, 50, 0)


@pytest.mark.parametrize(
    ("changes", "reason", "column"),
    [
        ({"status": "Terminated "}, "unknown_value", "status"),
        ({"start": "100.5"}, "not_a_number", "start_time"),
        ({"end": "99"}, "end_before_start", "end_time"),
        ({"end": "1739162000000"}, "out_of_range", "end_time"),
        ({"inst_num": "1.5"}, "not_a_number", "inst_num"),
        ({"inst_num": "1e7"}, "out_of_range", "inst_num"),
        ({"plan_gpu": "-0.0001"}, "out_of_range", "plan_gpu"),
        ({"plan_mem": "1e19"}, "out_of_range", "plan_mem"),
    ],
)
def test_a_broken_rule(table, changes, reason, column):
    line = task(**changes)
    rows, rejected = table(f"{TASK}\n{line}\n{TASK}\n")
    assert rows["line"].to_list() == [1, 3]
    assert rejected.rows() == [("task", 2, reason, column, line)]


@pytest.mark.parametrize(
    "value",
    [
        *("1e400", "nan", "-inf", "1_000", " 12", "0x10", "１２", "1e", "12\0", "1\r2"),
    ],
)
@pytest.mark.parametrize("column", ["plan_cpu", "inst_num"])
def test_a_field_that_is_no_number(table, value, column):
    line = task(**{column: value})
    rows, rejected = table(f"{line}\n")
    assert rows.is_empty()
    assert rejected.rows() == [("task", 1, "not_a_number", column, line)]


@pytest.mark.parametrize(
    ("value", "milli"),
    [("+5", 50), (".5", 5), ("5.", 50), ("1e2", 1000), ("0.05", 1), ("-0", 0), ("5\r", 50)],
)
def test_a_field_that_is_a_number(table, value, milli):
    rows, _ = table(task(plan_cpu=value) + "\n")
    assert rows["cpu_milli"].to_list() == [milli]


def test_a_column_that_is_not_stored_has_no_largest_value(table):
    """Bytes read by an instance go far beyond any other number."""
    line = "j1,worker,w,i,m,/dev/nvidia0,50.0,25.0,0.5,1.0,0.1,0.1,1e15,2e15,1e9,1e10\n"
    rows, rejected = table(line, "sensor")
    assert rejected.is_empty()
    assert rows.select("cpu_used_milli", "gpu_used_milli", "mem_used_mib").row(0) == (500, 250, 512)


def test_times_in_order_whichever_is_blank(table):
    times = ["1,2,3", "5,6,", "5,4,", ",9,", "5,7,8", "5,7,4", "5,,9", "5,,"]  # creation, deletion, scheduled
    text = "".join(f"p{n},1,1,1,1,,LS,Pending,{row}\n" for n, row in enumerate(times))
    accepted, rejected = table(f"{PODS_HEADER}\n{text}", "pods", "openb")
    assert accepted["line"].to_list() == [3, 8, 9]
    assert reasons(rejected) == [
        (2, "end_before_start", "deletion_time"),
        (4, "end_before_start", "deletion_time"),
        (5, "missing_value", "creation_time"),
        (6, "end_before_start", "deletion_time"),
        (7, "end_before_start", "scheduled_time"),
    ]


def test_byte_order_mark_line_ends_and_no_newline_at_the_end(table):
    expected = table(f"{TASK}\n{TASK}\n")[0]
    for text in (f"\ufeff{TASK}\n{TASK}\n", f"{TASK}\r\n{TASK}\r\n", f"{TASK}\n{TASK}", f"\ufeff{TASK}\r\n{TASK}"):
        rows, rejected = table(text)
        assert rows.equals(expected)
        assert rejected.is_empty()


def test_quotes_are_text(table):
    rows, rejected = table(f"{task(gpu_type=chr(34) + 'T4')}\n{task(job=chr(34) * 2)}\n")
    assert rows["gpu_type"].to_list() == ['"T4', "T4"]
    assert rows["job_name"].to_list() == ["j1", '""']
    assert rejected.is_empty()


@pytest.mark.parametrize("start", ["x^", "x\x01", "#", "BZh", "PK\x03"])
def test_no_first_bytes_are_taken_for_a_packing(table, start):
    """Polars itself takes text that begins with x^ for compressed, and gives no rows."""
    rows, rejected = table(f"{task(job=start + 'j')}\n{TASK}\n{task(status='?')}\n")
    assert rows["job_name"].to_list() == [f"{start}j", "j1"]
    assert rows["line"].to_list() == [1, 2]
    assert reasons(rejected) == [(3, "unknown_value", "status")]


def test_a_header_row_where_none_belongs(table, schemas):
    for name in ("task", "group_tag"):
        columns = schemas["pai2020"][name].columns
        header = ",".join(column.name for column in columns)
        row = TASK if name == "task" else "i1,u1,,g1,"
        rows, rejected = table(f"\ufeff{header}\r\n{row}\n\n{header}\n{row}\n", name)
        assert rows["line"].to_list() == [2, 5]
        # In the first line it is a valid header.
        assert reasons(rejected) == [(4, "header_row", None)]
        assert rejected["text"].to_list() == [header]


def test_columns_follow_the_header(table):
    names, values = PODS_HEADER.split(","), POD.split(",")
    header, row = ",".join([*reversed(names), "extra"]), ",".join([*reversed(values), "?"])
    assert table(f"{header}\n{row}\n", "pods", "openb")[0].equals(table(f"{PODS_HEADER}\n{POD}\n", "pods", "openb")[0])


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (POD, "no columns name, cpu_milli"),
        (PODS_HEADER.replace("qos", "class"), "no column qos"),
        ("", "no columns name"),
        ("\x1b[31mname,\0", "no columns name"),
        (PODS_HEADER + ",qos", "names qos more than once"),
    ],
)
def test_a_header_row_missing_or_wrong(table, header, message):
    with pytest.raises(StudyError, match=r"table\.csv: line 1: the header row") as error:
        table(f"{header}\n{POD}\n", "pods", "openb")
    assert message in str(error.value)


def test_an_unknown_key_of_a_schema_is_named():
    with pytest.raises(TypeError, match="colour"):
        table_schemas({"header": False, "tables": {"t": {"columns": [{"name": "a", "type": "text", "colour": 1}]}}})


# Any mix of valid and broken lines, against a reading of each line by itself.

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
HOSTILE = ["", "0", "-1", "5", "100", "250.0", "1e400", "nan", "inf", "1_000", " 12", "0x10", "１２", "\0", "1\r2", '"']
HOSTILE += ["x", "3.5", "1e11", "1e12", "-0.0", "a\rb", "ü", "x^", "x\x01", "+7", ".5", "٣"]
letters = st.characters(exclude_characters=",\n", exclude_categories=["Cs"])
field = st.sampled_from(HOSTILE) | st.text(letters, max_size=5)
odd_row = st.lists(field, min_size=4, max_size=7).map(lambda fields: ",".join(fields).encode())
nearly = st.tuples(
    *(field, field, field, st.sampled_from(["Terminated", "Failed", "Running", "Waiting", "", "?"]), field, field)
).map(lambda fields: ",".join(fields).encode())
good = st.integers(0, 9).map(lambda n: JOB.format(n=n).strip().encode())
junk = st.binary(max_size=12).map(lambda text: text.replace(b"\n", b","))
header_row = st.just(b"job_name,inst_id,user,status,start_time,end_time")
line_end = st.sampled_from([b"\n", b"\n", b"\r\n"])


def verdict(line):
    """Classify a line of the job table: blank, kept, or its (reason, column)."""
    if not line.strip():
        return "blank"
    if line == b"job_name,inst_id,user,status,start_time,end_time":
        return ("header_row", None)
    try:
        fields = line.decode().split(",")
    except UnicodeDecodeError:
        return ("not_utf8", None)
    if len(fields) != 6:
        return ("wrong_column_count", None)
    fields = [field.removesuffix("\r") for field in fields]
    if not fields[0]:
        return ("missing_value", "job_name")
    if fields[3] not in ("Terminated", "Failed", "Running", "Waiting"):
        return ("unknown_value", "status") if fields[3] else ("missing_value", "status")
    times = []
    for name, text in (("start_time", fields[4]), ("end_time", fields[5])):
        value = float(text) if NUMBER.fullmatch(text) else None
        if text and (value is None or value in (float("inf"), float("-inf")) or value % 1):
            return ("not_a_number", name)
        if value and (value < 0 or value > 10**11):
            return ("out_of_range", name)
        times.append(value)
    if times[0] and times[1] and times[1] < times[0]:
        return ("end_before_start", "end_time")
    return "kept"


@given(
    lines=st.lists(st.tuples(good | nearly | odd_row | junk | header_row, line_end), max_size=12),
    block_bytes=st.integers(1, 200),
    mark=st.booleans(),
    last_end=st.booleans(),
)
@example(lines=[(b"x^,,,Failed,,", b"\n")] * 2, block_bytes=1, mark=False, last_end=True)
def test_any_mix_of_lines_in_any_blocks(schemas, tmp_path_factory, lines, block_bytes, mark, last_end):
    first = JOB.format(n=0).encode()  # so that the file as a whole is a table
    text = first + b"".join(line + end for line, end in lines)
    if not last_end and text.endswith(b"\n"):
        text = text[:-1]
    path = Path(tmp_path_factory.getbasetemp()) / "mix.csv"
    path.write_bytes(b"\xef\xbb\xbf" * mark + text)
    patch = pytest.MonkeyPatch()
    with patch.context() as context:
        context.setattr(raw_files, "BLOCK_BYTES", block_bytes)
        blocks = list(read_raw_table(path, schemas["pai2020"]["job"]))
        reread = raw_lines(path, schemas["pai2020"]["job"], set(range(1, len(lines) + 2)))
    file_lines = (text if text.endswith(b"\n") else text + b"\n").replace(b"\r\n", b"\n").split(b"\n")[:-1]
    verdicts = {number: verdict(line) for number, line in enumerate(file_lines, start=1)}

    accepted = [line for frame, _ in blocks for line in frame["line"]]
    rejected = [row for _, frame in blocks for row in frame.iter_rows()]
    assert accepted == [number for number, verdict_ in verdicts.items() if verdict_ == "kept"]
    assert [(line, (reason, column)) for _, line, reason, column, _ in rejected] == [
        (number, verdict_) for number, verdict_ in verdicts.items() if verdict_ not in ("kept", "blank")
    ]
    for _, line, _, _, shown in rejected:
        assert shown == file_lines[line - 1].decode(errors="replace") == reread[line]


# The fast reader and the careful reader give the same rows.

TABLES = [("pai2020", name) for name in ("job", "sensor", "group_tag")] + [("openb", "pods"), ("told", "rows")]
DECLARED = {
    "header": True,
    "tables": {
        "rows": {
            "delimiter": "|",
            "quoted": True,
            "columns": [
                {"name": "id", "type": "text", "required": True, "blank": ["-"]},
                {"name": "at", "type": "time", "formats": ["%Y-%m-%d", "epoch"]},
                {"name": "n", "type": "number", "scale": 10, "minimum": -1, "blank": [""]},
                {"name": "m", "type": "count", "blank": ["none"], "keep": False},
                {"name": "k", "type": "text"},
            ],
        }
    },
}
WRONG = [
    *HOSTILE,
    "-",
    "none",
    "2020-02-30",
    "2020-02-03",
    " ",
    "5 ",
    "\t5",
    "a b",
    "|",
    ",",
    '"a|b"',
    "9" * 30,
    "é",
    "inf",
]


def valid_row(schema, number):
    return [str(number) if column.type != "text" else (column.values or ("w",))[0] for column in schema.columns]


@given(data=st.data(), large_block=st.sampled_from([1, 1 << 20]), changes=st.integers(0, 2))
def test_the_fast_and_the_careful_reader_agree(schemas, data, large_block, changes):
    format_, name = data.draw(st.sampled_from(TABLES))
    schema = (table_schemas(DECLARED) if format_ == "told" else schemas[format_])[name]
    rows = [valid_row(schema, n) for n in range(4)]
    for _ in range(changes):
        row = data.draw(st.sampled_from(rows))
        row[data.draw(st.integers(0, len(row) - 1))] = data.draw(st.sampled_from(WRONG) | st.text(letters, max_size=3))
    text = "".join(schema.delimiter.join(row) + "\n" for row in rows)
    text += data.draw(st.sampled_from(["", "", "\n", schema.delimiter.join(c.name for c in schema.columns) + "\n"]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(raw_tables, "_LARGE_BLOCK", large_block)
        fast = read_block(text.encode(), schema.columns, schema)
        patch.setattr(raw_tables, "read_valid_block", lambda *_: None)
        careful = read_block(text.encode(), schema.columns, schema)
    assert fast[0].equals(careful[0])
    assert fast[1].equals(careful[1])
    assert fast[2] == careful[2]
    assert fast[0].schema == careful[0].schema == schema.dtypes


@pytest.mark.parametrize(("format_", "name"), TABLES[:4])
def test_a_valid_block_is_read_by_the_fast_reader(schemas, format_, name):
    schema = schemas[format_][name]
    row = schema.delimiter.join(valid_row(schema, 1))
    assert read_valid_block(f"{row}\n{row}\n".encode(), schema.columns, schema).height == 2
    assert read_valid_block(f"{row}\n{row},\n".encode(), schema.columns, schema) is None


def test_headerless_columns_of_numbers_have_words_for_names():
    """The fast reader does not look for header rows; a name that is no number makes it fail on one."""
    for name in [name for name, declaration in FORMATS.items() if "schema" in declaration]:
        for schema in raw_schemas(name).values():
            if not schema.header:
                assert not any(NUMBER.fullmatch(column.name) for column in schema.columns if column.type != "text")
