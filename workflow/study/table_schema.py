"""Schemas of raw tables: the one shipped with a format, or one of a person's own that the registry names."""

from collections.abc import Iterator
from pathlib import Path

from study.documents import Problem, load_document
from study.format_declarations import schema_text
from study.mapping import MAPPED
from study.messages import ConfigError
from study.named_files import DOCUMENT_MB, given_file
from study.taxonomy import pattern_problem
from study.yaml_files import load_yaml

# Rules write below it: a schema there would be an input of the rule that it comes from.
PRODUCTS = Path("results")


def schema_of(trace: str, entry: dict, shipped: Path) -> str | None:
    """The text of the schema in force for a trace: in `shipped`, its format's, or in the file that its entry names.

    None for a format that is mapped: its schema follows from the registry entry.
    Raises ConfigError for a file that is not there, is no schema, lies below results/, or does not give the columns
    that the format is read by.
    """
    if entry.get("format") in MAPPED:
        if "schema" in entry:
            raise ConfigError(
                f"registry.{trace}.schema: the schema of the format {entry['format']} follows from mapping, times, "
                "outcomes and blank. Change those, and leave schema out."
            )
        return None
    if "schema" not in entry:
        return schema_text(shipped)
    where = f"registry.{trace}.schema"
    adopted = Path(given_file(entry["schema"], where, DOCUMENT_MB))
    if adopted.resolve().is_relative_to(PRODUCTS.resolve()):
        raise ConfigError(
            f"{where}: {adopted} lies in results/, where the next run would write over it. Copy it to a place of your "
            "own, look through it, and name the copy."
        )
    document = load_table_schema(adopted, f"{where}: {adopted}")
    if problems := list(_differences(document, load_yaml(shipped)["schema"])):
        raise ConfigError("\n".join(f"{where}: {adopted}: {problem}" for problem in problems))
    return schema_text(adopted)


def load_table_schema(path: str | Path, label: str | None = None) -> dict:
    """The document of a schema file. Raises ConfigError, a line a problem, for a file that is none."""
    return load_document(path, "table.schema.yaml", label, contradictions)


def contradictions(document: dict) -> Iterator[Problem]:
    """Names that stand for two columns or for none, and limits that let nothing in."""
    tables = document["tables"]
    for table, about in tables.items():
        path, columns = ("tables", table), about["columns"]
        ours = [column.get("as", column["name"]) for column in columns]
        for words, what in (([column["name"] for column in columns], "name"), (ours, "as")):
            for word in sorted({word for word in words if words.count(word) > 1}):
                yield Problem(path, f"two columns have the {what} {word!r}")
        stored, owner = set(_stored(about)), about.get("belongs_to", {})
        for key, used in (("key", about.get("key", [])), ("belongs_to", owner.get("by", []))):
            for name in [name for name in used if name not in stored]:
                yield Problem((*path, key), f"there is no stored column {name!r}")
        for name in [name for name in about.get("order", []) if name not in ours]:
            yield Problem((*path, "order"), f"there is no column {name!r}")
        if owner and owner["table"] not in tables:
            yield Problem((*path, "belongs_to"), f"there is no table {owner['table']!r}")
        for index, column in enumerate(columns):
            if column.get("minimum", 0) > column.get("maximum", float("inf")):
                yield Problem((*path, "columns", index), "the minimum is larger than the maximum")
            if "pattern" in column and (problem := pattern_problem(column["pattern"])):
                yield Problem((*path, "columns", index, "pattern"), problem)


def _stored(table: dict) -> dict[str, dict]:
    """Name that a stored column has with us -> what the schema says of it."""
    return {column.get("as", column["name"]): column for column in table["columns"] if column.get("keep", True)}


def _differences(adopted: dict, shipped: dict) -> Iterator[str]:
    """Where an adopted schema no longer gives what the format is read by: tables, stored columns, their units."""
    for table, about in shipped["tables"].items():
        if table not in adopted["tables"]:
            yield f"tables: the table {table} is missing; the format reads it"
            continue
        columns = _stored(adopted["tables"][table])
        for name, column in _stored(about).items():
            if name not in columns:
                yield f"tables.{table}: there is no stored column {name!r}; the format reads it"
            elif (columns[name]["type"] == "text") != (column["type"] == "text"):
                yield f"tables.{table}.{name}: the type {columns[name]['type']} cannot stand for {column['type']}"
            elif columns[name].get("scale", 1) != column.get("scale", 1):
                yield f"tables.{table}.{name}: scale must stay {column.get('scale', 1)}; the study counts in this unit"
