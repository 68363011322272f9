"""A small valid trace of every format, as the input of mutations."""

import json
import shutil
import tempfile
from functools import cache
from pathlib import Path

from edge_traces import MADE, cut

# Rows per file of a made trace; None keeps all.
ROWS = {"pai2020": None, "sacct_with_events": 400}
FORMATS = tuple(name for name in MADE if name != "philly_sample")


@cache
def trace(name: str) -> tuple[dict[str, bytes], dict]:
    """Return the raw files of a valid trace by name and its registry entry, which expects them in `raw`."""
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "raw"
        raw.mkdir()
        entry = MADE[name](raw)
        # Files named by other keys of the entry may be in the folder too.
        for file in [*raw.with_name("beside").glob("*"), *raw.parent.glob("*.csv")]:
            shutil.move(file, raw)
        rows = ROWS.get(name, 120)
        for file in raw.iterdir() if rows else ():
            cut(file, rows, headed=True)
        files = {file.name: file.read_bytes() for file in sorted(raw.iterdir())}
    named = json.dumps(entry).replace('"beside/', '"raw/').replace('"losses.csv"', '"raw/losses.csv"')
    return files, json.loads(named) | {"folder": "raw"}
