"""A tar file that has the same bytes whenever its files have."""

import io
import lzma
import tarfile
from collections.abc import Iterable
from datetime import UTC, datetime

from ttf.publish.files import Published


def tar_of(files: Iterable[Published], folder: str, date: str) -> bytes:
    """The files under one folder, by path: without an owner, mode 644, all of the day `date` (YYYY-MM-DD) at 0:00 UTC.

    A day that is the publication's rather than 1970, at which tar would warn.
    """
    seconds = int(datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp())
    packed = io.BytesIO()
    with (
        lzma.open(packed, "wb", preset=6) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for file in sorted(files, key=lambda file: file.path):
            entry = tarfile.TarInfo(f"{folder}/{file.path}")
            entry.size, entry.mtime, entry.mode = len(file.content), seconds, 0o644
            tar.addfile(entry, io.BytesIO(file.content))
    return packed.getvalue()
