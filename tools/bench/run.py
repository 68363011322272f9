"""Compare the study with common tools, and write the results to tools/bench/measured.json and docs/performance.md.

usage: run.py [SECTION ...] [--rounds N] [--keep FOLDER]; default: all sections.
"""

import argparse
import tempfile
from pathlib import Path

import full_size
import monday
import page
import performance
import reruns

# Section of measured.json -> measurement, called with (folder, rounds).
SECTIONS = {
    "full_size": full_size.compare,
    "reruns": lambda folder, _: reruns.compare(folder),
    "page": page.compare,
    "monday": lambda folder, _: monday.compare(folder),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], default=[])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="keep the samples and the products in this folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.keep or Path(temporary)).resolve()
        for section in arguments.sections or SECTIONS:
            results = SECTIONS[section](folder / section, arguments.rounds)
            # Written after each section, so that a late error does not lose an hour of measurements.
            performance.write(performance.read() | {section: results})


if __name__ == "__main__":
    main()
