"""Helpers for tests of formats: the schema of the raw tables and the tables derived from them."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

import polars as pl
import yaml
from memory_tables import one_row
from ttf.formats.protocol import Source, load_format
from ttf.raw.ingest import ingest
from ttf.raw.raw_tables import table_schemas
from ttf.study.recognition.format_declarations import find_declarations, load_formats, read_schema_text, select_meaning
from ttf.study.watch import read_watch_options

FORMATS = load_formats()
FILES = find_declarations()

# An invented format and its table of jobs.
MADE_UP = """\
unit: run
gives: jobs
outcomes: {success: [ok], failure: [broken], running: [active], waiting: [queued]}
mapping:
  table: runs
  job_id: id
  account: team
  submit: asked_s
  start: start_s
  runtime: {column: minutes, unit: min}
  status: {column: state, first_word: true}
  gpus: {column: cards, unit: gpu}
  memory: {column: mb, unit: MB}
  size: workers
  nodes: hosts
  attempts: 1
  extras: [note]
  flags: {is_test: {team: test}}
node_table: hosts
tables:
  runs: {file: runs, required: true}
  hosts: {file: hosts, required: false}

schema:
  version: 1
  tables:
    runs:
      key: [id]
      columns:
        - {name: id, type: text, required: true}
        - {name: team, type: text}
        - {name: asked, type: seconds, as: asked_s}
        - {name: started, type: seconds, as: start_s}
        - {name: minutes, type: count}
        - {name: state, type: text, required: true}
        - {name: cards, type: count}
        - {name: mb, type: count}
        - {name: workers, type: count}
        - {name: hosts, type: count}
        - {name: note, type: text}
    hosts:
      columns:
        - {name: host, type: text, as: node}
        - {name: cards, type: count, as: gpu_count}
        - {name: model, type: text, as: gpu_type, optional: true}
        - {name: cores, type: number, scale: 1000, as: cpu_milli, optional: true}
        - {name: memory, type: number, scale: 1, as: mem_mib, optional: true}
"""
RUNS = """\
id,team,asked,started,minutes,state,cards,mb,workers,hosts,note
a,test,0,10,2,ok,1,1049,2,2,x
b,lab,5,20,1,broken by 7,4,,1,1,
c,lab,6,,,queued,8,,1,4,
d,lab,7,30,9,strange,0,,1,1,
"""


@cache
def raw_schemas(name, minimum=0):
    """Return the schemas of a format's raw tables; minimum: of times, so that rows of a test may count from 1970."""
    document = yaml.safe_load(read_schema_text(FILES[name]))
    for column in [column for table in document["tables"].values() for column in table["columns"]]:
        column |= {"minimum": minimum} if column["type"] == "time" and minimum is not None else {}
    return table_schemas(document)


def ingest_tables(name, folder, max_share=1.0, readers=None, **tables):
    """Ingest texts or files as a format's tables; return (typed raw tables, row account, quarantine)."""
    folder.mkdir(exist_ok=True)
    files = {}
    for table, content in tables.items():
        files[table] = content
        if not isinstance(content, list):
            files[table] = [folder / f"{table}.csv"]
            files[table][0].write_bytes(content if isinstance(content, bytes) else content.encode())
    account_and_quarantine = ingest(files, raw_schemas(name), folder, max_share, readers or {})
    return scan_tables(folder, *files), *account_and_quarantine


def derive_table(name, product, raw, entry=None):
    """Derive a common table (jobs, attempts, placements, durations, nodes, outages) from typed raw tables.

    raw: tables by name. entry: the trace's entry in the registry.
    """
    declaration = FORMATS[name]
    code = load_format(declaration["code"])
    source = Source(raw, select_meaning(entry or {}, declaration) | read_watch_options(entry or {}, None))
    if code.records:
        source = replace(source, records=code.records(source))
    if product == "placements" and code.placements_of_attempts:
        source = replace(source, records=None, attempts=code.attempts(source).lazy())
    return getattr(code, product)(source).lazy().collect()


def row_of(jobs, job_id):
    """Return the only row of the job, by column."""
    return one_row(jobs, job_id=job_id)


def filled(row):
    """Return the columns of the row that are not blank."""
    return {name: value for name, value in row.items() if value is not None}


def epoch(*moment):
    """Return the seconds since 1970 of a moment (year, month, day, hour ...) in UTC."""
    return int(datetime(*moment, tzinfo=UTC).timestamp())


def scan_tables(folder, *names):
    return {name: pl.scan_parquet(folder / f"{name}.parquet") for name in names}
