"""What an earlier run trained and tested, used again where nothing that it rests on has changed.

A later week changes no job that had ended before, so that the models of the windows before it stay. Digests of what
all of these rest on would look at every job once for each window after it: the digest of the jobs that had ended goes
on from window to window, and says of each window what came in and where.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from ttf.kept import Kept
from ttf.risk.features import Data
from ttf.risk.logistic import Prior
from ttf.risk.model import Lesson, Model, trained

Key = list[str | bytes]


class Before:
    """Models and tests of one trace, by what they rest on."""

    def __init__(self, data: Data, kept: Kept) -> None:
        self._data, self._kept = data, kept
        self._declared = json.dumps([[feature.name, feature.declared] for feature in data.features])
        self._digest, self._ended = hashlib.sha256(), np.zeros(len(data.jobs), dtype=bool)

    def model(
        self,
        ended: np.ndarray,
        lesson: Lesson,
        parent: Model | None = None,
        prior: Prior | None = None,
        kind: str | None = None,
    ) -> Model | str:
        """As `trained`. ended: truth values, jobs among which are those that the lesson tells the end of.

        parent: whose encoder it keeps; prior: made of the parent alone.
        """
        about = [self._declared, "" if parent is None else as_key(parent), kind or ""]
        key = ["model", *about, *self._lesson(ended, lesson)]

        def make() -> Any:
            found = trained(lesson, self._data.features, prior, parent and parent.encoder, kind)
            return found if isinstance(found, str) else found.to_json()

        said = self._as_json(key, make)
        return said if isinstance(said, str) else Model.from_json(said, self._data.features)

    def test(self, rows: np.ndarray, models: Sequence[Model], told: Any, make: Callable[[], Any]) -> Any:
        """make(), which JSON can say: of features, ends and clusters of the jobs `rows`, of models, and of `told`."""
        jobs = self._data.jobs
        key = ["test", json.dumps([told, jobs.by]), jobs.failed[rows].tobytes(), jobs.cluster[rows].tobytes()]
        return self._as_json([*key, *map(as_key, models), *self._data.known.take(rows).told()], make)

    def _lesson(self, ended: np.ndarray, lesson: Lesson) -> Key:
        self._go_on(ended)
        rows, running = lesson.rows, np.flatnonzero(lesson.running)
        which = (lesson.learn[ended], lesson.again[ended], lesson.failed[ended], lesson.running[rows])
        hours = b"" if lesson.hours is None else lesson.hours.tobytes()
        told = json.dumps([lesson.hours is not None, lesson.until_s])
        bits = [np.packbits(of).tobytes() for of in which]
        return [self._digest.digest(), *bits, told, hours, *lesson.known.take(running).told()]

    def _go_on(self, ended: np.ndarray) -> None:
        """The digest, of what was known of the jobs `ended`: goes on with those that are new, at their places."""
        if (self._ended & ~ended).any():
            self._digest, self._ended = hashlib.sha256(), np.zeros(len(ended), dtype=bool)
        new = ended & ~self._ended
        if new.any():
            places = np.flatnonzero(new[ended])
            self._digest.update(len(places).to_bytes(8))
            self._digest.update(places.tobytes())
            for part in self._data.known.take(new).told():
                self._digest.update(part)
            self._ended = ended

    def _as_json(self, key: Key, make: Callable[[], Any]) -> Any:
        found = self._kept.frames(key, lambda: {"said": pl.DataFrame({"json": [json.dumps(make())]})})
        return json.loads(found["said"].item())


def as_key(model: Model) -> str:
    return json.dumps(model.to_json())
