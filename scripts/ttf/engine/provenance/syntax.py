"""What a Python module tells the computer: its syntax tree without comments and docstrings, and what it imports.

To parse all modules of the workflow takes two seconds, so each text is parsed once: the results lie where Python keeps
what it has compiled. A damaged file is as good as none.
"""

import ast
import atexit
import contextlib
import hashlib
import json
import os
import sys
from functools import cache
from pathlib import Path
from threading import Lock
from typing import NamedTuple

# More than the modules of the workflow; others are of earlier versions of it.
_MOST = 1000


class Syntax(NamedTuple):
    """digest: SHA-256 of the tree; imports: (module, name, level, line) of each name that is imported; `import x` has
    no name.
    """

    digest: str
    imports: list[tuple[str, str, int, int]]


def syntax_of(file: Path) -> Syntax:
    """Raises SyntaxError for a file that is no Python module; of other files than .py the digest is of the bytes."""
    content = file.read_bytes()
    raw = hashlib.sha256(content).hexdigest()
    return _memory().get(raw, content, file) if file.suffix == ".py" else Syntax(raw, [])


class Memory:
    """The syntax of texts by their SHA-256, in a file that is written when the process ends."""

    def __init__(self, file: Path) -> None:
        self._file, self._used = file, {}
        try:
            self._known = {
                raw: Syntax(digest, imports) for raw, (digest, imports) in json.loads(file.read_bytes()).items()
            }
        except (OSError, ValueError, TypeError, AttributeError, RecursionError):
            self._known = {}
        self._new, self._lock = False, Lock()

    def get(self, raw: str, content: bytes, file: Path) -> Syntax:
        """The syntax of a text."""
        with self._lock:  # Python 3.11 cannot parse in two threads at once
            if raw not in self._known:
                self._known[raw] = _parsed(content, file)
                if not self._new and not sys.dont_write_bytecode:
                    atexit.register(self.write)
                self._new = True
        return self._used.setdefault(raw, self._known[raw])

    def write(self) -> None:
        """Leave it for other processes, where that is allowed."""
        kept = self._known if len(self._known) <= _MOST else self._used
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(exist_ok=True)
            unfinished = self._file.with_suffix(f".{os.getpid()}")
            unfinished.write_text(json.dumps(kept), encoding="utf-8")
            unfinished.replace(self._file)


@cache
def _memory() -> Memory:
    return Memory(Path(__file__).parent / "__pycache__" / f"syntax.{sys.implementation.cache_tag}.json")


def _parsed(content: bytes, file: Path) -> Syntax:
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
