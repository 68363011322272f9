"""A cache of what a start computes from texts: one JSON file per result, named after the digest of the texts.

The files are data, never code. A damaged file is ignored; without a writable folder, each start computes anew.
"""

import contextlib
import hashlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Number of most recent files in the cache.
_MOST = 20
_folder: Path | None = None


def use_cache_folder(folder: Path) -> None:
    """Make this process read and write cached results in the folder."""
    global _folder  # noqa: PLW0603 (one cache of a process)
    _folder = folder.absolute()


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
