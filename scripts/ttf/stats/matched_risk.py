"""Failures of runs soon after a signal on one of their units, against those that chance allows (case-crossover).

A run is hit by a signal on its unit while it runs. It is exposed for a window after each signal. The failures expected
by chance come from the same unit at other times, as in a case-crossover study (Maclure 1991): the control time of a
signal is the same time of day, within CONTROL_S, on each day on which the unit is watched, without the time exposed to
signals of this code. Days with a signal stay: whether one comes later depends on whether runs fail. The hazard is
failures over running time. One failure at the hazard of the unit's whole watched time is added to it, and to that one
failure at the hazard of all units, so that a unit with little control time borrows from others.

Chance is 1 - exp(-hazard x exposed time). Observed and expected failures are compared as two Poisson counts: the
expected ones are worth as many failures of the control time as Kish's number of their weights. Both are divided by
their dispersion, the variance between units and weeks (`ttf.stats.clustered`) over that of Poisson counts, at least 1.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.special import betainc, betaincinv, pdtr, stdtrit

from ttf.records.clusters import DAY_S
from ttf.stats.clustered import FEWEST, Clusters, float_columns

CONTROL_S = 1_800
CONFIDENCE = 0.95
_Z = 1.959963984540054
# Control times that are evaluated together.
_BLOCK = 1_000_000

SIGNALS = {"unit": pl.UInt32, "code": pl.String, "time_s": pl.Int64}
RUNS = {"run": pl.UInt32, "unit": pl.UInt32, "start_s": pl.Int64, "end_s": pl.Int64, "is_failed": pl.Boolean}
WATCH = {"unit": pl.UInt32, "start_s": pl.Int64, "end_s": pl.Int64}


class RatioTest(NamedTuple):
    """Ratio of observed to expected failures, its interval and its one-sided p-value; None where there is none."""

    ratio: float | None
    low: float | None
    high: float | None
    p_value: float | None
    effective_units: float


@dataclass(frozen=True)
class History:
    """Running time and failures of each unit up to any moment, and when the units were watched.

    runs: RUNS, a row for each unit of a run, with known start and end. watch: WATCH, disjoint spans of a unit.
    """

    runs: pl.DataFrame
    watch: pl.DataFrame

    @cached_property
    def _bounds(self) -> tuple[int, int, int]:
        """First and last moment, a day wider than the rows, and the number of units."""
        names = ("unit", "start_s", "end_s")
        rows = pl.concat([self.watch.select(names), self.runs.select(names)])
        columns = (pl.col("start_s").min(), pl.col("end_s").max(), pl.col("unit").cast(pl.Int64).max())
        first_s, last_s, last_unit = rows.select(column.fill_null(0) for column in columns).row(0)
        return first_s - DAY_S, last_s + DAY_S, last_unit + 1

    @property
    def first_s(self) -> int:
        return self._bounds[0]

    @property
    def last_s(self) -> int:
        return self._bounds[1]

    @property
    def units(self) -> int:
        return self._bounds[2]

    def key(self, unit: np.ndarray, time_s: np.ndarray) -> np.ndarray:
        """Return one number for unit and time, in their order."""
        return unit * (self.last_s - self.first_s + 1) + (time_s - self.first_s)

    @cached_property
    def _moments(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Return, for starts and for ends, sorted keys, cumulative times, and the first position of each unit."""
        moments = []
        for name in ("start_s", "end_s"):
            rows = self.runs.select("unit", name).sort("unit", name)
            unit, time_s = rows["unit"].to_numpy().astype(np.int64), rows[name].to_numpy()
            sums = np.concatenate([[0], np.cumsum(time_s - self.first_s)])
            moments.append((self.key(unit, time_s), sums, np.searchsorted(unit, np.arange(self.units))))
        return moments

    @cached_property
    def _failures(self) -> np.ndarray:
        failed = self.runs.filter("is_failed").sort("unit", "end_s")
        return self.key(failed["unit"].to_numpy().astype(np.int64), failed["end_s"].to_numpy())

    def running_s(self, unit: np.ndarray, until_s: np.ndarray) -> np.ndarray:
        """Return the running time of all runs of a unit up to a moment."""
        totals = []
        for keys, sums, firsts in self._moments:
            position, first = np.searchsorted(keys, self.key(unit, until_s), side="right"), firsts[unit]
            totals.append((position - first) * (until_s - self.first_s) - (sums[position] - sums[first]))
        return totals[0] - totals[1]

    def count_failures(self, unit: np.ndarray, until_s: np.ndarray) -> np.ndarray:
        """Return the position, among the failures in order of unit and end, after those of a unit up to a moment."""
        return np.searchsorted(self._failures, self.key(unit, until_s), side="right")

    @property
    def failures(self) -> int:
        return self._failures.size

    @cached_property
    def spans(self) -> list[np.ndarray]:
        """Unit, start and end of each span of the watch, sorted."""
        rows = self.watch.sort("unit", "start_s")
        return [rows[name].to_numpy().astype(np.int64) for name in ("unit", "start_s", "end_s")]

    def is_watched(self, unit: np.ndarray, low_s: np.ndarray, high_s: np.ndarray) -> np.ndarray:
        """Return whether a unit is watched from low_s to high_s without a gap."""
        span_unit, span_start_s, span_end_s = self.spans
        if not span_unit.size:
            return np.zeros(np.broadcast(unit, low_s).shape, bool)
        position = np.searchsorted(self.key(span_unit, span_start_s), self.key(unit, low_s), side="right") - 1
        span = np.maximum(position, 0)
        return (position >= 0) & (span_unit[span] == unit) & (span_end_s[span] >= high_s)

    def is_in_spans(self, unit: np.ndarray, start_s: np.ndarray, end_s: np.ndarray) -> np.ndarray:
        """Return whether each failure lies in one of these sorted, disjoint spans of its unit, ends included."""
        if not unit.size:
            return np.zeros(self.failures, bool)
        span = np.searchsorted(self.key(unit, start_s), self._failures, side="right") - 1
        return (span >= 0) & (self._failures <= self.key(unit, end_s)[np.maximum(span, 0)])


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
) -> tuple[pl.DataFrame, dict[str, float]]:
    """Return each run that a code hits, with its chance to fail, and the number of control failures behind each code.

    Columns, sorted by code and run: code, run, unit and time_s (of the first signal), is_failed (whether the run failed
    within window_s after a signal), chance (to fail there by chance), control_s (running time in its control time).

    Parameters
    ----------
    signals: SIGNALS; history: the runs and when their units were watched; window_s: exposed time after a signal, s
    """
    signals = signals.unique(["unit", "code", "time_s"]).sort("code", "unit", "time_s")
    pairs = pair_running(signals, history.runs)
    next_s = pl.col("time_s").shift(-1).over("code", "run")
    # A failure censors nothing: without it the run would have been exposed for the whole window.
    limit_s = pl.when("is_failed").then(pl.col("time_s") + window_s).otherwise("end_s")
    until_s = pl.min_horizontal(pl.col("time_s") + window_s, next_s, limit_s)
    is_after = pl.col("is_failed") & (pl.col("end_s") <= pl.col("time_s") + window_s)
    pairs = pairs.with_columns(exposed_s=until_s - pl.col("time_s"), is_after=is_after)
    hazards, control_failures = [], {}
    for code in pairs["code"].unique(maintain_order=True):
        code_pairs = pairs.filter(pl.col("code") == code)
        rows, control_failures[code] = _control_hazards(
            code_pairs, signals.filter(pl.col("code") == code), history, window_s
        )
        hazards.append(rows)
    if not hazards:
        schema = {"code": pl.String, "run": pl.UInt32, "unit": pl.UInt32, "time_s": pl.Int64}
        schema |= {"is_failed": pl.Boolean, "chance": pl.Float64, "control_s": pl.Int64}
        return pl.DataFrame(schema=schema), {}
    pairs = pairs.join(pl.concat(hazards), on=["code", "unit", "time_s"], how="left", maintain_order="left")
    hits = pairs.group_by("code", "run", maintain_order=True).agg(
        pl.col("unit", "time_s").first(),
        is_failed=pl.col("is_after").any(),
        chance=1 - (-(pl.col("hazard") * pl.col("exposed_s")).sum()).exp(),
        control_s=pl.col("control_s").first(),
    )
    return hits, control_failures


@dataclass(frozen=True)
class _Exposure:
    """Time exposed to the signals of one code: disjoint spans of units, sorted by unit and start."""

    history: History
    unit: np.ndarray
    start_s: np.ndarray
    end_s: np.ndarray

    @classmethod
    def from_signals(cls, signals: pl.DataFrame, history: History, window_s: int) -> "_Exposure":
        unit, time_s = (signals[name].to_numpy().astype(np.int64) for name in ("unit", "time_s"))
        is_last = np.diff(unit, append=-1) != 0
        next_s = np.where(is_last, time_s + window_s, np.roll(time_s, -1))
        return cls(history, unit, time_s, np.minimum(time_s + window_s, next_s))

    @cached_property
    def _sums(self) -> np.ndarray:
        running_s = self.history.running_s(self.unit, self.end_s) - self.history.running_s(self.unit, self.start_s)
        return np.concatenate([[0], np.cumsum(running_s)])

    @cached_property
    def is_exposed(self) -> np.ndarray:
        """Whether each failure of the history is exposed."""
        return self.history.is_in_spans(self.unit, self.start_s, self.end_s)

    def running_s(self, unit: np.ndarray, until_s: np.ndarray) -> np.ndarray:
        """Return the exposed running time of all units up to this one, of this one up to a moment."""
        keys = self.history.key(self.unit, self.start_s)
        span = np.searchsorted(keys, self.history.key(unit, until_s), side="right") - 1
        last = np.maximum(span, 0)
        is_inside = (span >= 0) & (self.unit[last] == unit) & (self.end_s[last] > until_s)
        beyond_s = self.history.running_s(unit, self.end_s[last]) - self.history.running_s(unit, until_s)
        return self._sums[span + 1] - np.where(is_inside, beyond_s, 0)


def _control_hazards(
    pairs: pl.DataFrame, signals: pl.DataFrame, history: History, window_s: int
) -> tuple[pl.DataFrame, float]:
    """Return the hazard at each signal of one code that hits a run, and Kish's number of the control failures.

    Columns: code, unit, time_s, hazard (per second), control_s.
    """
    exposure = _Exposure.from_signals(signals, history, window_s)
    free_failures = np.concatenate([[0], np.cumsum(~exposure.is_exposed)])
    unit_hazard = _unit_hazards(exposure, free_failures)
    moments = pairs.group_by("code", "unit", "time_s", maintain_order=True).agg(pl.col("exposed_s").sum())
    unit, time_s, exposed_s = (moments[name].to_numpy().astype(np.int64) for name in ("unit", "time_s", "exposed_s"))
    days = np.arange(history.first_s // DAY_S, history.last_s // DAY_S + 1)
    weights, hazard = np.zeros(history.failures + 1), np.zeros(unit.size)
    control_s = np.zeros(unit.size, np.int64)
    prior = np.zeros(history.units)
    size = max(1, _BLOCK // days.size)
    for start in range(0, unit.size, size):
        rows = slice(start, start + size)
        centre = days[None, :] * DAY_S + (time_s[rows] % DAY_S)[:, None]
        units = np.broadcast_to(unit[rows][:, None], centre.shape)
        chosen = np.nonzero(history.is_watched(units, centre - CONTROL_S, centre + CONTROL_S))
        units, low, high = units[chosen], centre[chosen] - CONTROL_S, centre[chosen] + CONTROL_S
        running_s = history.running_s(units, high) - history.running_s(units, low)
        running_s -= exposure.running_s(units, high) - exposure.running_s(units, low)
        first, last = history.count_failures(units, low), history.count_failures(units, high)
        n = np.bincount(chosen[0], free_failures[last] - free_failures[first], centre.shape[0])
        control_s[rows] = np.bincount(chosen[0], running_s, centre.shape[0])
        with np.errstate(divide="ignore"):
            borrowed_s = 1 / unit_hazard[unit[rows]]
        hazard[rows] = (n + 1) / (control_s[rows] + borrowed_s)
        share = exposed_s[rows] / (control_s[rows] + borrowed_s)
        np.add.at(weights, first, share[chosen[0]])
        np.add.at(weights, last, -share[chosen[0]])
        prior += np.bincount(unit[rows], share, history.units)
    weights = np.concatenate([np.where(exposure.is_exposed, 0, np.cumsum(weights)[:-1]), prior])
    squares = float((weights**2).sum())
    keys = moments.select("code", "unit", "time_s")
    hazards = keys.with_columns(hazard=pl.Series(hazard), control_s=pl.Series(control_s))
    return hazards, float(weights.sum()) ** 2 / squares if squares else 0.0


def _unit_hazards(exposure: _Exposure, free_failures: np.ndarray) -> np.ndarray:
    """Return the hazard of each unit in its watched time that is not exposed.

    free_failures: cumulative number of failures that are not exposed.
    """
    history, (unit, start_s, end_s) = exposure.history, exposure.history.spans
    running_s = history.running_s(unit, end_s) - history.running_s(unit, start_s)
    running_s -= exposure.running_s(unit, end_s) - exposure.running_s(unit, start_s)
    first, last = history.count_failures(unit, start_s), history.count_failures(unit, end_s)
    totals = (running_s, free_failures[last] - free_failures[first])
    running_by_unit, failures_by_unit = (np.bincount(unit, values, history.units) for values in totals)
    with np.errstate(divide="ignore", invalid="ignore"):
        all_units = np.nan_to_num(failures_by_unit.sum() / running_by_unit.sum())
        return (failures_by_unit + 1) / (running_by_unit + 1 / all_units)


def compare_counts(hits: pl.DataFrame, control_failures: float, block_days: int) -> RatioTest:
    """Compare the failures of the runs that one code hits with those expected by chance.

    hits: rows of one code of `compare_with_control`. control_failures: the number behind the expected ones.
    """
    cluster, block = pl.col("unit").cast(pl.Int64), pl.col("time_s") // (block_days * DAY_S)
    sums = hits.group_by(cluster=cluster, block=block).agg(
        observed=pl.col("is_failed").sum(), expected=pl.col("chance").sum(), members=pl.len()
    )
    sums = sums.sort("cluster", "block")
    observed, expected, members = float_columns(sums, "observed", "expected", "members")
    numbers = (sums[name].to_numpy() for name in ("cluster", "block"))
    clusters = Clusters(np.zeros(members.size, np.int64), members, 1, *numbers)
    effective = float(clusters.effective[0])
    o, e = observed.sum(), expected.sum()
    if e <= 0 or effective < FEWEST:
        return RatioTest(o / e if e > 0 else None, None, None, None, effective)
    dispersion = 1.0
    if o:
        spread = clusters.spread(observed / o - expected / e, expected / e)
        student = stdtrit(spread.degrees, (1 + CONFIDENCE) / 2)[0] / _Z
        dispersion = max(1.0, float(np.nan_to_num(o * (spread.se[0] * student) ** 2)))
    x, k, odds = o / dispersion, control_failures / dispersion, control_failures / e
    tail = (1 - CONFIDENCE) / 2
    low = betaincinv(x, k + 1, tail) if o else 0.0
    high = betaincinv(x + 1, k, 1 - tail)
    p_value = float(betainc(x, k + 1, 1 / (1 + odds))) if o else 1.0
    return RatioTest(o / e, float(low / (1 - low) * odds), float(high / (1 - high) * odds), p_value, effective)


def most_by_chance(expected: float) -> int:
    """Return the smallest number that a Poisson count with this mean exceeds with at most 5 % probability."""
    most = 0
    while pdtr(most, expected) < CONFIDENCE:
        most += 1
    return most
