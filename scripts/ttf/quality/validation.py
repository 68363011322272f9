"""An independent check of the rows kept: Pointblank reads the schema's rules its own way and counts what breaks them.

Ingest lets a row in where its own checks find nothing. Here another library asks the stored tables the same questions,
so that a slip in either shows: every step must find nothing.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pointblank as pb
import polars as pl

from ttf.raw_tables import Column, TableSchema
from ttf.stages import VALIDATION

MOST_WORDS_SHOWN = 8


def validate(tables: Mapping[str, pl.LazyFrame], schemas: Mapping[str, TableSchema]) -> pl.DataFrame:
    """One row per table and check: rows looked at, passed and failed (VALIDATION).

    tables: the typed raw tables by name. Limits are those of the schema in the stored unit. The check of the columns
    and their types counts as one row. A check that Pointblank could not run has blank counts and a reason.
    """
    return VALIDATION.frame(row for name, table in tables.items() for row in _of_table(table, schemas[name]))


@dataclass(frozen=True)
class _Step:
    """A question to Pointblank. column: the file's word for it; method: one of Validate's, with its arguments.

    pre: what is made of the table first. few: which rows are checked before all others; if none of them fails, none of
    the others can.
    """

    column: str | None
    sentence: str
    method: str
    arguments: dict
    pre: Callable[[pl.LazyFrame], pl.DataFrame] | None = None
    few: Callable[[pl.LazyFrame, TableSchema], pl.DataFrame] | None = None


def _of_table(table: pl.LazyFrame, schema: TableSchema) -> Iterator[dict]:
    steps = list(_steps(schema))
    height = table.select(pl.len()).collect(engine="streaming").item()
    is_whole = schema.stored.keys() <= set(table.collect_schema().names())
    answers: list[dict | None] = [None] * len(steps)
    for few in (_extremes, _key_numbers):
        asked = [place for place, step in enumerate(steps) if step.few is few]
        if asked and height and is_whole:
            found = _answers(few(table, schema), [replace(steps[place], pre=None) for place in asked])
            for place, answer in zip(asked, found, strict=True):
                if answer.get("rows_failed") == 0:
                    answers[place] = {"rows": height, "rows_passed": height, "rows_failed": 0}
    left = [place for place, answer in enumerate(answers) if answer is None]
    for place, answer in zip(left, _answers(table, [steps[place] for place in left]), strict=True):
        answers[place] = answer
    for step, answer in zip(steps, answers, strict=True):
        yield {"table": schema.name, "column": step.column, "check": step.method, "sentence": step.sentence} | answer


def _answers(table: pl.LazyFrame | pl.DataFrame, steps: Sequence[_Step]) -> list[dict]:
    """Of each step how many rows there were, passed and failed, or the reason why it could not be asked."""
    plan = pb.Validate(data=table)
    for step in steps:
        plan = getattr(plan, step.method)(**step.arguments, pre=step.pre)
    # Counts are whole numbers: the streaming engine gives the same ones, a block of the table at a time.
    with warnings.catch_warnings(), pl.Config(engine_affinity="streaming"):
        # Pointblank asks a lazy table for its columns in a way that Polars thinks slow; of a Parquet file it is not.
        warnings.simplefilter("ignore", pl.exceptions.PerformanceWarning)
        # Extracts of failing rows would have to be held in memory; the counts say where to look.
        done = plan.interrogate(collect_extracts=False)
    return [
        {"reason": "the check could not be run on this table"}
        if step.eval_error
        else {"rows": int(step.n), "rows_passed": int(step.n_passed), "rows_failed": int(step.n_failed)}
        for step in done.validation_info
    ]


def _extremes(table: pl.LazyFrame, schema: TableSchema) -> pl.DataFrame:
    """Of each number the least and the greatest, of each list of words those that occur, and a blank if there is one.

    Columns have nothing to do with each other here: a shorter one repeats its last value. Of a text without a list it
    is only asked whether it is blank: any text stands for the others.
    """
    kept = [column for column in schema.columns if column.keep]
    listed = [column.as_ for column in kept if column.values]
    others = {
        column.as_: ("first", "last") if column.type == "text" else ("min", "max")
        for column in kept
        if not column.values and (column.required or column.type != "text")
    }
    found = table.select(
        *(getattr(pl.col(name), kind)().alias(f"{kind} {name}") for name, two in others.items() for kind in two),
        *(pl.col(name).null_count().alias(f"blank {name}") for name in others),
    ).collect(engine="streaming")
    columns = [table.select(pl.col(name).unique()).collect(engine="streaming").to_series() for name in listed]
    for name, (one, other) in others.items():
        both = found[f"{one} {name}"].alias(name).append(found[f"{other} {name}"])
        columns.append(both.extend_constant(None, min(1, found[f"blank {name}"].item())))
    longest = max(column.len() for column in columns)
    return pl.DataFrame([column.gather([min(row, column.len() - 1) for row in range(longest)]) for column in columns])


def _key_numbers(table: pl.LazyFrame, schema: TableSchema) -> pl.DataFrame:
    """The first of the numbers that stand for the rows' keys, and all that stand for several rows."""
    numbers = table.select(key=pl.struct(schema.key).hash()).collect(engine="streaming").to_series().sort()
    again = (numbers == numbers.shift(1)) | (numbers == numbers.shift(-1))
    return numbers.head(1).append(numbers.filter(again)).to_frame()


def _key_texts(columns: Sequence[str], table: pl.LazyFrame) -> pl.DataFrame:
    return table.select(key=pl.struct(columns)).collect()


def _steps(schema: TableSchema) -> Iterator[_Step]:
    stored = pb.Schema(columns=[(name, str(dtype())) for name, dtype in schema.stored.items()])
    yield _Step(
        None,
        f"the {len(schema.stored)} columns are there with their types",
        "col_schema_match",
        {"schema": stored, "complete": False, "in_order": False},
    )
    for column in schema.columns:
        if column.keep:
            for sentence, method, arguments in _of_column(column):
                yield _Step(column.name, sentence, method, {"columns": column.as_} | arguments, few=_extremes)
    if schema.key:
        yield _Step(
            ", ".join(schema.key),
            "no two rows have the same key",
            "rows_distinct",
            {"columns_subset": ["key"]},
            partial(_key_texts, schema.key),
            _key_numbers,
        )
    by_name = {column.as_: column for column in schema.columns}
    times = [by_name[name] for name in schema.order if name in by_name and by_name[name].keep]
    for place, later in enumerate(times):
        for earlier in times[:place]:
            yield _Step(
                later.name,
                f"not before {earlier.name}",
                "col_vals_ge",
                {"columns": later.as_, "value": pb.col(earlier.as_), "na_pass": True},
            )


def _of_column(column: Column) -> Iterator[tuple[str, str, dict]]:
    """(what is checked, method of Validate, its arguments besides the column)."""
    # A blank that stands for 0 may be there in a required column.
    if column.required and not column.zero_is_blank:
        yield "never blank", "col_vals_not_null", {}
    smallest, largest = column.limits
    scale = 1 if column.is_whole else column.scale
    if smallest is not None:
        least = round(smallest * scale)
        yield f"at least {least:,}", "col_vals_ge", {"value": least, "na_pass": True}
    if largest is not None:
        most = round(largest * scale)
        yield f"at most {most:,}", "col_vals_le", {"value": most, "na_pass": True}
    if column.values:
        shown = ", ".join(column.values[:MOST_WORDS_SHOWN])
        rest = len(column.values) - MOST_WORDS_SHOWN
        yield (
            f"one of {shown}" + (f" and {rest} more" if rest > 0 else ""),
            "col_vals_in_set",
            {"set": [*column.values, None]},
        )
