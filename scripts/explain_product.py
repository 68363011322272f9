"""`make explain FILE=results/... KEY=...`: trace a product, or a number of the report, back to its origin."""

from ttf.engine.process.stopping import run_in_child

if __name__ == "__main__":
    run_in_child()

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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", default="", help="a product, such as results/sample/tables/mttf.csv")
    parser.add_argument("--key", default="", help="a number in a metrics.json, such as mttf.mttf_s")
    parser.add_argument("--verbose", action="store_true", help="also every job behind a number, down to the raw files")
    parser.add_argument("--study", default="", help="default: the study of the file, or the most recent study")
    options = parser.parse_args()
    try:
        parts = Path(options.file).parts
        name = choose_study(options.study or (parts[2] if parts[:2] == STUDIES.parts and len(parts) > 3 else ""))
        print(f"study {name}", file=sys.stderr)
        manifest = Manifest.read(STUDIES / name / "manifest.json")
        width = shutil.get_terminal_size((100, 24)).columns
        print(explain(manifest, options.file or None, options.key or None, options.verbose, width))
    except StudyError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


sys.exit(main())
