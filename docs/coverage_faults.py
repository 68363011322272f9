"""How often what is said of faults over time holds: growth and trend, bursts, spares, and spans without an outage.

Faults come in weeks with a factor in common (`coverage_weeks`), each a burst of some on average. What is simulated goes
through the study's own functions.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from scipy.special import bdtr, ndtri

sys.path.append(str(Path(__file__).parents[1] / "scripts"))
sys.path.append(str(Path(__file__).parent))

from coverage_weeks import World
from ttf.analyses.outages.find_bursts.compute import WINDOWS_S, Events, burst_rows
from ttf.analyses.outages.measure_availability.outage_free import outage_free
from ttf.analyses.outages.size_spares.compute import block_length_s, spares_limits
from ttf.analyses.shared.outages.outage_simulation import Drawn, Exponential, renewals
from ttf.analyses.shared.outages.units_down import course_of
from ttf.stats.durations.growth import Stratum, common_growth, growth

DAY_S, WEEK_S = 86_400, 7 * 86_400
JITTER_S = DAY_S // 2


@dataclass(frozen=True)
class Faults:
    """burst: faults in one, on average; sd, ar: of the log of the weeks' factors; growth: the power of time."""

    burst: float = 1.0
    sd: float = 0.0
    ar: float = 0.0
    weeks: int = 52
    begun: int = 600
    growth: float = 1.0


FAULTS = {
    "one by one": Faults(begun=300),
    "in bursts of 3": Faults(3, begun=300),
    "in bursts of 10": Faults(10, begun=300),
    "in bursts of 3, β 0.8": Faults(3, begun=300, growth=0.8),
    "weeks of log SD 0.5": Faults(sd=0.5),
    "weeks of log SD 0.3, AR 0.8": Faults(sd=0.3, ar=0.8),
    "weeks of log SD 0.5, AR 0.8": Faults(sd=0.5, ar=0.8),
    "the same, of four years in blocks of three weeks": Faults(sd=0.5, ar=0.8, weeks=207, begun=2_400),
}


def stratum_of(faults: Faults, factors: np.ndarray, rng: np.random.Generator) -> Stratum:
    begun = [week + rng.random(n) for week, n in enumerate(rng.poisson(faults.begun / faults.weeks * factors))]
    at = (np.concatenate(begun) / faults.weeks) ** (1 / faults.growth)
    at = np.sort(np.clip(np.repeat(at, rng.geometric(1 / faults.burst, at.size)), 1e-9, 1))
    weeks = -(-faults.weeks // 100)
    blocks = -(-faults.weeks // weeks)
    edges = np.minimum(np.arange(blocks + 1) * weeks / faults.weeks, 1)
    return Stratum(at, np.minimum((at * faults.weeks / weeks).astype(np.int64), blocks - 1), edges)


def rows_of_growth(repetitions: int, seed: int) -> Iterator[list[str]]:
    for name, faults in FAULTS.items():
        (exact, robinson), (held, rejected), given = grown(faults, repetitions, seed)
        trend = f"**{rejected:.3f}** ({robinson:.3f})" if faults.growth == 1 else "–"
        yield [name, f"**{held:.3f}** ({exact:.3f})", f"{given:.2f}", trend]


def grown(faults: Faults, repetitions: int, seed: int) -> tuple[tuple[float, float], tuple[float, float], float]:
    """(of independent faults, by blocks): how often the interval of β holds the truth, and how often a constant rate is
    rejected; and how often there is an interval by blocks."""
    rng, found = np.random.default_rng(seed), []
    for factors in World(faults.sd, faults.ar, faults.weeks).factors(rng, repetitions):
        stratum = stratum_of(faults, factors, rng)
        alone, within = growth(stratum.at, 1.0), common_growth([stratum])
        ways = ((alone, "lewis_robinson_p"), (within, "trend_p"))
        held = [one["ci_low"] <= faults.growth <= one["ci_high"] if "ci_low" in one else np.nan for one, _ in ways]
        rejected = [np.nan if one[p] is None else one[p] < 0.05 for one, p in ways]
        found.append([*held, *rejected, "ci_low" in within])
    exact, robust, robinson, blocks, given = np.nanmean(np.array(found, float), axis=0).tolist()
    return (exact, robinson), (robust, blocks), given


BURST_WINDOWS = [f"{window // 60} min" for window in WINDOWS_S if window <= JITTER_S]


def rows_of_bursts(repetitions: int, seed: int) -> Iterator[list[str]]:
    for name, (sd, ar) in WEEKS.items():
        yield [name, *(f"**{every:.3f}** ({shifted:.3f})" for shifted, every in bursts(sd, ar, repetitions, seed))]


def bursts(sd: float, ar: float, repetitions: int, seed: int) -> list[tuple[float, float]]:
    """Of nodes none of which fails because of another: by window, how often the share with another near is above that
    of shifted histories, and how often it is called a burst."""
    rng, found = np.random.default_rng(seed), []
    for factors in World(sd, ar).factors(rng, repetitions):
        begun = [(week + rng.random(n)) * WEEK_S for week, n in enumerate(rng.poisson(500 / factors.size * factors))]
        time = np.sort(np.concatenate(begun)).astype(np.int64)
        node, none = rng.integers(0, 400, time.size), np.zeros_like(time)
        events = Events(none, node, none, time, none, none + factors.size * WEEK_S)
        rows = [row for row in burst_rows("fleet", events, rng, 100, JITTER_S) if row["is_burst"] is not None]
        found.append([(row["share"] > row["null_shifted_high"], row["is_burst"]) for row in rows])
    return [(float(shifted), float(every)) for shifted, every in np.mean(found, axis=0)]


SPANS = {"a year": 1, "six years": 6}
REPAIRS = {
    f"repairs of log SD {sigma:g}, {span}": (sigma, years)
    for sigma in (0.5, 1, 1.5, 2)
    for span, years in SPANS.items()
}


def rows_of_spares(repetitions: int, seed: int) -> Iterator[list[str]]:
    for name, (sigma, years) in REPAIRS.items():
        found = spares(sigma, years, repetitions, seed)
        yield [
            name,
            *(text for held, given in found for text in ("–" if np.isnan(held) else f"**{held:.3f}**", f"{given:.2f}")),
        ]


def spares(sigma: float, years: float, repetitions: int, seed: int) -> Iterator[tuple[float, float]]:
    """(how often the interval holds the number that the binomial gives, of the fleets that have one; in how many), for
    90 and 95% of the time; of 400 nodes up for 240 days on average, and down for 5.5."""
    rng, horizon, units = np.random.default_rng(seed), int(365 * years * DAY_S), 400
    times = np.exp(sigma * ndtri((np.arange(4096) + 0.5) / 4096))
    up, repair = Exponential(240 * DAY_S), Drawn(times * 5.5 * DAY_S / times.mean())
    exposure = pl.DataFrame({"from_s": [0] * units, "until_s": [horizon] * units})
    at_most = bdtr(np.arange(units, dtype=float), units, 5.5 / 245.5)
    held: dict[float, list[bool]] = {0.9: [], 0.95: []}
    for _ in range(repetitions):
        start_s, end_s = renewals(rng, units, 1, horizon, up, repair)
        length_s = max(WEEK_S, block_length_s(end_s - start_s, np.count_nonzero(start_s)))
        blocks = course_of(pl.DataFrame({"start_s": start_s, "end_s": end_s}), exposure).time_down_by(length_s)
        for p, inside in held.items():
            if (1 - p) * horizon >= length_s:
                low, high = spares_limits(blocks, p)
                inside.append(low <= np.searchsorted(at_most, p) <= high)
    for inside in held.values():
        yield float(np.mean(inside)) if inside else np.nan, len(inside) / repetitions


def rows_of_free(repetitions: int, seed: int) -> Iterator[list[str]]:
    for name, (sd, ar) in WEEKS.items():
        yield [name, *(f"**{held:.3f}**" for held in free(sd, ar, repetitions, seed))]


WEEKS = {"weeks that do not differ": (0.0, 0.0), "log SD 0.5": (0.5, 0.0), "log SD 0.5, AR 0.8": (0.5, 0.8)}


def free(sd: float, ar: float, repetitions: int, seed: int) -> list[float]:
    """How often the interval of the share of units free of outage for a day, a week and a month holds the truth, that
    of very many such fleets: 100 nodes that fail every 60 days, by factors of log SD 0.9, over 26 weeks."""
    rng, tables = np.random.default_rng(seed), []
    for factors in World(sd, ar).factors(rng, 3 * repetitions):
        node = np.exp(0.9 * rng.normal(size=(100, 1)) - 0.9**2 / 2)
        unit, week = np.nonzero(counts := rng.poisson(7 / 60 * node * factors))
        unit, week = (np.repeat(each, counts[counts > 0]) for each in (unit, week))
        start = ((week + rng.random(week.size)) * WEEK_S).astype(np.int64) + 1
        tables.append(outage_free(*_outages(unit, start, factors.size * WEEK_S), 7).head(3))
    moments, share = (np.array([table[name] for table in tables]) for name in ("moments_s", "share"))
    truth = (moments * share).sum(axis=0) / moments.sum(axis=0)
    ends = [np.array([table[f"ci_{end}_clustered"] for table in tables[:repetitions]]) for end in ("low", "high")]
    return ((ends[0] <= truth) & (truth <= ends[1])).mean(axis=0).tolist()


def _outages(unit: np.ndarray, start: np.ndarray, until: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(outages, each of an hour, exposure)."""
    outages = pl.DataFrame({"unit_id": [f"n{number}" for number in unit], "start_s": start})
    end = pl.min_horizontal(pl.col("start_s") + 3_600, pl.col("start_s").shift(-1).over("unit_id") - 1, pl.lit(until))
    outages = outages.sort("unit_id", "start_s").with_columns(end_s=end, seen_until_s=end, node="unit_id", counted=True)
    outages = outages.with_columns(duration_s=pl.col("end_s") - pl.col("start_s"), planned=False)
    outages = outages.with_columns(pl.lit(None, pl.String).alias(name) for name in ("group", "level"))
    names = [f"n{number}" for number in range(100)]
    exposure = pl.DataFrame({"unit_id": names, "group": None, "from_s": 0, "until_s": until})
    return outages, exposure.cast({"group": pl.String, "from_s": pl.Int64, "until_s": pl.Int64})
