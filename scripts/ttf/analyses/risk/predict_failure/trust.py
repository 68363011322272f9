"""Say how far scores can be trusted: the evaluation of the same kind of model, and what is new in the scored jobs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import polars as pl

from ttf.analyses.risk.predict_failure import PROBABILITY, risk_labels
from ttf.analyses.risk.predict_failure.risk_labels import CANNOT_SAY, MODELS, SPLITS, UNSEEN, VERDICT_TEXTS
from ttf.analyses.risk.predict_failure.verdict import Origin, last_tested, read_origins, verdict
from ttf.engine import words
from ttf.raw.raw_tables import escape_text

SLICES = {"all": "all jobs", **UNSEEN}
MOST_SCORES = 10  # in the terminal


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
    strength = verdict(tests)
    if last_tested(tests) is None:
        return f"{VERDICT_TEXTS[strength]}: {tests[-1].reason if tests else 'it was not tested'}."
    gain = f"PR-AUC is above the base rate at {_count_origins(test.is_predicted for test in tests)}"
    pays = f"save more than they cost at {_count_origins(test.pays for test in tests)}"
    pays_well = f"save more than twice what they cost at {_count_origins(test.is_saving_clear for test in tests)}"
    reasons = [test.explain_missing("gpu_hours_saved") for test in tests if test.reason is None and test.pays is None]
    savings_reason = next((f" ({reason})" for reason in reasons if reason), "")
    sentence = {
        risk_labels.STRONG: f"{gain}, and trials on one GPU {pays_well}",
        risk_labels.MODERATE: f"{gain}, and trials on one GPU {pays}, but not clearly twice as much",
        risk_labels.WEAK: f"{gain}, but trials on one GPU {pays}",
        risk_labels.UNPRICED: f"{gain}; what acting on it would save cannot be judged{savings_reason}",
        risk_labels.NONE: gain,
        CANNOT_SAY: f"two origins must agree, and {gain}",
    }[strength]
    labels: dict[str, list[str]] = {}
    for test in tests:
        labels.setdefault(test.explain_missing() or "", []).append(SPLITS[test.split].lower())
    left_out = [f"; {', '.join(origins)} left out: {reason}" for reason, origins in labels.items() if reason]
    return f"{VERDICT_TEXTS[strength]}: {sentence}{''.join(left_out)}."


def _count_origins(answers: Iterable[bool | None]) -> str:
    """Return how many of the known answers are true, such as "2 of 3 origins"."""
    known_answers = [answer for answer in answers if answer is not None]
    if not known_answers:
        return "no origin that can be judged"
    return f"{sum(known_answers) or 'none'} of {words.plural(len(known_answers), 'origin')}"


def _format_pr_auc(rows: pl.DataFrame, slice_name: str, label: str) -> str | None:
    row = next(rows.filter(slice=slice_name, metric="pr_auc").iter_rows(named=True), None)
    if row is None:
        return None
    if row["estimate"] is None:
        return f"{label}: not known ({row['reason']})"
    return f"{label} {row['estimate']:.2f}{_format_interval(row)}, {row['failures']:,} of {row['n']:,} failed"


def _format_interval(row: Mapping) -> str:
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


def list_highest_scores(scores: pl.DataFrame) -> Iterator[str]:
    """Yield a line for each of the highest scores, the highest first, below a line that counts them."""
    highest = scores.sort("probability", descending=True, maintain_order=True).head(MOST_SCORES)
    yield f"The highest {highest.height} of {words.plural(scores.height, 'score')}:"
    for row in highest.iter_rows(named=True):
        stake = row["gpu_hours_at_stake"]
        stake_text = None if stake is None else f"{words.number(stake)} GPU-hours at stake"
        facts = "; ".join(filter(None, (f"submitted {row['submit']}", stake_text, row["reason_1"])))
        job_id = escape_text(words.shorten(row["job_id"]))
        yield f"  {words.share(row['probability']):>6}  {job_id}: {escape_text(facts)}"


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
