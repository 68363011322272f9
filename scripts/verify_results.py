"""`make verify`: compare the results of a study with its manifest, or the files of a folder with the list in it.

Prints a line per difference. Exit code 0: no difference; 1: at least one; 2: no manifest, no list, or an unreadable
file.
"""

from ttf.engine.process.stopping import run_in_child

if __name__ == "__main__":
    run_in_child()

import argparse
import sys
from pathlib import Path

# Only Python's standard library here and for a folder, because its recipient has no environment.
from ttf.engine.errors import StudyError
from ttf.engine.provenance import seal

# Further differences are only counted, so that the message has at most 40 lines.
MOST_LINES = 38


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", default="", help="default: the most recent study")
    parser.add_argument("--folder", help="an unpacked archive, or a site")
    options = parser.parse_args(arguments)
    try:
        if options.folder:
            differences, confirmation = _find_folder_problems(Path(options.folder))
        else:
            differences, confirmation = _find_study_problems(options.study)
    except StudyError as error:
        print(error, file=sys.stderr)
        return 1 if isinstance(error, seal.Tampered) else 2
    except OSError as error:
        print(f"{seal.show_path(str(error.filename or 'a file'))}: cannot be read: {error.strerror}", file=sys.stderr)
        return 2
    print("\n".join(differences[:MOST_LINES]) or confirmation)
    if len(differences) > MOST_LINES:
        print(f"and {len(differences) - MOST_LINES:,} more")
    return bool(differences)


def _find_folder_problems(folder: Path) -> tuple[list[str], str]:
    """Return the lines about files that differ from the list, and the message if there are none."""
    try:
        differences = seal.find_problems(folder)
    except FileNotFoundError:
        raise StudyError(f"{folder}: there is no {seal.NAME} in it, the list of what was published.") from None
    if differences:
        return differences, ""
    return [], f"{seal.count_files(folder):,} files as they were published, none missing, none added."


def _find_study_problems(name: str) -> tuple[list[str], str]:
    """Return the lines about files that differ from the manifest, and the message if there are none."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "workflow"))
    from study.studies import STUDIES, choose_study
    from ttf.engine.provenance.digests import CHECKOUT
    from ttf.engine.provenance.manifest import revision
    from ttf.engine.provenance.manifest_graph import Manifest, commit_clause, find_problems, success_message

    name = choose_study(name)
    manifest = Manifest.read(STUDIES / name / "manifest.json")
    print(f"study {name}{commit_clause(manifest['git'], revision(CHECKOUT))}", file=sys.stderr)
    return find_problems(manifest, STUDIES / name), success_message(manifest)


if __name__ == "__main__":
    # A file name may have letters that the terminal lacks.
    sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(main())
