"""What each module of the checkout imports by its bytecode: another way than the workflow's own."""

from functools import cache
from modulefinder import ModuleFinder
from pathlib import Path
from types import CodeType

SCRIPTS = Path(__file__).parents[1] / "scripts"


@cache
def imported(file: Path) -> frozenset[Path]:
    """The files of ttf that this one names, wherever in it the statement stands, and the packages around them."""
    found, codes = set(), [compile(file.read_bytes(), str(file), "exec")]
    while codes:
        code = codes.pop()
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        for kind, what in ModuleFinder().scan_opcodes(code):
            assert kind != "relative_import", file
            if kind == "absolute_import":
                names, module = what
                for name in (module, *(f"{module}.{name}" for name in names or ())):
                    found |= files_of(name)
                if "ttf.formats.format_declaration" in (module, *(f"{module}.{name}" for name in names or ())):
                    found |= {file.with_name("format.yaml")} & {*file.parent.iterdir()}  # which it reads
    return frozenset(found)


@cache
def files_of(module: str) -> frozenset[Path]:
    """The file of a module and those of its packages; of what is no module of ttf, nothing."""
    parts = module.split(".")
    if parts[0] != "ttf" or not (file := _file(parts)):
        return frozenset()
    return frozenset(filter(None, [file, *(_file(parts[:count]) for count in range(1, len(parts)))]))


def _file(parts: list[str]) -> Path | None:
    path = SCRIPTS.joinpath(*parts)
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def followed(script: str, *modules: str) -> set[Path]:
    """All files that a script needs, of its own and of modules that it is told by name."""
    found, pending = (
        set(),
        [*imported(SCRIPTS / f"{script}.py"), *(file for module in modules for file in files_of(module))],
    )
    while pending:
        if (file := pending.pop()) not in found:
            found.add(file)
            pending += imported(file) if file.suffix == ".py" else ()
    return found
