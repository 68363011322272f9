"""The analyses that have a rule of their own: what each gives to the numbers of the report."""

from collections.abc import Callable, Mapping

import polars as pl

from ttf.numbers.ettr import of_ettr, of_ettr_measured
from ttf.numbers.hazards import of_hazards
from ttf.numbers.lemons import of_lemons
from ttf.numbers.lifetimes import of_verdict
from ttf.numbers.lost_work import of_lost_work
from ttf.numbers.metrics import Metrics
from ttf.numbers.occupancy import of_occupancy
from ttf.numbers.quality import of_drift
from ttf.numbers.queueing import of_queueing
from ttf.numbers.sizes import of_over_time, of_sizes
from ttf.numbers.states import of_states
from ttf.numbers.study1 import of_study1
from ttf.numbers.taxonomy import of_taxonomy
from ttf.numbers.use import of_epochs, of_utilisation
from ttf.numbers.workload import of_workload
from ttf.traces.philly_checks import of_philly_checks


def _of_sizes(metrics: Metrics, tables: Mapping[str, pl.DataFrame]) -> None:
    of_sizes(metrics, tables["mttf_by_gpus"], tables["node_failure_rate"], tables["size_law"])
    of_over_time(metrics, tables["failure_rate_over_time"])


# Name of the analysis -> what it takes from its tables (by their names without ending).
NUMBERS: dict[str, Callable[[Metrics, Mapping[str, pl.DataFrame]], None]] = {
    "hazards": of_hazards,
    "drift": lambda metrics, tables: of_drift(metrics, tables["drift"]),
    "lifetimes": lambda metrics, tables: of_verdict(metrics, tables["lifetime_verdict"]),
    "sizes": _of_sizes,
    "states": of_states,
    "ettr": of_ettr,
    "ettr_measured": lambda metrics, tables: of_ettr_measured(metrics, tables["ettr_measured"]),
    "taxonomy": lambda metrics, tables: of_taxonomy(
        metrics, tables["taxonomy"], tables["unmatched"], tables["log_tails"]
    ),
    "workload": of_workload,
    "queueing": of_queueing,
    "study1": lambda metrics, tables: of_study1(metrics, tables["study1"]),
    "lost_work": of_lost_work,
    "lemons": lambda metrics, tables: of_lemons(metrics, tables["lemon_nodes"], tables["lemon_effect"]),
    "utilisation": of_utilisation,
    "epochs": of_epochs,
    "occupancy": of_occupancy,
    "philly_checks": lambda metrics, tables: of_philly_checks(
        metrics, tables["zone_evidence"], tables["listed_machines"]
    ),
}
