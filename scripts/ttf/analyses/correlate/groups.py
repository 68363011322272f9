"""Mean run times by feature value, made ready to be drawn: numbers, and not too many of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import polars as pl

from ttf.charts.figure import Study
from ttf.charts.theme import OUTCOME_COLOURS
from ttf.numbers.metrics import FEWEST_ENDED

# `not_success` is left to the table: it is for comparison with a published study, and mixes what runs with what failed.
SETS = ("success", "failure")
COLOURS = alt.Scale(domain=list(SETS), range=[OUTCOME_COLOURS[name] for name in SETS])
# Of a row with its number of jobs: their mean is drawn hollow, as a few long runs among so few can move it far.
FEW = alt.FieldLTPredicate("jobs", lt=FEWEST_ENDED)

MOST_POINTS = 1_000  # in a chart
MOST_GROUPS = 300  # of a feature
BINS = 100

KEYS = ("outcome_set", "feature", "cutoff_s")


@dataclass(frozen=True)
class Points:
    """Points to draw, and what the caption has to say about them.

    rows: outcome_set, feature, cutoff_s, value (float), to (the last value of a bin), jobs, mean_s, median_s.
    zeros: groups excluded from a logarithmic axis. merged: the features whose groups were merged into bins.
    """

    rows: list[dict]
    zeros: int
    merged: list[str]


def few_in_a_mean(rows: Sequence[dict], study: Study) -> str:
    """What the caption says of means that are drawn hollow, where there are any."""
    if all(row["jobs"] >= FEWEST_ENDED for row in rows):
        return ""
    return f" Hollow: fewer than {FEWEST_ENDED} {study.units}, whose mean a few long runs can move far."


def points(groups: pl.DataFrame, log: bool) -> Points:
    """The groups of runtime_by_group.csv (numeric features only) as points.

    A feature with more groups in a panel than fit has the groups of each of its panels merged into 100 bins of
    equal width on the axis, at job-weighted means; a bin has no median.
    """
    numbers = groups.with_columns(value=pl.col("value").cast(pl.Float64))
    positive = numbers.filter(pl.col("value") > 0) if log else numbers
    panels = max(1, positive.select(KEYS).n_unique())
    most = min(MOST_GROUPS, MOST_POINTS // panels)
    rows: list[dict] = []
    merged = []
    for (feature,), part in positive.group_by("feature", maintain_order=True):
        largest = part.group_by(KEYS).len()["len"].max()
        if largest <= most:
            rows += [_point(row) for row in part.iter_rows(named=True)]
        else:
            merged.append(str(feature))
            rows += _binned(part, log)
    return Points(rows, numbers.height - positive.height, merged)


def _point(row: dict) -> dict:
    keys = {name: row[name] for name in KEYS}
    value = row["value"]
    mean, median = row["runtime_mean_s"], row["runtime_median_s"]
    return keys | {"value": value, "to": value, "jobs": row["jobs"], "mean_s": mean, "median_s": median}


def _binned(part: pl.DataFrame, log: bool) -> list[dict]:
    def place(value: float) -> float:
        return math.log(value) if log else value

    low, high = place(part["value"].min()), place(part["value"].max())
    bins: dict[tuple, list[dict]] = {}
    for row in part.iter_rows(named=True):
        number = min(BINS - 1, int((place(row["value"]) - low) / (high - low) * BINS))
        bins.setdefault((*(row[name] for name in KEYS), number), []).append(row)
    return [_merged(members) for members in bins.values()]


def _merged(members: Sequence[dict]) -> dict:
    if len(members) == 1:
        return _point(members[0])
    jobs = sum(row["jobs"] for row in members)
    values = [row["value"] for row in members]

    def weighted(name: str) -> float:
        # fsum rounds once, so the order of the rows does not matter; a mean stays among its values.
        return math.fsum(row[name] * row["jobs"] for row in members) / jobs

    return {name: members[0][name] for name in KEYS} | {
        "value": min(max(weighted("value"), min(values)), max(values)),
        "from": min(values),
        "to": max(values),
        "jobs": jobs,
        "mean_s": weighted("runtime_mean_s"),
        "median_s": None,
    }
