"""Draw the telemetry of the Philly sample: utilisation of GPUs and machines minute by minute.

GPU readings follow the published means by GPUs and status (Table 3 of Jeon et al., ATC'19). Each attempt has its own
level. The levels of attempts of one size and status divide the distribution in proportion to their numbers of readings,
so that even a few attempts together come near the published mean.
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

# Mean utilisation in %, by GPUs of the job and status (Pass, Killed, Failed); other sizes use the nearest.
UTILISATION = {
    1: (53.51, 37.02, 62.82),
    4: (51.13, 34.39, 50.95),
    8: (51.09, 60.63, 64.34),
    16: (44.88, 36.98, 39.02),
}
# Factor by multiple of the fewest servers, from the means of 16 GPUs on 2, 4 and 8 servers (Table 5).
BY_SERVERS = {1: 1.0, 2: 40.94 / 43.66, 4: 28.56 / 43.66}
ZERO_SHARE = 0.25  # of the readings
OWN_WIDTH = 0.3  # smallest part of the distribution from which one attempt's readings come
MEM_TOTAL_KB = 528_272_672
GPU_SLOTS = 8


def level_table(mean: float) -> QuantileFunction:
    """Return the quantiles of the readings: a quarter are 0, the rest up to 100, with this mean."""
    nonzero_mean = mean / (1 - ZERO_SHARE)
    power = 100 / nonzero_mean - 1  # the mean of 100 u^power is 100 / (1 + power)
    knots = {0.0: 0.0, ZERO_SHARE: 0.0}
    knots |= {ZERO_SHARE + (1 - ZERO_SHARE) * step / 64: 100 * round((step / 64) ** power, 9) for step in range(1, 65)}
    return QuantileFunction(knots, log=False)


def nearest_size(gpus: int) -> int:
    return min(UTILISATION, key=lambda size: (abs(size - gpus), size))


def gpu_owners(machines: Sequence[int], attempts: Sequence[Attempt], window_s: int) -> Ints:
    """Return the attempt by minute, machine and GPU in a window (-1: none); the last one in a minute counts."""
    owner = np.full((WINDOW_MINUTES, len(machines), GPU_SLOTS), -1, dtype=np.int64)
    end_s = window_s + WINDOW_MINUTES * MINUTE_S
    for number, attempt in enumerate(attempts):
        if attempt.end_s <= window_s or attempt.start_s >= end_s:
            continue
        first = max(0, (attempt.start_s - window_s) // MINUTE_S)
        last = min(WINDOW_MINUTES, -((window_s - attempt.end_s) // MINUTE_S))
        for machine, gpus in attempt.gpus_by_machine.items():
            owner[first:last, machine, gpus] = number
    return owner


def utilisation(
    rng: Random, owner: Ints, attempts: Sequence[Attempt], gpus: Ints, status: Ints, is_logged: Bools
) -> Floats:
    """Draw readings in % of the GPUs that attempts hold, else 0.

    owner: `gpu_owners` of all windows. By attempt: its GPUs, its job's status, and whether the log has both times.
    """
    values = np.zeros(owner.shape)
    readings = np.bincount(owner[owner >= 0], minlength=len(attempts))
    spread = np.array([_server_factor(attempt) for attempt in attempts] + [0.0])
    # All GPUs of an attempt have similar utilisation in a minute.
    minute = rng.random(owner.shape[:2])[:, :, None] + 0.06 * (rng.random(owner.shape) - 0.5)
    cells = [
        (mean, (gpus == size) & (status == code) & (is_logged == logged) & (spread[:-1] == factor) & (readings > 0))
        for size in sorted(set(gpus.tolist()))
        for code, mean in enumerate(UTILISATION[nearest_size(size)])
        for logged in (True, False)
        for factor in BY_SERVERS.values()
    ]
    for mean, is_cell in cells:
        group = rng.permutation(np.flatnonzero(is_cell))
        if not len(group):
            continue
        part = readings[group] / readings[group].sum()
        middle, width = np.zeros(len(attempts)), np.zeros(len(attempts))
        middle[group] = np.cumsum(part) - part / 2
        width[group] = np.maximum(part, OWN_WIDTH)
        is_held = (owner >= 0) & is_cell[owner]
        quantile = middle[owner[is_held]] + (minute[is_held] - 0.5) * width[owner[is_held]]
        # Reflected at 0 and 1.
        quantile = np.where(quantile < 0, -quantile, np.where(quantile > 1, 2 - quantile, quantile))
        values[is_held] = level_table(mean)(quantile)
    return values * spread[owner]


def _server_factor(attempt: Attempt) -> float:
    """Return the factor of utilisation for an attempt on more than the fewest servers."""
    gpus = sum(len(indices) for indices in attempt.gpus_by_machine.values())
    multiple = len(attempt.gpus_by_machine) / fewest_servers(gpus)
    return next(factor for fewest, factor in reversed(BY_SERVERS.items()) if multiple >= fewest)


def frames(
    rng: Random, machines: Sequence[int], attempts: Sequence[Attempt], gpus: Ints, status: Ints, is_logged: Bools
) -> dict[str, pl.DataFrame]:
    """Return the three tables; the GPU table ends in a blank column without a name; see `utilisation`."""
    owner = np.concatenate([gpu_owners(machines, attempts, window_s) for window_s in WINDOWS_S])
    values = np.rint(10 * utilisation(rng, owner, attempts, gpus, status, is_logged)) / 10
    minutes = np.concatenate([window_s + MINUTE_S * np.arange(WINDOW_MINUTES) for window_s in WINDOWS_S])
    rows = len(minutes) * len(machines)
    seconds = np.repeat(minutes, len(machines))
    machine = np.tile(np.arange(len(machines)), len(minutes))
    count = np.array(machines)[machine]
    held_gpus = (owner >= 0).sum(axis=2).reshape(rows)
    # The second to last machine was out of service in the first two hours of the third window, unless it had work.
    minute = np.repeat(np.arange(len(minutes)), len(machines))
    is_out = (machine == len(machines) - 2) & (minute // 120 == 2 * WINDOW_MINUTES // 120) & (held_gpus == 0)

    local = seconds - np.where(seconds < CLOCKS_BACK_S, 7, 8) * HOUR_S
    zone = pl.Series(["PDT", "PST"]).gather((seconds >= CLOCKS_BACK_S).astype(np.int64))
    time = pl.select(
        pl.concat_str(
            pl.from_epoch(pl.Series(local), time_unit="s").dt.strftime("%Y-%m-%d %H:%M:%S"), zone, separator=" "
        )
    ).to_series()
    names = pl.Series([f"m{number}" for number in range(len(machines))]).gather(machine)
    readings = values.reshape(rows, GPU_SLOTS)
    blank_column = pl.Series([None] * rows, dtype=pl.String)
    out = pl.Series(is_out)

    def as_text(values: np.ndarray) -> pl.Series:
        """Format as text, with NA if the machine was out of service."""
        text = pl.Series(values).cast(pl.String)
        return pl.select(pl.when(out).then(pl.lit("NA")).otherwise(text)).to_series()

    gpu_columns = {
        f"gpu{index}_util": pl.select(pl.when(pl.Series(count > index)).then(as_text(readings[:, index]))).to_series()
        for index in range(GPU_SLOTS)
    }
    busy = held_gpus / count
    cpu = np.rint(100 * np.minimum(100, 1 + 9 * rng.random(rows) + busy * (8 + 44 * rng.random(rows)))) / 100
    # The page cache fills nearly all memory; a total of 0 means not measured.
    free_share = 0.02 + 0.12 * rng.random(rows) + 0.5 * (1 - busy) * rng.random(rows) * rng.random(rows)
    is_unmeasured = np.arange(rows) % 4_999 == 17
    total = np.where(is_unmeasured, 0, MEM_TOTAL_KB)
    free = np.where(is_unmeasured, 0, np.rint(free_share * MEM_TOTAL_KB).astype(np.int64))
    return {
        "gpu_util": pl.DataFrame({"time": time, "machineId": names, **gpu_columns, "": blank_column}),
        "cpu_util": pl.DataFrame({"time": time, "machine_id": names, "cpu_util": as_text(cpu)}),
        "mem_util": pl.DataFrame(
            {"time": time, "machine_id": names, "mem_total": as_text(total), "mem_free": as_text(free)}
        ),
    }
