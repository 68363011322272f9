"""Encode features as the columns of a design matrix.

Vocabularies, scalings and ranges come from the training data and are stored in the model, so training and scoring
share this code.
"""

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import logit

from ttf.analyses.shared.risk.features import (
    CATEGORY,
    CLOCK,
    HASHED,
    HISTORY,
    NUMERIC,
    Feature,
    JobFeatures,
)
from ttf.stats.regression.design import Design

# Rows whose features are in the processor's cache at a time.
BLOCK = 1 << 13
BLANK_VALUE, OTHER_VALUE = "(blank)", "(another)"


@dataclass(frozen=True)
class Term:
    """A column of the design: its feature, and the name of the column within that feature."""

    feature: str
    name: str


@dataclass(frozen=True)
class Encoder:
    """features: in the order of the design; params: feature -> what was learnt from the training data."""

    features: tuple[Feature, ...]
    params: Mapping[str, Mapping[str, Any]]

    @classmethod
    def fit(cls, features: Sequence[Feature], job_features: JobFeatures) -> "Encoder":
        """Learn mean, spread and range of numbers, and the most common values of categories, from the training data.

        A feature that is constant or blank in all jobs has no column in the design.
        """
        params = {feature.name: _FITTERS[feature.kind](feature, job_features) for feature in features}
        return cls(tuple(features), params)

    @property
    def terms(self) -> list[Term]:
        """Columns of the design after the intercept, in order."""
        numbers, levels = [], []
        for feature in self.features:
            params = self.params[feature.name]
            numbers += [Term(feature.name, name) for name in params.get("numbers", ())]
            levels += [Term(feature.name, name) for name in params.get("levels", ())[1:]]
        return numbers + levels

    @property
    def digest(self) -> str:
        """Digest of the declared features, by which a model file is checked."""
        declarations = {feature.name: feature.declaration for feature in self.features}
        return hashlib.sha256(json.dumps(declarations, sort_keys=True).encode()).hexdigest()[:16]

    def design(self, job_features: JobFeatures, rows: np.ndarray | None = None) -> Design:
        """Return the design of jobs, in the order of `terms`; rows: indices of those jobs, None: all."""
        rows = np.arange(job_features.n) if rows is None else rows
        numeric, levels = [], []
        for feature in self.features:
            params = self.params[feature.name]
            if params.get("numbers"):
                numeric.append((_COLUMNS[feature.kind], feature, params))
            if params.get("levels"):
                levels.append((self.level_codes(feature, job_features)[rows], len(params["levels"])))
        numbers = np.empty((len(rows), sum(len(params["numbers"]) for _, _, params in numeric)))
        for start in range(0, len(rows) if numeric else 0, BLOCK):
            block = job_features.take(rows[start : start + BLOCK])
            columns = [column for make, feature, params in numeric for column in make(feature, params, block)]
            np.stack(columns, axis=1, out=numbers[start : start + BLOCK])
        return Design(numbers, tuple(levels))

    def level_codes(self, feature: Feature, job_features: JobFeatures) -> np.ndarray:
        """Return for each job the index of its value among the levels of a category."""
        names, labels = self.params[feature.name]["levels"], job_features.labels[feature.name]
        index_by_label = {name: index for index, name in enumerate(names)}
        if feature.kind == HASHED:
            level_of_label = [hash_bucket(label, feature.size) for label in labels]
        else:
            level_of_label = [index_by_label.get(label, index_by_label.get(OTHER_VALUE, 0)) for label in labels]
        # Blank cells have the code -1, which selects the last entry.
        level_codes = np.array([*level_of_label, index_by_label.get(BLANK_VALUE, 0)], dtype=np.int32)
        return level_codes[job_features.codes[feature.name]]

    def is_out_of_range(self, job_features: JobFeatures) -> np.ndarray:
        """Flag jobs with a number outside the range of the training data, or a category value not seen there."""
        is_outside = np.zeros(job_features.n, dtype=bool)
        for feature in self.features:
            params = self.params[feature.name]
            if feature.kind == NUMERIC and "low" in params:
                values = job_features.numbers[feature.name]
                is_outside |= (values < params["low"]) | (values > params["high"])
            elif feature.kind == CATEGORY and params.get("levels"):
                training_labels = set(params["seen"])
                is_unseen = [label not in training_labels for label in job_features.labels[feature.name]]
                is_outside |= np.array([*is_unseen, False])[job_features.codes[feature.name]]
        return is_outside

    def to_json(self) -> dict[str, Any]:
        """Return by feature its declaration, its position and what it learnt, for `from_json`."""
        # A file may sort features by name; `place` restores the order of the columns.
        return {
            feature.name: feature.declaration | {"place": index, "learnt": dict(self.params[feature.name])}
            for index, feature in enumerate(self.features)
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any], features: Sequence[Feature]) -> "Encoder":
        """Read what `to_json` wrote; features: those in the document, in any order."""
        features = sorted(features, key=lambda feature: document[feature.name]["place"])
        return cls(tuple(features), {feature.name: document[feature.name]["learnt"] for feature in features})


# Kinds of features ---------------------------------------------------------------------------------------------


def _fit_numeric(feature: Feature, job_features: JobFeatures) -> dict[str, Any]:
    """Learn range, mean, spread and median of a number, and the names of its columns, or why it has none."""
    values = job_features.numbers[feature.name]
    present = values[~np.isnan(values)]
    blanks = len(present) < len(values)
    if not len(present):
        return {"numbers": [], "why": "blank in all jobs"}
    params = {"low": float(present.min()), "high": float(present.max())}
    varies = params["low"] < params["high"]
    if not varies and not blanks:
        return params | {"numbers": [], "why": "the same in all jobs"}
    params |= {"mean": float(present.mean()), "spread": float(present.std()) if varies else 1.0}
    names = [feature.name] if varies else []
    if varies:
        # A second column lets the slope change above the median.
        params["knot"] = float(np.median(present))
        if params["low"] < params["knot"] < params["high"]:
            names.append(f"{feature.name} above the median")
    return params | {"numbers": names + ([f"{feature.name} {BLANK_VALUE}"] if blanks else [])}


def _numeric_design_columns(feature: Feature, params: Mapping[str, Any], job_features: JobFeatures) -> list[np.ndarray]:
    values = job_features.numbers[feature.name]
    blank = np.isnan(values)
    filled = np.where(blank, params["mean"], values)
    columns = []
    for name in params["numbers"]:
        if name == feature.name:
            columns.append((filled - params["mean"]) / params["spread"])
        elif name.endswith(BLANK_VALUE):
            columns.append(blank.astype(float))
        else:
            columns.append(np.where(blank, 0, np.maximum(values - params["knot"], 0)) / params["spread"])
    return columns


def _fit_category(feature: Feature, job_features: JobFeatures) -> dict[str, Any]:
    """Learn the levels of a category: the most common values, another, blank; the first is the reference."""
    labels, codes = job_features.labels[feature.name], job_features.codes[feature.name]
    counts = np.bincount(codes + 1, minlength=len(labels) + 1)
    common = sorted((code for code in range(len(labels)) if counts[code + 1]), key=lambda p: (-counts[p + 1], p))
    names = [labels[code] for code in common[: feature.size]]
    if len(common) > len(names):
        names.append(OTHER_VALUE)
    if counts[0]:
        names.append(BLANK_VALUE)
    if len(names) < 2:
        return {"levels": [], "why": "the same in all jobs" if common else "blank in all jobs"}
    return {"levels": names, "seen": [labels[code] for code in sorted(common)]}


def _fit_hashed(feature: Feature, job_features: JobFeatures) -> dict[str, Any]:
    """Return a level for each hash bucket, or why there are none."""
    if len(np.unique(job_features.codes[feature.name])) < 2:
        return {"levels": [], "why": "the same in all jobs"}
    return {"levels": [f"bucket {number}" for number in range(feature.size)]}


def hash_bucket(label: str, buckets: int) -> int:
    return zlib.crc32(label.encode()) % buckets


def _fit_history(feature: Feature, job_features: JobFeatures) -> dict[str, Any]:
    """Return the names of the columns, one for each level of the history."""
    return {"numbers": [f"{feature.name} by {', '.join(level)}" for level in feature.keys] if job_features.n else []}


def _history_design_columns(feature: Feature, params: Mapping[str, Any], job_features: JobFeatures) -> list[np.ndarray]:
    """Return the log-odds of each level minus those of the level above."""
    log_odds = [logit(rates) for rates in job_features.rates[feature.name].T]
    return [level - above for above, level in pairwise(log_odds)]


def _fit_clock(feature: Feature, job_features: JobFeatures) -> dict[str, Any]:
    """Return the names of the columns, or why there are none."""
    if np.isnan(job_features.numbers[feature.name]).all():
        return {"numbers": [], "why": "the hour is not known"}
    return {"numbers": ["hour, sine", "hour, cosine", "Saturday or Sunday"]}


def _clock_design_columns(feature: Feature, params: Mapping[str, Any], job_features: JobFeatures) -> list[np.ndarray]:
    angle = np.nan_to_num(job_features.numbers[feature.name]) * (2 * np.pi / 24)
    return [np.sin(angle), np.cos(angle), job_features.weekend[feature.name].astype(float)]


_FITTERS = {
    NUMERIC: _fit_numeric,
    CATEGORY: _fit_category,
    HASHED: _fit_hashed,
    HISTORY: _fit_history,
    CLOCK: _fit_clock,
}
_COLUMNS = {NUMERIC: _numeric_design_columns, HISTORY: _history_design_columns, CLOCK: _clock_design_columns}
