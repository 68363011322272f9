"""The units that were down at once, weighted by time, and the spares that this takes."""

import numpy as np
import polars as pl

from ttf.analyses.size_spares import SPARES, UNITS_DOWN
from ttf.inputs import Inputs
from ttf.outages.down import Course, binomial_cumulative, course_of, smallest, spares_beside
from ttf.outages.simulate import batches, paths_of, renewals, times_of, why_no_times
from ttf.outages.strata import READ_OF_EXPOSURE, READ_OF_OUTAGES, Part, parts_of

SHARES = (0.9, 0.95, 0.99, 0.999)
WEEK_S = 7 * 86_400
# With fewer weeks no interval is given: they say next to nothing of how others would differ.
FEWEST_WEEKS = 8
RESAMPLES = 1000
# A part of the time that is as long as fewer mean times to repair was seen once or twice: intervals would hold 70%.
FEWEST_REPAIRS = 3
# Of the simulation of independent units.
REPLICATES = 100
YEAR_S = 365 * 86_400
MOST_CYCLES, MOST_OUTAGES = 200, 2_000_000
TOO_RARE = "the rest of the time is as long as fewer than 3 mean times to repair: no interval"
NOT_WATCHED = "no unit was watched for any time"


def compute(given: Inputs) -> dict[str, pl.DataFrame]:
    exposure = given.read("exposure", READ_OF_EXPOSURE).filter(pl.col("until_s") > pl.col("from_s"))
    parts = list(parts_of(given.read("outages", READ_OF_OUTAGES), exposure))
    courses = [course_of(part.spans, part.exposure) if part.exposure.height else None for part in parts]
    both = list(zip(parts, courses, strict=True))
    return {
        "units_down": pl.concat([units_down(part, course) for part, course in both]),
        "spares": pl.concat([spares(part, course, given.settings.seed) for part, course in both]),
    }


def units_down(part: Part, course: Course | None) -> pl.DataFrame:
    """The rows of a part, from 0 down to the most that were, or to what the binomial gives 1 in 10,000 of the time."""
    names = part.names | {"n": part.began}
    if course is None:
        return UNITS_DOWN.frame([names | {"reason": NOT_WATCHED}])
    time = course.time_down()
    cumulative = binomial_cumulative(course, int(course.watched.max()))
    most = max(len(time), smallest(cumulative, 1 - 1e-4) + 1)
    time = np.pad(time, (0, most - len(time)))
    cumulative = np.minimum(cumulative[:most], 1)
    sizes, _ = course.fleets()
    fleet = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}: a mixture of binomials"
    rows = pl.DataFrame(
        {
            "down": np.arange(most),
            "time_s": time,
            "time_share": time / course.total_s,
            "cumulative": np.cumsum(time) / course.total_s,
            "binomial": np.diff(cumulative, prepend=0).clip(0),
            "binomial_cumulative": cumulative,
        }
    )
    told = {name: pl.lit(value) for name, value in names.items()}
    return UNITS_DOWN.typed(
        rows.with_columns(**told, units=course.units, fleet=pl.lit(fleet), reason=pl.lit(None, pl.String))
    )


def spares(part: Part, course: Course | None, seed: int) -> pl.DataFrame:
    """A row for each of SHARES."""
    names = part.names | {"n": part.began}
    if course is None:
        return SPARES.frame(names | {"p": p, "reason": NOT_WATCHED} for p in SHARES)
    time = course.time_down()
    observed = np.cumsum(time) / course.total_s
    binomial = binomial_cumulative(course, int(course.watched.max()))
    simulated, why = _simulated(part, course, np.random.default_rng(seed))
    by_week = course.time_down_by(WEEK_S)
    ends, no_ends = resampled_ends(by_week, np.random.default_rng(seed))
    shared = names | {"units": course.units, "weeks": len(by_week)}
    down_s = (part.spans["end_s"] - part.spans["start_s"]).sum()
    rows = []
    for p in SHARES:
        row = shared | {"p": p, "spares_observed": smallest(observed, p), "spares_binomial": smallest(binomial, p)}
        row["short_share"] = int(time[row["spares_binomial"] + 1 :].sum()) / course.total_s
        reasons = [why] if why else []
        if course.down_share < 1:
            row["spares_beside"] = spares_beside(round(course.units), course.down_share, p)
        if simulated is not None:
            row["spares_simulated"] = smallest(simulated, p)
        if ends is None:
            reasons.append(no_ends)
        elif part.began and (1 - p) * course.total_s < FEWEST_REPAIRS * down_s / part.began:
            reasons.append(TOO_RARE)
        else:
            found = np.sort([smallest(one, p) for one in ends])
            row |= {"observed_low": int(found[_rank(0.025)]), "observed_high": int(found[_rank(0.975)])}
        rows.append(row | {"reason": "; ".join(reasons) or None})
    return SPARES.frame(rows)


def _rank(share: float) -> int:
    return min(int(share * RESAMPLES), RESAMPLES - 1)


def resampled_ends(by_week: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray | None, str | None]:
    """Cumulative shares of the time with 0, 1, 2 ... down, a row for each resample of the weeks; or why there are none.

    Weeks, not hours: what makes units fail together mostly lasts for hours or days. What lasts for longer than a week
    makes the interval too narrow.
    """
    weeks = len(by_week)
    if weeks < FEWEST_WEEKS:
        return None, f"{weeks} weeks, fewer than {FEWEST_WEEKS}: no interval"
    time = np.cumsum(rng.multinomial(weeks, np.full(weeks, 1 / weeks), size=RESAMPLES) @ by_week, axis=1)
    return time / time[:, -1:], None


def _simulated(part: Part, course: Course, rng: np.random.Generator) -> tuple[np.ndarray | None, str | None]:
    """Cumulative shares of the time with 0, 1, 2 ... of as many independent units down; or why there are none."""
    if why := why_no_times(part.began, course.down_share):
        return None, why
    up, repair = times_of(part.spans, part.exposure)
    units = round(course.units)
    cycles = min(MOST_CYCLES, MOST_OUTAGES / REPLICATES / units)
    horizon = min(YEAR_S, int(cycles * (up.mean + repair.mean)) + 1)
    total = np.zeros(units + 1, np.int64)
    for size in batches(units, REPLICATES):
        time = paths_of(renewals(rng, units, size, horizon, up, repair), size, horizon).time_down()
        total[: len(time)] += time
    return np.cumsum(total) / total.sum(), None
