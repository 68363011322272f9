"""Make synthetic traces: the embedded samples, packed into workflow/samples/, or one of any size as raw tables.

usage: make.py
       make.py {pai2020,philly,sacct} [--size N] --out FOLDER
"""

import argparse
import hashlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools/bench"))

from ttf.engine.errors import StudyError  # noqa: E402
from ttf.formats.format_declaration import load_declaration  # noqa: E402

from samples.pack import EMBEDDED, packed_sample, write_tables  # noqa: E402


def pack_embedded() -> bool:
    """Write the embedded samples; return whether each has the checksum that its format declares."""
    as_declared = True
    for name, (size, seed) in EMBEDDED.items():
        sample = load_declaration(name)["sample"]
        content = packed_sample(name, size, seed).encode()
        (ROOT / sample["packed"]).write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        is_same = digest == sample["sha256"]
        as_declared &= is_same
        verdict = "as declared" if is_same else f"not as declared; its SHA-256 is {digest}"
        print(f"{sample['packed']}: {len(content):,} bytes, {verdict}")
    return as_declared


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("format", nargs="?", choices=EMBEDDED)
    parser.add_argument("--size", type=int, help="jobs (pai2020: tasks); default: as in the embedded sample")
    parser.add_argument("--out", type=Path, help="folder for the raw tables")
    options = parser.parse_args()
    if options.format is None:
        sys.exit(not pack_embedded())
    if options.out is None:
        parser.error("--out is missing: name a folder for the raw tables")
    size, seed = EMBEDDED[options.format]
    size = size if options.size is None else options.size
    try:
        rows = write_tables(options.format, size, seed, options.out)
    except StudyError as error:
        sys.exit(f"error: {error}")
    print(f"{options.out}: {sum(rows.values()):,} rows in {len(rows)} tables (synthetic)")


if __name__ == "__main__":
    main()
