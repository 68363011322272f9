"""Which modules of scripts/ttf an entry script imports, directly or through another: they are parameters of its rule.

Snakemake follows a script, not what it imports; without this an edited helper would rerun nothing. As parameters and
not as inputs: Snakemake looks up every input of every job, and would be three times as long about a plan.
"""

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from ttf.engine.provenance.syntax import syntax_of

# Most modules are those of many rules: each is read once.
_syntax = cache(syntax_of)


@cache
def helpers(script: Path, *modules: str, rooms: tuple[Path, ...] = ()) -> tuple[Path, ...]:
    """Files of the ttf package that `script` and the named modules (such as "ttf.stats.durations.mttf") need, sorted.

    rooms: folders outside the checkout whose modules belong to ttf.analyses. Only absolute imports count
    (`from ttf.stats.durations.survival import ...`), wherever in the file they stand. A package's __init__.py runs when
    a module of it is imported, so it is needed too; so is the declaration that a format's code reads.
    Raises ModuleNotFoundError for a module that is not there, ImportError for a relative import.
    """
    roots = (script.parent, *rooms)
    found: set[Path] = set()
    pending = [*_imported(script, roots), *(file for module in modules for file in _files_of(module, roots))]
    while pending:
        file = pending.pop()
        if file not in found:
            found.add(file)
            pending += _imported(file, roots) if file.suffix == ".py" else ()
    return tuple(sorted(found))


def code_digest(files: Iterable[Path], declared: Mapping[Path, str] = MappingProxyType({})) -> str:
    """One digest of what these files tell the computer. declared: what counts of a file, if it is not all."""
    digest = hashlib.sha256()
    for file in files:
        digest.update((declared[file] if file in declared else _syntax(file).digest).encode())
    return digest.hexdigest()[:16]


@cache
def _imported(file: Path, roots: tuple[Path, ...]) -> tuple[Path, ...]:
    files: list[Path] = []
    for module, name, level, line in _syntax(file).imports:
        if level:
            raise ImportError(f"{file}, line {line}: a relative import; write `from ttf. ... import ...`")
        files += _files_of(f"{module}.{name}" if name else module, roots, may_be_a_name=bool(name))
    declaration = file.with_name("format.yaml")
    if roots[0] / "ttf" / "formats" / "format_declaration.py" in files and declaration.is_file():
        files.append(declaration)
    return tuple(files)


@cache
def _files_of(module: str, roots: tuple[Path, ...], may_be_a_name: bool = False) -> tuple[Path, ...]:
    """The file of a module and those of the packages around it; of a name imported from a module, that module's."""
    parts = module.split(".")
    if parts[0] != "ttf":
        return ()
    file = _file_of(parts, roots)
    if file is None and may_be_a_name:
        parts.pop()
        file = _file_of(parts, roots)
    if file is None:
        raise ModuleNotFoundError(f"no module {module} under {' or '.join(map(str, roots))}")
    around = (_file_of(parts[:count], roots) for count in range(1, len(parts)))
    return file, *filter(None, around)


def _file_of(parts: list[str], roots: tuple[Path, ...]) -> Path | None:
    package, *rooms = roots
    paths = [package.joinpath(*parts)]
    if parts[:2] == ["ttf", "analyses"] and len(parts) > 2:
        paths += [room.joinpath(*parts[2:]) for room in rooms]
    files = (file for path in paths for file in (path.with_suffix(".py"), path / "__init__.py"))
    return next((file for file in files if file.is_file()), None)
