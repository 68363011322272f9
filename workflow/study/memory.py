"""What a start has worked out of a text, for the starts that follow: by the digest of the text, in .snakemake/.

JSON, which is read and never run. What is damaged, too large or of another version of the program that worked it out is
as good as none; where none can be written, each start works it out anew.
"""

import atexit
import contextlib
import hashlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

_LARGEST = 20_000_000  # bytes
# So many are kept; of more than these, those that the last start has used.
_MOST = 2000
_folder: Path | None = None


def remember_in(folder: Path) -> None:
    """From now on this process reads what others have left in the folder, and leaves at its end what it has."""
    global _folder
    _folder = folder.absolute()


class Memory:
    """What is worked out of one kind. program: the file that does it, of which another version remembers nothing."""

    def __init__(self, kind: str, program: str) -> None:
        self._kind, self._program = kind, Path(program)
        self._known: dict[str, str] | None = None
        self._used: dict[str, str] = {}

    def of(self, content: bytes, work_out: Callable[[], Any], is_one: Callable[[Any], bool]) -> Any:
        """What `work_out` gives of this content; what JSON cannot hold is given and not remembered.

        is_one: of what was remembered, whether it can be what is asked for.
        """
        if _folder is None:
            return work_out()
        if self._known is None:
            self._known = self._read(_folder)
            atexit.register(self._write, _folder)
        digest = hashlib.sha256(content).hexdigest()
        with contextlib.suppress(KeyError, ValueError, TypeError, RecursionError):
            if is_one(found := json.loads(self._known[digest])):
                self._used[digest] = self._known[digest]
                return found
        found = work_out()
        with contextlib.suppress(ValueError, TypeError, RecursionError):
            self._used[digest] = json.dumps(found)
        return found

    def _version(self) -> str:
        return hashlib.sha256(self._program.read_bytes()).hexdigest()

    def _read(self, folder: Path) -> dict[str, str]:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            file = folder / f"{self._kind}.json"
            if file.is_file() and file.stat().st_size <= _LARGEST:
                kept = json.loads(file.read_bytes())
                if kept["version"] == self._version():
                    return dict(kept["known"])
        return {}

    def _write(self, folder: Path) -> None:
        """In one step, so that no other process reads a half."""
        if self._used.items() <= self._known.items():
            return
        every = self._known | self._used
        kept = {"version": self._version(), "known": every if len(every) <= _MOST else self._used}
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            half, name = tempfile.mkstemp(dir=folder, prefix=f".{self._kind}-")
            try:
                with open(half, "w", encoding="utf-8") as file:  # noqa: PTH123 as a number it is open already
                    json.dump(kept, file)
                Path(name).replace(folder / f"{self._kind}.json")
            except OSError:
                Path(name).unlink()
                raise
