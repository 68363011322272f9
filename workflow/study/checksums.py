"""The checksum of a file is taken once in a run, for as long as the file stays as it is.

Snakemake keeps those of a job's inputs with each of its outputs, and reads every input anew for each: after the charts
of a trace, 70 files from 40 tables, the page waited half a second for it.
"""

from pathlib import Path
from typing import Any


def take_each_once() -> None:
    """From now on, in this process."""
    from snakemake.io import _IOFile

    _IOFile.checksum = _once(_IOFile.checksum)


def _once(take: Any) -> Any:
    known = {}

    async def checksum(file: Any, *of: Any, **more: Any) -> str | None:
        try:
            about = None if file.is_storage else Path(file.file).stat()
        except OSError:
            about = None
        if about is None:
            return await take(file, *of, **more)
        # Whatever writes to a file changes the last of these.
        key = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns, of, *more.items())
        if key not in known:
            known[key] = await take(file, *of, **more)
        return known[key]

    return checksum
