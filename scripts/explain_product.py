"""`make explain FILE=results/...`: the chain from a product, or a number of the report, back to the raw files."""

import argparse
import shutil
import sys

from ttf.errors import StudyError
from ttf.provenance.explain import explain
from ttf.provenance.read import Manifest


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("file", help="a product, such as results/sample/tables/mttf.csv")
    arguments.add_argument("key", nargs="?", help="a number in a metrics.json, such as mttf.mttf_s")
    given = arguments.parse_args()
    try:
        print(explain(Manifest.read(), given.file, given.key, shutil.get_terminal_size((100, 24)).columns))
    except StudyError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


sys.exit(main())
