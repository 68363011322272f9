"""What a start has worked out of texts, for the starts that follow: by the digest of the texts, in a file of JSON.

It is read and never run. A damaged file is as good as none; where none can be written, each start works it out anew.
"""

import atexit
import contextlib
import hashlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

# So many are kept; of more than these, those that the last start has used.
_MOST = 2000
_file: Path | None = None
_stored: dict[str, str] = {}
_used: dict[str, str] = {}


def remember_in(file: Path) -> None:
    """From now on this process reads what others have left in the file, and leaves at its end what it has."""
    global _file
    _file = file.absolute()
    with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
        _stored.update(json.loads(_file.read_bytes()))
    atexit.register(_write)


def remembered(work_out: Callable[[], Any], *texts: bytes) -> Any:
    """What `work_out` makes of these texts, of which one is the program that does it; a value of its own each time.

    What JSON cannot hold is given and not remembered.
    """
    if _file is None:
        return work_out()
    digest = hashlib.sha256(b"\0".join(texts)).hexdigest()
    if digest not in _used:
        if digest not in _stored:
            value = work_out()
            with contextlib.suppress(ValueError, TypeError, RecursionError):
                _used[digest] = json.dumps(value)
            return value
        _used[digest] = _stored[digest]
    return json.loads(_used[digest])


def _write() -> None:
    """In one step, so that no other process reads a half."""
    if _used.items() <= _stored.items():
        return
    every = _stored | _used
    with contextlib.suppress(OSError):
        _file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_file.parent) as folder:
            half = Path(folder, _file.name)
            half.write_text(json.dumps(every if len(every) <= _MOST else _used), encoding="utf-8")
            half.replace(_file)
