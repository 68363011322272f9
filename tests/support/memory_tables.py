"""In-memory tables in the form that the charts and numbers of an analysis read."""

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import polars as pl
from ttf.analyses import module_name
from ttf.analyses.factors.correlate.compute import groups_and_correlations
from ttf.analyses.outcomes.split_outcomes import compute as split_outcomes
from ttf.display.metrics import Metrics
from ttf.raw.extra_table_reader import READERS, SCHEMAS
from ttf.raw.ingest import ingest
from ttf.records.jobs import TIME_LIMITS, add_blank_columns, doubling_bucket, whole_gpus
from ttf.stats.clustered import sum_ended


class TableInputs(dict):
    """Frames by table, with the settings of the analysis as attributes (see ttf.records.inputs)."""

    def __init__(self, tables, **settings) -> None:
        super().__init__(tables)
        self.settings = SimpleNamespace(**settings)


def one_row(table: pl.DataFrame, **values) -> dict:
    """Return the only row with these column values, where None matches a blank; raise if there is none."""
    is_it = [pl.col(name).eq_missing(pl.lit(value)) for name, value in values.items()]
    return table.row(by_predicate=pl.all_horizontal(is_it), named=True)


def ingested(table: str, file: Path, folder: Path, max_share: float = 0.0):
    """Ingest a table of ttf.raw.extra_tables into the folder; return its row account and quarantine."""
    return ingest({table: [file]}, SCHEMAS, folder, max_share, READERS)


def lemon_inputs(nodes) -> TableInputs:
    return TableInputs({"lemon_nodes": nodes}, false_discovery=0.05)


def runtime_by_group(jobs, cutoffs):
    return groups_and_correlations(jobs, cutoffs)[0]


def correlations(jobs, cutoffs):
    return groups_and_correlations(jobs, cutoffs)[1]


def outcome_table(jobs, words=()):
    jobs = add_blank_columns(jobs, {"status_raw": pl.String})
    has_limits = not set(TIME_LIMITS).isdisjoint(words)
    return split_outcomes.outcome_table(split_outcomes.sum_outcomes(jobs), split_outcomes.count_times(jobs), has_limits)


def observed_times(jobs):
    return split_outcomes.split_times(split_outcomes.count_times(jobs))


def sized_jobs(jobs):
    """Return the jobs with gpus_high, and the sums of those that ended by it."""
    sized = jobs.lazy().with_columns(gpus_high=doubling_bucket(whole_gpus().fill_null(0)))
    return sized, sum_ended(sized, "gpus_high")


def outcomes_by_gpus(jobs):
    return split_outcomes.outcomes_by_gpus(*sized_jobs(jobs))


def compute_metrics(analysis: str, tables) -> Metrics:
    metrics = Metrics()
    metrics.add(import_module(f"{module_name(analysis)}.numbers").NUMBERS, tables)
    return metrics
