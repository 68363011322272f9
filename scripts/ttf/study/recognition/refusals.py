"""Why a file is not read as a table, and what to type next."""

import re
import shlex
from contextlib import closing, suppress
from pathlib import Path

from ttf.engine.errors import StudyError
from ttf.raw.node_logs.layouts import describe_unread_form
from ttf.raw.raw_files import read_line_blocks
from ttf.raw.raw_tables import is_utf8
from ttf.study.recognition.first_lines import MOST_BYTES, show_name

# The command of README.md for the accounting of Slurm, without the columns that few questions need.
_SACCT = (
    "sacct -a -X -P --noconvert -S 2025-01-01 -E now -o JobIDRaw,State,Submit,Start,End,User,Account,Partition,"
    "ExitCode,ReqTRES,AllocTRES,NNodes,NodeList > jobs.txt"
)
SAMPLE_BYTES = 1 << 20
# Ingest stops if a larger share of the rows breaks a rule.
MOST_ODD = 0.01
# Columns that sacct prints under these names only.
SACCT_NAMES = {
    *("JobID", "JobIDRaw", "State", "ExitCode", "AllocCPUS", "AllocTRES", "ReqTRES", "ReqCPUS", "ReqMem", "ReqNodes"),
    *("NNodes", "NodeList", "ElapsedRaw", "CPUTimeRAW", "ConsumedEnergyRaw", "ResvCPURAW", "Timelimit", "TimelimitRaw"),
    *("QOS", "MaxRSS", "AveRSS", "NTasks", "DerivedExitCode"),
}
PRINT_AGAIN = f"Print it with -P and these columns:\n  {_SACCT}\n  ttf report jobs.txt"
_SACCT_NEEDS = (("JobIDRaw", "JobID"), ("State",), ("Start",), ("End",))
# First bytes of a file -> what it is, and the remedy. Workbooks are zip archives.
_BINARY_KINDS = {
    rb"PK\x03\x04(?s:.{0,2000})(?:\[Content_Types\]|xl/|spreadsheet)|\xd0\xcf\x11\xe0": (
        "a workbook of Excel or OpenDocument. Save its sheet as CSV (UTF-8)"
    ),
    rb"%PDF": "a PDF. Export the records as CSV",
    rb"PAR1": "Parquet under another name. Rename it to end in .parquet",
    rb"SQLite format 3": "a database of SQLite. Write its table: sqlite3 -csv -header FILE 'select * from jobs'",
    rb"\x80[\x02-\x05]": "a pickle of Python. Write it as Parquet: pandas.read_pickle('FILE').to_parquet('a.parquet')",
    rb"ARROW1|FEA1": "an Arrow file. Write it as Parquet: polars.read_ipc('FILE').write_parquet('a.parquet')",
}


def explain_unreadable(file: Path) -> str:
    """Return why a file cannot be a table, and the remedy; empty if its first lines may be one."""
    label = show_name(str(file))
    with suppress(OSError):
        with file.open("rb") as source:
            start = source.read(4096)
        if file.name.lower().endswith(".parquet"):
            return "" if start.startswith(b"PAR1") else f"{label}: the name says Parquet, but the bytes are not."
        if kind := next((words for pattern, words in _BINARY_KINDS.items() if re.match(pattern, start)), ""):
            return f"{label}: this is {kind.replace('FILE', show_name(file.name))}."
    try:
        with closing(read_line_blocks(file, SAMPLE_BYTES)) as blocks:
            head = next(blocks)
    except StudyError as error:
        return str(error)
    return _explain_text(head, file, label)


def _explain_text(head: bytes, file: Path, label: str) -> str:
    lines = head.split(b"\n")
    odd_lines = [number for number, line in enumerate(lines, 1) if not is_utf8(line)] if not is_utf8(head) else []
    text = head.decode("utf-8", "replace").removeprefix("\ufeff")
    line = text.split("\n", 1)[0]
    name, stem = shlex.quote(show_name(str(file))), shlex.quote(show_name(file.name.partition(".")[0]))
    if not text.strip():
        return f"{label}: the file holds blank lines only."
    if re.fullmatch(r"sep=.?", line.strip(), re.IGNORECASE):
        remedy = f"Remove it: tail -n +2 {name} > {stem}_table.csv"
        return f"{label}: line 1 is {line.strip()}, which Excel reads but which is no header. {remedy}"
    if head.count(b"\0") * 20 > len(head):
        return f"{label}: the file is binary, not a text or a Parquet file."
    if len(odd_lines) > MOST_ODD * len(lines):
        return (
            f"{label}: {len(odd_lines):,} lines are not UTF-8, as line {odd_lines[0]}. Convert them, here from Latin-1:"
            f"\n  iconv -f LATIN1 -t UTF-8 {name} > {stem}_utf8.csv\n  ttf report {stem}_utf8.csv"
        )
    if re.match(r'\s*(?:\{\s*["}]|\[\s*[{\[\]])', text):
        if re.search(r'(^|"(jobs|items|runs)"\s*:)\s*\[\s*\]', text):
            return (
                f"{label}: the list of jobs is empty. Did the command that wrote it ask for the right days and users?"
            )
        return (
            f"{label}: JSON in which no list of jobs is found. Take the list out, a record a line:\n"
            f"  jq -c '.where.the.list.is[]' {name} > {stem}.jsonl\n  ttf report {stem}.jsonl"
        )
    if len(line) >= MOST_BYTES - 1:
        return f"{label}: line 1 has more than {MOST_BYTES - 2:,} characters; expected a row with the names of columns."
    return _explain_fixed_width(text, name, stem, label)


def _explain_fixed_width(text: str, name: str, stem: str, label: str) -> str:
    lines = [line for line in text.split("\n")[:50] if line.strip()]
    words = lines[0].split()
    has_rule = len(lines) > 1 and not set(lines[1]) - {*"- \r"}
    if has_rule and not {"JobID", "State"} <= {*words}:
        return f"{label}: {describe_unread_form(text.encode())}."
    if has_rule:
        return (
            f"{label}: printed by sacct in columns of fixed width, which cut cells, as in CANCELLED+"
            f"{describe_missing_sacct(words)}. {PRINT_AGAIN}"
        )
    if not any(mark in lines[0] for mark in ",;\t|") and all(re.search(r"\S {2,}\S", line) for line in lines):
        return (
            f"{label}: columns of fixed width. Put a tab between them:\n"
            f"  sed -E 's/^ +//; s/ +$//; s/ {{2,}}/\\t/g' {name} > {stem}.csv\n  ttf report {stem}.csv"
        )
    return ""


def describe_missing_sacct(names: list[str]) -> str:
    """Return which columns a dump of sacct lacks: ", and without Start, End"; empty if it has all."""
    missing = [needed[-1] for needed in _SACCT_NEEDS if not {*needed} & {*names}]
    return f", and without {', '.join(missing)}" if missing else ""
