"""What a rule made of a block of rows, kept for its next run: a new part costs what is new, not what was there before.

A result is kept under a digest of all that it was made of: the rows, what else the function was told, the code of the
rule and the versions of the libraries. So none is ever out of date, and the folder may go at any time. It lies in
Snakemake's own (.snakemake/kept), is no product, and holds what the last run of each rule used.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl

from ttf.tables import blocks

FOLDER = Path(".snakemake", "kept")
# Rows looked at together. Rows are added at the end, so that blocks before the last ones stay as they are.
BLOCK_ROWS = 1 << 17
LIBRARIES = ("polars", "numpy", "scipy")
_DIGEST_BYTES = hashlib.sha256().digest_size

Frames = Mapping[str, pl.DataFrame]


class Kept:
    """The results of one rule on one trace. folder: None where nothing is kept; made_by: what every result rests on."""

    def __init__(self, folder: Path | None = None, made_by: Sequence[str] = ()) -> None:
        self._folder = folder
        self._made_by = [*made_by, sys.version, *map(version, LIBRARIES)]
        self._used: set[str] = set()

    @classmethod
    def of_rule(cls, snakemake: SimpleNamespace) -> Kept:
        """That of the rule of a script, whose parameters without a name are its code; settings go into the keys."""
        params = list(snakemake.params)
        code = params[: len(params) - len(list(snakemake.params.keys()))]
        return cls(FOLDER / snakemake.wildcards.trace / snakemake.rule, [json.dumps(code)])

    def frames(self, key: Sequence[str | bytes], make: Callable[[], Frames]) -> dict[str, pl.DataFrame]:
        """make(), or what it gave when it was called with this key before.

        key: tells apart all that make() depends on and that `made_by` does not hold. A result that was damaged, or
        cannot be kept (a full disk, a folder of somebody else's), is made anew.
        """
        name = _digest([*self._made_by, *key])
        self._used.add(name)
        if self._folder is None:
            return dict(make())
        place = self._folder / name
        found = _read(place)
        if found is None:
            found = dict(make())
            with suppress(OSError):
                _write(place, found)
        return found

    def of_blocks(
        self, rows: pl.LazyFrame, make: Callable[..., Frames], *told: Any, size: int = BLOCK_ROWS
    ) -> Iterator[dict[str, pl.DataFrame]]:
        """make(block, *told) of each block of rows, in their order, kept by what the block holds.

        rows: a table on the disk, and of it only columns that `make` looks at, each row by itself. told: what JSON can
        say. make: a pure function of the block as a DataFrame; its result should be much smaller than the block.
        """
        for block in blocks(rows, size):
            yield self.of_frame(block, make, *told)

    def of_frame(self, block: pl.DataFrame, make: Callable[..., Frames], *told: Any) -> dict[str, pl.DataFrame]:
        """make(block, *told), kept by what the frame holds."""
        return self.of_frames([block], make, *told)

    def of_frames(
        self, frames: Sequence[pl.DataFrame], make: Callable[..., Frames], *told: Any
    ) -> dict[str, pl.DataFrame]:
        """make(*frames, *told), kept by what the frames hold."""
        what = [f"{make.__module__}.{make.__qualname__}", json.dumps(told, sort_keys=True), *map(digest_of, frames)]
        return self.frames(what, lambda: make(*frames, *told))

    def forget_others(self) -> None:
        """Remove what this run did not use."""
        if self._folder is None or not self._folder.is_dir():
            return
        for place in self._folder.iterdir():
            if place.name not in self._used:
                shutil.rmtree(place, ignore_errors=True)


def digest_of(frame: pl.DataFrame) -> str:
    """A digest of the columns, their types, the number of rows and what they hold; in which pieces plays no part."""
    # Bits are stored by the byte, and those beyond the last row may be any.
    whole = pl.concat([frame, frame.clear(-frame.height % 8)], rechunk=True)
    stored = io.BytesIO()
    # Texts one after the other, as older readers want them: in memory they lie as they came.
    whole.write_ipc(stored, compression="uncompressed", compat_level=pl.CompatLevel.oldest())
    return hashlib.sha256(stored.getbuffer()).hexdigest() + f" {frame.height}"


def _digest(key: Sequence[str | bytes]) -> str:
    found = hashlib.sha256()
    for part in key:
        told = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        found.update(len(told).to_bytes(8, "big"))
        found.update(told)
    return found.hexdigest()


def _read(place: Path) -> dict[str, pl.DataFrame] | None:
    """What was kept there; None where nothing was, or it is not what was written."""
    try:
        names = json.loads((place / "names.json").read_bytes())
        return {name: _frame((place / f"{number}.ipc").read_bytes()) for number, name in enumerate(names)}
    except (OSError, ValueError, TypeError, pl.exceptions.PolarsError):
        return None


def _frame(stored: bytes) -> pl.DataFrame:
    digest, content = stored[:_DIGEST_BYTES], memoryview(stored)[_DIGEST_BYTES:]
    if hashlib.sha256(content).digest() != digest:
        raise ValueError("not what was written")
    return pl.read_ipc(io.BytesIO(content))


def _write(place: Path, frames: Frames) -> None:
    """Written beside and renamed: what is there is whole."""
    unfinished = place.with_name(f"{place.name}.{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        for number, frame in enumerate(frames.values()):
            stored = io.BytesIO()
            frame.rechunk().write_ipc(stored, compression="lz4")
            content = stored.getbuffer()
            with (unfinished / f"{number}.ipc").open("wb") as file:
                file.write(hashlib.sha256(content).digest())
                file.write(content)
        (unfinished / "names.json").write_text(json.dumps(list(frames)), encoding="utf-8")
        shutil.rmtree(place, ignore_errors=True)
        unfinished.rename(place)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
