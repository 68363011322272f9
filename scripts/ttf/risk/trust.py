"""What a score is worth, in sentences: the evaluation of the same kind of model, what is new in the scored jobs."""

from collections.abc import Iterator

import polars as pl

# As scripts/ttf/analyses/predict_failure/evaluate.py names them.
SLICES = {
    "all": "of all jobs",
    "unseen_user": "of users not in the training",
    "unseen_group": "of groups not in it",
    "beyond_range": "beyond its range",
}
MODEL, STAGE, ORIGINS = "logistic", "1", "temporal_"
CANNOT = "Failure cannot be told in advance in this trace"


def of_evaluation(evaluation: pl.DataFrame | None) -> Iterator[str]:
    """Sentences, the verdict first. evaluation: the table risk_evaluation, None where there is none."""
    if evaluation is None:
        yield f"{CANNOT}, as far as is known: it was not evaluated (tables/risk_evaluation.csv)."
        return
    rows = evaluation.filter(
        (pl.col("stage") == STAGE) & (pl.col("model") == MODEL) & pl.col("split").str.starts_with(ORIGINS)
    )
    rows = rows.filter(split=rows["split"].max()) if rows.height else rows
    yield verdict(rows)
    found = [said for name, words in SLICES.items() if (said := _pr_auc(rows, name, words))]
    if found:
        yield f"PR-AUC in the last test: {'; '.join(found)}."


def verdict(rows: pl.DataFrame) -> str:
    """Whether the model told failures from other jobs better than chance, by the rows of one test of it."""
    pr_auc, above = (_row(rows, "all", metric) for metric in ("pr_auc", "pr_auc_above_base_rate"))
    if pr_auc is None or pr_auc["estimate"] is None or above is None or above["estimate"] is None:
        why = next((row["reason"] for row in (pr_auc, above) if row and row["reason"]), "it was not tested")
        return f"{CANNOT}, as far as is known: {why}."
    base = pr_auc["failures"] / pr_auc["n"]
    by = f"PR-AUC above the share of failures ({base:.2f}) by {above['estimate']:.2f}{_interval(above)}"
    low = above["ci_low_clustered"]
    if low is None:
        return f"{CANNOT}, as far as is known: {by}; {above['reason']}."
    return f"{CANNOT}: {by}." if low <= 0 else f"Failure can be told in advance in part: {by}."


def _pr_auc(rows: pl.DataFrame, name: str, words: str) -> str | None:
    row = _row(rows, name, "pr_auc")
    if row is None:
        return None
    if row["estimate"] is None:
        return f"{words} not known ({row['reason']})"
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
