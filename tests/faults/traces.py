"""A small, good trace of every format: what mutations begin with."""

import json
import shutil
import tempfile
from functools import cache
from pathlib import Path

from prefixes import MADE, cut

# Of each made trace so many rows a file are enough.
ROWS = {"pai2020": None, "sacct_with_events": 400}
FORMATS = tuple(name for name in MADE if name != "philly_sample")


@cache
def trace(name: str) -> tuple[dict[str, bytes], dict]:
    """The raw files of a good trace, by name, and its entry in the registry; they are to lie in the folder `raw`."""
    with tempfile.TemporaryDirectory() as place:
        raw = Path(place) / "raw"
        raw.mkdir()
        entry = MADE[name](raw)
        # What is named by a key of its own may lie in the folder too.
        for file in [*raw.with_name("beside").glob("*"), *raw.parent.glob("*.csv")]:
            shutil.move(file, raw)
        rows = ROWS.get(name, 120)
        for file in raw.iterdir() if rows else ():
            cut(file, rows, headed=True)
        files = {file.name: file.read_bytes() for file in sorted(raw.iterdir())}
    named = json.dumps(entry).replace('"beside/', '"raw/').replace('"losses.csv"', '"raw/losses.csv"')
    return files, json.loads(named) | {"folder": "raw"}
