"""What a score is worth, in sentences: the evaluation of the same kind of model, what is new in the scored jobs."""

from collections.abc import Iterator, Sequence

import polars as pl

from ttf.analyses.risk.predict_failure import PROBABILITY
from ttf.analyses.risk.predict_failure.risk_labels import CANNOT_SAY, MODELS, SAID, SPLITS, UNSEEN
from ttf.analyses.risk.predict_failure.verdict import Origin, origins, reported, verdict

SLICES = {"all": "all jobs", **UNSEEN}


def of_evaluation(evaluation: pl.DataFrame | None) -> Iterator[str]:
    """Sentences, the verdict first. evaluation: the table risk_evaluation, None where there is none."""
    if evaluation is None:
        yield f"{SAID[CANNOT_SAY]}: it was not evaluated (tables/risk_evaluation.csv)."
        return
    tests = origins(evaluation)
    yield of_verdict(tests)
    if last := reported(tests):
        rows = evaluation.filter("serves", stage=PROBABILITY, split=last.split)
        slices = [said for name, words in SLICES.items() if (said := _pr_auc(rows, name, words))]
        yield f"PR-AUC of {MODELS[last.model]} in the last test: {'; '.join(slices)}."


def of_verdict(tests: Sequence[Origin]) -> str:
    """Whether failure can be predicted and acting on it pays, as the page says it."""
    said, last = SAID[verdict(tests)], reported(tests)
    if last is None:
        return f"{said}: {tests[-1].reason if tests else 'it was not tested'}."
    above, predicted = last.measures["pr_auc_above_base_rate"], [test.is_predicted for test in tests]
    parts = [
        f"PR-AUC of {MODELS[last.model]} is above the share of failures at {predicted.count(True)} of "
        f"{len(predicted) - predicted.count(None)} tested origins",
        f"at the last by {above['estimate']:.2f}{_interval(above)}, of a share of {above['failures'] / above['n']:.2f}",
        *([above["reason"]] if above["ci_low_clustered"] is None else []),
        *(f"{SPLITS[test.split].lower()} left out: {test.reason}" for test in tests if test.reason),
    ]
    return f"{said}: {'; '.join(parts)}."


def _pr_auc(rows: pl.DataFrame, name: str, words: str) -> str | None:
    row = _row(rows, name, "pr_auc")
    if row is None:
        return None
    if row["estimate"] is None:
        return f"{words}: not known ({row['reason']})"
    return f"{words} {row['estimate']:.2f}{_interval(row)}, {row['failures']:,} of {row['n']:,} failed"


def _row(rows: pl.DataFrame, name: str, metric: str) -> dict | None:
    found = rows.filter(slice=name, metric=metric)
    return found.row(0, named=True) if found.height else None


def _interval(row: dict) -> str:
    low, high = row["ci_low_clustered"], row["ci_high_clustered"]
    return "" if low is None else f" (95% CI {low:.2f}–{high:.2f})"


def of_scores(scores: pl.DataFrame, window: str, kind: str) -> str:
    """How many were scored, by a model of which kind, and of how many that knows less than of others."""
    beyond, new = scores.filter("beyond_range"), scores["unseen_user"].sum()
    names = ", ".join(sorted({name for names in beyond["beyond_feature"] for name in names.split(", ")}))
    said = [
        f"Scored: {scores.height:,} by the model of {window} ({MODELS[kind]})",
        f"{beyond.height:,} beyond the range of its training" + (f" ({names})" if names else ""),
    ]
    if new:
        said.append(f"{new:,} of users not in it")
    return "; ".join(said) + "."


def of_skew(skew: pl.DataFrame) -> str:
    """The feature in which the scored jobs differ most from the training."""
    known = skew.drop_nulls("effect")
    if not known.height:
        return "Skew: not told, with so few jobs."
    row = known.row(0, named=True)
    name = {"cliff_delta": "Cliff's delta", "cramer_v": "Cramer's V", "cohen_h": "Cohen's h"}[row["effect_name"]]
    of = " being blank" if row["statistic"] == "blank" else ""
    n = f"n = {row['n_scored']:,} against {row['n_training']:,} in training"
    return f"Largest skew: {row['feature']}{of}, {name} {row['effect']:.2f} ({n})."
