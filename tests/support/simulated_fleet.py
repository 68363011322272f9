"""A simulated fleet whose nodes join one by one: its outages and its table of units."""

from pathlib import Path

import numpy as np

DAY = 86_400
FIRST_S = 1_704_067_200
NODES, DAYS, UP_DAYS, REPAIR_DAYS = 100, 400, 20.0, 0.25
# Exponential times, so this is the mean from start to start.
MTBF_S = (UP_DAYS + REPAIR_DAYS) * DAY


def simulate_fleet(seed: int) -> tuple[list[str], list[str]]:
    """Return the lines of outages and of units; nodes join at equal steps, so half of NODES x DAYS is watched."""
    rng = np.random.default_rng(seed)
    outages, units = ["unit,start,end,level"], ["unit,from,until,group,kind,gpus"]
    for node in range(NODES):
        at_days = node / NODES * DAYS
        units.append(f"n{node},{FIRST_S + int(at_days * DAY)},,g{node % 2},k{node % 3},{4 + 4 * (node % 2)}")
        while (at_days := at_days + rng.exponential(UP_DAYS)) < DAYS:
            start, at_days = at_days, at_days + rng.exponential(REPAIR_DAYS)
            times = (FIRST_S + int(day * DAY) for day in (start, at_days))
            outages.append(f"n{node},{','.join(map(str, times))},{rng.choice(['gpu', 'nic'])}")
    return outages, units


def write_fleet(folder: Path, outages: list[str], units: list[str]) -> None:
    folder.mkdir(parents=True)
    (folder / "outages.csv").write_text("\n".join(outages) + "\n")
    (folder / "units.csv").write_text("\n".join(units) + "\n")
