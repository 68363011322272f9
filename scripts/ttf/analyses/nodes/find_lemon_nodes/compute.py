"""Nodes with excess failures, and the fleet's mean time to failure without them: see `ttf.stats.nodes.node_tests`."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from ttf.analyses.nodes.find_lemon_nodes import LEMON_EFFECT, LEMON_NODES, LEMON_SUMMARY
from ttf.engine.storage.partitions import Partitions, choose_partitions
from ttf.records.inputs import Inputs
from ttf.records.jobs import conform
from ttf.stats.clustered import Clusters
from ttf.stats.durations.mttf import garwood_interval
from ttf.stats.nodes.excess_failures import CONFIDENCE, median_detectable_ratio
from ttf.stats.nodes.node_runs import DURATIONS_READ, last_window, read_basis, split_window
from ttf.stats.nodes.node_tests import PARTITION_ROWS, compare_components, compare_nodes, split_in_halves
from ttf.stats.shares import divide

WHOLE, FIRST, SECOND = "whole window", "first half", "second half"


def compute(inputs: Inputs) -> dict[str, pl.DataFrame]:
    settings = inputs.settings
    rate = settings.false_discovery
    if "placements" in inputs:
        durations, placements = inputs.scan("durations_infra", DURATIONS_READ), inputs.scan("placements")
        days = settings.window_days if read_basis(durations) == "proxy" else settings.infra_window_days
        window = last_window(placements, days)
        with inputs.scratch() as folder:
            partitions = choose_partitions([placements], PARTITION_ROWS, folder)
            tables = lemon_nodes(placements, durations, [window, *split_window(window)], rate, partitions)
    else:
        units = inputs.read("durations_infra", ("unit_id", "event", "duration_s", settings.fleet_by))
        tables = [
            _to_table(compare_components(rows, settings.fleet_by, rate)) for rows in (units, *split_in_halves(units))
        ]
    return {
        "lemon_nodes": tables[0],
        "lemon_summary": summarise_nodes(tables[0]),
        "lemon_effect": lemon_effect(*tables),
    }


def lemon_nodes(
    placements: pl.LazyFrame,
    durations: pl.LazyFrame,
    windows: Sequence[tuple[int, int]],
    false_discovery: float,
    partitions: Partitions,
) -> list[pl.DataFrame]:
    """Return LEMON_NODES of each window: see `ttf.stats.nodes.node_tests.compare_nodes`."""
    return list(map(_to_table, compare_nodes(placements, durations, windows, false_discovery, partitions)))


def _to_table(nodes: pl.DataFrame) -> pl.DataFrame:
    return conform(nodes, LEMON_NODES.schema).select(list(LEMON_NODES.columns))


def summarise_nodes(nodes: pl.DataFrame) -> pl.DataFrame:
    """Count nodes, tests, significant nodes and failures in the one row of LEMON_SUMMARY. nodes: LEMON_NODES."""
    tested = nodes.drop_nulls("p_value")
    lemons, failures = tested.filter("lemon"), int(nodes["failures"].sum())
    row: dict[str, object] = {"nodes": nodes.height, "tested": tested.height, "lemons": lemons.height}
    row |= {"counted": int(tested["counted"].sum()), "detectable_ratio": median_detectable_ratio(tested)}
    row |= {"failures": failures, "window_failures": 0, "unattributed": 0}
    for first in nodes.head(1).iter_rows(named=True):
        row |= {name: first[name] for name in ("basis", "window_failures", "attributed_share")}
        row["unattributed"] = first["window_failures"] - first["attributed_failures"]
        if first["window_to_s"] is not None:
            row["window_s"] = first["window_to_s"] - first["window_from_s"]
    if lemons.height:
        row["share_of_failures"] = int(lemons["failures"].sum()) / max(failures, 1)
        row["share_of_nodes"] = lemons.height / nodes.height
    return LEMON_SUMMARY.frame([row])


def lemon_effect(whole: pl.DataFrame, first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """Compare the fleet's mean time to failure with and without nodes with excess failures (LEMON_EFFECT, two rows).

    whole, first, second: LEMON_NODES of the whole window and of its halves. Picked and measured in the same window,
    these nodes look worse than they are, since bad luck is part of why they were picked. Picked in the first half and
    measured in the second, they show what removing them would have gained. mttf_s: node time per own failure
    (`failures`), with Garwood's 95% CI and one clustered by node. mttf_ratio: without over with. Blank, with a reason,
    without such a node or without a failure.
    """
    rows = []
    for picked_on, measured_on, selection, nodes in ((WHOLE, WHOLE, whole, whole), (FIRST, SECOND, first, second)):
        lemons = selection.filter(pl.col("lemon").fill_null(False))["node"]
        other_nodes = nodes.filter(~pl.col("node").is_in(lemons.implode()))
        row: dict = {"picked_on": picked_on, "measured_on": measured_on, "nodes": nodes.height, "lemons": lemons.len()}
        row |= _mttf_cells(nodes, "")
        if lemons.is_empty():
            row["reason"] = f"no node is significant in the {picked_on}"
        elif other_nodes.is_empty():
            row["reason"] = "no node is left"
        else:
            row |= _mttf_cells(other_nodes, "_without")
            if row["mttf_s"] and row.get("mttf_without_s"):
                row["mttf_ratio"] = row["mttf_without_s"] / row["mttf_s"]
            else:
                row["reason"] = "no failure is left to measure a mean by"
        rows.append(row)
    return LEMON_EFFECT.frame(rows)


def _mttf_cells(nodes: pl.DataFrame, suffix: str) -> dict:
    """Return failures, exposure and MTTF of nodes, with Garwood and clustered intervals; each name has the suffix."""
    failures, exposure_s = int(nodes["failures"].sum()), int(nodes["exposure_s"].sum())
    row: dict[str, float | None] = {f"failures{suffix}": failures, f"exposure{suffix}_s": exposure_s}
    row[f"mttf{suffix}_s"] = None
    if exposure_s == 0:
        return row
    low, high = garwood_interval(exposure_s, failures, CONFIDENCE)
    row |= {f"mttf{suffix}_s": divide(exposure_s, failures), f"ci_low{suffix}_s": low, f"ci_high{suffix}_s": high}
    return row | _clustered_mttf_limits(nodes.filter(pl.col("exposure_s") > 0), suffix)


def _clustered_mttf_limits(nodes: pl.DataFrame, suffix: str) -> dict:
    failures, exposure_s = (nodes[name].to_numpy().astype(float) for name in ("failures", "exposure_s"))
    clusters = Clusters.in_one_stratum(exposure_s)
    bounds = clusters.ratio(exposure_s, failures, CONFIDENCE, has_mean_leverage=True)
    names = (f"ci_{bound}_clustered{suffix}_s" for bound in ("low", "high"))
    limits = {name: float(limit[0]) for name, limit in zip(names, bounds[:2], strict=True)}
    finite_limits = {name: limit for name, limit in limits.items() if np.isfinite(limit)}
    return finite_limits | ({} if suffix else {"cluster_by": "node", "clusters": float(clusters.effective[0])})
