"""Which end lives come to, and by when, where several ends compete: Aalen-Johansen."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from ttf.analyses.estimate_hazards import CUMULATIVE_INCIDENCE
from ttf.analyses.estimate_hazards.hazard import NO_EVENT_YET
from ttf.jobs import Frame
from ttf.stats.normal import Z_95
from ttf.stats.strata import NO_LIFE, Lives, Times, competing_times_by_stratum, stacked
from ttf.stats.survival import thinned

UNKNOWN_CAUSE = "unknown cause"
EVERYBODY = "the incidence is 1: the log-log interval is not defined there"
# A sum that everybody adds to reaches 1 only up to rounding.
ONE = 1 - 1e-9


def cumulative_incidence(
    lives: Lives, events: Sequence[str], strata: Sequence[str], max_steps: int | None = None
) -> pl.DataFrame:
    """The Aalen-Johansen estimate (1978) of each event's cumulative incidence, by stratum.

    The events compete: a life ends by at most one of them, and incidence is the share of lives that this event will
    have ended by an age, the others being there too (where Kaplan-Meier asks what would be if they were not). At every
    age the incidences of all events and the share that goes on add up to 1.

    lives: duration_s (Int64 seconds; null is excluded), event (one of `events`; any other, or null, censors), a column
    per stratification (`all` needs none). One row per event, stratum and distinct duration, from age 0 on; with
    max_steps, at most as many of each event and stratum as `ttf.stats.survival.thin` keeps: `events` are then those of
    the rows kept, while events_so_far counts all up to the age, and a curve's last row has their number.
    without_time: lives of unknown duration that ended by the event, which are in no other column. se is from the
    delta-method variance of Dinse & Larson (1986; Marubini & Valsecchi 1995, section 10.2), which without censoring is
    the binomial's, and 0 where the incidence is 1. ci_low, ci_high: 95 %, on the log(-log) scale of the incidence
    (Choudhury 2002); blank, with a reason, before the first such event and where the incidence is 1.
    Raises ValueError when a stratification has no column or a duration is negative.
    """
    curves = []
    for stratum_by in strata:
        for stratum, competing in competing_times_by_stratum(lives, events, stratum_by):
            curves_of = _curves([times.from_zero() for times in competing])
            for event, curve in zip(events, curves_of, strict=True):
                names = {"event": event, "stratum_by": stratum_by, "stratum": stratum}
                curves.append((names, thinned(curve, max_steps)))
    if not curves:
        return CUMULATIVE_INCIDENCE.frame([])
    incidence = pl.col("incidence")
    inside = (incidence > 0) & (incidence < ONE)
    reason = (
        pl.when(incidence == 0)
        .then(pl.lit(NO_EVENT_YET))
        .when(incidence.is_null())
        .then(pl.lit(NO_LIFE))
        .when(~inside)
        .then(pl.lit(EVERYBODY))
    )
    table = stacked(curves).with_columns(pl.when(inside).then(pl.col("ci_low", "ci_high")), reason=reason)
    return CUMULATIVE_INCIDENCE.typed(table)


def exclusive_causes(lives: Frame, causes: Sequence[str]) -> tuple[Frame, list[str]]:
    """(lives, events): each failed life with the one thing that ended it, so that the causes can compete.

    lives: event, and a Boolean per cause that says whether it took part. Causes that can come together (a GPU with both
    kinds of error) are no competing events as they stand: a life with several is ended by all of them together, as an
    event of its own (`dbe and otb`), and one that comes alone as well as in company is named so (`dbe only`). A failure
    without a cause is of unknown cause. events: those that occur, in the order of `causes`, then those of company, then
    the unknown.
    """
    failed = pl.col("event") == "failure"
    took_part = [pl.col(cause).fill_null(False) for cause in causes]
    together = pl.concat_list(pl.when(hit).then(pl.lit(cause)) for cause, hit in zip(causes, took_part, strict=True))
    lists = pl.when(failed).then(together.list.drop_nulls())
    found = lives.lazy().select(lists.alias("causes").unique()).collect(engine="streaming")
    seen = found["causes"].drop_nulls().to_list()
    accompanied = {cause for several in seen if len(several) > 1 for cause in several}
    names = {tuple(several): _name(several, accompanied) for several in seen}
    rank = {cause: place for place, cause in enumerate(causes)}
    order = sorted(names, key=lambda several: (not several, len(several), [rank[cause] for cause in several]))
    named = lists.list.join(" + ").replace_strict(
        [" + ".join(several) for several in order], [names[several] for several in order], return_dtype=pl.String
    )
    return lives.with_columns(event=named), [names[several] for several in order]


def _name(causes: list[str], accompanied: set[str]) -> str:
    words = [cause.replace("_", " ") for cause in causes]
    if not words:
        return UNKNOWN_CAUSE
    if len(words) > 1:
        return " and ".join(words)
    return f"{words[0]} only" if causes[0] in accompanied else words[0]


def _curves(competing: list[Times]) -> list[dict[str, np.ndarray]]:
    """The curve of each of some events of the same lives."""
    first = competing[0]
    events = sum(times.events for times in competing)
    at_risk = first.at_risk(first.seconds)
    shared = {"time_s": first.seconds, "at_risk": at_risk, "censored": first.ended - events}
    if first.lives == 0:
        blanks = dict.fromkeys(("incidence", "se", "ci_low", "ci_high"), np.full(1, np.nan))
        none = dict.fromkeys(("events", "events_so_far", "other_events"), first.events)
        return [shared | none | blanks | {"without_time": np.array([times.without_time])} for times in competing]
    survivors = at_risk - events
    survival = np.cumprod(survivors / at_risk)
    before = np.concatenate(([1.0], survival[:-1]))
    # The last term, where nobody is left, is multiplied by a difference of 0 in every sum.
    greenwood = np.divide(events, at_risk * survivors, out=np.zeros(before.size), where=survivors > 0)
    return [
        _curve(shared, times.events, events - times.events, before / at_risk, at_risk, greenwood)
        | {"events_so_far": np.cumsum(times.events), "without_time": np.full(first.seconds.size, times.without_time)}
        for times in competing
    ]


def _curve(
    shared: dict[str, np.ndarray],
    hits: np.ndarray,
    others: np.ndarray,
    weight: np.ndarray,
    at_risk: np.ndarray,
    greenwood: np.ndarray,
) -> dict[str, np.ndarray]:
    """weight: the share still going on just before each age over those at risk there."""
    incidence = np.cumsum(weight * hits)
    # The sums over ages s up to t of (I(t) - I(s))^2 greenwood, of weight^2 hits (n - hits) / n, and of
    # (I(t) - I(s)) weight hits / n, with the square and the difference multiplied out.
    squares = incidence**2 * np.cumsum(greenwood) - 2 * incidence * np.cumsum(incidence * greenwood)
    squares += np.cumsum(incidence**2 * greenwood)
    own = np.cumsum(weight**2 * hits * (at_risk - hits) / at_risk)
    step = weight * hits / at_risk
    crossed = incidence * np.cumsum(step) - np.cumsum(incidence * step)
    # Where everybody has come to this end the terms cancel, but for rounding.
    se = np.where(incidence < ONE, np.sqrt(np.maximum(squares + own - 2 * crossed, 0)), 0.0)
    inside = (incidence > 0) & (incidence < ONE)
    base = np.where(inside, incidence, 0.5)
    # A spread beyond e^30 is an interval from 0 to 1 already.
    spread = np.exp(np.minimum(Z_95 * se / (-base * np.log(base)), 30))
    return shared | {
        "events": hits,
        "other_events": others,
        "incidence": np.minimum(incidence, 1),
        "se": se,
        "ci_low": base**spread,
        "ci_high": base ** (1 / spread),
    }
