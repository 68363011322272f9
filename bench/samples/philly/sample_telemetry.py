"""Telemetry of the Philly sample: what the GPUs that its attempts held, and their machines, did minute by minute.

Readings of GPUs follow the published means by GPUs and status (Table 3 of Jeon et al., ATC'19). Each attempt has a
level of its own; the levels of the attempts of one size and status are laid side by side by how many readings they
have, so that all of them together come near the published mean however few they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from samples.draws import Bools, Floats, Ints, QuantileFunction, Random
from samples.philly.sample_cluster import Attempt, fewest_servers

MINUTE_S = 60
# Six hours each, from (UTC): 2017-10-03 00:00 PDT, 10-10 09:00, 10-17 15:00, 10-24 09:00, 10-31 15:00, 11-04 23:00.
WINDOW_MINUTES = 360
WINDOWS_S = (1_507_014_000, 1_507_651_200, 1_508_277_600, 1_508_860_800, 1_509_487_200, 1_509_861_600)
CLOCKS_BACK_S = 1_509_872_400
HOUR_S = 3_600

# Mean utilisation in %, by GPUs of the job and status (Pass, Killed, Failed); other sizes are taken for the nearest.
UTILISATION = {
    1: (53.51, 37.02, 62.82),
    4: (51.13, 34.39, 50.95),
    8: (51.09, 60.63, 64.34),
    16: (44.88, 36.98, 39.02),
}
# On more servers than need be, after the means of 16 GPUs on 2, 4 and 8 servers (Table 5).
BY_SERVERS = {1: 1.0, 2: 40.94 / 43.66, 4: 28.56 / 43.66}
ZERO_SHARE = 0.25  # of the readings
OWN_WIDTH = 0.3  # part of the distribution that one attempt's readings come from, at least
MEM_TOTAL_KB = 528_272_672
GPU_SLOTS = 8


def level_table(mean: float) -> QuantileFunction:
    """Quantiles of the readings: a quarter of them 0, the rest up to 100, with this mean."""
    above = mean / (1 - ZERO_SHARE)
    power = 100 / above - 1  # the mean of 100 u^power is 100 / (1 + power)
    knots = {0.0: 0.0, ZERO_SHARE: 0.0}
    knots |= {ZERO_SHARE + (1 - ZERO_SHARE) * step / 64: 100 * round((step / 64) ** power, 9) for step in range(1, 65)}
    return QuantileFunction(knots, log=False)


def nearest_size(gpus: int) -> int:
    return min(UTILISATION, key=lambda size: (abs(size - gpus), size))


def held_by(machines: Sequence[int], attempts: Sequence[Attempt], window_s: int) -> Ints:
    """Attempt by minute, machine and GPU in a window, -1 where none held it: by whoever came last in a minute."""
    owner = np.full((WINDOW_MINUTES, len(machines), GPU_SLOTS), -1, dtype=np.int64)
    end_s = window_s + WINDOW_MINUTES * MINUTE_S
    for number, attempt in enumerate(attempts):
        if attempt.end_s <= window_s or attempt.start_s >= end_s:
            continue
        first = max(0, (attempt.start_s - window_s) // MINUTE_S)
        last = min(WINDOW_MINUTES, -((window_s - attempt.end_s) // MINUTE_S))
        for machine, gpus in attempt.held.items():
            owner[first:last, machine, gpus] = number
    return owner


def utilisation(
    rng: Random, owner: Ints, attempts: Sequence[Attempt], gpus: Ints, status: Ints, is_told: Bools
) -> Floats:
    """Readings in % of the GPUs that attempts hold, 0 elsewhere; `owner` as of `held_by`, of all windows.

    Of each attempt its GPUs, the status of its job, and whether the log says when it started and ended.
    """
    values = np.zeros(owner.shape)
    readings = np.bincount(owner[owner >= 0], minlength=len(attempts))
    spread_out = np.array([_servers_factor(attempt) for attempt in attempts] + [0.0])
    # All GPUs of an attempt do much the same in a minute.
    minute = rng.random(owner.shape[:2])[:, :, None] + 0.06 * (rng.random(owner.shape) - 0.5)
    cells = [
        (mean, (gpus == size) & (status == code) & (is_told == told) & (spread_out[:-1] == factor) & (readings > 0))
        for size in sorted(set(gpus.tolist()))
        for code, mean in enumerate(UTILISATION[nearest_size(size)])
        for told in (True, False)
        for factor in BY_SERVERS.values()
    ]
    for mean, is_in in cells:
        group = rng.permutation(np.flatnonzero(is_in))
        if not len(group):
            continue
        part = readings[group] / readings[group].sum()
        middle, width = np.zeros(len(attempts)), np.zeros(len(attempts))
        middle[group] = np.cumsum(part) - part / 2
        width[group] = np.maximum(part, OWN_WIDTH)
        here = (owner >= 0) & is_in[owner]
        at = middle[owner[here]] + (minute[here] - 0.5) * width[owner[here]]
        at = np.where(at < 0, -at, np.where(at > 1, 2 - at, at))  # thrown back at the ends
        values[here] = level_table(mean)(at)
    return values * spread_out[owner]


def _servers_factor(attempt: Attempt) -> float:
    """What is left of the utilisation when the GPUs are spread over more servers than need be."""
    gpus = sum(len(held) for held in attempt.held.values())
    times = len(attempt.held) / fewest_servers(gpus)
    return next(factor for least, factor in reversed(BY_SERVERS.items()) if times >= least)


def frames(
    rng: Random, machines: Sequence[int], attempts: Sequence[Attempt], gpus: Ints, status: Ints, is_told: Bools
) -> dict[str, pl.DataFrame]:
    """The three tables; that of the GPUs with a last column of nothing, without a name; see `utilisation`."""
    owner = np.concatenate([held_by(machines, attempts, window_s) for window_s in WINDOWS_S])
    values = np.rint(10 * utilisation(rng, owner, attempts, gpus, status, is_told)) / 10
    minutes = np.concatenate([window_s + MINUTE_S * np.arange(WINDOW_MINUTES) for window_s in WINDOWS_S])
    rows = len(minutes) * len(machines)
    seconds = np.repeat(minutes, len(machines))
    machine = np.tile(np.arange(len(machines)), len(minutes))
    count = np.array(machines)[machine]
    held = (owner >= 0).sum(axis=2).reshape(rows)
    # The last machine but one was out of service for the first two hours of the third window, unless it had work.
    minute = np.repeat(np.arange(len(minutes)), len(machines))
    is_out = (machine == len(machines) - 2) & (minute // 120 == 2 * WINDOW_MINUTES // 120) & (held == 0)

    local = seconds - np.where(seconds < CLOCKS_BACK_S, 7, 8) * HOUR_S
    zone = pl.Series(["PDT", "PST"]).gather((seconds >= CLOCKS_BACK_S).astype(np.int64))
    time = pl.select(
        pl.concat_str(
            pl.from_epoch(pl.Series(local), time_unit="s").dt.strftime("%Y-%m-%d %H:%M:%S"), zone, separator=" "
        )
    ).to_series()
    names = pl.Series([f"m{number}" for number in range(len(machines))]).gather(machine)
    told = values.reshape(rows, GPU_SLOTS)
    nothing = pl.Series([None] * rows, dtype=pl.String)
    out = pl.Series(is_out)

    def known(values: np.ndarray) -> pl.Series:
        """As text: NA where the machine was out of service."""
        text = pl.Series(values).cast(pl.String)
        return pl.select(pl.when(out).then(pl.lit("NA")).otherwise(text)).to_series()

    gpu_columns = {
        f"gpu{index}_util": pl.select(pl.when(pl.Series(count > index)).then(known(told[:, index]))).to_series()
        for index in range(GPU_SLOTS)
    }
    busy = held / count
    cpu = np.rint(100 * np.minimum(100, 1 + 9 * rng.random(rows) + busy * (8 + 44 * rng.random(rows)))) / 100
    # The page cache fills nearly all memory; a total of 0 was not measured.
    free_share = 0.02 + 0.12 * rng.random(rows) + 0.5 * (1 - busy) * rng.random(rows) * rng.random(rows)
    unmeasured = np.arange(rows) % 4_999 == 17
    total = np.where(unmeasured, 0, MEM_TOTAL_KB)
    free = np.where(unmeasured, 0, np.rint(free_share * MEM_TOTAL_KB).astype(np.int64))
    return {
        "gpu_util": pl.DataFrame({"time": time, "machineId": names, **gpu_columns, "": nothing}),
        "cpu_util": pl.DataFrame({"time": time, "machine_id": names, "cpu_util": known(cpu)}),
        "mem_util": pl.DataFrame(
            {"time": time, "machine_id": names, "mem_total": known(total), "mem_free": known(free)}
        ),
    }
