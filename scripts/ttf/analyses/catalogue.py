"""Find and load the analyses of `ttf.analyses` and of the folders that a study's configuration names."""

import importlib
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from ttf.analyses import BUILT_IN, add_folders, built_in_folders, module_name
from ttf.analyses.declaration import Analysis
from ttf.analyses.sections import THEMES
from ttf.engine.errors import StudyError


def find_analysis_folders(folders: Sequence[str] = ()) -> dict[str, Path]:
    """Return the folder of each analysis, by name: those of the package and those in `folders`.

    Raises StudyError if two analyses have the same name or one has the name of a section, or if a folder holds none.
    """
    folder_by_name = dict(built_in_folders())
    for folder in map(Path, folders):
        declarations = sorted(folder.glob("*/__init__.py"))
        if not declarations:
            raise StudyError(
                f"{folder}: holds no analysis; expected a folder with __init__.py for each: docs/CONTRIBUTING.md."
            )
        for declaration in declarations:
            path = declaration.parent
            if other_path := folder_by_name.get(path.name):
                raise StudyError(
                    f"two analyses are called {path.name}: {other_path} and {path}; rename the folder of one."
                )
            if (BUILT_IN / path.name).exists() or (BUILT_IN / f"{path.name}.py").exists():
                raise StudyError(f"{path}: this name is taken by the workflow; rename the folder.")
            folder_by_name[path.name] = path
    return folder_by_name


@cache
def load_analyses(folders: tuple[str, ...] = ()) -> Mapping[str, Analysis]:
    """Return the declaration of each analysis, by name, in the order of the page. Code in `folders` runs.

    Raises StudyError for a duplicate name, a folder without a declaration, and an unknown theme or table.
    """
    folder_by_name = find_analysis_folders(folders)
    add_folders(folders)
    analyses = {name: _load_declaration(name, folder) for name, folder in folder_by_name.items()}
    order = list(THEMES)
    return dict(sorted(analyses.items(), key=lambda item: (order.index(item[1].theme), item[1].rank, item[0])))


def _load_declaration(name: str, folder: Path) -> Analysis:
    if not (folder / "__init__.py").is_file():  # importing a pipe of that name would block
        raise StudyError(f"{folder / '__init__.py'}: it is not a regular file.")
    try:
        analysis = getattr(importlib.import_module(module_name(name)), "ANALYSIS", None)
    except Exception as error:
        if folder.is_relative_to(BUILT_IN):
            raise
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).parent == folder]
        line = getattr(error, "lineno", None) or (frames[-1].lineno if frames else None)
        location = f"{folder / '__init__.py'}: {f'line {line}: ' if line else ''}"
        raise StudyError(f"{location}it cannot be imported ({type(error).__name__}: {error}).") from error
    if not isinstance(analysis, Analysis):
        raise StudyError(f"{folder / '__init__.py'}: no ANALYSIS = Analysis(...); see docs/CONTRIBUTING.md.")
    if analysis.theme not in THEMES:
        raise StudyError(f"{folder / '__init__.py'}: theme {analysis.theme!r}; expected {', '.join(THEMES)}.")
    return analysis
