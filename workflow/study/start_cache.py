"""What a start works out of texts, for the starts that follow: a file of JSON for each, by the digest of the texts.

It is read and never run. A damaged file is as good as none; where none can be written, each start works it out anew.
"""

import contextlib
import hashlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

# So many are kept, those that were written last.
_MOST = 20
_folder: Path | None = None


def remember_in(folder: Path) -> None:
    """From now on this process reads what others have left in the folder, and leaves there what it works out."""
    global _folder
    _folder = folder.absolute()


def remembered(work_out: Callable[[], Any], *texts: bytes) -> Any:
    """What `work_out` makes of these texts, of which one is the program that does it.

    What JSON cannot hold is given and not remembered.
    """
    if _folder is None:
        return work_out()
    digest = hashlib.sha256(b"\0".join(texts)).hexdigest()
    file = _folder / f"{digest}.json"
    with contextlib.suppress(OSError, ValueError, RecursionError):
        return json.loads(file.read_bytes())
    value = work_out()
    with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
        _folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_folder) as half:  # no other process reads a half
            Path(half, file.name).write_text(json.dumps(value), encoding="utf-8")
            Path(half, file.name).replace(file)
        for old in sorted(_folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)[:-_MOST]:
            old.unlink()
    return value
