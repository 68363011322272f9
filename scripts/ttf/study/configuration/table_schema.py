"""Schemas of raw tables: shipped with a format, or the user's own, named in the registry."""

from collections.abc import Iterator
from pathlib import Path

from ttf.study.configuration.documents import Problem, load_document
from ttf.study.configuration.mapping import MAPPED_FORMATS
from ttf.study.configuration.messages import ConfigError
from ttf.study.configuration.named_files import DOCUMENT_MB, require_file
from ttf.study.configuration.taxonomy import find_pattern_problem
from ttf.study.configuration.yaml_files import load_yaml
from ttf.study.recognition.format_declarations import read_schema_text

# Rules write into this folder: a schema there would be an input of the rule that makes it.
PRODUCTS = Path("results")


def resolve_schema(trace: str, entry: dict, shipped_path: Path) -> str | None:
    """Return the text of a trace's schema: its format's, or the file that its entry names.

    None for a mapped format, whose schema follows from the entry. Raises ConfigError for a missing or invalid file,
    for a file below results/, and for a schema without the columns that the format needs.
    """
    if entry.get("format") in MAPPED_FORMATS:
        if "schema" in entry:
            raise ConfigError(
                f"registry.{trace}.schema: the schema of the format {entry['format']} follows from mapping, times, "
                "outcomes and blank. Change those, and remove schema."
            )
        return None
    if "schema" not in entry:
        return read_schema_text(shipped_path)
    label = f"registry.{trace}.schema"
    path = Path(require_file(entry["schema"], label, DOCUMENT_MB))
    if path.resolve().is_relative_to(PRODUCTS.resolve()):
        raise ConfigError(
            f"{label}: {path} lies in results/, where the next run overwrites it. Copy it to another folder, "
            "check it, and name the copy."
        )
    document = load_table_schema(path, f"{label}: {path}")
    if problems := list(_find_differences(document, load_yaml(shipped_path)["schema"])):
        raise ConfigError("\n".join(f"{label}: {path}: {problem}" for problem in problems))
    return read_schema_text(path)


def load_table_schema(path: str | Path, label: str | None = None) -> dict:
    """Return the document of a schema file. Raises ConfigError, one problem per line, for an invalid file."""
    return load_document(path, "table.schema.yaml", label, find_contradictions)


def find_contradictions(document: dict) -> Iterator[Problem]:
    """Yield ambiguous and unknown names, and limits that admit no value."""
    tables = document["tables"]
    for table, table_schema in tables.items():
        path, columns = ("tables", table), table_schema["columns"]
        stored_names = [column.get("as", column["name"]) for column in columns]
        for words, attribute in (([column["name"] for column in columns], "name"), (stored_names, "as")):
            for word in sorted({word for word in words if words.count(word) > 1}):
                yield Problem(path, f"two columns have the {attribute} {word!r}")
        stored_columns, owner = set(_select_stored_columns(table_schema)), table_schema.get("belongs_to", {})
        for key, names in (("key", table_schema.get("key", [])), ("belongs_to", owner.get("by", []))):
            for name in [name for name in names if name not in stored_columns]:
                yield Problem((*path, key), f"there is no stored column {name!r}")
        for name in [name for name in table_schema.get("order", []) if name not in stored_names]:
            yield Problem((*path, "order"), f"there is no column {name!r}")
        if owner and owner["table"] not in tables:
            yield Problem((*path, "belongs_to"), f"there is no table {owner['table']!r}")
        for index, column in enumerate(columns):
            if column.get("minimum", 0) > column.get("maximum", float("inf")):
                yield Problem((*path, "columns", index), "the minimum is larger than the maximum")
            if "pattern" in column and (problem := find_pattern_problem(column["pattern"])):
                yield Problem((*path, "columns", index, "pattern"), problem)


def _select_stored_columns(table: dict) -> dict[str, dict]:
    return {column.get("as", column["name"]): column for column in table["columns"] if column.get("keep", True)}


def _find_differences(adopted: dict, shipped: dict) -> Iterator[str]:
    """Yield where the user's schema lacks what the format needs: tables, stored columns, their units."""
    for table, table_schema in shipped["tables"].items():
        if table not in adopted["tables"]:
            yield f"tables: the table {table} is missing; the format reads it"
            continue
        columns = _select_stored_columns(adopted["tables"][table])
        for name, column in _select_stored_columns(table_schema).items():
            if name not in columns:
                yield f"tables.{table}: there is no stored column {name!r}; the format reads it"
            elif (columns[name]["type"] == "text") != (column["type"] == "text"):
                yield f"tables.{table}.{name}: the type {columns[name]['type']} cannot replace {column['type']}"
            elif columns[name].get("scale", 1) != column.get("scale", 1):
                yield f"tables.{table}.{name}: scale must be {column.get('scale', 1)}; the study uses this unit"
