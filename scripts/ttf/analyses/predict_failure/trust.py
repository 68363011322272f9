"""What a score is worth, in sentences: the evaluation of the same kind of model, what is new in the scored jobs."""

from collections.abc import Iterator

import polars as pl

from ttf.analyses.predict_failure import PROBABILITY
from ttf.analyses.predict_failure.names import LAST, ORIGINS, UNSEEN
from ttf.analyses.predict_failure.numbers import CANNOT_SAY, NOT_TOLD, TOLD, verdict

SLICES = {"all": "all jobs", **UNSEEN}
ABOVE = "pr_auc_above_base_rate"
SAID = {
    TOLD: "Failure can be told in advance",
    NOT_TOLD: "Failure cannot be told in advance in this trace",
    CANNOT_SAY: "The data cannot say whether failure can be told in advance in this trace",
}


def of_evaluation(evaluation: pl.DataFrame | None) -> Iterator[str]:
    """Sentences, the verdict first. evaluation: the table risk_evaluation, None where there is none."""
    if evaluation is None:
        yield f"{SAID[CANNOT_SAY]}: it was not evaluated (tables/risk_evaluation.csv)."
        return
    rows = evaluation.filter(pl.col("split").is_in(ORIGINS), stage=PROBABILITY, model="logistic")
    yield of_verdict(rows)
    last = rows.filter(split=LAST)
    found = [said for name, words in SLICES.items() if (said := _pr_auc(last, name, words))]
    if found:
        yield f"PR-AUC in the last test: {'; '.join(found)}."


def of_verdict(rows: pl.DataFrame) -> str:
    """Whether failure is told in advance, as the page says it; rows: of the model at the origins."""
    above = rows.filter(pl.col("estimate").is_not_null(), slice="all", metric=ABOVE)
    said, told = SAID[verdict(above)], (above["ci_low_clustered"] > 0).sum()
    last, pr_auc = (_row(rows.filter(split=LAST), "all", metric) for metric in (ABOVE, "pr_auc"))
    if last is None or last["estimate"] is None:
        why = next((row["reason"] for row in (last, pr_auc) if row and row["reason"]), "it was not tested")
        return f"{said}: {why}."
    parts = [
        f"PR-AUC is above the share of failures at {told} of {len(ORIGINS)} origins",
        f"at the last by {last['estimate']:.2f}{_interval(last)}, of a share of {last['failures'] / last['n']:.2f}",
        *([last["reason"]] if last["ci_low_clustered"] is None else []),
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


def of_scores(scores: pl.DataFrame, window: str) -> str:
    """How many were scored, and of how many the model knows less than of others."""
    beyond, new = scores.filter("beyond_range"), scores["unseen_user"].sum()
    names = ", ".join(sorted({name for names in beyond["beyond_feature"] for name in names.split(", ")}))
    said = [
        f"Scored: {scores.height:,} by the model of {window}",
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
