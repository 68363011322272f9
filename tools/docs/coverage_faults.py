"""Simulate the coverage of intervals and tests of faults over time: growth, bursts, spares, spans without an outage.

The faults of a week share a factor (`coverage_weeks`) and come in bursts. The study's own functions analyse them.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from scipy.special import bdtr, ndtri

sys.path.append(str(Path(__file__).parent))

from coverage_weeks import World
from ttf.analyses.outages.find_bursts.compute import WINDOWS_S, Events, burst_rows
from ttf.analyses.outages.measure_availability.outage_free import outage_free
from ttf.analyses.outages.size_spares.compute import block_length_s, spares_limits
from ttf.analyses.outages.track_outages.compute import analyse_growth
from ttf.stats.durations.growth import Stratum, fit_common_growth
from ttf.stats.outages.outage_simulation import Empirical, Exponential, simulate_renewals
from ttf.stats.outages.units_down import build_course

DAY_S, WEEK_S = 86_400, 7 * 86_400
JITTER_S = DAY_S // 2


@dataclass(frozen=True)
class Faults:
    """burst: mean faults per burst; sd, ar: log SD and autocorrelation of the weeks' factors; growth: power of time."""

    burst: float = 1.0
    sd: float = 0.0
    ar: float = 0.0
    weeks: int = 52
    bursts: int = 600
    growth: float = 1.0


FAULTS = {
    "one by one": Faults(bursts=300),
    "in bursts of 3": Faults(3, bursts=300),
    "in bursts of 10": Faults(10, bursts=300),
    "in bursts of 3, β 0.8": Faults(3, bursts=300, growth=0.8),
    "weeks of log SD 0.5": Faults(sd=0.5),
    "weeks of log SD 0.3, AR 0.8": Faults(sd=0.3, ar=0.8),
    "weeks of log SD 0.5, AR 0.8": Faults(sd=0.5, ar=0.8),
    "the same, of four years in blocks of three weeks": Faults(sd=0.5, ar=0.8, weeks=207, bursts=2_400),
}


def simulate_stratum(faults: Faults, factors: np.ndarray, rng: np.random.Generator) -> Stratum:
    starts = [week + rng.random(n) for week, n in enumerate(rng.poisson(faults.bursts / faults.weeks * factors))]
    times = (np.concatenate(starts) / faults.weeks) ** (1 / faults.growth)
    times = np.sort(np.clip(np.repeat(times, rng.geometric(1 / faults.burst, times.size)), 1e-9, 1))
    weeks = -(-faults.weeks // 100)
    blocks = -(-faults.weeks // weeks)
    edges = np.minimum(np.arange(blocks + 1) * weeks / faults.weeks, 1)
    return Stratum(times, np.minimum((times * faults.weeks / weeks).astype(np.int64), blocks - 1), edges)


def growth_rows(repetitions: int, seed: int) -> Iterator[list[str]]:
    for name, faults in FAULTS.items():
        covered, rejected, defined = growth_coverage(faults, repetitions, seed)
        trend = f"**{rejected:.3f}**" if faults.growth == 1 else "–"
        yield [name, f"**{covered:.3f}**", f"{defined:.2f}", trend]


def growth_coverage(faults: Faults, repetitions: int, seed: int) -> tuple[float, float, float]:
    """Return the coverage of the interval of β, the share of rejected constant rates, and that of enough blocks."""
    rng, results = np.random.default_rng(seed), []
    for factors in World(faults.sd, faults.ar, faults.weeks).draw_factors(rng, repetitions):
        fit = fit_common_growth([simulate_stratum(faults, factors, rng)])
        has_interval = "ci_low" in fit
        is_covered = fit["ci_low"] <= faults.growth <= fit["ci_high"] if has_interval else np.nan
        is_rejected = np.nan if fit["trend_p"] is None else fit["trend_p"] < 0.05
        results.append([is_covered, is_rejected, has_interval])
    covered, rejected, defined = np.nanmean(np.array(results, float), axis=0).tolist()
    return covered, rejected, defined


@dataclass(frozen=True)
class Units:
    """A fleet of nodes, each with a fault every 240 days once it is old.

    early: excess of the hazard of a new node, which falls by e every 60 days. joining: share of the years in which
    nodes join. yearly: factor of the hazard per year.
    """

    years: int
    early: float = 0.0
    joining: float = 0.0
    yearly: float = 1.0
    nodes: int = 200


AGEING = {
    "a year, a constant hazard": Units(1),
    "a year, new nodes fail 4 times as often": Units(1, early=3),
    "four years, a constant hazard": Units(4),
    "four years, new nodes fail 4 times as often": Units(4, early=3),
    "the same, nodes join over three years": Units(4, early=3, joining=0.75),
    "a year, 30% fewer faults a year": Units(1, yearly=0.7),
    "four years, 30% fewer faults a year": Units(4, yearly=0.7),
}


def ageing_rows(repetitions: int, seed: int) -> Iterator[list[str]]:
    for name, units in AGEING.items():
        trends = ageing(units, repetitions, seed)
        has_trend = np.isin(trends, ["worse", "better"])
        yield [name, f"**{np.mean(has_trend):.3f}** ({np.mean(has_trend | (trends == 'unclear')):.3f})"]


def ageing(units: Units, repetitions: int, seed: int) -> np.ndarray:
    """Return the trends found in fleets; a blank one is that of a fleet with too few weeks."""
    rng, days, trends = np.random.default_rng(seed), 365 * units.years, []
    for _ in range(repetitions):
        joined = np.sort(units.joining * days * rng.random(units.nodes))
        # Thinning: candidates at the highest hazard, each kept with its share of it.
        highest = 1 + units.early
        node = np.repeat(np.arange(units.nodes), rng.poisson(highest * days / 240, units.nodes))
        time = days * rng.random(node.size)
        hazard = (1 + units.early * np.exp(-(time - joined[node]) / 60)) * units.yearly ** (time / 365) / highest
        is_fault = (time > joined[node]) & (rng.random(node.size) < hazard)
        start_s = np.ceil(DAY_S * time[is_fault]).astype(np.int64)
        records = pl.DataFrame({"unit_id": node[is_fault], "start_s": start_s, "end_s": start_s + 60, "level": "down"})
        from_s, until_s = (joined * DAY_S).astype(np.int64), days * DAY_S
        exposure = pl.DataFrame({"unit_id": np.arange(units.nodes), "from_s": from_s, "until_s": until_s})
        exposure = exposure.with_columns(group=pl.lit("nodes"))
        trends.append(analyse_growth(records, exposure)["growth"]["trend"][0] or "")
    return np.array(trends)


BURST_WINDOWS = [f"{window // 60} min" for window in WINDOWS_S if window <= JITTER_S]


def burst_table_rows(repetitions: int, seed: int) -> Iterator[list[str]]:
    for name, (sd, ar) in WEEKS.items():
        yield [name, *(f"**{burst:.3f}** ({shifted:.3f})" for shifted, burst in bursts(sd, ar, repetitions, seed))]


def bursts(sd: float, ar: float, repetitions: int, seed: int) -> list[tuple[float, float]]:
    """Return false alarms by window for independent nodes: (above the shifted histories, called a burst)."""
    rng, verdicts = np.random.default_rng(seed), []
    for factors in World(sd, ar).draw_factors(rng, repetitions):
        starts = [(week + rng.random(n)) * WEEK_S for week, n in enumerate(rng.poisson(500 / factors.size * factors))]
        time = np.sort(np.concatenate(starts)).astype(np.int64)
        node, zeros = rng.integers(0, 400, time.size), np.zeros_like(time)
        events = Events(zeros, node, zeros, time, zeros, zeros + factors.size * WEEK_S)
        rows = [row for row in burst_rows("fleet", events, rng, 100, JITTER_S) if row["is_burst"] is not None]
        verdicts.append([(row["share"] > row["null_shifted_high"], row["is_burst"]) for row in rows])
    return [(float(shifted), float(burst)) for shifted, burst in np.mean(verdicts, axis=0)]


SPANS = {"a year": 1, "six years": 6}
REPAIRS = {
    f"repairs of log SD {sigma:g}, {span}": (sigma, years)
    for sigma in (0.5, 1, 1.5, 2)
    for span, years in SPANS.items()
}


def spare_rows(repetitions: int, seed: int) -> Iterator[list[str]]:
    for name, (sigma, years) in REPAIRS.items():
        shares = spares(sigma, years, repetitions, seed)
        cells = [("–" if np.isnan(covered) else f"**{covered:.3f}**", f"{defined:.2f}") for covered, defined in shares]
        yield [name, *(text for pair in cells for text in pair)]


def spares(sigma: float, years: float, repetitions: int, seed: int) -> Iterator[tuple[float, float]]:
    """Yield for 90 and 95% of the time how often the interval covers the binomial's number, and how often there is one.

    400 nodes are up for 240 days on average and down for 5.5.
    """
    rng, horizon, units = np.random.default_rng(seed), int(365 * years * DAY_S), 400
    times = np.exp(sigma * ndtri((np.arange(4096) + 0.5) / 4096))
    up, repair = Exponential(240 * DAY_S), Empirical(times * 5.5 * DAY_S / times.mean())
    exposure = pl.DataFrame({"from_s": [0] * units, "until_s": [horizon] * units})
    cumulative = bdtr(np.arange(units, dtype=float), units, 5.5 / 245.5)
    hits_by_share: dict[float, list[bool]] = {0.9: [], 0.95: []}
    for _ in range(repetitions):
        start_s, end_s, _ = simulate_renewals(rng, units, 1, horizon, up, repair)
        length_s = max(WEEK_S, block_length_s(end_s - start_s, np.count_nonzero(start_s)))
        blocks = build_course(pl.DataFrame({"start_s": start_s, "end_s": end_s}), exposure).time_down_by(length_s)
        for p, hits in hits_by_share.items():
            if (1 - p) * horizon >= length_s:
                low, high = spares_limits(blocks, p)
                hits.append(low <= np.searchsorted(cumulative, p) <= high)
    for hits in hits_by_share.values():
        yield float(np.mean(hits)) if hits else np.nan, len(hits) / repetitions


def outage_free_rows(repetitions: int, seed: int) -> Iterator[list[str]]:
    for name, (sd, ar) in WEEKS.items():
        yield [name, *(f"**{covered:.3f}**" for covered in free(sd, ar, repetitions, seed))]


WEEKS = {"weeks that do not differ": (0.0, 0.0), "log SD 0.5": (0.5, 0.0), "log SD 0.5, AR 0.8": (0.5, 0.8)}


def free(sd: float, ar: float, repetitions: int, seed: int) -> list[float]:
    """Return the coverage of the share of units without an outage for a day, a week and a month.

    The truth is that of very many fleets: 100 nodes that fail every 60 days, factors of log SD 0.9, 26 weeks.
    """
    rng, tables = np.random.default_rng(seed), []
    for factors in World(sd, ar).draw_factors(rng, 3 * repetitions):
        node = np.exp(0.9 * rng.normal(size=(100, 1)) - 0.9**2 / 2)
        unit, week = np.nonzero(counts := rng.poisson(7 / 60 * node * factors))
        unit, week = (np.repeat(indices, counts[counts > 0]) for indices in (unit, week))
        start = ((week + rng.random(week.size)) * WEEK_S).astype(np.int64) + 1
        tables.append(outage_free(*_outages(unit, start, factors.size * WEEK_S), 7).head(3))
    moments, share = (np.array([table[name] for table in tables]) for name in ("moments_s", "share"))
    truth = (moments * share).sum(axis=0) / moments.sum(axis=0)
    bounds = [np.array([table[f"ci_{end}_clustered"] for table in tables[:repetitions]]) for end in ("low", "high")]
    return ((bounds[0] <= truth) & (truth <= bounds[1])).mean(axis=0).tolist()


def _outages(unit: np.ndarray, start: np.ndarray, until: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return (outages of one hour each, exposure)."""
    outages = pl.DataFrame({"unit_id": [f"n{number}" for number in unit], "start_s": start})
    end = pl.min_horizontal(pl.col("start_s") + 3_600, pl.col("start_s").shift(-1).over("unit_id") - 1, pl.lit(until))
    outages = outages.sort("unit_id", "start_s").with_columns(end_s=end, seen_until_s=end, node="unit_id", counted=True)
    outages = outages.with_columns(duration_s=pl.col("end_s") - pl.col("start_s"), planned=False)
    outages = outages.with_columns(pl.lit(None, pl.String).alias(name) for name in ("group", "level"))
    names = [f"n{number}" for number in range(100)]
    exposure = pl.DataFrame({"unit_id": names, "group": None, "from_s": 0, "until_s": until})
    return outages, exposure.cast({"group": pl.String, "from_s": pl.Int64, "until_s": pl.Int64})
