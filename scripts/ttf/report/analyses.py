"""The analyses that have a rule of their own: the tables that each gives to the report."""

from collections.abc import Callable

import polars as pl

from ttf.report import ettr, words
from ttf.report.hazards import hazards
from ttf.report.lemons import lemon_tables
from ttf.report.lifetimes import lifetimes_tables
from ttf.report.lost_work import lost_work_tables
from ttf.report.occupancy import occupancy_tables
from ttf.report.philly_checks import philly_checks
from ttf.report.queueing import queueing_tables
from ttf.report.sizes import sizes_tables
from ttf.report.states import states_tables
from ttf.report.study1 import study1_tables
from ttf.report.tables import Mean, html_table, span
from ttf.report.taxonomy import taxonomy_tables
from ttf.report.trace import Trace
from ttf.report.use import epochs_tables, utilisation_tables

Identifier = Callable[[str], str]


def _drift(trace: Trace, identifier: Identifier) -> dict[str, str]:
    tables = {}
    drift = trace.table("drift").filter((pl.col("p_adjusted") < 0.05) & pl.col("before").is_not_null()).head(15)
    if drift.height:
        columns = {
            "window": ("Window", None),
            "against": ("Against", None),
            "column": ("Column", None),
            "value": ("Value", None),
            "statistic": ("What", None),
            "before": ("Before", words.number),
            "after": ("After", words.number),
            "n_before": ("n", words.count),
            "n_after": ("n", words.count),
            "effect": ("Effect", words.number),
        }
        tables["drift"] = html_table(drift, columns, identifier("drift"))
    return tables


def _workload(trace: Trace, identifier: Identifier) -> dict[str, str]:
    table = trace.table("percentiles").filter(
        (pl.col("outcome_set") == "all") & pl.col("group_by").is_in(["all", "gpu_type", "gpus"])
    )
    if not table.height:
        return {}
    names = {"runtime_s": "run time", "queue_s": "queueing delay", "wall_s": "first start to last end"}
    kinds = {"all": "", "gpu_type": "GPU type ", "gpus": "GPUs: "}
    table = table.with_columns(
        quantity=pl.col("quantity").replace_strict(names),
        kind=pl.concat_str(
            pl.col("group_by").replace_strict(kinds),
            pl.when(group_by="gpus").then(span("group")).otherwise("group"),
        ),
    )
    columns = {
        "kind": (f"{trace.about['unit'].capitalize()}s", None),
        "n": ("n", words.count),
        "mean_s": Mean("Mean", words.duration, "n"),
        "p25_s": ("25 %", words.duration),
        "p50_s": ("Median", words.duration),
        "p75_s": ("75 %", words.duration),
        "p90_s": ("90 %", words.duration),
        "p95_s": ("95 %", words.duration),
    }
    return {"percentiles": html_table(table, columns, identifier("percentiles"), group="quantity")}


# Name of the analysis -> its HTML tables by name, empty ones left out. identifier: the id of a table in the page.
ANALYSES: dict[str, Callable[[Trace, Identifier], dict[str, str]]] = {
    "hazards": hazards,
    "drift": _drift,
    "lifetimes": lifetimes_tables,
    "states": states_tables,
    "sizes": sizes_tables,
    "ettr": ettr.planned,
    "ettr_measured": ettr.measured,
    "taxonomy": taxonomy_tables,
    "workload": _workload,
    "queueing": queueing_tables,
    "study1": study1_tables,
    "lost_work": lost_work_tables,
    "lemons": lemon_tables,
    "utilisation": utilisation_tables,
    "epochs": epochs_tables,
    "occupancy": occupancy_tables,
    "philly_checks": philly_checks,
}
