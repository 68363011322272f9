"""Mutated traces: each is read with every row and file accounted for, or refused with one message."""

import gzip
import io
import json
import lzma
import random
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import zstandard
from faults.mutations import Entries, Odd, lay_out, mutated
from faults.traces import FORMATS, trace
from faults.verdict import Verdict, fault_of_message

ROOT = Path(__file__).parents[2]
# A cell of these may hold a line break, so the number of lines is only an upper bound of the rows.
JOINED = ("sacct", "slurm_events")
NO_HEADER = ("pai2020",)
# A page takes three times as long as all tables: one of so many cases has one.
EVERY_PAGE = 11
LENIENT = {"quarantine": {"max_share": 0.99}}
DRAWN = ("draw_charts", "write_page_source", "write_page_template", "render_page", "score_claims")


def cases(seed: int, count: int) -> Iterator[tuple]:
    for number in range(count):
        yield "input", FORMATS[number % len(FORMATS)], seed, number


def case(format_: str, seed: int, number: int) -> tuple[str, Entries, dict]:
    """Return the mutations in words, the entries of the folder `raw`, and the trace's registry entry."""
    files, entry = trace(format_)
    return *mutated(random.Random(f"{format_} {seed} {number}"), files), entry


def judge(case_key: tuple) -> Verdict:
    """Judge one case: if the trace is accepted, make all its tables, and for some cases the page."""
    import whole_study

    kind, format_, seed, number = case_key
    description, entries, entry = case(format_, seed, number)
    name = f"{format_} {seed}/{number}: {description}"
    skipped_scripts = DRAWN if number % EVERY_PAGE else ()
    folder = Path(tempfile.mkdtemp(prefix="fault-"))
    try:
        lay_out(folder / "raw", entries)
        # With the default limit on quarantined rows, few of these small tables would be read to the end.
        config = {"study": ["mine"], "registry": {"mine": entry}} | (LENIENT if number % 3 else {})
        result = whole_study.run(config, folder, only=lambda job: job.script not in skipped_scripts)
        if result.crash:
            return Verdict(kind, name, "fault", f"traceback: {result.job}: {result.crash[-2500:]}")
        if result.refused:
            fault = fault_of_message(result.refused)
            return Verdict(kind, name, "fault" if fault else "refused", fault or result.refused)
        fault = unaccounted(folder, format_, entries) or omitted(folder, entries, entry)
        return Verdict(kind, name, "fault" if fault else "accepted", fault)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def unaccounted(folder: Path, format_: str, entries: Entries) -> str:
    """Return the fault of the row account, recounted from the bytes without the study's code."""
    results = folder / "results" / "mine"
    account = pl.read_csv(results / "quality" / "row_account.csv", glob=False)
    quarantine = pl.read_parquet(results / "quality" / "quarantine.parquet", glob=False)
    # A blanked cell is listed, and its row accepted.
    quarantine = quarantine.filter(~pl.col("reason").str.ends_with("_blanked"))
    for table, read_count, accepted, excluded in account.select(
        "table", "rows_read", "rows_accepted", "rows_quarantined"
    ).iter_rows():
        stored = pl.scan_parquet(results / "raw" / f"{table}.parquet", glob=False).select(pl.len()).collect().item()
        if not read_count == accepted + excluded == stored + quarantine.filter(pl.col("table") == table).height:
            return f"rows: {table}: {read_count} read, {accepted} kept, {excluded} excluded, {stored} stored"
    files = read_files(folder).filter(pl.col("table").is_not_null() & pl.col("rows_read").is_not_null())
    for file, table, reported in files.select("file", "table", "rows_read").iter_rows():
        rows = count_rows(entries[file], has_header=format_ not in NO_HEADER) if file in entries else None
        if rows is not None and (int(reported) > rows or (int(reported) < rows and not format_.startswith(JOINED))):
            return f"rows: {table}: {reported} rows of {file} in the account, {rows} in the file"
    return ""


def omitted(folder: Path, entries: Entries, entry: dict) -> str:
    named = set(read_files(folder)["file"].to_list())
    visible_entries = [name for name in entries if not name.startswith(".") and not name.upper().startswith("README")]
    silent = [name for name in visible_entries if name not in named and f"raw/{name}" not in str(entry)]
    return f"omission: {', '.join(silent)}" if silent else ""


def read_files(folder: Path) -> pl.DataFrame:
    return pl.read_csv(folder / "results" / "mine" / "quality" / "raw_files.csv", glob=False, infer_schema=False)


def count_rows(content: bytes | Odd, has_header: bool) -> int | None:
    """Count a table's rows independently of the study; None if that is impossible."""
    text = unpacked(content) if isinstance(content, bytes) else None
    if text is None or b"\r" in text.replace(b"\r\n", b""):
        return None
    text = text.removeprefix(b"\xef\xbb\xbf")
    if text.lstrip()[:1] == b"[":
        try:
            return len(json.loads(text))
        except ValueError:
            return None
    return max(0, sum(bool(line.strip()) for line in text.split(b"\n")) - has_header)


def unpacked(content: bytes) -> bytes | None:
    """Return the unpacked bytes of a table; None if they cannot be unpacked."""
    try:
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
            if content[257:262] == b"ustar":
                with tarfile.open(fileobj=io.BytesIO(content)) as archive:
                    (member,) = archive.getmembers()
                    content = archive.extractfile(member).read()
        elif content.startswith(b"\xfd7zXZ"):
            content = lzma.decompress(content)
        elif content.startswith(b"\x28\xb5\x2f\xfd"):
            content = zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True).read()
        elif content.startswith(b"PK"):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                (member,) = archive.infolist()
                content = archive.read(member)
    except Exception:  # the study has to report every fault of an archive
        return None
    return content
