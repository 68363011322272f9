"""`make verify`: are the results what the manifest says? One line for each file that is not; exit code 1 if any."""

import sys

from ttf.errors import StudyError
from ttf.provenance.read import Manifest, in_order, problems


def main() -> int:
    try:
        manifest = Manifest.read()
    except StudyError as error:
        print(error, file=sys.stderr)
        return 1
    found = problems(manifest)
    print("\n".join(found) or in_order(manifest))
    return bool(found)


sys.exit(main())
