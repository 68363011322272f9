"""Time to Failure: a reproducible study of how jobs on GPU clusters succeed and fail.

>>> import ttf
>>> study = ttf.open("results/studies/sample_slurm")  # doctest: +SKIP
>>> study.numbers["mttf.mttf_s"].value  # doctest: +SKIP
"""

from importlib import import_module
from pathlib import Path
from typing import Any


def open(folder: str | Path) -> Any:
    """Return the finished study in a folder results/studies/<name>: a ttf.study.results.FinishedStudy.

    Raises
    ------
    StudyError
        If the folder is not that of a finished study.
    """
    # By name: every rule depends on what this file imports.
    return import_module("ttf.study.results").FinishedStudy(Path(folder))
