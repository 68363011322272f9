"""`make docs`: write workflow/files.txt, the files that another workflow fetches if it uses this one as a module.

The first line is a digest of all files, the others are their names. It is valid for releases only: at other commits the
files differ from the digest, and a message asks the user to name a release.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "workflow"))

from study.publication import SOURCES  # noqa: E402

FILES = "workflow/files.txt"


def text() -> str:
    """Return the content of the file, from the files that git tracks."""
    listing = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--", *SOURCES], capture_output=True, check=True, text=True
    )
    names = [name for name in sorted(listing.stdout.splitlines()) if name != FILES and (ROOT / name).is_file()]
    digest = hashlib.sha256()
    for name in names:
        digest.update(f"{name} {hashlib.sha256((ROOT / name).read_bytes()).hexdigest()}\n".encode())
    return "\n".join([digest.hexdigest()[:16], *names]) + "\n"


if __name__ == "__main__":
    (ROOT / FILES).write_text(text(), encoding="utf-8")
