"""The key of the pseudonyms: beside the raw data, for its owner alone, and never published."""

import contextlib
import os
from pathlib import Path

KEY = Path("data/.key-of-pseudonyms")


def made_key(file: Path) -> Path:
    """The file, with 32 random bytes where it was not there yet: with another key everybody has another name."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(f"{file.name}.{os.getpid()}")
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(os.urandom(32))
        with contextlib.suppress(FileExistsError):  # of two that make it at once, the first
            os.link(new, file)
        new.unlink()
    return file
