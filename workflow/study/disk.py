"""Before the first job: can the folders be written to, and is there room for what will be made?"""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ttf.engine.process.machine import free_bytes, refused

from study.messages import ConfigError

FOLDERS = (".snakemake", "results", "logs", "benchmarks")
# Of the environment: go on although the estimate says that there is too little room.
REGARDLESS = "TTF_ROOM"
# Below this share of what is estimated it is clearly too little.
_SURE = 0.7


class MachineError(ConfigError):
    """What the machine refuses: no fault of the configuration, but as plainly said."""


def check_writable(folders: tuple[str, ...] = FOLDERS) -> None:
    """Raises MachineError for a folder that cannot be written or made, and where temporary files cannot be written."""
    for folder in folders:
        place = next(there for there in (Path(folder), *Path(folder).parents) if there.is_dir())
        try:
            with tempfile.TemporaryFile(dir=place) as file:
                file.write(b"is there room?")
                file.flush()
        except OSError as error:
            # The name of the temporary file means nothing to anybody.
            error.filename = folder
            raise MachineError(
                refused(error) or f"{folder}: {error.strerror}; expected a folder to write to."
            ) from None
    try:
        tempfile.gettempdir()
    except OSError:
        raise MachineError(
            "no folder for temporary files can be written to; name one: TMPDIR=folder make report"
        ) from None


def use_a_cache_of_ones_own() -> None:
    """Have Snakemake keep its cache in .snakemake/ where the home folder cannot be written to."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    try:
        (home / "snakemake").mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home / "snakemake"):
            pass
    except OSError:
        os.environ["XDG_CACHE_HOME"] = str(Path(".snakemake/cache").absolute())


def check_room(raw_gb: Mapping[str, float], measured: dict, free: int | None = None) -> None:
    """Raises MachineError where the products of traces clearly find no room.

    raw_gb: trace -> its raw tables, unpacked, in 10^9 bytes, of those that are still to be read. measured:
    resources.yaml. free: bytes; by default those of the disk of results/.
    """
    if not raw_gb or os.environ.get(REGARDLESS) == "any":
        return
    disk = measured["disk"]
    need_mb = sum(disk["base_mb"] + disk["mb_per_gb"] * gigabytes for gigabytes in raw_gb.values())
    free_mb = (free_bytes("results") if free is None else free) / 1e6
    if free_mb < _SURE * need_mb:
        raise MachineError(
            f"results: {', '.join(raw_gb)} will take about {need_mb:,.0f} MB, and {free_mb:,.0f} MB are free. Make "
            f"room, or run the study on a larger disk. If you know that it takes less: {REGARDLESS}=any make report"
        )
