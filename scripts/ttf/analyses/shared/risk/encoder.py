"""Features as the columns of a design. What was learnt from the training data, vocabularies, scalings and ranges, is
part of the model, and the same code serves training and scoring."""

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ttf.analyses.shared.risk.features import CATEGORY, CLOCK, HASHED, HISTORY, NUMERIC, Feature, Submitted, increments

# Rows at a time whose design is written out.
BLOCK = 1 << 14
BLANK, OTHER = "(blank)", "(another)"


@dataclass(frozen=True)
class Term:
    """A column of the design: of which feature, and what of it."""

    feature: str
    name: str


@dataclass(frozen=True)
class Design:
    """n rows: columns of numbers (n, k), then for each category a column for every level but the first."""

    numbers: np.ndarray
    levels: tuple[tuple[np.ndarray, int], ...]

    @property
    def width(self) -> int:
        """With the intercept, which is the first column."""
        return 1 + self.numbers.shape[1] + sum(size - 1 for _, size in self.levels)

    def __len__(self) -> int:
        return len(self.numbers)

    def rows(self, which: slice | np.ndarray, into: np.ndarray | None = None) -> np.ndarray:
        """Some rows written out; into: an array with room for them, if there is one."""
        numbers = self.numbers[which]
        written = np.empty((len(numbers), self.width)) if into is None else into[: len(numbers)]
        written[:, 0] = 1
        written[:, 1 + numbers.shape[1] :] = 0
        first = 1 + numbers.shape[1]
        written[:, 1:first] = numbers
        for codes, size in self.levels:
            of_rows = codes[which]
            named = np.flatnonzero(of_rows)
            written[named, first + of_rows[named] - 1] = 1
            first += size - 1
        return written

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """All rows written out, each block in the place of the one before."""
        written = np.empty((min(BLOCK, len(self)), self.width))
        for start in range(0, len(self), BLOCK):
            rows = slice(start, min(start + BLOCK, len(self)))
            yield rows, self.rows(rows, written)

    def dot(self, coefficients: np.ndarray) -> np.ndarray:
        """The design times coefficients: a number, or several, a row."""
        found = np.empty((len(self), *coefficients.shape[1:]))
        for rows, block in self.blocks():
            found[rows] = block @ coefficients
        return found

    def take(self, rows: slice | np.ndarray) -> "Design":
        """Some of the jobs; rows: a slice, their places, or a truth value each."""
        if isinstance(rows, np.ndarray) and rows.dtype == bool:
            rows = np.flatnonzero(rows)
        return Design(self.numbers[rows], tuple((codes[rows], size) for codes, size in self.levels))


@dataclass(frozen=True)
class Encoder:
    """features: in their order; learnt: feature -> what the training data say of it (numbers, texts, lists)."""

    features: tuple[Feature, ...]
    learnt: Mapping[str, Mapping[str, Any]]

    @classmethod
    def fit(cls, features: Sequence[Feature], rows: Submitted) -> "Encoder":
        """Of the training data: mean, spread and range of numbers, and the commonest values of categories.

        A feature that is blank everywhere, or the same, is left out of the design.
        """
        return cls(tuple(features), {feature.name: _LEARN[feature.kind](feature, rows) for feature in features})

    @property
    def terms(self) -> list[Term]:
        """The columns of the design after the intercept, in their order."""
        numbers, levels = [], []
        for feature in self.features:
            about = self.learnt[feature.name]
            numbers += [Term(feature.name, name) for name in about.get("numbers", ())]
            levels += [Term(feature.name, name) for name in about.get("levels", ())[1:]]
        return numbers + levels

    @property
    def digest(self) -> str:
        """Of the features as they are declared: what a model is said to go with."""
        declared = {feature.name: feature.declared for feature in self.features}
        return hashlib.sha256(json.dumps(declared, sort_keys=True).encode()).hexdigest()[:16]

    def design(self, rows: Submitted) -> Design:
        columns: list[np.ndarray] = []
        levels: list[tuple[np.ndarray, int]] = []
        for feature in self.features:
            about = self.learnt[feature.name]
            if about.get("numbers"):
                columns += _NUMBERS[feature.kind](feature, about, rows)
            if about.get("levels"):
                levels.append((self.level(feature, rows), len(about["levels"])))
        return Design(np.column_stack(columns) if columns else np.empty((rows.n, 0)), tuple(levels))

    def level(self, feature: Feature, rows: Submitted) -> np.ndarray:
        """The place of each job's value among the levels of a category."""
        names, labels = self.learnt[feature.name]["levels"], rows.labels[feature.name]
        places = {name: place for place, name in enumerate(names)}
        if feature.kind == HASHED:
            of_labels = [bucket(label, feature.size) for label in labels]
        else:
            of_labels = [places.get(label, places.get(OTHER, 0)) for label in labels]
        # The last entry stands for the code -1, of a blank.
        return np.array([*of_labels, places.get(BLANK, 0)], dtype=np.int32)[rows.codes[feature.name]]

    def beyond(self, rows: Submitted) -> np.ndarray:
        """Whether a job lies beyond what the model was trained on: a number outside its range, or a value unseen."""
        found = np.zeros(rows.n, dtype=bool)
        for feature in self.features:
            about = self.learnt[feature.name]
            if feature.kind == NUMERIC and "low" in about:
                values = rows.numbers[feature.name]
                found |= (values < about["low"]) | (values > about["high"])
            elif feature.kind == CATEGORY and about.get("levels"):
                seen = set(about["seen"])
                unseen = [label not in seen for label in rows.labels[feature.name]]
                found |= np.array([*unseen, False])[rows.codes[feature.name]]
        return found

    def to_json(self) -> dict[str, Any]:
        # A file may have them sorted by name: the columns of the design follow `place`.
        return {
            feature.name: feature.declared | {"place": place, "learnt": dict(self.learnt[feature.name])}
            for place, feature in enumerate(self.features)
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any], features: Sequence[Feature]) -> "Encoder":
        """features: those that `said` holds, in any order."""
        features = sorted(features, key=lambda feature: said[feature.name]["place"])
        return cls(tuple(features), {feature.name: said[feature.name]["learnt"] for feature in features})


# What is learnt ------------------------------------------------------------------------------------------------


def _learn_numeric(feature: Feature, rows: Submitted) -> dict[str, Any]:
    values = rows.numbers[feature.name]
    known = values[~np.isnan(values)]
    blanks = len(known) < len(values)
    if not len(known):
        return {"numbers": [], "why": "blank in all jobs"}
    about = {"low": float(known.min()), "high": float(known.max())}
    varies = about["low"] < about["high"]
    if not varies and not blanks:
        return about | {"numbers": [], "why": "the same in all jobs"}
    about |= {"mean": float(known.mean()), "spread": float(known.std()) if varies else 1.0}
    names = [feature.name] if varies else []
    if varies:
        # A second column lets the slope change above the middle.
        about["knot"] = float(np.median(known))
        if about["low"] < about["knot"] < about["high"]:
            names.append(f"{feature.name} above the median")
    return about | {"numbers": names + ([f"{feature.name} {BLANK}"] if blanks else [])}


def _numeric_columns(feature: Feature, about: Mapping[str, Any], rows: Submitted) -> list[np.ndarray]:
    values = rows.numbers[feature.name]
    blank = np.isnan(values)
    known = np.where(blank, about["mean"], values)
    columns = []
    for name in about["numbers"]:
        if name == feature.name:
            columns.append((known - about["mean"]) / about["spread"])
        elif name.endswith(BLANK):
            columns.append(blank.astype(float))
        else:
            columns.append(np.where(blank, 0, np.maximum(values - about["knot"], 0)) / about["spread"])
    return columns


def _learn_category(feature: Feature, rows: Submitted) -> dict[str, Any]:
    labels, codes = rows.labels[feature.name], rows.codes[feature.name]
    counts = np.bincount(codes + 1, minlength=len(labels) + 1)
    common = sorted((place for place in range(len(labels)) if counts[place + 1]), key=lambda p: (-counts[p + 1], p))
    names = [labels[place] for place in common[: feature.size]]
    if len(common) > len(names):
        names.append(OTHER)
    if counts[0]:
        names.append(BLANK)
    if len(names) < 2:
        return {"levels": [], "why": "the same in all jobs" if common else "blank in all jobs"}
    return {"levels": names, "seen": [labels[place] for place in sorted(common)]}


def _learn_hashed(feature: Feature, rows: Submitted) -> dict[str, Any]:
    used = np.unique(rows.codes[feature.name])
    if len(used) < 2:
        return {"levels": [], "why": "the same in all jobs"}
    return {"levels": [f"bucket {number}" for number in range(feature.size)]}


def bucket(label: str, buckets: int) -> int:
    return zlib.crc32(label.encode()) % buckets


def _learn_history(feature: Feature, rows: Submitted) -> dict[str, Any]:
    return {"numbers": [f"{feature.name} by {', '.join(level)}" for level in feature.keys] if rows.n else []}


def _history_columns(feature: Feature, about: Mapping[str, Any], rows: Submitted) -> list[np.ndarray]:
    return list(increments(rows.rates[feature.name]).T)


def _learn_clock(feature: Feature, rows: Submitted) -> dict[str, Any]:
    if np.isnan(rows.numbers[feature.name]).all():
        return {"numbers": [], "why": "the hour is not known"}
    return {"numbers": ["hour, sine", "hour, cosine", "Saturday or Sunday"]}


def _clock_columns(feature: Feature, about: Mapping[str, Any], rows: Submitted) -> list[np.ndarray]:
    turn = np.nan_to_num(rows.numbers[feature.name]) * (2 * np.pi / 24)
    return [np.sin(turn), np.cos(turn), rows.weekend[feature.name].astype(float)]


_LEARN = {
    NUMERIC: _learn_numeric,
    CATEGORY: _learn_category,
    HASHED: _learn_hashed,
    HISTORY: _learn_history,
    CLOCK: _learn_clock,
}
_NUMBERS = {NUMERIC: _numeric_columns, HISTORY: _history_columns, CLOCK: _clock_columns}
