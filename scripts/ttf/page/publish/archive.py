"""A reproducible tar file of the results.

Not a BagIt bag: its files would lie below data/, where ro-crate-metadata.json and the pages do not find them.
"""

import io
import lzma
import tarfile
from collections.abc import Iterable
from datetime import UTC, datetime

from ttf.page.publish.files import PackedFile


def pack_tar(files: Iterable[PackedFile], folder: str, date: str) -> bytes:
    """Return an xz tar of the files in one folder, sorted by path, mode 644, dated `date` (YYYY-MM-DD) at 0:00 UTC.

    The date is that of the publication, because tar warns of 1970.
    """
    # Preset 2 takes half as long again (2.8 instead of 1.9 s for 17 MB) and saves 2% of the size, preset 6 about 10%.
    seconds = int(datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp())
    buffer = io.BytesIO()
    with (
        lzma.open(buffer, "wb", preset=1) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for file in sorted(files, key=lambda file: file.path):
            entry = tarfile.TarInfo(f"{folder}/{file.path}")
            entry.size, entry.mtime, entry.mode = len(file.content), seconds, 0o644
            tar.addfile(entry, io.BytesIO(file.content))
    return buffer.getvalue()
