"""Sealed JSON, whose second line is the SHA-256 of the rest of the text, and the sealed list of a folder's files.

A seal reveals changes by accident or by someone who does not know of it. Only a signature protects against someone who
rewrites a file, the list and its digest: docs/publishing.md. This module uses only the standard library, so that the
recipient of a folder can check it without an environment.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from ttf.engine.errors import StudyError
from ttf.engine.storage.plain_files import NotPlainFileError, describe_non_file, open_file

# The list of a folder lies in it under this name, with signatures of the list; neither is in the list.
NAME = "checksums.json"
# The suffixes that ssh-keygen and cosign append to the name of the signed file.
SIGNATURES = (".sig", ".sigstore.json")
_LIST_FILES = {NAME, *(f"{NAME}{ending}" for ending in SIGNATURES)}
# Limit of a sealed file; the manifest of a study with thousands of parts has a fifth of it.
MOST_BYTES = 200 * 2**20

# Characters of a path in a message.
MAX_PATH_LENGTH = 400

_SEAL = re.compile(rb'\{\n "digest": "([0-9a-f]{64})",\n')
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Tampered(StudyError):
    """A sealed file was changed; the message contains no advice."""


def seal_json(facts: Mapping[str, Any]) -> bytes:
    """Return the facts (at least one) as JSON with their digest in the second line."""
    text = json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    # File names may be bytes that are not valid text.
    content = text.encode("utf-8", "surrogateescape")
    digest = hashlib.sha256(content).hexdigest().encode()
    return b'{\n "digest": "' + digest + b'",\n' + content.removeprefix(b"{\n")


def read_sealed(file: Path) -> dict[str, Any]:
    """Return the facts of a sealed file. Raises Tampered if it was changed, FileNotFoundError and other OSErrors."""
    try:
        with os.fdopen(open_file(file), "rb") as stream:
            if os.fstat(stream.fileno()).st_size > MOST_BYTES:
                raise Tampered(f"{file}: is longer than {MOST_BYTES:,} bytes")
            content = stream.read()
    except NotPlainFileError as error:
        raise Tampered(f"{file}: is {error.strerror}, not the file that was written") from None
    seal = _SEAL.match(content)
    if not seal:
        raise Tampered(f"{file}: has no digest in its second line: an older version or another program wrote it")
    rest = memoryview(content)[seal.end() :]
    digest = hashlib.sha256(b"{\n")
    digest.update(rest)
    if digest.hexdigest().encode() != seal[1]:
        raise Tampered(f"{file}: changed since it was written: the digest in its second line does not match")
    try:
        return json.loads("{\n" + str(rest, "utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        raise Tampered(f"{file}: is not valid JSON") from None


def make_list(contents: Iterable[tuple[str, bytes]]) -> bytes:
    """Return the sealed list of files given as (path in the folder, content)."""
    files = {path: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()} for path, content in contents}
    return seal_json({"files": dict(sorted(files.items()))})


def write_list(folder: Path) -> None:
    """Write the list of all files in the folder. Raises StudyError if it holds anything but files."""
    files = {}
    for path in sorted(list_paths(folder)):
        if kind := describe_non_file(folder / path):
            raise StudyError(f"{folder / path}: is {kind}; only files can be published.")
        if path not in _LIST_FILES:
            files[path] = {"size": (folder / path).stat().st_size, "sha256": file_digest(folder / path)}
    (folder / NAME).write_bytes(seal_json({"files": files}))


def find_problems(folder: Path) -> list[str]:
    """Return a line for each file that differs from the list, or one line if the list itself was changed.

    Raises FileNotFoundError without a list, OSError for unreadable files.
    """
    try:
        listed = _read_file_list(folder / NAME)
    except Tampered as error:
        return [f"{error}. Download the folder again."]
    paths = list_paths(folder) - _LIST_FILES
    all_paths = sorted(listed.keys() | paths)
    states = {path: _file_problem(folder, path, listed.get(path), path in paths) for path in all_paths}
    return [f"{show_path(path)}: {state}" for path, state in states.items() if state]


def count_files(folder: Path) -> int:
    """Return the number of files in an intact list."""
    return len(_read_file_list(folder / NAME))


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file. Raises NotPlainFileError."""
    with os.fdopen(open_file(path), "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def show_path(path: str) -> str:
    """Return a path on one line of limited length, whatever characters it has."""
    text = path if path.isprintable() else ascii(path)
    return text if len(text) <= MAX_PATH_LENGTH else f"{text[:MAX_PATH_LENGTH]}..."


def is_entry(value: Any) -> bool:
    """Whether a value is a valid list entry, with `size` in bytes and `sha256`."""
    return (
        isinstance(value, dict)
        and type(value.get("size")) is int
        and 0 <= value["size"] < 2**63
        and isinstance(value.get("sha256"), str)
        and bool(_SHA256.fullmatch(value["sha256"]))
    )


def _read_file_list(file: Path) -> dict[str, dict[str, Any]]:
    files = read_sealed(file).get("files")
    if not isinstance(files, dict) or not all(is_inside(path) and is_entry(files[path]) for path in files):
        raise Tampered(f"{file}: is not a list of files with size and SHA-256")
    return files


def is_inside(path: str) -> bool:
    """Whether a path is normalised and stays inside the folder."""
    try:
        os.fsencode(path)
    except ValueError:
        return False
    parsed = PurePosixPath(path)
    return (
        str(parsed) == path
        and bool(parsed.parts)
        and not path.startswith("/")
        and "\0" not in path
        and ".." not in parsed.parts
    )


def list_paths(folder: Path) -> set[str]:
    """Return the paths of everything in the folder and its subfolders; links are not followed."""
    paths, pending = set(), [""]
    while pending:
        folder_path = pending.pop()
        with os.scandir(folder / folder_path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(f"{folder_path}{entry.name}/")
                else:
                    paths.add(f"{folder_path}{entry.name}")
    return paths


def _file_problem(folder: Path, path: str, recorded: Mapping[str, Any] | None, is_present: bool) -> str:
    """Return the problem of a file, or ""."""
    if not is_present:
        return "missing"
    if kind := describe_non_file(folder / path):
        return f"{kind} was put there"
    if recorded is None:
        return "added; not in the list"
    size = (folder / path).stat().st_size
    if size != recorded["size"]:
        return f"changed; it has {size:,} bytes instead of {recorded['size']:,}"
    return "" if file_digest(folder / path) == recorded["sha256"] else "changed; its SHA-256 differs"
