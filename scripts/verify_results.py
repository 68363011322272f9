"""`make verify`: are the results of a study what its manifest says, or the files of a folder what the list in it says?

A line for each that is not. Exit code 0: all is; 1: not all is; 2: it cannot be told, as there is no manifest or no
list, or as something cannot be read.
"""

from ttf.engine.process.stopping import run_apart

if __name__ == "__main__":
    run_apart()

import argparse
import sys
from pathlib import Path

# Nothing but Python's own library here and for a folder: whoever received one has no environment.
from ttf.engine.errors import StudyError
from ttf.engine.provenance import seal

# More is told by their number: with what stands around them a message is 40 lines at most.
MOST_LINES = 38


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", default="", help="by default the study made last")
    parser.add_argument("--folder", help="an unpacked archive, or a site")
    given = parser.parse_args(arguments)
    try:
        found, fine = _of_folder(Path(given.folder)) if given.folder else _of_study(given.study)
    except StudyError as error:
        print(error, file=sys.stderr)
        return 1 if isinstance(error, seal.NotIntact) else 2
    except OSError as error:
        print(f"{seal.printable(str(error.filename or 'a file'))}: cannot be read: {error.strerror}", file=sys.stderr)
        return 2
    print("\n".join(found[:MOST_LINES]) or fine)
    if len(found) > MOST_LINES:
        print(f"and {len(found) - MOST_LINES:,} more")
    return bool(found)


def _of_folder(folder: Path) -> tuple[list[str], str]:
    """What is wrong, and what to say where nothing is."""
    try:
        found = seal.problems(folder)
    except FileNotFoundError:
        raise StudyError(f"{folder}: there is no {seal.NAME} in it, the list of what was published.") from None
    return found, "" if found else f"{seal.count(folder):,} files as they were published, none missing, none added."


def _of_study(name: str) -> tuple[list[str], str]:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow"))
    from study.studies import STUDIES, choose_study
    from ttf.engine.provenance.digests import CHECKOUT
    from ttf.engine.provenance.manifest import revision
    from ttf.engine.provenance.manifest_graph import Manifest, commit, in_order, problems

    name = choose_study(name)
    manifest = Manifest.read(STUDIES / name / "manifest.json")
    print(f"study {name}{commit(manifest['git'], revision(CHECKOUT))}", file=sys.stderr)
    return problems(manifest, STUDIES / name), in_order(manifest)


if __name__ == "__main__":
    # A file may be called by letters that the terminal lacks.
    sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(main())
