"""Tables at hand, as a chart and the numbers of an analysis are given them."""

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import polars as pl
from ttf.analyses import module_name
from ttf.analyses.factors.correlate.compute import groups_and_correlations
from ttf.display.metrics import Metrics
from ttf.raw.extra_table_reader import READERS, SCHEMAS
from ttf.raw.ingest import ingest


class Given(dict):
    """Table -> frame, with the settings of the analysis as attributes (see ttf.records.inputs)."""

    def __init__(self, tables, **settings) -> None:
        super().__init__(tables)
        self.settings = SimpleNamespace(**settings)


def one_row(table: pl.DataFrame, **values) -> dict:
    """Return the only row in which the columns have these values, of which None is a blank; raise if there is none."""
    is_it = [pl.col(name).eq_missing(pl.lit(value)) for name, value in values.items()]
    return table.row(by_predicate=pl.all_horizontal(is_it), named=True)


def ingested(table: str, file: Path, folder: Path, max_share: float = 0.0):
    """A table of ttf.raw.extra_tables as ingest stores it in the folder; returns its row account and its quarantine."""
    return ingest({table: [file]}, SCHEMAS, folder, max_share, READERS)


def given_lemons(nodes) -> Given:
    """What the charts of find_lemon_nodes are given."""
    return Given({"lemon_nodes": nodes}, false_discovery=0.05)


def runtime_by_group(jobs, cutoffs):
    """The table of this name, of a frame of jobs."""
    return groups_and_correlations(jobs, cutoffs)[0]


def correlations(jobs, cutoffs):
    """The table of this name, of a frame of jobs."""
    return groups_and_correlations(jobs, cutoffs)[1]


def metrics_of(analysis: str, tables) -> Metrics:
    """The numbers of an analysis on tables at hand, by name; it may lack some."""
    metrics = Metrics()
    metrics.add(import_module(f"{module_name(analysis)}.numbers").NUMBERS, tables)
    return metrics
