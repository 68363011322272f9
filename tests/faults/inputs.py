"""Mutated traces: each is read right, every row and every file accounted for, or refused with one message."""

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
# Rows of these span lines where a cell holds a line break, so that lines bound them from above only.
JOINED = ("sacct", "slurm_events")
NO_HEADER = ("pai2020",)
# A page costs three times what all tables do: one of so many cases has one.
EVERY_PAGE = 11
LENIENT = {"quarantine": {"max_share": 0.99}}
DRAWN = ("draw_charts", "write_page_source", "bundle_vega", "write_page_template", "render_page", "score_claims")


def cases(seed: int, count: int) -> Iterator[tuple]:
    """("input", format, seed, number), the formats in turn."""
    for number in range(count):
        yield "input", FORMATS[number % len(FORMATS)], seed, number


def case(format_: str, seed: int, number: int) -> tuple[str, Entries, dict]:
    """The mutations in words, the entries of the folder `raw`, and the trace's entry in the registry."""
    files, entry = trace(format_)
    return *mutated(random.Random(f"{format_} {seed} {number}"), files), entry


def judge(asked: tuple) -> Verdict:
    """The verdict on one case: of a trace that is read all its tables are made, of some the page too."""
    import whole_study

    kind, format_, seed, number = asked
    words, entries, entry = case(format_, seed, number)
    name = f"{format_} {seed}/{number}: {words}"
    beyond = DRAWN if number % EVERY_PAGE else ()
    folder = Path(tempfile.mkdtemp(prefix="fault-"))
    try:
        lay_out(folder / "raw", entries)
        # With the usual limit on rows that break a rule, few of such small tables would be read to the end.
        config = {"study": ["mine"], "registry": {"mine": entry}} | (LENIENT if number % 3 else {})
        done = whole_study.run(config, folder, only=lambda job: job.script not in beyond)
        if done.crash:
            return Verdict(kind, name, "fault", f"traceback: {done.job}: {done.crash[-2500:]}")
        if done.refused:
            fault = fault_of_message(done.refused)
            return Verdict(kind, name, "fault" if fault else "refused", fault or done.refused)
        fault = unaccounted(folder, format_, entries) or omitted(folder, entries, entry)
        return Verdict(kind, name, "fault" if fault else "accepted", fault)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def unaccounted(folder: Path, format_: str, entries: Entries) -> str:
    """What is wrong with the account of rows, counted again from the bytes without the code of the study."""
    results = folder / "results" / "mine"
    account = pl.read_csv(results / "quality" / "row_account.csv", glob=False)
    aside = pl.read_parquet(results / "quality" / "quarantine.parquet", glob=False)
    for table, read, kept, excluded in account.select(
        "table", "rows_read", "rows_kept", "rows_quarantined"
    ).iter_rows():
        stored = pl.scan_parquet(results / "raw" / f"{table}.parquet", glob=False).select(pl.len()).collect().item()
        if not read == kept + excluded == stored + aside.filter(pl.col("table") == table).height:
            return f"rows: {table}: {read} read, {kept} kept, {excluded} excluded, {stored} stored"
    files = read_files(folder).filter(pl.col("table").is_not_null() & pl.col("rows_read").is_not_null())
    for file, table, told in files.select("file", "table", "rows_read").iter_rows():
        rows = rows_of(entries[file], has_header=format_ not in NO_HEADER) if file in entries else None
        if rows is not None and (int(told) > rows or (int(told) < rows and not format_.startswith(JOINED))):
            return f"rows: {table}: {told} rows of {file} in the account, {rows} in the file"
    return ""


def omitted(folder: Path, entries: Entries, entry: dict) -> str:
    """Which entry of the folder was neither read nor named as left out."""
    named = set(read_files(folder)["file"].to_list())
    left = [name for name in entries if not name.startswith(".") and not name.upper().startswith("README")]
    silent = [name for name in left if name not in named and f"raw/{name}" not in str(entry)]
    return f"omission: {', '.join(silent)}" if silent else ""


def read_files(folder: Path) -> pl.DataFrame:
    """The study's account of the entries of the folder."""
    return pl.read_csv(folder / "results" / "mine" / "quality" / "raw_files.csv", glob=False, infer_schema=False)


def rows_of(content: bytes | Odd, has_header: bool) -> int | None:
    """How many rows a table has, counted by other means than the study's; None where that cannot be known so."""
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
    """The bytes of a table that may be packed; None where they cannot be told."""
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
    except Exception:  # whatever is amiss with a packing, the study has to say it
        return None
    return content
