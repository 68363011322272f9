"""Failures of runs soon after a signal on one of their units, against those that chance allows.

A run is hit by a signal on its unit while it runs. It is exposed for a window after each signal. Chance is 1 -
exp(-expected), where the expected failures are the hazard without the signal, summed over the exposed time. The hazard
is that of all runs at the same age, times a factor of the runs of the same user and size, of these runs at about that
age, and of the unit. So a user and a unit are compared with themselves at other times, as in a case-crossover study
(Maclure 1991). A factor is the failures over those expected without it; one failure, as expected by the factor before,
is added to both, so that a user or unit with little time borrows from others. Time exposed to signals of the code
counts only as far as hardly any run of that age is free of them.

Negative controls move each signal to another run of the same user and size, at the same age, and to the same time of
the days around. There the signal has no effect, so a ratio above 1 shows what the model does not match.

Observed and expected failures are compared as two Poisson counts: the expected ones are worth as many control failures
as the variance of their factors says. Both are divided by their dispersion, the variance between units and weeks or
between users and weeks (`ttf.stats.clustered`), whichever is larger, over that of Poisson counts, at least 1.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.special import betainc, betaincinv, pdtr, stdtrit

from ttf.records.clusters import DAY_S
from ttf.stats.clustered import FEWEST, Clusters, float_columns

CONFIDENCE = 0.95
_Z = 1.959963984540054
# Ages in s, to about seven years. Within a step of 19 % the hazard is constant.
_AGES = np.unique(np.rint(np.concatenate([[0], 2 ** np.arange(0, 28, 0.25)])))
# Ages between which the runs of one user are compared with each other.
_STRATA = np.array([0, *8.0 ** np.arange(1, 7), _AGES[-1]])
_SEED = 7
# Signals of a code that are moved, at regular positions.
_MOST_MOVED = 10_000

SIGNALS = {"unit": pl.UInt32, "code": pl.String, "time_s": pl.Int64}
RUNS = {
    "run": pl.UInt32,
    "unit": pl.UInt32,
    "user": pl.UInt32,
    "start_s": pl.Int64,
    "end_s": pl.Int64,
    "is_failed": pl.Boolean,
}
WATCH = {"unit": pl.UInt32, "start_s": pl.Int64, "end_s": pl.Int64}
HITS = {"code": pl.String, "run": pl.UInt32, "user": pl.UInt32, "unit": pl.UInt32, "time_s": pl.Int64}
HITS |= {"is_failed": pl.Boolean, "expected": pl.Float64, "chance": pl.Float64, "hazard": pl.Float64}
HITS |= {"has_control": pl.Boolean}


class Control(NamedTuple):
    """Number of control failures behind the expected ones; share of the signals with a hit after which a run failed."""

    failures: float
    followed: float


class RatioTest(NamedTuple):
    """Ratio of observed to expected failures, its interval and its one-sided p-value; None where there is none."""

    ratio: float | None
    low: float | None
    high: float | None
    p_value: float | None
    effective_units: float


class _Spells(NamedTuple):
    """Running time from one age to another, in s, of runs by their position; failed: whether a failure ends it."""

    run: np.ndarray
    low: np.ndarray
    high: np.ndarray
    failed: np.ndarray

    def sum_by_age(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the failures and the running time between _AGES."""
        time_s = np.diff(_time_until(self.high) - _time_until(self.low))
        return np.bincount(_find_step(_AGES, self.high[self.failed]), minlength=time_s.size), time_s


def _time_until(ages: np.ndarray) -> np.ndarray:
    """Return the sum of the ages, each at most the limit, for each limit in _AGES."""
    ages = np.sort(ages)
    position = np.searchsorted(ages, _AGES, side="right")
    return np.concatenate([[0], np.cumsum(ages)])[position] + (ages.size - position) * _AGES


def _find_step(edges: np.ndarray, ages: np.ndarray) -> np.ndarray:
    """Return the step in which each age lies, its upper edge included."""
    return np.clip(np.searchsorted(edges, ages, side="left") - 1, 0, edges.size - 2)


@dataclass(frozen=True)
class History:
    """Runs with their failures, and when the units were watched.

    runs: RUNS, a row for each unit of a run, with known start and end. watch: WATCH, disjoint spans of a unit.
    """

    runs: pl.DataFrame
    watch: pl.DataFrame

    @cached_property
    def table(self) -> pl.DataFrame:
        """A row for each run, in order: position, run, unit (the first), user, start_s, length_s, is_failed, group.

        group: number of its user and size. Only runs that end while one of their units is watched are controls.
        """
        end_s = self.runs["end_s"].to_numpy()
        is_control = pl.Series("is_control", self.is_watched(self.runs["unit"].to_numpy(), end_s, end_s))
        rows = self.runs.with_columns(is_control, pl.col("user").fill_null(pl.col("user").max() + 1))
        table = rows.group_by("run").agg(
            pl.col("unit", "start_s").min(),
            pl.col("user").first(),
            pl.col("is_failed", "is_control").any(),
            length_s=pl.col("end_s").max() - pl.col("start_s").min(),
            size=pl.len().log(2).floor(),
        )
        group = pl.struct("user", "size").rank("dense").cast(pl.Int64) - 1
        return table.sort("run").with_columns(group=group).with_row_index("position")

    def column(self, name: str) -> np.ndarray:
        return self.table[name].to_numpy()

    @cached_property
    def spells(self) -> _Spells:
        """The running time of the controls."""
        position = np.flatnonzero(self.column("is_control"))
        length_s = self.column("length_s")[position].astype(float)
        return _Spells(position, np.zeros(position.size), length_s, self.column("is_failed")[position])

    @cached_property
    def sums_by_age(self) -> tuple[np.ndarray, np.ndarray]:
        return self.spells.sum_by_age()

    @cached_property
    def unit_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Unit of each row, and position of its run."""
        rows = self.runs.select("unit", "run").join(self.table.select("run", "position"), on="run")
        return rows["unit"].to_numpy().astype(np.int64), rows["position"].to_numpy()

    def is_watched(self, unit: np.ndarray, low_s: np.ndarray, high_s: np.ndarray) -> np.ndarray:
        """Return whether a unit is watched from low_s to high_s without a gap."""
        spans = self.watch.with_columns(pl.col("unit").cast(pl.Int64)).sort("start_s")
        rows = pl.DataFrame({"unit": unit.astype(np.int64), "low_s": low_s, "high_s": high_s}).with_row_index()
        rows = rows.sort("low_s").join_asof(
            spans, left_on="low_s", right_on="start_s", by="unit", check_sortedness=False
        )
        is_inside = (pl.col("end_s") >= pl.col("high_s")).fill_null(False)
        return rows.sort("index").select(is_inside).to_series().to_numpy()


def pair_running(signals: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """Return each pair of a signal and a run that its unit ran at that time: columns of both."""
    unit_days = signals.select("unit", day=pl.col("time_s") // DAY_S).unique()
    # An exact join by day instead of a product of a unit's signals and runs.
    parts = (
        runs.lazy()
        .join(unit_days.lazy().select("unit").unique(), on="unit", how="semi")
        .with_columns(day=pl.int_ranges(pl.col("start_s") // DAY_S, pl.col("end_s") // DAY_S + 1))
        .explode("day")
        .join(unit_days.lazy(), on=["unit", "day"], how="semi")
    )
    pairs = signals.lazy().with_columns(day=pl.col("time_s") // DAY_S).join(parts, on=["unit", "day"])
    is_running = pl.col("time_s").is_between("start_s", "end_s")
    return pairs.filter(is_running).drop("day").collect().sort("code", "run", "time_s", "unit")


def compare_with_control(
    signals: pl.DataFrame, history: History, window_s: int
) -> tuple[pl.DataFrame, dict[str, Control]]:
    """Return each run that a code hits, with its chance to fail, and what the control of each code is worth.

    Columns HITS, sorted by code and run: unit and time_s (of the first signal), is_failed (whether the run failed
    within window_s after a signal), expected (failures without the signals), chance (to fail there without them),
    hazard (expected per second, over that of all running time), has_control (whether another run was free of the
    code at that age).

    Parameters
    ----------
    signals: SIGNALS; history: the runs and when their units were watched; window_s: exposed time after a signal, s
    """
    signals = signals.select(list(SIGNALS)).unique().sort("code", "unit", "time_s")
    pairs = pair_running(signals, history.runs.drop("user"))
    next_s = pl.col("time_s").shift(-1).over("code", "run")
    # A failure censors nothing: without it the run would have been exposed for the whole window.
    limit_s = pl.when("is_failed").then(pl.col("time_s") + window_s).otherwise("end_s")
    is_after = pl.col("is_failed") & (pl.col("end_s") <= pl.col("time_s") + window_s)
    pairs = pairs.with_columns(
        until_s=pl.min_horizontal(pl.col("time_s") + window_s, next_s, limit_s),
        is_after=is_after,
        is_last=is_after & next_s.is_null(),
    )
    pairs = pairs.with_columns(seen_until_s=pl.min_horizontal("until_s", "end_s")).drop("start_s")
    facts = history.table.select("run", "position", "user", "start_s", "is_control")
    pairs = pairs.join(facts, on="run", how="left", maintain_order="left")
    parts, controls = [pl.DataFrame(schema=HITS)], {}
    for (code,), rows in pairs.group_by("code", maintain_order=True):
        model = _Model(history, rows)
        expected, controls[code] = model.expect(rows)
        rows = rows.with_columns(expected)
        hits = rows.group_by("code", "run", maintain_order=True).agg(
            pl.col("user", "unit", "time_s", "has_control").first(),
            pl.col("expected").sum(),
            is_failed=pl.col("is_after").any(),
            chance=1 - (-pl.col("expected").sum()).exp(),
            hazard=pl.col("expected").sum() / (pl.col("until_s") - pl.col("time_s")).sum() / model.mean_hazard,
        )
        parts.append(hits.select(pl.col(name).cast(dtype) for name, dtype in HITS.items()))
    return pl.concat(parts), controls


class _Model:
    """Hazard of the runs of a history without the signals of one code: by age, times factors.

    pairs: the signals of the code with the runs that they hit, which are exposed until until_s.
    """

    def __init__(self, history: History, pairs: pl.DataFrame) -> None:
        self._group = history.column("group")
        self._shape = self._group.max(initial=0) + 1, _STRATA.size - 1
        spells, exposed = history.spells, _take_exposed(pairs)
        (failures, time_s), (exposed_failures, exposed_s) = history.sums_by_age, exposed.sum_by_age()
        self._free_s = time_s - exposed_s
        hazard = _compare(failures - exposed_failures, self._free_s, failures / np.maximum(time_s, 1))
        self._cumulative = np.concatenate([[0], np.cumsum(hazard * np.diff(_AGES))])
        failures, expected = (
            of_all - of_exposed
            for of_all, of_exposed in zip(self._sum_by_group(spells), self._sum_by_group(exposed), strict=True)
        )
        level = failures.sum() / expected.sum() if expected.sum() > 0 else 0.0
        by_group = _compare(failures.sum(axis=1), expected.sum(axis=1), level)
        self._factors, self._group_failures = _compare(failures, expected, by_group[:, None]), failures
        steps = self._factors * np.diff(self._hazard_until(_STRATA))
        self._until_stratum = np.concatenate([np.zeros((by_group.size, 1)), np.cumsum(steps, axis=1)], axis=1)
        unit, position = history.unit_rows
        failures, expected = (
            np.bincount(spells.run, of_all, self._group.size) - np.bincount(exposed.run, of_exposed, self._group.size)
            for of_all, of_exposed in (
                (spells.failed, exposed.failed),
                (self._expect(spells), self._expect(exposed)),
            )
        )
        self.mean_hazard = expected.sum() / max(self._free_s.sum(), 1)
        self._unit_failures = np.bincount(unit, failures[position])
        self._unit_factors = _compare(self._unit_failures, np.bincount(unit, expected[position]), 1.0)

    def _hazard_until(self, ages: np.ndarray) -> np.ndarray:
        """Return the cumulative hazard of all runs at these ages."""
        return np.interp(ages, _AGES, self._cumulative)

    def _sum_by_group(self, spells: _Spells) -> tuple[np.ndarray, np.ndarray]:
        """Return the failures, and those expected by age alone, by group and stratum of the age."""
        edges, group, shape = self._hazard_until(_STRATA), self._group[spells.run], self._shape

        def count(ages: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
            cell = group * shape[1] + _find_step(_STRATA, ages)
            return np.bincount(cell, weights, shape[0] * shape[1]).reshape(shape)

        def expect_until(ages: np.ndarray) -> np.ndarray:
            part = count(ages, self._hazard_until(ages) - edges[_find_step(_STRATA, ages)])
            later = np.cumsum(count(ages)[:, ::-1], axis=1)[:, ::-1]
            return part + (later - count(ages)) * np.diff(edges)

        return count(spells.high, spells.failed), expect_until(spells.high) - expect_until(spells.low)

    def _expect(self, spells: _Spells) -> np.ndarray:
        """Return the expected failures of each spell, without the factor of the unit."""
        group, edges = self._group[spells.run], self._hazard_until(_STRATA)

        def expect_until(ages: np.ndarray) -> np.ndarray:
            step = _find_step(_STRATA, ages)
            beyond = self._hazard_until(ages) - edges[step]
            return self._until_stratum[group, step] + self._factors[group, step] * beyond

        return expect_until(spells.high) - expect_until(spells.low)

    def expect(self, pairs: pl.DataFrame) -> tuple[pl.DataFrame, Control]:
        """Return expected and has_control of each pair, and what they are worth together."""
        run, unit = pairs["position"].to_numpy(), pairs["unit"].to_numpy()
        low, high = ((pairs[name] - pairs["start_s"]).to_numpy().astype(float) for name in ("time_s", "until_s"))
        expected = self._expect(_Spells(run, low, high, low > high)) * self._unit_factors[unit]
        cell = self._group[run] * (_STRATA.size - 1) + _find_step(_STRATA, low)
        variance = sum(
            (np.bincount(key, expected, n.size) ** 2 / (np.maximum(n, 0) + 1)).sum()
            for key, n in ((cell, self._group_failures.ravel()), (unit, self._unit_failures))
        )
        followed = pairs.group_by("unit", "time_s").agg(pl.col("is_after").any())["is_after"].to_numpy().mean()
        # The signals of a step of ages leave the time before them free.
        has_control = self._free_s[np.minimum(_find_step(_AGES, low) + 1, self._free_s.size - 1)] > 0
        columns = pl.DataFrame({"expected": expected, "has_control": has_control})
        return columns, Control(float(expected.sum() ** 2 / variance) if variance else 0.0, float(followed))


def _compare(failures: np.ndarray, expected: np.ndarray, prior: np.ndarray | float) -> np.ndarray:
    """Return failures over expected failures, both with one failure as expected at the prior ratio; 0 if that is 0."""
    with np.errstate(divide="ignore"):
        return (failures + 1) / (np.maximum(expected, 0) + 1 / np.asarray(prior, float))


def _take_exposed(pairs: pl.DataFrame) -> _Spells:
    """Return the running time of controls that is exposed, and whether it ends in their failure."""
    pairs = pairs.filter("is_control")
    low, high = ((pairs[name] - pairs["start_s"]).to_numpy().astype(float) for name in ("time_s", "seen_until_s"))
    return _Spells(pairs["position"].to_numpy(), low, high, pairs["is_last"].to_numpy())


def move_signals(hits: pl.DataFrame, history: History, window_s: int) -> pl.DataFrame:
    """Return SIGNALS: each signal at the same age of another run of the same user and size, not exposed to the code.

    Of several runs that a signal hits, the youngest is meant. A later signal of the other run does not matter: whether
    one comes depends on whether the run fails. A signal without such a run is left out.
    """
    draws, parts = np.random.default_rng(_SEED), [pl.DataFrame(schema=SIGNALS)]
    pool = history.table.sort("group", "length_s")
    length_s = pool["length_s"].to_numpy()
    span = int(length_s.max(initial=0)) + 1
    key = pool["group"].to_numpy() * span + length_s
    for _, rows in hits.group_by("code", maintain_order=True):
        first = rows.select("run", first_s="time_s")
        rows = rows.join(history.table.select("run", "group", "start_s"), on="run").sort("unit", "time_s", "start_s")
        rows = rows.unique(["unit", "time_s"], keep="last", maintain_order=True)
        rows = rows.gather_every(1 + rows.height // _MOST_MOVED)
        group, age = rows["group"].to_numpy(), (rows["time_s"] - rows["start_s"]).to_numpy()
        low, high = np.searchsorted(key, group * span + age), np.searchsorted(key, (group + 1) * span)
        chosen = pool[low + (draws.random(age.size) * (high - low)).astype(np.int64)]
        moved = chosen.select("run", "unit", time_s=pl.col("start_s") + pl.Series(age)).with_columns(rows["code"])
        moved = moved.join(first, on="run", how="left", maintain_order="left")
        is_exposed = (pl.col("time_s") - pl.col("first_s")).is_between(0, window_s)
        parts.append(moved.filter(~is_exposed.fill_null(False)).select(list(SIGNALS)))
    return pl.concat(parts)


def shift_signals(hits: pl.DataFrame, window_s: int) -> pl.DataFrame:
    """Return SIGNALS: each signal at the same time of the three days before and after, where it is not exposed."""
    signals = hits.select(list(SIGNALS)).unique().sort("time_s", "unit", "code")
    days = pl.DataFrame({"day": [-3, -2, -1, 1, 2, 3]})
    is_moved = pl.int_range(pl.len()).over("code") % (1 + pl.len().over("code") // _MOST_MOVED) == 0
    shifted = (
        signals.filter(is_moved)
        .join(days, how="cross")
        .with_columns(pl.col("time_s") + pl.col("day") * DAY_S)
        .sort("time_s")
    )
    before = signals.with_columns(before_s="time_s")
    shifted = shifted.join_asof(before, on="time_s", by=["unit", "code"], tolerance=window_s, check_sortedness=False)
    return shifted.filter(pl.col("before_s").is_null()).select(list(SIGNALS))


def compare_counts(hits: pl.DataFrame, control_failures: float, block_days: int) -> RatioTest:
    """Compare the failures of the runs that one code hits with those expected by chance.

    hits: rows of one code of `compare_with_control`. control_failures: the number behind the expected ones.
    """
    o, e = float(hits["is_failed"].sum()), float(hits["chance"].sum())
    block = pl.col("time_s") // (block_days * DAY_S)
    by_level = [_measure_dispersion(hits.with_columns(block=block), level, o, e) for level in ("unit", "user")]
    effective = by_level[0][0]
    if e <= 0 or effective < FEWEST:
        return RatioTest(o / e if e > 0 else None, None, None, None, effective)
    dispersion = max(1.0, *(value for _, value in by_level))
    x, k, odds = o / dispersion, control_failures / dispersion, control_failures / e
    tail = (1 - CONFIDENCE) / 2
    low = betaincinv(x, k + 1, tail) if o else 0.0
    high = min(betaincinv(x + 1, k, 1 - tail), 1 - 1e-12)
    p_value = float(betainc(x, k + 1, 1 / (1 + odds))) if o else 1.0
    return RatioTest(o / e, float(low / (1 - low) * odds), float(high / (1 - high) * odds), p_value, effective)


def _measure_dispersion(hits: pl.DataFrame, level: str, o: float, e: float) -> tuple[float, float]:
    """Return the effective number of units or users with hits, and the dispersion of the failures between them."""
    sums = hits.group_by(cluster=pl.col(level).cast(pl.Int64), block="block").agg(
        observed=pl.col("is_failed").sum(), expected=pl.col("chance").sum(), members=pl.len()
    )
    sums = sums.sort("cluster", "block")
    observed, expected, members = float_columns(sums, "observed", "expected", "members")
    numbers = (sums[name].to_numpy() for name in ("cluster", "block"))
    clusters = Clusters.in_one_stratum(members, *numbers)
    if not o or e <= 0:
        return float(clusters.effective[0]), 1.0
    # Failures beyond chance are shared by all hits alike, whatever their chance.
    fitted = expected * min(1, o / e) + members / members.sum() * max(0, o - e)
    spread = clusters.spread((observed - fitted) / o, fitted / o)
    student = stdtrit(spread.degrees, (1 + CONFIDENCE) / 2)[0] / _Z
    return float(clusters.effective[0]), float(np.nan_to_num(o * (spread.se[0] * student) ** 2))


def most_by_chance(expected: float) -> int:
    """Return the smallest number that a Poisson count with this mean exceeds with at most 5 % probability.

    Examples
    --------
    >>> most_by_chance(1.0)
    3
    """
    most = 0
    while pdtr(most, expected) < CONFIDENCE:
        most += 1
    return most
