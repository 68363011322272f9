"""SHA-256 of files and folders, and whether a product is unchanged since its rule ended."""

import contextlib
import hashlib
import json
import os
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ttf.engine.checkout import find_workflow_file, list_workflow_files, name_workflow_file
from ttf.engine.provenance.syntax import read_syntax
from ttf.engine.storage.plain_files import replace_file

SNAKEMAKE = Path(".snakemake")
MEMORY = SNAKEMAKE / "sha256.json"
# Snakemake writes this file into a folder that a rule made.
TIMESTAMP = ".snakemake_timestamp"
# Files that affect results without being the input of a job: rules, formats, schemas, settings, page templates.
WORKFLOW = ("Snakefile", "workflow", "scripts", "config", "report")
# The thresholds of `ttf check` do not affect results; a packed sample is an input of the rule that unpacks it.
_IGNORED = ("config/thresholds.yaml", "workflow/samples/")


def manifest_name(path: str) -> str:
    """Return the name of a file in the manifest: for a file of the workflow its name there, else `path` itself."""
    return name_workflow_file(Path.cwd() / path) or path


def locate_file(name: str) -> Path:
    """Return the file of a manifest name: relative to the working folder, else of the workflow."""
    file = Path(name)
    return file if file.exists() else find_workflow_file(name)


def list_members(path: str) -> list[str]:
    """Return the file itself, or all files of a folder and its subfolders, sorted."""
    if not Path(path).is_dir():
        return [path]
    return sorted(str(file) for file in Path(path).rglob("*") if file.is_file() and file.name != TIMESTAMP)


def list_code_files() -> list[str]:
    """Return the names of the workflow's own files, sorted, whether or not a study uses them."""
    return [name for name in list_workflow_files(WORKFLOW) if not name.startswith(_IGNORED)]


def workflow_digest() -> str:
    """Return one digest of the workflow's files, so that Snakemake updates the manifest after a change."""
    # One after the other: for a thousand small files threads take twice the time.
    lines = (f"{_sha256(find_workflow_file(name))}  {name}\n" for name in list_code_files())
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def digest_folder(path: str, digests: dict[str, str]) -> str:
    """Return one digest of a folder, from the names and digests of its files."""
    lines = (f"{digests[file]}  {Path(file).relative_to(path)}\n" for file in list_members(path))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def sha256(paths: Iterable[Path]) -> list[str]:
    """Return the digest of each file, computed in parallel; for a Python module the digest of its syntax."""
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(_sha256, paths))


def _sha256(path: Path) -> str:
    if path.suffix == ".py":
        with contextlib.suppress(SyntaxError, ValueError):
            return read_syntax(path).digest
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class DigestCache:
    """Cache of digests by size and modification time, so that raw files of many GB are read once per change."""

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._entries = dict(json.loads(file.read_text(encoding="utf-8")))
            if not all(isinstance(entry, list) and len(entry) == 3 for entry in self._entries.values()):
                self._entries = {}
        except (OSError, ValueError, TypeError, RecursionError):
            self._entries = {}

    def digests(self, paths: Iterable[str]) -> dict[str, str]:
        """Return path -> digest; read a file only if its size or modification time differs from the cached ones."""
        paths = list(paths)
        unread = [path for path in paths if self._entries.get(path, [])[:2] != _size_and_mtime(path)]
        new_digests = dict(zip(unread, sha256(Path(path) for path in unread), strict=True))
        return {path: new_digests.get(path) or self._entries[path][2] for path in paths}

    def cached_digest(self, path: str) -> str | None:
        """Return the cached digest of a file, or None."""
        return self._entries[path][2] if path in self._entries else None

    def store(self, digests: dict[str, str]) -> None:
        """Cache the digests (path -> digest) with the present size and time of each file, on the disk too."""
        self._entries |= {path: [*_size_and_mtime(path), digest] for path, digest in digests.items()}
        replace_file(self._file, json.dumps(self._entries))


def remember_files(paths: Iterable[str | Path]) -> None:
    """Cache the digests of files that a command wrote; otherwise `ttf verify` would report them as unknown."""
    with contextlib.suppress(OSError):
        memory = DigestCache(MEMORY)
        memory.store(memory.digests(map(os.path.relpath, paths)))


def is_unchanged(path: str) -> bool:
    """Whether a product exists and matches the last manifest, in which it was unedited."""
    return Path(path).is_file() and DigestCache(MEMORY).cached_digest(path) == _sha256(Path(path))


def _size_and_mtime(path: str) -> list[int]:
    status = Path(path).stat()
    return [status.st_size, status.st_mtime_ns]


def read_end_time(output: str) -> float | None:
    """Return the modification time of a rule's output when the rule ended, or None without a record."""
    try:
        return json.loads(_snakemake_record_path(output).read_text(encoding="utf-8"))["endtime"]
    except (OSError, ValueError, KeyError):
        return None


def has_rule_record(file: str) -> bool:
    """Whether Snakemake keeps a record of the file or of a parent folder."""
    return any(_snakemake_record_path(output).is_file() for output in (file, *map(str, Path(file).parents[:-1])))


def _snakemake_record_path(output: str) -> Path:
    name = urlsafe_b64encode(output.encode()).decode()
    # As snakemake.persistence.file: a long name is split over folders.
    parts = [name[start : start + 254] for start in range(0, len(name), 254)]
    return SNAKEMAKE.joinpath("metadata", *(f"@{part}" for part in parts[:-1]), parts[-1])


def is_touched(file: str, output: str) -> bool:
    """Whether a file was written after the rule that made it or its folder had ended; False if unknown."""
    finished = read_end_time(output)
    if finished is None:
        return False
    delay_s = Path(file).stat().st_mtime - finished
    # The record of a folder is later than its files.
    return delay_s > 0.001 or (file == output and delay_s < -0.001)
