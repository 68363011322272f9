"""`make explain FILE=results/... KEY=...`: where a product, or a number of the report, comes from."""

from ttf.engine.process.stopping import run_apart

if __name__ == "__main__":
    run_apart()

import argparse
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow"))

from study.studies import STUDIES, choose_study
from ttf.engine.errors import StudyError
from ttf.engine.provenance.explain import explain
from ttf.engine.provenance.manifest_graph import Manifest


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--file", default="", help="a product, such as results/sample/tables/mttf.csv")
    arguments.add_argument("--key", default="", help="a number in a metrics.json, such as mttf.mttf_s")
    arguments.add_argument("--verbose", action="store_true", help="of a number too every job down to the raw files")
    arguments.add_argument("--study", default="", help="by default that of the file, or the study made last")
    given = arguments.parse_args()
    try:
        parts = Path(given.file).parts
        name = choose_study(given.study or (parts[2] if parts[:2] == STUDIES.parts and len(parts) > 3 else ""))
        print(f"study {name}", file=sys.stderr)
        manifest = Manifest.read(STUDIES / name / "manifest.json")
        width = shutil.get_terminal_size((100, 24)).columns
        print(explain(manifest, given.file or None, given.key or None, given.verbose, width))
    except StudyError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


sys.exit(main())
