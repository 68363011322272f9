"""`ttf explain`: trace a product, or a number of the report, back to its origin."""

import shutil
import sys
from pathlib import Path

from ttf.commands.error_ending import with_error_ending
from ttf.engine.provenance.explain import explain
from ttf.engine.provenance.manifest_graph import Manifest
from ttf.study.studies import STUDIES, choose_study


@with_error_ending(1)
def print_explanation(study: str, file: str, key: str, is_verbose: bool) -> int:
    """Print the origin of a product, or of a number by its key in a metrics.json; return the exit status.

    study: default the study of the file, or the most recent one. is_verbose: every job down to the raw files.
    """
    parts = Path(file).parts
    name = choose_study(study or (parts[2] if parts[:2] == STUDIES.parts and len(parts) > 3 else ""))
    print(f"study {name}", file=sys.stderr)
    manifest = Manifest.read(STUDIES / name / "manifest.json")
    width = shutil.get_terminal_size((100, 24)).columns
    print(explain(manifest, file or None, key or None, is_verbose, width))
    return 0
