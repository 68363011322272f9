"""Models and tests of earlier windows, used again where nothing that they rest on has changed.

A later week changes no job that had ended before, so that the models of the windows before it stay. The digest of the
jobs that had ended goes on from window to window, so that each job is digested once.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from ttf.analyses.risk.train_model import MODEL_CACHE
from ttf.analyses.shared.risk.features import Data
from ttf.analyses.shared.risk.model import Lesson, Model

LIBRARIES = ("numpy", "scipy")


class Cache:
    """Models and tests of one trace. table: MODEL_CACHE as the last run left it; code: of the rule."""

    def __init__(self, data: Data, table: pl.DataFrame | None = None, code: str = "") -> None:
        declared = [[feature.name, feature.declared] for feature in data.features]
        self._made_by = json.dumps([code, sys.version, [*map(version, LIBRARIES)], declared])
        self._data, self._rows = data, []
        table = MODEL_CACHE.frame([]) if table is None else table
        self._models = dict(table.select("lesson", "model").iter_rows())
        self._tests = dict(table.drop_nulls("test").select("test", "tested").iter_rows())
        self._digest, self._ended = hashlib.sha256(), np.zeros(len(data.jobs), dtype=bool)

    def lesson_digest(self, ended: np.ndarray, lesson: Lesson, parent: str | None) -> str:
        """Digest of all that the model of a lesson rests on.

        ended: truth values, the jobs whose end the model knows, those of its parent among them; parent: its digest.
        """
        self._add_ended(ended)
        rows, running = lesson.rows, np.flatnonzero(lesson.running)
        settings = json.dumps([self._made_by, parent, lesson.until_s, self._digest.hexdigest()])
        parts = settings.encode(), np.packbits(lesson.running[rows]).tobytes(), lesson.hours.tobytes()
        return _digest(chain(parts, lesson.known.take(running).told()))

    def model(self, window: str, digest: str, train: Callable[[], Model | str]) -> Model | str:
        """The model of a window, as cached under the digest of its lesson, else train(); or a reason."""
        if digest in self._models:
            model = Model.from_json(json.loads(self._models[digest]), self._data.features)
        elif isinstance(model := train(), str):
            return model
        self._rows.append({"window": window, "lesson": digest, "model": json.dumps(model.to_json())})
        return model

    def test(self, rows: np.ndarray, about: Sequence[Any], compare: Callable[[], Any]) -> Any:
        """compare(), which JSON can say, of the last model and others on the jobs `rows`. about: the digests of models

        and what else it rests on.
        """
        jobs = self._data.jobs
        settings = json.dumps([self._made_by, *about, jobs.by])
        parts = settings.encode(), jobs.failed[rows].tobytes(), jobs.cluster[rows].tobytes()
        digest = _digest(chain(parts, self._data.known.take(rows).told()))
        tested = self._tests.get(digest) or json.dumps(compare())
        self._rows[-1] |= {"test": digest, "tested": tested}
        return json.loads(tested)

    def table(self) -> pl.DataFrame:
        """MODEL_CACHE of this run."""
        return MODEL_CACHE.frame(self._rows)

    def _add_ended(self, ended: np.ndarray) -> None:
        """Let the digest go on with the jobs that are new among those that had ended, and their places there."""
        if (self._ended & ~ended).any():
            self._digest, self._ended = hashlib.sha256(), np.zeros(len(ended), dtype=bool)
        new = ended & ~self._ended
        if new.any():
            positions = np.flatnonzero(new[ended])
            parts = positions.tobytes(), self._data.jobs.failed[new].tobytes()
            # One column after the other: all of them are as large as the features.
            self._digest.update(_digest(chain(parts, self._data.known.take(new).told())).encode())
            self._ended = ended


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()
