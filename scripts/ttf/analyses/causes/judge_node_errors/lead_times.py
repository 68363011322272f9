"""What share of outages errors announced, how long before, and how many alarms were false."""

import numpy as np
import polars as pl

from ttf.analyses.causes.judge_node_errors import ERROR_LEAD_TIMES
from ttf.analyses.causes.judge_node_errors.log_records import LogRecords
from ttf.raw.node_logs.merging import number_close_rows
from ttf.records.clusters import DAY_S, add_levels
from ttf.records.infra import pair_near_events
from ttf.stats.clustered import CLUSTERED, clustered_shares, join_clustered
from ttf.stats.outages.nearness import covered_shares
from ttf.stats.shares import add_wilson

HORIZON_S = DAY_S
ALL = "all"
NO_OUTAGE = "no unplanned outage began on a watched node"
NONE_ANNOUNCED = "no outage was announced"
_KEYS = ["code", "lead_s"]


def measure_leads(
    records: LogRecords, outages: pl.DataFrame, codes: list[str], preceding: list[str], lead_s: int
) -> pl.DataFrame:
    """Return ERROR_LEAD_TIMES of each code, and of those that precede failures together, for no lead and for lead_s.

    outages: rows of OUTAGES. A node's alarm begins with an error after a HORIZON_S without one.
    """
    starts = outages.filter(~pl.col("planned"), "counted", pl.col("node").is_not_null())
    starts = starts.join(records.nodes.select("node", "unit"), on="node").select("unit", "node", time_s="start_s")
    unit, time_s = (starts[name].to_numpy().astype(np.int64) for name in ("unit", "time_s"))
    starts = starts.filter(pl.Series(records.history.is_watched(unit, time_s, time_s), dtype=pl.Boolean))
    starts = starts.unique(["unit", "time_s"]).sort("unit", "time_s")
    groups = {code: [code] for code in codes} | ({ALL: preceding} if preceding else {})
    rows, parts = [], []
    for code, members in groups.items():
        errors = records.errors.filter(pl.col("code").is_in(members)).select("unit", "node", "time_s").sort("time_s")
        alarms = _count_alarms(errors, starts, records)
        for lead in sorted({0, lead_s}):
            leads = _lead_of_outages(starts, errors, lead)
            rows.append({"code": code, "lead_s": lead} | alarms | _describe(leads, records, errors, lead))
            keys = {"code": pl.lit(code), "lead_s": pl.lit(lead, pl.Int64)}
            parts.append(add_levels(leads.with_columns(**keys), {"node": ["unit"]}))
    table = ERROR_LEAD_TIMES.frame(rows).drop(CLUSTERED)
    if not parts:
        return ERROR_LEAD_TIMES.frame([])
    clustered = clustered_shares(pl.concat(parts), _KEYS, pl.col("to_s").count(), pl.len())
    joined = join_clustered(table, clustered, _KEYS)
    low = pl.coalesce("ci_low_clustered", "ci_low")
    return ERROR_LEAD_TIMES.conform(joined.with_columns(useful=low > pl.col("expected")))


def _lead_of_outages(starts: pl.DataFrame, errors: pl.DataFrame, lead_s: int) -> pl.DataFrame:
    """Return unit and to_s of each outage: the time from the first error in the horizon, blank without one."""
    numbered = starts.with_row_index("run").with_columns(end_s="time_s", node_list=pl.concat_list("node"))
    pairs = pair_near_events(numbered, errors.select("node", "time_s"), HORIZON_S, -lead_s)
    first = pairs.group_by("run").agg(to_s=pl.col("apart_s").max())
    return numbered.join(first, on="run", how="left", maintain_order="left").select("unit", "to_s")


def _describe(leads: pl.DataFrame, records: LogRecords, errors: pl.DataFrame, lead_s: int) -> dict:
    outages, announced = leads.height, leads["to_s"].count()
    row: dict = {"horizon_s": HORIZON_S, "outages": outages, "announced": announced}
    row |= add_wilson("share", announced, outages)
    reasons = []
    if outages:
        spans = records.history.watch.group_by("unit").agg(span_s=pl.col("end_s").max() - pl.col("start_s").min())
        shares = covered_shares(errors, spans, "unit", HORIZON_S - lead_s)
        row["expected"] = sum(shares.get(unit, 0.0) for unit in leads["unit"]) / outages
        row["median_lead_s"] = leads["to_s"].median()
        reasons += [] if announced else [NONE_ANNOUNCED]
    else:
        reasons.append(NO_OUTAGE)
    return row | {"reason": "; ".join(reasons) or None}


def _count_alarms(errors: pl.DataFrame, starts: pl.DataFrame, records: LogRecords) -> dict:
    ordered = errors.unique(["unit", "time_s"]).sort("unit", "time_s")
    alarms = (
        ordered.with_columns(alarm=number_close_rows(["unit"], "time_s", "time_s", HORIZON_S))
        .group_by("alarm")
        .agg(pl.col("unit").first(), first_s=pl.col("time_s").min(), last_s=pl.col("time_s").max() + HORIZON_S)
    )
    outages = starts.select("unit", outage_s="time_s")
    hits = alarms.join(outages, on="unit").filter(pl.col("outage_s").is_between("first_s", "last_s"))
    false_alarms = alarms.height - hits["alarm"].n_unique()
    span_s = pl.col("end_s").max() - pl.col("start_s").min()
    weeks = records.history.watch.select(span_s.fill_null(0)).item() / (7 * DAY_S)
    rate = false_alarms / weeks if weeks > 0 else None
    return {"alarms": alarms.height, "false_alarms": false_alarms, "false_alarms_per_week": rate}
