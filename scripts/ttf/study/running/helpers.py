"""The modules of scripts/ttf that a script imports, directly or indirectly; they are parameters of its rule.

Snakemake follows a script, not its imports; without this an edited module would rerun nothing. As inputs instead of
parameters they would triple the planning time.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType

from ttf.engine.checkout import PACKAGE
from ttf.engine.provenance.syntax import read_syntax

# Many rules share a module, so each is read once.
_syntax = cache(read_syntax)


@cache
def find_imported_files(
    script: Path, *modules: str, analysis_folders: tuple[Path, ...] = (), package: Path = PACKAGE
) -> tuple[Path, ...]:
    """Return the sorted files of the ttf package that a script and the named modules need.

    package: the folder of ttf. analysis_folders: folders outside the checkout whose modules belong to ttf.analyses.
    Only absolute imports count (`from ttf.stats.durations.survival import ...`), anywhere in the file. The __init__.py
    of a package and the declaration that a format's code reads count too. Raises ModuleNotFoundError for a missing
    module, ImportError for a relative import.
    """
    roots = tuple(map(str, (package, *analysis_folders)))
    files: set[str] = set()
    pending = {*_list_imported_files(str(script), roots)}.union(*(_find_module_files(name, roots) for name in modules))
    while pending:
        files |= pending
        pending = set().union(*(_list_imported_files(file, roots) for file in pending)) - files
    return tuple(map(Path, sorted(files)))


def compute_code_digest(files: Iterable[Path], declared: Mapping[Path, str] = MappingProxyType({})) -> str:
    """Return one digest of these files. declared: file -> the part of it that counts, if not all."""
    digest = hashlib.sha256()
    for file in files:
        digest.update((declared[file] if file in declared else _syntax(file).digest).encode())
    return digest.hexdigest()[:16]


@cache
def _list_imported_files(file: str, roots: tuple[str, ...]) -> frozenset[str]:
    if not file.endswith(".py"):
        return frozenset()
    files: set[str] = set()
    for module, name, level, line in _syntax(Path(file)).imports:
        if level:
            raise ImportError(f"{file}, line {line}: a relative import; write `from ttf. ... import ...`")
        files.update(_find_module_files(f"{module}.{name}" if name else module, roots, may_be_a_name=bool(name)))
    declaration = Path(file).with_name("format.yaml")
    if f"{roots[0]}/formats/format_declaration.py" in files and declaration.is_file():
        files.add(str(declaration))
    return frozenset(files)


@cache
def _find_module_files(module: str, roots: tuple[str, ...], may_be_a_name: bool = False) -> tuple[str, ...]:
    """Return the file of a module and of its packages; for a name imported from a module, that module's."""
    if module.partition(".")[0] != "ttf":
        return ()
    parent = module.rpartition(".")[0]
    if may_be_a_name and (_find_module_file(parent, roots) or "").endswith(f"{parent.rpartition('.')[2]}.py"):
        return _find_module_files(parent, roots)
    file = _find_module_file(module, roots)
    if file is None and may_be_a_name:
        return _find_module_files(parent, roots)
    if file is None:
        raise ModuleNotFoundError(f"no module {module} in {' or '.join(roots)}")
    packages = (_find_module_file(package, roots) for package in accumulate(parent.split("."), "{}.{}".format))
    return file, *filter(None, packages)


@cache
def _find_module_file(module: str, roots: tuple[str, ...]) -> str | None:
    package, *analysis_folders = roots
    paths = ["/".join([package, *module.split(".")[1:]])]
    if module.startswith("ttf.analyses."):
        paths += ["/".join([folder, *module.split(".")[2:]]) for folder in analysis_folders]
    files = (file for path in paths for file in (f"{path}.py", f"{path}/__init__.py"))
    return next(filter(os.path.isfile, files), None)  # a tenth of a start with Path.is_file
