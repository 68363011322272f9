"""Say how far scores can be trusted: the evaluation of the same kind of model, and what is new in the scored jobs."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from ttf.analyses.risk.predict_failure import PROBABILITY
from ttf.analyses.risk.predict_failure.risk_labels import CANNOT_SAY, MODELS, SPLITS, UNSEEN, VERDICT_TEXTS
from ttf.analyses.risk.predict_failure.verdict import Origin, last_tested, read_origins, verdict

SLICES = {"all": "all jobs", **UNSEEN}


def describe_evaluation(evaluation: pl.DataFrame | None) -> Iterator[str]:
    """Yield sentences, the verdict first. evaluation: the table risk_evaluation, or None."""
    if evaluation is None:
        yield f"{VERDICT_TEXTS[CANNOT_SAY]}: it was not evaluated (tables/risk_evaluation.csv)."
        return
    tests = read_origins(evaluation)
    yield describe_verdict(tests)
    if origin := last_tested(tests):
        rows = evaluation.filter("serves", stage=PROBABILITY, split=origin.split)
        slices = [sentence for name, label in SLICES.items() if (sentence := _format_pr_auc(rows, name, label))]
        yield f"PR-AUC of {MODELS[origin.model]} in the last test: {'; '.join(slices)}."


def describe_verdict(tests: Sequence[Origin]) -> str:
    """Say whether failure can be predicted and acting on it pays, in the words of the page."""
    verdict_text, origin = VERDICT_TEXTS[verdict(tests)], last_tested(tests)
    if origin is None:
        return f"{verdict_text}: {tests[-1].reason if tests else 'it was not tested'}."
    gain, is_predicted = origin.measures["pr_auc_above_base_rate"], [test.is_predicted for test in tests]
    parts = [
        f"PR-AUC of {MODELS[origin.model]} is above the share of failures at {is_predicted.count(True)} of "
        f"{len(is_predicted) - is_predicted.count(None)} tested origins",
        f"at the last by {gain['estimate']:.2f}{_ci_text(gain)}, of a share of {gain['failures'] / gain['n']:.2f}",
        *([gain["reason"]] if gain["ci_low_clustered"] is None else []),
        *(f"{SPLITS[test.split].lower()} left out: {test.reason}" for test in tests if test.reason),
    ]
    return f"{verdict_text}: {'; '.join(parts)}."


def _format_pr_auc(rows: pl.DataFrame, name: str, label: str) -> str | None:
    row = next(rows.filter(slice=name, metric="pr_auc").iter_rows(named=True), None)
    if row is None:
        return None
    if row["estimate"] is None:
        return f"{label}: not known ({row['reason']})"
    return f"{label} {row['estimate']:.2f}{_ci_text(row)}, {row['failures']:,} of {row['n']:,} failed"


def _ci_text(row: Mapping) -> str:
    low, high = row["ci_low_clustered"], row["ci_high_clustered"]
    return "" if low is None else f" (95% CI {low:.2f}–{high:.2f})"


def describe_scores(scores: pl.DataFrame, window: str, kind: str) -> str:
    """Say how many jobs were scored, by which kind of model, and how many differ from its training data."""
    out_of_range, new_users = scores.filter("beyond_range"), scores["unseen_user"].sum()
    names = ", ".join(sorted({name for names in out_of_range["beyond_feature"] for name in names.split(", ")}))
    parts = [
        f"Scored: {scores.height:,} by the model of {window} ({MODELS[kind]})",
        f"{out_of_range.height:,} beyond the range of its training" + (f" ({names})" if names else ""),
    ]
    if new_users:
        parts.append(f"{new_users:,} of users not in it")
    return "; ".join(parts) + "."


def describe_skew(skew: pl.DataFrame) -> str:
    """Name the feature in which the scored jobs differ most from the training jobs."""
    effects = skew.drop_nulls("effect")
    if not effects.height:
        return "Skew: not known, too few jobs."
    row = effects.row(0, named=True)
    name = {"cliff_delta": "Cliff's delta", "cramer_v": "Cramer's V", "cohen_h": "Cohen's h"}[row["effect_name"]]
    suffix = " being blank" if row["statistic"] == "blank" else ""
    n = f"n = {row['n_scored']:,} against {row['n_training']:,} in training"
    return f"Largest skew: {row['feature']}{suffix}, {name} {row['effect']:.2f} ({n})."
