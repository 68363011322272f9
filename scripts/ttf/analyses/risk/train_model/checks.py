"""Check a window before training: are its columns present, and how far did its features drift?

History is excluded, as a new model has to learn who fails; the clock too, as a window that is cut has other hours.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ttf.analyses.shared.risk.encoder import hash_bucket
from ttf.analyses.shared.risk.features import CATEGORY, HASHED, NUMERIC, Feature, JobFeatures
from ttf.analyses.shared.risk.training_jobs import Population
from ttf.stats.differences import compare_distributions, compare_medians


@dataclass(frozen=True)
class Drift:
    """Drift of a feature: effect size, 0 to 1, and its name."""

    feature: str
    effect_name: str
    effect: float


@dataclass(frozen=True)
class CodedFeature:
    """codes: (n,) index of each job's value, -1 if blank; size: number of distinct values.

    values: ascending, of a numeric feature. separate: number of categories compared one by one; the others are pooled.
    """

    feature: Feature
    codes: np.ndarray
    size: int
    values: np.ndarray | None = None
    separate: int = 0

    def count(self, rows: np.ndarray) -> np.ndarray:
        """Return the number of the jobs `rows` with each value, blank last."""
        return np.roll(np.bincount(self.codes[rows] + 1, minlength=self.size + 1), -1)


def code_features(features: Sequence[Feature], job_features: JobFeatures) -> list[CodedFeature]:
    """Return the features of requests (not of history or the clock), with the value of each job as a code."""
    coded = []
    for feature in features:
        if feature.kind == NUMERIC:
            numbers = job_features.numbers[feature.name]
            is_present = ~np.isnan(numbers)
            values = np.unique(numbers[is_present])
            codes = np.where(is_present, np.searchsorted(values, numbers), -1)
            coded.append(CodedFeature(feature, codes, len(values), values))
        elif feature.kind == CATEGORY:
            labels = job_features.labels[feature.name]
            coded.append(CodedFeature(feature, job_features.codes[feature.name], len(labels), separate=feature.size))
        elif feature.kind == HASHED:
            buckets = [hash_bucket(label, feature.size) for label in job_features.labels[feature.name]]
            codes = np.array([*buckets, -1])[job_features.codes[feature.name]]
            coded.append(CodedFeature(feature, codes, feature.size, separate=feature.size))
    return coded


@dataclass(frozen=True)
class Summary:
    """Summary of some jobs. columns: those with any value; counts: `CodedFeature.count` of each feature."""

    jobs: int
    columns: frozenset[str]
    counts: tuple[np.ndarray, ...]

    @classmethod
    def summarise(
        cls, jobs: Population, features: Sequence[Feature], coded: Sequence[CodedFeature], rows: np.ndarray
    ) -> "Summary":
        """Return the summary of the jobs `rows`."""
        columns = {column for feature in features for column in feature.columns if column in jobs.jobs.columns}
        present = frozenset(column for column in columns if jobs.jobs[column][rows].null_count() < len(rows))
        return cls(len(rows), present, tuple(feature.count(rows) for feature in coded))

    def __add__(self, other: "Summary") -> "Summary":
        """Combine the summaries of disjoint jobs."""
        counts = tuple(left + right for left, right in zip(self.counts, other.counts, strict=True))
        return Summary(self.jobs + other.jobs, self.columns | other.columns, counts)


def schema_problem(
    features: Sequence[Feature], coded: Sequence[CodedFeature], past: Summary, current: Summary
) -> str | None:
    """Return what `current` jobs lack that `past` jobs had: a column, or every known value of a category."""
    for feature in features:
        for column in feature.columns:
            if column in past.columns and column not in current.columns:
                return f"column {column} of the feature {feature.name} is blank in all jobs of the window"
    for feature_codes, past_counts, current_counts in zip(coded, past.counts, current.counts, strict=True):
        if feature_codes.feature.kind == CATEGORY:
            was_present, is_present = past_counts[:-1] > 0, current_counts[:-1] > 0
            if was_present.any() and is_present.any() and not (was_present & is_present).any():
                return f"no value of the feature {feature_codes.feature.name} was there before"
    return None


def largest_drift(coded: Sequence[CodedFeature], past: Summary, current: Summary) -> Drift | None:
    """Return the feature with the largest drift between two sets of jobs, the first if tied; None without an effect.

    Effect sizes: Cliff's delta for numbers; Cramer's V for categories and for the share of blanks.
    """
    pairs = zip(coded, past.counts, current.counts, strict=True)
    drifts = [drift for feature, *counts in pairs for drift in _iterate_drifts(feature, *counts)]
    return max(drifts, key=lambda drift: drift.effect, default=None)


def _iterate_drifts(coded: CodedFeature, past: np.ndarray, current: np.ndarray) -> Iterator[Drift]:
    """Yield the drifts of a feature; past, current: `CodedFeature.count` of the jobs compared."""
    if coded.values is None:
        common = np.argsort(-past[:-1], kind="stable")[: coded.separate]
        is_common = np.zeros(coded.size, dtype=bool)
        is_common[common] = True
        cells = [
            np.array([*counts[:-1][common], counts[:-1][~is_common].sum(), counts[-1]]) for counts in (past, current)
        ]
        comparisons = [compare_distributions(*cells)[0]]
    else:
        blanks = [np.array([counts[:-1].sum(), counts[-1]]) for counts in (past, current)]
        comparisons = [compare_medians(coded.values, past[:-1], current[:-1]), compare_distributions(*blanks)[0]]
    for row in comparisons:
        if row["effect"] is not None:
            yield Drift(coded.feature.name, row["effect_name"], abs(row["effect"]))
