"""Checks before the first job: are the folders writable, and is there enough free space?"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ttf.engine.process.machine import explain_error, free_bytes
from ttf.study.configuration.messages import ConfigError

FOLDERS = (".snakemake", "results", "logs", "benchmarks")
# Environment variable that makes the study run in spite of the estimate.
OVERRIDE_VARIABLE = "TTF_ROOM"
# Free space below this share of the estimate is an error.
_SHORTAGE_SHARE = 0.7


class MachineError(ConfigError):
    """An error of the machine, not of the configuration."""


def check_writable(folders: tuple[str, ...] = FOLDERS) -> None:
    """Raise MachineError if a folder, or the folder for temporary files, is not writable."""
    for folder in folders:
        parent = next(path for path in (Path(folder), *Path(folder).parents) if path.is_dir())
        try:
            with tempfile.TemporaryFile(dir=parent) as file:
                file.write(b"is there room?")
                file.flush()
        except OSError as error:
            # The name of the temporary file would not help the user.
            error.filename = folder
            raise MachineError(
                explain_error(error) or f"{folder}: {error.strerror}; expected a folder to write to."
            ) from None
    try:
        tempfile.gettempdir()
    except OSError:
        raise MachineError(
            "no folder for temporary files can be written to; name one: TMPDIR=folder ttf report"
        ) from None


def use_writable_cache() -> None:
    """Move Snakemake's cache into .snakemake/ if the home folder is not writable."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    try:
        (home / "snakemake").mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home / "snakemake"):
            pass
    except OSError:
        os.environ["XDG_CACHE_HOME"] = str(Path(".snakemake/cache").absolute())


def check_free_space(raw_gb: Mapping[str, float], resources: dict) -> None:
    """Raise MachineError if the products of traces clearly exceed the free space.

    raw_gb: trace -> its unread raw tables, unpacked, in 10^9 bytes. resources: resources.yaml.
    """
    if not raw_gb or os.environ.get(OVERRIDE_VARIABLE) == "any":
        return
    disk = resources["disk"]
    need_mb = sum(disk["base_mb"] + disk["mb_per_gb"] * gigabytes for gigabytes in raw_gb.values())
    free_mb = free_bytes("results") / 1e6
    if free_mb < _SHORTAGE_SHARE * need_mb:
        raise MachineError(
            f"results: {', '.join(raw_gb)} will take about {need_mb:,.0f} MB, and {free_mb:,.0f} MB are free. Free "
            f"space, or use a larger disk. If you know that the study needs less: {OVERRIDE_VARIABLE}=any ttf report"
        )
