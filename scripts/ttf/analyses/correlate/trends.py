"""What the correlations of group means say about a chart of group means, in words."""

from collections.abc import Sequence

import polars as pl

from ttf.charts.figure import Study
from ttf.charts.text import FEATURE_NAMES, coefficient, listed

# A title is silent about fewer: three points on a line are easily had by chance, whatever their p-value.
FEWEST_GROUPS = 5
_WORDS = {"success": "successful", "failure": "failed"}


def correlation(correlations: pl.DataFrame, feature: str, outcome: str, cutoff: int | None) -> dict | None:
    """The row of correlations.csv that belongs to a panel, whatever its axes: Pearson's r of the group means."""
    found = correlations.filter(
        (pl.col("feature") == feature)
        & (pl.col("outcome_set") == outcome)
        & pl.col("cutoff_s").eq_missing(pl.lit(cutoff, dtype=pl.Int64))
        & (pl.col("unit") == "group_mean")
        & (pl.col("method") == "pearson")
    )
    return found.row(0, named=True) if found.height else None


def quoted(found: dict) -> str:
    return f"r = {coefficient(found['estimate'])}"


def note(correlations: pl.DataFrame, feature: str, outcome: str, cutoff: int | None) -> str:
    """The corner of a panel."""
    found = correlation(correlations, feature, outcome, cutoff)
    if found is None:
        return ""
    n = f"n = {found['n']:,}"
    return n if found["estimate"] is None else f"{quoted(found)}, {n}"


def trend_of_request(correlations: pl.DataFrame, feature: str, study: Study) -> str:
    """The title of a chart of one request: its correlations without a cut-off."""
    name = FEATURE_NAMES[feature]
    parts = []
    for outcome, word in _WORDS.items():
        found = correlation(correlations, feature, outcome, None)
        if _speaks(found):
            parts.append((_verb(found), word, f"({quoted(found)}, n = {found['n']:,})"))
    if not parts:
        return f"Mean run time by {name}: no trend can be told"
    (verb, word, number), *others = parts
    title = f"Mean run time {verb} with {name} among {word} {study.units} {number}"
    for other, word, number in others:
        title += f" and {word} ones {number}" if other == verb else f"; among {word} ones it {other} {number}"
    return title


def trend_of_use(correlations: pl.DataFrame, features: Sequence[str], study: Study) -> str:
    """The title of the chart of measured use: which trends are clear without a cut-off."""
    clear: dict[str, list[str]] = {}
    known = False
    for outcome, word in _WORDS.items():
        by_verb: dict[str, list[str]] = {}
        for feature in features:
            found = correlation(correlations, feature, outcome, None)
            if not _speaks(found):
                continue
            known = True
            if found["reject"]:
                by_verb.setdefault(_verb(found), []).append(FEATURE_NAMES[feature])
        if by_verb:
            clear[word] = [f"{verb} with {listed(names)}" for verb, names in by_verb.items()]
    if not known:
        return "Mean run time by measured use: no trend can be told"
    if not clear:
        return f"Mean run time shows no clear trend with the measured use of {study.units}"
    (word, verbs), *others = clear.items()
    title = f"Among {word} {study.units} mean run time {listed(verbs)}"
    return title + "".join(f"; among {word} ones it {listed(verbs)}" for word, verbs in others)


def _speaks(found: dict | None) -> bool:
    return found is not None and found["estimate"] is not None and found["n"] >= FEWEST_GROUPS


def _verb(found: dict) -> str:
    if not found["reject"]:
        return "shows no clear trend"
    return "rises" if found["estimate"] > 0 else "falls"
