"""The syntax of a Python module: the digest of its tree without comments and docstrings, and its imports.

Parsing all modules of the workflow takes two seconds, so results are cached in __pycache__. A damaged cache is ignored.
"""

import ast
import atexit
import contextlib
import hashlib
import json
import sys
from functools import cache
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from ttf.engine.storage.plain_files import replace_file

# More than the workflow has modules; the rest are entries of earlier versions.
_MAX_ENTRIES = 1000


class Syntax(NamedTuple):
    """digest: SHA-256 of the tree; imports: (module, name, level, line) of each imported name, "" for `import x`."""

    digest: str
    imports: list[tuple[str, str, int, int]]


def read_syntax(file: Path) -> Syntax:
    """Return the syntax of a module, or the digest of the bytes of another file. Raises SyntaxError."""
    content = file.read_bytes()
    raw = hashlib.sha256(content).hexdigest()
    return _load_cache().get(raw, content, file) if file.suffix == ".py" else Syntax(raw, [])


class SyntaxCache:
    """Cache of the syntax of texts by their SHA-256, written to a file when the process ends."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._session_entries: dict[str, Syntax] = {}
        try:
            self._entries = {
                raw: Syntax(digest, imports) for raw, (digest, imports) in json.loads(file.read_bytes()).items()
            }
        except (OSError, ValueError, TypeError, AttributeError, RecursionError):
            self._entries = {}
        self._has_new, self._lock = False, Lock()

    def get(self, raw: str, content: bytes, file: Path) -> Syntax:
        """Return the syntax of a module with this content. raw: its SHA-256. file: named in a SyntaxError."""
        with self._lock:  # Python 3.11 cannot parse in two threads at once
            if raw not in self._entries:
                self._entries[raw] = _parse_syntax(content, file)
                if not self._has_new and not sys.dont_write_bytecode:
                    atexit.register(self.write)
                self._has_new = True
        return self._session_entries.setdefault(raw, self._entries[raw])

    def write(self) -> None:
        """Write the cache file if the folder is writable."""
        entries = self._entries if len(self._entries) <= _MAX_ENTRIES else self._session_entries
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(exist_ok=True)
            replace_file(self._file, json.dumps(entries))


@cache
def _load_cache() -> SyntaxCache:
    return SyntaxCache(Path(__file__).parent / "__pycache__" / f"syntax.{sys.implementation.cache_tag}.json")


def _parse_syntax(content: bytes, file: Path) -> Syntax:
    tree = ast.parse(content, filename=str(file))
    imports = []
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                imports += [(alias.name, "", 0, node.lineno) for alias in node.names]
            case ast.ImportFrom():
                imports += [(node.module or "", alias.name, node.level, node.lineno) for alias in node.names]
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef() if ast.get_docstring(
                node, False
            ):
                del node.body[0]
    return Syntax(hashlib.sha256(ast.dump(tree).encode("utf-8", "surrogatepass")).hexdigest(), imports)
