"""Writing and reading the tables of the results contract: one way, so that the same numbers give the same bytes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl
from polars.io.plugins import register_io_source

from ttf.contract import Table

ROWS_A_GROUP = 1 << 18

# A label such as 100 stays text, a count stays whole; every other column of a table is a float.
_TEXT = {
    *("table", "column", "code", "severity", "first_lines", "sentence", "outcome", "feature", "value", "outcome_set"),
    *("unit", "method", "event", "stratum_by", "stratum", "model", "reason", "time"),
    *("owner_by", "owner", "ranked_by", "group_by", "measure", "infra_basis", "scenario"),
    *("verdict", "by", "domain", "category", "evidence", "note", "source", "line"),
    *("kind", "stratum_a", "stratum_b", "covariate", "level", "reference"),
    *("suggestion", "stored_as", "type", "commonest", "check", "window", "against", "test", "effect_name"),
    *("basis", "node_gpus_from", "no_projection", "needed", "part"),
    *("quantity", "group_by", "group", "gpu_request", "resource"),
    *("assumption", "rate", "mitigation"),
    *("node", "fleet", "picked_on", "measured_on"),
    *("zone", "role", "gpu_type", "weighted_by", "status"),
    *("question", "study_set", "study_measure", "asked_set", "asked_measure", "split_value", "change"),
    *("job_gpus", "machine_minutes"),
    *("gpu_bucket", "which", "scope"),
    *("state", "cause", "population"),
    *("load", "free_at_least"),
}
_TRUTH = {
    "reject",
    "converged",
    "best",
    "complete",
    "deterministic",
    "approximation_valid",
    "lemon",
    "misleads",
    "dedicated",
    "rate_reject",
    "zeros_kept",
}
_WHOLE = {
    *("rows", "rows_read", "rows_kept", "rows_quarantined", "jobs", "ended", "failures", "without_end", "n"),
    *("equal", "events", "at_risk", "censored", "cutoff_s", "exposure_s", "time_s", "tasks"),
    *("blank", "distinct", "minimum", "first_quartile", "middle", "third_quartile", "maximum", "longest"),
    *("runs", "failed_runs", "failed_without_time", "infra_failures", "infra_without_time", "preemptions"),
    *("linked_preemptions", "owners", "owners_in_top", "groups", "affected", "given_up", "start_s", "end_s", "trial_s"),
    *("strata", "proportionality_df", "other_events", "events_so_far", "without_time", "entered_late", "roles"),
    *("rows_passed", "rows_failed", "n_before", "n_after"),
    *("gpus", "nodes", "simulated_runs", "attempts", "interruptions"),
    *("gpus_low", "gpus_high", "above_gpus", "node_gpus", "sizes", "df", "largest_run_nodes", "projects_to_nodes"),
    *("trials", "users", "rtf_total_s", "gpu_none", "gpu_1", "gpu_2_4", "gpu_gt4"),
    *("at_s", "split_age_s", "young_events", "old_events"),
    *("manager_start_s", "first_submit_after_s", "first_submit_after_if_utc_s", "listed_gpus", "found_gpus"),
    *("asked_more", "used_more", "at_least", "groups"),
    *("window_from_s", "window_to_s", "placements", "single_node_placements", "single_node_failures", "out_count"),
    *("multi_node_failures", "shared_multi_node_failures", "counted", "lemons"),
    *("incidents", "window_failures", "attributed_failures"),
    *("failures_without", "exposure_without_s"),
    *("clock_hours", "first_submit_s", "instances", "instances_ended", "instances_failed", "over_half"),
    *("with_start", "with_end", "measured_s", "study_n", "asked_n", "rate_failures"),
    *("servers", "held_gpu_minutes", "held_gpu_minutes_in_span", "out_of_range"),
    *("jobs_logged", "epochs", "needing_all", "timed_jobs"),
    *("zeros", "negative", "unknown", "longest_s", "out_of_order", "overtaken", "left_out", "retries"),
    *("count", "with_gpu", "n_with_gpu", "gpus_max", "from_day", "to_day", "window_days"),
    *("runtime_n", "runtime_sum_s", "runtime_max_s", "queue_n", "queue_sum_s", "queue_max_s"),
    *("servers_by_use", "left_out", "spread", "started", "wait_s"),
    "at_time_limit",
}


def write_csv(frame: pl.DataFrame, path: str | Path) -> None:
    """Write a tidy table: blank for null, floats in full precision.

    Raises ValueError for NaN or an infinity: a table says why a number is missing, it does not hold a non-number.
    """
    floats = [name for name, dtype in frame.schema.items() if dtype.is_float()]
    bad = [name for name in floats if not frame[name].drop_nulls().is_finite().all()]
    if bad:
        raise ValueError(f"{path}: column {', '.join(bad)} holds NaN or an infinity")
    frame.write_csv(path)


def read_table(path: str | Path, contract: Table) -> pl.DataFrame:
    """A CSV with the types of its contract, also where a column is all blank."""
    return pl.read_csv(path, schema=contract.schema)


def write_product(product: pl.DataFrame | pl.LazyFrame | Iterator[pl.DataFrame], contract: Table, path: str) -> str:
    """Write a table or a Parquet file of this contract; returns what it is in a word for the log.

    A frame that is collected lazily, or comes in blocks, is written without being held; its types alone are checked.
    Raises StudyError for a frame that breaks the contract: nothing is written.
    """
    if isinstance(product, pl.DataFrame):
        contract.check(product)
        (write_csv if path.endswith(".csv") else write_parquet)(product, path)
        return f"{contract.name} {product.height:,}"
    if isinstance(product, pl.LazyFrame):
        contract.check(pl.DataFrame(schema=product.collect_schema()))
        stream_parquet(product, path)
    else:
        write_blocks(product, contract.schema, path)
    return contract.name


def write_parquet(frame: pl.DataFrame, path: str | Path) -> None:
    """Write a Parquet file whose bytes depend on the rows alone, not on the pieces they were computed in."""
    frame.rechunk().write_parquet(path, compression="lz4", statistics=False)


def stream_parquet(frame: pl.LazyFrame, path: str | Path) -> None:
    """Write a Parquet file without holding its rows: for whole numbers and texts in an order of their own.

    Row groups of a fixed length, so that the bytes do not depend on the pieces in which the rows come by.
    """
    frame.sink_parquet(
        path, compression="lz4", statistics=False, row_group_size=ROWS_A_GROUP, maintain_order=True, engine="streaming"
    )


def write_blocks(blocks: Iterable[pl.DataFrame], schema: Mapping[str, pl.DataType], path: str | Path) -> None:
    """Write a Parquet file of frames of this schema that come one after the other, of which one at a time is held."""
    stream_parquet(register_io_source(lambda *_unused: iter(blocks), schema=schema), path)


def read_columns(path: str | Path, columns: Sequence[str]) -> pl.DataFrame:
    """These columns of a Parquet file, in this order; one that the file does not have is left out.

    A trace's format decides which extras its tables have: `recurrence_group` or measured use, for one.
    """
    return scan_columns(path, columns).collect()


def scan_columns(path: str | Path, columns: Sequence[str]) -> pl.LazyFrame:
    """The same, to be read when it is used."""
    there = pl.read_parquet_schema(path)
    return pl.scan_parquet(path).select(name for name in dict.fromkeys(columns) if name in there)


def blocks(table: pl.LazyFrame, rows: int = 1 << 17) -> Iterator[pl.DataFrame]:
    """The rows of a table on the disk in their order, so many at a time.

    table: each row looked at by itself, and none left out, or more is read than is given.
    """
    for first in range(0, table.select(pl.len()).collect().item(), rows):
        yield table.slice(first, rows).collect(engine="streaming")


def read_csv(path: str | Path) -> pl.DataFrame:
    """Read a table of the contract with the types it was written with, also where a column is all blank."""
    names = pl.read_csv(path, n_rows=0).columns
    # The statistic of a test is a number; that of drift.csv is what was compared, such as a median.
    text = _TEXT | {"statistic"} if "effect_name" in names else _TEXT
    return pl.read_csv(path, schema={name: _dtype(name, text) for name in names})


class Tables(dict):
    """The tables of the contract by the names that they have among a rule's inputs; each is read when it is asked for.

    files: the inputs, which may be other things too.
    """

    def __init__(self, files: Mapping) -> None:
        super().__init__()
        self.files = {name: path for name, path in files.items() if str(path).endswith(".csv")}

    def __missing__(self, name: str) -> pl.DataFrame:
        self[name] = read_csv(self.files[name])
        return self[name]


def _dtype(name: str, text: set[str]) -> type[pl.DataType]:
    if name in text:
        return pl.String
    if name in _TRUTH:
        return pl.Boolean
    return pl.Int64 if name in _WHOLE else pl.Float64
