"""The analyses there are: those of `ttf.analyses` and those of folders that a study's configuration names."""

import importlib
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from ttf.analyses import BUILT_IN, join, module_name
from ttf.analyses.declaration import Analysis
from ttf.analyses.sections import THEMES
from ttf.engine.errors import StudyError


def places(folders: Sequence[str] = ()) -> dict[str, Path]:
    """Analysis -> its folder, of the package and of `folders`.

    Raises StudyError where two have one name, for a folder without an analysis, and for the name of a section.
    """
    built_in = sorted(file for section in THEMES for file in (BUILT_IN / section).glob("*/__init__.py"))
    found = {declaration.parent.name: declaration.parent for declaration in built_in}
    for folder in map(Path, folders):
        declarations = sorted(folder.glob("*/__init__.py"))
        if not declarations:
            raise StudyError(
                f"{folder}: holds no analysis; expected a folder with __init__.py for each: CONTRIBUTING.md."
            )
        for declaration in declarations:
            room = declaration.parent
            if other := found.get(room.name):
                raise StudyError(f"two analyses are called {room.name}: {other} and {room}; rename the folder of one.")
            if (BUILT_IN / room.name).exists() or (BUILT_IN / f"{room.name}.py").exists():
                raise StudyError(f"{room}: this name is taken by the workflow; rename the folder.")
            found[room.name] = room
    return found


@cache
def rooms(folders: tuple[str, ...] = ()) -> Mapping[str, Analysis]:
    """Analysis -> its declaration, in the order of the page. Folders outside join the package: they run as code.

    Raises StudyError for a name that is taken, a folder without a declaration, a theme or a table that there is not.
    """
    found = places(folders)
    join(folders)
    declared = {name: _declaration(name, place) for name, place in found.items()}
    order = list(THEMES)
    return dict(sorted(declared.items(), key=lambda item: (order.index(item[1].theme), item[1].rank, item[0])))


def _declaration(name: str, place: Path) -> Analysis:
    if not (place / "__init__.py").is_file():  # a pipe of that name would hold up the import
        raise StudyError(f"{place / '__init__.py'}: it is no plain file.")
    try:
        analysis = getattr(importlib.import_module(module_name(name)), "ANALYSIS", None)
    except Exception as error:
        if place.is_relative_to(BUILT_IN):
            raise
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).parent == place]
        line = getattr(error, "lineno", None) or (frames[-1].lineno if frames else None)
        where = f"{place / '__init__.py'}: {f'line {line}: ' if line else ''}"
        raise StudyError(f"{where}it cannot be imported ({type(error).__name__}: {error}).") from error
    if not isinstance(analysis, Analysis):
        raise StudyError(f"{place / '__init__.py'}: no ANALYSIS = Analysis(...); see CONTRIBUTING.md.")
    if analysis.theme not in THEMES:
        raise StudyError(f"{place / '__init__.py'}: theme {analysis.theme!r}; there are {', '.join(THEMES)}.")
    return analysis
