"""Reuse models and tests of earlier windows if none of their inputs has changed.

A later week changes no job that had ended before, so earlier models stay valid. The digest of ended jobs continues from
window to window, so each job is digested once.
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
from ttf.analyses.shared.risk.model import Model, TrainingData

LIBRARIES = ("numpy", "scipy")


class Cache:
    """Models and tests of one trace. table: MODEL_CACHE of the last run; code: digest of the rule's code."""

    def __init__(self, data: Data, table: pl.DataFrame | None = None, code: str = "") -> None:
        declarations = [[feature.name, feature.declaration] for feature in data.features]
        self._made_by = json.dumps([code, sys.version, [*map(version, LIBRARIES)], declarations])
        self._data = data
        self._rows: list[dict[str, Any]] = []
        table = MODEL_CACHE.frame([]) if table is None else table
        self._models = dict(table.select("lesson", "model").iter_rows())
        self._tests = dict(table.drop_nulls("test").select("test", "tested").iter_rows())
        self._digest, self._ended = hashlib.sha256(), np.zeros(len(data.jobs), dtype=bool)

    def lesson_digest(self, ended: np.ndarray, training: TrainingData, parent: str | None) -> str:
        """Return the digest of a model's inputs. ended: mask of the jobs whose end it knows; parent: its digest."""
        self._add_ended(ended)
        rows, running = training.rows, np.flatnonzero(training.running)
        settings = json.dumps([self._made_by, parent, training.until_s, self._digest.hexdigest()])
        hours = b"" if training.hours is None else training.hours.tobytes()
        parts = settings.encode(), np.packbits(training.running[rows]).tobytes(), hours
        return _sha256(chain(parts, training.job_features.take(running).digest_parts()))

    def model(self, window: str, digest: str, train: Callable[[], Model | str]) -> Model | str:
        """Return the model of a window from the cache, else train(); or a reason if it cannot be trained."""
        text = self._models.get(digest)
        model = train() if text is None else Model.from_json(json.loads(text), self._data.features)
        if isinstance(model, str):
            return model
        self._rows.append({"window": window, "lesson": digest, "model": json.dumps(model.to_json())})
        return model

    def test(self, rows: np.ndarray, key_parts: Sequence[Any], compare: Callable[[], Any]) -> Any:
        """Return compare(), a JSON-compatible result on the jobs `rows`; cached by their data and `key_parts`."""
        jobs = self._data.jobs
        settings = json.dumps([self._made_by, *key_parts, jobs.cluster_by])
        parts = settings.encode(), jobs.failed[rows].tobytes(), jobs.cluster[rows].tobytes()
        digest = _sha256(chain(parts, self._data.job_features.take(rows).digest_parts()))
        tested = self._tests.get(digest) or json.dumps(compare())
        self._rows[-1] |= {"test": digest, "tested": tested}
        return json.loads(tested)

    def table(self) -> pl.DataFrame:
        """Return MODEL_CACHE of this run, a row per model."""
        return MODEL_CACHE.frame(self._rows)

    def _add_ended(self, ended: np.ndarray) -> None:
        """Extend the digest by the newly ended jobs and their positions among all ended jobs."""
        if (self._ended & ~ended).any():
            self._digest, self._ended = hashlib.sha256(), np.zeros(len(ended), dtype=bool)
        is_new = ended & ~self._ended
        if is_new.any():
            parts = np.flatnonzero(is_new[ended]).tobytes(), self._data.jobs.failed[is_new].tobytes()
            # Column by column: together they are as large as the features.
            self._digest.update(_sha256(chain(parts, self._data.job_features.take(is_new).digest_parts())).encode())
            self._ended = ended


def _sha256(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()
