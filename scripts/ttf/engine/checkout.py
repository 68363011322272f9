"""Where the files of the workflow lie: in a checkout, or in the installed package.

A file has the same name in both: its path in a checkout, such as scripts/ttf/stats/mttf.py or config/traces.yaml. The
installed package holds scripts/ttf as itself, and everything else in its folder `checkout`.
"""

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
_PACKAGE_NAME = "scripts/ttf"
_INSTALLED = PACKAGE / "checkout"
CHECKOUT = _INSTALLED if _INSTALLED.is_dir() else PACKAGE.parents[1]


def hand_to_jobs(folder: Path) -> None:
    """Let the processes of jobs import this package; folder: that of the rules, which may be another checkout.

    Raises ValueError if this is not the package of the rules.
    """
    if folder != CHECKOUT:
        raise ValueError(
            f"This environment has the package of {CHECKOUT}. Use the environment of {folder}, or its `ttf`."
        )
    paths = (str(folder / "scripts"), os.environ.get("PYTHONPATH"))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))


def find_workflow_file(name: str) -> Path:
    """Return the path of a file of the workflow, or of a folder, by its name; it need not exist."""
    path = Path(name)
    is_module = path.is_relative_to(_PACKAGE_NAME)
    return PACKAGE / path.relative_to(_PACKAGE_NAME) if is_module else CHECKOUT / path


@cache
def name_workflow_file(path: Path) -> str | None:
    """Return the name of a file of the workflow; None for any other file."""
    if path.is_relative_to(CHECKOUT):
        return path.relative_to(CHECKOUT).as_posix()
    if path.is_relative_to(PACKAGE):
        return (_PACKAGE_NAME / path.relative_to(PACKAGE)).as_posix()
    return None


def list_workflow_files(names: Sequence[str]) -> list[str]:
    """Return the names of the existing files among these files and folders and below them, sorted.

    Compiled files and those of editors and of Snakemake are left out.
    """
    file_names = {name for name in names if find_workflow_file(name).is_file()}
    for name in {*names, *([_PACKAGE_NAME] if "scripts" in names else [])} - file_names:
        root = find_workflow_file(name)
        for folder, folders, files in os.walk(root):
            folders[:] = [part for part in folders if not _is_left_out(part) and Path(folder, part) != _INSTALLED]
            place = Path(folder).relative_to(root).as_posix()
            file_names |= {os.path.normpath(f"{name}/{place}/{file}") for file in files if not _is_left_out(file)}
    return sorted(file_names)


def _is_left_out(part: str) -> bool:
    return part[0] == "." or part == "__pycache__"
