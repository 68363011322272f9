"""Sealed JSON: its second line is the SHA-256 of the text without that line. And the sealed list of a folder's files.

A seal tells what was changed by accident, or by someone who does not know of it. Who rewrites a file, the list and the
digest of the list is found out by a signature alone: docs/publishing.md. No more than Python's own library is needed
here, so that whoever received a folder can check it without an environment.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from ttf.engine.errors import StudyError
from ttf.engine.storage.plain_files import NotPlain, opened, what_lies_at

# The list of a folder lies in it, under this name, and so may a signature of the list; neither is in the list.
NAME = "checksums.json"
# What ssh-keygen and cosign put behind the name of the file that they sign.
SIGNATURES = (".sig", ".sigstore.json")
_OWN = {NAME, *(f"{NAME}{ending}" for ending in SIGNATURES)}
# Of a sealed file; the manifest of a study of thousands of parts has a fifth of it.
MOST_BYTES = 200 * 2**20

# Of a path that is shown.
LONGEST = 400

_SEAL = re.compile(rb'\{\n "digest": "([0-9a-f]{64})",\n')
_SHA256 = re.compile(r"[0-9a-f]{64}")


class NotIntact(StudyError):
    """A sealed file is not as it was written; the message does not say what to do."""


def sealed(facts: Mapping[str, Any]) -> bytes:
    """The facts, one at least, as JSON with their digest in the second line."""
    text = json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    # Names of files may be bytes that are no text.
    content = text.encode("utf-8", "surrogateescape")
    digest = hashlib.sha256(content).hexdigest().encode()
    return b'{\n "digest": "' + digest + b'",\n' + content.removeprefix(b"{\n")


def unsealed(file: Path) -> dict[str, Any]:
    """The facts of a sealed file. Raises NotIntact for any other; FileNotFoundError and other errors of reading."""
    try:
        with os.fdopen(opened(file), "rb") as stream:
            if os.fstat(stream.fileno()).st_size > MOST_BYTES:
                raise NotIntact(f"{file}: is longer than the {MOST_BYTES:,} bytes that it may have")
            content = stream.read()
    except NotPlain as error:
        raise NotIntact(f"{file}: is {error.strerror}, not the file that was written") from None
    seal = _SEAL.match(content)
    if not seal:
        raise NotIntact(
            f"{file}: has no digest of itself in its second line: an older version wrote it, or another hand"
        )
    rest = memoryview(content)[seal.end() :]
    digest = hashlib.sha256(b"{\n")
    digest.update(rest)
    if digest.hexdigest().encode() != seal[1]:
        raise NotIntact(f"{file}: changed since it was written: the digest in its second line is not that of the rest")
    try:
        return json.loads("{\n" + str(rest, "utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        raise NotIntact(f"{file}: is no JSON that can be read") from None


def list_of(contents: Iterable[tuple[str, bytes]]) -> bytes:
    """The sealed list of files that may not be on the disk yet: path in their folder, content."""
    files = {path: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()} for path, content in contents}
    return sealed({"files": dict(sorted(files.items()))})


def seal(folder: Path) -> None:
    """Write the list of all files that lie in the folder. Raises StudyError where it holds anything but files."""
    files = {}
    for path in sorted(there(folder)):
        if kind := what_lies_at(folder / path):
            raise StudyError(f"{folder / path}: is {kind}; only files can be published.")
        if path not in _OWN:
            files[path] = {"size": (folder / path).stat().st_size, "sha256": digest_of(folder / path)}
    (folder / NAME).write_bytes(sealed({"files": files}))


def problems(folder: Path) -> list[str]:
    """A line for each file that is not as the list in the folder has it, or for the list, if it is not intact.

    Raises FileNotFoundError if there is no list, OSError for what cannot be read.
    """
    try:
        listed = _listed(folder / NAME)
    except NotIntact as error:
        return [f"{error}. Get the folder anew from where it was published."]
    now = there(folder) - _OWN
    states = {path: _state(folder, path, listed.get(path), path in now) for path in sorted(listed.keys() | now)}
    return [f"{printable(path)}: {state}" for path, state in states.items() if state]


def count(folder: Path) -> int:
    """How many files an intact list has."""
    return len(_listed(folder / NAME))


def digest_of(path: Path) -> str:
    """SHA-256 of a file. Raises NotPlain."""
    with os.fdopen(opened(path), "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def printable(path: str) -> str:
    """A path on one line that ends, whatever letters it has."""
    text = path if path.isprintable() else ascii(path)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def is_entry(about: Any) -> bool:
    """Whether this is what is known of a file: its `size` in bytes and its `sha256`."""
    return (
        isinstance(about, dict)
        and type(about.get("size")) is int
        and 0 <= about["size"] < 2**63
        and isinstance(about.get("sha256"), str)
        and bool(_SHA256.fullmatch(about["sha256"]))
    )


def _listed(file: Path) -> dict[str, dict[str, Any]]:
    files = unsealed(file).get("files")
    if not isinstance(files, dict) or not all(is_inside(path) and is_entry(files[path]) for path in files):
        raise NotIntact(f"{file}: is no list of the files of a folder, each with its size and SHA-256")
    return files


def is_inside(path: str) -> bool:
    """Whether it is the plain name of something inside the folder."""
    try:
        os.fsencode(path)
    except ValueError:
        return False
    plain = PurePosixPath(path)
    return (
        str(plain) == path
        and bool(plain.parts)
        and not path.startswith("/")
        and "\0" not in path
        and ".." not in plain.parts
    )


def there(folder: Path) -> set[str]:
    """Paths in the folder of all that lies in it and its subfolders; links are not followed."""
    found, pending = set(), [""]
    while pending:
        below = pending.pop()
        with os.scandir(folder / below) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(f"{below}{entry.name}/")
                else:
                    found.add(f"{below}{entry.name}")
    return found


def _state(folder: Path, path: str, about: Mapping[str, Any] | None, there: bool) -> str:
    """What is wrong with a file; nothing where nothing is."""
    if not there:
        return "missing"
    if kind := what_lies_at(folder / path):
        return f"{kind} was put there"
    if about is None:
        return "added; the list does not have it"
    size = (folder / path).stat().st_size
    if size != about["size"]:
        return f"changed; it has {size:,} bytes and had {about['size']:,}"
    return "" if digest_of(folder / path) == about["sha256"] else "changed; it has another SHA-256 than it had"
