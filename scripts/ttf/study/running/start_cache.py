"""A cache of what a start computes from files of the workflow: one JSON file per result, named after their digest.

It lies beside the bytecode of this module, for all folders with studies; in an installation that is read-only, in the
folder of the study. The files are data, never code. A damaged file is ignored.
"""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Number of most recent files in the cache; a version of the workflow has 15.
_MOST = 60
_BYTECODE = Path(__file__).with_name("__pycache__")
_folder = _BYTECODE if os.access(_BYTECODE, os.W_OK) else None


def use_cache_folder(folder: Path) -> None:
    """Make this process read and write cached results in the folder, unless the one of the bytecode is writable."""
    global _folder  # noqa: PLW0603 (one cache of a process)
    _folder = _folder or folder.absolute()


def load_or_compute(compute: Callable[[], Any], *texts: bytes) -> Any:
    """Return what `compute` makes of these texts, one of which is its own code; cached if JSON can hold it."""
    if _folder is None:
        return compute()
    digest = hashlib.sha256(b"\0".join(texts)).hexdigest()
    file = _folder / f"{digest}.json"
    with contextlib.suppress(OSError, ValueError, RecursionError):
        return json.loads(file.read_bytes())
    value = compute()
    with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
        _folder.mkdir(parents=True, exist_ok=True)
        # Renamed, so that no process reads an incomplete file.
        with tempfile.TemporaryDirectory(dir=_folder) as temporary_folder:
            new_file = Path(temporary_folder, file.name)
            new_file.write_text(json.dumps(value), encoding="utf-8")
            new_file.replace(file)
        for old_file in sorted(_folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)[:-_MOST]:
            old_file.unlink()
    return value
