"""An independent check of the rows kept: Pointblank reads the schema's rules its own way and counts what breaks them.

Ingest lets a row in where its own checks find nothing. Here another library asks the stored tables the same questions,
so that a slip in either shows: every step must find nothing.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pointblank as pb
import polars as pl

from ttf.raw_tables import Column, TableSchema

VALIDATION_SCHEMA = {
    "table": pl.String,
    "column": pl.String,
    "check": pl.String,
    "sentence": pl.String,
    "rows": pl.Int64,
    "rows_passed": pl.Int64,
    "rows_failed": pl.Int64,
    "reason": pl.String,
}
MOST_WORDS_SHOWN = 8


def validate(tables: Mapping[str, pl.LazyFrame], schemas: Mapping[str, TableSchema]) -> pl.DataFrame:
    """One row per table and check: rows looked at, passed and failed (VALIDATION_SCHEMA).

    tables: the typed raw tables by name. Limits are those of the schema in the stored unit. The check of the columns
    and their types counts as one row. A check that Pointblank could not run has blank counts and a reason.
    """
    rows = [row for name, table in tables.items() for row in _of_table(table, schemas[name])]
    return pl.DataFrame(rows, schema=VALIDATION_SCHEMA)


def _of_table(table: pl.LazyFrame, schema: TableSchema) -> Iterator[dict]:
    plan = pb.Validate(data=table)
    told: list[tuple[str | None, str]] = []
    for column, sentence, step in _steps(schema):
        method, arguments = step
        plan = getattr(plan, method)(**arguments)
        told.append((column, sentence))
    # Counts are whole numbers: the streaming engine gives the same ones, a block of the table at a time.
    with warnings.catch_warnings(), pl.Config(engine_affinity="streaming"):
        # Pointblank asks a lazy table for its columns in a way that Polars thinks slow; of a Parquet file it is not.
        warnings.simplefilter("ignore", pl.exceptions.PerformanceWarning)
        # Extracts of failing rows would have to be held in memory; the counts say where to look.
        done = plan.interrogate(collect_extracts=False)
    for (column, sentence), step in zip(told, done.validation_info, strict=True):
        row = {"table": schema.name, "column": column, "check": step.assertion_type, "sentence": sentence}
        if step.eval_error:
            yield row | {"reason": "the check could not be run on this table"}
        else:
            yield row | {
                "rows": int(step.n),
                "rows_passed": int(step.n_passed),
                "rows_failed": int(step.n_failed),
            }


def _steps(schema: TableSchema) -> Iterator[tuple[str | None, str, tuple[str, dict]]]:
    """(file's name of the column, what is checked, (method of Validate, its arguments))."""
    stored = pb.Schema(columns=[(name, str(dtype())) for name, dtype in schema.stored.items()])
    yield (
        None,
        f"the {len(schema.stored)} columns are there with their types",
        ("col_schema_match", {"schema": stored, "complete": False, "in_order": False}),
    )
    for column in schema.columns:
        if column.keep:
            for sentence, step in _of_column(column):
                yield column.name, sentence, step
    if schema.key:
        yield (
            ", ".join(schema.key),
            "no two rows have the same key",
            ("rows_distinct", {"columns_subset": ["key"], "pre": partial(_keys, schema.key)}),
        )
    by_name = {column.as_: column for column in schema.columns}
    times = [by_name[name] for name in schema.order if name in by_name and by_name[name].keep]
    for place, later in enumerate(times):
        for earlier in times[:place]:
            yield (
                later.name,
                f"not before {earlier.name}",
                ("col_vals_ge", {"columns": later.as_, "value": pb.col(earlier.as_), "na_pass": True}),
            )


def _keys(columns: Sequence[str], table: pl.LazyFrame) -> pl.DataFrame:
    """The `key` of each row: a number for its texts, or the texts themselves where two rows have one number."""
    key = pl.struct(columns)
    numbers = table.select(key=key.hash()).collect()
    return numbers if numbers["key"].n_unique() == numbers.height else table.select(key=key).collect()


def _of_column(column: Column) -> Iterator[tuple[str, tuple[str, dict]]]:
    # A blank that stands for 0 may be there in a required column.
    if column.required and not column.zero_is_blank:
        yield "never blank", ("col_vals_not_null", {"columns": column.as_})
    smallest, largest = column.limits
    scale = 1 if column.is_whole else column.scale
    if smallest is not None:
        at_least = {"columns": column.as_, "value": round(smallest * scale), "na_pass": True}
        yield f"at least {round(smallest * scale):,}", ("col_vals_ge", at_least)
    if largest is not None:
        at_most = {"columns": column.as_, "value": round(largest * scale), "na_pass": True}
        yield f"at most {round(largest * scale):,}", ("col_vals_le", at_most)
    if column.values:
        shown = ", ".join(column.values[:MOST_WORDS_SHOWN])
        rest = len(column.values) - MOST_WORDS_SHOWN
        yield (
            f"one of {shown}" + (f" and {rest} more" if rest > 0 else ""),
            ("col_vals_in_set", {"columns": column.as_, "set": [*column.values, None]}),
        )
