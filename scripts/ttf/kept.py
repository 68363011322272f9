"""What a rule made of a block of rows, kept for its next run: a new part costs what is new, not what was there before.

A result is kept under a digest of all that it was made of: the rows, what else the function was told, the code of the
rule and the versions of the libraries. So none is ever out of date, and the folder may go at any time. It lies in
Snakemake's own (.snakemake/kept), is no product, and holds what the last run of each rule used. A result is used only
where it is sealed with the key of the study: no other check would see it, as products are made of it.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl

from ttf.on_disk import scan_parquet
from ttf.plain_files import opened
from ttf.provenance.key import KEY, made_key
from ttf.provenance.seal import digest_of as digest_of_file

FOLDER = Path(".snakemake", "kept")
# Rows looked at together. Rows are added at the end, so that blocks before the last ones stay as they are.
BLOCK_ROWS = 1 << 17
LIBRARIES = ("polars", "numpy", "scipy")
# Of a result: `frames`, name of each -> SHA-256 of its file, and `seal`, an HMAC of these and of the result's name.
DIGESTS = "digests.json"

Frames = Mapping[str, pl.DataFrame]


class Kept:
    """The results of one rule on one trace. folder: None where nothing is kept; made_by: what every result rests on.

    read_key: gives the key that results are sealed with.
    """

    def __init__(
        self, folder: Path | None = None, made_by: Sequence[str] = (), read_key: Callable[[], bytes] = bytes
    ) -> None:
        self._folder, self._read_key = folder, read_key
        self._made_by = [*made_by, sys.version, *map(version, LIBRARIES)]
        self._used: set[str] = set()

    @classmethod
    def of_rule(cls, snakemake: SimpleNamespace) -> Kept:
        """That of the rule of a script, whose parameters without a name are its code; settings go into the keys."""
        code = snakemake.params.code
        folder = FOLDER / snakemake.wildcards.trace / snakemake.rule
        return cls(folder, [json.dumps(code)], lambda: made_key(KEY).read_bytes())

    @cached_property
    def _key(self) -> bytes:
        return self._read_key()

    def frames(self, key: Sequence[str | bytes], make: Callable[[], Frames]) -> dict[str, pl.DataFrame]:
        """make(), or what it gave when it was called with this key before.

        key: tells apart all that make() depends on and that `made_by` does not hold. A result that was damaged or
        changed, or cannot be kept (a full disk, a folder of somebody else's), is made anew.
        """
        return {name: frame.collect() for name, frame in self.scans(key, make).items()}

    def scans(self, key: Sequence[str | bytes], make: Callable[[], Frames]) -> dict[str, pl.LazyFrame]:
        """As `frames`, to be read from the disk when they are used; held only where nothing can be kept."""
        name = _digest([*self._made_by, *key])
        self._used.add(name)
        if self._folder is None:
            return _held(make())
        place = self._folder / name
        with suppress(OSError):
            if (found := _scanned(place, self._key)) is not None:
                return found
        made = make()
        with suppress(OSError):
            _write(place, made, self._key)
            return _opened(place, made)
        return _held(made)

    def of_frames(
        self, of_block: Sequence[pl.DataFrame | None], make: Callable[..., Frames], *told: Any
    ) -> dict[str, pl.DataFrame]:
        """make(*of_block, *told), kept by what the frames hold; None for one that the trace does not have.

        of_block: only columns that `make` looks at. told: what JSON can say. make: a pure function; its result should
        be much smaller than the block.
        """
        return self.frames(_key(of_block, make, told), lambda: make(*of_block, *told))

    def scans_of_frame(self, block: pl.DataFrame, make: Callable[..., Frames], *told: Any) -> dict[str, pl.LazyFrame]:
        """As `of_frames` of one, to be read when they are used: for results that are not small."""
        return self.scans(_key([block], make, told), lambda: make(block, *told))

    def forget_others(self) -> None:
        """Remove what this run did not use."""
        if self._folder is None or not self._folder.is_dir():
            return
        for place in self._folder.iterdir():
            if place.name not in self._used:
                shutil.rmtree(place, ignore_errors=True)


def digest_of(frame: pl.DataFrame) -> str:
    """A digest of the columns, their types, the number of rows and what they hold, by two 64-bit hashes of each row."""
    found = hashlib.sha256(f"{frame.height} {frame.schema}".encode("utf-8", "surrogatepass"))
    for seed in range(2) if frame.width else ():
        found.update(frame.hash_rows(seed).to_numpy())
    return found.hexdigest()


def _key(of_block: Sequence[pl.DataFrame | None], make: Callable[..., Frames], told: Sequence[Any]) -> list[str]:
    digests = ["" if frame is None else digest_of(frame) for frame in of_block]
    return [f"{make.__module__}.{make.__qualname__}", json.dumps(told, sort_keys=True), *digests]


def _held(frames: Frames) -> dict[str, pl.LazyFrame]:
    return {name: frame.lazy() for name, frame in frames.items()}


def _digest(key: Sequence[str | bytes]) -> str:
    found = hashlib.sha256()
    for part in key:
        told = part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass")
        found.update(len(told).to_bytes(8, "big"))
        found.update(told)
    return found.hexdigest()


def _sealed(place: Path, digests: Mapping[str, str], key: bytes) -> bytes:
    """What DIGESTS of a result holds."""
    text = f"kept\0{place.name}\0{json.dumps(digests)}"
    return json.dumps({"seal": hmac.new(key, text.encode(), "sha256").hexdigest(), "frames": digests}).encode()


def _scanned(place: Path, key: bytes) -> dict[str, pl.LazyFrame] | None:
    """What was kept there; None where it is not what was written with this key. OSError where nothing was."""
    with os.fdopen(opened(place / DIGESTS), "rb") as file:
        written = file.read()
    try:
        digests = dict(json.loads(written)["frames"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not hmac.compare_digest(written, _sealed(place, digests, key)):
        return None
    if any(digest_of_file(place / f"{number}.parquet") != digest for number, digest in enumerate(digests.values())):
        return None
    return _opened(place, digests)


def _opened(place: Path, names: Iterable[str]) -> dict[str, pl.LazyFrame]:
    return {name: scan_parquet(place / f"{number}.parquet") for number, name in enumerate(names)}


def _write(place: Path, frames: Frames, key: bytes) -> None:
    """Written beside and renamed: what is there is whole."""
    unfinished = place.with_name(f"{place.name}.{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        digests = {}
        for number, (name, frame) in enumerate(frames.items()):
            stored = io.BytesIO()
            frame.rechunk().write_parquet(stored, compression="lz4", statistics=False)
            digests[name] = hashlib.sha256(stored.getbuffer()).hexdigest()
            (unfinished / f"{number}.parquet").write_bytes(stored.getbuffer())
        (unfinished / DIGESTS).write_bytes(_sealed(place, digests, key))
        shutil.rmtree(place, ignore_errors=True)
        unfinished.rename(place)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
