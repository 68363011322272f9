"""Compute how many units are down at once, weighted by time, and the spares needed for that and for runs."""

import numpy as np
import polars as pl
from scipy.special import expit, logit, stdtrit

from ttf.analyses.outages.size_spares import SPARES, UNITS_DOWN
from ttf.analyses.outages.size_spares.run_plans import plan_runs
from ttf.records.clusters import DAY_S
from ttf.records.inputs import Inputs
from ttf.stats.clustered import block_spread
from ttf.stats.outages.outage_simulation import ALWAYS_DOWN, NOT_WATCHED
from ttf.stats.outages.outage_strata import EXPOSURE_COLUMNS_READ, OUTAGE_COLUMNS_READ, Part, split_parts
from ttf.stats.outages.units_down import (
    Course,
    binomial_cumulative,
    build_course,
    count_extra_spares,
    smallest_sufficient,
)

SHARES = (0.9, 0.95, 0.99, 0.999)
# Length of a block, in outages under way of average length. With weekly blocks, or blocks of mean repairs with long
# tails, 95% intervals covered 52% to 89% in simulations.
BLOCK_OUTAGES = 4
TOO_RARE = "the rest of the time is shorter than a block of time, {:.3g} days: no interval"


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    exposure = inputs.read("exposure", (*EXPOSURE_COLUMNS_READ, "node")).filter(pl.col("until_s") > pl.col("from_s"))
    parts = list(split_parts(inputs.read("outages", OUTAGE_COLUMNS_READ), exposure))
    courses = [build_course(part.spans, part.exposure) if part.exposure.height else None for part in parts]
    pairs = list(zip(parts, courses, strict=True))
    return {
        "units_down": pl.concat([units_down(part, course) for part, course in pairs]),
        "spares": pl.concat([spares(part, course, inputs.settings.block_days) for part, course in pairs]),
        **plan_runs(pairs, inputs),
    }


def units_down(part: Part, course: Course | None) -> pl.DataFrame:
    """Return UNITS_DOWN of a part, a row per number down: to the observed maximum or the binomial's 99.99% quantile."""
    labels = part.names | {"n": part.began}
    if course is None:
        return UNITS_DOWN.frame([labels | {"reason": NOT_WATCHED}])
    time = course.time_down()
    cumulative = binomial_cumulative(course, int(course.watched.max()))
    n_rows = max(len(time), smallest_sufficient(cumulative, 1 - 1e-4) + 1)
    time = np.pad(time, (0, n_rows - len(time)))
    cumulative = np.minimum(cumulative[:n_rows], 1)
    sizes, _ = course.fleets()
    fleet = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}: a mixture of binomials"
    rows = pl.DataFrame(
        {
            "down": np.arange(n_rows),
            "time_s": time,
            "time_share": time / course.total_s,
            "cumulative": np.cumsum(time) / course.total_s,
            "binomial": np.diff(cumulative, prepend=0).clip(0),
            "binomial_cumulative": cumulative,
        }
    )
    literals = {name: pl.lit(value) for name, value in labels.items()}
    return UNITS_DOWN.conform(
        rows.with_columns(**literals, units=course.units, fleet=pl.lit(fleet), reason=pl.lit(None, pl.String))
    )


def spares(part: Part, course: Course | None, block_days: int) -> pl.DataFrame:
    """Return SPARES of a part: the spares that suffice for each of SHARES of the time, observed and if independent."""
    labels = part.names | {"n": part.began}
    if course is None:
        return SPARES.frame(labels | {"p": p, "reason": NOT_WATCHED} for p in SHARES)
    time = course.time_down()
    observed = np.cumsum(time) / course.total_s
    binomial = binomial_cumulative(course, int(course.watched.max()))
    down_s = (part.spans["end_s"] - part.spans["start_s"]).to_numpy()
    length_s = max(block_days * DAY_S, block_length_s(down_s, part.began))
    blocks = course.time_down_by(length_s)
    cells = labels | {"units": course.units, "block_s": length_s, "blocks": int(blocks.any(axis=1).sum())}
    rows = []
    for p in SHARES:
        spares = smallest_sufficient(binomial, p)
        row: dict = cells | {"p": p, "spares_observed": smallest_sufficient(observed, p), "spares_binomial": spares}
        row["short_share"] = int(time[spares + 1 :].sum()) / course.total_s
        reasons = []
        if course.down_share < 1:
            row["spares_added"] = count_extra_spares(round(course.units), course.down_share, p)
        else:
            reasons.append(ALWAYS_DOWN)
        if (1 - p) * course.total_s < length_s:
            reasons.append(TOO_RARE.format(length_s / DAY_S))
        else:
            row["observed_low"], row["observed_high"] = spares_limits(blocks, p)
        rows.append(row | {"reason": "; ".join(reasons) or None})
    return SPARES.frame(rows)


def block_length_s(down_s: np.ndarray, began: int) -> int:
    """Return the length of nearly independent blocks of time: BLOCK_OUTAGES times the length of an outage.

    down_s: time down of each outage. The length is the mean outage, or the mean remaining time of an outage under way
    (sum of squares over twice the sum) if longer; long tails of repairs make that many times as long.
    """
    total_s = float(down_s.sum())
    if not total_s:
        return 0
    left_s = float((down_s.astype(float) ** 2).sum()) / (2 * total_s)
    return int(BLOCK_OUTAGES * max(total_s / max(began, 1), left_s))


def spares_limits(blocks: np.ndarray, p: float) -> tuple[int, int]:
    """Return the 95% interval of the smallest number of units that is not exceeded for the share p of the time.

    blocks: (blocks, units) seconds with 0, 1, 2 ... units down. The interval holds the numbers whose share of the time
    does not differ significantly from p (Woodruff 1952; `ttf.stats.clustered.block_spread`).
    """
    at_most = np.cumsum(blocks, axis=1)
    total_s = at_most[:, -1:]
    share = at_most.sum(axis=0) / total_s.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        influence = (at_most - share * total_s) / (total_s.sum() * share * (1 - share))
        se, effective = block_spread(influence, np.broadcast_to(total_s / total_s.sum(), influence.shape))
        margin, centre = se * stdtrit(effective - 1, 0.975), logit(share)
        # Without spread, as if no block has more down, use the share itself.
        low, high = (np.where(np.isfinite(margin), expit(centre + sign * margin), share) for sign in (-1, 1))
    return smallest_sufficient(np.maximum.accumulate(high), p), smallest_sufficient(np.maximum.accumulate(low), p)
