"""`make verify`: are the results of a study what its manifest says? A line for each that is not; exit code 1 if any."""

from ttf.stopping import stop_on_request

if __name__ == "__main__":
    stop_on_request()

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow"))

from study.documents import ConfigError
from study.studies import STUDIES, chosen
from ttf.errors import StudyError
from ttf.provenance.read import Manifest, in_order, problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", default="", help="by default the study made last")
    try:
        name = chosen(parser.parse_args().study)
        manifest = Manifest.read(STUDIES / name / "manifest.json")
    except (ConfigError, StudyError) as error:
        print(error, file=sys.stderr)
        return 1
    found = problems(manifest)
    print(f"study {name}", file=sys.stderr)
    print("\n".join(found) or in_order(manifest))
    return bool(found)


sys.exit(main())
