"""`ttf verify`: compare the results of a study with its manifest, or the files of a folder with the list in it.

Prints a line per difference. Exit status 0: no difference; 1: at least one; 2: no manifest, no list, or an unreadable
file. Who received an archive or a site has no environment: PYTHONPATH=scripts python3 -m ttf.commands.verify FOLDER
"""

import json
import sys
from pathlib import Path

# Only Python's standard library here and for a folder, because its recipient has no environment.
from ttf.commands.error_ending import with_error_ending
from ttf.engine.errors import StudyError
from ttf.engine.provenance import seal

# Further differences are only counted, so that the message has at most 40 lines.
MOST_LINES = 38


@with_error_ending(2)
def verify(study: str = "", folder: str = "", is_json: bool = False) -> int:
    """Print what differs in the folder, else in the study, by default the most recent; return the exit status."""
    try:
        if folder:
            differences, confirmation = _find_folder_problems(Path(folder))
        else:
            differences, confirmation = _find_study_problems(study)
    except seal.Tampered as error:
        differences, confirmation = [str(error)], ""
    if is_json:
        print(json.dumps({"differences": differences}))
        return bool(differences)
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
    from ttf.engine.checkout import CHECKOUT
    from ttf.engine.provenance.manifest import revision
    from ttf.engine.provenance.manifest_graph import Manifest, commit_clause, find_problems, success_message
    from ttf.study.studies import STUDIES, choose_study

    name = choose_study(name)
    manifest = Manifest.read(STUDIES / name / "manifest.json")
    print(f"study {name}{commit_clause(manifest['git'], revision(CHECKOUT))}", file=sys.stderr)
    return find_problems(manifest, STUDIES / name), success_message(manifest)


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.exit(verify(folder=sys.argv[1]))
