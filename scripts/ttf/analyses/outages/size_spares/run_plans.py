"""Plans with spares for runs of every size that the fleet has nodes for."""

from collections.abc import Iterator, Sequence

import polars as pl

from ttf.analyses.outages.size_spares import CAPACITY, SPARES_NEEDED, WEEK_HOURS
from ttf.analyses.outages.size_spares.ways import METHODS, Planner, fewest_spares
from ttf.records.inputs import Inputs
from ttf.stats.large_runs.plans import rate_row
from ttf.stats.outages.outage_simulation import NOT_WATCHED, no_times_reason
from ttf.stats.outages.outage_strata import ALL, Part
from ttf.stats.outages.units_down import Course

HOURS = (24, 168, 720)

COMPONENTS = "the units are parts of nodes, and runs are planned on whole ones"
TOO_SMALL = "no size of a run that is asked about fits the fleet"


def plan_runs(parts: Sequence[tuple[Part, Course | None]], inputs: Inputs) -> dict[str, pl.DataFrame]:
    """Return CAPACITY and SPARES_NEEDED of runs on all units, or on the group with the most observed time.

    parts: all units first, then groups; None if no unit was watched.
    """
    options, (everything, *groups) = inputs.settings, [pair for pair in parts if pair[0].names["outages"] == ALL]
    part, course = max(groups, key=_watched_unit_s, default=everything)
    if reason := _explain_no_plan(part, course):
        return _blank_tables(reason)
    node_gpus = rate_row(inputs["node_failure_rate"])["node_gpus"] if "node_failure_rate" in inputs else None
    if not (sizes := _gpus_by_nodes(options.sizes, node_gpus, part.exposure["unit_id"].n_unique())):
        return _blank_tables(TOO_SMALL)
    planner = Planner(part.spans, part.exposure, options.simulations, options.seed)
    runs = [
        {"stratum": part.names["stratum"], "gpus": gpus, "nodes": nodes, "hours": hours}
        for nodes, gpus in sizes.items()
        for hours in HOURS
    ]
    capacity = (row for run in runs for row in plan_capacity(planner, run, options.spares))
    needed = (row for run in runs for row in plan_spares(planner, run, options.spare_targets))
    return mark_largest(CAPACITY.frame(capacity), SPARES_NEEDED.frame(needed))


def _blank_tables(reason: str) -> dict[str, pl.DataFrame]:
    return {table.name: table.frame([{"reason": reason, "largest": False}]) for table in (CAPACITY, SPARES_NEEDED)}


def mark_largest(capacity: pl.DataFrame, spares: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Add to both tables `largest`: whether a row is for a week of the largest run that every method covers."""
    is_week = (pl.col("hours") == WEEK_HOURS) & (pl.col("target") == pl.col("target").max())
    weeks = spares.filter(is_week).drop_nulls("spares")
    methods_by_nodes = weeks.group_by("nodes").agg(pl.col("way").n_unique())
    nodes = methods_by_nodes.filter(way=weeks["way"].n_unique())["nodes"].max()
    is_largest = (pl.col("hours") == WEEK_HOURS) & (pl.col("nodes") == (nodes or 0))
    is_fewest = pl.col("spares") == pl.col("spares").min()
    is_needed = is_week & pl.col("spares").is_not_null()
    return {
        "capacity": capacity.with_columns(largest=(is_largest & is_fewest).fill_null(False)),
        "spares_needed": spares.with_columns(largest=(is_largest & is_needed).fill_null(False)),
    }


def _watched_unit_s(pair: tuple[Part, Course | None]) -> int:
    return int((pair[0].exposure["until_s"] - pair[0].exposure["from_s"]).sum())


def _explain_no_plan(part: Part, course: Course | None) -> str | None:
    if course is None:
        return NOT_WATCHED
    if part.exposure.drop_nulls("node").select(pl.struct("node").n_unique() < pl.col("unit_id").n_unique()).item():
        return COMPONENTS
    return no_times_reason(part.began, course.down_share)


def _gpus_by_nodes(sizes: list[int], node_gpus: int | None, n_units: int) -> dict[int, int | None]:
    """Return the requested runs that fit the fleet: nodes -> GPUs; of equal nodes the larger size."""
    if node_gpus is None:
        return {size: None for size in sorted(sizes) if size <= n_units}
    return {nodes: size for size in sorted(sizes) if (nodes := -(-size // node_gpus)) <= n_units}


def plan_capacity(planner: Planner, run: dict, spares: list[int]) -> Iterator[dict]:
    """Yield the rows of CAPACITY of a run: each number of spares by each method."""
    nodes, time_s = run["nodes"], 3600 * run["hours"]
    for n_spares in sorted(spares):
        for method in METHODS:
            row = run | {"spares": n_spares, "way": method}
            if reason := planner.limitation(method, nodes + n_spares, time_s):
                yield row | {"reason": reason}
                continue
            no_interruption = planner.p_no_interruption(method, nodes, time_s)
            if no_interruption[0] is None:
                row["reason"] = f"too seldom were {nodes:,} nodes up at once"
            estimates = {"p_no_interruption": no_interruption} | planner.estimate(method, nodes, n_spares, time_s)
            for name, (value, se) in estimates.items():
                row |= {name: value} if se is None else {name: value, f"{name}_se": se}
            yield row | {"simulations": None if method == "exponential" else planner.runs(method, nodes)}


def plan_spares(planner: Planner, run: dict, targets: list[float]) -> Iterator[dict]:
    """Yield the rows of SPARES_NEEDED of a run: each probability by each method."""
    nodes, time_s = run["nodes"], 3600 * run["hours"]
    for target in sorted(targets):
        for method in METHODS:
            row = run | {"target": target, "way": method}
            # At most as many spares as nodes; for weeks of the trace, no more than the fleet has.
            most_spares = nodes if method != "weeks" else min(nodes, planner.units - nodes)
            if reason := planner.limitation(method, nodes, time_s):
                yield row | {"reason": reason}
                continue

            def p_never_short(spares: int, method: str = method) -> float:
                if planner.limitation(method, nodes + spares, time_s):
                    return -1.0
                return planner.p_never_short(method, nodes, spares, time_s)[0]

            if (n_spares := fewest_spares(target, most_spares, p_never_short)) is None:
                yield row | {"reason": f"not reached with {most_spares:,} spares"}
                continue
            value, se = planner.p_never_short(method, nodes, n_spares, time_s)
            yield row | {"spares": n_spares, "p_never_short": value, "p_never_short_se": se}
