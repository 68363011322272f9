"""Runs of every size that the fleet has nodes for, with spares."""

from collections.abc import Iterator

import polars as pl

from ttf.analyses.outages.plan_capacity import CAPACITY, SPARES_NEEDED, WEEK_HOURS
from ttf.analyses.outages.plan_capacity.ways import WAYS, Planner, fewest
from ttf.analyses.shared.outages.outage_simulation import why_no_times
from ttf.analyses.shared.outages.outage_strata import READ_OF_EXPOSURE, READ_OF_OUTAGES
from ttf.analyses.shared.outages.units_down import course_of, spans_of
from ttf.records.inputs import Inputs
from ttf.stats.large_runs.plans import rate_row

HOURS = (24, 168, 720)

COMPONENTS = "the units are parts of nodes, and runs are planned on whole ones"
TOO_SMALL = "no size of a run that is asked about fits the fleet"


def compute(given: Inputs) -> dict[str, pl.DataFrame]:
    asked, watched = given.settings, given.read("exposure", (*READ_OF_EXPOSURE, "node"))
    stratum, exposure = _of_a_run(watched.filter(pl.col("until_s") > pl.col("from_s")))
    spans = spans_of(given.read("outages", READ_OF_OUTAGES), exposure)
    if why := _why_not(spans, exposure):
        return _no_runs(why)
    node_gpus = rate_row(given["node_failure_rate"])["node_gpus"] if "node_failure_rate" in given else None
    if not (sizes := _sizes(asked.sizes, node_gpus, exposure["unit_id"].n_unique())):
        return _no_runs(TOO_SMALL)
    planner = Planner(spans, exposure, asked.simulations, asked.seed)
    runs = [
        {"stratum": stratum, "gpus": gpus, "nodes": nodes, "hours": hours}
        for nodes, gpus in sizes.items()
        for hours in HOURS
    ]
    fares = [row | {"largest": False} for run in runs for row in capacity(planner, run, asked.spares)]
    spares = [row | {"largest": False} for run in runs for row in needed(planner, run, asked.spare_targets)]
    return mark_largest(CAPACITY.frame(fares), SPARES_NEEDED.frame(spares))


def _no_runs(why: str) -> dict[str, pl.DataFrame]:
    return {table.name: table.frame([{"reason": why, "largest": False}]) for table in (CAPACITY, SPARES_NEEDED)}


def mark_largest(fares: pl.DataFrame, spares: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Both tables, with the rows marked of a week of the largest run that every way can be asked about."""
    is_week = (pl.col("hours") == WEEK_HOURS) & (pl.col("target") == pl.col("target").max())
    weeks = spares.filter(is_week).drop_nulls("spares")
    by_size = weeks.group_by("nodes").agg(pl.col("way").n_unique())
    nodes = by_size.filter(pl.col("way") == weeks["way"].n_unique())["nodes"].max()
    is_largest = (pl.col("hours") == WEEK_HOURS) & (pl.col("nodes") == (nodes or 0))
    is_fewest = pl.col("spares") == pl.col("spares").min()
    is_needed = is_week & pl.col("spares").is_not_null()
    return {
        "capacity": fares.with_columns(largest=(is_largest & is_fewest).fill_null(False)),
        "spares_needed": spares.with_columns(largest=(is_largest & is_needed).fill_null(False)),
    }


def _of_a_run(exposure: pl.DataFrame) -> tuple[str, pl.DataFrame]:
    """(name, exposure) of the units that a run may be on: all, or of several groups that with the most time."""
    groups = exposure.drop_nulls("group").group_by("group").agg(time=(pl.col("until_s") - pl.col("from_s")).sum())
    if groups.height < 2:
        return "all", exposure
    largest = groups.sort("time", "group", descending=[True, False])["group"][0]
    return largest, exposure.filter(group=largest)


def _why_not(spans: pl.DataFrame, exposure: pl.DataFrame) -> str | None:
    if exposure.drop_nulls("node").select(pl.struct("node").n_unique() < pl.col("unit_id").n_unique()).item():
        return COMPONENTS
    return why_no_times(spans["inside"].sum(), course_of(spans, exposure).down_share)


def _sizes(sizes: list[int], node_gpus: int | None, units: int) -> dict[int, int | None]:
    """Nodes -> GPUs of the runs asked for that the fleet has nodes for; of two with as many nodes the larger."""
    if node_gpus is None:
        return {size: None for size in sorted(sizes) if size <= units}
    return {nodes: size for size in sorted(sizes) if (nodes := -(-size // node_gpus)) <= units}


def capacity(planner: Planner, run: dict, spares: list[int]) -> Iterator[dict]:
    """The rows of CAPACITY of a run: each number of spares by each way."""
    nodes, time_s = run["nodes"], 3600 * run["hours"]
    for number in sorted(spares):
        for way in WAYS:
            row = run | {"spares": number, "way": way}
            if why := planner.why_not(way, nodes + number, time_s):
                yield row | {"reason": why}
                continue
            alone = planner.no_interruption(way, nodes, time_s)
            if alone[0] is None:
                row["reason"] = f"too seldom were {nodes:,} nodes up at once"
            fares = {"p_no_interruption": alone} | planner.fares(way, nodes, number, time_s)
            for name, (value, error) in fares.items():
                row |= {name: value, f"{name}_se": error}
            yield row | {"simulations": None if way == "exponential" else planner.runs(way, nodes + number)}


def needed(planner: Planner, run: dict, targets: list[float]) -> Iterator[dict]:
    """The rows of SPARES_NEEDED of a run: each probability by each way."""
    nodes, time_s = run["nodes"], 3600 * run["hours"]
    for target in sorted(targets):
        for way in WAYS:
            row = run | {"target": target, "way": way}
            # As many spares as nodes, and in weeks of the trace no more than it has.
            most = nodes if way != "weeks" else min(nodes, planner.units - nodes)
            if why := planner.why_not(way, nodes, time_s):
                yield row | {"reason": why}
                continue

            def reached(spares: int, way: str = way) -> float:
                if planner.why_not(way, nodes + spares, time_s):
                    return -1.0
                return planner.fares(way, nodes, spares, time_s)["p_never_short"][0]

            if (found := fewest(target, most, reached)) is None:
                yield row | {"reason": f"not reached with {most:,} spares"}
                continue
            value, error = planner.fares(way, nodes, found, time_s)["p_never_short"]
            yield row | {"spares": found, "p_never_short": value, "p_never_short_se": error}
