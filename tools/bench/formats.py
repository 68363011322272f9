"""Compare reading a Slurm dump with plain pandas on the same file.

Both sides are whole processes. The study checks every row, stores the typed table and derives jobs and attempts by the
functions that its rules call. `formats.py FILE` makes that file.
"""

import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import sacct_million
from clock import ROOT, machine, measure_in_turn

RECORDS = 1_000_000
STUDY = """
import sys
from dataclasses import replace
from pathlib import Path
import polars as pl
from ttf.formats.protocol import Source, load_format, load_schemas_and_readers
from ttf.raw.ingest import ingest
from ttf.study.recognition.format_declarations import load_formats, read_schema_text
file = Path(sys.argv[1])
declaration = load_formats()["sacct"]
text = read_schema_text(Path(sys.argv[2], "scripts/ttf/formats/sacct/format.yaml"))
schemas, readers = load_schemas_and_readers(declaration["reader"], {}, text)
folder = file.parent / "typed"
folder.mkdir(exist_ok=True)
ingest({"record": [file]}, schemas, folder, 0, readers)
code, source = load_format(declaration["code"]), Source({"record": pl.scan_parquet(folder / "record.parquet")})
source = replace(source, records=code.records(source))
jobs, attempts = (table(source).lazy().collect() for table in (code.jobs, code.attempts))
print(jobs.height, attempts.height)
"""


def compare(folder: Path, rounds: int) -> dict:
    """Measure the costs of both sides and the size of the file; add the machine."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "dump.txt"
    if not path.exists():
        # In a separate process: memory of this one would count as its children's.
        subprocess.run([sys.executable, __file__, str(path)], check=True)
    commands = {
        "study": [sys.executable, "-c", STUDY, str(path), str(ROOT)],
        "peer": [sys.executable, str(ROOT / "tools/bench/peers/pandas_sacct.py"), str(path)],
    }
    costs = {side: asdict(cost) for side, cost in measure_in_turn(commands, folder, rounds).items()}
    slurm = {"rows": RECORDS, "megabytes": path.stat().st_size / 1e6} | costs
    return {"slurm": slurm, "machine": machine("pandas", "polars")}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(sacct_million.dump(RECORDS))
