"""The key of the pseudonyms: stored with the raw data, readable by its owner only, never published."""

import contextlib
import os
from pathlib import Path

KEY = Path("data/.key-of-pseudonyms")


def ensure_key(file: Path) -> Path:
    """Return the key file; create it with 32 random bytes if missing. Another key gives other pseudonyms."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_name(f"{file.name}.{os.getpid()}")
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(os.urandom(32))
        with contextlib.suppress(FileExistsError):  # if two processes create it at once, the first wins
            os.link(unfinished, file)
        unfinished.unlink()
    return file
