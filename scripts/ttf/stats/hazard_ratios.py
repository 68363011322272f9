"""Hazard ratios of what lives are told apart by, each with the others held fixed, and whether they are proportional."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from scipy.special import gammaincc, ndtr

from ttf.stats.cox import Lives, NoFit, fit, independent, proportionality
from ttf.stats.holm import holm
from ttf.stats.normal import Z_95
from ttf.stats.p_value import never_zero
from ttf.stats.strata import NO_LIFE

# Columns of lives that are numbers: the hazard is told per doubling. All others are told by their levels.
AMOUNTS = ("gpu_count", "nodes")
MOST_LEVELS = 12
# A level, and the whole fit, needs so many events; rarer levels are taken together.
FEWEST_EVENTS = 10
# An amount blank in more than this share of the lives is no covariate; else the lives without it are left out.
MOST_BLANK = 0.05

DOUBLING = "per doubling"
OTHER, NOT_GIVEN = "(other)", "(not given)"
ALL = "all"

TOO_FEW = f"fewer than {FEWEST_EVENTS} events: no fit"
CONSTANT = "the same in every life"
NEVER_GIVEN = "not given in any life"
COLLINEAR = "collinear with the covariates before it: left out"
# A limit of e^50 is none; the likelihood is flat from some ratio on, though no level alone is without failures.
LARGEST_LOG_RATIO = 50.0
RUNS_OFF = "the failures hardly tell it from the other covariates: the estimate runs off without end"
SEPARATED = "no event: the hazard ratio tends to 0 (separation); its lives are left out of the fit"

COX_SCHEMA = {
    "event": pl.String,
    "covariate": pl.String,
    "level": pl.String,
    "reference": pl.String,
    "n": pl.Int64,
    "events": pl.Int64,
    "log_hazard_ratio": pl.Float64,
    "se": pl.Float64,
    "hazard_ratio": pl.Float64,
    "ci_low": pl.Float64,
    "ci_high": pl.Float64,
    "p_value": pl.Float64,
    "p_adjusted": pl.Float64,
    "proportionality_statistic": pl.Float64,
    "proportionality_df": pl.Int64,
    "proportionality_p": pl.Float64,
    "converged": pl.Boolean,
    "reason": pl.String,
}


@dataclass
class _Term:
    """A row of the table: a column of the model, or a covariate or level that has none and says why.

    values: Float64 for an amount, truths for a level, None where there is no column.
    """

    covariate: str
    level: str | None = None
    reference: str | None = None
    values: np.ndarray | None = None
    reasons: list[str] = field(default_factory=list)
    separated: bool = False
    told: dict = field(default_factory=dict)

    def count(self, failed: np.ndarray) -> None:
        """n and events: of the lives at this level, or of all of them."""
        at_level = self.values is not None and self.values.dtype == np.bool_
        members = failed[self.values] if at_level else failed
        self.told |= {"n": members.size, "events": int(members.sum())}

    def row(self) -> dict:
        names = {"covariate": self.covariate, "level": self.level, "reference": self.reference}
        return names | {"converged": False, "reason": "; ".join(self.reasons) or None} | self.told


def hazard_ratios(lives: pl.DataFrame, event: str, covariates: Sequence[str]) -> pl.DataFrame:
    """A Cox regression (1972; ties: Efron 1977) of the event on all covariates together, a row per coefficient.

    lives: duration_s (Int64 seconds; null is left out), event (any other, or null, censors) and the covariates'
    columns. Those of AMOUNTS enter as their logarithm to base 2 (level `per doubling`), with a level 0 against 1 where
    some lives have none; the others by level against the reference, the level with the most lives: of MOST_LEVELS or
    more, and of those with fewer than FEWEST_EVENTS events, the rest is `(other)`; a life without a value is `(not
    given)`. A covariate, or level, that cannot be estimated has a row that says why: the same in every life, collinear
    with those before it, no event (separation: its lives are taken out, as in the limit of a ratio of 0).

    n, events: of the level, or of the whole fit (rows of AMOUNTS and of the covariate `all`). hazard_ratio with Wald's
    95 % interval and p-value; p_adjusted: Holm over the coefficients. proportionality_*: the test of
    `ttf.stats.cox.proportionality` of the covariate's coefficients together, the same on each of its rows; the row
    `all` has that of the whole model and no ratio. Where the fit fails, rows are blank and not converged, with a
    reason.
    Raises ValueError when a covariate has no column or a duration is negative.
    """
    if missing := [name for name in covariates if name not in lives.columns]:
        raise ValueError(f"the lives have no column {missing[0]!r} to explain the hazard by")
    if (lives["duration_s"] < 0).any():
        raise ValueError("a duration is negative")
    lives = lives.select("duration_s", "event", *covariates).filter(pl.col("duration_s").is_not_null())
    whole = _Term(ALL)
    failed = _failed(lives, event)
    whole.count(failed)
    if failed.sum() < FEWEST_EVENTS:
        whole.reasons.append(TOO_FEW if lives.height else NO_LIFE)
        return _table(event, [whole])
    blank = {name: lives[name].null_count() for name in covariates if name in AMOUNTS}
    absent = {name: count for name, count in blank.items() if count > MOST_BLANK * lives.height}
    if known := [name for name in blank if name not in absent]:
        lives = lives.drop_nulls(known)
    failed = _failed(lives, event)
    lives = lives.drop("event")
    terms = []
    for name in covariates:
        if name in absent:
            terms.append(_Term(name, DOUBLING, reasons=[f"blank in {absent[name]} lives"]))
        else:
            terms += _terms(lives, failed, name)
    for term in terms:
        term.count(failed)
    stay = np.ones(lives.height, dtype=np.bool_)
    for term in terms:
        if term.separated:
            stay &= ~term.values
    seconds, failed = lives["duration_s"].to_numpy()[stay], failed[stay]
    model = [term for term in terms if term.values is not None and not term.separated]
    for term in model:
        term.values = term.values[stay]
    told_apart = independent([term.values for term in model])
    for place, term in enumerate(model):
        term.count(failed)
        if place not in told_apart:
            term.reasons.append(COLLINEAR)
    whole.count(failed)
    model = [model[place] for place in told_apart]
    if not model:
        whole.reasons.append("no covariate tells lives apart: nothing to fit")
    else:
        try:
            _estimate(seconds, failed, model, whole)
        except NoFit as no_fit:
            for term in (*model, whole):
                term.reasons.append(str(no_fit))
    return _table(event, [*terms, whole])


def _failed(lives: pl.DataFrame, event: str) -> np.ndarray:
    return (lives["event"] == event).fill_null(False).to_numpy()


def _table(event: str, terms: list[_Term]) -> pl.DataFrame:
    rows = [term.row() for term in terms]
    adjusted = holm([row.get("p_value") for row in rows])
    rows = [row | {"event": event, "p_adjusted": p} for row, p in zip(rows, adjusted, strict=True)]
    return pl.DataFrame([{name: row.get(name) for name in COX_SCHEMA} for row in rows], schema=COX_SCHEMA)


def _terms(lives: pl.DataFrame, failed: np.ndarray, name: str) -> list[_Term]:
    """The columns that a covariate gives, or one row without that says why there are none."""
    if lives[name].n_unique() < 2:
        reason = CONSTANT if lives[name].count() else NEVER_GIVEN
        return [_Term(name, DOUBLING if name in AMOUNTS else None, reasons=[reason])]
    if name not in AMOUNTS:
        return _levels(lives, failed, name)
    amount = lives[name].to_numpy()
    doublings = np.log2(np.maximum(amount, 1))
    terms = [_Term(name, DOUBLING, None, doublings)] if np.ptp(doublings) else []
    return [*terms, _level(name, "0", "1", amount == 0, failed)] if (amount == 0).any() else terms


def _levels(lives: pl.DataFrame, failed: np.ndarray, name: str) -> list[_Term]:
    """A column for each level but the reference, which is the largest that has events enough."""
    counts = (
        lives.select(raw=pl.col(name), failed=pl.Series(failed))
        .group_by("raw")
        .agg(n=pl.len(), events=pl.col("failed").sum())
        .sort("n", "raw", descending=[True, False], nulls_last=True)
    )
    common = counts.filter(pl.col("events") >= FEWEST_EVENTS).head(MOST_LEVELS)
    rest = counts.join(common, on="raw", how="anti", nulls_equal=True, maintain_order="left")
    # One level alone keeps its name.
    shown = common if rest.height > 1 else pl.concat([common, rest])
    labels = [NOT_GIVEN if raw is None else raw for raw in shown["raw"].cast(pl.String)]
    if rest.height > 1:
        labels.append(OTHER)
    if not common.height:
        return [_Term(name, reasons=[f"no level has {FEWEST_EVENTS} events or more"])]
    places = pl.col(name).replace_strict(shown["raw"], range(shown.height), default=shown.height, return_dtype=pl.Int64)
    codes = lives.select(places).to_series().to_numpy()
    terms = [_level(name, label, labels[0], codes == code, failed) for code, label in enumerate(labels)][1:]
    if rest.height > 1:
        terms[-1].reasons.insert(0, f"{rest.height} rarer levels together")
    return terms


def _level(name: str, level: str, reference: str, values: np.ndarray, failed: np.ndarray) -> _Term:
    separated = not failed[values].any()
    return _Term(name, level, reference, values, [SEPARATED] if separated else [], separated)


def _estimate(seconds: np.ndarray, failed: np.ndarray, model: list[_Term], whole: _Term) -> None:
    """The fit of the model into its terms, and what concerns all of it into `whole`."""
    lives = Lives(seconds, failed, [term.values for term in model])
    found = fit(lives)
    places: dict[str, list[int]] = {}
    for place, term in enumerate(model):
        _tell_ratio(term, float(found.coefficients[place]), math.sqrt(found.covariance[place, place]))
        places.setdefault(term.covariate, []).append(place)
    whole.told["converged"] = True
    everything = list(range(len(model)))
    try:
        *statistics, of_all = proportionality(lives, found, [*places.values(), everything])
    except np.linalg.LinAlgError:
        whole.reasons.append("the events are too few or too close in time for a test of proportionality")
        return
    for of_one, statistic in zip(places.values(), statistics, strict=True):
        for place in of_one:
            model[place].told |= _proportionality(statistic, len(of_one))
    whole.told |= _proportionality(of_all, len(everything))


def _tell_ratio(term: _Term, estimate: float, se: float) -> None:
    if abs(estimate) + Z_95 * se > LARGEST_LOG_RATIO:
        term.reasons.append(RUNS_OFF)
        term.told["converged"] = False
        return
    p, tiny = never_zero(2 * float(ndtr(-abs(estimate / se))))
    if tiny:
        term.reasons.append(tiny)
    term.told |= {
        "log_hazard_ratio": estimate,
        "se": se,
        "hazard_ratio": math.exp(estimate),
        "ci_low": math.exp(estimate - Z_95 * se),
        "ci_high": math.exp(estimate + Z_95 * se),
        "p_value": p,
        "converged": True,
    }


def _proportionality(statistic: float, df: int) -> dict:
    p, _ = never_zero(float(gammaincc(df / 2, statistic / 2)))
    return {"proportionality_statistic": statistic, "proportionality_df": df, "proportionality_p": p}
