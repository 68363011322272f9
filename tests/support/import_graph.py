"""Imports of each module of the checkout from its bytecode, independent of the workflow's own method."""

from functools import cache
from modulefinder import ModuleFinder
from pathlib import Path
from types import CodeType

SCRIPTS = Path(__file__).parents[2] / "scripts"


@cache
def direct_imports(file: Path) -> frozenset[Path]:
    """Return the files of ttf that any import statement of this file names, and their packages."""
    files, codes = set(), [compile(file.read_bytes(), str(file), "exec")]
    while codes:
        code = codes.pop()
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        for kind, operands in ModuleFinder().scan_opcodes(code):
            assert kind != "relative_import", file
            if kind == "absolute_import":
                names, module = operands
                for name in (module, *(f"{module}.{name}" for name in names or ())):
                    files |= module_files(name)
                if "ttf.formats.format_declaration" in (module, *(f"{module}.{name}" for name in names or ())):
                    files |= {file.with_name("format.yaml")} & {*file.parent.iterdir()}  # that module reads it
    return frozenset(files)


@cache
def module_files(module: str) -> frozenset[Path]:
    """Return the files of a ttf module and of its packages; empty for any other module."""
    parts = module.split(".")
    if parts[0] != "ttf" or not (file := _file(parts)):
        return frozenset()
    return frozenset(filter(None, [file, *(_file(parts[:count]) for count in range(1, len(parts)))]))


def _file(parts: list[str]) -> Path | None:
    path = SCRIPTS.joinpath(*parts)
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def transitive_imports(script: str, *modules: str) -> set[Path]:
    """Return all files that a script and these dynamically imported modules need."""
    files, pending = (
        set(),
        [*direct_imports(SCRIPTS / f"{script}.py"), *(file for module in modules for file in module_files(module))],
    )
    while pending:
        if (file := pending.pop()) not in files:
            files.add(file)
            pending += direct_imports(file) if file.suffix == ".py" else ()
    return files
