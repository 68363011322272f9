"""What is looked at before a window trains anything: whether its columns are there, and how far its features moved.

History is left out, as who fails is what a new model has to learn; so is the clock, as a window that is cut has other
hours.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ttf.analyses.shared.risk.encoder import bucket
from ttf.analyses.shared.risk.features import CATEGORY, HASHED, NUMERIC, Feature, Submitted
from ttf.analyses.shared.risk.training_jobs import Population
from ttf.stats.differences import compare_distributions, compare_medians


@dataclass(frozen=True)
class Moved:
    """By how much a feature differs: the size of the effect, 0 to 1, and what it is called."""

    feature: str
    effect_name: str
    effect: float


@dataclass(frozen=True)
class Counts:
    """code: of each job, the place of its value of a feature, -1 where blank; size: values in all.

    values: ascending, of a number. most: of a category so many are looked at one by one, the others together.
    """

    feature: Feature
    code: np.ndarray
    size: int
    values: np.ndarray | None = None
    most: int = 0

    def of(self, rows: np.ndarray) -> np.ndarray:
        """Jobs by value, the blank ones last."""
        return np.roll(np.bincount(self.code[rows] + 1, minlength=self.size + 1), -1)


def counted(features: Sequence[Feature], known: Submitted) -> list[Counts]:
    """Of the features that say what a job asks for."""
    found = []
    for feature in features:
        if feature.kind == NUMERIC:
            numbers = known.numbers[feature.name]
            is_known = ~np.isnan(numbers)
            values = np.unique(numbers[is_known])
            code = np.where(is_known, np.searchsorted(values, numbers), -1)
            found.append(Counts(feature, code, len(values), values))
        elif feature.kind == CATEGORY:
            labels = known.labels[feature.name]
            found.append(Counts(feature, known.codes[feature.name], len(labels), most=feature.size))
        elif feature.kind == HASHED:
            buckets = [bucket(label, feature.size) for label in known.labels[feature.name]]
            code = np.array([*buckets, -1])[known.codes[feature.name]]
            found.append(Counts(feature, code, feature.size, most=feature.size))
    return found


@dataclass(frozen=True)
class Looked:
    """What is looked at of some jobs. columns: those that any has a value in; by_value: of each feature `Counts.of`."""

    jobs: int
    columns: frozenset[str]
    by_value: tuple[np.ndarray, ...]

    @classmethod
    def at(cls, jobs: Population, features: Sequence[Feature], counts: Sequence[Counts], rows: np.ndarray) -> "Looked":
        columns = {column for feature in features for column in feature.columns if column in jobs.jobs.columns}
        known = frozenset(column for column in columns if jobs.jobs[column][rows].null_count() < len(rows))
        return cls(len(rows), known, tuple(of.of(rows) for of in counts))

    def __add__(self, other: "Looked") -> "Looked":
        """Of both, which have no job in common."""
        by_value = tuple(one + two for one, two in zip(self.by_value, other.by_value, strict=True))
        return Looked(self.jobs + other.jobs, self.columns | other.columns, by_value)


def schema_problem(features: Sequence[Feature], counts: Sequence[Counts], before: Looked, here: Looked) -> str | None:
    """What jobs lack that those `before` them had: a column, or every value of a category that was known."""
    for feature in features:
        for column in feature.columns:
            if column in before.columns and column not in here.columns:
                return f"column {column} of the feature {feature.name} is blank in all jobs of the window"
    for of, earlier, later in zip(counts, before.by_value, here.by_value, strict=True):
        if of.feature.kind == CATEGORY:
            seen, now = earlier[:-1] > 0, later[:-1] > 0
            if seen.any() and now.any() and not (seen & now).any():
                return f"no value of the feature {of.feature.name} was there before"
    return None


def largest_drift(counts: Sequence[Counts], before: Looked, here: Looked) -> Moved | None:
    """The feature whose values differ most between two sets of jobs; the first of several, None without an effect.

    Of numbers Cliff's delta, of categories Cramer's V, as of the share of blanks of either.
    """
    pairs = zip(counts, before.by_value, here.by_value, strict=True)
    moved = [found for of, *by_value in pairs for found in _effects(of, *by_value)]
    return max(moved, key=lambda one: one.effect, default=None)


def _effects(of: Counts, before: np.ndarray, after: np.ndarray) -> Iterator[Moved]:
    if of.values is None:
        kept = np.argsort(-before[:-1], kind="stable")[: of.most]
        one_by_one = np.zeros(of.size, dtype=bool)
        one_by_one[kept] = True
        cells = [
            np.array([*all_of[:-1][kept], all_of[:-1][~one_by_one].sum(), all_of[-1]]) for all_of in (before, after)
        ]
        found = [compare_distributions(*cells)[0]]
    else:
        blanks = [np.array([all_of[:-1].sum(), all_of[-1]]) for all_of in (before, after)]
        found = [compare_medians(of.values, before[:-1], after[:-1]), compare_distributions(*blanks)[0]]
    for row in found:
        if row["effect"] is not None:
            yield Moved(of.feature.name, row["effect_name"], abs(row["effect"]))
